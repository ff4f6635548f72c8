"""Durable functions against a real server."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

import pawl
from server import Server, wait_until


def asked(client: pawl.Client, run_id: str) -> str:
    """The id of the question that the run asks."""

    def found() -> str | None:
        return next((a.job_id for a in client.approvals.list(status="pending") if a.run_id == run_id), None)

    job_id: str = wait_until(found, "the question is asked")
    return job_id


def waits_for(client: pawl.Client, run_id: str, name: str) -> None:
    def waiting() -> bool:
        return any(w["kind"] == "suspension" and w["name"] == name for w in client.runs.why(run_id).waits_for)

    wait_until(waiting, f"the run waits for {name}")


def test_a_function_gets_everything_back_by_name(client: pawl.Client) -> None:
    worker = pawl.Worker(client, queues="q")
    ran: list[str] = []

    def note(name: str, value: Any) -> Any:
        ran.append(name)
        return value

    @worker.workflow("order")
    def order(input: Any, ctx: pawl.Context) -> Any:
        ran.append("begin")
        charge = ctx.step("charge", lambda: note("charge", {"key": ctx.key}))
        ctx.sleep("nap", 0.05)
        paid = ctx.wait_signal("paid")
        ok = ctx.approval("ok", "Ship?", content={"to": "Ada"})
        parts = [ctx.step("part", partial(note, "part", n)) for n in range(3)]
        return [charge, paid, ok.by, ok.content, parts]

    with worker:
        started = client.start("order")
        client.signal(started.run_id, "paid", {"amount": 5}, dedup_key="p1")
        job_id = asked(client, started.run_id)
        client.approve(job_id, edited={"to": "Bob"})
        run = client.wait(started.run_id)
    key = f"{run.steps[0].job_id}:charge"
    assert run.output == [{"key": key}, {"amount": 5}, "dev", {"to": "Bob"}, [0, 1, 2]]
    assert ran == ["begin", "charge", "begin", "begin", "begin", "part", "part", "part"]
    assert run.steps[0].attempt == 1, "waiting uses up no attempt"


def test_a_step_without_attempts_left_is_compensated_once(client: pawl.Client) -> None:
    worker = pawl.Worker(client, queues="q")
    ran: list[str] = []

    def fail(name: str) -> None:
        ran.append(name)
        raise ConnectionError("no answer")

    @worker.workflow("order")
    def order(input: Any, ctx: pawl.Context) -> Any:
        try:
            ctx.step("ship", lambda: fail("ship"), retry={"backoff_ms": 1})  # three times by default
        except pawl.StepFailed as failed:
            ctx.step("refund", lambda: ran.append("refund"))
            ctx.sleep("nap", 0.01)  # the function runs again after this, and goes the same way
            return failed.code
        return "shipped"

    with worker:
        assert client.run("order") == "ConnectionError"
    assert ran == ["ship", "ship", "ship", "refund"]


def test_an_error_that_is_not_caught_fails_the_run_at_once(client: pawl.Client) -> None:
    worker = pawl.Worker(client, queues="q")

    @worker.workflow("order")
    def order(input: Any, ctx: pawl.Context) -> Any:
        def decline() -> None:
            raise pawl.JobError("DECLINED", "no funds", retryable=False)

        ctx.step("charge", decline)

    with worker, pytest.raises(pawl.errors.RunFailed) as failed:
        client.run("order")
    assert failed.value.run.error["cause"]["code"] == "DECLINED"
    assert failed.value.run.steps[0].attempt == 1


def test_a_step_whose_result_is_not_json_is_not_tried_again(client: pawl.Client) -> None:
    worker = pawl.Worker(client, queues="q")
    ran: list[str] = []

    @worker.workflow("order")
    def order(input: Any, ctx: pawl.Context) -> Any:
        def charge() -> object:
            ran.append("charge")
            return object()

        ctx.step("charge", charge)

    with worker, pytest.raises(pawl.errors.RunFailed) as failed:
        client.run("order")
    assert failed.value.run.error["cause"]["code"] == "OUTPUT_NOT_JSON"
    assert ran == ["charge"]


def test_an_exception_outside_a_step_keeps_what_is_done(client: pawl.Client) -> None:
    worker = pawl.Worker(client, queues="q")
    ran: list[int] = []

    @worker.workflow("order", retry={"max_attempts": 5, "backoff_ms": 1})
    def order(input: Any, ctx: pawl.Context) -> Any:
        ctx.step("charge", lambda: ran.append(ctx.attempt))
        if ctx.attempt < 3:
            raise ValueError("a bug that is mended later")
        return ctx.attempt

    with worker:
        assert client.run("order") == 3
    assert ran == [1]


@pytest.mark.parametrize("sent", [True, False])
def test_a_signal_in_time_or_not(client: pawl.Client, sent: bool) -> None:
    worker = pawl.Worker(client, queues="q")

    @worker.workflow("order")
    def order(input: Any, ctx: pawl.Context) -> Any:
        try:
            return ctx.wait_signal("paid", timeout=30 if sent else 0.05)
        except pawl.TimedOut as late:
            return late.code

    with worker:
        started = client.start("order")
        if sent:
            waits_for(client, started.run_id, "signal:paid")
            client.signal(started.run_id, "paid", 7)
        assert client.wait(started.run_id).output == (7 if sent else "TIMED_OUT")


def test_a_rejection_says_who_and_why(client: pawl.Client) -> None:
    worker = pawl.Worker(client, queues="q")

    @worker.workflow("order")
    def order(input: Any, ctx: pawl.Context) -> Any:
        try:
            ctx.approval("ok", "Ship?")
        except pawl.Rejected as no:
            return [no.code, no.message, no.by]

    with worker:
        started = client.start("order")
        client.reject(asked(client, started.run_id), reason="too much")
        assert client.wait(started.run_id).output == ["APPROVAL_REJECTED", "too much", "dev"]


def test_another_workflow_is_run_once(client: pawl.Client) -> None:
    child = pawl.Workflow("child")
    child.wait_signal("go", "go")
    client.apply(child)
    worker = pawl.Worker(client, queues="q")

    @worker.workflow("parent")
    def parent(input: Any, ctx: pawl.Context) -> Any:
        return ctx.run_workflow("child", {"n": 1})["payload"]

    with worker:
        started = client.start("parent")
        waits_for(client, started.run_id, "child")
        (run,) = client.runs.list(workflow_id="child")
        client.signal(run.id, "go", 5)
        assert client.wait(started.run_id).output == 5
    assert len(list(client.runs.list(workflow_id="child"))) == 1


def test_coroutines_have_steps_in_parallel(server: Server, tenant: str) -> None:
    async def main() -> Any:
        async with pawl.AsyncClient(server.url, tenant=tenant) as client:
            worker = pawl.AsyncWorker(client, queues="q")

            @worker.workflow("sum")
            async def add(input: Any, ctx: pawl.AsyncContext) -> Any:
                async def part(n: int) -> Any:
                    await asyncio.sleep(0.01)
                    return [n, ctx.key.split(":")[1]]

                parts = await asyncio.gather(*[ctx.step(f"part-{n}", partial(part, n)) for n in range(3)])
                await ctx.sleep("nap", 0.01)
                return [*parts, await ctx.step("last", lambda: 9)]

            async with worker:
                return await client.run("sum")

    assert asyncio.run(main()) == [[0, "part-0"], [1, "part-1"], [2, "part-2"], 9]
