"""Workers: claim jobs, call your functions, report what they return. `Worker` uses threads, `AsyncWorker` asyncio."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import socket
import threading
import time
import typing
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar, Unpack

from ._aio import AsyncShell
from ._core import Invoke, Settings, Steps
from ._durable import Durable, Rest
from ._programs import Cancel, Programs, Spawn, Wait, log
from ._sync import SyncShell
from ._wire import decode
from ._worker_state import Held, WorkerState
from .client import AsyncClient, Client
from .context import AsyncContext, Context, JobContext
from .definition import RetryRule, Workflow, WorkflowOptions
from .entity import Entity, EntityOptions
from .errors import JobError

F = TypeVar("F", bound=Callable[..., Any])
WAIT_MS = 20_000


class _Worker:
    """Handlers and the worker's state: what both flavours share."""

    def __init__(
        self,
        settings: Settings,
        queues: str | Sequence[str],
        concurrency: int,
        lease: float,
        grace: float,
        worker_id: str | None,
        apply: bool,
    ) -> None:
        self.queues = [queues] if isinstance(queues, str) else list(queues)
        #: The definitions of `@worker.workflow`, by id.
        self.workflows: dict[str, Workflow] = {}
        self.grace = grace
        self._settings, self._applies = settings, apply
        self._begun = False
        self._tasks: dict[str, Callable[..., Any]] = {}
        self._entities: dict[str, Entity] = {}
        name = worker_id or f"{socket.gethostname()}-{os.getpid()}-{settings.new_key()[:8]}"
        self._state = WorkerState(name, self.queues, concurrency, int(lease * 1000), WAIT_MS)
        self._programs = Programs(settings, self._state, self._execute)

    def task(self, name: str) -> Callable[[F], F]:
        """Register a function as the handler of tasks: `(input)` or `(input, ctx)`. It returns the output, any JSON
        value or dataclass. If `input` is annotated with a dataclass, it gets one.

        >>> worker = pawl.Worker(client)
        >>> @worker.task("cards.charge")
        ... def charge(input, ctx):
        ...     return {"charged": input["amount"], "key": ctx.key}
        """

        def decorate(function: F) -> F:
            self._check(function)
            self._tasks[name] = function
            return function

        return decorate

    def workflow(self, id: str, *, retry: int | RetryRule = 20, **options: Unpack[WorkflowOptions]) -> Callable[[F], F]:
        """Register a durable function as a whole workflow: `(input, ctx)`. The worker stores the workflow when it
        starts, so that `client.start(id, input)` runs the function. `retry` counts crashes of workers and exceptions
        outside of steps; finished steps are kept. `options` are those of `pawl.Workflow`.

        >>> worker = pawl.Worker(client)
        >>> @worker.workflow("order", timeout_s=86400)
        ... def order(input, ctx):
        ...     return ctx.step("charge", lambda: {"charged": input["amount"]})
        """

        def decorate(function: F) -> F:
            definition = Workflow(id, queue=self.queues[0], **options)
            definition.task(id, id, retry=retry)
            self.workflows[id] = definition
            return self.task(id)(function)

        return decorate

    def entity(self, type: str, *, initial: Any = None, **options: Unpack[EntityOptions]) -> Entity:
        """Register an entity type; the functions go on what it returns. The worker stores the type when it starts.
        `options` are those of `client.entities.put_type`.

        >>> worker = pawl.Worker(client)
        >>> account = worker.entity("account", initial={"points": 0})
        >>> @account.on("add")
        ... def add(account, payload):
        ...     account.state["points"] += payload["points"]
        """
        entity = Entity(type, initial=initial, options=options)
        self._entities[type] = entity
        return entity

    def _begin(self) -> None:
        if self._begun:
            raise RuntimeError("This worker has been started before: make another one")
        self._begun = True

    def _check(self, function: Callable[..., Any]) -> None:
        raise NotImplementedError

    def _context(self, held: Held) -> JobContext:
        raise NotImplementedError

    def _execute(self, held: Held) -> Steps[Any]:
        """The output of a job's handler."""
        job = held.job
        if job.get("kind") == "entity":
            entity = self._entities.get(job["handler"])
            if entity is None:
                raise _no_handler(job["handler"])
            return (yield from entity._handle(job["input"], job["job_id"]))
        function = self._tasks.get(job["handler"])
        if function is None:
            raise _no_handler(job["handler"])
        return (yield from _invoke(function, job["input"], self._context(held)))

    def _durable(self, held: Held) -> Durable:
        return Durable(self._settings, held, self._state.lease_ms)

    def _cancel_all(self) -> None:
        """The grace is over: tell all handlers to stop."""
        for held in list(self._state.held.values()):
            if held.context is not None:
                held.context._stopping = True


