"""`pawl worker -- COMMAND`: a shell script is a worker. Real commands, real signals, real deaths of all who take part."""
import json
import os
import random
import re
import signal
import time

import pytest

import cli
import endpoint
import harness
from cli import pawl
from harness import wait_until
from inspect_store import assert_healthy, rows
from worker_process import Gates, Worker, children, is_alive, open_fds, wait_gone

STEP = {"name": "work", "type": "task", "handler": "do.it", "queue": "q"}
OUTPUT_MAX = 512 * 1024


@pytest.fixture
def gates(tmp_path):
    return Gates(tmp_path)


@pytest.fixture
def flow(api, tenant):
    """flow(**step): a workflow of one task in queue q."""
    def make(**more):
        api.workflow(tenant, "w", [{**STEP, **more}])
    make()
    return make


@pytest.fixture
def start(api, tenant, flow):
    def one(value=None):
        r = api.start(tenant, "w", {"input": value})
        assert r.status == 200, r
        return r.json["run_id"]
    return one


@pytest.fixture
def work(dev_server, tenant):
    """work(*command, flags=()): a worker of this test's tenant."""
    return lambda *command, flags=(), **kw: Worker(dev_server.url, tenant, *command, flags=flags, **kw)


@pytest.fixture
def run_of(api, tenant):
    return lambda run: api.get(f"/api/v1/runs/{run}", tenant=tenant).json


@pytest.fixture
def job_of(api, tenant, run_of):
    return lambda run: api.get(f"/api/v1/jobs/{run_of(run)['steps'][0]['job_id']}", tenant=tenant).json


@pytest.fixture
def events_of(api, tenant):
    return lambda run: [e["type"] for e in api.get(f"/api/v1/runs/{run}/events?limit=200", tenant=tenant).json["items"]]


@pytest.fixture
def once(work, start, job_of):
    """once(*command, input=…): the job after one attempt of the command, and the worker's report of it."""
    def do(*command, input=None, flags=(), **kw):
        run = start(input)
        with work(*command, flags=("--once", *flags), **kw) as w:
            report = w.next_report()
            assert w.ended() == 0, w.err
        return job_of(run), report
    return do


# --- what goes in and what comes out ---

@pytest.mark.parametrize("value", [None, {}, 7, "text", [1, [2]], {"ä": "€ \U0001f600", "big": 9007199254740993, "f": 1.5, "nul": None, "line": "a\nb"}])
def test_the_input_comes_on_standard_input_and_json_output_is_the_output(once, value):
    job, report = once("cat", input=value)
    assert job["state"] == "succeeded" and job["output"] == value
    assert report["status"] == "completed" and report["code"] is None and report["job_id"] == job["job_id"] and report["attempt"] == 1


def test_the_input_is_one_line(once):
    assert once("sh", "-c", "read -r line && wc -l && printf '%s' \"$line\" | wc -c", input={"a": "x\ny"})[0]["output"] == {"text": "0\n12"}


@pytest.mark.parametrize("printed,output", [
    (r"hello\nworld\n\n", {"text": "hello\nworld"}), ("", None), (r" \n\t\r\n", None), (r" [1, 2] \n", [1, 2]), ("null", None), ("0", 0), (r'"a"', "a"),
    (r"{\"a\":1} trailing", {"text": '{"a":1} trailing'}), ('{\"a\":1', {"text": '{"a":1'}), ("[info] done", {"text": "[info] done"}),
    ("NaN", {"text": "NaN"}), (r"\303\244", {"text": "ä"}),
])
def test_output_that_is_no_json_is_text(once, printed, output):
    job, _ = once("printf", printed.replace("%", "%%"))
    assert job["state"] == "succeeded" and job["output"] == output


def test_the_command_is_not_a_shell_line(once):
    job, _ = once("printf", "%s|%s|%s", "a b", "$HOME", "--queue")
    assert job["output"] == {"text": "a b|$HOME|--queue"}


# --- exit codes ---

