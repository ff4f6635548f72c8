"""What a test does with runs and their jobs: start, work, wait, look."""
import harness
from pages import walk

UNDER_WAY = ("queued", "pending", "running", "waiting", "paused")


def task(name, **more):
    return {"name": name, "type": "task", "handler": name, **more}


def begin(api, tenant, *steps, input=None, wid="w", body=None, **more):
    """Stores a workflow of these steps and starts it: the run's id."""
    api.workflow(tenant, wid, list(steps), **more)
    r = api.start(tenant, wid, {"input": input, **(body or {})})
    assert r.status == 200, r
    return r.json["run_id"]


def show(api, tenant, run):
    r = api.get(f"/api/v1/runs/{run}", tenant=tenant)
    assert r.status == 200, r
    return r.json


def events(api, tenant, run, *types):
    """The timeline; with types only those."""
    return [e for e in walk(api, f"/api/v1/runs/{run}/events?limit=200", tenant) if not types or e["type"] in types]


def step(shown, name):
    return next(s for s in shown["steps"] if s["name"] == name)


def statuses(shown):
    return {s["name"]: s["status"] for s in shown["steps"]}


def outputs(shown):
    return {s["name"]: s["output"] for s in shown["steps"]}


def until(api, tenant, run, is_so, what):
    """The run once it is so."""
    def look():
        shown = show(api, tenant, run)
        return shown if is_so(shown) else None

    return harness.wait_until(look, f"run {run}: {what}")


def ended(api, tenant, run):
    return until(api, tenant, run, lambda r: r["status"] not in UNDER_WAY, "its end")


def control(api, tenant, run, action, body=None, **kw):
    return api.post(f"/api/v1/runs/{run}/{action}", body, tenant=tenant, **kw)


def signal(api, tenant, run, name, **more):
    return control(api, tenant, run, "signals", {"name": name, **more})


# --- as a worker ---

def claim(api, tenant, **more):
    r = api.post("/api/v1/jobs/claim", {"worker_id": "w1", **more}, tenant=tenant)
    assert r.status == 200, r
    return r.json["jobs"]


def claim_one(api, tenant, **more):
    """The only job there is, waited for."""
    jobs = claim(api, tenant, wait_ms=30_000, **{"max": 100, **more})
    assert len(jobs) == 1, jobs
    return jobs[0]


def result(job, **more):
    return {"job_id": job["job_id"], "lease_token": job["lease_token"], **more}


def complete(api, tenant, job, **more):
    return api.post(f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": job["lease_token"], **more}, tenant=tenant)


def fail(api, tenant, job, code="BROKEN", **more):
    return api.post(f"/api/v1/jobs/{job['job_id']}/fail", {"lease_token": job["lease_token"], "error": {"code": code, **more}}, tenant=tenant)


def work(api, tenant, run, do=lambda job: {}):
    """Works until the run is over, every job as do(job) says: {"output": …} or {"error": …}. The run, and the jobs in the order they came."""
    done = []

    def over():
        jobs = claim(api, tenant, max=100, wait_ms=20)
        if jobs:
            r = api.post("/api/v1/jobs:complete", {"items": [result(j, **do(j)) for j in jobs]}, tenant=tenant)
            assert r.status == 200 and "refused" not in [x["status"] for x in r.json["results"]], r
            done.extend(jobs)
        shown = show(api, tenant, run)
        return shown if shown["status"] not in UNDER_WAY else None

    return harness.wait_until(over, f"the end of run {run}", harness.PATIENCE_S * 3), done


def failing(*handlers, **more):
    """For work(): these handlers fail, all others succeed with their name."""
    return lambda job: {"error": {"code": "BROKEN", **more}} if job["handler"] in handlers else {"output": job["handler"]}
