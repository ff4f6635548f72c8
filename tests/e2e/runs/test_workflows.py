"""Definitions: stored once per content, versions that never change, faults with a path, archived and brought back."""
import json
import re

import pytest

import harness
from checks import assert_problem
from pages import walk

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def task(name, **more):
    return {"name": name, "type": "task", "handler": "h", **more}


def put(api, tenant, wid, definition):
    r = api.put(f"/api/v1/workflows/{wid}", definition, tenant=tenant)
    assert r.status == 200, r
    return r.json


def contract_example():
    """The definition that the contract shows."""
    return {
        "id": "refund", "description": "…", "input_schema": {}, "timeout_s": 3600,
        "concurrency": {"key": "input.customer_id", "limit": 1, "at_limit": "queue"},
        "steps": [
            {"name": "lookup", "type": "task", "queue": "default", "handler": "orders.lookup", "input": {"id": "${input.order_id}"},
             "retry": {"max_attempts": 3, "backoff_ms": 1000, "multiplier": 2, "max_backoff_ms": 300000, "jitter": "full"}, "timeout_ms": 30000},
            {"name": "ok", "type": "approval", "needs": ["lookup"], "when": "steps.lookup.output.amount > 100",
             "prompt": "Refund ${steps.lookup.output.amount}?", "approvers": {"count": 1, "forbid_requester": True}, "expires_s": 86400},
            {"name": "pay", "type": "task", "needs": ["ok"], "handler": "payments.refund", "compensate": {"handler": "payments.undo"}},
            {"name": "tell", "type": "http", "needs": ["pay"], "request": {"method": "POST", "url": "http://127.0.0.1:9/…", "body": {}}},
        ]}


# --- put and get ---

def test_a_definition_comes_back_as_it_was_put(api, tenant):
    definition = {"id": "w", "description": "ä \"quoted\"", "steps": [task("a", input={"n": 1.5, "big": 9007199254740993, "e": 1e300}), task("b")]}
    assert put(api, tenant, "w", definition) == {"id": "w", "version": 1, "created": True, "warnings": []}
    got = api.get("/api/v1/workflows/w", tenant=tenant).json
    assert got["definition"] == definition and (got["version"], got["latest_version"], got["archived"]) == (1, 1, False)
    assert re.fullmatch("[0-9a-f]{64}", got["digest"]) and RFC3339.fullmatch(got["created_at"]) and got["created_by"] == "dev"


def test_an_equal_definition_makes_no_new_version(api, tenant):
    first = {"description": "d", "steps": [task("a", input={"x": 1, "y": [1, 2]})]}
    assert put(api, tenant, "w", first)["created"] is True
    digest = api.get("/api/v1/workflows/w", tenant=tenant).json["digest"]
    for same in (b'{"steps":[{"input":{"y":[1,2],"x":1},"handler":"h","type":"task","name":"a"}],"description":"d"}',  # another order
                 json.dumps(first, indent=4),                                                                         # other blanks
                 b'{"description":"\\u0064","steps":[{"name":"a","type":"task","handler":"h","input":{"x":1.0,"y":[1e0,2]}}]}'):  # other spellings
        again = put(api, tenant, "w", same)
        assert (again["version"], again["created"]) == (1, False), same
    got = api.get("/api/v1/workflows/w", tenant=tenant).json
    assert got["digest"] == digest and got["latest_version"] == 1


def test_a_changed_definition_is_a_new_version_and_the_old_one_stays(api, tenant):
    for n in range(1, 4):
        assert put(api, tenant, "w", {"description": f"v{n}", "steps": [task("a")]})["version"] == n
    for n in range(1, 4):
        got = api.get(f"/api/v1/workflows/w?version={n}", tenant=tenant).json
        assert (got["version"], got["latest_version"], got["definition"]["description"]) == (n, 3, f"v{n}")
    back = put(api, tenant, "w", {"description": "v1", "steps": [task("a")]})
    assert (back["version"], back["created"]) == (4, True), "equal to an older one is still a change"


def test_puts_of_one_definition_at_once_make_one_version(api, dev_server, tenant):
    results = harness.together(16, lambda i: put(dev_server.client(), tenant, "w", {"steps": [task("a")]}))
    assert [r["version"] for r in results] == [1] * 16 and sum(r["created"] for r in results) == 1


