"""The sans-I/O core: calls are generators that yield effects; a shell performs them.

A generator yields `Send`, `Pause` and so on, and gets back what they gave. The sync and the asyncio shell differ only
in how they perform an effect, so every decision (retries, keys, parsing, paging, resuming a stream) exists once.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast, overload

from ._version import VERSION
from ._wire import Request, Response, decode, key_header, problem, time_text
from .errors import ApiError, NoAnswer
from .retry import UNLIMITED, Backoff, Budget, Retry

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M")


class Sync:
    """Marks the blocking flavour of a class."""


class Async:
    """Marks the asyncio flavour of a class."""


# --- effects ---


@dataclass(frozen=True)
class Send:
    """Send a request; gives its `Response` or raises `NoAnswer`. `tag` lets a shell abort it."""

    request: Request
    tag: object = None


@dataclass(frozen=True)
class Pause:
    """Wait this many seconds."""

    seconds: float


@dataclass(frozen=True)
class Open:
    """Open a stream; gives a handle and the response, whose body is empty if it is a stream. `handle.close()` ends it
    in both shells, so that an abandoned generator can close what it opened."""

    request: Request


@dataclass(frozen=True)
class Read:
    """More bytes of a stream; b"" at its clean end. Raises `NoAnswer` if it broke or `timeout` seconds passed."""

    handle: Any
    timeout: float


@dataclass(frozen=True)
class Invoke:
    """Call a function of the user; in the asyncio shell it may return an awaitable."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Emit:
    """Hand a value to the caller who iterates."""

    value: Any


Effect = Any
Steps = Generator[Effect, Any, T]


class Shell(Protocol):
    """Performs effects. `run` returns the result (sync) or a coroutine of it (asyncio)."""

    def run(self, steps: Steps[Any]) -> Any: ...

    def iterate(self, steps: Steps[None]) -> Any: ...


class Group(Generic[M]):
    """A set of operations on one client. `M` says whether they block or are coroutines."""

    def __init__(self, settings: Settings, shell: Shell) -> None:
        self._settings = settings
        self._shell = shell


