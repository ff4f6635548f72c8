"""pawl entity: types, signals, updates, looking, migrating, deleting, and how the window fits; pawl worker as a handler."""
import json
import sys

import pytest

import harness
from actions import claim, complete, fail
from cli import pawl, popen


@pytest.fixture
def run(dev_server, tenant):
    """run(*args): the command with this test's server and tenant."""
    return lambda *args, **kw: pawl(*args, **{"PAWL_URL": dev_server.url, "PAWL_TENANT": tenant, **kw})


@pytest.fixture
def rewards(run):
    done = run("entity", "type", "set", "rewards", "--queue", "q", "--handler", "h")
    assert done.code == 0, done


def answer(api, tenant, **output):
    r = complete(api, tenant, claim(api, tenant, queues=["q"])[0], output=output)
    assert r.status == 200, r


# --- types ---

def test_types_are_set_listed_and_shown(run):
    made = run("entity", "type", "set", "rewards", "--queue", "q", "--handler", "h", "--dedup-window-s", "60", "--dedup-max-keys", "5", "--rollover-events", "7",
               "--keep-generations", "all", "--max-inbox", "8", "--max-batch", "9", "--max-attempts", "3", "--backoff-ms", "10", "--max-backoff-ms", "20", "--json").json
    assert (made["created"], made["version"], made["dedup_window_s"], made["dedup_max_keys"], made["rollover_events"], made["keep_generations"], made["max_inbox"], made["max_batch"]) == \
        (True, 1, 60, 5, 7, None, 8, 9) and made["retry"] == {"max_attempts": 3, "backoff_ms": 10, "max_backoff_ms": 20}
    assert run("entity", "type", "set", "rewards", "--queue", "q2", "--handler", "h2", "--version", "2", "--json").json["created"] is True
    rows = run("entity", "type", "list").rows
    assert rows[0] == ["TYPE", "VERSION", "CREATED", "UPDATED"] and rows[1][:2] == ["rewards", "2"]
    shown = run("entity", "type", "show", "rewards")
    assert shown.code == 0 and ["queue", "q2"] in shown.rows and ["VERSION", "QUEUE", "HANDLER"] == shown.rows[-3][:3], shown
    assert [row[:3] for row in shown.rows[-2:]] == [["2", "q2", "h2"], ["1", "q", "h"]]


@pytest.mark.parametrize("args,said", [
    (("type", "set", "rewards"), "Missing option: --queue QUEUE"), (("type", "set"), "Missing argument: TYPE"), (("type", "set", "--queue", "q", "--handler", "h"), "Missing argument: TYPE"),
    (("type", "set", "rewards", "--queue", "q", "--handler", "h", "--rollover-events", "1"), "2 or more"), (("type",), "Unknown command: entity type"), (("type", "unset"), "Unknown command: entity type"),
    (("signal", "rewards", "e"), "Missing argument: NAME"), (("signal", "rewards", "e", "n", "1", "2"), "Unexpected argument: 2"), (("signal", "rewards", "e", "n", "{nonsense"), "PAYLOAD: not valid JSON"),
    (("signal", "rewards", "e", "n", "@/nowhere.json"), "/nowhere.json"), (("update", "rewards", "e", "n", "--wait-ms", "60001"), "from 0 to 60000"), (("show", "rewards"), "Missing argument: ID"),
    (("outcome", "rewards", "e"), "Missing argument: SEQ"), (("stats",), "Missing argument: TYPE"), (("frob",), "Unknown command: entity frob"),
])
def test_misuse_is_exit_code_2(run, rewards, args, said):
    r = run("entity", *args)
    assert r.code == 2 and said in r.err and r.out == "", r


def test_help_names_every_verb(run):
    r = run("entity", "--help")
    assert r.code == 0 and "pawl entity type set TYPE" in r.out and "pawl entity signal TYPE ID NAME [PAYLOAD]" in r.out, r
    r = run("entity", "signal", "--help")
    assert r.code == 0 and "--dedup-key KEY" in r.out and "PAYLOAD is JSON, @FILE or -" in r.out, r


# --- signals ---

