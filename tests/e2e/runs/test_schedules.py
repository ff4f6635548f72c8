"""Schedules: times that start runs by themselves, once each, whatever dies in between.

Time passes in two ways here: schedules that fire every second, and next_at set back in the file of a server that does not run."""
import datetime
import time
import zoneinfo

import pytest

import harness
from actions import claim, complete, ended, show, task
from checks import assert_problem
from harness import wait_until
from inspect_store import all_runs, assert_healthy, change, doctor_on_file, record, rows
from pages import walk

EVERY_SECOND, EVERY_MINUTE, ONCE_A_YEAR = "* * * * * *", "* * * * *", "@yearly"
UTC = datetime.timezone.utc


@pytest.fixture(scope="module")
def clockwork():
    """A server of its own: what fires every second is nobody else's noise."""
    with harness.server() as s:
        yield s


@pytest.fixture
def api(clockwork):
    return clockwork.client()


@pytest.fixture
def put(api, tenant):
    """put(id, **members): a schedule of workflow w, whose runs last until somebody completes their job. All are gone after the test."""
    api.workflow(tenant, "w", [task("work")])
    made = set()

    def one(sid="s", **members):
        r = put_schedule(api, tenant, sid, **members)
        made.add(sid)
        return r

    yield one
    for sid in made:
        api.delete(path(sid), tenant=tenant)


def path(sid="s"):
    return f"/api/v1/schedules/{sid}"


def put_schedule(api, tenant, sid="s", **members):
    r = api.put(path(sid), {"workflow_id": "w", **members}, tenant=tenant)
    assert r.status == 200, r
    return r.json


def see(api, tenant, sid="s"):
    r = api.get(path(sid), tenant=tenant)
    assert r.status == 200, r
    return r.json


def trigger(api, tenant, sid="s", key=None):
    return api.post(path(sid) + "/trigger", tenant=tenant, key=key)


def when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def text_of(moment):
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def fired(db, tenant, sid="s"):
    """{time: run} of all times that have made one, by their keys."""
    prefix = f"schedule:{sid}:"
    found = rows(db, "SELECT i.key, i.run_id FROM idempotency i JOIN tenants t ON t.num = i.tenant WHERE t.id = ? AND i.key LIKE ? ORDER BY i.key", tenant, prefix + "%")
    return {when(key[len(prefix):]): run for key, run in found}


def wait_fired(db, tenant, count, sid="s"):
    wait_until(lambda: len(fired(db, tenant, sid)) >= count, f"{sid} fires {count} times")
    return fired(db, tenant, sid)


def assert_no_gap(times, step_s):
    times = sorted(times)
    gaps = {(b - a).total_seconds() for a, b in zip(times, times[1:])}
    assert gaps <= {step_s}, times


def finish_all(api, tenant):
    for job in claim(api, tenant, max=100):
        assert complete(api, tenant, job).status == 200


def set_back(s, moment, sid="s"):
    """kill -9, and the store says that the schedule's next time was at this moment; then it starts again."""
    s.kill()
    ms = int(moment.timestamp() * 1000)
    assert change(s.db, "UPDATE schedules SET next_at = ?, check_at = ? WHERE id = ?", ms, ms, sid) == 1
    return s.start().client()


def ago(seconds):
    return datetime.datetime.fromtimestamp(int(time.time()) - seconds, UTC)


# --- what is put is shown ---

def test_a_schedule_is_shown_as_it_was_put_with_its_next_five_times(api, tenant, put):
    full = {"cron": "30 4 * * 1-5", "timezone": "UTC", "overlap": "queue", "catch_up_s": 3600, "input": {"a": [1]}, "paused": False}
    made = put(**full)
    assert {k: made[k] for k in full} == full and (made["id"], made["workflow_id"], made["created_by"]) == ("s", "w", "dev")
    assert (made["last_time"], made["last_run_id"], made["last_error"]) == (None, None, None)
    days, day = [], datetime.datetime.now(UTC).replace(hour=4, minute=30, second=0, microsecond=0) - datetime.timedelta(days=1)
    while len(days) < 5:
        day += datetime.timedelta(days=1)
        if day.weekday() < 5 and day > when(made["created_at"]):
            days.append(text_of(day))
    assert made["next_times"] == days and see(api, tenant) == made
    assert walk(api, "/api/v1/schedules", tenant) == [made]


def test_defaults_are_utc_skip_and_no_catching_up(put):
    made = put(cron=EVERY_MINUTE)
    assert (made["timezone"], made["overlap"], made["catch_up_s"], made["input"], made["paused"]) == ("UTC", "skip", 0, None, False)
    assert_no_gap(map(when, made["next_times"]), 60)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])
