"""The blocking shell: performs effects with sockets and threads' time."""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator
from typing import Any

from ._address import Address
from ._core import Emit, Invoke, Open, Pause, Read, Send, Steps
from ._http1 import ProtocolError, ResponseParser
from ._wire import Request, Response
from .errors import NoAnswer

CONNECT_S = 10.0
IDLE_MAX = 16
CHUNK = 65536


class Transport:
    """Keep-alive connections to one server. Safe to share between threads."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self.address = Address(url, tls)
        self._idle: list[socket.socket] = []
        self._tagged: dict[object, socket.socket | None] = {}
        self._lock = threading.RLock()  # a signal handler may abort a request of the thread that holds it

    def exchange(self, request: Request, tag: object = None) -> Response:
        """One request and its response."""
        stream = self.open(request, tag)
        try:
            body = bytearray()
            while not stream.parser.done:
                body += stream.read(request.timeout)
            body += stream.parser.take()
            response = Response(stream.parser.status, stream.parser.headers, bytes(body))
        except BaseException:
            stream.close()
            raise
        stream.finish()
        return response

    def open(self, request: Request, tag: object = None) -> Stream:
        """Send a request and read the head of its response."""
        data = self.address.encode(request)
        stream = Stream(self, self._connection(tag), tag)
        try:
            stream.sock.settimeout(request.timeout)
            stream.sock.sendall(data)
            while not stream.parser.head_done:
                stream.receive(request.timeout)
        except OSError as lost:
            stream.close()
            raise NoAnswer(f"No answer from {self.address.url}: {lost}") from lost
        except BaseException:
            stream.close()
            raise
        return stream

    def abort(self, tag: object) -> None:
        """Break what is sent under this tag, now and later."""
        with self._lock:
            sock = self._tagged.get(tag)
            self._tagged[tag] = None
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for sock in idle:
            sock.close()

    def _connection(self, tag: object) -> socket.socket:
        sock = self._idle_connection() or self._connect()
        if tag is not None:
            with self._lock:
                aborted = tag in self._tagged and self._tagged[tag] is None
                if not aborted:
                    self._tagged[tag] = sock
            if aborted:
                sock.close()
                raise NoAnswer("The request was aborted")
        return sock

    def _idle_connection(self) -> socket.socket | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                sock = self._idle.pop()
            # A connection that can be read while it is idle was closed by the server.
            if sock.fileno() >= 0 and not _readable(sock):
                return sock
            sock.close()

    def _connect(self) -> socket.socket:
        try:
            sock = socket.create_connection((self.address.host, self.address.port), CONNECT_S)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            tls = self.address.tls
            return tls.wrap_socket(sock, server_hostname=self.address.host) if tls else sock
        except OSError as failed:
            raise NoAnswer(f"No pawl server at {self.address.url}: {failed}") from failed

    def give_back(self, sock: socket.socket) -> None:
        with self._lock:
            if len(self._idle) < IDLE_MAX:
                self._idle.append(sock)
                return
        sock.close()

    def untag(self, tag: object) -> None:
        with self._lock:
            if self._tagged.get(tag) is not None:
                del self._tagged[tag]


def _readable(sock: socket.socket) -> bool:
    """Whether there is something to read. `select.select` cannot do it: it takes no descriptor above 1023."""
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))


class Stream:
    """One response that is being read."""

    def __init__(self, transport: Transport, sock: socket.socket, tag: object) -> None:
        self.transport, self.sock, self.tag = transport, sock, tag
        self.parser = ResponseParser()

    def receive(self, timeout: float) -> None:
        """Feed the parser with what arrives next."""
        try:
            self.sock.settimeout(timeout)
            data = self.sock.recv(CHUNK)
            if data:
                self.parser.feed(data)
            else:
                self.parser.end()
        except (OSError, ProtocolError) as lost:
            raise NoAnswer(f"No answer from {self.transport.address.url}: {lost}") from lost

    def read(self, timeout: float) -> bytes:
        """More of the body; b"" at its end."""
        while True:
            data = self.parser.take()
            if data or self.parser.done:
                return data
            self.receive(timeout)

    def finish(self) -> None:
        """The response is complete: keep the connection if it may be used again."""
        self.transport.untag(self.tag)
        if self.parser.done and self.parser.keep_alive:
            self.transport.give_back(self.sock)
        else:
            self.sock.close()

    def close(self) -> None:
        self.transport.untag(self.tag)
        self.sock.close()


class SyncShell:
    """Runs steps on the calling thread."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.performers: dict[type, Callable[[Any], Any]] = {
            Send: lambda e: self.transport.exchange(e.request, e.tag),
            Pause: lambda e: time.sleep(e.seconds),
            Open: self._open,
            Read: lambda e: e.handle.read(e.timeout),
            Invoke: lambda e: e.function(*e.args, **e.kwargs),
        }

    def run(self, steps: Steps[Any]) -> Any:
        """The result of the steps."""
        iterator = self.iterate(steps)
        try:
            while True:
                next(iterator)
        except StopIteration as end:
            return end.value

    def iterate(self, steps: Steps[Any]) -> Generator[Any, None, Any]:
        """What the steps emit, one by one."""
        value, error = None, None
        try:
            while True:
                try:
                    effect = steps.send(value) if error is None else steps.throw(error)
                except StopIteration as end:
                    return end.value
                value, error = None, None
                if isinstance(effect, Emit):
                    yield effect.value
                    continue
                try:
                    value = self.performers[type(effect)](effect)
                except BaseException as failed:
                    error = failed
        finally:
            steps.close()

    def _open(self, effect: Open) -> tuple[Stream, Response]:
        stream = self.transport.open(effect.request)
        parser = stream.parser
        body = b""
        if parser.status != 200:
            while not parser.done:
                body += stream.read(effect.request.timeout)
            body += parser.take()
            stream.finish()
        return stream, Response(parser.status, parser.headers, body)
