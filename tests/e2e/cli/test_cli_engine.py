"""The command line on the engine: steering runs, watching them, signals, schedules, dead letters, leases by hand."""
import json
import re

import pytest

import cli
import harness
from cli import pawl
from harness import wait_until

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NO_ID = "0190b3c4-0000-7000-8000-000000000000"
TASK = {"name": "work", "type": "task", "handler": "h"}
STEPS = [TASK, {"name": "wait", "type": "wait_signal", "signal": "go"}, {"name": "more", "type": "task", "handler": "h"}]


@pytest.fixture
def run(dev_server, tenant):
    """The command with this test's server and tenant in its environment."""
    return lambda *args, **kw: pawl(*args, **{"PAWL_URL": dev_server.url, "PAWL_TENANT": tenant, **kw})


@pytest.fixture
def start(run, api, tenant):
    """start(*flags): the id of a new run of a workflow with a task, a signal and a task."""
    api.workflow(tenant, "w", STEPS)

    def one(*flags, workflow="w"):
        r = run("run", "start", workflow, *flags)
        assert r.code == 0, r
        return r.out.split()[0]

    return one


@pytest.fixture
def show(api, tenant):
    return lambda run_id: api.get(f"/api/v1/runs/{run_id}", tenant=tenant).json


@pytest.fixture
def fail(api, tenant):
    """Claims one job and lets it fail for good."""
    def one():
        job = api.post("/api/v1/jobs/claim", {"worker_id": "w1"}, tenant=tenant).json["jobs"][0]
        r = api.post(f"/api/v1/jobs/{job['job_id']}/fail", {"lease_token": job["lease_token"], "error": {"code": "BROKEN", "message": "it is", "retryable": False}}, tenant=tenant)
        assert r.status == 200, r
        return job
    return one


# --- steering one run ---

def test_pause_and_resume(run, start, show, api, tenant):
    rid = start()
    for _ in range(2):
        assert run("run", "pause", rid).out == f"{rid} paused\n"
    assert show(rid)["status"] == "paused" and api.work(tenant) is None
    assert run("run", "resume", rid).out == f"{rid} running\n"
    assert run("run", "pause", rid, "--json").json["status"] == "paused"
    assert run("run", "resume", rid, "--json").json["id"] == rid
    assert api.work(tenant)["run_id"] == rid


def test_cancel_gives_its_reason(run, start, api, tenant):
    rid = start()
    assert run("run", "cancel", rid, "--reason", "not wanted any more").out == f"{rid} cancelled\n"
    events = api.get(f"/api/v1/runs/{rid}/events", tenant=tenant).json["items"]
    assert next(e["data"]["reason"] for e in events if e["type"] == "run.cancelled") == "not wanted any more"


@pytest.mark.parametrize("args", [("cancel",), ("pause",), ("resume",), ("retry",), ("rerun",), ("signal", "go")])
def test_a_version_that_has_passed_is_refused_and_changes_nothing(run, start, show, args):
    rid = start()
    assert run("run", "pause", rid).code == 0
    if args[0] != "resume":
        assert run("run", "resume", rid).code == 0
    before = show(rid)
    verb, *rest = args
    r = run("run", verb, rid, *rest, "--if-version", before["version"] - 1)
    assert r.code == 1 and "CONCURRENCY_ERROR" in r.err and r.out == "" and show(rid) == before, r
    r = run("run", verb, rid, *rest, "--if-version", before["version"] - 1, "--json")
    assert r.json["expected"] == before["version"] - 1 and r.json["actual"] == before["version"]
    if args[0] != "rerun":
        assert run("run", verb, rid, *rest, "--if-version", before["version"]).code == 0


def test_retry_tries_the_failed_step_again(run, start, show, fail, api, tenant):
    rid = start()
    fail()
    assert show(rid)["status"] == "failed"
    assert run("run", "retry", rid).out in (f"{rid} running\n", f"{rid} pending\n")
    assert api.work(tenant)["run_id"] == rid and show(rid)["steps"][0]["status"] == "succeeded"
    assert run("run", "cancel", rid).code == 0
    r = run("run", "retry", rid)
    assert r.code == 1 and "RUN_IS_OVER" in r.err and r.out == "", r


