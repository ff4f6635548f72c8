#!/usr/bin/env python3
"""Measures pawl against a bare HTTP answer and a bare SQLite commit on this machine, in one run.

    python3 bench/run.py --pawl build/pawl --tools build/bench [--seconds 5] [--rounds 3] [--json]

Absolute rates differ between machines and between minutes, so the targets are ratios: each round
measures pawl between two readings of its yardstick, and a figure is the median of its rounds.
Exit 1: something failed, or an answer was not 200. A missed target counts only with --strict.
"""
import argparse
import http.client
import json
import os
import pathlib
import queue
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

CONNECTIONS = 64
WARM_S = 1.0
READY_WAIT_S = 10.0
STOP_WAIT_S = 20.0

START_PATH = "/api/v1/workflows/park/runs"
START_BODY = '{"input":{"orderId":"order_789","n":12345}}'
PARK = {"id": "park", "steps": [{"name": "wait", "type": "sleep", "duration_ms": 3600000}]}


class BenchError(Exception):
    """The figures cannot be trusted, or there are none."""


class Server:
    """A child process that says on stdout where it listens; stopped by its own pid on exit."""

    def __init__(self, argv, ready, log):
        self.argv, self.ready, self.log = [str(a) for a in argv], re.compile(ready), log
        self.name = pathlib.Path(self.argv[0]).name

    def __enter__(self):
        with open(self.log, "wb") as log:
            begun = time.perf_counter()
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=log, text=True)
        said = queue.Queue()
        self.reader = threading.Thread(target=self._read, args=(said,), daemon=True)
        self.reader.start()
        try:
            at, self.port = said.get(timeout=READY_WAIT_S)
        except queue.Empty:
            at, self.port = 0, None
        except BaseException:
            self._stop()
            raise
        if self.port is None:
            self._stop()
            raise BenchError(f"{self.name} did not say that it listens\n{self.log_tail()}")
        self.ready_ms = (at - begun) * 1000
        return self

    def __exit__(self, *_):
        self._stop()

    def _read(self, said):
        # Reads on after the line, or a chatty server would block on a full pipe.
        for line in self.process.stdout:
            match = self.ready.search(line)
            if match:
                said.put((time.perf_counter(), int(match[1])))
        said.put((0, None))

    def _stop(self):
        alive = self.process.poll() is None
        if alive:
            self.process.terminate()
        try:
            code = self.process.wait(STOP_WAIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if code != 0:
            when = "after" if alive else "before"
            print(f"{self.name} ended with {code} {when} SIGTERM", file=sys.stderr)
        self.reader.join(1)
        self.process.stdout.close()

    def log_tail(self):
        return pathlib.Path(self.log).read_text(errors="replace")[-2000:]

    def rss_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024


def run_tool(argv, seconds):
    """Runs one measuring program and returns its JSON line."""
    argv = [str(a) for a in argv]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=seconds + 30)
    except subprocess.TimeoutExpired as late:
        raise BenchError(f"{argv[0]} did not stop by itself") from late
    if done.returncode != 0:
        raise BenchError(f"{argv[0]} failed: {done.stderr.strip()}")
    return json.loads(done.stdout)


def load(tools, server, what, seconds, connections=CONNECTIONS, key="{u}"):
    """One closed-loop window of starts; any answer but 200 spoils it."""
    argv = [tools / "load", "--port", server.port, "--connections", connections,
            "--warm", WARM_S, "--seconds", seconds, "--method", "POST", "--path", START_PATH,
            "--header", "X-Tenant-ID: t{c}", "--header", f"Idempotency-Key: {key}",
            "--body", START_BODY]
    try:
        result = run_tool(argv, WARM_S + seconds)
    except BenchError as failure:
        raise BenchError(f"{what}: {failure}\n{server.log_tail()}") from failure
    if result["errors"] or set(result["codes"]) != {"200"}:
        raise BenchError(f"{what}: {result['errors']} errors, answers by status "
                         f"{result['codes']}\n{server.log_tail()}")
    return result


def ask(client, method, path, headers, body=None):
    client.request(method, path, body, {"Content-Type": "application/json", **headers})
    reply = client.getresponse()
    text = reply.read().decode(errors="replace")
    if reply.status != 200:
        raise BenchError(f"{method} {path}: {reply.status} {text[:500]}")
    return text


def wait_ready(client):
    until = time.monotonic() + READY_WAIT_S
    while True:
        try:
            ask(client, "GET", "/readyz", {})
            return
        except BenchError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def prepare(client):
    """Defines the workflow for each connection's tenant, and proves that a start is a start."""
    for tenant in range(CONNECTIONS):
        ask(client, "PUT", "/api/v1/workflows/park", {"X-Tenant-ID": f"t{tenant}"},
            json.dumps(PARK))
    probe = {"X-Tenant-ID": "t0", "Idempotency-Key": "probe"}
    first, again = (json.loads(ask(client, "POST", START_PATH, probe, START_BODY))
                    for _ in range(2))
    if (first.get("created"), again.get("created")) != (True, False) \
            or first.get("run_id") != again.get("run_id"):
        raise BenchError(f"a start and its replay answered {first} and {again}")


