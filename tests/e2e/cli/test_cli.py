"""The command line against a real server: tables for people, --json for programs, exit codes for scripts."""
import json
import re
import signal
import unicodedata

import pytest

import cli
import harness
from cli import pawl

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NO_ID = "0190b3c4-0000-7000-8000-000000000000"
TASK = {"name": "a", "type": "task", "handler": "h"}


@pytest.fixture
def run(dev_server, tenant):
    """The command with this test's server and tenant in its environment."""
    return lambda *args, **kw: pawl(*args, **{"PAWL_URL": dev_server.url, "PAWL_TENANT": tenant, **kw})


@pytest.fixture
def definition(tmp_path):
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"id": "w", "description": "first", "steps": [TASK]}))
    return path


@pytest.fixture
def applied(run, definition):
    assert run("workflow", "apply", definition).code == 0
    return "w"


# --- the version ---

@pytest.mark.parametrize("args", [("version",), ("--version",), ("-V",)])
def test_version(args, api):
    r = pawl(*args)
    assert r.code == 0 and re.fullmatch(r"pawl \d+\.\d+\.\d+ \(SQLite [\d.]+, PostgreSQL\)\n", r.out), r
    assert r.out.split()[1] == api.get("/healthz").json["version"]


# --- workflows ---

def test_workflow_apply_list_show_versions_archive(run, definition, tmp_path):
    assert run("workflow", "apply", definition).out == "w version 1 (new)\n"
    assert run("workflow", "apply", definition).out == "w version 1 (unchanged)\n"
    second = json.dumps({"description": "second", "steps": [TASK]})
    assert run("workflow", "apply", "-", "--id", "w", stdin=second).out == "w version 2 (new)\n"
    rows = run("workflow", "list").rows
    assert rows[0] == ["ID", "VERSION", "ARCHIVED", "CREATED", "UPDATED", "DESCRIPTION"] and rows[1][:3] == ["w", "2", "no"] and rows[1][-1] == "second"
    assert run("workflow", "list", "--json").json["items"][0]["id"] == "w"
    shown = run("workflow", "show", "w")
    assert shown.code == 0 and '"description": "second"' in shown.out and re.search(r"^version +2$", shown.out, re.M)
    assert run("workflow", "show", "w", "--version", "1", "--json").json["definition"]["description"] == "first"
    assert [r[0] for r in run("workflow", "versions", "w").rows] == ["VERSION", "2", "1"]
    assert run("workflow", "archive", "w").out == "w archived\n"
    assert run("workflow", "list").rows[1][2] == "yes"
    refused = run("run", "start", "w")
    assert refused.code == 1 and refused.out == "" and re.search(r"pawl: WORKFLOW_NOT_FOUND: .*archived.* \(trace [0-9a-f]{32}\)", refused.err), refused


def test_workflow_validate_says_what_is_wrong(run, definition, tmp_path):
    good = run("workflow", "validate", definition)
    assert (good.code, good.out) == (0, "valid\n")
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps({"id": "w", "steps": [TASK, TASK, {**TASK, "name": "c", "needs": ["x"]}]}))
    r = run("workflow", "validate", bad)
    assert r.code == 1 and r.out.startswith("not valid\n") and "/steps/1/name" in r.out and "/steps/2/needs/0" in r.out, r
    assert run("workflow", "validate", bad, "--json").json["valid"] is False
    r = run("workflow", "apply", bad)
    assert r.code == 1 and "DEFINITION_INVALID" in r.err and "/steps/1/name" in r.err and r.out == "", r


def test_workflow_apply_warns_of_what_cannot_be_run_yet(run, tmp_path):
    path = tmp_path / "odd.json"
    path.write_text(json.dumps({"id": "odd", "steps": [{"name": "ok", "type": "llm", "prompt": "Really?"}]}))
    r = run("workflow", "apply", path)
    assert r.code == 0 and r.out == "odd version 1 (new)\n" and r.err.startswith("warning: /steps/0/type"), r


# --- runs ---

