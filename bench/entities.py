"""Whether an entity's signals cost the same however many it has had, and whether memory and file
stay bounded though every signal has a key of its own."""
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from harness import STOP_WAIT_S, BenchError, ask, pawl_server, row, send_starts, wait_ready

TENANT = {"X-Tenant-ID": "t"}
TYPE_PATH = "/api/v1/entity-types/counter"
ENTITY_PATH = "/api/v1/entities/counter/one"
# The defaults but for the batch, so that one worker keeps up.
TYPE = {"queue": "counter", "handler": "count", "max_batch": 1000}
SIGNAL = '{"name":"add","payload":{"points":12},"dedup_key":"{u}"}'
FIRST = 1_000
AGES = (100_000, 1_000_000)
STEP = 1_000_000  # from there on
FILL_CONNECTIONS = 64
FILL_WAIT_S = 3600
GROWTH_MAX = 1.5


def ages(most):
    """After how many signals is measured."""
    return [FIRST, *(n for n in AGES if n <= most), *range(AGES[-1] + STEP, most + 1, STEP)]


def named(age):
    return f"{age // 1_000_000}m" if age >= 1_000_000 else f"{age // 1_000}k"


@contextlib.contextmanager
def worker(args, server):
    """Its handler changes nothing, as fast as it can."""
    argv = [args.pawl, "bench", "worker", "--url", f"http://127.0.0.1:{server.port}",
            "--tenant", "t", "--queue", "counter", "--connections", "2"]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(STOP_WAIT_S)


def see(server):
    client = server.client()
    shown = json.loads(ask(client, "GET", ENTITY_PATH, TENANT))
    client.close()
    return shown


def handled(server):
    """The entity once nothing waits."""
    while True:
        shown = see(server)
        if shown["inbox"] == 0 and shown["call"] is None:
            return shown
        time.sleep(0.01)


def send(args, server, what, seconds, *options):
    options = ["--warm", 0, "--seconds", seconds, "--path", f"{ENTITY_PATH}/signals",
               "--header", "X-Tenant-ID: t", *options]
    return send_starts(args.tools, server, what, seconds, options,
                       lambda codes: set(codes) == {"200"}, body=SIGNAL)


def cpu_us(server):
    stat = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text()
    user, system = stat.rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) * 1e6 / os.sysconf("SC_CLK_TCK")


def file_mib(folder):
    return sum(p.stat().st_size for p in folder.glob("pawl.db*")) / (1 << 20)


def fill(args, server, age):
    missing = age if age == FIRST else age - see(server)["last_seq"]
    if missing > 0:
        send(args, server, "filling", FILL_WAIT_S, "--connections", FILL_CONNECTIONS,
             "--requests", missing)
    shown = handled(server)
    if shown["dedup"]["keys"] > shown["dedup"]["max_keys"]:
        raise BenchError(f"{shown['dedup']} after {age} signals")


def at_age(args, folder, server, age):
    """What the server has taken by then, and what one client's signals cost from there on."""
    fill(args, server, age)
    figures = {"rss_mib": server.rss_mib(), "file_mib": file_mib(folder)}
    began = cpu_us(server)
    one = send(args, server, f"signals after {age}", args.seconds, "--connections", 1)
    handled(server)
    figures["p50_us"] = one["p50_us"]
    figures["cpu_us"] = (cpu_us(server) - began) / one["ops"]
    told = ", ".join(f"{name} {value:,.1f}" for name, value in figures.items())
    print(f"  after {age:,} signals: {told}", file=sys.stderr)
    return {f"signal_{name}_{named(age)}": value for name, value in figures.items()}


def measure(args, folder):
    figures = {"signal_ages": ages(args.signals)}
    with pawl_server(args, folder) as server:
        client = server.client()
        wait_ready(client)
        ask(client, "PUT", TYPE_PATH, TENANT, json.dumps(TYPE))
        client.close()
        with worker(args, server):
            for age in figures["signal_ages"]:
                figures |= at_age(args, folder, server, age)
    return figures


def summarize(rounds):
    def median(name, age):
        return statistics.median(r[f"signal_{name}_{named(age)}"] for r in rounds)

    def grown(name, age):
        return statistics.median(r[f"signal_{name}_{named(age)}"] /
                                 r[f"signal_{name}_{named(FIRST)}"] for r in rounds)

    later = rounds[0]["signal_ages"][1:]
    rows = [row(f"signal after {FIRST:,} on one entity, p50", median("p50_us", FIRST), "us"),
            row("its CPU time of the server, with handling", median("cpu_us", FIRST), "us")]
    for age in later:
        share = grown("p50_us", age)
        rows += [row(f"signal after {age:,}, p50", median("p50_us", age), "us", share,
                     f"<= {GROWTH_MAX} x first", share <= GROWTH_MAX),
                 row("its CPU time", median("cpu_us", age), "us", grown("cpu_us", age))]
    for age in later:
        rows += [row(f"RSS after {age:,} keys", median("rss_mib", age), "MiB"),
                 row(f"file after {age:,} keys", median("file_mib", age), "MiB")]
    return rows
