"""A run's version: it changes with everything that a reader of the run can see, never goes back, and is its entity tag."""
import threading

import pytest

import harness
from actions import begin, claim, claim_one, complete, control, ended, events, fail, show, signal, task, until, work
from checks import assert_problem

QUICK = {"max_attempts": 3, "backoff_ms": 1, "jitter": "none"}


class Watch:
    """Looks at one run again and again: whatever is seen under one version is the same, and versions only grow."""

    def __init__(self, api, tenant, run):
        self.api, self.tenant, self.run = api, tenant, run
        self.seen = {}
        self.last = 0

    def look(self):
        r = self.api.get(f"/api/v1/runs/{self.run}", tenant=self.tenant)
        assert r.status == 200, r
        shown = r.json
        version = shown.pop("version")
        assert r.header("ETag") == f'"{version}"'
        assert version >= self.last, (version, self.last)
        assert self.seen.setdefault(version, shown) == shown, f"two things were seen under version {version}"
        self.last = version
        return shown

    def sees(self, is_so, what):
        return harness.wait_until(lambda: is_so(self.look()), what)

    def changed(self):
        """Looks, and expects something else than before under a later version."""
        before, version = self.seen[self.last], self.last
        assert self.look() != before and self.last > version


@pytest.fixture
def watch(api, tenant):
    def one(*steps, **more):
        w = Watch(api, tenant, begin(api, tenant, *steps, **more))
        w.look()
        return w
    return one


# --- every change ---

def test_the_version_of_a_task_changes_with_claim_failure_retry_claim_and_end(api, tenant, watch):
    w = watch(task("a", retry=QUICK))
    job = claim_one(api, tenant)
    w.changed()
    fail(api, tenant, job)
    w.changed()
    job = claim_one(api, tenant)
    w.changed()
    assert w.look()["steps"][0]["attempt"] == 2
    api.post(f"/api/v1/jobs/{job['job_id']}/release", {"lease_token": job["lease_token"]}, tenant=tenant)
    w.changed()
    claim_one(api, tenant, lease_ms=100)
    w.changed()
    w.sees(lambda r: r["steps"][0]["status"] == "pending", "the lease expires")
    job = claim_one(api, tenant)
    w.changed()
    fail(api, tenant, job)
    w.changed()
    assert w.look()["status"] == "failed"
    assert control(api, tenant, w.run, "retry").status == 200
    w.changed()
    complete(api, tenant, claim_one(api, tenant), state={"n": 1})
    w.changed()
    assert w.look()["status"] == "succeeded" and w.look()["state"] == {"n": 1}


def test_the_version_changes_with_pause_resume_cancel_and_what_happens_while_paused(api, tenant, watch):
    w = watch(task("a", needs=[], retry=QUICK), task("b", needs=[]), task("c", needs=["a", "b"]))
    a, b = sorted(claim(api, tenant, max=9), key=lambda j: j["step"])
    w.changed()
    assert control(api, tenant, w.run, "pause").status == 200
    w.changed()
    fail(api, tenant, a)
    w.changed()
    complete(api, tenant, b, output=1)
    w.changed()
    assert control(api, tenant, w.run, "resume").status == 200
    w.changed()
    w.sees(lambda r: r["steps"][0]["status"] == "pending", "the delay ends")
    assert control(api, tenant, w.run, "cancel").status == 200
    w.changed()


def test_the_version_changes_with_signals_approvals_sleeps_and_children(api, tenant, watch):
    api.workflow(tenant, "child", [{"name": "nap", "type": "sleep", "duration_ms": 1}])
    w = watch({"name": "both", "type": "wait_signal", "signal": ["x", "y"], "wait_for": "all"},
              {"name": "ok", "type": "approval", "prompt": "Go on?", "approvers": {"count": 2, "forbid_requester": False}},
              {"name": "nap", "type": "sleep", "duration_ms": 1}, {"name": "child", "type": "workflow", "workflow_id": "child"},
              {"name": "map", "type": "transform", "for_each": "input", "output": "${item}"}, task("last"), input=[1, 2, 3])
    for name in ("x", "y"):
        assert signal(api, tenant, w.run, name).status == 200
        w.look()
    assert w.look()["steps"][0]["status"] == "succeeded"
    job = w.look()["steps"][1]["job_id"]
    for who in ("ann", "bob"):
        assert api.post(f"/api/v1/approvals/{job}/approve", tenant=tenant, headers={"X-Actor": who}).status == 200
        w.look()
    w.sees(lambda r: r["steps"][5]["job_id"], "the last step begins")
    assert [s["status"] for s in w.look()["steps"]] == ["succeeded"] * 5 + ["pending"]


def test_a_compensated_run_changes_its_version_with_each_step_back(api, tenant, watch):
    w = watch(task("a", compensate={"handler": "undo"}), task("b"))
    complete(api, tenant, claim_one(api, tenant))
    w.changed()
    fail(api, tenant, claim_one(api, tenant), retryable=False)
    w.changed()
    undo = claim_one(api, tenant)
    assert undo["compensates"] is True
    w.look()
    complete(api, tenant, undo)
    w.changed()


