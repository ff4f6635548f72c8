"""The data file: whose it is, who may open it, and a write-ahead log that stays bounded."""
import contextlib
import os
import sqlite3

import pytest

import harness
from checks import assert_alive, assert_problem
from cli import pawl

pytestmark = pytest.mark.sqlite("the file, its log and its lock")

MIB = 1 << 20


def serve(folder, store="pawl.db", **kw):
    return pawl("serve", "--dev", "--listen", "127.0.0.1:0", "--store", f"sqlite:{store}", cwd=folder, **kw)


def refused(folder, store="pawl.db"):
    """The words of a server that does not start; the file and its folder are as before."""
    path = folder / store
    before = path.read_bytes() if path.is_file() else None
    r = serve(folder, store)
    assert r.code == 1 and r.out == "" and r.err.startswith("pawl: ") or "\npawl: " in r.err, r
    assert (path.read_bytes() if path.is_file() else None) == before
    assert not {p.name for p in folder.iterdir()} - {store, f"{store}.lock"}, "no log, no journal"
    return r.err


def sql(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def made(tmp_path):
    """A file that pawl made, at rest."""
    server = harness.Server(tmp_path).start()
    server.client().workflow("t")
    assert server.client().start("t").status == 200
    assert server.stop() == 0
    server.stderr_path.unlink()
    return tmp_path


# --- whose file ---

def test_a_newer_file_is_refused_with_what_to_do(made):
    sql(made / "pawl.db", "PRAGMA user_version=99")
    said = refused(made)
    assert "newer pawl" in said and "99" in said and "backup" in said


def test_a_file_of_this_version_opens_again(made):
    server = harness.Server(made).start()
    try:
        assert len(server.client().get("/api/v1/runs", tenant="t").json["items"]) == 1
    finally:
        server.close()


@pytest.mark.parametrize("statements", [
    ["CREATE TABLE theirs (x)", "INSERT INTO theirs VALUES (1)"],
    ["PRAGMA application_id=1234"],
    ["PRAGMA user_version=1", "CREATE TABLE runs (id)"],
    ["PRAGMA journal_mode=WAL", "CREATE TABLE theirs (x)"],
])
def test_another_programs_database_is_refused_and_unchanged(tmp_path, statements):
    with contextlib.closing(sqlite3.connect(tmp_path / "pawl.db", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement).fetchall()
    assert "another program" in refused(tmp_path)


@pytest.mark.parametrize("content", [pytest.param(b"This is a diary, not a database.\n" * 50, id="text"), pytest.param(b"hello", id="short"),
                                     pytest.param(b"SQLite format 3\0" + b"\xff" * 5000, id="head_only"), pytest.param(os.urandom(8192), id="noise")])
def test_a_file_that_is_no_database_is_refused_and_unchanged(tmp_path, content):
    (tmp_path / "pawl.db").write_bytes(content)
    assert "pawl.db" in refused(tmp_path)


def test_an_empty_file_is_a_new_store(tmp_path):
    (tmp_path / "pawl.db").touch()
    server = harness.Server(tmp_path).start()
    try:
        server.client().workflow("t")
    finally:
        server.close()


def test_a_folder_is_no_store(tmp_path):
    (tmp_path / "pawl.db").mkdir()
    assert "pawl.db" in refused(tmp_path)


@pytest.mark.parametrize("url", ["postgres://127.0.0.1/x", "mysql:x", "pawl.db", "sqlite:", ""])
def test_a_store_of_another_kind_is_refused(tmp_path, url):
    r = pawl("serve", "--dev", "--listen", "127.0.0.1:0", "--store", url, cwd=tmp_path)
    assert r.code in (1, 2) and r.err and r.out == "" and not list(tmp_path.iterdir()), r


# --- one server ---

@pytest.mark.parametrize("by", ["name", "link", "other_path"])
def test_a_second_server_on_the_file_says_so_and_exits_1(made, by):
    server = harness.Server(made).start()
    try:
        (made / "link.db").symlink_to("pawl.db")
        (made / "sub").mkdir()
        name = {"name": "pawl.db", "link": "link.db", "other_path": "sub/../pawl.db"}[by]
        r = serve(made, name)
        assert r.code == 1 and "in use by another pawl" in r.err and str(server.process.pid) in r.err, r
        assert_alive(server.client())
        assert server.client().start("t").status == 200
    finally:
        server.close()


def test_a_killed_server_leaves_no_lock(made):
    server = harness.Server(made).start()
    server.kill()
    server.start()
    try:
        assert server.client().start("t").status == 200
    finally:
        server.close()


# --- the log ---

@contextlib.contextmanager
def stuck_reader(path):
    """Somebody with a shell who began to read and went to lunch."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM runs").fetchall()
        yield
    finally:
        connection.close()


@pytest.mark.parametrize("connections", [1, 4])
def test_the_log_stays_bounded_under_a_stuck_reader(connections):
    """Past the limit writes are refused instead of growing it, and reads go on; once the reader is gone writes work again."""
    with harness.server("--wal-max-mib", "1") as s:
        api = s.client()
        api.workflow("t")
        first = api.start("t", body={"input": 1}, key="first").json["run_id"]
        wal = s.db.with_name("pawl.db-wal")
        with stuck_reader(s.db):
            sizes, refusals = [], []

            def load(i):
                client = s.client()
                for n in range(5000):
                    r = client.start("t", body={"input": "x" * 2000}, key=f"load-{i}-{n}")
                    sizes.append(wal.stat().st_size)
                    if r.status != 200:
                        refusals.append(r)
                        return

            harness.together(connections, load)
            assert len(refusals) == connections
            for r in refusals:
                assert_problem(r, 503, "STORE_BUSY", retryable=True)
            assert max(sizes) < 4 * MIB, max(sizes)
            ready = api.get("/readyz")
            assert ready.status == 503 and ready.json["status"] == "not_ready" and ready.json["dependencies"]["store"]["status"] == "failing"
            assert int(ready.header("Retry-After")) >= 1
            assert_alive(api)
            assert api.get(f"/api/v1/runs/{first}", tenant="t").status == 200
            assert_problem(api.start("t", key="later"), 503, "STORE_BUSY")
        r = harness.wait_until(lambda: (r := api.start("t", key="later")).status == 200 and r, "writes work again")
        assert r.json["created"] is True, "the refused key was not remembered"
        again = api.start("t", body={"input": 1}, key="first")
        assert again.json["run_id"] == first and again.json["created"] is False
        harness.wait_until(lambda: api.get("/readyz").status == 200, "it is ready again")
        assert api.get("/api/v1/doctor").json["ok"] is True


@pytest.mark.parametrize("connections", [1, 4])
def test_the_log_is_folded_back_under_load(connections):
    """Without a reader in the way it never needs to grow far past its limit, and is gone after an orderly end."""
    with harness.server("--wal-max-mib", "1") as s:
        s.client().workflow("t")
        wal, sizes = s.db.with_name("pawl.db-wal"), []

        def load(i):
            client = s.client()
            for n in range(600 // connections):
                assert client.start("t", body={"input": "x" * 20_000}).status == 200
                sizes.append(wal.stat().st_size)

        harness.together(connections, load)
        assert 0 < max(sizes) < 8 * MIB, max(sizes)
        assert s.stop() == 0
        assert not wal.exists()
