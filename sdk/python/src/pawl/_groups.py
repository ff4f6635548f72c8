"""The operations by resource. Each is defined once and serves the sync and the asyncio client.

The names of parameters are those of the wire (docs/api.md). In the examples `client` is a `pawl.Client`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

from . import models
from ._core import Group, M, Steps, ask, change, emits, get, operation, pages, post_job
from ._follow import Stream, event_data
from ._wire import decode, given, segment
from .errors import NoAnswer, NotFound

T = TypeVar("T")
V1 = "/api/v1"


class Runs(Group[M]):
    """`client.runs`: reading and controlling runs.

    >>> client.runs.get(waiting_run()).status
    'waiting'
    """

    @operation
    def get(self, run_id: str) -> Steps[models.Run]:
        """One run with its steps.

        >>> client.runs.get(waiting_run()).workflow_id
        'wait'
        """
        return get(self._settings, f"{V1}/runs/{segment(run_id)}", models.Run)

    @emits(models.RunSummary)
    def list(
        self,
        *,
        status: models.RunStatus | None = None,
        workflow_id: str | None = None,
        label: str | None = None,
        created_after: datetime | str | None = None,
        created_before: datetime | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Steps[None]:
        """All runs that match, newest first. `label` is "NAME:VALUE"; `limit` is the size of a page.

        >>> run_id = waiting_run()
        >>> run_id in [run.id for run in client.runs.list(status="waiting")]
        True
        """
        return pages(
            self._settings,
            f"{V1}/runs",
            models.RunSummary,
            status=status,
            workflow_id=workflow_id,
            label=label,
            created_after=created_after,
            created_before=created_before,
            limit=limit,
            cursor=cursor,
        )

    @operation
    def why(self, run_id: str) -> Steps[models.Why]:
        """What the run is waiting for, right now.

        >>> client.runs.why(waiting_run()).waits_for[0]["kind"]
        'signal'
        """
        return get(self._settings, f"{V1}/runs/{segment(run_id)}/why", models.Why)

    @emits(models.Event)
    def timeline(self, run_id: str, *, limit: int | None = None, cursor: str | None = None) -> Steps[None]:
        """The run's events so far, oldest first. `client.watch` follows them live.

        >>> [event.type for event in client.runs.timeline(waiting_run())][0]
        'run.created'
        """
        return pages(self._settings, f"{V1}/runs/{segment(run_id)}/events", models.Event, limit=limit, cursor=cursor)

    @operation
    def pause(self, run_id: str, *, key: str | None = None, if_match: int | None = None) -> Steps[models.Run]:
        """Begin no more steps until the run is resumed.

        >>> client.runs.pause(waiting_run()).status
        'paused'
        """
        return self._control(run_id, "pause", key, if_match)

    @operation
    def resume(self, run_id: str, *, key: str | None = None, if_match: int | None = None) -> Steps[models.Run]:
        """Continue a paused run.

        >>> client.runs.resume(waiting_run()).status
        'waiting'
        """
        return self._control(run_id, "resume", key, if_match)

    @operation
    def retry(self, run_id: str, *, key: str | None = None, if_match: int | None = None) -> Steps[models.Run]:
        """Try the failed steps of a failed run again.

        >>> client.runs.retry(failed_run()).status in ("running", "waiting", "pending")
        True
        """
        return self._control(run_id, "retry", key, if_match)

    def _control(self, run_id: str, verb: str, key: str | None, if_match: int | None) -> Steps[models.Run]:
        path = f"{V1}/runs/{segment(run_id)}/{verb}"
        return change(self._settings, "POST", path, models.Run, {}, key=key, if_match=if_match)

    @operation
    def rerun(
        self, run_id: str, *, from_step: str | None = None, key: str | None = None, if_match: int | None = None
    ) -> Steps[models.StartedRun]:
        """Start a new run like one that has ended; steps before `from_step` keep their results.

        >>> client.runs.rerun(failed_run()).created
        True
        """
        path = f"{V1}/runs/{segment(run_id)}/rerun"
        body = given(from_step=from_step)
        return change(self._settings, "POST", path, models.StartedRun, body, key=key, if_match=if_match)

    @operation
    def bulk(
        self,
        action: str,
        filter: Mapping[str, Any],
        *,
        dry_run: bool | None = None,
        cursor: str | None = None,
        reason: str | None = None,
        key: str | None = None,
    ) -> Steps[models.BulkResult]:
        """Cancel, pause, resume or retry up to 200 runs that match; `next_cursor` continues.

        >>> client.runs.bulk("cancel", {"workflow_id": "no-such"}, dry_run=True).matched
        0
        """
        body = {"action": action, "filter": dict(filter), **given(dry_run=dry_run, cursor=cursor, reason=reason)}
        return change(self._settings, "POST", f"{V1}/runs:bulk", models.BulkResult, body, key=key)


class Workflows(Group[M]):
    """`client.workflows`: definitions and their versions. `client.apply` stores one.

    >>> client.workflows.get("greet").id
    'greet'
    """

    @operation
    def get(self, workflow_id: str, *, version: int | None = None) -> Steps[models.Workflow]:
        """One version with its definition; the newest if `version` is not given.

        >>> client.workflows.get("greet").definition["steps"][0]["type"]
        'transform'
        """
        return get(self._settings, f"{V1}/workflows/{segment(workflow_id)}", models.Workflow, version=version)

    @emits(models.WorkflowHead)
    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Steps[None]:
        """All workflows by id.

        >>> "greet" in [workflow.id for workflow in client.workflows.list()]
        True
        """
        return pages(self._settings, f"{V1}/workflows", models.WorkflowHead, limit=limit, cursor=cursor)

    @emits(models.WorkflowVersion)
    def versions(self, workflow_id: str, *, limit: int | None = None, cursor: str | None = None) -> Steps[None]:
        """The versions of a workflow, newest first.

        >>> [v.version for v in client.workflows.versions("greet")]
        [1]
        """
        path = f"{V1}/workflows/{segment(workflow_id)}/versions"
        return pages(self._settings, path, models.WorkflowVersion, limit=limit, cursor=cursor)

    @operation
    def validate(self, workflow_id: str, definition: Mapping[str, Any]) -> Steps[models.ValidationReport]:
        """What is wrong with a definition; stores nothing.

        >>> client.workflows.validate("broken", {"steps": []}).valid
        False
        """
        path = f"{V1}/workflows/{segment(workflow_id)}/validate"
        return ask(self._settings, path, models.ValidationReport, dict(definition))

    @operation
    def archive(self, workflow_id: str, *, key: str | None = None) -> Steps[models.WorkflowHead]:
        """Start no more runs of it. Runs that exist continue; `client.apply` restores it.

        >>> client.apply({"id": "old", "steps": [{"name": "a", "type": "sleep", "duration_ms": 1}]}).id
        'old'
        >>> client.workflows.archive("old").archived
        True
        """
        path = f"{V1}/workflows/{segment(workflow_id)}"
        return change(self._settings, "DELETE", path, models.WorkflowHead, key=key)


class Approvals(Group[M]):
    """`client.approvals`: questions to people. `client.approve` and `client.reject` decide them.

    >>> client.approvals.get(pending_approval()).prompt
    'Go on?'
    """

    @operation
    def get(self, job_id: str) -> Steps[models.Approval]:
        """One approval with its content and votes.

        >>> client.approvals.get(pending_approval()).status
        'pending'
        """
        return get(self._settings, f"{V1}/approvals/{segment(job_id)}", models.Approval)

    @emits(models.ApprovalSummary)
    def list(
        self, *, status: models.ApprovalStatus | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Steps[None]:
        """Approvals, newest first.

        >>> job_id = pending_approval()
        >>> job_id in [approval.job_id for approval in client.approvals.list(status="pending")]
        True
        """
        return pages(
            self._settings, f"{V1}/approvals", models.ApprovalSummary, status=status, limit=limit, cursor=cursor
        )

    @operation
    def analytics(self, *, days: int | None = None, workflow_id: str | None = None) -> Steps[models.ApprovalAnalytics]:
        """How long decisions take, and how they went.

        >>> client.approvals.analytics(days=7).truncated
        False
        """
        path = f"{V1}/approvals/analytics"
        return get(self._settings, path, models.ApprovalAnalytics, days=days, workflow_id=workflow_id)


class Entities(Group[M]):
    """`client.entities`: long-lived objects with state, signals and timers.

    >>> client.entities.signal("account", "ada", "add", {"points": 10}, dedup_key="order-1").duplicate
    False
    """

    @operation
    def put_type(
        self,
        type: str,
        *,
        queue: str,
        handler: str,
        version: int | None = None,
        dedup_window_s: int | None = None,
        dedup_max_keys: int | None = None,
        rollover_events: int | None = None,
        keep_generations: int | None = None,
        max_inbox: int | None = None,
        max_batch: int | None = None,
        retry: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Steps[models.PutEntityTypeResult]:
        """Create a type, or replace the rules of one of its versions.

        >>> client.entities.put_type("cart", queue="carts", handler="cart").version
        1
        """
        body = {"queue": queue, "handler": handler} | given(
            version=version,
            dedup_window_s=dedup_window_s,
            dedup_max_keys=dedup_max_keys,
            rollover_events=rollover_events,
            keep_generations=keep_generations,
            max_inbox=max_inbox,
            max_batch=max_batch,
            retry=retry,
        )
        path = f"{V1}/entity-types/{segment(type)}"
        return change(self._settings, "PUT", path, models.PutEntityTypeResult, body, key=key)

    @operation
    def get_type(self, type: str) -> Steps[models.EntityType]:
        """A type with all of its versions.

        >>> client.entities.get_type("account").type
        'account'
        """
        return get(self._settings, f"{V1}/entity-types/{segment(type)}", models.EntityType)

    @emits(models.EntityTypeItem)
    def list_types(self, *, limit: int | None = None, cursor: str | None = None) -> Steps[None]:
        """All types by name.

        >>> "account" in [t.type for t in client.entities.list_types()]
        True
        """
        return pages(self._settings, f"{V1}/entity-types", models.EntityTypeItem, limit=limit, cursor=cursor)

    @operation
    def stats(self, type: str) -> Steps[models.EntityTypeStats]:
        """How late duplicates arrive: for choosing the deduplication window.

        >>> client.entities.stats("account").late_duplicates
        0
        """
        return get(self._settings, f"{V1}/entity-types/{segment(type)}/stats", models.EntityTypeStats)

    @operation
    def signal(
        self,
        type: str,
        id: str,
        name: str,
        payload: Any = None,
        *,
        dedup_key: str | None = None,
        key: str | None = None,
    ) -> Steps[models.SignaledEntity]:
        """Send a signal; the first one creates the entity. The same `dedup_key` again changes nothing.

        >>> a = client.entities.signal("account", "bob", "add", {"points": 5}, dedup_key="order-2")
        >>> b = client.entities.signal("account", "bob", "add", {"points": 5}, dedup_key="order-2")
        >>> a.seq == b.seq, b.duplicate
        (True, True)
        """
        body = {"name": name, **given(payload=payload, dedup_key=dedup_key)}
        path = f"{_entity(type, id)}/signals"
        return change(self._settings, "POST", path, models.SignaledEntity, body, key=key)

    @operation
    def update(
        self,
        type: str,
        id: str,
        name: str,
        payload: Any = None,
        *,
        dedup_key: str,
        wait_ms: int | None = None,
        key: str | None = None,
    ) -> Steps[models.EntityUpdateResult]:
        """Send a signal and wait for what the handler makes of it. The same `dedup_key` gets the same outcome.

        >>> client.entities.update("account", "ada", "spend", {"points": 4}, dedup_key="s1", wait_ms=0).status
        'waiting'
        """
        body = {"name": name, "dedup_key": dedup_key, **given(payload=payload)}
        return change(
            self._settings,
            "POST",
            f"{_entity(type, id)}/updates",
            models.EntityUpdateResult,
            body,
            key=key,
            query={"wait_ms": wait_ms},
            wait=(10_000 if wait_ms is None else wait_ms) / 1000,
        )

    @operation
    def get_update(self, type: str, id: str, seq: int) -> Steps[models.EntityUpdate]:
        """The outcome of an update.

        >>> sent = client.entities.update("account", "ada", "spend", {"points": 1}, dedup_key="s2", wait_ms=0)
        >>> client.entities.get_update("account", "ada", sent.seq).name
        'spend'
        """
        return get(self._settings, f"{_entity(type, id)}/updates/{seq}", models.EntityUpdate)

    @operation
    def get(self, type: str, id: str) -> Steps[models.Entity]:
        """The entity with its state. Needs no worker.

        >>> client.entities.signal("account", "eve", "add", {"points": 5}).seq
        1
        >>> client.entities.get("account", "eve").inbox
        1
        """
        return get(self._settings, _entity(type, id), models.Entity)

    @emits(models.EntityItem)
    def list(
        self, type: str, *, version: int | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Steps[None]:
        """The entities of a type by id.

        >>> client.entities.signal("account", "kim", "add", {"points": 5}).seq
        1
        >>> "kim" in [entity.id for entity in client.entities.list("account")]
        True
        """
        path = f"{V1}/entities/{segment(type)}"
        return pages(self._settings, path, models.EntityItem, version=version, limit=limit, cursor=cursor)

    @emits(models.EntityEvent)
    def timeline(self, type: str, id: str, *, limit: int | None = None, cursor: str | None = None) -> Steps[None]:
        """The entity's events so far, oldest first.

        >>> client.entities.signal("account", "lea", "add", {"points": 5}).seq
        1
        >>> [event.type for event in client.entities.timeline("account", "lea")]
        ['entity.created', 'entity.signaled']
        """
        return pages(self._settings, f"{_entity(type, id)}/events", models.EntityEvent, limit=limit, cursor=cursor)

    @emits(models.EntityEvent)
    def watch(self, type: str, id: str, *, after: int | None = None) -> Steps[None]:
        """The entity's events as they happen, until it is deleted.

        >>> client.entities.signal("account", "max", "add", {"points": 5}).seq
        1
        >>> next(iter(client.entities.watch("account", "max"))).type
        'entity.created'
        """
        cursor = None if after is None else str(after)
        stream = Stream(self._settings, f"{_entity(type, id)}/events", cursor, {})

        def over() -> Steps[bool]:
            try:
                yield from get(self._settings, _entity(type, id), models.Entity)
            except NotFound:
                return True
            except NoAnswer:
                pass
            return False

        return stream.follow(lambda event: decode(models.EntityEvent, event_data(event)), over)

    @emits(models.EntityGeneration)
    def generations(self, type: str, id: str, *, limit: int | None = None, cursor: str | None = None) -> Steps[None]:
        """The generations of an entity, newest first.

        >>> client.entities.signal("account", "ned", "add", {"points": 5}).seq
        1
        >>> [g.reason for g in client.entities.generations("account", "ned")]
        ['created']
        """
        path = f"{_entity(type, id)}/generations"
        return pages(self._settings, path, models.EntityGeneration, limit=limit, cursor=cursor)

    @operation
    def migrate(
        self, type: str, id: str, *, version: int | None = None, key: str | None = None
    ) -> Steps[models.MigratedEntity]:
        """Move an entity to a newer version of its type.

        >>> client.entities.signal("account", "ona", "add", {"points": 5}).seq
        1
        >>> client.entities.migrate("account", "ona").status
        'migrated'
        """
        path = f"{_entity(type, id)}/migrate"
        return change(self._settings, "POST", path, models.MigratedEntity, given(version=version), key=key)

    @operation
    def delete(self, type: str, id: str, *, key: str | None = None) -> Steps[models.DeletedEntity]:
        """Permanently delete an entity.

        >>> client.entities.signal("account", "pam", "add", {"points": 5}).seq
        1
        >>> client.entities.delete("account", "pam").deleted
        True
        """
        return change(self._settings, "DELETE", _entity(type, id), models.DeletedEntity, key=key)


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
        """The worker queues: ready, running and delayed jobs, and who polls.

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


