"""The results of a run: lines of JSON in a file, progress and a table on the terminal.

A line of the file has a `kind`:
  run      first: the machine, the commit, the command
  measure  one measurement: its part and round, what it is, the command of the program, its figures
  figure   last, one for each row of the table: value and unit, ratio, target, whether it is met, and whether the figure
           is steady: hardly depends on what else the machine does
"""
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def git(*words):
    done = subprocess.run(["git", "-C", HERE, *words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def first_match(path, pattern):
    try:
        found = re.search(pattern, pathlib.Path(path).read_text(), re.M)
    except OSError:
        found = None
    return found[1].strip() if found else "unknown"


def machine():
    """What a reader needs to know to compare."""
    changed = "+" if git("status", "--porcelain", "--untracked-files=no") else ""
    return {"cores": os.cpu_count(),
            "cpu": first_match("/proc/cpuinfo", r"^model name\s*:\s*(.+)$"),
            "memory_gib": round(int(first_match("/proc/meminfo", r"^MemTotal:\s+(\d+)")) / 2**20, 1),
            "kernel": platform.release(), "system": first_match("/etc/os-release", r'^PRETTY_NAME="(.+)"'),
            "load_average": os.getloadavg()[0],
            "commit": (git("rev-parse", "--short=10", "HEAD") or "unknown") + changed,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")}


class Results:
    def __init__(self, path, rounds, told=sys.stderr):
        self.path, self.rounds, self.told = path, rounds, told
        self.file = open(path, "w", encoding="utf-8")
        self.begun = time.monotonic()
        self.part, self.round = None, 0

    def close(self):
        self.file.close()

    def line(self, kind, **members):
        self.file.write(json.dumps({"kind": kind, **members}) + "\n")
        self.file.flush()

    def header(self, **members):
        self.line("run", **machine(), **members)

    def begin(self, part, number):
        self.part, self.round = part, number

    def say(self, text):
        where = f"{self.part} {self.round}/{self.rounds}" if self.part else "bench"
        print(f"[{time.monotonic() - self.begun:5.0f} s  {where}] {text}", file=self.told, flush=True)

    def measured(self, what, result, **members):
        self.line("measure", part=self.part, round=self.round, what=what, **members, **result)
        self.say(f"{what}: {shown(result)}")

    def figures(self, rows):
        for row in rows:
            self.line("figure", **row)


def shown(result):
    """The figures of a measurement, for the line of progress."""
    rate = result.get("rate", result.get("per_s", result.get("tx_per_s")))
    parts = [f"{rate:,.0f}/s"] if rate is not None else []
    parts += [f"{name.removesuffix('_us').replace('p999', 'p99.9')} {duration(result[name])}"
              for name in ("p50_us", "p99_us", "p999_us") if name in result]
    parts += [f"{name} {round(value, 1):,}" for name, value in result.items()
              if rate is None and isinstance(value, (int, float)) and not name.endswith("_us")]
    return "  ".join(parts)


def duration(us):
    if us < 1000:
        return f"{us:.1f} us"
    return f"{us / 1000:.2f} ms" if us < 1e6 else f"{us / 1e6:.2f} s"


def row(figure, value, unit, share=None, target=None, met=None, steady=False):
    """One row of the table. `share`: the ratio that the target is about, if it is about one. `steady`: the figure hardly
    depends on what else the machine does."""
    return {"figure": figure, "value": round(value, 2), "unit": unit,
            "ratio": None if share is None else round(share, 3), "target": target, "met": met,
            "steady": steady}


def value_of(row_):
    """A row's value with its unit, as people read it."""
    if row_["unit"] == "us":
        return duration(row_["value"])
    digits = 1 if row_["unit"] in ("MiB", "ms") else 0
    return f"{row_['value']:,.{digits}f}{'' if row_['unit'] == '/s' else ' '}{row_['unit']}".rstrip()


def ratio_of(row_):
    if row_["ratio"] is None:
        return ""
    return f"{row_['ratio']:.{2 if row_['ratio'] >= 0.1 else 3}f}"


def print_table(rows):
    print(f"{'figure':<54}{'measured':>14}{'ratio':>8}  {'target':<32}result")
    part = None
    for one in rows:
        if one["part"] != part:
            part = one["part"]
            print(f"-- {part}")
        result = {None: "", True: "met", False: "MISSED"}[one["met"]]
        print(f"{one['figure']:<54}{value_of(one):>14}{ratio_of(one):>8}  {one['target'] or '':<32}{result}".rstrip())
