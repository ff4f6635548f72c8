"""Requests, responses, and JSON to and from the models."""

from __future__ import annotations

import contextlib
import json
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from .errors import ApiError, NoAnswer, error_for

T = TypeVar("T")
OVER = ("succeeded", "failed", "denied", "cancelled", "timed_out")  # how a run ends


@dataclass(frozen=True)
class Request:
    """What goes out. `timeout` is how long the answer may take, in seconds."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    has_body: bool = False
    timeout: float = 30.0

    @property
    def target(self) -> str:
        return self.path + ("?" + urlencode(self.query, quote_via=quote) if self.query else "")

    def content(self) -> bytes | None:
        return encode(self.body) if self.has_body else None


@dataclass(frozen=True)
class Response:
    """What came back; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.body) if self.body else None
        except ValueError:
            raise NoAnswer(f"The answer is not JSON, so not from pawl: {self.body[:80]!r}") from None


def encode(value: Any) -> bytes:
    """JSON; models, times and references are written as the wire has them. NaN and infinity are refused."""
    text = json.dumps(value, default=to_wire, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8")


def to_wire(value: Any) -> Any:
    """The JSON value of a model, a time or a reference; for `json.dumps(…, default=to_wire)`."""
    if is_dataclass(value) and not isinstance(value, type):
        return {_member(f.name): getattr(value, f.name) for f in fields(value)}
    if isinstance(value, datetime):
        return time_text(value)
    if hasattr(value, "__pawl__"):
        return value.__pawl__()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def time_text(at: datetime) -> str:
    """RFC 3339 in UTC with milliseconds. A time without a zone is local time, as in `datetime.timestamp`."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def segment(value: str) -> str:
    """One segment of a path, percent-encoded."""
    return quote(str(value), safe="-_.!~*'()")


def given(**members: Any) -> dict[str, Any]:
    """The members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def decode(kind: Any, value: Any) -> Any:
    """`value`, parsed JSON, as `kind`: a dataclass, a list or dict of them, a datetime, or a plain JSON type.

    Unknown members are ignored and missing ones are None, so that old clients and new servers get along.
    """
    if value is None or kind is Any:
        return value
    if kind is datetime:
        return datetime.fromisoformat(value) if isinstance(value, str) else value
    if is_dataclass(kind) and isinstance(kind, type):
        return _decode_dataclass(kind, value)
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        options = [k for k in typing.get_args(kind) if k is not type(None)]
        return decode(options[0], value) if len(options) == 1 else value
    if origin is list and isinstance(value, list):
        return [decode(typing.get_args(kind)[0], item) for item in value]
    if origin is dict and isinstance(value, dict):
        return {name: decode(typing.get_args(kind)[1], item) for name, item in value.items()}
    return value


def _decode_dataclass(kind: type[Any], value: Any) -> Any:
    if not isinstance(value, dict):
        raise TypeError(f"{kind.__name__} needs a JSON object, not {type(value).__name__}")
    hints = _hints(kind)
    return kind(**{name: decode(hint, value.get(_member(name))) for name, hint in hints.items()})


def _member(attribute: str) -> str:
    """The wire's name of an attribute: `from_` is `from`."""
    return attribute.removesuffix("_")


_known_hints: dict[type[Any], dict[str, Any]] = {}


def _hints(kind: type[Any]) -> dict[str, Any]:
    if kind not in _known_hints:
        hints = typing.get_type_hints(kind)
        _known_hints[kind] = {f.name: hints[f.name] for f in fields(kind) if f.init}
    return _known_hints[kind]


def problem(response: Response) -> ApiError:
    """The typed error of a response that is not a success."""
    members: Any = {}
    if response.headers.get("content-type", "").startswith("application/problem+json"):
        with contextlib.suppress(NoAnswer):
            members = response.json()
    if not isinstance(members, dict) or not members:
        members = {"detail": response.body[:200].decode("utf-8", "replace")}
    after = response.headers.get("retry-after", "")
    return error_for(response.status, members, float(after) if after.isdigit() else 0.0)


def key_header(key: str) -> str | None:
    """How a key travels in `Idempotency-Key`, or None if a header cannot carry it."""
    if not 1 <= len(key) <= 255:
        raise ValueError("An idempotency key has 1 to 255 characters")
    if any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in key):
        raise ValueError("An idempotency key has no control characters")
    if all("!" <= c <= "~" for c in key) and not key.startswith('"'):
        return key
    if all(" " <= c <= "~" for c in key):
        return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return None
