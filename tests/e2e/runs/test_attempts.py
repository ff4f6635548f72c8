"""Every attempt that is lost keeps its error: in the timeline, and on the job."""
import re

import pytest

import harness
from actions import begin, claim, claim_one, complete, control, ended, events, fail, show, task, until
from entities import Entity, define
from harness import wait_until

QUICK = {"max_attempts": 9, "backoff_ms": 1, "jitter": "none"}
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
LOST = ("job.retry_scheduled", "job.failed", "job.timed_out", "job.lease_expired")


def attempts(api, tenant, job_id):
    r = api.get(f"/api/v1/jobs/{job_id}", tenant=tenant)
    assert r.status == 200, r
    listed = r.json["attempts"]
    for a in listed:
        assert set(a) == {"attempt", "lease", "worker_id", "started_at", "finished_at", "outcome", "error"}, a
        assert RFC3339.fullmatch(a["started_at"]) and (a["finished_at"] is None) == (a["outcome"] == "running"), a
        assert (a["error"] is None) == (a["outcome"] in ("running", "succeeded")), a
    return listed


def brief(listed):
    return [(a["attempt"], a["worker_id"], a["outcome"], (a["error"] or {}).get("code")) for a in listed]


def lost(api, tenant, run):
    """What the timeline tells of attempts that were lost."""
    return [(e["type"], e["data"]["attempt"], e["data"].get("worker_id"), e["data"]["error"]["code"]) for e in events(api, tenant, run, *LOST)]


def test_a_task_that_succeeds_at_last_tells_why_it_failed_before(api, tenant):
    run = begin(api, tenant, task("a", retry=QUICK, timeout_ms=60_000))
    job = claim_one(api, tenant, worker_id="ann")
    assert brief(attempts(api, tenant, job["job_id"])) == [(1, "ann", "running", None)]
    fail(api, tenant, job, "NO_NETWORK", message="cable", details={"port": 7})
    assert brief(attempts(api, tenant, job["job_id"])) == [(1, "ann", "failed", "NO_NETWORK")]
    claim_one(api, tenant, worker_id="bob", lease_ms=100)
    until(api, tenant, run, lambda r: r["steps"][0]["status"] == "pending", "the lease expires")
    complete(api, tenant, claim_one(api, tenant, worker_id="cid"))
    listed = attempts(api, tenant, job["job_id"])
    assert brief(listed) == [(1, "ann", "failed", "NO_NETWORK"), (2, "bob", "lease_expired", "LEASE_EXPIRED"), (3, "cid", "succeeded", None)]
    assert listed[0]["error"] == {"code": "NO_NETWORK", "message": "cable", "details": {"port": 7}}
    assert [a["lease"] for a in listed] == [1, 2, 3]
    assert lost(api, tenant, run) == [("job.retry_scheduled", 1, "ann", "NO_NETWORK"), ("job.lease_expired", 2, "bob", "LEASE_EXPIRED")]
    retry, = events(api, tenant, run, "job.retry_scheduled")
    assert retry["data"]["error"] == listed[0]["error"] and RFC3339.fullmatch(retry["data"]["due_at"])
    recorded = events(api, tenant, run, "job.created", "job.claimed", "job.succeeded", "job.retried")
    assert recorded and not any("error" in e["data"] for e in recorded), "only of what was lost"


def test_an_attempt_out_of_time_keeps_its_error_and_the_last_one_ends_the_step(api, tenant):
    run = begin(api, tenant, task("a", retry={**QUICK, "max_attempts": 2}, timeout_ms=50))
    for _ in range(2):
        job = claim_one(api, tenant, worker_id="slow")
        until(api, tenant, run, lambda r: r["steps"][0]["status"] != "running", "its time is over")
    assert ended(api, tenant, run)["status"] == "failed"
    assert brief(attempts(api, tenant, job["job_id"])) == [(n, "slow", "timed_out", "TIMED_OUT") for n in (1, 2)]
    assert lost(api, tenant, run) == [("job.retry_scheduled", 1, "slow", "TIMED_OUT"), ("job.timed_out", 2, "slow", "TIMED_OUT")]


