"""docs/openapi.yaml: well-formed, complete, served as it is, and true of every live answer."""
import datetime
import re

import jsonschema
import pytest

import harness
import openapi
import rawhttp
import sse
import stores
from nats import nats_server

DOC = openapi.document()
ROOT_KEY = harness.ROOT_KEY
NO_ID = "0190b3c4-0000-7000-8000-000000000000"


def every(node, path=""):
    """All objects of the document with their pointers."""
    yield path, node
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, child in children:
        yield from every(child, f"{path}/{openapi.escape(str(name))}")


# --- the document ---

def test_it_is_openapi_3_1():
    assert re.fullmatch(r"3\.1\.\d+", DOC["openapi"])
    assert DOC["info"]["title"] == "pawl" and DOC["info"]["version"]
    assert set(DOC) <= {"openapi", "info", "servers", "security", "tags", "paths", "components"}
    assert set(DOC["components"]) <= {"schemas", "parameters", "responses", "headers", "securitySchemes", "requestBodies", "examples"}


def test_every_reference_leads_somewhere_and_every_component_is_used():
    used = {node["$ref"] for _, node in every(DOC) if isinstance(node, dict) and isinstance(node.get("$ref"), str)}
    for ref in used:
        openapi.lookup(ref)
    have = {f"#/components/{kind}/{name}" for kind, items in DOC["components"].items() if kind != "securitySchemes" for name in items}
    assert have - used == set()


@pytest.mark.parametrize("method,path", openapi.operations())
def test_an_operation_is_complete(method, path):
    item, operation = DOC["paths"][path], openapi.operations()[method, path]
    assert operation["operationId"] and operation["summary"] and operation["responses"]
    parameters = [openapi.resolved(p) for p in item.get("parameters", []) + operation.get("parameters", [])]
    for p in parameters:
        assert p["in"] in ("path", "query", "header") and p["name"] and p["schema"] is not None
        assert p["in"] != "path" or p["required"] is True
    assert len({(p["in"], p["name"].lower()) for p in parameters}) == len(parameters)
    assert {p["name"] for p in parameters if p["in"] == "path"} == set(re.findall(r"\{(\w+)\}", path))
    for status, response in operation["responses"].items():
        assert re.fullmatch(r"[1-5]\d\d|default", status) and openapi.resolved(response)["description"] and (status == "304" or openapi.resolved(response)["content"])
    assert any(s.startswith("2") for s in operation["responses"])
    assert ("requestBody" in operation) <= (method in ("POST", "PUT"))


def test_operation_ids_and_tags_are_in_order():
    ids = [o["operationId"] for o in openapi.operations().values()]
    assert len(ids) == len(set(ids))
    assert {t for o in openapi.operations().values() for t in o["tags"]} == {t["name"] for t in DOC["tags"]}


def test_every_schema_is_one():
    for path, node in every(DOC):
        if path.endswith("/schema") or re.fullmatch(r"/components/schemas/[^/]+", path):
            jsonschema.Draft202012Validator.check_schema(node)


def test_open_routes_need_no_key_and_others_do(dev_server):
    sign_in = ("POST", "/api/v1/sessions")  # needs no key in a header, and refuses a wrong one in its body
    open_ones = {place for place, o in openapi.operations().items() if o.get("security") == []}
    assert open_ones == {("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/openapi.json"), ("GET", "/api/v1/sign-in"), sign_in} and DOC["security"]
    for place, operation in openapi.operations().items():
        assert ("401" in operation["responses"]) == (place not in open_ones or place == sign_in), place


def test_the_server_serves_it_as_it_is(api):
    r = api.get("/openapi.json")
    assert r.header("Content-Type") == "application/json"
    version = api.get("/healthz").json["version"]
    assert r.json == {**DOC, "info": {**DOC["info"], "version": version}} and DOC["info"]["version"] == version


# --- live answers ---

@pytest.fixture(scope="module")
def judged():
    """A server with keys, its administrator, and every answer judged."""
    with nats_server(config="max_payload: 20000\n") as bus, harness.server("--bus", bus.url, dev=False, env={"PAWL_ROOT_KEY": ROOT_KEY}) as s:
        yield openapi.JudgedClient(s.port, headers={"X-API-Key": ROOT_KEY})


