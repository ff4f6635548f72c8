"""Who holds a job, and for how long: fenced leases, heartbeats, giving back, attempts that run out, dead letters, batches."""
import contextlib
import datetime
import hashlib
import json
import signal
import struct
import subprocess
import sys
import time
import uuid

import pytest

import harness
import inspect_store
from actions import claim, complete, events, fail, result, show, task
from checks import assert_problem
from harness import wait_until
from pages import walk

NO_JOB = "0190b3c4-0000-7000-8000-000000000000"
QUICK = {"backoff_ms": 1, "jitter": "none"}
DEAD = "/api/v1/dead-letters"

# A worker as anybody may write one: it claims, works until a line comes, tells its result, and says how that was taken.
PLAIN_WORKER = """
import json, sys
import harness
client = harness.Client(int(sys.argv[1]))
report = lambda value: print(json.dumps(value), flush=True)
[job] = client.post("/api/v1/jobs/claim", {"worker_id": "stopped", "lease_ms": 300}, tenant=sys.argv[2]).json["jobs"]
report(job)
sys.stdin.readline()
for verb, more in (("heartbeat", {}), ("complete", {"output": "late", "state": {"by": "stopped"}}), ("fail", {"error": {"code": "LATE"}}), ("release", {})):
    r = client.post(f"/api/v1/jobs/{job['job_id']}/{verb}", {"lease_token": job["lease_token"], **more}, tenant=sys.argv[2])
    report([verb, r.status, r.code])
"""


def tell(api, tenant, job, verb, **more):
    return api.post(f"/api/v1/jobs/{job['job_id']}/{verb}", {"lease_token": job["lease_token"], **more}, tenant=tenant)


def show_job(api, tenant, job_id):
    r = api.get(f"/api/v1/jobs/{job_id}", tenant=tenant)
    assert r.status == 200, r
    return r.json


def event_types(api, tenant, run):
    return [e["type"] for e in events(api, tenant, run)]


def at(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def lease_ends(api, tenant, run, step=0):
    wait_until(lambda: show(api, tenant, run)["steps"][step]["status"] != "running", "the lease ends")


def dead_letters(api, tenant):
    return walk(api, DEAD, tenant)


@pytest.fixture
def start(api, tenant):
    """start(step members): a run of one such task."""
    def one(**step):
        api.workflow(tenant, "w", [task("work", **step)])
        return api.start(tenant, "w").json["run_id"]
    return one


# --- a lease that is gone ---

@pytest.mark.parametrize("behind", [[], [{"name": "later", "type": "wait_signal", "signal": "go"}]], ids=["the run is over", "the run goes on"])
def test_a_worker_that_was_stopped_past_its_lease_is_refused_and_writes_nothing(api, dev_server, tenant, behind):
    """SIGSTOP, another worker finishes the job, SIGCONT."""
    api.workflow(tenant, "w", [task("work"), *behind])
    run = api.start(tenant, "w").json["run_id"]
    command = [sys.executable, "-c", PLAIN_WORKER, str(dev_server.port), tenant]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=harness.ROOT / "tests/e2e/support") as stopped, \
            contextlib.ExitStack() as end:
        end.callback(stopped.kill)
        held = json.loads(stopped.stdout.readline())
        stopped.send_signal(signal.SIGSTOP)
        second = claim(api, tenant, wait_ms=30_000)[0]
        assert (second["job_id"], second["attempt"]) == (held["job_id"], 2) and second["lease_token"] != held["lease_token"]
        assert complete(api, tenant, second, output="mine", state={"by": "second"}).status == 200
        before = show(api, tenant, run)
        stopped.stdin.write("go on\n")
        stopped.stdin.flush()
        stopped.send_signal(signal.SIGCONT)
        assert [json.loads(line) for line in stopped.stdout] == [[verb, 409, "LEASE_LOST"] for verb in ("heartbeat", "complete", "fail", "release")]
    after = show(api, tenant, run)
    same = ("status", "output", "state", "error", "steps")
    assert {k: after[k] for k in same} == {k: before[k] for k in same}
    assert after["state"] == {"by": "second"} and after["steps"][0]["output"] == "mine"
    stale = [e["data"] for e in events(api, tenant, run, "job.stale_result")]
    assert [(s["job_id"], s["step"], s["lease"]) for s in stale] == [(held["job_id"], "work", 1)], "recorded once for the lease, however often it spoke"
    job = show_job(api, tenant, held["job_id"])
    assert (job["state"], job["output"], job["worker_id"], job["attempt"]) == ("succeeded", "mine", "w1", 2)


