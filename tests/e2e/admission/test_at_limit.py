"""What a start at a limit gets: by policy, by who says it, by which limit; and what a retry of it sees, at any time."""
import itertools

import pytest

import harness
from harness import together, wait_until
from inspect_store import all_runs, assert_healthy, record, rows
from limit_scenarios import ROUTES, WHERE, LimitScenario, cancel, get_tenant, queued, set_tenant, started, status, statuses
from recount import assert_recounted

EVERYWHERE = pytest.mark.parametrize("by,said_by", WHERE, ids=[f"limit of {by}, said by {who}" for by, who in WHERE])
BOTH_ROUTES = pytest.mark.parametrize("route", ROUTES)
POLICIES = ["reject", "queue", "cancel_oldest", "coalesce"]


# --- each policy, and its retries ---

@EVERYWHERE
@BOTH_ROUTES
def test_reject_keeps_nothing_until_there_is_room(api, by, said_by, route):
    s = LimitScenario(api, "reject", by, said_by, route)
    for n in (1, 1, 2):  # another body too: nothing is known of the key yet
        s.assert_rejected(s.ask("k", n))
        assert record(api, s.tenant, "k") is None and s.counts() == (1, 1, 0)
    api.work(s.tenant)
    run = s.assert_made(s.ask("k"), "running")
    s.assert_replays("k", run)
    s.cancel(run)
    s.assert_replays("k", run)
    s.assert_replays("held", s.held)


@EVERYWHERE
@BOTH_ROUTES
def test_queue_starts_the_run_when_the_one_before_it_ends(api, by, said_by, route):
    s = LimitScenario(api, "queue", by, said_by, route)
    run = s.assert_made(s.ask("k"), "queued")
    assert run != s.held and s.run(run)["started_at"] is None and s.counts() == (2, 1, 1)
    s.assert_replays("k", run)
    assert s.events(run) == ["run.created", "run.queued"]
    assert api.work(s.tenant)["run_id"] == s.held
    assert s.run(run)["status"] == "running" and s.counts() == (2, 1, 0)
    assert s.events(run) == ["run.created", "run.queued", "run.admitted", "job.created"]
    s.assert_replays("k", run)
    assert api.work(s.tenant)["run_id"] == run
    s.assert_replays("k", run)
    assert s.run(run)["status"] == "succeeded" and s.counts() == (2, 0, 0)


@EVERYWHERE
@BOTH_ROUTES
def test_cancel_oldest_makes_room_once(api, by, said_by, route):
    s = LimitScenario(api, "cancel_oldest", by, said_by, route)
    run = s.assert_made(s.ask("k"), "running")
    assert s.run(s.held)["status"] == "cancelled" and s.events(s.held)[-1] == "run.cancelled" and s.counts() == (2, 1, 0)
    s.assert_replays("k", run)
    assert s.run(run)["status"] == "running"
    newer = s.assert_made(s.ask("newer"), "running")
    assert s.run(run)["status"] == "cancelled"
    # Its run has been cancelled meanwhile: a retry shows that, and cancels nothing in turn.
    s.assert_replays("k", run)
    s.assert_replays("held", s.held)
    assert s.run(newer)["status"] == "running" and s.counts() == (3, 1, 0)


@EVERYWHERE
@BOTH_ROUTES
def test_coalesce_hands_out_the_active_run_for_good(api, by, said_by, route):
    s = LimitScenario(api, "coalesce", by, said_by, route)
    s.assert_coalesced(s.ask("k", n=7), s.held)
    assert s.counts() == (1, 1, 0)
    s.assert_replays("k", s.held, n=7)
    assert api.work(s.tenant)["run_id"] == s.held
    s.assert_replays("k", s.held, n=7)
    other = s.assert_made(s.ask("other"), "running")
    s.assert_coalesced(s.ask("third"), other)
    s.assert_replays("k", s.held, n=7)
    assert s.counts() == (2, 1, 0)