@pytest.mark.parametrize("script,code,message,retryable", [
    ("exit 3", "EXIT_3", "exit code 3", True), ("echo try later >&2; exit 75", "EXIT_75", "try later", True), ("echo bad input >&2; exit 65", "EXIT_65", "bad input", False),
    ("echo lost; exit 1", "EXIT_1", "exit code 1", True), ("kill -9 $$", "SIGNAL_9", "ended by signal 9", True), ("echo half >&2; kill -15 $$", "SIGNAL_15", "half", True),
    (r"printf 'a\0b\377\n\n' >&2; exit 2", "EXIT_2", "a?b?", True),
])
def test_the_exit_code_decides(once, run_of, script, code, message, retryable):
    job, report = once("sh", "-c", script)
    assert job["state"] == "failed" and job["error"] == {"code": code, "message": message, "retryable": retryable} and job["output"] is None
    assert (report["status"], report["code"]) == ("failed", code)
    assert run_of(job["run_id"])["status"] == "failed"


def test_of_a_long_standard_error_the_end_is_the_message(once):
    job, _ = once("sh", "-c", "i=0; while [ $i -lt 20000 ]; do echo \"€ line $i\"; i=$((i+1)); done >&2; exit 1")
    message = job["error"]["message"]
    assert message.endswith("€ line 19999") and 4000 < len(message.encode()) <= 4096 and "?" not in message


def test_a_failed_attempt_is_made_again_under_the_same_key(start, flow, work, job_of, gates):
    flow(retry={"max_attempts": 3, "backoff_ms": 1})
    run = start()
    with work(*gates.script("echo $PAWL_ATTEMPT $PAWL_IDEMPOTENCY_KEY $PAWL_JOB_ID >> seen; [ $PAWL_ATTEMPT = 3 ] || exit 75")) as w:
        assert [(t["status"], t["code"]) for t in (w.next_report(), w.next_report(), w.next_report())] == [("retrying", "EXIT_75"), ("retrying", "EXIT_75"), ("completed", None)]
    job = job_of(run)
    assert job["state"] == "succeeded" and gates.lines("seen") == [f"{n} {job['job_id']} {job['job_id']}" for n in (1, 2, 3)]


def test_exit_code_65_is_not_tried_again(start, flow, work, job_of):
    flow(retry={"max_attempts": 5, "backoff_ms": 1})
    run = start()
    with work("sh", "-c", "exit 65", flags=["--once"]) as w:
        assert w.next_report()["status"] == "failed" and w.ended() == 0
    assert (job_of(run)["state"], job_of(run)["attempt"]) == ("failed", 1)


# --- the environment ---

def test_a_command_does_not_get_the_workers_keys(once):
    job, _ = once("env", PAWL_API_KEY="pawl_of_the_worker", PAWL_ROOT_KEY="of_the_server", OTHER="stays")
    text = job["output"]["text"]
    assert "OTHER=stays" in text and "pawl_of_the_worker" not in text and "of_the_server" not in text


def test_a_command_gets_the_api_key_when_that_is_asked_for(once):
    job, _ = once("env", flags=["--pass-api-key"], PAWL_API_KEY="pawl_of_the_worker", PAWL_ROOT_KEY="of_the_server")
    assert "PAWL_API_KEY=pawl_of_the_worker" in job["output"]["text"] and "of_the_server" not in job["output"]["text"]


def test_the_environment_says_which_job_it_is(once, tenant, dev_server, start):
    lies = {"PAWL_ITEM": "9", "PAWL_COMPENSATES": "1", "TRACEPARENT": "00-x", "TRACESTATE": "lie=1", "PAWL_JOB_ID": "lie", "KEPT": "a=b c"}
    job, _ = once("env", **lies)
    seen = dict(line.split("=", 1) for line in job["output"]["text"].splitlines() if line.startswith(("PAWL_", "TRACE", "KEPT")))
    assert re.fullmatch(f"00-{job['run_id'].replace('-', '')}-[0-9a-f]{{16}}-01", seen.pop("TRACEPARENT")), seen
    assert seen == {"PAWL_JOB_ID": job["job_id"], "PAWL_IDEMPOTENCY_KEY": job["job_id"], "PAWL_KIND": "step", "PAWL_RUN_ID": job["run_id"], "PAWL_WORKFLOW_ID": "w", "PAWL_STEP": "work",
                    "PAWL_HANDLER": "do.it", "PAWL_ATTEMPT": "1", "PAWL_TENANT": tenant, "PAWL_URL": dev_server.url, "KEPT": "a=b c",
                    **{name: value for name, value in endpoint.client_environment().items() if name == "PAWL_CA_FILE"}}


