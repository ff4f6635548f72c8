"""What the examples in docstrings may use: a client of a tenant of its own, and things to try the methods on."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pawl
from pawl._durable import Durable
from pawl._wire import to_wire
from pawl._worker_state import Held
from server import wait_until

STORED = {
    "a moment": None,
    "signal:paid": {"payload": {"amount": 30}, "sent_at": None},
    "ok": {"by": "ann", "reason": None, "content": {"amount": 30}},
}


@contextlib.contextmanager
def namespace(url: str) -> Iterator[dict[str, Any]]:
    with pawl.Client(url, tenant="doc-" + uuid.uuid4().hex[:12]) as client:
        things = Things(client)
        things.prepare()
        methods = [name for name, _ in inspect.getmembers(things, inspect.ismethod) if not name.startswith("_")]
        names = {name: getattr(things, name) for name in methods}
        yield {**vars(pawl), **vars(pawl.errors), **vars(pawl.client), **vars(pawl.retry), **vars(pawl.entity)} | {
            **vars(pawl.webhooks),
            **vars(pawl.context),
            **vars(pawl.worker),
            **names,
            "pawl": pawl,
            "asyncio": asyncio,
            "timedelta": timedelta,
            "client": client,
            "url": url,
            "new_ctx": lambda: LazyContext(things.context),
            "new_async_ctx": lambda: LazyContext(things.async_context),
        }


class LazyContext:
    """The context of a real job, made when an example first uses it."""

    def __init__(self, make: Callable[[], pawl.JobContext]) -> None:
        self._make = make
        self._made: pawl.JobContext | None = None

    def __getattr__(self, name: str) -> Any:
        self._made = self._made or self._make()
        return getattr(self._made, name)


class Things:
    """Each call makes a new one, except for what has a name."""

    def __init__(self, client: pawl.Client) -> None:
        self.client = client

    def prepare(self) -> None:
        greet = pawl.Workflow("greet")
        greet.transform("text", {"text": f"Hello, {greet.input.name}!"})
        wait = pawl.Workflow("wait")
        wait.wait_signal("paid", "paid")
        ask = pawl.Workflow("ask")
        ask.approval("ok", "Go on?")
        demo = pawl.Workflow("demo", queue="demo")
        demo.task("do", "demo")
        shout = pawl.Workflow("shout", queue="docs")
        shout.task("shout", "shout")
        for workflow in (greet, wait, ask, demo, shout):
            self.client.apply(workflow)
        self.client.entities.put_type("account", queue="accounts", handler="account")
        with pawl.Client(self.client._settings.url) as default:
            for workflow in (greet, shout):
                default.apply(workflow)

    def waiting_run(self) -> str:
        return self.client.start("wait").run_id

    def pending_approval(self) -> str:
        job_id = self.client.start("ask").run.steps[0].job_id
        assert job_id
        return job_id

    def queued_job(self) -> str:
        job_id = self.client.start("demo", {"n": 1}).run.steps[0].job_id
        assert job_id
        return job_id

    def claimed_job(self) -> pawl.models.ClaimedJob:
        return self.client.jobs.claim_one(self.queued_job(), "docs", lease_ms=30_000)

    def dead_letter(self) -> str:
        job = self.claimed_job()
        self.client.jobs.fail(job.job_id, job.lease_token, {"code": "NO"})
        return job.job_id

    def failed_run(self) -> str:
        run_id = self.client.jobs.get(self.dead_letter()).run_id
        assert run_id
        wait_until(lambda: self.client.runs.get(run_id).status == "failed", "the run fails")
        return run_id

    def schedule(self) -> str:
        return self.client.schedules.put("daily", workflow_id="greet", cron="@daily", input={"name": "Ada"}).id

    def webhook(self) -> str:
        return self.client.webhooks.create("https://hooks.example/pawl", ["run.*"]).id

    def context(self) -> pawl.Context:
        held = self._held()
        return pawl.Context(held, Durable(self.client._settings, held, 30_000), self.client._shell.run)

    def async_context(self) -> pawl.AsyncContext:
        held, client = self._held(), pawl.AsyncClient(self.client._settings.url, tenant=self.client._settings.tenant)
        return pawl.AsyncContext(held, Durable(client._settings, held, 30_000), client._shell.run)

    def _held(self) -> Held:
        job: dict[str, Any] = to_wire(self.claimed_job())
        job["lease_expires_at"] = to_wire(job["lease_expires_at"])
        return Held({**job, "checkpoints": STORED}, 0.0)
