"""Runs in somebody's hands: pause, resume, retry, rerun, cancel, many at once, later, sooner; and what a newer definition does not touch."""
import datetime

import pytest

import harness
from actions import begin, claim, claim_one, complete, control, ended, events, fail, failing, outputs, show, signal, statuses, step, task, until, work
from checks import assert_problem
from inspect_store import active_runs, all_runs, assert_healthy, record

NO_RUN = "0190b3c4-0000-7000-8000-000000000000"
ACTIONS = ("cancel", "pause", "resume", "retry", "rerun", "signals")


def transform(name, output, **more):
    return {"name": name, "type": "transform", "output": output, **more}


def in_seconds(s):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=s)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def act(api, tenant, run, action, **kw):
    r = control(api, tenant, run, action, **kw)
    assert r.status == 200, r
    return r.json


def count_events(api, tenant, run, kind):
    return len(events(api, tenant, run, kind))


# --- pause and resume ---

def test_a_paused_run_hands_out_nothing_until_it_is_resumed(api, tenant):
    run = begin(api, tenant, task("a"))
    assert act(api, tenant, run, "pause")["status"] == "paused"
    assert claim(api, tenant, max=9) == [] and active_runs(api, tenant) == 1, "it keeps its slot"
    assert act(api, tenant, run, "resume")["status"] == "running"
    assert work(api, tenant, run)[0]["status"] == "succeeded"


def test_a_result_is_taken_while_paused_and_begins_nothing(api, tenant):
    run = begin(api, tenant, task("a"), task("b"))
    job = claim_one(api, tenant)
    act(api, tenant, run, "pause")
    assert complete(api, tenant, job, output=1).json["run_status"] == "paused"
    shown = show(api, tenant, run)
    assert (outputs(shown)["a"], statuses(shown)["b"]) == (1, "pending") and claim(api, tenant, max=9) == []
    act(api, tenant, run, "resume")
    assert claim_one(api, tenant)["step"] == "b"


def test_a_failure_while_paused_counts_when_it_is_resumed(api, tenant):
    run = begin(api, tenant, task("a"))
    job = claim_one(api, tenant)
    act(api, tenant, run, "pause")
    fail(api, tenant, job)
    assert show(api, tenant, run)["status"] == "paused"
    assert act(api, tenant, run, "resume")["status"] == "failed"


@pytest.mark.parametrize("waits", [{"type": "sleep", "duration_ms": 20}, {"type": "wait_signal", "signal": "go"}])
def test_what_a_paused_run_waited_for_may_come(api, tenant, waits):
    run = begin(api, tenant, {"name": "wait", **waits}, task("b"))
    act(api, tenant, run, "pause")
    if "signal" in waits:
        assert signal(api, tenant, run, "go").status == 200
    else:
        nap = begin(api, tenant, {"name": "nap", "type": "sleep", "duration_ms": 40}, wid="nap")
        assert ended(api, tenant, nap)["status"] == "succeeded", "the time has passed"
    assert show(api, tenant, run)["status"] == "paused" and claim(api, tenant, max=9) == []
    act(api, tenant, run, "resume")
    assert claim_one(api, tenant)["step"] == "b"


def test_a_lease_that_ends_while_paused_hands_nothing_out(api, tenant):
    run = begin(api, tenant, task("a"))
    claim_one(api, tenant, lease_ms=100)
    act(api, tenant, run, "pause")
    harness.wait_until(lambda: count_events(api, tenant, run, "job.lease_expired"), "the lease ends")
    assert claim(api, tenant, max=9) == []
    act(api, tenant, run, "resume")
    assert claim_one(api, tenant)["attempt"] == 2


def test_a_paused_run_can_be_cancelled(api, tenant):
    run = begin(api, tenant, task("a"))
    act(api, tenant, run, "pause")
    assert act(api, tenant, run, "cancel")["status"] == "cancelled" and active_runs(api, tenant) == 0


# --- each action again ---

