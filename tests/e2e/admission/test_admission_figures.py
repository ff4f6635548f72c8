"""GET /api/v1/admission: how full a tenant's limits are, and what waits for them."""
from checks import assert_problem
from harness import wait_until
from limit_scenarios import cancel, queued, started


def admission(api, tenant, query=""):
    r = api.get(f"/api/v1/admission{query}", tenant=tenant)
    assert r.status == 200, r
    return r.json


def uses(api, tenant, query=""):
    return [(i["workflow_id"], i["path"], i["key"], i["limit"], i["active_runs"], i["queued_runs"]) for i in admission(api, tenant, query)["items"]]


def test_slots_queue_and_the_oldest_waiting_run_are_shown(api):
    tenant = api.tenant(max_concurrent_runs=1, max_queued_runs=5, at_limit="queue")
    api.workflow(tenant)
    empty = admission(api, tenant)
    assert (empty["active_runs"], empty["max_concurrent_runs"], empty["queued_runs"], empty["max_queued_runs"]) == (0, 1, 0, 5)
    assert empty["oldest_waiting"] is None and empty["items"] == [] and empty["more"] is False and empty["waits"]["count"] == 0
    held, first, second = started(api, tenant), queued(api, tenant), queued(api, tenant)
    full = admission(api, tenant)
    assert (full["active_runs"], full["queued_runs"]) == (1, 2)
    created = api.get(f"/api/v1/runs/{first}", tenant=tenant).json["created_at"]
    assert full["oldest_waiting"] == {"run_id": first, "workflow_id": "hold", "created_at": created}
    cancel(api, tenant, held)
    later = admission(api, tenant)
    assert later["oldest_waiting"]["run_id"] == second and later["waits"]["count"] == 1 and later["waits"]["p99_ms"] >= 1


def test_limits_of_workflows_and_keys_are_shown_busiest_first(api, tenant):
    rules = [{"limit": 4}, {"key": "input.customer", "limit": 1, "at_limit": "queue"}]
    api.workflow(tenant, "w", concurrency=rules)
    api.workflow(tenant, "free")
    started(api, tenant, "free")
    for customer in ("ann", "bob"):
        started(api, tenant, "w", input={"customer": customer})
    queued(api, tenant, "w", input={"customer": "bob"})
    assert uses(api, tenant) == [("w", None, None, 4, 2, 1), ("w", "input.customer", "bob", 1, 1, 1), ("w", "input.customer", "ann", 1, 1, 0)]
    assert uses(api, tenant, "?limit=1") == uses(api, tenant)[:1] and admission(api, tenant, "?limit=1")["more"] is True
    assert admission(api, tenant, "?limit=3")["more"] is False
    api.workflow(tenant, "w", concurrency={"limit": 7})  # admits what waited for the key; what is active keeps its keys
    then = [("w", None, None, 7, 3, 0), ("w", "input.customer", "bob", None, 2, 0), ("w", "input.customer", "ann", None, 1, 0)]
    wait_until(lambda: uses(api, tenant) == then, "the queued run is admitted")


def test_a_tenant_that_is_not_stored_has_nothing(api):
    assert admission(api, "never-seen")["items"] == []
    for query in ("?limit=0", "?limit=201", "?cursor=1"):
        assert_problem(api.get(f"/api/v1/admission{query}", tenant="never-seen"), 400, "BAD_REQUEST")
