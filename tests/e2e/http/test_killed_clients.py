"""A client that is killed while it waits for a claim, a start, a stream or an update frees at once what it held on the server."""
import subprocess
import sys

import pytest

import harness
import rawhttp
import stores
from entities import define
from harness import wait_until
from prometheus import metrics, parse
from worker_process import open_fds

TENANT = "t"
CLIENTS = 5
WAIT_MS = 30_000
# Less than the wait itself: a server that only waits for its end is found out.
NOTICED_S = 20
CLIENT = """
import sys
import endpoint
sock = endpoint.connect(int(sys.argv[1]))
sock.sendall(sys.stdin.buffer.read())
print("sent", flush=True)
while sock.recv(1 << 16):
    pass
"""


@pytest.fixture(scope="module")
def server():
    with harness.server() as s:
        api = s.client()
        api.workflow(TENANT, "hold")
        define(api, TENANT)
        yield s


def ask(method, path, body=None, *headers):
    lines = [f"X-Tenant-ID: {TENANT}", *headers]
    return rawhttp.request(method, path, headers=lines) if body is None else rawhttp.json_request(method, path, body, lines)


WAITS = {
    "claim": lambda n: ask("POST", "/api/v1/jobs/claim", {"worker_id": f"w{n}", "queues": ["empty"], "wait_ms": WAIT_MS}),
    "start": lambda n: ask("POST", f"/api/v1/workflows/hold/runs?wait_ms={WAIT_MS}", {"input": n}),
    "update": lambda n: ask("POST", f"/api/v1/entities/account/e{n}/updates?wait_ms={WAIT_MS}", {"name": "take", "payload": 1, "dedup_key": f"k{n}"}),
    "stream": lambda n: ask("GET", "/api/v1/events", None, "Accept: text/event-stream"),
}


def held(server, api):
    """(requests that wait, streams, descriptors of the one process)"""
    shown = parse(metrics(api))
    gauges = [sum(value for (name, _), value in shown.items() if name == wanted) for wanted in ("pawl_requests_waiting", "pawl_event_listeners")]
    return (*gauges, 0 if stores.SEVERAL_NODES else open_fds(server.process.pid))


@pytest.mark.parametrize("wait", WAITS)
def test_a_client_that_is_killed_frees_what_it_held(server, wait):
    api = server.client()
    before = held(server, api)
    clients = [subprocess.Popen([sys.executable, "-c", CLIENT, str(server.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=harness.ROOT / "tests/e2e/support")
               for _ in range(CLIENTS)]
    try:
        for n, client in enumerate(clients):
            client.stdin.write(WAITS[wait](n))
            client.stdin.close()
            assert client.stdout.readline() == b"sent\n"
        of_requests, of_streams = (0, CLIENTS) if wait == "stream" else (CLIENTS, 0)
        waiting = (before[0] + of_requests, before[1] + of_streams, 0 if stores.SEVERAL_NODES else before[2] + CLIENTS)
        wait_until(lambda: held(server, api) == waiting, f"all of them wait, {waiting}")
    finally:
        for client in clients:
            client.kill()
            client.wait()
            client.stdout.close()
    wait_until(lambda: held(server, api) == before, f"what they held is free again, {before}", NOTICED_S)