def test_run_start_list_show_cancel(run, applied):
    r = run("run", "start", "w", "--input", '{"n":1}', "--label", "env=prod", "--label", "x=a=b", "--priority", "7")
    assert r.code == 0, r
    rid = r.out.split()[0]
    assert UUID.fullmatch(rid) and r.out.split()[1:] == ["created", "running"]
    rows = run("run", "list").rows
    assert rows[0] == ["ID", "WORKFLOW", "VERSION", "STATUS", "CREATED", "FINISHED", "LABELS"] and rows[1][:4] == [rid, "w", "1", "running"]
    shown = run("run", "show", rid, "--json").json
    assert shown["input"] == {"n": 1} and shown["labels"] == {"env": "prod", "x": "a=b"} and shown["priority"] == 7
    people = run("run", "show", rid, "--events").out
    assert re.search(r"^status +running$", people, re.M) and re.search(r"^`- \S a +\w+", people, re.M) and re.search(r"Z  run +created by dev$", people, re.M)
    assert run("run", "cancel", rid).out == f"{rid} cancelled\n"
    assert run("run", "list", "--status", "cancelled", "--label", "env=prod", "--workflow", "w", "--created-after", "2020-01-01T00:00:00Z").rows[1][0] == rid
    assert len(run("run", "list", "--status", "running").rows) == 1
    for args in (("show", NO_ID), ("cancel", NO_ID)):
        r = run("run", *args)
        assert r.code == 1 and "RUN_NOT_FOUND" in r.err and r.out == "", r


@pytest.mark.parametrize("source", ["inline", "file", "stdin"])
def test_input_comes_from_the_line_a_file_or_a_pipe(run, applied, tmp_path, source):
    text = '{"deep":[1,2,{"ä":null}],"big":9007199254740993}'
    (tmp_path / "in.json").write_text(text)
    value = {"inline": text, "file": f"@{tmp_path}/in.json", "stdin": "-"}[source]
    r = run("run", "start", "w", "--input", value, "--json", **({"stdin": text} if source == "stdin" else {}))
    assert r.json["run"]["input"] == json.loads(text)


def test_run_start_waits_for_the_end_when_asked(run, tmp_path):
    path = tmp_path / "nap.json"
    path.write_text(json.dumps({"id": "nap", "steps": [{"name": "z", "type": "sleep", "duration_ms": 5}]}))
    run("workflow", "apply", path)
    assert run("run", "start", "nap", "--wait-ms", "30000").out.split()[1:3] == ["created", "succeeded"]


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_run_start_exits_1_when_the_run_that_it_waited_for_did_not_succeed(run, api, tenant, flags):
    api.workflow(tenant, "bad", [{"name": "a", "type": "transform", "output": "${error('no')}"}])
    for wait in ("30000", "90000"):
        r = run("run", "start", "bad", "--wait-ms", wait, *flags)
        assert r.code == 1 and "failed" in r.out and r.err == "", r
    assert run("run", "start", "bad", *flags).code == 0


@pytest.mark.parametrize("wait", ["1", "60001"])
def test_run_start_says_when_the_run_has_not_ended_in_time(run, applied, api, tenant, wait, monkeypatch):
    if wait == "1":
        r = run("run", "start", "w", "--wait-ms", wait)
        assert r.code == 1 and r.out.split()[1:] == ["created", "running"] and "The run has not ended yet. Follow it with `pawl run watch" in r.err, r
    else:  # longer than the server waits itself: it comes back when the run has ended
        api.workflow(tenant, "nap", [{"name": "z", "type": "sleep", "duration_ms": 5}])
        r = run("run", "start", "nap", "--wait-ms", wait, "--json")
        assert r.code == 0 and r.json["created"] is True and r.json["run"]["status"] == "succeeded", r


def test_a_key_of_ones_own_makes_a_start_safe_to_repeat(run, applied):
    first = run("run", "start", "w", "--idempotency-key", "order-1")
    again = run("run", "start", "w", "--idempotency-key", "order-1")
    assert first.out.split()[:2] == [again.out.split()[0], "created"] and again.out.split()[1] == "replayed"
    other = run("run", "start", "w", "--input", "5", "--idempotency-key", "order-1")
    assert other.code == 1 and "IDEMPOTENCY_KEY_REUSED" in other.err
    shown = run("idem", "show", "order-1", "--json").json
    assert shown["run_id"] == first.out.split()[0] and (shown["replays"], shown["mismatches"]) == (1, 1)
    assert re.search(r"^replays +1$", run("idem", "show", "order-1").out, re.M)
    assert run("idem", "release", "order-1").out == "order-1 released\n"
    assert run("idem", "show", "order-1").code == 1
    assert run("run", "start", "w", "--idempotency-key", "order-1").out.split()[1] == "created"


