"""What starts runs by itself, and what tells others: schedules and webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import models
from .._core import Group, M, Steps, change, emits, get, operation, pages
from .._wire import given, segment

V1 = "/api/v1"


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
        body = {"url": url, "events": [*events], **given(description=description)}
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
