"""Files of earlier versions are taken over with everything that waits in them."""
import sqlite3

import pytest

import harness
import sse
from harness import wait_until
from inspect_store import assert_healthy, doctor_on_file

pytestmark = pytest.mark.sqlite("files of versions that had no PostgreSQL")

FILES = harness.ROOT / "tests/e2e/support/files"
SCHEMA = harness.ROOT / "src/store/schema"
APPLICATION_ID = 0x7061776C  # "pawl"

# What the file of 0.1.0 holds. Tenant acme: limit 2, two active runs (one handed out under a lease), three queued. Tenant ops: an
# approval, a delayed run, a sleep that is due, an entity with three signals, a schedule.
ACTIVE = ["01a1e055-f726-7800-a924-1807fde9a51e", "01a1e055-f72b-78d4-aa11-8060c5de8c40"]
QUEUED = ["01a1e055-f72f-73ce-a9e5-b2505e9a4205", "01a1e055-f731-7056-9389-eef09f60d2c3", "01a1e055-f732-7087-bffd-238689c92eed"]
LEASED = {"job_id": "01a1e055-f726-7800-8000-0075453dc303", "lease_token": "1.07afacd222c5c7d53b754554478adf20"}
PENDING_JOB = "01a1e055-f72b-78d4-8000-005756f99288"
APPROVAL, APPROVAL_RUN = "01a1e055-f734-783d-8000-004d61fe9896", "01a1e055-f734-783d-94df-c44493df04c9"
DELAYED, SLEEPING = "01a1e055-f737-7999-9389-c43033a19da3", "01a1e055-f738-7d6c-9543-65b7fe601fd6"


def make_store(path, version, rows):
    """A store as the version with that schema left it."""
    db = sqlite3.connect(path)
    db.create_function("pawl_key_hash", -1, lambda *_: 0)  # for rows of schemas before: there are none here
    for migration in sorted(SCHEMA.glob("*.sqlite.sql"))[:version]:
        db.executescript(migration.read_text())
    db.execute('DELETE FROM "indexed"')  # the rows bring their own
    db.executescript((FILES / rows).read_text())
    db.execute(f"PRAGMA user_version = {version}")
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.commit()
    db.close()


@pytest.fixture
def taken_over(tmp_path):
    """A server on the file of 0.1.0."""
    server = harness.Server(tmp_path)
    make_store(server.db, 5, "store-0.1.0.sql")
    server.start()
    yield server
    server.close()


def claim(api, queue, tenant):
    body = {"worker_id": "w", "queues": [queue], "max": 10}
    return wait_until(lambda: api.post("/api/v1/jobs/claim", body, tenant=tenant).json["jobs"], f"a job of queue {queue}")


def status(api, run, tenant):
    return api.get(f"/api/v1/runs/{run}", tenant=tenant).json["status"]


def test_keys_of_0_1_0_still_name_their_runs(taken_over):
    api = taken_over.client()
    for i, run in enumerate(ACTIVE + QUEUED):
        again = api.post("/api/v1/workflows/order/runs", {"input": {"n": i}}, key=f"order-{i}", tenant="acme")
        assert (again.status, again.json["run_id"], again.json["created"]) == (200, run, False)
        other = api.post("/api/v1/workflows/order/runs", {"input": {"n": 99}}, key=f"order-{i}", tenant="acme")
        assert other.code == "IDEMPOTENCY_KEY_REUSED"
    assert_healthy(api)


def test_runs_that_0_1_0_left_waiting_go_on_within_the_limit(taken_over):
    api = taken_over.client()
    late = api.post(f"/api/v1/jobs/{LEASED['job_id']}/complete", {"lease_token": LEASED["lease_token"]}, tenant="acme")
    assert late.code == "LEASE_LOST", "tokens of 0.1.0 could be computed by others"
    ended = set()
    while len(ended) < 5:
        shown = api.get("/api/v1/tenants/acme", tenant="acme").json
        assert shown["active_runs"] <= 2
        for job in claim(api, "cards", "acme"):
            r = api.post(f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": job["lease_token"], "output": 1}, tenant="acme")
            assert r.status == 200, r
        ended = {run for run in ACTIVE + QUEUED if status(api, run, "acme") == "succeeded"}
    assert_healthy(api)


def test_approvals_timers_and_entities_of_0_1_0_go_on(taken_over):
    api = taken_over.client()
    for _ in range(2):
        r = api.post(f"/api/v1/approvals/{APPROVAL}/approve", {}, tenant="ops", headers={"X-Actor": "ann"})
        assert r.status == 200, r
    for job in claim(api, "default", "ops"):
        assert job["run_id"] == APPROVAL_RUN
        assert api.post(f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": job["lease_token"]}, tenant="ops").status == 200
    assert status(api, APPROVAL_RUN, "ops") == "succeeded"
    wait_until(lambda: status(api, SLEEPING, "ops") == "succeeded", "the sleep ends")
    assert status(api, DELAYED, "ops") == "queued"
    call, = claim(api, "accounts", "ops")
    assert [s["payload"]["n"] for s in call["input"]["signals"]] == [0, 1, 2]
    done = {"lease_token": call["lease_token"], "output": {"state": {"sum": 3}}}
    assert api.post(f"/api/v1/jobs/{call['job_id']}/complete", done, tenant="ops").status == 200
    assert api.get("/api/v1/entities/account/a1", tenant="ops").json["state"] == {"sum": 3}
    assert len(api.get("/api/v1/schedules/nightly", tenant="ops").json["next_times"]) == 5
    assert_healthy(api)


def test_a_store_of_0_1_0_is_healthy_after_the_takeover(taken_over):
    taken_over.kill()
    doctor_on_file(taken_over.db)


def test_events_of_0_1_0_are_published_under_their_names(tmp_path):
    """Rows of earlier versions say it in their data, today's in columns of their own."""
    server = harness.Server(tmp_path)
    make_store(server.db, 5, "store-0.1.0.sql")
    job, at = LEASED["job_id"], 1794765092999
    with sqlite3.connect(server.db) as db:
        (run,) = db.execute("SELECT run FROM jobs WHERE id = ?", (bytes.fromhex(job.replace("-", "")),)).fetchone()
        db.execute("INSERT INTO events VALUES (?, 4, ?, 'job.approved', ?)", (run, at, f'{{"job_id":"{job}","step":"charge","attempt":1}}'))
        db.execute("INSERT INTO events VALUES (?, 5, ?, 'event.emitted', ?)", (run, at, '{"event":"order.\\u0070aid","payload":{"event":"x"}}'))
        db.execute("INSERT INTO feed SELECT MAX(num) + 1, 1, ?, 4, 5, ? FROM feed", (run, at))
    server.start()
    try:
        with sse.Stream(server.port, "/api/v1/events", "acme", "1-0") as s:
            while not any(kind == "order.paid" for _, kind, _ in s.events):
                s.read_one()
        approved, = (d for _, kind, d in s.events if kind == "job.approved")
        assert approved["id"] == f"approval:{job}"
        created = [d["data"] for _, kind, d in s.events if kind == "run.created"]
        assert len(created) == 5 and all(d["workflow_id"] == "order" for d in created)
        with sqlite3.connect(server.db) as db:
            created = "SELECT job FROM events WHERE type = 'job.created' AND data LIKE ?"
            assert db.execute(created, (f"%{PENDING_JOB}%",)).fetchall() == [(1,)], "it is offered on the bus"
    finally:
        server.close()
