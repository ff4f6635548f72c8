"""Durable functions: what a job's worker has finished stays with the job, and a job can wait without a worker."""
import datetime

import pytest

import harness
import inspect_store
from actions import begin, claim, claim_one, complete, control, events, fail, show, signal, step, task
from checks import assert_problem

FOREVER = "2100-01-01T00:00:00.000Z"
PAST = "2001-01-01T00:00:00.000Z"


def tell(api, tenant, job, verb, **more):
    return api.post(f"/api/v1/jobs/{job['job_id']}/{verb}", {"lease_token": job["lease_token"], **more}, tenant=tenant)


def store(api, tenant, job, name, **more):
    return tell(api, tenant, job, "checkpoints", name=name, **more)


def suspend(api, tenant, job, **more):
    return tell(api, tenant, job, "suspend", **more)


def suspended(api, tenant, job, **more):
    r = suspend(api, tenant, job, **more)
    assert (r.status, r.json["status"]) == (200, "suspended"), r
    return r.json


def job_of(api, tenant, job):
    r = api.get(f"/api/v1/jobs/{job['job_id']}", tenant=tenant)
    assert r.status == 200, r
    return r.json


def why(api, tenant, run):
    return api.get(f"/api/v1/runs/{run}/why", tenant=tenant).json


def in_ms(ms):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(milliseconds=ms)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.fixture
def run(api, tenant):
    return begin(api, tenant, task("work", retry={"max_attempts": 3, "backoff_ms": 1, "jitter": "none"}))


@pytest.fixture
def job(api, tenant, run):
    return claim(api, tenant)[0]


# --- checkpoints ---

def test_the_first_result_under_a_name_stays(api, tenant, run, job):
    r = store(api, tenant, job, "charge", output={"id": "ch_1"})
    assert r.status == 200 and r.json == {"job_id": job["job_id"], "name": "charge", "status": "stored", "output": {"id": "ch_1"}}
    r = store(api, tenant, job, "charge", output={"id": "ch_1"})
    assert r.status == 200 and r.json == {"job_id": job["job_id"], "name": "charge", "status": "already_stored", "output": {"id": "ch_1"}}
    r = store(api, tenant, job, "charge", output={"id": "ch_2"})
    assert (r.json["status"], r.json["output"], r.json["differs"]) == ("already_stored", {"id": "ch_1"}, True)
    r = store(api, tenant, job, "charge", error={"code": "BROKEN"})
    assert (r.json["status"], r.json["output"], r.json["differs"]) == ("already_stored", {"id": "ch_1"}, True)
    assert [e["data"]["checkpoint"] for e in events(api, tenant, run, "job.checkpointed")] == [{"name": "charge", "failed": False}]


def test_checkpoints_come_with_the_next_claim_after_a_failure_and_after_a_lost_lease(api, tenant, run):
    assert "checkpoints" not in (job := claim(api, tenant)[0])
    assert store(api, tenant, job, "charge", output=7).status == 200
    assert store(api, tenant, job, "nothing").status == 200
    assert store(api, tenant, job, "mail", error={"code": "BOUNCED", "retryable": False}).json["error"] == {"code": "BOUNCED", "retryable": False}
    assert fail(api, tenant, job).json["status"] == "retrying"
    job = claim(api, tenant, wait_ms=30_000, lease_ms=100)[0]
    expected = {"charge": 7, "nothing": None}, {"mail": {"code": "BOUNCED", "retryable": False}}
    assert (job["attempt"], job["checkpoints"], job["checkpoint_errors"]) == (2, *expected) and "resumed_by" not in job
    job = claim(api, tenant, wait_ms=30_000)[0]
    assert (job["attempt"], job["checkpoints"], job["checkpoint_errors"]) == (3, *expected)
    shown = job_of(api, tenant, job)
    assert (shown["checkpoints"], shown["checkpoint_errors"]) == expected
    assert complete(api, tenant, job).json["run_status"] == "succeeded"
    assert job_of(api, tenant, job)["checkpoints"] == expected[0]


