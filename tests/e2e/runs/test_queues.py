"""GET /queues and GET /workers: what lies where, who has it, and who asks for it."""
import re
import threading
import uuid

import pytest

import harness
from actions import begin, claim, claim_one, fail, task
from checks import assert_problem
from entities import Entity, define
from harness import wait_until
from pages import walk

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
SLOW = {"max_attempts": 3, "backoff_ms": 600000, "max_backoff_ms": 600000, "jitter": "none"}


def queues(api, tenant):
    return {q["queue"]: q for q in walk(api, "/api/v1/queues", tenant)}


def workers(api, tenant):
    return {w["worker_id"]: w for w in walk(api, "/api/v1/workers", tenant)}


def counts(q):
    assert q["exact"] is True
    return q["ready"], q["running"], q["delayed"], q["workers"]


@pytest.fixture
def queue():
    return "q-" + uuid.uuid4().hex[:8]


def test_a_tenant_without_work_has_no_queues_and_no_workers(api, tenant):
    assert queues(api, tenant) == {} and workers(api, tenant) == {}


def test_jobs_are_counted_where_they_are(api, tenant, queue):
    for n in range(4):
        begin(api, tenant, task("a", queue=queue, retry=SLOW), body={"priority": -n})
    assert counts(queues(api, tenant)[queue]) == (4, 0, 0, 0) and queues(api, tenant)[queue]["last_polled_at"] is None
    first = claim(api, tenant, queues=[queue], worker_id="ann")[0]
    claim(api, tenant, queues=[queue, "other"], worker_id="bob")
    seen = queues(api, tenant)
    assert counts(seen[queue]) == (2, 2, 0, 2) and counts(seen["other"]) == (0, 0, 0, 1) and seen["other"]["oldest"] is None
    fail(api, tenant, first)
    seen = queues(api, tenant)[queue]
    assert counts(seen) == (2, 1, 1, 2) and RFC3339.fullmatch(seen["oldest"]) and RFC3339.fullmatch(seen["last_polled_at"])
    jobs = [api.get(f"/api/v1/runs/{r['id']}", tenant=tenant).json["steps"][0] for r in walk(api, "/api/v1/runs", tenant)]
    made = [api.get(f"/api/v1/jobs/{j['job_id']}", tenant=tenant).json["created_at"] for j in jobs if j["status"] == "pending"]
    assert seen["oldest"] == min(made)


def test_suspended_jobs_are_counted_and_queues_that_nobody_serves_are_found(api, tenant, queue):
    begin(api, tenant, task("a", queue=queue))
    begin(api, tenant, task("a", queue="ready-only"))
    job = claim(api, tenant, queues=[queue], worker_id="ann")[0]
    r = api.post(f"/api/v1/jobs/{job['job_id']}/suspend", {"lease_token": job["lease_token"], "signal": "go"}, tenant=tenant)
    assert r.json["status"] == "suspended", r
    seen = queues(api, tenant)[queue]
    assert counts(seen) == (0, 0, 0, 1) and seen["suspended"] == 1 and queues(api, tenant)["ready-only"]["suspended"] == 0
    alone = [q["queue"] for q in walk(api, "/api/v1/queues?without_workers=true", tenant)]
    assert alone == ["ready-only"]
    for word in ("1", "yes", ""):
        assert_problem(api.get(f"/api/v1/queues?without_workers={word}", tenant=tenant), 400, "BAD_REQUEST")
    api.post(f"/api/v1/runs/{job['run_id']}/signals", {"name": "go"}, tenant=tenant)
    assert (queues(api, tenant)[queue]["suspended"], queues(api, tenant)[queue]["ready"]) == (0, 1)


def test_a_queue_with_suspended_jobs_only_is_listed_after_a_restart(queue):
    with harness.server() as s:
        api = s.client()
        begin(api, "t", task("a", queue=queue))
        job = claim(api, "t", queues=[queue], worker_id="ann")[0]
        api.post(f"/api/v1/jobs/{job['job_id']}/suspend", {"lease_token": job["lease_token"], "signal": "go"}, tenant="t")
        s.stop()
        s.start()
        alone = list(walk(s.client(), "/api/v1/queues?without_workers=true", "t"))
        assert [(q["queue"], q["suspended"], q["workers"]) for q in alone] == [(queue, 1, 0)]