class Schedules(Group[M]):
    """`client.schedules`: starting runs at set times.

    >>> client.schedules.put("nightly", workflow_id="greet", cron="0 3 * * *").timezone
    'UTC'
    """

    @operation
    def put(
        self,
        schedule_id: str,
        *,
        workflow_id: str,
        cron: str,
        timezone: str | None = None,
        overlap: str | None = None,
        catch_up_s: int | None = None,
        input: Any = None,
        paused: bool | None = None,
        key: str | None = None,
    ) -> Steps[models.Schedule]:
        """Create or replace a schedule. Each time starts exactly one run.

        >>> len(client.schedules.put("hourly", workflow_id="greet", cron="@hourly").next_times)
        5
        """
        body = {"workflow_id": workflow_id, "cron": cron} | given(
            timezone=timezone, overlap=overlap, catch_up_s=catch_up_s, input=input, paused=paused
        )
        return change(self._settings, "PUT", self._path(schedule_id), models.Schedule, body, key=key)

    @operation
    def get(self, schedule_id: str) -> Steps[models.Schedule]:
        """One schedule with its next five times.

        >>> client.schedules.get(schedule()).cron
        '@daily'
        """
        return get(self._settings, self._path(schedule_id), models.Schedule)

    @emits(models.Schedule)
    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Steps[None]:
        """All schedules by id.

        >>> schedule() in [s.id for s in client.schedules.list()]
        True
        """
        return pages(self._settings, f"{V1}/schedules", models.Schedule, limit=limit, cursor=cursor)

    @operation
    def delete(self, schedule_id: str, *, key: str | None = None) -> Steps[models.Deleted]:
        """Delete a schedule; runs that it started continue.

        >>> client.schedules.delete(schedule()).deleted
        True
        """
        return change(self._settings, "DELETE", self._path(schedule_id), models.Deleted, key=key)

    @operation
    def trigger(self, schedule_id: str, *, key: str | None = None) -> Steps[models.Triggered]:
        """Start a run now, in addition to the schedule.

        >>> client.schedules.trigger(schedule()).schedule_id == schedule()
        True
        """
        return change(self._settings, "POST", self._path(schedule_id) + "/trigger", models.Triggered, {}, key=key)

    def _path(self, schedule_id: str) -> str:
        return f"{V1}/schedules/{segment(schedule_id)}"


