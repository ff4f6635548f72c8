"""Durable functions: what is stored under which name, when a job is suspended, and what a function gets back.

Results are found by name: a function that runs again calls its steps again, and those that are stored are not executed.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from . import models
from ._core import Invoke, Settings, Steps, change, post_job
from ._programs import REPORT, Suspended, error_of
from ._wire import OVER, decode, encode, given, segment, time_text
from ._worker_state import Held
from .definition import RetryRule
from .errors import JobCancelled, LeaseLost, NotFound, Rejected, StepFailed, TimedOut
from .retry import Backoff, Retry

DEFAULT_ATTEMPTS = 3
CHILD_WAIT_MS = 2000

#: The step that the current thread or task is in.
current_step: ContextVar[str | None] = ContextVar("pawl_step", default=None)


@dataclass(frozen=True)
class Rest:
    """Wait between two attempts of a step; ends early if the job is cancelled."""

    seconds: float
    held: Held


@dataclass(frozen=True, kw_only=True)
class Approved:
    """What `ctx.approval` returns: who approved, why, and the content as approved (edited, if the person edited it).

    >>> Approved(by="ann", reason=None, content={"amount": 30}).by
    'ann'
    """

    by: str | None
    reason: str | None
    content: Any


class Durable:
    """The stored results of one job, and how to add to them."""

    def __init__(self, settings: Settings, held: Held, lease_ms: int) -> None:
        job = held.job
        self.settings, self.held = settings, held
        self.outputs: dict[str, Any] = dict(job.get("checkpoints") or {})
        self.errors: dict[str, Any] = dict(job.get("checkpoint_errors") or {})
        self.resumed: dict[str, Any] = job.get("resumed_by") or {}
        self._uses: dict[str, int] = {}
        self._suspended = False
        self._clock_at = settings.now()
        expires = datetime.fromisoformat(job["lease_expires_at"])
        self._server_time = expires - timedelta(milliseconds=lease_ms)

    def now(self) -> datetime:
        """The server's time, as the lease shows it: machines need not agree on theirs."""
        return self._server_time + timedelta(seconds=self.settings.now() - self._clock_at)

    # --- steps ---

    def step(self, name: str, function: Callable[[], Any], retry: int | RetryRule | None) -> Steps[Any]:
        """The function's result, now or as stored. What leaves a step, a result or an error, is final."""
        name = self._unique(name)
        kind = _returns(function)
        if not self._knows(name):
            yield from self._execute(name, function, _rule(retry))
        return decode(kind, self._stored(name))

    def _execute(self, name: str, function: Callable[[], Any], rule: RetryRule) -> Steps[None]:
        backoff, attempt = Backoff(_policy(rule), self.settings.random), 0
        while True:
            self._check()
            attempt += 1
            token = current_step.set(name)
            try:
                outcome = _outcome((yield Invoke(function)))
            except Exception as failed:
                outcome = {"error": error_of(failed)}
            finally:
                current_step.reset(token)
            if "output" in outcome or _is_final(outcome["error"], rule, attempt):
                yield from self._store(name, outcome)
                return
            yield Rest(backoff.next(), self.held)

    # --- waiting ---

    def sleep(self, name: str, until: datetime) -> Steps[None]:
        name = self._unique(name)
        if not self._knows(name):
            if not self._resumed(name):
                yield from self._suspend(name, {"until": time_text(until)})
            yield from self._store(name, {"output": None})

    def wait_signal(self, signal: str, name: str | None, timeout: float | None) -> Steps[Any]:
        name = self._unique(name or f"signal:{signal}")
        if not self._knows(name):
            if not self._resumed(name):
                deadline = None if timeout is None else time_text(self.now() + timedelta(seconds=timeout))
                yield from self._suspend(name, {"signal": signal, **given(until=deadline)})
            yield from self._store(name, _signal_outcome(signal, self.resumed))
        if name in self.errors:
            raise TimedOut(self.errors[name].get("message", ""))
        return self.outputs[name]["payload"]

    def approval(self, name: str, question: dict[str, Any]) -> Steps[Approved]:
        name = self._unique(name)
        if not self._knows(name):
            if not self._resumed(name):
                yield from self._suspend(name, {"approval": question})
            yield from self._store(name, _approval_outcome(self.resumed))
        if name in self.errors:
            error = self.errors[name]
            raise Rejected(error["code"], error.get("message", ""), by=(error.get("details") or {}).get("by"))
        return Approved(**self.outputs[name])

    def run_workflow(self, workflow_id: str, input: Any, name: str | None) -> Steps[Any]:
        name = self._unique(name or workflow_id)
        if not self._knows(name):
            run = yield from self._child(workflow_id, input, name)
            if run.status not in OVER:
                pause = min(60.0, max(1.0, (self.now() - run.created_at).total_seconds() / 4))
                yield from self._suspend(name, {"until": time_text(self.now() + timedelta(seconds=pause))})
            yield from self._store(name, _child_outcome(run))
        return self._stored(name)

    def _child(self, workflow_id: str, input: Any, name: str) -> Steps[models.Run]:
        self._check()
        started = yield from change(
            self.settings,
            "POST",
            f"/api/v1/workflows/{segment(workflow_id)}/runs",
            models.StartedRun,
            given(input=input),
            key=f"{self.held.job['job_id']}:{name}",
            query={"wait_ms": CHILD_WAIT_MS},
            wait=CHILD_WAIT_MS / 1000,
        )
        return started.run

    # --- names, and what is stored ---

    def _unique(self, name: str) -> str:
        """`name` the first time, then `name#2`, `name#3`: loops need no names of their own."""
        self._uses[name] = count = self._uses.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"

    def _knows(self, name: str) -> bool:
        return name in self.outputs or name in self.errors

    def _resumed(self, name: str) -> bool:
        return self.resumed.get("name") == name

    def _stored(self, name: str) -> Any:
        if name in self.errors:
            error = self.errors[name]
            raise StepFailed(error["code"], error.get("message") or "", details=error.get("details"))
        return self.outputs[name]

    def _store(self, name: str, outcome: dict[str, Any]) -> Steps[None]:
        """Store an outcome; if the name is stored already, that one counts."""
        self._check()
        if "error" in outcome:
            outcome = {"error": {**outcome["error"], "retryable": False}}
        answer = yield from self._post("checkpoints", {"name": name, **outcome})
        if answer.get("error") is not None:
            self.errors[name] = answer["error"]
        else:
            self.outputs[name] = answer.get("output")

    def _suspend(self, name: str, wait: dict[str, Any]) -> Steps[None]:
        self._check()
        yield from self._post("suspend", {"name": name, **wait})
        self._suspended = True
        raise Suspended

    def _post(self, verb: str, body: dict[str, Any]) -> Steps[dict[str, Any]]:
        """A job whose lease is lost ends its function: no later step may act for it."""
        path = f"/api/v1/jobs/{segment(self.held.job['job_id'])}/{verb}"
        try:
            answer: dict[str, Any] = yield from post_job(
                self.settings, path, {"lease_token": self.held.token, **body}, REPORT
            )
        except (LeaseLost, NotFound) as lost:
            self.held.cancelled = True
            raise JobCancelled from lost
        return answer

    def _check(self) -> None:
        if self._suspended:
            raise Suspended
        if self.held.cancelled or getattr(self.held.context, "_stopping", False):
            raise JobCancelled


