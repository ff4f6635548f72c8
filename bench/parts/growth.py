"""How starts fare as the store grows: rate and p99 with so many finished runs in it, memory and
disk, and how long a server needs to be ready again after kill -9 under load."""
import subprocess
import time

from harness import BenchError, check_ends, pawl_server, prepare, request, wait_ready
from results import row

ONCE = True  # it takes long, and its ratios are its own
ENDS = {"id": "ends", "steps": [{"name": "now", "type": "transform", "output": {"ok": True}}]}
FILL_STEP = 250_000  # a line of progress for each
READY_WAIT_S = 300.0  # a server that takes longer to recover is not going to
RATE_MIN, P99_MAX_US, RECOVERY_MAX_MS = 0.9, 10_000, 1000


def start():
    """Its run ends at once; its key is kept."""
    return request("/api/v1/workflows/ends/runs", key="{u}")


def file_mib(folder):
    return sum(p.stat().st_size for p in folder.glob("pawl.db*")) / (1 << 20)


def crash(bench, server):
    """kill -9 while 64 connections send starts."""
    argv = [bench.tools / "load", "--port", server.port, "--warm", 0, "--seconds", 60, *start()]
    load = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        before = server.cpu_us()
        while server.cpu_us() < before + 50_000:  # it is at work
            if load.poll() is not None:
                raise BenchError("the load before the crash ended early")
            time.sleep(0.005)
    finally:
        server.kill()
        load.wait()


def at_size(bench, folder, server, size, have):
    """Fills up, measures, and returns the figures and how many runs there are now."""
    while have < size:
        step = min(FILL_STEP, size - have)
        have += step
        bench.load_counted(server, f"filling to {have:,} of {size:,} finished runs", step, start(),
                           codes={"200": step})
    load = bench.load(server, f"start at {size:,} finished runs", start())
    return {"size": size, "load": load, "rss_mib": server.rss_mib(),
            "file_mib": file_mib(folder)}, have + load["sent"]


def measure(bench, folder):
    points, have = [], 0
    for size in bench.sizes.growth:
        with pawl_server(bench, folder, ready_wait_s=READY_WAIT_S) as server:
            client = server.client()
            wait_ready(client, READY_WAIT_S)
            prepare(client, [ENDS])
            check_ends(client, ENDS)
            client.close()
            point, have = at_size(bench, folder, server, size, have)
            crash(bench, server)
        with pawl_server(bench, folder, ready_wait_s=READY_WAIT_S) as server:
            point["recovery_ms"] = server.wait_ready()
        point["runs"] = have
        bench.results.measured(f"store of {size:,} finished runs", {
            name: round(point[name], 1) for name in ("size", "rss_mib", "file_mib", "recovery_ms")})
        points.append(point)
    return {"points": points}


def summarize(rounds):
    points = rounds[0]["points"]
    first, last = points[0]["load"], points[-1]["size"]
    rows = []
    for point in points:
        size, rate = f"{point['size']:,} finished runs", point["load"]["rate"]
        share, p99, cpu = rate / first["rate"], point["load"]["p99_us"], point["load"]["server_cpu_us"]
        rows += [row(f"start at {size}", rate, "/s", share, f">= {RATE_MIN} x at zero",
                     share >= RATE_MIN),
                 row("  its p99", p99, "us", None, f"<= {P99_MAX_US // 1000} ms", p99 <= P99_MAX_US),
                 row("  its CPU time of the server", cpu, "us", cpu / (first["server_cpu_us"] or 1),
                     "x at zero", steady=True),
                 row("  ready again after kill -9", point["recovery_ms"], "ms", None,
                     f"<= {RECOVERY_MAX_MS} ms", point["recovery_ms"] <= RECOVERY_MAX_MS),
                 row("  RSS", point["rss_mib"], "MiB")]
        if point["size"] == last and point["runs"]:
            rows.append(row("  disk per run", point["file_mib"] * (1 << 20) / point["runs"], "B"))
    return rows
