"""Work handed out and taken back: long polls, leases, stale results, failure, order."""
import re
import threading

import pytest

import harness
from actions import claim, complete, fail, show
from checks import assert_problem
from pages import walk

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
NO_JOB = "0190b3c4-0000-7000-8000-000000000000"


def task(name, **more):
    return {"name": name, "type": "task", "handler": "h", **more}


def event_types(api, tenant, run):
    return [e["type"] for e in walk(api, f"/api/v1/runs/{run}/events", tenant)]


# --- claim ---

def test_a_claimed_job_has_all_a_worker_needs(api, tenant):
    api.workflow(tenant, "w", [task("work", queue="q", input={"id": 5})])
    run = api.start(tenant, "w", {"input": {"n": 1}}).json["run_id"]
    job = claim(api, tenant, queues=["q"], lease_ms=60_000)[0]
    assert {k: job[k] for k in ("run_id", "workflow_id", "step", "handler", "attempt", "tenant", "input", "tracestate")} == {
        "run_id": run, "workflow_id": "w", "step": "work", "handler": "h", "attempt": 1, "tenant": tenant, "input": {"id": 5}, "tracestate": None}
    assert job["lease_token"] and RFC3339.fullmatch(job["lease_expires_at"])
    shown = api.get(f"/api/v1/jobs/{job['job_id']}", tenant=tenant).json
    assert (shown["state"], shown["queue"], shown["worker_id"], shown["attempt"], shown["run_id"]) == ("running", "q", "w1", 1, run)
    assert "lease_token" not in shown, "only the holder has it"


def test_only_the_named_queues_are_served(api, tenant):
    api.workflow(tenant, "w", [task("a", queue="left", needs=[]), task("b", queue="right", needs=[]), task("c", needs=[])])
    api.start(tenant, "w")
    assert [j["step"] for j in claim(api, tenant, queues=["right"], max=9)] == ["b"]
    assert [j["step"] for j in claim(api, tenant, max=9)] == ["c"], "the queue default, when none is named"
    assert claim(api, tenant, queues=["elsewhere"], max=9) == []
    assert [j["step"] for j in claim(api, tenant, queues=["elsewhere", "left"], max=9)] == ["a"]


def test_max_bounds_a_claim(api, tenant):
    api.workflow(tenant, "w")
    for _ in range(12):
        api.start(tenant, "w")
    assert [len(claim(api, tenant)), len(claim(api, tenant, max=4)), len(claim(api, tenant, max=100)), len(claim(api, tenant, max=100))] == [1, 4, 7, 0]


@pytest.mark.parametrize("body", [
    {}, {"worker_id": ""}, {"worker_id": 1}, {"worker_id": "x" * 129}, {"worker_id": "w", "queues": []}, {"worker_id": "w", "queues": "q"},
    {"worker_id": "w", "queues": ["a b"]}, {"worker_id": "w", "queues": [1]}, {"worker_id": "w", "queues": [f"q{i}" for i in range(17)]},
    {"worker_id": "w", "max": 0}, {"worker_id": "w", "max": 101}, {"worker_id": "w", "wait_ms": 30001}, {"worker_id": "w", "wait_ms": -1},
    {"worker_id": "w", "lease_ms": 99}, {"worker_id": "w", "lease_ms": 1e12}, {"worker_id": "w", "max": "1"}, {"worker_id": "w", "max": 1.5},
])
def test_a_bad_claim_is_400(api, tenant, body):
    assert_problem(api.post("/api/v1/jobs/claim", body, tenant=tenant), 400, "FIELD_INVALID")


def test_higher_priority_goes_first_and_equals_in_order(api, tenant):
    api.workflow(tenant, "w")
    for n, priority in enumerate([0, 10, -5, 10, 0, 100, -100]):
        api.start(tenant, "w", {"input": n, "priority": priority})
    assert [j["input"] for j in claim(api, tenant, max=100)] == [5, 1, 3, 0, 4, 2, 6]


