"""Connections: kept, pipelined, slow, idle, and many of them. None may keep the server from serving the others."""
import contextlib
import resource
import threading
import time

import pytest

import endpoint
import harness
from checks import assert_alive, assert_problem
from harness import wait_until
from prometheus import metrics, parse
from rawhttp import Wire, json_request, request

HEAD_LIMIT_S, BODY_LIMIT_S = 10, 10  # src/base/limits.h


def test_a_connection_is_kept_across_answers_of_every_kind(dev_server, tenant):
    asked = [request("GET", "/healthz"), request("GET", "/nothing"), request("BREW", "/healthz"), request("GET", "/api/v1/runs?limit=0"),
             json_request("POST", "/api/v1/jobs/claim", b"{", [f"X-Tenant-ID: {tenant}"]), request("GET", "/healthz")]
    with Wire(dev_server.port) as wire:
        got = []
        for data in asked:
            wire.send(data)
            reply = wire.answer()
            assert (reply.header("Connection") or "").lower() != "close"
            got.append(reply.status)
        assert got == [200, 404, 405, 400, 400, 200]


def test_a_connection_ends_when_the_client_says_so(dev_server):
    for data in (request("GET", "/healthz", headers=["Connection: close"]), b"GET /healthz HTTP/1.0\r\n\r\n"):
        with Wire(dev_server.port) as wire:
            wire.send(data)
            assert wire.answer().status == 200
            assert wire.closed()


def test_pipelined_requests_are_answered_in_order(dev_server, api, tenant):
    """Also behind one that waits: the long poll's empty answer comes before the rest."""
    api.workflow(tenant)
    head = [f"X-Tenant-ID: {tenant}"]
    claim = json_request("POST", "/api/v1/jobs/claim", {"worker_id": "w", "queues": ["none"], "wait_ms": 50}, head)
    starts = [json_request("POST", "/api/v1/workflows/hold/runs", {"input": i}, [*head, f"Idempotency-Key: pipe-{i}"]) for i in range(20)]
    with Wire(dev_server.port) as wire:
        wire.send(claim + b"".join(starts) + request("GET", "/healthz") + request("GET", "/nothing"))
        assert wire.answer().json == {"jobs": []}
        assert [wire.answer().json["run"]["input"] for _ in starts] == list(range(20))
        assert wire.answer().json["status"] == "ok"
        assert_problem(wire.answer(), 404)
    assert len(api.get("/api/v1/runs?limit=200", tenant=tenant).json["items"]) == 20


def test_expect_100_continue_gets_leave_before_the_body(dev_server, api, tenant):
    api.workflow(tenant)
    body = b'{"input":{"a":1}}'
    head = request("POST", "/api/v1/workflows/hold/runs", headers=[
        "Expect: 100-continue", "Content-Type: application/json", f"X-Tenant-ID: {tenant}", f"Content-Length: {len(body)}"])
    with Wire(dev_server.port) as wire:
        wire.send(head)
        assert wire.answer().status == 100
        wire.send(body)
        reply = wire.answer()
        assert reply.status == 200 and reply.json["run"]["input"] == {"a": 1}


def test_expect_100_continue_for_too_much_is_refused_instead(dev_server):
    head = request("POST", "/api/v1/jobs/claim", headers=["Expect: 100-continue", "Content-Type: application/json", "Content-Length: 2000000"])
    with Wire(dev_server.port) as wire:
        wire.send(head)
        assert_problem(wire.answer(), 413, "BODY_TOO_LARGE")
        assert wire.closed()


def test_a_request_in_pieces_is_one_request(dev_server, api, tenant):
    api.workflow(tenant)
    data = json_request("POST", "/api/v1/workflows/hold/runs", {"input": "ä" * 20}, [f"X-Tenant-ID: {tenant}"])
    with Wire(dev_server.port) as wire:
        for i in range(len(data)):
            wire.send(data[i:i + 1])
        reply = wire.answer()
        assert reply.status == 200 and reply.json["run"]["input"] == "ä" * 20


def test_300_idle_connections_block_nobody(dev_server, api, tenant):
    api.workflow(tenant)
    with contextlib.ExitStack() as stack:
        wires = []
        for _ in range(300):
            wires.append(stack.enter_context(Wire(dev_server.port)))
            wires[-1].send(request("GET", "/healthz"))
            assert wires[-1].answer().status == 200
        for wire in wires[::3]:
            wire.send(b"GET /heal")  # idle in the middle of the next one
        for i in range(20):
            assert api.start(tenant, key=f"idle-{i}").status == 200
            assert api.work(tenant)["attempt"] == 1
        for i, wire in enumerate(wires):
            wire.send(b"thz HTTP/1.1\r\nHost: localhost\r\n\r\n" if i % 3 == 0 else request("GET", "/healthz"))
        assert [w.answer().status for w in wires] == [200] * 300