@pytest.mark.parametrize("query,status", [("version=2", 404), ("version=0", 400), ("version=-1", 400), ("version=x", 400), ("version=", 400)])
def test_a_version_that_is_not_there(api, tenant, query, status):
    put(api, tenant, "w", {"steps": [task("a")]})
    assert_problem(api.get(f"/api/v1/workflows/w?{query}", tenant=tenant), status, "WORKFLOW_NOT_FOUND" if status == 404 else "BAD_REQUEST")


def test_what_is_not_there_is_404(api, tenant):
    for method, path in (("GET", ""), ("GET", "/versions"), ("DELETE", "")):
        assert_problem(api.call(method, f"/api/v1/workflows/none{path}", tenant=tenant), 404, "WORKFLOW_NOT_FOUND")
    assert_problem(api.start(tenant, "none"), 404, "WORKFLOW_NOT_FOUND")


@pytest.mark.parametrize("wid", ["a%20b", "%C3%A4", "x" * 129, "a%2Fb", "a%22b"])
def test_a_bad_name_is_400(api, tenant, wid):
    assert_problem(api.put(f"/api/v1/workflows/{wid}", {"steps": [task("a")]}, tenant=tenant), 400, "BAD_REQUEST")


def test_names_may_be_long_and_have_signs(api, tenant):
    for wid in ("x" * 128, "a.b:c-d_e", "0", "ABC"):
        assert put(api, tenant, wid, {"steps": [task("a")]})["id"] == wid
        assert api.get(f"/api/v1/workflows/{wid}", tenant=tenant).json["id"] == wid


# --- lists ---

def test_workflows_are_listed_in_pages_by_name(api, tenant):
    names = sorted(f"w{i:03d}" for i in range(25))
    for name in reversed(names):
        put(api, tenant, name, {"description": name.upper(), "steps": [task("a")]})
    for by in ("cursor", "link"):
        items = walk(api, "/api/v1/workflows?limit=4", tenant, by=by)
        assert [i["id"] for i in items] == names
        assert items[0]["description"] == "W000" and items[0]["version"] == 1 and items[0]["archived"] is False


def test_versions_are_listed_in_pages_newest_first(api, tenant):
    for n in range(13):
        put(api, tenant, "w", {"description": str(n), "steps": [task("a")]})
    items = walk(api, "/api/v1/workflows/w/versions?limit=5", tenant)
    assert [i["version"] for i in items] == list(range(13, 0, -1))
    assert len({i["digest"] for i in items}) == 13


@pytest.mark.parametrize("limit", ["0", "201", "-1", "x", "", "1e2", "99999999999999999999"])
@pytest.mark.parametrize("path", ["/api/v1/workflows", "/api/v1/workflows/w/versions", "/api/v1/tenants", "/api/v1/keys", "/api/v1/runs"])
def test_a_limit_out_of_bounds_is_400(api, tenant, path, limit):
    put(api, tenant, "w", {"steps": [task("a")]})
    assert "limit" in assert_problem(api.get(f"{path}?limit={limit}", tenant=tenant), 400, "BAD_REQUEST")["detail"]


@pytest.mark.parametrize("path", ["/api/v1/workflows/w/versions", "/api/v1/keys", "/api/v1/runs"])
@pytest.mark.parametrize("cursor", ["x", "-1", "", "1.5", "99999999999999999999", "x" * 600])
def test_a_cursor_of_no_list_is_400(api, tenant, path, cursor):
    put(api, tenant, "w", {"steps": [task("a")]})
    assert_problem(api.get(f"{path}?cursor={cursor}", tenant=tenant), 400, "CURSOR_INVALID")


# --- archive ---

def test_an_archived_workflow_starts_nothing_until_it_is_put_again(api, tenant):
    definition = {"steps": [task("a")]}
    put(api, tenant, "w", definition)
    run = api.start(tenant, "w").json["run_id"]
    for _ in range(2):  # twice is once
        gone = api.delete("/api/v1/workflows/w", tenant=tenant)
        assert gone.status == 200 and gone.json["archived"] is True and RFC3339.fullmatch(gone.json["archived_at"])
    assert_problem(api.start(tenant, "w"), 404, "WORKFLOW_NOT_FOUND")
    assert api.get("/api/v1/workflows/w", tenant=tenant).json["archived"] is True
    assert api.work(tenant)["run_id"] == run, "what had begun goes on"
    back = put(api, tenant, "w", definition)
    assert (back["version"], back["created"]) == (1, False), "brought back without a new version"
    assert api.start(tenant, "w").status == 200
    assert api.get("/api/v1/workflows", tenant=tenant).json["items"][0]["archived"] is False