def test_a_trace_is_handed_on(api, tenant, flow, work, job_of):
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    run = api.start(tenant, "w", headers={"traceparent": trace, "tracestate": "foo=1"}).json["run_id"]
    with work("sh", "-c", "echo $TRACEPARENT $TRACESTATE", flags=["--once"]) as w:
        w.next_report()
    assert re.fullmatch(f"00-{trace.split('-')[1]}-[0-9a-f]{{16}}-01 foo=1", job_of(run)["output"]["text"].strip())


def test_items_and_compensations_are_told_apart(api, tenant, work, gates, run_of):
    api.workflow(tenant, "saga", [{"name": "map", "type": "task", "handler": "make", "queue": "q", "for_each": "input", "compensate": {"handler": "unmake"}},
                                  {"name": "end", "type": "task", "handler": "fail", "queue": "q"}])
    run = api.start(tenant, "saga", {"input": ["a", "b"]}).json["run_id"]
    with work(*gates.script("read -r in; echo $PAWL_HANDLER ${PAWL_ITEM:-none} ${PAWL_COMPENSATES:-0} >> seen; [ $PAWL_HANDLER != fail ]")):
        wait_until(lambda: run_of(run)["status"] == "failed", "the run is over")
    seen = gates.lines("seen")
    assert sorted(seen[:2]) == ["make 0 0", "make 1 0"] and seen[2] == "fail none 0" and seen[3:] and all(line == "unmake none 1" for line in seen[3:]), seen


def test_a_command_inherits_no_descriptors(once):
    job, _ = once("sh", "-c", "ls /proc/self/fd")
    assert job["output"]["text"].split() == ["0", "1", "2", "3"], "0, 1, 2 and the folder that ls reads"


