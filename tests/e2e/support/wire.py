"""Requests as bytes on a socket, for what an HTTP client library would refuse to send, or would finish sending."""
import http.client
import socket
import struct

import endpoint
import harness


def request(method, path, headers=(), body=b"", length=None):
    """The bytes of one request. Headers are (name, value) pairs, sent as given, also twice."""
    lines = [f"{method} {path} HTTP/1.1".encode(), b"Host: localhost"]
    for name, value in headers:
        lines.append(name.encode() + b": " + (value if isinstance(value, bytes) else value.encode()))
    if body or length is not None:
        lines += [b"Content-Type: application/json", b"Content-Length: %d" % (len(body) if length is None else length)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def connect(port):
    return endpoint.connect(port)


def answer(sock):
    """Reads one answer."""
    r = http.client.HTTPResponse(sock)
    r.begin()
    raw = r.read()
    return harness.Reply(r.status, {k.lower(): v for k, v in r.getheaders()}, raw)


def send(port, data):
    """Sends the bytes over a connection of their own and reads one answer."""
    with connect(port) as sock:
        sock.sendall(data)
        return answer(sock)


def burst(port, requests):
    """All requests at once, each over a connection of its own: every one is sent before the first answer is read."""
    socks = [connect(port) for _ in requests]
    try:
        for sock, data in zip(socks, requests):
            sock.sendall(data)
        return [answer(sock) for sock in socks]
    finally:
        for sock in socks:
            sock.close()


def pipelined(port, batches):
    """Each batch over a connection of its own, without waiting for answers in between: every request of all of them is sent before the first
    answer is read. The answers, in the same order."""
    socks = [connect(port) for _ in batches]
    try:
        for sock, requests in zip(socks, batches):
            sock.sendall(b"".join(requests))
        return [_answers(sock, len(requests)) for sock, requests in zip(socks, batches)]
    finally:
        for sock in socks:
            sock.close()


def _answers(sock, count):
    replies, data = [], b""
    while len(replies) < count:
        head, end, rest = data.partition(b"\r\n\r\n")
        headers = {}
        if end:
            status, *lines = head.decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        length = int(headers.get("content-length", -1))
        if not end or len(rest) < length:
            more = sock.recv(1 << 16)
            assert more, f"the connection ended after {len(replies)} of {count} answers"
            data += more
            continue
        assert length >= 0, head
        replies.append(harness.Reply(int(status.split()[1]), headers, rest[:length]))
        data = rest[length:]
    return replies


def reset(sock):
    """Closes with RST instead of FIN: what a crashed client's kernel sends."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