def success_of_every_route(c):
    """Each operation at least once with a 2xx answer, in the forms that differ."""
    t = "acme"
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json"):
        c.get(path)
    c.put(f"/api/v1/tenants/{t}", {"name": "Acme", "max_concurrent_runs": 100, "max_queued_runs": 5, "at_limit": "reject", "idempotency_retention_s": 3600,
                                   "gate": {"max_wait_ms": 2000}, "rate_limit": {"per_second": 5, "burst": 10}, "weight": 2})
    c.put(f"/api/v1/tenants/{t}", {"name": None, "max_concurrent_runs": None, "idempotency_retention_s": None, "gate": None, "rate_limit": None})
    c.get(f"/api/v1/tenants/{t}"), c.get("/api/v1/tenants?limit=1"), c.get("/api/v1/tenants")
    steps = [{"name": "a", "type": "task", "handler": "h", "queue": "q", "input": {"x": 1}}, {"name": "z", "type": "sleep", "duration_ms": 600000},
             {"name": "b", "type": "task", "handler": "h", "queue": "q"}]
    for wid, more in (("w", {"description": "d", "input_schema": {"type": "object"}}), ("w", {}), ("v", {})):
        c.put(f"/api/v1/workflows/{wid}", {"id": wid, "steps": steps, **more}, tenant=t, key=f"put-{wid}-{len(more)}")
    c.put("/api/v1/workflows/w", {"id": "w", "steps": steps}, tenant=t)
    c.put("/api/v1/workflows/odd", {"steps": [{"name": "a", "type": "llm", "prompt": "?"}]}, tenant=t)
    for path in ("/api/v1/workflows?limit=1", "/api/v1/workflows", "/api/v1/workflows/w", "/api/v1/workflows/w?version=1",
                 "/api/v1/workflows/w/versions?limit=1", "/api/v1/workflows/w/versions"):
        assert c.get(path, tenant=t).status == 200
    c.post("/api/v1/workflows/w/validate", {"steps": steps}, tenant=t), c.post("/api/v1/workflows/w/validate", {"steps": []}, tenant=t)
    start = {"input": {"n": 1.5}, "labels": {"k": "v"}, "priority": 3}
    for _ in range(2):  # and replayed
        run = c.post("/api/v1/workflows/w/runs?wait_ms=1", start, tenant=t, key="start-1").json["run_id"]
    c.post("/api/v1/workflow-runs", {"definitionId": "v", "input": None, "idempotencyKey": "start-2"}, tenant=t)
    job = c.post("/api/v1/jobs/claim", {"worker_id": "w1", "queues": ["q"], "max": 1, "wait_ms": 0, "lease_ms": 30000}, tenant=t).json["jobs"][0]
    c.get(f"/api/v1/jobs/{job['job_id']}", tenant=t)
    done = {"lease_token": job["lease_token"], "output": {"ok": True}, "state": {"s": 1}}
    for _ in range(2):  # and already_completed
        c.post(f"/api/v1/jobs/{job['job_id']}/complete", done, tenant=t)
    other = c.post("/api/v1/jobs/claim", {"worker_id": "w1", "queues": ["q"], "wait_ms": 1000}, tenant="*").json["jobs"][0]
    for _ in range(2):
        c.post(f"/api/v1/jobs/{other['job_id']}/fail", {"lease_token": other["lease_token"], "error": {"code": "X", "message": "m", "details": 1}}, tenant=t)
    c.get(f"/api/v1/jobs/{other['job_id']}", tenant=t)
    cancelled = c.post("/api/v1/workflows/v/runs", {}, tenant=t).json["run_id"]
    for _ in range(2):
        c.post(f"/api/v1/runs/{cancelled}/cancel", {"reason": "r"}, tenant=t)
    for each in (run, other["run_id"], cancelled):
        assert c.get(f"/api/v1/runs/{each}", tenant=t, headers={"If-None-Match": c.get(f"/api/v1/runs/{each}", tenant=t).header("ETag")}).status == 304
        c.get(f"/api/v1/runs/{each}/events?limit=2", tenant=t), c.get(f"/api/v1/runs/{each}/events", tenant=t)
    for query in ("", "?limit=1", "?status=cancelled&workflow_id=v&label=k:v&created_after=2020-01-01T00:00:00Z&created_before=2999-01-01T00:00:00Z"):
        c.get(f"/api/v1/runs{query}", tenant=t)
    c.get("/api/v1/idempotency-keys/start-1", tenant=t), c.get("/api/v1/idempotency-keys/put-w-2", tenant=t)
    c.delete("/api/v1/idempotency-keys/start-1", tenant=t)
    keys = [c.post("/api/v1/keys", {"tenant": t, "role": "viewer", "label": "l"}, key=f"key-{i}").json["id"] for i in (1, 1, 2)]
    c.get("/api/v1/keys"), c.get("/api/v1/keys?limit=1", tenant=t), c.delete(f"/api/v1/keys/{keys[0]}", tenant=t), c.get("/api/v1/keys", tenant=t)
    c.delete("/api/v1/workflows/v", tenant=t), c.get("/api/v1/workflows/v", tenant=t)
    everything_at_a_limit(c)
    runs_in_hand(c)
    work_by_lease(c)
    durable_functions(c)
    schedules(c)
    entities(c)
    decisions(c)
    webhooks(c)
    outbox(c)
    trail(c)
    as_it_happens(c)
    run = c.get("/api/v1/runs?limit=1", tenant=t).json["items"][0]["id"]
    for query in ("q=x", "q=a=b&status=failed,running", f"parent={run}", f"rerun_of={run}"):
        assert c.get(f"/api/v1/runs?{query}", tenant=t).status == 200
    c.post("/api/v1/jobs/claim", {"worker_id": "w1", "queues": ["q"]}, tenant=t)  # so that q has had a worker within the last minute
    c.get("/api/v1/admission", tenant=t), c.get("/api/v1/queues?without_workers=true", tenant=t), c.get("/api/v1/approvals?order=oldest", tenant=t)
    c.get("/api/v1/stats"), c.get("/api/v1/stats?minutes=5", tenant=t)
    c.get("/api/v1/me"), c.get("/api/v1/me", tenant=t), c.get("/api/v1/sign-in")
    cookie = c.post("/api/v1/sessions", {"key": ROOT_KEY}).header("Set-Cookie").split(";")[0]
    c.get("/api/v1/me", headers={"Cookie": cookie}), c.delete("/api/v1/sessions", headers={"Cookie": cookie})
    c.get("/api/v1/doctor"), c.post("/api/v1/doctor/repair", key="repair"), c.get("/api/v1/backup"), c.get("/api/v1/cluster")


