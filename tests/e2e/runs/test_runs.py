"""Runs: what they look like, how they are found, the order of their steps, and how they end."""
import re
import threading
import uuid

import pytest

import harness
from checks import assert_problem
from pages import walk

UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def task(name, **more):
    return {"name": name, "type": "task", "handler": "h", **more}


def sleep(name, ms=1, **more):
    return {"name": name, "type": "sleep", "duration_ms": ms, **more}


def show(api, tenant, run):
    r = api.get(f"/api/v1/runs/{run}", tenant=tenant)
    assert r.status == 200, r
    return r.json


def ended(api, tenant, run):
    return harness.wait_until(lambda: (r := show(api, tenant, run))["finished_at"] and r, "the run ends")


def events(api, tenant, run):
    return [e["type"] for e in walk(api, f"/api/v1/runs/{run}/events", tenant)]


# --- start and show ---

def test_a_start_answers_with_the_whole_run(api, tenant):
    api.workflow(tenant, "w", [task("a"), sleep("b")])
    r = api.start(tenant, "w", {"input": {"x": [1]}, "labels": {"env": "prod", "n": "1"}, "priority": 5})
    assert r.status == 200 and r.json["created"] is True
    run = r.json["run"]
    assert UUID7.fullmatch(run["id"]) and run["id"] == r.json["run_id"]
    assert (run["workflow_id"], run["workflow_version"], run["status"], run["version"]) == ("w", 1, "running", 2)
    assert (run["input"], run["state"], run["output"], run["error"]) == ({"x": [1]}, {}, None, None)
    assert run["labels"] == {"env": "prod", "n": "1"} and run["priority"] == 5 and run["finished_at"] is None
    assert RFC3339.fullmatch(run["created_at"]) and RFC3339.fullmatch(run["started_at"])
    assert [(s["name"], s["type"], s["status"], s["attempt"]) for s in run["steps"]] == [("a", "task", "pending", 0), ("b", "sleep", "pending", 0)]
    assert show(api, tenant, run["id"]) == run


def test_the_flat_route_is_the_same_pipeline(api, tenant):
    api.workflow(tenant, "w")
    r = api.post("/api/v1/workflow-runs", {"definitionId": "w", "input": 7, "idempotencyKey": "flat-1"}, tenant=tenant)
    assert r.status == 200 and r.json["created"] is True and r.json["run"]["input"] == 7
    again = api.post("/api/v1/workflow-runs", {"definitionId": "w", "input": 7, "idempotencyKey": "flat-1"}, tenant=tenant)
    assert again.json["created"] is False and again.json["run"]["id"] == r.json["run"]["id"]
    assert_problem(api.post("/api/v1/workflow-runs", {"input": 7}, tenant=tenant), 400, "FIELD_INVALID")
    assert_problem(api.post("/api/v1/workflow-runs", {"definitionId": "none"}, tenant=tenant), 404, "WORKFLOW_NOT_FOUND")


@pytest.mark.parametrize("value", [None, True, 0, -1.5, "text", [], {}, [[{"a": None}]]])
def test_input_is_any_json_value(api, tenant, value):
    api.workflow(tenant, "w")
    run = api.start(tenant, "w", {"input": value}).json["run_id"]
    assert show(api, tenant, run)["input"] == value
    assert api.work(tenant)["input"] == value


@pytest.mark.parametrize("body", [
    {"labels": []}, {"labels": {"a": 1}}, {"labels": {"a b": "x"}}, {"labels": {"a:b": "x"}}, {"labels": {"a": "x" * 257}},
    {"labels": {f"l{i}": "x" for i in range(33)}}, {"priority": 101}, {"priority": -101}, {"priority": 1.5}, {"priority": "high"},
    {"at_limit": "dance"}, {"start_at": "tomorrow"}, {"idempotency_key": 5},
])
def test_a_bad_field_of_a_start_is_400(api, tenant, body):
    api.workflow(tenant, "w")
    r = api.start(tenant, "w", body)
    assert r.status == 400, r
    assert next(iter(body)) in assert_problem(r, 400)["detail"]


@pytest.mark.parametrize("query", ["wait_ms=-1", "wait_ms=60001", "wait_ms=x", "wait_ms=1&wait_ms=2"])
def test_a_bad_wait_is_400(api, tenant, query):
    api.workflow(tenant, "w")
    assert_problem(api.post(f"/api/v1/workflows/w/runs?{query}", {}, tenant=tenant), 400, "BAD_REQUEST")