class Webhooks(Group[M]):
    """`client.webhooks`: events sent to URLs. `pawl.webhooks.verify` checks what arrives.

    >>> client.webhooks.create("https://hooks.example/pawl", ["run.*"]).secret[:6]
    'whsec_'
    """

    @operation
    def create(
        self, url: str, events: Sequence[str], *, description: str | None = None, key: str | None = None
    ) -> Steps[models.CreatedWebhook]:
        """Create a webhook. Its `secret` is shown only here.

        >>> client.webhooks.create("https://hooks.example/pawl", ["run.failed"]).enabled
        True
        """
        body = {"url": url, "events": list_(events), **given(description=description)}
        return change(self._settings, "POST", f"{V1}/webhooks", models.CreatedWebhook, body, key=key)

    @operation
    def get(self, webhook_id: str) -> Steps[models.Webhook]:
        """One webhook.

        >>> client.webhooks.get(webhook()).events
        ['run.*']
        """
        return get(self._settings, self._path(webhook_id), models.Webhook)

    @emits(models.Webhook)
    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Steps[None]:
        """All webhooks.

        >>> webhook() in [w.id for w in client.webhooks.list()]
        True
        """
        return pages(self._settings, f"{V1}/webhooks", models.Webhook, limit=limit, cursor=cursor)

    @operation
    def put(
        self,
        webhook_id: str,
        *,
        url: str | None = None,
        events: Sequence[str] | None = None,
        description: str | None = None,
        enabled: bool | None = None,
        key: str | None = None,
    ) -> Steps[models.Webhook]:
        """Change a webhook; what is not given stays.

        >>> client.webhooks.put(webhook(), enabled=False).enabled
        False
        """
        body = given(url=url, events=events, description=description, enabled=enabled)
        return change(self._settings, "PUT", self._path(webhook_id), models.Webhook, body, key=key)

    @operation
    def delete(self, webhook_id: str, *, key: str | None = None) -> Steps[models.DeletedWebhook]:
        """Delete a webhook with its log.

        >>> client.webhooks.delete(webhook()).deleted
        True
        """
        return change(self._settings, "DELETE", self._path(webhook_id), models.DeletedWebhook, key=key)

    @operation
    def rotate(
        self, webhook_id: str, *, old_secret_s: int | None = None, key: str | None = None
    ) -> Steps[models.CreatedWebhook]:
        """Make a new secret; the old one signs too for a day, or `old_secret_s` seconds.

        >>> client.webhooks.rotate(webhook()).secret[:6]
        'whsec_'
        """
        body = given(old_secret_s=old_secret_s)
        path = self._path(webhook_id) + "/rotate"
        return change(self._settings, "POST", path, models.CreatedWebhook, body, key=key)

    @operation
    def test(self, webhook_id: str, *, key: str | None = None) -> Steps[models.Delivery]:
        """Send an event of type "webhook.test".

        >>> client.webhooks.test(webhook()).event_type
        'webhook.test'
        """
        return change(self._settings, "POST", self._path(webhook_id) + "/test", models.Delivery, {}, key=key)

    @emits(models.Delivery)
    def deliveries(self, webhook_id: str, *, limit: int | None = None, cursor: str | None = None) -> Steps[None]:
        """What was sent, newest first.

        >>> list(client.webhooks.deliveries(webhook()))
        []
        """
        return pages(
            self._settings, self._path(webhook_id) + "/deliveries", models.Delivery, limit=limit, cursor=cursor
        )

    @operation
    def redeliver(self, webhook_id: str, delivery_id: str, *, key: str | None = None) -> Steps[models.Delivery]:
        """Send an event again under the same id.

        >>> hook = webhook()
        >>> client.webhooks.redeliver(hook, client.webhooks.test(hook).id).event_type
        'webhook.test'
        """
        path = f"{self._path(webhook_id)}/deliveries/{segment(delivery_id)}/redeliver"
        return change(self._settings, "POST", path, models.Delivery, {}, key=key)

    def _path(self, webhook_id: str) -> str:
        return f"{V1}/webhooks/{segment(webhook_id)}"


