"""Keys from their making to their end: shown once, kept as hashes, made before the first start; workers of all tenants; --dev."""
import pathlib
import re

import pytest

import harness
import stores
from checks import assert_problem
from cli import pawl
from inspect_store import contents

ROOT = harness.ROOT_KEY


@pytest.fixture
def folder(tmp_path):
    return tmp_path


@pytest.fixture(scope="module")
def locked():
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": ROOT}) as s:
        yield s


@pytest.fixture
def root(locked):
    return locked.client(headers={"X-API-Key": ROOT})


def bytes_of(folder):
    """Everything in the folder, as bytes by name."""
    return {p.name: p.read_bytes() for p in pathlib.Path(folder).rglob("*") if p.is_file()}


# --- the secret ---

def test_a_new_key_has_its_form_and_is_shown_once(root):
    made = root.post("/api/v1/keys", {"tenant": "form", "role": "viewer", "label": "for Ada"}, key="make-1")
    assert made.status == 200
    assert re.fullmatch(r"pawl_[0-9A-Z]{10}_[0-9A-Z]{40}", made.json["key"])
    assert made.json["key"].startswith(made.json["prefix"]) and made.json["label"] == "for Ada"
    listed = [k for k in root.get("/api/v1/keys?limit=200", tenant="form").json["items"] if k["id"] == made.json["id"]][0]
    assert "key" not in listed and listed["prefix"] == made.json["prefix"] and listed["revoked_at"] is None
    again = root.post("/api/v1/keys", {"tenant": "form", "role": "viewer", "label": "for Ada"}, key="make-1")
    assert again.header("Idempotent-Replayed") == "true" and again.json["id"] == made.json["id"] and "key" not in again.json


def test_the_secret_is_nowhere_on_disk(folder):
    with harness.server("--log-level", "debug", dev=False, env={"PAWL_ROOT_KEY": ROOT}) as s:
        root = s.client(headers={"X-API-Key": ROOT})
        key = root.post("/api/v1/keys", {"tenant": "t", "role": "operator"}, key="k").json["key"]
        client = s.client(headers={"Authorization": f"Bearer {key}"})
        client.workflow(None)
        assert client.start(None).status == 200
        live = {**bytes_of(s.folder), **contents(s.db)}
        assert s.stop() == 0
        at_rest = {**bytes_of(s.folder), **contents(s.db)}
    secret = key.rsplit("_", 1)[1].encode()
    for files in (live, at_rest):
        assert any(key.rsplit("_", 1)[0].encode() in data for data in files.values()), "the prefix is kept, so the search works"
        assert not [name for name, data in files.items() if secret in data or ROOT.encode() in data]


def test_the_root_key_is_not_among_the_keys(root):
    assert all(k["prefix"].startswith("pawl_") for k in root.get("/api/v1/keys?limit=200").json["items"])


def test_the_last_use_is_noted(root, locked):
    made = root.post("/api/v1/keys", {"tenant": "used", "role": "viewer"}).json
    assert made["last_used_at"] is None
    assert locked.client(headers={"X-API-Key": made["key"]}).get("/api/v1/runs").status == 200

    def noted():
        return [k for k in root.get("/api/v1/keys?limit=200", tenant="used").json["items"] if k["id"] == made["id"]][0]["last_used_at"]

    harness.wait_until(noted, "last_used_at is there")


@pytest.mark.parametrize("body", [
    {}, {"role": "king"}, {"role": "viewer", "tenant": "a b"}, {"role": "approver", "tenant": "*"}, {"role": "operator", "tenant": "*"},
    {"role": "viewer", "label": "x" * 2000}, {"role": 1}, {"role": "viewer", "tenant": 5},
])
def test_a_key_that_cannot_be_is_400(root, body):
    assert_problem(root.post("/api/v1/keys", body), 400, "FIELD_INVALID")


def test_revoking_what_is_not_there_is_404(root):
    assert_problem(root.delete("/api/v1/keys/0190b3c4-0000-7000-8000-000000000000"), 404, "NOT_FOUND")
    assert_problem(root.delete("/api/v1/keys/nonsense"), 404, "NOT_FOUND")


def test_keys_are_listed_in_pages(root):
    made = {root.post("/api/v1/keys", {"tenant": "pages", "role": "viewer"}).json["id"] for _ in range(7)}
    seen, path = [], "/api/v1/keys?limit=3"
    while path:
        page = root.get(path, tenant="pages")
        seen += [k["id"] for k in page.json["items"]]
        cursor = page.json["next_cursor"]
        path = cursor and f"/api/v1/keys?limit=3&cursor={cursor}"
    assert len(seen) == 7 and set(seen) == made


# --- workers of all tenants ---