def test_retries_after_kills_get_the_first_answer():
    """All policies, limits and speakers: with the limit still full, and again when what held it has ended."""
    with harness.server() as s:
        scenarios = [LimitScenario(s.client(), policy, by, said_by) for policy in POLICIES for by, said_by in WHERE]
        answered = {}
        for scenario in scenarios:
            r = scenario.ask("k")
            answered[scenario] = r.json["run"]["id"] if r.status == 200 else None

        def restart_and_check():
            s.kill()
            assert_recounted(s.db)
            s.start()
            for scenario in scenarios:
                scenario.api = s.client()
                if scenario.policy == "reject":
                    scenario.assert_rejected(scenario.ask("k"))
                    assert record(scenario.api, scenario.tenant, "k") is None
                else:
                    scenario.assert_replays("k", answered[scenario])
                scenario.assert_replays("held", scenario.held)

        restart_and_check()
        for scenario in scenarios:
            if scenario.policy in ("queue", "coalesce"):
                assert scenario.api.work(scenario.tenant)["run_id"] == scenario.held
            if scenario.policy == "queue":
                assert scenario.run(answered[scenario])["status"] == "running"
        restart_and_check()
        for scenario in scenarios:
            made, active, waiting = {"reject": (1, 1, 0), "queue": (2, 1, 0), "cancel_oldest": (2, 1, 0), "coalesce": (1, 0, 0)}[scenario.policy]
            assert scenario.counts() == (made, active, waiting), (scenario.policy, scenario.by)
        assert_healthy(s.client())


@EVERYWHERE
def test_of_many_requests_with_one_key_one_is_decided(api, by, said_by):
    """First requests race for the key at a limit that is full, and for the slot."""
    for policy in POLICIES:
        s = LimitScenario(api, policy, by, said_by)
        replies = together(8, lambda i: s.ask("k"))
        if policy == "reject":
            for r in replies:
                s.assert_rejected(r)
            continue
        assert {r.status for r in replies} == {200} and len({r.json["run_id"] for r in replies}) == 1, replies
        assert sum(r.header("Idempotent-Replayed") is None for r in replies) == 1
        s.assert_replays("k", replies[0].json["run_id"])
        assert s.counts() == {"queue": (2, 1, 1), "cancel_oldest": (2, 1, 0), "coalesce": (1, 1, 0)}[policy]


# --- who is listened to ---

CARE = ["reject", "coalesce", "queue", "cancel_oldest"]


@pytest.mark.parametrize("of_workflow,of_key", list(itertools.product(POLICIES, repeat=2)))
def test_of_two_limits_that_are_full_the_more_careful_policy_counts(api, tenant, of_workflow, of_key):
    api.workflow(tenant, concurrency=[{"limit": 2, "at_limit": of_workflow}, {"key": "input.c", "limit": 1, "at_limit": of_key}])
    older, newer = (started(api, tenant, input={"c": c}) for c in ("a", "b"))
    r = api.start(tenant, body={"input": {"c": "b"}}, key="k")
    careful = min(of_workflow, of_key, key=CARE.index)
    if careful == "reject":
        assert r.status == 429 and r.json["limited_by"] == ("workflow" if of_workflow == "reject" else "key"), r
        assert statuses(api, tenant, [older, newer]) == ["running"] * 2
    elif careful == "coalesce":
        assert r.json["coalesced"] is True and r.json["run_id"] == newer, r
    elif careful == "queue":
        assert r.json["run"]["status"] == "queued" and statuses(api, tenant, [older, newer]) == ["running"] * 2, r
    else:  # the newer one holds a slot of both: its end is enough
        assert r.json["run"]["status"] == "running" and statuses(api, tenant, [older, newer]) == ["running", "cancelled"], r


def test_a_rule_says_nothing_about_the_tenants_limit(api):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="reject")
    api.workflow(tenant, concurrency={"limit": 9, "at_limit": "queue"})
    started(api, tenant)
    r = api.start(tenant, key="k")
    assert r.status == 429 and r.json["limited_by"] == "tenant", r


def test_the_request_may_ask_for_more_care_or_less(api):
    tenant = api.tenant(max_concurrent_runs=1)
    api.workflow(tenant, concurrency={"limit": 1, "at_limit": "queue"})
    first = started(api, tenant)
    assert api.start(tenant).status == 429  # the tenant rejects, whatever the rule says
    second = queued(api, tenant, at_limit="queue")
    third = started(api, tenant, at_limit="cancel_oldest")
    assert statuses(api, tenant, [first, second, third]) == ["cancelled", "queued", "running"]
    assert api.start(tenant, body={"at_limit": "coalesce"}).json["run_id"] == third