def test_rerun_is_a_new_run_that_keeps_what_lies_before_a_step(run, start, show, api, tenant):
    rid = start("--input", '{"n":1}')
    api.work(tenant, output={"made": 1})
    run("run", "signal", rid, "go", "--payload", "7")
    api.work(tenant, output={"made": 2})
    assert show(rid)["status"] == "succeeded"
    r = run("run", "rerun", rid, "--from", "more")
    again = r.out.split()[0]
    assert r.code == 0 and r.out.split()[1:] == ["created", "running"] and again != rid
    assert [(s["status"], s["output"]) for s in show(again)["steps"]][0] == ("succeeded", {"made": 1})
    assert api.work(tenant)["step"] == "more" and show(again)["input"] == {"n": 1} and show(again)["rerun_of"] == rid
    whole = run("run", "rerun", rid, "--json").json
    assert whole["run"]["steps"][0]["status"] == "pending" and whole["created"] is True
    r = run("run", "rerun", rid, "--from", "nowhere")
    assert r.code == 1 and "nowhere" in r.err and r.out == "", r


def test_rerun_with_a_key_is_one_run(run, start, api, tenant):
    rid = start()
    assert run("run", "cancel", rid).code == 0
    first = run("run", "rerun", rid, "--idempotency-key", "k")
    again = run("run", "rerun", rid, "--idempotency-key", "k")
    assert again.out.split()[:2] == [first.out.split()[0], "replayed"], (first, again)


def test_signal_early_and_twice(run, start, show, api, tenant, tmp_path):
    rid = start()
    (tmp_path / "p.json").write_text('{"x":[1,2]}')
    r = run("run", "signal", rid, "go", "--payload", f"@{tmp_path}/p.json", "--dedup-key", "k")
    assert r.code == 0 and r.out == "go received; the run is running\n", r
    assert run("run", "signal", rid, "go", "--payload", '{"x": [1,2]}', "--dedup-key", "k").out == "go already received; the run is running\n"
    r = run("run", "signal", rid, "go", "--payload", "3", "--dedup-key", "k")
    assert r.code == 1 and "IDEMPOTENCY_KEY_REUSED" in r.err, r
    api.work(tenant)
    assert show(rid)["steps"][1]["output"]["payload"] == {"x": [1, 2]}
    assert run("run", "signal", rid, "other", "--json").json["duplicate"] is False


def test_start_at_waits_for_its_time(run, start, show):
    rid = start("--start-at", "2199-01-01T00:00:00Z")
    assert show(rid)["status"] == "queued" and show(rid)["start_at"] == "2199-01-01T00:00:00.000Z"
    r = run("run", "start", "w", "--start-at", "tomorrow")
    assert r.code == 1 and "start_at" in r.err, r


@pytest.mark.parametrize("verb", ["pause", "resume", "retry", "rerun", "watch"])
def test_no_such_run(run, verb):
    r = run("run", verb, NO_ID)
    assert r.code == 1 and "RUN_NOT_FOUND" in r.err and r.out == "", r


def test_why_names_the_signal_and_the_child(run, start, show, api, tenant):
    rid = start()
    api.work(tenant)
    r = run("run", "why", rid)
    titles, row = (re.split(r"  +", line) for line in r.out.split("\n\n")[1].splitlines())
    assert dict(zip(titles, row))["SIGNAL"] == "go" and dict(zip(titles, row))["WAITS FOR"] == "signal", r
    api.workflow(tenant, "parent", [{"name": "child", "type": "workflow", "workflow_id": "w"}])
    parent = start(workflow="parent")
    child = wait_until(lambda: run("run", "show", parent, "--json").json["steps"][0].get("child_run_id"), "the child begins")
    r = run("run", "why", parent)
    titles, row = (re.split(r"  +", line) for line in r.out.split("\n\n")[1].splitlines())
    assert dict(zip(titles, row))["CHILD RUN"] == child and show(child)["status"] == "running", r


