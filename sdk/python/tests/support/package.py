"""Building the wheel, and an environment that has nothing but it."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parents[2]
BUILD = {"SOURCE_DATE_EPOCH": "1767225600"}


def run(*command: object, cwd: pathlib.Path = HERE, env: dict[str, str] | None = None) -> str:
    """What a command prints; it must succeed."""
    environment = {**os.environ, **(env or {})}
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def checkout(folder: pathlib.Path) -> pathlib.Path:
    """What a checkout has of the package: no generated file, and nothing that a build leaves behind."""
    source = folder / "sdk" / "python"
    generated = shutil.ignore_patterns("__pycache__", "models.*", "*.egg-info")
    shutil.copytree(HERE / "src", source / "src", ignore=generated)
    shutil.copytree(HERE / "tools", source / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "MANIFEST.in", "README.md"):
        shutil.copy(HERE / name, source)
    (folder / "docs").mkdir()
    shutil.copy(HERE.parents[1] / "docs" / "openapi.yaml", folder / "docs")
    return source


def build_wheel(source: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The wheel of a checkout or of a source distribution; the same sources give the same bytes."""
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-q"]
    run(*pip, "-w", folder, source, env=BUILD)
    (built,) = folder.glob("pawl-*.whl")
    return built


def build_sdist(source: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The source distribution of a checkout."""
    program = f"import backend; print(backend.build_sdist({str(folder)!r}))"
    printed = run(sys.executable, "-c", program, cwd=source, env={**BUILD, "PYTHONPATH": "tools"})
    return folder / printed.splitlines()[-1]


def clean_environment(folder: pathlib.Path, wheel: pathlib.Path) -> pathlib.Path:
    """The interpreter of a new environment with the wheel."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index", wheel)
    return python
