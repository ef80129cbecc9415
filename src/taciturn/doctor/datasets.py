"""The paper's datasets: which are here, where, and whether they are what they should be."""

from __future__ import annotations

import os
from pathlib import Path

from taciturn.data.datasets import NAMES, cache_dir, file_names, load, locate
from taciturn.errors import DataError
from taciturn.extras import install_hint, is_installed
from taciturn.results.doctor import Finding

_AREA = "datasets"


def look_at_datasets() -> list[Finding]:
    """One finding per dataset, and one where TACITURN_DATA leads nowhere. Nothing is fetched."""
    named = os.environ.get("TACITURN_DATA")
    nowhere = Finding.warning(
        _AREA, f"TACITURN_DATA names {named}, which is no folder", "name a folder, or unset it"
    )
    findings = [] if not named or Path(named).is_dir() else [nowhere]
    return [*findings, *(_look_at(name) for name in NAMES)]


def _look_at(name: str) -> Finding:
    if not file_names(name):
        if not is_installed("scikit-learn"):
            return Finding.warning(
                _AREA,
                f"{name}: comes with scikit-learn, which is not installed",
                f"{install_hint('audit')}; own data does not need it",
            )
        return Finding.ok(_AREA, f"{name}: comes with scikit-learn")
    file = locate(name)
    if file is None:
        wanted = file_names(name)[0]
        return Finding.warning(
            _AREA,
            f"{name}: not here; a training with it would ask OpenML",
            f"put {wanted} into {cache_dir()}, or name its folder by TACITURN_DATA; "
            "own data does not need it",
        )
    try:
        rows = load(name).rows
    except DataError as problem:
        return Finding.of_error(_AREA, problem)
    return Finding.ok(_AREA, f"{name}: {file}, {rows:,} rows, digest as known")
