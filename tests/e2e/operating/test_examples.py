"""Every example runs with one command, with a server of its own and with one that is there, and shows what its README promises."""
import json
import os
import re
import signal
import subprocess

import pytest

import cli
import harness

EXAMPLES = harness.ROOT / "examples"
ID = re.compile(r"^([0-9a-f-]{36})  created  (\w+)$", re.M)


# The binary, except that a worker's lines come late: all of them when it has ended.
LATE_LOG = """#!/bin/sh
[ "$1" = worker ] || exec "$PAWL_REAL" "$@"
"$PAWL_REAL" "$@" >"$0.log" &
trap 'kill $!' TERM
wait $! || wait $!
cat "$0.log"
"""


@pytest.fixture
def late_log(tmp_path):
    script = tmp_path / "pawl"
    script.write_text(LATE_LOG)
    script.chmod(0o755)
    return {"PAWL": str(script), "PAWL_REAL": harness.PAWL}


@pytest.fixture(params=["own server", "server at PAWL_URL"])
def example(request, tmp_path, dev_server, tenant):
    """example(path, *args): what its script prints. Afterwards nothing of it is left."""
    def run(script, *args, code=0, **more):
        there = {"PAWL_URL": dev_server.url, "PAWL_TENANT": tenant} if request.param != "own server" else {}
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        done = subprocess.run([EXAMPLES / script, *args], capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=tmp_path, timeout=harness.PATIENCE_S * 4,
                              env=cli.environment(**{"PAWL": harness.PAWL, "TMPDIR": str(scratch), **there, **more}))
        assert done.returncode == code, (done.stdout, done.stderr)
        assert list(scratch.iterdir()) == [], "temporary files stay behind"
        if code == 0:
            assert done.stderr == "", done.stderr
        return done.stdout
    return run


def test_order_is_shipped_or_undone(example, late_log):
    out = example("order/run.sh", **late_log)
    shipped, undone = re.split(r"\n\nAn order to \w+:\n", out.split("\n\nWhat the worker did:")[0])[1:]
    assert ID.search(shipped).group(2) == "succeeded"
    receipt = json.loads(re.search(r"^output  (.*)$", shipped, re.M).group(1))
    assert (receipt["item"], receipt["paid"]) == ("lamp", 40) and receipt["payment"] and receipt["parcel"]
    outside = "What happened outside, each once:\n"
    assert shipped.split(outside)[1].splitlines() == ["  reserved lamp", "  charged 40", "  sent lamp to Berlin"]
    assert ID.search(undone).group(2) == "failed" and '"message":"nobody delivers to Atlantis"' in undone
    assert [line.split(" of ")[0] for line in undone.split(outside)[1].splitlines()] == ["  reserved lamp", "  charged 40", "  refunded 40", "  put back lamp"]
    worked = [line.split()[2:] for line in out.split("What the worker did:\n")[1].splitlines()]
    assert [w[0] for w in worked] == ["stock.reserve", "payment.charge", "payment.charge", "shipping.send"] * 2 + ["payment.refund", "stock.put_back"]
    assert worked[1][1:] == ["attempt", "1", "retrying", "EXIT_75"] and worked[2][1:] == ["attempt", "2", "completed"] and worked[7][1:] == ["attempt", "1", "failed", "EXIT_65"]


@pytest.mark.parametrize("args", [(), ("* * * * * *",)])
def test_nightly_has_its_times_and_runs(example, args):
    out = example("nightly/run.sh", *args)
    times = json.loads(re.search(r"^next_times +(.*)$", out, re.M).group(1))
    assert len(times) == 5 and (args or all(re.search("T0[12]:00:00.000Z$", t) for t in times)), times
    assert ("created by schedule" in out) == bool(args), "by its time, or by hand"
    report = json.loads(re.search(r"^output +(.*)$", out, re.M).group(1))
    assert report["path"] == "/" and 0 <= report["used_percent"] <= 100 and report["warned"] is (report["used_percent"] >= 90)
    assert ("event emitted" in out) == report["warned"]
    assert re.search("^labels +schedule=nightly$", out, re.M) and out.endswith("nightly deleted\n")