def test_every_start_without_a_key_is_a_new_one(run, applied):
    assert len({run("run", "start", "w").out.split()[0] for _ in range(3)}) == 3


def test_lists_follow_their_pages(run, applied):
    ids = {run("run", "start", "w").out.split()[0] for _ in range(5)}
    page = run("run", "list", "--limit", "2")
    assert len(page.rows) == 3 and "More results: use --all or --cursor " in page.err, page
    cursor = page.err.split()[-1]
    rest = run("run", "list", "--limit", "2", "--cursor", cursor, "--all")
    assert {r[0] for r in page.rows[1:] + rest.rows[1:]} == ids and rest.err == ""
    lines = run("run", "list", "--limit", "2", "--all", "--json").out.splitlines()
    assert len(lines) == 3 and {i["id"] for line in lines for i in json.loads(line)["items"]} == ids


# --- jobs ---

def test_job_claim_show_complete_fail(run, applied):
    for _ in range(2):
        run("run", "start", "w")
    empty = run("job", "claim", "--queue", "elsewhere")
    assert empty.code == 0 and len(empty.rows) == 1
    job = run("job", "claim", "--max", "1", "--lease-ms", "60000", "--worker-id", "me", "--json").json["jobs"][0]
    assert run("job", "show", job["job_id"], "--json").json["worker_id"] == "me"
    assert re.search(r"^state +running$", run("job", "show", job["job_id"]).out, re.M)
    done = ("job", "complete", job["job_id"], "--lease-token", job["lease_token"], "--output", '{"ok":true}')
    assert run(*done).out == f"{job['job_id']} completed\n"
    assert run(*done).out == f"{job['job_id']} already_completed\n"
    late = run("job", "complete", job["job_id"], "--lease-token", "wrong")
    assert late.code == 1 and "LEASE_LOST" in late.err
    rows = run("job", "claim", "--wait-ms", "10").rows
    assert rows[0][:6] == ["JOB", "TENANT", "WORKFLOW", "STEP", "HANDLER", "ATTEMPT"]
    failed = run("job", "fail", rows[1][0], "--lease-token", rows[1][6], "--code", "BROKEN", "--message", "it is")
    assert failed.out == f"{rows[1][0]} failed\n"
    assert {r[3] for r in run("run", "list").rows[1:]} == {"succeeded", "failed"}


def test_bench_worker_completes_everything_until_it_is_stopped(run, applied, dev_server, api, tenant):
    for _ in range(30):
        api.start(tenant, "w")
    bench = cli.popen("bench", "worker", "--url", dev_server.url, "--queue", "default", "--tenant", tenant, "--connections", "2")
    try:
        harness.wait_until(lambda: api.get(f"/api/v1/tenants/{tenant}").json["active_runs"] == 0, "all jobs are done")
    finally:
        bench.send_signal(signal.SIGTERM)
        out, err = bench.communicate(timeout=harness.PATIENCE_S)
    assert bench.returncode == 0 and (out, err) == ("30 jobs completed\n", ""), (out, err)


# --- tenants and keys ---

def test_tenant_set_show_list(run, tenant):
    r = run("tenant", "set", tenant, "--name", "Acme Ltd", "--max-concurrent-runs", "3", "--idempotency-retention-s", "60", "--weight", "2", "--json")
    assert (r.json["name"], r.json["max_concurrent_runs"], r.json["idempotency_retention_s"], r.json["weight"]) == ("Acme Ltd", 3, 60, 2)
    r = run("tenant", "set", tenant, "--max-concurrent-runs", "none", "--idempotency-retention-s", "forever")
    assert r.code == 0 and re.search(r"^max_concurrent_runs +-$", r.out, re.M) and re.search(r"^name +Acme Ltd$", r.out, re.M), r
    assert re.search(r"^active_runs +0$", run("tenant", "show", tenant).out, re.M)
    assert tenant in {row[0] for row in run("tenant", "list").rows}
    r = run("tenant", "show", "nobody-at-all")
    assert r.code == 1 and "TENANT_NOT_FOUND" in r.err