@pytest.mark.parametrize("wish", ["dance", "", "Queue", 1, None, ["queue"]])
def test_an_unknown_policy_is_400_or_nothing(api, wish):
    tenant = api.tenant(max_concurrent_runs=0, at_limit="queue")
    api.workflow(tenant)
    r = api.start(tenant, body={"at_limit": wish}, key="k")
    if wish is None:  # nothing is wished for
        assert r.status == 200 and r.json["run"]["status"] == "queued", r
    else:
        assert r.status == 400 and r.code == "FIELD_INVALID" and "at_limit" in r.json["detail"], r
        assert record(api, tenant, "k") is None


# --- what a refusal leaves ---

@pytest.mark.parametrize("settings,code,limited_by", [
    ({"max_concurrent_runs": 0}, "MAX_CONCURRENT_RUNS", "tenant"),
    ({"max_concurrent_runs": 0, "at_limit": "cancel_oldest"}, "MAX_CONCURRENT_RUNS", "tenant"),
    ({"max_concurrent_runs": 0, "at_limit": "coalesce"}, "MAX_CONCURRENT_RUNS", "tenant"),
    ({"max_concurrent_runs": 0, "at_limit": "queue", "max_queued_runs": 0}, "QUEUE_FULL", "queue"),
], ids=["reject", "nothing to cancel", "nothing to coalesce with", "queue full"])
def test_a_refused_start_leaves_no_key_no_run_and_no_scope(dev_server, api, settings, code, limited_by):
    tenant = api.tenant(**settings)
    api.workflow(tenant, concurrency=[{"limit": 5}, {"key": "input.c", "limit": 5}])
    for n in range(3):
        r = api.start(tenant, body={"input": {"c": f"new-{n}"}}, key="k")
        assert (r.status, r.code) == (429, code) and r.json["limited_by"] == limited_by, r
    assert record(api, tenant, "k") is None and all_runs(api, tenant) == []
    tenant_num = rows(dev_server.db, "SELECT num FROM tenants WHERE id = ?", tenant)[0][0]
    for table in ("scopes", "lines", "queue", "holding", "runs", "idempotency"):
        assert rows(dev_server.db, f"SELECT count(*) FROM {table} WHERE tenant = ?", tenant_num) == [(0,)], table
    set_tenant(api, tenant, max_concurrent_runs=1)
    started(api, tenant, key="k", input={"c": "another body"})
    assert_recounted(dev_server.db)


def test_scopes_go_with_their_last_run(dev_server, api):
    tenant = api.tenant(max_concurrent_runs=2, at_limit="queue")
    api.workflow(tenant, concurrency=[{"limit": 9}, {"key": "input.c", "limit": 1}])
    runs = [api.start(tenant, body={"input": {"c": c}}).json["run_id"] for c in "aabbc"]
    assert statuses(api, tenant, runs) == ["running", "queued", "running", "queued", "queued"]
    assert_recounted(dev_server.db)
    for run in reversed(runs):
        cancel(api, tenant, run)
        assert_recounted(dev_server.db)
    assert rows(dev_server.db, "SELECT count(*) FROM scopes s JOIN tenants t ON t.num = s.tenant WHERE t.id = ?", tenant) == [(0,)]


# --- more about each policy ---

def test_cancel_oldest_ends_as_many_as_are_too_many(api):
    """After a limit was lowered, one start makes room for itself under every limit."""
    tenant = api.tenant(max_concurrent_runs=5, at_limit="cancel_oldest")
    api.workflow(tenant)
    runs = [started(api, tenant) for _ in range(5)]
    set_tenant(api, tenant, max_concurrent_runs=2)
    assert statuses(api, tenant, runs) == ["running"] * 5
    last = started(api, tenant)
    assert statuses(api, tenant, runs) == ["cancelled"] * 4 + ["running"] and status(api, tenant, last) == "running"
    assert get_tenant(api, tenant)["active_runs"] == 2


def test_cancel_oldest_takes_the_oldest_holder_of_the_limit_that_is_full(api):
    tenant = api.tenant(at_limit="cancel_oldest")
    api.workflow(tenant, concurrency={"key": "input.c", "limit": 2})
    a1, b1, a2, b2 = (started(api, tenant, input={"c": c}) for c in "abab")
    b3 = started(api, tenant, input={"c": "b"})
    assert statuses(api, tenant, [a1, b1, a2, b2, b3]) == ["running", "cancelled", "running", "running", "running"]


