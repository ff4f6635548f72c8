"""One server for all tests that need nothing special; each takes a tenant of its own."""

from __future__ import annotations

import pathlib
import sys
import uuid
from collections.abc import Iterator

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "support"))

from server import Server

import pawl


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