def test_times_are_those_of_the_clocks_in_its_zone(put, zone):
    made = put(cron="15 9 * * *", timezone=zone)
    local = [when(t).astimezone(zoneinfo.ZoneInfo(zone)) for t in made["next_times"]]
    assert [(t.hour, t.minute) for t in local] == [(9, 15)] * 5 and [(b.date() - a.date()).days for a, b in zip(local, local[1:])] == [1] * 4
    assert when(made["created_at"]) < local[0] <= when(made["created_at"]) + datetime.timedelta(days=1, hours=1)


@pytest.mark.parametrize("members,said", [
    ({"cron": "61 * * * *"}, "cron: minute"), ({"cron": "* * * *"}, "cron: "), ({"cron": "* * * * mo-xx"}, "cron: day-of-week"), ({"cron": "0 0 30 2 *"}, "cron: "), ({"cron": ""}, "cron: "),
    ({"cron": 5}, "cron: "), ({"cron": "@reboot"}, "cron: "), ({}, "cron: is required"), ({"cron": EVERY_MINUTE, "timezone": "Mars/Olympus"}, "timezone: "),
    ({"cron": EVERY_MINUTE, "timezone": "../../etc/passwd"}, "timezone: "), ({"cron": EVERY_MINUTE, "overlap": "both"}, "Unknown overlap"), ({"cron": EVERY_MINUTE, "catch_up_s": -1}, "catch_up_s: "),
    ({"cron": EVERY_MINUTE, "catch_up_s": 2_592_001}, "catch_up_s: "), ({"cron": EVERY_MINUTE, "paused": "no"}, "paused: "), ({"cron": EVERY_MINUTE, "colour": 1}, '"colour"'),
    ({"cron": EVERY_MINUTE, "workflow_id": None}, "workflow_id: is required"),
])
def test_a_schedule_that_makes_no_sense_is_refused_by_the_name_of_its_fault(api, tenant, members, said):
    api.workflow(tenant, "w")
    problem = assert_problem(api.put(path(), {"workflow_id": "w", **members}, tenant=tenant), 400, "FIELD_INVALID")
    assert said in problem["detail"], problem
    assert_problem(api.get(path(), tenant=tenant), 404, "SCHEDULE_NOT_FOUND")


def test_a_schedule_needs_its_workflow(api, tenant):
    assert_problem(api.put(path(), {"workflow_id": "nowhere", "cron": EVERY_MINUTE}, tenant=tenant), 404, "WORKFLOW_NOT_FOUND")
    api.workflow(tenant, "gone")
    assert api.delete("/api/v1/workflows/gone", tenant=tenant).status == 200
    assert_problem(api.put(path(), {"workflow_id": "gone", "cron": EVERY_MINUTE}, tenant=tenant), 404, "WORKFLOW_NOT_FOUND")


def test_schedules_are_listed_by_id_over_pages_and_nobody_elses(api, tenant, put):
    other = api.tenant()
    ids = [f"s{n}" for n in (3, 1, 4, 0, 2)]
    for sid in ids:
        put(sid, cron=ONCE_A_YEAR)
    for target in ("/api/v1/schedules", "/api/v1/schedules?limit=2"):
        assert [s["id"] for s in walk(api, target, tenant)] == sorted(ids)
    assert walk(api, "/api/v1/schedules", other) == []
    for r in (api.get(path("s1"), tenant=other), api.delete(path("s1"), tenant=other), trigger(api, other, "s1")):
        assert_problem(r, 404, "SCHEDULE_NOT_FOUND")


def test_a_new_timetable_counts_from_now_and_the_rest_stays(api, tenant, put):
    first = put(cron="0 0 1 1 *", input=1)
    run = trigger(api, tenant).json["run_id"]
    second = put(cron="0 0 1 7 *", input=2)
    assert second["next_times"] != first["next_times"] and all("-07-01T" in t for t in second["next_times"])
    assert (second["created_at"], second["last_run_id"], second["input"]) == (first["created_at"], run, 2)


# --- by hand ---

