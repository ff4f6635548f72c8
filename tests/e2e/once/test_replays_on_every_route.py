"""Every route that changes something replays its first answer, and changes nothing the second time."""
import pytest

from inspect_store import key_path, record

STEPS = {"steps": [{"name": "work", "type": "task", "handler": "noop"}]}


def claim(api, tenant, **more):
    r = api.post("/api/v1/jobs/claim", {"worker_id": "w", **more}, tenant=tenant)
    assert r.status == 200 and r.json["jobs"], r
    return r.json["jobs"][0]


def twice(api, method, path, body, tenant):
    """The same request two times, with something else in between; the two answers."""
    first = api.call(method, path, body, key="again", tenant=tenant)
    assert first.status == 200 and first.header("Idempotent-Replayed") is None, first
    second = api.call(method, path, body, key="again", tenant=tenant)
    assert second.status == 200 and second.header("Idempotent-Replayed") == "true", second
    kept = record(api, tenant, "again")
    assert kept["replays"] == 1 and kept["mismatches"] == 0 and kept["method"] == method and kept["status"] == 200
    return first.json, second.json


def test_put_workflow(api, tenant):
    first, second = twice(api, "PUT", "/api/v1/workflows/w", STEPS, tenant)
    assert first == second and first["created"] is True and first["version"] == 1
    # What the workflow is by now does not matter: the answer is that of the first request.
    api.workflow(tenant, wid="w", steps=[{"name": "x", "type": "task", "handler": "h"}])
    again = api.put("/api/v1/workflows/w", STEPS, key="again", tenant=tenant)
    assert again.json == first and api.get("/api/v1/workflows/w", tenant=tenant).json["version"] == 2


def test_delete_workflow(api, tenant):
    api.workflow(tenant, wid="w")
    first, second = twice(api, "DELETE", "/api/v1/workflows/w", None, tenant)
    assert first == second and first["archived"] is True
    api.workflow(tenant, wid="w")  # brings it back
    again = api.delete("/api/v1/workflows/w", key="again", tenant=tenant)
    assert again.json == first and api.get("/api/v1/workflows/w", tenant=tenant).json["archived"] is False


def test_put_tenant(api, tenant):
    path = f"/api/v1/tenants/{tenant}"
    first, second = twice(api, "PUT", path, {"name": "one", "weight": 2}, tenant)
    assert first == second and first["name"] == "one"
    assert api.put(path, {"name": "two"}, tenant=tenant).status == 200
    assert api.put(path, {"name": "one", "weight": 2}, key="again", tenant=tenant).json == first
    assert api.get(path, tenant=tenant).json["name"] == "two"


def test_create_key_shows_its_secret_once(api, tenant):
    first, second = twice(api, "POST", "/api/v1/keys", {"tenant": tenant, "role": "viewer", "label": "l"}, tenant)
    secret = first.pop("key")
    assert secret.startswith("pawl_") and first == second and "key" not in second
    assert len(api.get("/api/v1/keys", tenant=tenant).json["items"]) == 1


def test_delete_key(api, tenant):
    key = api.post("/api/v1/keys", {"tenant": tenant, "role": "viewer"}, tenant=tenant).json
    first, second = twice(api, "DELETE", f"/api/v1/keys/{key['id']}", None, tenant)
    assert first == second == {"id": key["id"], "revoked": True}


def test_cancel(api, tenant):
    api.workflow(tenant)
    run = api.start(tenant).json["run_id"]
    first, second = twice(api, "POST", f"/api/v1/runs/{run}/cancel", {}, tenant)
    assert first == second and first["status"] == "cancelled"
    events = api.get(f"/api/v1/runs/{run}/events", tenant=tenant).json["items"]
    assert [e["type"] for e in events].count("run.cancelled") == 1


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_decide(api, tenant, verb):
    api.workflow(tenant, steps=[{"name": "pay", "type": "task", "handler": "h", "requires_approval": True}])
    run = api.start(tenant).json["run"]
    path = f"/api/v1/approvals/{run['steps'][0]['job_id']}"
    first, second = twice(api, "POST", f"{path}/{verb}", {"reason": "r"}, tenant)
    assert first == second and first["status"] == {"approve": "approved", "reject": "rejected"}[verb]
    assert api.get(path, tenant=tenant).json["replays"] == 0
    events = [e["type"] for e in api.get(f"/api/v1/runs/{run['id']}/events", tenant=tenant).json["items"]]
    assert events.count("approval.decided") == 1