def test_cancel_oldest_makes_room_for_others_that_wait(dev_server, api):
    """The victim gives back all its slots: those that the new run does not take go to the queue."""
    tenant = api.tenant(max_concurrent_runs=2, at_limit="queue")
    api.workflow(tenant, "one", concurrency={"key": "input.c", "limit": 1})
    api.workflow(tenant, "two")
    first = started(api, tenant, "one", input={"c": "a"})
    waiting = queued(api, tenant, "one", input={"c": "a"})
    other = started(api, tenant, "two")
    newest = started(api, tenant, "two", at_limit="cancel_oldest")
    assert statuses(api, tenant, [first, waiting, other, newest]) == ["cancelled", "queued", "running", "running"]
    cancel(api, tenant, other)
    assert status(api, tenant, waiting) == "running"
    assert_recounted(dev_server.db)


def test_cancel_oldest_works_where_the_victim_was_the_last_of_a_scope(dev_server, api):
    """The scope of the new run goes with the victim, and comes back with the run."""
    tenant = api.tenant(max_concurrent_runs=1, at_limit="cancel_oldest")
    api.workflow(tenant, concurrency=[{"limit": 5}, {"key": "input.c", "limit": 5}])
    runs = [started(api, tenant, input={"c": c}) for c in "aab"]
    assert statuses(api, tenant, runs) == ["cancelled", "cancelled", "running"]
    assert_recounted(dev_server.db)


def test_cancel_oldest_of_a_claimed_job_loses_the_lease(api):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="cancel_oldest")
    api.workflow(tenant)
    started(api, tenant)
    job = api.post("/api/v1/jobs/claim", {"worker_id": "w"}, tenant=tenant).json["jobs"][0]
    started(api, tenant)
    late = api.post(f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": job["lease_token"]}, tenant=tenant)
    assert late.status == 409 and late.code == "LEASE_LOST"
    assert get_tenant(api, tenant)["active_runs"] == 1


def test_coalesce_takes_the_newest_run_of_the_same_workflow_and_key(api):
    tenant = api.tenant(max_concurrent_runs=4, at_limit="coalesce")
    api.workflow(tenant, "one", concurrency={"key": "input.c", "limit": 2})
    api.workflow(tenant, "two")
    api.workflow(tenant, "three")
    runs = {name: started(api, tenant, wid, input={"c": c}) for name, wid, c in
            (("one a", "one", "a"), ("one a newer", "one", "a"), ("one b", "one", "b"), ("two", "two", "b"))}
    for wid, c, into in (("one", "a", "one a newer"), ("two", "c", "two"), ("two", "b", "two")):
        r = api.start(tenant, wid, {"input": {"c": c}})
        assert r.json["coalesced"] is True and r.json["run_id"] == runs[into], (wid, c, r)
    # By the tenant's limit: the newest of the workflow, whatever its key; and none of another workflow.
    assert api.start(tenant, "one", {"input": {"c": "c"}}).json["run_id"] == runs["one b"]
    r = api.start(tenant, "three")
    assert r.status == 429 and r.json["limited_by"] == "tenant", r


def test_coalesce_never_hands_out_a_queued_run(api):
    tenant = api.tenant(max_concurrent_runs=1)
    api.workflow(tenant)
    active = started(api, tenant)
    queued(api, tenant, at_limit="queue")
    assert api.start(tenant, body={"at_limit": "coalesce"}).json["run_id"] == active


def test_a_coalesced_start_that_waits_gets_the_end(api):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="coalesce")
    api.workflow(tenant)
    run = started(api, tenant)

    def one(i):
        if i == 0:
            return api.post("/api/v1/workflows/hold/runs?wait_ms=60000", {}, key="k", tenant=tenant)
        wait_until(lambda: record(api, tenant, "k"), "the start is coalesced")
        return api.work(tenant, output={"n": 1})

    r = together(2, one)[0]
    assert r.json["run_id"] == run and r.json["run"]["status"] == "succeeded", r
    assert r.json["created"] is False and r.json["coalesced"] is True, r


