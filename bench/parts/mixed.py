"""Everything at once: starts, replays, tasks with a worker, signals and reads in one mix, as fast as
possible and then at half that rate."""
import json
import statistics

from harness import (PARK, START_BODY, ask, pawl_server, prepare, request, start,
                     wait_ready, worker)
from results import row

TASK = {"id": "task", "steps": [{"name": "do", "type": "task", "handler": "noop"}]}
TYPE = {"queue": "default", "handler": "count", "max_batch": 1000}
RATE_SHARE = 0.5


def mix():
    signal = '{"name":"add","payload":{"points":12},"dedup_key":"{u}"}'
    return [start(name="start", weight=4),
            start("dup", name="replay", weight=2),
            request("/api/v1/workflows/task/runs", START_BODY, key="{u}", name="task", weight=2),
            request("/api/v1/entities/counter/e{n1000}/signals", signal, name="signal", weight=2),
            request("/api/v1/runs?limit=20", None, method="GET", name="list", weight=1)]


def measure(bench, folder):
    with pawl_server(bench, folder) as pawl:
        client = pawl.client()
        wait_ready(client)
        prepare(client, [PARK, TASK])
        for tenant in range(64):
            ask(client, "PUT", "/api/v1/entity-types/counter", {"X-Tenant-ID": f"t{tenant}"},
                json.dumps(TYPE))
        client.close()
        with worker(bench, pawl, "--queue", "default", "--tenant", "*"):
            closed = bench.load(pawl, "mixed, 64 connections", *mix())
            rate = max(1, round(closed["rate"] * RATE_SHARE))
            calm = bench.load(pawl, f"mixed at {RATE_SHARE:.0%} of that rate", *mix(), rate=rate)
    return {"closed": closed, "calm": calm}


def summarize(rounds):
    def median(name, figure, kind=None):
        return statistics.median((r[name]["kinds"][kind] if kind else r[name])[figure] for r in rounds)

    rows = [row("mixed, 64 connections", median("closed", "rate"), "/s"),
            row("  its p99", median("closed", "p99_us"), "us"),
            row(f"mixed at {RATE_SHARE:.0%} of that rate, open loop, p99", median("calm", "p99_us"), "us")]
    return rows + [row(f"  {kind}, p99", median("calm", "p99_us", kind), "us")
                   for kind in rounds[0]["calm"]["kinds"]]