def run_for(api, tenant, action):
    """A run that the action changes."""
    run = begin(api, tenant, task("a"))
    if action == "resume":
        act(api, tenant, run, "pause")
    elif action == "retry":
        fail(api, tenant, claim_one(api, tenant))
    return run


TOLD = {"cancel": "run.cancelled", "pause": "run.paused", "resume": "run.resumed", "retry": "run.retried"}


@pytest.mark.parametrize("action", TOLD)
def test_an_action_repeated_changes_nothing(api, tenant, action):
    run = run_for(api, tenant, action)
    act(api, tenant, run, action)
    before = show(api, tenant, run)
    for _ in range(3):
        assert act(api, tenant, run, action) == before
    assert show(api, tenant, run) == before and count_events(api, tenant, run, TOLD[action]) == 1


@pytest.mark.parametrize("action", TOLD)
def test_an_action_repeated_by_its_key_is_the_first_answer_again(api, tenant, action):
    run = run_for(api, tenant, action)
    first = control(api, tenant, run, action, key="k")
    assert first.status == 200 and first.header("Idempotent-Replayed") is None, first
    after = show(api, tenant, run)
    for _ in range(2):
        again = control(api, tenant, run, action, key="k")
        assert again.status == 200 and again.header("Idempotent-Replayed") == "true" and again.raw == first.raw, again
    assert record(api, tenant, "k")["replays"] == 2 and show(api, tenant, run) == after and count_events(api, tenant, run, TOLD[action]) == 1
    assert_problem(control(api, tenant, begin(api, tenant, task("a")), action, key="k"), 422, "IDEMPOTENCY_KEY_REUSED")


@pytest.mark.parametrize("action", TOLD)
def test_16_of_the_same_action_at_once_are_one(api, tenant, action):
    run = run_for(api, tenant, action)
    replies = harness.together(16, lambda i: control(api, tenant, run, action))
    assert {r.status for r in replies} == {200} and len({r.raw for r in replies}) == 1
    assert count_events(api, tenant, run, TOLD[action]) == 1


def test_an_action_that_does_not_fit_is_refused_and_changes_nothing(api, tenant):
    over = begin(api, tenant, transform("a", 1))
    under_way = begin(api, tenant, task("a"))
    later = begin(api, tenant, task("a"), body={"start_at": in_seconds(3600)})
    for run, action, code in ((over, "cancel", "RUN_IS_OVER"), (over, "pause", "RUN_IS_OVER"), (over, "resume", "RUN_IS_OVER"), (over, "retry", "RUN_IS_OVER"),
                              (over, "signals", "RUN_IS_OVER"), (under_way, "rerun", "RUN_NOT_OVER"), (later, "pause", "RUN_NOT_UNDER_WAY")):
        before = show(api, tenant, run)
        problem = assert_problem(control(api, tenant, run, action, {"name": "go"} if action == "signals" else None), 409, code, retryable=False)
        assert problem["actual"] == before["version"] and show(api, tenant, run) == before
    assert len(all_runs(api, tenant)) == 3


def test_a_child_is_not_retried_by_itself(api, tenant):
    api.workflow(tenant, "leaf", [task("a")])
    parent = begin(api, tenant, {"name": "c", "type": "workflow", "workflow_id": "leaf"}, wid="parent")
    fail(api, tenant, claim_one(api, tenant))
    child = ended(api, tenant, parent)["steps"][0]["child_run_id"]
    assert_problem(control(api, tenant, child, "retry"), 409, "RUN_IS_A_CHILD")


def test_if_match_on_a_run_that_is_over_tells_the_version_first(api, tenant):
    over = begin(api, tenant, transform("a", 1))
    version = show(api, tenant, over)["version"]
    assert_problem(control(api, tenant, over, "cancel", headers={"If-Match": f'"{version - 1}"'}), 409, "CONCURRENCY_ERROR")
    assert_problem(control(api, tenant, over, "cancel", headers={"If-Match": f'"{version}"'}), 409, "RUN_IS_OVER")


