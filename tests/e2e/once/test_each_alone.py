"""What one run needs is its own matter: large ones fail or take longer, and hold up nobody else's work."""
import uuid

import pytest

import harness
from actions import claim_one, complete
from harness import wait_until
from inspect_store import active_runs, assert_healthy, rows

BIG = "x" * 900_000


@pytest.fixture
def server():
    with harness.server() as s:
        yield s


def status_of(s, run):
    """From the store: a run with hundreds of large outputs is no answer."""
    return rows(s.db, "SELECT status FROM runs WHERE id = ?", uuid.UUID(run).bytes)[0][0]


def ends(s, run, status):
    wait_until(lambda: status_of(s, run) == status, f"the run has {status}", seconds=120)


def begin(api, tenant, wid, steps, **more):
    api.workflow(tenant, wid, steps, **more)
    r = api.start(tenant, wid=wid, body={"input": {"big": BIG, "many": list(range(320))}})
    assert r.status == 200, r
    return r.json["run_id"]


def large_map(**more):
    return [{"name": "m", "type": "task", "handler": "h", "for_each": "input.many", "max_parallel": 320, "input": {"n": "${item}", "big": "${input.big}"}, **more}]


def test_a_deadline_over_many_large_jobs_is_kept_and_holds_up_nobody(server):
    api = server.client()
    large, small = api.tenant(), api.tenant()
    run = begin(api, large, "large", large_map(), timeout_s=3)
    ends(server, run, "timed_out")
    api.workflow(small, "nap", [{"name": "s", "type": "sleep", "duration_ms": 500}])
    nap = api.start(small, wid="nap").json["run_id"]
    ends(server, nap, "succeeded")
    assert active_runs(api, large) == 0
    assert_healthy(api)


@pytest.mark.slow  # 288 MB: more than one operation may load
def test_many_large_jobs_are_cancelled_together(server):
    api = server.client()
    tenant = api.tenant()
    run = begin(api, tenant, "large", large_map())
    wait_until(lambda: rows(server.db, "SELECT count(*) FROM job_rows") == [(320,)], "all jobs are made", seconds=120)

    def cancelled():
        r = api.post(f"/api/v1/runs/{run}/cancel", tenant=tenant, key="cancel")
        assert r.status == 200 or r.code in ("STORE_BUSY", "IDEMPOTENCY_IN_FLIGHT"), r  # a slow machine takes longer than a request may
        return r.status == 200 and r.json["status"] == "cancelled"

    wait_until(cancelled, "the run is cancelled", seconds=120)
    assert active_runs(api, tenant) == 0
    assert_healthy(api)


def test_a_queued_run_that_takes_much_memory_to_start_fails_nobody_who_makes_room(server):
    api = server.client()
    tenant = api.tenant(max_concurrent_runs=1, at_limit="queue")
    api.workflow(tenant)
    first = api.start(tenant).json["run_id"]
    # Each item is in memory twice: as what its job is given, and as what a person is shown.
    queued = begin(api, tenant, "asks", large_map(requires_approval=True))
    assert status_of(server, queued) == "queued"
    r = complete(api, tenant, claim_one(api, tenant))
    assert r.status == 200 and r.json["run_status"] == "succeeded", r
    assert status_of(server, first) == "succeeded"
    # It begins, and goes on in turns of its own.
    wait_until(lambda: status_of(server, queued) in ("running", "waiting"), "the queued run has begun")
    assert_healthy(api)
