"""Runs, workflows and approvals."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from .. import models
from .._core import Group, M, Steps, ask, change, emits, get, operation, pages
from .._wire import given, segment

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
        """Pause a run: no step begins until it is resumed.

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
        """Archive a workflow: no more runs of it start. Runs that exist continue; `client.apply` restores it.

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