# --- watching ---

@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_watch_tells_what_happens_until_the_run_has_succeeded(dev_server, tenant, start, api, flags):
    rid = start()
    watch = cli.popen("run", "watch", rid, *flags, PAWL_URL=dev_server.url, PAWL_TENANT=tenant)
    seen = [watch.stdout.readline(), watch.stdout.readline()]
    assert "created" in seen[0] and ("job.created" if flags else "queued") in seen[1], seen
    api.work(tenant)
    while ("job.succeeded" if flags else "attempt 1 succeeded") not in seen[-1]:
        seen.append(watch.stdout.readline())
        assert seen[-1] != "", "the watch ended before the run"
    assert watch.poll() is None
    assert api.post(f"/api/v1/runs/{rid}/signals", {"name": "go"}, tenant=tenant).status == 200
    api.work(tenant)
    lines = "".join(seen).splitlines() + watch.stdout.read().splitlines()
    err = watch.stderr.read()
    watch.wait()
    watch.stdout.close()
    watch.stderr.close()
    events = api.get(f"/api/v1/runs/{rid}/events?limit=200", tenant=tenant).json["items"]
    assert watch.returncode == 0 and err == "" and ("run.succeeded" in lines[-1] if flags else lines[-1].split()[1:] == ["run", "succeeded"])
    if flags:
        assert [json.loads(line) for line in lines] == events
    else:
        assert [line.split()[:2] for line in lines] == [[e["at"], (e["data"] or {}).get("step", "run")] for e in events]


@pytest.mark.parametrize("end", ["failed", "cancelled"])
def test_watch_of_a_run_that_did_not_succeed_exits_1(run, start, fail, end):
    rid = start()
    fail() if end == "failed" else run("run", "cancel", rid)
    r = run("run", "watch", rid)
    assert r.code == 1 and r.out.splitlines()[-1].split()[1:3] == ["run", end + ":" * (end == "failed")] and r.err == "", r


def test_watch_of_a_long_timeline_misses_nothing(run, api, tenant, start):
    api.workflow(tenant, "many", [{"name": "map", "type": "transform", "for_each": "input", "output": "${item}"}, {"name": "tell", "type": "emit", "event": "x", "for_each": "input"}])
    rid = api.start(tenant, "many", {"input": list(range(150))}).json["run_id"]
    r = run("run", "watch", rid, "--json")
    seqs = [json.loads(line)["seq"] for line in r.out.splitlines()]
    assert r.code == 0 and seqs == list(range(1, len(seqs) + 1)) and len(seqs) > 200, r


# --- many runs ---

def test_bulk_counts_then_changes_what_the_filter_finds(run, start, show, api, tenant):
    api.workflow(tenant, "other")
    mine, others = [start() for _ in range(3)], [start(workflow="other") for _ in range(2)]
    assert run("run", "bulk", "pause", "--workflow", "w", "--dry-run").out == "3 runs\n"
    assert {show(r)["status"] for r in mine + others} == {"running"}
    assert run("run", "bulk", "pause", "--workflow", "w", "--yes").out == "3 runs: 3 changed, 0 unchanged, 0 refused\n"
    assert run("run", "bulk", "pause", "--workflow", "w", "--yes").out == "3 runs: 0 changed, 3 unchanged, 0 refused\n"
    assert {show(r)["status"] for r in mine} == {"paused"} and {show(r)["status"] for r in others} == {"running"}
    assert run("run", "bulk", "resume", "--status", "paused", "--yes", "--json").json["changed"] == 3
    r = run("run", "bulk", "cancel", "--all", "--reason", "the end", "--yes")
    assert r.code == 0 and r.out.startswith("5 runs: 5 changed"), r


