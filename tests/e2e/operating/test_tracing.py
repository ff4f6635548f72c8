"""--otlp: spans of requests, runs and attempts, what they are below, and a collector that is away, slow or unwilling."""
import contextlib
import datetime
import socket

import pytest

import cli
import harness
import rawhttp
from actions import claim, ended, show, step
from collector import Collector
from harness import wait_until
from prometheus import metrics, parse
from receiver import Receiver

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
PARENT = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
INTERNAL, SERVER, CLIENT = 1, 2, 3
ERROR = 2


@contextlib.contextmanager
def exporting(*answers, flags=()):
    """(server, client, tenant, collector)"""
    with Collector(*answers) as collector, harness.server(*collector.flag, *flags) as server:
        api = server.client()
        yield server, api, api.tenant(), collector


def run_span(collector, run):
    return wait_until(lambda: [s for s in collector.spans(pawl__run__id=run) if "pawl.run.status" in s.attributes], "the run's span")[0]


def attempts(collector, run, count):
    def look():
        found = [s for s in collector.spans(pawl__run__id=run) if "pawl.job.id" in s.attributes]
        return found if len(found) >= count else None

    found = wait_until(look, f"{count} attempts")
    assert len(found) == count, found
    return found


def counts(api):
    """(exported, {reason: dropped})"""
    page = parse(metrics(api))
    dropped = {dict(labels)["reason"]: int(v) for (name, labels), v in page.items() if name == "pawl_otlp_spans_dropped_total"}
    return int(page["pawl_otlp_spans_exported_total", ()]), dropped


def ms(time):
    return int(datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp() * 1000 + 0.5)


def work(api, tenant, **more):
    """A run of one job that is done: (start, job)."""
    api.workflow(tenant, "hold")
    r = api.start(tenant, **more)
    assert r.status == 200, r
    return r, api.work(tenant)


# --- what is exported ---

def test_a_run_its_attempt_and_its_request_are_spans_of_the_callers_trace():
    with exporting() as (server, api, tenant, collector):
        start, job = work(api, tenant, headers={**PARENT, "tracestate": "foo=1"})
        run = start.json["run_id"]
        shown = show(api, tenant, run)
        top, [attempt] = run_span(collector, run), attempts(collector, run, 1)
        [request] = wait_until(lambda: [s for s in collector.spans() if s.trace == TRACE and s.kind == SERVER], "the request's span")
        assert {r["service.name"] for r in collector.resources()} == {"pawl"}
        assert {r["service.version"] for r in collector.resources()} == {cli.pawl("--version").out.split()[1]}
        assert {(r.method, r.headers["Content-Type"]) for r in collector.requests()} == {("POST", "application/json")}

    assert (top.trace, top.parent, top.kind, top.name, top.state, top.flags, top.status) == (TRACE, SPAN, INTERNAL, "hold", "foo=1", 1, {})
    assert top.attributes == {"pawl.tenant": tenant, "pawl.run.id": run, "pawl.run.status": "succeeded", "pawl.workflow.id": "hold", "pawl.workflow.version": 1}
    assert (top.start, top.end) == (ms(shown["created_at"]) * 10**6, ms(shown["finished_at"]) * 10**6)

    assert (attempt.trace, attempt.parent, attempt.kind, attempt.name, attempt.state, attempt.status) == (TRACE, top.id, INTERNAL, "work", "foo=1", {})
    assert attempt.attributes == {"pawl.run.id": run, "pawl.job.id": job["job_id"], "pawl.job.outcome": "succeeded", "pawl.step.type": "task", "pawl.job.attempt": 1, "pawl.worker.id": "w1"}
    assert job["traceparent"] == f"00-{TRACE}-{attempt.id}-01", "the worker's own spans are below it"
    assert top.start <= attempt.start <= attempt.end <= top.end

    path = "/api/v1/workflows/hold/runs"
    assert (request.parent, request.name, request.status) == (SPAN, "POST /api/v1/workflows/{}/runs", {})
    assert request.attributes == {"http.request.method": "POST", "http.route": "/api/v1/workflows/{}/runs", "url.path": path,
                                  "client.address": "127.0.0.1", "http.response.status_code": 200}
    assert len({top.id, attempt.id, request.id, SPAN}) == 4


def test_a_run_without_a_callers_trace_is_below_its_request():
    with exporting() as (server, api, tenant, collector):
        start, job = work(api, tenant)
        top = run_span(collector, start.json["run_id"])
        [request] = wait_until(lambda: [s for s in collector.spans() if s.id == top.parent], "the request's span")
    assert request.kind == SERVER and request.parent is None and request.flags == 1
    assert request.trace == top.trace == start.header("X-Trace-Id") == job["traceparent"].split("-")[1]