def test_each_lost_lease_is_told_of_once(api, tenant, start):
    run = start()
    held = []
    for _ in range(3):
        held += claim(api, tenant, lease_ms=100)
        lease_ends(api, tenant, run)
    for job in (held[0], held[0], held[1], held[2], held[2]):
        assert_problem(complete(api, tenant, job), 409, "LEASE_LOST")
    assert [e["data"]["lease"] for e in events(api, tenant, run, "job.stale_result")] == [1, 2, 3]


def test_a_result_that_was_taken_is_known_after_kill_9():
    with harness.server() as s:
        api = s.client()
        api.workflow("t", "w", [task("a"), task("b")])
        run = api.start("t", "w").json["run_id"]
        job = claim(api, "t")[0]
        assert complete(api, "t", job, output={"n": 1}).json["status"] == "completed"
        s.kill()
        api = s.start().client()
        assert complete(api, "t", job, output={"n": 1}).json["status"] == "already_completed"
        assert_problem(complete(api, "t", job, output={"n": 2}), 409, "LEASE_LOST")
        assert [j["step"] for j in claim(api, "t", max=9)] == ["b"] and show(api, "t", run)["steps"][0]["output"] == {"n": 1}


# --- heartbeats ---

def test_heartbeats_keep_a_job_and_without_them_it_is_gone(api, tenant, start):
    run = start()
    job = claim(api, tenant, lease_ms=3000)[0]  # a machine may well stand still for a second
    ends = [at(job["lease_expires_at"])]
    while time.time() < ends[0] + 0.2:  # as long as the first lease, and more
        r = tell(api, tenant, job, "heartbeat", progress={"beats": len(ends)})
        assert r.status == 200 and r.json["cancel_requested"] is False and r.json["job_id"] == job["job_id"], r
        ends.append(at(r.json["lease_expires_at"]))
        time.sleep(0.05)  # the pace of the beats; nothing is waited for
    assert ends == sorted(ends) and ends[-1] > ends[0] and claim(api, tenant) == []
    shown = show_job(api, tenant, job["job_id"])
    assert shown["state"] == "running" and shown["attempt"] == 1 and shown["progress"] == {"beats": len(ends) - 1}
    assert at(shown["due_at"]) == ends[-1]
    assert claim(api, tenant, wait_ms=30_000)[0]["attempt"] == 2
    assert_problem(tell(api, tenant, job, "heartbeat"), 409, "LEASE_LOST")
    assert event_types(api, tenant, run).count("job.lease_expired") == 1


def test_a_heartbeat_renews_for_as_long_as_was_claimed_but_not_past_the_steps_time(api, tenant, start):
    start(timeout_ms=60_000)
    job = claim(api, tenant, lease_ms=50_000)[0]
    began = at(job["lease_expires_at"]) - 50
    ends = []
    harness.wait_until(lambda: ends.append(at(tell(api, tenant, job, "heartbeat").json["lease_expires_at"])) or ends[-1] > at(job["lease_expires_at"]),
                       "a later beat ends later")
    assert ends[-1] <= began + 60.001
    start(timeout_ms=40_000)
    job = claim(api, tenant, lease_ms=50_000)[0]
    assert tell(api, tenant, job, "heartbeat").json["lease_expires_at"] == job["lease_expires_at"], "the step's time is the bound of both"


def test_a_heartbeat_tells_that_the_run_was_cancelled(api, tenant, start):
    run = start()
    job = claim(api, tenant)[0]
    assert api.post(f"/api/v1/runs/{run}/cancel", tenant=tenant).status == 200
    for _ in range(2):
        r = tell(api, tenant, job, "heartbeat")
        assert r.status == 200 and r.json["cancel_requested"] is True and r.json["lease_expires_at"] is None, r
    assert_problem(complete(api, tenant, job, output=1), 409, "LEASE_LOST")
    assert show(api, tenant, run)["status"] == "cancelled" and show_job(api, tenant, job["job_id"])["output"] is None


