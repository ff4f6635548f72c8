"""Who may do what: keys, roles, tenants. Every refusal is distinct: 401 who are you, 403 you may not, 404 not yours."""
import json
import re
import threading

import pytest

import harness
import openapi
import rawhttp
from checks import assert_problem
from harness import wait_until
from nodes import each_node
from prometheus import metrics, parse
from stores import SEVERAL_NODES

ROOT = harness.ROOT_KEY
ROLES = ["viewer", "worker", "approver", "operator", "admin"]
SOME_ID = "0190b3c4-0000-7000-8000-000000000000"


@pytest.fixture(scope="module")
def locked():
    """A server that asks for keys, and its first administrator."""
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": ROOT}) as s:
        yield s


@pytest.fixture
def root(locked):
    return locked.client(headers={"Authorization": f"Bearer {ROOT}"})


def make_key(root, tenant, role, **more):
    r = root.post("/api/v1/keys", {"tenant": tenant, "role": role, **more})
    assert r.status == 200, r
    return r.json


@pytest.fixture
def holder(locked, root):
    """holder(tenant, role): a client with a new key of that tenant and role."""
    return lambda tenant, role: locked.client(headers={"Authorization": "Bearer " + make_key(root, tenant, role)["key"]})


# --- 401 ---

@pytest.mark.parametrize("headers", [
    {}, {"Authorization": ""}, {"Authorization": "Bearer"}, {"Authorization": "Bearer "}, {"Authorization": "Bearer pawl_nope"},
    {"Authorization": "Basic dXNlcjpwYXNz"}, {"Authorization": ROOT}, {"Authorization": "Bearer " + "x" * 2000}, {"X-API-Key": ""},
    {"X-API-Key": "pawl_0123456789_" + "0" * 40}, {"X-API-Key": ROOT + "x"}, {"X-Tenant-ID": "default"}, {"X-Actor": "admin"},
])
def test_without_a_valid_key_everything_is_401(locked, headers):
    for method, path in (("GET", "/api/v1/runs"), ("POST", "/api/v1/workflows/x/runs"), ("GET", "/api/v1/keys")):
        r = locked.client().call(method, path, {} if method == "POST" else None, headers=headers)
        assert_problem(r, 401, "UNAUTHENTICATED", retryable=False)
        assert r.header("WWW-Authenticate").startswith("Bearer")


def test_two_keys_in_one_request_are_400(locked):
    r = rawhttp.exchange(locked.port, rawhttp.request("GET", "/api/v1/runs", headers=[f"X-API-Key: {ROOT}", f"X-API-Key: {ROOT}"]))
    assert_problem(r, 400, "BAD_REQUEST")


def test_what_tells_about_the_server_itself_is_open(locked):
    for path in ("/healthz", "/readyz", "/openapi.json", "/console/"):
        assert locked.client().get(path).status == 200, path


def test_an_unknown_path_tells_nothing_about_keys(locked):
    assert_problem(locked.client().get("/api/v1/nothing"), 404, "NOT_FOUND")


def test_both_headers_and_any_case_of_bearer_are_taken(locked, root):
    key = make_key(root, "heads", "viewer")["key"]
    for headers in ({"Authorization": f"Bearer {key}"}, {"Authorization": f"bearer   {key} "}, {"X-API-Key": key}, {"x-api-key": f" {key} "}):
        assert locked.client().get("/api/v1/runs", headers=headers).status == 200, headers


def test_a_key_with_one_wrong_letter_is_401(locked, root):
    key = make_key(root, "letters", "viewer")["key"]
    wrong = key[:-1] + ("A" if key[-1] != "A" else "B")
    assert_problem(locked.client().get("/api/v1/runs", headers={"X-API-Key": wrong}), 401)
    assert_problem(locked.client().get("/api/v1/runs", headers={"X-API-Key": key[:-1]}), 401)


def test_a_revoked_key_is_401_at_once(locked, root):
    made = make_key(root, "gone", "viewer")
    client = locked.client(headers={"X-API-Key": made["key"]})
    for _ in range(20):  # known to the cache by now, on a connection that stays
        assert client.get("/api/v1/runs").status == 200
    revoke(root, made)
    assert_problem(client.get("/api/v1/runs"), 401)
    record = [k for k in root.get("/api/v1/keys?limit=200", tenant="gone").json["items"] if k["id"] == made["id"]][0]
    assert record["revoked_at"] is not None