def test_what_the_caller_does_not_sample_is_not_exported():
    with exporting() as (server, api, tenant, collector):
        _, job = work(api, tenant, headers={"traceparent": f"00-{TRACE}-{SPAN}-00"})
        assert job["traceparent"].endswith("-00")
        later, _ = work(api, tenant)
        run_span(collector, later.json["run_id"])
        assert server.stop() == 0
        assert [s for s in collector.spans() if s.trace == TRACE] == []


def test_every_attempt_is_a_span_and_a_lost_one_says_why():
    with exporting() as (server, api, tenant, collector):
        api.workflow(tenant, "w", [{"name": "work", "type": "task", "handler": "h", "retry": {"max_attempts": 3, "backoff_ms": 1}}])
        run = api.start(tenant, "w", headers=PARENT).json["run_id"]
        jobs = []
        for verb, body in [("fail", {"error": {"code": "DOWN", "message": "no route"}}), ("release", {}), ("suspend", {"until": "2020-01-01T00:00:00Z"}), ("complete", {"output": {}})]:
            job = wait_until(lambda: claim(api, tenant), "the job")[0]
            assert api.post(f"/api/v1/jobs/{job['job_id']}/{verb}", {"lease_token": job["lease_token"], **body}, tenant=tenant).status == 200
            jobs.append(job)
        found = attempts(collector, run, 4)
        top = run_span(collector, run)
    assert [(s.attributes["pawl.job.outcome"], s.attributes["pawl.job.attempt"]) for s in found] == [("failed", 1), ("released", 2), ("suspended", 2), ("succeeded", 2)]
    assert [s.status for s in found] == [{"code": ERROR, "message": "no route"}, {}, {}, {}]
    assert found[0].attributes["error.type"] == "DOWN"
    assert [f"00-{TRACE}-{s.id}-01" for s in found] == [j["traceparent"] for j in jobs]
    assert {s.parent for s in found} == {top.id} and len({s.id for s in found}) == 4


def test_a_failed_run_and_a_failed_request_are_errors():
    with exporting() as (server, api, tenant, collector):
        api.workflow(tenant, "w", [{"name": "work", "type": "task", "handler": "h"}])
        run = api.start(tenant, "w").json["run_id"]
        [job] = claim(api, tenant)
        api.post(f"/api/v1/jobs/{job['job_id']}/fail", {"lease_token": job["lease_token"], "error": {"code": "BAD", "message": "no", "retryable": False}}, tenant=tenant)
        top = run_span(collector, run)
        api.get("/nothing/at/all")
        [missing] = wait_until(lambda: collector.spans(url__path="/nothing/at/all"), "the request's span")
    assert top.status["code"] == ERROR and top.attributes["pawl.run.status"] == "failed"
    assert (missing.name, missing.attributes["http.response.status_code"], missing.status) == ("GET", 404, {}), "a client's error is not the server's"


def test_calls_children_and_sleeps_are_below_their_run():
    with exporting(flags=["--allow-private-addresses"]) as (server, api, tenant, collector), Receiver() as receiver:
        api.workflow(tenant, "inner", [{"name": "nap", "type": "sleep", "duration_ms": 1}])
        api.workflow(tenant, "w", [
            {"name": "call", "type": "http", "request": {"method": "GET", "url": receiver.answers("/x", (200, {}))}},
            {"name": "child", "type": "workflow", "workflow_id": "inner"},
        ])
        run = api.start(tenant, "w", headers=PARENT).json["run_id"]
        shown = ended(api, tenant, run)
        assert shown["status"] == "succeeded", shown
        call, child = sorted(attempts(collector, run, 2), key=lambda s: s.name)
        [sent] = receiver.at("/x")
        inner = wait_until(lambda: collector.spans(pawl__workflow__id="inner"), "the child's span")[0]
        [nap] = attempts(collector, inner.attributes["pawl.run.id"], 1)
    assert sent.headers["traceparent"] == f"00-{TRACE}-{call.id}-01"
    assert (inner.trace, inner.parent) == (TRACE, child.id), "the child is below the attempt that it is a part of"
    assert (nap.parent, nap.attributes["pawl.step.type"], nap.attributes["pawl.job.outcome"]) == (inner.id, "sleep", "succeeded")


