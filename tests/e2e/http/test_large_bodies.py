"""A large body is read beside the HTTP loop: what it means, and what becomes of it, is the same as for a small one."""
import json
import os
import threading
from pathlib import Path

import pytest

import harness
from harness import together, wait_until
from inspect_store import all_runs, assert_healthy, record
from rawhttp import Wire

# A sanitized server takes as long to read 100 KB as another takes to read 800.
NUMBERS = 50_000 if os.environ.get("PAWL_SANITIZED") == "1" else 400_000
LIST = "[" + ",".join(["0"] * NUMBERS) + "]"  # takes much longer to read than text of the same size


def large(**members):
    """A body that takes some tens of milliseconds to read."""
    rest = "".join(f",{json.dumps(k)}:{json.dumps(v)}" for k, v in members.items())
    return f'{{"input":{LIST}{rest}}}'


def request(path, tenant, body, headers=""):
    text = body.encode()
    return (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Tenant-ID: {tenant}\r\nContent-Type: application/json\r\n{headers}"
            f"Content-Length: {len(text)}\r\n\r\n").encode() + text


def cpu_ns(pid):
    """Processor time of (the main thread, the others)."""
    def of(task):
        try:
            return int((task / "schedstat").read_text().split()[0])
        except FileNotFoundError:
            return 0
    tasks = {t.name: of(t) for t in Path(f"/proc/{pid}/task").iterdir()}
    main = tasks.pop(str(pid))
    return main, sum(tasks.values())


@pytest.mark.slow
def test_the_loop_spends_little_of_the_time_that_large_bodies_take():
    with harness.server() as server:
        api = server.client()
        api.workflow("t")
        before = cpu_ns(server.process.pid)
        for i in range(30):
            r = api.start("t", body=large(no_such_member=i), key=f"k{i}")
            assert (r.status, r.code) == (400, "FIELD_INVALID"), r
        after = cpu_ns(server.process.pid)
        loop, others = (b - a for a, b in zip(before, after))
        assert loop < others, f"the loop took {loop / 1e6:.0f} ms, all other threads {others / 1e6:.0f} ms"


def test_a_large_body_that_is_not_json_is_refused_with_its_trace_id(api, tenant):
    api.workflow(tenant)
    trace = "0af7651916cd43dd8448eb211c80319c"
    r = api.start(tenant, body=large()[:-1], key="k", headers={"traceparent": f"00-{trace}-b7ad6b7169203331-01"})
    assert (r.status, r.code, r.json["trace_id"]) == (400, "JSON_INVALID", trace), r
    assert record(api, tenant, "k") is None and all_runs(api, tenant) == []


def test_a_large_start_is_one_run_however_its_request_is_spelled(api, tenant):
    api.workflow(tenant)
    answers = [r for r in together(6, lambda i: api.start(tenant, body=large(labels=None) if i % 2 else large(), key="k")) if r.code != "IDEMPOTENCY_IN_FLIGHT"]
    assert {r.status for r in answers} == {200} and len({r.json["run_id"] for r in answers}) == 1
    assert sum(r.json["created"] for r in answers) == 1
    assert len(all_runs(api, tenant)) == 1
    again = api.start(tenant, body=" " + large(), key="k")
    assert again.status == 200 and again.header("Idempotent-Replayed") == "true" and again.json["created"] is False
    other = api.start(tenant, body=large(labels={"a": "b"}), key="k")
    assert (other.status, other.code) == (422, "IDEMPOTENCY_KEY_REUSED"), other


def test_a_key_in_a_large_body_counts_and_must_agree_with_the_header(api, tenant):
    api.workflow(tenant)
    body = large(definitionId="hold", idempotencyKey="in-body")
    first = api.post("/api/v1/workflow-runs", body, tenant=tenant)
    again = api.post("/api/v1/workflow-runs", body, tenant=tenant)
    assert (first.status, again.status) == (200, 200) and first.json["run_id"] == again.json["run_id"], again
    r = api.post("/api/v1/workflow-runs", body, tenant=tenant, key="in-header")
    assert (r.status, r.code) == (400, "IDEMPOTENCY_KEY_INVALID"), r
    assert len(all_runs(api, tenant)) == 1


def test_requests_on_one_connection_are_answered_in_their_order(dev_server, api, tenant):
    api.workflow(tenant)
    path = "/api/v1/workflows/hold/runs"
    bodies = [large(labels={"n": "0"}), '{"labels":{"n":"1"}}', large(labels={"n": "2"}), '{"labels":{"n":"3"}}']
    with Wire(dev_server.port) as wire:
        sender = threading.Thread(target=wire.send, args=(b"".join(request(path, tenant, b) for b in bodies),))
        sender.start()
        answers = [wire.answer() for _ in bodies]
        sender.join()
    assert [a.json["run"]["labels"]["n"] for a in answers] == ["0", "1", "2", "3"]


def test_a_client_that_leaves_while_its_large_body_is_read_does_no_harm(dev_server, api, tenant):
    api.workflow(tenant)
    for i in range(8):
        with Wire(dev_server.port) as wire:
            assert wire.send(request("/api/v1/workflows/hold/runs", tenant, large(), f"Idempotency-Key: gone-{i}\r\n"))
    for i in range(8):
        wait_until(lambda i=i: api.start(tenant, body=large(), key=f"gone-{i}").status == 200, "the start is decided")
    assert len(all_runs(api, tenant)) == 8
    assert_healthy(api)


def test_too_many_large_bodies_are_refused_and_leave_nothing(api, tenant):
    api.workflow(tenant)
    answers = together(60, lambda i: api.start(tenant, body=large(), key=f"k{i}"))
    made = [r.json["run_id"] for r in answers if r.status == 200]
    refused = [r for r in answers if r.status != 200]
    assert all((r.status, r.code) == (503, "OVERLOADED") and int(r.header("Retry-After")) > 0 for r in refused), refused[:3]
    assert made and sorted(r["id"] for r in all_runs(api, tenant)) == sorted(made)


def test_a_server_that_stops_answers_large_requests_and_keeps_what_it_acknowledged():
    with harness.server() as server:
        api = server.client()
        api.workflow("t")
        answers = {}

        def send(i):
            try:
                answers[i] = server.client().start("t", body=large(), key=f"k{i}")
            except OSError:
                pass  # not taken any more

        threads = [threading.Thread(target=send, args=(i,)) for i in range(12)]
        for t in threads:
            t.start()
        wait_until(lambda: answers, "the first is answered")
        server.stop()
        for t in threads:
            t.join()
        server.start()
        api = server.client()
        assert all(r.status == 200 or (r.status, r.code) == (503, "SHUTTING_DOWN") for r in answers.values()), answers
        made = {r.json["run_id"] for r in answers.values() if r.status == 200}
        assert made <= {r["id"] for r in all_runs(api, "t")}
        for i, r in answers.items():
            again = api.start("t", body=large(), key=f"k{i}")
            assert again.status == 200 and (r.status != 200 or again.json["run_id"] == r.json["run_id"]), again
        assert_healthy(api)
