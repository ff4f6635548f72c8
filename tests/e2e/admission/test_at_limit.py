"""What a start at a limit gets: by policy, by who says it, by which limit; and what a retry of it sees, at any time."""
import itertools

import pytest

import harness
from harness import together, wait_until
from inspect_store import all_runs, assert_healthy, record, rows
from recount import assert_recounted
from limit_scenarios import ROUTES, WHERE, Scene

EVERYWHERE = pytest.mark.parametrize("by,said_by", WHERE, ids=[f"limit of {by}, said by {who}" for by, who in WHERE])
BOTH_ROUTES = pytest.mark.parametrize("route", ROUTES)
POLICIES = ["reject", "queue", "cancel_oldest", "coalesce"]


def get_tenant(api, tenant):
    return api.get(f"/api/v1/tenants/{tenant}", tenant=tenant).json


def set_tenant(api, tenant, **settings):
    r = api.put(f"/api/v1/tenants/{tenant}", settings, tenant=tenant)
    assert r.status == 200, r


def status(api, tenant, run):
    return api.get(f"/api/v1/runs/{run}", tenant=tenant).json["status"]


def statuses(api, tenant, runs):
    return [status(api, tenant, run) for run in runs]


def cancel(api, tenant, run):
    r = api.post(f"/api/v1/runs/{run}/cancel", tenant=tenant)
    assert r.status == 200, r


def started(api, tenant, wid="hold", key=None, **body):
    """The id of a run that begins at once."""
    r = api.start(tenant, wid, body=body, key=key)
    assert r.status == 200 and r.json["created"] is True and r.json["run"]["status"] == "running", r
    return r.json["run_id"]


def queued(api, tenant, wid="hold", key=None, **body):
    r = api.start(tenant, wid, body=body, key=key)
    assert r.status == 200 and r.json["created"] is True and r.json["run"]["status"] == "queued", r
    return r.json["run_id"]


# --- each policy, and its retries ---

@EVERYWHERE
@BOTH_ROUTES
def test_reject_keeps_nothing_until_there_is_room(api, by, said_by, route):
    s = Scene(api, "reject", by, said_by, route)
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
    s = Scene(api, "queue", by, said_by, route)
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
    s = Scene(api, "cancel_oldest", by, said_by, route)
    run = s.assert_made(s.ask("k"), "running")
    assert s.run(s.held)["status"] == "cancelled" and s.events(s.held)[-1] == "run.cancelled" and s.counts() == (2, 1, 0)
    s.assert_replays("k", run)
    assert s.run(run)["status"] == "running"
    newer = s.assert_made(s.ask("newer"), "running")
    assert s.run(run)["status"] == "cancelled"
    # Its run has been cancelled meanwhile: a retry is told so, and cancels nothing in turn.
    s.assert_replays("k", run)
    s.assert_replays("held", s.held)
    assert s.run(newer)["status"] == "running" and s.counts() == (3, 1, 0)


@EVERYWHERE
@BOTH_ROUTES
def test_coalesce_hands_out_the_active_run_for_good(api, by, said_by, route):
    s = Scene(api, "coalesce", by, said_by, route)
    s.assert_coalesced(s.ask("k", n=7), s.held)
    assert s.counts() == (1, 1, 0)
    s.assert_replays("k", s.held, n=7)
    assert api.work(s.tenant)["run_id"] == s.held
    s.assert_replays("k", s.held, n=7)
    other = s.assert_made(s.ask("other"), "running")
    s.assert_coalesced(s.ask("third"), other)
    s.assert_replays("k", s.held, n=7)
    assert s.counts() == (2, 1, 0)


