#!/usr/bin/env python3
"""How fast the console's lists are answered with many runs: python3 bench/lists.py [--runs 1000000] [--limit-ms 50].

One tenant gets the runs: copies of a few real ones, written with SQLite into a file that the server made, because starting a
million of them takes longer than reading them ever will. A day of figures comes with them. Each request is sent some times,
one after the other, over one connection; the first one is not counted, since it reads the file's pages from disk. What each
takes at the server is the time that the server's threads have run, which is the same on a busy machine. Exits with 1 if that
is more than the limit for one of them."""
import argparse
import http.client
import json
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
TENANT = {"X-Tenant-ID": "big"}
DAY_MINUTES = 1440
TENANTS_WITH_FIGURES = 50
WORKFLOWS = {"ends": {"steps": [{"name": "a", "type": "transform", "output": {"ok": True}}]},
             "breaks": {"steps": [{"name": "a", "type": "task", "handler": "h"}]}}


class Pawl:
    def __init__(self, binary, file):
        self.argv = [str(binary), "serve", "--dev", "--listen", "127.0.0.1:0", "--store", f"sqlite:{file}"]

    def __enter__(self):
        self.process = subprocess.Popen(self.argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.client = http.client.HTTPConnection("127.0.0.1", int(self.process.stdout.readline().strip().rsplit(":", 1)[1]), timeout=120)
        return self

    def __exit__(self, *_):
        self.client.close()
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, method, path, body=None, **headers):
        text = None if body is None else json.dumps(body)
        self.client.request(method, f"/api/v1/{path}", text, {**TENANT, "Content-Type": "application/json", **headers})
        answer = self.client.getresponse()
        raw = answer.read()
        if answer.status != 200:
            sys.exit(f"{method} {path}: {answer.status} {raw[:300]}")
        return json.loads(raw)


def make_real_runs(pawl):
    """{status: run id}: one that succeeded, one that failed, one that was cancelled."""
    for name, definition in WORKFLOWS.items():
        pawl.ask("PUT", f"workflows/{name}", definition)
    made = {"succeeded": pawl.ask("POST", "workflows/ends/runs?wait_ms=5000", {})["run_id"]}
    made["failed"] = pawl.ask("POST", "workflows/breaks/runs", {}, **{"Idempotency-Key": "order-17"})["run_id"]
    job = pawl.ask("POST", "jobs/claim", {"worker_id": "w", "queues": ["default"]})["jobs"][0]
    error = {"code": "CARD_DECLINED", "message": "The card was declined by the bank", "retryable": False}
    pawl.ask("POST", f"jobs/{job['job_id']}/fail", {"lease_token": job["lease_token"], "error": error})
    made["cancelled"] = pawl.ask("POST", "workflows/breaks/runs", {})["run_id"]
    pawl.ask("POST", f"runs/{made['cancelled']}/cancel", {})
    return made


def id_of(num):
    """A run's number is the time in its id: 48 bits of milliseconds and 12 bits of parts."""
    return (num >> 12).to_bytes(6, "big") + (0x7000 | (num & 0xFFF)).to_bytes(2, "big") + (0x8 << 60 | num).to_bytes(8, "big")


def num_of(run_id):
    raw = bytes.fromhex(run_id.replace("-", ""))
    return int.from_bytes(raw[:6], "big") << 12 | (int.from_bytes(raw[6:8], "big") & 0xFFF)


