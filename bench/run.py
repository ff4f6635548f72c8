#!/usr/bin/env python3
"""Measures pawl on this machine against a bare HTTP answer, a bare SQLite commit and itself.

    python3 bench/run.py --pawl build/pawl --tools build/bench [--seconds 5] [--rounds 3] [--json]
                         [--only throughput|admission|entities] [--signals 100000]

Absolute rates differ between machines and between minutes, so the targets are ratios: each round
measures pawl between two readings of its yardstick, and a figure is the median of its rounds.
Exit 1: something failed, or an answer was not what it must be. A missed target counts only with
--strict.
"""
import argparse
import http.client
import json
import os
import pathlib
import signal
import sys
import tempfile

import admission
import entities
import throughput
from harness import BenchError

# Each measures a round on fresh servers, and makes the table's rows of all rounds.
PARTS = {"throughput": throughput, "admission": admission, "entities": entities}


def print_table(args, rows):
    print(f"{os.cpu_count()} cores, shared by client and server; "
          f"median of {args.rounds} rounds of {args.seconds:g} s")
    print(f"{'figure':<48}{'measured':>14}{'ratio':>9}  {'target':<16}result")
    for row in rows:
        digits = 0 if row["unit"] == "/s" else 1
        measured = f"{row['value']:,.{digits}f} {row['unit']}"
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
        result = {None: "", True: "met", False: "MISSED"}[row["met"]]
        print(f"{row['figure']:<48}{measured:>14}{ratio:>9}  {row['target'] or '':<16}{result}"
              .rstrip())


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pawl", type=pathlib.Path, required=True, help="the server's binary")
    parser.add_argument("--tools", type=pathlib.Path, required=True,
                        help="where load, bare_http and sqlite_commit are")
    parser.add_argument("--seconds", type=float, default=5, help="length of one window")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=PARTS, help="this part alone")
    parser.add_argument("--signals", type=int, default=100_000,
                        help="how many one entity gets; past a million it is measured at each")
    parser.add_argument("--dir", type=pathlib.Path,
                        help="where the temporary stores go; by default the tools' folder, because "
                             "/tmp is often memory, where a commit costs nothing")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    args = parser.parse_args()
    if not 0.1 <= args.seconds <= 600 or not 1 <= args.rounds <= 100:
        parser.error("--seconds is 0.1 to 600, --rounds 1 to 100")
    if not 100_000 <= args.signals <= 1_000_000_000:
        parser.error("--signals is 100000 to 1000000000")
    args.pawl, args.tools = args.pawl.resolve(), args.tools.resolve()
    for program in [args.pawl, *(args.tools / t for t in ("load", "bare_http", "sqlite_commit"))]:
        if not os.access(program, os.X_OK):
            parser.error(f"{program} is not a program; build it first")
    return args


def main():
    args = parse_args()
    # An exception, so that the children are stopped on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parts = [PARTS[args.only]] if args.only else list(PARTS.values())
    rounds = []
    try:
        for number in range(args.rounds):
            print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
            figures = {}
            for part in parts:
                with tempfile.TemporaryDirectory(prefix="pawl-bench-",
                                                 dir=args.dir or args.tools) as folder:
                    figures |= part.measure(args, pathlib.Path(folder))
            rounds.append(figures)
    except (BenchError, OSError, http.client.HTTPException) as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1
    rows = [row for part in parts for row in part.summarize(rounds)]
    if args.json:
        print(json.dumps({"cores": os.cpu_count(), "seconds": args.seconds, "figures": rows,
                          "rounds": rounds}))
    else:
        print_table(args, rows)
    return 1 if args.strict and any(row["met"] is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