class Worker(_Worker):
    """A worker with threads: `concurrency` handlers at a time, each in a thread of its own.

    `lease` is how many seconds the server waits for a heartbeat before it gives a job to another worker; the worker
    sends one every third of that. `run` serves until SIGTERM or SIGINT, then lets running handlers finish for up to
    `grace` seconds. Results are reported together and the next jobs are claimed with them, in one call.

    >>> worker = pawl.Worker(client, queues="docs", concurrency=4)
    >>> @worker.task("shout")
    ... def shout(input):
    ...     return input["text"].upper()
    >>> with worker:
    ...     client.run("shout", {"text": "hello"})
    'HELLO'
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        queues: str | Sequence[str] = "default",
        concurrency: int = 10,
        lease: float = 30.0,
        grace: float = 30.0,
        worker_id: str | None = None,
        apply: bool = True,
    ) -> None:
        self.client = client or Client()
        super().__init__(self.client._settings, queues, concurrency, lease, grace, worker_id, apply)
        self._shell = SyncShell(self.client._transport)
        self._shell.performers.update({Wait: self._wait, Spawn: self._spawn, Cancel: self._cancel, Rest: self._rest})
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Serve until SIGTERM, SIGINT or `stop`. Raises an error that a retry cannot mend, such as a wrong API key.

        >>> worker = pawl.Worker(client, queues="docs")
        >>> @worker.task("shout")
        ... def shout(input):
        ...     worker.stop()
        >>> started = client.start("shout", {"text": "hello"})
        >>> worker.run()
        """
        before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                before[number] = signal.signal(number, self._on_signal)
        try:
            self.start()
            while not self._state.stopping:
                self._wait(Wait(self._state.version, time.monotonic() + 1.0))
            self.join()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def start(self) -> None:
        """Begin to serve in threads of its own. A worker serves once: make another one to serve again.

        >>> worker = pawl.Worker(client)
        >>> worker.start(); worker.stop(); worker.join()
        """
        self._begin()
        if self._applies:
            for definition in self.workflows.values():
                self.client.apply(definition)
            for entity in self._entities.values():
                self.client.entities.put_type(entity.type, queue=self.queues[0], handler=entity.type, **entity.options)
        for program in (self._programs.poll, self._programs.report, self._programs.beat):
            name = f"pawl-{program.__name__}"
            threading.Thread(target=self._serve, args=(program,), daemon=True, name=name).start()

    def stop(self) -> None:
        """Claim no more jobs. Safe to call from anywhere, also from a handler.

        >>> pawl.Worker(client).stop()
        """
        self._state.stop()
        self.client._transport.abort(self._programs.poll_tag)

    def join(self) -> None:
        """Wait until the running handlers have ended and their results are reported, for up to `grace` seconds. A
        handler that has not ended by then is left alone; its lease expires and another worker gets the job.

        >>> worker = pawl.Worker(client)
        >>> worker.start(); worker.stop(); worker.join()
        """
        end = time.monotonic() + self.grace
        self._until_done(end)
        self._cancel_all()
        self._until_done(end + 1.0)
        self._state.abandon()
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self.join()

    def _until_done(self, end: float) -> None:
        while not self._state.done and time.monotonic() < end and self._failure is None:
            self._wait(Wait(self._state.version, end))

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.stop()

    def _serve(self, program: Callable[[], Steps[None]]) -> None:
        try:
            self._shell.run(program())
        except Exception as failed:
            self._failure = failed
            log.error("the worker stops: %s", failed)
            self.stop()

    def _wait(self, effect: Wait) -> None:
        with self._state.changed:
            if self._state.version == effect.version and not self._state.done:
                left = None if effect.until is None else max(0.0, effect.until - self._settings.now())
                self._state.changed.wait(left)

    def _spawn(self, effect: Spawn) -> None:
        steps = self._programs.run_job(effect.held)
        threading.Thread(target=self._shell.run, args=(steps,), daemon=True, name="pawl-job").start()

    def _cancel(self, effect: Cancel) -> None:
        """The handler sees `ctx.cancelled`; a thread cannot be stopped from outside."""

    def _rest(self, effect: Rest) -> None:
        end = self._settings.now() + effect.seconds
        context = effect.held.context
        while self._settings.now() < end and not context.cancelled:
            self._wait(Wait(self._state.version, end))

    def _check(self, function: Callable[..., Any]) -> None:
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"{function.__name__} is a coroutine function: use pawl.AsyncWorker")

    def _context(self, held: Held) -> Context:
        return Context(held, self._durable(held), self._shell.run)


