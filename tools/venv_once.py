"""Python environments that several processes share, each made once for the versions that are pinned for it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

_in_use: list[int] = []


def environment(venv: pathlib.Path, pins: pathlib.Path) -> pathlib.Path:
    """The interpreter of an environment with the packages of `pins`. Nobody replaces it until this process ends."""
    stamp, wanted = venv / ".installed", hashlib.sha256(pins.read_bytes()).hexdigest()
    # The lock is the kernel's, on the file of pins: it ends with this process, however that ends.
    lock = os.open(pins, os.O_RDONLY)
    _in_use.append(lock)
    while True:
        fcntl.flock(lock, fcntl.LOCK_SH)
        if _is_made(stamp, wanted):
            return venv / "bin" / "python"
        fcntl.flock(lock, fcntl.LOCK_EX)  # lets go of the other lock first: two who want this one do not wait for each other
        if not _is_made(stamp, wanted):
            _make(venv, pins)
            stamp.write_text(wanted)


def _is_made(stamp: pathlib.Path, wanted: str) -> bool:
    return stamp.exists() and stamp.read_text() == wanted


def _make(venv: pathlib.Path, pins: pathlib.Path) -> None:
    shutil.rmtree(venv, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", str(pins)]
    done = subprocess.run(pip, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
