"""What an operator sees: health, metrics, logs, memory, and an orderly end."""
import json
import os
import re
import signal
import socket
import subprocess
import threading

import pytest

import harness
import openapi
import stores
import rawhttp
from actions import begin, ended
from checks import assert_alive, assert_problem
from cli import free_port
from entities import Entity, define
from inspect_store import all_runs
from prometheus import metrics, parse

SANITIZED = os.environ.get("PAWL_SANITIZED") == "1"


# --- health ---

def test_healthz_says_that_it_is_alive(api):
    r = api.get("/healthz")
    assert r.status == 200 and r.json["status"] == "ok" and re.fullmatch(r"\d+\.\d+\.\d+", r.json["version"])


def test_readyz_names_each_dependency(api):
    r = api.get("/readyz")
    assert r.status == 200 and r.json["status"] == "ready"
    assert r.json["dependencies"]["store"]["status"] == "ok" and ("PostgreSQL" if stores.POSTGRES else "SQLite") in r.json["dependencies"]["store"]["engine"]


def test_people_are_led_to_the_console(api):
    r = api.get("/")
    assert r.status == 308 and r.header("Location") == "console/" and b"openapi.json" in r.raw
    r = api.get("/console/")
    assert r.status == 200 and r.header("Content-Type").startswith("text/html")
    assert "default-src 'none'" in r.header("Content-Security-Policy")


# --- metrics ---

MUST_EXIST = {
    "pawl_admission_wait_seconds": ("histogram", {"tenant", "endpoint"}),
    "pawl_admissions_total": ("counter", {"tenant", "outcome"}),
    "pawl_idempotency_replays_total": ("counter", {"endpoint"}),
    "pawl_idempotency_mismatches_total": ("counter", {"endpoint"}),
    "pawl_idempotency_cleanup_failures_total": ("counter", {"context"}),
    "pawl_approval_replays_total": ("counter", {"endpoint"}),
    "pawl_approval_conflicts_total": ("counter", {"endpoint", "code"}),
    "pawl_commit_seconds": ("histogram", set()),
    "pawl_commit_batch_size": ("histogram", set()),
    "pawl_jobs": ("gauge", {"queue", "state"}),
    "pawl_outbox_depth": ("gauge", set()),
    "pawl_http_request_duration_seconds": ("histogram", {"route", "status"}),
    "pawl_http_connections_dropped_total": ("counter", {"reason"}),
}


@pytest.fixture
def used(api, tenant):
    """A server on which everything that is counted has happened."""
    api.workflow(tenant, steps=[{"name": "a", "type": "task", "handler": "h", "queue": 'odd.queue'}])
    api.start(tenant, key="m1"), api.start(tenant, key="m1"), api.start(tenant, body={"input": 5}, key="m1"), api.start(tenant, "none")
    return api


def test_every_metric_of_the_contract_is_there(used):
    text = metrics(used)
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    series = parse(text)
    for name, (kind, labels) in MUST_EXIST.items():
        assert kinds.get(name) == kind, name
        mine = [dict(found) for (full, found) in series if full == name or (kind == "histogram" and re.fullmatch(name + "_(bucket|sum|count)", full))]
        assert mine, name
        assert all(set(m) - {"le"} == labels for m in mine), (name, mine[0])


@pytest.mark.parametrize("when", ["fresh", "used"])
def test_promtool_finds_no_fault(when, request):
    if when == "fresh":
        with harness.server() as s:
            text = metrics(s.client())
    else:
        text = metrics(request.getfixturevalue("used"))
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == done.stderr == "", (done.stdout, done.stderr)


