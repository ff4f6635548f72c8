"""Signals to runs over HTTP: early ones, the first of several names or all of them, windows of known keys, room, and what a kill leaves."""
import harness
from actions import begin, ended, events, show, signal, statuses, step, task, work
from checks import assert_problem

BOTH = ["paid", "packed"]


def wait_for(names="go", name="wait", **more):
    return {"name": name, "type": "wait_signal", "signal": names, **more}


def wait_all(names=tuple(BOTH), **more):
    return wait_for(list(names), wait_for="all", **more)


def why(api, tenant, run):
    r = api.get(f"/api/v1/runs/{run}/why", tenant=tenant)
    assert r.status == 200, r
    return r.json["waits_for"]


def is_duplicate(api, tenant, run, key, **more):
    r = signal(api, tenant, run, "note", dedup_key=key, **more)
    assert r.status == 200, r
    return r.json["duplicate"]


# --- first and all ---

def test_all_of_several_signals_in_any_order(api, tenant):
    run = begin(api, tenant, wait_all(), {"name": "b", "type": "transform", "output": ["${steps.wait.output.paid.payload}", "${steps.wait.output.packed.payload.box}"]})
    assert signal(api, tenant, run, "packed", payload={"box": 7}).json["run_status"] == "waiting"
    (reason,) = why(api, tenant, run)
    assert (reason["kind"], reason["signal"], reason["received"], reason["missing"]) == ("signal", BOTH, ["packed"], ["paid"])
    assert signal(api, tenant, run, "paid", payload=5).json["run_status"] == "succeeded"
    shown = show(api, tenant, run)
    assert shown["output"] == [5, 7] and list(step(shown, "wait")["output"]["paid"]) == ["payload", "at"]


def test_early_signals_count_for_all(api, tenant):
    run = begin(api, tenant, task("a"), wait_all())
    for name, payload in (("packed", 1), ("paid", 2), ("paid", 3)):
        signal(api, tenant, run, name, payload=payload)
    shown, _ = work(api, tenant, run)
    assert shown["status"] == "succeeded" and {name: of["payload"] for name, of in step(shown, "wait")["output"].items()} == {"paid": 2, "packed": 1}


def test_the_first_of_several_has_the_output_it_always_had(api, tenant):
    run = begin(api, tenant, wait_for(BOTH, wait_for="first"))
    signal(api, tenant, run, "packed", payload=1)
    output = step(show(api, tenant, run), "wait")["output"]
    assert (list(output), output["name"], output["payload"]) == (["name", "payload", "at"], "packed", 1)


def test_too_late_names_what_is_missing_and_a_retry_needs_only_that(api, tenant):
    run = begin(api, tenant, wait_all(timeout_ms=300))
    signal(api, tenant, run, "paid", payload=5)
    shown = ended(api, tenant, run)
    error = step(shown, "wait")["error"]
    assert statuses(shown) == {"wait": "timed_out"} and (error["code"], error["received"], error["missing"]) == ("TIMED_OUT", ["paid"], ["packed"])
    # Its time is short again, so the missing one is sent at once, and again if that was too late.
    def again():
        api.post(f"/api/v1/runs/{run}/retry", tenant=tenant)
        signal(api, tenant, run, "packed", payload=6)
        return show(api, tenant, run)["status"] == "succeeded"

    harness.wait_until(again, "the retried run has both")
    assert step(show(api, tenant, run), "wait")["output"]["paid"]["payload"] == 5


def test_faults_of_such_steps_have_a_path(api, tenant):
    for wrong, path in ((wait_for("go", wait_for="all"), "/steps/0/wait_for"), (wait_for(BOTH, wait_for="some"), "/steps/0/wait_for"), (wait_for(["go", "go"]), "/steps/0/signal/1")):
        r = api.post("/api/v1/workflows/w/validate", {"steps": [wrong]}, tenant=tenant)
        assert [e["path"] for e in r.json["errors"]] == [path], r
    r = api.post("/api/v1/workflows/w/validate", {"signals": {"dedup_window_s": 0}, "steps": [wait_for()]}, tenant=tenant)
    assert [e["path"] for e in r.json["errors"]] == ["/signals/dedup_window_s"], r


# --- keys and room ---

def test_the_window_is_bounded_by_count(api, tenant):
    run = begin(api, tenant, wait_for(), signals={"dedup_max_keys": 2})
    assert [is_duplicate(api, tenant, run, k) for k in "abcbcac"] == [False, False, False, True, True, False, True]
    assert len(events(api, tenant, run, "signal.received")) == 4


def test_the_window_is_bounded_by_age(api, tenant):
    run = begin(api, tenant, wait_for(), signals={"dedup_window_s": 1})
    assert not is_duplicate(api, tenant, run, "k")
    harness.wait_until(lambda: not is_duplicate(api, tenant, run, "k"), "the key is forgotten")
    assert len(events(api, tenant, run, "signal.received")) == 2


def test_as_many_signals_wait_as_may(api, tenant):
    run = begin(api, tenant, wait_for())
    replies = harness.together(10, lambda i: [signal(api, tenant, run, "note", payload=i).status for _ in range(1000)])
    assert {status for of_one in replies for status in of_one} == {200}
    api = harness.Client(api.port, api.headers)  # the connection of this thread may have been idle for too long meanwhile
    p = assert_problem(signal(api, tenant, run, "note", dedup_key="k"), 429, "INBOX_FULL", retryable=True)
    assert (p["current"], p["limit"], p["limited_by"]) == (10_000, 10_000, "inbox")
    assert signal(api, tenant, run, "go").json["run_status"] == "succeeded", "one that is waited for needs no room"


# --- kill -9 ---

def test_what_had_come_before_a_kill_is_there_after_it():
    with harness.server() as s:
        api = s.client()
        run = begin(api, "t", wait_all(), signals={"dedup_max_keys": 3})
        assert signal(api, "t", run, "paid", payload=1, dedup_key="p").json["seq"] == 1
        assert [is_duplicate(api, "t", run, k) for k in "ab"] == [False, False]
        s.kill()
        s.start()
        api = s.client()
        again = signal(api, "t", run, "paid", payload=1, dedup_key="p").json
        assert (again["duplicate"], again["seq"]) == (True, 1)
        assert [is_duplicate(api, "t", run, k) for k in "abcp"] == [True, True, False, False], "three are known, the oldest left first"
        assert signal(api, "t", run, "packed", payload=2).json["run_status"] == "succeeded"
        assert step(show(api, "t", run), "wait")["output"]["paid"]["payload"] == 1
