"""The limit of concurrent runs: never one more, never one less, and every end gives its slot back."""
import pytest

from harness import together
from inspect_store import active_runs, all_runs, assert_healthy


def assert_limited(r, limit):
    """A refusal that tells a client all it needs to come back."""
    assert r.status == 429 and r.code == "MAX_CONCURRENT_RUNS" and r.json["retryable"] is True, r
    assert r.json["current"] == limit and r.json["limit"] == limit
    assert int(r.header("Retry-After")) >= 1
    assert r.header("RateLimit-Policy") == f'"concurrent-runs";q={limit}'
    assert r.header("RateLimit").startswith('"concurrent-runs";r=0;t=')


def succeed(api, tenant, run):
    assert api.work(tenant)["run_id"] == run


def fail(api, tenant, run):
    job = api.post("/api/v1/jobs/claim", {"worker_id": "w"}, tenant=tenant).json["jobs"][0]
    assert job["run_id"] == run
    body = {"lease_token": job["lease_token"], "error": {"code": "NO", "message": "no", "retryable": False}}
    assert api.post(f"/api/v1/jobs/{job['job_id']}/fail", body, tenant=tenant).status == 200


def cancel(api, tenant, run):
    assert api.post(f"/api/v1/runs/{run}/cancel", {}, tenant=tenant).status == 200


def cancel_claimed(api, tenant, run):
    job = api.post("/api/v1/jobs/claim", {"worker_id": "w"}, tenant=tenant).json["jobs"][0]
    cancel(api, tenant, run)
    late = api.post(f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": job["lease_token"]}, tenant=tenant)
    assert late.status == 409 and late.code == "LEASE_LOST"


@pytest.mark.parametrize("end,status", [(succeed, "succeeded"), (fail, "failed"), (cancel, "cancelled"), (cancel_claimed, "cancelled")],
                         ids=["success", "failure", "cancel", "cancel of a claimed job"])
def test_an_end_frees_exactly_one_slot(api, end, status):
    tenant = api.tenant(max_concurrent_runs=2)
    api.workflow(tenant)
    first = api.start(tenant).json["run_id"]
    api.start(tenant)
    assert_limited(api.start(tenant, key="waits"), 2)
    end(api, tenant, first)
    assert api.get(f"/api/v1/runs/{first}", tenant=tenant).json["status"] == status
    assert active_runs(api, tenant) == 1
    assert api.start(tenant, key="waits").json["created"] is True
    assert_limited(api.start(tenant), 2)
    # Ending it again, as a retry would, frees nothing.
    api.post(f"/api/v1/runs/{first}/cancel", {}, tenant=tenant)
    assert active_runs(api, tenant) == 2
    assert_healthy(api)


def test_a_sleep_that_is_over_frees_its_slot(api):
    tenant = api.tenant(max_concurrent_runs=1)
    api.workflow(tenant, steps=[{"name": "nap", "type": "sleep", "duration_ms": 50}])
    for _ in range(3):
        r = api.post("/api/v1/workflows/hold/runs?wait_ms=60000", {}, tenant=tenant)
        assert r.status == 200 and r.json["run"]["status"] == "succeeded", r
    assert active_runs(api, tenant) == 0


def test_no_limit_and_a_limit_of_zero(api):
    unlimited, closed = api.tenant(max_concurrent_runs=None), api.tenant(max_concurrent_runs=0)
    for tenant in (unlimited, closed):
        api.workflow(tenant)
    assert {api.start(unlimited).status for _ in range(50)} == {200} and active_runs(api, unlimited) == 50
    assert_limited(api.start(closed), 0)


def test_a_lower_limit_ends_nothing_and_admits_nothing(api):
    tenant = api.tenant(max_concurrent_runs=3)
    api.workflow(tenant)
    runs = [api.start(tenant).json["run_id"] for _ in range(3)]
    assert api.put(f"/api/v1/tenants/{tenant}", {"max_concurrent_runs": 1}, tenant=tenant).json["active_runs"] == 3
    for left in (2, 1):
        r = api.start(tenant)
        assert r.status == 429 and r.json["current"] == left + 1 and r.json["limit"] == 1
        cancel(api, tenant, runs[left])
    assert api.start(tenant).status == 429
    cancel(api, tenant, runs[0])
    assert api.start(tenant).status == 200


@pytest.mark.slow
def test_the_limit_holds_while_runs_end_all_the_time(api):
    """Starters and workers race; whatever is seen from outside, the counter never passes the limit."""
    tenant = api.tenant(max_concurrent_runs=5)
    api.workflow(tenant)

    def one(i):
        started = 0
        for n in range(60):
            if i < 6:
                started += api.start(tenant, key=f"k-{i}-{n}").status == 200
            else:
                api.work(tenant, worker=f"w{i}")
                assert active_runs(api, tenant) <= 5
        return started

    started = sum(together(9, one))
    while api.work(tenant):
        pass
    assert active_runs(api, tenant) == 0 and len(all_runs(api, tenant)) == started
    assert_healthy(api)
