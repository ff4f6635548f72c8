"""pawl beside its peers, each driven by the peers' own harness, which is not part of this repository.

The folder has a run.sh that takes the name of what to measure, measures for PEERS_SECS seconds each, and leaves lines of
JSON in results/NAME.jsonl: peer, workload, conc, rate, p50_us, p99_us, codes. `run.sh spec FILE` measures an HTTP server
that FILE describes, which is how pawl itself is measured there: the variable PAWL is its binary.
"""
import json
import os
import re
import statistics
import subprocess

from harness import PARK, PARK_PATH, START_BODY, BenchError, on
from parts.admission import BURST_CODES, BURST_LIMIT
from parts.workers import THREE
from results import row

ONCE = True  # one sitting
WANTED = ("limits", "spec", "restate", "bullmq", "bullmq-always", "cordum-like")
TIMEOUT_S = 3600
# (what, workload, connections, figure, peer, ratio that pawl must reach; below 1 the least is best)
TARGETS = [
    ("W1 start, 64 connections", "W1-start", 64, "rate", "restate", 5),
    ("W1 start, 64 connections", "W1-start", 64, "rate", "bullmq-always", 1.8),
    ("W3 three steps, 16 connections", "W3-e2e-3steps", 16, "rate", "restate", 10),
    ("W3 three steps, 16 connections", "W3-e2e-3steps", 16, "rate", "bullmq-everysec", 2.5),
    ("W4 burst of 100, p99", "W4-burst100-limit2", 100, "p99_us", "cordum-like-everysec", 1 / 60),
]


def spec():
    """pawl as the harness wants it described. {i} counts tenants, {c} connections; {u} is unique; {burst} is a tenant."""
    def define(workflow, tenant, **more):
        return {"path": f"/api/v1/workflows/{workflow['id']}", "headers": [f"X-Tenant-ID: {tenant}"],
                "body": json.dumps(workflow), **more}

    def start(path, tenant, key, body=START_BODY):
        return {"path": path, "body": body, "headers": [f"X-Tenant-ID: {tenant}", f"Idempotency-Key: {key}",
                                                        "Content-Type: application/json"]}

    limit = {"path": "/api/v1/tenants/b{burst}", "body": json.dumps({"max_concurrent_runs": BURST_LIMIT})}
    return {"peer": "pawl", "ready": "/readyz",
            "cmd": ["$PAWL", "serve", "--dev", "--listen", "127.0.0.1:{port}", "--store", "sqlite:{dir}/pawl.db"],
            "worker": ["$PAWL", "bench", "worker", "--url", "http://127.0.0.1:{port}", "--queue", "default", "--tenant", "*"],
            "setup": [define(PARK, "t{i}", repeat=64), define(THREE, "t{i}", repeat=64), define(PARK, "hot")],
            "start": start(PARK_PATH, "t{c}", "{u}"), "dup": start(PARK_PATH, "t{c}", "dup"),
            "hot": start(PARK_PATH, "hot", "{u}"),
            "e2e": start("/api/v1/workflows/three/runs?wait_ms=10000", "t{c}", "{u}", '{"input":{}}'),
            "before_burst": [limit, define(PARK, "b{burst}")], "burst": start(PARK_PATH, "b{burst}", "b{u}")}


def run_harness(bench, *words, only=None):
    """Runs one of the harness's measurements, or some workloads of it."""
    env = {**os.environ, "PAWL": str(bench.pawl), "PEERS_SECS": str(max(1, round(bench.seconds)))}
    if only:
        env["PEERS_ONLY"] = only
    try:
        done = subprocess.run(["./run.sh", *words], cwd=bench.sizes.peers, env=env, timeout=TIMEOUT_S,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except (subprocess.TimeoutExpired, OSError) as failure:
        raise BenchError(f"{bench.sizes.peers}/run.sh {words[0]}: {failure}") from failure
    if done.returncode != 0 or re.search(r"^## .* failed", done.stdout, re.M):
        raise BenchError(f"{bench.sizes.peers}/run.sh {words[0]} failed; was `./run.sh setup` run there?\n{done.stdout[-2000:]}")


def check_answers(one, ours="pawl"):
    """A server that refuses everything is fast."""
    wanted = BURST_CODES["reject"] if one.get("workload") == "W4-burst100-limit2" else {"200": one.get("ops")}
    if one.get("peer") == ours and "codes" in one and one["codes"] != wanted:
        raise BenchError(f"{name_of(one)}: answers by status {one['codes']}, expected {wanted}")


def measure(bench, folder):
    if bench.sizes.peers is None:
        raise BenchError("the peers need --peers FOLDER (make bench PEERS=FOLDER)")
    rows = []
    described = folder / "pawl.json"
    described.write_text(json.dumps(spec()))
    for name in WANTED:
        bench.results.say(f"{name} …")
        run_harness(bench, name, *([str(described)] if name == "spec" else []))
    for path in sorted((bench.sizes.peers / "results").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            one = json.loads(line)
            check_answers(one)
            bench.results.measured(name_of(one), one, command=f"PAWL={bench.pawl.name} ./run.sh {path.stem}")
            rows.append(one)
    return {"table": compare(rows)}


def name_of(one):
    """A line is of a peer, or of the machine's limits."""
    if "peer" not in one:
        return f"limit: {one['limit']}"
    return f"{one['peer']}: {one['workload']}" + (f", {on(one['conc'])}" if "conc" in one else "")


def figure_of(rows, peer, workload, connections, figure):
    found = [one[figure] for one in rows
             if (one.get("peer"), one.get("workload"), one.get("conc")) == (peer, workload, connections) and figure in one]
    return statistics.median(found) if found else None


def compare(rows):
    table = []
    for what, workload, connections, figure, peer, wanted in TARGETS:
        ours, theirs = (figure_of(rows, name, workload, connections, figure) for name in ("pawl", peer))
        if not ours or not theirs:
            raise BenchError(f"the harness has no {workload} at {on(connections)} for pawl and {peer}")
        unit, share = ("/s" if figure == "rate" else "us"), ours / theirs
        target, met = (f">= {wanted:g} x", share >= wanted) if wanted > 1 else (f"<= 1/{1 / wanted:g} x", share <= wanted)
        table += [row(f"{what}: {peer}", theirs, unit), row(f"{what}: pawl", ours, unit, share, f"{target} {peer}", met)]
    return table


def summarize(rounds):
    return rounds[0]["table"]
