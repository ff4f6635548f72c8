"""A disk that is full, that cannot sync, or that does not answer: nothing is acknowledged that is not kept."""
import contextlib
import http.client
import json
import select
import signal
import sqlite3
import threading

import pytest

import faults
import wire
from harness import PATIENCE_S, together, wait_until
from inspect_store import active_runs, all_runs, assert_healthy, record, rows

pytestmark = pytest.mark.sqlite("the disk under the file fails")

RUNS = "/api/v1/workflows/hold/runs"


@pytest.fixture
def faulty(fault_library):
    with faults.server(fault_library) as (s, disk):
        s.client().workflow("t")
        yield s, disk


def assert_unavailable(r, code):
    assert r.status == 503 and r.code == code and r.json["retryable"] is True and int(r.header("Retry-After")) >= 1, r


# --- full ---


def test_a_full_disk_is_said_and_nothing_is_kept_until_there_is_space(faulty):
    s, disk = faulty
    api = s.client()
    known = api.start("t", key="known").json["run_id"]
    with disk.failing("full"):
        for r in together(32, lambda i: api.start("t", key=f"k-{i % 4}")):
            assert_unavailable(r, "STORE_FULL")
        assert_unavailable(api.post("/api/v1/jobs/claim", {"worker_id": "w"}, tenant="t"), "STORE_FULL")
        assert_unavailable(api.put("/api/v1/tenants/other", {}, tenant="t"), "STORE_FULL")
        # What needs no space goes on.
        assert api.get("/healthz").status == 200 and api.get(f"/api/v1/runs/{known}", tenant="t").status == 200
        assert api.start("t", key="known").json["run_id"] == known
        assert disk.hits() > 0
    assert [record(api, "t", f"k-{i}") for i in range(4)] == [None] * 4
    assert len(all_runs(api, "t")) == 1 and active_runs(api, "t") == 1
    replies = together(32, lambda i: api.start("t", key=f"k-{i % 4}"))
    assert {r.status for r in replies} == {200} and sum(r.json["created"] for r in replies) == 4
    assert len(all_runs(api, "t")) == 5
    assert_healthy(api)


def test_a_disk_that_is_full_now_and_then_keeps_exactly_what_was_acknowledged(faulty):
    s, disk = faulty
    api = s.client()
    acknowledged = {}
    for n in range(30):
        disk.says("full" if n % 3 == 1 else "well")
        for i, r in enumerate(together(8, lambda i: api.start("t", key=f"k-{n}-{i}"))):
            assert r.status in (200, 503), r
            if r.status == 200:
                acknowledged[f"k-{n}-{i}"] = r.json["run_id"]
    disk.says("well")
    assert len(acknowledged) == 160
    assert {r["id"] for r in all_runs(api, "t")} == set(acknowledged.values())
    assert active_runs(api, "t") == 160
    assert_healthy(api)


def one_task(name):
    return {"steps": [{"name": name, "type": "task", "handler": "noop"}]}


def refused_together(s, disk, tenant, definition):
    """A workflow and a start of it come in one batch, which meets a full disk: nothing of it is kept."""
    head = [("X-Tenant-ID", tenant), ("Content-Type", "application/json")]
    asked = [("PUT", "/api/v1/workflows/w", definition), ("POST", "/api/v1/workflows/w/runs", {"input": {}})]
    with stalled_writer(s, disk) as api:
        held = []
        for method, path, body in asked:
            held.append(wire.connect(s.port))
            held[-1].sendall(wire.request(method, path, head, json.dumps(body).encode()))
            # It has been read, and waits for the writer: another request, sent later, has been answered.
            assert api.get("/healthz").status == 200
        disk.says("full")
        replies = [wire.answer(sock) for sock in held]
    for sock in held:
        sock.close()
    assert_unavailable(replies[0], "STORE_FULL")
    assert replies[1].status in (404, 503), replies


def test_a_definition_that_was_never_committed_is_never_run(faulty):
    s, disk = faulty
    refused_together(s, disk, "t", one_task("gone"))
    api = s.client()
    assert api.put("/api/v1/workflows/w", one_task("kept"), tenant="t").json["version"] == 1
    run = api.start("t", wid="w").json["run"]
    assert [step["name"] for step in run["steps"]] == ["kept"]


def test_a_tenant_never_runs_the_definition_of_one_that_was_rolled_back(faulty):
    s, disk = faulty
    refused_together(s, disk, "never", one_task("secret"))
    api = s.client()
    assert api.put("/api/v1/workflows/w", one_task("own"), tenant="new").json["version"] == 1
    run = api.start("new", wid="w").json["run"]
    assert [step["name"] for step in run["steps"]] == ["own"]
    assert not any(r["workflow_id"] == "w" for r in all_runs(api, "t"))


