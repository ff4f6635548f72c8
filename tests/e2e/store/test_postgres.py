"""A store on PostgreSQL: made on an empty database, owned by one server, kept through a crash of either side."""
import contextlib
import http.client
import sqlite3
import sys
import threading
import uuid

import pytest

from harness import ROOT, Client, Server, server, wait_until
from inspect_store import assert_healthy

sys.path.append(str(ROOT / "tests/tools"))
import with_postgres  # noqa: E402


@pytest.fixture(scope="module")
def postgres():
    with with_postgres.start() as cluster:
        yield cluster


@contextlib.contextmanager
def server_on(postgres):
    """A server with a schema of its own, empty at first."""
    with server(store=f"{postgres.url}&schema=e{uuid.uuid4().hex[:20]}") as s:
        yield s


def test_an_empty_database_is_made_a_store(postgres):
    with server_on(postgres) as s:
        api = s.client()
        tenant = api.tenant(max_concurrent_runs=1)
        api.workflow(tenant)
        assert api.start(tenant, key="k").json["created"] is True
        assert api.start(tenant, key="k").json["created"] is False
        assert api.start(tenant, key="other").code == "MAX_CONCURRENT_RUNS"
        assert api.work(tenant)
        ready = api.get("/readyz").json
        assert ready["dependencies"]["store"]["engine"] == "PostgreSQL"
        assert "migrated the store" in s.log()


def test_of_two_servers_with_one_name_the_younger_serves_and_the_older_stops(postgres, tmp_path):
    with server_on(postgres) as s:
        api = s.client()
        tenant = api.tenant()
        api.workflow(tenant)
        assert api.start(tenant, key="k").json["created"] is True
        second = Server(tmp_path, store=s.store)
        second.start()
        assert s.ended() == 1
        assert "Another process has joined the cluster as" in s.log()
        assert second.client().start(tenant, key="k").json["created"] is False
        second.close()


def test_what_was_acknowledged_survives_a_kill_of_the_server(postgres):
    with server_on(postgres) as s:
        api = s.client()
        tenant = api.tenant()
        api.workflow(tenant)
        runs = {key: api.start(tenant, key=key).json["run_id"] for key in map(str, range(20))}
        s.kill()
        s.start()
        api = s.client()
        for key, run in runs.items():
            again = api.start(tenant, key=key)
            assert (again.json["run_id"], again.json["created"]) == (run, False)
        assert len(api.get("/api/v1/runs?limit=100", tenant=tenant).json["items"]) == len(runs)


def start_until_stopped(s, tenant, stopping, acknowledged):
    """One start after another, each repeated with its key until it is answered."""
    for n in range(1000000):
        key = f"{threading.get_ident()}-{n}"
        while True:
            if stopping.is_set():
                return
            with contextlib.suppress(OSError, http.client.HTTPException):  # the server has stopped
                r = Client(s.port).start(tenant, key=key)
                if r.status == 200:
                    acknowledged[key] = r.json["run_id"]
                    break
                assert r.status == 503 and r.json["retryable"], r


@contextlib.contextmanager
def starting(s, tenant, threads=4):
    """Starts go on meanwhile; {key: run} of all that were acknowledged."""
    stopping, acknowledged = threading.Event(), {}
    threads = [threading.Thread(target=start_until_stopped, args=(s, tenant, stopping, acknowledged)) for _ in range(threads)]
    for t in threads:
        t.start()
    try:
        yield acknowledged
    finally:
        stopping.set()
        for t in threads:
            t.join()


def more_than(acknowledged, count):
    before = len(acknowledged)
    wait_until(lambda: len(acknowledged) > before + count, f"{count} more starts")


def assert_all_there_once(api, tenant, acknowledged):
    for key, run in acknowledged.items():
        again = api.start(tenant, key=key)
        assert (again.json["run_id"], again.json["created"]) == (run, False)
    assert len(set(acknowledged.values())) == len(acknowledged)
    assert api.get(f"/api/v1/tenants/{tenant}", tenant=tenant).json["active_runs"] >= len(acknowledged)
    assert_healthy(api)


def test_a_restart_of_the_database_loses_nothing_and_doubles_nothing(postgres):
    with server_on(postgres) as s:
        tenant = s.client().tenant()
        s.client().workflow(tenant)
        with starting(s, tenant) as acknowledged:
            for _ in range(2):
                more_than(acknowledged, 20)
                postgres.restart()
                more_than(acknowledged, 20)
        assert_all_there_once(s.client(), tenant, acknowledged)


def test_a_crash_of_the_database_loses_nothing_that_was_acknowledged(postgres):
    """It may lose commits that nobody was told of: then the server stops, and goes on from what is there."""
    with server_on(postgres) as s:
        tenant = s.client().tenant()
        s.client().workflow(tenant)
        with starting(s, tenant) as acknowledged:
            for _ in range(5):
                more_than(acknowledged, 20)
                postgres.crash()
                before = len(acknowledged)
                wait_until(lambda: len(acknowledged) > before + 20 or s.process.poll() is not None, "starts, or the server stops")
                if s.process.poll() is not None:
                    assert s.ended() == 1 and "PostgreSQL has lost" in s.log()
                    s.start()
        assert_all_there_once(s.client(), tenant, acknowledged)


TYPES = {"INTEGER": "bigint", "TEXT": "text", "BLOB": "bytea"}


def columns_of_file(file):
    """{table: {column: (type, may be null)}}, and the columns of each index."""
    with contextlib.closing(sqlite3.connect(file)) as db:
        names = [n for n, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        tables = {n: {c[1]: (TYPES[c[2]], not c[3] and not c[5]) for c in db.execute(f"PRAGMA table_info({n})")} for n in names}
        indexes = {n for n, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")}
        return tables, indexes


def columns_of_schema(postgres, schema):
    tables = {}
    for table, column, kind, null in postgres.rows(
            "SELECT c.table_name, c.column_name, c.data_type, c.is_nullable FROM information_schema.columns c"
            f" JOIN information_schema.tables t USING (table_schema, table_name) WHERE c.table_schema = '{schema}'"
            " AND t.table_type = 'BASE TABLE'"):
        tables.setdefault(table, {})[column] = (kind, null == "YES")
    indexes = {n for n, in postgres.rows(f"SELECT indexname FROM pg_indexes WHERE schemaname = '{schema}'")}
    return tables, indexes


def test_both_engines_have_the_same_tables(postgres, tmp_path):
    with server_on(postgres) as s:
        theirs, their_indexes = columns_of_schema(postgres, s.store.split("schema=")[1] + "_0")
    with server(store=f"sqlite:{tmp_path}/pawl.db"):
        ours, our_indexes = columns_of_file(tmp_path / "pawl.db")
    assert theirs == ours
    assert our_indexes <= their_indexes


def test_a_backup_is_left_to_the_databases_own_tools(postgres):
    with server_on(postgres) as s:
        r = s.client().get("/api/v1/backup")
        assert r.status == 400 and "own tools" in r.json["detail"], r
