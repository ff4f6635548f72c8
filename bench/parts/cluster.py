"""pawl on PostgreSQL: starts on one node beside pgbench, which inserts one row per transaction, with one and with many shards; what a
run of three steps costs the node, PostgreSQL and NATS; and requests that a node of three forwards to the others."""
import json
import re
import statistics
import subprocess
import time
import urllib.request

import postgres
from harness import CONNECTIONS, BenchError, Server, ask, check_ends, check_start, free_port, on, prepare, request, start, wait_ready, worker
from parts.workers import THREE
from results import row

NODES = 3
RATIO_MIN = 0.6
SETTLE_WAIT_S = 60
RUN_CONNECTIONS = 16


def settle(nodes):
    """Waits until each node has its share of the shards, and all of them know."""
    until = time.monotonic() + SETTLE_WAIT_S
    client = [n.client() for n in nodes]
    while time.monotonic() < until:
        views = [json.loads(ask(c, "GET", "/readyz", {}))["shards"] for c in client]
        owners = [shard["owner"] for shard in views[0] if shard["state"] == "serving"]
        if all(view == views[0] for view in views) and len(owners) == len(views[0]) and len(set(owners)) == len(nodes):
            return
        time.sleep(0.05)
    raise BenchError("the nodes do not share the shards")


def costs(bench, cluster, pawl, what, load):
    """What load() measures, with what each of its requests costs PostgreSQL."""
    def readings():
        return pawl.loop_cpu_us(), cluster.cpu_us(), cluster.kept_bytes(), cluster.wal_bytes()

    before = readings()
    result = load()
    names = "loop_cpu_us", "postgres_cpu_us", "postgres_kept_bytes", "postgres_wal_bytes"
    found = {name: round((b - a) / result["sent"], 1) for name, a, b in zip(names, before, readings())}
    bench.results.measured(f"{what}, what it costs", found)
    return {**result, **found, "rss_mib": pawl.rss_mib()}


def starts_beside_pgbench(bench, folder, cluster, shards):
    """pgbench, pawl, pgbench: the machine's mood changes by the second."""
    what = f"W1 start on PostgreSQL, {shards} shard{'s' * (shards > 1)}, {on(CONNECTIONS)}"

    def yardstick():
        found = cluster.pgbench(bench.seconds / 2, bench.sizes.window)
        bench.results.measured(f"pgbench, one row per transaction, {CONNECTIONS} clients", found)
        return found["rate"]

    with postgres.node(bench, folder, postgres.make_store(bench, cluster, f"starts{shards}", shards), "one") as pawl:
        client = pawl.client()
        wait_ready(client)
        prepare(client)
        check_start(client)
        client.close()
        before = yardstick()
        found = costs(bench, cluster, pawl, what, lambda: bench.load(pawl, what, start()))
        return {**found, "pgbench": statistics.mean((before, yardstick()))}


def nats_server(folder):
    return Server(["sh", "-c", f"exec nats-server -a 127.0.0.1 -p {free_port()} -m {free_port()} -js -sd {folder}/nats 2>&1"],
                  r"Listening for client connections on 127\.0\.0\.1:(\d+)", folder / "nats.log")


def in_stream(monitor):
    with urllib.request.urlopen(f"http://127.0.0.1:{monitor}/jsz") as reply:
        found = json.load(reply)
    return found["messages"], found["bytes"]


def published(client, monitor):
    """Messages and bytes of the bus, once nothing is waiting to be published."""
    until = time.monotonic() + SETTLE_WAIT_S
    while time.monotonic() < until:
        if re.search(r"^pawl_outbox_depth 0$", ask(client, "GET", "/metrics", {}), re.M):
            return in_stream(monitor)
        time.sleep(0.05)
    raise BenchError("the bus does not receive all events")


def whole_runs(bench, folder, cluster):
    """Three steps by a worker, with the bus. One shard: a worker for all tenants asks several in turn, and would be measured instead."""
    what = f"W3 three steps on PostgreSQL with NATS, 1 shard, {on(RUN_CONNECTIONS)}"
    store = postgres.make_store(bench, cluster, "runs", bench.sizes.shards[0])
    with nats_server(folder) as nats, postgres.node(bench, folder, store, "runs", "--bus", f"nats://127.0.0.1:{nats.port}") as pawl:
        monitor = int(re.search(r" -m (\d+) ", nats.argv[2])[1])
        client = pawl.client()
        wait_ready(client)
        prepare(client, [THREE])
        with worker(bench, pawl, "--queue", "default", "--tenant", "*"):
            check_ends(client, THREE)
            before = published(client, monitor)
            load = request("/api/v1/workflows/three/runs?wait_ms=10000", '{"input":{}}', key="{u}")
            found = costs(bench, cluster, pawl, what, lambda: bench.load(pawl, what, load, connections=RUN_CONNECTIONS))
        after = published(client, monitor)
        client.close()
    sent = dict(zip(("bus_messages", "bus_bytes"), (round((b - a) / found["sent"], 1) for a, b in zip(before, after))))
    bench.results.measured(f"{what}, what it publishes", sent)
    return {**found, **sent}


