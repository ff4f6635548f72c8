"""Bytes on a socket, for requests that no HTTP library would send, and a reader for whatever comes back."""
import json
import ssl

import endpoint
import harness

CLOSED = "closed without an answer"


class Wire:
    """One connection. Nothing is added to what a test sends."""

    def __init__(self, port, timeout=None):
        self.sock = endpoint.connect(port, timeout or harness.PATIENCE_S)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        """False when the server has closed its side already."""
        try:
            self.sock.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return False

    def is_open(self):
        """Has the server left the connection open? Takes nothing from the stream that matters to a later answer()."""
        self.sock.setblocking(False)
        try:
            data = self.sock.recv(1 << 16)
            self.buffer += data
            return bool(data)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except ConnectionError:
            return False
        finally:
            self.sock.settimeout(harness.PATIENCE_S)

    def _more(self):
        try:
            data = self.sock.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        self.buffer += data
        return bool(data)

    def answer(self, head_only=False):
        """The next answer as a harness.Reply, or CLOSED. 1xx answers are returned like any other."""
        while b"\r\n\r\n" not in self.buffer:
            if not self._more():
                assert self.buffer == b"", f"half an answer: {self.buffer[:200]!r}"
                return CLOSED
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        assert lines[0].startswith("HTTP/1."), lines[0]
        status = int(lines[0].split()[1])
        headers = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            headers[name.strip().lower()] = value.strip()
        if head_only or status < 200:
            return harness.Reply(status, headers, b"")
        chunked = headers.get("transfer-encoding") == "chunked"  # a large answer that comes from another node
        return harness.Reply(status, headers, self._chunks() if chunked else self._bytes(int(headers["content-length"])))

    def _bytes(self, length):
        while len(self.buffer) < length:
            assert self._more(), "the body ended early"
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return body

    def _chunks(self):
        body = b""
        while True:
            while b"\r\n" not in self.buffer:
                assert self._more(), "the body ended early"
            size, self.buffer = self.buffer.split(b"\r\n", 1)
            chunk = self._bytes(int(size, 16) + 2)[:-2]
            if not chunk:
                return body
            body += chunk

    def closed(self):
        """True once the server has ended the connection with nothing more to say."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True


def exchange(port, data):
    """One connection, one send, one answer or CLOSED."""
    with Wire(port) as wire:
        wire.send(data)
        return wire.answer()


def request(method, target, body=b"", headers=(), version="HTTP/1.1"):
    """A well-formed request; headers is a list of lines."""
    lines = [f"{method} {target} {version}", "Host: localhost", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def json_request(method, target, body, headers=()):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return request(method, target, data, ["Content-Type: application/json", *headers])


def chunked(*pieces):
    """The pieces in chunked encoding, ended."""
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces if p) + b"0\r\n\r\n"
