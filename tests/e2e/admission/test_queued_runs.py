"""Runs that wait for a slot: their order, how they leave the queue, and limits that change meanwhile."""
import pytest

import harness
from harness import together, wait_until
from inspect_store import all_runs, assert_healthy, record
from limit_scenarios import cancel, get_tenant, queued, set_tenant, started, status, statuses
from recount import assert_recounted


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


def test_a_queued_start_that_waits_gets_the_end(api):
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
