"""A request that is refused leaves nothing: no record of its key, no run, no slot, no tenant."""
import json

import pytest

import faults
import harness
import stores
import wire
from harness import together, wait_until
from inspect_store import active_runs, all_runs, record, rows

RUNS = "/api/v1/workflows/hold/runs"
# When all nodes stop, one of them may find that the owner of the shard has already ended.
STOPPING = {"SHUTTING_DOWN", "SHARD_UNAVAILABLE"} if stores.SEVERAL_NODES else {"SHUTTING_DOWN"}
SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "minimum": 1}}}


def assert_nothing_kept(api, tenant, key, runs=0):
    assert record(api, tenant, key) is None
    assert len(all_runs(api, tenant)) == runs and active_runs(api, tenant) == runs


def assert_key_works(api, tenant, key, body=None, runs=0):
    """The same key, now with a request that can be granted, is a first request."""
    r = api.start(tenant, body=body, key=key)
    assert r.status == 200 and r.json["created"] is True, r
    assert len(all_runs(api, tenant)) == runs + 1 and active_runs(api, tenant) == runs + 1


# --- refused for what it says ---

REFUSED = {
    "truncated JSON": (400, "JSON_INVALID", RUNS, b'{"input":'),
    "text behind the JSON": (400, "JSON_INVALID", RUNS, b'{"input":1} x'),
    "duplicate names": (400, "JSON_INVALID", RUNS, b'{"input":1,"input":1}'),
    "not an object": (400, "FIELD_INVALID", RUNS, b"[1]"),
    "unknown field": (400, "FIELD_INVALID", RUNS, b'{"inputs":1}'),
    "bad label": (400, "FIELD_INVALID", RUNS, b'{"labels":{"a":1}}'),
    "priority out of range": (400, "FIELD_INVALID", RUNS, b'{"priority":101}'),
    "bad wait_ms": (400, "BAD_REQUEST", RUNS + "?wait_ms=-1", b"{}"),
    "no definitionId": (400, "FIELD_INVALID", "/api/v1/workflow-runs", b"{}"),
    "unknown workflow": (404, "WORKFLOW_NOT_FOUND", "/api/v1/workflows/nowhere/runs", b"{}"),
    "unknown definitionId": (404, "WORKFLOW_NOT_FOUND", "/api/v1/workflow-runs", b'{"definitionId":"nowhere"}'),
    "unknown path": (404, "NOT_FOUND", "/api/v1/workflows/hold/starts", b"{}"),
    "unknown run": (404, "RUN_NOT_FOUND", "/api/v1/runs/00000000-0000-7000-8000-000000000000/cancel", b"{}"),
    "unknown job": (404, "JOB_NOT_FOUND", "/api/v1/jobs/00000000-0000-7000-8000-000000000000/complete", b'{"lease_token":"1.x"}'),
    "wrong method": (405, "METHOD_NOT_ALLOWED", "/api/v1/runs", b"{}"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_a_refused_request_leaves_no_key_and_no_run(api, tenant, case):
    status, code, path, body = case
    api.workflow(tenant)
    for _ in range(2):
        r = api.post(path, body, key="k", tenant=tenant)
        assert (r.status, r.code) == (status, code) and r.header("Idempotent-Replayed") is None, r
    assert_nothing_kept(api, tenant, "k")
    assert_key_works(api, tenant, "k")


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_a_refused_first_request_creates_no_tenant(api, tenant, case):
    status, _, path, body = case
    new = tenant + "-new"
    refused = api.post(path, body, key="k", tenant=new)
    # Without the workflow a start that is well-formed otherwise is a 404.
    assert refused.status in (status, 404), refused
    for other in (api.post(RUNS, {}, key="k", tenant=new), api.delete("/api/v1/workflows/w", key="k", tenant=new)):
        assert other.status == 404, other
    assert record(api, new, "k") is None
    r = api.get(f"/api/v1/tenants/{new}", tenant=tenant)
    assert r.status == 404 and r.code == "TENANT_NOT_FOUND"
    assert new not in [t["id"] for t in api.get("/api/v1/tenants?limit=200", tenant=tenant).json["items"]]


def test_a_refused_body_key_leaves_nothing(api, tenant):
    api.workflow(tenant)
    r = api.start(tenant, body={"idempotency_key": "k", "labels": {"a": 1}})
    assert r.status == 400 and r.code == "FIELD_INVALID"
    assert_nothing_kept(api, tenant, "k")
    assert_key_works(api, tenant, "k")


def test_an_archived_workflow_leaves_no_key_and_no_run(api, tenant):
    api.workflow(tenant)
    assert api.delete("/api/v1/workflows/hold", tenant=tenant).status == 200
    r = api.start(tenant, key="k")
    assert r.status == 404 and r.code == "WORKFLOW_NOT_FOUND"
    assert_nothing_kept(api, tenant, "k")
    api.workflow(tenant)
    assert_key_works(api, tenant, "k")


def test_the_wrong_media_type_leaves_no_key_and_no_run(api, tenant):
    api.workflow(tenant)
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1"):
        r = api.post(RUNS, {}, key="k", tenant=tenant, headers={"Content-Type": kind})
        assert r.status == 415 and r.code == "UNSUPPORTED_MEDIA_TYPE"
    assert_nothing_kept(api, tenant, "k")
    assert_key_works(api, tenant, "k")


def test_too_large_a_body_leaves_no_key_and_no_run(api, tenant):
    api.workflow(tenant)
    headers = [("X-Tenant-ID", tenant), ("Idempotency-Key", "k")]
    r = wire.send(api.port, wire.request("POST", RUNS, headers, b'{"input":"%s"}' % (b"x" * 1024 * 1024)))
    assert r.status == 413 and r.code == "BODY_TOO_LARGE"
    r = wire.send(api.port, wire.request("POST", RUNS, [*headers, ("Expect", "100-continue")], length=2 * 1024 * 1024))
    assert r.status == 413 and r.code == "BODY_TOO_LARGE"
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    data = wire.request("POST", RUNS, [*headers, ("Transfer-Encoding", "chunked")]) + chunk * 17 + b"0\r\n\r\n"
    r = wire.send(api.port, data)
    assert r.status == 413 and r.code == "BODY_TOO_LARGE"
    assert_nothing_kept(api, tenant, "k")
    assert_key_works(api, tenant, "k")


def test_input_that_breaks_the_schema_leaves_no_key_and_no_run(api, tenant):
    api.workflow(tenant, input_schema=SCHEMA)
    for bad in ({"input": {"n": 0}}, {"input": {}}, {}, {"input": "n"}):
        r = api.start(tenant, body=bad, key="k")
        assert r.status == 422 and r.code == "INPUT_INVALID", r
    assert_nothing_kept(api, tenant, "k")
    assert_key_works(api, tenant, "k", body={"input": {"n": 1}})


def test_a_definition_that_cannot_run_leaves_no_key_and_no_run(api, tenant):
    steps = [{"name": "ask", "type": "llm", "prompt": "?"}]
    warned = api.put("/api/v1/workflows/hold", {"steps": steps}, tenant=tenant)
    assert warned.status == 200 and warned.json["warnings"], warned
    r = api.start(tenant, key="k")
    assert r.status == 422 and r.code == "DEFINITION_UNSUPPORTED"
    assert_nothing_kept(api, tenant, "k")
    api.workflow(tenant)
    assert_key_works(api, tenant, "k")


def test_a_definition_that_is_not_valid_leaves_no_key(api, tenant):
    r = api.put("/api/v1/workflows/hold", {"steps": []}, key="k", tenant=tenant)
    assert r.status == 422 and r.code == "DEFINITION_INVALID"
    assert record(api, tenant, "k") is None
    assert api.put("/api/v1/workflows/hold", {"steps": [{"name": "a", "type": "task", "handler": "h"}]}, key="k", tenant=tenant).status == 200


def test_a_newer_version_than_if_match_leaves_no_key(api, tenant):
    api.workflow(tenant)
    run = api.start(tenant).json["run"]
    r = api.post(f"/api/v1/runs/{run['id']}/cancel", {}, key="k", tenant=tenant, headers={"If-Match": f'"{run["version"] + 1}"'})
    assert r.status == 409 and r.code == "CONCURRENCY_ERROR"
    assert_nothing_kept(api, tenant, "k", runs=1)


# --- refused for when it comes ---


def test_a_start_at_the_limit_leaves_no_key_and_no_run(api):
    tenant = api.tenant(max_concurrent_runs=1)
    api.workflow(tenant)
    held = api.start(tenant).json["run_id"]
    for _ in range(3):
        r = api.start(tenant, key="k")
        assert r.status == 429 and r.code == "MAX_CONCURRENT_RUNS" and r.json["retryable"] is True
    assert_nothing_kept(api, tenant, "k", runs=1)
    assert api.post(f"/api/v1/runs/{held}/cancel", {}, tenant=tenant).status == 200
    r = api.start(tenant, key="k")
    assert r.status == 200 and r.json["created"] is True
    assert len(all_runs(api, tenant)) == 2 and active_runs(api, tenant) == 1


def test_a_server_that_shuts_down_leaves_no_key_and_no_run():
    with harness.server() as s:
        api = s.client()
        api.workflow("t")
        known = api.start("t", key="known").json["run_id"]
        body = b'{"input":{}}'
        # A request that is half sent keeps the draining server from ending.
        held = {}
        for key in ("k", "known"):
            held[key] = wire.connect(s.port)
            data = wire.request("POST", RUNS, [("X-Tenant-ID", "t"), ("Idempotency-Key", key)], body)
            held[key].sendall(data[:-1])
        # Both are being read for sure once a later request of a new connection was answered.
        assert s.client().get("/healthz").status == 200
        s.process.terminate()
        wait_until(lambda: "draining" in s.log(), "the server drains")
        for key, sock in held.items():
            sock.sendall(body[-1:])
            r = wire.answer(sock)
            assert r.status == 503 and r.code in STOPPING and int(r.header("Retry-After")) >= 1, (key, r)
            sock.close()
        assert s.stop() == 0
        assert [k for (k,) in rows(s.db, "SELECT key FROM idempotency")] == ["known"]
        s.start()
        api = s.client()
        assert len(all_runs(api, "t")) == 1 and active_runs(api, "t") == 1
        assert api.start("t", key="known").json["run_id"] == known
        assert_key_works(api, "t", "k", runs=1)


@pytest.mark.sqlite("the disk under the file is full")
def test_a_full_disk_leaves_no_key_no_run_and_no_tenant(fault_library):
    with faults.server(fault_library) as (s, disk):
        api = s.client()
        api.workflow("t")
        with disk.failing("full"):
            for path, tenant in ((RUNS, "t"), (RUNS, "t"), ("/api/v1/workflow-runs", "t")):
                body = {"definitionId": "hold"} if path != RUNS else {}
                r = api.post(path, body, key="k", tenant=tenant)
                assert r.status == 503 and r.code == "STORE_FULL" and int(r.header("Retry-After")) >= 1, r
            new = api.put("/api/v1/workflows/hold", {"steps": [{"name": "a", "type": "task", "handler": "h"}]}, key="k", tenant="new")
            assert new.status == 503 and new.code == "STORE_FULL"
            assert len(all_runs(api, "t")) == 0 and active_runs(api, "t") == 0
        assert_nothing_kept(api, "t", "k")
        assert api.get("/api/v1/tenants/new").status == 404
        assert_key_works(api, "t", "k")


# --- clients that go away ---


@pytest.mark.parametrize("leave", [lambda sock: sock.close(), wire.reset], ids=["closes", "resets"])
@pytest.mark.parametrize("sent", ["half the head", "the head", "half the body", "all but a byte"])
def test_a_client_that_leaves_half_way_leaves_nothing(api, tenant, sent, leave):
    api.workflow(tenant)
    body = json.dumps({"input": "x" * 1000}).encode()
    data = wire.request("POST", RUNS, [("X-Tenant-ID", tenant), ("Idempotency-Key", "k")], body)
    head = len(data) - len(body)
    upto = {"half the head": head // 2, "the head": head, "half the body": head + 500, "all but a byte": len(data) - 1}[sent]
    for _ in range(5):
        sock = wire.connect(api.port)
        sock.sendall(data[:upto])
        leave(sock)
    assert_nothing_kept(api, tenant, "k")
    assert_key_works(api, tenant, "k", body=body)


def test_clients_that_leave_half_way_do_not_hold_up_the_end():
    with harness.server() as s:
        s.client().workflow("t")
        data = wire.request("POST", RUNS, [("X-Tenant-ID", "t"), ("Idempotency-Key", "k")], b'{"input":"0123456789"}')
        for missing in (1, 10, 22):
            sock = wire.connect(s.port)
            sock.sendall(data[:-missing])
            sock.close()
        assert s.client().get("/healthz").status == 200
        assert s.stop() == 0
        assert "connections open" not in s.log()


@pytest.mark.parametrize("leave", [lambda sock: sock.close(), wire.reset], ids=["closes", "resets"])
def test_a_client_that_leaves_before_its_answer_retries_to_one_run(api, tenant, leave):
    api.workflow(tenant)
    keys = [f"k-{n}" for n in range(100)]

    def ask_and_leave(i):
        for key in keys[i::4]:
            sock = wire.connect(api.port)
            sock.sendall(wire.request("POST", RUNS, [("X-Tenant-ID", tenant), ("Idempotency-Key", key)], b'{"input":{}}'))
            leave(sock)

    together(4, ask_and_leave)
    first = {key: api.start(tenant, key=key) for key in keys}
    assert {r.status for r in first.values()} == {200}
    for key, r in first.items():
        assert record(api, tenant, key)["run_id"] == r.json["run_id"]
        assert api.start(tenant, key=key).json["run_id"] == r.json["run_id"]
    assert {run["id"] for run in all_runs(api, tenant)} == {r.json["run_id"] for r in first.values()}
    assert len(all_runs(api, tenant)) == active_runs(api, tenant) == len(keys)


def test_a_waiting_client_that_leaves_keeps_its_run(api, tenant):
    api.workflow(tenant)
    sock = wire.connect(api.port)
    sock.sendall(wire.request("POST", RUNS + "?wait_ms=60000", [("X-Tenant-ID", tenant), ("Idempotency-Key", "k")], b'{"input":{}}'))
    wait_until(lambda: all_runs(api, tenant), "the run starts")
    wire.reset(sock)
    job = api.work(tenant)
    r = api.start(tenant, key="k")
    assert r.json["created"] is False and r.json["run_id"] == job["run_id"] and len(all_runs(api, tenant)) == 1