@pytest.mark.parametrize("action", ACTIONS)
def test_a_run_that_is_not_there_is_404(api, tenant, action):
    other = begin(api, api.tenant(), task("a"))
    for run in (NO_RUN, "nonsense", other):
        assert_problem(control(api, tenant, run, action, {"name": "go"} if action == "signals" else None), 404, "RUN_NOT_FOUND")


# --- If-Match ---

@pytest.mark.parametrize("action", ACTIONS)
def test_a_newer_version_than_was_read_is_not_changed(api, tenant, action):
    run = begin(api, tenant, task("a")) if action == "signals" else run_for(api, tenant, action)
    if action == "rerun":
        act(api, tenant, run, "cancel")
    body = {"name": "go"} if action == "signals" else None
    before, events_before, runs = show(api, tenant, run), events(api, tenant, run), len(all_runs(api, tenant))
    for seen in (before["version"] - 1, before["version"] + 1):
        problem = assert_problem(control(api, tenant, run, action, body, headers={"If-Match": f'"{seen}"'}), 409, "CONCURRENCY_ERROR", retryable=False)
        assert (problem["expected"], problem["actual"]) == (seen, before["version"])
    assert show(api, tenant, run) == before and events(api, tenant, run) == events_before and len(all_runs(api, tenant)) == runs
    assert control(api, tenant, run, action, body, headers={"If-Match": f'"{before["version"]}"'}).status == 200


def test_of_16_who_saw_the_same_version_one_is_heard(api, tenant):
    run = begin(api, tenant, task("a"))
    version = show(api, tenant, run)["version"]
    replies = harness.together(16, lambda i: control(api, tenant, run, ("cancel", "pause")[i % 2], headers={"If-Match": f'"{version}"'}))
    assert sorted(r.status for r in replies) == [200] + [409] * 15
    assert {r.code for r in replies if r.status == 409} == {"CONCURRENCY_ERROR"} and len(events(api, tenant, run, "run.paused", "run.cancelled")) == 1


def test_the_version_grows_with_each_change_and_only_then(api, tenant):
    run = begin(api, tenant, task("a"), task("b"))
    seen = [show(api, tenant, run)["version"]]
    for change in (lambda: control(api, tenant, run, "pause"), lambda: control(api, tenant, run, "resume"), lambda: complete(api, tenant, claim_one(api, tenant))):
        change()
        seen += [show(api, tenant, run)["version"], show(api, tenant, run)["version"]]
    assert seen[1:] == sorted(seen[1:]) and seen[1::2] == seen[2::2] and len({seen[0], *seen[1::2]}) == 4


# --- retry ---

def test_a_retry_does_only_the_failed_steps_again(api, tenant):
    run = begin(api, tenant, task("a", needs=[]), task("b", needs=[]), task("c", needs=["a", "b"], input=["${steps.a.output}", "${steps.b.output}"]))
    a, b = sorted(claim(api, tenant, max=9), key=lambda j: j["step"])
    complete(api, tenant, a, output="kept")
    fail(api, tenant, b)
    assert show(api, tenant, run)["status"] == "failed" and active_runs(api, tenant) == 0
    again = act(api, tenant, run, "retry")
    assert again["status"] == "running" and again["error"] is None and active_runs(api, tenant) == 1
    shown, done = work(api, tenant, run, lambda job: {"output": "new"})
    assert [j["step"] for j in done] == ["b", "c"] and done[0]["job_id"] == b["job_id"], "the same job, so that its worker can tell"
    assert done[0]["attempt"] == 1 and done[0]["lease_token"] != b["lease_token"] and done[1]["input"] == ["kept", "new"] and shown["status"] == "succeeded"


def test_a_retry_of_a_map_does_only_the_failed_items_again(api, tenant):
    run = begin(api, tenant, task("m", for_each="input"), input=[0, 1, 2, 3])
    jobs = claim(api, tenant, max=9)
    for job in jobs[:2]:
        complete(api, tenant, job, output=job["item"])
    fail(api, tenant, jobs[2])
    act(api, tenant, run, "retry")
    shown, done = work(api, tenant, run, lambda job: {"output": job["item"]})
    assert sorted(j["item"] for j in done) == [2, 3] and shown["output"] == [0, 1, 2, 3]


