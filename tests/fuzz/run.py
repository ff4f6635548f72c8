#!/usr/bin/env python3
"""Runs every fuzz program: first over its corpus, then on new inputs for a while. One line each, with the coverage and
how it compares with the last run; a finding fails, with the path of its input.

The corpus in tests/fuzz/corpus is part of the repository. What a run learns goes to BUILD/corpus, which grows from run
to run; --merge takes from there into the repository's corpus the smallest inputs that add coverage."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INPUT_MAX = 4096  # bytes: longer inputs make each try slower and find little more
INPUT_MAX_OF = {"fuzz_request": 1024, "fuzz_rows": 256}  # a byte is a decision there
KEPT_FILES_MAX, KEPT_BYTES_MAX = 120, 300_000  # of one program, in the repository: they are replayed in every test


def corpus_of(name):
    return HERE / "corpus" / name


def run_program(program, build, options, folders):
    """Its exit code and what it printed."""
    name = program.name
    findings = build / "findings"
    findings.mkdir(parents=True, exist_ok=True)
    command = [str(program), f"-max_len={INPUT_MAX_OF.get(name, INPUT_MAX)}", "-timeout=30", "-rss_limit_mb=2048",
               "-print_final_stats=1", f"-artifact_prefix={findings}/{name}-", *options, *map(str, folders)]
    words = HERE / f"{name}.dict"
    if words.exists():
        command.insert(1, f"-dict={words}")
    if name in INPUT_MAX_OF:
        command.insert(1, "-len_control=0")
    env = {**os.environ, "UBSAN_OPTIONS": "print_stacktrace=1"}
    run = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, errors="replace")
    return run.returncode, run.stdout


def remove_left_stores():
    """libFuzzer ends a program without its atexit(): removes the stores of those that have ended."""
    for folder in (*pathlib.Path("/dev/shm").glob("pawl-fuzz-*"), *pathlib.Path("/tmp").glob("pawl-fuzz-*")):
        lock = folder / "p.db.lock"  # has the process id
        pid = lock.read_text().strip() if lock.exists() else ""
        if pid and not pathlib.Path("/proc", pid).exists():
            shutil.rmtree(folder, ignore_errors=True)


def finding(name, build, code, out):
    log = build / "findings" / f"{name}.log"
    log.write_text(out)
    kept = re.findall(r"Test unit written to (\S+)", out)
    why = re.search(r"Assertion `.*' failed|runtime error: .*|ERROR: .*", out)
    return (f"FAIL {name:<18} {why[0] if why else f'exit code {code}'}\n"
            f"     input: {kept[-1] if kept else 'none was written'}\n     log:   {log}")


def coverage_of(out):
    """Edges and features at the end, and how many inputs were tried."""
    tries = re.search(r"stat::number_of_executed_units:\s*(\d+)", out)
    seen = re.findall(r"cov: (\d+) ft: (\d+)", out)
    edges, features = map(int, seen[-1]) if seen else (0, 0)
    return {"inputs": int(tries[1]) if tries else 0, "edges": edges, "features": features}


def compared(now, before):
    if not before:
        return "first run"
    gained = now["edges"] - before["edges"]
    return f"{gained:+d} since the last run" if gained else "as in the last run"


def kept_coverage(build):
    record = build / "coverage.json"
    return json.loads(record.read_text()) if record.exists() else {}


def keep_coverage(build, news):
    coverage = {**kept_coverage(build), **news}  # another run may have added to it
    record = build / "coverage.json"
    record.write_text(json.dumps(coverage, indent=1, sort_keys=True) + "\n")
    print(f"{sum(c['edges'] for c in coverage.values())} edges covered in all; the figures are in {record}")


def fuzz(program, build, seconds, before):
    """(whether it found nothing, the line to print, the coverage)."""
    name = program.name
    learned = build / "corpus" / name
    learned.mkdir(parents=True, exist_ok=True)
    # A program reads its corpora before it tries anything new, so -runs=0 is their replay.
    limit = f"-max_total_time={seconds}" if seconds > 0 else "-runs=0"
    code, out = run_program(program, build, [limit], [learned, corpus_of(name)])
    if code != 0:
        return False, finding(name, build, code, out), None
    now = coverage_of(out)
    now["executed_in_all"] = now["inputs"] + (before or {}).get("executed_in_all", 0)
    return True, (f"ok   {name:<18} {now['inputs']:>9} inputs, {now['edges']:>5} edges, {now['features']:>6} features"
                  f" covered; {compared(now, before)}"), now


def fits(files):
    return len(files) <= KEPT_FILES_MAX and sum(f.stat().st_size for f in files) <= KEPT_BYTES_MAX


def thinned(files):
    """Without about an eighth of them, evenly over their sizes."""
    return [f for i, f in enumerate(files) if i % 8 != 7] if len(files) >= 8 else files[:-1]


def merge(program, build):
    """Makes the repository's corpus the least that covers what all known inputs cover; seeds with a name stay."""
    name = program.name
    kept = corpus_of(name)
    with tempfile.TemporaryDirectory() as folder:
        least = pathlib.Path(folder)
        for seed in kept.iterdir() if kept.exists() else ():
            if not re.fullmatch(r"[0-9a-f]{40}", seed.name):
                shutil.copy(seed, least)
        code, out = run_program(program, build, ["-merge=1"], [least, kept, build / "corpus" / name])
        if code != 0:
            return False, finding(name, build, code, out)
        named = [f for f in least.iterdir() if not re.fullmatch(r"[0-9a-f]{40}", f.name)]
        found = sorted((f for f in least.iterdir() if f not in named), key=lambda f: f.stat().st_size)
        while found and not fits(named + found):
            found = thinned(found)
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        for f in named + found:
            shutil.copy(f, kept)
        return True, f"ok   {name:<18} keeps {len(named) + len(found)} inputs, {len(named)} of them with a name"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=int, default=60, help="for each program; 0: its corpus only")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--merge", action="store_true", help="do not fuzz: take what was learned into the repository's corpus")
    parser.add_argument("programs", nargs="*", help="all, unless some are named")
    args = parser.parse_args()
    build = args.build.resolve()
    names = args.programs or sorted(f.stem for f in HERE.glob("fuzz_*.c"))
    coverage = kept_coverage(build)
    news, good = {}, True

    def job(name):
        program = build / "tests/fuzz" / name
        if args.merge:
            return name, *merge(program, build), None
        return name, *fuzz(program, build, args.seconds, coverage.get(name))

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for run in concurrent.futures.as_completed([pool.submit(job, name) for name in names]):
            name, ok, line, now = run.result()
            good = good and ok
            if now:
                news[name] = now
            print(line, flush=True)
    remove_left_stores()
    if news:
        keep_coverage(build, news)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
