"""The worker's three loops and the execution of a job, as steps that both shells perform."""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._core import Send, Settings, Steps, post_job
from ._wire import Request, encode, problem, segment
from ._worker_state import Held, WorkerState
from .errors import ApiError, JobCancelled, JobError, LeaseLost, NoAnswer, NotFound
from .retry import NEVER, Backoff, Retry

log = logging.getLogger("pawl")
REPORT = Retry(deadline=None)  # until there is an answer: the lease decides what counts
POLL = Retry(base=0.2, maximum=5.0)
RELEASE_S = 30.0


@dataclass(frozen=True)
class Wait:
    """Wait until the state's version is another one, or until a time of the settings' clock."""

    version: int
    until: float | None = None


@dataclass(frozen=True)
class Spawn:
    """Execute a job beside the others."""

    held: Held


@dataclass(frozen=True)
class Cancel:
    """Tell the handler of a job to stop."""

    held: Held


class Suspended(BaseException):
    """Ends a handler whose job has been suspended; the job comes back when what it waits for has come."""


Execute = Callable[[Held], Steps[Any]]


class Programs:
    """The loops of one worker. `execute` runs the handler of a job and returns its output."""

    def __init__(self, settings: Settings, state: WorkerState, execute: Execute) -> None:
        self.settings, self.state, self.execute = settings, state, execute
        self.poll_tag = object()

    def poll(self) -> Steps[None]:
        """Claim jobs while slots are free. A refusal that cannot change ends the worker."""
        state, backoff = self.state, Backoff(POLL, self.settings.random)
        while not state.stopping:
            version = state.version
            body = state.begin_poll()
            if body is None:
                yield Wait(version)
                continue
            failure: NoAnswer | ApiError | None = None
            try:
                jobs = yield from self._claim(body)
                yield from self._take(jobs)
            except (NoAnswer, ApiError) as failed:
                failure = failed
            finally:
                state.end_poll()
            if failure:
                yield from self._after_failed_poll(failure, backoff)
            else:
                backoff = Backoff(POLL, self.settings.random)

    def _claim(self, body: dict[str, Any]) -> Steps[list[dict[str, Any]]]:
        headers = {**self.settings.headers(), "Content-Type": "application/json"}
        request = Request(
            "POST", "/api/v1/jobs/claim", headers=headers, body=body, has_body=True, timeout=15 + body["wait_ms"] / 1000
        )
        response = yield Send(request, self.poll_tag)
        if response.status >= 400:
            raise problem(response)
        jobs: list[dict[str, Any]] = response.json()["jobs"]
        return jobs

    def _after_failed_poll(self, failed: NoAnswer | ApiError, backoff: Backoff) -> Steps[None]:
        if isinstance(failed, ApiError) and not failed.retryable:
            raise failed
        if self.state.stopping:
            return
        pause = getattr(failed, "retry_after", 0.0) + backoff.next()
        log.info("no jobs: %s; trying again in %.1f s", failed, pause)
        until = self.settings.now() + pause
        while not self.state.stopping and self.settings.now() < until:
            yield Wait(self.state.version, until)

    def _take(self, jobs: list[dict[str, Any]]) -> Steps[None]:
        for held in self.state.take(jobs, self.settings.now()):
            if self.state.stopping:
                yield from self.release(held)
            else:
                yield Spawn(held)

    def release(self, held: Held) -> Steps[None]:
        """Give a job back; if that fails, its lease expires."""
        try:
            yield from self._post(held, "release", {}, RELEASE_S)
        except (NoAnswer, ApiError) as failed:
            log.info("job %s was not released: %s", held.job["job_id"], failed)
        self.state.finish(held, None)

    def report(self) -> Steps[None]:
        """Send results, and take the jobs that come back with the answer."""
        state = self.state
        while not state.done:
            version = state.version
            body = state.begin_report()
            if body is None:
                yield Wait(version)
                continue
            try:
                answer = yield from post_job(self.settings, "/api/v1/jobs:complete", body, REPORT)
            except ApiError as refused:
                log.error("a report was refused: %s", refused)
                state.report_refused(refused.code, refused.detail)
                continue
            yield from self._take(answer.get("jobs", []))
            state.reported(answer["results"])

    def beat(self) -> Steps[None]:
        """Send a heartbeat for each job every third of its lease."""
        state = self.state
        while not state.done:
            version = state.version
            for held in state.due(self.settings.now()):
                yield from self._heartbeat(held)
            yield Wait(version, state.next_beat())

    def _heartbeat(self, held: Held) -> Steps[None]:
        """One that gets no answer is given up soon: the other jobs need theirs."""
        body = {} if held.progress is None else {"progress": held.progress}
        timeout = max(1.0, self.state.lease_ms / 3000)
        try:
            lease = yield from self._post(held, "heartbeat", body, timeout)
        except (LeaseLost, NotFound) as lost:
            log.warning("job %s is gone: %s", held.job["job_id"], lost)
            yield from self._lose(held)
        except (NoAnswer, ApiError) as failed:
            log.info("no heartbeat for job %s: %s", held.job["job_id"], failed)
            self.state.not_beaten(held, self.settings.now())
        else:
            self.state.beaten(held, self.settings.now())
            if lease["cancel_requested"]:
                yield from self._lose(held)

    def _lose(self, held: Held) -> Steps[None]:
        running = held.running
        self.state.lose(held)
        if running:
            yield Cancel(held)

    def _post(self, held: Held, verb: str, body: dict[str, Any], timeout: float) -> Steps[Any]:
        path = f"/api/v1/jobs/{segment(held.job['job_id'])}/{verb}"
        return post_job(self.settings, path, {"lease_token": held.token, **body}, NEVER, timeout)

    def run_job(self, held: Held) -> Steps[None]:
        """Execute a job and hand in its result."""
        result: dict[str, Any] | None = None
        try:
            output = yield from self.execute(held)
            result = _result(output, held)
        except Suspended:
            pass
        except GeneratorExit:
            raise
        except (JobCancelled, CancelledError):
            if not held.cancelled:
                yield from self.release(held)
                return
        except BaseException as failed:  # also sys.exit() in a handler: the job must not stay held
            if not isinstance(failed, JobError):
                log.exception("handler %s failed", held.job["handler"])
            result = {"error": error_of(failed)}
        self.state.finish(held, result)


def _result(output: Any, held: Held) -> dict[str, Any]:
    state = getattr(held.context, "_new_state", None)
    result = {"output": output} if state is None else {"output": output, "state": state}
    try:
        encode(result)
    except (TypeError, ValueError) as wrong:
        return {"error": {"code": "OUTPUT_NOT_JSON", "message": str(wrong), "retryable": False}}
    return result


def error_of(failed: BaseException) -> dict[str, Any]:
    """A failure as the wire has it. An error of the API keeps its code; any other that is no `JobError` has its class
    as code and may be retried."""
    if isinstance(failed, ApiError):
        return {"code": failed.code, "message": failed.detail, "retryable": failed.retryable}
    if not isinstance(failed, JobError):
        return {"code": type(failed).__name__[:128], "message": str(failed), "retryable": True}
    error: dict[str, Any] = {"code": failed.code, "message": failed.message, "retryable": failed.retryable}
    return error if failed.details is None else {**error, "details": failed.details}
