"""Runs the tests of the Python library, with type checker and linter, in an environment of its own: build/sdk-python,
with the versions of requirements-dev.txt. It is made when it is missing or the versions have changed. Makes
src/pawl/models.py first.

python3 tools/check.py [ARGUMENTS OF PYTEST]       PAWL_BIN names the server; default build/pawl
"""

from __future__ import annotations

import hashlib
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parents[1]
PINS = HERE / "requirements-dev.txt"
VENV = HERE.parents[1] / "build" / "sdk-python"


def environment() -> pathlib.Path:
    """The interpreter of the environment."""
    stamp, wanted = VENV / ".installed", hashlib.sha256(PINS.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(VENV, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        pip = str(VENV / "bin" / "pip")
        subprocess.run([pip, "install", "--quiet", "--no-deps", "--requirement", PINS], check=True)
        stamp.write_text(wanted)
    return VENV / "bin" / "python"


def main() -> int:
    python = environment()
    subprocess.run([python, "tools/models.py"], cwd=HERE, check=True)
    return subprocess.run([python, "-m", "pytest", "-q", *sys.argv[1:]], cwd=HERE).returncode


if __name__ == "__main__":
    sys.exit(main())
