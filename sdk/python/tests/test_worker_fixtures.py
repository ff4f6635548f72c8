"""The fixtures of workers, durable functions and entities."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta
from typing import Any

import pytest

import pawl
from fixtures import as_json, assert_contains, cases
from machine import Machine
from pawl._durable import Durable, Rest
from pawl._programs import Programs
from pawl._wire import Request
from pawl._worker_state import Held, WorkerState
from pawl.entity import Entity
from script import FLAVOURS, Clock, Script, client_for, later
from test_fixtures import check_request


@pytest.mark.parametrize("case", cases("worker.json"))
def test_worker(case: dict[str, Any]) -> None:
    machine = Machine(case["worker"], case["script"])
    machine.run()
    wanted = [
        (entry["at_ms"], json.dumps({name: entry[name]}))
        for entry in case["script"]
        for name in ("begins", "cancelled", "stopped")
        if name in entry
    ]
    assert sorted(machine.seen) == sorted(wanted)
    assert machine.answers == []


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("case", cases("durable.json"))
def test_durable_function(case: dict[str, Any], flavour: str) -> None:
    left = list(case["exchanges"])

    def answer(request: Request) -> Any:
        exchange = left.pop(0)
        check_request(request, exchange["request"])
        return exchange["answer"]

    client = client_for(flavour, {}, Script(answer, Clock()))
    client._settings.random = lambda: 0.5
    state = WorkerState("w1", ["q"], 1, 30000, 20000)
    held = state.take([case["job"]], 0.0)[0]
    ran: list[str] = []
    function = blocking(case["program"], ran) if flavour == "sync" else coroutine(case["program"], ran)
    make = pawl.Worker if flavour == "sync" else pawl.AsyncWorker
    worker: Any = make(client, queues="q", lease=30)
    worker._state, worker._shell = state, client._shell
    worker._programs = Programs(client._settings, state, worker._execute)
    worker.task("h")(function)
    client._shell.performers[Rest] = (lambda effect: None) if flavour == "sync" else later(lambda effect: None)
    result = client._shell.run(worker._programs.run_job(held))
    if flavour == "asyncio":
        asyncio.run(result)
    assert ran == case["ran"]
    assert not left
    check_outcome(state, case["outcome"])


def check_outcome(state: WorkerState, wanted: dict[str, Any]) -> None:
    if "suspended" in wanted or "lost" in wanted:
        assert state.results == [] and state.held == {}
    elif "output" in wanted:
        assert as_json(state.results[0]["output"]) == wanted["output"]
    else:
        assert_contains(as_json(state.results[0]["error"]), wanted["error"])


def step_function(op: dict[str, Any], ran: list[str]) -> Any:
    def function() -> Any:
        ran.append(op["step"])
        if "raises" in op:
            raise pawl.JobError(op["raises"]["code"], op["raises"]["message"], retryable=op["raises"]["retryable"])
        return op["returns"]

    return function


def operations(program: list[dict[str, Any]], ctx: Any, ran: list[str]) -> Any:
    """Each operation's checkpoint name and the call itself; the last one is ("return", value)."""
    for op in program:
        if "step" in op:
            yield op["step"], lambda op=op: ctx.step(op["step"], step_function(op, ran), retry=op.get("max_attempts"))
        elif "sleep" in op:
            until = datetime.fromisoformat(op["until"]) if "until" in op else None
            after = timedelta(milliseconds=op["ms"]) if "ms" in op else None
            yield op["sleep"], lambda op=op, a=after, u=until: ctx.sleep(op["sleep"], a, until=u)
        elif "wait_signal" in op:
            timeout = op["timeout_ms"] / 1000 if "timeout_ms" in op else None
            yield "signal:" + op["wait_signal"], lambda op=op, t=timeout: ctx.wait_signal(op["wait_signal"], timeout=t)
        elif "approval" in op:
            options = {n: v for n, v in op.items() if n not in ("approval", "prompt")}
            yield op["approval"], lambda op=op, o=options: ctx.approval(op["approval"], op["prompt"], **o)
        elif "run_workflow" in op:
            yield op["run_workflow"], lambda op=op: ctx.run_workflow(op["workflow_id"], op.get("input"))


def ending(program: list[dict[str, Any]], given: dict[str, Any]) -> Any:
    last = program[-1]
    return given[last["return_step"]] if "return_step" in last else last["return"]


def blocking(program: list[dict[str, Any]], ran: list[str]) -> Any:
    def function(input: Any, ctx: Any) -> Any:
        given = {name: call() for name, call in operations(program, ctx, ran)}
        return ending(program, given)

    return function


def coroutine(program: list[dict[str, Any]], ran: list[str]) -> Any:
    async def function(input: Any, ctx: Any) -> Any:
        given = {name: await call() for name, call in operations(program, ctx, ran)}
        return ending(program, given)

    return function


