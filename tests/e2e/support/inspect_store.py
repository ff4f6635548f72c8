"""Looks at a server from behind: rows of its file, and questions that tests ask again and again."""
import json
import os
import sqlite3
import subprocess
import urllib.parse
import uuid

import harness


def rows(db, sql, *args):
    """Reads the data file directly; also while a server has it open."""
    conn = sqlite3.connect(db, timeout=30)
    try:
        return conn.execute(sql, args).fetchall()
    finally:
        conn.close()


# Before the counters in the rows of tenants are changed past the server: its log of counters is newer than they are.
FOLD_COUNTERS = """UPDATE tenants SET active_runs = c.active_runs, queued_runs = c.queued_runs, rate_full_at = c.rate_full_at
    FROM logged_counters AS c WHERE c.tenant = tenants.num; DELETE FROM counter_log;"""


def write(db, sql):
    """Past the server, if one runs."""
    conn = sqlite3.connect(db, timeout=30)
    conn.executescript(sql)
    conn.close()


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
    """The same from the command line, on the file of a server that does not run."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PAWL_")}
    done = subprocess.run([harness.PAWL, "doctor", "--json", "--store", harness.store_url(db)], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done
    assert json.loads(done.stdout)["ok"], done.stdout