def test_every_attempt_of_a_delivery_is_a_span_below_the_run():
    with exporting() as (server, api, tenant, collector), Receiver() as receiver:
        url = receiver.answers("/hook", (500, b"sorry"), (200, b""))
        hook = api.post("/api/v1/webhooks", {"url": url, "events": ["run.succeeded"]}, tenant=tenant).json
        start, _ = work(api, tenant, headers={**PARENT, "tracestate": "foo=1"})
        run = start.json["run_id"]
        top = run_span(collector, run)
        first, second = wait_until(lambda: [d for d in [collector.spans(pawl__webhook__id=hook["id"])] if len(d) == 2], "both attempts")[0]
        sent = [r.headers["traceparent"] for r in receiver.at("/hook")]
    assert sent == [f"00-{TRACE}-{first.id}-01", f"00-{TRACE}-{second.id}-01"] and first.id != second.id
    for span in first, second:
        assert (span.trace, span.parent, span.kind, span.name, span.state) == (TRACE, top.id, CLIENT, "webhook delivery", "foo=1")
        assert top.end <= span.start <= span.end
    event = {"pawl.run.id": run, "pawl.webhook.id": hook["id"], "pawl.event.id": first.attributes["pawl.event.id"], "pawl.event.type": "run.succeeded", "http.request.method": "POST"}
    assert first.attributes == {**event, "pawl.delivery.attempt": 1, "pawl.delivery.outcome": "retried", "http.response.status_code": 500}
    assert second.attributes == {**event, "pawl.delivery.attempt": 2, "pawl.delivery.outcome": "delivered", "http.response.status_code": 200}
    assert first.status["code"] == ERROR and "500" in first.status["message"] and second.status == {}


def test_a_cancelled_run_ends_what_was_under_way():
    with exporting() as (server, api, tenant, collector):
        api.workflow(tenant, "w", [
            {"name": "claimed", "type": "task", "handler": "h", "queue": "a", "needs": []}, {"name": "queued", "type": "task", "handler": "h", "queue": "b", "needs": []},
            {"name": "asked", "type": "approval", "prompt": "Go?", "needs": []}, {"name": "waits", "type": "wait_signal", "signal": "go", "needs": []},
        ])
        run = api.start(tenant, "w").json["run_id"]
        claim(api, tenant, queues=["a"])
        assert api.post(f"/api/v1/runs/{run}/cancel", {}, tenant=tenant).status == 200
        top, found = run_span(collector, run), attempts(collector, run, 3)
    assert (top.attributes["pawl.run.status"], top.status) == ("cancelled", {})
    assert {s.name: (s.attributes["pawl.job.outcome"], s.status) for s in found} == dict.fromkeys(["claimed", "asked", "waits"], ("cancelled", {})), "a job in its queue has no attempt"


def test_a_lost_lease_is_an_error_and_a_decision_is_a_span():
    with exporting() as (server, api, tenant, collector):
        api.workflow(tenant, "w", [{"name": "work", "type": "task", "handler": "h"}, {"name": "ok", "type": "approval", "prompt": "Go?"}])
        run = api.start(tenant, "w").json["run_id"]
        claim(api, tenant, lease_ms=100)
        [lost] = attempts(collector, run, 1)
        wait_until(lambda: api.work(tenant), "the second attempt")
        asked = wait_until(lambda: step(show(api, tenant, run), "ok")["job_id"], "the approval")
        assert api.post(f"/api/v1/approvals/{asked}/reject", {}, tenant=tenant, headers={"X-Actor": "ann"}).status == 200
        _, done, decided = attempts(collector, run, 3)
        top = run_span(collector, run)
    assert (lost.attributes["pawl.job.outcome"], lost.attributes["error.type"], lost.status["code"]) == ("lease_expired", "LEASE_EXPIRED", ERROR)
    assert (done.attributes["pawl.job.outcome"], done.attributes["pawl.job.attempt"]) == ("succeeded", 2)
    assert (decided.name, decided.attributes["pawl.job.outcome"], decided.status["code"]) == ("ok", "denied", ERROR)
    assert (top.attributes["pawl.run.status"], top.status["code"]) == ("denied", ERROR)


def test_ids_and_times_outlive_a_restart():
    with exporting() as (server, api, tenant, collector):
        api.workflow(tenant, "w", [{"name": n, "type": "task", "handler": "h"} for n in ("a", "b")])
        run = api.start(tenant, "w", headers=PARENT).json["run_id"]
        api.work(tenant)
        attempts(collector, run, 1)
        server.kill()
        server.start()
        api = server.client()
        api.work(tenant)
        top = run_span(collector, run)
        assert {s.parent for s in attempts(collector, run, 2)} == {top.id}
        assert top.parent == SPAN and top.start == ms(show(api, tenant, run)["created_at"]) * 10**6


# --- the collector ---

