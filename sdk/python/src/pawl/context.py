"""What a handler gets: its job, and the operations that make a function durable."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar, Unpack, overload

from ._core import Steps
from ._durable import Approved, Durable, as_utc, current_step, in_seconds
from ._wire import encode, given
from ._worker_state import Held
from .definition import QuestionOptions, RetryRule
from .errors import JobCancelled

T = TypeVar("T")


class JobContext:
    """What a handler knows about its job. In the examples `ctx` is one.

    >>> ctx.attempt, ctx.handler
    (1, 'demo')
    """

    def __init__(self, held: Held, durable: Durable, run: Callable[[Steps[Any]], Any]) -> None:
        job = held.job
        self.job_id = str(job["job_id"])
        self.run_id = str(job.get("run_id") or "")
        self.workflow_id = str(job.get("workflow_id") or "")
        #: The step that this job executes.
        self.step_name = str(job.get("step") or "")
        self.handler = str(job["handler"])
        #: 1 for the first attempt.
        self.attempt = int(job["attempt"])
        self.tenant = str(job["tenant"])
        #: The index of the element, in a step with `for_each`.
        self.item: int | None = job.get("item")
        #: Whether this job undoes a step.
        self.compensates = bool(job.get("compensates"))
        #: W3C trace context of the run's start.
        self.traceparent: str | None = job.get("traceparent")
        self.tracestate: str | None = job.get("tracestate")
        self._held, self._durable, self._run = held, durable, run
        self._new_state: dict[str, Any] | None = None
        self._stopping = False
        held.context = self

    @property
    def key(self) -> str:
        """The idempotency key for side effects: the job's id, the same in every attempt; inside a step, the job's id
        and the step's name.

        >>> ctx.key == ctx.job_id, ctx.step("charge", lambda: ctx.key) == ctx.job_id + ":charge"
        (True, True)
        """
        step = current_step.get()
        return self.job_id if step is None else f"{self.job_id}:{step}"

    @property
    def cancelled(self) -> bool:
        """Whether to stop: the run was cancelled, the lease is lost, or the worker is stopping.

        >>> ctx.cancelled
        False
        """
        return self._held.cancelled or self._stopping

    def check(self) -> None:
        """Raise `JobCancelled` if the handler should stop. Call it in long loops.

        >>> ctx.check()
        """
        if self.cancelled:
            raise JobCancelled

    def progress(self, value: Any) -> None:
        """Show this JSON value with the job, from the next heartbeat on.

        >>> ctx.progress({"percent": 50})
        """
        self._held.progress = json.loads(encode(value))

    def set_state(self, state: dict[str, Any]) -> None:
        """Replace the run's state when this job completes.

        >>> ctx.set_state({"seen": 1})
        """
        self._new_state = state

    def _until(self, after: float | timedelta | None, until: datetime | None) -> datetime:
        if (after is None) == (until is None):
            raise ValueError("A sleep needs either seconds or until")
        if until is not None:
            return as_utc(until)
        return self._durable.now() + timedelta(seconds=in_seconds(after or 0))


class Context(JobContext):
    """The job of a blocking handler. In the examples `ctx` is one.

    `step`, `sleep`, `wait_signal`, `approval` and `run_workflow` make the function durable: their results are stored
    under their names, and a function that runs again, after a wait or a crash, gets them back. A name that is used
    again in a loop is numbered: the order must be the same each time.

    >>> ctx.attempt
    1
    """

    def step(self, name: str, function: Callable[[], T], *, retry: int | RetryRule | None = None) -> T:
        """Call the function once and store what it returns. It is tried three times unless `retry` says otherwise.
        When it has failed for the last time, or with a `JobError` that is not retryable, the error is stored and
        `StepFailed` is raised: now, and whenever the function runs again.

        >>> ctx.step("charge", lambda: {"id": "ch_1"})
        {'id': 'ch_1'}
        """
        result: T = self._run(self._durable.step(name, function, retry))
        return result

    def sleep(self, name: str, seconds: float | timedelta | None = None, *, until: datetime | None = None) -> None:
        """Wait without holding a worker: for a second or a year.

        >>> ctx.sleep("a moment", 0.01)
        """
        self._run(self._durable.sleep(name, self._until(seconds, until)))

    def wait_signal(self, signal: str, *, timeout: float | timedelta | None = None, name: str | None = None) -> Any:
        """Wait for a signal of the run and return its payload. Raises `TimedOut` after `timeout`.

        >>> ctx.wait_signal("paid", timeout=timedelta(days=3))
        {'amount': 30}
        """
        seconds = None if timeout is None else in_seconds(timeout)
        return self._run(self._durable.wait_signal(signal, name, seconds))

    def approval(self, name: str, prompt: str, *, content: Any = None, **options: Unpack[QuestionOptions]) -> Approved:
        """Ask a person. Raises `Rejected` if the answer is no, or nobody answers within `expires_s`. Options are those
        of an approval step: `approvers`, `expires_s`, `remind_every_s`, `escalation`.

        >>> ctx.approval("ok", "Refund 30?", content={"amount": 30}).by
        'ann'
        """
        question = {"prompt": prompt, **given(content=content), **options}
        result: Approved = self._run(self._durable.approval(name, question))
        return result

    def run_workflow(self, workflow_id: str, input: Any = None, *, name: str | None = None) -> Any:
        """Run another workflow once and return its output. Raises `StepFailed` (`CHILD_FAILED`) if it does not succeed.
        The worker's key needs the role operator for this.

        >>> ctx.run_workflow("greet", {"name": "Ada"})
        {'text': 'Hello, Ada!'}
        """
        return self._run(self._durable.run_workflow(workflow_id, input, name))


class AsyncContext(JobContext):
    """The job of a coroutine; as `Context`, to be awaited. In the examples `ctx` is one.

    >>> ctx.attempt
    1
    """

    @overload
    async def step(
        self, name: str, function: Callable[[], Awaitable[T]], *, retry: int | RetryRule | None = None
    ) -> T: ...
    @overload
    async def step(self, name: str, function: Callable[[], T], *, retry: int | RetryRule | None = None) -> T: ...
    async def step(self, name: str, function: Any, *, retry: int | RetryRule | None = None) -> Any:
        """As `Context.step`; the function may be a coroutine function.

        >>> async def charge():
        ...     return {"id": "ch_1"}
        >>> asyncio.run(ctx.step("charge", charge))
        {'id': 'ch_1'}
        """
        return await self._run(self._durable.step(name, function, retry))

    async def sleep(
        self, name: str, seconds: float | timedelta | None = None, *, until: datetime | None = None
    ) -> None:
        """As `Context.sleep`.

        >>> asyncio.run(ctx.sleep("a moment", 0.01))
        """
        await self._run(self._durable.sleep(name, self._until(seconds, until)))

    async def wait_signal(
        self, signal: str, *, timeout: float | timedelta | None = None, name: str | None = None
    ) -> Any:
        """As `Context.wait_signal`.

        >>> asyncio.run(ctx.wait_signal("paid", timeout=timedelta(days=3)))
        {'amount': 30}
        """
        seconds = None if timeout is None else in_seconds(timeout)
        return await self._run(self._durable.wait_signal(signal, name, seconds))

    async def approval(
        self, name: str, prompt: str, *, content: Any = None, **options: Unpack[QuestionOptions]
    ) -> Approved:
        """As `Context.approval`.

        >>> asyncio.run(ctx.approval("ok", "Refund 30?", content={"amount": 30})).by
        'ann'
        """
        question = {"prompt": prompt, **given(content=content), **options}
        result: Approved = await self._run(self._durable.approval(name, question))
        return result

    async def run_workflow(self, workflow_id: str, input: Any = None, *, name: str | None = None) -> Any:
        """As `Context.run_workflow`.

        >>> asyncio.run(ctx.run_workflow("greet", {"name": "Ada"}))
        {'text': 'Hello, Ada!'}
        """
        return await self._run(self._durable.run_workflow(workflow_id, input, name))
