"""Limits under load: of so many starts at once exactly as many get through as fit, and nobody is put off with a 503."""
import collections
import json
import os
import resource

import pytest

import wire
from harness import together
from inspect_store import active_runs, all_runs, assert_healthy
from recount import assert_recounted, assert_within_limits

# As many starts as reach a limit at once; a sanitized server is several times slower, and no less exact.
AT_ONCE = 100 if os.environ.get("PAWL_SANITIZED") == "1" else 1000
NAMES = {"tenant": "concurrent-runs", "workflow": "concurrent-runs-of-workflow", "key": "concurrent-runs-of-key"}
RULES = {"tenant": lambda limit: None, "workflow": lambda limit: {"limit": limit}, "key": lambda limit: {"key": "input.customer", "limit": limit}}
EACH_LIMIT = pytest.mark.parametrize("by", ["tenant", "workflow", "key"])


def assert_limited(r, by, limit):
    """A refusal that tells a client all it needs to come back."""
    assert r.status == 429 and r.code == "MAX_CONCURRENT_RUNS" and r.json["retryable"] is True, r
    assert (r.json["limited_by"], r.json["current"], r.json["limit"]) == (by, limit, limit), r
    assert int(r.header("Retry-After")) >= 1
    assert r.header("RateLimit-Policy") == f'"{NAMES[by]}";q={limit}' and r.header("RateLimit").startswith(f'"{NAMES[by]}";r=0;t=')


def limited(api, by, limit, wids=("hold",), **settings):
    """A tenant with this limit on itself, on each of its workflows or on each customer."""
    if by == "tenant":
        settings["max_concurrent_runs"] = limit
    tenant = api.tenant(**settings)
    rule = RULES[by](limit)
    for wid in wids:
        api.workflow(tenant, wid, **({"concurrency": rule} if rule else {}))
    return tenant


def start_request(tenant, wid="hold", customer="c", key=None, **body):
    headers = [("X-Tenant-ID", tenant)] + ([("Idempotency-Key", key)] if key else [])
    return wire.request("POST", f"/api/v1/workflows/{wid}/runs", headers, json.dumps({"input": {"customer": customer}, **body}).encode())


def at_once(port, columns):
    """One request of each column on each connection, all sent before the first is answered; the answers by column."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    # Each connection begins with another column, so that no column comes first everywhere.
    width = len(columns)
    batches = [[columns[(i + c) % width][i] for c in range(width)] for i in range(len(columns[0]))]
    answers = wire.pipelined(port, batches)
    return [[settled(port, columns[c][i], answers[i][(c - i) % width]) for i in range(len(batches))] for c in range(width)]


def settled(port, sent, reply):
    """A busy server may answer that the request takes long: then it is sent again, with its key, until it is decided."""
    while reply.status == 409 and reply.code == "IDEMPOTENCY_IN_FLIGHT":
        [[reply]] = wire.pipelined(port, [[sent]])
    return reply


def statuses(replies):
    return dict(collections.Counter(r.status for r in replies))


@EACH_LIMIT
@pytest.mark.parametrize("keyed", [True, False], ids=["with keys", "without keys"])
def test_of_10_at_once_a_limit_of_2_admits_2(dev_server, api, by, keyed):
    tenant = limited(api, by, 2)
    replies = together(10, lambda i: api.start(tenant, body={"input": {"customer": "c", "n": i}}, key=f"k-{i}" if keyed else None))
    assert sorted(r.status for r in replies) == [200] * 2 + [429] * 8
    for r in replies:
        if r.status == 429:
            assert_limited(r, by, 2)
    admitted = {r.json["run_id"] for r in replies if r.status == 200}
    assert {run["id"] for run in all_runs(api, tenant)} == admitted and len(admitted) == 2
    assert_recounted(dev_server.db)
    assert_healthy(api)


def test_of_1000_at_once_each_of_20_tenants_admits_its_7(dev_server, api):
    tenants = [limited(api, "tenant", 7) for _ in range(20)]
    columns = at_once(dev_server.port, [[start_request(t, key=f"k-{n}") for n in range(AT_ONCE)] for t in tenants])
    for tenant, replies in zip(tenants, columns):
        assert statuses(replies) == {200: 7, 429: AT_ONCE - 7}, tenant
        for r in replies:
            if r.status == 429:
                assert_limited(r, "tenant", 7)
        assert {run["id"] for run in all_runs(api, tenant)} == {r.json["run_id"] for r in replies if r.status == 200}
    assert_recounted(dev_server.db)
    assert_within_limits(dev_server.db, *tenants)
    assert_healthy(api)


def test_of_1000_at_once_each_of_20_workflows_admits_its_7(dev_server, api):
    wids = [f"w{n}" for n in range(20)]
    tenant = limited(api, "workflow", 7, wids)
    columns = at_once(dev_server.port, [[start_request(tenant, wid, key=f"{wid}-{n}") for n in range(AT_ONCE)] for wid in wids])
    for wid, replies in zip(wids, columns):
        assert statuses(replies) == {200: 7, 429: AT_ONCE - 7}, wid
        for r in replies:
            if r.status == 429:
                assert_limited(r, "workflow", 7)
    assert collections.Counter(run["workflow_id"] for run in all_runs(api, tenant)) == {wid: 7 for wid in wids}
    assert_recounted(dev_server.db)
    assert_within_limits(dev_server.db, tenant)


def test_of_1000_at_once_each_of_20_keys_admits_its_7(dev_server, api):
    customers = [f"c{n}" for n in range(20)]
    tenant = limited(api, "key", 7)
    columns = at_once(dev_server.port, [[start_request(tenant, customer=c, key=f"{c}-{n}") for n in range(AT_ONCE)] for c in customers])
    for customer, replies in zip(customers, columns):
        assert statuses(replies) == {200: 7, 429: AT_ONCE - 7}, customer
        for r in replies:
            if r.status == 429:
                assert_limited(r, "key", 7)
    assert collections.Counter(run["input"]["customer"] for run in all_runs(api, tenant)) == {c: 7 for c in customers}
    assert_recounted(dev_server.db)
    assert_within_limits(dev_server.db, tenant)


def test_of_several_limits_at_once_none_is_passed_and_none_is_left_unused(dev_server, api):
    """A tenant's 20, a workflow's 12, a customer's 5: whoever is refused met a limit that was full."""
    tenant = api.tenant(max_concurrent_runs=20)
    for wid in ("one", "two"):
        api.workflow(tenant, wid, concurrency=[{"limit": 12}, {"key": "input.customer", "limit": 5}])
    columns = at_once(dev_server.port, [[start_request(tenant, wid, customer=f"c{n % 4}", key=f"{wid}-{n}") for n in range(200)] for wid in ("one", "two")])
    replies = [r for column in columns for r in column]
    assert statuses(replies) == {200: 20, 429: 380}
    for r in replies:
        if r.status == 429:
            assert r.code == "MAX_CONCURRENT_RUNS" and r.json["current"] == r.json["limit"] == {"tenant": 20, "workflow": 12, "key": 5}[r.json["limited_by"]]
    assert_recounted(dev_server.db)
    assert_within_limits(dev_server.db, tenant)