def test_everything_is_sent_before_an_orderly_stop():
    with exporting() as (server, api, tenant, collector):
        runs = {work(api, tenant)[0].json["run_id"] for _ in range(20)}
        assert server.stop() == 0
        ended_runs = {s.attributes["pawl.run.id"] for s in collector.spans() if "pawl.run.status" in s.attributes}
        assert ended_runs == runs
        asked = [s.name for s in collector.spans() if s.kind == SERVER and s.name != "GET /readyz"]  # which a start of three nodes asks
        assert len(asked) == 1 + 20 * 4, "the tenant; a workflow, a start, a claim and a result each"


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_batch_that_the_collector_cannot_take_now_is_sent_again(status):
    with exporting((status, {}), (200, {})) as (server, api, tenant, collector):
        run = work(api, tenant)[0].json["run_id"]

        def batches():
            return [{s["spanId"] for s in r.json["resourceSpans"][0]["scopeSpans"][0]["spans"]} for r in collector.requests()]

        wait_until(lambda: any(batches()[0] <= later for later in batches()[1:]), "nothing of the first is missing in a later one")
        assert run_span(collector, run) and set(counts(api)[1].values()) == {0}


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_what_the_collector_refuses_is_dropped_and_counted(status):
    with exporting((status, {"message": "no"}), (200, {})) as (server, api, tenant, collector):
        work(api, tenant)
        wait_until(lambda: counts(api)[1]["rejected"] > 0, "the drop")
        refused = len(collector.requests()[0].json["resourceSpans"][0]["scopeSpans"][0]["spans"])
        later, _ = work(api, tenant)
        run_span(collector, later.json["run_id"])
        assert counts(api)[1] == {"queue_full": 0, "rejected": refused, "unreachable": 0, "stopped": 0}
        assert "the collector refuses spans" in server.log()


def test_spans_that_the_collector_takes_only_in_part_are_counted():
    with exporting((200, {"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}}), (200, {})) as (server, api, tenant, collector):
        work(api, tenant)
        wait_until(lambda: counts(api)[1]["rejected"] == 2, "the count")


def test_a_collector_that_is_away_holds_nobody_up():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        with harness.server("--otlp", f"http://127.0.0.1:{taken.getsockname()[1]}") as server:
            api = server.client()
            tenant = api.tenant()
            run = work(api, tenant)[0].json["run_id"]
            assert show(api, tenant, run)["status"] == "succeeded"
            assert server.stop() == 0
            server.start()
            assert show(server.client(), tenant, run)["status"] == "succeeded"


def test_a_slow_collector_holds_nobody_up_and_loses_nothing():
    with exporting() as (server, api, tenant, collector):
        def slow(handler, sent):
            collector.gate.wait()
            handler.answer(200, {})

        collector.on("/v1/traces", slow)
        runs = {work(api, tenant)[0].json["run_id"]}
        wait_until(collector.requests, "the first batch")
        runs |= {work(api, tenant)[0].json["run_id"] for _ in range(20)}
        assert all(show(api, tenant, run)["status"] == "succeeded" for run in runs)
        collector.gate.set()
        for run in runs:
            run_span(collector, run)
        assert set(counts(api)[1].values()) == {0}


def test_a_server_stops_although_the_collector_does_not_answer():
    with exporting() as (server, api, tenant, collector):
        collector.on("/v1/traces", lambda handler, sent: collector.gate.wait())
        work(api, tenant)
        assert server.stop() == 0


def test_what_does_not_fit_is_dropped_and_counted():
    with exporting() as (server, api, tenant, collector):
        collector.on("/v1/traces", lambda handler, sent: collector.gate.wait())
        many = rawhttp.request("GET", "/healthz") * 500
        with rawhttp.Wire(server.port) as wire:
            for _ in range(18):
                wire.send(many)
                assert all(wire.answer().status == 200 for _ in range(500))
        exported, dropped = wait_until(lambda: [c for c in [counts(api)] if c[1]["queue_full"] > 0], "a drop")[0]
        assert exported == 0 and dropped["queue_full"] < 9000 - 16 * 500
        start, _ = work(api, tenant)
        assert show(api, tenant, start.json["run_id"])["status"] == "succeeded"


def test_without_the_option_nothing_is_exported(api):
    assert "pawl_otlp_spans_dropped_total{" not in metrics(api)


@pytest.mark.parametrize("url", ["", "collector:4318", "ftp://collector", "http://", "http://u@collector", "http://collector/?a=1", "http://collector/#a"])
def test_a_url_that_cannot_be_called_is_refused_at_the_start(url, tmp_path):
    r = cli.pawl("serve", "--otlp", url, "--store", f"sqlite:{tmp_path}/x.db", "--listen", "127.0.0.1:0")
    assert r.code == 2 and "--otlp" in r.err