def test_a_signal_is_new_once(run, rewards, api, tenant):
    for word in ("new", "duplicate"):
        r = run("entity", "signal", "rewards", "cust 1/ü", "add", '{"points": 10}', "--dedup-key", "evt-1")
        assert r.code == 0 and r.out == f"1  {word}\n", r
    r = run("entity", "signal", "rewards", "cust 1/ü", "add", '{"points": 11}', "--dedup-key", "evt-1")
    assert r.code == 1 and "IDEMPOTENCY_KEY_REUSED" in r.err and r.out == "", r
    assert run("entity", "signal", "rewards", "cust 1/ü", "tick", "--json").json == {"seq": 2, "duplicate": False, "generation": 1}
    signals = claim(api, tenant, queues=["q"])[0]["input"]["signals"]
    assert [(s["name"], s["payload"]) for s in signals] == [("add", {"points": 10}), ("tick", None)]


def test_a_payload_comes_from_the_command_line_a_file_or_standard_input(run, rewards, api, tenant, tmp_path):
    (tmp_path / "p.json").write_text(json.dumps({"from": "file"}))
    assert run("entity", "signal", "rewards", "e", "n", '"text"').code == 0
    assert run("entity", "signal", "rewards", "e", "n", f"@{tmp_path / 'p.json'}").code == 0
    assert run("entity", "signal", "rewards", "e", "n", "-", stdin='["stdin"]').code == 0
    assert run("entity", "signal", "rewards", "e", "n", "--", "-5").code == 0
    assert [s["payload"] for s in claim(api, tenant, queues=["q"])[0]["input"]["signals"]] == ["text", {"from": "file"}, ["stdin"], -5]


def test_one_change_has_one_key(run, rewards):
    """A signal without a dedup key, sent again under the same idempotency key, is one."""
    for _ in range(2):
        r = run("entity", "signal", "rewards", "e", "n", "--idempotency-key", "once", "--json")
        assert r.json["seq"] == 1, r
    assert run("entity", "signal", "rewards", "e", "n", "--json").json["seq"] == 2


@pytest.mark.parametrize("args", [("type", "show", "none"), ("signal", "none", "e", "n"), ("update", "none", "e", "n"), ("show", "none", "e"), ("list", "none"), ("stats", "none"), ("delete", "none", "e")])
def test_an_unknown_type_is_refused(run, args):
    r = run("entity", *args)
    assert r.code == 1 and "ENTITY_TYPE_NOT_FOUND" in r.err and r.out == "", r


def test_nobody_answers_is_exit_code_3(run):
    assert run("entity", "show", "rewards", "e", PAWL_URL="http://127.0.0.1:1").code == 3


# --- updates ---

def test_an_update_is_answered_refused_or_waits(run, rewards, api, tenant):
    r = run("entity", "update", "rewards", "e", "redeem", "5", "--dedup-key", "a", "--wait-ms", "0")
    assert r.code == 0 and r.out == "1  waiting\n", r
    assert run("entity", "outcome", "rewards", "e", "1").out == "1  waiting\n"
    run("entity", "update", "rewards", "e", "redeem", "500", "--dedup-key", "b", "--wait-ms", "0")
    answer(api, tenant, state=1, results=[{"seq": 1, "result": {"left": 5}}, {"seq": 2, "error": {"code": "TOO_FEW", "message": "there are 5"}}])
    for r in (run("entity", "update", "rewards", "e", "redeem", "5", "--dedup-key", "a"), run("entity", "outcome", "rewards", "e", "1")):
        assert r.code == 0 and r.out == '1  completed  {"left":5}\n', r
    for r in (run("entity", "update", "rewards", "e", "redeem", "500", "--dedup-key", "b"), run("entity", "outcome", "rewards", "e", "2")):
        assert r.code == 1 and r.out == "2  rejected  TOO_FEW: there are 5\n" and r.err == "", r
    r = run("entity", "outcome", "rewards", "e", "3")
    assert r.code == 1 and "UPDATE_NOT_FOUND" in r.err, r


def test_an_update_without_a_key_gets_one(run, rewards):
    seqs = [run("entity", "update", "rewards", "e", "ask", "--wait-ms", "0", "--json").json["seq"] for _ in range(2)]
    assert seqs == [1, 2]


# --- looking ---

