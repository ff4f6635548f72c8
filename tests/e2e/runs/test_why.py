"""GET /runs/{id}/why: exactly what a run waits for, who holds it, and how many come first."""
import re
import uuid

import pytest

import harness
from checks import assert_problem

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def why(api, tenant, run):
    r = api.get(f"/api/v1/runs/{run}/why", tenant=tenant)
    assert r.status == 200, r
    assert r.json["run_id"] == run and r.json["summary"], r.json
    assert r.json["status"] == api.get(f"/api/v1/runs/{run}", tenant=tenant).json["status"]
    return r.json


def start(api, tenant, wid="hold", **body):
    r = api.start(tenant, wid, body)
    assert r.status == 200, r
    return r.json["run_id"]


def limits(answer):
    """[(limited_by, current, limit, [holders])]"""
    assert {w["kind"] for w in answer["waits_for"]} <= {"limit"}, answer
    return [(w["limited_by"], w["current"], w["limit"], [h["run_id"] for h in w["holders"]]) for w in answer["waits_for"]]


def place(answer):
    assert answer["place_is_exact"] is True
    return answer["place"], answer["queued_runs"]


# --- queued ---

def test_a_run_that_waits_for_its_tenant(api):
    tenant = api.tenant(max_concurrent_runs=2, at_limit="queue")
    api.workflow(tenant)
    api.workflow(tenant, "other")
    holders = [start(api, tenant), start(api, tenant, "other")]
    waiting = [start(api, tenant) for _ in range(3)]
    for n, run in enumerate(waiting):
        answer = why(api, tenant, run)
        assert answer["status"] == "queued" and limits(answer) == [("tenant", 2, 2, holders)]
        assert place(answer) == (n + 1, 3)
        assert tenant in answer["summary"] and "2 of 2" in answer["summary"]
    shown = answer["waits_for"][0]["holders"]
    assert [(h["workflow_id"], h["status"]) for h in shown] == [("hold", "running"), ("other", "running")]
    for h in shown:
        assert RFC3339.fullmatch(h["created_at"]) and RFC3339.fullmatch(h["started_at"])
    assert "path" not in answer["waits_for"][0] and "key" not in answer["waits_for"][0]


def test_a_run_that_waits_for_its_workflow(api):
    tenant = api.tenant(at_limit="queue")
    api.workflow(tenant, concurrency={"limit": 1})
    api.workflow(tenant, "other")
    start(api, tenant, "other")
    holder, waiting = start(api, tenant), start(api, tenant)
    answer = why(api, tenant, waiting)
    assert limits(answer) == [("workflow", 1, 1, [holder])] and place(answer) == (1, 1)
    assert "hold" in answer["summary"]


def test_a_run_that_waits_for_its_key(api):
    tenant = api.tenant(at_limit="queue")
    api.workflow(tenant, concurrency={"key": "input.customer.id", "limit": 1})
    of = {c: [start(api, tenant, input={"customer": {"id": c}}) for _ in range(3)] for c in ("ann", "bob")}
    nobody = [start(api, tenant) for _ in range(2)]
    for customer, (holder, *waiting) in of.items():
        for n, run in enumerate(waiting):
            answer = why(api, tenant, run)
            assert limits(answer) == [("key", 1, 1, [holder])]
            assert place(answer) == (n + 1, 5), "only those that wait for the same key come first"
            assert (answer["waits_for"][0]["path"], answer["waits_for"][0]["key"]) == ("input.customer.id", customer)
            assert customer in answer["summary"]
    answer = why(api, tenant, nobody[1])
    assert limits(answer) == [("key", 1, 1, [nobody[0]])] and answer["waits_for"][0]["key"] == ""


def test_a_run_that_waits_for_several_limits(api):
    tenant = api.tenant(max_concurrent_runs=2, at_limit="queue")
    api.workflow(tenant, concurrency=[{"limit": 2}, {"key": "input.a", "limit": 1}, {"key": "input.b", "limit": 9}])
    holders = [start(api, tenant, input={"a": a, "b": 1}) for a in (1, 2)]
    waiting = start(api, tenant, input={"a": 2, "b": 1})
    assert limits(why(api, tenant, waiting)) == [("workflow", 2, 2, holders), ("key", 1, 1, holders[1:]), ("tenant", 2, 2, holders)]
    api.put(f"/api/v1/tenants/{tenant}", {"max_concurrent_runs": 3}, tenant=tenant)
    assert limits(why(api, tenant, waiting)) == [("workflow", 2, 2, holders), ("key", 1, 1, holders[1:])]
    api.post(f"/api/v1/runs/{holders[0]}/cancel", tenant=tenant)
    assert limits(why(api, tenant, waiting)) == [("key", 1, 1, holders[1:])]
    api.post(f"/api/v1/runs/{holders[1]}/cancel", tenant=tenant)
    assert why(api, tenant, waiting)["status"] == "running"