def test_a_worker_of_all_tenants_is_fair(root, locked):
    """One tenant has 50 jobs waiting, the other brings one: it is among the next few."""
    for tenant in ("many", "few"):
        root.put(f"/api/v1/tenants/{tenant}", {})
        root.workflow(tenant, steps=[{"name": "work", "type": "task", "handler": "noop", "queue": "fair"}])
    for _ in range(50):
        assert root.start("many").status == 200
    key = root.post("/api/v1/keys", {"tenant": "*", "role": "worker"}).json["key"]
    worker = locked.client(headers={"X-API-Key": key})

    def claim(n):
        return worker.post("/api/v1/jobs/claim", {"worker_id": "w", "queues": ["fair"], "max": n}).json["jobs"]

    assert [j["tenant"] for j in claim(5)] == ["many"] * 5
    run = root.start("few").json["run_id"]
    jobs = claim(3)
    assert run in [j["run_id"] for j in jobs], "behind at most one job of the other tenant"
    job = next(j for j in jobs if j["tenant"] == "few")
    done = worker.post(f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": job["lease_token"], "output": {"ok": True}})
    assert done.status == 200 and done.json["run_status"] == "succeeded"
    assert worker.get(f"/api/v1/jobs/{job['job_id']}").json["state"] == "succeeded"


def test_two_backlogs_are_served_in_turn(root, locked):
    for tenant in ("left", "right"):
        root.put(f"/api/v1/tenants/{tenant}", {})
        root.workflow(tenant, steps=[{"name": "work", "type": "task", "handler": "noop", "queue": "turns"}])
        for _ in range(10):
            root.start(tenant)
    worker = locked.client(headers={"X-API-Key": root.post("/api/v1/keys", {"tenant": "*", "role": "worker"}).json["key"]})
    got = []
    for size in (1, 3, 6, 10):  # in small claims and large ones
        got += [j["tenant"] for j in worker.post("/api/v1/jobs/claim", {"worker_id": "w", "queues": ["turns"], "max": size}).json["jobs"]]
        assert abs(got.count("left") - got.count("right")) <= 1, got
    assert len(got) == 20


def test_a_worker_of_all_tenants_may_narrow_down_to_one_and_no_more(root, locked):
    for tenant in ("one", "two"):
        root.put(f"/api/v1/tenants/{tenant}", {})
        root.workflow(tenant, steps=[{"name": "work", "type": "task", "handler": "noop", "queue": "narrow"}])
        root.start(tenant)
    worker = locked.client(headers={"X-API-Key": root.post("/api/v1/keys", {"tenant": "*", "role": "worker"}).json["key"]})
    jobs = worker.post("/api/v1/jobs/claim", {"worker_id": "w", "queues": ["narrow"], "max": 9}, tenant="two").json["jobs"]
    assert [j["tenant"] for j in jobs] == ["two"]
    assert_problem(worker.get("/api/v1/runs"), 400, "BAD_REQUEST")  # whose?
    assert worker.get("/api/v1/runs", tenant="one").status == 200
    assert_problem(worker.post("/api/v1/workflows/hold/runs", {}, tenant="one"), 403, "FORBIDDEN")
    assert_problem(worker.get("/api/v1/keys"), 403, "FORBIDDEN")


def test_with_dev_a_star_serves_all_tenants(api):
    tenants = [api.tenant(), api.tenant()]
    for tenant in tenants:
        api.workflow(tenant, steps=[{"name": "work", "type": "task", "handler": "noop", "queue": "dev-star"}])
        api.start(tenant)
    jobs = api.post("/api/v1/jobs/claim", {"worker_id": "w", "queues": ["dev-star"], "max": 9}, tenant="*").json["jobs"]
    assert sorted(j["tenant"] for j in jobs) == sorted(tenants)


# --- the command line, on the file itself ---

def test_keys_are_made_before_the_first_start(folder):
    store = harness.stores.url(folder / "pawl.db")
    made = pawl("key", "create", "--store", store, "--tenant", "acme", "--role", "operator", "--label", "first")
    assert made.code == 0 and re.fullmatch(r"pawl_\w+\n", made.out), made
    gone = pawl("key", "create", "--store", store, "--tenant", "acme", "--role", "viewer", "--json").json
    listed = pawl("key", "list", "--store", store, "--json").json["items"]
    assert {k["role"] for k in listed} == {"operator", "viewer"} and all("key" not in k for k in listed)
    assert pawl("key", "revoke", gone["id"], "--store", store).code == 0
    server = harness.Server(folder, dev=False).start()
    try:
        client = server.client(headers={"X-API-Key": made.out.strip()})
        client.workflow(None)
        assert client.start(None).status == 200
        assert_problem(server.client(headers={"X-API-Key": gone["key"]}).get("/api/v1/runs"), 401)
    finally:
        server.close()


def test_a_file_that_a_server_holds_is_refused_with_its_reason(locked):
    for args in (("key", "create", "--role", "viewer"), ("key", "list"), ("key", "revoke", "0190b3c4-0000-7000-8000-000000000000")):
        r = pawl(*args, "--store", locked.store)
        assert r.code == 1 and "in use by another pawl" in r.err and r.out == "", r
        assert stores.POSTGRES or str(locked.process.pid) in r.err, r


# --- development mode ---

@pytest.mark.parametrize("listen", ["0.0.0.0:0", ":0", "[::]:0"])
def test_dev_is_refused_where_others_could_reach_it(folder, listen):
    r = pawl("serve", "--dev", "--listen", listen, cwd=folder)
    assert r.code == 2 and "--dev" in r.err and "--dev-insecure" in r.err, r
    assert not list(folder.iterdir()), "refused before anything was made"


def test_dev_insecure_says_that_it_is_meant(folder):
    server = harness.Server(folder, "--dev-insecure", "--listen", "0.0.0.0:0").start()
    try:
        assert server.client().get("/api/v1/runs").status == 200
    finally:
        server.close()


def test_dev_makes_a_tenant_on_first_use(dev_server):
    client = dev_server.client()
    assert client.get("/api/v1/runs", tenant="never-seen-before").json["items"] == []
    assert_problem(client.get("/api/v1/tenants/never-seen-before"), 404, "TENANT_NOT_FOUND")  # reading makes nothing
    client.workflow("never-seen-before")
    assert client.get("/api/v1/tenants/never-seen-before").json["id"] == "never-seen-before"
    assert client.get("/api/v1/runs").status == 200  # no header: the tenant `default`


def test_a_key_is_not_looked_at_with_dev(dev_server):
    assert dev_server.client(headers={"Authorization": "Bearer nonsense"}).get("/api/v1/runs").status == 200