def trail(c):
    for query in ("", "?limit=1", "?order=newest&action=key.*&actor=root", "?after=3"):
        assert c.get(f"/api/v1/audit{query}", tenant="acme").status == 200
    c.get("/api/v1/audit"), c.get("/api/v1/audit/export", tenant="acme"), c.get("/api/v1/audit/verify", tenant="acme"), c.get("/api/v1/audit/verify")


def as_it_happens(c):
    """A stream does not end: its head is judged, and what comes first."""
    with sse.Stream(c.port, "/api/v1/events?types=run.*", "acme", headers=[f"X-API-Key: {ROOT_KEY}"]) as now, \
            sse.Stream(c.port, "/api/v1/events", "acme", "0-0", headers=[f"X-API-Key: {ROOT_KEY}"]) as before:
        for s in (now, before):
            openapi.validate(harness.Reply(200, {k.lower(): v for k, v in s.reply.getheaders()}, b""), "GET", "/api/v1/events")
        assert before.read_one()[1] == "run.created"
    c.seen.add(("GET", "/api/v1/events", 200))


def everything_at_a_limit(c):
    """Each policy, each reason to wait, and the settings' history."""
    t = "limited"
    steps = [{"name": "a", "type": "task", "handler": "h"}, {"name": "z", "type": "sleep", "duration_ms": 600000}]
    c.put(f"/api/v1/tenants/{t}", {"max_concurrent_runs": 3, "at_limit": "queue", "rate_limit": {"per_second": 1000, "burst": 1000}})
    c.put("/api/v1/workflows/one", {"concurrency": {"key": "input.k", "limit": 1}, "steps": steps}, tenant=t)
    c.put("/api/v1/workflows/many", {"concurrency": [{"limit": 1, "at_limit": "coalesce"}, {"key": "input.a.b", "limit": 9, "at_limit": "cancel_oldest"}],
                                     "steps": steps}, tenant=t)
    asleep = c.start(t, "one", {"input": {"k": "x"}}).json["run_id"]
    c.work(t)
    held = c.start(t, "many").json["run_id"]
    c.post("/api/v1/jobs/claim", {"worker_id": "w1"}, tenant=t)
    idle = c.start(t, "one", {"input": {"k": [1]}, "priority": -1}).json["run_id"]
    waiting = [c.start(t, "one", {"input": {"k": k}}).json["run_id"] for k in ("x", "y", None)]
    assert c.start(t, "many").json["coalesced"] is True
    kinds = [c.get(f"/api/v1/runs/{run}/why", tenant=t).json["waits_for"] for run in (asleep, held, idle, *waiting)]
    assert [[w["kind"] for w in k] for k in kinds] == [["timer"], ["worker"], ["worker_queue"], ["limit", "limit"], ["limit"], ["limit"]]
    c.start(t, "many", {"at_limit": "cancel_oldest"}), c.get(f"/api/v1/runs/{held}/why", tenant=t)
    c.post(f"/api/v1/runs/{idle}/cancel", {}, tenant=t)
    for run in waiting:
        c.get(f"/api/v1/runs/{run}/events", tenant=t), c.get(f"/api/v1/runs/{run}", tenant=t)
    c.put(f"/api/v1/tenants/{t}", {"weight": None, "at_limit": None})
    assert [c.post(f"/api/v1/tenants/{t}/rollback", body).json["at_limit"] for body in ({}, {}, {"version": 1})] == ["queue", "reject", "queue"]
    c.get(f"/api/v1/tenants/{t}/settings?limit=1"), c.get(f"/api/v1/tenants/{t}/settings")