def test_a_worker_whose_lease_is_gone_stores_nothing(api, tenant, run):
    first = claim(api, tenant, lease_ms=100)[0]
    second = claim(api, tenant, wait_ms=30_000)[0]
    assert_problem(store(api, tenant, first, "charge", output=1), 409, "LEASE_LOST")
    assert_problem(suspend(api, tenant, first, until=FOREVER), 409, "LEASE_LOST")
    assert [e["data"]["lease"] for e in events(api, tenant, run, "job.stale_result")] == [1], "once for the lease"
    assert "checkpoints" not in job_of(api, tenant, second)
    assert store(api, tenant, second, "charge", output=2).json["status"] == "stored"
    assert complete(api, tenant, second).status == 200
    assert_problem(store(api, tenant, second, "late", output=3), 409, "LEASE_LOST")
    assert job_of(api, tenant, second)["checkpoints"] == {"charge": 2}


def test_a_stored_checkpoint_survives_kill_9():
    with harness.server() as s:
        api = s.client()
        run = begin(api, "t", task("work"))
        job = claim(api, "t")[0]
        assert store(api, "t", job, "charge", output="once").json["status"] == "stored"
        s.kill()
        api = s.start().client()
        assert store(api, "t", job, "charge", output="once").json["status"] == "already_stored"
        assert suspended(api, "t", job, signal="go")["run_status"] == "waiting"
        s.kill()
        api = s.start().client()
        assert suspend(api, "t", job, signal="go").json["status"] == "already_suspended"
        assert claim(api, "t") == [] and show(api, "t", run)["status"] == "waiting"
        assert signal(api, "t", run, "go", payload=5).status == 200
        s.kill()
        api = s.start().client()
        job = claim_one(api, "t")
        assert job["checkpoints"] == {"charge": "once"} and job["resumed_by"]["payload"] == 5
        inspect_store.assert_healthy(api)


def test_checkpoints_are_bounded_in_number_and_size(api, tenant, job):
    half = "x" * (500 * 1024)
    assert store(api, tenant, job, "a", output=half).status == 200
    assert store(api, tenant, job, "b", output=half).status == 200
    r = store(api, tenant, job, "c", output=half)
    assert_problem(r, 409, "JOB_LIMIT_REACHED")
    assert r.json["limit"] == 1024 * 1024 and r.json["current"] > 1000 * 1024
    assert_problem(store(api, tenant, job, "d", output="x" * (512 * 1024)), 413, "BODY_TOO_LARGE")
    assert store(api, tenant, job, "small", output=1).status == 200
    assert store(api, tenant, job, "a", output=half).json["status"] == "already_stored", "known names need no room"


def test_a_job_has_at_most_a_thousand_checkpoints(api, tenant, job):
    for n in range(1000):
        assert store(api, tenant, job, f"step#{n}", output=n).json["status"] == "stored"
    r = store(api, tenant, job, "one more", output=0)
    assert_problem(r, 409, "JOB_LIMIT_REACHED")
    assert (r.json["current"], r.json["limit"]) == (1000, 1000)
    assert store(api, tenant, job, "step#0").json["output"] == 0
    assert tell(api, tenant, job, "release").status == 200
    assert len(claim(api, tenant)[0]["checkpoints"]) == 1000


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": "x" * 257}, {"name": 5}, {"name": "a", "output": 1, "error": {"code": "X"}}, {"name": "a", "error": {}},
                                  {"name": "a", "error": "X"}, {"name": "a", "outputs": 1}], ids=str)
def test_a_checkpoint_that_makes_no_sense_is_refused(api, tenant, job, body):
    assert_problem(tell(api, tenant, job, "checkpoints", **body), 400, "FIELD_INVALID")
    assert "checkpoints" not in job_of(api, tenant, job)


# --- suspension until a time ---