def test_metrics_count_what_happened(api, tenant):
    before = parse(metrics(api))
    api.workflow(tenant)
    api.start(tenant, key="c1"), api.start(tenant, key="c1"), api.start(tenant, body={"input": 5}, key="c1"), api.start(tenant, "none")
    api.put(f"/api/v1/tenants/{tenant}", {"max_concurrent_runs": 1})
    api.start(tenant)
    after = parse(metrics(api))
    outcomes = {dict(labels)["outcome"]: v for (name, labels), v in after.items() if name == "pawl_admissions_total" and dict(labels)["tenant"] == tenant}
    assert outcomes == {"admitted": 1, "replayed": 1, "mismatched": 1, "refused": 1, "limited": 1}
    for name in ("pawl_idempotency_replays_total", "pawl_idempotency_mismatches_total"):
        key = (name, (("endpoint", "start_run"),))
        assert after[key] == before.get(key, 0) + 1
    key = ("pawl_admission_wait_seconds_count", (("tenant", tenant), ("endpoint", "start")))
    assert after[key] == 5
    assert after["pawl_jobs", (("queue", "default"), ("state", "pending"))] >= 1


def admissions(api, tenant):
    """({endpoint: how many waits were measured}, {outcome: how many}) of a tenant."""
    text = parse(metrics(api))

    def by(label, family):
        return {dict(labels)[label]: v for (name, labels), v in text.items() if name == family and dict(labels)["tenant"] == tenant}

    return by("endpoint", "pawl_admission_wait_seconds_count"), by("outcome", "pawl_admissions_total")


def test_every_way_to_begin_a_run_is_counted_under_its_own_endpoint(api, tenant):
    api.workflow(tenant, "fails", [{"name": "a", "type": "transform", "output": "${1 + {}}"}])
    run = api.start(tenant, "fails").json["run_id"]
    api.workflow(tenant, "works", [{"name": "a", "type": "transform", "output": 1}])
    assert api.post("/api/v1/workflow-runs", {"definitionId": "works"}, tenant=tenant).status == 200
    assert api.post(f"/api/v1/runs/{run}/retry", tenant=tenant).status == 200
    for _ in range(2):
        assert api.post(f"/api/v1/runs/{run}/rerun", key="again", tenant=tenant).status == 200
    ended(api, tenant, begin(api, tenant, {"name": "kid", "type": "workflow", "workflow_id": "works"}, wid="parent"))
    define(api, tenant)
    e = Entity(api, tenant)
    e.send(), e.handle(state=1, start=[{"workflow_id": "works"}, {"workflow_id": "none"}])
    harness.wait_until(lambda: e.events("entity.run_started") and e.events("entity.run_refused"), "the entity's runs are decided")
    schedule = "/api/v1/schedules/s"
    assert api.put(schedule, {"workflow_id": "works", "cron": "* * * * * *"}, tenant=tenant).status == 200
    harness.wait_until(lambda: api.get(schedule, tenant=tenant).json["last_time"], "the schedule fires")
    for _ in range(2):
        assert api.post(schedule + "/trigger", tenant=tenant, key="now").status == 200
    assert api.delete(schedule, tenant=tenant).status == 200  # by the same writer: all that it committed before is counted
    scheduled = sum(r["labels"] == {"schedule": "s"} for r in all_runs(api, tenant))
    assert scheduled >= 2
    waits, outcomes = admissions(api, tenant)
    assert waits == {"start": 2, "flat_start": 1, "retry": 1, "rerun": 2, "child": 1, "entity": 1, "schedule": scheduled + 1}
    assert outcomes == {"admitted": 7 + scheduled, "replayed": 2, "refused": 1}


def test_a_scheduled_run_has_waited_since_its_time_and_every_try_counts(api):
    tenant = api.tenant(max_concurrent_runs=1)
    api.workflow(tenant, "hold")
    held = api.start(tenant).json["run_id"]
    assert api.put("/api/v1/schedules/s", {"workflow_id": "hold", "cron": "* * * * * *", "catch_up_s": 3600}, tenant=tenant).status == 200
    harness.wait_until(lambda: admissions(api, tenant)[1].get("limited"), "the schedule meets the limit")
    assert "schedule" not in admissions(api, tenant)[0], "a wait ends with the run's admission"
    assert api.post(f"/api/v1/runs/{held}/cancel", tenant=tenant).status == 200
    harness.wait_until(lambda: admissions(api, tenant)[0].get("schedule"), "there is room")
    api.delete("/api/v1/schedules/s", tenant=tenant)
    waited = parse(metrics(api))["pawl_admission_wait_seconds_sum", (("tenant", tenant), ("endpoint", "schedule"))]
    assert waited >= 1, "the second try comes a second after the first"