@pytest.mark.parametrize("verb,body", [
    ("heartbeat", {}), ("heartbeat", {"lease_token": 1}), ("heartbeat", {"lease_token": "x", "colour": 1}), ("release", {}), ("release", {"lease_token": None}),
    ("heartbeat", {"lease_token": "x", "progress": "p" * 70_000}),
])
def test_a_malformed_heartbeat_or_release_is_refused(api, tenant, verb, body):
    r = api.post(f"/api/v1/jobs/{NO_JOB}/{verb}", body, tenant=tenant)
    assert_problem(r, 413 if "progress" in body else 400, "BODY_TOO_LARGE" if "progress" in body else "FIELD_INVALID")


# --- giving back ---

def test_a_released_job_costs_no_attempt(api, tenant, start):
    run = start(retry={"max_attempts": 1})
    for n in range(5):
        job = claim(api, tenant, worker_id=f"w{n}")[0]
        assert job["attempt"] == 1
        for _ in range(2):
            r = tell(api, tenant, job, "release")
            assert r.status == 200 and (r.json["status"], r.json["run_status"]) == ("released", "running"), r
    last = claim(api, tenant)[0]
    assert_problem(tell(api, tenant, job, "release"), 409, "LEASE_LOST")
    assert_problem(complete(api, tenant, job, output="theirs"), 409, "LEASE_LOST")
    assert complete(api, tenant, last, output="mine").json["run_status"] == "succeeded"
    types = event_types(api, tenant, run)
    assert types.count("job.released") == 5 and types.count("job.claimed") == 6 and show(api, tenant, run)["output"] == "mine"


def test_a_release_wakes_a_claim(api, dev_server, tenant, start):
    start()
    job = claim(api, tenant)[0]

    def one(i):
        if i == 0:
            return claim(dev_server.client(), tenant, wait_ms=30_000)
        return tell(dev_server.client(), tenant, job, "release")

    [again], released = harness.together(2, one)
    assert again["job_id"] == job["job_id"] and again["attempt"] == 1 and released.status == 200


# --- attempts that run out ---

def test_a_failure_that_is_tried_again_may_be_told_twice(api, tenant, start):
    run = start(retry={"max_attempts": 2, "backoff_ms": 60_000})
    job = claim(api, tenant)[0]
    assert fail(api, tenant, job, message="no").json["status"] == "retrying"
    before = event_types(api, tenant, run)
    assert fail(api, tenant, job, message="no").json["status"] == "already_failed" and event_types(api, tenant, run) == before
    assert_problem(fail(api, tenant, job, message="other"), 409, "LEASE_LOST")
    assert_problem(complete(api, tenant, job), 409, "LEASE_LOST")
    assert event_types(api, tenant, run) == [*before, "job.stale_result"]


def test_a_failure_may_be_told_twice_although_its_next_attempt_is_due(api, tenant, start):
    run = start(retry={"max_attempts": 2, **QUICK})
    job = claim(api, tenant)[0]
    assert fail(api, tenant, job, message="no").json["status"] == "retrying"
    wait_until(lambda: show_job(api, tenant, job["job_id"])["state"] == "pending", "the next attempt is due")
    before = event_types(api, tenant, run)
    assert fail(api, tenant, job, message="no").json["status"] == "already_failed"
    assert event_types(api, tenant, run) == before


def test_a_job_whose_workers_all_vanish_is_a_dead_letter(api, tenant, start):
    run = start(retry={"max_attempts": 3, **QUICK})
    attempts = [claim(api, tenant, lease_ms=100, wait_ms=30_000)[0]["attempt"] for _ in range(3)]
    wait_until(lambda: show(api, tenant, run)["status"] == "failed", "the run fails")
    assert attempts == [1, 2, 3] and claim(api, tenant) == []
    [dead] = dead_letters(api, tenant)
    assert (dead["run_id"], dead["step"], dead["state"], dead["attempt"], dead["error"]["code"]) == (run, "work", "failed", 3, "LEASE_EXPIRED")
    types = event_types(api, tenant, run)
    assert types.count("job.lease_expired") == 2 and types[-2:] == ["job.failed", "run.failed"]


def test_a_failed_attempt_is_made_again_until_none_is_left(api, tenant, start):
    run = start(retry={"max_attempts": 3, **QUICK})
    answers = []
    for n in (1, 2, 3):
        job = claim(api, tenant, wait_ms=30_000)[0]
        assert job["attempt"] == n
        r = fail(api, tenant, job, message=f"attempt {n}")
        answers.append((r.json["status"], "retry_at" in r.json))
    assert answers == [("retrying", True), ("retrying", True), ("failed", False)]
    [dead] = dead_letters(api, tenant)
    assert dead["error"] == {"code": "BROKEN", "message": "attempt 3"} and dead["job_id"] == job["job_id"] and show(api, tenant, run)["status"] == "failed"


