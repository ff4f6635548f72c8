"""Verifying webhook messages (Standard Webhooks)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

from .errors import WebhookInvalid


def verify(
    secret: str,
    headers: Mapping[str, str],
    body: bytes | str,
    *,
    tolerance: float = 300.0,
    now: float | None = None,
) -> dict[str, Any]:
    """The event (a CloudEvents object) of a message that pawl signed; raises `WebhookInvalid` for any other.

    `body` is the raw body as it arrived. `event["id"]` is the same each time the event is delivered: remember it.

    >>> secret = "whsec_" + "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"
    >>> headers = sign(secret, "run:4", 1767225600, b'{"type":"run.succeeded"}')
    >>> verify(secret, headers, b'{"type":"run.succeeded"}', now=1767225600)["type"]
    'run.succeeded'
    >>> verify(secret, headers, b'{"type":"run.failed"}', now=1767225600)
    Traceback (most recent call last):
    pawl.errors.WebhookInvalid: The message is not signed with this secret
    """
    raw = body.encode() if isinstance(body, str) else body
    lower = {name.lower(): value for name, value in headers.items()}
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        if not lower.get(name):
            raise WebhookInvalid("header_missing", f"The header {name} is missing")
    stamp = lower["webhook-timestamp"]
    if not stamp.isascii() or not stamp.isdigit():
        raise WebhookInvalid("timestamp_invalid", "The timestamp is not a number")
    if abs((time.time() if now is None else now) - int(stamp)) > tolerance:
        raise WebhookInvalid("timestamp_out_of_range", "The message is too old, or from the future")
    wanted = _signature(secret, lower["webhook-id"], stamp, raw)
    if not any(hmac.compare_digest(wanted, given.encode()) for given in lower["webhook-signature"].split(" ")):
        raise WebhookInvalid("signature_mismatch", "The message is not signed with this secret")
    event: dict[str, Any] = json.loads(raw)
    return event


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers that pawl would send: for tests of your receiver.

    >>> sorted(sign("whsec_c2VjcmV0", "run:4", 1767225600, b"{}"))
    ['webhook-id', 'webhook-signature', 'webhook-timestamp']
    """
    signature = _signature(secret, message_id, str(timestamp), body).decode()
    return {"webhook-id": message_id, "webhook-timestamp": str(timestamp), "webhook-signature": signature}


def _signature(secret: str, message_id: str, stamp: str, body: bytes) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        raise WebhookInvalid("secret_invalid", "The secret is not base64") from None
    if not key:
        raise WebhookInvalid("secret_invalid", "The secret is empty")
    signed = b".".join([message_id.encode(), stamp.encode(), body])
    return b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