def test_a_compensation_and_an_item_of_a_map_keep_theirs(api, tenant):
    run = begin(api, tenant, task("m", for_each="input", retry=QUICK, compensate={"handler": "undo"}), task("b"), input=[1, 2])
    for job in claim(api, tenant, max=9):
        fail(api, tenant, job, f"ITEM_{job['item']}")
    for _ in range(2):
        complete(api, tenant, claim(api, tenant, wait_ms=30_000)[0])
    fail(api, tenant, claim_one(api, tenant), retryable=False)
    undo = claim_one(api, tenant)
    fail(api, tenant, undo, "UNDO_BROKEN")
    complete(api, tenant, claim_one(api, tenant))
    ended(api, tenant, run)
    assert brief(attempts(api, tenant, undo["job_id"])) == [(1, "w1", "failed", "UNDO_BROKEN"), (2, "w1", "succeeded", None)]
    recorded = [e["data"] for e in events(api, tenant, run, "job.retry_scheduled")]
    assert sorted((d.get("item"), d["error"]["code"], d.get("compensates")) for d in recorded[:2]) == [(0, "ITEM_0", None), (1, "ITEM_1", None)]
    assert (recorded[2]["error"]["code"], recorded[2]["compensates"]) == ("UNDO_BROKEN", True)
    for data in recorded[:2]:
        assert [a["error"] and a["error"]["code"] for a in attempts(api, tenant, data["job_id"])] == [f"ITEM_{data['item']}", None]


def test_an_http_step_keeps_what_each_call_met(calling_server, receiver):
    api = calling_server.client()
    tenant = api.tenant()
    url = receiver.answers("/pay", (503, b"later"), (500, b"oops"), (200, {"ok": True}))
    run = begin(api, tenant, {"name": "pay", "type": "http", "request": {"method": "POST", "url": url}, "retry": QUICK})
    shown = ended(api, tenant, run)
    assert shown["status"] == "succeeded", shown
    listed = attempts(api, tenant, shown["steps"][0]["job_id"])
    assert [(a["attempt"], a["worker_id"], a["outcome"]) for a in listed] == [(1, None, "failed"), (2, None, "failed"), (3, None, "succeeded")]
    assert [a["error"]["code"] for a in listed[:2]] == ["HTTP_503", "HTTP_500"]
    assert lost(api, tenant, run) == [("job.retry_scheduled", 1, None, "HTTP_503"), ("job.retry_scheduled", 2, None, "HTTP_500")]


def test_a_call_of_an_entity_keeps_its_attempts(api, tenant):
    define(api, tenant, retry={"max_attempts": 3, "backoff_ms": 1})
    e = Entity(api, tenant)
    e.send()
    job = claim_one(api, tenant, queues=["q"], worker_id="ann")
    fail(api, tenant, job, "ODD", message="m")
    claim_one(api, tenant, queues=["q"], worker_id="bob", lease_ms=100)
    wait_until(lambda: len(e.events("entity.call_failed")) == 2, "the lease expires")
    complete(api, tenant, claim_one(api, tenant, queues=["q"], worker_id="cid"), output={"state": 1})
    expected = [(1, "ann", "failed", "ODD"), (2, "bob", "lease_expired", "LEASE_EXPIRED"), (3, "cid", "succeeded", None)]
    assert brief(attempts(api, tenant, job["job_id"])) == expected
    assert [(d["attempt"], d["worker_id"], d["error"]["code"]) for d in (x["data"] for x in e.events("entity.call_failed"))] == [(n, w, c) for n, w, _, c in expected[:2]]


