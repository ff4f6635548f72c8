"""One server for all tests that need nothing special; each takes a tenant of its own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

import pawl
from server import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("pawl")).start()
    yield running
    running.stop()


@pytest.fixture
def tenant() -> str:
    return "t-" + uuid.uuid4().hex[:12]


@pytest.fixture
def client(server: Server, tenant: str) -> Iterator[pawl.Client]:
    with pawl.Client(server.url, tenant=tenant) as c:
        yield c