def test_a_retry_grants_as_many_attempts_as_the_first_time(api, tenant):
    run = begin(api, tenant, task("a", retry={"max_attempts": 2, "backoff_ms": 1, "jitter": "none"}))
    for _ in range(2):
        shown, done = work(api, tenant, run, failing("a"))
        assert shown["status"] == "failed" and [j["attempt"] for j in done] == [1, 2]
        act(api, tenant, run, "retry")
    assert work(api, tenant, run)[0]["status"] == "succeeded"


def test_a_retry_after_compensation_does_what_was_undone_again_in_order(api, tenant):
    undone = {"compensate": {"handler": "undo"}}
    run = begin(api, tenant, task("a", **undone), task("b"), task("c", **undone), task("d"))
    shown, done = work(api, tenant, run, failing("d"))
    assert [j["handler"] for j in done] == ["a", "b", "c", "d", "undo", "undo"]
    act(api, tenant, run, "retry")
    shown, done = work(api, tenant, run)
    assert [j["handler"] for j in done] == ["a", "b", "c", "d"] and shown["status"] == "succeeded"


def test_a_run_that_timed_out_may_be_tried_again(api, tenant):
    run = begin(api, tenant, task("a"), timeout_s=1)
    assert ended(api, tenant, run)["status"] == "timed_out"
    assert act(api, tenant, run, "retry")["status"] == "running"
    assert work(api, tenant, run)[0]["status"] == "succeeded"


def test_a_retry_needs_a_free_slot(api):
    tenant = api.tenant(max_concurrent_runs=1)
    run = begin(api, tenant, task("a"))
    fail(api, tenant, claim_one(api, tenant))
    other = begin(api, tenant, task("a"))
    before = show(api, tenant, run)
    assert_problem(control(api, tenant, run, "retry", key="k"), 429, "MAX_CONCURRENT_RUNS", retryable=True)
    assert show(api, tenant, run) == before
    act(api, tenant, other, "cancel")
    assert control(api, tenant, run, "retry", key="k").json["status"] == "running", "nothing was remembered under the key"


def test_a_dead_letter_retried_is_its_run_retried(api, tenant):
    run = begin(api, tenant, task("a"))
    job = claim_one(api, tenant)
    fail(api, tenant, job)
    [dead] = api.get("/api/v1/dead-letters", tenant=tenant).json["items"]
    assert (dead["job_id"], dead["run_id"]) == (job["job_id"], run)
    assert api.post(f"/api/v1/dead-letters/{job['job_id']}/retry", tenant=tenant).status == 200
    assert api.get("/api/v1/dead-letters", tenant=tenant).json["items"] == []
    assert claim_one(api, tenant)["job_id"] == job["job_id"]


# --- rerun ---

def test_a_rerun_from_a_step_reuses_what_does_not_lie_behind_it(api, tenant):
    run = begin(api, tenant, task("a", needs=[]), task("b", needs=["a"]), task("side", needs=["a"]),
                task("c", needs=["b", "side"], input=["${steps.a.output}", "${steps.b.output}", "${steps.side.output}"]), input={"n": 1}, body={"labels": {"k": "v"}, "priority": 7})
    old, _ = work(api, tenant, run, lambda job: {"output": f"first {job['step']}"})
    r = control(api, tenant, run, "rerun", {"from_step": "b"})
    assert r.status == 200 and r.json["created"] is True and r.json["run_id"] != run, r
    made = r.json["run"]
    assert {k: made[k] for k in ("rerun_of", "input", "labels", "priority", "workflow_version")} == {
        "rerun_of": run, "input": {"n": 1}, "labels": {"k": "v"}, "priority": 7, "workflow_version": 1}
    new, done = work(api, tenant, made["id"], lambda job: {"output": f"second {job['step']}"})
    assert [j["step"] for j in done] == ["b", "c"] and done[1]["input"] == ["first a", "second b", "first side"]
    assert not {s["job_id"] for s in new["steps"]} & {s["job_id"] for s in old["steps"]} and show(api, tenant, run) == old