class Tenants(Group[M]):
    """`client.tenants`: limits and settings of tenants. Needs an admin key for `*`.

    >>> client.tenants.put("acme", {"max_concurrent_runs": 100}).max_concurrent_runs
    100
    """

    @operation
    def put(self, tenant_id: str, settings: Mapping[str, Any], *, key: str | None = None) -> Steps[models.Tenant]:
        """Create a tenant or change the given settings. None resets a setting to its default.

        >>> client.tenants.put("acme", {"max_concurrent_runs": None}).max_concurrent_runs is None
        True
        """
        return change(self._settings, "PUT", self._path(tenant_id), models.Tenant, dict(settings), key=key)

    @operation
    def get(self, tenant_id: str) -> Steps[models.Tenant]:
        """A tenant with its active and queued runs.

        >>> client.tenants.get("default").id
        'default'
        """
        return get(self._settings, self._path(tenant_id), models.Tenant)

    @emits(models.Tenant)
    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Steps[None]:
        """All tenants by id.

        >>> "default" in [tenant.id for tenant in client.tenants.list()]
        True
        """
        return pages(self._settings, f"{V1}/tenants", models.Tenant, limit=limit, cursor=cursor)

    @emits(models.SettingsVersion)
    def settings(self, tenant_id: str, *, limit: int | None = None, cursor: str | None = None) -> Steps[None]:
        """The versions of a tenant's settings, newest first.

        >>> client.tenants.put("globex", {"weight": 3}).weight
        3
        >>> [v.settings.weight for v in client.tenants.settings("globex")][0]
        3
        """
        path = self._path(tenant_id) + "/settings"
        return pages(self._settings, path, models.SettingsVersion, limit=limit, cursor=cursor)

    @operation
    def rollback(self, tenant_id: str, *, version: int | None = None, key: str | None = None) -> Steps[models.Tenant]:
        """Restore earlier settings: those before the last change, or of a version.

        >>> client.tenants.put("initech", {"weight": 3}).weight
        3
        >>> client.tenants.put("initech", {"weight": 4}).weight
        4
        >>> client.tenants.rollback("initech").weight
        3
        """
        path = self._path(tenant_id) + "/rollback"
        return change(self._settings, "POST", path, models.Tenant, given(version=version), key=key)

    def _path(self, tenant_id: str) -> str:
        return f"{V1}/tenants/{segment(tenant_id)}"