def runs_in_hand(c):
    """Steps of every type that this version runs, and each control of a run."""
    t = "steered"
    c.put(f"/api/v1/tenants/{t}", {"run_retention_s": 3600})
    undone = {"compensate": {"handler": "undo", "queue": "q", "input": {"n": "${input}"}}}
    retry = {"max_attempts": 1, "backoff_ms": 1, "multiplier": 2, "max_backoff_ms": 5, "jitter": "none", "non_retryable": ["X"]}
    steps = [{"name": "m", "type": "task", "handler": "h", "for_each": "input", "max_parallel": 2, "queue": "q", "retry": retry, "timeout_ms": 60000, **undone},
             {"name": "t", "type": "transform", "output": {"n": "${steps.m.output}"}, "when": "true"}, {"name": "e", "type": "emit", "event": "e", "payload": [1]},
             {"name": "w", "type": "wait_signal", "signal": ["go", "stop"], "timeout_ms": 600000}, {"name": "k", "type": "workflow", "workflow_id": "kid", "version": 1},
             {"name": "c", "type": "http", "request": {"method": "GET", "url": "http://127.0.0.1:9/"}, "on_error": "mend"}, {"name": "mend", "type": "task", "handler": "h"}]
    c.put("/api/v1/workflows/kid", {"steps": [{"name": "a", "type": "sleep", "until": "2020-01-01T00:00:00Z"}]}, tenant=t)
    c.put("/api/v1/workflows/w", {"timeout_s": 600, "steps": steps}, tenant=t)
    run = c.start(t, "w", {"input": [1, 2, 3]}).json["run_id"]
    for action in ("pause", "pause", "resume", "resume"):
        assert c.post(f"/api/v1/runs/{run}/{action}", {}, tenant=t).status == 200
        c.get(f"/api/v1/runs/{run}/why", tenant=t)
    for _ in range(3):
        c.work(t, "q", output={"x": 1}), c.get(f"/api/v1/runs/{run}", tenant=t)
    c.get(f"/api/v1/runs/{run}/why", tenant=t)
    for _ in range(2):  # and a duplicate
        c.post(f"/api/v1/runs/{run}/signals", {"name": "go", "payload": {"v": 1}, "dedup_key": "k"}, tenant=t)
    c.work(t, wait_ms=30000)  # the call is refused, and mend has it
    assert c.get(f"/api/v1/runs/{run}", tenant=t).json["status"] == "succeeded"
    assert c.post(f"/api/v1/runs/{run}/rerun", {"from_step": "w"}, tenant=t, key="again").json["created"] is True
    c.post(f"/api/v1/runs/{run}/rerun", {"from_step": "w"}, tenant=t, key="again"), c.get(f"/api/v1/runs/{run}/events", tenant=t)
    later = c.start(t, "w", {"input": [1], "start_at": "2999-01-01T00:00:00Z"}).json["run_id"]
    c.get(f"/api/v1/runs/{later}/why", tenant=t), c.get(f"/api/v1/runs/{later}/events", tenant=t)
    bulk = {"filter": {"status": "waiting", "workflow_id": "w", "created_after": "2020-01-01T00:00:00Z"}, "reason": "r"}
    assert c.post("/api/v1/runs:bulk", {"action": "cancel", **bulk, "dry_run": True}, tenant=t).json["matched"] == 1
    c.post("/api/v1/runs:bulk", {"action": "cancel", **bulk}, tenant=t), c.post("/api/v1/runs:bulk", {"action": "retry", "filter": {}}, tenant=t)
    failed_runs(c, t)


def failed_runs(c, t):
    """What a failure leaves: dead letters, compensation, and a retry of either."""
    c.put("/api/v1/workflows/saga", {"steps": [{"name": "a", "type": "task", "handler": "h", "compensate": {"handler": "undo"}}, {"name": "b", "type": "task", "handler": "h"}]}, tenant=t)
    run = c.start(t, "saga").json["run_id"]
    c.work(t)
    job = c.post("/api/v1/jobs/claim", {"worker_id": "w1"}, tenant=t).json["jobs"][0]
    c.post(f"/api/v1/jobs/{job['job_id']}/fail", {"lease_token": job["lease_token"], "error": {"code": "X"}}, tenant=t)
    assert c.work(t)["compensates"] is True
    for path in ("/api/v1/queues", "/api/v1/queues?limit=1", "/api/v1/workers", "/api/v1/workers?limit=1"):
        assert c.get(path, tenant=t).json["items"]
    c.get(f"/api/v1/runs/{run}", tenant=t), c.get("/api/v1/dead-letters", tenant=t), c.get("/api/v1/dead-letters?limit=1", tenant=t)
    assert c.post(f"/api/v1/dead-letters/{job['job_id']}/retry", {}, tenant=t, key="dead").status == 200
    c.work(t)
    job = c.post("/api/v1/jobs/claim", {"worker_id": "w1"}, tenant=t).json["jobs"][0]
    c.post(f"/api/v1/jobs/{job['job_id']}/fail", {"lease_token": job["lease_token"], "error": {"code": "X"}}, tenant=t)
    c.delete(f"/api/v1/dead-letters/{job['job_id']}", tenant=t)
    c.work(t)
    for _ in range(2):  # and while it is trying
        assert c.post(f"/api/v1/runs/{run}/retry", {}, tenant=t).status == 200


