#!/usr/bin/env python3
"""Shows that every mutant is found: puts each defect into a copy of the sources, builds it, and runs what must fail.

The simulator tries a mutant with SEEDS seeds and stops at the first broken promise. A seed counts only if the simulator
passes it without the defect. A mutant that is not found fails the command. The results go to build/mutants.md.
"""
import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import time

from mutants import ROOT, Mutant, load

OUT = ROOT / "build"
HANGS_S = 900  # what runs for so long hangs, and is found by that
STORY_LINES = 12  # of the end of the shortest story
LINE_MAX = 200


@dataclasses.dataclass
class Result:
    found: bool
    why: str
    seeds: int = 0  # that it took; 0: it was found by a test
    story: tuple[str, ...] = ()
    seconds: float = 0


def run(command: list[str], folder: pathlib.Path, env: dict[str, str] | None = None) -> tuple[int, str]:
    """(exit code, output); the code is -1 when it hangs."""
    try:
        r = subprocess.run(command, cwd=folder, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, timeout=HANGS_S,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired as e:
        return -1, (e.stdout or b"").decode(errors="replace") + "\nhangs"
    return r.returncode, r.stdout.decode(errors="replace")


class Tree:
    """A copy of the sources, to be changed and built. What is built of it unchanged is kept aside."""

    def __init__(self, folder: pathlib.Path, targets: set[str]) -> None:
        self.folder = folder
        self.build = folder / "build"
        self.sound = folder / "sound"
        # The same objects for every tree, wherever it is.
        self.env = {"CCACHE_BASEDIR": str(folder), "CCACHE_NOHASHDIR": "1"}
        self.copy_sources()
        faster = {"ccache": "-DCMAKE_C_COMPILER_LAUNCHER=ccache", "mold": "-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=mold"}
        options = [option for tool, option in faster.items() if shutil.which(tool)]
        code, out = run(["cmake", "-G", "Ninja", "-B", str(self.build), *options], folder, self.env)
        assert code == 0, out
        self.sound.mkdir(exist_ok=True)
        for target in sorted(targets):
            self.make(target)
            shutil.copy(self.program(target), self.sound / target)

    def copy_sources(self) -> None:
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True)
        for path in [p for top in ("src", "tests") for p in (self.folder / top).rglob("*") if p.is_file()]:
            if not (ROOT / path.relative_to(self.folder)).is_file():
                path.unlink()  # it was there when the copy was made
        for name in listed.stdout.splitlines():
            if (ROOT / name).is_file():
                self.write(name, (ROOT / name).read_bytes())
                shutil.copymode(ROOT / name, self.folder / name)
        # No mutant is in the console: it is not built again.
        for name in ("console/dist", "console/node_modules"):
            if not (self.folder / name).exists():
                (self.folder / name).symlink_to(ROOT / name)

    def write(self, name: str, content: bytes) -> None:
        """A file that is so already keeps its time, and is not built again."""
        path = self.folder / name
        if path.exists() and path.read_bytes() == content:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def make(self, target: str) -> None:
        code, out = run(["ninja", "-C", str(self.build), "--quiet", target], self.folder, self.env)
        assert code == 0, out[-4000:]

    def program(self, target: str) -> pathlib.Path:
        return self.build / (target if target in ("pawl", "sim") else f"tests/{target}")

    def change(self, mutant: Mutant) -> dict[str, bytes]:
        """What the changed files were."""
        texts = mutant.files(self.folder)
        before = {name: (self.folder / name).read_bytes() for name in texts}
        for name, text in texts.items():
            self.write(name, text.encode())
        return before

    def restore(self, before: dict[str, bytes]) -> None:
        for name, content in before.items():
            self.write(name, content)


# --- what finds a mutant ---


def target_of(mutant: Mutant) -> str:
    kind, _, what = mutant.found_by.partition(":")
    return {"sim": "sim", "nodes": "sim", "unit": what, "postgres": what, "e2e": "pawl"}[kind]