def test_key_create_list_revoke(run, tenant):
    made = run("key", "create", "--tenant", tenant, "--role", "viewer", "--label", "for Ada")
    assert made.code == 0 and re.fullmatch(r"pawl_[0-9A-Z]+_[0-9A-Z]+\n", made.out) and "only this once" in made.err
    secret = made.out.strip()
    rows = run("key", "list").rows
    mine = next(r for r in rows if r[1] == secret.rsplit("_", 1)[0])
    assert mine[2:4] == [tenant, "viewer"] and secret not in str(rows)
    assert run("key", "revoke", mine[0]).out == f"{mine[0]} revoked\n"
    r = run("key", "create", "--tenant", "no such tenant", "--role", "viewer")
    assert r.code == 1 and "FIELD_INVALID" in r.err and r.out == ""


def test_an_api_key_from_the_environment_is_sent():
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": harness.ROOT_KEY}) as s:
        r = pawl("run", "list", PAWL_URL=s.url)
        assert r.code == 1 and "UNAUTHENTICATED" in r.err
        key = pawl("key", "create", "--tenant", "acme", "--role", "viewer", PAWL_URL=s.url, PAWL_API_KEY=harness.ROOT_KEY).out.strip()
        assert pawl("run", "list", PAWL_URL=s.url, PAWL_API_KEY=key).code == 0
        assert pawl("run", "list", "--url", s.url, "--api-key", key).code == 0
        r = pawl("run", "cancel", NO_ID, PAWL_URL=s.url, PAWL_API_KEY=key)
        assert r.code == 1 and "FORBIDDEN" in r.err


# --- exit codes ---

@pytest.mark.parametrize("args", [
    ("dance",), ("run",), ("run", "dance"), ("run", "show"), ("run", "show", "a", "b"), ("run", "list", "--colour"), ("run", "list", "--limit"),
    ("run", "list", "--limit", "x"), ("run", "list", "--limit", "0"), ("run", "start", "w", "--priority", "101"), ("run", "start", "w", "--input", "{"),
    ("run", "start", "w", "--input", "@/nowhere/file"), ("run", "start", "w", "--label", "x"), ("workflow", "apply", "/nowhere/file"), ("key", "create"),
    ("job", "complete", "x"), ("backup",), ("run", "list", "--json=yes"), ("doctor", "--url", "http://127.0.0.1:1", "--store", "sqlite:x"),
    ("run", "list", "--actor", "a\nb"), ("run", "list", "--url", "ftp://127.0.0.1/"), ("bench", "worker"), ("run", "list", "--timeout-s", "0"),
])
def test_usage_errors_exit_2_and_say_so(args):
    r = pawl(*args)
    assert r.code == 2 and r.err and r.out == "", r


def test_no_command_at_all_is_a_usage_error():
    r = pawl()
    assert r.code == 2 and "usage: pawl COMMAND" in r.err and r.out == ""


def test_a_server_out_of_reach_exits_3():
    url = f"http://127.0.0.1:{cli.free_port()}"
    r = pawl("run", "list", "--url", url)
    assert (r.code, r.out, r.err) == (3, "", f"pawl: No pawl server at {url}. Start one with `pawl dev`, or set --url / PAWL_URL.\n")


def test_a_refusal_with_json_prints_the_problem(run):
    r = run("run", "show", NO_ID, "--json")
    assert r.code == 1 and r.json["code"] == "RUN_NOT_FOUND" and "RUN_NOT_FOUND" in r.err


def test_control_characters_do_not_reach_the_terminal(run, tmp_path):
    path = tmp_path / "esc.json"
    path.write_text(json.dumps({"id": "esc", "description": "a\x1b[31mb\u009bc\x07", "steps": [TASK]}))
    run("workflow", "apply", path)
    out = run("workflow", "list").out
    assert "\x1b" not in out and "\u009b" not in out and "\x07" not in out and "31mb" in out


def test_wide_characters_keep_the_columns_of_a_table_in_line(run, tenant):
    run("tenant", "set", tenant, "--name", "東京支社 🎉", "--weight", "77")
    titles, *rows = run("tenant", "list").out.splitlines()
    mine = next(row for row in rows if row.startswith(tenant + " "))
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in mine)
    assert wide == 5 and mine.rindex("77") + wide == titles.index("WEIGHT")