def test_retries_after_kills_are_told_what_they_were_told():
    """All policies, limits and speakers: with the limit still full, and again when what held it has ended."""
    with harness.server() as s:
        scenes = [Scene(s.client(), policy, by, said_by) for policy in POLICIES for by, said_by in WHERE]
        told = {}
        for scene in scenes:
            r = scene.ask("k")
            told[scene] = r.json["run"]["id"] if r.status == 200 else None

        def restart_and_check():
            s.kill()
            assert_recounted(s.db)
            s.start()
            for scene in scenes:
                scene.api = s.client()
                if scene.policy == "reject":
                    scene.assert_rejected(scene.ask("k"))
                    assert record(scene.api, scene.tenant, "k") is None
                else:
                    scene.assert_replays("k", told[scene])
                scene.assert_replays("held", scene.held)

        restart_and_check()
        for scene in scenes:
            if scene.policy in ("queue", "coalesce"):
                assert scene.api.work(scene.tenant)["run_id"] == scene.held
            if scene.policy == "queue":
                assert scene.run(told[scene])["status"] == "running"
        restart_and_check()
        for scene in scenes:
            made, active, waiting = {"reject": (1, 1, 0), "queue": (2, 1, 0), "cancel_oldest": (2, 1, 0), "coalesce": (1, 0, 0)}[scene.policy]
            assert scene.counts() == (made, active, waiting), (scene.policy, scene.by)
        assert_healthy(s.client())


@EVERYWHERE
def test_of_many_requests_with_one_key_one_is_decided(api, by, said_by):
    """First requests race for the key at a limit that is full, and for the slot."""
    for policy in POLICIES:
        s = Scene(api, policy, by, said_by)
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


def test_a_coalesced_start_that_waits_is_told_the_end(api):
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


# --- the queue ---

def test_a_full_queue_refuses(api):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="queue", max_queued_runs=2)
    api.workflow(tenant)
    held = started(api, tenant)
    waiting = [queued(api, tenant) for _ in range(2)]
    for _ in range(2):
        r = api.start(tenant, key="k")
        assert r.status == 429 and r.code == "QUEUE_FULL" and r.json["retryable"] is True, r
        assert (r.json["limited_by"], r.json["current"], r.json["limit"]) == ("queue", 2, 2)
        assert int(r.header("Retry-After")) >= 1 and r.header("RateLimit-Policy") == '"queued-runs";q=2'
    assert record(api, tenant, "k") is None and len(all_runs(api, tenant)) == 3
    cancel(api, tenant, waiting[0])
    third = queued(api, tenant, key="k")
    assert api.start(tenant).code == "QUEUE_FULL"
    cancel(api, tenant, held)
    assert statuses(api, tenant, [waiting[1], third]) == ["running", "queued"]
    queued(api, tenant)
    assert api.start(tenant).code == "QUEUE_FULL"
    # A smaller queue throws nobody out.
    set_tenant(api, tenant, max_queued_runs=0)
    assert get_tenant(api, tenant)["queued_runs"] == 2 and api.start(tenant).json["limit"] == 0


def test_a_queued_run_can_be_cancelled(dev_server, api):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="queue")
    api.workflow(tenant)
    held, first, second, third = started(api, tenant), *(queued(api, tenant, key=f"k-{n}") for n in range(3))
    r = api.post(f"/api/v1/runs/{second}/cancel", {"reason": "not any more"}, tenant=tenant)
    assert r.status == 200 and r.json["status"] == "cancelled" and r.json["started_at"] is None and r.json["finished_at"] is not None, r
    assert get_tenant(api, tenant)["queued_runs"] == 2 and get_tenant(api, tenant)["active_runs"] == 1
    assert api.start(tenant, key="k-1", body={}).json["run_id"] == second  # the key still names it
    cancel(api, tenant, second)  # again, as a retry would
    assert get_tenant(api, tenant)["queued_runs"] == 2
    events = [e["type"] for e in api.get(f"/api/v1/runs/{second}/events", tenant=tenant).json["items"]]
    assert events == ["run.created", "run.queued", "run.cancelled"]
    assert [api.work(tenant)["run_id"] for _ in range(3)] == [held, first, third] and api.work(tenant) is None
    assert_recounted(dev_server.db)


def test_a_queued_start_that_waits_is_told_the_end(api):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="queue")
    api.workflow(tenant)
    held = started(api, tenant)

    def one(i):
        if i < 2:
            path, body = (("/api/v1/workflows/hold/runs", {}), ("/api/v1/workflow-runs", {"definitionId": "hold"}))[i]
            return api.post(f"{path}?wait_ms=60000", body, key=f"k-{i}", tenant=tenant)
        wait_until(lambda: get_tenant(api, tenant)["queued_runs"] == 2, "both are queued")
        return [api.work(tenant)["run_id"] for _ in range(3)]

    one_end, other_end, worked = together(3, one)
    for r in (one_end, other_end):
        assert r.status == 200 and r.json["created"] is True and r.json["run"]["status"] == "succeeded", r
    assert worked[0] == held and set(worked[1:]) == {one_end.json["run"]["id"], other_end.json["run"]["id"]}


