"""HTTP/1.1 without I/O: a request as bytes, and a parser that takes a response in any pieces.

Both shells use it, so that the sync and the asyncio client speak exactly the same protocol.
"""

from __future__ import annotations

from collections.abc import Mapping

MAX_HEAD = 64 * 1024
NO_BODY = (204, 304)


class ProtocolError(Exception):
    """The peer does not speak HTTP/1.1."""


def encode_request(method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("A header must not have line breaks")
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    elif method in ("POST", "PUT"):
        lines.append("Content-Length: 0")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


class ResponseParser:
    """Feed it what arrives; `head_done`, `take()` and `done` say what is there."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.head_done = False
        self.done = False
        self.keep_alive = False
        self._buffer = bytearray()
        self._body = bytearray()
        self._left: int | None = None  # of the body or of the chunk; None: until the end of the connection
        self._chunked = False
        self._at = "size"  # in chunked coding: size, data, data end or trailer

    def feed(self, data: bytes) -> None:
        self._buffer += data
        if not self.head_done:
            self._read_head()
        if self.head_done and not self.done:
            self._read_body()

    def end(self) -> None:
        """The connection has ended; an error unless that is how this response ends."""
        if self.done:
            return
        if not self.head_done or self._chunked or self._left is not None:
            raise ProtocolError("the connection ended in the middle of a response")
        self.done = True

    def take(self) -> bytes:
        """The body bytes since the last call."""
        data = bytes(self._body)
        self._body.clear()
        return data

    def _read_head(self) -> None:
        while not self.head_done:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > MAX_HEAD:
                    raise ProtocolError("the response's head is too long")
                return
            lines = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
            del self._buffer[: end + 4]
            self._parse_head(lines)

    def _parse_head(self, lines: list[str]) -> None:
        words = lines[0].split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
            raise ProtocolError(f"not an HTTP/1.1 response: {lines[0][:80]!r}")
        self.status = int(words[1])
        if self.status < 200:
            return
        self.headers = {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon:
                raise ProtocolError("a header has no colon")
            self.headers[name.strip().lower()] = value.strip()
        self.head_done = True
        self._frame(words[0])

    def _frame(self, version: str) -> None:
        self._chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        length = self.headers.get("content-length")
        self._left = 0 if self._chunked else int(length) if length and length.isdigit() else None
        closes = self.headers.get("connection", "").lower() == "close" or version == "HTTP/1.0"
        if self.status in NO_BODY:
            self._chunked, self._left = False, 0
        self.keep_alive = not closes and (self._chunked or self._left is not None)

    def _read_body(self) -> None:
        if self._chunked:
            while self._read_chunk():
                pass
        elif self._left is None:
            self._body += self._buffer
            self._buffer.clear()
        else:
            self._move()
            self.done = self._left == 0

    def _move(self) -> None:
        assert self._left is not None
        part = self._buffer[: self._left]
        del self._buffer[: len(part)]
        self._body += part
        self._left -= len(part)

    def _read_chunk(self) -> bool:
        """One step through chunked coding; false when it needs more bytes or is done."""
        if self._at == "data":
            self._move()
            if self._left:
                return False
            self._at = "data end"
        end = self._buffer.find(b"\r\n")
        if end < 0:
            return False
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        if self._at == "size":
            self._left = self._chunk_size(line)
            self._at = "data" if self._left else "trailer"
        elif self._at == "data end":
            self._at = "size"
        else:
            self.done = line == b""
        return not self.done

    @staticmethod
    def _chunk_size(line: bytes) -> int:
        try:
            return int(line.split(b";")[0], 16)
        except ValueError:
            raise ProtocolError("a chunk has no size") from None
