"""The environment of these tests: made once, however many want it at the same time."""

from __future__ import annotations

import pathlib
import subprocess
import sys

TOOLS = pathlib.Path(__file__).resolve().parents[3] / "tools"
# `_make` leaves something in the folder early and the rest late, as `venv` and `pip` do. It fails if it is there.
PROGRAM = """
import os, pathlib, signal, sys
sys.path.insert(0, sys.argv[1])
import venv_once

def make(venv, pins):
    venv.mkdir()
    if sys.argv[4:] == ["dies"]:
        os.kill(os.getpid(), signal.SIGKILL)
    for n in range(1000):
        (venv / str(n)).touch()

venv_once._make = make
python = venv_once.environment(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
print(len(list(python.parents[1].iterdir())))
"""


def start(folder: pathlib.Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, str(TOOLS), str(folder / "venv"), str(folder / "pins.txt"), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_programs_that_want_it_at_the_same_time_wait_for_the_one_that_makes_it(tmp_path: pathlib.Path) -> None:
    (tmp_path / "pins.txt").write_text("one==1\n")
    running = [start(tmp_path) for _ in range(4)]
    assert [program.communicate()[0] for program in running] == ["1001\n"] * 4  # and the stamp


def test_a_program_that_is_killed_while_it_makes_it_keeps_nobody_waiting(tmp_path: pathlib.Path) -> None:
    (tmp_path / "pins.txt").write_text("one==1\n")
    assert start(tmp_path, "dies").wait() < 0
    (tmp_path / "venv").rmdir()  # as `_make` does before it begins
    assert start(tmp_path).communicate()[0] == "1001\n"