def test_claim_hands_out_the_same_jobs(api, tenant):
    api.workflow(tenant)
    for _ in range(3):
        api.start(tenant)
    first, second = twice(api, "POST", "/api/v1/jobs/claim", {"worker_id": "w", "max": 2}, tenant)
    assert first == second and len(first["jobs"]) == 2
    left = api.post("/api/v1/jobs/claim", {"worker_id": "w", "max": 10}, tenant=tenant).json["jobs"]
    assert len(left) == 1 and left[0]["job_id"] not in {j["job_id"] for j in first["jobs"]}


@pytest.mark.parametrize("wait_ms", [0, 20])
def test_a_claim_that_found_nothing_is_not_remembered(api, tenant, wait_ms):
    api.workflow(tenant)
    body = {"worker_id": "w", "wait_ms": wait_ms}
    empty = api.post("/api/v1/jobs/claim", body, key="k", tenant=tenant)
    assert empty.status == 200 and empty.json["jobs"] == [] and record(api, tenant, "k") is None
    api.start(tenant)
    found = api.post("/api/v1/jobs/claim", body, key="k", tenant=tenant)
    assert len(found.json["jobs"]) == 1 and found.header("Idempotent-Replayed") is None
    again = api.post("/api/v1/jobs/claim", body, key="k", tenant=tenant)
    assert again.json == found.json and again.header("Idempotent-Replayed") == "true"


@pytest.mark.parametrize("end", ["complete", "fail"])
def test_complete_and_fail(api, tenant, end):
    api.workflow(tenant)
    run = api.start(tenant).json["run_id"]
    job = claim(api, tenant)
    body = {"lease_token": job["lease_token"]}
    body.update({"output": {"n": 1}} if end == "complete" else {"error": {"code": "X", "message": "m", "retryable": False}})
    first, second = twice(api, "POST", f"/api/v1/jobs/{job['job_id']}/{end}", body, tenant)
    assert first == second and first["status"] == ("completed" if end == "complete" else "failed")
    events = [e["type"] for e in api.get(f"/api/v1/runs/{run}/events", tenant=tenant).json["items"]]
    assert events.count("job.succeeded") + events.count("job.failed") == 1


def test_a_completion_repeated_without_a_key_is_told_so(api, tenant):
    api.workflow(tenant)
    api.start(tenant)
    job = claim(api, tenant)
    path, body = f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": job["lease_token"], "output": {"a": 1, "b": 2}}
    assert api.post(path, body, tenant=tenant).json["status"] == "completed"
    again = api.post(path, '{"output":{"b":2,"a":1},"lease_token":"%s"}' % job["lease_token"], tenant=tenant)
    assert again.status == 200 and again.json["status"] == "already_completed"
    other = api.post(path, {**body, "output": {}}, tenant=tenant)
    assert other.status == 409 and other.code == "LEASE_LOST"


ENTITY = "/api/v1/entities/t/e"
RULES = {"queue": "q", "handler": "h"}


@pytest.fixture
def entity(api, tenant):
    """One with a signal that waits."""
    assert api.put("/api/v1/entity-types/t", RULES, tenant=tenant).status == 200
    assert api.post(f"{ENTITY}/signals", {"name": "first"}, tenant=tenant).status == 200


def timeline(api, tenant):
    return [e["type"] for e in api.get(f"{ENTITY}/events", tenant=tenant).json["items"]]


def test_put_entity_type(api, tenant):
    first, second = twice(api, "PUT", "/api/v1/entity-types/t", RULES, tenant)
    assert first == second and first["created"] is True
    api.put("/api/v1/entity-types/t", {**RULES, "version": 2}, tenant=tenant)
    again = api.put("/api/v1/entity-types/t", RULES, key="again", tenant=tenant)
    assert again.json == first and api.get("/api/v1/entity-types/t", tenant=tenant).json["version"] == 2