# --- validate ---

FAULTS = [
    ("cycle", [task("a", needs=["c"]), task("b", needs=["a"]), task("c", needs=["b"])], ["/steps/0/needs"]),
    ("needs_itself", [task("a", needs=["a"])], ["/steps/0/needs/0"]),
    ("duplicate_name", [task("a"), task("b"), task("a")], ["/steps/2/name"]),
    ("unknown_type", [{"name": "a", "type": "dance"}], ["/steps/0/type"]),
    ("unknown_need", [task("a"), task("b", needs=["a", "zz"])], ["/steps/1/needs/1"]),
    ("need_twice", [task("a"), task("b", needs=["a", "a"])], ["/steps/1/needs/1"]),
    ("unknown_member", [task("a", colour="blue")], ["/steps/0/colour"]),
    ("bad_name", [task("a b")], ["/steps/0/name"]),
    ("no_name_no_handler", [{"type": "task"}], ["/steps/0", "/steps/0"]),
    ("sleep_without_time", [{"name": "s", "type": "sleep"}], ["/steps/0"]),
    ("sleep_negative", [{"name": "s", "type": "sleep", "duration_ms": -1}], ["/steps/0/duration_ms"]),
    ("no_steps", [], ["/steps"]),
    ("steps_of_another_type", "all of them", ["/steps"]),
    ("too_many_steps", [task(f"s{i}") for i in range(501)], ["/steps"]),
    ("several_at_once", [task("a", needs=["x"]), {"name": "b", "type": "dance"}, task("a")], ["/steps/0/needs/0", "/steps/1/type", "/steps/2/name"]),
]


@pytest.mark.parametrize("steps,paths", [pytest.param(s, p, id=name) for name, s, p in FAULTS])
def test_every_fault_is_told_with_its_path(api, tenant, steps, paths):
    said = api.post("/api/v1/workflows/w/validate", {"steps": steps}, tenant=tenant)
    assert said.status == 200 and said.json["valid"] is False and said.json["warnings"] == [], said
    assert sorted(e["path"] for e in said.json["errors"]) == paths and all(e["message"] for e in said.json["errors"])
    refused = assert_problem(api.put("/api/v1/workflows/w", {"steps": steps}, tenant=tenant), 422, "DEFINITION_INVALID")
    assert refused["errors"] == said.json["errors"]
    assert_problem(api.get("/api/v1/workflows/w", tenant=tenant), 404)


@pytest.mark.parametrize("definition,path", [
    ({"id": "other", "steps": [task("a")]}, "/id"), ({"steps": [task("a")], "colour": 1}, "/colour"), ({"description": "d"}, ""),
    ({"steps": [task("a")], "input_schema": {"type": "dance"}}, "/input_schema/type"), ([], ""),
])
def test_faults_beside_the_steps(api, tenant, definition, path):
    said = api.post("/api/v1/workflows/w/validate", definition, tenant=tenant).json
    assert said["valid"] is False and [e["path"] for e in said["errors"]] == [path], said


def test_validate_stores_nothing_and_says_valid(api, tenant):
    r = api.post("/api/v1/workflows/w/validate", {"steps": [task("a")]}, tenant=tenant)
    assert r.json == {"valid": True, "errors": [], "warnings": []}
    assert_problem(api.get("/api/v1/workflows/w", tenant=tenant), 404)


def test_a_definition_over_256_kib_is_413(api, tenant):
    assert_problem(api.put("/api/v1/workflows/w", {"description": "x" * 300_000, "steps": [task("a")]}, tenant=tenant), 413, "BODY_TOO_LARGE")


def test_what_cannot_be_run_yet_is_stored_with_a_warning_and_not_started(api, tenant):
    definition = {**contract_example(), "steps": [{"name": "ask", "type": "llm", "prompt": "?"}]}
    r = put(api, tenant, "refund", definition)
    assert r["version"] == 1 and len(r["warnings"]) >= 1 and r["warnings"][0]["path"].startswith("/")
    said = api.post("/api/v1/workflows/refund/validate", definition, tenant=tenant).json
    assert said["valid"] is True and said["warnings"] == r["warnings"]
    problem = assert_problem(api.start(tenant, "refund", key="k"), 422, "DEFINITION_UNSUPPORTED")
    assert r["warnings"][0]["path"] in problem["detail"]
    assert api.get("/api/v1/runs", tenant=tenant).json["items"] == []


