"""A server as it runs in production: HTTPS and API keys, each with the role it needs."""

from __future__ import annotations

import asyncio
import pathlib
import ssl
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

import pawl
from server import Server

ROOT_KEY = "7f3Kq9ZtW2mXc8RbLd5HvNs4YpGj6AeU"


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("secure")
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*make, "-keyout", "key", "-out", "cert", *names], cwd=folder, check=True, capture_output=True)
    options = ("--tls-cert", "cert", "--tls-key", "key")
    server = Server(folder, *options, env={"PAWL_ROOT_KEY": ROOT_KEY}).start()
    yield server
    server.stop()


def trusting(folder: pathlib.Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(folder / "cert"))


def test_each_key_has_its_role(secure: Server) -> None:
    assert secure.url.startswith("https://")
    tls = trusting(secure.folder)
    with pawl.Client(secure.url, api_key=ROOT_KEY, tls=tls) as root:
        keys: dict[str, Any] = {
            role: root.keys.create(role, tenant="acme").key for role in ("operator", "worker", "viewer")
        }
    operator, viewer = (pawl.Client(secure.url, api_key=keys[role], tls=tls) for role in ("operator", "viewer"))
    workflow = pawl.Workflow("double", queue="q")
    workflow.task("do", "double")
    operator.apply(workflow)
    with pytest.raises(pawl.errors.Forbidden):
        viewer.start("double", 4)
    worker = pawl.Worker(pawl.Client(secure.url, api_key=keys["worker"], tls=tls), queues="q", apply=False)
    worker.task("double")(lambda input: input * 2)
    with worker:
        assert operator.run("double", 4) == 8
    assert [run.output for run in viewer.runs.list()] == [8]


def test_the_environment_names_the_certificates_and_the_key(secure: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAWL_URL", secure.url)
    monkeypatch.setenv("PAWL_API_KEY", ROOT_KEY)
    monkeypatch.setenv("PAWL_CA_FILE", str(secure.folder / "cert"))
    with pawl.Client() as client:
        assert client.keys.create("viewer", tenant="acme").created_by == "root", "an admin, over TLS"


def test_asyncio_speaks_tls_too(secure: Server) -> None:
    async def main() -> str:
        async with pawl.AsyncClient(secure.url, api_key=ROOT_KEY, tls=trusting(secure.folder)) as client:
            return (await client.server.health()).status

    assert asyncio.run(main()) == "ok"


def test_a_certificate_that_is_not_trusted_is_refused(secure: Server) -> None:
    once = pawl.Retry(max_attempts=1)
    with pytest.raises(pawl.errors.NoAnswer, match="certificate"):
        pawl.Client(secure.url, api_key=ROOT_KEY, retry=once).server.health()
    with pytest.raises(pawl.errors.NoAnswer, match="certificate"):
        asyncio.run(pawl.AsyncClient(secure.url, api_key=ROOT_KEY, retry=once).server.health())


def test_a_wrong_key_is_unauthenticated(secure: Server) -> None:
    wrong = pawl.Client(secure.url, api_key="pawl_wrong", tls=trusting(secure.folder))
    with pytest.raises(pawl.errors.Unauthenticated):
        list(wrong.runs.list())
