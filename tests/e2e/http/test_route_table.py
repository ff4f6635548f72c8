"""Every row of the server's route table is documented: its operation in docs/openapi.yaml with exactly its parameters, and its entry in
docs/api.md. Rows and bounds come from the binary (tests/tools/print_routes.c), so a new route fails here until it is described.
That every operation is also called with success: test_openapi.py::test_every_success_is_as_described."""
import re

import pytest

import harness
import openapi

TABLE = openapi.route_table()
ROUTES = {(r["method"], r["path"]): r for r in TABLE["routes"]}
OPERATIONS = {(method, openapi.unnamed(path)): (path, operation) for (method, path), operation in openapi.operations().items()}
UNBOUNDED = 2**63 - 1
API_PAGE = " ".join((harness.ROOT / "docs/api.md").read_text().split())  # a line may end anywhere


def without_null(schema):
    """The schema of the value itself, where null means the same as absent."""
    schema = openapi.resolved(schema)
    if "anyOf" in schema:
        forms = [form for form in schema["anyOf"] if form != {"type": "null"}]
        if len(forms) == 1:
            schema = {**schema, **openapi.resolved(forms[0])}
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [k for k in kind if k != "null"]
        schema = {**schema, "type": kinds[0]} if len(kinds) == 1 else schema
    if "enum" in schema:
        schema = {**schema, "enum": [word for word in schema["enum"] if word is not None]}
    return schema


def differences(param, schema):
    """What the document says of a value otherwise than the server's table."""
    schema, kind = without_null(schema), param["kind"]
    types = {"int": "integer", "bool": "boolean", "array": "array", "object": "object"}
    expected = {"type": types.get(kind, "string")}
    if kind == "enum":
        expected = {"enum": param["words"]}
    elif kind == "json":
        expected = {}
    elif kind == "int":
        expected["minimum"] = param["min"]
        expected["maximum"] = None if param["max"] == UNBOUNDED else param["max"]
    elif kind == "array":
        expected["maxItems"], expected["minItems"] = param["max"], param["min"] or None
    elif kind == "time":
        expected["format"] = "date-time"
    elif kind == "key":  # characters here, bytes there
        expected["maxLength"] = param["max"] / 4
    elif kind in ("text", "name") and param["max"] > 0 and param["in"] != "path":
        expected["maxLength"], expected["minLength"] = param["max"], param["min"] or None
    if param["in"] == "path":
        expected = {"type": "string"} if kind != "int" else {}
    if f"{{1,{param['max']}}}" in schema.get("pattern", ""):  # a pattern that has the bounds
        expected = {key: value for key, value in expected.items() if key not in ("minLength", "maxLength")}
    if kind in ("int", "enum", "bool", "text") and "default" in param:
        expected["default"] = param["default"]
    return {key: (value, schema.get(key)) for key, value in expected.items() if schema.get(key) != value}


def members_of(operation):
    """{name: schema}, names that are required."""
    body = operation.get("requestBody")
    if body is None:
        return None, []
    schema = openapi.resolved(body["content"]["application/json"]["schema"])
    assert schema["additionalProperties"] is False, "the server refuses unknown members"
    return schema.get("properties", {}), schema.get("required", [])


def compare_members(params, properties, required, where=""):
    assert {p["name"] for p in params} == set(properties), where
    assert {p["name"] for p in params if p["required"]} == set(required), where
    for p in params:
        schema = properties[p["name"]]
        assert differences(p, schema) == {}, f"{where}{p['name']}"
        if "members" in p:
            inner = without_null(schema)
            inner = openapi.resolved(inner["items"]) if p["kind"] == "array" else inner
            assert inner["additionalProperties"] is False, f"{where}{p['name']}"
            compare_members(p["members"], inner["properties"], inner.get("required", []), f"{where}{p['name']}.")


def test_every_row_has_its_operation_and_every_operation_its_row():
    assert sorted(ROUTES) == sorted(OPERATIONS)
    assert len(ROUTES) == len(TABLE["routes"])


@pytest.mark.parametrize("method,pattern", ROUTES)
def test_an_operation_has_exactly_the_parameters_of_its_row(method, pattern):
    route = ROUTES[method, pattern]
    path, operation = OPERATIONS[method, pattern]
    item = openapi.document()["paths"][path]
    described = [openapi.resolved(p) for p in item.get("parameters", []) + operation.get("parameters", [])]
    common = {"X-Tenant-ID", "X-Actor", "traceparent"} if path.startswith("/api/") else set()
    common |= {"Idempotency-Key", "X-Idempotency-Key"} if route["keyed"] else set()
    assert {p["name"] for p in described if p["in"] == "header" and p["name"] in common} == common
    own = {(p["in"], p["name"]): p for p in described if p["name"] not in common}
    rows = {(p["in"], p["name"]): p for p in route["params"] if p["in"] != "body"}
    assert set(own) == set(rows)
    for place, row in rows.items():
        assert own[place].get("required", False) == row["required"], place
        assert differences(row, own[place]["schema"]) == {}, place
    in_path = [p["name"] for p in route["params"] if p["in"] == "path"]
    assert in_path == re.findall(r"\{(\w+)\}", path)


@pytest.mark.parametrize("method,pattern", [place for place, route in ROUTES.items() if not route["document"]])
def test_an_operation_has_exactly_the_body_of_its_row(method, pattern):
    route = ROUTES[method, pattern]
    _, operation = OPERATIONS[method, pattern]
    params = [p for p in route["params"] if p["in"] == "body"]
    properties, required = members_of(operation)
    assert properties is not None or not params
    compare_members(params, properties or {}, required)
    if params and any(p["required"] for p in params):
        assert operation["requestBody"].get("required") is True


@pytest.mark.parametrize("method,pattern", [place for place in ROUTES if place[1].startswith("/api/")])
def test_a_route_has_its_entry_in_the_page_about_the_api(method, pattern):
    path, _ = OPERATIONS[method, pattern]
    assert re.search(rf"{method} {re.escape(path)}(?![/\w{{:])", API_PAGE), f"docs/api.md has no `{method} {path}`"


@pytest.mark.parametrize("path", [path for _, path in ROUTES if not path.startswith("/api/")])
def test_a_route_of_the_server_itself_has_its_entry_too(path):
    assert re.search(rf"`(GET )?{re.escape(path)}`", API_PAGE), f"docs/api.md has no `{path}`"


def test_every_problem_code_is_in_the_document_and_on_the_page():
    codes = {e["code"] for e in TABLE["errors"] if e["status"] >= 400}
    assert set(openapi.document()["components"]["schemas"]["ProblemCode"]["enum"]) == codes
    assert {code for code in codes if f"`{code}`" not in API_PAGE} == set()
