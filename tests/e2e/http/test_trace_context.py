"""W3C trace context: what a start brings is passed on to workers, http steps, child runs and webhooks, as its own test suite checks it."""
import re

import pytest

import harness
import rawhttp
from actions import ended
from harness import wait_until

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"
VALID = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


@pytest.fixture
def api(calling_server):
    return calling_server.client()


def http(name, url, **more):
    return {"name": name, "type": "http", "request": {"method": "GET", "url": url}, **more}


def parts(traceparent):
    found = VALID.fullmatch(traceparent)
    assert found and set(found[1]) != {"0"} and set(found[2]) != {"0"}, traceparent
    return found.groups()


def start(api, tenant, *headers):
    """With header lines, which may have the same name."""
    lines = [f"X-Tenant-ID: {tenant}", "Connection: close", *(f"{name}: {value}" for name, value in headers)]
    reply = rawhttp.exchange(api.port, rawhttp.json_request("POST", "/api/v1/workflows/w/runs", {"input": {}}, lines))
    assert reply.status == 200, reply
    return reply.json["run_id"]


def sent_on(api, tenant, receiver, *headers):
    """The trace context of the call of an http step: (traceparent, tracestate)."""
    api.workflow(tenant, "w", [http("call", receiver.answers("/trace", (200, {})))])
    run = start(api, tenant, *headers)
    assert ended(api, tenant, run)["status"] == "succeeded"
    [call] = receiver.at("/trace")
    return call.headers["traceparent"], call.headers.get("tracestate")


# --- traceparent ---

@pytest.mark.parametrize("given", [PARENT, f"cc-{TRACE}-{SPAN}-01", f"cc-{TRACE}-{SPAN}-01-more", f"00-{TRACE}-{SPAN}-00", f"\t {PARENT} \t"])
def test_a_valid_trace_is_continued_with_a_new_parent(api, tenant, receiver, given):
    trace, span, flags = parts(sent_on(api, tenant, receiver, ("traceparent", given))[0])
    assert trace == TRACE and span != SPAN and flags == ("00" if given.strip().endswith("-00") else "01")


@pytest.mark.parametrize("given", [
    [], [("trace-parent", PARENT)], [("trace.parent", PARENT)], [("traceparent", PARENT), ("traceparent", PARENT)], [("traceparent", f"{PARENT}.")],
    [("traceparent", f"{PARENT}-more")], [("traceparent", f"ff-{TRACE}-{SPAN}-01")], [("traceparent", f"00-{TRACE}-{'0' * 16}-01")], [("traceparent", f"00-{TRACE}-{SPAN}-1")],
])
def test_without_a_valid_trace_a_new_one_begins(api, tenant, receiver, given):
    trace, _, flags = parts(sent_on(api, tenant, receiver, *given, ("tracestate", "foo=1"))[0])
    assert trace != TRACE and flags == "01"
    assert receiver.at("/trace")[0].headers.get("tracestate") is None, "it means nothing without a traceparent"


@pytest.mark.parametrize("name", ["TraceParent", "TrAcEpArEnT", "TRACEPARENT"])
def test_the_case_of_the_name_does_not_matter(api, tenant, receiver, name):
    assert parts(sent_on(api, tenant, receiver, (name, PARENT))[0])[0] == TRACE


def test_a_run_without_a_trace_begins_one_with_its_own_id(api, held):
    run = api.start(held).json["run_id"]
    assert parts(api.work(held)["traceparent"])[0] == run.replace("-", "")


@pytest.fixture
def held(api):
    tenant = api.tenant()
    api.workflow(tenant, "hold", [{"name": "work", "type": "task", "handler": "h"}])
    return tenant


# --- tracestate ---

MANY = [f"bar{i:02}={i:02}" for i in range(1, 34)]


@pytest.mark.parametrize("values,passed_on", [
    (["foo=1,bar=2"], "foo=1,bar=2"), (["foo=1", ""], "foo=1"), (["", "foo=1"], "foo=1"), (["foo=1,bar=2", "rojo=1,congo=2", "baz=3"], "foo=1,bar=2,rojo=1,congo=2,baz=3"),
    (["foo=1", "foo=1"], "foo=1,foo=1"), (["foo=1 \t , \t bar=2, \t baz=3"], "foo=1 \t , \t bar=2, \t baz=3"), (["\t foo=1 \t"], "foo=1"),
    ([",".join(MANY[:10]), ",".join(MANY[10:32])], ",".join(MANY[:32])), ([",".join(MANY[:10]), ",".join(MANY[10:])], None),
    ([""], None), (["foo =1"], None), (["FOO=1"], None), (["foo.bar=1"], None), (["foo@=1,bar=2"], None), (["@foo=1,bar=2"], None), (["foo@@bar=1,bar=2"], None),
    (["foo=bar=baz"], None), (["foo=,bar=3"], None), (["z" * 256 + "=1"], "z" * 256 + "=1"), (["z" * 257 + "=1"], None), ([f"a={'v' * 256}," * 16], None),
])
def test_a_valid_tracestate_is_passed_on_as_it_is(api, tenant, receiver, values, passed_on):
    traceparent, state = sent_on(api, tenant, receiver, ("traceparent", PARENT), *(("tracestate", v) for v in values))
    assert parts(traceparent)[0] == TRACE, "the trace goes on either way"
    assert (state.strip(",") if state else state) == passed_on