def test_a_queued_start_that_waits_in_vain_shows_the_queued_run(api):
    tenant = api.tenant(max_concurrent_runs=0, at_limit="queue")
    api.workflow(tenant)
    r = api.post("/api/v1/workflows/hold/runs?wait_ms=20", {}, tenant=tenant)
    assert r.status == 200 and r.json["run"]["status"] == "queued", r
    run = r.json["run_id"]
    assert [x["id"] for x in api.get("/api/v1/runs?status=queued", tenant=tenant).json["items"]] == [run]


def test_queued_runs_start_by_priority_and_then_in_order(api):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="queue")
    api.workflow(tenant)
    started(api, tenant)
    priorities = [0, 5, -3, 5, 100, 0, -100, 7]
    runs = [queued(api, tenant, priority=p) for p in priorities]
    api.work(tenant)
    order = [api.work(tenant)["run_id"] for _ in runs]
    assert order == [runs[i] for i in sorted(range(len(runs)), key=lambda i: (-priorities[i], i))]


def test_a_run_that_is_blocked_by_its_key_holds_up_nobody_else(api):
    tenant = api.tenant(max_concurrent_runs=3, at_limit="queue")
    api.workflow(tenant, concurrency={"key": "input.c", "limit": 1})
    a1, b1, c1 = (started(api, tenant, input={"c": c}) for c in "abc")
    a2, a3 = (queued(api, tenant, input={"c": "a"}, priority=9) for _ in range(2))
    d1, b2 = queued(api, tenant, input={"c": "d"}), queued(api, tenant, input={"c": "b"})
    cancel(api, tenant, c1)
    assert statuses(api, tenant, [a2, a3, d1, b2]) == ["queued", "queued", "running", "queued"]
    cancel(api, tenant, b1)
    assert statuses(api, tenant, [a2, a3, b2]) == ["queued", "queued", "running"]
    cancel(api, tenant, a1)
    assert statuses(api, tenant, [a2, a3]) == ["running", "queued"]


def test_a_queued_run_that_is_cancelled_passes_its_room_on(dev_server, api):
    """It was next for a slot of its key and waited for the tenant's; whoever comes behind it for the key is next then."""
    tenant = api.tenant(max_concurrent_runs=1, at_limit="queue")
    api.workflow(tenant, concurrency=[{"key": "input.a", "limit": 1}, {"key": "input.b", "limit": 9}])
    api.workflow(tenant, "plain")
    held = started(api, tenant, input={"a": 1, "b": 0})
    first, second = (queued(api, tenant, input={"a": 1, "b": b}) for b in (1, 2))
    urgent = queued(api, tenant, "plain", priority=9)
    cancel(api, tenant, held)
    assert statuses(api, tenant, [urgent, first, second]) == ["running", "queued", "queued"]
    cancel(api, tenant, first)
    cancel(api, tenant, urgent)
    assert status(api, tenant, second) == "running"
    assert_recounted(dev_server.db)


def test_a_queued_run_that_is_blocked_again_passes_its_room_on(dev_server, api):
    """It was next for a slot of one key, and meanwhile its other key has filled up: whoever comes behind it is next then."""
    tenant = api.tenant(max_concurrent_runs=2, at_limit="queue")
    api.workflow(tenant, concurrency=[{"key": "input.a", "limit": 1}, {"key": "input.b", "limit": 1}])
    api.workflow(tenant, "plain")
    held, plain = started(api, tenant, input={"a": 1, "b": 1}), started(api, tenant, "plain")
    first, second = (queued(api, tenant, input={"a": 1, "b": b}) for b in (2, 3))
    urgent = queued(api, tenant, input={"a": 2, "b": 2}, priority=9)
    cancel(api, tenant, held)
    assert statuses(api, tenant, [urgent, first, second]) == ["running", "queued", "queued"]
    cancel(api, tenant, plain)
    assert statuses(api, tenant, [urgent, first, second]) == ["running", "queued", "running"]
    cancel(api, tenant, urgent)  # the first one's second key is free, its first is not
    assert status(api, tenant, first) == "queued"
    cancel(api, tenant, second)
    assert status(api, tenant, first) == "running"
    assert_recounted(dev_server.db)


