"""Damage in the store is an error on the object that it is in: no column of any table, whatever it holds, ends the server."""
import http.client
import shutil

import pytest

import harness
from actions import claim_one
from inspect_store import columns, damage

# Rounds of this test damage one column in every table at once. Tenants have rounds of their own: nothing is seen behind a damaged one.
GARBAGE = {"INTEGER": (-7, 2 ** 62, 0), "TEXT": ("?", "", '{"a":[1', "\x01" * 300), "BLOB": (b"\x01\x02", b"", b"\xff" * 64)}
FLOW = {"steps": [{"name": "work", "type": "task", "handler": "h", "retry": {"max_attempts": 1}},
                  {"name": "ask", "type": "approval", "needs": ["work"], "prompt": "Go?", "expires_s": 3600},
                  {"name": "wait", "type": "wait_signal", "needs": ["ask"], "signal": "go", "timeout_ms": 3600000}],
        "concurrency": {"key": "input.k", "limit": 1, "at_limit": "queue"}}
MAP = {"steps": [{"name": "each", "type": "task", "handler": "h", "for_each": "input.list", "retry": {"max_attempts": 1}}]}
NAP = {"steps": [{"name": "nap", "type": "sleep", "duration_ms": 1}, {"name": "child", "type": "workflow", "workflow_id": "flow", "needs": ["nap"]}]}


def ok(r):
    assert r.status in (200, 201, 202), r
    return r.json