# --- how far it travels ---

def test_every_attempt_has_a_parent_id_of_its_own(api, tenant, receiver):
    url = receiver.answers("/again", (503, {}), (503, {}), (200, {}))
    api.workflow(tenant, "w", [http("a", url, retry={"max_attempts": 3, "backoff_ms": 1}), http("b", receiver.answers("/next", (200, {})))])
    run = start(api, tenant, ("traceparent", PARENT), ("tracestate", "foo=1"))
    assert ended(api, tenant, run)["status"] == "succeeded"
    calls = receiver.at("/again") + receiver.at("/next")
    assert len(calls) == 4 and {c.headers["tracestate"] for c in calls} == {"foo=1"}
    seen = [parts(c.headers["traceparent"]) for c in calls]
    assert {s[0] for s in seen} == {TRACE} and len({s[1] for s in seen}) == 4


def test_a_released_job_is_another_span_at_its_next_worker(api, held):
    api.start(held, headers={"traceparent": PARENT})
    claim = {"worker_id": "w1"}
    first = api.post("/api/v1/jobs/claim", claim, tenant=held).json["jobs"][0]
    assert api.post(f"/api/v1/jobs/{first['job_id']}/release", {"lease_token": first["lease_token"]}, tenant=held).status == 200
    second = api.post("/api/v1/jobs/claim", claim, tenant=held).json["jobs"][0]
    assert first["attempt"] == second["attempt"] and first["traceparent"] != second["traceparent"]


def test_a_child_run_and_a_rerun_stay_in_the_trace(api, tenant):
    api.workflow(tenant, "inner", [{"name": "work", "type": "task", "handler": "h"}])
    api.workflow(tenant, "w", [{"name": "child", "type": "workflow", "workflow_id": "inner"}])
    run = start(api, tenant, ("traceparent", PARENT), ("tracestate", "foo=1"))
    first = wait_until(lambda: api.work(tenant), "the child's job")
    assert parts(first["traceparent"])[0] == TRACE and first["tracestate"] == "foo=1"
    assert ended(api, tenant, run)["status"] == "succeeded"
    assert api.post(f"/api/v1/runs/{first['run_id']}/rerun", {}, tenant=tenant).status == 200
    again = wait_until(lambda: api.work(tenant), "the job of the rerun")
    assert parts(again["traceparent"])[0] == TRACE and again["tracestate"] == "foo=1" and again["traceparent"] != first["traceparent"]


def test_a_webhook_gets_the_trace_of_the_run(api, tenant, receiver):
    url = receiver.answers("/hook", (200, {}))
    assert api.post("/api/v1/webhooks", {"url": url, "events": ["run.succeeded"]}, tenant=tenant).status == 200
    api.workflow(tenant, "w", [{"name": "work", "type": "task", "handler": "h"}])
    start(api, tenant, ("traceparent", PARENT), ("tracestate", "foo=1"))
    api.work(tenant)
    [sent] = wait_until(lambda: receiver.at("/hook"), "the delivery")
    trace, span, _ = parts(sent.headers["traceparent"])
    assert (trace, sent.headers["tracestate"]) == (TRACE, "foo=1") and span != SPAN


def test_a_trace_outlives_a_restart():
    with harness.server() as server:
        api = server.client()
        tenant = api.tenant()
        api.workflow(tenant, "w", [{"name": n, "type": "task", "handler": "h"} for n in ("a", "b")])
        api.start(tenant, "w", headers={"traceparent": PARENT, "tracestate": "foo=1"})
        first = api.work(tenant)
        server.kill()
        server.start()
        second = server.client().work(tenant)
    assert second["step"] == "b" and second["tracestate"] == "foo=1"
    assert parts(first["traceparent"])[0] == parts(second["traceparent"])[0] == TRACE and first["traceparent"] != second["traceparent"]