def test_without_a_step_all_run_again(api, tenant):
    run = begin(api, tenant, task("a"), task("b"))
    work(api, tenant, run)
    _, done = work(api, tenant, control(api, tenant, run, "rerun").json["run_id"])
    assert [j["step"] for j in done] == ["a", "b"]


def test_a_rerun_reuses_a_map_whole(api, tenant):
    run = begin(api, tenant, task("m", for_each="input"), task("b", input="${steps.m.output}"), input=[1, 2, 3])
    work(api, tenant, run, lambda job: {"output": job["input"]})
    _, done = work(api, tenant, control(api, tenant, run, "rerun", {"from_step": "b"}).json["run_id"])
    assert [(j["step"], j["input"]) for j in done] == [("b", [1, 2, 3])]


def test_a_rerun_of_a_failed_run_does_what_had_not_been_done(api, tenant):
    run = begin(api, tenant, task("a"), task("b"), task("c"))
    work(api, tenant, run, failing("b"))
    shown, done = work(api, tenant, control(api, tenant, run, "rerun", {"from_step": "b"}).json["run_id"])
    assert [j["step"] for j in done] == ["b", "c"] and shown["status"] == "succeeded"


def test_a_rerun_does_again_what_was_undone(api, tenant):
    undone = {"compensate": {"handler": "undo"}}
    run = begin(api, tenant, task("kept"), task("a", **undone), task("b", **undone), task("c"))
    work(api, tenant, run, failing("c"))
    again = control(api, tenant, run, "rerun", {"from_step": "c"}).json["run_id"]
    shown, done = work(api, tenant, again, failing("c"))
    assert [j["handler"] for j in done] == ["a", "b", "c", "undo", "undo"], "the effects of a and b were gone"
    assert statuses(shown)["kept"] == "succeeded" and act(api, tenant, again, "retry")["status"] == "running"


def test_the_same_rerun_by_its_key_is_one_run(api, tenant):
    run = begin(api, tenant, transform("a", 1))
    first = control(api, tenant, run, "rerun", key="k")
    again = control(api, tenant, run, "rerun", key="k")
    assert again.header("Idempotent-Replayed") == "true" and again.json["run_id"] == first.json["run_id"] and again.json["created"] is False
    assert control(api, tenant, run, "rerun").json["run_id"] != first.json["run_id"], "without a key each is another"
    assert len(all_runs(api, tenant)) == 3


def test_a_rerun_from_a_step_that_is_not_there_is_400(api, tenant):
    run = begin(api, tenant, transform("a", 1))
    assert_problem(control(api, tenant, run, "rerun", {"from_step": "z"}), 400, "FIELD_INVALID")


# --- many at once ---

def bulk(api, tenant, action, **more):
    r = api.post("/api/v1/runs:bulk", {"action": action, **more}, tenant=tenant)
    assert r.status == 200, r
    return r.json


def counted(answer):
    return tuple(answer[k] for k in ("matched", "changed", "unchanged")) + (len(answer["refused"]),)