def test_a_start_that_waits_shows_the_end(api, tenant):
    api.workflow(tenant, "w", [sleep("a"), sleep("b", 20)])
    run = api.post("/api/v1/workflows/w/runs?wait_ms=30000", {}, tenant=tenant).json["run"]
    assert run["status"] == "succeeded" and [s["status"] for s in run["steps"]] == ["succeeded", "succeeded"]


def test_a_start_waits_no_longer_than_it_says(api, tenant):
    api.workflow(tenant, "w")
    run = api.post("/api/v1/workflows/w/runs?wait_ms=30", {}, tenant=tenant).json["run"]
    assert run["status"] == "running"


@pytest.mark.parametrize("rid", [str(uuid.uuid4()), "0190b3c4-0000-7000-8000-000000000000", "nonsense", "0", "x" * 500])
def test_a_run_that_is_not_there_is_404(api, tenant, rid):
    for method, path in (("GET", ""), ("GET", "/events"), ("POST", "/cancel")):
        assert_problem(api.call(method, f"/api/v1/runs/{rid}{path}", tenant=tenant), 404, "RUN_NOT_FOUND")


# --- lists ---

def ids(api, tenant, query):
    return [r["id"] for r in walk(api, f"/api/v1/runs?{query}", tenant)]


def test_filters_find_exactly_what_they_say(api, tenant):
    api.workflow(tenant, "one")
    api.workflow(tenant, "two")
    a = api.start(tenant, "one", {"labels": {"env": "prod", "team": "a"}}).json["run_id"]
    b = api.start(tenant, "two", {"labels": {"env": "test", "team": "a"}}).json["run_id"]
    c = api.start(tenant, "one", {"labels": {"env": "prod:eu"}}).json["run_id"]
    api.post(f"/api/v1/runs/{b}/cancel", tenant=tenant)
    assert ids(api, tenant, "") == [c, b, a], "newest first"
    assert ids(api, tenant, "workflow_id=one") == [c, a]
    assert ids(api, tenant, "workflow_id=none") == []
    assert ids(api, tenant, "status=cancelled") == [b]
    assert ids(api, tenant, "status=running") == [c, a]
    assert ids(api, tenant, "status=queued") == []
    assert ids(api, tenant, "label=team:a") == [b, a]
    assert ids(api, tenant, "label=env:prod") == [a]
    assert ids(api, tenant, "label=env%3Aprod%3Aeu") == [c], "a value may have colons"
    assert ids(api, tenant, "label=env:") == [] and ids(api, tenant, "label=nope:x") == []
    assert ids(api, tenant, "label=team:a&status=running&workflow_id=one") == [a]


def test_created_after_and_before_bound_the_list(api, tenant):
    api.workflow(tenant, "w")
    runs = []
    for _ in range(3):
        runs.append(api.start(tenant, "w").json["run"])
        # The next one is created in a later millisecond.
        harness.wait_until(lambda: api.start(tenant, "w").json["run"]["created_at"] > runs[-1]["created_at"], "a millisecond passes")
    everything = {r["id"]: r["created_at"] for r in walk(api, "/api/v1/runs?limit=200", tenant)}
    middle = runs[1]["created_at"]
    after, before = set(ids(api, tenant, f"created_after={middle}")), set(ids(api, tenant, f"created_before={middle}"))
    assert after >= {i for i, at in everything.items() if at > middle} and runs[0]["id"] not in after
    assert before >= {i for i, at in everything.items() if at < middle} and runs[2]["id"] not in before
    assert ids(api, tenant, "created_after=2999-01-01T00:00:00Z") == []
    assert set(ids(api, tenant, "created_after=1999-01-01T00:00:00%2B02:00")) == set(everything)


@pytest.mark.parametrize("query", ["status=dance", "status=", "label=x", "label=:x", "label=", "created_after=yesterday", "created_before=2026-13-01T00:00:00Z",
                                   "created_after=2026-01-01", "workflow=x"])
def test_a_bad_filter_is_400(api, tenant, query):
    assert_problem(api.get(f"/api/v1/runs?{query}", tenant=tenant), 400, "BAD_REQUEST")


@pytest.mark.parametrize("by", ["cursor", "link"])
@pytest.mark.parametrize("query", ["limit=7", "limit=7&status=running&label=k:v"])
def test_a_walk_over_120_runs_loses_and_repeats_nothing_while_more_come(api, dev_server, tenant, by, query):
    api.workflow(tenant, "w")
    before = [api.start(tenant, "w", {"labels": {"k": "v"}}).json["run_id"] for _ in range(120)]
    stop, added = threading.Event(), []

    def keep_starting():
        client = dev_server.client()
        while not stop.is_set():
            added.append(client.start(tenant, "w", {"labels": {"k": "v"}}).json["run_id"])

    thread = threading.Thread(target=keep_starting)
    thread.start()
    try:
        harness.wait_until(lambda: added, "others start runs")
        seen = [r["id"] for r in walk(api, f"/api/v1/runs?{query}", tenant, between=lambda: api.start(tenant, "w"), by=by)]
    finally:
        stop.set()
        thread.join()
    assert len(seen) == len(set(seen))
    old = set(before)
    assert [i for i in seen if i in old] == before[::-1]