def test_200_waiting_claims_block_nobody(dev_server, api, tenant):
    """Each gets one of 200 jobs; none gets two, none stays behind."""
    api.workflow(tenant)
    claim = json_request("POST", "/api/v1/jobs/claim", {"worker_id": "w", "wait_ms": 30000}, [f"X-Tenant-ID: {tenant}"])
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(dev_server.port)) for _ in range(200)]
        for wire in wires:
            wire.send(claim)
        runs = {api.start(tenant).json["run_id"] for _ in wires}
        got = [wire.answer().json["jobs"] for wire in wires]
    assert all(len(jobs) == 1 for jobs in got)
    assert {jobs[0]["run_id"] for jobs in got} == runs


# --- slow clients ---

def trickle(port, first, piece, ended):
    """Sends `piece` again and again until the server hangs up; then notes that it did."""
    with Wire(port) as wire:
        wire.send(first)
        while wire.is_open() and wire.send(piece):
            time.sleep(0.2)  # the slowness under test; nothing waits for it
        ended.set()


@pytest.mark.slow
def test_slow_clients_are_cut_off_while_others_are_served(dev_server, api, tenant):
    """All kinds at once. Each sends a byte now and then, so that it is never silent, and is cut off all the same."""
    api.workflow(tenant)
    post = b"POST /api/v1/jobs/claim HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    kinds = {
        "request line": (b"GET /", b"a"),
        "header": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: ", b"a"),
        "head of a second request": (request("GET", "/healthz") + b"GET /", b"a"),
        "silence": (b"", b""),
        "body": (post + b"Content-Length: 1000000\r\n\r\n", b" "),
        "chunks": (post + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    }
    clients = []
    for name, (first, piece) in [*kinds.items()] * 5:
        ended = threading.Event()
        clients.append((name, ended))
        threading.Thread(target=trickle, args=(dev_server.port, first, piece, ended), daemon=True).start()

    def cut_off(waited_for):
        assert_alive(api)
        assert api.start(tenant).status == 200 and api.work(tenant)
        return all(ended.wait(0.05) for name, ended in clients if name in waited_for)

    heads = set(kinds) - {"body", "chunks"}
    harness.wait_until(lambda: cut_off(heads), "slow heads are cut off", HEAD_LIMIT_S + harness.PATIENCE_S)
    harness.wait_until(lambda: cut_off(kinds), "slow bodies are cut off", BODY_LIMIT_S + harness.PATIENCE_S)


def test_a_client_that_does_not_read_its_answers_blocks_nobody(dev_server, api, tenant):
    """It asks for far more than the socket buffers hold and never reads."""
    api.workflow(tenant)
    for _ in range(4):
        api.start(tenant, body={"input": "x" * 200_000})
    page = request("GET", "/api/v1/runs", headers=[f"X-Tenant-ID: {tenant}"])
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(Wire(dev_server.port)).send(page * 50)
        for _ in range(20):
            assert api.start(tenant).status == 200
            assert_alive(api)


def test_a_client_that_leaves_before_its_answer_has_its_run_all_the_same(dev_server, api, tenant):
    api.workflow(tenant)
    with Wire(dev_server.port) as wire:
        wire.send(json_request("POST", "/api/v1/workflows/hold/runs?wait_ms=30000", {}, [f"X-Tenant-ID: {tenant}", "Idempotency-Key: gone"]))
        harness.wait_until(lambda: api.get("/api/v1/runs", tenant=tenant).json["items"], "the run is there")
    again = api.start(tenant, body={}, key="gone")
    assert again.status == 200 and again.json["created"] is False and again.header("Idempotent-Replayed") == "true"


@pytest.mark.slow
def test_the_waiting_requests_of_one_tenant_leave_room_for_the_others(most=8192):
    """Each of them holds a connection, of which the server has a limited number."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    claim = {"worker_id": "w", "queues": ["q"], "wait_ms": 30_000}
    with harness.server() as server, contextlib.ExitStack() as open_sockets:
        api = server.client()
        api.workflow("greedy")  # a tenant that is not stored yet may be any: each job would wake all its claims
        request = json_request("POST", "/api/v1/jobs/claim", claim, ["X-Tenant-ID: greedy"])
        for _ in range(most):
            open_sockets.enter_context(endpoint.connect(server.port)).sendall(request)
        wait_until(lambda: parse(metrics(api))["pawl_requests_waiting", ()] == most, "all of them wait")
        assert_problem(api.post("/api/v1/jobs/claim", claim, tenant="greedy"), 503, "OVERLOADED", retryable=True)
        assert api.post("/api/v1/jobs/claim", {**claim, "wait_ms": 0}, tenant="greedy").json == {"jobs": []}, "a request that does not wait"
        api.workflow("other", "w", [{"name": "t", "type": "task", "handler": "h", "queue": "q"}])
        api.start("other", "w")
        assert len(api.post("/api/v1/jobs/claim", claim, tenant="other").json["jobs"]) == 1, "and one of another tenant that waits"
