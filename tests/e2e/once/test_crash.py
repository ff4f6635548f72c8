"""kill -9 at any moment: what was acknowledged is there, and what was not can be asked for again."""
import http.client
import os
import random
import threading
import time

import pytest

import harness
from harness import wait_until
from inspect_store import active_runs, all_runs, assert_engine_finds_no_damage, assert_healthy, doctor_on_file, record, rows, run_id_text
from lasting_clients import LastingClients, kill_while_starting

pytestmark = pytest.mark.slow

KILLS = 30
HOLDS_SLOT = "('pending', 'running', 'waiting', 'paused')"
TENANTS = ["t-0", "t-1", "t-2"]


class Load(LastingClients):
    """Starts with keys, and workers."""

    def __init__(self, server):
        super().__init__(server)
        self.runs = {}  # (tenant, key) → run_id, as acknowledged
        self.finished = {}  # job_id → run_id of acknowledged completions

    def note_run(self, tenant, key, r):
        assert r.status == 200, r
        with self.changed:
            known = self.runs.setdefault((tenant, key), r.json["run_id"])
        assert known == r.json["run_id"], f"{key} has two runs"

    def start_runs(self, number):
        """Two threads share each key, so that first requests race as well as retries."""
        rng = random.Random(number)
        n = 0
        while self.goes_on():
            pair, n = number // 2, n + 1
            tenant, key = TENANTS[pair % 3], f"k-{pair}-{n}"
            if pair % 2:
                flat = {"definitionId": "hold", "input": {"n": n}, "idempotencyKey": key}
                r = self.answered(lambda c: c.post("/api/v1/workflow-runs", flat, tenant=tenant))
            else:
                r = self.answered(lambda c: c.start(tenant, body={"input": {"n": n}}, key=key))
            self.note_run(tenant, key, r)
            if n % 7 == 0:
                with self.changed:
                    (tenant, key), run = rng.choice(list(self.runs.items()))
                again = self.answered(lambda c: c.get(f"/api/v1/runs/{run}", tenant=tenant))
                assert again.status == 200, (key, again)

    def work(self, number):
        n = 0
        while self.goes_on():
            n += 1
            key = f"claim-{number}-{n}" if number % 2 else None
            body = {"worker_id": f"w{number}", "max": 3, "wait_ms": 50, "lease_ms": 1000}
            r = self.answered(lambda c: c.post("/api/v1/jobs/claim", body, key=key, tenant="*"))
            assert r.status == 200, r
            for job in r.json["jobs"]:
                self.complete(job)

    def complete(self, job):
        body = {"lease_token": job["lease_token"], "output": {"of": job["run_id"]}}
        r = self.answered(lambda c: c.post(f"/api/v1/jobs/{job['job_id']}/complete", body, tenant="*"))
        if r.status == 409:  # the lease ended while the server was away
            assert r.code == "LEASE_LOST", r
            return
        assert r.status == 200 and r.json["status"] in ("completed", "already_completed"), r
        with self.changed:
            assert job["job_id"] not in self.finished, "one job was completed twice"
            self.finished[job["job_id"]] = job["run_id"]


def assert_file_is_right(s, load):
    """What the file says after the last kill, without any server's help."""
    assert_engine_finds_no_damage(s.db)
    stored = rows(s.db, "SELECT t.id, i.key, i.run_id FROM idempotency i JOIN tenants t ON t.num = i.tenant WHERE i.run_id IS NOT NULL")
    assert {(tenant, key): run_id_text(run) for tenant, key, run in stored} == load.runs
    assert len(stored) == len(load.runs), "a key has two records"
    assert sorted(run_id_text(run) for (run,) in rows(s.db, "SELECT id FROM runs")) == sorted(load.runs.values())
    for tenant, counter, found in rows(s.db, "SELECT t.id, t.active_runs, (SELECT count(*) FROM runs r WHERE r.tenant = t.tenant"
                                             f" AND r.status IN {HOLDS_SLOT}) FROM tenant_counters t"):
        assert counter == found, f"{tenant}: the counter says {counter}, {found} runs hold a slot"
    done = {run_id_text(run) for (run,) in rows(s.db, "SELECT id FROM runs WHERE status = 'succeeded'")}
    assert set(load.finished.values()) <= done, "an acknowledged completion was lost"


