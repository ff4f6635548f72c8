"""What a type checker sees of the library: checked by mypy, never run."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, assert_type

import pawl
from pawl import models


def blocking(client: pawl.Client) -> None:
    assert_type(client.start("w", {"a": 1}, key="k"), models.StartedRun)
    assert_type(client.runs.get("r").status, models.RunStatus)
    assert_type(client.watch("r"), Iterator[models.Event])
    assert_type(client.runs.list(status="failed"), Iterator[models.RunSummary])
    assert_type(client.entities.get("t", "i").state, Any)
    client.start("w", keys="k")  # type: ignore[call-arg]
    client.runs.list(status="runing")  # type: ignore[arg-type]
    client.start(7)  # type: ignore[arg-type]


async def asyncio(client: pawl.AsyncClient) -> None:
    assert_type(await client.start("w", {"a": 1}, key="k"), models.StartedRun)
    assert_type((await client.runs.get("r")).status, models.RunStatus)
    assert_type(client.watch("r"), AsyncIterator[models.Event])
    assert_type([run async for run in client.runs.list()], list[models.RunSummary])
    print(client.runs.get("r").status)  # type: ignore[attr-defined]


def steps(ctx: pawl.Context) -> None:
    assert_type(ctx.step("a", lambda: 5), int)
    assert_type(ctx.approval("ok", "Go on?").by, str | None)


async def coroutine() -> str:
    return "x"


async def async_steps(ctx: pawl.AsyncContext) -> None:
    assert_type(await ctx.step("a", coroutine), str)
    assert_type(await ctx.step("b", lambda: 5), int)


def handlers(worker: pawl.Worker) -> None:
    @worker.task("a")
    def a(input: int, ctx: pawl.Context) -> int:
        return input

    assert_type(a(1, None), int)  # type: ignore[arg-type]
