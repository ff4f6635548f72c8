#!/usr/bin/env python3
"""Counts the instructions that pawl executes for a start, a replay, a claim with its completion and a signal.

    python3 bench/instructions.py --pawl build/pawl --tools build/bench [--requests 2000] [--json]

Instructions under callgrind hardly depend on what else the machine does, so a change of a few percent shows. The server
runs on a fresh store; each figure is counted over its own requests after a warm-up. "64 connections" are batched by the
writer as under load, "1 connection" is one commit for each request.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from rig import BenchError, PARK_PATH, START_BODY, Server, ask, send_starts, wait_ready
from throughput import prepare

READY_WAIT_S = 120  # callgrind runs a program some fifty times slower
WORK = {"id": "one_task", "steps": [{"name": "only", "type": "task", "queue": "counted", "handler": "h"}]}
ENTITY = {"queue": "entities", "handler": "h"}
BATCH = 50


def callgrind_server(args, folder):
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
    options = ["--connections", connections, "--warm", 0, "--seconds", 600, "--requests", count, "--path", PARK_PATH,
               "--header", "X-Tenant-ID: t{c}", "--header", f"Idempotency-Key: {key}"]
    send_starts(args.tools, server, "starts", 600, options, lambda codes: set(codes) == {"200"})


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


def measure(args, folder):
    figures = {}
    n = args.requests
    with callgrind_server(args, folder) as server:
        client = server.client(timeout=READY_WAIT_S)
        wait_ready(client, READY_WAIT_S)
        prepare(client)
        tenant = {"X-Tenant-ID": "t0"}
        ask(client, "PUT", "/api/v1/workflows/one_task", tenant, json.dumps(WORK))
        ask(client, "PUT", "/api/v1/entity-types/account", tenant, json.dumps(ENTITY))
        counter = Counter(server, folder)
        starts(args, server, 64, "{u}", n)  # warm: caches, statements, the first tables
        figures["start, 64 connections"] = counter.of(lambda: starts(args, server, 64, "{u}", n)) // n
        figures["start, 1 connection"] = counter.of(lambda: starts(args, server, 1, "{u}", n // 4)) // (n // 4)
        figures["replay, 64 connections"] = counter.of(lambda: starts(args, server, 64, "dup", n)) // n
        few = n // 10 // BATCH * BATCH
        for _ in range(few):
            ask(client, "POST", "/api/v1/workflows/one_task/runs", tenant, "{}")
        figures["claim and complete"] = counter.of(lambda: claim_and_complete(client, few)) // few
        signals(client, 40, 0)
        figures["signal to an entity"] = counter.of(lambda: signals(client, few, 1000)) // few
        client.close()
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pawl", type=pathlib.Path, required=True, help="the server's binary")
    parser.add_argument("--tools", type=pathlib.Path, required=True, help="where load is")
    parser.add_argument("--requests", type=int, default=2000, help="for each figure of starts; a tenth for the others")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    args = parser.parse_args()
    if not 500 <= args.requests <= 1_000_000:
        parser.error("--requests is 500 to 1,000,000")
    try:
        with tempfile.TemporaryDirectory(prefix="pawl-instructions-") as folder:
            figures = measure(args, pathlib.Path(folder))
    except BenchError as failure:
        print(failure, file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps(figures))
    else:
        for name, count in figures.items():
            print(f"{name:<28}{count:>12,}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