def test_kills_under_load_lose_nothing_and_double_nothing():
    seed = int(os.environ.get("PAWL_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"PAWL_SEED={seed}")
    rng = random.Random(seed)
    with harness.server() as s:
        for tenant in TENANTS:
            s.client().workflow(tenant)
        load = Load(s)
        load.begin((load.start_runs, 8), (load.work, 3))
        for _ in range(KILLS):
            enough = len(load.runs) + rng.randrange(1, rng.choice((20, 200, 800)))
            wait_until(lambda: len(load.runs) >= enough or load.failures, "runs are started")
            time.sleep(rng.uniform(0, 0.004))  # the moment is random; nothing is waited for
            s.kill()
            if rng.random() < 0.3:
                kill_while_starting(s, rng)
            s.start()
            load.server_is_back()
            load.check()
        load.end()
        assert load.unanswered > KILLS, "the kills hit no request"
        print(f"{len(load.runs)} keys, {len(load.finished)} completions, {load.unanswered} unanswered requests")
        s.kill()
        assert_file_is_right(s, load)
        doctor_on_file(s.db)
        s.start()
        api = s.client()
        for (tenant, key), run in load.runs.items():
            kept = record(api, tenant, key)
            assert kept is not None and kept["run_id"] == run
        for tenant in TENANTS:
            mine = {run for (t, _), run in load.runs.items() if t == tenant}
            assert {r["id"] for r in all_runs(api, tenant)} == mine
        assert_healthy(api)


def test_every_key_is_free_or_answered_after_a_kill():
    """Requests that were cut off in all stages: each key then gives one run, none is stuck."""
    with harness.server() as s:
        s.client().workflow("t")
        answers = {}
        for life in range(10):
            api = s.client()
            keys = [f"k-{life}-{n}" for n in range(40)]

            def ask(i):
                for key in keys[i::8]:
                    try:
                        answers[key] = api.start("t", key=key)
                    except (OSError, http.client.HTTPException):
                        return

            threads = [threading.Thread(target=ask, args=(i,), daemon=True) for i in range(8)]
            for t in threads:
                t.start()
            wait_until(lambda: f"k-{life}-{life}" in answers or not any(t.is_alive() for t in threads), "some are answered")
            s.kill()
            for t in threads:
                t.join()
            s.start()
            api = s.client()
            for key in keys:
                r = api.start("t", key=key)
                assert r.status == 200, (key, r)
                if key in answers:
                    assert r.json["run_id"] == answers[key].json["run_id"] and r.json["created"] is False
                assert api.start("t", key=key).json["run_id"] == r.json["run_id"]
        assert len(all_runs(s.client(), "t")) == active_runs(s.client(), "t") == 400
        assert_healthy(s.client())


def test_an_acknowledged_completion_survives():
    with harness.server() as s:
        api = s.client()
        api.workflow("t", steps=[{"name": "one", "type": "task", "handler": "h"}, {"name": "two", "type": "task", "handler": "h"}])
        run = api.start("t").json["run_id"]
        job = api.post("/api/v1/jobs/claim", {"worker_id": "w"}, tenant="t").json["jobs"][0]
        path, body = f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": job["lease_token"], "output": {"n": 1}, "state": {"s": 2}}
        assert api.post(path, body, tenant="t").status == 200
        s.kill()
        s.start()
        api = s.client()
        now = api.get(f"/api/v1/runs/{run}", tenant="t").json
        assert now["steps"][0]["status"] == "succeeded" and now["steps"][0]["output"] == {"n": 1} and now["state"] == {"s": 2}
        assert api.post(path, body, tenant="t").json["status"] == "already_completed"
        second = api.work("t")
        assert second["step"] == "two" and api.work("t") is None
        assert api.get(f"/api/v1/runs/{run}", tenant="t").json["status"] == "succeeded"


def test_a_lease_outlives_the_server_and_ends_after_it():
    with harness.server() as s:
        api = s.client()
        api.workflow("t")
        for _ in range(2):
            api.start("t")
        body = {"worker_id": "w", "lease_ms": 600000}
        held = api.post("/api/v1/jobs/claim", body, tenant="t").json["jobs"][0]
        lost = api.post("/api/v1/jobs/claim", {**body, "lease_ms": 100}, tenant="t").json["jobs"][0]
        s.kill()
        s.start()
        api = s.client()
        again = api.post("/api/v1/jobs/claim", {**body, "wait_ms": 30000}, tenant="t").json["jobs"]
        assert [j["job_id"] for j in again] == [lost["job_id"]] and again[0]["attempt"] == 2
        late = api.post(f"/api/v1/jobs/{lost['job_id']}/complete", {"lease_token": lost["lease_token"]}, tenant="t")
        assert late.status == 409 and late.code == "LEASE_LOST"
        assert api.post(f"/api/v1/jobs/{held['job_id']}/complete", {"lease_token": held["lease_token"]}, tenant="t").status == 200


def test_timers_armed_before_kills_fire_once():
    with harness.server() as s:
        api = s.client()
        steps = [{"name": "nap", "type": "sleep", "duration_ms": 100}, {"name": "again", "type": "sleep", "duration_ms": 100}]
        api.workflow("t", steps=steps)
        runs = []
        for life in range(8):
            runs += [api.start("t", key=f"k-{life}-{n}").json["run_id"] for n in range(10)]
            s.kill()
            s.start()
            api = s.client()

        def over():
            return all(r["status"] == "succeeded" for r in all_runs(api, "t"))

        wait_until(over, "all runs end")
        assert {r["id"] for r in all_runs(api, "t")} == set(runs) and len(runs) == 80
        for run in runs:
            events = [e["type"] for e in api.get(f"/api/v1/runs/{run}/events", tenant="t").json["items"]]
            assert events.count("job.succeeded") == 2 and events.count("run.succeeded") == 1, events
        assert active_runs(api, "t") == 0
        assert rows(s.db, "SELECT count(*) FROM timers") == [(0,)]
        assert_healthy(api)
