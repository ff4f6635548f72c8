#!/usr/bin/env python3
"""Runs simulator, chaos and fuzzing for a given time, with seeds that follow from the clock. Ends with `N passed, N failed`."""
import argparse
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PYTHON = "/usr/bin/python3"
# Of the time: most of it where a second finds most.
SHARES = {"simulator": 0.6, "chaos": 0.25, "fuzz": 0.15}


def commands(seconds, seed, jobs):
    share = {name: max(int(seconds * part), 1) for name, part in SHARES.items()}
    programs = len(list((ROOT / "tests/fuzz").glob("fuzz_*.c")))
    each = max(share["fuzz"] * jobs // programs, 1)
    return [
        ("simulator", ["build/sim", "--seeds", f"{seed}..{seed + 10**9}", "--seconds", str(share["simulator"]), "--jobs", str(jobs), "--cover"], {}),
        ("chaos", [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/e2e/chaos"],
         {"PAWL_BIN": str(ROOT / "build/pawl"), "PAWL_CHAOS_SECONDS": str(share["chaos"]), "PAWL_CHAOS_SEED": str(seed)}),
        ("fuzz", ["make", "fuzz", f"SECONDS={each}"], {}),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()) * 1000, help="the first seed; by default from the clock")
    args = parser.parse_args()
    failed = 0
    todo = commands(args.seconds, args.seed, os.cpu_count() or 1)
    for name, command, env in todo:
        print(f"--- {name}: {' '.join(command)}", flush=True)
        failed += subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, check=False).returncode != 0
    print(f"{len(todo) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