def test_fanout_counts_every_line(example, tmp_path, late_log):
    lines = [f"{'word ' * (n % 7 + 1)}\"quoted\" {n}" for n in range(40)]
    (tmp_path / "text").write_text("\n\n".join(lines) + "\n")
    out = example("fanout/run.sh", "text", **late_log)
    assert ID.search(out).group(2) == "succeeded"
    result = json.loads(re.search(r"^output  (.*)$", out, re.M).group(1))
    counts = [len(line.split()) for line in lines]
    assert result == {"words": counts, "total": sum(counts)} and out.endswith(f"40 jobs; wc -w says {sum(counts)}\n")


def test_fanout_counts_its_own_readme(example):
    out = example("fanout/run.sh")
    assert f'"total":{len((EXAMPLES / "fanout/README.md").read_text().split())}' in out


def test_rewards_counts_each_purchase_once(example):
    out = example("rewards/run.sh")
    bought, redeemed, again, bob, left, anew, emitted = out.split("\n\n")[1:]
    assert bought.splitlines()[1:] == ["1  new", "1  duplicate", "2  new", "2  duplicate", "3  new", "3  duplicate", '4  completed  {"points":1150,"tier":"gold"}']
    assert redeemed.splitlines()[1:] == ['5  completed  {"left":950}', "6  rejected  TOO_FEW_POINTS: 5000 of 950 points"] and again.splitlines()[1:] == ['5  completed  {"left":950}']
    assert '"points":0,"tier":"basic"' in bob and '"points":950,"tier":"silver"' in left
    assert anew.splitlines()[1:] == ["1  duplicate", "8  new", '9  completed  {"points":20,"tier":"basic"}']
    events = [json.loads(line.split(None, 3)[3]) for line in emitted.splitlines() if "event.emitted" in line]
    assert [(e["event"], e["payload"]["points"]) for e in events] == [("tier.silver", 550), ("tier.gold", 1150), ("tier.silver", 950),
                                                                    ("tier.silver", 700), ("points.expired", 700), ("tier.basic", 0)]
    rows = {line.split()[0]: line.split() for line in emitted.splitlines()[-2:]}
    assert sorted(rows) == ["ada", "bob"] and int(rows["ada"][3]) >= 3 and rows["ada"][4] == "0", rows


def test_an_example_without_its_server_fails_and_says_why(tmp_path):
    done = subprocess.run([EXAMPLES / "fanout/run.sh"], capture_output=True, text=True, cwd=tmp_path,
                          env=cli.environment(PAWL=harness.PAWL, PAWL_URL=f"http://127.0.0.1:{cli.free_port()}"))
    assert done.returncode == 3 and "pawl: No pawl server at http://127.0.0.1:" in done.stderr and done.stdout == "", done


def test_hello_greets(dev_server, tenant, tmp_path):
    there = {"PAWL_URL": dev_server.url, "PAWL_TENANT": tenant}
    assert cli.pawl("workflow", "apply", EXAMPLES / "hello/workflow.json", **there).code == 0
    worker = subprocess.Popen([EXAMPLES / "hello/worker.sh"], stdout=subprocess.DEVNULL, env=cli.environment(PAWL=harness.PAWL, **there), start_new_session=True)
    try:
        start = ("run", "start", "hello", "--input", '{"name":"Ada"}', "--idempotency-key", "greet-ada", "--wait-ms", "60000")
        first = cli.pawl(*start, **there)
        assert ID.search(first.out).group(2) == "succeeded" and 'output  {"greeting":"Hello, Ada!"}' in first.out, first
        assert cli.pawl(*start, **there).out == first.out.replace("created", "replayed")
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


def test_every_definition_is_valid(dev_server, tenant):
    found = sorted(EXAMPLES.glob("*/workflow.json"))
    assert len(found) >= 4
    for path in found:
        r = cli.pawl("workflow", "validate", path, PAWL_URL=dev_server.url, PAWL_TENANT=tenant)
        assert (r.code, r.out) == (0, "valid\n"), (path, r)


def test_every_folder_explains_itself_and_its_scripts_can_be_run():
    for folder in (f for f in EXAMPLES.iterdir() if f.is_dir()):
        assert (folder / "README.md").read_text().startswith(f"# {folder.name}\n"), folder
        for script in [*folder.glob("*.sh"), *folder.glob("*.py")]:
            assert os.access(script, os.X_OK), script
