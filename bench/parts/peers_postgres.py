"""pawl on PostgreSQL beside three other systems on PostgreSQL, each driven by the peers' own harness (parts/peers.py): starts at 64
connections. Every system has a PostgreSQL server of its own with the same settings for durability; only one runs at a time."""
import json

import postgres
from harness import CONNECTIONS, BenchError, on
from parts.peers import check_answers, figure_of, name_of, run_harness, spec
from results import row

ONCE = True  # one sitting
PEERS = ("dbos", "pg-boss", "graphile-worker")
OURS = "pawl-postgres"
WORKLOAD = "W1-start"
SHARDS = 16  # as many as pawl makes unless it is told


def describe(bench, cluster):
    store = postgres.make_store(bench, cluster, "peers", SHARDS)
    ours = {**spec(), "peer": OURS,
            "cmd": ["$PAWL", "serve", "--dev", "--listen", "127.0.0.1:{port}", "--node", "one", "--store", store]}
    return {name: value for name, value in ours.items() if name not in ("worker", "e2e", "hot", "burst", "before_burst")}


def lines_of(bench, name):
    path = bench.sizes.peers / "results" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def measure(bench, folder):
    if bench.sizes.peers is None:
        raise BenchError("the peers need --peers FOLDER (make bench PEERS=FOLDER)")
    with postgres.server(folder) as cluster:
        described = folder / "pawl.json"
        described.write_text(json.dumps(describe(bench, cluster)))
        bench.results.say(f"{OURS} …")
        run_harness(bench, "spec", str(described), only="W1")
    for name in PEERS:
        bench.results.say(f"{name} …")
        run_harness(bench, name, only="W1")
    rows = []
    for name in (OURS, *PEERS):
        for one in lines_of(bench, name):
            check_answers(one, ours=OURS)
            bench.results.measured(name_of(one), one, command=f"PAWL={bench.pawl.name} ./run.sh {name}")
            rows.append(one)
    return {"table": compare(rows)}


def compare(rows):
    table = []
    ours = figure_of(rows, OURS, WORKLOAD, CONNECTIONS, "rate")
    for peer in PEERS:
        theirs = figure_of(rows, peer, WORKLOAD, CONNECTIONS, "rate")
        if not ours or not theirs:
            raise BenchError(f"the harness has no {WORKLOAD} at {on(CONNECTIONS)} for {OURS} and {peer}")
        what = f"W1 start, {on(CONNECTIONS)}"
        table += [row(f"{what}: {peer}", theirs, "/s"),
                  row(f"{what}: pawl on PostgreSQL", ours, "/s", ours / theirs, f"> 1 x {peer}", ours > theirs)]
    return table


def summarize(rounds):
    return rounds[0]["table"]
