"""What a start costs: bytes kept on disk, bytes written to the device, CPU time, instructions."""
import statistics

import instructions
from harness import pawl_server, prepare, start, wait_ready
from results import row

INSTRUCTIONS_MAX = 65_000
WRITTEN_MAX = 2_048
KEPT_MAX = 500


def bytes_below(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def measure(bench, folder):
    """Kept bytes count after a clean stop, when nothing is left in the log."""
    store = folder / "store"
    store.mkdir()
    with pawl_server(bench, store) as pawl:
        client = pawl.client()
        wait_ready(client)
        prepare(client)
        client.close()
    empty = bytes_below(store)
    with pawl_server(bench, store) as pawl:
        load = bench.load(pawl, "W1 start, 64 connections, for its bytes", start())
    figures = {"load": load, "kept_bytes": (bytes_below(store) - empty) / load["sent"]}
    bench.results.measured("bytes kept per start", {"kept_bytes": round(figures["kept_bytes"])})
    if bench.sizes.instructions:
        figures["instructions"] = instructions.count(bench, folder, bench.sizes.instructions)
        bench.results.measured("instructions", figures["instructions"],
                               command="bench/instructions.py")
    return figures


def summarize(rounds):
    def median(pick):
        return statistics.median(pick(r) for r in rounds)

    kept = median(lambda r: r["kept_bytes"])
    written = median(lambda r: r["load"]["written_bytes"])
    rows = [row("bytes kept per start", kept, "B", None, f"<= {KEPT_MAX:,} B", kept <= KEPT_MAX,
                steady=True),
            row("bytes written per start, by the process", written, "B")]
    if "device_bytes" in rounds[0]["load"]:
        device = median(lambda r: r["load"]["device_bytes"])
        rows += [row("bytes written per start, by the whole machine", device, "B", None,
                     f"<= {WRITTEN_MAX:,} B", device <= WRITTEN_MAX),
                 row("flushes of the device per 1,000 starts",
                     1000 * median(lambda r: r["load"]["device_flushes"]), "")]
    rows.append(row("server's CPU time per start", median(lambda r: r["load"]["server_cpu_us"]), "us",
                    steady=True))
    for name in rounds[0].get("instructions", {}):
        count = median(lambda r: r["instructions"][name])
        target = name == "start, 64 connections"
        rows.append(row(f"instructions: {name}", count, "", None,
                        f"<= {INSTRUCTIONS_MAX:,}" if target else None,
                        count <= INSTRUCTIONS_MAX if target else None, steady=True))
    return rows