class operation(Generic[P, T]):
    """Turns a method that builds steps into one that runs them: a function in a sync class, a coroutine function in an
    asyncio class. `steps` is the method itself, for use in other operations."""

    def __init__(self, build: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        self.steps = build
        self.__doc__ = build.__doc__
        self.__name__ = build.__name__
        self.__wrapped__ = build

    @overload
    def __get__(self, obj: None, owner: type) -> operation[P, T]: ...
    @overload
    def __get__(self, obj: Group[Sync], owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, obj: Group[Async], owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, obj: Any, owner: type) -> Any:
        if obj is None:
            return self

        def bound(*args: P.args, **kwargs: P.kwargs) -> Any:
            return obj._shell.run(self.steps(obj, *args, **kwargs))

        return _dressed(bound, self)


class iteration(Generic[P, T]):
    """Like `operation`, for methods whose steps emit values: an iterator, or an asynchronous one."""

    def __init__(self, build: Callable[Concatenate[Any, P], Generator[Any, Any, None]], kind: type[T]) -> None:
        self.steps = build
        self.__doc__ = build.__doc__
        self.__name__ = build.__name__
        self.__wrapped__ = build

    @overload
    def __get__(self, obj: None, owner: type) -> iteration[P, T]: ...
    @overload
    def __get__(self, obj: Group[Sync], owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, obj: Group[Async], owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, obj: Any, owner: type) -> Any:
        if obj is None:
            return self

        def bound(*args: P.args, **kwargs: P.kwargs) -> Any:
            return obj._shell.iterate(self.steps(obj, *args, **kwargs))

        return _dressed(bound, self)


def _dressed(bound: Any, of: Any) -> Any:
    bound.__doc__, bound.__name__, bound.__wrapped__ = of.__doc__, of.__name__, of.__wrapped__
    return bound


def emits(
    kind: type[T],
) -> Callable[[Callable[Concatenate[Any, P], Generator[Any, Any, None]]], iteration[P, T]]:
    """The decorator for `iteration`: `@emits(Event)`."""
    return lambda build: iteration(build, kind)


# --- a call with its retries ---


@dataclass
class Settings:
    """What all calls of a client share. Time, chance and keys come in from outside, so that tests can fix them."""

    url: str
    api_key: str | None = None
    tenant: str | None = None
    actor: str | None = None
    retry: Retry = field(default_factory=Retry)
    budget: Budget = field(default_factory=Budget)
    now: Callable[[], float] = time.monotonic
    random: Callable[[], float] = random.random
    new_key: Callable[[], str] = lambda: str(uuid.uuid4())

    def headers(self) -> dict[str, str]:
        own = {"Accept": "application/json", "User-Agent": f"pawl-python/{VERSION}"}
        if self.api_key:
            own["Authorization"] = f"Bearer {self.api_key}"
        if self.tenant:
            own["X-Tenant-ID"] = self.tenant
        if self.actor:
            own["X-Actor"] = self.actor
        return own


def get(settings: Settings, path: str, kind: type[T], **query: Any) -> Steps[T]:
    """A read."""
    request = Request("GET", path, query=_query(query), headers=settings.headers())
    response = yield from perform(settings, request)
    return cast(T, decode(kind, response.json()))


def ask(settings: Settings, path: str, kind: type[T], body: Any) -> Steps[T]:
    """A POST that changes nothing, and therefore has no key."""
    headers = {**settings.headers(), "Content-Type": "application/json"}
    request = Request("POST", path, headers=headers, body=body, has_body=True)
    response = yield from perform(settings, request)
    return cast(T, decode(kind, response.json()))


def change(
    settings: Settings,
    method: str,
    path: str,
    kind: type[T],
    body: Any = None,
    *,
    key: str | None = None,
    if_match: int | None = None,
    wait: float = 0.0,
    query: dict[str, Any] | None = None,
) -> Steps[T]:
    """A change, under one key for all of its attempts."""
    request = keyed(settings, method, path, body, key)
    headers = dict(request.headers)
    if if_match is not None:
        headers["If-Match"] = f'"{if_match}"'
    request = replace(request, headers=headers, query=_query(query or {}), timeout=request.timeout + wait)
    response = yield from perform(settings, request)
    return cast(T, decode(kind, response.json()))


def keyed(settings: Settings, method: str, path: str, body: Any, key: str | None) -> Request:
    """A request that changes something, with its key in the header or, for a start that needs it, in the body."""
    key = key if key is not None else settings.new_key()
    headers, text = settings.headers(), key_header(key)
    if text is not None:
        headers["Idempotency-Key"] = text
    elif path.startswith("/api/v1/workflows/") and path.endswith("/runs"):
        body = {**(body or {}), "idempotency_key": key}
    else:
        raise ValueError("Only the start of a run can have a key with characters outside ASCII")
    if body is not None:
        headers["Content-Type"] = "application/json"
    return Request(method, path, headers=headers, body=body, has_body=body is not None)


def post_job(settings: Settings, path: str, body: Any, retry: Retry, timeout: float = 30.0) -> Steps[Any]:
    """A worker's call. The lease makes its repeats harmless, so it has no key and no budget."""
    headers = {**settings.headers(), "Content-Type": "application/json"}
    request = Request("POST", path, headers=headers, body=body, has_body=True, timeout=timeout)
    response = yield from perform(settings, request, retry, UNLIMITED)
    return response.json()


def perform(
    settings: Settings, request: Request, retry: Retry | None = None, budget: Budget | None = None
) -> Steps[Response]:
    """Send until there is a final answer, as the policy and the budget allow."""
    retry, budget = retry or settings.retry, budget or settings.budget
    began, backoff, attempt = settings.now(), Backoff(retry, settings.random), 0
    while True:
        attempt += 1
        error: NoAnswer | ApiError
        try:
            response: Response = yield Send(request)
        except NoAnswer as lost:
            error = lost
        else:
            if response.status < 400:
                budget.success()
                return response
            error = problem(response)
        if isinstance(error, ApiError) and not error.retryable:
            raise error
        if retry.max_attempts is not None and attempt >= retry.max_attempts:
            raise error
        if not budget.allows_retry():
            raise error
        pause = getattr(error, "retry_after", 0.0) + backoff.next()
        if retry.deadline is not None and settings.now() - began + pause > retry.deadline:
            raise error
        yield Pause(pause)


def pages(settings: Settings, path: str, kind: Any, **query: Any) -> Steps[None]:
    """Emit all items of a list, page by page."""
    while True:
        page = yield from get(settings, path, dict, **query)
        for item in page["items"]:
            yield Emit(decode(kind, item))
        if page["next_cursor"] is None:
            return
        query["cursor"] = page["next_cursor"]


def _query(query: dict[str, Any]) -> dict[str, str]:
    return {name: _text(value) for name, value in query.items() if value is not None}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return time_text(value) if isinstance(value, datetime) else str(value)
