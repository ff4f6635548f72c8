"""Readers of server-sent events: one that is read event by event, and many of them on one thread."""
import http.client
import json
import selectors
import ssl
import time

import endpoint
import harness


def connect(port, path, tenant=None, last=None, buffer=None, headers=()):
    sock = endpoint.connect(port, harness.PATIENCE_S, buffer)
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Accept: text/event-stream", *headers]
    if tenant is not None:
        lines.append(f"X-Tenant-ID: {tenant}")
    if last is not None:
        lines.append(f"Last-Event-ID: {last}")
    sock.sendall("\r\n".join([*lines, "", ""]).encode())
    return sock


def unique(pairs):
    """A JSON object in which no member is repeated."""
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


def parse(text):
    """The events of a stream as (id, event, data), and how many comments stood between them."""
    events, comments = [], 0
    for block in text.split("\n\n")[:-1]:
        fields = {}
        for line in block.split("\n"):
            if line.startswith(":"):
                comments += 1
                continue
            name, _, value = line.partition(": ")
            assert name not in fields, f"{name} comes twice in one event"
            fields[name] = value
        if fields:
            events.append((fields["id"], fields["event"], json.loads(fields["data"], object_pairs_hook=unique)))
    return events, comments


class Stream:
    """A reader of events. `events` has what came so far as (id, event, data)."""

    def __init__(self, port, path, tenant=None, last=None, **kw):
        self.sock = connect(port, path, tenant, last, **kw)
        self.reply = None
        self.events = []

    def open(self):
        self.reply = http.client.HTTPResponse(self.sock)
        self.reply.begin()
        assert self.reply.status == 200 and self.reply.headers["Content-Type"] == "text/event-stream", self.reply.headers
        assert self.reply.headers["Cache-Control"] == "no-store"
        return self

    def line(self):
        return self.reply.readline().decode()

    def read_one(self):
        """The next event, or None at the end."""
        block = ""
        while line := self.line():
            block += line
            if line == "\n":
                events, _ = parse(block)
                if events:
                    self.events += events
                    return events[0]
                block = ""
        assert not block, f"it ends in the middle of an event: {block}"
        return None

    def read(self, count):
        return [self.read_one() for _ in range(count)]

    def until(self, event):
        """Reads on to an event of this type."""
        while self.read_one()[1] != event:
            pass
        return self.events

    def rest(self):
        """All to the end, which the server makes."""
        while self.read_one():
            pass
        return self.events

    def close(self):
        if self.reply is not None:
            self.reply.close()  # it holds the socket too
        self.sock.close()

    def __enter__(self):
        return self.open()

    def __exit__(self, *_):
        self.close()


def body_of(raw):
    """The text of a chunked answer as far as it has come, whole chunks only."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    text, at = [], 0
    while (end := rest.find(b"\r\n", at)) >= 0:
        size = int(rest[at:end], 16)
        if size == 0 or len(rest) < end + 2 + size + 2:
            break
        text.append(rest[end + 2:end + 2 + size])
        at = end + 2 + size + 2
    return b"".join(text)


class Readers:
    """Many readers that one thread reads as their bytes come."""

    def __init__(self, count, *args, **kw):
        self.selector = selectors.DefaultSelector()
        self.socks = [connect(*args, **kw) for _ in range(count)]
        self.raw = {sock: bytearray() for sock in self.socks}
        for sock in self.socks:
            sock.setblocking(False)
            self.selector.register(sock, selectors.EVENT_READ)

    def read_until(self, is_enough, what):
        """Reads until is_enough(raw bytes) holds of everyone."""
        left = {sock for sock in self.socks if not is_enough(self.raw[sock])}
        end = time.monotonic() + 3 * harness.PATIENCE_S
        while left:
            assert time.monotonic() < end, f"{len(left)} of {len(self.socks)} did not get: {what}"
            for key, _ in self.selector.select(timeout=1):
                self._read(key.fileobj)
                if key.fileobj in left and is_enough(self.raw[key.fileobj]):
                    left.discard(key.fileobj)

    def _read(self, sock):
        """All that has come: what TLS has decrypted ahead makes no event."""
        try:
            while True:
                data = sock.recv(1 << 16)
                assert data, "cut off"
                self.raw[sock] += data
        except (BlockingIOError, ssl.SSLWantReadError):
            pass

    def opened(self):
        self.read_until(lambda raw: b"\r\n\r\n" in raw, "the head of the answer")
        return self

    def texts(self):
        """What each received, without comments."""
        return [body_of(bytes(raw)).replace(b": still here\n\n", b"").decode() for raw in self.raw.values()]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.selector.close()
        for sock in self.socks:
            sock.close()