def test_a_timer_that_comes_due_on_a_full_disk_fires_when_there_is_space(faulty):
    s, disk = faulty
    api = s.client()
    api.workflow("t", wid="nap", steps=[{"name": "nap", "type": "sleep", "duration_ms": 200}])
    run = api.start("t", wid="nap").json["run_id"]
    with disk.failing("full"):
        wait_until(lambda: disk.hits() > 0, "the timer is tried")
        assert api.get(f"/api/v1/runs/{run}", tenant="t").json["status"] == "waiting"
    wait_until(lambda: api.get(f"/api/v1/runs/{run}", tenant="t").json["status"] == "succeeded", "the timer fires")
    events = [e["type"] for e in api.get(f"/api/v1/runs/{run}/events", tenant="t").json["items"]]
    assert events.count("job.succeeded") == 1 and events.count("run.succeeded") == 1


def test_a_server_does_not_start_on_a_full_disk_and_says_why(faulty):
    s, disk = faulty
    run = s.client().start("t", key="k").json["run_id"]
    s.kill()
    with disk.failing("full"):
        with pytest.raises(AssertionError, match="did not start"):
            s.db = s.folder / "new.db"
            s.start()
    assert s.ended() == 1 and "pawl: " in s.log()
    s.db = s.folder / "pawl.db"
    s.start()
    assert s.client().start("t", key="k").json["run_id"] == run


# --- unable to sync ---


def test_an_fsync_error_is_not_acknowledged_and_ends_the_server(faulty):
    s, disk = faulty
    api = s.client()
    kept = {f"kept-{n}": api.start("t", key=f"kept-{n}").json["run_id"] for n in range(5)}
    with disk.failing("fsync"):
        assert_unavailable(api.start("t", key="k"), "STORE_FAILED")
        assert s.ended() == 1
    s.start()
    api = s.client()
    for key, run in kept.items():
        assert api.start("t", key=key).json["run_id"] == run
    run = api.start("t", key="k").json["run_id"]
    again = api.start("t", key="k")
    assert again.json["run_id"] == run and again.json["created"] is False
    assert {r["id"] for r in all_runs(api, "t")} == {*kept.values(), run}
    assert_healthy(api)


def test_an_fsync_error_under_load_loses_nothing_that_was_acknowledged(faulty):
    s, disk = faulty
    acknowledged, refused, lock = {}, set(), threading.Lock()

    def load(api, i):
        for n in range(100000):
            key = f"k-{i}-{n}"
            try:
                r = api.start("t", key=key)
            except (OSError, http.client.HTTPException):
                r = None
            with lock:
                if r is not None and r.status == 200:
                    acknowledged[key] = r.json["run_id"]
                    continue
                refused.add(key)
            if r is None:
                return
            assert r.code in ("STORE_FAILED", "SHUTTING_DOWN"), r

    api = s.client()
    threads = [threading.Thread(target=load, args=(api, i), daemon=True) for i in range(8)]
    for t in threads:
        t.start()
    wait_until(lambda: len(acknowledged) > 200, "there is load")
    with disk.failing("fsync"):
        assert s.ended() == 1
        for t in threads:
            t.join()
    s.start()
    api = s.client()
    answers = {key: api.start("t", key=key) for key in refused}
    assert {r.status for r in answers.values()} == {200}
    for key, run in acknowledged.items():
        assert api.start("t", key=key).json["run_id"] == run
    assert {r["id"] for r in all_runs(api, "t")} == {*acknowledged.values(), *(r.json["run_id"] for r in answers.values())}
    assert len(all_runs(api, "t")) == len(acknowledged) + len(refused)
    assert_healthy(api)


def test_after_a_failed_sync_the_server_leaves_the_files_as_they_are(faulty):
    s, disk = faulty
    api = s.client()
    assert api.start("t", key="kept").status == 200
    with disk.failing("fsync"):
        assert_unavailable(api.start("t", key="k"), "STORE_FAILED")
        assert s.ended() == 1
        calls = disk.calls()
    failed = calls.index(("sync", "pawl.db-wal"))
    assert calls[failed + 1:] == []