def test_the_place_follows_the_priority_and_moves_up(api):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="queue")
    api.workflow(tenant)
    start(api, tenant)
    runs = {p: start(api, tenant, priority=p) for p in (0, 50, -50, 10)}

    def places():
        return [place(why(api, tenant, runs[p]))[0] for p in (50, 10, 0, -50)]

    assert places() == [1, 2, 3, 4]
    first = start(api, tenant, priority=100)
    assert places() == [2, 3, 4, 5] and place(why(api, tenant, first)) == (1, 5)
    api.post(f"/api/v1/runs/{runs[10]}/cancel", tenant=tenant)
    runs.pop(10)
    assert [place(why(api, tenant, runs[p]))[0] for p in (50, 0, -50)] == [2, 3, 4]
    api.work(tenant)
    assert [place(why(api, tenant, runs[p]))[0] for p in (50, 0, -50)] == [1, 2, 3]
    assert why(api, tenant, first)["status"] == "running"


def test_a_limit_of_zero_has_no_holders(api):
    tenant = api.tenant(max_concurrent_runs=0, at_limit="queue")
    api.workflow(tenant)
    assert limits(why(api, tenant, start(api, tenant))) == [("tenant", 0, 0, [])]


def test_of_many_holders_the_oldest_are_named(api):
    tenant = api.tenant(max_concurrent_runs=30, at_limit="queue")
    api.workflow(tenant, concurrency={"limit": 30})
    holders = [start(api, tenant) for _ in range(30)]
    answer = why(api, tenant, start(api, tenant))
    assert limits(answer) == [("workflow", 30, 30, holders[:20]), ("tenant", 30, 30, holders[:20])]


def test_a_lowered_limit_is_said_as_it_is_now(api):
    tenant = api.tenant(max_concurrent_runs=3, at_limit="queue")
    api.workflow(tenant)
    holders = [start(api, tenant) for _ in range(3)]
    waiting = start(api, tenant)
    api.put(f"/api/v1/tenants/{tenant}", {"max_concurrent_runs": 1}, tenant=tenant)
    assert limits(why(api, tenant, waiting)) == [("tenant", 3, 1, holders)]


def test_the_newest_versions_limit_is_the_one_that_is_said(api):
    tenant = api.tenant(at_limit="queue")
    api.workflow(tenant, concurrency={"limit": 2})
    holders = [start(api, tenant) for _ in range(2)]
    waiting = start(api, tenant)
    api.workflow(tenant, concurrency={"limit": 1})
    assert limits(why(api, tenant, waiting)) == [("workflow", 2, 1, holders)]


# --- active ---

def test_a_job_that_no_worker_has_taken(api, tenant):
    queue = "q-" + uuid.uuid4().hex[:8]
    api.workflow(tenant, steps=[{"name": "dig", "type": "task", "handler": "noop", "queue": queue}])
    runs = [start(api, tenant) for _ in range(3)]
    first = start(api, tenant, priority=1)
    for run, n in zip([first, *runs], (1, 2, 3, 4)):
        answer = why(api, tenant, run)
        waits, = answer["waits_for"]
        assert (waits["kind"], waits["step"], waits["queue"], waits["place"]) == ("worker_queue", "dig", queue, n)
        job = api.get(f"/api/v1/jobs/{waits['job_id']}", tenant=tenant).json
        assert job["run_id"] == run and "place" not in answer and queue in answer["summary"]


def test_a_job_that_a_worker_has(api, tenant):
    api.workflow(tenant)
    run = start(api, tenant)
    job = api.post("/api/v1/jobs/claim", {"worker_id": "digger-7", "lease_ms": 600000}, tenant=tenant).json["jobs"][0]
    answer = why(api, tenant, run)
    waits, = answer["waits_for"]
    assert waits == {"kind": "worker", "step": "work", "job_id": job["job_id"], "worker_id": "digger-7", "attempt": 1,
                     "lease_expires_at": job["lease_expires_at"]}
    assert "digger-7" in answer["summary"]


def test_a_run_that_sleeps(api, tenant):
    api.workflow(tenant, steps=[{"name": "nap", "type": "sleep", "duration_ms": 600000}])
    answer = why(api, tenant, start(api, tenant))
    waits, = answer["waits_for"]
    assert answer["status"] == "waiting" and (waits["kind"], waits["step"]) == ("timer", "nap") and RFC3339.fullmatch(waits["due_at"])
    assert "nap" in answer["summary"]