def by_simulator(tree: Tree, mutant: Mutant, seeds: int, shrinks: bool) -> Result:
    nodes = ["--nodes"] if mutant.found_by == "nodes" else []
    first = 1
    while first <= seeds:
        command = [str(tree.program("sim")), "--seeds", f"{first}..{seeds}", "--jobs", "1", *nodes]
        code, out = run(command if shrinks else [*command, "--no-shrink"], tree.folder)
        if code == 0:
            break
        told = re.search(r"^seed (\d+), .*\n((?:.*\n)*?)(.*)\n  again: ", out, re.M)
        if told is None:
            return Result(False, "the simulator tells no story: " + out[-300:])
        seed = int(told[1])
        if run([str(tree.sound / "sim"), "--seed", str(seed), *nodes], tree.folder)[0] == 0:
            story = [line[:LINE_MAX] for line in told[2].splitlines()]
            return Result(True, told[3][:LINE_MAX], seed, tuple(story[-STORY_LINES:] if shrinks else []))
        first = seed + 1  # it fails without the defect too, and says nothing
    return Result(False, f"not found in {seeds} seeds")


def by_test(tree: Tree, mutant: Mutant) -> Result:
    kind, _, what = mutant.found_by.partition(":")

    def test(program: pathlib.Path) -> tuple[int, str]:
        if kind == "unit":
            return run([str(program)], tree.folder)
        if kind == "postgres":
            return run(["/usr/bin/python3", str(ROOT / "tests/tools/with_postgres.py"), "--each", str(program)], tree.folder)
        file, _, name = what.partition("::")
        command = ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", file, "-k", name]
        return run(command, tree.folder / "tests/e2e", {"PAWL_BIN": str(program)})

    if test(tree.sound / target_of(mutant))[0] != 0:
        return Result(False, f"{what} fails without the defect too")
    code, out = test(tree.program(target_of(mutant)))
    if code == 0:
        return Result(False, f"{what} passes")
    failed = dict.fromkeys(re.findall(r"FAILED(?:  \] | \S+::)([a-z_]\w*)(?: |$)", out, re.M))
    return Result(True, ", ".join(failed) or f"{what} does not end well")


def judge(tree: Tree, mutant: Mutant, seeds: int, shrinks: bool) -> Result:
    begun = time.monotonic()
    before = tree.change(mutant)
    try:
        tree.make(target_of(mutant))
        simulated = mutant.found_by in ("sim", "nodes")
        result = by_simulator(tree, mutant, seeds, shrinks) if simulated else by_test(tree, mutant)
    finally:
        tree.restore(before)
    result.seconds = time.monotonic() - begun
    return result


# --- telling ---


def tell(mutant: Mutant, r: Result) -> None:
    how = f"seed {r.seeds}" if r.seeds else "a test" if r.found else "NOT FOUND"
    print(f"{mutant.name:<40} {how:<12} {r.seconds:5.0f} s  {r.why}", flush=True)
    for line in r.story:
        print(f"    {line}", flush=True)


def table(results: dict[str, Result], mutants: list[Mutant]) -> str:
    rows = ["| mutant | finding | what it breaks | found after | by |", "|---|---|---|---|---|"]
    for m in mutants:
        r = results[m.name]
        after = f"{r.seeds:,} seed{'s' if r.seeds > 1 else ''}" if r.seeds else "a test" if r.found else "**not found**"
        rows.append(f"| {m.name} | {m.finding} | {m.breaks} | {after} | {r.why.replace('|', '/')} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="that a mutant may take")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--no-shrink", action="store_true", help="tells no stories, which takes less time")
    parser.add_argument("names", nargs="*", help="all mutants, unless some are named")
    args = parser.parse_args()
    mutants = [m for m in load() if not args.names or m.name in args.names]
    unknown = set(args.names) - {m.name for m in mutants}
    if unknown:
        parser.error(f"there is no mutant {', '.join(sorted(unknown))}")
    jobs = max(1, min(args.jobs, len(mutants)))
    targets = {target_of(m) for m in mutants}
    trees: queue.Queue[Tree] = queue.Queue()
    for i in range(jobs):
        trees.put(Tree(OUT / f"mutants/tree{i}", targets))
    results: dict[str, Result] = {}

    def one(mutant: Mutant) -> None:
        tree = trees.get()
        try:
            results[mutant.name] = judge(tree, mutant, args.seeds, not args.no_shrink)
        finally:
            trees.put(tree)
        tell(mutant, results[mutant.name])

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(one, m) for m in mutants]:
            done.result()
    (OUT / "mutants.md").write_text(table(results, mutants))
    lost = sum(not r.found for r in results.values())
    print(f"{len(results) - lost} passed, {lost} failed")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