def test_signal_entity(api, tenant, entity):
    first, second = twice(api, "POST", f"{ENTITY}/signals", {"name": "n", "payload": [1]}, tenant)
    assert first == second == {"seq": 2, "duplicate": False, "generation": 1}
    assert timeline(api, tenant).count("entity.signaled") == 2
    other = api.post(f"{ENTITY}/signals", {"name": "n", "payload": [2]}, key="again", tenant=tenant)
    assert other.status == 422 and other.code == "IDEMPOTENCY_KEY_REUSED"
    # The entity may be another by now: the answer is that of the first request.
    assert api.delete(ENTITY, tenant=tenant).status == 200
    assert api.post(f"{ENTITY}/signals", {"name": "n", "payload": [1]}, key="again", tenant=tenant).json == first
    assert api.get(ENTITY, tenant=tenant).status == 404


@pytest.mark.parametrize("result", [{"result": {"n": 1}}, {"error": {"code": "NO", "message": "m"}}])
def test_update_entity(api, tenant, result):
    """A retry of what was not answered in time gets the outcome, and the handler was asked once."""
    api.put("/api/v1/entity-types/t", RULES, tenant=tenant)
    body = {"name": "ask", "dedup_key": "u"}
    first = api.post(f"{ENTITY}/updates?wait_ms=0", body, key="again", tenant=tenant)
    assert first.status == 202 and first.header("Idempotent-Replayed") is None and first.header("Location") == f"{ENTITY}/updates/1"
    waiting = api.post(f"{ENTITY}/updates?wait_ms=0", body, key="again", tenant=tenant)
    assert waiting.status == 202 and waiting.header("Idempotent-Replayed") == "true" and waiting.header("Location") == f"{ENTITY}/updates/1"
    job = claim(api, tenant, queues=["q"])
    done = api.post(f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": job["lease_token"], "output": {"state": 1, "results": [{"seq": 1, **result}]}}, tenant=tenant)
    assert done.status == 200, done
    again = api.post(f"{ENTITY}/updates", body, key="again", tenant=tenant)
    assert again.status == 200 and again.header("Idempotent-Replayed") == "true" and {k: again.json[k] for k in result} == result, again
    assert timeline(api, tenant).count("entity.signaled") == 1


def test_migrate_entity(api, tenant, entity):
    api.put("/api/v1/entity-types/t", {**RULES, "version": 2}, tenant=tenant)
    first, second = twice(api, "POST", f"{ENTITY}/migrate", {}, tenant)
    assert first == second == {"status": "migrating", "from": 1, "to": 2} and timeline(api, tenant).count("entity.migration_requested") == 1


def test_delete_entity(api, tenant, entity):
    first, second = twice(api, "DELETE", ENTITY, None, tenant)
    assert first == second == {"type": "t", "id": "e", "deleted": True}
    # One that came later under that id is not deleted by the old request's retry.
    api.post(f"{ENTITY}/signals", {"name": "n"}, tenant=tenant)
    assert api.delete(ENTITY, key="again", tenant=tenant).header("Idempotent-Replayed") == "true"
    assert api.get(ENTITY, tenant=tenant).json["last_seq"] == 1


def test_release_of_a_key(api, tenant):
    api.workflow(tenant)
    api.start(tenant, key="held")
    first, second = twice(api, "DELETE", key_path("held"), None, tenant)
    assert first == second and first["key"] == "held"
    # A record that came later under that key is not released by the old request's retry.
    api.start(tenant, key="held")
    assert api.delete(key_path("held"), key="again", tenant=tenant).header("Idempotent-Replayed") == "true"
    assert record(api, tenant, "held") is not None


def test_a_read_with_a_used_key_is_just_a_read(api, tenant):
    api.workflow(tenant)
    run = api.start(tenant, key="k").json["run_id"]
    r = api.get(f"/api/v1/runs/{run}", key="k", tenant=tenant)
    assert r.status == 200 and r.header("Idempotent-Replayed") is None