def test_a_trigger_under_one_key_makes_one_run(api, clockwork, tenant, put):
    put(cron=ONCE_A_YEAR, overlap="allow", input={"n": 7})
    answers = [*harness.together(8, lambda i: trigger(clockwork.client(), tenant, key="k")), trigger(api, tenant, key="k")]
    assert {r.status for r in answers} == {200} and len({r.json["run_id"] for r in answers}) == 1
    assert [r.header("Idempotent-Replayed") for r in answers].count(None) == 1
    other = trigger(api, tenant, key="k2").json["run_id"]
    runs = {r["id"]: r for r in all_runs(api, tenant)}
    assert set(runs) == {answers[0].json["run_id"], other} and see(api, tenant)["last_run_id"] == other
    shown = show(api, tenant, other)
    assert (shown["labels"], shown["input"], shown["created_by"]) == ({"schedule": "s"}, {"n": 7}, "dev")


def test_a_trigger_at_the_limit_is_429_and_works_later_under_its_key(api, tenant, put):
    assert api.put(f"/api/v1/tenants/{tenant}", {"max_concurrent_runs": 1}, tenant=tenant).status == 200
    put(cron=ONCE_A_YEAR)
    first = trigger(api, tenant, key="a").json["run_id"]
    assert_problem(trigger(api, tenant, key="b"), 429, "MAX_CONCURRENT_RUNS")
    finish_all(api, tenant)
    assert trigger(api, tenant, key="b").json["run_id"] != first and trigger(api, tenant, key="a").json["run_id"] == first


def test_a_paused_schedule_can_still_be_triggered(api, tenant, put):
    made = put(cron=EVERY_SECOND, paused=True)
    assert made["next_times"] == [] and trigger(api, tenant).status == 200 and see(api, tenant)["next_times"] == []


# --- by themselves ---

def test_each_second_fires_once_through_kills_and_restarts():
    with harness.server() as s:
        api = s.client()
        api.workflow("t", "w", [{"name": "nap", "type": "sleep", "duration_ms": 1}])
        begin = put_schedule(api, "t", cron=EVERY_SECOND, overlap="allow", input={"x": 1})["next_times"][0]
        for count in (1, 2, 3):
            wait_fired(s.db, "t", count)
            s.kill()
            s.start()
        api = s.client()
        wait_fired(s.db, "t", 4)
        assert api.delete(path(), tenant="t").status == 200
        times = fired(s.db, "t")
        assert min(times) == when(begin), "the first was on time"
        assert_no_gap(times, 1)
        runs = all_runs(api, "t")
        assert len(runs) == len(times) == len(set(times.values())), "one run for each time, and none besides"
        for moment in times:
            kept = record(api, "t", f"schedule:s:{text_of(moment)}")
            assert ended(api, "t", kept["run_id"])["status"] == "succeeded" and show(api, "t", kept["run_id"])["created_by"] == "schedule"
        assert_healthy(api)
        s.kill()
        doctor_on_file(s.db)


def test_a_time_that_comes_again_makes_no_second_run():
    """As if the commit that moved the schedule on were lost, or the clock set back."""
    with harness.server() as s:
        api = s.client()
        api.workflow("t", "w", [task("work")])
        put_schedule(api, "t", cron=ONCE_A_YEAR, overlap="allow")
        moment = ago(2)
        for _ in range(3):
            api = set_back(s, moment)
            wait_until(lambda: when(see(api, "t")["next_times"][0]) > moment, "the time is dealt with")
        assert [r["id"] for r in all_runs(api, "t")] == [see(api, "t")["last_run_id"]] and see(api, "t")["last_time"] == text_of(moment)
        assert list(fired(s.db, "t")) == [moment]


@pytest.mark.parametrize("catch_up_s,late_s,fires", [(0, 5, True), (0, 60, False), (120, 60, True), (120, 180, False)])
def test_a_time_missed_while_the_server_was_away_is_fired_within_its_bound(catch_up_s, late_s, fires):
    with harness.server() as s:
        api = s.client()
        api.workflow("t", "w", [task("work")])
        put_schedule(api, "t", cron=ONCE_A_YEAR, catch_up_s=catch_up_s)
        moment = ago(late_s)
        api = set_back(s, moment)
        wait_until(lambda: when(see(api, "t")["next_times"][0]) > moment, "the time is dealt with")
        shown = see(api, "t")
        assert list(fired(s.db, "t")) == ([moment] if fires else []) and len(all_runs(api, "t")) == fires
        assert (shown["last_error"] or {}).get("code") == (None if fires else "MISSED") and shown["last_time"] == (text_of(moment) if fires else None)