def test_other_keys_outlive_a_revocation(locked, root, holder):
    stays = holder("stays", "viewer")
    root.delete(f"/api/v1/keys/{make_key(root, 'stays', 'viewer')['id']}")
    assert stays.get("/api/v1/runs").status == 200


def waiting(root):
    """Requests that wait at the server."""
    return sum(value for (name, _), value in parse(metrics(root)).items() if name == "pawl_requests_waiting")


def revoke(root, made):
    """At every node, of which the others hear a moment after it is answered."""
    assert root.delete(f"/api/v1/keys/{made['id']}").json["revoked"] is True
    for node in each_node(root) if SEVERAL_NODES else []:
        client = harness.Client(node.port, {"X-API-Key": made["key"]})
        wait_until(lambda: client.get("/api/v1/runs").status == 401, "the node knows")


def revoked_while(locked, root, role, ask):
    """What `ask` answers whose key is revoked while it waits."""
    made = make_key(root, "waits", role)
    client, got, before = locked.client(headers={"X-API-Key": made["key"]}), [], waiting(root)
    asking = threading.Thread(target=lambda: got.append(ask(client)))
    asking.start()
    harness.wait_until(lambda: waiting(root) > before, "the request waits")
    revoke(root, made)
    return asking, got


def test_a_start_that_waits_is_told_nothing_once_its_key_is_revoked(locked, root):
    root.put("/api/v1/tenants/waits", {})
    root.workflow("waits")
    asking, got = revoked_while(locked, root, "operator", lambda c: c.post("/api/v1/workflows/hold/runs?wait_ms=60000", {"input": 1}, key="kept"))
    assert root.work("waits")
    asking.join()
    assert_problem(got[0], 401, "UNAUTHENTICATED")
    assert root.start("waits", body={"input": 1}, key="kept").json["created"] is False  # it was made while the key held


def test_a_waiting_claim_gets_no_job_once_its_key_is_revoked(locked, root):
    """And the job goes to the next one that waits, at once."""
    root.put("/api/v1/tenants/waits", {})
    root.workflow("waits", "claimed", [{"name": "a", "type": "task", "handler": "h", "queue": "claimed"}])
    claim = {"worker_id": "w", "queues": ["claimed"], "wait_ms": 30000, "lease_ms": 600000}
    asking, got = revoked_while(locked, root, "worker", lambda c: c.post("/api/v1/jobs/claim", claim))
    assert root.start("waits", "claimed").status == 200
    assert len(root.post("/api/v1/jobs/claim", claim, tenant="waits").json["jobs"]) == 1
    asking.join()
    assert_problem(got[0], 401, "UNAUTHENTICATED")


# --- roles ---

