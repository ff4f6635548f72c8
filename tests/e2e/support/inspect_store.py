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
from stores import SEVERAL_NODES


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

    def script(self, sql, tenant=None):
        """All tenants are in the one file."""
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
    """The tables of one shard, or of all: then a query sees the rows of all as if they were in one table (every_shard.py), and a change
    is made in each, because a row is in one of them only."""

    def __init__(self, url, shard=None):
        whole = psycopg2.extensions.new_type((1700,), "WHOLE", lambda value, _: value if value is None else int(value))  # sum() of integers
        # To compile a query of all shards takes seconds, to run it milliseconds.
        self.connection = psycopg2.connect(url, options="-c lock_timeout=30s -c jit=off")
        self.connection.autocommit = True
        psycopg2.extensions.register_type(whole, self.connection)
        self.shards = [f"pawl_{n}" for n, in ([(shard,)] if shard is not None else self.rows("SELECT shard FROM pawl.shards ORDER BY shard"))]
        self.read_in = self.shards[0] if len(self.shards) == 1 else "every_shard,pawl_0"  # functions of the tables are in each shard
        self.look_in(self.read_in)

    def close(self):
        self.connection.close()

    def begin(self):
        self.connection.autocommit = False
        self.connection.set_session(isolation_level="REPEATABLE READ")

    def look_in(self, schemas):
        with self.connection.cursor() as cursor:
            cursor.execute(f"SET search_path = {schemas},pawl,public")

    @contextlib.contextmanager
    def each_shard(self, which=None):
        """What is done here is about the tables of one shard after the other."""
        try:
            yield map(self.look_in, which or self.shards)
        finally:
            self.look_in(self.read_in)

    def execute(self, cursor, sql, args):
        sql = re.sub(r"\bx'([0-9a-fA-F]*)'", r"'\\x\1'::bytea", sql.replace("%", "%%").replace("?", "%s"))
        cursor.execute(sql, args)

    def rows(self, sql, *args):
        with self.connection.cursor() as cursor:
            self.execute(cursor, sql, args)
            return [tuple(bytes(v) if isinstance(v, memoryview) else v for v in row) for row in cursor.fetchall()]

    def change_here(self, sql, *args):
        with self.connection.cursor() as cursor:
            self.execute(cursor, sql, args)
            return cursor.rowcount

    def change(self, sql, *args):
        with self.each_shard() as shards:
            return sum(self.change_here(sql, *args) for _ in shards)

    def script(self, sql, tenant=None):
        with self.each_shard(self.shards_with(tenant)) as shards:
            for _ in shards:
                self.change_here(sql)

    def shards_with(self, tenant):
        """Of any tenant: all."""
        with self.each_shard() as shards:
            return [name for name, _ in zip(self.shards, shards) if tenant is None or self.rows("SELECT 1 FROM tenants WHERE id = ?", tenant)]

    def columns(self):
        types = {"bigint": "INTEGER", "text": "TEXT", "bytea": "BLOB"}
        found = self.rows("SELECT c.table_name, c.column_name, c.data_type FROM information_schema.columns c JOIN information_schema.tables t"
                          " USING (table_schema, table_name) WHERE c.table_schema = 'pawl_0' AND t.table_type = 'BASE TABLE' ORDER BY c.table_name, c.ordinal_position")
        return {table: [(column, types[kind]) for t, column, kind in found if t == table] for table in dict.fromkeys(t for t, _, _ in found)}

    def damage(self, table, column, value):
        with self.each_shard() as shards:
            return sum(self.damage_here(table, column, value) for _ in shards)

    def damage_here(self, table, column, value):
        for name, in self.rows("SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid = ?::regclass", table):
            self.change_here(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        return sum(self.damage_row(table, column, value, place) for place, in self.rows(f"SELECT ctid FROM {table}"))

    def damage_row(self, table, column, value, place):
        try:
            return self.change_here(f"UPDATE {table} SET {column} = ? WHERE ctid = ?", value, place)
        except (psycopg2.errors.UniqueViolation, psycopg2.errors.NumericValueOutOfRange):  # of a sum in an index
            return 0

    def find_damage(self):
        self.change_here("CREATE EXTENSION IF NOT EXISTS amcheck WITH SCHEMA public")
        for schema in self.shards:
            self.rows("SELECT bt_index_check(indexrelid, true) FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE c.relnamespace = ?::regnamespace", schema)
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


def write(db, sql, tenant=None):
    """Statements past the server, if one runs. If they are about one tenant: where that one is."""
    with opened(db) as store:
        store.script(sql, tenant)


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


# Before the counters in the rows of tenants are changed past the server, or packs of the feed are removed: the log of counters, which is
# in these packs, is newer than the rows.
FOLD_COUNTERS = """UPDATE tenants SET active_runs = c.active_runs, queued_runs = c.queued_runs, rate_full_at = c.rate_full_at
    FROM logged_counters AS c WHERE c.tenant = tenants.num;
    UPDATE indexed SET through = (SELECT COALESCE(max(num), 0) FROM (SELECT max(num) AS num FROM feed_packs
        UNION ALL SELECT through FROM feed_marks WHERE name = 'swept') AS ends) WHERE name = 'counters';"""


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
    """The same from the command line, on the store of a server that does not run. The leases of nodes that were killed must be over."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PAWL_")}
    command = [harness.PAWL, "doctor", "--json", "--store", harness.stores.url(db)]

    def ask():
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
        return None if SEVERAL_NODES and "in use by another pawl" in done.stderr else done

    done = harness.wait_until(ask, "no lease is left")
    assert done.returncode == 0, done
    assert json.loads(done.stdout)["ok"], done.stdout