def test_a_page_has_at_most_its_limit(api, tenant):
    api.workflow(tenant, "w")
    for _ in range(60):
        api.start(tenant, "w")
    for query, size in (("", 50), ("?limit=1", 1), ("?limit=60", 60), ("?limit=200", 60)):
        assert len(api.get(f"/api/v1/runs{query}", tenant=tenant).json["items"]) == size


def test_a_filter_that_matches_late_still_finds(api, tenant):
    api.workflow(tenant, "w")
    first = api.start(tenant, "w", {"labels": {"rare": "yes"}}).json["run_id"]
    for _ in range(100):
        api.start(tenant, "w")
    assert ids(api, tenant, "limit=2&label=rare:yes") == [first]


# --- events ---

def test_the_timeline_is_paged_in_order(api, tenant):
    api.workflow(tenant, "w", [task("a"), task("b")])
    run = api.start(tenant, "w").json["run_id"]
    api.work(tenant), api.work(tenant)
    items = walk(api, f"/api/v1/runs/{run}/events?limit=2", tenant)
    assert [e["seq"] for e in items] == list(range(1, len(items) + 1)) and all(RFC3339.fullmatch(e["at"]) for e in items)
    assert [e["type"] for e in items] == ["run.created", "job.created", "job.claimed", "job.succeeded", "job.created", "job.claimed",
                                          "job.succeeded", "run.succeeded"]


# --- versions and order ---

def test_a_run_is_pinned_to_its_version(api, tenant):
    api.workflow(tenant, "w", [task("a"), task("b")])
    old = api.start(tenant, "w").json["run_id"]
    api.workflow(tenant, "w", [task("x"), task("y"), task("z")])
    new = api.start(tenant, "w").json["run_id"]
    while api.work(tenant):
        pass
    assert [s["name"] for s in show(api, tenant, old)["steps"]] == ["a", "b"] and show(api, tenant, old)["workflow_version"] == 1
    assert [s["name"] for s in show(api, tenant, new)["steps"]] == ["x", "y", "z"] and show(api, tenant, new)["workflow_version"] == 2
    assert {show(api, tenant, r)["status"] for r in (old, new)} == {"succeeded"}


def test_without_needs_steps_go_in_the_order_written(api, tenant):
    api.workflow(tenant, "w", [task("c"), sleep("b"), task("a")])
    api.start(tenant, "w")
    assert api.work(tenant)["step"] == "c"
    assert api.work(tenant, wait_ms=20000)["step"] == "a"
    assert api.work(tenant) is None


def test_a_diamond_runs_both_sides_at_once_and_joins(api, tenant):
    api.workflow(tenant, "w", [task("top", needs=[]), task("left", needs=["top"]), sleep("right", 5, needs=["top"]), sleep("nap", 5, needs=["right"]),
                               task("join", needs=["left", "nap"])])
    run = api.start(tenant, "w").json["run_id"]
    assert api.work(tenant)["step"] == "top"
    harness.wait_until(lambda: show(api, tenant, run)["steps"][3]["status"] == "succeeded", "the sleeping side is through")
    assert {s["name"]: s["status"] for s in show(api, tenant, run)["steps"]} == {
        "top": "succeeded", "left": "pending", "right": "succeeded", "nap": "succeeded", "join": "pending"}
    assert api.work(tenant)["step"] == "left", "the join waits for it"
    assert api.work(tenant, output={"joined": True})["step"] == "join"
    run = ended(api, tenant, run)
    assert run["status"] == "succeeded" and run["output"] == {"joined": True}


def test_steps_that_need_nothing_begin_together(api, tenant):
    api.workflow(tenant, "w", [task(f"s{i}", needs=[]) for i in range(10)] + [task("last", needs=[f"s{i}" for i in range(10)])])
    run = api.start(tenant, "w").json["run_id"]
    jobs = api.post("/api/v1/jobs/claim", {"worker_id": "w", "max": 100}, tenant=tenant).json["jobs"]
    assert {j["step"] for j in jobs} == {f"s{i}" for i in range(10)}
    harness.together(10, lambda i: api.post(f"/api/v1/jobs/{jobs[i]['job_id']}/complete", {"lease_token": jobs[i]["lease_token"], "output": i}, tenant=tenant))
    assert api.work(tenant)["step"] == "last" and show(api, tenant, run)["status"] == "succeeded"


