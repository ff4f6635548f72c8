#!/usr/bin/env python3
"""Runs every fuzz program for a while, one line each; a finding fails, with the path of its input."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
INPUT_MAX = 4096  # bytes: longer inputs make each try slower and find little more


def fuzz(program, build, seconds):
    """(whether it found nothing, the line to print)."""
    name = program.name
    learned, findings = build / "corpus" / name, build / "findings"
    for folder in (learned, findings):
        folder.mkdir(parents=True, exist_ok=True)
    command = [str(program), f"-max_total_time={seconds}", f"-max_len={INPUT_MAX}", "-timeout=30", "-rss_limit_mb=2048",
               "-print_final_stats=1", f"-artifact_prefix={findings}/{name}-", str(learned), str(HERE / "corpus" / name)]
    words = HERE / f"{name}.dict"
    if words.exists():
        command.insert(1, f"-dict={words}")
    env = {**os.environ, "UBSAN_OPTIONS": "print_stacktrace=1"}
    run = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, errors="replace")
    if run.returncode == 0:
        tries = re.search(r"stat::number_of_executed_units:\s*(\d+)", run.stdout)
        covered = re.findall(r"cov: (\d+)", run.stdout)
        return True, f"ok   {name:<16} {tries[1] if tries else '?':>9} inputs, {covered[-1] if covered else '?':>5} edges covered"
    log = findings / f"{name}.log"
    log.write_text(run.stdout)
    kept = re.findall(r"Test unit written to (\S+)", run.stdout)
    why = re.search(r"Assertion `.*' failed|runtime error: .*|ERROR: .*", run.stdout)
    return False, (f"FAIL {name:<16} {why[0] if why else f'exit code {run.returncode}'}\n"
                   f"     input: {kept[-1] if kept else 'none was written'}\n     log:   {log}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=int, default=60, help="for each program")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("programs", nargs="*", help="all, unless some are named")
    args = parser.parse_args()
    build = args.build.resolve()
    names = args.programs or sorted(f.stem for f in HERE.glob("fuzz_*.c"))
    good = True
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = [pool.submit(fuzz, build / "tests/fuzz" / name, build, args.seconds) for name in names]
        for run in concurrent.futures.as_completed(runs):
            ok, line = run.result()
            good = good and ok
            print(line, flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