def test_a_job_is_suspended_until_a_time_and_then_handed_out_again(api, tenant, run, job):
    assert store(api, tenant, job, "charge", output=1).status == 200
    at = in_ms(400)
    answer = suspended(api, tenant, job, until=at, name="pause")
    assert answer == {"job_id": job["job_id"], "status": "suspended", "run_id": run, "run_status": "waiting", "until": at, "signal": None, "approval_id": None}
    shown = job_of(api, tenant, job)
    assert (shown["state"], shown["due_at"], shown["suspended"]["until"], shown["suspended"]["name"]) == ("suspended", at, at, "pause")
    assert step(show(api, tenant, run), "work")["status"] == "suspended"
    reason = why(api, tenant, run)["waits_for"][0]
    assert (reason["kind"], reason["until"], reason["name"]) == ("suspension", at, "pause")
    again = claim_one(api, tenant)
    assert again["job_id"] == job["job_id"] and again["attempt"] == 1 and again["lease_token"] != job["lease_token"]
    assert again["checkpoints"] == {"charge": 1}
    assert (again["resumed_by"]["kind"], again["resumed_by"]["name"]) == ("timer", "pause") and again["resumed_by"]["at"] >= at
    assert show(api, tenant, run)["status"] == "running"
    assert complete(api, tenant, again).json["run_status"] == "succeeded"
    types = [e["type"] for e in events(api, tenant, run) if e["type"].startswith("job.")]
    assert types == ["job.created", "job.claimed", "job.checkpointed", "job.suspended", "job.resumed", "job.claimed", "job.succeeded"]


def test_suspending_costs_no_attempt(api, tenant):
    run = begin(api, tenant, task("work", retry={"max_attempts": 1}))
    for _ in range(4):
        job = claim_one(api, tenant)
        assert job["attempt"] == 1
        suspended(api, tenant, job, until=PAST)
    assert complete(api, tenant, claim_one(api, tenant)).json["run_status"] == "succeeded"
    assert step(show(api, tenant, run), "work")["attempt"] == 1


def test_the_same_suspension_again_is_answered_and_another_is_refused(api, tenant, run, job):
    first = suspended(api, tenant, job, signal="paid", until=FOREVER)
    again = suspend(api, tenant, job, signal="paid", until=FOREVER)
    assert again.status == 200 and again.json == {**first, "status": "already_suspended"}
    assert_problem(suspend(api, tenant, job, signal="other", until=FOREVER), 409, "LEASE_LOST")
    assert_problem(suspend(api, tenant, job, until=FOREVER), 409, "LEASE_LOST")
    assert signal(api, tenant, run, "paid").status == 200
    assert suspend(api, tenant, job, signal="paid", until=FOREVER).json["status"] == "already_suspended", "no worker has it yet"
    second = claim_one(api, tenant)
    assert_problem(suspend(api, tenant, job, signal="paid", until=FOREVER), 409, "LEASE_LOST")
    assert len(events(api, tenant, run, "job.suspended")) == 1
    assert complete(api, tenant, second).status == 200


def test_a_suspended_job_has_no_lease(api, tenant, run, job):
    suspended(api, tenant, job, until=FOREVER)
    for verb, more in (("heartbeat", {}), ("checkpoints", {"name": "x"}), ("complete", {}), ("fail", {"error": {"code": "X"}}), ("release", {})):
        assert_problem(tell(api, tenant, job, verb, **more), 409, "LEASE_LOST")
    assert claim(api, tenant) == []
    assert_problem(api.post(f"/api/v1/jobs/{job['job_id']}/claim", {"worker_id": "w"}, tenant=tenant), 409, "JOB_NOT_CLAIMABLE")
    assert job_of(api, tenant, job)["state"] == "suspended"