# An admin is one of its tenant; only one whose key is for all tenants rules the server.
ADMIN, RUN, WORK, READ = {"admin"}, {"admin", "operator"}, {"admin", "operator", "worker"}, set(ROLES)
DECIDE, SERVER = {"admin", "operator", "approver"}, set()
MATRIX = [
    ("POST", "/api/v1/workflows/{}/runs", RUN), ("POST", "/api/v1/workflow-runs", RUN), ("POST", "/api/v1/runs/{}/cancel", RUN),
    ("POST", "/api/v1/runs/{}/pause", RUN), ("POST", "/api/v1/runs/{}/resume", RUN), ("POST", "/api/v1/runs/{}/retry", RUN),
    ("POST", "/api/v1/runs/{}/rerun", RUN), ("POST", "/api/v1/runs/{}/signals", RUN), ("POST", "/api/v1/runs:bulk", RUN),
    ("PUT", "/api/v1/workflows/{}", RUN), ("DELETE", "/api/v1/workflows/{}", RUN),
    ("POST", "/api/v1/jobs/claim", WORK), ("POST", "/api/v1/jobs/{}/complete", WORK), ("POST", "/api/v1/jobs/{}/fail", WORK),
    ("POST", "/api/v1/jobs/{}/heartbeat", WORK), ("POST", "/api/v1/jobs/{}/checkpoints", WORK), ("POST", "/api/v1/jobs/{}/suspend", WORK),
    ("POST", "/api/v1/jobs/{}/release", WORK), ("POST", "/api/v1/jobs:complete", WORK),
    ("POST", "/api/v1/jobs/{}/claim", WORK), ("GET", "/api/v1/outbox", SERVER), ("POST", "/api/v1/outbox/{}/retry", SERVER),
    ("GET", "/api/v1/dead-letters", READ), ("POST", "/api/v1/dead-letters/{}/retry", RUN), ("DELETE", "/api/v1/dead-letters/{}", RUN),
    ("GET", "/api/v1/schedules", READ), ("GET", "/api/v1/schedules/{}", READ), ("PUT", "/api/v1/schedules/{}", RUN),
    ("DELETE", "/api/v1/schedules/{}", RUN), ("POST", "/api/v1/schedules/{}/trigger", RUN),
    ("GET", "/api/v1/entity-types", READ), ("PUT", "/api/v1/entity-types/{}", RUN), ("GET", "/api/v1/entity-types/{}", READ),
    ("GET", "/api/v1/entity-types/{}/stats", READ), ("POST", "/api/v1/entities/{}/{}/signals", RUN), ("POST", "/api/v1/entities/{}/{}/updates", RUN),
    ("GET", "/api/v1/entities/{}/{}/updates/{}", READ), ("GET", "/api/v1/entities/{}/{}/events", READ),
    ("GET", "/api/v1/entities/{}/{}/inbox", READ), ("GET", "/api/v1/entities/{}/{}/generations", READ), ("POST", "/api/v1/entities/{}/{}/migrate", RUN), ("GET", "/api/v1/entities/{}/{}", READ),
    ("DELETE", "/api/v1/entities/{}/{}", RUN), ("GET", "/api/v1/entities/{}", READ),
    ("POST", "/api/v1/webhooks", RUN), ("GET", "/api/v1/webhooks", RUN), ("GET", "/api/v1/webhooks/{}", RUN), ("PUT", "/api/v1/webhooks/{}", RUN),
    ("DELETE", "/api/v1/webhooks/{}", RUN), ("POST", "/api/v1/webhooks/{}/rotate", RUN), ("POST", "/api/v1/webhooks/{}/test", RUN),
    ("GET", "/api/v1/webhooks/{}/deliveries", RUN), ("POST", "/api/v1/webhooks/{}/deliveries/{}/redeliver", RUN),
    ("GET", "/api/v1/runs", READ), ("GET", "/api/v1/runs/{}", READ), ("GET", "/api/v1/runs/{}/events", READ), ("GET", "/api/v1/runs/{}/why", READ),
    ("GET", "/api/v1/jobs/{}", READ), ("GET", "/api/v1/queues", READ), ("GET", "/api/v1/workers", READ),
    ("GET", "/api/v1/approvals", READ), ("GET", "/api/v1/approvals/analytics", READ), ("GET", "/api/v1/approvals/{}", READ),
    ("POST", "/api/v1/approvals/{}/approve", DECIDE), ("POST", "/api/v1/approvals/{}/reject", DECIDE),
    ("GET", "/api/v1/workflows", READ), ("GET", "/api/v1/workflows/{}", READ), ("GET", "/api/v1/workflows/{}/versions", READ),
    ("POST", "/api/v1/workflows/{}/validate", READ), ("GET", "/api/v1/idempotency-keys/{}", READ),
    ("DELETE", "/api/v1/idempotency-keys/{}", ADMIN), ("GET", "/api/v1/tenants", SERVER), ("PUT", "/api/v1/tenants/{}", SERVER),
    ("GET", "/api/v1/tenants/{}", ADMIN), ("POST", "/api/v1/keys", ADMIN), ("GET", "/api/v1/keys", ADMIN), ("DELETE", "/api/v1/keys/{}", ADMIN),
    ("GET", "/api/v1/tenants/{}/settings", ADMIN), ("POST", "/api/v1/tenants/{}/rollback", SERVER),
    ("GET", "/api/v1/stats", READ), ("GET", "/api/v1/admission", READ),
    ("GET", "/api/v1/me", READ), ("DELETE", "/api/v1/sessions", READ),
    ("GET", "/api/v1/events", READ), ("GET", "/api/v1/audit", ADMIN), ("GET", "/api/v1/audit/verify", ADMIN), ("GET", "/api/v1/audit/export", ADMIN),
    ("GET", "/api/v1/doctor", SERVER), ("POST", "/api/v1/doctor/repair", SERVER), ("GET", "/api/v1/backup", SERVER), ("GET", "/api/v1/cluster", SERVER),
]


