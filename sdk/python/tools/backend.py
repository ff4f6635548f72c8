"""The build backend: setuptools, after src/pawl/models.py was made from docs/openapi.yaml.

A checkout has the document and not the models; a source distribution has the models and not the document.
"""

from __future__ import annotations

import pathlib
from typing import Any

from setuptools import build_meta

OPENAPI = pathlib.Path(__file__).resolve().parents[3] / "docs" / "openapi.yaml"
Settings = dict[str, Any] | None


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_requires()]


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    return [*build_meta.get_requires_for_build_sdist(config_settings), *_requires()]


get_requires_for_build_editable = get_requires_for_build_wheel


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    _generate()
    return str(build_meta.build_wheel(wheel_directory, config_settings, metadata_directory))


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    _generate()
    return str(build_meta.build_sdist(sdist_directory, config_settings))


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    _generate()
    return str(build_meta.build_editable(wheel_directory, config_settings, metadata_directory))


def _requires() -> list[str]:
    return ["PyYAML>=6"] if OPENAPI.exists() else []


def _generate() -> None:
    if OPENAPI.exists():
        import models  # needs PyYAML, which a source distribution is built without

        models.write()
