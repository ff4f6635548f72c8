"""The blocks of the docs that need a PostgreSQL server, run on one of their own."""
import os
import shlex
import subprocess
import sys
import uuid

import pytest

import docpages
import harness

sys.path.append(str(harness.ROOT / "tests/tools"))
import with_postgres  # noqa: E402

BLOCKS = [b for page in docpages.PAGES for b in docpages.blocks(page) if docpages.is_for_postgres(b)]
THEIR_DATABASE = "postgres://pawl@db.internal/pawl"
THEIR_FILE = "/var/lib/pawl/pawl.db"
THEIR_ADDRESS = "10.0.0.1:7295"
NOT_OURS = "systemctl"  # of the machine that the page is about


@pytest.fixture
def postgres():
    with with_postgres.start() as cluster:
        yield cluster


def words_of(command, store, file, servers):
    """The command, with a database, a file and addresses that are here."""
    words = [store if w.startswith(THEIR_DATABASE) else w.replace(THEIR_FILE, str(file)) for w in shlex.split(command, comments=True)]
    if servers:
        words = [w.replace(f"http://{THEIR_ADDRESS}", servers[-1].url) for w in words]
    return [w.replace(THEIR_ADDRESS, "127.0.0.1:0") for w in words]


@pytest.mark.sqlite("brings a PostgreSQL server of its own")
@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: b.where)
def test_every_command_on_postgresql_works(block, tmp_path, postgres):
    store, servers, env = f"{postgres.url}&schema=d{uuid.uuid4().hex[:20]}", [], dict(os.environ)
    file = tmp_path / "pawl.db"
    harness.Server(tmp_path, store=f"sqlite:{file}").start().close()  # leaves the file that one begins with
    try:
        for command in docpages.commands(block.text):
            words = words_of(command, store, file, servers)
            if words[1:2] == ["serve"]:
                flags = [w for w in words[2:] if w not in ("--store", store)]
                servers.append(harness.Server(tmp_path, *flags, store=store, tls=False).start())
                env["PAWL_URL"] = servers[-1].url
            elif words[0] != NOT_OURS:
                done = subprocess.run([harness.PAWL, *words[1:]], env=env, capture_output=True, text=True, timeout=harness.PATIENCE_S)
                assert words[0] == "pawl" and done.returncode == 0, (command, done.stdout, done.stderr)
    finally:
        for server in servers:
            server.close()


def test_there_are_such_blocks():
    assert len(BLOCKS) >= 2