@EACH_LIMIT
def test_a_queue_takes_exactly_what_it_may(dev_server, api, by):
    tenant = limited(api, by, 7, at_limit="queue", max_queued_runs=50)
    replies, = at_once(dev_server.port, [[start_request(tenant, key=f"k-{n}") for n in range(AT_ONCE)]])
    assert statuses(replies) == {200: 57, 429: AT_ONCE - 57}
    assert collections.Counter(r.json["run"]["status"] for r in replies if r.status == 200) == {"running": 7, "queued": 50}
    for r in replies:
        if r.status == 429:
            assert r.code == "QUEUE_FULL" and (r.json["limited_by"], r.json["current"], r.json["limit"]) == ("queue", 50, 50), r
    assert_recounted(dev_server.db)
    assert_within_limits(dev_server.db, tenant)
    # And all of it is worked off, 7 at a time.
    for left in range(57, 0, -1):
        assert active_runs(api, tenant) == min(left, 7)
        assert api.work(tenant) is not None
    assert api.work(tenant) is None and {run["status"] for run in all_runs(api, tenant)} == {"succeeded"}
    assert_recounted(dev_server.db)


@EACH_LIMIT
def test_cancel_oldest_leaves_exactly_the_limit(dev_server, api, by):
    tenant = limited(api, by, 7, at_limit="cancel_oldest")
    replies, = at_once(dev_server.port, [[start_request(tenant, key=f"k-{n}") for n in range(AT_ONCE)]])
    assert statuses(replies) == {200: AT_ONCE} and len({r.json["run_id"] for r in replies}) == AT_ONCE
    runs = all_runs(api, tenant)
    assert collections.Counter(run["status"] for run in runs) == {"running": 7, "cancelled": AT_ONCE - 7}
    newest = sorted((run["id"] for run in runs), reverse=True)[:7]
    assert {run["id"] for run in runs if run["status"] == "running"} == set(newest)
    assert_recounted(dev_server.db)
    assert_within_limits(dev_server.db, tenant)


@EACH_LIMIT
def test_coalesce_hands_the_rest_one_of_the_active_runs(dev_server, api, by):
    tenant = limited(api, by, 7, at_limit="coalesce")
    replies, = at_once(dev_server.port, [[start_request(tenant, key=f"k-{n}") for n in range(AT_ONCE)]])
    assert statuses(replies) == {200: AT_ONCE}
    made = {r.json["run_id"] for r in replies if r.json["created"]}
    assert len(made) == 7 == len(all_runs(api, tenant))
    coalesced = [r for r in replies if not r.json["created"]]
    assert all(r.json["coalesced"] and r.json["run_id"] in made for r in coalesced)
    assert {r.json["run_id"] for r in coalesced} == {max(made)}, "the newest"
    again, = at_once(dev_server.port, [[start_request(tenant, key=f"k-{n}") for n in range(AT_ONCE)]])
    assert [r.json["run_id"] for r in again] == [r.json["run_id"] for r in replies]
    assert all(r.header("Idempotent-Replayed") == "true" for r in again)
    assert_recounted(dev_server.db)


@EACH_LIMIT
def test_a_crowd_of_retries_makes_no_second_run(dev_server, api, by):
    """1,000 requests at once share 10 keys under a limit of 7: 7 keys get a run, 3 none, whichever request comes first."""
    tenant = limited(api, by, 7)
    replies, = at_once(dev_server.port, [[start_request(tenant, key=f"k-{n % 10}") for n in range(AT_ONCE)]])
    by_key = [{(r.status, r.json.get("run_id")) for r in replies[n::10]} for n in range(10)]
    assert sum(len(seen) == 1 and {s for s, _ in seen} == {200} for seen in by_key) == 7, by_key
    assert sum(seen == {(429, None)} for seen in by_key) == 3, by_key
    assert sum(r.status == 200 and r.json["created"] for r in replies) == 7
    assert_recounted(dev_server.db)
    assert_within_limits(dev_server.db, tenant)