@pytest.mark.parametrize("path, names", [("/api/v1/workflows/hold/runs?wait_ms=1", {}), ("/api/v1/workflow-runs", {"definitionId": "hold"})], ids=["waits", "flat"])
def test_a_start_that_joined_a_run_says_so_whenever_it_shows_the_run_anew(api, path, names):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="coalesce")
    api.workflow(tenant)
    run = started(api, tenant)
    replies = [api.post(path, names, key="k", tenant=tenant) for _ in range(2)]
    api.work(tenant)
    replies.append(api.post(path, names, key="k", tenant=tenant))
    for r in replies:
        assert r.json["run_id"] == run and r.json["created"] is False and r.json.get("coalesced") is True, r
    assert replies[-1].json["run"]["status"] == "succeeded"


# --- keys of limits ---

def test_runs_without_a_key_share_one_limit(api, tenant):
    api.workflow(tenant, concurrency={"key": "input.customer.id", "limit": 2})
    absent = [{}, {"input": None}, {"input": {}}, {"input": {"customer": None}}, {"input": {"customer": {"id": None}}}, {"input": "text"},
              {"input": {"customer": {"id": ""}}}, {"input": [1]}]
    runs = [started(api, tenant, **absent[0]), started(api, tenant, **absent[3])]
    for body in absent:
        r = api.start(tenant, body=body)
        assert r.status == 429 and r.json["limited_by"] == "key" and r.json["current"] == 2, (body, r)
    started(api, tenant, input={"customer": {"id": "x"}})
    cancel(api, tenant, runs[0])
    assert {api.start(tenant, body=body).status for body in absent} == {200, 429}


@pytest.mark.parametrize("path,one,same,other", [
    ("input.c", {"c": "x"}, {"c": "x", "more": 1}, {"c": "X"}),
    ("input.c", {"c": 1}, {"c": 1.0}, {"c": 2}),
    ("input.c", {"c": 1}, {"c": "1"}, {"c": "01"}),
    ("input.c", {"c": True}, {"c": "true"}, {"c": False}),
    ("input.c", {"c": {"a": 1, "b": [2]}}, {"c": {"b": [2], "a": 1}}, {"c": {"a": 1, "b": [3]}}),
    ("input.c", {"c": "y" * 1000}, {"c": "y" * 1000}, {"c": "y" * 999 + "z"}),
    ("input.c", {"c": "schlüssel"}, {"c": "schlüssel"}, {"c": "schlussel"}),
    ("input.a.b.c", {"a": {"b": {"c": "x"}}}, {"a": {"b": {"c": "x", "d": 1}}}, {"a": {"b": {"c": "y"}}}),
    ("input.list.1", {"list": ["a", "b"]}, {"list": ["c", "b", "d"]}, {"list": ["b", "a"]}),
    ("input", "whole", "whole", "other"),
    ("input", {"n": 1, "m": 2}, {"m": 2, "n": 1}, {"n": 1, "m": 3}),
], ids=lambda v: str(v)[:30])
def test_what_names_the_same_key(api, tenant, path, one, same, other):
    api.workflow(tenant, concurrency={"key": path, "limit": 1})
    started(api, tenant, input=one)
    assert api.start(tenant, body={"input": same}).json["limited_by"] == "key"
    started(api, tenant, input=other)


def test_the_same_key_of_two_workflows_and_two_tenants_is_two_limits(api):
    for tenant in (api.tenant(), api.tenant()):
        for wid in ("one", "two"):
            api.workflow(tenant, wid, concurrency={"key": "input.c", "limit": 1})
            started(api, tenant, wid, input={"c": "x"})
            assert api.start(tenant, wid, {"input": {"c": "x"}}).status == 429


def test_a_run_must_fit_under_every_limit(api):
    tenant = api.tenant(max_concurrent_runs=4)
    api.workflow(tenant, concurrency=[{"limit": 3}, {"key": "input.a", "limit": 2}, {"key": "input.b", "limit": 1}])
    api.workflow(tenant, "other")

    def limited_by(a, b):
        r = api.start(tenant, body={"input": {"a": a, "b": b}})
        return r.json["limited_by"] if r.status == 429 else r.json["run"]["status"]

    assert limited_by("a1", "b1") == "running"
    assert limited_by("a1", "b1") == limited_by("a2", "b1") == "key"
    assert limited_by("a1", "b2") == "running"
    assert limited_by("a1", "b3") == "key"
    assert limited_by("a2", "b3") == "running"
    assert limited_by("a3", "b4") == "workflow"
    started(api, tenant, "other")
    assert api.start(tenant, "other").json["limited_by"] == "tenant"
