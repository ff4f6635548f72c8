"""A job is handed only to a worker that is still there: one that has closed its connection while it waited, or before its answer was
sent, costs nobody the time of a lease."""
import json
import socket
import ssl
import struct

import pytest

import endpoint
import faults
import harness
from actions import begin, claim, complete, events, show, task
from harness import wait_until
from rawhttp import CLOSED, Wire

HOUR_MS = 3600 * 1000
LARGE = {"input": "x" * 1000000}
MORE_THAN_BUFFERED = 5  # of them: the kernel takes up to 4 MiB of an answer


def request(path, tenant, body):
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nX-Tenant-ID: {tenant}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def long_poll(tenant, **more):
    return request("/api/v1/jobs/claim", tenant, {"worker_id": "gone", "wait_ms": 30000, "lease_ms": HOUR_MS, **more})


def reset(sock):
    """Closes it with RST, as the kernel does for a process that was killed with data unread."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def half_close(sock):
    """The method of the plain socket: that of ssl would forget how to decrypt what still comes."""
    socket.socket.shutdown(sock, socket.SHUT_WR)


WAYS_TO_GO = {"reset": reset, "close": lambda sock: sock.close(), "half-close": half_close}


@pytest.fixture(params=WAYS_TO_GO)
def go(request):
    return WAYS_TO_GO[request.param]


def polls_have_arrived(api, others):
    """Every round of the server reads what has come on any connection, and answers one of these."""
    for _ in range(10):
        assert api.get("/healthz").status == 200
    for wire in others:
        assert wire.is_open()


def test_a_job_passes_by_a_long_poll_whose_client_has_gone(api, dev_server, tenant, go):
    api.workflow(tenant)
    wires = [Wire(dev_server.port) for _ in range(3)]
    for wire in wires:
        wire.send(long_poll(tenant))
    polls_have_arrived(api, wires)
    for wire in wires:
        go(wire.sock)
    with Wire(dev_server.port) as patient:
        patient.send(long_poll(tenant, worker_id="here"))
        run = api.start(tenant).json["run_id"]
        [job] = patient.answer().json["jobs"]
        assert (job["run_id"], job["attempt"]) == (run, 1)
        complete(api, tenant, job)
    for wire in wires:
        wire.sock.close()


def test_a_long_poll_whose_client_has_gone_is_given_up_before_its_time(api, dev_server, tenant, go):
    api.workflow(tenant)
    wire = Wire(dev_server.port)
    wire.send(long_poll(tenant))
    polls_have_arrived(api, [wire])
    go(wire.sock)
    if wire.sock.fileno() >= 0:  # half-closed: it can still hear
        answer = wire.answer()
        assert answer == CLOSED or answer.json["jobs"] == []
        wire.sock.close()
    run = api.start(tenant).json["run_id"]
    [job] = claim(api, tenant)
    assert (job["run_id"], job["attempt"]) == (run, 1)


@pytest.mark.sqlite("the disk under the file stalls")
def test_a_job_that_is_committed_for_a_client_that_has_gone_is_given_back(tmp_path, go):
    with faults.server(faults.build_library(tmp_path)) as (s, disk):
        api, tenant = s.client(), "t"
        run = begin(api, tenant, task("a"))
        before = disk.hits()
        wire = Wire(s.port)
        with disk.failing("stall"):
            wire.send(request("/api/v1/jobs/claim", tenant, {"worker_id": "gone", "lease_ms": HOUR_MS}))
            wait_until(lambda: disk.hits() > before, "the hand-out is being committed")
            go(wire.sock)
        [job] = wait_until(lambda: claim(api, tenant), "another worker gets it")
        assert (job["run_id"], job["attempt"]) == (run, 1)
        assert [e["type"] for e in events(api, tenant, run)].count("job.released") == 1
        if wire.sock.fileno() >= 0:
            assert wire.answer() == CLOSED, "no worker gets a lease that is gone"
            wire.sock.close()


def leave_in_the_middle(port, data):
    """The answer is larger than what the kernel takes at once; the client leaves when it has seen its beginning."""
    sock = endpoint.connect(port, harness.PATIENCE_S, receive_buffer=4096)
    sock.sendall(data)
    assert sock.recv(1000).startswith(b"HTTP/1.1 200 ")
    reset(sock)


def test_jobs_whose_answer_is_not_taken_to_its_end_are_given_back(api, dev_server, tenant):
    api.workflow(tenant)
    runs = [api.start(tenant, body=LARGE).json["run_id"] for _ in range(MORE_THAN_BUFFERED)]
    leave_in_the_middle(dev_server.port, request("/api/v1/jobs/claim", tenant, {"worker_id": "gone", "max": MORE_THAN_BUFFERED, "lease_ms": HOUR_MS}))
    jobs = []
    wait_until(lambda: jobs.extend(claim(api, tenant)) or len(jobs) == MORE_THAN_BUFFERED, "another worker gets them all")
    assert sorted(job["run_id"] for job in jobs) == sorted(runs) and {job["attempt"] for job in jobs} == {1}


def test_the_next_jobs_of_a_batch_are_given_back_too(api, dev_server, tenant):
    api.workflow(tenant)
    api.start(tenant)
    [done] = claim(api, tenant)
    runs = [api.start(tenant, body=LARGE).json["run_id"] for _ in range(MORE_THAN_BUFFERED)]
    item = {"job_id": done["job_id"], "lease_token": done["lease_token"], "output": 1}
    next_jobs = {"worker_id": "gone", "max": MORE_THAN_BUFFERED, "lease_ms": HOUR_MS}
    leave_in_the_middle(dev_server.port, request("/api/v1/jobs:complete", tenant, {"items": [item], "claim": next_jobs}))
    jobs = []
    wait_until(lambda: jobs.extend(claim(api, tenant)) or len(jobs) == MORE_THAN_BUFFERED, "another worker gets them all")
    assert sorted(job["run_id"] for job in jobs) == sorted(runs) and {job["attempt"] for job in jobs} == {1}
    assert show(api, tenant, done["run_id"])["status"] == "succeeded", "a result that was answered counts"


def test_with_a_key_the_same_jobs_are_there_for_a_client_that_comes_again(api, dev_server, tenant):
    api.workflow(tenant)
    runs = [api.start(tenant, body=LARGE).json["run_id"] for _ in range(4)]
    body = {"worker_id": "w", "max": 4, "lease_ms": HOUR_MS}
    keyed = request("/api/v1/jobs/claim", tenant, body).replace(b"Host: localhost", b"Host: localhost\r\nIdempotency-Key: again")
    leave_in_the_middle(dev_server.port, keyed)
    r = api.post("/api/v1/jobs/claim", body, key="again", tenant=tenant)
    assert r.header("Idempotent-Replayed") == "true" and [job["run_id"] for job in r.json["jobs"]] == runs
    for job in r.json["jobs"]:
        complete(api, tenant, job)
    assert {show(api, tenant, run)["status"] for run in runs} == {"succeeded"}


def test_over_tls_a_job_passes_by_a_client_that_has_gone(pem, go):  # noqa: F811
    cert, key = pem("server")
    trust = ssl.create_default_context(cafile=cert)

    def wrapped(port):
        return trust.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=harness.PATIENCE_S), server_hostname="localhost")

    with harness.server("--tls-cert", cert, "--tls-key", key, tls=False) as s:
        api = TlsClient(wrapped, s.port)
        api.call("PUT", "/api/v1/workflows/hold", {"steps": [task("work")]})
        gone = wrapped(s.port)
        gone.sendall(long_poll("t"))
        for _ in range(10):
            api.call("GET", "/healthz")
        go(gone)
        run = api.call("POST", "/api/v1/workflows/hold/runs", {})["run_id"]
        [job] = api.call("POST", "/api/v1/jobs/claim", {"worker_id": "here", "wait_ms": 20000})["jobs"]
        assert (job["run_id"], job["attempt"]) == (run, 1)
        gone.close()


class TlsClient:
    def __init__(self, connect, port):
        self.sock = connect(port)

    def call(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else b""
        kind = "Content-Type: application/json\r\n" if data else ""
        self.sock.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nX-Tenant-ID: t\r\n{kind}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        raw = b""
        while b"\r\n\r\n" not in raw:
            raw += self.sock.recv(1 << 16)
        head, body = raw.split(b"\r\n\r\n", 1)
        length = int(next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")).split(b":")[1])
        while len(body) < length:
            body += self.sock.recv(1 << 16)
        assert head.startswith(b"HTTP/1.1 200 "), head
        return json.loads(body)
