"""Definitions that would run for ever, grow for ever or call themselves: each fails with a code, in bounded memory, and nobody else waits for it."""
import pathlib
import threading

import pytest

import harness
from actions import begin, claim, ended, show, step, task, work
from inspect_store import active_runs, all_runs
from receiver import Receiver

FAILED = ("failed", "EXPRESSION_FAILED")


@pytest.fixture
def api(calling_server):
    return calling_server.client()


def memory_kib(server, what="VmRSS"):
    for line in pathlib.Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1])


def verdict(shown):
    return shown["status"], (shown["error"] or {}).get("cause", {}).get("code")


# --- expressions ---

RUNAWAYS = {
    "loop": "${(function() while true do end end)()}",
    "recursion": "${(function() local function f() return 1 + f() end return f() end)()}",
    "tail calls": "${(function() local function f() return f() end return f() end)()}",
    "memory": "${(function() local s = 'x' while true do s = s .. s end end)()}",
    "table": "${(function() local t = {} local i = 0 while true do i = i + 1 t[i] = i end end)()}",
    "sort": "${sort(input.list, function(a, b) while true do end end)}",
    "replace": "${string.replace(string.join(map(input.list, function() return input.text end), ''), 'x', input.text)}",
}


@pytest.mark.parametrize("kind", RUNAWAYS)
def test_an_expression_that_runs_away_fails_its_step(api, calling_server, tenant, kind):
    before = memory_kib(calling_server, "VmHWM")
    shown = ended(api, tenant, begin(api, tenant, {"name": "a", "type": "transform", "output": RUNAWAYS[kind]}, input={"list": list(range(1000)), "text": "x" * 10_000}))
    assert verdict(shown) == FAILED and shown["error"]["step"] == "a" and shown["error"]["cause"]["message"], shown
    assert memory_kib(calling_server, "VmHWM") - before < 64 * 1024


@pytest.mark.parametrize("steps", [
    [task("a", when="(function() while true do end end)()")],
    [task("a", for_each="(function() while true do end end)()")],
    [task("a", input={"x": "${(function() while true do end end)()}"})],
    [task("a", for_each="input", input="${(function() while true do end end)()}")],
    [{"name": "a", "type": "emit", "event": "e", "payload": "${(function() while true do end end)()}"}],
    [{"name": "a", "type": "sleep", "until": "${(function() while true do end end)()}"}],
])
def test_wherever_it_stands(api, tenant, steps):
    assert verdict(ended(api, tenant, begin(api, tenant, *steps, input=[1]))) == FAILED
    assert claim(api, tenant, max=9) == []


def test_others_go_on_while_expressions_run_away(api, calling_server, tenant):
    """50 steps run away, each; runs of another tenant begin and end meanwhile."""
    other = api.tenant()
    api.workflow(other, "quick", [{"name": "a", "type": "transform", "output": "${input}"}])
    api.workflow(tenant, "w", [{"name": f"a{n}", "type": "transform", "output": RUNAWAYS["loop"], "on_error": "continue", "needs": []} for n in range(50)])
    stop, done = threading.Event(), []

    def start_others():
        client = calling_server.client()
        while not stop.is_set():
            r = client.start(other, "quick", {"input": len(done)})
            assert r.status == 200 and (r.json["run"]["status"], r.json["run"]["output"]) == ("succeeded", len(done)), r
            done.append(r)

    thread = threading.Thread(target=start_others)
    thread.start()
    try:
        harness.wait_until(lambda: done, "the first of the others")
        run = api.start(tenant, "w").json["run_id"]
        first = len(done)
        shown = ended(api, tenant, run)
        harness.wait_until(lambda: len(done) > first, "one more of the others")
    finally:
        stop.set()
        thread.join()
    assert shown["status"] == "succeeded" and {s["error"]["code"] for s in shown["steps"]} == {"EXPRESSION_FAILED"}


@pytest.mark.parametrize("steps", [
    [{"name": "t", "type": "transform", "output": ["${input}"] * 3}], [{"name": "z", "type": "sleep", "duration_ms": 1}, task("t", input=["${input}"] * 3)],
])
def test_a_value_that_grows_too_large_fails_its_step(api, tenant, steps):
    assert verdict(ended(api, tenant, begin(api, tenant, *steps, input="x" * 900_000))) == FAILED


