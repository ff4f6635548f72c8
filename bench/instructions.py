#!/usr/bin/env python3
"""Counts the instructions that pawl executes for a start, a replay, a claim with its completion and a signal.

    python3 bench/instructions.py --pawl build/pawl --tools build/bench [--requests 2000] [--check FILE | --write FILE]

Instructions under callgrind hardly depend on what else the machine does, so a change of a few percent shows. The server
runs on a fresh store; each figure is counted over its own requests after a warm-up. "64 connections" are batched by the
writer as under load, "1 connection" is one commit for each request.

`--check` compares with the figures of a file, bench/instructions.json, and fails if one is more than a tenth above it.
`--write` makes that file: after a change that is dearer on purpose, or cheaper, with the reason in the commit.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from harness import BenchError, OK, Server, ask, check_start, prepare, run_load, start, wait_ready

READY_WAIT_S = 120  # callgrind runs a program some fifty times slower
WORK = {"id": "one_task", "steps": [{"name": "only", "type": "task", "queue": "counted", "handler": "h"}]}
ENTITY = {"queue": "entities", "handler": "h"}
BATCH = 50
DEARER_MAX = 1.10  # a figure may be so many times what the file says
TRIES_MAX = 3  # a busy machine adds instructions now and then and takes none away, so the least of several counts


def callgrind_server(args, folder):
    if not shutil.which("valgrind"):
        raise BenchError("valgrind is not installed; it counts the instructions (Debian: valgrind)")
    return Server(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", args.pawl, "serve", "--dev",
                   "--listen", "127.0.0.1:0", "--store", f"sqlite:{folder}/pawl.db"],
                  r"^pawl listening on http://127\.0\.0\.1:(\d+)\s*$", folder / "pawl.log", READY_WAIT_S)


class Counter:
    """Instructions between two moments, by callgrind's own dumps."""

    def __init__(self, server, folder):
        self.server, self.folder, self.dumps = server, folder, 0

    def control(self, option):
        done = subprocess.run(["callgrind_control", option, str(self.server.process.pid)], capture_output=True, text=True)
        if done.returncode != 0:
            raise BenchError(f"callgrind_control {option}: {done.stdout}{done.stderr}")

    def of(self, work):
        self.control("-z")
        work()
        self.control("-d")
        self.dumps += 1
        dumps = sorted(self.folder.glob("out.*"), key=lambda p: int(p.suffix[1:]))
        totals = [line for line in dumps[-1].read_text().splitlines() if line.startswith(("totals:", "summary:"))]
        return int(totals[-1].split()[1])


def starts(args, server, connections, key, count):
    options = ["--connections", connections, "--warm", 0, "--seconds", 600, "--requests", count, *start(key)]
    run_load(args.tools, server, "starts", 600, options, OK)


def claim_and_complete(client, count):
    tenant = {"X-Tenant-ID": "t0"}
    for _ in range(count // BATCH):
        claim = json.dumps({"worker_id": "w", "queues": ["counted"], "max": BATCH})
        for job in json.loads(ask(client, "POST", "/api/v1/jobs/claim", tenant, claim))["jobs"]:
            done = json.dumps({"lease_token": job["lease_token"], "output": {"ok": True}})
            ask(client, "POST", f"/api/v1/jobs/{job['job_id']}/complete", tenant, done)


def signals(client, count, offset):
    for i in range(count):
        body = json.dumps({"name": "add", "payload": {"n": i}, "dedup_key": f"s{offset + i}"})
        ask(client, "POST", f"/api/v1/entities/account/e{i % 20}/signals", {"X-Tenant-ID": "t0"}, body)


def count(args, folder, n):
    """All figures once, on a fresh server; n requests for those of starts. `args` has `pawl` and `tools`."""
    figures = {}
    with callgrind_server(args, folder) as server:
        client = server.client(timeout=READY_WAIT_S)
        wait_ready(client, READY_WAIT_S)
        prepare(client)
        check_start(client)
        tenant = {"X-Tenant-ID": "t0"}
        ask(client, "PUT", "/api/v1/workflows/one_task", tenant, json.dumps(WORK))
        ask(client, "PUT", "/api/v1/entity-types/account", tenant, json.dumps(ENTITY))
        counter = Counter(server, folder)
        starts(args, server, 64, "{u}", n)  # warm: caches, statements, the first tables
        figures["start, 64 connections"] = counter.of(lambda: starts(args, server, 64, "{u}", n)) // n
        figures["start, 1 connection"] = counter.of(lambda: starts(args, server, 1, "{u}", n // 4)) // (n // 4)
        figures["replay, 64 connections"] = counter.of(lambda: starts(args, server, 64, "dup", n)) // n
        client.close()  # idle for long: the server may have closed it too; the next request opens another connection
        few = n // 10 // BATCH * BATCH
        for _ in range(few):
            ask(client, "POST", "/api/v1/workflows/one_task/runs", tenant, "{}")
        figures["claim and complete"] = counter.of(lambda: claim_and_complete(client, few)) // few
        signals(client, 40, 0)
        figures["signal to an entity"] = counter.of(lambda: signals(client, few, 1000)) // few
        client.close()
    return figures


def measure_fresh(args):
    with tempfile.TemporaryDirectory(prefix="pawl-instructions-") as folder:
        return count(args, pathlib.Path(folder), args.requests)


def show(figures, expected):
    for name, count in figures.items():
        ratio = f"{count / expected[name]:>8.2f} of {expected[name]:,}" if name in expected else ""
        print(f"{name:<28}{count:>12,}{ratio}")


def check(args):
    expected = json.loads(args.check.read_text())
    least = {}
    for _ in range(TRIES_MAX):
        least = {name: min(count, least.get(name, count)) for name, count in measure_fresh(args).items()}
        dearer = [name for name in expected if least[name] > DEARER_MAX * expected[name]]
        if not dearer:
            break
    show(least, expected)
    for name in dearer:
        print(f"dearer than {args.check} allows: {name}")
    return 1 if dearer or least.keys() != expected.keys() else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pawl", type=pathlib.Path, required=True, help="the server's binary")
    parser.add_argument("--tools", type=pathlib.Path, required=True, help="where load is")
    parser.add_argument("--requests", type=int, default=2000, help="for each figure of starts; a tenth for the others")
    parser.add_argument("--check", type=pathlib.Path, help="fail if a figure is more than a tenth above this file's")
    parser.add_argument("--write", type=pathlib.Path, help="write the medians of three measurements to this file")
    args = parser.parse_args()
    if not 500 <= args.requests <= 1_000_000:
        parser.error("--requests is 500 to 1,000,000")
    try:
        if args.check:
            return check(args)
        several = [measure_fresh(args) for _ in range(TRIES_MAX if args.write else 1)]
    except BenchError as failure:
        print(failure, file=sys.stderr)
        return 1
    figures = {name: statistics.median(one[name] for one in several) for name in several[0]}
    show(figures, {})
    if args.write:
        args.write.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