def test_sleeps_signals_and_calls_lie_in_no_queue(api, tenant):
    begin(api, tenant, {"name": "nap", "type": "sleep", "duration_ms": 600000, "needs": []},
          {"name": "w", "type": "wait_signal", "signal": "go", "timeout_ms": 600000, "needs": []},
          {"name": "c", "type": "http", "request": {"method": "GET", "url": "http://127.0.0.1:9/"}, "needs": [], "retry": SLOW})
    assert queues(api, tenant) == {}


def test_calls_of_entities_lie_in_their_queue(api, tenant):
    define(api, tenant, queue="ledger")
    Entity(api, tenant).send()
    assert counts(queues(api, tenant)["ledger"]) == (1, 0, 0, 0)
    claim_one(api, tenant, queues=["ledger"])
    assert counts(queues(api, tenant)["ledger"]) == (0, 1, 0, 1)


def test_a_worker_is_known_by_what_it_polls_and_has(api, tenant, queue):
    begin(api, tenant, task("a", queue=queue))
    claim(api, tenant, queues=["x", queue], worker_id="ann / 1")
    claim(api, tenant, queues=["x"], worker_id="böb")
    seen = workers(api, tenant)
    assert list(seen) == sorted(seen, key=str.encode) == ["ann / 1", "böb"]
    ann, bob = seen.values()
    assert (ann["queues"], ann["running"], ann["shared"]) == (sorted([queue, "x"]), 1, False)
    assert (bob["queues"], bob["running"]) == (["x"], 0) and RFC3339.fullmatch(bob["last_polled_at"])


def test_of_a_shared_worker_a_tenant_sees_only_its_own(api, queue):
    mine = api.tenant()
    theirs, nobody = api.tenant(beside=mine), api.tenant()  # a claim for one job asks no further shards than it needs
    worker = "shared-" + queue
    for tenant in (mine, theirs):
        begin(api, tenant, task("a", queue=queue))
    assert len(claim(api, "*", queues=[queue, queue + "-other"], worker_id=worker, max=1)) == 1
    by = [workers(api, t).get(worker) for t in (mine, theirs)]
    assert [w["queues"] for w in by] == [[queue], [queue]] and sorted(w["running"] for w in by) == [0, 1] and all(w["shared"] for w in by)
    assert worker not in workers(api, nobody) and queue not in queues(api, nobody)
    assert [queues(api, t)[queue]["workers"] for t in (mine, theirs)] == [1, 1]


def test_workers_and_queues_of_another_tenant_are_not_seen(api, tenant, queue):
    other = api.tenant()
    begin(api, other, task("a", queue=queue))
    claim(api, other, queues=[queue], worker_id="theirs")
    assert queues(api, tenant) == {} and workers(api, tenant) == {}
    assert list(queues(api, other)) == [queue] and list(workers(api, other)) == ["theirs"]


def test_lists_come_in_pages(api, tenant):
    names = sorted(f"n{i}" for i in range(9))
    for name in names[::2]:
        begin(api, tenant, task("a", queue=name))
    for name in names[1::2]:
        claim(api, tenant, queues=[name], worker_id="w-" + name)
    for by in ("cursor", "link"):
        assert [q["queue"] for q in walk(api, "/api/v1/queues?limit=2", tenant, by=by)] == names
        assert [w["worker_id"] for w in walk(api, "/api/v1/workers?limit=1", tenant, by=by)] == ["w-" + n for n in names[1::2]]
    for path in ("/api/v1/queues", "/api/v1/workers"):
        assert_problem(api.get(f"{path}?cursor=%20", tenant=tenant), 400, "CURSOR_INVALID")


def test_leases_outlive_a_restart_and_polls_do_not():
    with harness.server() as s:
        api = s.client()
        begin(api, "t", task("a", queue="q"))
        claim_one(api, "t", queues=["q"], worker_id="ann")
        assert counts(queues(api, "t")["q"]) == (0, 1, 0, 1)
        s.kill()
        api = s.start().client()
        assert counts(queues(api, "t")["q"]) == (0, 1, 0, 0)
        ann = workers(api, "t")["ann"]
        assert (ann["queues"], ann["running"], ann["last_polled_at"]) == (["q"], 1, None)


def test_a_worker_that_waits_for_work_has_polled(api, dev_server, tenant, queue):
    waiting = threading.Thread(target=claim, args=(dev_server.client(), tenant), kwargs={"queues": [queue], "worker_id": "patient", "wait_ms": 30_000})
    waiting.start()
    try:
        wait_until(lambda: "patient" in workers(api, tenant), "its poll is seen while it waits")
    finally:
        begin(api, tenant, task("a", queue=queue))
        waiting.join()
    assert workers(api, tenant)["patient"]["running"] == 1