def test_the_contexts_of_failed_background_work_are_documented(api):
    contexts = {dict(labels)["context"] for (name, labels) in parse(metrics(api)) if name == "pawl_idempotency_cleanup_failures_total"}
    line = next(l for l in (harness.ROOT / "docs/operations.md").read_text().splitlines() if l.startswith("| `pawl_idempotency_cleanup_failures_total"))
    assert contexts and contexts == set(re.findall(r"`(\w+)`", line))


def test_routes_are_labelled_by_their_pattern(api):
    for i in range(50):
        api.get(f"/api/v1/runs/none-{i}"), api.get(f"/nothing/{i}")
    routes = {dict(labels).get("route") for (name, labels) in parse(metrics(api)) if name == "pawl_http_request_duration_seconds_count"}
    patterns = {path for _, path in openapi.routes_of_the_server()}
    pages = {"/", "/console", "/console/{*}", "/api/v1/oidc-login", "/api/v1/oidc-callback"}  # for browsers, not in the API's description
    assert routes - patterns - pages <= {"", "other", "none"}, routes - patterns


@pytest.mark.one_node("every process bounds the labels of its own metrics")
def test_tenant_labels_are_bounded_at_1000():
    with harness.server() as s:
        def starts(part):
            client = s.client()
            for i in range(part, 1100, 4):
                assert_problem(client.start(f"tenant-{i}", "none"), 404)

        harness.together(4, starts)
        text = metrics(s.client())
        counts = {dict(labels)["tenant"]: v for (name, labels), v in parse(text).items() if name == "pawl_admissions_total"}
        assert len(counts) == 1001 and counts["other"] == 100 and sum(counts.values()) == 1100
        assert subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True).returncode == 0


# --- memory and logs ---

@pytest.mark.one_node("the memory of one process")
def test_idle_memory_is_small():
    with harness.server(tls=False) as s:  # the promise; OpenSSL's tables are some 2 MiB more
        assert_alive(s.client())
        status = open(f"/proc/{s.process.pid}/status").read()
        resident_kib = int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.M).group(1))
        assert resident_kib <= (400 if SANITIZED else 15 if stores.POSTGRES else 12) * 1024


def test_json_logs_are_one_object_a_line():
    with harness.server("--log", "json", "--log-level", "debug") as s:
        api = s.client()
        api.workflow("t")
        api.start("t", headers={"X-Actor": 'quo"te'})
        rawhttp.exchange(s.port, b"\xff\xfe\r\n\r\n")
        assert s.stop() == 0
        lines = s.log().splitlines()
    assert lines
    for line in lines:
        entry = json.loads(line)
        assert entry["level"] in ("debug", "info", "warn", "error") and entry["message"] and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", entry["time"])
    assert any(json.loads(line)["message"] == "draining" for line in lines)