def test_bulk_says_what_was_refused(run, start, api, tenant):
    over, active = start(), start()
    assert run("run", "cancel", over).code == 0
    r = run("run", "bulk", "pause", "--all", "--yes")
    assert r.code == 1 and r.out == "2 runs: 1 changed, 0 unchanged, 1 refused\n" and f"pawl: {over}: RUN_IS_OVER: " in r.err and active not in r.err, r


def test_bulk_follows_the_pages_and_is_safe_to_repeat(run, api, tenant):
    api.workflow(tenant, "w")
    harness.together(4, lambda _: [api.start(tenant, "w") for _ in range(110)])
    first = run("run", "bulk", "cancel", "--workflow", "w", "--idempotency-key", "clean-up", "--yes")
    assert first.code == 0 and first.out == "440 runs: 440 changed, 0 unchanged, 0 refused\n", first
    assert run("run", "bulk", "cancel", "--workflow", "w", "--idempotency-key", "clean-up", "--yes").out == first.out
    assert api.get(f"/api/v1/tenants/{tenant}").json["active_runs"] == 0


def test_bulk_never_means_every_run_by_accident(run, start, show):
    rid = start()
    for args in (("bulk", "cancel"), ("bulk", "cancel", "--dry-run"), ("bulk", "cancel", "--all", "--workflow", "w")):
        r = run("run", *args)
        assert r.code == 2 and "filter" in r.err and r.out == "", r
    r = run("run", "bulk", "dance", "--all", "--yes")
    assert r.code == 1 and "action" in r.err and r.out == "", r
    assert show(rid)["status"] == "running"


# --- schedules ---

def test_schedule_apply_list_show_trigger_delete(run, start, show, api, tenant):
    start()
    made = run("schedule", "apply", "nightly", "--workflow", "w", "--cron", "0 3 * * *", "--timezone", "Europe/Berlin", "--overlap", "queue", "--catch-up-s", "60",
               "--input", '{"a":1}')
    assert made.code == 0 and re.search(r"^cron +0 3 \* \* \*$", made.out, re.M), made
    shown = run("schedule", "show", "nightly", "--json").json
    assert (shown["workflow_id"], shown["timezone"], shown["overlap"], shown["catch_up_s"], shown["input"], shown["paused"]) == ("w", "Europe/Berlin", "queue", 60, {"a": 1}, False)
    assert len(shown["next_times"]) == 5
    rows = run("schedule", "list").rows
    assert rows[0][:4] == ["ID", "WORKFLOW", "CRON", "ZONE"] and rows[1][:2] == ["nightly", "w"] and shown["next_times"][0] in rows[1]
    fired = run("schedule", "trigger", "nightly", "--idempotency-key", "now")
    rid = fired.out.split()[0]
    assert UUID.fullmatch(rid) and fired.out.split()[1] == "created" and show(rid)["input"] == {"a": 1}
    assert run("schedule", "trigger", "nightly", "--idempotency-key", "now").out.split() == [rid, "replayed"]
    assert rid in run("schedule", "list").rows[1]
    assert run("schedule", "delete", "nightly").out == "nightly deleted\n"
    for args in (("show", "nightly"), ("delete", "nightly"), ("trigger", "nightly")):
        r = run("schedule", *args)
        assert r.code == 1 and "SCHEDULE_NOT_FOUND" in r.err and r.out == "", r


def test_schedule_from_a_file_with_flags_on_top(run, start, tmp_path):
    start()
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"workflow_id": "w", "cron": "@daily", "overlap": "allow", "input": {"big": 9007199254740993}}))
    r = run("schedule", "apply", "s", "--file", path, "--cron", "@hourly", "--paused", "--json")
    assert (r.json["cron"], r.json["overlap"], r.json["input"], r.json["paused"]) == ("@hourly", "allow", {"big": 9007199254740993}, True)
    assert run("schedule", "apply", "s", "--file", "-", stdin='{"workflow_id":"w","cron":"@weekly"}').code == 0
    assert run("schedule", "show", "s", "--json").json["overlap"] == "skip"


