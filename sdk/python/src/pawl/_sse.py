"""Server-sent events: a parser that takes a stream in any pieces."""

from __future__ import annotations

import codecs
from dataclasses import dataclass


@dataclass(frozen=True)
class SseEvent:
    """One event as the stream carries it."""

    id: str | None
    event: str
    data: str


class SseParser:
    """`feed` returns the events that are complete; `last_id` is where to resume."""

    def __init__(self, last_id: str | None = None) -> None:
        self.last_id = last_id
        self._text = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._event = ""
        self._id = last_id
        self._data: list[str] = []
        self._began = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        self._text += self._decoder.decode(chunk)
        if not self._began and self._text:
            self._text, self._began = self._text.removeprefix("\ufeff"), True
        events = []
        while (line := self._line()) is not None:
            event = self._take(line)
            if event:
                events.append(event)
        return events

    def _line(self) -> str | None:
        """The next complete line. A carriage return at the very end may be half of a line end: it waits."""
        ends = [i for i in (self._text.find("\n"), self._text.find("\r")) if i >= 0]
        if not ends:
            return None
        end = min(ends)
        if self._text[end] == "\r" and end + 1 == len(self._text):
            return None
        width = 2 if self._text.startswith("\r\n", end) else 1
        line, self._text = self._text[:end], self._text[end + width :]
        return line

    def _take(self, line: str) -> SseEvent | None:
        if line == "":
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        return None

    def _dispatch(self) -> SseEvent | None:
        self.last_id = self._id
        event, data = self._event or "message", self._data
        self._event, self._data = "", []
        return SseEvent(self._id, event, "\n".join(data)) if data else None
