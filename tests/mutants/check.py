#!/usr/bin/env python3
"""Checks in seconds that no mutant has rotted: each edit still fits its file, and the changed file still compiles.

Needs build/compile_commands.json. `make mutants` shows that each one is found.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

from mutants import ROOT, Mutant, Rotten, load

BUILD = ROOT / "build"


def commands() -> dict[str, list[str]]:
    """How each source file is compiled, without its output."""
    by_file = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        out = words.index("-o")
        del words[out:out + 2]
        by_file[entry["file"]] = [w for w in words if w != "-c" and w != entry["file"] and not w.startswith("-Werror")]
    return by_file


def user_of(header: str, sources: dict[str, list[str]]) -> str:
    """A source file that includes the header."""
    line = f'#include "{header.removeprefix("src/")}"'
    return next(s for s in sources if s.startswith(str(ROOT / "src")) and line in pathlib.Path(s).read_text())


def fault_of(mutant: Mutant, sources: dict[str, list[str]]) -> str:
    """Empty when the mutant is as good as on its first day."""
    try:
        texts = mutant.files()
    except (Rotten, FileNotFoundError) as e:
        return str(e)
    with tempfile.TemporaryDirectory() as folder:
        for file, text in texts.items():
            changed = pathlib.Path(folder) / file
            changed.parent.mkdir(parents=True, exist_ok=True)
            changed.write_text(text)
        for file in (f for f in texts if not f.endswith(".sql")):
            source = str(ROOT / file) if file.endswith(".c") else user_of(file, sources)
            here = pathlib.Path(folder) / pathlib.Path(source).relative_to(ROOT)
            target = str(here) if here.exists() else source
            # The changed headers come first.
            command = [*sources[source][:1], f"-I{folder}/src", *sources[source][1:], "-w", "-fsyntax-only", target]
            r = subprocess.run(command, cwd=BUILD, capture_output=True, text=True)
            if r.returncode != 0:
                return next((line for line in r.stderr.splitlines() if "error" in line), r.stderr)
    return ""


def main() -> int:
    mutants = load()
    sources = commands()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = list(pool.map(lambda m: fault_of(m, sources), mutants))
    for mutant, fault in zip(mutants, faults):
        if fault:
            print(f"{mutant.name}: {fault}")
    failed = sum(bool(f) for f in faults)
    print(f"{len(mutants) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