class Keys(Group[M]):
    """`client.keys`: API keys, and the records of idempotency keys.

    >>> client.keys.create("worker").key[:5]
    'pawl_'
    """

    @operation
    def create(
        self, role: models.Role, *, tenant: str | None = None, label: str | None = None, key: str | None = None
    ) -> Steps[models.CreatedApiKey]:
        """Create an API key. The key itself is shown only here.

        >>> client.keys.create("viewer", label="dashboard").role
        'viewer'
        """
        body = {"role": role, **given(tenant=tenant, label=label)}
        return change(self._settings, "POST", f"{V1}/keys", models.CreatedApiKey, body, key=key)

    @emits(models.ApiKey)
    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Steps[None]:
        """The keys, oldest first, without their secrets.

        >>> made = client.keys.create("viewer")
        >>> made.id in [k.id for k in client.keys.list()]
        True
        """
        return pages(self._settings, f"{V1}/keys", models.ApiKey, limit=limit, cursor=cursor)

    @operation
    def revoke(self, key_id: str, *, key: str | None = None) -> Steps[models.RevokedApiKey]:
        """Revoke a key.

        >>> client.keys.revoke(client.keys.create("viewer").id).revoked
        True
        """
        return change(self._settings, "DELETE", f"{V1}/keys/{segment(key_id)}", models.RevokedApiKey, key=key)

    @operation
    def idempotency(self, idempotency_key: str) -> Steps[models.IdempotencyRecord]:
        """What is known about an idempotency key: its route, its run, how often it was replayed.

        >>> run_id = client.start("greet", {"name": "Ada"}, key="known").run_id
        >>> client.keys.idempotency("known").run_id == run_id
        True
        """
        return get(self._settings, f"{V1}/idempotency-keys/{segment(idempotency_key)}", models.IdempotencyRecord)

    @operation
    def release_idempotency(self, idempotency_key: str, *, key: str | None = None) -> Steps[models.IdempotencyRecord]:
        """Forget an idempotency key: its next use is a new request.

        >>> run_id = client.start("greet", {"name": "Ada"}, key="forget-me").run_id
        >>> client.keys.release_idempotency("forget-me").key
        'forget-me'
        """
        path = f"{V1}/idempotency-keys/{segment(idempotency_key)}"
        return change(self._settings, "DELETE", path, models.IdempotencyRecord, key=key)


