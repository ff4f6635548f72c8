"""Every error that the library raises.

`PawlError` is the root. An answer of the server that is a problem becomes an `ApiError`, of a class that its code
chooses; `err.code` is the stable code. Which code has which class is shared with the other libraries
(`sdk/fixtures/errors.json`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .models import Run


class PawlError(Exception):
    """The root of all errors of this library.

    >>> issubclass(ApiError, PawlError)
    True
    """


class NoAnswer(PawlError):
    """No answer arrived: the connection failed, broke or timed out. The outcome is unknown; the same key is safe.

    >>> str(NoAnswer("No pawl server at http://127.0.0.1:1"))
    'No pawl server at http://127.0.0.1:1'
    """


class ApiError(PawlError):
    """The server refused the request.

    >>> err = error_for(409, {"code": "RUN_IS_OVER", "detail": "The run has ended", "actual": 7})
    >>> type(err).__name__, err.code, err.status, err.retryable, err.details["actual"]
    ('Conflict', 'RUN_IS_OVER', 409, False, 7)
    """

    def __init__(self, status: int, problem: dict[str, Any], retry_after: float = 0.0) -> None:
        self.status = status
        #: The stable code, such as "MAX_CONCURRENT_RUNS".
        self.code = str(problem.get("code", f"HTTP_{status}"))
        #: For people; may change between versions.
        self.detail = str(problem.get("detail", problem.get("title", "")))
        #: Whether the same request may succeed later.
        self.retryable = bool(problem.get("retryable", status == 429 or status >= 500))
        #: Seconds that the server asks to wait, or 0.
        self.retry_after = retry_after
        self.trace_id = str(problem.get("trace_id", ""))
        #: All members of the problem, such as `current` and `limit`.
        self.details = problem
        super().__init__(f"{self.code}: {self.detail}" if self.detail else self.code)


class InvalidRequest(ApiError):
    """The request itself is wrong: 400, 405, 413, 415, 422 and the like. `details["errors"]` says where.

    >>> error_for(422, {"code": "INPUT_INVALID"})
    InvalidRequest('INPUT_INVALID')
    """


class KeyReused(InvalidRequest):
    """The idempotency key belongs to another request. Never switch to a new key: look at the first request.

    >>> error_for(422, {"code": "IDEMPOTENCY_KEY_REUSED"})
    KeyReused('IDEMPOTENCY_KEY_REUSED')
    """


class Unauthenticated(ApiError):
    """The API key is missing, unknown or revoked.

    >>> error_for(401, {"code": "UNAUTHENTICATED"})
    Unauthenticated('UNAUTHENTICATED')
    """


class Forbidden(ApiError):
    """The key's role or tenant does not allow this.

    >>> error_for(403, {"code": "SELF_APPROVAL_DENIED"})
    Forbidden('SELF_APPROVAL_DENIED')
    """


class NotFound(ApiError):
    """The object does not exist, or belongs to another tenant.

    >>> error_for(404, {"code": "RUN_NOT_FOUND"})
    NotFound('RUN_NOT_FOUND')
    """


class Conflict(ApiError):
    """The current state does not allow this.

    >>> error_for(409, {"code": "CONCURRENCY_ERROR"})
    Conflict('CONCURRENCY_ERROR')
    """


class LeaseLost(Conflict):
    """The worker's lease is gone: another worker has the job, or it has ended. Drop the result.

    >>> error_for(409, {"code": "LEASE_LOST"})
    LeaseLost('LEASE_LOST')
    """


class ApprovalConflict(Conflict):
    """The approval cannot be decided like this: decided otherwise, expired, changed or not awaiting a decision.

    >>> error_for(409, {"code": "APPROVAL_EXPIRED"})
    ApprovalConflict('APPROVAL_EXPIRED')
    """


class LimitReached(ApiError):
    """A limit is reached: `details` has `current`, `limit` and `limited_by`. The same key works later.

    >>> error_for(429, {"code": "QUEUE_FULL"}).retryable
    True
    """


class Unavailable(ApiError):
    """The server cannot answer now. Retry with the same key.

    >>> error_for(503, {"code": "OVERLOADED"}).retryable
    True
    """


class ServerFault(ApiError):
    """A fault of the server.

    >>> error_for(500, {"code": "INTERNAL"})
    ServerFault('INTERNAL')
    """


class RunFailed(PawlError):
    """A run that was waited for did not succeed; `run` is the run, `code` the code of its error.

    >>> issubclass(RunFailed, PawlError)
    True
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        error = run.error if isinstance(run.error, dict) else {}
        self.code = str(error.get("code", run.status.upper()))
        super().__init__(f"Run {run.id} of {run.workflow_id} ended as {run.status}: {error or 'no error'}")


