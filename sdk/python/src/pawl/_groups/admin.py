"""Tenants, keys, the audit trail and the server itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import models
from .._core import Group, M, Steps, change, emits, get, operation, pages
from .._wire import given, segment

V1 = "/api/v1"


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