@pytest.mark.parametrize("body", [{}, {"until": "soon"}, {"signal": "a b"}, {"signal": ""}, {"until": FOREVER, "approval": {"prompt": "?"}}, {"signal": "x", "approval": {"prompt": "?"}},
                                  {"approval": {}}, {"approval": {"prompt": "?", "on_expire": "approve"}}, {"approval": {"prompt": "?", "approvers": {"count": 0}}},
                                  {"approval": {"prompt": "?", "approvers": {"roles": ["king"]}}}, {"name": "", "until": FOREVER}], ids=str)
def test_a_suspension_that_makes_no_sense_is_refused(api, tenant, job, body):
    assert_problem(suspend(api, tenant, job, **body), 400, "FIELD_INVALID")
    assert job_of(api, tenant, job)["state"] == "running"


# --- until a signal ---

def test_a_signal_resumes_the_job_and_counts_once(api, tenant, run, job):
    suspended(api, tenant, job, signal="paid", name="wait")
    reason = why(api, tenant, run)["waits_for"][0]
    assert (reason["kind"], reason["signal"], reason["until"]) == ("suspension", "paid", None)
    assert signal(api, tenant, run, "other").status == 200 and claim(api, tenant) == []
    for amount in (5, 6):
        assert signal(api, tenant, run, "paid", payload={"amount": amount}, dedup_key=f"k{amount}").json["duplicate"] is False
    assert signal(api, tenant, run, "paid", payload={"amount": 5}, dedup_key="k5").json["duplicate"] is True
    job = claim_one(api, tenant)
    by = job["resumed_by"]
    assert (by["kind"], by["name"], by["signal"], by["payload"]) == ("signal", "wait", "paid", {"amount": 5}) and by["sent_at"] <= by["at"]
    suspended(api, tenant, job, signal="paid")
    assert claim_one(api, tenant)["resumed_by"]["payload"] == {"amount": 6}, "the second one had waited"


def test_what_has_come_is_handed_out_until_the_next_suspension(api, tenant, run, job):
    assert signal(api, tenant, run, "early", payload=1).status == 200
    assert suspended(api, tenant, job, signal="early")["run_status"] == "running", "it had come before"
    first = claim(api, tenant, lease_ms=100)[0]
    second = claim(api, tenant, wait_ms=30_000)[0]
    assert first["resumed_by"] == second["resumed_by"] and second["resumed_by"]["payload"] == 1 and second["attempt"] == 2
    suspended(api, tenant, second, until=PAST)
    assert claim_one(api, tenant)["resumed_by"]["kind"] == "timer"


def test_a_signal_that_does_not_come_in_time(api, tenant, run, job):
    suspended(api, tenant, job, signal="paid", until=in_ms(100))
    job = claim_one(api, tenant)
    assert job["resumed_by"]["kind"] == "timer"
    assert signal(api, tenant, run, "paid", payload=1).status == 200
    suspended(api, tenant, job, signal="paid")
    assert claim_one(api, tenant)["resumed_by"]["payload"] == 1, "it waited for the next who asks"


def test_steps_and_functions_wait_for_signals_in_their_order(api, tenant):
    run = begin(api, tenant, task("a", needs=[]), {"name": "b", "type": "wait_signal", "signal": "go", "needs": []})
    job = claim_one(api, tenant)
    suspended(api, tenant, job, signal="go")
    assert signal(api, tenant, run, "go", payload=1).status == 200
    assert claim_one(api, tenant)["resumed_by"]["payload"] == 1
    assert step(show(api, tenant, run), "b")["status"] == "scheduled"
    assert signal(api, tenant, run, "go", payload=2).status == 200
    assert step(show(api, tenant, run), "b")["output"]["payload"] == 2


# --- until a decision ---

def decide(api, tenant, approval, verb, actor="ann", **more):
    return api.post(f"/api/v1/approvals/{approval}/{verb}", more, tenant=tenant, headers={"X-Actor": actor})