def test_a_sleep_that_is_over_starts_the_next(api):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="queue")
    api.workflow(tenant, steps=[{"name": "nap", "type": "sleep", "duration_ms": 10}])
    runs = [api.start(tenant).json["run_id"] for _ in range(5)]
    wait_until(lambda: statuses(api, tenant, runs) == ["succeeded"] * 5, "one after the other ends")


def test_a_failed_run_starts_the_next(api):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="queue")
    api.workflow(tenant)
    started(api, tenant)
    waiting = queued(api, tenant)
    job = api.post("/api/v1/jobs/claim", {"worker_id": "w"}, tenant=tenant).json["jobs"][0]
    body = {"lease_token": job["lease_token"], "error": {"code": "NO", "retryable": False}}
    assert api.post(f"/api/v1/jobs/{job['job_id']}/fail", body, tenant=tenant).status == 200
    assert status(api, tenant, waiting) == "running"


def test_a_worker_that_waits_is_handed_the_job_of_an_admitted_run(api):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="queue")
    api.workflow(tenant)
    held, waiting = started(api, tenant), queued(api, tenant)
    job = api.post("/api/v1/jobs/claim", {"worker_id": "w1"}, tenant=tenant).json["jobs"][0]
    assert job["run_id"] == held

    def one(i):
        if i == 0:
            return api.work(tenant, wait_ms=30000, worker="w2")
        return api.post(f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": job["lease_token"]}, tenant=tenant)

    assert together(2, one)[0]["run_id"] == waiting


# --- limits that change while runs wait ---

def test_a_raised_limit_starts_what_now_fits(dev_server, api):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="queue")
    api.workflow(tenant)
    started(api, tenant)
    runs = [queued(api, tenant) for _ in range(100)]
    set_tenant(api, tenant, max_concurrent_runs=3)
    wait_until(lambda: get_tenant(api, tenant)["active_runs"] == 3, "two more start")
    assert statuses(api, tenant, runs[:3]) == ["running", "running", "queued"]
    set_tenant(api, tenant, max_concurrent_runs=2)
    cancel(api, tenant, runs[0])
    assert status(api, tenant, runs[2]) == "queued" and get_tenant(api, tenant)["active_runs"] == 2
    cancel(api, tenant, runs[1])
    assert status(api, tenant, runs[2]) == "running" and get_tenant(api, tenant)["active_runs"] == 2
    assert_recounted(dev_server.db)
    set_tenant(api, tenant, max_concurrent_runs=None)
    wait_until(lambda: get_tenant(api, tenant)["queued_runs"] == 0, "all start")
    assert get_tenant(api, tenant)["active_runs"] == 99
    assert_recounted(dev_server.db)


@pytest.mark.parametrize("rule", [None, {"limit": 1}, {"key": "input.c", "limit": 1}], ids=["tenant", "workflow", "key"])
def test_nobody_jumps_the_queue_while_a_raised_limit_is_made_use_of(dev_server, api, rule):
    """Many runs start in slices; whoever asks meanwhile comes behind those that were there."""
    tenant = api.tenant(at_limit="queue", **({} if rule else {"max_concurrent_runs": 1}))
    api.workflow(tenant, **({"concurrency": rule} if rule else {}))
    runs = [api.start(tenant).json["run_id"] for _ in range(300)]

    def one(i):
        if i > 0:
            return [api.start(tenant).json["run_id"] for _ in range(10)]
        if rule:
            return api.workflow(tenant, concurrency={**rule, "limit": 200})
        return set_tenant(api, tenant, max_concurrent_runs=200)

    later = [run for mine in together(5, one)[1:] for run in mine]
    wait_until(lambda: get_tenant(api, tenant)["active_runs"] == 200, "200 are active")
    waiting = {run["id"] for run in all_runs(api, tenant) if run["status"] == "queued"}
    assert waiting == set(runs[200:] + later)
    assert api.start(tenant, body={"at_limit": "reject"}).status == 429
    assert_recounted(dev_server.db)


def test_a_rollback_to_a_higher_limit_starts_what_now_fits(api):
    tenant = api.tenant(max_concurrent_runs=2, at_limit="queue")
    api.workflow(tenant)
    set_tenant(api, tenant, max_concurrent_runs=0)
    runs = [queued(api, tenant) for _ in range(3)]
    assert api.post(f"/api/v1/tenants/{tenant}/rollback", tenant=tenant).json["max_concurrent_runs"] == 2
    wait_until(lambda: statuses(api, tenant, runs) == ["running", "running", "queued"], "two start")


