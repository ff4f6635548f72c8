"""pawl beside its peers, each driven by the peers' own harness, which is not part of this repository.

The folder has a run.sh that takes the names of what to measure, measures for PEERS_SECS seconds each, finds the server
in the variable PAWL, and leaves lines of JSON in results/NAME.jsonl: peer, workload, conc, rate, p50_us, p99_us.
"""
import json
import os
import statistics
import subprocess

from harness import BenchError, on
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


def run_harness(bench, name):
    """Runs one of the harness's measurements, with its words on our terminal."""
    env = {**os.environ, "PAWL": str(bench.pawl), "PEERS_SECS": str(max(1, round(bench.seconds)))}
    try:
        done = subprocess.run(["./run.sh", name], cwd=bench.sizes.peers, env=env, timeout=TIMEOUT_S,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except (subprocess.TimeoutExpired, OSError) as failure:
        raise BenchError(f"{bench.sizes.peers}/run.sh {name}: {failure}") from failure
    if done.returncode != 0 or " failed" in done.stdout:
        raise BenchError(f"{bench.sizes.peers}/run.sh {name} failed; was `./run.sh setup` run there?\n{done.stdout[-2000:]}")


def measure(bench, folder):
    if bench.sizes.peers is None:
        raise BenchError("the peers need --peers FOLDER (make bench PEERS=FOLDER)")
    rows = []
    for name in WANTED:
        bench.results.say(f"{name} …")
        run_harness(bench, name)
    for path in sorted((bench.sizes.peers / "results").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            one = json.loads(line)
            if "peer" in one:
                bench.results.measured(f"{one['peer']}: {one['workload']}, {one.get('conc', '-')} connections", one,
                                       command=f"PAWL={bench.pawl.name} ./run.sh {path.stem}")
                rows.append(one)
    return {"rows": rows}


def figure_of(rows, peer, workload, connections, figure):
    found = [one[figure] for one in rows
             if (one["peer"], one["workload"], one.get("conc")) == (peer, workload, connections) and figure in one]
    return statistics.median(found) if found else None


def summarize(rounds):
    rows = rounds[0]["rows"]
    table = []
    for what, workload, connections, figure, peer, wanted in TARGETS:
        ours, theirs = (figure_of(rows, name, workload, connections, figure) for name in ("pawl", peer))
        if not ours or not theirs:
            raise BenchError(f"the harness has no {workload} at {on(connections)} for pawl and {peer}")
        unit, share = ("/s" if figure == "rate" else "us"), ours / theirs
        target, met = (f">= {wanted:g} x", share >= wanted) if wanted > 1 else (f"<= 1/{1 / wanted:g} x", share <= wanted)
        table += [row(f"{what}: {peer}", theirs, unit), row(f"{what}: pawl", ours, unit, share, f"{target} {peer}", met)]
    return table
