"""W4, and how starts fare while others wait: beside a tenant with a long queue, in that queue, behind a
tenant whose jobs fill the shared workers, and a hundred at once on one tenant."""
import json
import statistics
import time

from harness import (PARK, PARK_PATH, START_BODY, BenchError, ask, bare_server, on, pawl_server,
                     request, start, wait_ready)
from results import row

SIDE_CONNECTIONS = (1, 16)
GROWTH_MAX = 1.5

CLAIM_SIZES = (1, 10)
WORK_PATH = "/api/v1/workflows/task/runs"
WORK = {"id": "task", "steps": [{"name": "do", "type": "task", "handler": "noop"}]}
LEASE_MS = 3_600_000  # no job comes back while we measure

BURST = 100
BURST_LIMIT = 2
# What a burst must be answered with: the limit holds exactly.
BURST_CODES = {"reject": {"200": BURST_LIMIT, "429": BURST - BURST_LIMIT},
               "queue": {"200": BURST}}


def define(client, tenant, workflow=None, **settings):
    if settings:
        ask(client, "PUT", f"/api/v1/tenants/{tenant}", {}, json.dumps(settings))
    workflow = workflow or PARK
    ask(client, "PUT", f"/api/v1/workflows/{workflow['id']}", {"X-Tenant-ID": tenant},
        json.dumps(workflow))


# --- a long queue ---

def define_full(server, tenant):
    """A tenant whose one slot is taken: whatever it starts from now on is queued."""
    client = server.client()
    wait_ready(client)
    define(client, tenant, max_concurrent_runs=1, at_limit="queue")
    ask(client, "POST", PARK_PATH, {"X-Tenant-ID": tenant}, START_BODY)
    client.close()


def queued_runs(server, tenant):
    client = server.client()
    found = json.loads(ask(client, "GET", f"/api/v1/tenants/{tenant}", {}))["queued_runs"]
    client.close()
    return found


def fill_queue(bench, server, tenant, depth):
    missing = depth - queued_runs(server, tenant)
    bench.load_counted(server, f"filling the queue to {depth:,}", missing,
                       request(PARK_PATH, tenant=tenant), codes={"200": missing})
    if queued_runs(server, tenant) != depth:
        raise BenchError(f"{queued_runs(server, tenant)} runs are queued instead of {depth}")


def growth(before, there, after):
    """There, as multiples of before and after."""
    return {name: there[name] / statistics.mean((before[name], after[name]))
            for name in ("p50_us", "p99_us", "rate")}


def measure_queue(bench, folder):
    """The yardstick is the same load where nothing is queued, taken before and after."""
    # Few enough starts join a queue to leave its depth what it is called.
    depths, joining = bench.sizes.queue_depths, bench.sizes.joining
    figures = {"depths": depths}
    with pawl_server(bench, folder, "calm") as calm, pawl_server(bench, folder, "deep") as deep:
        for server in calm, deep:
            client = server.client()
            wait_ready(client)
            define(client, "side")
            client.close()
        define_full(deep, "full")

        def side(server, connections, depth):
            return bench.load(server, f"start beside {depth:,} queued, {on(connections)}",
                              start(tenant="side"), connections=connections,
                              seconds=bench.seconds / 2)

        def join(server, tenant):
            return bench.load_counted(server, f"start into the queue of {tenant}", joining,
                                      request(PARK_PATH, tenant=tenant), codes={"200": joining},
                                      connections=16)

        def join_empty(name):
            define_full(calm, name)
            return join(calm, name)

        for depth in depths:
            fill_queue(bench, deep, "full", depth)
            for connections in SIDE_CONNECTIONS:
                readings = [side(server, connections, at) for server, at in
                            ((calm, 0), (deep, depth), (calm, 0))]
                figures[f"beside_{depth}_{connections}"] = readings[1]
                figures[f"beside_{depth}_{connections}_growth"] = growth(*readings)
            readings = [join_empty(f"before-{depth}"), join(deep, "full"),
                        join_empty(f"after-{depth}")]
            figures[f"into_{depth}"] = readings[1]
            figures[f"into_{depth}_growth"] = growth(*readings)
    return figures


# --- shared workers ---

def measure_turn(client, size, backlog):
    """One start of a tenant that has nothing else: how many jobs of others a shared worker is
    handed before this one, and after how long it comes."""
    single = {"X-Tenant-ID": "single"}
    run = json.loads(ask(client, "POST", WORK_PATH, single, START_BODY))["run_id"]
    begun = time.perf_counter()
    before = 0
    while before <= backlog:
        jobs = json.loads(ask(client, "POST", "/api/v1/jobs/claim", {"X-Tenant-ID": "*"},
                              json.dumps({"worker_id": "bench", "max": size,
                                          "lease_ms": LEASE_MS})))["jobs"]
        runs = [job["run_id"] for job in jobs]
        if run in runs:
            return before + runs.index(run), (time.perf_counter() - begun) * 1e6
        before += len(jobs)
    raise BenchError("the single job was never handed out")