def fill(api):
    """Something of everything; what the calls below need of it."""
    t = {"tenant": "t"}
    ok(api.put("/api/v1/tenants/t", {"name": "T", "max_queued_runs": 100, "rate_limit": {"per_second": 10000, "burst": 10000}}, tenant="t"))
    ok(api.put("/api/v1/tenants/t", {"name": "Tee", "max_concurrent_runs": 50}, tenant="t"))
    hook = ok(api.post("/api/v1/webhooks", {"url": "http://127.0.0.1:9/x", "events": ["*"]}, **t))
    for wid, definition in (("flow", FLOW), ("map", MAP), ("nap", NAP)):
        ok(api.put(f"/api/v1/workflows/{wid}", definition, **t))
    start = lambda wid, inp, **kw: ok(api.start("t", wid=wid, body={"input": inp}, **kw))["run_id"]  # noqa: E731
    ids = {"hook": hook["id"], "active": start("flow", {"k": 1}, key="k1"), "queued": start("flow", {"k": 1}), "fresh": start("flow", {"k": 2}),
           "map": start("map", {"list": [1, 2, 3]}), "nap": start("nap", None), "failed": start("map", {"list": [1]})}
    ok(api.put("/api/v1/schedules/s", {"workflow_id": "map", "cron": "* * * * *", "input": {"list": []}}, **t))
    done = ok(api.post("/api/v1/jobs/claim", {"worker_id": "w", "max": 20}, **t))["jobs"]
    by_run = {}
    for job in done:
        by_run.setdefault(job["run_id"], []).append(job)
    job = by_run[ids["active"]][0]
    ok(api.post(f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": job["lease_token"], "output": {"x": 1}}, **t))
    for job in by_run[ids["failed"]]:
        ok(api.post(f"/api/v1/jobs/{job['job_id']}/fail", {"lease_token": job["lease_token"], "error": {"code": "E", "message": "m", "retryable": False}}, **t))
        ids["dead"] = job["job_id"]
    ids["held"] = by_run[ids["map"]][0]
    ok(api.post(f"/api/v1/runs/{ids['active']}/signals", {"name": "early", "payload": 1, "dedup_key": "d"}, **t))
    ids["approval"] = harness.wait_until(lambda: ok(api.get("/api/v1/approvals", **t))["items"], "somebody is asked")[0]["job_id"]
    ok(api.put("/api/v1/entity-types/account", {"queue": "q", "handler": "h", "rollover_events": 10}, **t))
    for n in range(3):
        ok(api.post("/api/v1/entities/account/e/signals", {"name": "add", "payload": n, "dedup_key": f"d{n}"}, **t))
    call = claim_one(api, "t", queues=["q"])
    ok(api.post(f"/api/v1/jobs/{call['job_id']}/complete",
                {"lease_token": call["lease_token"], "output": {"state": {"n": 3}, "set_timers": [{"name": "x", "in_ms": 3600000}]}}, **t))
    ok(api.post("/api/v1/entities/account/e/updates?wait_ms=0", {"name": "u", "dedup_key": "u1"}, **t))
    ok(api.post("/api/v1/keys", {"tenant": "t", "role": "viewer"}))
    harness.wait_until(lambda: ok(api.get(f"/api/v1/webhooks/{hook['id']}/deliveries", **t))["items"], "there are deliveries")
    ids["delivery"] = ok(api.get(f"/api/v1/webhooks/{hook['id']}/deliveries", **t))["items"][0]["id"]
    return ids


def everything(api, ids):
    """Looks at, controls and works on all of it: (what, answer)."""
    token = ids["held"]["lease_token"]
    gets = ["/metrics", "/readyz", "/api/v1/runs", "/api/v1/runs?status=failed", "/api/v1/approvals", "/api/v1/approvals/analytics", "/api/v1/stats", "/api/v1/admission", f"/api/v1/approvals/{ids['approval']}",
            "/api/v1/workflows", "/api/v1/workflows/flow", "/api/v1/workflows/flow/versions", "/api/v1/schedules", "/api/v1/schedules/s", "/api/v1/dead-letters",
            f"/api/v1/jobs/{ids['dead']}", f"/api/v1/jobs/{ids['held']['job_id']}", "/api/v1/webhooks", f"/api/v1/webhooks/{ids['hook']}", f"/api/v1/webhooks/{ids['hook']}/deliveries",
            "/api/v1/entity-types", "/api/v1/entity-types/account", "/api/v1/entity-types/account/stats", "/api/v1/entities/account", "/api/v1/entities/account/e",
            "/api/v1/entities/account/e/events", "/api/v1/entities/account/e/generations", "/api/v1/entities/account/e/updates/4", "/api/v1/idempotency-keys/k1",
            "/api/v1/tenants", "/api/v1/tenants/t", "/api/v1/tenants/t/settings", "/api/v1/keys", "/api/v1/audit", "/api/v1/audit/verify", "/api/v1/outbox"]
    runs = [ids[name] for name in ("active", "queued", "fresh", "map", "nap", "failed")]
    for path in gets + [f"/api/v1/runs/{run}{suffix}" for run in runs for suffix in ("", "/events", "/why")]:
        yield path, api.get(path, tenant="t")
    yield "doctor", api.get("/api/v1/doctor", tenant="t")
    held = f"/api/v1/jobs/{ids['held']['job_id']}"
    entity = "/api/v1/entities/account/e"
    posts = [("/api/v1/workflows/flow/runs", {"input": {"k": 1}, "idempotency_key": "k1"}), ("/api/v1/workflows/map/runs", {"input": {"list": [1]}}),
             ("/api/v1/workflows/nap/runs", {}), ("/api/v1/jobs/claim", {"worker_id": "w", "queues": ["default", "q"], "max": 20}),
             (f"{held}/heartbeat", {"lease_token": token}), (f"{held}/checkpoints", {"lease_token": token, "name": "a"}), (f"{held}/suspend", {"lease_token": token, "signal": "a"}),
             (f"{held}/complete", {"lease_token": token, "output": 1}),
             (f"/api/v1/dead-letters/{ids['dead']}/retry", {}), (f"/api/v1/approvals/{ids['approval']}/approve", {}),
             (f"/api/v1/runs/{ids['active']}/signals", {"name": "go", "dedup_key": "d"}), (f"/api/v1/runs/{ids['active']}/signals", {"name": "go", "dedup_key": "e"}),
             (f"{entity}/signals", {"name": "add", "payload": 0, "dedup_key": "d0"}), (f"{entity}/signals", {"name": "add", "payload": 1, "dedup_key": "n"}),
             (f"{entity}/updates?wait_ms=0", {"name": "u", "dedup_key": "u2"}), (f"{entity}/migrate", {"version": 1}), ("/api/v1/schedules/s/trigger", {}),
             (f"/api/v1/webhooks/{ids['hook']}/test", {}), (f"/api/v1/webhooks/{ids['hook']}/deliveries/{ids['delivery']}/redeliver", {}),
             (f"/api/v1/webhooks/{ids['hook']}/rotate", {}), ("/api/v1/tenants/t/rollback", {"version": 1})]
    posts += [(f"/api/v1/runs/{run}/{verb}", {}) for run in runs for verb in ("pause", "resume", "retry", "cancel")]
    posts += [(f"/api/v1/runs/{ids['failed']}/rerun", {}), ("/api/v1/runs:bulk", {"action": "cancel", "filter": {}}), ("/api/v1/doctor/repair", {})]
    for path, body in posts:
        yield path, api.post(path, body, tenant="t")
    for path in ("/api/v1/workflows/flow", "/api/v1/schedules/s", f"/api/v1/webhooks/{ids['hook']}", entity):
        yield f"DELETE {path}", api.delete(path, tenant="t")


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A file with something of everything, and the ids of it."""
    folder = tmp_path_factory.mktemp("whole")
    s = harness.Server(folder, "--allow-private-addresses").start()
    ids = fill(s.client())
    assert s.stop() == 0
    return s.db, ids


def rounds(template, alone):
    """[(table, column, type)] for each round: one column of every table at once, or of `alone` only."""
    tables = columns(template)
    chosen = {alone: tables[alone]} if alone else {t: c for t, c in tables.items() if t != "tenants"}
    return [[(t, *cols[i]) for t, cols in chosen.items() if i < len(cols)] for i in range(max(map(len, chosen.values())))]


def check(folder, template, which, kind):
    """Asks the doctor of a server that must survive everything; returns its answers."""
    db, ids = template
    harness.stores.copy(db, folder / "pawl.db")
    hurt = [(t, c) for t, c, type_ in which if damage(folder / "pawl.db", t, c, GARBAGE[type_][kind % len(GARBAGE[type_])])]
    s = harness.Server(folder, "--allow-private-addresses")
    answers, last = [], "start"
    try:
        s.start()
        for last, r in everything(s.client(), ids):
            answers.append((last, r))
            assert r.status < 500 or r.code in ("OBJECT_DAMAGED", "STORE_BUSY", "INTERNAL"), (hurt, last, r, s.log()[-1500:])
    except (http.client.HTTPException, OSError) as e:
        raise AssertionError(f"the server died of {hurt} at {last}: {e!r}\n" + s.log()[-1500:]) from e
    code = s.stop()
    assert code == 0, (hurt, code, s.log()[-1500:])
    return hurt, answers


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("alone", [None, "tenants"])
def test_no_column_of_any_table_can_end_the_server(tmp_path, template, alone, kind):
    for n, which in enumerate(rounds(template[0], alone)):
        folder = tmp_path / f"{n}"
        folder.mkdir()
        check(folder, template, which, kind)
        shutil.rmtree(folder)


@pytest.mark.parametrize("table, column", [("runs", "status"), ("runs", "id"), ("runs", "created_at"), ("jobs", "state"), ("jobs", "id"), ("approvals", "status"),
                                           ("tenants", "at_limit"), ("runs", "key_hashes"), ("schedules", "overlap"), ("entities", "id"), ("deliveries", "state")])
def test_a_damaged_object_is_an_error_of_its_own_and_a_finding_of_the_doctor(tmp_path, template, table, column):
    types = dict(columns(template[0])[table])
    _, answers = check(tmp_path, template, [(table, column, types[column])], 1 if types[column] == "INTEGER" else 0)
    answers = dict(answers)
    report = answers["doctor"].json
    assert not report["ok"] and any(f for c in report["checks"] for f in c["found"]), report
    codes = {r.code for r in answers.values()}
    assert "OBJECT_DAMAGED" in codes and "INTERNAL" not in codes, codes
    assert "a stored object is damaged" in (tmp_path / "stderr.log").read_text()