def test_many_workers_never_get_the_same_job(api, dev_server, tenant):
    api.workflow(tenant, "w")
    runs = {api.start(tenant, "w").json["run_id"] for _ in range(100)}

    def work(i):
        client, mine = dev_server.client(), []
        while jobs := claim(client, tenant, max=3):
            mine += jobs
        return mine

    jobs = sum(harness.together(8, work), [])
    assert len(jobs) == 100 and {j["run_id"] for j in jobs} == runs and len({j["lease_token"] for j in jobs}) == 100


# --- long polls ---

def waiting(api, dev_server, tenant, count):
    """Threads that claim and wait, and the jobs each got. They are about to ask when this returns."""
    got, ready = [], threading.Barrier(count + 1)

    def wait_for_work():
        client = dev_server.client()
        client.get("/healthz")
        ready.wait()
        got.append(claim(client, tenant, wait_ms=30_000))

    threads = [threading.Thread(target=wait_for_work) for _ in range(count)]
    for t in threads:
        t.start()
    ready.wait()
    return threads, got


def test_a_start_wakes_a_waiting_claim(api, dev_server, tenant):
    api.workflow(tenant, "w")
    threads, got = waiting(api, dev_server, tenant, 1)
    run = api.start(tenant, "w").json["run_id"]
    threads[0].join()
    assert [j["run_id"] for j in got[0]] == [run]


def test_a_completion_wakes_a_claim_of_the_next_step(api, dev_server, tenant):
    api.workflow(tenant, "w", [task("a", queue="first"), task("b")])
    api.start(tenant, "w")
    job = claim(api, tenant, queues=["first"])[0]
    threads, got = waiting(api, dev_server, tenant, 1)
    complete(api, tenant, job)
    threads[0].join()
    assert [j["step"] for j in got[0]] == ["b"]


def test_a_sleeps_end_wakes_a_claim(api, tenant):
    api.workflow(tenant, "w", [{"name": "nap", "type": "sleep", "duration_ms": 100}, task("b")])
    api.start(tenant, "w")
    assert claim(api, tenant, wait_ms=30_000)[0]["step"] == "b"


def test_an_expired_lease_wakes_a_claim(api, tenant):
    api.workflow(tenant, "w")
    api.start(tenant, "w")
    first = claim(api, tenant, lease_ms=100)[0]
    second = claim(api, tenant, wait_ms=30_000)[0]
    assert second["job_id"] == first["job_id"] and second["attempt"] == 2


def test_two_wait_for_one_job_and_one_gets_it(api, dev_server, tenant):
    api.workflow(tenant, "w")
    got, ready = [], threading.Barrier(3)

    def wait_for_work():
        client = dev_server.client()
        ready.wait()
        got.append(claim(client, tenant, wait_ms=1000))

    threads = [threading.Thread(target=wait_for_work) for _ in range(2)]
    for t in threads:
        t.start()
    ready.wait()
    run = api.start(tenant, "w").json["run_id"]
    for t in threads:
        t.join()
    assert sorted(map(len, got)) == [0, 1] and sum(got, [])[0]["run_id"] == run


def test_an_empty_answer_is_normal(api, tenant):
    assert claim(api, tenant) == [] and claim(api, tenant, wait_ms=20) == []


# --- results ---

def test_output_and_state_are_kept(api, tenant):
    api.workflow(tenant, "w", [task("a"), task("b")])
    run = api.start(tenant, "w").json["run_id"]
    r = complete(api, tenant, claim(api, tenant)[0], output={"amount": 12.5}, state={"seen": ["a"]})
    assert r.status == 200 and (r.json["status"], r.json["run_status"], r.json["run_id"]) == ("completed", "running", run)
    middle = show(api, tenant, run)
    assert middle["state"] == {"seen": ["a"]} and middle["steps"][0]["output"] == {"amount": 12.5} and middle["output"] is None
    assert complete(api, tenant, claim(api, tenant)[0], output=[1, None]).json["run_status"] == "succeeded"
    end = show(api, tenant, run)
    assert (end["status"], end["output"], end["state"]) == ("succeeded", [1, None], {"seen": ["a"]}) and RFC3339.fullmatch(end["finished_at"])