def test_text_logs_are_for_people():
    with harness.server() as s:
        assert s.stop() == 0
        assert all(re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z (debug|info|warn|error) ", line) for line in s.log().splitlines())


# --- the end ---

def refused(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=harness.PATIENCE_S).close()
        return False
    except ConnectionRefusedError:
        return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains(number):
    """Those who wait get their answer, idle connections are closed, nobody new is let in, and the exit code is 0."""
    with harness.server() as s:
        api = s.client()
        api.workflow("t")
        with rawhttp.Wire(s.port) as poll, rawhttp.Wire(s.port) as start, rawhttp.Wire(s.port) as idle, rawhttp.Wire(s.port) as fresh:
            poll.send(rawhttp.json_request("POST", "/api/v1/jobs/claim", {"worker_id": "w", "queues": ["none"], "wait_ms": 30000}, ["X-Tenant-ID: t"]))
            start.send(rawhttp.json_request("POST", "/api/v1/workflows/hold/runs?wait_ms=60000", {}, ["X-Tenant-ID: t", "Idempotency-Key: k"]))
            harness.wait_until(lambda: api.get("/api/v1/runs", tenant="t").json["items"], "the start is in")
            idle.send(rawhttp.request("GET", "/healthz"))
            assert idle.answer().status == 200
            s.process.send_signal(number)
            answer = poll.answer()
            assert answer.status == 200 and answer.json == {"jobs": []} and answer.header("Connection") == "close"
            started = start.answer()
            assert started.status == 200 and started.json["run"]["status"] == "running" and started.header("Connection") == "close"
            assert idle.closed() and fresh.closed()
        code = s.process.wait(timeout=harness.PATIENCE_S + 20)
        assert code == 0 and refused(s.port)
        s.close()
        s.start()
        again = s.client().start("t", body={}, key="k")
        assert again.json["created"] is False and again.json["run_id"] == started.json["run_id"]


@pytest.mark.one_node("all nodes stop at once, and no other is left for the shard of the request; cluster/test_forwarding.py stops one after the other")
def test_a_drain_waits_for_a_request_in_progress_and_a_second_signal_does_not():
    with harness.server() as s:
        with rawhttp.Wire(s.port) as slow, rawhttp.Wire(s.port) as stuck:
            head = ["Content-Type: application/json", "Content-Length: 2"]
            for wire in (slow, stuck):
                wire.send(rawhttp.request("POST", "/api/v1/workflows/w/validate", headers=[*head, "Expect: 100-continue"]))
                assert wire.answer().status == 100  # the head is in, the body is awaited
            s.process.send_signal(signal.SIGTERM)
            harness.wait_until(lambda: refused(s.port), "it drains")
            slow.send(b"{}")
            reply = slow.answer()
            assert reply.status == 200 and reply.header("Connection") == "close" and slow.closed()
            assert s.process.poll() is None, "the other one is still in progress"
            s.process.send_signal(signal.SIGTERM)
            assert s.process.wait(timeout=harness.PATIENCE_S) == 0
        s.close()


def test_a_drain_under_load_loses_nothing_acknowledged():
    with harness.server() as s:
        s.client().workflow("t")
        acknowledged, enough = [], threading.Event()

        def keep_starting():
            client = s.client()
            while True:
                try:
                    r = client.start("t")
                except OSError:
                    return
                except Exception as e:  # http.client: the connection ended between two requests
                    assert "Remote" in type(e).__name__ or "BadStatusLine" in type(e).__name__, e
                    return
                if r.status == 200:
                    acknowledged.append(r.json["run_id"])
                    if len(acknowledged) > 200:
                        enough.set()
                else:
                    assert_problem(r, 503, "SHUTTING_DOWN", retryable=True)

        threads = [threading.Thread(target=keep_starting) for _ in range(8)]
        for t in threads:
            t.start()
        assert enough.wait(harness.PATIENCE_S)
        assert s.stop() == 0
        for t in threads:
            t.join()
        s.start()
        api = s.client()
        assert all(api.get(f"/api/v1/runs/{rid}", tenant="t").status == 200 for rid in acknowledged)


# --- systemd ---

@pytest.mark.one_node("every process speaks to systemd for itself")
@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_systemd_is_told_of_readiness_and_the_end(tmp_path, kind):
    name = str(tmp_path / "notify") if kind == "path" else f"\0pawl-test-{os.getpid()}-{free_port()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(name)
        notify.settimeout(harness.PATIENCE_S)
        with harness.server(env={"NOTIFY_SOCKET": name.replace("\0", "@")}) as s:
            assert notify.recv(100) == b"READY=1"
            assert_alive(s.client())
            assert s.stop() == 0
            assert notify.recv(100) == b"STOPPING=1"


def test_a_notify_socket_that_is_gone_does_no_harm(tmp_path):
    with harness.server(env={"NOTIFY_SOCKET": str(tmp_path / "nobody")}) as s:
        assert_alive(s.client())
