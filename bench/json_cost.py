#!/usr/bin/env python3
"""Counts the instructions that reading a request's JSON takes, with src/base/json and with jansson as pawl 0.1.0 used it.

    python3 bench/json_cost.py --tools build/bench

Each figure is the difference of two runs of bench/json_cost.c under callgrind, so that starting the program does not
count. Both must come to the same fingerprint.
"""
import argparse
import pathlib
import re
import subprocess
import sys

SIZES = {45: 400, 2_000: 40, 64_000: 4}  # bytes, and how often


def instructions(program, how, size, times):
    """(instructions of the whole run, what it printed)."""
    run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, how, str(size),
                          str(times)], capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", run.stderr)[1]), run.stdout


def cost(program, how, size, times):
    once, _ = instructions(program, how, size, times)
    twice, said = instructions(program, how, size, 2 * times)
    return (twice - once) // times, said


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", type=pathlib.Path, required=True, help="where json_cost is")
    program = parser.parse_args().tools / "json_cost"
    good = True
    print(f"{'text':<34}{'jansson':>12}{'base/json':>12}{'ratio':>8}")
    for size, times in SIZES.items():
        before, said_before = cost(program, "jansson", size, times)
        now, said = cost(program, "base", size, times)
        good = good and said == said_before
        print(f"{said.split(',')[0]:<34}{before:>12,}{now:>12,}{before / now:>8.1f}")
    if not good:
        print("the fingerprints differ", file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
