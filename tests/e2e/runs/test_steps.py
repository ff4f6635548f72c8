"""Steps: when each begins, what it sees and gives, how its end goes on. All over HTTP, with a worker of the test's own."""
import datetime

import pytest

import harness
from actions import begin, claim, claim_one, complete, control, ended, events, fail, failing, outputs, result, show, signal, statuses, step, task, until, work
from checks import assert_problem
from inspect_store import active_runs, all_runs


def transform(name, output, **more):
    return {"name": name, "type": "transform", "output": output, **more}


def from_now(ms):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(milliseconds=ms)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def error_of(shown):
    """(step, code) of what made the run fail."""
    assert shown["status"] == "failed", shown
    return shown["error"]["step"], shown["error"]["cause"]["code"]


# --- graphs ---

def test_a_join_waits_for_all_it_needs_whichever_ends_last(api, tenant):
    run = begin(api, tenant, task("a", needs=[]), task("b", needs=[]), task("c", needs=["a", "b"], input="${steps.a.output .. steps.b.output}"))
    a, b = claim(api, tenant, max=9)
    complete(api, tenant, b, output="B")
    assert claim(api, tenant, max=9) == [] and statuses(show(api, tenant, run))["c"] == "pending"
    complete(api, tenant, a, output="A")
    assert claim_one(api, tenant)["input"] == "AB"


def test_a_wide_graph_runs_each_step_once_after_all_it_needs(api, tenant):
    layers = [[f"s{depth}_{n}" for n in range(8)] for depth in range(5)]
    steps = [task(name, needs=layers[depth - 1] if depth else []) for depth, layer in enumerate(layers) for name in layer]
    shown, done = work(api, tenant, begin(api, tenant, *steps))
    assert shown["status"] == "succeeded" and sorted(j["step"] for j in done) == sorted(sum(layers, []))
    assert [j["step"].split("_")[0] for j in done] == [f"s{depth}" for depth in range(5) for _ in range(8)]


def test_a_step_sees_input_state_and_the_steps_before_it(api, tenant):
    seen = {"in": "${input.n}", "state": "${state.total}", "out": "${steps.a.output.x}", "how": "${steps.a.status}", "tries": "${steps.a.attempt}",
            "run": "${run.id}", "absent": "${steps.a.output.no.such.thing}"}
    run = begin(api, tenant, task("a"), task("b", input=seen), input={"n": 3})
    complete(api, tenant, claim_one(api, tenant), output={"x": [1, {"y": None}]}, state={"total": 7})
    assert claim_one(api, tenant)["input"] == {"in": 3, "state": 7, "out": [1, {"y": None}], "how": "succeeded", "tries": 1, "run": run, "absent": None}


def test_a_start_shows_what_a_later_look_shows(api, tenant):
    """Also of steps that ended while the run was started."""
    api.workflow(tenant, "w", [transform("t", "${input}"), transform("m", "${item * 2}", for_each="input"), {"name": "e", "type": "emit", "event": "e", "for_each": "input"},
                               transform("s", 1, when="false"), transform("none", 1, for_each="list()"), task("a")])
    r = api.start(tenant, "w", {"input": [1, 2, 3]})
    assert r.json["run"] == show(api, tenant, r.json["run_id"])
    assert step(r.json["run"], "m")["output"] == [2, 4, 6]


# --- when ---

@pytest.mark.parametrize("condition,holds", [
    ("input.n > 2", True), ("input.n > 3", False), ("input.absent.field == nil", True), ("input.absent", False), ("not input.absent", True),
    ("input.list[1] == 'x'", True), ("contains(input.list, 'y')", False), ("input.no", False), ("input.zero", True), ("input.null", False),
])
def test_a_step_whose_condition_does_not_hold_is_skipped_and_those_behind_it_go_on(api, tenant, condition, holds):
    run = begin(api, tenant, transform("a", "ran", when=condition), transform("b", "${steps.a.status}"),
                input={"n": 3, "list": ["x"], "no": False, "zero": 0, "null": None})
    shown = ended(api, tenant, run)
    assert (shown["status"], shown["output"]) == ("succeeded", "succeeded" if holds else "skipped")
    assert outputs(shown)["a"] == ("ran" if holds else None)
    assert [e["data"]["step"] for e in events(api, tenant, run, "step.skipped")] == ([] if holds else ["a"])