def work_by_lease(c):
    """Everything a worker may say about its jobs, one at a time and many."""
    t = "leased"
    c.put(f"/api/v1/tenants/{t}", {})
    c.put("/api/v1/workflows/w", {"steps": [{"name": "m", "type": "task", "handler": "h", "for_each": "input", "retry": {"max_attempts": 2, "backoff_ms": 60000}}]}, tenant=t)
    c.start(t, "w", {"input": [1, 2, 3, 4]})
    jobs = c.post("/api/v1/jobs/claim", {"worker_id": "w1", "max": 3}, tenant=t).json["jobs"]
    leases = [{"lease_token": j["lease_token"]} for j in jobs]
    path = f"/api/v1/jobs/{jobs[0]['job_id']}"
    c.post(f"{path}/heartbeat", {**leases[0], "progress": {"done": 0.5}}, tenant=t), c.post(f"{path}/heartbeat", leases[0], tenant=t), c.get(path, tenant=t)
    c.post(f"{path}/release", leases[0], tenant=t)
    items = [{"job_id": jobs[1]["job_id"], **leases[1], "output": 1, "state": {"s": 1}}, {"job_id": jobs[2]["job_id"], **leases[2], "error": {"code": "X", "message": "m"}},
             {"job_id": jobs[0]["job_id"], **leases[0], "output": 1}]
    for ask in ({"items": items, "claim": {"worker_id": "w1", "max": 9}}, {"items": items}):
        r = c.post("/api/v1/jobs:complete", ask, tenant=t)
        assert r.json["results"][2]["status"] == "refused", r
    c.get(f"/api/v1/jobs/{jobs[2]['job_id']}", tenant=t)


def durable_functions(c):
    """Checkpoints, and every form of a suspension and of what ends it."""
    t = "durable"
    c.put(f"/api/v1/tenants/{t}", {})
    c.workflow(t, "w", [{"name": "a", "type": "task", "handler": "h"}])
    run = c.start(t, "w").json["run_id"]
    later = "2999-01-01T00:00:00Z"
    question = {"prompt": "?", "content": {"n": 1}, "approvers": {"count": 1}, "expires_s": 600, "remind_every_s": 60}
    for wait in ({"until": None, "name": "s"}, {"signal": "go", "until": later}, {"approval": question}):
        job = c.post("/api/v1/jobs/claim", {"worker_id": "w1", "wait_ms": 30000}, tenant=t).json["jobs"][0]
        path, lease = f"/api/v1/jobs/{job['job_id']}", {"lease_token": job["lease_token"]}
        for value in ({"output": 1}, {"output": 2}, {"output": 1}):
            c.post(f"{path}/checkpoints", {**lease, "name": "done", **value}, tenant=t)
        c.post(f"{path}/checkpoints", {**lease, "name": "broken", "error": {"code": "X", "message": None, "retryable": False, "details": [1]}}, tenant=t, key=f"k{job['attempt']}")
        if "name" in wait:  # its time comes after the answers that show it
            wait["until"] = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=6)).isoformat(timespec="seconds")
        for _ in range(2):
            asked = c.post(f"{path}/suspend", {**lease, **wait}, tenant=t)
            assert asked.status == 200, asked
        c.get(path, tenant=t), c.get(f"/api/v1/runs/{run}/why", tenant=t), c.get(f"/api/v1/runs/{run}", tenant=t)
        if "signal" in wait:
            c.post(f"/api/v1/runs/{run}/signals", {"name": "go", "payload": {"v": 1}}, tenant=t)
        if "approval" in wait:
            approval = asked.json["approval_id"]
            c.get(f"/api/v1/approvals/{approval}", tenant=t), c.get(f"/api/v1/jobs/{approval}", tenant=t)
            c.post(f"/api/v1/approvals/{approval}/reject", {"reason": "r"}, tenant=t), c.get(f"/api/v1/jobs/{approval}", tenant=t)
        c.get(path, tenant=t)
    assert c.work(t)["resumed_by"]["decision"] == "rejected"
    c.get(f"/api/v1/runs/{run}/events?limit=200", tenant=t)


def schedules(c):
    t = "timed"
    c.put(f"/api/v1/tenants/{t}", {})
    c.workflow(t, "w")
    full = {"workflow_id": "w", "cron": "0 3 * * 1-5", "timezone": "Europe/Berlin", "overlap": "queue", "catch_up_s": 60, "input": {"n": 1}, "paused": True}
    for sid, body in (("nightly", full), ("daily", {"workflow_id": "w", "cron": "@daily"})):
        assert c.put(f"/api/v1/schedules/{sid}", body, tenant=t, key=f"put-{sid}").status == 200
        c.get(f"/api/v1/schedules/{sid}", tenant=t)
    assert c.post("/api/v1/schedules/daily/trigger", {}, tenant=t, key="now").status == 200
    c.get("/api/v1/schedules/daily", tenant=t), c.get("/api/v1/schedules", tenant=t), c.get("/api/v1/schedules?limit=1", tenant=t)
    c.delete("/api/v1/schedules/nightly", tenant=t)