def test_of_an_hour_away_only_the_times_within_the_bound_are_caught_up_with():
    with harness.server() as s:
        api = s.client()
        api.workflow("t", "w", [task("work")])
        put_schedule(api, "t", cron=EVERY_MINUTE, overlap="allow", catch_up_s=600)
        moment = ago(3600).replace(second=0)
        before = time.time()
        api = set_back(s, moment)
        wait_until(lambda: when(see(api, "t")["next_times"][0]).timestamp() > time.time(), "it is up to date")
        times = [t.timestamp() for t in fired(s.db, "t")]
        after = time.time()
        assert_no_gap(fired(s.db, "t"), 60)
        assert before - 600 <= min(times) <= after - 600 + 60 and before - 60 <= max(times) <= after and len(all_runs(api, "t")) == len(times)


# --- overlap ---

def away_for_minutes(s, **members):
    """A schedule whose last three minutes come all at once; its runs last until somebody completes their job."""
    api = s.client()
    api.workflow("t", "w", [task("work")])
    put_schedule(api, "t", cron=EVERY_MINUTE, catch_up_s=3600, **members)
    first = ago(180).replace(second=0)
    return set_back(s, first), first


def test_skip_leaves_out_the_times_of_a_run_that_lasts():
    with harness.server() as s:
        api, first = away_for_minutes(s)
        wait_until(lambda: when(see(api, "t")["next_times"][0]).timestamp() > time.time(), "all times are dealt with")
        left_out = see(api, "t")["last_error"]
        assert list(fired(s.db, "t")) == [first] and left_out["code"] == "OVERLAP" and when(left_out["time"]) > first
        finish_all(api, "t")
        again = ago(1)
        api = set_back(s, again)
        assert list(wait_fired(s.db, "t", 2)) == [first, again], "what was left out does not come later"


def test_queue_fires_every_time_one_after_the_other():
    with harness.server() as s:
        api, first = away_for_minutes(s, overlap="queue")
        for count in (1, 2, 3):
            times = wait_fired(s.db, "t", count)
            assert [r["status"] for r in all_runs(api, "t")].count("running") == 1 and len(times) == count
            finish_all(api, "t")
        assert min(times) == first
        assert_no_gap(times, 60)


def test_allow_starts_all_the_same():
    with harness.server() as s:
        api, first = away_for_minutes(s, overlap="allow")
        times = wait_fired(s.db, "t", 3)
        assert min(times) == first and {r["status"] for r in all_runs(api, "t")} == {"running"}
        assert_no_gap(times, 60)


# --- no more times ---

def test_a_paused_or_deleted_schedule_does_not_fire_and_its_runs_go_on(api, clockwork, tenant, put):
    for sid in ("paused", "deleted", "clock"):
        put(sid, cron=EVERY_SECOND, overlap="allow")
    wait_fired(clockwork.db, tenant, 1, "paused")
    wait_fired(clockwork.db, tenant, 1, "deleted")
    assert put("paused", cron=EVERY_SECOND, overlap="allow", paused=True)["next_times"] == []
    r = api.delete(path("deleted"), tenant=tenant)
    assert r.status == 200 and r.json == {"id": "deleted", "deleted": True}, r
    assert_problem(api.delete(path("deleted"), tenant=tenant), 404, "SCHEDULE_NOT_FOUND")
    still = {sid: fired(clockwork.db, tenant, sid) for sid in ("paused", "deleted")}
    wait_fired(clockwork.db, tenant, len(fired(clockwork.db, tenant, "clock")) + 1, "clock")
    assert {sid: fired(clockwork.db, tenant, sid) for sid in still} == still
    assert {r["status"] for r in all_runs(api, tenant)} == {"running"}
    begin = put("paused", cron=EVERY_SECOND, overlap="allow")["next_times"][0]
    wait_fired(clockwork.db, tenant, len(still["paused"]) + 1, "paused")
    assert min(set(fired(clockwork.db, tenant, "paused")) - set(still["paused"])) == when(begin), "times while it was paused do not come later"


def test_a_time_that_makes_no_run_says_why_and_the_next_one_comes():
    with harness.server() as s:
        api = s.client()
        api.workflow("t", "w", [task("work")], input_schema={"properties": {"n": {"type": "number"}}})
        put_schedule(api, "t", cron=ONCE_A_YEAR, input={"n": "seven"})
        moment = ago(2)
        api = set_back(s, moment)
        error = wait_until(lambda: see(api, "t")["last_error"], "it makes no run")
        assert error["code"] == "INPUT_INVALID" and error["message"] and error["time"] == text_of(moment), error
        put_schedule(api, "t", cron=ONCE_A_YEAR, input={"n": 7})
        api = set_back(s, ago(1))
        wait_until(lambda: see(api, "t")["last_run_id"], "the next one does")
        assert see(api, "t")["last_error"] is None and len(all_runs(api, "t")) == 1