class WaitTimeout(PawlError):
    """The wait was shorter than the run. The run continues; wait again.

    >>> str(WaitTimeout("Run r1 is still running"))
    'Run r1 is still running'
    """


class WebhookInvalid(PawlError):
    """The webhook message was not signed with the secret, or is too old. `reason` says which check failed.

    >>> WebhookInvalid("header_missing", "webhook-id is missing").reason
    'header_missing'
    """

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class JobError(PawlError):
    """Raise it in a handler to fail the job with a code. `retryable=False`: no further attempt.

    >>> err = JobError("CARD_DECLINED", "no funds", retryable=False)
    >>> err.code, err.retryable
    ('CARD_DECLINED', False)
    """

    def __init__(self, code: str, message: str = "", *, retryable: bool = True, details: Any = None) -> None:
        self.code, self.message, self.retryable, self.details = code, message, retryable, details
        super().__init__(f"{code}: {message}" if message else code)


class StepFailed(JobError):
    """What `ctx.step` raises when its function has failed for the last time. It is stored: a later attempt of the
    same job raises it again and does not call the function.

    >>> StepFailed("CARD_DECLINED", "no funds").retryable
    False
    """

    def __init__(self, code: str, message: str = "", *, details: Any = None) -> None:
        super().__init__(code, message, retryable=False, details=details)


class Rejected(JobError):
    """What `ctx.approval` raises when the answer is no; `code` is `APPROVAL_REJECTED` or `APPROVAL_EXPIRED`.

    >>> Rejected("APPROVAL_REJECTED", "too much", by="ann").by
    'ann'
    """

    def __init__(self, code: str, message: str = "", *, by: str | None = None) -> None:
        self.by = by
        super().__init__(code, message, retryable=False)


class TimedOut(JobError):
    """What `ctx.wait_signal` raises when no signal came in time.

    >>> TimedOut("no signal paid").code
    'TIMED_OUT'
    """

    def __init__(self, message: str = "") -> None:
        super().__init__("TIMED_OUT", message, retryable=False)


class Reject(PawlError):
    """Raise it in an entity's handler to reject an update. What the handler changed before is undone.

    >>> Reject("TOO_FEW", "there are 90").code
    'TOO_FEW'
    """

    def __init__(self, code: str, message: str = "") -> None:
        self.code, self.message = code, message
        super().__init__(f"{code}: {message}" if message else code)


class JobCancelled(BaseException):
    """Ends a handler whose job is gone: the run was cancelled, the lease is lost, or the worker is stopping.

    Like `asyncio.CancelledError` it is not an `Exception`, so `except Exception` does not catch it.

    >>> issubclass(JobCancelled, Exception)
    False
    """


BY_CODE: dict[str, type[ApiError]] = {
    "IDEMPOTENCY_KEY_REUSED": KeyReused,
    "LEASE_LOST": LeaseLost,
    "APPROVAL_CONFLICT": ApprovalConflict,
    "APPROVAL_EXPIRED": ApprovalConflict,
    "APPROVAL_STALE": ApprovalConflict,
    "NOT_AWAITING_APPROVAL": ApprovalConflict,
}
BY_STATUS: dict[int, type[ApiError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: LimitReached,
    500: ServerFault,
}


def error_for(status: int, problem: dict[str, Any], retry_after: float = 0.0) -> ApiError:
    """The typed error of a refused request.

    >>> error_for(404, {"code": "JOB_NOT_FOUND", "detail": "No such job"})
    NotFound('JOB_NOT_FOUND: No such job')
    """
    kind = BY_CODE.get(str(problem.get("code"))) or BY_STATUS.get(status)
    if kind is None:
        kind = Unavailable if status >= 500 and status != 505 else InvalidRequest
    return kind(status, problem, retry_after)
