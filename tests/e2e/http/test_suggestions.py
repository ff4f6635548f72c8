"""A misspelled name or word is answered with the one that was meant, and a refusal names what is needed."""
import pytest

import harness
from checks import assert_problem


@pytest.mark.parametrize("path,code,detail", [
    ("/api/v1/runs?status=runing", "BAD_REQUEST", 'Unknown status "runing". Did you mean "running"?'),
    ("/api/v1/runs?status=done", "BAD_REQUEST", 'Unknown status "done". Allowed: queued, pending, running'),
    ("/api/v1/runs?limt=5", "BAD_REQUEST", 'Unknown query parameter "limt". Did you mean "limit"?'),
    ("/api/v1/runs?limit=5&limit=6", "BAD_REQUEST", 'The query parameter "limit" is given twice'),
    ("/api/v1/audit?order=newst", "BAD_REQUEST", 'Unknown order "newst". Did you mean "newest"?'),
])
def test_a_misspelled_query_is_answered_with_what_was_meant(api, tenant, path, code, detail):
    assert assert_problem(api.get(path, tenant=tenant), 400, code)["detail"].startswith(detail)


@pytest.mark.parametrize("path,body,detail", [
    ("/api/v1/workflow-runs", {"definitonId": "w"}, 'Unknown field "definitonId". Did you mean "definitionId"?'),
    ("/api/v1/workflow-runs", {"definitionId": "w", "at_limit": "quue"}, 'Unknown at_limit "quue". Did you mean "queue"?'),
    ("/api/v1/runs:bulk", {"action": "cancel", "filter": {"stauts": "running"}}, 'Unknown field "stauts". Did you mean "status"?'),
    ("/api/v1/jobs/claim", {"worker_id": "w", "colour": 1}, 'Unknown field "colour"'),
])
def test_a_misspelled_body_is_answered_with_what_was_meant(api, tenant, path, body, detail):
    assert assert_problem(api.post(path, body, tenant=tenant), 400, "FIELD_INVALID")["detail"] == detail


@pytest.mark.parametrize("method,path", [("POST", "/api/v1/schedules/s/trigger"), ("POST", f"/api/v1/dead-letters/{'0' * 8}-0000-7000-8000-{'0' * 12}/retry")])
def test_a_route_without_members_refuses_any(api, tenant, method, path):
    assert assert_problem(api.call(method, path, {"colour": 1}, tenant=tenant), 400, "FIELD_INVALID")["detail"] == 'Unknown field "colour"'


def test_a_refusal_names_the_role_that_is_needed():
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": harness.ROOT_KEY}) as s:
        root = s.client(headers={"X-API-Key": harness.ROOT_KEY})
        root.put("/api/v1/tenants/t", {})
        key = root.post("/api/v1/keys", {"tenant": "t", "role": "operator"}).json["key"]
        operator = s.client(headers={"X-API-Key": key})
        assert assert_problem(operator.get("/api/v1/keys"), 403, "FORBIDDEN")["detail"] == "Requires role admin; this key is operator."
