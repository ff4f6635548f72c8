"""Libraries that pawl loads when it first needs them: a server that needs none is small, and one that is missing is named."""
import pathlib
import re

import pytest

import cli
import harness
from actions import begin, ended

LOADED = ("libcurl", "libnats", "libpq")


def loaded(server):
    maps = pathlib.Path(f"/proc/{server.process.pid}/maps").read_text()
    return [name for name in LOADED if f"/{name}.so" in maps]


def call_of(receiver):
    return {"name": "a", "type": "http", "request": {"method": "GET", "url": receiver.answers("/a", (200, b""))}, "retry": {"max_attempts": 1}}


@pytest.fixture
def damaged(tmp_path):
    """The environment of a machine on which no library that pawl loads can be used."""
    for name in set(re.findall(rb"lib(?:curl|nats|pq)\.so\.[0-9.]+", pathlib.Path(harness.PROGRAM).read_bytes())):
        (tmp_path / name.decode()).touch()
    assert len(list(tmp_path.iterdir())) == len(LOADED)
    return {"LD_LIBRARY_PATH": str(tmp_path)}


@pytest.mark.sqlite("the others are on PostgreSQL, or call each other")
def test_a_server_that_calls_nobody_loads_none_of_them(receiver):
    with harness.server("--allow-private-addresses") as s:
        api = s.client()
        tenant = api.tenant()
        assert api.work(tenant) is None and loaded(s) == []
        assert ended(api, tenant, begin(api, tenant, call_of(receiver)))["status"] == "succeeded"
        assert loaded(s) == ["libcurl"]


@pytest.mark.sqlite("PostgreSQL needs a library that is damaged here")
def test_a_call_fails_and_says_which_library_is_missing(receiver, damaged):
    with harness.server("--allow-private-addresses", env=damaged) as s:
        api = s.client()
        tenant = api.tenant()
        cause = ended(api, tenant, begin(api, tenant, call_of(receiver)))["error"]["cause"]
        assert "Cannot load libcurl.so.4 (Debian package libcurl4): " in cause["message"], cause
        assert api.get("/healthz").status == 200


@pytest.mark.parametrize("option, url, library", [("--bus", "nats://127.0.0.1:1", "libnats"), ("--store", "postgres://127.0.0.1/x", "libpq")])
def test_a_server_that_needs_a_missing_library_does_not_start(damaged, tmp_path, option, url, library):
    done = cli.pawl("serve", "--dev", "--listen", "127.0.0.1:0", option, url, cwd=tmp_path, **damaged)
    assert done.code != 0 and f"Cannot load {library}.so" in done.err and "Debian package" in done.err, done


def test_a_command_says_which_library_is_missing(damaged):
    done = cli.pawl("workflow", "list", **damaged)
    assert done.code != 0 and done.err.startswith("pawl: Cannot load libcurl.so.4 (Debian package libcurl4): "), done


def test_a_command_that_asks_no_server_needs_none_of_them(damaged):
    assert cli.pawl("version", **damaged).code == 0
