"""Datasets: the paper's four, by name.

``breast-cancer`` and ``sklearn-digits`` come with scikit-learn, as files. ``census-income`` (UCI's
*Adult*) and ``give-me-some-credit`` (Kaggle) are sought as files in the directory given, in
``TACITURN_DATA`` and in the cache, and then asked of OpenML through scikit-learn. Their content,
not their file, must have the known digest (see ``canonical``), and their rows are in canonical
order: the same seed gives the same split whatever the source.

Prepared as the paper's figures suggest: all columns standardised; census-income with 5 numeric and
76 one-hot columns; give-me-some-credit with the median for missing values. In breast-cancer 1 is
benign, as scikit-learn has it; in sklearn-digits 1 is odd.
"""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray
from taciturn.data.canonical import Layout, canonical, digest, written
from taciturn.data.frames import as_frame
from taciturn.data.ids import RowIds
from taciturn.data.prepare import PrepareSettings
from taciturn.data.raw import RawData
from taciturn.data.source import read_frame
from taciturn.data.tables import LabelTable
from taciturn.data.vocabularies import CENSUS_INCOME
from taciturn.errors import ConfigError, DataError, DatasetUnavailable, nearest
from taciturn.faces import Hint

__all__ = ["NAMES", "RawData", "cache_dir", "file_names", "load"]

NAMES = ("breast-cancer", "sklearn-digits", "census-income", "give-me-some-credit")

# Seconds for one answer from OpenML; a person waits for this.
_TIMEOUT = 15.0


@dataclass(frozen=True, slots=True)
class _Published:
    name: str
    files: tuple[str, ...]
    layout: Layout
    digest: str
    openml: int
    origin: str
    settings: PrepareSettings
    unused: tuple[str, ...] = ()
    vocabularies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