def test_a_limit_of_zero_holds_everything_back(api):
    tenant = api.tenant(max_concurrent_runs=0, at_limit="queue")
    api.workflow(tenant)
    runs = [queued(api, tenant) for _ in range(3)]
    assert api.work(tenant) is None
    set_tenant(api, tenant, max_concurrent_runs=1)
    assert [api.work(tenant, wait_ms=30000)["run_id"] for _ in runs] == runs


@pytest.mark.parametrize("rule", [{"limit": 1}, {"key": "input.c", "limit": 1}], ids=["workflow", "key"])
def test_a_new_version_with_a_higher_limit_starts_what_now_fits(dev_server, api, rule):
    tenant = api.tenant(at_limit="queue")
    api.workflow(tenant, concurrency=rule)
    held = started(api, tenant, input={"c": "a"})
    runs = [queued(api, tenant, input={"c": "a"}) for _ in range(6)]
    api.workflow(tenant, concurrency={**rule, "limit": 3})
    wait_until(lambda: get_tenant(api, tenant)["active_runs"] == 3, "two more start")
    assert statuses(api, tenant, runs) == ["running"] * 2 + ["queued"] * 4
    queued(api, tenant, input={"c": "a"})
    # A lower one again: nothing ends, nothing starts.
    api.workflow(tenant, concurrency={**rule, "limit": 2})
    cancel(api, tenant, held)
    assert get_tenant(api, tenant)["active_runs"] == 2
    cancel(api, tenant, runs[0])
    # The writer may still be looking through the queue because of the new version.
    wait_until(lambda: status(api, tenant, runs[2]) == "running", "the next one starts")
    assert get_tenant(api, tenant)["active_runs"] == 2
    assert_recounted(dev_server.db)
    # None at all: everything starts.
    api.workflow(tenant)
    wait_until(lambda: get_tenant(api, tenant)["queued_runs"] == 0, "all start")
    assert get_tenant(api, tenant)["active_runs"] == 6
    assert_recounted(dev_server.db)


def test_a_rule_that_is_new_counts_runs_from_now_on(dev_server, api, tenant):
    api.workflow(tenant)
    for _ in range(3):
        started(api, tenant)
    api.workflow(tenant, concurrency={"limit": 1, "at_limit": "queue"})
    run = started(api, tenant)
    waiting = queued(api, tenant)
    cancel(api, tenant, run)
    wait_until(lambda: status(api, tenant, waiting) == "running", "the queued run starts")
    assert_recounted(dev_server.db)


def test_queued_runs_survive_a_kill_in_their_order():
    with harness.server() as s:
        api = s.client()
        tenant = api.tenant(max_concurrent_runs=1, at_limit="queue")
        api.workflow(tenant, concurrency={"key": "input.c", "limit": 1})
        held = started(api, tenant, input={"c": 0})
        runs = [queued(api, tenant, input={"c": n % 3}, priority=n % 2) for n in range(9)]
        s.kill()
        assert_recounted(s.db)
        s.start()
        api = s.client()
        assert get_tenant(api, tenant)["queued_runs"] == 9
        # At its start the writer looks through the queues first, and then goes on with them.
        order = [api.work(tenant, wait_ms=30000)["run_id"] for _ in range(10)]
        assert order == [held, *(runs[n] for n in sorted(range(9), key=lambda n: (-(n % 2), n)))]
        assert_recounted(s.db)
        assert_healthy(api)


def test_a_limit_raised_before_a_kill_is_made_use_of_after_it():
    """The queue is drained in slices: whichever were cut off, the restarted server goes on."""
    with harness.server() as s:
        api = s.client()
        tenant = api.tenant(max_concurrent_runs=0, at_limit="queue")
        api.workflow(tenant)
        for _ in range(400):
            queued(api, tenant)
        set_tenant(api, tenant, max_concurrent_runs=300)
        s.kill()
        assert_recounted(s.db)
        s.start()
        api = s.client()
        wait_until(lambda: get_tenant(api, tenant)["active_runs"] == 300, "300 start")
        assert get_tenant(api, tenant)["queued_runs"] == 100
        assert_recounted(s.db)
