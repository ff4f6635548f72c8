#!/usr/bin/env python3
"""Draws where the server spends its time: a flame graph of starts at 64 connections, from samples of perf.

    python3 bench/flame.py --pawl build/pawl --tools build/bench --out docs/performance/flame.svg [--seconds 3]
    python3 bench/flame.py --samples FILE --out flame.svg          of what `perf script` has printed

Also prints whose code has the time. Needs perf (Debian: linux-perf).
"""
import argparse
import collections
import functools
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import svg
from harness import OK, BenchError, pawl_server, prepare, run_load, start, wait_ready

SAMPLES_PER_S = 499  # no multiple of a timer's
STACK_BYTES = 16384  # of each sample, to unwind
WARM_S = 0.5
COLOURS = {"pawl": "#f2a65a", "SQLite": "#7fb3d9", "kernel": "#c9c9c9", "other libraries": "#a8d0a0", "thread": "#e6d9c0"}


@functools.lru_cache(maxsize=None)
def sqlite_functions():
    """SQLite is linked into the server, so its functions are known by name."""
    archive = subprocess.run(["cc", "-print-file-name=libsqlite3.a"], capture_output=True, text=True).stdout.strip()
    names = subprocess.run(["nm", archive], capture_output=True, text=True).stdout.splitlines()
    return frozenset(line.split()[-1] for line in names if re.search(r" [tT] ", line))


def origin(function, library):
    """Whose code it is."""
    if "kernel" in library or library in ("[vdso]", "[unknown]"):
        return "kernel"
    if function.startswith("sqlite3") or function in sqlite_functions():
        return "SQLite"
    return "pawl" if pathlib.PurePath(library).name.startswith("pawl") else "other libraries"


def read_samples(text):
    """{stack: count}; a stack is frames from the outermost, the thread first; a frame is (name, origin)."""
    stacks = collections.Counter()
    for block in text.split("\n\n"):
        lines = block.strip("\n").splitlines()
        frames = [re.match(r"\s+[0-9a-f]+ (.+) \((.+)\)$", line) for line in lines[1:]]
        frames = [(match[1], origin(match[1], match[2])) for match in frames if match and match[1] != "[unknown]"]
        if lines and frames:
            stacks[((lines[0].split()[0], "thread"), *reversed(frames))] += 1
    return stacks


def record(args, folder):
    """Samples the server while 64 connections send starts."""
    if not shutil.which("perf"):
        raise BenchError("perf is not installed (Debian: linux-perf)")
    data = folder / "perf.data"
    with pawl_server(args, folder) as server:
        client = server.client()
        wait_ready(client)
        prepare(client)
        client.close()
        perf = subprocess.Popen(["perf", "record", "-o", data, "-e", "cpu-clock", "-F", str(SAMPLES_PER_S), "--call-graph",
                                 f"dwarf,{STACK_BYTES}", "-p", str(server.process.pid)], stderr=subprocess.PIPE, text=True)
        options = ["--warm", WARM_S, "--seconds", args.seconds, *start()]
        run_load(args.tools, server, "starts", WARM_S + args.seconds, options, OK)
        perf.send_signal(signal.SIGINT)
        _, said = perf.communicate(timeout=60)
    if not data.exists():
        raise BenchError(f"perf record: {said.strip()}")
    shown = subprocess.run(["perf", "script", "--no-inline", "-i", data, "-F", "comm,ip,sym,dso"], capture_output=True, text=True)
    if shown.returncode != 0:
        raise BenchError(f"perf script: {shown.stderr.strip()}")
    return shown.stdout


def shares(stacks, pick):
    total = sum(stacks.values())
    found = collections.Counter()
    for stack, count in stacks.items():
        found[pick(stack)] += count
    return "  ".join(f"{name} {count / total:.0%}" for name, count in found.most_common(8))


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pawl", type=pathlib.Path, help="the server's binary")
    parser.add_argument("--tools", type=pathlib.Path, help="where load is")
    parser.add_argument("--samples", type=pathlib.Path, help="draw these instead of new ones")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    if not args.samples and not (args.pawl and args.tools):
        parser.error("--pawl and --tools, or --samples")
    return args


def main():
    args = parse_args()
    try:
        if args.samples:
            text = args.samples.read_text()
        else:
            with tempfile.TemporaryDirectory(prefix="pawl-flame-", dir=args.tools) as folder:
                text = record(args, pathlib.Path(folder))
        stacks = read_samples(text)
        if not stacks:
            raise BenchError("there are no samples")
    except (BenchError, OSError) as failure:
        print(f"flame: {failure}", file=sys.stderr)
        return 1
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(svg.flame("CPU time of the server: starts, 64 connections", stacks, lambda frame: COLOURS[frame[1]],
                                  {name: colour for name, colour in COLOURS.items() if name != "thread"}))
    print(f"{sum(stacks.values()):,} samples")
    print(f"by code: {shares(stacks, lambda stack: stack[-1][1])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