@pytest.mark.parametrize("output", [None, False, 0, "", [], {"a": {"b": "ä"}}])
def test_an_output_is_any_json_value(api, tenant, output):
    api.workflow(tenant, "w")
    run = api.start(tenant, "w").json["run_id"]
    complete(api, tenant, claim(api, tenant)[0], output=output)
    assert show(api, tenant, run)["output"] == output


def test_a_failed_step_fails_the_run_with_its_error(api, tenant):
    api.workflow(tenant, "w", [task("a", needs=[]), task("b", needs=[]), task("c", needs=["a"])])
    run = api.start(tenant, "w").json["run_id"]
    job = claim(api, tenant)[0]
    r = fail(api, tenant, job, message="no card", retryable=False, details={"card": None})
    assert r.status == 200 and (r.json["status"], r.json["run_status"]) == ("failed", "failed")
    end = show(api, tenant, run)
    cause = {"code": "BROKEN", "message": "no card", "retryable": False, "details": {"card": None}}
    assert end["status"] == "failed" and end["error"]["step"] == "a" and end["error"]["cause"] == cause and end["output"] is None
    assert [s["status"] for s in end["steps"]] == ["failed", "cancelled", "pending"] and end["steps"][0]["error"] == cause
    assert claim(api, tenant, max=9) == [] and api.get(f"/api/v1/tenants/{tenant}").json["active_runs"] == 0
    assert event_types(api, tenant, run)[-1] == "run.failed"


def test_the_same_result_again_is_answered_and_counts_once(api, tenant):
    api.workflow(tenant, "w", [task("a"), task("b")])
    run = api.start(tenant, "w").json["run_id"]
    job = claim(api, tenant)[0]
    assert complete(api, tenant, job, output={"x": 1, "y": 2}).json["status"] == "completed"
    before = show(api, tenant, run)
    for _ in range(3):
        again = complete(api, tenant, job, output={"y": 2, "x": 1})
        assert again.status == 200 and again.json["status"] == "already_completed" and again.json["job_id"] == job["job_id"]
    assert show(api, tenant, run) == before and event_types(api, tenant, run).count("job.succeeded") == 1


def test_the_same_failure_again_is_answered_too(api, tenant):
    api.workflow(tenant, "w")
    api.start(tenant, "w")
    job = claim(api, tenant)[0]
    assert fail(api, tenant, job).json["status"] == "failed"
    assert fail(api, tenant, job).json["status"] == "already_failed"


def test_another_result_after_the_first_is_refused(api, tenant):
    api.workflow(tenant, "w")
    run = api.start(tenant, "w").json["run_id"]
    job = claim(api, tenant)[0]
    complete(api, tenant, job, output=1)
    assert_problem(complete(api, tenant, job, output=2), 409, "LEASE_LOST", retryable=False)
    assert_problem(fail(api, tenant, job), 409, "LEASE_LOST")
    assert show(api, tenant, run)["output"] == 1 and show(api, tenant, run)["status"] == "succeeded"


def test_an_expired_lease_makes_attempt_2_and_the_first_token_stale(api, tenant):
    api.workflow(tenant, "w")
    run = api.start(tenant, "w").json["run_id"]
    first = claim(api, tenant, lease_ms=100)[0]
    harness.wait_until(lambda: show(api, tenant, run)["steps"][0]["status"] == "pending", "the lease ends")
    assert_problem(complete(api, tenant, first, output="late"), 409, "LEASE_LOST")
    second = claim(api, tenant)[0]
    assert (second["job_id"], second["attempt"]) == (first["job_id"], 2) and second["lease_token"] != first["lease_token"]
    assert_problem(complete(api, tenant, first, output="late"), 409, "LEASE_LOST", retryable=False)
    assert_problem(fail(api, tenant, first), 409, "LEASE_LOST")
    assert show(api, tenant, run)["steps"][0]["status"] == "running", "applied to nothing"
    assert complete(api, tenant, second, output="mine").json["status"] == "completed"
    assert_problem(complete(api, tenant, first, output="late"), 409, "LEASE_LOST")
    assert show(api, tenant, run)["output"] == "mine"
    lived = ["run.created", "job.created", "job.claimed", "job.lease_expired", "job.claimed", "job.succeeded", "run.succeeded"]
    assert [t for t in event_types(api, tenant, run) if t in lived] == lived


