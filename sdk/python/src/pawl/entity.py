"""Entity handlers: one function for each signal, update and timer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict, TypeVar

from ._core import Invoke, Steps
from ._durable import in_seconds
from ._wire import given, time_text
from .errors import JobError, Reject

F = TypeVar("F", bound=Callable[..., Any])


class EntityOptions(TypedDict, total=False):
    """The rules of an entity type; docs/entities.md has their defaults.

    >>> EntityOptions(dedup_window_s=604800, max_batch=10)["max_batch"]
    10
    """

    version: int
    dedup_window_s: int
    dedup_max_keys: int
    rollover_events: int
    keep_generations: int | Literal["all"]
    max_inbox: int
    max_batch: int
    retry: Mapping[str, Any]


class EntityContext:
    """The entity while its handlers run. Change `state`; it is stored when all handlers of the call have returned.

    >>> account = EntityContext({"entity": {"type": "account", "id": "ada"}, "state": None}, "job-1", {"points": 0})
    >>> account.state["points"] += 10
    >>> account.id, account.state
    ('ada', {'points': 10})
    """

    def __init__(self, call: dict[str, Any], job_id: str, initial: Any) -> None:
        self.type = str(call["entity"]["type"])
        self.id = str(call["entity"]["id"])
        #: Any JSON value; the type's `initial` at first.
        self.state: Any = copy.deepcopy(initial if call.get("state") is None else call["state"])
        #: The number of the signal that is being handled, or None for a timer.
        self.seq: int | None = None
        self._job_id = job_id
        self._set: dict[str, dict[str, Any]] = {}
        self._cancelled: list[str] = []
        self._emitted: list[dict[str, Any]] = []
        self._started: list[dict[str, Any]] = []
        self._results: list[dict[str, Any]] = []
        self._finished = False

    @property
    def key(self) -> str:
        """The idempotency key of this signal's side effects: the same in every attempt.

        >>> EntityContext({"entity": {"type": "account", "id": "ada"}}, "job-1", None).key
        'job-1'
        """
        return self._job_id if self.seq is None else f"{self.type}/{self.id}:{self.seq}"

    def set_timer(
        self, name: str, after: float | timedelta | None = None, *, at: datetime | None = None, payload: Any = None
    ) -> None:
        """Set or replace a timer: `after` seconds from now, or `at` a time.

        >>> account = EntityContext({"entity": {"type": "account", "id": "ada"}}, "job-1", None)
        >>> account.set_timer("idle", timedelta(days=365))
        """
        if after is not None and at is None:
            due: dict[str, Any] = {"in_ms": round(in_seconds(after) * 1000)}
        elif at is not None and after is None:
            due = {"at": time_text(at)}
        else:
            raise ValueError("A timer needs either after or at")
        self._cancelled = [other for other in self._cancelled if other != name]
        self._set[name] = {"name": name, **due, **given(payload=payload)}

    def cancel_timer(self, name: str) -> None:
        """Cancel a timer, if there is one.

        >>> EntityContext({"entity": {"type": "account", "id": "ada"}}, "job-1", None).cancel_timer("idle")
        """
        self._set.pop(name, None)
        if name not in self._cancelled:
            self._cancelled.append(name)

    def emit(self, event: str, payload: Any = None) -> None:
        """Publish an event on streams, webhooks and the bus.

        >>> account = EntityContext({"entity": {"type": "account", "id": "ada"}}, "job-1", None)
        >>> account.emit("account.gold", {"id": account.id})
        """
        self._emitted.append({"event": event, **given(payload=payload)})

    def start(
        self, workflow_id: str, input: Any = None, *, key: str | None = None, labels: dict[str, str] | None = None
    ) -> None:
        """Start a run soon after this call, exactly once.

        >>> account = EntityContext({"entity": {"type": "account", "id": "ada"}}, "job-1", None)
        >>> account.start("send-card", {"to": account.id})
        """
        wish = given(input=input, labels=labels, idempotency_key=key)
        self._started.append({"workflow_id": workflow_id, **wish})

    def finish(self) -> None:
        """Expect no more signals; the next one begins with a new state.

        >>> EntityContext({"entity": {"type": "account", "id": "ada"}}, "job-1", None).finish()
        """
        self._finished = True

    def _answer(self) -> dict[str, Any]:
        lists = {
            "set_timers": list(self._set.values()),
            "cancel_timers": self._cancelled,
            "emit": self._emitted,
            "start": self._started,
            "results": self._results,
        }
        answer = {"state": self.state, **{name: values for name, values in lists.items() if values}}
        return {**answer, "finished": True} if self._finished else answer

    def _save(self) -> dict[str, Any]:
        return copy.deepcopy({name: value for name, value in vars(self).items() if name != "_results"})

    def _restore(self, saved: dict[str, Any]) -> None:
        vars(self).update(saved)


class Entity:
    """The handlers of an entity type; `worker.entity` makes one.

    >>> account = Entity("account", initial={"points": 0})
    >>> @account.on("add")
    ... def add(account, payload):
    ...     account.state["points"] += payload["points"]
    """

    def __init__(self, type: str, *, initial: Any = None, options: EntityOptions | None = None) -> None:
        self.type, self.initial, self.options = type, initial, options or {}
        self._signals: dict[str, Callable[..., Any]] = {}
        self._timers: dict[str, Callable[..., Any]] = {}
        self._migration: Callable[..., Any] | None = None

    def on(self, name: str) -> Callable[[F], F]:
        """The handler of a signal or an update: `(entity, payload)`. What it returns is the update's result. It may
        raise `Reject` to refuse an update; what it changed is then undone.

        >>> account = Entity("account")
        >>> @account.on("spend")
        ... def spend(account, payload):
        ...     return {"left": 0}
        """
        return self._register(self._signals, name)

    def timer(self, name: str) -> Callable[[F], F]:
        """The handler of a timer: `(entity, payload)`.

        >>> account = Entity("account")
        >>> @account.timer("idle")
        ... def idle(account, payload):
        ...     account.state["points"] = 0
        """
        return self._register(self._timers, name)

    def migrate(self, function: F) -> F:
        """The handler that brings the state to this version: `(entity, from_version)`.

        >>> account = Entity("account")
        >>> @account.migrate
        ... def migrate(account, from_version):
        ...     account.state["since"] = 2026
        """
        self._migration = function
        return function

    def _register(self, handlers: dict[str, Callable[..., Any]], name: str) -> Callable[[F], F]:
        def decorate(function: F) -> F:
            handlers[name] = function
            return function

        return decorate

    def _handle(self, call: dict[str, Any], job_id: str) -> Steps[dict[str, Any]]:
        """What the entity makes of a call: the steps of the handlers, and the answer."""
        entity = EntityContext(call, job_id, self.initial)
        if call.get("kind") == "migrate":
            if self._migration is None:
                raise _no_handler("a migration", self.type)
            yield Invoke(self._migration, (entity, call.get("from_version")))
        for timer in call.get("timers") or []:
            entity.seq = None
            yield from self._one(entity, self._timers, timer, "timer")
        for signal in call.get("signals") or []:
            entity.seq = signal["seq"]
            yield from self._one(entity, self._signals, signal, "signal")
        return entity._answer()

    def _one(
        self, entity: EntityContext, handlers: dict[str, Callable[..., Any]], event: dict[str, Any], what: str
    ) -> Steps[None]:
        handler = handlers.get(event["name"])
        if handler is None:
            raise _no_handler(f"{what} {event['name']}", self.type)
        saved = entity._save()
        try:
            result = yield Invoke(handler, (entity, event.get("payload")))
        except Reject as rejected:
            entity._restore(saved)
            outcome: dict[str, Any] = {"error": {"code": rejected.code, **given(message=rejected.message or None)}}
        else:
            outcome = {"result": result}
        if event.get("update"):
            entity._results.append({"seq": event["seq"], **outcome})


def _no_handler(what: str, type: str) -> JobError:
    return JobError("NO_HANDLER", f"Entity type {type} has no handler for {what}", retryable=False)
