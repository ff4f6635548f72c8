"""Signals: to many entities, again with the same keys, and to runs that wait for them."""
import json
import statistics

from harness import BenchError, ask, list_all, pawl_server, prepare, request, wait_ready, worker
from results import row

ENTITIES = 1000
TYPE = {"queue": "counter", "handler": "count", "max_batch": 1000}
WAITS = {"id": "waits", "steps": [{"name": "go", "type": "wait_signal", "signal": "go"}]}
TENANT = {"X-Tenant-ID": "t0"}


def to_entities(key):
    return request(f"/api/v1/entities/counter/e{{n{ENTITIES}}}/signals",
                   '{"name":"add","payload":{"points":12},"dedup_key":"%s"}' % key, tenant="t0")


def signal_runs(bench, folder, server, count):
    """Each waiting run gets its signal twice under one key, and ends."""
    bench.load_counted(server, "starting runs that wait", count,
                       request("/api/v1/workflows/waits/runs", "{}", tenant="t0"),
                       codes={"200": count})
    client = server.client()
    runs = list_all(client, "/api/v1/runs?workflow_id=waits&status=waiting", TENANT, "id")
    if len(runs) != count:
        raise BenchError(f"{len(runs)} runs wait instead of {count}")
    values = folder / "runs"
    values.write_text("".join(f"{run}\n" for run in runs))
    result = bench.load_counted(server, "signals to runs that wait", count,
                                request("/api/v1/runs/{v}/signals", '{"name":"go"}', tenant="t0"),
                                codes={"200": count}, options=["--values", values])
    left = list_all(client, "/api/v1/runs?workflow_id=waits&status=waiting", TENANT, "id")
    client.close()
    if left:
        raise BenchError(f"{len(left)} runs still wait after their signals")
    return result


def measure(bench, folder):
    figures = {}
    with pawl_server(bench, folder) as pawl:
        client = pawl.client()
        wait_ready(client)
        prepare(client, [WAITS], 1)
        ask(client, "PUT", "/api/v1/entity-types/counter", TENANT, json.dumps(TYPE))
        client.close()
        with worker(bench, pawl, "--queue", "counter", "--tenant", "t0"):
            figures["entities"] = bench.load(pawl, f"signals to {ENTITIES:,} entities",
                                             to_entities("{u}"))
            figures["again"] = bench.load(pawl, "signals with a known key",
                                          to_entities(f"k{{n{ENTITIES}}}"))
        figures["runs"] = signal_runs(bench, folder, pawl, bench.sizes.run_signals)
    return figures


def summarize(rounds):
    rows = []
    for name, what in (("entities", f"signals to {ENTITIES:,} entities"),
                       ("again", "signals with a known key"), ("runs", "signals to waiting runs")):
        def median(figure):
            return statistics.median(r[name][figure] for r in rounds)

        rows += [row(f"{what}, 64 connections", median("rate"), "/s"),
                 row("  their p99", median("p99_us"), "us")]
    return rows