def test_what_a_crash_left_in_the_page_cache_is_synced_before_it_is_acknowledged(faulty):
    s, disk = faulty
    api = s.client()
    run = api.start("t").json["run_id"]
    job = api.post("/api/v1/jobs/claim", {"worker_id": "w"}, tenant="t").json["jobs"][0]
    complete = f"/api/v1/jobs/{job['job_id']}/complete"
    body = {"lease_token": job["lease_token"], "output": {"done": True}}
    disk.says("kill")
    with pytest.raises((OSError, http.client.HTTPException)):
        api.post(complete, body, tenant="t")
    assert s.ended() == -signal.SIGKILL
    disk.says("watch")
    s.start()
    before_serving = disk.calls()
    r = s.client().post(complete, body, tenant="t")
    assert r.status == 200 and r.json["status"] == "already_completed"
    assert s.client().get(f"/api/v1/runs/{run}", tenant="t").json["status"] == "succeeded"
    synced = [name for call, name in before_serving if call == "sync"]
    # The log first; then, since a failed sync may have lied about its pages, all of it again in the file.
    assert synced.index("pawl.db-wal") < synced.index("pawl.db")
    assert before_serving.index(("write", "pawl.db")) < len(before_serving) - 1 - before_serving[::-1].index(("sync", "pawl.db"))
    disk.says("well")


def test_a_server_does_not_start_when_what_it_recovered_cannot_be_synced(faulty):
    s, disk = faulty
    api = s.client()
    disk.says("kill")
    with pytest.raises((OSError, http.client.HTTPException)):
        api.start("t", key="k")
    assert s.ended() == -signal.SIGKILL
    before = {p.name: p.read_bytes() for p in s.folder.glob("pawl.db*") if not p.name.endswith((".lock", "-shm"))}
    with disk.failing("fsync"):
        with pytest.raises(AssertionError, match="Cannot sync .* to disk"):
            s.start()
        assert s.ended() == 1
        assert disk.calls()[-1] == ("sync", "pawl.db-wal")
    assert before == {p.name: p.read_bytes() for p in s.folder.glob("pawl.db*") if not p.name.endswith((".lock", "-shm"))}
    s.start()
    r = s.client().start("t", key="k")
    assert r.status == 200 and len(all_runs(s.client(), "t")) == 1
    assert_healthy(s.client())


# --- silent ---


@contextlib.contextmanager
def stalled_writer(s, disk):
    """The disk holds a commit in its fsync, over a timer that came due. The writer is one batch ahead; callers wait."""
    head = [("X-Tenant-ID", "t"), ("Content-Type", "application/json")]
    api = s.client()
    api.workflow("t", wid="nap", steps=[{"name": "nap", "type": "sleep", "duration_ms": 150}])
    assert api.start("t", wid="nap").status == 200
    with disk.failing("stall"):
        wait_until(lambda: disk.hits() > 0, "the disk stalls")
        with contextlib.closing(wire.connect(s.port)) as ahead:
            ahead.sendall(wire.request("PUT", "/api/v1/workflows/ahead", head, json.dumps(one_task("ahead")).encode()))
            wait_until(lambda: rows(s.db, "SELECT 1 FROM workflows WHERE id = 'ahead'"), "the batch ahead")
            yield api


@pytest.mark.slow
def test_a_stalled_commit_is_said_to_be_in_flight_and_a_retry_gets_its_run(faulty):
    s, disk = faulty
    with stalled_writer(s, disk) as api:
        keyed, same, bare = together(3, lambda i: api.start("t", key="k" if i < 2 else None))
        for r in (keyed, same):
            assert r.status == 409 and r.code == "IDEMPOTENCY_IN_FLIGHT" and r.json["retryable"] is True
        assert_unavailable(bare, "STORE_BUSY")
        # The server's health does not wait for the disk. A read does: it may have seen what is not there yet.
        assert api.get("/healthz").status == 200 and api.get("/api/v1/runs", tenant="t").status == 503
    first = api.start("t", key="k")
    assert first.status == 200 and api.start("t", key="k").json["run_id"] == first.json["run_id"]
    named = rows(s.db, "SELECT count(*), count(DISTINCT run_id) FROM idempotency WHERE key = 'k'")
    assert named == [(1, 1)]
    # One run of the key, and one of the request without a key, which got the answer that the outcome is unknown.
    wait_until(lambda: len(all_runs(api, "t")) == 3, "the stalled changes are made")
    assert_healthy(api)


def test_a_request_that_meets_a_short_stall_is_answered_after_it(faulty):
    s, disk = faulty
    api = s.client()
    with disk.failing("stall"):
        out = []
        asking = threading.Thread(target=lambda: out.append(api.start("t", key="k")), daemon=True)
        asking.start()
        wait_until(lambda: disk.hits() > 0, "the commit stalls")
        disk.says("well")
        asking.join()
    assert out[0].status == 200 and out[0].json["created"] is True
    assert api.start("t", key="k").json["run_id"] == out[0].json["run_id"]


