"""Datasets by name: the two that come with scikit-learn, and those of other packages.

In ``breast-cancer`` 1 is benign, as scikit-learn has it; in ``sklearn-digits`` 1 is odd. All
columns are standardised. A package adds one by an entry point of ``taciturn.datasets``, which names
its ``Dataset``; taciturn-paper adds the paper's other two.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from taciturn import extensions
from taciturn.arrays import FloatArray
from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.data.prepare import RawData
from taciturn.data.prepare_settings import PrepareSettings
from taciturn.errors import ConfigError, nearest
from taciturn.extras import DATASETS_ELSEWHERE, not_installed

SHIPPED = ("breast-cancer", "sklearn-digits")
"""The datasets that come with scikit-learn, as files."""


class Dataset(Protocol):
    """A dataset from another package; also has ``defaults`` (``settings.schema``)."""

    @property
    def files(self) -> tuple[str, ...]:
        """The names under which its file is sought."""

    @property
    def digest(self) -> str:
        """Digest that its content must have."""

    @property
    def cache(self) -> Path:
        """Folder in which a fetched dataset is cached."""

    def load(self, data_dir: Path | None = None) -> RawData:
        """Load it, from ``data_dir`` before all other sources."""

    def locate(self) -> Path | None:
        """Its file on this machine, not yet looked into; None where there is none."""


def dataset_names() -> tuple[str, ...]:
    """The names of all datasets; nothing is imported."""
    return (*SHIPPED, *extensions.names(extensions.DATASETS, SHIPPED))


def added_dataset(name: str) -> Dataset | None:
    """The dataset of another package by this name; None where there is none."""
    added = extensions.extension(extensions.DATASETS, name, SHIPPED)
    loaded: Any = None if added is None else added.load()
    return loaded  # type: ignore[no-any-return]  # what the package declares


def load(name: str, *, data_dir: Path | None = None) -> RawData:
    """Load a dataset, from ``data_dir`` before all other sources."""
    if name == "breast-cancer":
        return _breast_cancer()
    if name == "sklearn-digits":
        return _digits()
    added = added_dataset(name)
    if added is not None:
        return added.load(data_dir)
    if name in DATASETS_ELSEWHERE:
        raise not_installed(f"the dataset {name}", DATASETS_ELSEWHERE[name])
    known = dataset_names()
    raise ConfigError(f"unknown dataset {name}", setting="dataset", hint=nearest(name, known))


def content_digest(name: str) -> str | None:
    """Digest that a published dataset's content must have; None where it comes with a package."""
    added = added_dataset(name)
    return None if added is None else added.digest


def _breast_cancer() -> RawData:
    values = _shipped_numbers("breast_cancer.csv", skip=1)
    measures = (
        "radius texture perimeter area smoothness compactness concavity concave-points symmetry "
        "fractal-dimension"
    )
    listed = [measure.replace("-", " ") for measure in measures.split()]
    names = [
        *(f"mean {measure}" for measure in listed),
        *(f"{measure} error" for measure in listed),
        *(f"worst {measure}" for measure in listed),
    ]
    return _shipped("breast-cancer", names, values[:, :-1], values[:, -1])


def _digits() -> RawData:
    values = _shipped_numbers("digits.csv.gz")
    names = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
    return _shipped("sklearn-digits", names, values[:, :-1], values[:, -1] % 2)


def _shipped_numbers(file: str, skip: int = 0) -> FloatArray:
    """Read as a file: scikit-learn takes longer to import than a small training takes."""
    package = find_spec("sklearn")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")
    path = Path(package.submodule_search_locations[0], "datasets", "data", file)
    numbers: FloatArray = np.loadtxt(path, delimiter=",", skiprows=skip)
    return numbers


def _shipped(name: str, columns: list[str], values: FloatArray, labels: FloatArray) -> RawData:
    ids = RowIds.numbered(len(values))
    truth = LabelTable(ids, labels.astype(np.int8))
    frame = pl.DataFrame(values, schema=columns)
    return RawData(name, frame, ids, truth, PrepareSettings(impute="none"))