def measure_shared_workers(bench, folder):
    backlog, probes = bench.sizes.backlog, bench.sizes.probes
    figures = {"backlog": backlog}
    with pawl_server(bench, folder, "shared") as server:
        client = server.client()
        wait_ready(client)
        define(client, "busy", WORK)
        define(client, "single", WORK)
        alone = {size: [measure_turn(client, size, 0)[1] for _ in range(probes)]
                 for size in CLAIM_SIZES}
        client.close()
        bench.load_counted(server, f"filling the backlog to {backlog:,}", backlog,
                           request(WORK_PATH, tenant="busy"), codes={"200": backlog})
        for size in CLAIM_SIZES:
            turns = [measure_turn(client, size, backlog) for _ in range(probes)]
            wait_us = statistics.median(us for _, us in turns)
            figures[f"turn_{size}_before_max"] = max(before for before, _ in turns)
            figures[f"turn_{size}_us"] = wait_us
            figures[f"turn_{size}_growth"] = wait_us / statistics.median(alone[size])
        client.close()
    return figures


# --- all at once ---

def measure_bursts(bench, folder):
    """A new tenant each time; the connections are there before the first request is sent."""
    figures = {}
    with bare_server(bench, folder) as bare, pawl_server(bench, folder, "burst") as pawl:
        client = pawl.client()
        wait_ready(client)

        def burst(server, tenant, codes):
            return bench.load_counted(server, f"W4 burst of {BURST}, {server.name}, {tenant}", BURST,
                                      request(PARK_PATH, tenant=tenant), codes=codes,
                                      connections=BURST, options=["--burst"])

        for policy, codes in BURST_CODES.items():
            there, floor = [], []
            for number in range(bench.sizes.bursts):
                tenant = f"{policy}-{number}"
                define(client, tenant, max_concurrent_runs=BURST_LIMIT, at_limit=policy)
                floor.append(burst(bare, tenant, {"200": BURST}))
                there.append(burst(pawl, tenant, codes))
            for name in "p50_us", "p95_us", "p99_us":
                figures[f"burst_{policy}_{name}"] = statistics.median(r[name] for r in there)
            figures[f"burst_{policy}_ratio"] = (figures[f"burst_{policy}_p99_us"] /
                                                statistics.median(r["p99_us"] for r in floor))
        client.close()
    return figures


def measure(bench, folder):
    return (measure_queue(bench, folder) | measure_shared_workers(bench, folder) |
            measure_bursts(bench, folder))


# --- the table ---

def growth_rows(rounds, what, name):
    """A latency may rise so much, and a rate fall by as much."""
    def one(figure, unit, target, is_met):
        share = statistics.median(r[f"{name}_growth"][figure] for r in rounds)
        return row(f"{what}, {figure.removesuffix('_us')}",
                   statistics.median(r[name][figure] for r in rounds), unit, share, target,
                   is_met(share))

    return [one(figure, "us", f"<= {GROWTH_MAX} x none", lambda share: share <= GROWTH_MAX)
            for figure in ("p50_us", "p99_us")] + \
        [one("rate", "/s", f">= 1/{GROWTH_MAX} x none", lambda share: share >= 1 / GROWTH_MAX)]


def summarize(rounds):
    def median(name):
        return statistics.median(r[name] for r in rounds)

    rows = []
    for depth in rounds[0]["depths"]:
        for connections in SIDE_CONNECTIONS:
            rows += growth_rows(rounds, f"start beside {depth:,} queued, c={connections}",
                                f"beside_{depth}_{connections}")
        rows += growth_rows(rounds, f"start into {depth:,} queued, c=16", f"into_{depth}")
    for size in CLAIM_SIZES:
        before = max(r[f"turn_{size}_before_max"] for r in rounds)
        rows.append(row(f"jobs before one behind {rounds[0]['backlog']:,}, claims of {size}", before, "jobs",
                        None, "<= 1", before <= 1, steady=True))
        rows.append(row(f"its wait, claims of {size}, p50", median(f"turn_{size}_us"), "us",
                        median(f"turn_{size}_growth"), "x no backlog"))
    for policy in BURST_CODES:
        for name in "p50", "p95":
            rows.append(row(f"W4 burst of {BURST}, limit {BURST_LIMIT}, {policy}, {name}",
                            median(f"burst_{policy}_{name}_us"), "us"))
        rows.append(row(f"W4 burst of {BURST}, limit {BURST_LIMIT}, {policy}, p99",
                        median(f"burst_{policy}_p99_us"), "us", median(f"burst_{policy}_ratio"),
                        "x bare"))
    return rows