def test_an_entity_is_shown_with_its_timers(run, rewards, api, tenant):
    run("entity", "signal", "rewards", "e", "n")
    answer(api, tenant, state={"points": 10}, set_timers=[{"name": "idle", "at": "2099-01-01T00:00:00Z", "payload": {"x": 1}}])
    r = run("entity", "show", "rewards", "e")
    assert r.code == 0 and ["state", '{"points":10}'] in r.rows and ["status", "idle"] in r.rows and r.rows[-2:] == [["TIMER", "DUE", "PAYLOAD"], ["idle", "2099-01-01T00:00:00.000Z", '{"x":1}']], r
    assert run("entity", "show", "rewards", "e", "--json").json["timers"][0]["name"] == "idle"
    r = run("entity", "show", "rewards", "none")
    assert r.code == 1 and "ENTITY_NOT_FOUND" in r.err, r


def test_entities_events_and_generations_are_listed(run, rewards):
    for eid in ("a", "b c", "d/e"):
        run("entity", "signal", "rewards", eid, "n", '{"k": 1}')
    rows = run("entity", "list", "rewards").rows
    assert rows[0][:4] == ["ID", "TYPE", "VERSION", "VERSION"] and [row[0] for row in rows[1:]] == ["a", "b", "d/e"]
    assert [row[0] for row in run("entity", "list", "rewards", "--limit", "1", "--all").rows[1:]] == ["a", "b", "d/e"]
    assert "More results" in run("entity", "list", "rewards", "--limit", "1").err
    assert len(run("entity", "list", "rewards", "--version", "2").rows) == 1
    assert [row[2] for row in run("entity", "events", "rewards", "b c").rows[1:]] == ["entity.created", "entity.signaled"]
    rows = run("entity", "generations", "rewards", "d/e").rows
    assert rows[0][:2] == ["GENERATION", "BECAUSE"] and rows[1][:2] == ["1", "created"]


def test_migrate_and_delete(run, rewards, api, tenant):
    run("entity", "signal", "rewards", "e", "n")
    answer(api, tenant, state=1)
    assert run("entity", "migrate", "rewards", "e").out == "rewards e migrated  from 1 to 1\n"
    run("entity", "type", "set", "rewards", "--queue", "q", "--handler", "h2", "--version", "2")
    r = run("entity", "migrate", "rewards", "e", "--version", "2")
    assert r.code == 0 and r.out == "rewards e migrating  from 1 to 2\n", r
    answer(api, tenant, state={"v": 2})
    assert run("entity", "migrate", "rewards", "e").out == "rewards e migrated  from 2 to 2\n"
    r = run("entity", "migrate", "rewards", "e", "--version", "9")
    assert r.code == 1 and "ENTITY_VERSION_UNKNOWN" in r.err, r
    assert run("entity", "delete", "rewards", "e").out == "rewards e deleted\n"
    assert run("entity", "delete", "rewards", "e").code == 1


# --- how the window fits ---

def test_stats_draw_when_duplicates_come(run, rewards):
    for _ in range(4):
        run("entity", "signal", "rewards", "e", "n", "--dedup-key", "k")
    counted = lambda: run("entity", "stats", "rewards", "--json").json["duplicates"] == 3
    harness.wait_until(counted, "three duplicates are counted")
    r = run("entity", "stats", "rewards")
    assert r.code == 0 and "keys are remembered for 259200 s, up to 10000 per entity" in r.out and "signals with a key: 4\nduplicates: 3, 75.0% of them\nlate duplicates: 0, " in r.out, r
    bars = {line.split("  ")[0]: line for line in r.out.splitlines() if "█" in line}
    assert bars and all("%" in line for line in bars.values()) and ", 99%: ≤ " in r.out, r


def test_stats_of_a_type_without_duplicates(run, rewards):
    r = run("entity", "stats", "rewards")
    assert r.code == 0 and "duplicates: 0, 0.0% of them" in r.out and "█" not in r.out and "half of them" not in r.out, r


# --- pawl worker as a handler ---

HANDLER = """
import json, os, sys
call = json.load(sys.stdin)
points = (call["state"] or 0) + sum(s["payload"] for s in call["signals"])
assert [os.environ["PAWL_" + n] for n in ("KIND", "RUN_ID", "WORKFLOW_ID", "STEP", "HANDLER")] == ["entity", "", "", "", "h"], os.environ
print(json.dumps({"state": points}))
"""