_CENSUS = _Published(
    name="census-income",
    files=("adult.csv.gz", "adult.csv"),
    layout=Layout(
        numeric=frozenset(
            {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
        ),
        features=(
            "age",
            "workclass",
            "fnlwgt",
            "education",
            "education-num",
            "marital-status",
            "occupation",
            "relationship",
            "race",
            "sex",
            "capital-gain",
            "capital-loss",
            "hours-per-week",
            "native-country",
        ),
        label="income",
        label_aliases=("class",),
        classes=("<=50K", ">50K"),
    ),
    digest="a0798c143065a1ce634715b95d2efd89e978a5f16e71570550988ccea918dd2f",
    openml=1590,
    origin=(
        "UCI publishes it as Adult, https://archive.ics.uci.edu/dataset/2/adult (join adult.data "
        "and adult.test under a header line, label column income)"
    ),
    settings=PrepareSettings(impute="none", scale_categories=True),
    unused=("fnlwgt", "education"),
    vocabularies=CENSUS_INCOME,
)

_CREDIT_FEATURES = (
    "RevolvingUtilizationOfUnsecuredLines",
    "age",
    "NumberOfTime30-59DaysPastDueNotWorse",
    "DebtRatio",
    "MonthlyIncome",
    "NumberOfOpenCreditLinesAndLoans",
    "NumberOfTimes90DaysLate",
    "NumberRealEstateLoansOrLines",
    "NumberOfTime60-89DaysPastDueNotWorse",
    "NumberOfDependents",
)

_CREDIT = _Published(
    name="give-me-some-credit",
    files=("give-me-some-credit.csv.gz", "give-me-some-credit.csv", "cs-training.csv"),
    layout=Layout(
        numeric=frozenset(_CREDIT_FEATURES),
        features=_CREDIT_FEATURES,
        label="SeriousDlqin2yrs",
    ),
    digest="7aef9308edeaddf7cc6c54d8372de0269b47e9d9a503b5600628b0f929f93f72",
    openml=45577,
    origin=(
        "Kaggle publishes it as cs-training.csv of the competition Give Me Some Credit, "
        "https://www.kaggle.com/c/GiveMeSomeCredit/data"
    ),
    settings=PrepareSettings(impute="median"),
)

_PUBLISHED = {source.name: source for source in (_CENSUS, _CREDIT)}


def load(name: str, *, data_dir: Path | None = None) -> RawData:
    """Load one of the paper's datasets; the order of its rows does not depend on the source.

    A file in ``data_dir`` comes before all other sources.

    >>> load("breast-cancer")
    RawData(breast-cancer, 569 rows, 30 raw columns)
    """
    if name in _PUBLISHED:
        return _load_published(_PUBLISHED[name], data_dir)
    if name == "breast-cancer":
        return _breast_cancer()
    if name == "sklearn-digits":
        return _digits()
    raise ConfigError(f"unknown dataset {name}", setting="dataset", hint=nearest(name, NAMES))


def content_digest(name: str) -> str | None:
    """The digest that a published dataset's content must have; None where it comes with a package.

    >>> content_digest("breast-cancer")
    """
    return _PUBLISHED[name].digest if name in _PUBLISHED else None


def file_names(name: str) -> tuple[str, ...]:
    """The file names under which a dataset is sought; none for those that need no file.

    >>> file_names("census-income")
    ('adult.csv.gz', 'adult.csv')
    """
    return _PUBLISHED[name].files if name in _PUBLISHED else ()


def locate(name: str) -> Path | None:
    """The file of a dataset on this machine, not yet looked into; None where there is none.

    >>> locate("breast-cancer") is None
    True
    """
    return _find(_PUBLISHED[name], None) if name in _PUBLISHED else None


def cache_dir() -> Path:
    """Where fetched datasets are kept."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "taciturn"


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


def _load_published(source: _Published, data_dir: Path | None) -> RawData:
    file = _find(source, data_dir)
    table = _from_openml(source, data_dir) if file is None else _from_file(source, file)
    ids = RowIds.numbered(table.height)
    labels = LabelTable(ids, table[source.layout.label].to_numpy())
    frame = table.drop(source.layout.label, *source.unused)
    return RawData(source.name, frame, ids, labels, source.settings, source.vocabularies)


def _places(data_dir: Path | None) -> list[Path]:
    named = os.environ.get("TACITURN_DATA")
    given = [Path(data_dir)] if data_dir is not None else []
    return [*given, *([Path(named)] if named else []), cache_dir()]


def _find(source: _Published, data_dir: Path | None) -> Path | None:
    candidates = (place / file for place in _places(data_dir) for file in source.files)
    return next((path for path in candidates if path.is_file()), None)


def _from_file(source: _Published, file: Path) -> pl.DataFrame:
    # Columns the layout does not name are dropped: so goes the nameless index of Kaggle's file.
    return _verified(source, read_frame(file), str(file))


def _verified(source: _Published, frame: pl.DataFrame, where: str) -> pl.DataFrame:
    try:
        table = canonical(frame, source.layout)
    except DataError as problem:
        raise DatasetUnavailable(
            f"this is not {source.name}: {problem.message}", where=where, hint=source.origin
        ) from problem
    actual = digest(table)
    if actual != source.digest:
        raise DatasetUnavailable(
            f"this is not {source.name}, or it was altered: the digest of its content is {actual}, "
            f"expected {source.digest} ({table.height} rows read)",
            where=where,
            hint=f"remove or replace it. {source.origin}",
        )
    return table


def _from_openml(source: _Published, data_dir: Path | None) -> pl.DataFrame:
    try:
        frame = _fetch(source.openml)
    except Exception as problem:
        # Whatever goes wrong in there (network, service, a missing pandas), the way out is a file.
        places = ", ".join(str(place) for place in _places(data_dir))
        raise DatasetUnavailable(
            f"{source.name} is not on this machine, and OpenML (id {source.openml}) did not "
            f"provide it: {type(problem).__name__}",
            where=f"looked for {' or '.join(source.files)} in {places}",
            hint=Hint(
                "put {0} into {1}, or name its directory by {data_dir} or TACITURN_DATA. {2}",
                source.files[0],
                cache_dir(),
                source.origin,
            ),
        ) from problem
    table = _verified(source, frame, f"OpenML, id {source.openml}")
    # Without a cache the next load fetches again: no reason to fail with the data in hand.
    with suppress(OSError):
        _keep(written(table, source.layout), cache_dir() / source.files[1])
    return table


def _fetch(openml: int) -> pl.DataFrame:
    from sklearn.datasets import fetch_openml

    with _patience(_TIMEOUT), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bunch = fetch_openml(
            data_id=openml, as_frame=True, parser="auto", cache=False, n_retries=1, delay=0.1
        )
    return as_frame(bunch.frame)


@contextmanager
def _patience(seconds: float) -> Iterator[None]:
    # scikit-learn passes no timeout on; the sockets' default is the only handle there is.
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _keep(table: pl.DataFrame, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    # Renamed into place, so that an interrupted write leaves no half file.
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        table.write_csv(partial)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