def test_whoever_looks_all_the_time_sees_one_thing_under_each_version(dev_server, api, tenant):
    """A reader races a run with failures, an empty map, skipped steps and many items."""
    flaky = {"max_attempts": 5, "backoff_ms": 1, "jitter": "none"}
    run = begin(api, tenant, {"name": "none", "type": "transform", "for_each": [], "output": 1, "needs": []},
                {"name": "no", "type": "transform", "when": "false", "output": 1, "needs": []},
                {"name": "many", "type": "transform", "for_each": "input", "output": "${item}", "needs": []},
                task("map", for_each="input", max_parallel=3, retry=flaky, needs=["many"]), task("end", needs=["map", "none", "no"]), input=list(range(300)))
    done, faults = threading.Event(), []

    def look():
        w = Watch(dev_server.client(), tenant, run)
        try:
            while not done.is_set():
                w.look()
            w.look()
        except AssertionError as e:
            faults.append(e)

    threads = [threading.Thread(target=look) for _ in range(2)]
    for t in threads:
        t.start()
    control(api, tenant, run, "pause")
    control(api, tenant, run, "resume")
    shown, _ = work(api, tenant, run, lambda job: {"error": {"code": "FLAKY"}} if job["attempt"] == 1 and job.get("item", 1) % 50 == 0 else {"output": 1})
    done.set()
    for t in threads:
        t.join()
    assert not faults, faults[0]
    assert shown["status"] == "succeeded"


def test_the_version_is_the_number_of_the_last_event_also_in_lists(api, tenant):
    run = begin(api, tenant, task("a", retry=QUICK))
    for act in (lambda: None, lambda: fail(api, tenant, claim_one(api, tenant)), lambda: complete(api, tenant, claim_one(api, tenant))):
        act()
        shown = until(api, tenant, run, lambda r: r["steps"][0]["status"] in ("pending", "succeeded"), "nothing is due")
        assert shown["version"] == events(api, tenant, run)[-1]["seq"]
        listed, = api.get("/api/v1/runs", tenant=tenant).json["items"]
        assert listed["version"] == shown["version"]


# --- entity tags ---

def test_answers_that_show_a_run_carry_its_version_as_entity_tag(api, tenant):
    api.workflow(tenant, "w", [task("a")])
    started = api.start(tenant, "w")
    assert started.header("ETag") == f'"{started.json["run"]["version"]}"'
    run = started.json["run_id"]
    for action in ("pause", "resume", "cancel"):
        r = control(api, tenant, run, action)
        assert r.status == 200 and r.header("ETag") == f'"{r.json["version"]}"'
        assert api.get(f"/api/v1/runs/{run}", tenant=tenant).header("ETag") == r.header("ETag")
    again = control(api, tenant, run, "rerun")
    assert again.header("ETag") == f'"{again.json["run"]["version"]}"' and again.json["run"]["version"] > 0
    waited = api.post("/api/v1/workflows/w/runs?wait_ms=1", {}, tenant=tenant)
    assert waited.header("ETag") == f'"{waited.json["run"]["version"]}"'
    assert api.get("/api/v1/runs", tenant=tenant).header("ETag") is None


def test_a_coalesced_start_shows_the_active_runs_version(api):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="coalesce")
    api.workflow(tenant)
    first = api.start(tenant).json["run_id"]
    r = api.start(tenant)
    assert r.json["coalesced"] is True and r.json["run"]["version"] == show(api, tenant, first)["version"] and r.header("ETag") == f'"{r.json["run"]["version"]}"'


def test_a_run_that_has_not_changed_is_not_sent_again(api, tenant):
    run = begin(api, tenant, task("a"))
    path = f"/api/v1/runs/{run}"
    tag = api.get(path, tenant=tenant).header("ETag")
    for known in (tag, f"W/{tag}", f'"0", {tag}', f'{tag},"x"', "*"):
        r = api.get(path, tenant=tenant, headers={"If-None-Match": known})
        assert (r.status, r.raw, r.header("ETag")) == (304, b"", tag), (known, r)
        head = api.call("HEAD", path, tenant=tenant, headers={"If-None-Match": known})
        assert (head.status, head.header("ETag")) == (304, tag)
    for other in ('"0"', tag.strip('"'), "nonsense", '"1000"', ""):
        assert api.get(path, tenant=tenant, headers={"If-None-Match": other}).status == 200, other
    claim_one(api, tenant)
    r = api.get(path, tenant=tenant, headers={"If-None-Match": tag})
    assert r.status == 200 and r.header("ETag") != tag and r.json["steps"][0]["status"] == "running"
    assert_problem(api.get("/api/v1/runs/0190b3c4-0000-7000-8000-000000000000", tenant=tenant, headers={"If-None-Match": "*"}), 404, "RUN_NOT_FOUND")


def test_a_decision_on_a_run_that_was_read_before_a_claim_is_refused(api, tenant):
    run = begin(api, tenant, task("a"))
    tag = api.get(f"/api/v1/runs/{run}", tenant=tenant).header("ETag")
    claim_one(api, tenant)
    problem = assert_problem(control(api, tenant, run, "cancel", headers={"If-Match": tag}), 409, "CONCURRENCY_ERROR")
    now = show(api, tenant, run)
    assert problem["actual"] == now["version"] and now["status"] == "running"
    assert control(api, tenant, run, "cancel", headers={"If-Match": f'"{now["version"]}"'}).status == 200
    assert ended(api, tenant, run)["status"] == "cancelled"