def test_the_matrix_covers_every_route_that_needs_a_key():
    closed = {(r["method"], r["path"]) for r in openapi.route_table()["routes"] if not r["open"] and r["path"] != "/metrics"}  # see test_metrics_access.py
    assert closed == {(method, path) for method, path, _ in MATRIX}


def try_route(client, method, path, **kw):
    query = "?after=none" if path == "/api/v1/events" else ""  # a stream would not end
    return client.call(method, path.replace("{}", SOME_ID) + query, {} if method in ("POST", "PUT") else None, **kw)


def test_an_admin_of_all_tenants_may_everything(root, holder):
    root.put("/api/v1/tenants/matrix", {})
    client = holder("*", "admin")
    for method, path, _ in MATRIX:
        r = try_route(client, method, path, tenant="matrix")
        assert r.status < 500 and r.status not in (401, 403), (method, path, r)


def test_a_worker_of_all_tenants_rules_none_of_them(holder):
    client = holder("*", "worker")
    for method, path, roles in MATRIX:
        if "worker" not in roles and path != "/metrics":  # any key for all tenants may read those
            assert_problem(try_route(client, method, path, tenant="matrix"), 403, "FORBIDDEN")


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_what_the_matrix_says(holder, role):
    """Allowed requests get past the role: whatever they meet then (200, 400, 404), it is no 403."""
    client = holder("matrix", role)
    wrong = []
    for method, path, roles in MATRIX:
        r = try_route(client, method, path)
        assert r.status < 500 and r.status != 401, (method, path, r)
        if (r.status != 403) != (role in roles):
            wrong.append((method, path, r))
        elif r.status == 403:
            assert_problem(r, 403, "FORBIDDEN")
    assert not wrong, wrong


# --- tenants ---

@pytest.fixture(scope="module")
def another_tenants(locked):
    """What tenant `theirs` has, by the path that shows it."""
    root = locked.client(headers={"Authorization": f"Bearer {ROOT}"})
    root.put("/api/v1/tenants/theirs", {})
    root.workflow("theirs", "secret")
    run = root.start("theirs", "secret", key="their-key").json["run_id"]
    root.start("theirs", "secret", body={"input": 2})
    job = root.post("/api/v1/jobs/claim", {"worker_id": "w"}, tenant="theirs").json["jobs"][0]
    assert root.put("/api/v1/schedules/nightly", {"workflow_id": "secret", "cron": "0 3 * * *"}, tenant="theirs").status == 200
    return {"run": run, "job": job, "workflow": "secret", "key": "their-key"}


