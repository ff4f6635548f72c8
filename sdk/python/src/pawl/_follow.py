"""Following an event stream: resumes where it was after a broken connection, so that nothing is missed or doubled."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ._core import Emit, Open, Pause, Read, Settings, Steps
from ._sse import SseEvent, SseParser
from ._wire import Request, Response, problem
from .errors import NoAnswer, WaitTimeout
from .retry import Backoff, Retry

SILENCE_S = 45.0  # the server sends a comment every 15 s
RECONNECT = Retry(base=0.1, maximum=5.0)


class Stream:
    """One stream that is followed over as many connections as it takes."""

    def __init__(
        self, settings: Settings, path: str, cursor: str | None, query: dict[str, str], deadline: float | None = None
    ) -> None:
        self._settings, self._path, self._query, self._deadline = settings, path, query, deadline
        self._cursor = cursor
        self._backoff = Backoff(RECONNECT, settings.random)
        self._failing_since: float | None = None

    def follow(self, parse: Callable[[SseEvent], Any], over: Callable[[], Steps[bool]]) -> Steps[None]:
        """Emit the events. `over` is asked when the server has ended the stream: is there more to come?"""
        while True:
            failure: Exception | None = None
            try:
                yield from self._connect(parse)
            except NoAnswer as lost:
                failure = lost
            if failure is None and (yield from over()):
                return
            self._check_time(failure)
            yield Pause(self._backoff.next())

    def _connect(self, parse: Callable[[SseEvent], Any]) -> Steps[None]:
        headers = {**self._settings.headers(), "Accept": "text/event-stream"}
        if self._cursor is not None:
            headers["Last-Event-ID"] = self._cursor
        handle, response = yield Open(
            Request("GET", self._path, query=self._query, headers=headers, timeout=min(30.0, self._silence()))
        )
        if response.status != 200:
            yield from self._refused(response)
            return
        parser = SseParser(self._cursor)
        try:
            while chunk := (yield Read(handle, self._silence())):
                for event in parser.feed(chunk):
                    self._cursor, self._failing_since = event.id, None
                    self._backoff = Backoff(RECONNECT, self._settings.random)
                    yield Emit(parse(event))
        finally:
            handle.close()

    def _refused(self, response: Response) -> Steps[None]:
        error = problem(response)
        if not error.retryable:
            raise error
        yield Pause(error.retry_after)
        raise NoAnswer(f"The stream was refused: {error}") from error

    def _silence(self) -> float:
        if self._deadline is None:
            return SILENCE_S
        return max(0.001, min(SILENCE_S, self._deadline - self._settings.now()))

    def _check_time(self, failure: Exception | None) -> None:
        now = self._settings.now()
        if self._deadline is not None and now >= self._deadline:
            raise WaitTimeout("The time to wait is over")
        if failure is None:
            return
        self._failing_since = self._failing_since if self._failing_since is not None else now
        patience = self._settings.retry.deadline
        if patience is not None and now - self._failing_since > patience:
            raise failure


def swallow(steps: Steps[None]) -> Steps[None]:
    """Perform the steps without what they emit."""
    value: Any = None
    error: BaseException | None = None
    while True:
        try:
            effect = steps.send(value) if error is None else steps.throw(error)
        except StopIteration:
            return
        value, error = None, None
        if not isinstance(effect, Emit):
            try:
                value = yield effect
            except Exception as failed:
                error = failed


def event_data(event: SseEvent) -> dict[str, Any]:
    """The JSON object of an event; `reset` has none of its own."""
    data = json.loads(event.data) if event.data else {}
    return data if isinstance(data, dict) else {"data": data}