def test_outputs_of_a_map_that_are_too_large_together_are_not_taken_for_none(api, tenant):
    """Behind the map nobody goes on with a nil where the outputs should be."""
    steps = [task("m", for_each="input"), {"name": "b", "type": "transform", "output": "${count(steps.m.output)}"}]
    shown, done = work(api, tenant, begin(api, tenant, *steps, input=list(range(300))), lambda job: {"output": "x" * 10_000})
    assert len(done) == 300 and (shown["status"] == "failed" or shown["output"] == 300), shown["output"]


# --- answers without end ---

def test_an_answer_without_end_is_cut_off_while_others_go_on(api, calling_server, tenant):
    """One framing of many: test_http_steps.py has them all. Here the answer never ends, and other runs do."""
    piece, sent, gone = b"x" * 65536, [], threading.Event()

    def endless(handler, _):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while True:
                handler.wfile.write(b"10000\r\n" + piece + b"\r\n")
                sent.append(1)
        finally:
            gone.set()

    with Receiver() as receiver:
        before = memory_kib(calling_server, "VmHWM")
        call = {"name": "get", "type": "http", "request": {"method": "GET", "url": receiver.on("/endless", endless)}}
        run = begin(api, tenant, call)
        other, _ = work(api, tenant, begin(api, tenant, task("a"), wid="other"))
        assert other["status"] == "succeeded"
        shown = ended(api, tenant, run)
        assert gone.wait(harness.PATIENCE_S), "the receiver is not read any more"
    assert verdict(shown) == ("failed", "RESPONSE_TOO_LARGE") and step(shown, "get")["output"] is None
    assert memory_kib(calling_server, "VmHWM") - before < 32 * 1024


# --- children of children ---

def calls(wid, name="kid", **more):
    return {"name": name, "type": "workflow", "workflow_id": wid, **more}


def test_a_workflow_that_calls_itself_is_refused_as_a_child(api, tenant):
    shown = ended(api, tenant, begin(api, tenant, calls("w")))
    assert verdict(shown) == ("failed", "CHILD_REFUSED") and "inside itself" in str(shown["error"]), shown
    assert len(all_runs(api, tenant)) == 1 and active_runs(api, tenant) == 0


def test_two_that_call_each_other_end_too(api, tenant):
    api.workflow(tenant, "ping", [calls("pong")])
    assert verdict(ended(api, tenant, begin(api, tenant, calls("ping"), wid="pong"))) == ("failed", "CHILD_FAILED")
    assert len(all_runs(api, tenant)) == 2 and active_runs(api, tenant) == 0


def test_runs_are_nested_ten_deep_at_most(api, tenant):
    for depth in range(12):
        api.workflow(tenant, f"w{depth}", [calls(f"w{depth + 1}")])
    api.workflow(tenant, "w12", [{"name": "end", "type": "transform", "output": 1}])
    assert ended(api, tenant, api.start(tenant, "w2").json["run_id"])["output"] == 1
    shown = ended(api, tenant, api.start(tenant, "w0").json["run_id"])
    assert verdict(shown) == ("failed", "CHILD_FAILED") and "10 levels deep" in str([r["error"] for r in all_runs(api, tenant)])
    assert active_runs(api, tenant) == 0


def test_a_map_of_itself_does_not_flood_the_server(api, calling_server, tenant):
    """Three children each, ten deep, were 88,573 runs once."""
    before = memory_kib(calling_server)
    run = begin(api, tenant, calls("w", for_each=[1, 2, 3]))
    shown = ended(api, tenant, run)
    assert verdict(shown) == ("failed", "CHILD_REFUSED"), shown
    assert len(all_runs(api, tenant)) == 1
    assert memory_kib(calling_server) - before < 64 * 1024


def test_errors_that_are_passed_over_do_not_make_it_endless(api, tenant):
    shown = ended(api, tenant, begin(api, tenant, calls("w", on_error="continue")))
    assert shown["status"] == "succeeded" and len(all_runs(api, tenant)) <= 11