@pytest.mark.parametrize("role", ["operator", "admin"])
def test_another_tenants_things_are_404(holder, another_tenants, role):
    have, client = another_tenants, holder("mine", role)
    job, token = have["job"]["job_id"], have["job"]["lease_token"]
    for method, path, body, code in [
        ("GET", f"/api/v1/runs/{have['run']}", None, "RUN_NOT_FOUND"),
        ("GET", f"/api/v1/runs/{have['run']}/events", None, "RUN_NOT_FOUND"),
        ("GET", f"/api/v1/runs/{have['run']}/why", None, "RUN_NOT_FOUND"),
        *(("POST", f"/api/v1/runs/{have['run']}/{action}", {}, "RUN_NOT_FOUND") for action in ("cancel", "pause", "resume", "retry")),
        ("POST", f"/api/v1/runs/{have['run']}/rerun", {"from_step": "step"}, "RUN_NOT_FOUND"),
        ("POST", f"/api/v1/runs/{have['run']}/signals", {"name": "s"}, "RUN_NOT_FOUND"),
        ("GET", "/api/v1/workflows/secret", None, "WORKFLOW_NOT_FOUND"),
        ("GET", "/api/v1/workflows/secret/versions", None, "WORKFLOW_NOT_FOUND"),
        ("DELETE", "/api/v1/workflows/secret", None, "WORKFLOW_NOT_FOUND"),
        ("POST", "/api/v1/workflows/secret/runs", {}, "WORKFLOW_NOT_FOUND"),
        ("POST", "/api/v1/workflow-runs", {"definitionId": "secret"}, "WORKFLOW_NOT_FOUND"),
        ("GET", f"/api/v1/jobs/{job}", None, "JOB_NOT_FOUND"),
        ("POST", f"/api/v1/jobs/{job}/complete", {"lease_token": token}, "JOB_NOT_FOUND"),
        ("POST", f"/api/v1/jobs/{job}/fail", {"lease_token": token, "error": {"code": "X"}}, "JOB_NOT_FOUND"),
        ("POST", f"/api/v1/jobs/{job}/heartbeat", {"lease_token": token}, "JOB_NOT_FOUND"),
        ("POST", f"/api/v1/jobs/{job}/checkpoints", {"lease_token": token, "name": "a"}, "JOB_NOT_FOUND"),
        ("POST", f"/api/v1/jobs/{job}/suspend", {"lease_token": token, "signal": "a"}, "JOB_NOT_FOUND"),
        ("POST", f"/api/v1/jobs/{job}/release", {"lease_token": token}, "JOB_NOT_FOUND"),
        ("POST", f"/api/v1/dead-letters/{job}/retry", {}, "JOB_NOT_FOUND"),
        ("DELETE", f"/api/v1/dead-letters/{job}", None, "JOB_NOT_FOUND"),
        ("GET", "/api/v1/schedules/nightly", None, "SCHEDULE_NOT_FOUND"),
        ("GET", "/api/v1/idempotency-keys/their-key", None, "IDEMPOTENCY_KEY_NOT_FOUND"),
    ]:
        assert_problem(client.call(method, path, body), 404, code)
    assert client.get("/api/v1/runs").json["items"] == client.get("/api/v1/workflows").json["items"] == []
    assert client.post("/api/v1/jobs/claim", {"worker_id": "w"}).json["jobs"] == []


def test_nothing_of_theirs_was_harmed(root, another_tenants):
    run = root.get(f"/api/v1/runs/{another_tenants['run']}", tenant="theirs").json
    assert run["status"] == "running" and run["steps"][0]["status"] == "running"


def test_the_same_key_in_two_tenants_names_two_requests(holder, another_tenants):
    mine = holder("key-twin", "operator")
    mine.workflow(None, "secret")
    r = mine.start(None, "secret", key="their-key")
    assert r.status == 200 and r.json["created"] is True and r.json["run_id"] != another_tenants["run"]


def test_another_tenants_api_key_is_404(root, holder):
    made = make_key(root, "theirs", "viewer")
    admin = holder("mine", "admin")
    assert made["id"] not in [k["id"] for k in admin.get("/api/v1/keys?limit=200").json["items"]]
    assert_problem(admin.delete(f"/api/v1/keys/{made['id']}"), 404, "NOT_FOUND")


@pytest.mark.parametrize("role", ROLES)
def test_another_tenants_name_in_x_tenant_id_is_403_on_every_route(holder, another_tenants, role):
    client = holder("mine", role)
    for method, path, _ in MATRIX:
        for name in ("theirs", "*", "unheard-of"):
            assert_problem(try_route(client, method, path, tenant=name), 403, "FORBIDDEN")
    assert client.get("/api/v1/runs", tenant="mine").status == 200


# --- administrators of one tenant ---

def test_a_tenants_admin_sees_its_settings_and_no_others(holder, another_tenants):
    admin = holder("mine", "admin")
    assert admin.get("/api/v1/tenants/mine").json["id"] == "mine"
    assert admin.get("/api/v1/tenants/mine/settings").status == 200
    for path in ("/api/v1/tenants/{}", "/api/v1/tenants/{}/settings"):
        theirs, nobodys = admin.get(path.format("theirs")), admin.get(path.format("unheard-of"))
        assert_problem(theirs, 404, "TENANT_NOT_FOUND")
        assert theirs.json["detail"] == nobodys.json["detail"].replace("unheard-of", "theirs")