def test_a_client_that_leaves_during_a_stall_finds_its_run_later(faulty):
    s, disk = faulty
    with stalled_writer(s, disk) as api:
        sock = wire.connect(s.port)
        sock.sendall(wire.request("POST", RUNS, [("X-Tenant-ID", "t"), ("Idempotency-Key", "k")], b'{"input":{}}'))
        # The request has been read: another one, sent later, has been answered.
        assert s.client().get("/healthz").status == 200
        wire.reset(sock)
    r = api.start("t", key="k")
    assert r.status == 200 and record(api, "t", "k")["run_id"] == r.json["run_id"]
    assert len(all_runs(api, "t")) == 2


def test_what_waits_for_the_disk_is_bounded(faulty):
    s, disk = faulty
    body = b'{"input":"%s"}' % (b"x" * 1000000)
    with stalled_writer(s, disk) as api:
        held = []
        for n in range(90):
            held.append(wire.connect(s.port))
            held[-1].sendall(wire.request("POST", RUNS, [("X-Tenant-ID", "t"), ("Idempotency-Key", f"k-{n}")], body))
        # Those that come last find the queue full and hear so at once, while the disk is still silent. Which ones they are is up to the
        # network: all bodies arrive at the same time.
        readable, _, _ = select.select(held, [], [], PATIENCE_S)
        early = {held.index(sock): wire.answer(sock) for sock in readable}
        for reply in early.values():
            assert_unavailable(reply, "OVERLOADED")
        assert s.process.poll() is None and api.get("/healthz").status == 200
        assert early
    replies = [early.get(n) or wire.answer(sock) for n, sock in enumerate(held)]
    for sock in held:
        sock.close()
    refused = {n for n, r in enumerate(replies) if r.status == 503}
    assert {replies[n].code for n in refused} == {"OVERLOADED"}
    # On a slow machine the first ones have waited so long that they were asked to retry.
    assert {r.code for n, r in enumerate(replies) if n not in refused} <= {None, "IDEMPOTENCY_IN_FLIGHT"}
    taken = {f"k-{n}" for n in range(90) if n not in refused}

    def kept():
        return {key for (key,) in rows(s.db, "SELECT key FROM idempotency WHERE run_id IS NOT NULL")}

    wait_until(lambda: kept() >= taken, "what was taken in is committed")
    assert kept() == taken and active_runs(api, "t") == len(taken)
    assert api.start("t", body=body, key=f"k-{min(refused)}").json["created"] is True


def test_the_index_of_the_log_needs_no_room_once_the_server_runs(faulty):
    """SQLite extends it after a commit is on disk: a disk that has become full must not make the outcome of that unknown."""
    s, disk = faulty
    api = s.client()
    api.workflow("t")
    reader = sqlite3.connect(s.db)  # keeps the log from being written over
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM runs").fetchall()
    with disk.failing("index"):
        body = {"input": "x" * 1000000}
        replies = [api.start("t", body=body, key=f"k-{n}") for n in range(40)]
    reader.close()
    assert [r.status for r in replies] == [200] * 40, replies
    assert s.db.with_name("pawl.db-wal").stat().st_size > 4096 * 4096  # more pages than the first part of the index has room for


# --- a reader from outside that never ends ---


def test_a_stuck_reader_bounds_the_log_and_is_recovered_from(fault_library):
    with faults.server(fault_library, "--wal-max-mib", "20") as (s, disk):
        api = s.client()
        api.workflow("t")
        body = {"input": "x" * 1000000}
        stuck = sqlite3.connect(s.db)
        stuck.execute("BEGIN")
        stuck.execute("SELECT count(*) FROM runs").fetchall()
        replies = [api.start("t", body=body, key=f"k-{n}") for n in range(60)]
        good = [r for r in replies if r.status == 200]
        for r in replies[len(good):]:
            assert_unavailable(r, "STORE_BUSY")
        assert 10 < len(good) < 60
        assert s.db.with_name("pawl.db-wal").stat().st_size < 30 * 1024 * 1024
        assert api.get("/readyz").status == 503 and api.get("/healthz").status == 200
        stuck.close()
        last = wait_until(lambda: (r := api.start("t", body=body, key="k-59")).status == 200 and r, "the log shrinks")
        assert last.json["created"] is True
        wait_until(lambda: api.get("/readyz").status == 200, "the server is ready again")
        assert len(all_runs(api, "t")) == len(good) + 1