@pytest.mark.parametrize("token", ["", "x", "1.00000000000000000000000000000000", "0." + "0" * 32, "99." + "f" * 32])
def test_a_token_that_was_never_given_is_refused(api, tenant, token):
    api.workflow(tenant, "w")
    run = api.start(tenant, "w").json["run_id"]
    job = claim(api, tenant)[0]
    assert_problem(complete(api, tenant, {**job, "lease_token": token}), 409, "LEASE_LOST")
    assert show(api, tenant, run)["steps"][0]["status"] == "running"


def test_a_job_that_nobody_claimed_takes_no_result(api, tenant):
    api.workflow(tenant, "w")
    job = api.start(tenant, "w").json["run"]["steps"][0]["job_id"]
    assert_problem(complete(api, tenant, {"job_id": job, "lease_token": "0." + "0" * 32}), 409, "LEASE_LOST")


@pytest.mark.parametrize("path,body", [
    ("complete", {}), ("complete", {"lease_token": 5}), ("complete", {"lease_token": "t", "state": []}), ("complete", {"lease_token": "t", "colour": 1}),
    ("fail", {"lease_token": "t"}), ("fail", {"lease_token": "t", "error": "x"}), ("fail", {"lease_token": "t", "error": {}}),
    ("fail", {"lease_token": "t", "error": {"code": "X", "colour": 1}}), ("fail", {"lease_token": "t", "error": {"code": "X", "retryable": "no"}}),
])
def test_a_bad_result_is_400(api, tenant, path, body):
    assert_problem(api.post(f"/api/v1/jobs/{NO_JOB}/{path}", body, tenant=tenant), 400, "FIELD_INVALID")


def test_an_output_over_512_kib_is_413_and_the_job_is_unharmed(api, tenant):
    api.workflow(tenant, "w")
    api.start(tenant, "w")
    job = claim(api, tenant)[0]
    assert_problem(complete(api, tenant, job, output="x" * 600_000), 413, "BODY_TOO_LARGE")
    assert complete(api, tenant, job, output="x" * 500_000).status == 200


def test_a_job_that_is_not_there_is_404(api, tenant):
    for jid in (NO_JOB, "nonsense"):
        assert_problem(api.get(f"/api/v1/jobs/{jid}", tenant=tenant), 404, "JOB_NOT_FOUND")
        assert_problem(complete(api, tenant, {"job_id": jid, "lease_token": "t"}), 404, "JOB_NOT_FOUND")
        assert_problem(fail(api, tenant, {"job_id": jid, "lease_token": "t"}), 404, "JOB_NOT_FOUND")


def test_leases_and_sleeps_go_on_after_a_restart():
    with harness.server() as s:
        api = s.client()
        api.workflow("t", "lease")
        api.workflow("t", "nap", [{"name": "n", "type": "sleep", "duration_ms": 200}])
        api.start("t", "lease")
        held = claim(api, "t", lease_ms=60_000)[0]
        api.start("t", "lease")
        lost = claim(api, "t", lease_ms=100)[0]
        nap = api.start("t", "nap").json["run_id"]
        s.kill()
        s.start()
        api = s.client()
        assert complete(api, "t", held).json["run_status"] == "succeeded", "its lease is good across the restart"
        again = claim(api, "t", wait_ms=30_000)[0]
        assert again["job_id"] == lost["job_id"] and again["attempt"] == 2
        harness.wait_until(lambda: show(api, "t", nap)["status"] == "succeeded", "the sleep ends")
