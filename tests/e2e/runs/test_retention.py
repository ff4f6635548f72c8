"""Runs that are over go when their tenant's retention is past, with all that hangs on them; everything else stays.

A server looks for them when it starts, and then every minute."""
import datetime
import time

import harness
from actions import begin, claim, complete, control, ended, fail, show, task
from checks import assert_problem
from harness import wait_until
from inspect_store import all_runs, assert_healthy, doctor_on_file, record, rows
from pages import walk

NAP = {"name": "nap", "type": "sleep", "duration_ms": 1}
LONG_NAP = {"name": "nap", "type": "sleep", "duration_ms": 86_400_000}
PARTS = ("events", "jobs", "run_signals", "map_items", "run_children", "run_reruns")


def keep_runs_for(api, tenant, seconds):
    r = api.put(f"/api/v1/tenants/{tenant}", {"run_retention_s": seconds}, tenant=tenant)
    assert r.status == 200 and r.json["run_retention_s"] == seconds, r


def look_again(s):
    """kill -9 and a new start: it looks for old runs at once."""
    s.kill()
    return s.start().client()


def left(db):
    """Rows of runs that are no longer there."""
    return {part: count for part in PARTS for (count,) in rows(db, f"SELECT count(*) FROM {part} WHERE run NOT IN (SELECT num FROM runs)") if count}


def ids(api, tenant):
    return {r["id"] for r in all_runs(api, tenant)}


def wait_gone(api, tenant, stay):
    wait_until(lambda: ids(api, tenant) == stay, "the old runs go")


def mixed_runs(api, tenant):
    """(runs that are over in every way, runs that are not)"""
    over = [begin(api, tenant, {**NAP, "for_each": [1, 2, 3]}, {"name": "s", "type": "wait_signal", "signal": "go"}, wid="maps")]
    control(api, tenant, over[0], "signals", {"name": "go"})
    over.append(begin(api, tenant, task("a"), wid="fails"))
    fail(api, tenant, claim(api, tenant)[0])
    over.append(begin(api, tenant, LONG_NAP, wid="naps"))
    control(api, tenant, over[2], "cancel")
    over.append(begin(api, tenant, {"name": "child", "type": "workflow", "workflow_id": "leaf"}, wid="parent"))
    for run in over:
        ended(api, tenant, run)
    stay = [begin(api, tenant, LONG_NAP, wid="naps"), begin(api, tenant, task("a"), wid="fails"), begin(api, tenant, LONG_NAP, wid="naps")]
    control(api, tenant, stay[2], "pause")
    stay.append(api.start(tenant, "naps", {"start_at": (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)).isoformat()}).json["run_id"])
    return over, stay


def test_what_is_over_goes_with_all_that_hangs_on_it_and_what_is_not_stays():
    with harness.server() as s:
        api = s.client()
        api.workflow("t", "leaf", [NAP])
        over, stay = mixed_runs(api, "t")
        assert len(walk(api, "/api/v1/dead-letters", "t")) == 1
        keep_runs_for(api, "t", 0)
        api = look_again(s)
        wait_gone(api, "t", set(stay))
        for run in over:
            for target in ("", "/events", "/why"):
                assert_problem(api.get(f"/api/v1/runs/{run}{target}", tenant="t"), 404, "RUN_NOT_FOUND")
        assert left(s.db) == {} and walk(api, "/api/v1/dead-letters", "t") == []
        assert rows(s.db, "SELECT count(*) FROM runs") == [(len(stay),)], "children too"
        assert [show(api, "t", run)["status"] for run in stay] == ["waiting", "running", "paused", "queued"]
        job = claim(api, "t")[0]
        assert job["run_id"] == stay[1] and complete(api, "t", job).json["run_status"] == "succeeded"
        assert_healthy(api)
        s.kill()
        doctor_on_file(s.db)


