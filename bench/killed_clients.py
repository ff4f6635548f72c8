#!/usr/bin/env python3
"""How long after the kill -9 of a client that waits the server has let go of its connection: median
and largest of ROUNDS kills for each kind of wait. The connection ends in the same turn of the
server's loop as the wait.

    python3 bench/killed_clients.py --pawl build/pawl"""
import argparse
import http.client
import json
import os
import pathlib
import signal
import socket
import statistics
import tempfile
import time

import harness

ROUNDS = 50
WAIT_MS = 30_000
WAITS = {
    "claim": ("POST", "/api/v1/jobs/claim", {"worker_id": "w", "queues": ["empty"], "wait_ms": WAIT_MS}),
    "start": ("POST", f"/api/v1/workflows/park/runs?wait_ms={WAIT_MS}", {"input": {}}),
    "update": ("POST", f"/api/v1/entities/account/e/updates?wait_ms={WAIT_MS}", {"name": "take", "payload": 1, "dedup_key": "k"}),
    "stream": ("GET", "/api/v1/events", None),
}


def ask(api, method, path, body=None):
    api.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
    reply = api.getresponse()
    text = reply.read().decode()
    if reply.status != 200:
        raise harness.BenchError(f"{method} {path}: {text}")
    return text


def waiting(api):
    """How many requests and streams wait."""
    lines = [line.split() for line in ask(api, "GET", "/metrics").splitlines()]
    return sum(float(words[1]) for words in lines if words[0] in ("pawl_requests_waiting", "pawl_event_listeners"))


def until(condition):
    """Waits for it, and says when it was so."""
    end = time.perf_counter() + harness.STOP_WAIT_S
    while not condition():
        if time.perf_counter() > end:
            raise harness.BenchError("the server did not let go of a client")
    return time.perf_counter()


def begin_wait(port, method, path, body):
    """The process that has the connection."""
    data = b"" if body is None else json.dumps(body).encode()
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream, application/json\r\n"
                     f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        child = os.fork()
        if child == 0:
            signal.pause()
    return child


def time_kill(server, api, request):
    folder = f"/proc/{server.process.pid}/fd"
    begun = waiting(api)
    before = len(os.listdir(folder))
    child = begin_wait(server.port, *request)
    until(lambda: waiting(api) == begun + 1 and len(os.listdir(folder)) == before + 1)
    at = time.perf_counter()
    os.kill(child, signal.SIGKILL)
    took = until(lambda: len(os.listdir(folder)) == before) - at
    os.waitpid(child, 0)
    until(lambda: waiting(api) == begun)
    return took * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pawl", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pawl-bench-") as folder:
        command = [args.pawl, "serve", "--dev", "--listen", "127.0.0.1:0", "--store", f"sqlite:{folder}/pawl.db"]
        with harness.Server(command, r"listening on http://127\.0\.0\.1:(\d+)", pathlib.Path(folder) / "log") as server:
            api = http.client.HTTPConnection("127.0.0.1", server.port)
            ask(api, "PUT", "/api/v1/workflows/park", harness.PARK)
            ask(api, "PUT", "/api/v1/entity-types/account", {"queue": "q", "handler": "h"})
            for name, request in WAITS.items():
                times = [time_kill(server, api, request) for _ in range(ROUNDS)]
                print(f"{name:<8} median {statistics.median(times):6.2f} ms   largest {max(times):6.2f} ms")


if __name__ == "__main__":
    main()
