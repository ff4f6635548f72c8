"""GET /api/v1/me: who the caller is, and what it may do."""
import pytest

import harness
from checks import assert_problem

ALLOWED = {"viewer": ["read"], "worker": ["read", "work"], "approver": ["read", "decide"], "operator": ["read", "run", "work", "decide"],
           "admin": ["read", "run", "work", "decide", "admin"]}


@pytest.fixture(scope="module")
def guarded():
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": harness.ROOT_KEY}) as s:
        yield s


def client_of(server, tenant, role):
    root = server.client(headers={"X-API-Key": harness.ROOT_KEY})
    made = root.post("/api/v1/keys", {"tenant": tenant, "role": role}).json
    return made, server.client(headers={"X-API-Key": made["key"]})


@pytest.mark.parametrize("role", ALLOWED)
def test_a_tenants_key_has_its_role_and_its_tenant(guarded, role):
    made, client = client_of(guarded, "acme", role)
    me = client.get("/api/v1/me").json
    assert me["actor"] == "key:" + made["prefix"] and me["role"] == role and me["may"] == ALLOWED[role]
    assert me["tenant"] == "acme" and me["all_tenants"] is False and me["server"]["dev"] is False
    assert_problem(client.get("/api/v1/me", tenant="other"), 403, "FORBIDDEN")


def test_the_root_key_is_for_all_tenants_until_it_names_one(guarded):
    root = guarded.client(headers={"X-API-Key": harness.ROOT_KEY})
    me = root.get("/api/v1/me").json
    assert me["tenant"] is None and me["all_tenants"] is True and me["may"] == [*ALLOWED["admin"], "rule_server"] and me["actor"] == "root"
    assert root.get("/api/v1/me", tenant="acme").json["tenant"] == "acme"


def test_nobody_is_told_nothing(guarded):
    assert_problem(guarded.client().get("/api/v1/me"), 401, "UNAUTHENTICATED")


def test_with_dev_the_headers_say_it(dev_server):
    me = dev_server.client().get("/api/v1/me", tenant="mine", headers={"X-Actor": "ann"}).json
    assert (me["actor"], me["role"], me["tenant"], me["server"]["dev"]) == ("ann", "admin", "mine", True)
    assert me["server"]["version"] == dev_server.client().get("/healthz").json["version"] and me["server"]["bus"] is None