@pytest.mark.parametrize("error", [{"code": "BROKEN", "retryable": False}, {"code": "CARD_DECLINED"}, {"code": "CARD_DECLINED", "retryable": True}])
def test_an_error_that_no_retry_mends_is_not_tried_again(api, tenant, start, error):
    run = start(retry={"max_attempts": 9, "non_retryable": ["CARD_DECLINED"], **QUICK})
    assert fail(api, tenant, claim(api, tenant)[0], **error).json["status"] == "failed"
    assert [d["attempt"] for d in dead_letters(api, tenant)] == [1] and show(api, tenant, run)["error"]["cause"] == error


def test_what_was_cut_short_by_anothers_failure_is_no_dead_letter(api, tenant):
    api.workflow(tenant, "w", [task("a", needs=[]), task("b", needs=[])])
    run = api.start(tenant, "w").json["run_id"]
    jobs = claim(api, tenant, max=2)
    fail(api, tenant, jobs[0], retryable=False)
    assert [d["step"] for d in dead_letters(api, tenant)] == ["a"]
    assert show(api, tenant, run)["status"] == "failed"


# --- dead letters ---

def dead_runs(api, tenant, count, **workflow):
    """Runs that have failed, each with its one job a dead letter; the runs by job, in the order they failed."""
    api.workflow(tenant, "w", [task("work")], **workflow)
    runs = {}
    for _ in range(count):
        run = api.start(tenant, "w").json["run_id"]
        job = claim(api, tenant)[0]
        assert fail(api, tenant, job).json["status"] == "failed"
        runs[job["job_id"]] = run
    return runs


def test_dead_letters_are_listed_newest_first_over_pages(api, tenant):
    runs = dead_runs(api, tenant, 7)
    for path in (DEAD, DEAD + "?limit=3"):
        assert [(d["job_id"], d["run_id"]) for d in walk(api, path, tenant)] == list(runs.items())[::-1]
    assert walk(api, DEAD, api.tenant()) == []


def test_a_dead_letter_is_retried_under_its_id(api, tenant):
    [(job, run)] = dead_runs(api, tenant, 1).items()
    r = api.post(f"{DEAD}/{job}/retry", tenant=tenant)
    assert r.status == 200 and (r.json["job_id"], r.json["state"]) == (job, "pending"), r
    assert dead_letters(api, tenant) == [] and show(api, tenant, run)["status"] == "running"
    version = show(api, tenant, run)["version"]
    assert api.post(f"{DEAD}/{job}/retry", tenant=tenant).json["state"] == "pending" and show(api, tenant, run)["version"] == version, "again changes nothing"
    again = claim(api, tenant)[0]
    assert again["job_id"] == job and complete(api, tenant, again, output="at last").json["run_status"] == "succeeded"
    assert_problem(api.post(f"{DEAD}/{job}/retry", tenant=tenant), 409, "NOT_A_DEAD_LETTER")
    assert show(api, tenant, run)["output"] == "at last" and "run.retried" in event_types(api, tenant, run)


def test_a_retried_dead_letter_that_fails_again_is_one_again(api, tenant):
    [(job, run)] = dead_runs(api, tenant, 1).items()
    for time in ("second", "third"):
        assert api.post(f"{DEAD}/{job}/retry", tenant=tenant).status == 200
        again = claim(api, tenant)[0]
        assert again["attempt"] == 1, "a retry grants as many attempts as the first time"
        assert fail(api, tenant, again, message=time).json["run_status"] == "failed"
        assert [(d["job_id"], d["run_id"], d["error"]["message"]) for d in dead_letters(api, tenant)] == [(job, run, time)]


