"""Looks at a server from behind: rows of its store, whatever engine keeps them, and questions that tests ask again and again. Tests write
SQL that both engines understand, with ? for parameters and x'..' for bytes; nothing else opens a store."""
import contextlib
import json
import os
import re
import sqlite3
import subprocess
import urllib.parse
import uuid

import psycopg2
import psycopg2.extensions

import harness


class SqliteStore:
    """The file itself."""

    def __init__(self, url):
        self.connection = sqlite3.connect(url.removeprefix("sqlite:"), timeout=30, isolation_level=None)

    def close(self):
        self.connection.close()

    def begin(self):
        self.connection.execute("BEGIN")

    def rows(self, sql, *args):
        return self.connection.execute(sql, args).fetchall()

    def change(self, sql, *args):
        return self.connection.execute(sql, args).rowcount

    def script(self, sql):
        self.connection.executescript(sql)

    def columns(self):
        tables = self.rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
        return {table: [(c[1], c[2]) for c in self.rows(f"PRAGMA table_info({table})")] for table, in tables}

    def damage(self, table, column, value):
        self.rows("PRAGMA ignore_check_constraints=1")
        return self.change(f"UPDATE OR IGNORE {table} SET {column} = ?", value)

    def find_damage(self):
        return [what for what, in self.rows("PRAGMA integrity_check") if what != "ok"]


class PostgresStore:
    """The tables of a shard; a store of the tests has one, unless they are about several."""

    def __init__(self, url, shard=0):
        whole = psycopg2.extensions.new_type((1700,), "WHOLE", lambda value, _: value if value is None else int(value))  # sum() of integers
        self.connection = psycopg2.connect(url, options=f"-c search_path=pawl_{shard},pawl,public -c lock_timeout=30s")
        self.connection.autocommit = True
        psycopg2.extensions.register_type(whole, self.connection)

    def close(self):
        self.connection.close()

    def begin(self):
        self.connection.autocommit = False
        self.connection.set_session(isolation_level="REPEATABLE READ")

    def execute(self, cursor, sql, args):
        sql = re.sub(r"\bx'([0-9a-fA-F]*)'", r"'\\x\1'::bytea", sql.replace("%", "%%").replace("?", "%s"))
        cursor.execute(sql, args)

    def rows(self, sql, *args):
        with self.connection.cursor() as cursor:
            self.execute(cursor, sql, args)
            return [tuple(bytes(v) if isinstance(v, memoryview) else v for v in row) for row in cursor.fetchall()]

    def change(self, sql, *args):
        with self.connection.cursor() as cursor:
            self.execute(cursor, sql, args)
            return cursor.rowcount

    def script(self, sql):
        self.change(sql)

    def columns(self):
        types = {"bigint": "INTEGER", "text": "TEXT", "bytea": "BLOB"}
        found = self.rows("SELECT c.table_name, c.column_name, c.data_type FROM information_schema.columns c JOIN information_schema.tables t"
                          " USING (table_schema, table_name) WHERE c.table_schema = 'pawl_0' AND t.table_type = 'BASE TABLE' ORDER BY c.table_name, c.ordinal_position")
        return {table: [(column, types[kind]) for t, column, kind in found if t == table] for table in dict.fromkeys(t for t, _, _ in found)}

    def damage(self, table, column, value):
        for name, in self.rows("SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid = ?::regclass", table):
            self.script(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        return sum(self.damage_row(table, column, value, place) for place, in self.rows(f"SELECT ctid FROM {table}"))

    def damage_row(self, table, column, value, place):
        try:
            return self.change(f"UPDATE {table} SET {column} = ? WHERE ctid = ?", value, place)
        except (psycopg2.errors.UniqueViolation, psycopg2.errors.NumericValueOutOfRange):  # of a sum in an index
            return 0

    def find_damage(self):
        self.script("CREATE EXTENSION IF NOT EXISTS amcheck WITH SCHEMA public")
        self.rows("SELECT bt_index_check(indexrelid, true) FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE c.relnamespace = 'pawl_0'::regnamespace")
        return []  # it fails at the first that it finds


@contextlib.contextmanager
def opened(db):
    """The store of this file, also while a server has it open."""
    url = harness.stores.url(db)
    store = (SqliteStore if url.startswith("sqlite:") else PostgresStore)(url)
    try:
        yield store
    finally:
        store.close()


def rows(db, sql, *args):
    """What a query finds."""
    with opened(db) as store:
        return store.rows(sql, *args)


def change(db, sql, *args):
    """One statement past the server, if one runs, and how many rows it has changed."""
    with opened(db) as store:
        return store.change(sql, *args)


def write(db, sql):
    """Statements past the server, if one runs."""
    with opened(db) as store:
        store.script(sql)


def contents(db):
    """Every row of every table, as bytes, by table."""
    with opened(db) as store:
        return {table: repr(store.rows(f"SELECT * FROM {table}")).encode() for table in store.columns()}


def columns(db):
    """{table: [(column, type)]}, with SQLite's names of the types."""
    with opened(db) as store:
        return store.columns()


def damage(db, table, column, value):
    """Sets the column in every row where no unique index forbids it, and says how many those are."""
    with opened(db) as store:
        return store.damage(table, column, value)


def assert_engine_finds_no_damage(db):
    with opened(db) as store:
        assert store.find_damage() == []


# Before the counters in the rows of tenants are changed past the server: its log of counters is newer than they are.
FOLD_COUNTERS = """UPDATE tenants SET active_runs = c.active_runs, queued_runs = c.queued_runs, rate_full_at = c.rate_full_at
    FROM logged_counters AS c WHERE c.tenant = tenants.num; DELETE FROM counter_log;"""


def run_id_text(blob):
    return str(uuid.UUID(bytes=blob))


def all_runs(api, tenant):
    """Every run of the tenant, over all pages of the list."""
    items, cursor = [], ""
    while True:
        r = api.get(f"/api/v1/runs?limit=200{cursor}", tenant=tenant)
        assert r.status == 200, r
        items += r.json["items"]
        if not r.json["next_cursor"]:
            return items
        cursor = "&cursor=" + urllib.parse.quote(r.json["next_cursor"])


def key_path(key):
    return "/api/v1/idempotency-keys/" + urllib.parse.quote(key, safe="")


def record(api, tenant, key):
    """The inspector's view of a key; None when there is no record."""
    r = api.get(key_path(key), tenant=tenant)
    if r.status == 404:
        assert r.code == "IDEMPOTENCY_KEY_NOT_FOUND", r
        return None
    assert r.status == 200, r
    return r.json


def active_runs(api, tenant):
    r = api.get(f"/api/v1/tenants/{tenant}", tenant=tenant)
    assert r.status == 200, r
    return r.json["active_runs"]


def assert_healthy(api):
    """The doctor finds nothing, wherever it looks. A large store on a busy machine takes it more than a minute."""
    r = harness.Client(api.port, api.headers, timeout=600).get("/api/v1/doctor")
    assert r.status == 200 and r.json["ok"], r.json
    assert {c["name"] for c in r.json["checks"]} == {"file", "objects", "slots", "queue", "runs", "jobs", "approvals", "entities", "webhooks", "idempotency", "indexes", "audit"}


def doctor_on_file(db):
    """The same from the command line, on the store of a server that does not run."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PAWL_")}
    done = subprocess.run([harness.PAWL, "doctor", "--json", "--store", harness.stores.url(db)], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done
    assert json.loads(done.stdout)["ok"], done.stdout