def test_a_tenants_admin_cannot_raise_its_own_limits(root, holder):
    root.put("/api/v1/tenants/bounded", {"max_concurrent_runs": 5})
    root.put("/api/v1/tenants/bounded", {"max_concurrent_runs": 1})
    admin = holder("bounded", "admin")
    assert_problem(admin.put("/api/v1/tenants/bounded", {"max_concurrent_runs": 100}), 403, "FORBIDDEN")
    assert_problem(admin.post("/api/v1/tenants/bounded/rollback", {}), 403, "FORBIDDEN")
    assert admin.get("/api/v1/tenants/bounded").json["max_concurrent_runs"] == 1


def test_a_tenants_admin_makes_and_revokes_keys_of_its_tenant_only(locked, root, holder):
    admin = holder("mine", "admin")
    for role in ROLES:
        made = admin.post("/api/v1/keys", {"role": role}).json
        assert made["tenant"] == "mine" and made["role"] == role
        assert locked.client(headers={"X-API-Key": made["key"]}).get("/api/v1/runs").status == 200
        assert admin.delete(f"/api/v1/keys/{made['id']}").json["revoked"] is True
    before = len(root.get("/api/v1/keys?limit=200").json["items"])
    for tenant in ("theirs", "*", "made-by-nobody"):
        assert_problem(admin.post("/api/v1/keys", {"tenant": tenant, "role": "admin"}), 403, "FORBIDDEN")
    assert len(root.get("/api/v1/keys?limit=200").json["items"]) == before
    assert_problem(root.get("/api/v1/tenants/made-by-nobody"), 404, "TENANT_NOT_FOUND")
    assert_problem(admin.delete(f"/api/v1/keys/{make_key(root, '*', 'admin')['id']}"), 404, "NOT_FOUND")


def test_a_tenants_admin_reads_its_own_audit_trail_only(root, holder):
    root.put("/api/v1/tenants/audited", {"max_concurrent_runs": 3})
    admin = holder("audited", "admin")
    assert {e["tenant"] for e in admin.get("/api/v1/audit").json["items"]} == {"audited"}
    assert {json.loads(line)["tenant"] for line in admin.get("/api/v1/audit/export").raw.splitlines()} == {"audited"}
    assert admin.get("/api/v1/audit/verify").json["ok"] is True


def test_an_admin_of_all_tenants_acts_on_the_one_it_names(holder, another_tenants):
    admin = holder("*", "admin")
    assert admin.get(f"/api/v1/runs/{another_tenants['run']}", tenant="theirs").json["id"] == another_tenants["run"]
    assert admin.put("/api/v1/tenants/fresh", {"name": "Fresh"}).json["name"] == "Fresh"
    admin.workflow("fresh")
    assert admin.start("fresh").status == 200
    assert_problem(admin.get("/api/v1/runs", tenant="unheard-of"), 404, "TENANT_NOT_FOUND")


@pytest.mark.parametrize("bad", ["", "a b", "a/b", "ä", "a" * 65, "a,b", "<x>"])
def test_a_bad_tenant_name_is_400(api, root, bad):
    for client in (api, root):
        assert_problem(client.get("/api/v1/runs", headers={"X-Tenant-ID": bad.encode()}), 400, "BAD_REQUEST")


def test_two_tenant_headers_are_400(dev_server):
    r = rawhttp.exchange(dev_server.port, rawhttp.request("GET", "/api/v1/runs", headers=["X-Tenant-ID: a", "X-Tenant-ID: b"]))
    assert_problem(r, 400, "BAD_REQUEST")


@pytest.mark.parametrize("bad", [b"x" * 129, b"\xff\xfe", b"a\x7fb"])
def test_a_bad_actor_is_400(api, tenant, bad):
    assert_problem(api.get("/api/v1/runs", tenant=tenant, headers={"X-Actor": bad}), 400, "BAD_REQUEST")


def test_the_actor_is_written_down(api, tenant, root, holder):
    api.workflow(tenant)
    assert api.start(tenant, headers={"X-Actor": "Ada Lövelace".encode()}).json["run"]["created_by"] == "Ada Lövelace"
    assert api.start(tenant).json["run"]["created_by"] == "dev"
    client = holder("actors", "operator")  # with keys, the key says who it is
    client.workflow(None)
    run = client.start(None, headers={"X-Actor": "somebody else"}).json["run"]
    assert run["created_by"].startswith("key:pawl_")