def test_dead_letters_are_retried_in_bulk(api, tenant):
    runs = dead_runs(api, tenant, 5)
    ask = {"action": "retry", "filter": {"status": "failed"}}
    dry = api.post("/api/v1/runs:bulk", {**ask, "dry_run": True}, tenant=tenant).json
    assert (dry["matched"], dry["dry_run"], len(dead_letters(api, tenant))) == (5, True, 5)
    done = api.post("/api/v1/runs:bulk", ask, tenant=tenant).json
    assert (done["matched"], done["changed"], done["refused"]) == (5, 5, []) and dead_letters(api, tenant) == []
    jobs = claim(api, tenant, max=9)
    assert {j["job_id"]: j["run_id"] for j in jobs} == runs
    for job in jobs:
        complete(api, tenant, job)
    assert {show(api, tenant, run)["status"] for run in runs.values()} == {"succeeded"}


def test_a_dropped_dead_letter_is_off_the_list_and_nothing_else_changes(api, tenant):
    (job, run), (other, _) = dead_runs(api, tenant, 2).items()
    before = show(api, tenant, run)
    for _ in range(2):
        r = api.delete(f"{DEAD}/{job}", tenant=tenant)
        assert r.status == 200 and (r.json["job_id"], r.json["state"]) == (job, "failed"), r
    assert [d["job_id"] for d in dead_letters(api, tenant)] == [other] and show(api, tenant, run) == before
    assert_problem(api.post(f"{DEAD}/{job}/retry", tenant=tenant), 409, "NOT_A_DEAD_LETTER")


def test_dead_letters_of_others_are_not_there(api, tenant):
    [(job, _)] = dead_runs(api, tenant, 1).items()
    for other in (api.tenant(), "t-that-is-not-stored-yet"):
        assert dead_letters(api, other) == []
        for r in (api.post(f"{DEAD}/{job}/retry", tenant=other), api.delete(f"{DEAD}/{job}", tenant=other)):
            assert_problem(r, 404, "JOB_NOT_FOUND")
    assert_problem(api.post(f"{DEAD}/{NO_JOB}/retry", tenant=tenant), 404, "JOB_NOT_FOUND")
    assert_problem(api.get(DEAD + "?cursor=nonsense", tenant=tenant), 400, "CURSOR_INVALID")
    assert len(dead_letters(api, tenant)) == 1


# --- batches ---

def batch(api, tenant, items, key=None, **more):
    r = api.post("/api/v1/jobs:complete", {"items": items, **more}, tenant=tenant, key=key)
    assert r.status == 200, r
    return r.json


def test_a_batch_takes_what_is_right_and_names_what_is_not(api, tenant):
    api.workflow(tenant, "w", [task("a"), task("b")])
    for n in range(6):
        api.start(tenant, "w", {"input": n})
    done, broken, stale, twice, other, left = claim(api, tenant, max=6)
    tell(api, tenant, stale, "release")
    again = claim(api, tenant)[0]
    complete(api, tenant, other, output=1)
    items = [result(done, output={"n": 1}, state={"s": 1}), result(broken, error={"code": "NO", "retryable": False}), result(stale, output="late"), result(twice, output=2),
             result(twice, output=2), result(other, output=5), {"job_id": NO_JOB, "lease_token": "x"}]
    answer = batch(api, tenant, items, claim={"worker_id": "w2", "max": 9})
    assert [r["job_id"] for r in answer["results"]] == [i["job_id"] for i in items]
    assert [(r["status"], r.get("code")) for r in answer["results"]] == [
        ("completed", None), ("failed", None), ("refused", "LEASE_LOST"), ("completed", None), ("already_completed", None), ("refused", "LEASE_LOST"), ("refused", "JOB_NOT_FOUND")]
    assert {(j["run_id"], j["step"]) for j in answer["jobs"]} == {(j["run_id"], "b") for j in (done, twice, other)}
    first = show(api, tenant, done["run_id"])
    assert first["state"] == {"s": 1} and first["steps"][0]["output"] == {"n": 1}
    assert show(api, tenant, broken["run_id"])["status"] == "failed" and show(api, tenant, other["run_id"])["steps"][0]["output"] == 1
    assert event_types(api, tenant, stale["run_id"]).count("job.stale_result") == 1
    assert batch(api, tenant, [result(again), result(left)])["results"][0]["status"] == "completed", "its own holder is unharmed"