def test_a_worker_handles_entities(run, rewards, api, tenant, dev_server):
    for eid, points in (("a", 5), ("b/c", 7), ("a", 6)):
        run("entity", "signal", "rewards", eid, "add", points)
    r = run("worker", "--queue", "q", "--max-jobs", "2", "--", sys.executable, "-c", HANDLER)
    lines = sorted(line.split("  ")[1:] for line in r.out.splitlines())
    assert r.code == 0 and lines == [["rewards", "a", "h", "attempt 1", "completed"], ["rewards", "b/c", "h", "attempt 1", "completed"]], r
    assert [api.get(f"/api/v1/entities/rewards/{eid}", tenant=tenant).json["state"] for eid in ("a", "b%2Fc")] == [11, 7]
    run("entity", "signal", "rewards", "a", "add", "1")
    line = json.loads(run("worker", "--queue", "q", "--once", "--json", "--", sys.executable, "-c", HANDLER).out)
    assert (line["kind"], line["run_id"], line["entity"], line["status"]) == ("entity", None, {"type": "rewards", "id": "a"}, "completed")


def test_an_answer_that_is_none_is_tried_again(run, rewards, api, tenant):
    """The handler is mended, and the same signals are handled."""
    run("entity", "type", "set", "rewards", "--queue", "q", "--handler", "h", "--backoff-ms", "0")
    run("entity", "signal", "rewards", "e", "add", "5")
    r = run("worker", "--queue", "q", "--once", "--", "echo", "no answer")
    assert r.code == 0 and "OUTPUT_REFUSED" in r.out and "retrying" in r.out and "ENTITY_ANSWER_INVALID" in r.err, r
    shown = run("entity", "show", "rewards", "e", "--json").json
    assert (shown["inbox"], shown["state"]) == (1, None)
    r = run("worker", "--queue", "q", "--once", "--", sys.executable, "-c", HANDLER)
    assert "attempt 2  completed" in r.out, r
    assert run("entity", "show", "rewards", "e", "--json").json["state"] == 5


def test_a_blocked_entity_goes_on_when_its_dead_letter_is_retried(run, rewards, api, tenant):
    run("entity", "signal", "rewards", "e", "add", "5")
    job = claim(api, tenant, queues=["q"])[0]
    assert fail(api, tenant, job, code="BROKEN", message="m", retryable=False).json["status"] == "failed"
    assert run("entity", "show", "rewards", "e", "--json").json["status"] == "blocked"
    rows = run("dead", "list").rows
    assert rows[1][0] == job["job_id"], rows
    assert run("dead", "retry", job["job_id"]).code == 0
    assert run("entity", "show", "rewards", "e", "--json").json["status"] == "waiting"
    r = run("worker", "--queue", "q", "--once", "--", sys.executable, "-c", HANDLER)
    assert r.code == 0 and "completed" in r.out, r


def test_claims_by_hand_say_whose_job_it_is(run, rewards):
    run("entity", "signal", "rewards", "e", "add", "5")
    job = run("job", "claim", "--queue", "q", "--json").json["jobs"][0]
    assert job["kind"] == "entity"
    r = run("job", "complete", job["job_id"], "--lease-token", job["lease_token"], "--output", '{"state": 5}')
    assert r.code == 0 and r.out == f"{job['job_id']} completed\n", r


def test_events_of_entities_are_told(run, rewards, dev_server, tenant):
    events = popen("events", "--type", "entity.*", "--after", "0-0", "--count", "2", "--json", PAWL_URL=dev_server.url, PAWL_TENANT=tenant)
    run("entity", "signal", "rewards", "e", "add", "5")
    out, err = events.communicate(timeout=harness.PATIENCE_S)
    told = [json.loads(line) for line in out.splitlines()]
    assert events.returncode == 0 and [e["type"] for e in told] == ["entity.created", "entity.signaled"], err
    assert told[1]["source"] == f"/pawl/{tenant}/entities/rewards/e" and told[1]["subject"] == "rewards/e" and told[1]["data"]["entity_id"] == "e"