def test_a_bulk_action_changes_exactly_what_the_filter_finds(api, tenant):
    def label(k):
        return {"labels": {"team": k}}

    mine = [begin(api, tenant, task("a"), body=label("x")) for _ in range(3)]
    others = [begin(api, tenant, task("a"), body=label("y")), begin(api, tenant, task("a"), wid="v", body=label("x"))]
    stranger = api.tenant()
    far = begin(api, stranger, task("a"), body=label("x"))
    ask = {"filter": {"workflow_id": "w", "label": "team:x", "status": "running"}}
    before = [show(api, tenant, r) for r in mine + others]
    dry = bulk(api, tenant, "cancel", **ask, dry_run=True)
    assert dry["matched"] == 3 and dry["dry_run"] is True
    assert [show(api, tenant, r) for r in mine + others] == before, "a dry run changes nothing"
    assert counted(bulk(api, tenant, "cancel", **ask, reason="spring")) == (3, 3, 0, 0)
    assert [show(api, tenant, r)["status"] for r in mine + others] == ["cancelled"] * 3 + ["running"] * 2
    assert show(api, stranger, far)["status"] == "running"
    assert events(api, tenant, mine[0], "run.cancelled")[0]["data"]["reason"] == "spring"
    assert counted(bulk(api, tenant, "cancel", **ask)) == (0, 0, 0, 0)
    assert counted(bulk(api, tenant, "cancel", filter={"workflow_id": "w", "label": "team:x"})) == (3, 0, 3, 0)


def test_a_bulk_action_names_what_it_could_not_change(api, tenant):
    over = begin(api, tenant, transform("a", 1))
    live = begin(api, tenant, task("a"))
    answer = bulk(api, tenant, "pause", filter={})
    assert counted(answer) == (2, 1, 0, 1) and (answer["refused"][0]["run_id"], answer["refused"][0]["code"]) == (over, "RUN_IS_OVER")
    assert show(api, tenant, live)["status"] == "paused"
    assert counted(bulk(api, tenant, "resume", filter={"status": "paused"})) == (1, 1, 0, 0)


def test_a_bulk_retry_revives_all_that_failed(api, tenant):
    runs = [begin(api, tenant, task("a")) for _ in range(5)]
    for job in claim(api, tenant, max=9):
        fail(api, tenant, job)
    assert counted(bulk(api, tenant, "retry", filter={"status": "failed"})) == (5, 5, 0, 0)
    for run in runs:
        work(api, tenant, run)
    assert [show(api, tenant, r)["status"] for r in runs] == ["succeeded"] * 5


def test_a_bulk_action_repeated_by_its_key_is_the_first_answer_again(api, tenant):
    begin(api, tenant, task("a"))
    body = {"action": "cancel", "filter": {"status": "running"}}
    first = api.post("/api/v1/runs:bulk", body, tenant=tenant, key="k")
    later = begin(api, tenant, task("a"))
    again = api.post("/api/v1/runs:bulk", body, tenant=tenant, key="k")
    assert again.raw == first.raw and again.header("Idempotent-Replayed") == "true" and show(api, tenant, later)["status"] == "running"


@pytest.mark.parametrize("body", [{}, {"action": "explode", "filter": {}}, {"action": "cancel", "filter": {"colour": 1}}, {"action": "cancel", "filter": {"status": "odd"}},
                                  {"action": "cancel", "filter": {"label": "x"}}, {"action": "cancel", "filter": []}, {"action": "cancel", "filter": {}, "dry_run": "yes"}])
def test_a_bulk_action_that_makes_no_sense_is_400(api, tenant, body):
    run = begin(api, tenant, task("a"))
    assert_problem(api.post("/api/v1/runs:bulk", body, tenant=tenant), 400, "FIELD_INVALID")
    assert show(api, tenant, run)["status"] == "running"


# --- later, sooner ---

def test_a_run_that_starts_later_needs_no_slot_until_then(api):
    tenant = api.tenant(max_concurrent_runs=1)
    at = in_seconds(3600)
    shown = show(api, tenant, begin(api, tenant, task("a"), body={"start_at": at}))
    assert (shown["status"], shown["start_at"], shown["started_at"]) == ("queued", at, None) and active_runs(api, tenant) == 0
    assert show(api, tenant, begin(api, tenant, transform("a", 1), wid="now"))["status"] == "succeeded"
    assert claim(api, tenant, max=9) == []


def test_a_run_starts_at_its_time_and_not_before(api, tenant):
    at = in_seconds(0.2)
    run = begin(api, tenant, task("a"), body={"start_at": at})
    assert claim_one(api, tenant)["run_id"] == run and show(api, tenant, run)["started_at"] >= at