def test_steps_side_by_side_are_all_said(api, tenant):
    queue = "q-" + uuid.uuid4().hex[:8]
    api.workflow(tenant, steps=[
        {"name": "nap", "type": "sleep", "duration_ms": 600000, "needs": []},
        {"name": "dig", "type": "task", "handler": "noop", "queue": queue, "needs": []},
        {"name": "fill", "type": "task", "handler": "noop", "needs": []},
        {"name": "later", "type": "task", "handler": "noop", "needs": ["dig"]},
    ])
    run = start(api, tenant)
    api.post("/api/v1/jobs/claim", {"worker_id": "w"}, tenant=tenant)
    assert [(w["step"], w["kind"]) for w in why(api, tenant, run)["waits_for"]] == [("nap", "timer"), ("dig", "worker_queue"), ("fill", "worker")]


def fail_once(api, tenant, **retry):
    api.workflow(tenant, steps=[{"name": "dig", "type": "task", "handler": "noop", "retry": {"max_attempts": 4, "jitter": "none", **retry}}])
    run = start(api, tenant)
    job = api.post("/api/v1/jobs/claim", {"worker_id": "w"}, tenant=tenant).json["jobs"][0]
    r = api.post(f"/api/v1/jobs/{job['job_id']}/fail", {"lease_token": job["lease_token"], "error": {"code": "ROCK", "message": "too hard"}}, tenant=tenant)
    assert r.json["status"] == "retrying", r
    return run, r.json["retry_at"]


def test_a_run_between_attempts_names_the_last_error_and_the_next_attempt(api, tenant):
    run, due_at = fail_once(api, tenant, backoff_ms=600000, max_backoff_ms=600000)
    answer = why(api, tenant, run)
    waits, = answer["waits_for"]
    assert (waits["kind"], waits["step"], waits["attempt"], waits["max_attempts"], waits["due_at"]) == ("retry", "dig", 2, 4, due_at)
    assert waits["last_error"] == {"code": "ROCK", "message": "too hard"}
    assert answer["summary"] == f"Attempt 1 of step dig failed with ROCK: too hard. Attempt 2 is due at {due_at}."


def test_a_job_that_waits_for_a_worker_again_names_the_last_error(api, tenant):
    run, _ = fail_once(api, tenant, backoff_ms=0)
    waits, = harness.wait_until(lambda: [w for w in why(api, tenant, run)["waits_for"] if w["kind"] == "worker_queue"], "the delay is over")
    assert waits["last_error"]["code"] == "ROCK"


def test_a_paused_run_names_who_paused_it_and_when(api, tenant):
    api.workflow(tenant)
    run = start(api, tenant)
    for who in ("ann", "bob"):
        api.post(f"/api/v1/runs/{run}/pause", tenant=tenant, headers={"X-Actor": who})
        at = api.get(f"/api/v1/runs/{run}/events?limit=200", tenant=tenant).json["items"][-1]["at"]
        answer = why(api, tenant, run)
        pause, held = answer["waits_for"]
        assert pause == {"kind": "pause", "by": who, "at": at} and (held["kind"], held["step"]) == ("resume", "work")
        assert answer["summary"] == f"{who} paused the run at {at}. Resume it to continue."
        api.post(f"/api/v1/runs/{run}/resume", tenant=tenant)
    assert [w["kind"] for w in why(api, tenant, run)["waits_for"]] == ["worker_queue"]


def test_a_queue_that_nobody_polls_is_named_as_such(api, tenant):
    queue = "q-" + uuid.uuid4().hex[:8]
    api.workflow(tenant, steps=[{"name": "dig", "type": "task", "handler": "noop", "queue": queue}])
    run = start(api, tenant)
    answer = why(api, tenant, run)
    waits, = answer["waits_for"]
    assert (waits["workers"], waits["last_polled_at"]) == (0, None)
    assert re.fullmatch(rf"Step dig is waiting for a worker\. No worker has polled queue {queue} since the server started \d+ s ago\.", answer["summary"])
    other = api.tenant()
    api.post("/api/v1/jobs/claim", {"worker_id": "theirs", "queues": [queue]}, tenant=other)
    assert why(api, tenant, run)["waits_for"][0]["workers"] == 0, "a worker of another tenant is no help"
    first = start(api, tenant, priority=9)
    api.post("/api/v1/jobs/claim", {"worker_id": "ours", "queues": ["x", queue]}, tenant=tenant)
    assert why(api, tenant, first)["waits_for"][0]["kind"] == "worker"
    answer = why(api, tenant, run)
    waits, = answer["waits_for"]
    assert waits["workers"] == 1 and RFC3339.fullmatch(waits["last_polled_at"])
    assert answer["summary"] == f"Step dig is waiting for a worker on queue {queue}, at position 1."


def test_a_worker_for_all_tenants_counts_for_each(api, tenant):
    queue = "q-" + uuid.uuid4().hex[:8]
    api.post("/api/v1/jobs/claim", {"worker_id": "shared", "queues": [queue]}, tenant="*")
    api.workflow(tenant, steps=[{"name": "dig", "type": "task", "handler": "noop", "queue": queue}])
    assert why(api, tenant, start(api, tenant))["waits_for"][0]["workers"] == 1


