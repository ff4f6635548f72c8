"""The client: `Client` blocks, `AsyncClient` is for asyncio. Both have the same methods, defined once."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Self, cast

from . import models
from ._aio import AsyncShell, AsyncTransport
from ._core import Async, Group, M, Settings, Shell, Steps, Sync, change, emits, get, operation
from ._follow import Stream, event_data, swallow
from ._groups import Approvals, Audit, Entities, Jobs, Keys, Runs, Schedules, Server, Tenants, Webhooks, Workflows
from ._sse import SseEvent
from ._sync import SyncShell, Transport
from ._wire import OVER, decode, given, segment
from .definition import Workflow
from .errors import NoAnswer, RunFailed, WaitTimeout
from .retry import Budget, Retry

SLICE_MS = 20_000


@dataclass(frozen=True, kw_only=True)
class FeedEvent:
    """An event of the tenant's stream. `cursor` is where to resume; `id` is the same wherever the event is published.

    >>> FeedEvent(cursor="17-3", id="r1:4", type="run.succeeded").type
    'run.succeeded'
    """

    cursor: str
    id: str = ""
    type: str
    source: str = ""
    subject: str = ""
    time: datetime | None = None
    data: Any = None


class _Api(Group[M]):
    @operation
    def start(
        self,
        workflow_id: str,
        input: Any = None,
        *,
        key: str | None = None,
        labels: Mapping[str, str] | None = None,
        priority: int | None = None,
        at_limit: models.AtLimit | None = None,
        start_at: datetime | str | None = None,
        wait_ms: int | None = None,
    ) -> Steps[models.StartedRun]:
        """Start a run. The same key again gives the same run, however often and however late it is sent.

        Derive the key from your own ids ("order-789-refund"). Without one the client makes a key for this call, so
        that its own retries are safe; it cannot protect you from a restart of your program.

        >>> first = client.start("greet", {"name": "Ada"}, key="greet-ada")
        >>> again = client.start("greet", {"name": "Ada"}, key="greet-ada")
        >>> first.created, again.created, first.run_id == again.run_id
        (True, False, True)
        """
        body = given(input=input, labels=labels, priority=priority, at_limit=at_limit, start_at=start_at)
        return change(
            self._settings,
            "POST",
            f"/api/v1/workflows/{segment(workflow_id)}/runs",
            models.StartedRun,
            body,
            key=key,
            query={"wait_ms": wait_ms},
            wait=(wait_ms or 0) / 1000,
        )

    @operation
    def run(
        self,
        workflow_id: str,
        input: Any = None,
        *,
        key: str | None = None,
        timeout: float | None = None,
        labels: Mapping[str, str] | None = None,
        priority: int | None = None,
        at_limit: models.AtLimit | None = None,
    ) -> Steps[Any]:
        """Start a run, wait for its end and return its output. Raises `RunFailed` if it does not succeed, and
        `WaitTimeout` after `timeout` seconds; the run then continues.

        >>> client.run("greet", {"name": "Ada"})
        {'text': 'Hello, Ada!'}
        """
        settings = self._settings
        key = key if key is not None else settings.new_key()
        end = None if timeout is None else settings.now() + timeout
        while True:
            left = SLICE_MS if end is None else max(0, int((end - settings.now()) * 1000))
            started = yield from _Api.start.steps(
                self,
                workflow_id,
                input,
                key=key,
                labels=labels,
                priority=priority,
                at_limit=at_limit,
                wait_ms=min(SLICE_MS, left),
            )
            if started.run.status in OVER:
                return _output(started.run)
            if end is not None and settings.now() >= end:
                raise WaitTimeout(f"Run {started.run_id} is still {started.run.status}")

    @operation
    def wait(self, run_id: str, *, timeout: float | None = None) -> Steps[models.Run]:
        """Wait for the end of a run and return it, whatever its status. `WaitTimeout` after `timeout` seconds.

        >>> started = client.start("greet", {"name": "Ada"})
        >>> client.wait(started.run_id).status
        'succeeded'
        """
        settings = self._settings
        run = yield from Runs.get.steps(self, run_id)
        if run.status not in OVER:
            end = None if timeout is None else settings.now() + timeout
            stream = Stream(settings, f"/api/v1/runs/{segment(run_id)}/events", str(run.version), {}, end)
            try:
                yield from swallow(stream.follow(_run_event, lambda: _is_over(settings, run_id)))
            except WaitTimeout:
                raise WaitTimeout(f"Run {run_id} is still not over") from None
            run = yield from Runs.get.steps(self, run_id)
        return run

    @emits(models.Event)
    def watch(self, run_id: str, *, after: int | None = None) -> Steps[None]:
        """The run's events as they happen, from its first one (or after `after`) to its end. A broken connection is
        resumed: no event is missed or comes twice.

        >>> started = client.start("greet", {"name": "Ada"})
        >>> [event.type for event in client.watch(started.run_id)][-1]
        'run.succeeded'
        """
        cursor = None if after is None else str(after)
        stream = Stream(self._settings, f"/api/v1/runs/{segment(run_id)}/events", cursor, {})
        yield from stream.follow(_run_event, lambda: _is_over(self._settings, run_id))

    @emits(FeedEvent)
    def events(self, *, types: list[str] | None = None, after: str | None = None) -> Steps[None]:
        """All events of the tenant as they happen, without end. `types` filters ("run.*"). `after` is the `cursor` of
        the last event that you have seen; "0-0" is the beginning. An event of type "reset" says that events after
        your cursor are no longer kept: read the current state.

        >>> started = client.start("greet", {"name": "Ada"})
        >>> next(iter(client.events(types=["run.created"], after="0-0"))).type
        'run.created'
        """
        query = {"types": ",".join(types)} if types else {}
        yield from Stream(self._settings, "/api/v1/events", after, query).follow(_feed_event, _never_over)

    @operation
    def signal(
        self,
        run_id: str,
        name: str,
        payload: Any = None,
        *,
        dedup_key: str | None = None,
        key: str | None = None,
        if_match: int | None = None,
    ) -> Steps[models.SignalResult]:
        """Send a signal to a run. It completes a step, or a `ctx.wait_signal`, of that name, now or later. With a
        `dedup_key` the same signal counts once, even if several senders report it.

        >>> client.signal(waiting_run(), "paid", {"amount": 30}, dedup_key="payment-17").duplicate
        False
        """
        body = {"name": name, **given(payload=payload, dedup_key=dedup_key)}
        path = f"/api/v1/runs/{segment(run_id)}/signals"
        return change(self._settings, "POST", path, models.SignalResult, body, key=key, if_match=if_match)

    @operation
    def cancel(
        self, run_id: str, *, reason: str | None = None, key: str | None = None, if_match: int | None = None
    ) -> Steps[models.Run]:
        """Cancel a run and its open jobs. Cancelling a cancelled run changes nothing.

        >>> client.cancel(waiting_run(), reason="no longer needed").status
        'cancelled'
        """
        path = f"/api/v1/runs/{segment(run_id)}/cancel"
        return change(self._settings, "POST", path, models.Run, given(reason=reason), key=key, if_match=if_match)

    @operation
    def approve(
        self,
        job_id: str,
        *,
        reason: str | None = None,
        expected_hash: str | None = None,
        edited: Any = None,
        key: str | None = None,
    ) -> Steps[models.Decision]:
        """Approve. Safe to repeat: the first decision is returned again. The opposite of an earlier decision raises
        `ApprovalConflict`. With `expected_hash` (the `content_hash` that was shown) nothing else can be approved.

        >>> client.approve(pending_approval(), reason="fine").status
        'approved'
        """
        return _decide(self._settings, job_id, "approve", reason, expected_hash, edited, key)

    @operation
    def reject(
        self, job_id: str, *, reason: str | None = None, expected_hash: str | None = None, key: str | None = None
    ) -> Steps[models.Decision]:
        """Reject. Safe to repeat, like `approve`.

        >>> client.reject(pending_approval(), reason="too much").status
        'rejected'
        """
        return _decide(self._settings, job_id, "reject", reason, expected_hash, None, key)

    @operation
    def apply(
        self, definition: Workflow | Mapping[str, Any], *, workflow_id: str | None = None, key: str | None = None
    ) -> Steps[models.PutWorkflowResult]:
        """Store a workflow: a `Workflow`, or its JSON as a dict. An equal definition makes no new version.

        >>> client.apply({"id": "nap", "steps": [{"name": "nap", "type": "sleep", "duration_ms": 1}]}).version
        1
        """
        wire = definition.to_dict() if isinstance(definition, Workflow) else dict(definition)
        name = workflow_id or wire.get("id")
        if not name:
            raise ValueError("The definition has no id: give workflow_id")
        path = f"/api/v1/workflows/{segment(name)}"
        return change(self._settings, "PUT", path, models.PutWorkflowResult, wire, key=key)


class Client(_Api[Sync]):
    """A client that blocks. Safe to share between threads.

    `url`, `api_key`, `tenant` and `actor` default to PAWL_URL, PAWL_API_KEY, PAWL_TENANT and PAWL_ACTOR, the URL to
    http://127.0.0.1:7295. PAWL_CA_FILE names certificates to trust; `tls` is an SSL context of your own. `retry` says
    how calls are retried, `budget` how many retries all calls may spend.

    >>> import pawl
    >>> with pawl.Client(url) as client:
    ...     client.run("greet", {"name": "Ada"})
    {'text': 'Hello, Ada!'}
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        tenant: str | None = None,
        actor: str | None = None,
        retry: Retry | None = None,
        budget: Budget | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        settings = _settings(url, api_key, tenant, actor, retry, budget)
        self._transport = Transport(settings.url, tls)
        shell: Shell = SyncShell(self._transport)
        super().__init__(settings, shell)
        #: Reading and controlling runs.
        self.runs: Runs[Sync] = Runs(settings, shell)
        #: Definitions and their versions.
        self.workflows: Workflows[Sync] = Workflows(settings, shell)
        #: Reading approvals; `approve` and `reject` are on the client itself.
        self.approvals: Approvals[Sync] = Approvals(settings, shell)
        #: Entities and their types.
        self.entities: Entities[Sync] = Entities(settings, shell)
        #: Jobs, queues, workers, dead letters.
        self.jobs: Jobs[Sync] = Jobs(settings, shell)
        #: Starting runs at set times.
        self.schedules: Schedules[Sync] = Schedules(settings, shell)
        #: Events sent to URLs.
        self.webhooks: Webhooks[Sync] = Webhooks(settings, shell)
        #: Limits and settings of tenants.
        self.tenants: Tenants[Sync] = Tenants(settings, shell)
        #: API keys and idempotency records.
        self.keys: Keys[Sync] = Keys(settings, shell)
        #: The audit trail.
        self.audit: Audit[Sync] = Audit(settings, shell)
        #: Health, checks, the outbox.
        self.server: Server[Sync] = Server(settings, shell)

    def close(self) -> None:
        """Close the idle connections.

        >>> pawl.Client(url).close()
        """
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(_Api[Async]):
    """The same for asyncio: every method is a coroutine function, `watch` and lists are asynchronous iterators.

    >>> import asyncio, pawl
    >>> async def main():
    ...     async with pawl.AsyncClient(url) as client:
    ...         return await client.run("greet", {"name": "Ada"})
    >>> asyncio.run(main())
    {'text': 'Hello, Ada!'}
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        tenant: str | None = None,
        actor: str | None = None,
        retry: Retry | None = None,
        budget: Budget | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        settings = _settings(url, api_key, tenant, actor, retry, budget)
        self._transport = AsyncTransport(settings.url, tls)
        shell: Shell = AsyncShell(self._transport)
        super().__init__(settings, shell)
        self.runs: Runs[Async] = Runs(settings, shell)
        self.workflows: Workflows[Async] = Workflows(settings, shell)
        self.approvals: Approvals[Async] = Approvals(settings, shell)
        self.entities: Entities[Async] = Entities(settings, shell)
        self.jobs: Jobs[Async] = Jobs(settings, shell)
        self.schedules: Schedules[Async] = Schedules(settings, shell)
        self.webhooks: Webhooks[Async] = Webhooks(settings, shell)
        self.tenants: Tenants[Async] = Tenants(settings, shell)
        self.keys: Keys[Async] = Keys(settings, shell)
        self.audit: Audit[Async] = Audit(settings, shell)
        self.server: Server[Async] = Server(settings, shell)

    async def close(self) -> None:
        """Close the idle connections.

        >>> asyncio.run(pawl.AsyncClient(url).close())
        """
        self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _settings(
    url: str | None,
    api_key: str | None,
    tenant: str | None,
    actor: str | None,
    retry: Retry | None,
    budget: Budget | None,
) -> Settings:
    return Settings(
        url=(url or os.environ.get("PAWL_URL") or "http://127.0.0.1:7295").rstrip("/"),
        api_key=api_key or os.environ.get("PAWL_API_KEY"),
        tenant=tenant or os.environ.get("PAWL_TENANT"),
        actor=actor or os.environ.get("PAWL_ACTOR"),
        retry=retry or Retry(),
        budget=budget or Budget(),
    )


def _output(run: models.Run) -> Any:
    if run.status != "succeeded":
        raise RunFailed(run)
    return run.output


def _decide(
    settings: Settings,
    job_id: str,
    verb: str,
    reason: str | None,
    expected_hash: str | None,
    edited: Any,
    key: str | None,
) -> Steps[models.Decision]:
    body = given(reason=reason, expected_hash=expected_hash, edited=edited)
    path = f"/api/v1/approvals/{segment(job_id)}/{verb}"
    return change(settings, "POST", path, models.Decision, body, key=key)


def _is_over(settings: Settings, run_id: str) -> Steps[bool]:
    """Whether a run whose stream has ended is over; the server may just be stopping."""
    try:
        run = yield from get(settings, f"/api/v1/runs/{segment(run_id)}", models.Run)
    except NoAnswer:
        return False
    return run.status in OVER


def _never_over() -> Steps[bool]:
    return False
    yield


def _run_event(event: SseEvent) -> models.Event:
    return cast(models.Event, decode(models.Event, event_data(event)))


def _feed_event(event: SseEvent) -> FeedEvent:
    if event.event == "reset":
        return FeedEvent(cursor=event.id or "", type="reset")
    return cast(FeedEvent, decode(FeedEvent, {**event_data(event), "cursor": event.id}))