def test_a_delayed_start_can_be_cancelled_and_never_begins(api, tenant):
    run = begin(api, tenant, task("a"), body={"start_at": in_seconds(0.1)})
    assert act(api, tenant, run, "cancel")["status"] == "cancelled"
    nap = begin(api, tenant, {"name": "nap", "type": "sleep", "duration_ms": 150}, wid="nap")
    assert ended(api, tenant, nap)["status"] == "succeeded", "its time has passed"
    assert show(api, tenant, run)["status"] == "cancelled" and claim(api, tenant, max=9) == []


def test_a_start_in_the_past_begins_at_once(api, tenant):
    begin(api, tenant, task("a"), body={"start_at": "2020-01-01T00:00:00Z"})
    assert claim_one(api, tenant)["step"] == "a"


def test_what_waits_for_its_time_does_so_across_a_kill():
    with harness.server() as s:
        api = s.client()
        soon = begin(api, "t", task("soon"), wid="soon", body={"start_at": in_seconds(0.4)})
        far = begin(api, "t", task("far"), wid="far", body={"start_at": in_seconds(3600)})
        paused = begin(api, "t", task("held"), wid="held")
        act(api, "t", paused, "pause")
        waiting = begin(api, "t", {"name": "w", "type": "wait_signal", "signal": "go"}, {"name": "n", "type": "transform", "output": "${steps.w.output.payload}"}, wid="sig")
        signal(api, "t", waiting, "other", payload=0, dedup_key="k")
        s.kill()
        s.start()
        api = s.client()
        assert claim_one(api, "t")["run_id"] == soon and show(api, "t", far)["status"] == "queued"
        assert act(api, "t", paused, "resume")["status"] == "running" and claim_one(api, "t")["run_id"] == paused
        assert signal(api, "t", waiting, "other", payload=0, dedup_key="k").json["duplicate"] is True
        assert signal(api, "t", waiting, "go", payload=5).json["run_status"] == "succeeded" and show(api, "t", waiting)["output"] == 5
        assert_healthy(api)


def test_priority_orders_the_jobs_and_the_queue(api):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="queue")
    begin(api, tenant, task("a"))
    runs = {p: begin(api, tenant, task("a"), body={"priority": p}) for p in (0, 50, -50, 100)}
    complete(api, tenant, claim_one(api, tenant))
    order = []
    for _ in runs:
        job = claim_one(api, tenant)
        order.append(job["run_id"])
        complete(api, tenant, job)
    assert order == [runs[p] for p in (100, 50, 0, -50)]


# --- versions ---

def test_a_run_keeps_the_definition_it_began_with(api, tenant):
    old = begin(api, tenant, task("a"), task("b", input="old"))
    new = begin(api, tenant, task("a"), task("c", input="new"))
    assert [show(api, tenant, r)["workflow_version"] for r in (old, new)] == [1, 2]
    _, done = work(api, tenant, old)
    assert [j["step"] for j in done if j["run_id"] == old] == ["a", "b"]
    assert [j["step"] for j in done + work(api, tenant, new)[1] if j["run_id"] == new] == ["a", "c"]


def test_a_retry_and_a_rerun_keep_it_too(api, tenant):
    run = begin(api, tenant, task("a"), task("b"))
    work(api, tenant, run, failing("b"))
    api.workflow(tenant, "w", [task("other")])
    act(api, tenant, run, "retry")
    shown, done = work(api, tenant, run)
    assert [j["step"] for j in done] == ["b"] and shown["workflow_version"] == 1
    _, done = work(api, tenant, control(api, tenant, run, "rerun", {"from_step": "b"}).json["run_id"])
    assert [j["step"] for j in done] == ["b"]


def test_runs_of_an_archived_workflow_go_on(api, tenant):
    run = begin(api, tenant, task("a"), task("b"))
    assert api.delete("/api/v1/workflows/w", tenant=tenant).status == 200
    assert_problem(api.start(tenant, "w"), 404, "WORKFLOW_NOT_FOUND")
    assert work(api, tenant, run)[0]["status"] == "succeeded"