@pytest.mark.parametrize("approvers,who", [
    ({"users": ["ann", "bob"], "roles": ["approver"], "forbid_requester": True}, "roles approver; users ann, bob; not dev"),
    ({"forbid_requester": False}, "anyone whose role allows it"),
])
def test_a_run_that_waits_for_a_person_says_who_may_decide(api, tenant, approvers, who):
    api.workflow(tenant, steps=[{"name": "ok", "type": "approval", "prompt": "Go on?", "approvers": approvers}])
    assert why(api, tenant, start(api, tenant))["summary"] == f"Step ok is waiting for approval: 0 of 1 given. Approvers: {who}."


def test_other_reasons_in_plain_words(api, tenant):
    api.workflow(tenant, "kid", [{"name": "nap", "type": "sleep", "duration_ms": 600000}])
    for step, said in (({"type": "wait_signal", "signal": "go"}, "Step s is waiting for the signal go."),
                       ({"type": "wait_signal", "signal": ["go", "stop"]}, "Step s is waiting for the signal go or another."),
                       ({"type": "workflow", "workflow_id": "kid"}, "Step s is waiting for its child run."),
                       ({"type": "sleep", "until": "2999-01-01T00:00:00Z"}, "Step s is sleeping until 2999-01-01T00:00:00.000Z.")):
        api.workflow(tenant, steps=[{"name": "s", **step}])
        assert why(api, tenant, start(api, tenant))["summary"] == said
    assert why(api, tenant, start(api, tenant, start_at="2999-01-01T00:00:00Z"))["summary"] == "The run is scheduled to start at 2999-01-01T00:00:00.000Z."


# --- over, or not there ---

@pytest.mark.parametrize("end", ["succeeded", "failed", "cancelled"])
def test_a_run_that_is_over_waits_for_nothing(api, tenant, end):
    api.workflow(tenant)
    run = start(api, tenant)
    if end == "succeeded":
        api.work(tenant)
    elif end == "cancelled":
        api.post(f"/api/v1/runs/{run}/cancel", tenant=tenant)
    else:
        job = api.post("/api/v1/jobs/claim", {"worker_id": "w"}, tenant=tenant).json["jobs"][0]
        api.post(f"/api/v1/jobs/{job['job_id']}/fail", {"lease_token": job["lease_token"], "error": {"code": "NO", "retryable": False}}, tenant=tenant)
    answer = why(api, tenant, run)
    assert answer["status"] == end and answer["waits_for"] == [] and "ended" in answer["summary"] and "place" not in answer


def test_a_cancelled_queued_run_waits_for_nothing(api):
    tenant = api.tenant(max_concurrent_runs=0, at_limit="queue")
    api.workflow(tenant)
    run = start(api, tenant)
    api.post(f"/api/v1/runs/{run}/cancel", tenant=tenant)
    answer = why(api, tenant, run)
    assert answer["status"] == "cancelled" and answer["waits_for"] == [] and "place" not in answer


def test_an_admitted_run_no_longer_waits_for_its_limit(api):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="queue")
    api.workflow(tenant)
    start(api, tenant)
    run = start(api, tenant)
    api.work(tenant)
    waits, = why(api, tenant, run)["waits_for"]
    assert waits["kind"] == "worker_queue"


def test_another_tenants_run_and_none_are_404(api, tenant):
    api.workflow(tenant)
    run = start(api, tenant)
    other = api.tenant()
    for who, name in ((other, run), (tenant, str(uuid.uuid4())), (tenant, "nonsense")):
        assert_problem(api.get(f"/api/v1/runs/{name}/why", tenant=who), 404, "RUN_NOT_FOUND")
    assert_problem(api.get(f"/api/v1/runs/{run}/why", tenant="nobody-" + tenant), 404)


def test_holders_of_another_tenant_are_never_named(api):
    """Two tenants with the same workflow, key and limit."""
    seen = []
    for tenant in (api.tenant(at_limit="queue"), api.tenant(at_limit="queue")):
        api.workflow(tenant, concurrency={"key": "input.c", "limit": 1})
        holder, waiting = (start(api, tenant, input={"c": "same"}) for _ in range(2))
        seen.append((tenant, holder, waiting))
    for tenant, holder, waiting in seen:
        assert limits(why(api, tenant, waiting)) == [("key", 1, 1, [holder])]
        assert place(why(api, tenant, waiting)) == (1, 1)


def test_asking_changes_nothing(api):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="queue")
    api.workflow(tenant)
    start(api, tenant)
    run = start(api, tenant)
    before = api.get(f"/api/v1/runs/{run}", tenant=tenant).json
    for _ in range(3):
        why(api, tenant, run)
    assert api.get(f"/api/v1/runs/{run}", tenant=tenant).json == before