def test_a_person_decides_what_a_function_asks(api, tenant, run, job):
    answer = suspended(api, tenant, job, name="ask", approval={"prompt": "Refund ${input.amount}?", "content": {"amount": 5}, "approvers": {"users": ["ann"]}})
    approval = answer["approval_id"]
    assert approval != job["job_id"] and answer["run_status"] == "waiting"
    asked = api.get(f"/api/v1/approvals/{approval}", tenant=tenant).json
    assert (asked["status"], asked["prompt"], asked["content"], asked["step"]) == ("pending", "Refund ${input.amount}?", {"amount": 5}, "work"), "no templates"
    assert [a["job_id"] for a in api.get("/api/v1/approvals?status=pending", tenant=tenant).json["items"]] == [approval]
    assert {r["kind"] for r in why(api, tenant, run)["waits_for"]} == {"suspension", "approval"}
    assert_problem(decide(api, tenant, approval, "approve", actor="bob"), 403, "NOT_AN_APPROVER")
    assert decide(api, tenant, approval, "approve", edited={"amount": 4}, reason="less").json["status"] == "approved"
    assert decide(api, tenant, approval, "approve").json["status"] == "already_approved"
    assert_problem(decide(api, tenant, approval, "reject"), 409, "APPROVAL_CONFLICT")
    job = claim_one(api, tenant)
    by = job["resumed_by"]
    assert {k: by[k] for k in ("kind", "name", "approval_id", "decision", "by", "reason", "content")} == {
        "kind": "approval", "name": "ask", "approval_id": approval, "decision": "approved", "by": "ann", "reason": "less", "content": {"amount": 4}}
    assert complete(api, tenant, job).json["run_status"] == "succeeded"
    assert "approval.approve" in {a["action"] for a in api.get("/api/v1/audit", tenant=tenant).json["items"]}


def test_a_late_decision_never_decides_the_next_question(api, tenant, run, job):
    first = suspended(api, tenant, job, approval={"prompt": "May I?"})["approval_id"]
    assert decide(api, tenant, first, "approve").json["status"] == "approved"
    second = suspended(api, tenant, claim_one(api, tenant), approval={"prompt": "May I?"})["approval_id"]
    assert second != first
    assert decide(api, tenant, first, "approve").json["status"] == "already_approved"
    assert api.get(f"/api/v1/approvals/{second}", tenant=tenant).json["status"] == "pending"
    assert decide(api, tenant, second, "reject").json["status"] == "rejected"
    job = claim_one(api, tenant)
    assert (job["resumed_by"]["decision"], job["resumed_by"]["approval_id"]) == ("rejected", second)
    assert complete(api, tenant, job).json["run_status"] == "succeeded", "what no means is the function's business"


def test_the_same_question_again_is_the_same_and_expires(api, tenant, run, job):
    ask = {"prompt": "May I?", "expires_s": 1}
    first = suspended(api, tenant, job, approval=ask)
    assert suspend(api, tenant, job, approval=ask).json == {**first, "status": "already_suspended"}
    assert_problem(suspend(api, tenant, job, approval={**ask, "prompt": "Really?"}), 409, "LEASE_LOST")
    job = claim_one(api, tenant)
    assert (job["resumed_by"]["kind"], job["resumed_by"]["decision"], job["resumed_by"]["by"]) == ("approval", "expired", "pawl")
    assert_problem(decide(api, tenant, first["approval_id"], "approve"), 409, "APPROVAL_EXPIRED")


def test_a_task_that_was_approved_may_ask_again(api, tenant):
    run = begin(api, tenant, task("work", requires_approval=True))
    assert decide(api, tenant, step(show(api, tenant, run), "work")["job_id"], "approve").json["status"] == "approved"
    job = claim_one(api, tenant)
    approval = suspended(api, tenant, job, approval={"prompt": "And this?"})["approval_id"]
    assert decide(api, tenant, approval, "approve").json["status"] == "approved"
    assert complete(api, tenant, claim_one(api, tenant)).json["run_status"] == "succeeded"


# --- the run around it ---

