"""What a worker holds and what it has to send next: pure decisions, without I/O, threads or a clock of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ._wire import encode

MAX_ITEMS = 100
MAX_REPORT_BYTES = 768 * 1024  # the server takes bodies of up to 1 MiB
MAX_BEAT_RETRY_S = 1.0


@dataclass
class Held:
    """A job under lease."""

    job: dict[str, Any]
    beat_at: float
    running: bool = True
    cancelled: bool = False
    progress: Any = None
    context: Any = field(default=None, repr=False)

    @property
    def token(self) -> str:
        return str(self.job["lease_token"])


class WorkerState:
    """Jobs, results and what is on its way. `version` changes whenever something happens that others may wait for."""

    def __init__(self, worker_id: str, queues: list[str], concurrency: int, lease_ms: int, wait_ms: int) -> None:
        self.worker_id, self.queues, self.concurrency = worker_id, queues, concurrency
        self.lease_ms, self.wait_ms = lease_ms, wait_ms
        #: By lease: a job that was suspended may be back before its old handler has ended.
        self.held: dict[str, Held] = {}
        self.results: list[dict[str, Any]] = []
        self.reporting: list[dict[str, Any]] = []
        self.alone: set[str] = set()  # leases whose results go one by one, because a report with them was refused
        self.polling = False
        self.stopping = False
        self.version = 0
        self.changed = threading.Condition(threading.RLock())
        self.on_change: Callable[[], None] | None = None  # for waiters that cannot use the condition

    # --- what everyone may ask ---

    @property
    def free(self) -> int:
        """Slots without a running handler."""
        return self.concurrency - sum(held.running for held in self.held.values())

    @property
    def done(self) -> bool:
        """Nothing is left to do for a worker that stops."""
        return self.stopping and not self.held and not self.results and not self.reporting and not self.polling

    def touch(self) -> None:
        with self.changed:
            self.version += 1
            self.changed.notify_all()
        if self.on_change:
            self.on_change()

    def stop(self) -> None:
        with self.changed:
            self.stopping = True
            self.touch()

    def abandon(self) -> None:
        """Forget what is left: its leases expire."""
        with self.changed:
            self.held.clear()
            self.results.clear()
            self.reporting.clear()
            self.polling = False
            self.touch()

    # --- claims ---

    def begin_poll(self) -> dict[str, Any] | None:
        """The claim to send now. While results are waiting, the report carries it."""
        with self.changed:
            if self.stopping or self.polling or self.free <= 0 or self.results or self.reporting:
                return None
            self.polling = True
            return {**self._claim(), "wait_ms": self.wait_ms}

    def end_poll(self) -> None:
        with self.changed:
            self.polling = False
            self.touch()

    def take(self, jobs: list[dict[str, Any]], now: float) -> list[Held]:
        """Jobs that arrived: held from now on."""
        with self.changed:
            taken = [Held(job, now + self.lease_ms / 3000) for job in jobs]
            self.held.update({held.token: held for held in taken})
            self.touch()
            return taken

    def _claim(self) -> dict[str, Any]:
        return {
            "worker_id": self.worker_id,
            "queues": self.queues,
            "max": min(MAX_ITEMS, self.free),
            "lease_ms": self.lease_ms,
        }

    # --- results ---

    def finish(self, held: Held, result: dict[str, Any] | None) -> None:
        """A handler has ended. Without a result, or if the job is gone, nothing is reported."""
        with self.changed:
            held.running = False
            if result is None or held.cancelled:
                self.held.pop(held.token, None)
            else:
                self.results.append({"job_id": held.job["job_id"], "lease_token": held.token, **result})
            self.touch()

    def begin_report(self) -> dict[str, Any] | None:
        """All results that are waiting, as far as they fit into one call, and a claim for the free slots."""
        with self.changed:
            if self.reporting or not self.results:
                return None
            size, count = 0, 0
            for item in self.results[:MAX_ITEMS]:
                size += len(encode(item))
                if count and (size > MAX_REPORT_BYTES or item["lease_token"] in self.alone):
                    break
                count += 1
                if item["lease_token"] in self.alone:
                    break
            self.reporting, self.results = self.results[:count], self.results[count:]
            body: dict[str, Any] = {"items": self.reporting}
            if not self.stopping and not self.polling and self.free > 0:
                body["claim"] = self._claim()
            return body

    def reported(self, results: list[dict[str, Any]]) -> None:
        """The server's answers, in the order of the items."""
        with self.changed:
            items, self.reporting = self.reporting, []
            self.alone.difference_update(item["lease_token"] for item in items)
            for item, result in zip(items, results, strict=False):
                if result["status"] == "refused" and result["code"] not in ("LEASE_LOST", "JOB_NOT_FOUND"):
                    self._refused(item, result["code"], result.get("detail", ""))
                else:
                    self.held.pop(item["lease_token"], None)
            self.touch()

    def report_refused(self, code: str, detail: str) -> None:
        """The whole report was refused: one of its items is to blame. Send them one by one; fail it if it is alone."""
        with self.changed:
            items, self.reporting = self.reporting, []
            if len(items) == 1:
                self._refused(items[0], code, detail)
            else:
                self.alone.update(item["lease_token"] for item in items)
                self.results = items + self.results
            self.touch()

    def _refused(self, item: dict[str, Any], code: str, detail: str) -> None:
        """A result that the server does not take becomes a failure; a failure that it does not take is dropped."""
        if "error" in item:
            self.held.pop(item["lease_token"], None)
            return
        error = {"code": code, "message": detail, "retryable": False}
        self.results.insert(0, {"job_id": item["job_id"], "lease_token": item["lease_token"], "error": error})

    # --- heartbeats ---

    def due(self, now: float) -> list[Held]:
        """Jobs whose heartbeat is due: those that run, and those whose result waits."""
        with self.changed:
            return [held for held in self._beating() if held.beat_at <= now]

    def next_beat(self) -> float | None:
        with self.changed:
            return min((held.beat_at for held in self._beating()), default=None)

    def _beating(self) -> list[Held]:
        """Jobs that need heartbeats: not one that is gone or being reported."""
        sending = {item["lease_token"] for item in self.reporting}
        return [held for token, held in self.held.items() if token not in sending and not held.cancelled]

    def beaten(self, held: Held, now: float) -> None:
        with self.changed:
            held.beat_at = now + self.lease_ms / 3000

    def not_beaten(self, held: Held, now: float) -> None:
        """No answer: try again soon."""
        with self.changed:
            held.beat_at = now + min(MAX_BEAT_RETRY_S, self.lease_ms / 10_000)

    def lose(self, held: Held) -> None:
        """The job is gone: its result will not be reported."""
        with self.changed:
            held.cancelled = True
            self.results = [item for item in self.results if item["lease_token"] != held.token]
            if not held.running:
                self.held.pop(held.token, None)
            self.touch()
