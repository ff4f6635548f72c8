"""Entities and their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .. import models
from .._core import Group, M, Steps, change, emits, get, operation, pages
from .._follow import Stream, event_data
from .._wire import decode, given, segment
from ..errors import NoAnswer, NotFound

V1 = "/api/v1"


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
        keep_generations: int | Literal["all"] | None = None,
        max_inbox: int | None = None,
        max_batch: int | None = None,
        retry: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Steps[models.PutEntityTypeResult]:
        """Create a type, or replace the rules of one of its versions.

        >>> client.entities.put_type("cart", queue="carts", handler="cart").version
        1
        """
        body: dict[str, Any] = {"queue": queue, "handler": handler} | given(
            version=version,
            dedup_window_s=dedup_window_s,
            dedup_max_keys=dedup_max_keys,
            rollover_events=rollover_events,
            keep_generations=None if keep_generations == "all" else keep_generations,
            max_inbox=max_inbox,
            max_batch=max_batch,
            retry=retry,
        )
        if keep_generations == "all":
            body["keep_generations"] = None
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
        """The entity's events as they happen, until it is deleted. An event of type "reset" says that events after
        `after` are no longer kept.

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

        return stream.follow(lambda event: decode(models.EntityEvent, {"type": event.event, **event_data(event)}), over)

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


def _entity(type: str, id: str) -> str:
    return f"{V1}/entities/{segment(type)}/{segment(id)}"
