"""pawl dev and pawl demo: a request log, files that are applied when they change, a living example, a server that is killed."""
import contextlib
import json
import os
import re
import signal
import subprocess
import threading

import pytest

import cli
import harness
from cli import pawl

WORKFLOW = "id: hello\nsteps:\n  - name: greet\n    type: transform\n    output: {{text: {text}}}\n"


class Dev:
    """`pawl dev` in a folder of its own; what it prints and logs is read as it comes."""

    def __init__(self, folder, *args, **variables):
        self.lines = []
        self.process = subprocess.Popen([harness.PAWL, "dev", "--listen", "127.0.0.1:0", *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, cwd=folder, env=cli.environment(**variables))
        threading.Thread(target=lambda: self.lines.extend(iter(self.process.stdout.readline, "")) or None, daemon=True).start()
        self.url = self.wait_for(r"pawl listening on (\S+)")[1]

    def wait_for(self, regex, after=0):
        found = harness.wait_until(lambda: next((m for line in self.lines[after:] if (m := re.search(regex, line))), None), f"{regex} in {self.lines[-5:]}")
        return found

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=harness.PATIENCE_S) == 0
        self.process.stdout.close()


@contextlib.contextmanager
def dev(folder, *args, **variables):
    d = Dev(folder, *args, **variables)
    try:
        yield d
    finally:
        d.stop()


def children_of(pid):
    return [int(p) for p in open(f"/proc/{pid}/task/{pid}/children").read().split()]


def test_dev_logs_each_request(tmp_path):
    with dev(tmp_path) as d:
        assert pawl("run", "list", "--url", d.url).code == 0
        d.wait_for(r"request.*GET.*/api/v1/runs.*200")
        assert pawl("run", "show", "01900000-0000-7000-8000-000000000000", "--url", d.url).code == 1
        d.wait_for(r"request.*GET.*/api/v1/runs/01900000-0000-7000-8000-000000000000.*404")


def test_serve_logs_requests_only_when_asked(tmp_path):
    for flags, logged in (((), False), (("--log-requests",), True)):
        with harness.server(*flags) as server:
            assert pawl("run", "list", PAWL_URL=server.url).code == 0
            assert pawl("workflow", "list", PAWL_URL=server.url).code == 0  # the log of the first is complete by now
            assert ("/api/v1/runs" in server.log()) == logged


def test_dev_applies_files_when_they_change_and_says_what_is_wrong(tmp_path):
    files = tmp_path / "flows"
    files.mkdir()
    (files / "hello.yaml").write_text(WORKFLOW.format(text="one"))
    (files / "other.json").write_text(json.dumps({"id": "other", "steps": [{"name": "a", "type": "task", "handler": "h"}]}))
    (files / "notes.txt").write_text("not a definition")
    with dev(tmp_path, "--watch", files) as d:
        d.wait_for(r"^hello.yaml: hello version 1 \(new\)$")
        d.wait_for(r"^other.json: other version 1 \(new\)$")
        (files / "hello.yaml").write_text(WORKFLOW.format(text="two"))
        d.wait_for(r"^hello.yaml: hello version 2 \(new\)$")
        r = pawl("run", "start", "hello", "--wait-ms", "60000", "--json", "--url", d.url)
        assert r.json["run"]["output"] == {"text": "two"}
        (files / "hello.yaml").write_text("id: hello\nsteps: [\n")
        d.wait_for(r"hello.yaml:\d+:\d+: ")
        d.wait_for(r"^hello.yaml: not applied$")
        (files / "other.json").write_text(json.dumps({"id": "other", "steps": [{"name": "a", "type": "tusk"}]}))
        d.wait_for(r"/steps/0/type")
        (files / "hello.yaml").unlink()
        d.wait_for(r"^hello.yaml: removed; the workflow stays as it is$")
        assert pawl("workflow", "show", "hello", "--json", "--url", d.url).json["version"] == 2
        helpers = children_of(d.process.pid)
        assert len(helpers) == 1
    harness.wait_until(lambda: not os.path.exists(f"/proc/{helpers[0]}"), "the helper ends with the server")


def test_a_killed_server_takes_its_helpers_with_it(tmp_path):
    d = Dev(tmp_path, "--watch", tmp_path)
    helpers = harness.wait_until(lambda: children_of(d.process.pid), "the helper runs")
    d.process.kill()
    d.process.wait()
    harness.wait_until(lambda: not os.path.exists(f"/proc/{helpers[0]}"), "the helper ends")
    d.process.stdout.close()


def test_workflow_watch_needs_a_folder(tmp_path):
    r = pawl("workflow", "watch", tmp_path / "nowhere", PAWL_URL="http://127.0.0.1:1")
    assert r.code == 2 and "is not a folder" in r.err, r


def test_the_living_example_moves(tmp_path):
    with dev(tmp_path, "--demo") as d:
        d.wait_for(r"^order [0-9a-f-]{36} started$")
        harness.wait_until(lambda: any(s["status"] == "succeeded" for r in pawl("run", "list", "--json", "--url", d.url).json["items"]
                                       for s in pawl("run", "show", r["id"], "--json", "--url", d.url).json["steps"]), "a step of an order succeeds")


def test_demo_orders_stops_when_its_orders_are_done(dev_server, tenant):
    r = pawl("demo", "orders", "--count", "2", "--every-ms", "10", PAWL_URL=dev_server.url, PAWL_TENANT=tenant)
    assert r.code == 0 and len(re.findall(r"^order \S+ started$", r.out, re.M)) == 2, r


def test_demo_crash_finds_nothing_lost_or_doubled(tmp_path):
    r = pawl("demo", "crash", "--kills", "3", TMPDIR=str(tmp_path))
    assert r.code == 0 and "Nothing was lost, nothing was doubled." in r.out, r
    rows = dict(re.findall(r"^(\S.*?)  +(\d+ +\d+)$", r.out, re.M))
    assert len(rows) == 6 and all(int(v.split()[1]) == 0 for v in rows.values()) and int(rows["Every acknowledged start is there"].split()[0]) > 0, r
    assert r.out.count("kill -9") == 3 and list(tmp_path.iterdir()) == []