def test_a_command_finds_no_signal_blocked_or_ignored(once):
    job, _ = once("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
    of_libc = 1 << 31 | 1 << 32  # signals 32 and 33, which no program can set: they stay as they were inherited
    assert [int(mask, 16) & ~of_libc for mask in job["output"]["text"].split()[1::2]] == [0, 0]


# --- pipes ---

def test_a_command_that_never_reads_its_input(once):
    job, _ = once("true", input="x" * 900_000)
    assert job["state"] == "succeeded" and job["output"] is None


def test_a_command_that_writes_much_before_it_reads(once):
    job, _ = once("sh", "-c", "head -c 400000 /dev/zero | tr '\\0' o; head -c 3000000 /dev/zero | tr '\\0' e >&2; wc -c", input="x" * 900_000)
    assert job["state"] == "succeeded" and job["output"] == {"text": "o" * 400_000 + "900003"}


@pytest.mark.parametrize("command", [("head", "-c", "10000000", "/dev/zero"), ("yes",), ("sh", "-c", "trap '' TERM; yes")])
def test_too_much_output_fails_the_job(once, command):
    job, report = once(*command, flags=("--grace-ms", 50))
    assert job["state"] == "failed" and job["error"]["code"] == "OUTPUT_TOO_LARGE" and job["error"]["retryable"] is False
    assert report["code"] == "OUTPUT_TOO_LARGE"


@pytest.mark.parametrize("script,code", [
    (f"head -c {OUTPUT_MAX - 40} /dev/zero | tr '\\0' x", None), (f"head -c {OUTPUT_MAX} /dev/zero | tr '\\0' x", "OUTPUT_TOO_LARGE"),
    ("head -c 200000 /dev/zero | tr '\\0' '\\001'", "OUTPUT_TOO_LARGE"),
])
def test_the_bound_is_that_of_the_output_as_json(once, script, code):
    job, report = once("sh", "-c", script)
    assert report["code"] == code and job["state"] == ("failed" if code else "succeeded")


def test_an_output_that_the_server_refuses_fails_the_job(once):
    job, report = once("printf", "%s", "[" * 64 + "]" * 64)
    assert job["state"] == "failed" and job["error"]["code"] == report["code"] == "OUTPUT_REFUSED" and job["error"]["retryable"] is False


@pytest.mark.parametrize("output,code,says", [
    ("caf\\351", "OUTPUT_NOT_UTF8", "base64"), ('{"name": "caf\\351"}', "OUTPUT_NOT_UTF8", "base64"), ("\\377\\330\\377\\340", "OUTPUT_NOT_UTF8", "base64"),
    ("a\\000b", "OUTPUT_INVALID", "NUL"), ('{"n": 1, "n": 2}', "OUTPUT_INVALID", 'duplicate name "n"'),
    ('{"n": "a\\\\u0000"}', "OUTPUT_INVALID", "\\u0000"), ("[" * 70 + "]" * 70, "OUTPUT_INVALID", "64 levels"),
])
def test_output_that_cannot_be_kept_as_it_is_fails_the_job(once, output, code, says):
    job, report = once("printf", output)
    assert job["state"] == "failed" and job["error"]["code"] == report["code"] == code and job["error"]["retryable"] is False
    assert says in job["error"]["message"] and job["output"] is None


def test_what_a_command_leaves_running_is_not_waited_for_and_ends_with_it(once, gates):
    job, _ = once(*gates.script("sleep 1000 & echo $! > pid; echo done"))
    assert job["output"] == {"text": "done"}
    wait_gone(int(gates.lines("pid")[0]))


# --- leases ---

def test_heartbeats_keep_the_lease_while_the_command_works(start, work, gates, job_of):
    run = start()
    with work(*gates.script("reach started; await go"), flags=["--lease-ms", 1500]) as w:
        gates.wait("started")
        renewals = set()

        def renewed():
            renewals.add(job_of(run)["due_at"])
            return len(renewals) > 6

        wait_until(renewed, "the lease is renewed, past its first end")
        gates.open("go")
        assert w.next_report()["status"] == "completed"
    assert job_of(run)["attempt"] == 1


@pytest.mark.parametrize("script", ["trap '' TERM; reach started; while :; do sleep 1; done", "trap 'reach asked; exit 0' TERM; reach started; while :; do sleep 0.01; done"])
def test_a_cancelled_job_ends_its_command_and_is_not_reported(api, tenant, start, work, gates, job_of, events_of, script):
    run = start()
    with work(*gates.script(script), flags=["--lease-ms", 1500, "--grace-ms", 100]) as w:
        pid = int(gates.wait("started"))
        before = open_fds(w.pid)
        assert api.post(f"/api/v1/runs/{run}/cancel", tenant=tenant).status == 200
        assert w.next_report()["status"] == "cancelled"
        wait_gone(pid)
        assert gates.reached("asked") == ("asked" in script)
        wait_until(lambda: open_fds(w.pid) < before and not children(w.pid), "nothing is left of it")
        (gates.folder / "started").unlink()
        second = start()  # its hand is free for the next
        gates.wait("started")
        api.post(f"/api/v1/runs/{second}/cancel", tenant=tenant)
        assert w.next_report()["run_id"] == second
    assert job_of(run)["state"] == "cancelled" and "job.stale_result" not in events_of(run)


def test_cancelling_ends_the_whole_process_group(api, tenant, start, work, gates):
    run = start()
    with work(*gates.script("sleep 1000 & echo $! > pid; reach started; wait"), flags=["--lease-ms", 300, "--grace-ms", 100]):
        gates.wait("started")
        api.post(f"/api/v1/runs/{run}/cancel", tenant=tenant)
        wait_gone(int(gates.lines("pid")[0]))


def test_a_step_that_is_out_of_time_ends_its_command_long_before_the_next_heartbeat(start, flow, work, gates, run_of):
    flow(timeout_ms=200)
    run = start()
    with work(*gates.script("reach started; while :; do sleep 1; done"), flags=["--lease-ms", 3_600_000, "--grace-ms", 100]) as w:
        pid = int(gates.wait("started"))
        assert w.next_report()["status"] == "lost"
        wait_gone(pid)
    assert run_of(run)["steps"][0]["status"] == "timed_out"


@pytest.mark.parametrize("finished", [True, False])
def test_a_worker_stopped_past_its_lease_writes_nothing(api, tenant, start, work, gates, run_of, job_of, events_of, finished):
    """SIGSTOP past the lease, another one finishes, SIGCONT: the other's result stays."""
    api.workflow(tenant, "w", [STEP, {"name": "later", "type": "wait_signal", "signal": "go"}])
    run = start()
    with work(*gates.script("reach started; await go; reach over; echo slow"), flags=["--lease-ms", 300, "--grace-ms", 100, "--worker-id", "slow"]) as slow:
        pid = int(gates.wait("started"))
        slow.signal(signal.SIGSTOP)
        with work("echo", "quick", flags=["--once", "--worker-id", "quick"]) as quick:
            assert quick.next_report()["status"] == "completed"
        if finished:
            gates.open("go")
            gates.wait("over")
        slow.signal(signal.SIGCONT)
        assert slow.next_report()["status"] == "lost"
        wait_gone(pid)
    job = job_of(run)
    assert job["state"] == "succeeded" and job["output"] == {"text": "quick"} and job["worker_id"] == "quick" and job["attempt"] == 2
    assert run_of(run)["steps"][0]["output"] == {"text": "quick"} and events_of(run).count("job.stale_result") == 1


def test_a_job_whose_lease_ended_on_the_way_is_not_begun(start, flow, work, gates, run_of, events_of):
    """The worker sleeps while the answer to its claim lies in its socket."""
    flow(retry={"max_attempts": 100})
    with work(*gates.script("reach begun"), flags=["--lease-ms", 300]) as slow:
        slow.ready()
        for _ in range(100):
            slow.signal(signal.SIGSTOP)
            asleep_since = time.monotonic()
            run = start()
            with work("echo", "quick", flags=["--once"]) as quick:
                quick.next_report()
            if "job.lease_expired" in events_of(run):
                break
            slow.signal(signal.SIGCONT)  # it was between two claims
        wait_until(lambda: time.monotonic() - asleep_since > 2, "longer than a claim may take")
        slow.signal(signal.SIGCONT)
        assert (lambda t: (t["run_id"], t["status"]))(slow.next_report()) == (run, "lost")
    assert run_of(run)["output"] == {"text": "quick"} and not gates.reached("begun")


# --- how many at a time, and how many at all ---

def test_no_more_commands_at_a_time_than_configured(start, work, gates):
    for _ in range(9):
        start()
    together = gates.script("mkdir -p in; touch in/$PAWL_JOB_ID; while [ $(ls in | wc -l) -lt 3 ] && [ ! -e three ]; do sleep 0.01; done; touch three; "
                            "ls in | wc -l >> seen; rm in/$PAWL_JOB_ID")
    with work(*together, flags=["--concurrency", 3, "--max-jobs", 9]) as w:
        assert {w.next_report()["status"] for _ in range(9)} == {"completed"}
        assert w.ended() == 0
    seen = [int(n) for n in gates.lines("seen")]
    assert len(seen) == 9 and max(seen) == 3


def test_max_jobs_ends_it_after_so_many(start, work, api, tenant):
    runs = [start() for _ in range(5)]
    with work("true", flags=["--max-jobs", 3, "--concurrency", 5]) as w:
        report = [w.next_report() for _ in range(3)]
        assert w.ended() == 0 and w.lines.empty()
    assert {t["run_id"] for t in report} == set(runs[:3])
    assert api.get(f"/api/v1/tenants/{tenant}").json["active_runs"] == 2


def test_several_queues_of_all_tenants(api, dev_server):
    tenants = [api.tenant() for _ in range(2)]
    mine = "q-" + tenants[0]
    for name in tenants:
        api.workflow(name, "w", [{**STEP, "queue": mine}, {**STEP, "name": "more", "queue": mine + "2"}])
        assert api.start(name, "w").status == 200
    with Worker(dev_server.url, "*", "sh", "-c", "echo $PAWL_TENANT", queues=(mine, mine + "2"), flags=["--max-jobs", 4]) as w:
        assert {w.next_report()["status"] for _ in range(4)} == {"completed"} and w.ended() == 0
    for name in tenants:
        run = api.get("/api/v1/runs", tenant=name).json["items"][0]
        assert run["status"] == "succeeded" and run["output"] == {"text": name}


# --- stopping ---

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_lets_commands_finish_and_claims_no_more(start, work, gates, job_of, number):
    first, second = start(), start()
    with work(*gates.script("reach started; await go; echo done")) as w:
        gates.wait("started")
        w.signal(number)
        gates.open("go")
        report = w.next_report()
        assert w.ended() == 0 and (report["run_id"], report["status"]) == (first, "completed") and w.lines.empty()
    assert job_of(first)["output"] == {"text": "done"} and job_of(second)["state"] == "pending"


def test_after_the_first_signal_nothing_is_claimed_though_a_slot_is_free(start, work, gates, run_of, events_of):
    start()
    with work(*gates.script("reach started; await go"), flags=["--concurrency", 2]) as w:
        gates.wait("started")
        w.signal(signal.SIGTERM)
        w.signal_taken()
        later = [start() for _ in range(20)]
        with work("true", flags=["--worker-id", "other"]):
            wait_until(lambda: all(run_of(r)["status"] == "succeeded" for r in later), "another worker does the rest")
        gates.open("go")
        assert w.ended() == 0
    claims = sum(events_of(r).count("job.claimed") for r in later)
    assert claims <= 21, "one may have been on its way, and is given back"


def test_the_second_signal_kills_commands_and_gives_the_jobs_back(start, work, gates, job_of):
    runs = [start(), start()]
    with work(*gates.script("trap '' TERM INT; reach started-$PAWL_JOB_ID; while :; do sleep 1; done"), flags=["--concurrency", 2]) as w:
        pids = [int(gates.wait(f"started-{job_of(run)['job_id']}")) for run in runs]
        w.signal(signal.SIGTERM)
        w.signal(signal.SIGINT)
        report = [w.next_report(), w.next_report()]
        assert w.ended() == 0 and {t["status"] for t in report} == {"released"} and {t["run_id"] for t in report} == set(runs)
    assert not any(is_alive(pid) for pid in pids)
    assert {job_of(run)["state"] for run in runs} == {"pending"}, "at once, not when the lease has ended"


def test_a_server_that_hangs_does_not_keep_a_worker_from_ending(gates):
    with harness.server() as s:
        s.client().workflow("t", "w", [STEP])
        s.client().start("t", "w")
        with Worker(s.url, "t", *gates.script("trap '' TERM; reach started; while :; do sleep 1; done"), flags=["--lease-ms", 600]) as w:
            pid = int(gates.wait("started"))
            s.process.send_signal(signal.SIGSTOP)
            w.signal(signal.SIGTERM)
            w.signal_taken()
            w.signal(signal.SIGTERM)
            wait_gone(pid)
            assert w.ended() == 3
        s.process.send_signal(signal.SIGCONT)


def test_an_idle_worker_ends_when_told(work, flow):
    with work("true") as w:
        assert w.stop() == 0 and w.err == "" and w.lines.empty()


# --- deaths ---

def test_a_worker_that_is_killed_takes_its_command_with_it_and_the_job_comes_back(start, work, gates, job_of):
    run = start()
    with work(*gates.script("reach started; while :; do sleep 1; done"), flags=["--lease-ms", 300]) as first:
        pid = int(gates.wait("started"))
        first.signal(signal.SIGKILL)
        first.ended()
        wait_gone(pid)
        with work("echo", "again", flags=["--once"]) as second:
            assert (lambda t: (t["status"], t["attempt"]))(second.next_report()) == ("completed", 2)
    assert job_of(run)["output"] == {"text": "again"}


def test_a_server_that_is_killed_gets_the_result_when_it_is_back(gates):
    with harness.server("--listen", f"127.0.0.1:{cli.free_port()}") as s:
        s.client().workflow("t", "w", [STEP])
        first = s.client().start("t", "w").json["run_id"]
        with Worker(s.url, "t", *gates.script("reach started-$PAWL_RUN_ID; await go; reach over; echo $PAWL_ATTEMPT")) as w:
            gates.wait(f"started-{first}")
            s.kill()
            gates.open("go")
            gates.wait("over")
            wait_until(lambda: "trying again" in w.err, "the worker finds the server gone")
            s.start()
            assert (lambda t: (t["run_id"], t["status"]))(w.next_report()) == (first, "completed")
            second = s.client().start("t", "w").json["run_id"]
            assert (lambda t: (t["run_id"], t["status"]))(w.next_report()) == (second, "completed")
            wait_until(lambda: "answers again" in w.err, "and says so")
            assert w.err.count("trying again") == 1
        for run in (first, second):
            assert s.client().get(f"/api/v1/runs/{run}", tenant="t").json["output"] == 1
            claims = [e for e in s.client().get(f"/api/v1/runs/{run}/events", tenant="t").json["items"] if e["type"] == "job.claimed"]
            assert len(claims) == 1, "a step that succeeded is not handed out again"


def test_a_worker_waits_for_a_server_that_is_not_there_yet():
    port = cli.free_port()
    with Worker(endpoint.url(port), "t", "echo", "1", flags=["--once"]) as w:
        wait_until(lambda: "trying again" in w.err, "it finds nobody")
        with harness.server("--listen", f"127.0.0.1:{port}") as s:
            s.client().workflow("t", "w", [STEP])
            s.client().start("t", "w")
            assert w.next_report()["status"] == "completed" and w.ended() == 0


def test_nothing_piles_up(start, work, gates):
    unread = "x" * 200_000
    for _ in range(3):
        start(unread)
    with work("sh", "-c", "true & echo x; echo y >&2", flags=["--concurrency", 3]) as w:
        def done(count):
            for _ in range(count):
                assert w.next_report()["status"] == "completed"
            wait_until(lambda: not children(w.pid), "no child is left, not even a zombie")
            return open_fds(w.pid)

        first = done(3)
        for _ in range(30):
            start(unread)
        # A connection for each slot may have been opened since; nothing of 30 commands.
        assert done(30) <= first + 3


def graph_of_six():
    """first → (each item | side) → join → tail → last, which fails for good where the input says so; first and side are undone then."""
    def task(name, *needs, **more):
        return {"name": name, "type": "task", "handler": name, "queue": "q", "needs": needs, "retry": {"max_attempts": 100, "backoff_ms": 10}, **more}

    return [task("first", compensate={"handler": "undo-first"}), task("each", "first", for_each="input.items", input="${item}"),
            task("side", "first", compensate={"handler": "undo-side"}), task("join", "each", "side"), task("tail", "join"), task("last", "tail")]


def assert_nothing_done_twice(db):
    succeeded = set()
    for run, kind, data in rows(db, "SELECT run, type, data FROM events WHERE type IN ('job.claimed', 'job.succeeded') ORDER BY run, seq"):
        job = (run, json.loads(data)["job_id"])
        assert kind == "job.succeeded" or job not in succeeded, "a step that succeeded was handed out again"
        if kind == "job.succeeded":
            succeeded.add(job)


@pytest.mark.slow
def test_kills_of_server_and_workers_in_turn_double_no_effect_and_lose_none(gates):
    """Each effect is a line under its idempotency key: a receiver that dedups on it counts every one exactly once.

    PAWL_RUNS=5000 makes it a soak, PAWL_SEED repeats the choices of one that failed."""
    seed = int(os.environ.get("PAWL_SEED", random.SystemRandom().randrange(1 << 32)))
    count = int(os.environ.get("PAWL_RUNS", "250"))
    print(f"PAWL_SEED={seed} PAWL_RUNS={count}")
    rng = random.Random(seed)
    script = gates.script('read -r input; echo "$PAWL_RUN_ID $PAWL_HANDLER ${PAWL_ITEM:-x} $PAWL_IDEMPOTENCY_KEY" >> ledger; '
                          'case "$PAWL_HANDLER $input" in "last "*\'"fail":true\'*) exit 65;; esac')
    with harness.server("--listen", f"127.0.0.1:{cli.free_port()}") as s:
        api = s.client()
        api.workflow("t", "w", graph_of_six())
        runs = {api.start("t", "w", {"input": {"items": [1, 2], "fail": n % 3 == 0}}).json["run_id"]: n % 3 == 0 for n in range(count)}
        work = lambda: Worker(s.url, "t", *script, flags=["--lease-ms", 700, "--concurrency", 8])
        workers, deaths = [work() for _ in range(3)], {"server": 0, "worker": 0}
        while s.client().get("/api/v1/tenants/t").json["active_runs"] > 0:
            time.sleep(rng.uniform(0.05, 0.4))  # the moment is random; nothing is waited for
            dies = rng.choice(["server", "worker"])
            deaths[dies] += 1
            if dies == "server":
                s.kill()
                s.start()
            else:
                dead = workers.pop(0)
                dead.signal(signal.SIGKILL)
                dead.ended()
                workers.append(work())
        assert [w.stop() for w in workers] == [0, 0, 0] and min(deaths.values()) >= 3, deaths
        ended = {run: s.client().get(f"/api/v1/runs/{run}", tenant="t").json["status"] for run in runs}
        assert_nothing_done_twice(s.db)
        assert_healthy(s.client())
    assert ended == {run: "failed" if fails else "succeeded" for run, fails in runs.items()}
    lines = gates.lines("ledger")
    counted = sorted(line.rsplit(" ", 1)[0] for line in set(lines))
    effects = ["first x", "each 0", "each 1", "side x", "join x", "tail x", "last x"]
    assert counted == sorted(f"{run} {effect}" for run, fails in runs.items() for effect in [*effects, *(["undo-first x", "undo-side x"] if fails else [])])
    print(f"{len(counted)} effects, {len(lines) - len(counted)} repeated, {deaths}")


# --- what cannot be done ---

@pytest.mark.parametrize("command", ["/nowhere/to/be/found", "no-such-command-anywhere", "/etc/passwd", "/etc/passwd/x"])
def test_a_command_that_cannot_be_run_stops_the_worker_and_keeps_the_job(start, work, job_of, command):
    run = start()
    with work(command) as w:
        assert w.next_report()["status"] == "released"
        assert w.ended() == 1 and f"Cannot run {command}: " in w.err
    assert job_of(run)["state"] == "pending"


@pytest.mark.parametrize("args", [
    ("worker",), ("worker", "--queue", "q"), ("worker", "--queue", "q", "--"), ("worker", "--", "cat"), ("worker", "--queue", "q", "cat"),
    ("worker", "--queue", "q", "--concurrency", "0", "--", "cat"), ("worker", "--queue", "q", "--lease-ms", "1", "--", "cat"), ("worker", "--queue", "q", "--nonsense", "--", "cat"),
])
def test_usage_errors(args):
    r = pawl(*args)
    assert r.code == 2 and "usage: pawl worker" in r.err and r.out == "", r


def test_a_worker_that_is_refused_ends():
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": harness.ROOT_KEY}) as s:
        key = pawl("key", "create", "--tenant", "acme", "--role", "viewer", PAWL_URL=s.url, PAWL_API_KEY=harness.ROOT_KEY).out.strip()
        with Worker(s.url, "acme", "true", PAWL_API_KEY=key) as w:
            assert w.ended() == 1 and "FORBIDDEN" in w.err


def test_people_see_a_line_for_each_job(dev_server, tenant, start):
    runs = [start(), start()]
    r = pawl("worker", "--queue", "q", "--max-jobs", "2", "--", "sh", "-c", "[ $PAWL_RUN_ID = %s ]" % runs[0], PAWL_URL=dev_server.url, PAWL_TENANT=tenant)
    first, second = (line.split() for line in r.out.splitlines())
    assert r.code == 0 and r.err == ""
    assert first[1:] == ["w", "work", "do.it", "attempt", "1", "completed"] and second[1:] == ["w", "work", "do.it", "attempt", "1", "failed", "EXIT_1"]


def test_many_workers_share_the_work_and_do_each_job_once(start, work, gates, run_of):
    runs = [start(n) for n in range(60)]
    script = gates.script("read -r n; echo $n >> seen; echo $n")
    workers = [work(*script, flags=["--concurrency", 4, "--worker-id", f"w{i}"]) for i in range(3)]
    try:
        wait_until(lambda: all(run_of(r)["status"] == "succeeded" for r in runs), "all runs are over")
    finally:
        codes = [w.stop() for w in workers]
    assert codes == [0, 0, 0] and sorted(map(int, gates.lines("seen"))) == list(range(60))
    assert [run_of(r)["output"] for r in runs] == list(range(60))