def test_cancelling_ends_a_suspended_job_and_its_question(api, tenant, run, job):
    approval = suspended(api, tenant, job, approval={"prompt": "?"})["approval_id"]
    assert control(api, tenant, run, "cancel").status == 200
    assert job_of(api, tenant, job)["state"] == "cancelled"
    assert api.get(f"/api/v1/approvals/{approval}", tenant=tenant).json["status"] == "void"
    assert_problem(decide(api, tenant, approval, "approve"), 409, "NOT_AWAITING_APPROVAL")


def test_an_item_that_fails_ends_the_others_and_their_questions(api, tenant):
    run = begin(api, tenant, task("work", for_each="input"), input=[1, 2])
    first, second = claim(api, tenant, max=2)
    approval = suspended(api, tenant, first, approval={"prompt": "?"})
    assert approval["run_status"] == "running", "the other item is at work"
    assert fail(api, tenant, second, retryable=False).json["run_status"] == "failed"
    assert api.get(f"/api/v1/approvals/{approval['approval_id']}", tenant=tenant).json["status"] == "void"
    assert claim(api, tenant) == [] and show(api, tenant, run)["status"] == "failed"


def test_a_paused_run_keeps_a_resumed_job_until_it_goes_on(api, tenant, run, job):
    suspended(api, tenant, job, signal="go")
    assert control(api, tenant, run, "pause").status == 200
    assert signal(api, tenant, run, "go", payload=1).status == 200
    assert claim(api, tenant) == [] and job_of(api, tenant, job)["state"] == "scheduled"
    assert control(api, tenant, run, "resume").status == 200
    assert claim_one(api, tenant)["resumed_by"]["payload"] == 1


def test_a_run_that_tries_again_finds_its_checkpoints(api, tenant, run, job):
    assert store(api, tenant, job, "charge", output=1).status == 200
    assert fail(api, tenant, job, retryable=False).json["run_status"] == "failed"
    assert control(api, tenant, run, "retry").status == 200
    assert claim_one(api, tenant)["checkpoints"] == {"charge": 1}
    again = api.post(f"/api/v1/runs/{run}/cancel", tenant=tenant)
    assert again.status == 200
    rerun = control(api, tenant, run, "rerun").json["run_id"]
    assert "checkpoints" not in claim_one(api, tenant), f"{rerun} is another run"


def test_compensation_may_be_durable_too(api, tenant):
    run = begin(api, tenant, task("pay", compensate={"handler": "refund"}), task("ship"))
    assert complete(api, tenant, claim_one(api, tenant)).status == 200
    assert fail(api, tenant, claim_one(api, tenant), retryable=False).status == 200
    undo = claim_one(api, tenant)
    assert undo["compensates"] and store(api, tenant, undo, "called", output=1).status == 200
    approval = suspended(api, tenant, undo, approval={"prompt": "?"})["approval_id"]
    assert decide(api, tenant, approval, "reject").status == 200
    undo = claim_one(api, tenant)
    assert undo["checkpoints"] == {"called": 1} and undo["resumed_by"]["decision"] == "rejected"
    assert complete(api, tenant, undo).json["run_status"] == "failed"
    assert step(show(api, tenant, run), "pay")["compensation"] == "succeeded"


def test_the_call_of_an_entity_is_not_durable(api, tenant):
    assert api.put("/api/v1/entity-types/account", {"queue": "default", "handler": "h"}, tenant=tenant).status == 200
    assert api.post("/api/v1/entities/account/a/signals", {"name": "x"}, tenant=tenant).status == 200
    call = claim_one(api, tenant)
    assert_problem(store(api, tenant, call, "a"), 409, "JOB_NOT_DURABLE")
    assert_problem(suspend(api, tenant, call, until=FOREVER), 409, "JOB_NOT_DURABLE")


def test_the_doctor_finds_nothing_in_what_these_tests_left(api):
    inspect_store.assert_healthy(api)
