"""W3: three steps done by a worker process outside the server, from the start to the answer that
the run has ended."""
import statistics

from harness import check_ends, on, pawl_server, prepare, request, wait_ready, worker
from results import row

THREE = {"id": "three", "steps": [{"name": name, "type": "task", "handler": "noop"}
                                  for name in ("a", "b", "c")]}
CONNECTIONS = (1, 16)


def measure(bench, folder):
    figures = {}
    with pawl_server(bench, folder) as pawl:
        client = pawl.client()
        wait_ready(client)
        prepare(client, [THREE])
        with worker(bench, pawl, "--queue", "default", "--tenant", "*"):
            check_ends(client, THREE)
            client.close()
            for connections in CONNECTIONS:
                figures[connections] = bench.load(
                    pawl, f"W3 three steps, {on(connections)}",
                    request("/api/v1/workflows/three/runs?wait_ms=10000", '{"input":{}}', key="{u}"),
                    connections=connections)
    return figures


def summarize(rounds):
    rows = []
    for connections in CONNECTIONS:
        def median(figure):
            return statistics.median(r[connections][figure] for r in rounds)

        rows += [row(f"W3 three steps, {on(connections)}", median("rate"), "/s"),
                 row("  its p50", median("p50_us"), "us"), row("  its p99", median("p99_us"), "us")]
    return rows
