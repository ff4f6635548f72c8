"""Clients whose server is a script: for the fixtures. Both flavours are driven by the same test code."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pawl
from pawl._core import Invoke, Pause, Settings
from pawl._wire import Request, Response
from pawl.errors import NoAnswer

FLAVOURS = ["sync", "asyncio"]


class Clock:
    """Time that passes only when someone pauses."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.pauses_ms: list[float] = []

    def now(self) -> float:
        return self.now_ms / 1000

    def pause(self, seconds: float) -> None:
        self.pauses_ms.append(seconds * 1000)
        self.now_ms += seconds * 1000


class ScriptedStream:
    """A stream of chunks that ends cleanly or breaks."""

    def __init__(self, chunks: list[str], ends: str) -> None:
        self.chunks, self.ends = [chunk.encode() for chunk in chunks], ends
        self.closed = False

    def read(self, timeout: float) -> bytes:
        if self.chunks:
            return self.chunks.pop(0)
        if self.ends == "lost":
            raise NoAnswer("the connection broke")
        return b""

    def close(self) -> None:
        self.closed = True


class Script:
    """`answer(request)` says what the server does; a test sets it."""

    def __init__(self, answer: Callable[[Request], Any], clock: Clock) -> None:
        self.answer, self.clock = answer, clock
        self.sent: list[Request] = []

    def exchange(self, request: Request) -> Response:
        self.sent.append(request)
        answer = self.answer(request)
        self.clock.now_ms += answer.get("took_ms", 0)
        if answer.get("lost"):
            raise NoAnswer("the connection broke")
        return response(answer)

    def open(self, request: Request) -> tuple[Any, Response]:
        self.sent.append(request)
        connection = self.answer(request)
        answer = connection["answer"]
        if answer.get("lost"):
            raise NoAnswer("the connection broke")
        stream = ScriptedStream(connection.get("chunks", []), connection.get("ends", "clean"))
        return stream, response(answer)


def response(answer: dict[str, Any]) -> Response:
    body = answer.get("body", "")
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Response(answer["status"], answer.get("headers", {}), raw)


def client_for(flavour: str, config: dict[str, Any], script: Script) -> Any:
    """A client that talks to the script."""
    make = pawl.Client if flavour == "sync" else pawl.AsyncClient
    client = make(config.get("url"), **{n: config[n] for n in ("api_key", "tenant", "actor") if n in config})
    performers = client._shell.performers  # type: ignore[attr-defined]
    perform: dict[str, Callable[[Any], Any]] = {
        "Send": lambda effect: script.exchange(effect.request),
        "Open": lambda effect: script.open(effect.request),
        "Read": lambda effect: effect.handle.read(effect.timeout),
        "Pause": lambda effect: script.clock.pause(effect.seconds),
    }
    for kind in list(performers):
        if kind is not Invoke:
            performers[kind] = perform[kind.__name__] if flavour == "sync" else later(perform[kind.__name__])
    assert Pause in performers
    settings: Settings = client._settings
    settings.now = script.clock.now
    return client


def later(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def run(effect: Any) -> Any:
        return function(effect)

    return run


def call(client: Any, method: str, args: list[Any], kwargs: dict[str, Any], take: int | None = None) -> Any:
    """Call a method in either flavour; an iterator becomes a list."""
    target = client
    for name in method.split("."):
        target = getattr(target, name)
    result = target(*args, **kwargs)
    if isinstance(client, pawl.AsyncClient):
        return asyncio.run(finish(result, take))
    return taken(result, take) if isinstance(result, Iterator) else result


def taken(values: Iterator[Any], take: int | None) -> list[Any]:
    result: list[Any] = []
    for value in values:
        result.append(value)
        if len(result) == take:
            break
    return result


async def finish(result: Any, take: int | None) -> Any:
    if not hasattr(result, "__aiter__"):
        return await result
    values: list[Any] = []
    async for value in result:
        values.append(value)
        if len(values) == take:
            break
    return values