def _outcome(output: Any) -> dict[str, Any]:
    """What a step returned, as JSON keeps it."""
    try:
        return {"output": json.loads(encode(output))}
    except (TypeError, ValueError) as wrong:
        return {"error": {"code": "OUTPUT_NOT_JSON", "message": str(wrong), "retryable": False}}


def _rule(retry: int | RetryRule | None) -> RetryRule:
    return {"max_attempts": retry} if isinstance(retry, int) else retry or {}


def _policy(rule: RetryRule) -> Retry:
    """When a step is tried again; the defaults are those of a definition's `retry`."""
    return Retry(
        jitter=rule.get("jitter", "full"),
        base=rule.get("backoff_ms", 1000) / 1000,
        maximum=rule.get("max_backoff_ms", 300_000) / 1000,
        multiplier=rule.get("multiplier", 2),
    )


def _is_final(error: dict[str, Any], rule: RetryRule, attempt: int) -> bool:
    if not error["retryable"] or error["code"] in rule.get("non_retryable", []):
        return True
    return attempt >= rule.get("max_attempts", DEFAULT_ATTEMPTS)


def _returns(function: Callable[[], Any]) -> Any:
    """The type that a function says it returns. Hints that cannot be resolved say nothing."""
    try:
        return typing.get_type_hints(function).get("return", Any)
    except Exception:
        return Any


def _signal_outcome(signal: str, resumed: dict[str, Any]) -> dict[str, Any]:
    if resumed["kind"] == "signal":
        return {"output": {"payload": resumed.get("payload"), "sent_at": resumed.get("sent_at")}}
    return {"error": {"code": "TIMED_OUT", "message": f"No signal {signal} in time", "retryable": False}}


def _approval_outcome(resumed: dict[str, Any]) -> dict[str, Any]:
    decision, by = resumed["decision"], resumed.get("by")
    if decision == "approved":
        return {"output": {"by": by, "reason": resumed.get("reason"), "content": resumed.get("content")}}
    code = "APPROVAL_EXPIRED" if decision == "expired" else "APPROVAL_REJECTED"
    message = resumed.get("reason") or ""
    return {"error": {"code": code, "message": message, "retryable": False, "details": {"by": by}}}


def _child_outcome(run: models.Run) -> dict[str, Any]:
    if run.status == "succeeded":
        return {"output": run.output}
    return {
        "error": {
            "code": "CHILD_FAILED",
            "message": f"Run {run.id} of {run.workflow_id} ended as {run.status}",
            "retryable": False,
            "details": {"run_id": run.id, "status": run.status, "error": run.error},
        }
    }


def in_seconds(time: float | timedelta) -> float:
    """Seconds, given as a number or a timedelta."""
    return time.total_seconds() if isinstance(time, timedelta) else float(time)


def as_utc(at: datetime) -> datetime:
    """A time with its zone; one without is local."""
    return at.astimezone(UTC)