def test_a_run_that_only_sleeps_is_waiting(api, tenant):
    api.workflow(tenant, "w", [sleep("long", 3_600_000), task("after")])
    run = api.start(tenant, "w").json["run"]
    assert run["status"] == "waiting" and run["steps"][0]["status"] == "scheduled"


def test_a_time_in_the_past_does_not_keep_a_run(api, tenant):
    api.workflow(tenant, "w", [{"name": "past", "type": "sleep", "until": "2001-01-01T00:00:00Z"}])
    run = api.post("/api/v1/workflows/w/runs?wait_ms=30000", {}, tenant=tenant).json["run"]
    assert run["status"] == "succeeded"


# --- cancel ---

def test_cancel_ends_a_run_and_everything_in_it(api, tenant):
    api.workflow(tenant, "w", [task("a", needs=[]), task("b", needs=[]), sleep("c", 3_600_000, needs=[]), task("d", needs=["a"])])
    run = api.start(tenant, "w").json["run_id"]
    job = api.post("/api/v1/jobs/claim", {"worker_id": "w"}, tenant=tenant).json["jobs"][0]
    r = api.post(f"/api/v1/runs/{run}/cancel", {"reason": "no more"}, tenant=tenant)
    assert r.status == 200 and r.json["status"] == "cancelled" and r.json["finished_at"]
    assert [s["status"] for s in r.json["steps"]] == ["cancelled", "cancelled", "cancelled", "pending"]
    assert api.work(tenant) is None and api.get(f"/api/v1/tenants/{tenant}").json["active_runs"] == 0
    assert_problem(api.post(f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": job["lease_token"]}, tenant=tenant), 409, "LEASE_LOST")
    assert events(api, tenant, run)[-1] == "run.cancelled"


def test_cancelling_again_changes_nothing(api, tenant):
    api.workflow(tenant, "w")
    run = api.start(tenant, "w").json["run_id"]
    first = api.post(f"/api/v1/runs/{run}/cancel", tenant=tenant).json
    assert api.post(f"/api/v1/runs/{run}/cancel", tenant=tenant).json == first
    assert events(api, tenant, run).count("run.cancelled") == 1


def test_a_finished_run_is_not_cancelled(api, tenant):
    api.workflow(tenant, "w")
    run = api.start(tenant, "w").json["run_id"]
    api.work(tenant)
    assert_problem(api.post(f"/api/v1/runs/{run}/cancel", tenant=tenant), 409, "RUN_IS_OVER")
    assert show(api, tenant, run)["status"] == "succeeded"


def test_if_match_protects_what_was_not_seen(api, tenant):
    api.workflow(tenant, "w", [task("a"), task("b")])
    run = api.start(tenant, "w").json["run"]
    api.work(tenant)  # it moves on
    now = show(api, tenant, run["id"])
    assert now["version"] > run["version"]
    r = api.post(f"/api/v1/runs/{run['id']}/cancel", tenant=tenant, headers={"If-Match": f'"{run["version"]}"'})
    problem = assert_problem(r, 409, "CONCURRENCY_ERROR")
    assert (problem["expected"], problem["actual"]) == (run["version"], now["version"])
    assert show(api, tenant, run["id"]) == now, "nothing changed"
    r = api.post(f"/api/v1/runs/{run['id']}/cancel", tenant=tenant, headers={"If-Match": f'"{now["version"]}"'})
    assert r.status == 200 and r.json["status"] == "cancelled"


@pytest.mark.parametrize("value", ["7", '"x"', '""', '"-1"', "W/\"1\"", '"1", "2"', "'1'"])
def test_a_malformed_if_match_is_400(api, tenant, value):
    api.workflow(tenant, "w")
    run = api.start(tenant, "w").json["run_id"]
    assert_problem(api.post(f"/api/v1/runs/{run}/cancel", tenant=tenant, headers={"If-Match": value}), 400, "BAD_REQUEST")
    assert show(api, tenant, run)["status"] == "running"


def test_64_cancels_at_once_are_one_cancel(api, dev_server, tenant):
    api.workflow(tenant, "w")
    run = api.start(tenant, "w").json["run_id"]
    results = harness.together(64, lambda i: dev_server.client().post(f"/api/v1/runs/{run}/cancel", tenant=tenant))
    assert {r.status for r in results} == {200} and len({r.raw for r in results}) == 1
    assert events(api, tenant, run).count("run.cancelled") == 1
    assert api.get(f"/api/v1/tenants/{tenant}").json["active_runs"] == 0