def test_schedule_faults(run, start, tmp_path):
    start()
    for flags, word in ((("--workflow", "w"), "cron"), (("--workflow", "w", "--cron", "61 * * * *"), "61"), (("--workflow", "none", "--cron", "@daily"), "WORKFLOW_NOT_FOUND"),
                        (("--workflow", "w", "--cron", "@daily", "--timezone", "Mars/Olympus"), "Mars")):
        r = run("schedule", "apply", "s", *flags)
        assert r.code == 1 and word in r.err and r.out == "", r
    (tmp_path / "list.json").write_text("[]")
    for flags in (("--file", tmp_path / "list.json"), ("--file", "/nowhere/file"), ("--workflow", "w", "--cron", "@daily", "--input", "{"),
                  ("--workflow", "w", "--cron", "@daily", "--overlap", "x")):
        r = run("schedule", "apply", "s", *flags)
        assert r.code == 2 and r.err and r.out == "", r


# --- dead letters ---

def test_dead_list_retry_drop(run, start, show, fail):
    rid = start()
    job = fail()
    rows = run("dead", "list").rows
    assert rows[0] == ["JOB", "RUN", "WORKFLOW", "STEP", "ENTITY", "QUEUE", "ATTEMPT", "FAILED", "ERROR"] and rows[1][:7] == [job["job_id"], rid, "w", "work", "-", "default", "1"] and "BROKEN" in rows[1][8]
    assert run("dead", "retry", job["job_id"]).out == f"{job['job_id']} pending\n"
    assert len(run("dead", "list").rows) == 1 and show(rid)["status"] == "running"
    fail()
    assert run("dead", "list", "--json").json["items"][0]["attempt"] == 1, "a retry grants as many attempts as the first time"
    assert run("dead", "drop", job["job_id"]).out == f"{job['job_id']} dropped\n"
    assert len(run("dead", "list").rows) == 1 and show(rid)["status"] == "failed"
    for verb in ("retry", "drop"):
        r = run("dead", verb, NO_ID)
        assert r.code == 1 and "JOB_NOT_FOUND" in r.err and r.out == "", r


def test_dead_letters_follow_their_pages(run, start, fail):
    ids = set()
    for _ in range(5):
        start()
        ids.add(fail()["job_id"])
    lines = run("dead", "list", "--limit", "2", "--all", "--json").out.splitlines()
    assert len(lines) == 3 and {i["job_id"] for line in lines for i in json.loads(line)["items"]} == ids
    assert "More results" in run("dead", "list", "--limit", "2").err


# --- a worker's calls, by hand ---

def test_job_heartbeat_and_release(run, start, api, tenant):
    rid = start()
    job = run("job", "claim", "--lease-ms", "60000", "--json").json["jobs"][0]
    lease = ("--lease-token", job["lease_token"])
    r = run("job", "heartbeat", job["job_id"], *lease, "--progress", '{"done":3}')
    until = api.get(f"/api/v1/jobs/{job['job_id']}", tenant=tenant).json
    assert r.code == 0 and r.out == f"{job['job_id']} is yours until {until['due_at']}\n" and until["progress"] == {"done": 3}, r
    assert run("job", "heartbeat", job["job_id"], *lease, "--json").json["cancel_requested"] is False
    assert run("job", "release", job["job_id"], *lease).out == f"{job['job_id']} released\n"
    assert api.get(f"/api/v1/jobs/{job['job_id']}", tenant=tenant).json["state"] == "pending"
    again = run("job", "claim", "--json").json["jobs"][0]
    for verb in ("heartbeat", "release"):
        r = run("job", verb, job["job_id"], *lease)
        assert r.code == 1 and "LEASE_LOST" in r.err and r.out == "", r
    assert run("run", "cancel", rid).code == 0
    r = run("job", "heartbeat", again["job_id"], "--lease-token", again["lease_token"])
    assert r.code == 1 and r.out == f"{again['job_id']} is cancelled\n", r