def test_a_condition_sees_what_came_before(api, tenant):
    steps = [task("ask"), task("yes", when="steps.ask.output.ok"), task("no", when="not steps.ask.output.ok")]
    shown, done = work(api, tenant, begin(api, tenant, *steps), lambda job: {"output": {"ok": False}} if job["step"] == "ask" else {"output": job["step"]})
    assert [j["step"] for j in done] == ["ask", "no"] and shown["output"] == "no"


def test_a_condition_that_cannot_be_evaluated_fails_its_step(api, tenant):
    assert error_of(ended(api, tenant, begin(api, tenant, task("a", when="input.n + {} > 1"), input={"n": 1}))) == ("a", "EXPRESSION_FAILED")
    assert claim(api, tenant) == []


def test_a_run_all_of_whose_steps_are_skipped_succeeds(api, tenant):
    shown = ended(api, tenant, begin(api, tenant, task("a", when="false"), task("b", when="1 == 2")))
    assert (shown["status"], shown["output"], statuses(shown)) == ("succeeded", None, {"a": "skipped", "b": "skipped"})


# --- transform, emit ---

def test_a_transform_keeps_the_types_of_what_it_takes(api, tenant):
    given = {"text": "é", "int": 9007199254740993, "float": 1.5, "yes": True, "null": None, "list": [], "object": {}, "deep": [{"a": [1, 2, {"b": "c"}]}]}
    output = {**{name: "${input.%s}" % name for name in given}, "mixed": "n=${input.int} t=${input.text} y=${input.yes}", "plain": "$${input.int}",
              "sum": "${reduce(map(input.deep[1].a, function(x) return tonumber(x) or 0 end), function(a, b) return a + b end, 0)}"}
    shown = ended(api, tenant, begin(api, tenant, transform("a", output), input=given))
    assert shown["output"] == {**given, "mixed": "n=9007199254740993 t=é y=true", "plain": "${input.int}", "sum": 3}, shown


def test_an_emitted_event_is_in_the_timeline(api, tenant):
    run = begin(api, tenant, {"name": "tell", "type": "emit", "event": "order.paid", "payload": {"order": "${input.id}"}}, input={"id": 5})
    assert ended(api, tenant, run)["status"] == "succeeded"
    assert [e["data"] for e in events(api, tenant, run, "event.emitted")] == [{"event": "order.paid", "payload": {"order": 5}}]


# --- sleep ---

@pytest.mark.parametrize("how", [{"duration_ms": 30}, {"duration_ms": 0}, {"until": "past"}, {"until": "soon"}, {"until": "${input.at}"}])
def test_a_sleep_ends_and_the_run_goes_on(api, tenant, how):
    how = {**how, **({"until": {"past": "2020-01-01T00:00:00Z", "soon": from_now(50)}.get(how["until"], how["until"])} if "until" in how else {})}
    at = from_now(50)
    run = begin(api, tenant, {"name": "nap", "type": "sleep", **how}, transform("b", "awake"), input={"at": at})
    shown = ended(api, tenant, run)
    assert (shown["status"], shown["output"]) == ("succeeded", "awake")
    if how.get("until") == "${input.at}":
        assert step(shown, "nap")["finished_at"] >= at, "not before its time"


@pytest.mark.parametrize("at", ["tomorrow", 5, None, "2026-13-01T00:00:00Z", {"a": 1}])
def test_a_sleep_until_what_is_no_time_fails(api, tenant, at):
    run = begin(api, tenant, {"name": "nap", "type": "sleep", "until": "${input.at}"}, input={"at": at})
    assert error_of(ended(api, tenant, run)) == ("nap", "EXPRESSION_FAILED")


# --- signals ---

def wait_for(name="go", step_name="wait", **more):
    return {"name": step_name, "type": "wait_signal", "signal": name, **more}


def test_a_signal_wakes_the_step_that_waits_for_it(api, tenant):
    run = begin(api, tenant, wait_for(), transform("b", "${steps.wait.output.payload.x}"))
    assert show(api, tenant, run)["status"] == "waiting"
    r = signal(api, tenant, run, "other", payload={"x": 0})
    assert r.status == 200 and (r.json["duplicate"], r.json["run_status"]) == (False, "waiting"), r
    r = signal(api, tenant, run, "go", payload={"x": 1})
    assert r.status == 200 and (r.json["run_id"], r.json["run_status"]) == (run, "succeeded"), r
    shown = show(api, tenant, run)
    assert shown["output"] == 1 and step(shown, "wait")["output"]["name"] == "go"