def test_a_batch_is_given_again_under_its_key(api, tenant):
    api.workflow(tenant, "w", [task("a"), task("b")])
    for n in range(3):
        api.start(tenant, "w", {"input": n})
    items = [result(j, output=j["input"]) for j in claim(api, tenant, max=3)]
    first = batch(api, tenant, items, key="k", claim={"worker_id": "w1", "max": 2})
    assert len(first["jobs"]) == 2 and batch(api, tenant, items, key="k", claim={"worker_id": "w1", "max": 2}) == first, "no job is lost with a lost answer"
    assert batch(api, tenant, items, claim={"worker_id": "w1", "max": 9})["results"][0]["status"] == "already_completed"
    assert claim(api, tenant, max=9) == []


@pytest.mark.parametrize("body", [
    {}, {"items": {}}, {"items": [{}]}, {"items": [{"job_id": NO_JOB}]}, {"items": [{"job_id": "x", "lease_token": 1}]}, {"items": [{"job_id": NO_JOB, "lease_token": "x", "colour": 1}]},
    {"items": [], "claim": {}}, {"items": [], "claim": {"worker_id": "w", "max": 101}}, {"items": [{"job_id": NO_JOB, "lease_token": "x"}] * 101},
    {"items": [{"job_id": NO_JOB, "lease_token": "x", "error": {}}]},
])
def test_a_malformed_batch_is_400(api, tenant, body):
    assert_problem(api.post("/api/v1/jobs:complete", body, tenant=tenant), 400, "FIELD_INVALID")


# --- several queues ---

def test_queues_are_served_in_the_order_named(api, tenant):
    api.workflow(tenant, "w", [task("a", queue="slow", needs=[]), task("b", queue="fast", needs=[])])
    for _ in range(3):
        api.start(tenant, "w")
    assert [j["step"] for j in claim(api, tenant, queues=["fast", "slow"], max=4)] == ["b", "b", "b", "a"]
    assert [j["step"] for j in claim(api, tenant, queues=["fast", "none", "slow"], max=4)] == ["a", "a"]


@pytest.mark.parametrize("queue", ["q1", "q2", "q3"])
def test_a_claim_waits_for_all_its_queues_at_once(api, dev_server, tenant, queue):
    api.workflow(tenant, "w", [task("work", queue=queue)])

    def one(i):
        return api.start(tenant, "w") if i else claim(dev_server.client(), tenant, queues=["q1", "q2", "q3"], wait_ms=30_000)

    [job], run = harness.together(2, one)
    assert job["run_id"] == run.json["run_id"]


def test_a_lease_token_cannot_be_computed_from_what_is_shown_of_the_job(api, tenant):
    """As pawl 0.1.0 made them: a hash of values that GET /jobs/{id} shows."""
    api.workflow(tenant)
    api.start(tenant)
    job = api.post("/api/v1/jobs/claim", {"worker_id": "w"}, tenant=tenant).json["jobs"][0]
    shown = api.get(f"/api/v1/jobs/{job['job_id']}", tenant=tenant).json
    started = datetime.datetime.fromisoformat(shown["started_at"].replace("Z", "+00:00"))
    started_ms = round(started.timestamp() * 1000)
    epoch = int(job["lease_token"].partition(".")[0])
    parts = [uuid.UUID(job["job_id"]).bytes, struct.pack("<qq", epoch, started_ms), b"w"]
    # Each part with its length before it, and joined: however they were put together, the secret is missing.
    guesses = [b"".join(parts), b"".join(struct.pack("<Q", len(p)) + p for p in parts), b"".join(struct.pack(">Q", len(p)) + p for p in parts)]
    for guess in guesses:
        token = f"{epoch}.{hashlib.sha256(guess).hexdigest()[:32]}"
        assert token != job["lease_token"]
        r = api.post(f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": token}, tenant=tenant)
        assert r.status == 409 and r.code == "LEASE_LOST", r
    assert api.post(f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": job["lease_token"]}, tenant=tenant).status == 200


def test_a_lease_token_outlives_a_restart_and_is_of_no_use_in_another_store():
    keys = []
    for _ in range(2):
        with harness.server() as s:
            api = s.client()
            api.workflow("t")
            api.start("t")
            job = api.post("/api/v1/jobs/claim", {"worker_id": "w"}, tenant="t").json["jobs"][0]
            s.kill()
            s.start()
            assert s.client().post(f"/api/v1/jobs/{job['job_id']}/heartbeat", {"lease_token": job["lease_token"]}, tenant="t").status == 200
            keys.append(inspect_store.rows(s.db, "SELECT value FROM secrets WHERE name = 'lease'")[0][0])
    assert len(keys[0]) == 32 and keys[0] != keys[1]