def test_without_a_retention_or_before_its_end_runs_stay():
    with harness.server() as s:
        api = s.client()
        runs = {}
        for tenant, seconds in (("forever", None), ("day", 86400), ("now", 0)):
            runs[tenant] = begin(api, tenant, NAP)
            ended(api, tenant, runs[tenant])
            keep_runs_for(api, tenant, seconds)
        api = look_again(s)
        wait_gone(api, "now", set())
        assert ids(api, "forever") == {runs["forever"]} and ids(api, "day") == {runs["day"]}
        assert_healthy(api)


def test_a_key_outlives_its_run_and_still_makes_no_second_one():
    with harness.server() as s:
        api = s.client()
        api.workflow("t", "w", [NAP])
        first = api.start("t", "w", {"input": 1}, key="k")
        ended(api, "t", first.json["run_id"])
        keep_runs_for(api, "t", 0)
        api = look_again(s)
        wait_gone(api, "t", set())
        again = api.start("t", "w", {"input": 1}, key="k")
        assert again.status == 200 and again.json["run_id"] == first.json["run_id"] and again.json["created"] is False, again
        assert ids(api, "t") == set() and record(api, "t", "k")["run_id"] == first.json["run_id"]
        assert_healthy(api)


def test_thousands_of_rows_go_in_slices_through_kills_while_starts_go_on():
    with harness.server() as s:
        api = s.client()
        big = [begin(api, "t", {"name": "m", "type": "transform", "for_each": list(range(3000)), "output": 1}, wid="big") for _ in range(3)]
        for run in big:
            ended(api, "t", run)
        api.workflow("t", "w", [task("a")])
        keep_runs_for(api, "t", 0)
        stay = set()
        for _ in range(3):
            api = look_again(s)
            for _ in range(5):
                r = api.start("t", "w")
                assert r.status == 200, r
                stay.add(r.json["run_id"])
        wait_gone(api, "t", stay)
        assert left(s.db) == {}
        assert_healthy(api)


def test_a_child_that_ended_while_the_server_was_down_is_taken_by_its_parent_before_it_goes():
    with harness.server() as s:
        api = s.client()
        keep_runs_for(api, "t", 0)
        api.workflow("t", "leaf", [{"name": "nap", "type": "sleep", "duration_ms": 3000}])
        api.workflow("t", "middle", [{"name": "child", "type": "workflow", "workflow_id": "leaf"}])
        api.workflow("t", "parent", [{"name": "child", "type": "workflow", "workflow_id": "middle"}, task("last")])
        run = api.start("t", "parent").json["run_id"]
        wait_until(lambda: rows(s.db, "SELECT count(*) FROM timers t JOIN jobs j ON j.run = t.run AND j.ordinal = t.ordinal") == [(1,)], "the leaf sleeps")
        s.kill()
        due = rows(s.db, "SELECT max(due_at) FROM timers")[0][0]
        wait_until(lambda: time.time() * 1000 > due + 200, "its time is over")
        api = s.start().client()
        job = wait_until(lambda: claim(api, "t"), "the parent goes on")[0]
        assert job["run_id"] == run and complete(api, "t", job).json["run_status"] == "succeeded"
        api = look_again(s)
        wait_gone(api, "t", set())
        assert left(s.db) == {} and api.get("/api/v1/tenants/t", tenant="t").json["active_runs"] == 0


def test_a_replay_on_the_flat_route_of_a_run_that_is_gone_is_the_first_answer():
    with harness.server() as s:
        api = s.client()
        keep_runs_for(api, "t", 0)
        api.workflow("t", "leaf", [{"name": "x", "type": "transform", "output": 1}])
        ask = {"definitionId": "leaf", "idempotencyKey": "k"}
        first = api.post("/api/v1/workflow-runs", ask, tenant="t")
        api = look_again(s)
        wait_gone(api, "t", set())
        again = api.post("/api/v1/workflow-runs", ask, tenant="t")
        assert again.status == 200 and again.json == {**first.json, "created": False} and again.header("Idempotent-Replayed") == "true"
