"""The gate in Redis: a hundred starts at once on one tenant, for each delay policy, with the usual
budget for the wait and with a short one. How long they wait, how often they ask for the lock, and
how many give up."""
import json
import re
import statistics

from harness import PARK, PARK_PATH, BenchError, Server, ask, free_port, pawl_server, request, wait_ready
from results import row

CALLERS = 100
LIMIT = 50
POLICIES = ("fixed", "full_jitter", "equal_jitter", "decorrelated")
BUDGETS_MS = (2000, 100)
CODES = frozenset({"200", "429", "503"})
FIGURES = ("p50_us", "p95_us", "p99_us", "requests", "gave_up")


def redis_server(folder):
    return Server(["redis-server", "--port", free_port(), "--bind", "127.0.0.1", "--save", "", "--dir", folder],
                  r"Running mode=standalone, port=(\d+)", folder / "redis.log")


def lock_requests(client):
    text = ask(client, "GET", "/metrics", {})
    page = text.decode() if isinstance(text, bytes) else text
    return sum(int(n) for n in re.findall(r"^pawl_gate_requests_total\{.*\} (\d+)$", page, re.M))


def burst(bench, server, client, policy, budget_ms, number):
    tenant = f"{policy}-{budget_ms}-{number}"
    ask(client, "PUT", f"/api/v1/tenants/{tenant}", {}, json.dumps(
        {"max_concurrent_runs": LIMIT, "gate": {"policy": policy, "max_wait_ms": budget_ms}}))
    ask(client, "PUT", f"/api/v1/workflows/{PARK['id']}", {"X-Tenant-ID": tenant}, json.dumps(PARK))
    before = lock_requests(client)
    found = bench.load_counted(server, f"{CALLERS} starts at the gate, {policy}, {budget_ms} ms", CALLERS,
                               request(PARK_PATH, tenant=tenant), codes=CODES, connections=CALLERS,
                               options=["--burst"])
    admitted, gave_up = found["codes"].get("200", 0), found["codes"].get("503", 0)
    if admitted > LIMIT or (gave_up == 0 and admitted != LIMIT):
        raise BenchError(f"{admitted} starts were admitted, and {gave_up} gave up; the limit is {LIMIT}")
    return {**found, "requests": lock_requests(client) - before, "gave_up": gave_up}


def measure(bench, folder):
    figures = {}
    with redis_server(folder) as redis, \
            pawl_server(bench, folder, "gate", flags=["--gate", f"redis://127.0.0.1:{redis.port}"]) as pawl:
        client = pawl.client()
        wait_ready(client)
        for budget_ms in BUDGETS_MS:
            for policy in POLICIES:
                found = [burst(bench, pawl, client, policy, budget_ms, n) for n in range(bench.sizes.bursts)]
                for name in FIGURES:
                    figures[f"{policy}_{budget_ms}_{name}"] = statistics.median(one[name] for one in found)
        client.close()
    return figures


def summarize(rounds):
    rows = []
    for budget_ms in BUDGETS_MS:
        for policy in POLICIES:
            def add(what, name, unit):
                value = statistics.median(r[f"{policy}_{budget_ms}_{name}"] for r in rounds)
                rows.append(row(f"{CALLERS} at the gate, {policy}, {budget_ms} ms, {what}", value, unit))

            for name in "p50", "p95", "p99":
                add(name, f"{name}_us", "us")
            add("lock requests", "requests", "")
            add("503s", "gave_up", "")
    return rows
