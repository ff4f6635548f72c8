"""The physical limits of this machine: a bare HTTP answer, a synced page, a commit, a copied
payload. Nothing that pawl does can be faster than these."""
import statistics

from harness import START_BODY, bare_server, on, request
from parts.payloads import SIZES
from results import row

SERVERS = {"libmicrohttpd": "bare_http", "pawl's HTTP layer": "bare_own"}
CONNECTIONS = (16, 64)


def measure(bench, folder):
    figures = {}
    for name, program in SERVERS.items():
        with bare_server(bench, folder, program) as server:
            for connections in CONNECTIONS:
                figures[f"{program}_{connections}"] = bench.load(
                    server, f"bare {name}, {on(connections)}",
                    request("/", START_BODY), connections=connections, seconds=bench.seconds / 2)
    half = bench.seconds / 2
    figures["commit"] = bench.tool("SQLite FULL commit of one row", "sqlite_commit",
                                   folder / "commit.db", half)
    figures["sync"] = bench.tool("fdatasync of one page", "limits", "sync", folder / "page", half)
    for name, size in SIZES.items():
        figures[f"copy_{name}"] = bench.tool(f"copy of {name} in memory", "limits", "copy", size,
                                             bench.seconds / 10)
    return figures


def summarize(rounds):
    def median(name, figure):
        return statistics.median(r[name][figure] for r in rounds)

    rows = [row(f"bare {name}, {on(connections)}", median(f"{program}_{connections}", "rate"),
                "/s") for name, program in SERVERS.items() for connections in CONNECTIONS]
    rows += [row("SQLite FULL commit of one row, p50", median("commit", "p50_us"), "us"),
             row("fdatasync of one page, p50", median("sync", "p50_us"), "us")]
    return rows + [row(f"copy of {name} in memory, p50", median(f"copy_{name}", "p50_us"), "us")
                   for name in SIZES]