def test_early_signals_wait_for_their_steps_in_order(api, tenant):
    run = begin(api, tenant, task("a"), wait_for(step_name="first"), wait_for(step_name="second"), transform("b", ["${steps.first.output.payload}", "${steps.second.output.payload}"]))
    assert [signal(api, tenant, run, "go", payload=n).json["seq"] for n in (1, 2)] == [1, 2]
    shown, _ = work(api, tenant, run)
    assert (shown["status"], shown["output"]) == ("succeeded", [1, 2])


def test_the_first_of_several_signals_counts(api, tenant):
    run = begin(api, tenant, wait_for(["yes", "no"]), transform("b", "${steps.wait.output.name}"))
    signal(api, tenant, run, "no")
    assert show(api, tenant, run)["output"] == "no"


def test_the_same_signal_again_changes_nothing(api, tenant):
    run = begin(api, tenant, wait_for(step_name="one"), wait_for(step_name="two"))
    first = signal(api, tenant, run, "go", payload={"a": 1, "b": 2}, dedup_key="k").json
    before = show(api, tenant, run)
    for _ in range(3):
        again = signal(api, tenant, run, "go", payload={"b": 2, "a": 1}, dedup_key="k")
        assert again.status == 200 and again.json["duplicate"] is True and again.json["seq"] == first["seq"], again
    assert show(api, tenant, run) == before and statuses(before) == {"one": "succeeded", "two": "scheduled"}
    assert len(events(api, tenant, run, "signal.received")) == 1
    assert signal(api, tenant, run, "go", payload=3, dedup_key="l").json["run_status"] == "succeeded"
    assert signal(api, tenant, run, "go", payload={"a": 1, "b": 2}, dedup_key="k").json["duplicate"] is True, "also when the run is over"


def test_the_key_of_another_signal_is_refused(api, tenant):
    run = begin(api, tenant, task("a"), wait_for())
    signal(api, tenant, run, "go", payload=1, dedup_key="k")
    before = show(api, tenant, run)
    for name, payload in (("go", 2), ("stop", 1)):
        assert_problem(signal(api, tenant, run, name, payload=payload, dedup_key="k"), 422, "IDEMPOTENCY_KEY_REUSED", retryable=False)
    assert show(api, tenant, run) == before and len(events(api, tenant, run, "signal.received")) == 1
    assert work(api, tenant, run)[0]["output"]["payload"] == 1


def test_a_key_belongs_to_its_run(api, tenant):
    runs = [begin(api, tenant, wait_for()) for _ in range(2)]
    assert [signal(api, tenant, run, "go", payload=n, dedup_key="k").json["duplicate"] for n, run in enumerate(runs)] == [False, False]


def test_64_senders_of_one_signal_are_one(api, dev_server, tenant):
    run = begin(api, tenant, wait_for(step_name="one"), wait_for(step_name="two"))
    replies = harness.together(64, lambda i: signal(api, tenant, run, "go", payload=1, dedup_key="k"))
    assert {r.status for r in replies} == {200} and [r.json["duplicate"] for r in replies].count(False) == 1
    assert show(api, tenant, run)["status"] == "waiting"


def test_no_signal_in_time_fails_the_step(api, tenant):
    run = begin(api, tenant, wait_for(timeout_ms=20))
    shown = ended(api, tenant, run)
    assert error_of(shown) == ("wait", "TIMED_OUT") and statuses(shown) == {"wait": "timed_out"}
    assert_problem(signal(api, tenant, run, "go"), 409, "RUN_IS_OVER")


def test_a_run_may_go_on_without_the_signal(api, tenant):
    run = begin(api, tenant, wait_for(timeout_ms=20, on_error="continue"), transform("b", "${steps.wait.error.code}"))
    shown = ended(api, tenant, run)
    assert (shown["status"], shown["output"]) == ("succeeded", "TIMED_OUT")


def test_a_signal_in_time_beats_the_time_out(api, tenant):
    run = begin(api, tenant, wait_for(timeout_ms=600_000), task("b"))
    signal(api, tenant, run, "go")
    assert claim_one(api, tenant)["step"] == "b"


# --- child runs ---

def child(name="kid", wid="kid", **more):
    return {"name": name, "type": "workflow", "workflow_id": wid, **more}


def child_of(api, tenant, run, name="kid"):
    """The child's id, once there is one."""
    return step(until(api, tenant, run, lambda r: step(r, name).get("child_run_id"), "its child begins"), name)["child_run_id"]