def test_the_contracts_example_runs(api, tenant):
    assert put(api, tenant, "refund", contract_example())["warnings"] == []
    r = api.start(tenant, "refund", {"input": {"order_id": 7, "customer_id": "c"}}, headers={"X-Actor": "rita"})
    assert r.status == 200, r
    assert api.work(tenant, output={"amount": 120})["input"] == {"id": 7}
    asked = api.get("/api/v1/approvals?status=pending", tenant=tenant).json["items"]
    assert [a["prompt"] for a in asked] == ["Refund 120?"]
    path = f"/api/v1/approvals/{asked[0]['job_id']}/approve"
    assert_problem(api.post(path, tenant=tenant, headers={"X-Actor": "rita"}), 403, "SELF_APPROVAL_DENIED")
    assert api.post(path, tenant=tenant, headers={"X-Actor": "ann"}).json["status"] == "approved"
    assert api.work(tenant)["step"] == "pay"


def test_input_is_checked_against_the_schema(api, tenant):
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "minimum": 1}}, "additionalProperties": False}
    put(api, tenant, "w", {"input_schema": schema, "steps": [task("a")]})
    assert api.start(tenant, "w", {"input": {"n": 1}}).status == 200
    for bad, path in (({"n": 0}, "/n"), ({}, ""), ({"n": 1, "m": 2}, "/m"), ("text", ""), (None, "")):
        problem = assert_problem(api.start(tenant, "w", {"input": bad}), 422, "INPUT_INVALID")
        assert [e["path"] for e in problem["errors"]] == [path], problem


def test_an_input_that_takes_too_long_to_check_is_refused_with_its_own_code(api, tenant):
    branches = [{"items": {"type": "string", "minLength": i + 2}} for i in range(2000)]
    put(api, tenant, "w", {"input_schema": {"anyOf": branches}, "steps": [task("a")]})
    problem = assert_problem(api.start(tenant, "w", {"input": ["ab"] * 20000 + [None]}), 422, "INPUT_TOO_COMPLEX")
    assert "errors" not in problem, problem
    assert api.start(tenant, "w", {"input": ["ab"]}).status == 200


def test_many_unique_items_are_checked(api, tenant):
    put(api, tenant, "w", {"input_schema": {"uniqueItems": True}, "steps": [task("a")]})
    assert api.start(tenant, "w", {"input": list(range(60000))}).status == 200
    problem = assert_problem(api.start(tenant, "w", {"input": list(range(60000)) + [7.0]}), 422, "INPUT_INVALID")
    assert problem["errors"] == [{"path": "", "message": "must not repeat an element: 7 and 60000 are equal"}], problem


def test_input_schemas_as_generators_write_them(api, tenant):
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "#/$defs/Order",
        "$defs": {
            "Order": {"type": "object", "required": ["id", "lines"], "additionalProperties": False, "patternProperties": {"^x-": True},
                      "properties": {"id": {"type": "string", "pattern": "^[A-Z]{2}-\\d{4,}$"}, "lines": {"type": "array", "contains": {"$ref": "#/$defs/Line"}},
                                     "card": {"type": "string"}, "zip": {"type": "string"}, "parent": {"$ref": "#/$defs/Order"}, "price": {"multipleOf": 0.01}},
                      "dependentRequired": {"card": ["zip"]},
                      "if": {"properties": {"id": {"pattern": "^XX"}}}, "then": {"required": ["parent"]}},
            "Line": {"type": "object", "required": ["sku"]}}}
    put(api, tenant, "w", {"input_schema": schema, "steps": [task("a")]})
    good = {"id": "AB-1234", "lines": [1, {"sku": "s"}], "x-any": 1, "price": 3000000000000}
    for value in (good, {**good, "parent": good}, {**good, "id": "XX-9999", "parent": good}):
        assert api.start(tenant, "w", {"input": value}).status == 200, value
    for value, path in (({**good, "id": "ab-1234"}, "/id"), ({**good, "lines": [1]}, "/lines"), ({**good, "y": 1}, "/y"), ({**good, "card": "c"}, ""),
                        ({**good, "id": "XX-9999"}, ""), ({**good, "parent": {**good, "id": "a"}}, "/parent/id"), ({**good, "price": 0.001}, "/price")):
        problem = assert_problem(api.start(tenant, "w", {"input": value}), 422, "INPUT_INVALID")
        assert [e["path"] for e in problem["errors"]] == [path], problem
