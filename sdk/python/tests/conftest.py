"""One server for all tests that need nothing special; each takes a tenant of its own."""

from __future__ import annotations

import pathlib
import uuid
from collections.abc import Iterator

import pytest

import pawl
from package import build_wheel, checkout, clean_environment
from server import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("pawl")).start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return build_wheel(checkout(tmp_path_factory.mktemp("source")), tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def clean_python(wheel: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return clean_environment(tmp_path_factory.mktemp("clean") / "venv", wheel)


@pytest.fixture
def tenant() -> str:
    return "t-" + uuid.uuid4().hex[:12]


@pytest.fixture
def client(server: Server, tenant: str) -> Iterator[pawl.Client]:
    with pawl.Client(server.url, tenant=tenant) as c:
        yield c
