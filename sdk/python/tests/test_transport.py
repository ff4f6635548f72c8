"""The two shells against servers that behave badly."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pawl
from pawl._core import Send
from pawl._http1 import ProtocolError, ResponseParser, encode_request
from pawl._programs import Programs
from pawl._worker_state import WorkerState
from script import FLAVOURS

HEALTH = b'{"status":"ok","version":"1.0"}'


def answer(body: bytes = HEALTH, head: bytes = b"", status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 " + status + b"\r\nContent-Length: %d\r\n" % len(body) + head + b"\r\n" + body


class RawServer:
    """Serves each connection with a function; `connections` counts them."""

    def __init__(self, serve: Callable[[socket.socket, int], None]) -> None:
        self.serve, self.connections = serve, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections += 1
                threading.Thread(target=self._one, args=(connection, self.connections), daemon=True).start()

    def _one(self, connection: socket.socket, number: int) -> None:
        with connection, contextlib.suppress(OSError):
            self.serve(connection, number)


@contextlib.contextmanager
def raw_server(serve: Callable[[socket.socket, int], None]) -> Iterator[RawServer]:
    server = RawServer(serve)
    yield server
    server.listener.close()


def read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            raise OSError("the client left")
        data += more
    return data


def health(flavour: str, url: str, times: int = 1, retry: pawl.Retry | None = None) -> list[Any]:
    retry = retry or pawl.Retry(base=0.001, maximum=0.01)
    if flavour == "sync":
        with pawl.Client(url, retry=retry) as client:
            return [client.server.health().version for _ in range(times)]

    async def run() -> list[Any]:
        async with pawl.AsyncClient(url, retry=retry) as client:
            return [(await client.server.health()).version for _ in range(times)]

    return asyncio.run(run())


flavours = pytest.mark.parametrize("flavour", FLAVOURS)


@flavours
def test_a_connection_is_used_again(flavour: str) -> None:
    def serve(connection: socket.socket, number: int) -> None:
        while True:
            read_request(connection)
            connection.sendall(answer())

    with raw_server(serve) as server:
        assert health(flavour, server.url, 5) == ["1.0"] * 5
        assert server.connections == 1


@flavours
def test_a_connection_that_the_server_closes_is_not_used_again(flavour: str) -> None:
    def serve(connection: socket.socket, number: int) -> None:
        read_request(connection)
        connection.sendall(answer(head=b"Connection: close\r\n"))

    with raw_server(serve) as server:
        assert health(flavour, server.url, 3) == ["1.0"] * 3
        assert server.connections == 3


@flavours
def test_a_connection_that_was_closed_while_idle_is_not_used_again(flavour: str) -> None:
    """Without a retry: the client looks before it sends."""
    closed = [threading.Event(), threading.Event()]

    def serve(connection: socket.socket, number: int) -> None:
        read_request(connection)
        connection.sendall(answer())
        connection.close()
        closed[number - 1].set()

    once = pawl.Retry(max_attempts=1)

    async def twice() -> None:
        async with pawl.AsyncClient(server.url, retry=once) as client:
            await client.server.health()
            assert await asyncio.to_thread(closed[0].wait, 20)
            await client.server.health()

    with raw_server(serve) as server:
        if flavour == "sync":
            with pawl.Client(server.url, retry=once) as client:
                client.server.health()
                assert closed[0].wait(20)
                client.server.health()
        else:
            asyncio.run(twice())
        assert server.connections == 2


@flavours
def test_an_answer_that_breaks_off_is_asked_for_again(flavour: str) -> None:
    def serve(connection: socket.socket, number: int) -> None:
        read_request(connection)
        connection.sendall(answer()[: -5 if number == 1 else None])

    with raw_server(serve) as server:
        assert health(flavour, server.url) == ["1.0"]
        assert server.connections == 2


@flavours
@pytest.mark.parametrize("pieces", [1, 7, 1000])
def test_a_chunked_answer_in_pieces(flavour: str, pieces: int) -> None:
    raw = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    raw += b"5;x=1\r\n" + HEALTH[:5] + b"\r\n%x\r\n" % len(HEALTH[5:]) + HEALTH[5:] + b"\r\n0\r\nX-Trailer: 1\r\n\r\n"

    def serve(connection: socket.socket, number: int) -> None:
        while True:
            read_request(connection)
            for at in range(0, len(raw), pieces):
                connection.sendall(raw[at : at + pieces])

    with raw_server(serve) as server:
        assert health(flavour, server.url, 2) == ["1.0"] * 2
        assert server.connections == 1


@flavours
def test_an_answer_without_a_length_ends_with_the_connection(flavour: str) -> None:
    def serve(connection: socket.socket, number: int) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + HEALTH)

    with raw_server(serve) as server:
        assert health(flavour, server.url, 2) == ["1.0"] * 2


@flavours
@pytest.mark.parametrize("garbage", [b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", b""])
def test_what_is_not_http_is_no_answer(flavour: str, garbage: bytes) -> None:
    def serve(connection: socket.socket, number: int) -> None:
        read_request(connection)
        connection.sendall(garbage)

    with raw_server(serve) as server, pytest.raises(pawl.errors.NoAnswer):
        health(flavour, server.url, retry=pawl.Retry(max_attempts=1))


@flavours
def test_a_page_that_is_not_json_is_no_answer(flavour: str) -> None:
    def serve(connection: socket.socket, number: int) -> None:
        read_request(connection)
        connection.sendall(answer(b"<h1>Please sign in</h1>"))

    with raw_server(serve) as server, pytest.raises(pawl.errors.NoAnswer, match="not from pawl"):
        health(flavour, server.url)


@flavours
def test_a_server_may_be_behind_a_path(flavour: str) -> None:
    asked: list[bytes] = []

    def serve(connection: socket.socket, number: int) -> None:
        asked.append(read_request(connection).splitlines()[0])
        connection.sendall(answer())

    with raw_server(serve) as server:
        health(flavour, server.url + "/control/")
    assert asked == [b"GET /control/healthz HTTP/1.1"]


@flavours
def test_no_server_says_where_it_was_looked_for(flavour: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(pawl.errors.NoAnswer, match=f"No pawl server at {url}"):
        health(flavour, url, retry=pawl.Retry(max_attempts=1))


def test_a_url_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match='"localhost:7295" is not a valid URL'):
        pawl.Client("localhost:7295")


@flavours
def test_a_worker_with_a_wrong_key_stops_and_says_why(flavour: str) -> None:
    problem = b'{"code":"UNAUTHENTICATED","status":401,"retryable":false,"detail":"unknown key"}'

    def serve(connection: socket.socket, number: int) -> None:
        while True:
            read_request(connection)
            connection.sendall(answer(problem, b"Content-Type: application/problem+json\r\n", b"401 Unauthorized"))

    with raw_server(serve) as server, pytest.raises(pawl.errors.Unauthenticated, match="unknown key"):
        if flavour == "sync":
            pawl.Worker(pawl.Client(server.url)).run()
        else:
            asyncio.run(pawl.AsyncWorker(pawl.AsyncClient(server.url)).run())


@flavours
def test_a_long_poll_is_broken_off_when_the_worker_stops(flavour: str) -> None:
    asked, left = threading.Event(), threading.Event()

    def serve(connection: socket.socket, number: int) -> None:
        read_request(connection)
        asked.set()
        if connection.recv(1) == b"":
            left.set()

    with raw_server(serve) as server:
        if flavour == "sync":
            with pawl.Worker(pawl.Client(server.url)):
                assert asked.wait(20)
        else:
            asyncio.run(stop_when(asked, server.url))
        assert left.wait(20)


@flavours
def test_a_worker_stops_although_the_server_is_gone(flavour: str) -> None:
    """Its result cannot be reported: it gives up when its grace is over, and the lease expires."""
    reported = threading.Event()
    job = b'{"jobs":[{"job_id":"j","kind":"step","handler":"do","attempt":1,"tenant":"t","input":1,"lease_token":"1.a",'
    job += b'"lease_expires_at":"2026-11-15T00:00:30.000Z"}]}'

    def serve(connection: socket.socket, number: int) -> None:
        while b"/jobs/claim" in read_request(connection):
            connection.sendall(answer(job))
        reported.set()  # and the connection breaks

    with raw_server(serve) as server:
        if flavour == "sync":
            worker = pawl.Worker(pawl.Client(server.url), concurrency=1, grace=0.2)
            worker.task("do")(lambda input: input)
            with worker:
                assert reported.wait(20)
        else:
            asyncio.run(stop_without_server(reported, server.url))


async def stop_without_server(reported: threading.Event, url: str) -> None:
    worker = pawl.AsyncWorker(pawl.AsyncClient(url), concurrency=1, grace=0.2)

    @worker.task("do")
    async def do(input: Any) -> Any:
        return input

    async with worker:
        assert await asyncio.to_thread(reported.wait, 20)


async def stop_when(asked: threading.Event, url: str) -> None:
    async with pawl.AsyncWorker(pawl.AsyncClient(url)):
        assert await asyncio.to_thread(asked.wait, 20)


def test_a_program_may_have_many_files_open() -> None:
    """`select` ends at descriptor 1023."""

    def serve(connection: socket.socket, number: int) -> None:
        while True:
            read_request(connection)
            connection.sendall(answer())

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    with raw_server(serve) as server, contextlib.ExitStack() as files:
        for _ in range(1024):
            files.callback(os.close, os.dup(0))
        assert health("sync", server.url, 2) == ["1.0"] * 2
        assert server.connections == 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_signal_stops_a_worker_in_the_middle_of_a_request() -> None:
    """Its handler runs on the main thread, whatever that thread holds."""
    worker = pawl.Worker(pawl.Client("http://127.0.0.1:1"))

    def interrupted() -> None:
        with worker.client._transport._lock:
            worker.stop()

    thread = threading.Thread(target=interrupted, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


def test_a_heartbeat_without_an_answer_does_not_hold_up_the_others() -> None:
    state = WorkerState("w", ["q"], concurrency=2, lease_ms=30_000, wait_ms=0)
    state.take([{"job_id": "a", "lease_token": "1.a"}], now=-10.0)
    settings = pawl.Client()._settings
    settings.now = lambda: 0.0
    beat = next(Programs(settings, state, lambda held: iter(())).beat())  # type: ignore[arg-type, return-value]
    assert isinstance(beat, Send) and beat.request.timeout == 10.0, "a third of the lease"


def test_a_request_has_a_length() -> None:
    assert encode_request("POST", "/x", {"Host": "h"}, None).endswith(b"Content-Length: 0\r\n\r\n")
    assert encode_request("GET", "/x", {"Host": "h"}, None) == b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n"
    assert encode_request("PUT", "/x", {"Host": "h"}, b"{}").endswith(b"Content-Length: 2\r\n\r\n{}")


def test_a_header_cannot_smuggle_another() -> None:
    with pytest.raises(ValueError, match="line breaks"):
        pawl.Client(tenant="a\r\nX-Actor: admin").server.health()


def test_an_asyncio_client_serves_one_loop_after_another() -> None:
    def serve(connection: socket.socket, number: int) -> None:
        while True:
            read_request(connection)
            connection.sendall(answer())

    with raw_server(serve) as server:
        client = pawl.AsyncClient(server.url)
        assert [asyncio.run(client.server.health()).version for _ in range(3)] == ["1.0"] * 3


def test_a_head_without_an_end_is_refused() -> None:
    with pytest.raises(ProtocolError, match="too long"):
        ResponseParser().feed(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000)


def test_a_chunked_answer_ends_after_its_trailers() -> None:
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-A: 1\r\nX-B: 2\r\n\r\n"
    parser = ResponseParser()
    for at in range(len(raw)):
        assert not parser.done
        parser.feed(raw[at : at + 1])
    assert parser.done and parser.take() == b"ok"


def test_a_chunk_without_a_size_is_refused() -> None:
    with pytest.raises(ProtocolError, match="size"):
        ResponseParser().feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n")


def test_a_204_has_no_body() -> None:
    parser = ResponseParser()
    parser.feed(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert parser.done and parser.keep_alive and parser.take() == b""