# --- the limit in force, whichever way a run begins ---

def lowered_to_one(api, runs):
    """A tenant whose workflow allowed five runs when `runs` were made, and allows one now."""
    tenant = api.tenant()
    put_limited(api, tenant, 5)
    made = runs(tenant)
    put_limited(api, tenant, 1)
    return tenant, made


def put_limited(api, tenant, limit):
    r = api.put("/api/v1/workflows/w", {"steps": [task("a")], "concurrency": {"limit": limit}}, tenant=tenant)
    assert r.status == 200, r


def start_later(api, tenant, s):
    r = api.start(tenant, "w", {"start_at": in_seconds(s)})
    assert r.status == 200, r
    return r.json["run_id"]


def all_failed(api, tenant):
    runs = [api.start(tenant, "w", {}).json["run_id"] for _ in range(5)]
    for job in claim(api, tenant, max=5):
        fail(api, tenant, job)
    assert {show(api, tenant, run)["status"] for run in runs} == {"failed"}
    return runs


def test_delayed_starts_begin_under_the_limit_of_the_newest_version(api):
    tenant, runs = lowered_to_one(api, lambda t: [start_later(api, t, 2) for _ in range(5)])
    harness.wait_until(lambda: all(count_events(api, tenant, run, "run.queued") + count_events(api, tenant, run, "run.admitted") for run in runs), "all are due")
    assert active_runs(api, tenant) == 1
    assert [work(api, tenant, run)[0]["status"] for run in runs] == ["succeeded"] * 5, "the others follow one by one"


@pytest.mark.parametrize("action", ["retry", "rerun"])
def test_a_run_that_begins_again_meets_the_limit_of_the_newest_version(api, action):
    tenant, runs = lowered_to_one(api, lambda t: all_failed(api, t))
    answers = [control(api, tenant, run, action) for run in runs]
    assert [r.status for r in answers] == [200, 429, 429, 429, 429] and active_runs(api, tenant) == 1
    assert {(r.code, r.json["current"], r.json["limit"]) for r in answers[1:]} == {("MAX_CONCURRENT_RUNS", 1, 1)}
    put_limited(api, tenant, 2)
    assert control(api, tenant, runs[4], action).status == 200 and active_runs(api, tenant) == 2, "a raised limit counts as well"


def test_a_delayed_start_that_finds_the_queue_full_fails_and_can_be_retried(api):
    tenant = api.tenant(max_concurrent_runs=1, max_queued_runs=1, at_limit="queue")
    put_limited(api, tenant, 5)
    holds, waits = [api.start(tenant, "w", {}).json["run_id"] for _ in range(2)]
    late = start_later(api, tenant, 0.1)
    ended_run = ended(api, tenant, late)
    assert (ended_run["status"], ended_run["error"]["code"]) == ("failed", "QUEUE_FULL") and ended_run["started_at"] is None
    assert api.get(f"/api/v1/tenants/{tenant}", tenant=tenant).json["queued_runs"] == 1
    assert control(api, tenant, late, "retry").code == "MAX_CONCURRENT_RUNS"
    for run in (holds, waits):
        assert work(api, tenant, run)[0]["status"] == "succeeded"
    assert act(api, tenant, late, "retry")["status"] == "running"
    assert work(api, tenant, late)[0]["status"] == "succeeded"


def test_a_start_in_the_past_that_has_to_queue_leaves_the_queue_when_it_begins(api):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="queue")
    put_limited(api, tenant, 5)
    runs = [api.start(tenant, "w", {"start_at": "2020-01-01T00:00:00Z"}).json["run_id"] for _ in range(3)]
    assert [work(api, tenant, run)[0]["status"] for run in runs] == ["succeeded"] * 3
    shown = api.get(f"/api/v1/tenants/{tenant}", tenant=tenant).json
    assert (shown["active_runs"], shown["queued_runs"]) == (0, 0)