def entities(c):
    """Every form of a type, of an entity in each status, of its calls and of what comes of an update."""
    t, kinds, e = "lived", "/api/v1/entity-types", "/api/v1/entities/rewards/cust%2F1"
    c.put(f"/api/v1/tenants/{t}", {})
    full = {"queue": "q", "handler": "h", "version": None, "dedup_window_s": 60, "dedup_max_keys": 5, "rollover_events": 5, "keep_generations": None, "max_inbox": 9, "max_batch": 2,
            "retry": {"max_attempts": 2, "backoff_ms": 60000, "max_backoff_ms": None}}
    for name, body in (("rewards", full), ("rewards", full), ("plain", {"queue": "q2", "handler": "h"})):
        assert c.put(f"{kinds}/{name}", body, tenant=t).status == 200
    c.get(kinds, tenant=t), c.get(f"{kinds}?limit=1", tenant=t), c.get(f"{kinds}/rewards", tenant=t), c.get(f"{kinds}/rewards/stats", tenant=t)

    def look():
        return [c.get(e + suffix, tenant=t) for suffix in ("", "/events", "/events?limit=1", "/inbox", "/inbox?limit=1", "/generations", "/generations?limit=1")]

    def call():
        job = c.post("/api/v1/jobs/claim", {"worker_id": "w1", "queues": ["q"]}, tenant=t).json["jobs"][0]
        c.get(f"/api/v1/jobs/{job['job_id']}", tenant=t), look()
        return f"/api/v1/jobs/{job['job_id']}", {"lease_token": job["lease_token"]}

    def answer(**output):
        path, lease = call()
        for _ in range(2):  # and already_completed
            assert c.post(f"{path}/complete", {**lease, "output": output}, tenant=t).status == 200
        c.get(path, tenant=t), look()

    for _ in range(2):
        assert c.post(f"{e}/signals", {"name": "n", "payload": {"a": 1}, "dedup_key": "k"}, tenant=t, key="signal").status == 200
    c.post(f"{e}/signals", {"name": "n", "payload": {"a": 1}, "dedup_key": "k"}, tenant=t), c.post(f"{e}/signals", {"name": "n", "payload": None, "dedup_key": None}, tenant=t)
    for key in ("u1", "u2"):
        assert c.post(f"{e}/updates?wait_ms=0", {"name": "ask", "dedup_key": key}, tenant=t, key=key).status == 202
    look(), c.get(f"{e}/updates/3", tenant=t)
    c.workflow(t, "w")
    answer(state={"n": 1}, set_timers=[{"name": "a", "in_ms": 600000, "payload": [1]}, {"name": "b", "at": "2099-01-01T00:00:00Z"}], emit=[{"event": "told", "payload": 1}],
           start=[{"workflow_id": "w", "input": 1, "labels": {"k": "v"}, "idempotency_key": "once"}])
    answer(state={"n": 2}, cancel_timers=["b"], results=[{"seq": 3, "result": {"ok": True}}, {"seq": 4, "error": {"code": "NO", "message": "m"}}])
    for key in ("u1", "u2"):
        assert c.post(f"{e}/updates", {"name": "ask", "dedup_key": key}, tenant=t).status == 200 == c.post(f"{e}/updates", {"name": "ask", "dedup_key": key}, tenant=t, key=key).status
    c.get(f"{e}/updates/3", tenant=t), c.get(f"{e}/updates/4", tenant=t)
    c.put(f"{kinds}/rewards", {**full, "version": 2}, tenant=t), c.get(f"{kinds}/rewards", tenant=t)
    for _ in range(2):
        assert c.post(f"{e}/migrate", {"version": 2}, tenant=t).json["status"] == "migrating"
    answer(state={"n": 3})
    assert c.post(f"{e}/migrate", {}, tenant=t).json["status"] == "migrated"
    for retryable in (True, False):
        c.post(f"{e}/signals", {"name": "n"}, tenant=t)
        if retryable:
            path, lease = call()
            c.post(f"{path}/heartbeat", lease, tenant=t), c.post(f"{path}/release", lease, tenant=t)
        path, lease = call()
        for _ in range(2):
            assert c.post(f"{path}/fail", {**lease, "error": {"code": "X", "message": "m", "retryable": False}}, tenant=t).status == 200
        look(), c.get("/api/v1/dead-letters", tenant=t), c.get(path, tenant=t)
        job = path.rsplit("/", 1)[1]
        assert c.post(f"/api/v1/dead-letters/{job}/retry", {}, tenant=t).status == 200
        look()
        if retryable:
            path, lease = call()
            assert c.post("/api/v1/jobs:complete", {"items": [{"job_id": job, **lease, "output": {"state": 4}}]}, tenant=t).json["results"][0]["status"] == "completed"
    answer(state=5, finished=True)
    assert c.get(e, tenant=t).json["status"] == "finished"
    c.post(f"{e}/signals", {"name": "n"}, tenant=t), look()
    for _ in range(9):
        full_now = c.post(f"{e}/signals", {"name": "n"}, tenant=t)
    assert full_now.code == "INBOX_FULL"
    c.get("/api/v1/entities/rewards", tenant=t), c.get("/api/v1/entities/rewards?version=2&limit=1", tenant=t), c.get(f"{kinds}/rewards/stats", tenant=t)
    with sse.Stream(c.port, f"{e}/events", t, headers=[f"X-API-Key: {ROOT_KEY}", "Accept: text/event-stream"]) as stream:
        assert stream.reply.status == 200 and stream.read_one()[1] == "entity.created"
    assert c.delete(e, tenant=t, key="gone").status == 200