def test_job_checkpoint_and_suspend(run, start, api, tenant):
    rid = start()
    job = run("job", "claim", "--json").json["jobs"][0]
    lease = ("--lease-token", job["lease_token"])
    for status in ("stored", "already_stored"):
        assert run("job", "checkpoint", job["job_id"], "charge", *lease, "--output", '{"n":1}').out == f"{job['job_id']} {status}\n"
    for status in ("suspended", "already_suspended"):
        assert run("job", "suspend", job["job_id"], *lease, "--signal", "paid", "--until", "2999-01-01T00:00:00Z").out == f"{job['job_id']} {status}\n"
    r = run("run", "why", rid)
    assert "is suspended until the signal paid arrives, at the latest until 2999-01-01T00:00:00.000Z." in r.out and "SUSPENDED UNTIL" in r.out, r
    assert run("run", "signal", rid, "paid").code == 0
    job = run("job", "claim", "--json").json["jobs"][0]
    assert job["checkpoints"] == {"charge": {"n": 1}} and job["resumed_by"]["kind"] == "signal"
    asked = run("job", "suspend", job["job_id"], "--lease-token", job["lease_token"], "--approval", '{"prompt":"Refund?"}', "--json").json
    shown = run("job", "show", job["job_id"]).out
    assert "suspended" in shown and asked["approval_id"] in shown and "charge" in shown
    assert run("approval", "approve", asked["approval_id"]).code == 0
    assert run("job", "claim", "--json").json["jobs"][0]["resumed_by"]["decision"] == "approved"
    assert run("job", "checkpoint", job["job_id"], "late", "--lease-token", job["lease_token"]).code == 1


def test_job_complete_with_state_and_fail_for_good(run, start, show, api, tenant):
    api.workflow(tenant, "stubborn", [{**TASK, "retry": {"max_attempts": 9}}])
    first, second = start(), start(workflow="stubborn")
    jobs = {j["run_id"]: j for j in run("job", "claim", "--max", "2", "--json").json["jobs"]}
    done = run("job", "complete", jobs[first]["job_id"], "--lease-token", jobs[first]["lease_token"], "--state", '{"seen":1}')
    assert done.code == 0 and show(first)["state"] == {"seen": 1}, done
    failed = run("job", "fail", jobs[second]["job_id"], "--lease-token", jobs[second]["lease_token"], "--code", "NO", "--message", "never", "--not-retryable")
    assert failed.out == f"{jobs[second]['job_id']} failed\n" and show(second)["status"] == "failed", failed


def test_tenant_run_retention(run, tenant):
    assert run("tenant", "set", tenant, "--run-retention-s", "3600", "--json").json["run_retention_s"] == 3600
    r = run("tenant", "set", tenant, "--run-retention-s", "forever")
    assert r.code == 0 and re.search(r"^run_retention_s +-$", r.out, re.M), r


# --- usage ---

@pytest.mark.parametrize("args", [
    ("run", "signal", "x"), ("run", "signal", "x", "y", "z"), ("run", "pause"), ("run", "pause", "x", "y"), ("run", "pause", "x", "--if-version", "-1"), ("run", "pause", "x", "--if-version", "two"),
    ("run", "signal", "x", "go", "--payload", "{"), ("run", "bulk"), ("schedule",), ("schedule", "apply"), ("schedule", "apply", "s", "--catch-up-s", "x"), ("dead",), ("dead", "drop"),
    ("job", "heartbeat", "x"), ("job", "release", "x"), ("tenant", "set", "x", "--run-retention-s", "never"),
])
def test_usage_errors_exit_2_and_say_so(args):
    r = pawl(*args)
    assert r.code == 2 and r.err and r.out == "", r


def test_watch_of_a_server_out_of_reach_exits_3():
    r = pawl("run", "watch", NO_ID, "--url", f"http://127.0.0.1:{cli.free_port()}")
    assert r.code == 3 and r.out == "", r