class Audit(Group[M]):
    """`client.audit`: who changed what, when and from where.

    >>> client.audit.verify().ok
    True
    """

    @emits(models.AuditEntry)
    def list(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        after: int | None = None,
        order: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Steps[None]:
        """The entries, oldest first; `order="newest"` turns that round.

        >>> made = client.keys.create("viewer")
        >>> [entry.action for entry in client.audit.list(action="key.create")][-1]
        'key.create'
        """
        return pages(
            self._settings,
            f"{V1}/audit",
            models.AuditEntry,
            actor=actor,
            action=action,
            after=after,
            order=order,
            limit=limit,
            cursor=cursor,
        )

    @operation
    def verify(self) -> Steps[models.AuditVerdict]:
        """Check the chain of hashes.

        >>> client.audit.verify().broken is None
        True
        """
        return get(self._settings, f"{V1}/audit/verify", models.AuditVerdict)


class Server(Group[M]):
    """`client.server`: health and checks of the server itself.

    >>> client.server.health().status
    'ok'
    """

    @operation
    def health(self) -> Steps[models.Health]:
        """Whether the process is alive, and its version.

        >>> client.server.health().status
        'ok'
        """
        return get(self._settings, "/healthz", models.Health)

    @operation
    def ready(self) -> Steps[models.Readiness]:
        """Whether the server can work, with each dependency. Raises `Unavailable` if it cannot.

        >>> client.server.ready().status
        'ready'
        """
        return get(self._settings, "/readyz", models.Readiness)

    @operation
    def doctor(self) -> Steps[models.DoctorReport]:
        """Check the stored data.

        >>> client.server.doctor().ok
        True
        """
        return get(self._settings, f"{V1}/doctor", models.DoctorReport)

    @operation
    def repair(self, *, key: str | None = None) -> Steps[models.RepairReport]:
        """Rebuild derived data.

        >>> client.server.repair().repaired
        0
        """
        return change(self._settings, "POST", f"{V1}/doctor/repair", models.RepairReport, {}, key=key)

    @operation
    def outbox(self, *, limit: int | None = None, cursor: str | None = None) -> Steps[models.Outbox]:
        """The state of publishing to the bus, with one page of parked messages.

        >>> client.server.outbox().bus.status
        'none'
        """
        return get(self._settings, f"{V1}/outbox", models.Outbox, limit=limit, cursor=cursor)

    @operation
    def retry_parked(self, message_id: str, *, key: str | None = None) -> Steps[models.Retrying]:
        """Send a parked message again.

        >>> client.server.retry_parked("0190b3c4-0000-7000-8000-000000008057:4")
        Traceback (most recent call last):
        pawl.errors.NotFound: NOT_FOUND: ...
        """
        path = f"{V1}/outbox/{segment(message_id)}/retry"
        return change(self._settings, "POST", path, models.Retrying, key=key)


def list_(values: Sequence[str]) -> list[str]:
    """`list`, which the groups use as the name of a method."""
    return [*values]


def _entity(type: str, id: str) -> str:
    return f"{V1}/entities/{segment(type)}/{segment(id)}"