def test_a_child_that_failed_and_an_expression_that_cannot_be_evaluated_tell_it(api, tenant):
    api.workflow(tenant, "child", [{"name": "x", "type": "transform", "output": "${nil + 1}"}])
    run = begin(api, tenant, {"name": "kid", "type": "workflow", "workflow_id": "child"})
    shown = ended(api, tenant, run)
    job = shown["steps"][0]["job_id"]
    assert brief(attempts(api, tenant, job)) == [(1, None, "failed", "CHILD_FAILED")] and [x[3] for x in lost(api, tenant, run)] == ["CHILD_FAILED"]
    child = api.get(f"/api/v1/jobs/{job}", tenant=tenant).json["child_run_id"]
    assert [x[3] for x in lost(api, tenant, child)] == ["EXPRESSION_FAILED"]
    assert brief(attempts(api, tenant, show(api, tenant, child)["steps"][0]["job_id"])) == [(1, None, "failed", "EXPRESSION_FAILED")]


def test_a_retry_by_a_person_is_recorded_beside_what_came_before(api, tenant):
    run = begin(api, tenant, task("a"))
    job = claim_one(api, tenant, worker_id="ann")
    fail(api, tenant, job, "FIRST")
    assert brief(attempts(api, tenant, job["job_id"])) == [(1, "ann", "failed", "FIRST")]
    control(api, tenant, run, "retry")
    assert brief(attempts(api, tenant, job["job_id"])) == [(1, "ann", "failed", "FIRST")]
    again = claim_one(api, tenant, worker_id="bob")
    assert brief(attempts(api, tenant, job["job_id"])) == [(1, "ann", "failed", "FIRST"), (1, "bob", "running", None)]
    fail(api, tenant, again, "SECOND")
    assert brief(attempts(api, tenant, job["job_id"])) == [(1, "ann", "failed", "FIRST"), (1, "bob", "failed", "SECOND")]
    dead, = api.get("/api/v1/dead-letters", tenant=tenant).json["items"]
    assert brief(dead["attempts"]) == [(1, "ann", "failed", "FIRST"), (1, "bob", "failed", "SECOND")]


def test_of_many_attempts_the_first_and_the_newest_stay(api, tenant):
    run = begin(api, tenant, task("a", retry={**QUICK, "max_attempts": 30, "multiplier": 1}))
    for n in range(30):
        job = claim_one(api, tenant)
        fail(api, tenant, job, f"CODE_{n + 1}")
    assert ended(api, tenant, run)["status"] == "failed"
    assert [a["error"]["code"] for a in attempts(api, tenant, job["job_id"])] == ["CODE_1"] + [f"CODE_{n}" for n in range(12, 31)]
    assert [x[3] for x in lost(api, tenant, run)] == [f"CODE_{n + 1}" for n in range(30)], "the timeline has them all"


@pytest.mark.parametrize("error", [{"message": "ü" * 50_000}, {"message": "short", "details": ["x" * 9000]}, {"details": "y" * 5000}])
def test_of_a_long_error_the_code_and_the_beginning_stay(api, tenant, error):
    run = begin(api, tenant, task("a", retry=QUICK))
    job = claim_one(api, tenant)
    fail(api, tenant, job, "LONG", **error)
    assert api.get(f"/api/v1/jobs/{job['job_id']}", tenant=tenant).json["error"] == {"code": "LONG", **error}, "the job has it whole until the next attempt ends"
    complete(api, tenant, claim_one(api, tenant))
    kept = attempts(api, tenant, job["job_id"])[0]["error"]
    assert kept == events(api, tenant, run, "job.retry_scheduled")[0]["data"]["error"]
    assert (kept["code"], kept["truncated"]) == ("LONG", True) and len(kept["message"].encode()) <= 2048
    assert error.get("message", "").startswith(kept["message"].rstrip("\ufffd"))


def test_attempts_survive_a_kill():
    with harness.server() as s:
        api = s.client()
        begin(api, "t", task("a", retry=QUICK))
        job = claim_one(api, "t", worker_id="ann")
        fail(api, "t", job, "LOST")
        s.kill()
        api = s.start().client()
        assert brief(attempts(api, "t", job["job_id"])) == [(1, "ann", "failed", "LOST")]
