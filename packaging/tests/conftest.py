"""Packages are built once for all tests. `slow`: what `make packages-test` runs and `make test` does not."""
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
BUILD = pathlib.Path(os.environ.get("PAWL_BUILD", ROOT / "build"))


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long, needs the network or root")


def make(out, *kinds, build=BUILD, source=ROOT):
    """Builds packages; {their name without the version: path}."""
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, source / "packaging/build.py", "--build", build, "--out", out, *kinds]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.name: path for path in map(pathlib.Path, done.stdout.split())}


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """The Debian packages and the SBOM."""
    return make(tmp_path_factory.mktemp("packages"), "deb", "sbom")


@pytest.fixture(scope="session")
def deb(packages):
    return next(path for name, path in packages.items() if name.startswith("pawl_"))
