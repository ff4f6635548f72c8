"""One tenant at its worst, in a process of its own so that its clients do not slow down whoever measures: hostile.py PORT TENANT WORKLOAD.

Prints "going" once the workload is under way and goes on until it is stopped."""
import itertools
import json
import sys
import threading
import time

import endpoint
from harness import Client

HEAVY = "${json.encode(map(input.l, function(v) return json.encode(input.l) end))}"  # a few milliseconds to a tenth of a second
CLIENTS = 4


def transforms(client, tenant):
    client.workflow(tenant, "w", [{"name": f"s{i}", "type": "transform", "needs": [], "output": HEAVY} for i in range(500)])
    body = {"input": {"l": list(range(300))}}
    return lambda: client.start(tenant, "w", body)


def long_polls(client, tenant):
    client.workflow(tenant, "w", [{"name": "t", "type": "task", "handler": "h"}])
    for _ in range(100):
        hold(client.port, "POST", "/api/v1/jobs/claim", tenant, {"worker_id": "w", "queues": ["default"], "wait_ms": 30_000})
    return lambda: client.start(tenant, "w", {})


def streams(client, tenant):
    client.workflow(tenant, "w", [{"name": f"t{i}", "type": "transform", "output": "x" * 1000} for i in range(20)])
    for _ in range(50):
        hold(client.port, "GET", "/api/v1/events", tenant, accept="text/event-stream")
    return lambda: client.start(tenant, "w", {})


def validate(client, tenant):
    steps = [{"name": f"s{i}", "type": "task", "handler": "h", "for_each": [{"n": n} for n in range(100)], "input": {"a": "${input.a}"}} for i in range(200)]
    body = {"steps": steps}
    return lambda: client.post("/api/v1/workflows/w/validate", body, tenant=tenant)


def large_bodies(client, tenant):
    body = '{"input":[' + ",".join(["{}"] * 330_000) + '],"no_such_member":1}'  # nearly 1 MiB, and as slow to read as any
    return lambda: client.start(tenant, "w", body)


def unique_items(client, tenant):
    client.workflow(tenant, "w", [{"name": "t", "type": "task", "handler": "h"}], input_schema={"type": "array", "uniqueItems": True})
    body = json.dumps({"input": [*range(60_000), 59_999]})  # refused at the end
    return lambda: client.start(tenant, "w", body)


def maps_with_large_inputs(client, tenant):
    client.workflow(tenant, "w", [{"name": f"m{i}", "type": "transform", "needs": [], "for_each": "input.l", "output": "${item.n}"} for i in range(5)])
    body = json.dumps({"input": {"l": [{"n": n, "text": "x" * 300} for n in range(2000)]}})
    return lambda: client.start(tenant, "w", body)


def deep_children(client, tenant):
    """A start that becomes a thousand runs, down to the greatest depth."""
    client.workflow(tenant, "w9", [{"name": "t", "type": "transform", "output": "${input}"}])
    for depth in reversed(range(9)):
        client.workflow(tenant, f"w{depth}", [{"name": f"c{i}", "type": "workflow", "workflow_id": f"w{depth + 1}", "needs": [], "input": "${input}"} for i in range(2)])
    body = {"input": {"text": "x" * 1000}}
    for _ in range(50):  # more are under way than it finishes in this time
        client.start(tenant, "w0", body)
    return lambda: client.post("/api/v1/workflows/w0/runs?wait_ms=60000", body, tenant=tenant)


def timers(client, tenant):
    """Thousands that are due at the same time, and ever more of them."""
    client.workflow(tenant, "w", [{"name": "n", "type": "sleep", "for_each": "input.l", "duration_ms": 500}])
    body = {"input": {"l": list(range(250))}}
    for _ in range(40):
        client.start(tenant, "w", body)
    return lambda: client.start(tenant, "w", body)


WORKLOADS = {f.__name__: f for f in (transforms, long_polls, streams, validate, large_bodies, unique_items, maps_with_large_inputs, deep_children, timers)}
held = []


def hold(port, method, path, tenant, body=None, accept="application/json"):
    """A request whose answer nobody reads."""
    s = endpoint.connect(port)
    text = b"" if body is None else json.dumps(body).encode()
    s.sendall(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Tenant-ID: {tenant}\r\nAccept: {accept}\r\nContent-Type: application/json\r\n"
              f"Content-Length: {len(text)}\r\n\r\n".encode() + text)
    held.append(s)


def main(port, tenant, workload):
    first = Client(port)
    act = WORKLOADS[workload](first, tenant)

    def forever():
        for _ in itertools.count():
            try:
                act()
            except OSError:
                time.sleep(0.01)  # refused or cut off: it is not here to be served well

    for _ in range(CLIENTS):
        threading.Thread(target=forever, daemon=True).start()
    print("going", flush=True)
    sys.stdin.read()  # until whoever began it closes the pipe


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
