"""Python, and the packages that the program stands on: their versions, and whether they load."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Mapping
from importlib import metadata

from taciturn.crypto import group
from taciturn.extras import EXTRAS, MODULES, install_hint
from taciturn.results.doctor import Finding

OLDEST_PYTHON = (3, 11)
TESTED_PYTHONS = ((3, 11), (3, 12), (3, 13))
# As in pyproject.toml, which an installed program does not have beside it; a test compares them.
NEEDED: Mapping[str, str] = {
    "cryptography": "44",
    "gmpy2": "2.2",
    "grpcio": "1.70",
    "numpy": "2.0",
    "polars": "1.20",
    "pydantic": "2.10",
    "rbcl": "1.1",
    "rich": "13.9",
    "tenseal": "0.3.16",
    "threadpoolctl": "3.5",
    "tomlkit": "0.13",
    "typer": "0.29",
    "zstandard": "0.23",
}
# As the program itself loads them: rbcl without a copy in the folder for temporary files.
_LOADERS: Mapping[str, Callable[[str], object]] = {
    "rbcl": lambda name: group.library(),
    # Loading it would report its use to others, before anything has turned that off.
    "mlflow-skinny": importlib.util.find_spec,
}
_AREA = "packages"
_SHOWN = ("tenseal", "gmpy2", "grpcio", "rbcl", "cryptography", "polars", "numpy")


def look_at_python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """Whether Python is new enough.

    >>> look_at_python((3, 10, 2)).level.value
    'problem'
    """
    name = ".".join(str(part) for part in version)
    if version < OLDEST_PYTHON:
        return Finding.problem("python", f"Python {name}", "use Python 3.11 or newer")
    if version[:2] not in TESTED_PYTHONS:
        newest = ".".join(str(part) for part in TESTED_PYTHONS[-1])
        return Finding.warning(
            "python", f"Python {name} is newer than what is declared", f"if in doubt use {newest}"
        )
    return Finding.ok("python", f"Python {name}")


def look_at_packages(needed: Mapping[str, str] = NEEDED) -> list[Finding]:
    """One line for all that are fit, and one for each that is not."""
    wrong = [finding for name, least in needed.items() if (finding := _look_at(name, least))]
    bad = {finding.summary.split()[0] for finding in wrong}
    fit = [name for name in needed if name not in bad]
    shown = ", ".join(f"{name} {metadata.version(name)}" for name in _SHOWN if name in fit)
    return [Finding.ok(_AREA, f"{len(fit)} of {len(needed)} load, such as {shown}"), *wrong]


def look_at_extras(extras: Mapping[str, Mapping[str, str]] = EXTRAS) -> list[Finding]:
    """One line for each extra: whole, or what is absent and how to get it."""
    return [_look_at_extra(extra, needed) for extra, needed in extras.items()]


def _look_at_extra(extra: str, needed: Mapping[str, str]) -> Finding:
    wrong = [finding for name, least in needed.items() if (finding := _look_at(name, least))]
    if not wrong:
        return Finding.ok(_AREA, f"extra {extra}: {', '.join(needed)}")
    reasons = "; ".join(finding.summary for finding in wrong)
    # A party needs no extra, so that the absence of one is no fault.
    return Finding.warning(_AREA, f"extra {extra}: {reasons}", install_hint(extra))


def _look_at(name: str, least: str) -> Finding | None:
    install = f"python -m pip install '{name}>={least}'"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding.problem(_AREA, f"{name} is not installed", install)
    try:
        _LOADERS.get(name, importlib.import_module)(MODULES.get(name, name.replace("-", "_")))
    except Exception as problem:  # a broken wheel may raise anything while it loads
        return Finding.problem(
            _AREA,
            f"{name} {version} does not load: {type(problem).__name__}",
            f"python -m pip install --force-reinstall '{name}>={least}'",
        )
    if numbers(version) < numbers(least):
        return Finding.problem(_AREA, f"{name} {version} is older than {least}", install)
    return None


def numbers(version: str) -> tuple[int, ...]:
    """The release part of a version, to compare by.

    >>> numbers("2.10.1rc2") > numbers("2.9"), numbers("44.0.0") >= numbers("44")
    (True, True)
    """
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
