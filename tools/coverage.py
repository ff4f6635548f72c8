#!/usr/bin/env python3
"""Measures which lines and branches of src the tests take, and lists the branches that none takes.

A build of its own (clang, source-based coverage) runs the unit tests on each store and some seeds of the simulator. A branch
is one outcome of one condition: `if (a && b)` has four. What counts and what does not is written in docs/testing.md."""
import argparse
import bisect
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Children of the simulator and of tests end with exit(), which writes down what they have counted.
FLAGS = "-fprofile-instr-generate -fcoverage-mapping -D_exit=exit"
# With the path of its source in its name a static function is not taken for its namesake in another folder.
COMPILE = "<CMAKE_C_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -Xclang -main-file-name -Xclang <SOURCE> -o <OBJECT> -c <SOURCE>"
HELD_TO = ["src/domain", "src/core"]  # --fail-under
EXPANSION = 1  # kind of a region of llvm-cov: the use of a macro
CONSTANT = re.compile(r"true|false|\d+")
LABEL = re.compile(r"\b(?:case [^:;]+|default):")
LABELS = re.compile(rf"{LABEL.pattern}(?:(?:\s|/\*.*?\*/)*{LABEL.pattern})*", re.DOTALL)


def run(command, quiet=False, **options):
    done = subprocess.run([str(word) for word in command], cwd=ROOT, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", **options)
    if done.returncode != 0 and not quiet:
        print("\n".join(done.stdout.splitlines()[-60:]))
        sys.exit(f"{command[0]} failed with {done.returncode}")
    return done


# --- measuring ---


def build(folder, options):
    run(["cmake", "-G", "Ninja", "-B", folder, "-DCMAKE_C_COMPILER=clang-14", "-DCMAKE_BUILD_TYPE=Debug",
         f"-DCMAKE_C_FLAGS={FLAGS}", f"-DCMAKE_C_COMPILE_OBJECT={COMPILE}", *options])
    run(["ninja", "-C", folder, "--quiet"])


def measure(folder, only, seeds):
    """Runs the tests and merges their profiles; False when a test has failed."""
    profiles = folder / "profiles"
    profiles.mkdir(exist_ok=True)
    for old in profiles.glob("*.profraw"):
        old.unlink()
    # %m: one file for each program, into which its processes merge their counts.
    env = {**os.environ, "LLVM_PROFILE_FILE": f"{profiles}/%m.profraw", "PAWL_HISTORIES": "20"}
    runs = [run(["ctest", "--test-dir", folder, "-j", os.cpu_count(), "--no-tests=error", "-R", only], quiet=True, env=env)]
    sim = folder / "sim"
    if sim.is_file() and seeds:
        runs.append(run([sim, "--seeds", seeds, "--jobs", os.cpu_count()], quiet=True, env=env))
    for failed in (done for done in runs if done.returncode != 0):
        print("\n".join(failed.stdout.splitlines()[-20:]))
    run(["llvm-profdata-14", "merge", "-sparse", "-o", folder / "coverage.profdata", *sorted(profiles.glob("*.profraw"))])
    return all(done.returncode == 0 for done in runs)


def export(folder, merged):
    """What llvm-cov knows of the code of the server and its client, whichever program ran it."""
    done = subprocess.run(["llvm-cov-14", "export", "-format=text", "-instr-profile", merged, folder / "pawl"],
                          cwd=ROOT, stdout=subprocess.PIPE, check=True)
    data = json.loads(done.stdout.replace(f"{folder}/../src".encode(), f"{ROOT}/src".encode()))["data"][0]
    known = {entry["filename"] for entry in data["files"]}
    unknown = [str(path) for path in (ROOT / "src").rglob("*.c") if str(path) not in known and has_code(path)]
    if unknown:
        sys.exit(f"not in the program, and so not counted: {' '.join(unknown)}")
    return data


def has_code(path):
    """Is there a function, not only tables?"""
    return re.search(r"^\{$", path.read_text(), re.MULTILINE) is not None


# --- reading ---


class Source:
    """A file's text, and where its assertions are."""

    def __init__(self, path):
        self.text = path.read_text()
        self.lines = self.text.split("\n")
        self.offsets = [0]
        for line in self.lines:
            self.offsets.append(self.offsets[-1] + len(line) + 1)
        self.asserted = [(m.start(), self.end_of_call(m.end())) for m in re.finditer(r"\bassert\(", self.text)]
        self.first_label = {}  # {offset of a label: that of the first one before the same statement}
        for group in LABELS.finditer(self.text):
            for label in LABEL.finditer(self.text, group.start(), group.end()):
                self.first_label[label.start()] = group.start()

    def end_of_call(self, begin):
        depth, at = 1, begin
        while depth:
            depth += {"(": 1, ")": -1}.get(self.text[at], 0)
            at += 1
        return at

    def offset(self, line, column):
        return self.offsets[line - 1] + column - 1

    def is_asserted(self, line, column):
        at = self.offset(line, column)
        return any(begin <= at < end for begin, end in self.asserted)

    def is_no_value(self, line, column):
        """Is it a label for no value: of an enum's count, of an assertion that there is none, or the one that a switch
        over an enum does without?"""
        label = re.compile(rf"case [A-Z_]+_COUNT:|{LABELS.pattern}\s*assert\(!\"", re.DOTALL)
        before = self.lines[line - 1][:column - 1].rstrip()
        return label.match(self.text, self.offset(line, column)) is not None or before.endswith("switch (")

    def place_of(self, line, column, end_line, end_column):
        """(line, column, text) of a branch. Labels that stand together before one statement are one place: the first's."""
        at = self.offset(line, column)
        if at not in self.first_label:
            return line, column, self.excerpt(line, column, end_line, end_column)
        first = self.first_label[at]
        line = bisect.bisect_right(self.offsets, first)
        return line, first - self.offsets[line - 1] + 1, LABEL.match(self.text, first)[0]

    def excerpt(self, line, column, end_line, end_column):
        return " ".join(self.text[self.offset(line, column):self.offset(end_line, end_column)].split())


Branch = collections.namedtuple("Branch", "line column text outcome")


def place_of(function, branch):
    """(file, region) where a reader finds the branch: its own place, or for one inside a macro the use of that macro."""
    uses = {region[6]: region for region in function["regions"] if region[7] == EXPANSION}
    file, region = branch[6], branch
    while file in uses:
        region = uses[file]
        file = region[5]
    return function["filenames"][file], region


def branches_of(data, sources):
    """{file: {branch: how often it was taken}}; what does not count is left out."""
    found = collections.defaultdict(collections.Counter)
    for function in data["functions"]:
        for branch in function["branches"]:
            own_file = function["filenames"][branch[6]]
            file, region = place_of(function, branch)
            if file not in sources or own_file.startswith("/usr/include"):
                continue
            source = sources[file]
            place = source.place_of(*region[:4])
            if own_file in sources and CONSTANT.fullmatch(sources[own_file].excerpt(*branch[:4])):
                continue
            if source.is_asserted(*region[:2]) or source.is_no_value(*region[:2]):
                continue
            for outcome, count in (("true", branch[4]), ("false", branch[5])):
                inner = (branch[0], branch[1]) if region is not branch else ()
                found[file][Branch(*place, (outcome, *inner))] += count
    return found


# --- telling ---


def share(covered, count):
    return 100.0 * covered / count if count else 100.0


class Tally:
    def __init__(self):
        self.lines = self.lines_taken = self.branches = self.branches_taken = 0

    def add(self, other):
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def row(self, name):
        lines, branches = share(self.lines_taken, self.lines), share(self.branches_taken, self.branches)
        return f"{name:<46} {self.lines_taken:>6}/{self.lines:<6} {lines:6.2f}%  {self.branches_taken:>6}/{self.branches:<6} {branches:6.2f}%"


def tally_files(data, branches):
    tallies = {}
    for entry in data["files"]:
        name = entry["filename"]
        if name not in branches and not name.startswith(str(ROOT / "src")):
            continue
        tally = tallies[name] = Tally()
        tally.lines, tally.lines_taken = (entry["summary"]["lines"][key] for key in ("count", "covered"))
        tally.branches, tally.branches_taken = len(branches[name]), sum(count > 0 for count in branches[name].values())
    return tallies


def tally_folders(tallies):
    """Each folder with all that is below it."""
    folders = collections.defaultdict(Tally)
    for name, tally in tallies.items():
        for folder in pathlib.Path(name).relative_to(ROOT).parents:
            folders[str(folder)].add(tally)
    del folders["."]
    return folders


def untaken(branches, tops):
    for file in sorted(branches):
        name = str(pathlib.Path(file).relative_to(ROOT))
        if any(name.startswith(f"{top}/") for top in tops):
            for branch in sorted(b for b, count in branches[file].items() if count == 0):
                yield f"{name}:{branch.line}: never {branch.outcome[0]}: {branch.text[:110]}"


def report(data, args):
    sources = {entry["filename"]: Source(pathlib.Path(entry["filename"])) for entry in data["files"]
               if entry["filename"].startswith(str(ROOT / "src"))}
    branches = branches_of(data, sources)
    tallies = tally_files(data, branches)
    folders = tally_folders(tallies)
    print(f"{'':<46} {'lines':>13} {'':>8} {'branches':>14}")
    if args.files:
        for name in sorted(tallies):
            print(tallies[name].row(str(pathlib.Path(name).relative_to(ROOT))))
    for folder in sorted(folders):
        print(folders[folder].row(folder))
    missing = list(untaken(branches, args.list or HELD_TO))
    print(f"\n{len(missing)} branches that no test takes:")
    print("\n".join(missing))
    low = [top for top in HELD_TO if share(folders[top].branches_taken, folders[top].branches) < args.fail_under]
    for top in HELD_TO:
        print(folders[top].row(f"\n{top}").strip())
    if low:
        print(f"FAIL: fewer than {args.fail_under}% of the branches of {' and '.join(low)} are taken")
    return bool(low)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-coverage")
    parser.add_argument("--fail-under", type=float, default=0, metavar="PERCENT", help=f"of the branches of {', '.join(HELD_TO)}")
    parser.add_argument("--only", default=".", help="a pattern of the unit tests to run")
    parser.add_argument("--seeds", default="1..3000", help="of the simulator; empty: none")
    parser.add_argument("--files", action="store_true", help="a line for each file too")
    parser.add_argument("--list", action="append", metavar="FOLDER", help=f"whose branches are listed; {', '.join(HELD_TO)} by default")
    parser.add_argument("--cmake", action="append", default=[], metavar="OPTION", help="passed to cmake")
    parser.add_argument("--again", action="store_true", help="only report what was measured last")
    args = parser.parse_args()
    folder = args.build.resolve()
    passed = True
    if not args.again:
        build(folder, args.cmake)
        passed = measure(folder, args.only, args.seeds)
    low = report(export(folder, folder / "coverage.profdata"), args)
    if not passed:
        print("FAIL: tests have failed, see above")
    return 1 if low or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
