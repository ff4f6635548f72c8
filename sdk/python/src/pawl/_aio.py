"""The asyncio shell: performs the same effects with asyncio's streams."""

from __future__ import annotations

import asyncio
import inspect
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from ._address import Address
from ._core import Emit, Invoke, Open, Pause, Read, Send, Steps
from ._http1 import ProtocolError, ResponseParser
from ._sync import CHUNK, CONNECT_S, IDLE_MAX
from ._wire import Request, Response
from .errors import NoAnswer

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class AsyncTransport:
    """Keep-alive connections to one server, for one event loop."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self.address = Address(url, tls)
        self._idle: list[Pair] = []
        self._loop: asyncio.AbstractEventLoop | None = None  # that of the idle connections
        self._tagged: dict[object, asyncio.StreamWriter | None] = {}

    async def exchange(self, request: Request, tag: object = None) -> Response:
        """One request and its response."""
        stream = await self.open(request, tag)
        try:
            body = bytearray()
            while not stream.parser.done:
                body += await stream.read(request.timeout)
            body += stream.parser.take()
            response = Response(stream.parser.status, stream.parser.headers, bytes(body))
        except BaseException:
            stream.close()
            raise
        stream.finish()
        return response

    def abort(self, tag: object) -> None:
        """Break what is sent under this tag, now and later. What has already arrived is still read."""
        writer = self._tagged.get(tag)
        self._tagged[tag] = None
        if writer is not None:
            writer.close()

    async def open(self, request: Request, tag: object = None) -> AsyncStream:
        """Send a request and read the head of its response."""
        data = self.address.encode(request)
        stream = AsyncStream(self, self._idle_connection() or await self._connect(), tag)
        if tag is not None and self._tagged.setdefault(tag, stream.writer) is None:
            stream.close()
            raise NoAnswer("The request was aborted")
        try:
            stream.writer.write(data)
            await stream.writer.drain()
            while not stream.parser.head_done:
                await stream.receive(request.timeout)
        except OSError as lost:
            stream.close()
            raise NoAnswer(f"No answer from {self.address.url}: {lost}") from lost
        except BaseException:
            stream.close()
            raise
        return stream

    def close(self) -> None:
        idle, self._idle = self._idle, []
        for _, writer in idle:
            writer.close()

    def untag(self, tag: object) -> None:
        if self._tagged.get(tag) is not None:
            del self._tagged[tag]

    def give_back(self, pair: Pair) -> None:
        if len(self._idle) < IDLE_MAX:
            self._idle.append(pair)
        else:
            pair[1].close()

    def _idle_connection(self) -> Pair | None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._idle = loop, []
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return None

    async def _connect(self) -> Pair:
        try:
            opening = asyncio.open_connection(self.address.host, self.address.port, ssl=self.address.tls, limit=CHUNK)
            return await asyncio.wait_for(opening, CONNECT_S)
        except OSError as failed:  # TimeoutError is one of them
            raise NoAnswer(f"No pawl server at {self.address.url}: {failed}") from failed


class AsyncStream:
    """One response that is being read."""

    def __init__(self, transport: AsyncTransport, pair: Pair, tag: object) -> None:
        self.transport, self.tag = transport, tag
        self.reader, self.writer = pair
        self.parser = ResponseParser()

    async def receive(self, timeout: float) -> None:
        """Feed the parser with what arrives next."""
        try:
            data = await asyncio.wait_for(self.reader.read(CHUNK), timeout)
            if data:
                self.parser.feed(data)
            else:
                self.parser.end()
        except (OSError, ProtocolError) as lost:
            raise NoAnswer(f"No answer from {self.transport.address.url}: {lost}") from lost

    async def read(self, timeout: float) -> bytes:
        """More of the body; b"" at its end."""
        while True:
            data = self.parser.take()
            if data or self.parser.done:
                return data
            await self.receive(timeout)

    def finish(self) -> None:
        """The response is complete: keep the connection if it may be used again."""
        self.transport.untag(self.tag)
        if self.parser.done and self.parser.keep_alive:
            self.transport.give_back((self.reader, self.writer))
        else:
            self.writer.close()

    def close(self) -> None:
        self.transport.untag(self.tag)
        self.writer.close()


class AsyncShell:
    """Runs steps in the current task."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport
        self.performers: dict[type, Callable[[Any], Awaitable[Any]]] = {
            Send: lambda e: self.transport.exchange(e.request, e.tag),
            Pause: lambda e: asyncio.sleep(e.seconds),
            Open: self._open,
            Read: lambda e: e.handle.read(e.timeout),
            Invoke: self._invoke,
        }

    async def run(self, steps: Steps[Any]) -> Any:
        """The result of the steps."""
        value, error = None, None
        try:
            while True:
                try:
                    effect = steps.send(value) if error is None else steps.throw(error)
                except StopIteration as end:
                    return end.value
                value, error = await self._perform(effect)
        finally:
            steps.close()

    async def iterate(self, steps: Steps[Any]) -> AsyncIterator[Any]:
        """What the steps emit, one by one."""
        value, error = None, None
        try:
            while True:
                try:
                    effect = steps.send(value) if error is None else steps.throw(error)
                except StopIteration:
                    return
                value, error = None, None
                if isinstance(effect, Emit):
                    yield effect.value
                else:
                    value, error = await self._perform(effect)
        finally:
            steps.close()

    async def _perform(self, effect: Any) -> tuple[Any, BaseException | None]:
        try:
            return await self.performers[type(effect)](effect), None
        except BaseException as failed:
            return None, failed

    async def _open(self, effect: Open) -> tuple[AsyncStream, Response]:
        stream = await self.transport.open(effect.request)
        parser = stream.parser
        body = b""
        if parser.status != 200:
            while not parser.done:
                body += await stream.read(effect.request.timeout)
            body += parser.take()
            stream.finish()
        return stream, Response(parser.status, parser.headers, body)

    async def _invoke(self, effect: Invoke) -> Any:
        result = effect.function(*effect.args, **effect.kwargs)
        return await result if inspect.isawaitable(result) else result