def decisions(c):
    """Every form of an approval and of an answer to it, and every refusal."""
    t = "decided"
    c.put(f"/api/v1/tenants/{t}", {})
    people = [c.post("/api/v1/keys", {"tenant": t, "role": "approver"}).json for _ in range(3)]
    as_ = [{"headers": {"X-API-Key": p["key"]}} for p in people]
    names = ["key:" + p["prefix"] for p in people]

    def asked(gate, why=True):
        c.workflow(t, "w", [{"name": "pay", "type": "task", "handler": "h", "requires_approval": gate}])
        run = c.start(t, "w").json["run"]
        if why:
            c.get(f"/api/v1/runs/{run['id']}/why", tenant=t)
        return run["id"], run["steps"][0]["job_id"]

    def say(job, verb, who=None, **body):
        return c.post(f"/api/v1/approvals/{job}/{verb}", body, tenant=t, **(who or {}))

    _, plain = asked(True)
    for verb in ("approve", "approve", "reject"):
        say(plain, verb)
    _, quorum = asked({"prompt": "${run.id}?", "content": [1], "approvers": {"count": 2, "users": names[:2]}, "expires_s": 600, "remind_every_s": 60,
                       "escalation": {"after_s": 300, "approvers": {"roles": ["admin"]}}})
    for who in (as_[0], as_[0], as_[2], as_[1], as_[1]):
        say(quorum, "approve", who, reason="r", edited=[2])
    _, refused = asked({"approvers": {"forbid_requester": True}})
    say(refused, "approve"), say(refused, "reject", expected_hash="0"), say(refused, "reject", reason="no"), say(refused, "reject"), say(refused, "approve")
    run, void = asked(True)
    c.post(f"/api/v1/runs/{run}/cancel", {}, tenant=t), say(void, "approve"), say(NO_ID, "reject")
    run, late = asked({"expires_s": 1, "approvers": {"users": names[:1]}}, why=False)  # it may have expired by then
    harness.wait_until(lambda: c.get(f"/api/v1/approvals/{late}", tenant=t).json["status"] == "expired", "it expires")
    say(late, "approve", as_[0])
    for job in (plain, quorum, refused, void, late):
        c.get(f"/api/v1/approvals/{job}", tenant=t), c.get(f"/api/v1/jobs/{job}", tenant=t)
    for query in ("", "?limit=1", "?status=void"):
        c.get(f"/api/v1/approvals{query}", tenant=t)
    c.get("/api/v1/approvals/analytics", tenant=t), c.get("/api/v1/approvals/analytics?days=1&workflow_id=w", tenant=t)


def webhooks(c):
    t = "hooked"
    c.put(f"/api/v1/tenants/{t}", {})
    made = [c.post("/api/v1/webhooks", {"url": "http://127.0.0.1:1/", "events": ["run.*", "job.failed"], "description": "d"}, tenant=t, key="hook") for _ in range(2)]
    assert ["secret" in r.json for r in made] == [True, False]
    path = f"/api/v1/webhooks/{made[0].json['id']}"
    for _ in range(2):  # a first delivery that is refused, since its address is not public, and one more
        assert c.post(f"{path}/test", {}, tenant=t).status == 200
    tried = lambda: [d for d in c.get(f"{path}/deliveries", tenant=t).json["items"] if d["last_error"]]
    delivery = harness.wait_until(tried, "an attempt is made")[0]
    c.get(path, tenant=t), c.get("/api/v1/webhooks", tenant=t), c.get("/api/v1/webhooks?limit=1", tenant=t), c.get(f"{path}/deliveries?limit=1", tenant=t)
    c.put(path, {"enabled": False}, tenant=t), c.get(path, tenant=t), c.put(path, {"enabled": True, "events": ["*"], "url": "https://a.test/", "description": None}, tenant=t)
    for _ in range(2):
        assert c.post(f"{path}/rotate", {"old_secret_s": 60}, tenant=t, key="rotate").status == 200
    c.get(path, tenant=t)
    assert c.post(f"{path}/deliveries/{delivery['id']}/redeliver", {}, tenant=t).status == 200
    assert c.delete(path, tenant=t).status == 200


def outbox(c):
    t = "streamed"
    c.put(f"/api/v1/tenants/{t}", {})
    c.workflow(t, "w", [{"name": "a", "type": "emit", "event": "too.large", "payload": "x" * 30000}, {"name": "b", "type": "task", "handler": "h"}])
    c.start(t, "w"), c.start(t, "w")

    def settled(path, **tenant):
        """The answer once the bus has taken, or refused, everything that has happened so far."""
        quiet = lambda: (o := c.get(path, **tenant).json)["depth"] == o["lag_ms"] == 0 and o["items"] and o
        return harness.wait_until(quiet, "nothing waits for the bus")

    harness.wait_until(lambda: c.get("/api/v1/outbox", tenant=t).json["items"][1:], "they are parked")
    message = settled("/api/v1/outbox", tenant=t)["items"][0]["message_id"]
    settled("/api/v1/outbox?limit=1", tenant=t), settled("/api/v1/outbox"), c.get("/readyz")
    for _ in range(2):
        assert c.post(f"/api/v1/outbox/{message}/retry", {}, tenant=t, key="parked").status == 200
    job = c.post("/api/v1/jobs/claim", {"worker_id": "w1"}, tenant=t).json["jobs"][0]
    c.post(f"/api/v1/jobs/{job['job_id']}/release", {"lease_token": job["lease_token"]}, tenant=t)
    for _ in range(2):
        assert c.post(f"/api/v1/jobs/{job['job_id']}/claim", {"worker_id": "w1", "lease_ms": 60_000}, tenant=t, key="claim").status == 200