def test_a_job_that_comes_back_before_its_old_handler_has_ended_is_held() -> None:
    """A job that was suspended for a moment: the same id under a new lease."""
    state = WorkerState("w1", ["q"], 2, 30000, 20000)
    (old,) = state.take([{"job_id": "j", "lease_token": "1.a"}], 0.0)
    (new,) = state.take([{"job_id": "j", "lease_token": "2.b"}], 0.0)
    state.finish(old, None)
    assert state.due(10.0) == [new] and state.free == 1
    state.finish(new, {"output": 1})
    assert state.begin_report() == {
        "items": [{"job_id": "j", "lease_token": "2.b", "output": 1}],
        "claim": {"worker_id": "w1", "queues": ["q"], "max": 2, "lease_ms": 30000},
    }


def test_a_function_without_a_lease_does_nothing_more() -> None:
    """Even one that catches every exception: it must not refund what another worker is shipping."""
    lost = {"status": 409, "headers": {"content-type": "application/problem+json"}, "body": {"code": "LEASE_LOST"}}
    client = client_for("sync", {}, Script(lambda request: lost, Clock()))
    worker = pawl.Worker(client, queues="q")
    worker._shell = client._shell
    ran: list[str] = []

    @worker.task("h")
    def order(input: Any, ctx: pawl.Context) -> Any:
        try:
            ctx.step("ship", lambda: ran.append("ship"))
        except Exception:
            ctx.step("refund", lambda: ran.append("refund"))

    job = {"job_id": "j", "handler": "h", "attempt": 1, "tenant": "t", "input": 1, "lease_token": "1.a"}
    (held,) = worker._state.take([{**job, "lease_expires_at": "2026-11-15T00:00:30.000Z"}], 0.0)
    client._shell.run(worker._programs.run_job(held))
    assert ran == ["ship"]
    assert worker._state.held == {} and worker._state.results == []


def test_a_report_that_takes_long_does_not_make_heartbeats_spin() -> None:
    """A job that is being reported needs none: without an answer to the report, its heartbeat would be due for ever."""
    state = WorkerState("w1", ["q"], 2, 30000, 20000)
    (reported, running) = state.take([{"job_id": n, "lease_token": n} for n in ("a", "b")], 0.0)
    state.finish(reported, {"output": 1})
    state.begin_report()
    state.beaten(running, 5.0)
    assert state.due(11.0) == [] and state.next_beat() == 15.0
    state.report_refused("OVERLOADED", "")
    assert state.next_beat() == 10.0


def test_the_servers_clock_is_that_of_the_lease() -> None:
    settings = pawl.Client()._settings
    held = Held({"job_id": "j", "lease_expires_at": "2026-11-15T00:00:30.000Z", "lease_token": "t"}, 0.0)
    assert abs((Durable(settings, held, 30000).now() - datetime.fromisoformat("2026-11-15T00:00:00Z")).seconds) < 5


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("case", cases("entities.json"))
def test_entity(case: dict[str, Any], flavour: str) -> None:
    entity = Entity("rewards", initial=case.get("initial"))
    make = handler if flavour == "sync" else coroutine_handler
    for name, actions in case["handlers"].items():
        entity.on(name)(make(actions))
    for name, actions in case.get("timers", {}).items():
        entity.timer(name)(make(actions))

    def run() -> Any:
        steps = entity._handle(case["call"], "job-1")
        if flavour == "sync":
            return pawl.Client()._shell.run(steps)
        return asyncio.run(pawl.AsyncClient()._shell.run(steps))

    if "fails" in case:
        with pytest.raises(pawl.JobError) as raised:
            run()
        assert (raised.value.code, raised.value.retryable) == (case["fails"]["code"], case["fails"]["retryable"])
    else:
        assert as_json(run()) == case["output"]


def coroutine_handler(actions: list[dict[str, Any]]) -> Any:
    blocking = handler(actions)

    async def run(entity: Any, payload: Any) -> Any:
        return blocking(entity, payload)

    return run


def handler(actions: list[dict[str, Any]]) -> Any:
    def run(entity: Any, payload: Any) -> Any:
        result = None
        for action in actions:
            for verb, value in action.items():
                result = act(entity, verb, value, result)
        return result

    return run


def act(entity: Any, verb: str, value: Any, result: Any) -> Any:
    if verb == "set":
        entity.state.update(value)
    elif verb == "add":
        for member, number in value.items():
            entity.state[member] += number
    elif verb == "set_timer":
        at = datetime.fromisoformat(value["at"]) if "at" in value else None
        after = value["in_ms"] / 1000 if "in_ms" in value else None
        entity.set_timer(value["name"], after, at=at, payload=value.get("payload"))
    elif verb == "cancel_timer":
        entity.cancel_timer(value)
    elif verb == "emit":
        entity.emit(value["event"], value.get("payload"))
    elif verb == "start":
        entity.start(
            value["workflow_id"], value.get("input"), key=value.get("idempotency_key"), labels=value.get("labels")
        )
    elif verb == "finish":
        entity.finish()
    elif verb == "reject":
        raise pawl.Reject(value["code"], value["message"])
    else:
        return value
    return result
