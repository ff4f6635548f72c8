"""Workers against a real server, with threads and with asyncio."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import pawl
from script import FLAVOURS
from server import Server, wait_until

flavours = pytest.mark.parametrize("flavour", FLAVOURS)


@dataclasses.dataclass
class Order:
    amount: int
    to: str | None = None


@dataclasses.dataclass
class Receipt:
    total: int


class Bench:
    """One tenant with a workflow of one task, and a worker of either flavour in the background."""

    def __init__(self, flavour: str, server: Server, tenant: str) -> None:
        self.flavour, self.url, self.tenant = flavour, server.url, tenant
        self.client = pawl.Client(server.url, tenant=tenant)
        self.loop: asyncio.AbstractEventLoop | None = None

    def define(self, **options: Any) -> None:
        workflow = pawl.Workflow("work", queue="q")
        workflow.task("do", "do", **options)
        self.client.apply(workflow)

    def worker(self, handler: Callable[..., Any] | None, **options: Any) -> Any:
        """A worker whose handler "do" is this function; in asyncio it runs in a thread, unless it is a coroutine."""
        if self.flavour == "sync":
            worker: Any = pawl.Worker(pawl.Client(self.url, tenant=self.tenant), queues="q", **options)
            return worker if handler is None else (worker.task("do")(handler), worker)[1]
        worker = pawl.AsyncWorker(pawl.AsyncClient(self.url, tenant=self.tenant), queues="q", **options)
        if handler is not None:
            worker.task("do")(handler if asyncio.iscoroutinefunction(handler) else in_thread(handler))
        return worker

    def running(self, worker: Any) -> Running:
        return Running(worker)


class Running:
    """`with Running(worker)`: serves in the background in either flavour."""

    def __init__(self, worker: Any) -> None:
        self.worker = worker
        self.stop = threading.Event()

    def __enter__(self) -> Running:
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        return self

    def _run(self) -> None:
        if isinstance(self.worker, pawl.Worker):
            with self.worker:
                self.stop.wait()
        else:
            asyncio.run(self._serve())

    async def _serve(self) -> None:
        async with self.worker:
            await asyncio.to_thread(self.stop.wait)

    def __exit__(self, *error: object) -> None:
        self.stop.set()
        self.thread.join()


def in_thread(handler: Callable[..., Any]) -> Callable[..., Any]:
    async def run(input: Any, ctx: Any) -> Any:
        return await asyncio.to_thread(handler, input, ctx)

    return run


@pytest.fixture
def bench(request: pytest.FixtureRequest, server: Server, tenant: str) -> Bench:
    return Bench(request.param, server, tenant)


both = pytest.mark.parametrize("bench", FLAVOURS, indirect=True)


@both
def test_a_worker_serves_once(bench: Bench) -> None:
    worker = bench.worker(lambda input, ctx: input)
    with bench.running(worker):
        pass
    with pytest.raises(RuntimeError, match="started before"):
        asyncio.run(worker.start()) if bench.flavour == "asyncio" else worker.start()


def test_an_asyncio_worker_runs_in_any_thread(server: Server, tenant: str) -> None:
    """Only the main thread can have signal handlers."""
    bench = Bench("asyncio", server, tenant)
    bench.define()
    worker = bench.worker(None)

    @worker.task("do")  # type: ignore[untyped-decorator]
    async def do(input: Any) -> Any:
        worker.stop()
        return input

    started = bench.client.start("work", 7)
    thread = threading.Thread(target=lambda: asyncio.run(worker.run()), daemon=True)
    thread.start()
    assert bench.client.wait(started.run_id, timeout=30).output == 7
    thread.join(30)
    assert not thread.is_alive()


@both
def test_a_job_has_its_key_and_its_run(bench: Bench) -> None:
    seen: list[Any] = []
    bench.define(input={"n": "${input.n}"})

    def handler(input: Any, ctx: Any) -> Any:
        seen.append((ctx.job_id, ctx.key, ctx.run_id, ctx.workflow_id, ctx.step_name, ctx.attempt, ctx.tenant))
        return input

    with bench.running(bench.worker(handler)):
        started = bench.client.start("work", {"n": 1, "m": 2})
        run = bench.client.wait(started.run_id)
    job_id = run.steps[0].job_id
    assert run.output == {"n": 1}
    assert seen == [(job_id, job_id, run.id, "work", "do", 1, bench.tenant)]


def test_dataclasses_go_in_and_out(server: Server, tenant: str) -> None:
    bench = Bench("sync", server, tenant)
    bench.define()

    def handler(input: Order) -> Receipt:
        return Receipt(total=input.amount * 2)

    with bench.running(bench.worker(handler)):
        assert bench.client.run("work", {"amount": 4}) == {"total": 8}
        with pytest.raises(pawl.errors.RunFailed) as failed:
            bench.client.run("work", [1])
    assert failed.value.run.error["cause"]["code"] == "INPUT_INVALID"


@both
def test_an_exception_fails_the_attempt_and_the_server_tries_again(bench: Bench) -> None:
    bench.define(retry={"max_attempts": 3, "backoff_ms": 10})

    def handler(input: Any, ctx: Any) -> Any:
        if ctx.attempt < 3:
            raise ConnectionError("no answer")
        return ctx.attempt

    with bench.running(bench.worker(handler)):
        started = bench.client.start("work")
        run = bench.client.wait(started.run_id)
    assert run.output == 3
    job = bench.client.jobs.get(run.steps[0].job_id or "")
    assert [(a.outcome, (a.error or {}).get("code")) for a in job.attempts] == [
        ("failed", "ConnectionError"),
        ("failed", "ConnectionError"),
        ("succeeded", None),
    ]


@both
@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (pawl.JobError("DECLINED", "no funds", retryable=False, details={"card": 1}), "DECLINED"),
        (None, "OUTPUT_NOT_JSON"),
        (SystemExit(1), "SystemExit"),
        ("x" * 600_000, "BODY_TOO_LARGE"),
    ],
    ids=["refused", "not JSON", "exit", "too large"],
)
def test_a_failure_that_cannot_pass_is_final(bench: Bench, failure: Any, code: str) -> None:
    bench.define(retry=1 if isinstance(failure, SystemExit) else 5)

    def handler(input: Any, ctx: Any) -> Any:
        if isinstance(failure, BaseException):
            raise failure
        return failure or object()

    with bench.running(bench.worker(handler)), pytest.raises(pawl.errors.RunFailed) as failed:
        bench.client.run("work")
    cause = failed.value.run.error["cause"]
    assert (cause["code"], failed.value.run.steps[0].attempt) == (code, 1)


@both
def test_a_handler_that_is_missing_is_said(bench: Bench) -> None:
    bench.define()
    with bench.running(bench.worker(None)), pytest.raises(pawl.errors.RunFailed) as failed:
        bench.client.run("work")
    assert failed.value.run.error["cause"]["code"] == "NO_HANDLER"


@both
def test_heartbeats_keep_a_job_longer_than_its_lease(bench: Bench) -> None:
    bench.define()
    release = threading.Event()

    def handler(input: Any, ctx: Any) -> Any:
        ctx.progress({"percent": 50})
        release.wait(30)
        return ctx.attempt

    with bench.running(bench.worker(handler, lease=0.6)):
        started = bench.client.start("work")
        job_id = started.run.steps[0].job_id or ""
        first = wait_until(lambda: bench.client.jobs.get(job_id).due_at, "the job is claimed")
        wait_until(lambda: (bench.client.jobs.get(job_id).due_at - first).total_seconds() > 1.5, "five heartbeats")
        release.set()
        assert bench.client.wait(started.run_id).output == 1


def test_progress_that_is_not_json_is_an_error_of_the_handler(server: Server, tenant: str) -> None:
    bench = Bench("sync", server, tenant)
    bench.define()

    def handler(input: Any, ctx: Any) -> Any:
        with pytest.raises(TypeError, match="cannot be written as JSON"):
            ctx.progress(object())
        return "done"

    with bench.running(bench.worker(handler)):
        assert bench.client.run("work") == "done"


@both
def test_a_cancelled_run_stops_its_handler(bench: Bench) -> None:
    bench.define()
    told = threading.Event()

    def blocking(input: Any, ctx: Any) -> Any:
        while not ctx.cancelled:
            time.sleep(0.01)
        told.set()
        ctx.check()

    async def coroutine(input: Any, ctx: Any) -> Any:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            told.set()
            raise

    with bench.running(bench.worker(blocking if bench.flavour == "sync" else coroutine, lease=0.6)):
        started = bench.client.start("work")
        job_id = started.run.steps[0].job_id or ""
        wait_until(lambda: bench.client.jobs.get(job_id).state == "running", "the job is claimed")
        bench.client.cancel(started.run_id)
        assert told.wait(30)
    assert bench.client.runs.get(started.run_id).status == "cancelled"
    assert "job.stale_result" not in [event.type for event in bench.client.runs.timeline(started.run_id)]


@both
def test_a_worker_that_stops_finishes_what_it_has_begun(bench: Bench) -> None:
    bench.define()
    begun, release = threading.Event(), threading.Event()

    def handler(input: Any, ctx: Any) -> Any:
        begun.set()
        release.wait(30)
        return "done"

    running = bench.running(bench.worker(handler))
    with running:
        started = bench.client.start("work")
        assert begun.wait(30)
        running.stop.set()
        wait_until(lambda: running.worker._state.stopping, "the worker stops")
        later = bench.client.start("work")
        release.set()
    assert bench.client.wait(started.run_id).output == "done"
    assert bench.client.runs.get(later.run_id).steps[0].attempt == 0, "it claims no more"


def test_a_coroutine_that_does_not_end_is_cancelled_and_its_job_released(server: Server, tenant: str) -> None:
    bench = Bench("asyncio", server, tenant)
    bench.define()
    begun = threading.Event()

    async def handler(input: Any, ctx: Any) -> Any:
        begun.set()
        await asyncio.sleep(600)

    with bench.running(bench.worker(handler, grace=0.1)):
        started = bench.client.start("work")
        assert begun.wait(30)
    types = [event.type for event in bench.client.runs.timeline(started.run_id)]
    assert types[-1] == "job.released"


def test_a_thread_that_does_not_end_is_left_to_its_lease(server: Server, tenant: str) -> None:
    bench = Bench("sync", server, tenant)
    bench.define()
    begun, release = threading.Event(), threading.Event()

    def stuck(input: Any, ctx: Any) -> Any:
        begun.set()
        release.wait(60)
        return "late"

    with bench.running(bench.worker(stuck, grace=0.1, lease=0.5)):
        started = bench.client.start("work")
        assert begun.wait(30)
    with bench.running(bench.worker(lambda input, ctx: f"attempt {ctx.attempt}")):
        assert bench.client.wait(started.run_id).output == "attempt 2"
    release.set()


@both
def test_many_small_jobs_travel_together(bench: Bench) -> None:
    bench.define()
    ids = [bench.client.start("work", n).run_id for n in range(300)]
    worker = bench.worker(lambda input, ctx: input, concurrency=50)
    calls = count_calls(worker)
    with bench.running(worker):
        assert [bench.client.wait(run_id).output for run_id in ids] == list(range(300))
    assert calls["n"] < 200, "fewer calls than jobs"


def count_calls(worker: Any) -> dict[str, int]:
    calls = {"n": 0}
    transport = worker.client._transport
    exchange = transport.exchange

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls["n"] += 1
        return exchange(*args, **kwargs)

    transport.exchange = counted
    return calls


def test_an_actor_may_have_any_name(server: Server, tenant: str) -> None:
    with pawl.Client(server.url, tenant=tenant, actor="Zoë 日本") as client:
        client.apply({"id": "nap", "steps": [{"name": "nap", "type": "sleep", "duration_ms": 1}]})
        assert client.start("nap").run.created_by == "Zoë 日本"


def test_the_wrong_kind_of_function_is_refused() -> None:
    async def coroutine(input: Any) -> None: ...

    with pytest.raises(TypeError, match=r"use pawl\.AsyncWorker"):
        pawl.Worker().task("x")(coroutine)
    with pytest.raises(TypeError, match=r"use pawl\.Worker"):
        pawl.AsyncWorker().task("x")(lambda input: None)


@both
def test_an_entity_applies_each_signal_once(bench: Bench) -> None:
    worker = bench.worker(None, concurrency=4)
    account: pawl.Entity = worker.entity("account", initial={"points": 0})

    @account.on("add")
    def add(account: pawl.EntityContext, payload: Any) -> Any:
        account.state["points"] += payload["points"]
        return account.state["points"]

    @account.on("spend")
    def spend(account: pawl.EntityContext, payload: Any) -> Any:
        account.state["points"] -= payload["points"]
        if account.state["points"] < 0:
            raise pawl.Reject("TOO_FEW", "not enough")
        return account.state["points"]

    entities = bench.client.entities
    with bench.running(worker):
        wait_until(lambda: [t.type for t in entities.list_types()] == ["account"], "the type is stored")
        for n in range(20):
            for _ in range(2):
                entities.signal("account", "ada", "add", {"points": n}, dedup_key=f"order-{n}")
        assert entities.update("account", "ada", "spend", {"points": 100}, dedup_key="s1").result == 90
        rejected = entities.update("account", "ada", "spend", {"points": 91}, dedup_key="s2")
        assert rejected.error and rejected.error.code == "TOO_FEW"
    assert entities.get("account", "ada").state == {"points": 90}