def test_every_success_is_as_described(judged):
    success_of_every_route(judged)
    succeeded = {(m, p) for m, p, status in judged.seen if status == 200}
    refused = {("GET", "/api/v1/backup")} if stores.POSTGRES else set()  # a database is copied by its own tools
    assert succeeded == set(openapi.operations()) - refused


def test_every_problem_is_as_described(judged):
    c, t = judged, "faulty"
    c.put(f"/api/v1/tenants/{t}", {"max_concurrent_runs": 1, "max_queued_runs": 0})
    c.workflow(t, "w", input_schema={"type": "object"})
    c.put("/api/v1/tenants/slow", {"rate_limit": {"per_second": 1, "burst": 1}})
    c.workflow("slow", "w", concurrency=[{"limit": 2, "at_limit": "queue"}, {"key": "input.k", "limit": 1}])
    c.workflow("slow", "free")
    harness.wait_until(lambda: c.start("slow", "free").code == "RATE_LIMITED", "a start is too soon after another")
    c.put("/api/v1/tenants/slow", {"rate_limit": None})
    c.put("/api/v1/workflows/odd", {"steps": [{"name": "a", "type": "llm", "prompt": "?"}]}, tenant=t)
    run = c.start(t, "w", {"input": {}}, key="k").json["run_id"]
    expected = [
        (c.start(t, "w", b"{"), 400), (c.start(t, "w", {"colour": 1}), 400), (c.start(t, "w", {"input": {}}, headers={"Idempotency-Key": '"'}), 400),
        (c.start(t, "none"), 404), (c.start(t, "odd"), 422), (c.start(t, "w", {"input": 1}), 422), (c.start(t, "w", {"input": {"x": 1}}, key="k"), 422),
        (c.start(t, "w", {"input": {}}), 429), (c.start(t, "w", {"input": {}, "at_limit": "queue"}), 429), (c.start("slow", "w"), 200), (c.start("slow", "w"), 429),
        (c.start("slow", "w", {"input": {"k": 1}}), 200), (c.start("slow", "w", {"input": {"k": 2}, "at_limit": "reject"}), 429),
        (c.post(f"/api/v1/tenants/{t}/rollback", {"version": 9}), 404),
        (c.start(t, "w", b"x" * 1100000), 413), (c.start(t, "w", b"{}", headers={"Content-Type": "text/plain"}), 415),
        (c.post(f"/api/v1/runs/{run}/cancel", {}, tenant=t, headers={"If-Match": '"99"'}), 409),
        (c.post(f"/api/v1/jobs/{NO_ID}/complete", {"lease_token": "t"}, tenant=t), 404),
        (c.put("/api/v1/workflows/w", {"steps": []}, tenant=t), 422), (c.get("/api/v1/runs", tenant="nobody"), 404), (c.get("/nothing"), 404),
        (c.get("/api/v1/runs?cursor=x", tenant=t), 400), (c.get("/api/v1/runs"), 400),
    ]
    assert [r.status for r, _ in expected] == [status for _, status in expected]
    assert_all_refused(c, headers={"X-API-Key": "nonsense"}, status=401)
    viewer = c.post("/api/v1/keys", {"tenant": t, "role": "viewer"}).json["key"]
    assert_all_refused(c, headers={"X-API-Key": viewer, "X-Tenant-ID": "another"}, status=403)


def assert_all_refused(client, headers, status):
    for (method, path), operation in openapi.operations().items():
        if operation.get("security") != []:
            target = re.sub(r"\{\w+\}", NO_ID, path)
            assert client.call(method, target, {} if method in ("POST", "PUT") else None, headers=headers).status == status, (method, path)


@pytest.mark.parametrize("method,path", openapi.operations())
def test_a_bad_request_to_any_route_is_as_described(judged, method, path):
    """Rubbish for an id, in the query and in the body: whatever comes back is one of the described answers, and no 5xx."""
    for rubbish in (NO_ID, "%20", "x" * 300):
        target = re.sub(r"\{\w+\}", rubbish, path)
        streams = path == "/api/v1/events"  # nothing is wrong without a query, and it does not end
        for query in (*([] if streams else [""]), "?limit=x&cursor=%00", "?colour=1"):
            for body in ([b"", b"{", b"[]", {"colour": 1}, {"lease_token": 5, "steps": 1}] if method in ("POST", "PUT") else [None]):
                assert judged.call(method, target + query, body, tenant="faulty").status < 500


@pytest.mark.parametrize("method", ["PATCH", "OPTIONS", "BREW"])
def test_a_method_that_a_path_does_not_have(judged, method):
    for path in DOC["paths"]:
        target = re.sub(r"\{\w+\}", NO_ID, path)
        r = rawhttp.exchange(judged.port, rawhttp.request(method, target))
        assert r.status == 405 and openapi.faults("#/components/schemas/Problem", r.json) == []
        have = {m for m, _ in openapi.operations() if openapi.template_of(m, target)}
        assert {m.strip() for m in r.header("Allow").split(",")} == have | ({"HEAD"} if "GET" in have else set())