def measure_round(args, folder):
    """All figures once, on a fresh server and a fresh store, so that rounds compare."""
    tools, seconds = args.tools, args.seconds
    command = [args.pawl, "serve", "--dev", "--listen", "127.0.0.1:0",
               "--store", f"sqlite:{folder}/pawl.db"]
    figures = {}
    with Server([tools / "bare_http"], r"^listening (\d+)$", folder / "bare.log") as bare, \
            Server(command, r"^pawl listening on http://127\.0\.0\.1:(\d+)\s*$",
                   folder / "pawl.log") as pawl:
        client = http.client.HTTPConnection("127.0.0.1", pawl.port, timeout=10)
        wait_ready(client)
        figures["ready_ms"] = pawl.ready_ms
        figures["idle_rss_mib"] = pawl.rss_mib()
        prepare(client)
        client.close()

        # The machine's mood changes by the second: each yardstick is taken right before and right
        # after what it measures, in windows of half the length.
        def commit_p50_us():
            return run_tool([tools / "sqlite_commit", folder / "commit.db", seconds / 2],
                            seconds)["p50_us"]

        def bare_rate():
            return load(tools, bare, "bare", seconds / 2)["rate"]

        commits = [commit_p50_us()]
        one = load(tools, pawl, "one-connection starts", seconds, connections=1)
        commits.append(commit_p50_us())
        figures["commit_p50_us"] = statistics.mean(commits)
        figures["one_start_p50_us"] = one["p50_us"]
        figures["one_start_ratio"] = one["p50_us"] / figures["commit_p50_us"]

        rates = [bare_rate()]
        for what, key in ("starts", "{u}"), ("replays", "dup"):
            result = load(tools, pawl, what, seconds, key=key)
            rates.append(bare_rate())
            figures[f"{what}_per_s"] = result["rate"]
            figures[f"{what}_p99_us"] = result["p99_us"]
            figures[f"{what}_ratio"] = result["rate"] / statistics.mean(rates[-2:])
        figures["bare_per_s"] = statistics.mean(rates)
    return figures


def summarize(rounds):
    """The table's rows. A ratio is the median of the rounds' own ratios, so it may differ a little
    from the quotient of the two medians shown."""
    def median(name):
        return statistics.median(r[name] for r in rounds)

    def row(figure, value, unit, share=None, target=None, met=None):
        return {"figure": figure, "value": round(value, 2), "unit": unit,
                "ratio": None if share is None else round(share, 3), "target": target, "met": met}

    starts, replays = median("starts_ratio"), median("replays_ratio")
    single = median("one_start_ratio")
    rss, ready = median("idle_rss_mib"), median("ready_ms")
    return [
        row(f"bare HTTP, {CONNECTIONS} connections", median("bare_per_s"), "/s"),
        row(f"durable starts, {CONNECTIONS} connections", median("starts_per_s"), "/s",
            starts, ">= 0.2 x bare", starts >= 0.2),
        row(f"replays, {CONNECTIONS} connections", median("replays_per_s"), "/s",
            replays, ">= 0.4 x bare", replays >= 0.4),
        row("SQLite FULL commit, p50", median("commit_p50_us"), "us"),
        row("start, 1 connection, p50", median("one_start_p50_us"), "us",
            single, "<= 2 x commit", single <= 2),
        row("idle RSS", rss, "MiB", None, "< 15 MiB", rss < 15),
        row("exec to listening", ready, "ms", None, "< 100 ms", ready < 100),
    ]


def print_table(args, rows):
    print(f"{os.cpu_count()} cores, shared by client and server; "
          f"median of {args.rounds} rounds of {args.seconds:g} s")
    print(f"{'figure':<32}{'measured':>14}{'ratio':>9}  {'target':<16}result")
    for row in rows:
        digits = 0 if row["unit"] == "/s" else 1
        measured = f"{row['value']:,.{digits}f} {row['unit']}"
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
        result = {None: "", True: "met", False: "MISSED"}[row["met"]]
        print(f"{row['figure']:<32}{measured:>14}{ratio:>9}  {row['target'] or '':<16}{result}"
              .rstrip())


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pawl", type=pathlib.Path, required=True, help="the server's binary")
    parser.add_argument("--tools", type=pathlib.Path, required=True,
                        help="where load, bare_http and sqlite_commit are")
    parser.add_argument("--seconds", type=float, default=5, help="length of one window")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", type=pathlib.Path,
                        help="where the temporary stores go; by default the tools' folder, because "
                             "/tmp is often memory, where a commit costs nothing")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    args = parser.parse_args()
    if not 0.1 <= args.seconds <= 600 or not 1 <= args.rounds <= 100:
        parser.error("--seconds is 0.1 to 600, --rounds 1 to 100")
    args.pawl, args.tools = args.pawl.resolve(), args.tools.resolve()
    for program in [args.pawl, *(args.tools / t for t in ("load", "bare_http", "sqlite_commit"))]:
        if not os.access(program, os.X_OK):
            parser.error(f"{program} is not a program; build it first")
    return args


def main():
    args = parse_args()
    # An exception, so that the children are stopped on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    rounds = []
    try:
        for number in range(args.rounds):
            print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
            with tempfile.TemporaryDirectory(prefix="pawl-bench-",
                                             dir=args.dir or args.tools) as folder:
                rounds.append(measure_round(args, pathlib.Path(folder)))
    except (BenchError, OSError, http.client.HTTPException) as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1
    rows = summarize(rounds)
    if args.json:
        print(json.dumps({"cores": os.cpu_count(), "seconds": args.seconds, "figures": rows,
                          "rounds": rounds}))
    else:
        print_table(args, rows)
    return 1 if args.strict and any(row["met"] is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
