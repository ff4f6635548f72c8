#!/usr/bin/env python3
"""Measures pawl on this machine against the machine's own limits, itself and, if they are there, its peers.

    python3 bench/run.py --pawl build/pawl --tools build/bench [--seconds 3] [--rounds 3] [--only PART,PART…]
                         [--growth 0,100000,300000] [--signals 100000] [--peers FOLDER] [--out FILE] [--quick]

Absolute rates differ between machines and between minutes, so the targets are ratios: each round measures pawl between
two readings of its yardstick, and a figure is the median of its rounds. docs/performance.md explains the method.

Prints a table, and progress on stderr; writes every measurement as a line of JSON to --out. bench/report.py makes tables
and plots of that file. Exit 1: something failed, or an answer was not what it must be. A missed target counts only with
--strict.
"""
import argparse
import dataclasses
import http.client
import os
import pathlib
import shlex
import signal
import sys
import tempfile

from harness import Bench, BenchError
from parts import (admission, approvals, cluster, cost, entities, gate, growth, limits, mixed, payloads, peers, peers_postgres, signals, starts, tenants,
                   workers)
from results import Results, print_table

# Each measures a round on fresh servers, and makes the table's rows of all rounds.
PARTS = {"limits": limits, "starts": starts, "payloads": payloads, "workers": workers, "admission": admission, "gate": gate,
         "tenants": tenants, "signals": signals, "entities": entities, "approvals": approvals, "mixed": mixed, "cost": cost,
         "growth": growth, "cluster": cluster, "peers": peers, "peers_postgres": peers_postgres}
NEED_PEERS = ("peers", "peers_postgres")
PROGRAMS = ("load", "limits", "bare_http", "bare_own", "sqlite_commit")


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How much of everything."""
    queue_depths: tuple = (10_000, 100_000)
    joining: int = 2_000
    backlog: int = 100_000
    probes: int = 20
    bursts: int = 5
    tenants: int = 10_000
    approvals: int = 5_000
    run_signals: int = 5_000
    entity_ages: tuple = (1_000, 100_000, 1_000_000)
    signals: int = 100_000
    growth: tuple = (0, 100_000, 300_000)
    instructions: int = 2_000
    shards: tuple = (1, 16)
    peers: pathlib.Path | None = None
    window: int = 0  # requests of a window; 0: as many as its time lets
    rate_max: int = 1_000_000  # of an open loop


QUICK = Sizes(queue_depths=(20,), joining=20, backlog=20, probes=2, bursts=1, tenants=20, approvals=20, run_signals=20,
              entity_ages=(10, 50), signals=50, growth=(0, 200), instructions=0, shards=(1,), window=100, rate_max=1_000)
QUICK_SECONDS = 0.05


def number_list(text):
    numbers = tuple(int(part.replace("_", "")) for part in text.split(","))
    if list(numbers) != sorted(set(numbers)) or numbers[0] < 0 or numbers[-1] > 100_000_000:
        raise argparse.ArgumentTypeError("numbers of runs in rising order, up to 100,000,000")
    return numbers if numbers[0] == 0 else (0, *numbers)


def part_list(text):
    names = text.split(",")
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown part {unknown[0]!r}; there are {', '.join(PARTS)}")
    return names


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pawl", type=pathlib.Path, required=True, help="the server's binary")
    parser.add_argument("--tools", type=pathlib.Path, required=True, help="where load, limits, bare_http, … are")
    parser.add_argument("--seconds", type=float, default=3, help="length of one window, 0.1 to 600")
    parser.add_argument("--rounds", type=int, default=3, help="1 to 100")
    parser.add_argument("--only", type=part_list, default=None, metavar="PART,PART…", help=", ".join(PARTS))
    parser.add_argument("--growth", type=number_list, help="at how many finished runs to measure, up to 100,000,000")
    parser.add_argument("--signals", type=int, help="how many one entity gets; past a million it is measured at each")
    parser.add_argument("--peers", type=pathlib.Path, help="a folder with a harness for peers (docs/performance.md)")
    parser.add_argument("--dir", type=pathlib.Path, help="where the temporary stores go; by default the tools' folder, "
                        "because /tmp is often memory, where a commit costs nothing")
    parser.add_argument("--out", type=pathlib.Path, help="results as lines of JSON; by default results.jsonl beside the tools")
    parser.add_argument("--quick", action="store_true", help="one round of everything with tiny numbers: shows that the "
                        "benchmark works, and nothing about pawl")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    args = parser.parse_args()
    if not 0.1 <= args.seconds <= 600 or not 1 <= args.rounds <= 100:
        parser.error("--seconds is 0.1 to 600, --rounds 1 to 100")
    if args.signals is not None and not 100_000 <= args.signals <= 1_000_000_000:
        parser.error("--signals is 100000 to 1000000000")
    args.pawl, args.tools = args.pawl.resolve(), args.tools.resolve()
    for program in [args.pawl, *(args.tools / name for name in PROGRAMS)]:
        if not os.access(program, os.X_OK):
            parser.error(f"{program} is not a program; build it first")
    if args.peers and not (args.peers / "run.sh").exists():
        parser.error(f"{args.peers} has no run.sh: see docs/performance.md")
    return args


def sizes_of(args):
    given = {"growth": args.growth, "signals": args.signals, "peers": args.peers and args.peers.resolve()}
    return dataclasses.replace(QUICK if args.quick else Sizes(),
                               **{name: value for name, value in given.items() if value is not None})


def run_part(bench, name, number):
    bench.results.begin(name, number)
    with tempfile.TemporaryDirectory(prefix="pawl-bench-", dir=bench.stores) as folder:
        return PARTS[name].measure(bench, pathlib.Path(folder))


def run(bench, names, rounds, found):
    """Adds the figures of each round to found[part]; returns the exit code."""
    try:
        for number in range(1, rounds + 1):
            for name in names:
                if number == 1 or not getattr(PARTS[name], "ONCE", False):
                    found[name].append(run_part(bench, name, number))
    except (BenchError, OSError, http.client.HTTPException) as failure:
        print(f"bench: {bench.results.part}: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: stopped", file=sys.stderr)
        return 130
    return 0


def show(results, found, rounds, seconds):
    """What was measured, also if not everything was. Returns the rows."""
    rows = [{"part": name, **row} for name, figures in found.items() if figures for row in PARTS[name].summarize(figures)]
    results.figures(rows)
    results.close()
    if rows:
        print(f"{os.cpu_count()} cores, shared by client and server; "
              f"median of {rounds} round{'s' * (rounds > 1)}, windows of {seconds:g} s")
        print_table(rows)
    print(f"results: {results.path}")
    return rows


def main():
    args = parse_args()
    # An exception, so that the children are stopped on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    names = args.only or [name for name in PARTS if name not in NEED_PEERS or args.peers]
    rounds = 1 if args.quick else args.rounds
    seconds = QUICK_SECONDS if args.quick else args.seconds
    results = Results(args.out or args.tools / "results.jsonl", rounds)
    bench = Bench(args.pawl, args.tools, args.dir or args.tools, seconds, 0 if args.quick else 1.0, sizes_of(args), results)
    results.header(command=shlex.join(["bench/run.py", *sys.argv[1:]]), seconds=seconds, rounds=rounds, quick=args.quick)
    found = {name: [] for name in names}
    code = run(bench, names, rounds, found)
    rows = show(results, found, rounds, seconds)
    return 1 if code == 0 and args.strict and any(row["met"] is False for row in rows) else code


if __name__ == "__main__":
    sys.exit(main())
