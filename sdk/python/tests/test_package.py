"""The package: types, the generated models, and a wheel that installs and imports in a clean environment."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

HERE = pathlib.Path(__file__).resolve().parents[1]


def run(*command: object, cwd: pathlib.Path = HERE) -> str:
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md"):
        (source / name).write_bytes((HERE / name).read_bytes())
    shutil.copytree(HERE / "src" / "pawl", source / "src" / "pawl", ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-q"]
    run(*pip, "-w", folder, source)
    (built,) = folder.glob("pawl-*.whl")
    return built


def test_the_wheel_has_the_types_and_no_requirements(wheel: pathlib.Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read("pawl-0.1.0.dist-info/METADATA").decode()
    assert "pawl/py.typed" in names
    assert not [name for name in names if "test" in name]
    assert "Requires-Dist" not in metadata and "Requires-Python: >=3.11" in metadata


def test_the_wheel_installs_and_imports_in_a_clean_environment(wheel: pathlib.Path, tmp_path: pathlib.Path) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index", wheel)
    program = "import pawl; w = pawl.Workflow('w'); w.sleep('s', duration_ms=1); print(pawl.__version__, w.to_dict())"
    printed = run(python, "-c", program, cwd=tmp_path)
    assert printed.startswith("0.1.0 {'id': 'w', 'steps':")


def test_the_models_are_those_of_the_openapi_document() -> None:
    run(sys.executable, "tools/models.py", "--check")


def test_types_are_strict() -> None:
    run(sys.executable, "-m", "mypy", "--cache-dir=/dev/null")


def test_ruff_finds_nothing() -> None:
    run(sys.executable, "-m", "ruff", "check", "--no-cache", ".")
    run(sys.executable, "-m", "ruff", "format", "--no-cache", "--check", ".")