def bytes_between(one, others):
    """What a node has exchanged with others so far, on connections that are open."""
    total = 0
    for other in others:
        lines = subprocess.run(["ss", "-tinH", "dst", f"127.0.0.1:{other.port}"], check=True, capture_output=True, text=True).stdout
        own = subprocess.run(["ss", "-tnpH", "dst", f"127.0.0.1:{other.port}"], check=True, capture_output=True, text=True).stdout
        if f"pid={one.process.pid}," in own:
            total += sum(int(n) for n in re.findall(r"bytes_(?:acked|received):(\d+)", lines))
    return total


def forwarded_by(client):
    return sum(float(n) for n in re.findall(r"^pawl_forwarded_requests_total\{.*\} (\S+)$", ask(client, "GET", "/metrics", {}), re.M))


def forwards(bench, folder, cluster):
    """All requests go to one node of three, which has a third of the tenants."""
    what = f"W1 start on one node of {NODES}, {on(CONNECTIONS)}"
    store = postgres.make_store(bench, cluster, "nodes", max(bench.sizes.shards[-1], NODES))
    with postgres.node(bench, folder, store, "n1") as first, postgres.node(bench, folder, store, "n2") as second, \
            postgres.node(bench, folder, store, "n3") as third:
        settle([first, second, third])
        client = first.client()
        prepare(client)
        check_start(client)
        before = forwarded_by(client), bytes_between(first, (second, third))
        found = bench.load(first, what, start())
        after = forwarded_by(client), bytes_between(first, (second, third))
        client.close()
    count = after[0] - before[0]
    if count == 0:
        raise BenchError("no request was forwarded")
    sent = {"forwarded_share": round(count / found["sent"], 3), "forwarded_bytes": round((after[1] - before[1]) / count)}
    bench.results.measured(f"{what}, what it forwards", sent)
    return {**found, **sent}


def measure(bench, folder):
    with postgres.server(folder) as cluster:
        figures = {f"starts_{shards}": starts_beside_pgbench(bench, folder, cluster, shards) for shards in bench.sizes.shards}
        figures["runs"] = whole_runs(bench, folder, cluster)
        figures["forwards"] = forwards(bench, folder, cluster)
    return figures


def summarize(rounds):
    rows = []

    def median(name, figure):
        return statistics.median(r[name][figure] for r in rounds)

    def add(what, name, figure, unit, **more):
        rows.append(row(what, median(name, figure), unit, **more))

    for name in [key for key in rounds[0] if key.startswith("starts_")]:
        ratio = statistics.median(r[name]["rate"] / r[name]["pgbench"] for r in rounds)
        shards = name.removeprefix("starts_")
        rows.append(row(f"pgbench, one row per transaction, {CONNECTIONS} clients", median(name, "pgbench"), "/s"))
        add(f"W1 start, one node, {shards} shard{'s' * (shards != '1')}, {on(CONNECTIONS)}", name, "rate", "/s", share=ratio,
            target=f">= {RATIO_MIN} x pgbench", met=ratio >= RATIO_MIN)
        add("  its p50", name, "p50_us", "us")
        add("  its p99", name, "p99_us", "us")
        add_costs(add, name)
    add(f"W3 three steps with NATS, 1 shard, {on(RUN_CONNECTIONS)}", "runs", "rate", "/s")
    add_costs(add, "runs")
    add("  messages on the bus", "runs", "bus_messages", "")
    add("  bytes on the bus", "runs", "bus_bytes", "B")
    add(f"W1 start through one node of {NODES}, {on(CONNECTIONS)}", "forwards", "rate", "/s")
    add("  share that is forwarded, percent", "forwards", "forwarded_share", "")
    rows[-1]["value"] = round(rows[-1]["value"] * 100)
    add("  bytes between nodes of a forwarded start", "forwards", "forwarded_bytes", "B")
    return rows


def add_costs(add, name):
    for what, figure, unit in (("CPU time of the node", "server_cpu_us", "us"), ("of that its HTTP thread", "loop_cpu_us", "us"),
                               ("CPU time of PostgreSQL", "postgres_cpu_us", "us"),
                               ("bytes kept in PostgreSQL", "postgres_kept_bytes", "B"), ("bytes of its log", "postgres_wal_bytes", "B")):
        add(f"  {what}", name, figure, unit, steady=True)
    add("  memory of the node", name, "rss_mib", "MiB")
