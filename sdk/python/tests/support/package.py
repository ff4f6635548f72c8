"""Building the wheel, and an environment that has nothing but it."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parents[2]


def run(*command: object, cwd: pathlib.Path = HERE, env: dict[str, str] | None = None) -> str:
    """What a command prints; it must succeed."""
    environment = {**os.environ, **(env or {})}
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build_wheel(folder: pathlib.Path) -> pathlib.Path:
    """Built from a copy, so that the tree stays clean; the same sources give the same bytes."""
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(HERE / name, source)
    shutil.copytree(HERE / "src" / "pawl", source / "src" / "pawl", ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-q"]
    run(*pip, "-w", folder, source, env={"SOURCE_DATE_EPOCH": "1767225600"})
    (built,) = folder.glob("pawl-*.whl")
    return built


def clean_environment(folder: pathlib.Path, wheel: pathlib.Path) -> pathlib.Path:
    """The interpreter of a new environment with the wheel."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index", wheel)
    return python