def test_the_result_of_a_child_comes_up(api, tenant):
    api.workflow(tenant, "kid", [task("double")])
    run = begin(api, tenant, child(input={"n": "${input.n}"}), transform("b", "${steps.kid.output.n + 1}"), input={"n": 20})
    shown, done = work(api, tenant, run, lambda job: {"output": {"n": job["input"]["n"] * 2}})
    assert (shown["status"], shown["output"]) == ("succeeded", 41) and [j["workflow_id"] for j in done] == ["kid"]
    kid = show(api, tenant, child_of(api, tenant, run))
    assert (kid["status"], kid["input"], kid["output"]) == ("succeeded", {"n": 20}, {"n": 40})


def test_the_failure_of_a_child_comes_up(api, tenant):
    api.workflow(tenant, "kid", [task("break")])
    shown, _ = work(api, tenant, begin(api, tenant, child()), failing("break", message="no card"))
    assert error_of(shown) == ("kid", "CHILD_FAILED") and "no card" in str(shown["error"]), shown


def test_a_run_may_go_on_after_its_child_failed(api, tenant):
    api.workflow(tenant, "kid", [task("break")])
    shown, _ = work(api, tenant, begin(api, tenant, child(on_error="continue"), task("after")), failing("break"))
    assert shown["status"] == "succeeded" and statuses(shown) == {"kid": "failed", "after": "succeeded"}


def test_cancelling_goes_down(api, tenant):
    api.workflow(tenant, "grandkid", [task("deep")])
    api.workflow(tenant, "kid", [child(wid="grandkid")])
    run = begin(api, tenant, child())
    kid = child_of(api, tenant, run)
    grandkid = child_of(api, tenant, kid)
    job = claim_one(api, tenant)
    assert control(api, tenant, run, "cancel").json["status"] == "cancelled"
    assert [ended(api, tenant, r)["status"] for r in (kid, grandkid)] == ["cancelled", "cancelled"]
    assert_problem(complete(api, tenant, job), 409, "LEASE_LOST")
    assert active_runs(api, tenant) == 0


def test_a_run_that_fails_cancels_its_children(api, tenant):
    api.workflow(tenant, "kid", [task("hold", queue="kept")])
    run = begin(api, tenant, child(needs=[]), task("break", needs=[]))
    kid = child_of(api, tenant, run)
    shown, _ = work(api, tenant, run, failing("break"))
    assert error_of(shown) == ("break", "BROKEN")
    assert ended(api, tenant, kid)["status"] == "cancelled"


def test_a_child_is_of_the_pinned_version_or_of_the_newest(api, tenant):
    for n in (1, 2):
        api.workflow(tenant, "kid", [transform("a", n)])
    run = begin(api, tenant, child("old", version=1), child("new"))
    shown = ended(api, tenant, run)
    assert outputs(shown) == {"old": 1, "new": 2}


@pytest.mark.parametrize("step_of", [lambda: child(wid="nobody"), lambda: child(version=9)])
def test_a_child_that_is_not_there_fails_its_step(api, tenant, step_of):
    api.workflow(tenant, "kid", [transform("a", 1)])
    assert error_of(ended(api, tenant, begin(api, tenant, step_of())))[0] == "kid"


def test_children_live_in_their_parents_slot(api):
    tenant = api.tenant(max_concurrent_runs=1, at_limit="reject")
    api.workflow(tenant, "kid", [task("a")])
    run = begin(api, tenant, child(for_each="input"), input=[1, 2, 3])
    job = claim(api, tenant, wait_ms=30_000)[0]
    assert active_runs(api, tenant) == 1
    complete(api, tenant, job)
    assert work(api, tenant, run)[0]["status"] == "succeeded" and active_runs(api, tenant) == 0
    assert len(all_runs(api, tenant)) == 4


# --- for_each ---

def test_results_of_a_map_are_in_the_order_of_its_items(api, tenant):
    run = begin(api, tenant, task("m", for_each="input", input={"v": "${item.n}"}), transform("b", "${steps.m.output}"), input=[{"n": n} for n in range(20)])
    jobs = claim(api, tenant, max=100)
    assert sorted(j["item"] for j in jobs) == list(range(20)) and all(j["input"] == {"v": j["item"]} for j in jobs)
    for job in reversed(jobs):
        assert complete(api, tenant, job, output=job["input"]["v"] * 10).status == 200
    shown = show(api, tenant, run)
    assert shown["output"] == [n * 10 for n in range(20)]
    items = step(shown, "m")["items"]
    assert (items["total"], items["over"], items["failed"]) == (20, 20, 0)


