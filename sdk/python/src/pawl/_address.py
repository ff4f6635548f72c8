"""Where a server is, and requests as the bytes that go there."""

from __future__ import annotations

import os
import ssl
from urllib.parse import urlsplit

from ._http1 import encode_request
from ._wire import Request


class Address:
    """A server's URL, taken apart. `tls` is None for plain HTTP."""

    def __init__(self, url: str, tls: ssl.SSLContext | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f'"{url}" is not a valid URL')
        self.url = url
        self.host, self.port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        self.tls = (tls or _default_tls()) if parts.scheme == "https" else None
        self._netloc = parts.netloc.rpartition("@")[2]
        self._prefix = parts.path.rstrip("/")  # of a server behind a proxy

    def encode(self, request: Request) -> bytes:
        """The request as HTTP/1.1 writes it."""
        headers = {"Host": self._netloc, **request.headers}
        return encode_request(request.method, self._prefix + request.target, headers, request.content())


def _default_tls() -> ssl.SSLContext:
    """The system's certificates, and those of PAWL_CA_FILE."""
    context = ssl.create_default_context()
    if os.environ.get("PAWL_CA_FILE"):
        context.load_verify_locations(os.environ["PAWL_CA_FILE"])
    return context
