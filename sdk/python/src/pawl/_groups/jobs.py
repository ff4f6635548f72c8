"""Jobs, queues, workers and dead letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

from .. import models
from .._core import Group, M, Steps, change, emits, get, operation, pages, post_job
from .._wire import decode, given, segment

T = TypeVar("T")
V1 = "/api/v1"


class Jobs(Group[M]):
    """`client.jobs`: jobs, queues, workers and dead letters. `pawl.Worker` does the claiming for you.

    >>> client.jobs.claim("me", queues=["empty"])
    []
    """

    @operation
    def get(self, job_id: str) -> Steps[models.Job]:
        """One job with its attempts.

        >>> client.jobs.get(pending_approval()).state
        'approval'
        """
        return get(self._settings, f"{V1}/jobs/{segment(job_id)}", models.Job)

    @operation
    def claim(
        self,
        worker_id: str,
        *,
        queues: Sequence[str] | None = None,
        max: int | None = None,
        wait_ms: int | None = None,
        lease_ms: int | None = None,
    ) -> Steps[list[models.ClaimedJob]]:
        """Claim jobs. An empty list is normal: claim again.

        >>> claimed_job().handler
        'demo'
        """
        body = {"worker_id": worker_id} | given(queues=queues, max=max, wait_ms=wait_ms, lease_ms=lease_ms)
        path, retry = f"{V1}/jobs/claim", self._settings.retry
        answer = yield from post_job(self._settings, path, body, retry, 30 + (wait_ms or 0) / 1000)
        return [decode(models.ClaimedJob, job) for job in answer["jobs"]]

    @operation
    def claim_one(self, job_id: str, worker_id: str, *, lease_ms: int | None = None) -> Steps[models.ClaimedJob]:
        """Claim this one job, which was offered on the bus.

        >>> client.jobs.claim_one(queued_job(), "me").attempt
        1
        """
        return self._job(job_id, "claim", models.ClaimedJob, {"worker_id": worker_id, **given(lease_ms=lease_ms)})

    @operation
    def complete(
        self, job_id: str, lease_token: str, output: Any = None, *, state: Mapping[str, Any] | None = None
    ) -> Steps[models.JobResult]:
        """Report a result. It counts once; a repeat gets "already_completed".

        >>> job = claimed_job()
        >>> client.jobs.complete(job.job_id, job.lease_token, {"sent": True}).status
        'completed'
        """
        return self._job(
            job_id, "complete", models.JobResult, {"lease_token": lease_token, **given(output=output, state=state)}
        )

    @operation
    def fail(self, job_id: str, lease_token: str, error: Mapping[str, Any]) -> Steps[models.JobResult]:
        """Report a failure: `{"code", "message"?, "retryable"?, "details"?}`.

        >>> job = claimed_job()
        >>> client.jobs.fail(job.job_id, job.lease_token, {"code": "NO_FUNDS"}).status
        'failed'
        """
        return self._job(job_id, "fail", models.JobResult, {"lease_token": lease_token, "error": dict(error)})

    @operation
    def heartbeat(self, job_id: str, lease_token: str, *, progress: Any = None) -> Steps[models.Lease]:
        """Renew the lease; `cancel_requested` says that the run was cancelled.

        >>> job = claimed_job()
        >>> client.jobs.heartbeat(job.job_id, job.lease_token).cancel_requested
        False
        """
        return self._job(job_id, "heartbeat", models.Lease, {"lease_token": lease_token, **given(progress=progress)})

    @operation
    def release(self, job_id: str, lease_token: str) -> Steps[models.JobResult]:
        """Give the job back before the work has begun: no attempt is used up.

        >>> job = claimed_job()
        >>> client.jobs.release(job.job_id, job.lease_token).status
        'released'
        """
        return self._job(job_id, "release", models.JobResult, {"lease_token": lease_token})

    @operation
    def complete_many(
        self, items: Sequence[Mapping[str, Any]], *, claim: Mapping[str, Any] | None = None
    ) -> Steps[models.JobsResult]:
        """Report up to 100 results and claim the next jobs in one call and one commit.

        >>> job = claimed_job()
        >>> item = {"job_id": job.job_id, "lease_token": job.lease_token, "output": 1}
        >>> client.jobs.complete_many([item]).results[0]["status"]
        'completed'
        """
        body = {"items": [dict(item) for item in items], **given(claim=claim)}
        answer = yield from post_job(self._settings, f"{V1}/jobs:complete", body, self._settings.retry)
        return cast(models.JobsResult, decode(models.JobsResult, answer))

    @operation
    def checkpoint(
        self, job_id: str, lease_token: str, name: str, output: Any = None, *, error: Mapping[str, Any] | None = None
    ) -> Steps[models.Checkpoint]:
        """Store a finished part of a job, or its error. The first result under a name stays.

        >>> job = claimed_job()
        >>> client.jobs.checkpoint(job.job_id, job.lease_token, "charge", {"id": 1}).status
        'stored'
        """
        outcome = {"output": output} if error is None else {"error": dict(error)}
        body = {"lease_token": lease_token, "name": name, **outcome}
        return self._job(job_id, "checkpoints", models.Checkpoint, body)

    @operation
    def suspend(
        self,
        job_id: str,
        lease_token: str,
        *,
        name: str | None = None,
        until: datetime | str | None = None,
        signal: str | None = None,
        approval: Mapping[str, Any] | None = None,
    ) -> Steps[models.Suspended]:
        """Give a job up until a time, a signal or a decision has come.

        >>> job = claimed_job()
        >>> client.jobs.suspend(job.job_id, job.lease_token, name="wait", signal="paid").status
        'suspended'
        """
        body = {"lease_token": lease_token} | given(name=name, until=until, signal=signal, approval=approval)
        return self._job(job_id, "suspend", models.Suspended, body)

    def _job(self, job_id: str, verb: str, kind: type[T], body: dict[str, Any]) -> Steps[T]:
        path = f"{V1}/jobs/{segment(job_id)}/{verb}"
        answer = yield from post_job(self._settings, path, body, self._settings.retry)
        return cast(T, decode(kind, answer))

    @emits(models.Queue)
    def queues(self, *, limit: int | None = None, cursor: str | None = None) -> Steps[None]:
        """The worker queues: ready, running and delayed jobs, and their workers.

        >>> job = queued_job()
        >>> "demo" in [queue.queue for queue in client.jobs.queues()]
        True
        """
        return pages(self._settings, f"{V1}/queues", models.Queue, limit=limit, cursor=cursor)

    @emits(models.Worker)
    def workers(self, *, limit: int | None = None, cursor: str | None = None) -> Steps[None]:
        """The workers that poll, or hold jobs.

        >>> client.jobs.claim("w-1", queues=["empty"])
        []
        >>> "w-1" in [worker.worker_id for worker in client.jobs.workers()]
        True
        """
        return pages(self._settings, f"{V1}/workers", models.Worker, limit=limit, cursor=cursor)

    @emits(models.Job)
    def dead_letters(self, *, limit: int | None = None, cursor: str | None = None) -> Steps[None]:
        """Jobs that failed permanently, newest first.

        >>> job_id = dead_letter()
        >>> job_id in [job.job_id for job in client.jobs.dead_letters()]
        True
        """
        return pages(self._settings, f"{V1}/dead-letters", models.Job, limit=limit, cursor=cursor)

    @operation
    def retry_dead_letter(self, job_id: str, *, key: str | None = None) -> Steps[models.Job]:
        """Retry the run of a dead letter, or the call of an entity.

        >>> client.jobs.retry_dead_letter(dead_letter()).state
        'pending'
        """
        path = f"{V1}/dead-letters/{segment(job_id)}/retry"
        return change(self._settings, "POST", path, models.Job, {}, key=key)

    @operation
    def drop_dead_letter(self, job_id: str, *, key: str | None = None) -> Steps[models.Job]:
        """Take a job off the list.

        >>> client.jobs.drop_dead_letter(dead_letter()).state
        'failed'
        """
        return change(self._settings, "DELETE", f"{V1}/dead-letters/{segment(job_id)}", models.Job, key=key)
