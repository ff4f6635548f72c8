"""The package: types, the generated models, and a wheel that installs and imports in a clean environment."""

from __future__ import annotations

import pathlib
import sys
import zipfile

import pawl
from package import build_sdist, build_wheel, checkout, run


def test_the_wheel_has_the_types_and_no_requirements(wheel: pathlib.Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(f"pawl-{pawl.__version__}.dist-info/METADATA").decode()
    assert {"pawl/py.typed", "pawl/models.py"} <= set(names)
    assert not [name for name in names if "test" in name]
    assert "Requires-Dist" not in metadata and "Requires-Python: >=3.11" in metadata


def test_a_source_distribution_has_the_models_and_builds_the_same_wheel(
    wheel: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """The checkout has the OpenAPI document instead; both builds give the same bytes."""
    sdist = build_sdist(checkout(tmp_path / "checkout"), tmp_path)
    run("tar", "xzf", sdist, cwd=tmp_path)
    source = tmp_path / f"pawl-{pawl.__version__}"
    assert (source / "src/pawl/models.py").exists() and not (source / "tools/models.py").exists()
    assert build_wheel(source, tmp_path).read_bytes() == wheel.read_bytes()


def test_the_wheel_installs_and_imports_in_a_clean_environment(
    clean_python: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    program = "import pawl; w = pawl.Workflow('w'); w.sleep('s', duration_ms=1); print(pawl.__version__, w.to_dict())"
    printed = run(clean_python, "-c", program, cwd=tmp_path)
    assert printed.startswith(f"{pawl.__version__} {{'id': 'w', 'steps':")


def test_types_are_strict() -> None:
    run(sys.executable, "-m", "mypy", "--cache-dir=/dev/null")


def test_ruff_finds_nothing() -> None:
    run(sys.executable, "-m", "ruff", "check", "--no-cache", ".")
    run(sys.executable, "-m", "ruff", "format", "--no-cache", "--check", ".")