class AsyncWorker(_Worker):
    """A worker for asyncio: `concurrency` handlers at a time, each in a task of its own. A handler whose run is
    cancelled, or whose lease is lost, is cancelled as a task.

    >>> async def main():
    ...     async with pawl.AsyncClient(url) as client:
    ...         worker = pawl.AsyncWorker(client, queues="docs")
    ...         @worker.task("shout")
    ...         async def shout(input):
    ...             return input["text"].upper()
    ...         async with worker:
    ...             return await client.run("shout", {"text": "hello"})
    >>> asyncio.run(main())
    'HELLO'
    """

    def __init__(
        self,
        client: AsyncClient | None = None,
        *,
        queues: str | Sequence[str] = "default",
        concurrency: int = 100,
        lease: float = 30.0,
        grace: float = 30.0,
        worker_id: str | None = None,
        apply: bool = True,
    ) -> None:
        self.client = client or AsyncClient()
        super().__init__(self.client._settings, queues, concurrency, lease, grace, worker_id, apply)
        self._shell = AsyncShell(self.client._transport)
        self._shell.performers.update({Wait: self._wait, Spawn: self._spawn, Cancel: self._cancel, Rest: self._rest})
        self._programs_running: list[asyncio.Task[None]] = []
        self._jobs: dict[str, asyncio.Task[None]] = {}
        self._wakers: set[asyncio.Event] = set()
        self._state.on_change = self._wake

    async def run(self) -> None:
        """Serve until SIGTERM, SIGINT or `stop`. Raises an error that a retry cannot mend, such as a wrong API key.

        >>> async def main():
        ...     worker = pawl.AsyncWorker(pawl.AsyncClient(url), queues="docs")
        ...     @worker.task("shout")
        ...     async def shout(input):
        ...         worker.stop()
        ...     await worker.client.start("shout", {"text": "hello"})
        ...     await worker.run()
        >>> asyncio.run(main())
        """
        loop = asyncio.get_running_loop()
        main = threading.current_thread() is threading.main_thread()
        numbers = (signal.SIGTERM, signal.SIGINT) if main else ()
        for number in numbers:
            loop.add_signal_handler(number, self.stop)
        try:
            await self.start()
            while not self._state.stopping:
                await self._wait(Wait(self._state.version))
            await self.join()
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    async def start(self) -> None:
        """Begin to serve in tasks of the running loop. A worker serves once: make another one to serve again.

        >>> async def main():
        ...     worker = pawl.AsyncWorker(pawl.AsyncClient(url))
        ...     await worker.start()
        ...     worker.stop()
        ...     await worker.join()
        >>> asyncio.run(main())
        """
        self._begin()
        if self._applies:
            for definition in self.workflows.values():
                await self.client.apply(definition)
            for entity in self._entities.values():
                await self.client.entities.put_type(
                    entity.type, queue=self.queues[0], handler=entity.type, **entity.options
                )
        for program in (self._programs.poll, self._programs.report, self._programs.beat):
            task = asyncio.create_task(self._shell.run(program()), name=f"pawl-{program.__name__}")
            task.add_done_callback(self._program_ended)
            self._programs_running.append(task)

    def stop(self) -> None:
        """Claim no more jobs.

        >>> async def main():
        ...     worker = pawl.AsyncWorker(pawl.AsyncClient(url))
        ...     await worker.start()
        ...     worker.stop()
        ...     await worker.join()
        >>> asyncio.run(main())
        """
        self._state.stop()
        self.client._transport.abort(self._programs.poll_tag)

    async def join(self) -> None:
        """Wait until the running handlers have ended and their results are reported. After `grace` seconds they are
        cancelled, and their jobs go to other workers.

        >>> async def main():
        ...     worker = pawl.AsyncWorker(pawl.AsyncClient(url))
        ...     await worker.start()
        ...     worker.stop()
        ...     await worker.join()
        >>> asyncio.run(main())
        """
        end = self._settings.now() + self.grace
        await self._until_done(end)
        self._cancel_all()
        for task in list(self._jobs.values()):
            task.cancel()
        await self._until_done(end + 1.0)
        self._state.abandon()
        for program in self._programs_running:
            program.cancel()  # one that repeats a report to a server that is gone
        results = await asyncio.gather(*self._programs_running, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        await self.join()

    async def _until_done(self, end: float) -> None:
        while not self._state.done and self._settings.now() < end and not self._failed():
            await self._wait(Wait(self._state.version, end))

    def _failed(self) -> bool:
        return any(t.done() and not t.cancelled() and t.exception() for t in self._programs_running)

    def _program_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            log.error("the worker stops: %s", task.exception())
            self.stop()

    def _wake(self) -> None:
        for waker in self._wakers:
            waker.set()

    async def _wait(self, effect: Wait) -> None:
        if self._state.version != effect.version or self._state.done:
            return
        waker = asyncio.Event()
        self._wakers.add(waker)
        left = None if effect.until is None else max(0.0, effect.until - self._settings.now())
        try:
            await asyncio.wait_for(waker.wait(), left)
        except TimeoutError:
            pass
        finally:
            self._wakers.discard(waker)

    async def _spawn(self, effect: Spawn) -> None:
        held = effect.held
        task = asyncio.create_task(self._shell.run(self._programs.run_job(held)), name="pawl-job")
        self._jobs[held.token] = task

        def ended(task: asyncio.Task[None]) -> None:
            self._jobs.pop(held.token, None)
            if held.running:  # it was cancelled before it began
                self._state.finish(held, None)

        task.add_done_callback(ended)

    async def _cancel(self, effect: Cancel) -> None:
        task = self._jobs.get(effect.held.token)
        if task is not None:
            task.cancel()

    async def _rest(self, effect: Rest) -> None:
        await asyncio.sleep(effect.seconds)

    def _check(self, function: Callable[..., Any]) -> None:
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"{function.__name__} is not a coroutine function: use pawl.Worker, or async def")

    def _context(self, held: Held) -> AsyncContext:
        return AsyncContext(held, self._durable(held), self._shell.run)


def _no_handler(name: str) -> JobError:
    return JobError("NO_HANDLER", f"This worker has no handler named {name}")


def _invoke(function: Callable[..., Any], input: Any, context: JobContext) -> Steps[Any]:
    parameters = list(inspect.signature(function).parameters.values())
    args = [_typed(function, parameters, input), context][: max(1, len(parameters))] if parameters else []
    return (yield Invoke(function, tuple(args)))


def _typed(function: Callable[..., Any], parameters: list[inspect.Parameter], input: Any) -> Any:
    """The input as the dataclass that the function asks for, or as it is."""
    try:
        kind = typing.get_type_hints(function).get(parameters[0].name)
    except Exception:
        return input
    if not (is_dataclass(kind) and isinstance(kind, type)):
        return input
    try:
        return decode(kind, input)
    except (TypeError, ValueError) as wrong:
        raise JobError("INPUT_INVALID", str(wrong), retryable=False) from wrong