def test_a_map_of_nothing_gives_an_empty_list(api, tenant):
    shown = ended(api, tenant, begin(api, tenant, task("m", for_each="input"), transform("b", {"got": "${steps.m.output}", "how": "${steps.m.status}"}), input=[]))
    assert (shown["status"], shown["output"]) == ("succeeded", {"got": [], "how": "succeeded"})


def test_an_item_is_the_input_when_none_is_said(api, tenant):
    begin(api, tenant, task("m", for_each=["x", None, {"a": 1}]))
    assert [j["input"] for j in claim(api, tenant, max=9)] == ["x", None, {"a": 1}]


@pytest.mark.parametrize("items", [{"a": 1}, "text", 5, None, [0] * 10_001])
def test_what_is_no_list_of_10_000_at_most_fails_the_step(api, tenant, items):
    assert error_of(ended(api, tenant, begin(api, tenant, task("m", for_each="input"), input=items))) == ("m", "ITEMS_INVALID")


@pytest.mark.parametrize("most", [1, 3, 256])
def test_max_parallel_is_never_exceeded(api, tenant, most):
    """The claims ask for all there is: more than `most` jobs at a time would show."""
    count = 30 if most < 256 else 600
    run = begin(api, tenant, task("m", for_each="input", **({"max_parallel": most} if most < 256 else {})), input=list(range(count)))
    seen = []
    while show(api, tenant, run)["status"] == "running":
        out = []
        while jobs := claim(api, tenant, max=100):
            out += jobs
        assert 0 < len(out) <= most
        half = out[: (len(out) + 1) // 2]
        seen += [j["item"] for j in out]
        for job in half:
            complete(api, tenant, job, output=job["item"])
        more = []
        while jobs := claim(api, tenant, max=100):
            more += jobs
        assert len(more) <= len(half), "one for each that is over"
        seen += [j["item"] for j in more]
        for job in out[len(half):] + more:
            complete(api, tenant, job, output=job["item"])
    shown = show(api, tenant, run)
    assert shown["status"] == "succeeded" and shown["output"] == list(range(count)) == sorted(seen)


def test_one_item_that_fails_stops_the_others(api, tenant):
    run = begin(api, tenant, task("m", for_each="input", max_parallel=5), input=list(range(10)))
    jobs = claim(api, tenant, max=100)
    assert len(jobs) == 5
    complete(api, tenant, jobs[0])
    fail(api, tenant, jobs[1], message="third")
    shown = show(api, tenant, run)
    assert error_of(shown) == ("m", "BROKEN") and claim(api, tenant, max=100) == []
    assert_problem(complete(api, tenant, jobs[2]), 409, "LEASE_LOST")
    assert len(events(api, tenant, run, "job.created")) == 6, "the first one that was over made room for one"
    assert len(events(api, tenant, run, "job.cancelled")) == 4


def test_an_item_is_tried_again_alone(api, tenant):
    tries = []

    def do(job):
        tries.append((job["item"], job["attempt"]))
        return {"error": {"code": "BUSY"}} if job["item"] == 1 and job["attempt"] < 3 else {"output": job["item"]}

    run = begin(api, tenant, task("m", for_each="input", retry={"max_attempts": 3, "backoff_ms": 1, "jitter": "none"}), input=[0, 1, 2])
    shown, _ = work(api, tenant, run, do)
    assert shown["output"] == [0, 1, 2] and sorted(tries) == [(0, 1), (1, 1), (1, 2), (1, 3), (2, 1)]


def test_every_type_of_step_may_be_a_map(api, tenant):
    api.workflow(tenant, "kid", [transform("a", "${input * 2}")])
    steps = [transform("t", "${item + 1}", for_each="input"), child(for_each="input", input="${item}"), {"name": "s", "type": "sleep", "duration_ms": 1, "for_each": "input"},
             {"name": "e", "type": "emit", "event": "n", "payload": "${item}", "for_each": "input"}, wait_for(for_each="input")]
    run = begin(api, tenant, *steps, input=[1, 2, 3])
    until(api, tenant, run, lambda r: step(r, "wait").get("items", {}).get("begun") == 3, "all wait")
    for n in range(3):
        signal(api, tenant, run, "go", payload=n)
    shown = ended(api, tenant, run)
    got = outputs(shown)
    assert shown["status"] == "succeeded" and got["t"] == [2, 3, 4] and got["kid"] == [2, 4, 6] and [o["payload"] for o in got["wait"]] == [0, 1, 2]
    assert [e["data"]["payload"] for e in events(api, tenant, run, "event.emitted")] == [1, 2, 3]


@pytest.mark.slow
def test_10_000_items_in_one_run(api, dev_server, tenant):
    count = 10_000
    run = begin(api, tenant, task("m", for_each="input", input={"n": "${item}"}),
                transform("sum", "${reduce(steps.m.output, function(a, b) return a + b.r end, 0)}"), input=list(range(count)))
    seen = [[] for _ in range(4)]

    def serve(i):
        client, items = dev_server.client(), []
        while True:
            ask = {"items": items, "claim": {"worker_id": f"w{i}", "max": 100}}
            r = client.post("/api/v1/jobs:complete", ask, tenant=tenant) if items else client.post("/api/v1/jobs/claim", {**ask["claim"], "wait_ms": 300}, tenant=tenant)
            assert r.status == 200, r
            jobs = r.json["jobs"]
            if not jobs and not items:
                return
            seen[i] += [j["item"] for j in jobs]
            items = [result(j, output={"r": j["input"]["n"] * 2}) for j in jobs]

    harness.together(4, serve)
    shown = ended(api, tenant, run)
    assert shown["status"] == "succeeded" and shown["output"] == sum(range(count)) * 2
    assert sorted(sum(seen, [])) == list(range(count)), "each item once"
    assert step(shown, "m")["output"] == [{"r": n * 2} for n in range(count)], "in order"


# --- errors ---

def test_by_default_a_failed_step_fails_the_run(api, tenant):
    shown, done = work(api, tenant, begin(api, tenant, task("a"), task("b", on_error="fail"), task("c")), failing("b"))
    assert error_of(shown) == ("b", "BROKEN") and [j["step"] for j in done] == ["a", "b"]
    assert statuses(shown) == {"a": "succeeded", "b": "failed", "c": "pending"}


def test_with_continue_those_behind_go_on_and_see_the_error(api, tenant):
    steps = [task("a", on_error="continue"), task("b", input={"code": "${steps.a.error.code}", "how": "${steps.a.status}", "out": "${steps.a.output}"})]
    shown, done = work(api, tenant, begin(api, tenant, *steps), failing("a"))
    assert shown["status"] == "succeeded" and shown["error"] is None and shown["output"] == "b"
    assert done[1]["input"] == {"code": "BROKEN", "how": "failed", "out": None}


def test_an_error_may_lead_to_a_step_that_mends_it(api, tenant):
    steps = [task("a", on_error="mend"), task("b"), task("mend", input="${steps.a.error.code}")]
    shown, done = work(api, tenant, begin(api, tenant, *steps), failing("a"))
    assert shown["status"] == "succeeded" and [j["step"] for j in done] == ["a", "mend"] and done[1]["input"] == "BROKEN"
    assert statuses(shown) == {"a": "failed", "b": "skipped", "mend": "succeeded"} and shown["output"] == "mend"


def test_without_an_error_the_mending_step_is_skipped(api, tenant):
    shown, done = work(api, tenant, begin(api, tenant, task("a", on_error="mend"), task("b"), task("mend")), failing())
    assert shown["status"] == "succeeded" and [j["step"] for j in done] == ["a", "b"]
    assert statuses(shown)["mend"] == "skipped" and shown["output"] == "b"


def test_a_mending_step_that_fails_fails_the_run(api, tenant):
    shown, _ = work(api, tenant, begin(api, tenant, task("a", on_error="mend"), task("mend")), failing("a", "mend"))
    assert error_of(shown) == ("mend", "BROKEN")


def test_an_error_that_is_not_to_be_tried_again_is_not(api, tenant):
    retry = {"max_attempts": 5, "backoff_ms": 1, "jitter": "none", "non_retryable": ["NO_CARD"]}
    for error in ({"code": "NO_CARD"}, {"code": "ODD", "retryable": False}):
        shown, done = work(api, tenant, begin(api, tenant, task("a", retry=retry)), lambda job: {"error": error})
        assert error_of(shown) == ("a", error["code"]) and len(done) == 1


def test_attempts_are_counted_and_the_last_error_is_kept(api, tenant):
    run = begin(api, tenant, task("a", retry={"max_attempts": 3, "backoff_ms": 1, "jitter": "none"}))
    shown, done = work(api, tenant, run, lambda job: {"error": {"code": "BROKEN", "message": f"try {job['attempt']}"}})
    assert [j["attempt"] for j in done] == [1, 2, 3] and len({j["job_id"] for j in done}) == 1
    assert shown["error"]["cause"]["message"] == "try 3" and step(shown, "a")["attempt"] == 3
    [dead] = api.get("/api/v1/dead-letters", tenant=tenant).json["items"]
    assert dead["job_id"] == done[0]["job_id"]


def test_an_error_of_a_map_is_seen_by_the_step_that_mends_it(api, tenant):
    steps = [task("m", for_each="input", max_parallel=1, on_error="mend"), task("mend", input="${steps.m.error.code}")]
    shown, done = work(api, tenant, begin(api, tenant, *steps, input=[1, 2]), failing("m"))
    assert shown["status"] == "succeeded" and [(j["step"], j["input"]) for j in done] == [("m", 1), ("mend", "BROKEN")]
    assert step(shown, "m")["error"]["code"] == "BROKEN"


def test_with_continue_a_map_goes_on_past_items_that_fail(api, tenant):
    seen = transform("b", {"out": "${steps.m.output}", "code": "${steps.m.error.code}"})
    run = begin(api, tenant, task("m", for_each="input", on_error="continue", max_parallel=1), seen, input=[0, 1, 2])
    shown, done = work(api, tenant, run, lambda j: {"error": {"code": "ODD"}} if j["item"] == 1 else {"output": j["item"]})
    assert len(done) == 3 and shown["output"] == {"out": [0, None, 2], "code": "ODD"}
    assert step(shown, "m")["items"]["failed"] == 1


# --- compensation ---

def undone_by(name, **more):
    return task(name, compensate={"handler": f"undo-{name}"}, **more)


def test_what_succeeded_is_undone_in_reverse_order_of_completion(api, tenant):
    """b and c run side by side, and c is done first: it is undone last of the two."""
    run = begin(api, tenant, undone_by("a", needs=[], input={"n": 1}), undone_by("b", needs=["a"]), undone_by("c", needs=["a"]), task("d", needs=["b", "c"]))
    complete(api, tenant, claim_one(api, tenant), output={"paid": 5})
    b, c = sorted(claim(api, tenant, max=9), key=lambda j: j["step"])
    complete(api, tenant, c)
    complete(api, tenant, b)
    fail(api, tenant, claim_one(api, tenant))
    order = []
    while show(api, tenant, run)["status"] == "running":
        job = claim_one(api, tenant)  # one at a time
        assert job["compensates"] is True
        order.append(job["handler"])
        complete(api, tenant, job)
    assert order == ["undo-b", "undo-c", "undo-a"]
    shown = show(api, tenant, run)
    assert error_of(shown) == ("d", "BROKEN") and "compensation_failed" not in shown["error"]
    assert [step(shown, n)["compensation"] for n in "abc"] == ["succeeded"] * 3


def test_an_undoing_task_gets_what_the_step_got_and_gave(api, tenant):
    steps = [undone_by("a", input={"n": "${input.n}"}), task("b", compensate={"handler": "undo-b", "input": {"x": "${steps.b.output}", "i": "${input.n}"}}), task("c")]
    _, done = work(api, tenant, begin(api, tenant, *steps, input={"n": 3}), failing("c"))
    assert [(j["handler"], j["input"]) for j in done[3:]] == [("undo-b", {"x": "b", "i": 3}), ("undo-a", {"input": {"n": 3}, "output": "a"})]


def test_a_compensation_that_fails_is_told_and_the_others_go_on(api, tenant):
    shown, done = work(api, tenant, begin(api, tenant, undone_by("a"), undone_by("b"), task("c")), failing("c", "undo-b"))
    assert [j["handler"] for j in done[3:]] == ["undo-b", "undo-a"]
    assert error_of(shown) == ("c", "BROKEN") and shown["error"]["compensation_failed"] is True
    assert [step(shown, n)["compensation"] for n in "ab"] == ["succeeded", "failed"]


def test_a_map_is_undone_as_a_whole(api, tenant):
    """One task for all its items: it gets what they were, and what came of each."""
    steps = [undone_by("m", for_each="input", input={"id": "${item}"}), task("b")]
    shown, done = work(api, tenant, begin(api, tenant, *steps, input=["x", "y"]),
                       lambda j: {"error": {"code": "NO"}} if j["step"] == "b" else {"output": j["input"]})
    [undone] = [j["input"] for j in done if j["handler"] == "undo-m"]
    assert undone == {"input": ["x", "y"], "output": [{"id": "x"}, {"id": "y"}]}
    assert step(shown, "m")["compensation"] == "succeeded"


def test_items_that_were_done_before_their_map_failed_are_undone(api, tenant):
    shown, done = work(api, tenant, begin(api, tenant, undone_by("m", for_each="input", max_parallel=1), input=["x", "y", "z"]),
                       lambda j: {"error": {"code": "NO"}} if j["input"] == "y" else {"output": j["input"]})
    assert error_of(shown) == ("m", "NO")
    assert [j["handler"] for j in done] == ["m", "m", "undo-m"], "the effect for x is there"


def test_a_cancelled_run_undoes_nothing(api, tenant):
    run = begin(api, tenant, undone_by("a"), task("b"))
    complete(api, tenant, claim_one(api, tenant))
    assert control(api, tenant, run, "cancel").json["status"] == "cancelled"
    assert claim(api, tenant, max=9) == []


def test_an_error_that_was_dealt_with_undoes_nothing(api, tenant):
    shown, done = work(api, tenant, begin(api, tenant, undone_by("a"), task("b", on_error="continue")), failing("b"))
    assert shown["status"] == "succeeded" and [j["handler"] for j in done] == ["a", "b"]


# --- time-outs ---

def test_an_attempt_that_takes_too_long_is_timed_out(api, tenant):
    run = begin(api, tenant, task("a", timeout_ms=100))
    job = claim_one(api, tenant)
    shown = ended(api, tenant, run)
    assert error_of(shown) == ("a", "TIMED_OUT") and statuses(shown) == {"a": "timed_out"}
    assert_problem(complete(api, tenant, job), 409, "LEASE_LOST")


def test_a_heartbeat_does_not_outlive_the_time_out(api, tenant):
    run = begin(api, tenant, task("a", timeout_ms=300))
    job = claim_one(api, tenant)

    def beaten():
        return api.post(f"/api/v1/jobs/{job['job_id']}/heartbeat", {"lease_token": job["lease_token"]}, tenant=tenant).status == 409

    harness.wait_until(beaten, "the lease is gone although it was renewed")
    assert error_of(ended(api, tenant, run)) == ("a", "TIMED_OUT")


def test_an_attempt_that_was_timed_out_is_tried_again(api, tenant):
    begin(api, tenant, task("a", timeout_ms=500, retry={"max_attempts": 2, "backoff_ms": 1, "jitter": "none"}))
    first = claim_one(api, tenant)
    second = claim_one(api, tenant)
    assert (second["job_id"], second["attempt"]) == (first["job_id"], 2)
    assert complete(api, tenant, second).json["run_status"] == "succeeded"


def test_a_child_that_takes_too_long_is_timed_out_and_cancelled(api, tenant):
    api.workflow(tenant, "kid", [task("hold", queue="nobody")])
    run = begin(api, tenant, child(timeout_ms=100))
    kid = child_of(api, tenant, run)
    assert error_of(ended(api, tenant, run)) == ("kid", "TIMED_OUT")
    assert ended(api, tenant, kid)["status"] == "cancelled"


def test_a_run_that_takes_too_long_is_timed_out_and_undone(api, tenant):
    run = begin(api, tenant, undone_by("a"), task("b", queue="nobody"), timeout_s=1)
    shown, done = work(api, tenant, run)
    assert (shown["status"], shown["error"]["code"]) == ("timed_out", "RUN_TIMED_OUT")
    assert [j["handler"] for j in done] == ["a", "undo-a"] and claim(api, tenant, queues=["nobody"]) == []
    assert statuses(shown) == {"a": "succeeded", "b": "cancelled"}


def test_a_run_that_ends_in_time_stays_as_it_is(api, tenant):
    run = begin(api, tenant, transform("a", 1), timeout_s=1)
    late = begin(api, tenant, task("b", queue="nobody"), wid="late", timeout_s=1)
    assert ended(api, tenant, late)["status"] == "timed_out"
    assert show(api, tenant, run)["status"] == "succeeded"
