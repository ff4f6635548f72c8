"""Runs the tests of the Python library, with type checker and linter, in an environment of its own: build/sdk-python,
with the versions of requirements-dev.txt. It is made when it is missing or the versions have changed. Makes
src/pawl/models.py first.

python3 tools/check.py [ARGUMENTS OF PYTEST]       PAWL_BIN names the server; default build/pawl
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parents[1]
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import venv_once  # noqa: E402


def environment() -> pathlib.Path:
    """The interpreter of the environment."""
    return venv_once.environment(ROOT / "build" / "sdk-python", HERE / "requirements-dev.txt")


def main() -> int:
    python = environment()
    subprocess.run([python, "tools/models.py"], cwd=HERE, check=True)
    return subprocess.run([python, "-m", "pytest", "-q", *sys.argv[1:]], cwd=HERE).returncode


if __name__ == "__main__":
    sys.exit(main())