def copy_runs(db, made, count):
    columns = [row[1] for row in db.execute("PRAGMA table_info(runs)")]
    events = [row[1] for row in db.execute("PRAGMA table_info(timeline)")]
    rows = {status: dict(zip(columns, db.execute("SELECT * FROM runs WHERE num = ?", [num_of(run_id)]).fetchone())) for status, run_id in made.items()}
    stories = {status: [dict(zip(events, e)) for e in db.execute("SELECT * FROM timeline WHERE run = ?", [num_of(run_id)])] for status, run_id in made.items()}
    first = min(num_of(run_id) for run_id in made.values()) - (count + 1) * 4096
    tenant = rows["succeeded"]["tenant"]
    for key in ("key", "key_num", "key_route", "key_hashes", "born"):
        for row in rows.values():
            if key in row:
                row[key] = None

    def kinds():
        for i in range(count):
            yield first + i * 4096, "failed" if i % 20 == 0 else "cancelled" if i % 20 == 1 else "succeeded", i

    put = "INSERT INTO {} (" + "{}) VALUES ({})"
    db.executemany(put.format("runs", ", ".join(columns), ", ".join(f":{c}" for c in columns)),
                   ({**rows[status], "num": num, "id": id_of(num), "labels": json.dumps({"customer": f"c{i % 1000}"}), "created_at": num >> 12} for num, status, i in kinds()))
    db.executemany("INSERT INTO run_blocks (tenant, num) VALUES (?, ?)", ((tenant, num) for num, _, _ in kinds()))
    db.executemany(put.format("timeline", ", ".join(events), ", ".join(f":{c}" for c in events)),
                   ({**event, "run": num} for num, status, _ in kinds() for event in stories[status]))


def make_figures(db):
    now = int(time.time()) // 60
    waits = json.dumps([100] * 20)
    db.executemany("INSERT OR REPLACE INTO minutes VALUES (?, ?, 1000, 900, 50, 0, 50, 0, 10, 1, 2, ?)",
                   ((tenant, now - i, waits) for tenant in range(TENANTS_WITH_FIGURES + 1) for i in range(DAY_MINUTES)))


def requests_of(made, cursor):
    run = made["failed"]
    return {"first page": "runs", "200 runs": "runs?limit=200", "from the middle": f"runs?cursor={cursor}", "failed": "runs?status=failed",
            "failed or cancelled": "runs?status=failed,cancelled&limit=200", "running: there is none": "runs?status=running",
            "a label of 1 in 1,000": "runs?label=customer:c7", "a label that none has": "runs?label=customer:none",
            "a workflow that none has": "runs?workflow_id=none",
            "search: id": f"runs?q={run}", "search: beginning of an id": f"runs?q={run[:10]}", "search: key": "runs?q=order-17",
            "search: error of many": "runs?q=declined", "search: error of none": "runs?q=nothing-like-it", "search: label of 1 in 1,000": "runs?q=customer=c7",
            "search: label of none": "runs?q=customer=none", "children": f"runs?parent={run}", "reruns": f"runs?rerun_of={run}",
            "figures of an hour": "stats", "figures of a day": "stats?minutes=1440"}


def cpu_ms(pid):
    """How long all threads of a process have run."""
    tasks = pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e6


def measure(pawl, made, count, times):
    cursor = num_of(made["succeeded"]) - count // 2 * 4096
    results = {}
    for name, path in requests_of(made, cursor).items():
        took = []
        answer = pawl.ask("GET", path)
        ran = cpu_ms(pawl.process.pid)
        for _ in range(times):
            begun = time.perf_counter()
            answer = pawl.ask("GET", path)
            took.append((time.perf_counter() - begun) * 1000)
        ran = (cpu_ms(pawl.process.pid) - ran) / times
        results[name] = (ran, statistics.median(took), len(answer.get("items", answer.get("minutes", []))), answer.get("stopped_early"))
    return results


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pawl", default=ROOT / "build" / "pawl")
    options.add_argument("--runs", type=int, default=1_000_000)
    options.add_argument("--times", type=int, default=20)
    options.add_argument("--limit-ms", type=float, default=50)
    args = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="pawl-lists-") as folder:
        file = pathlib.Path(folder) / "pawl.db"
        with Pawl(args.pawl, file) as pawl:
            made = make_real_runs(pawl)
            time.sleep(2)  # the index of runs is filled each second
        db = sqlite3.connect(file)
        with db:
            copy_runs(db, made, args.runs)
            make_figures(db)
        db.close()
        with Pawl(args.pawl, file) as pawl:
            results = measure(pawl, made, args.runs, args.times)
    print(f"{args.runs:,} runs, {args.times} requests each\n\n| request | server ms | client ms | items | stopped early |\n|---|---|---|---|---|")
    for name, (ran, median, items, early) in results.items():
        print(f"| {name} | {ran:.1f} | {median:.1f} | {items} | {'yes' if early else ''} |")
    sys.exit(any(ran > args.limit_ms for ran, _, _, _ in results.values()))


if __name__ == "__main__":
    main()
