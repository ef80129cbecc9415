"""Datasets of the paper that are published as files: census-income and give-me-some-credit.

``census-income`` (UCI's *Adult*) and ``give-me-some-credit`` (Kaggle) are sought as files in the
directory given, in ``TACITURN_DATA`` and in the cache, and then asked of OpenML through
scikit-learn. Their content, not their file, must have the known digest, and their rows are in
canonical order: the same seed gives the same split whatever the source.

Prepared as the paper's figures suggest: all columns standardised; census-income with 5 numeric and
76 one-hot columns; give-me-some-credit with the median for missing values.

**Canonical form.** The same public table travels as UCI's, Kaggle's or OpenML's file: other row
order, other marks for missing values, other names of the label. Its canonical form has

- the columns in one order, the label last, as 0 and 1;
- numbers as float64, rounded to ``decimals`` places (parsers that do not round correctly differ in
  the last bit), minus zero as zero, missing as null;
- text without surrounding blanks, ``?`` and the empty text as null;
- the rows sorted by all columns in that order, nulls last. Rows that compare equal are equal.

The digest is SHA-256 over, for each column, its name in UTF-8 and a NUL byte, then the
little-endian float64 (NaN where missing), or each text in UTF-8 followed by a NUL byte (nothing
before it where missing), or for the label one byte per row.
"""

from __future__ import annotations

import hashlib
import os
import socket
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from taciturn.data.column_parsing import numbers
from taciturn.data.frames import as_frame
from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.data.prepare import RawData
from taciturn.data.prepare_settings import PrepareSettings
from taciturn.data.source import read_frame
from taciturn.errors import (
    ColumnError,
    DataError,
    DatasetUnavailable,
    LabelValueError,
    nearest,
)
from taciturn.setting_syntax import Hint
from taciturn.settings.schema import DatasetDefaults


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns of a dataset and their kinds.

    ``label_aliases`` are other names that sources give the label. ``classes`` are the texts of
    class 0 and class 1; None where the label is a number.
    """

    numeric: frozenset[str]
    features: tuple[str, ...]
    label: str
    label_aliases: tuple[str, ...] = ()
    classes: tuple[str, str] | None = None
    decimals: int = 9


def canonical(frame: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """Canonical form of a frame; columns that the layout does not name are dropped."""
    columns = [
        _numeric(frame, name, layout.decimals) if name in layout.numeric else _text(frame, name)
        for name in layout.features
    ]
    table = pl.DataFrame([*columns, _label(frame, layout)])
    return table.sort(table.columns, nulls_last=True)


def digest(table: pl.DataFrame) -> str:
    """Digest of a frame in canonical form, as hexadecimal text."""
    sha = hashlib.sha256()
    for series in table:
        sha.update(series.name.encode() + b"\0")
        if series.dtype == pl.Float64:
            sha.update(series.fill_null(np.nan).to_numpy().astype("<f8", copy=False).data)
        elif series.dtype == pl.Int8:
            sha.update(series.to_numpy().data)
        else:
            sha.update(series.fill_null("").str.join("\0").item().encode() + b"\0")
    return sha.hexdigest()


def written(table: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """A canonical table with the label's own classes, for a file."""
    if layout.classes is None:
        return table
    no, yes = layout.classes
    named = pl.when(pl.col(layout.label) == 1).then(pl.lit(yes)).otherwise(pl.lit(no))
    return table.with_columns(named.alias(layout.label))


def _column(frame: pl.DataFrame, names: Sequence[str]) -> pl.Series:
    for name in names:
        if name in frame.columns:
            return frame[name].alias(names[0])
    raise ColumnError(f"there is no column {names[0]!r}", hint=nearest(names[0], frame.columns))


def _numeric(frame: pl.DataFrame, name: str, decimals: int) -> pl.Series:
    values = numbers(_column(frame, [name]))
    # Division by a power of ten rounds correctly, so that the decimal's own float64 comes out.
    rounded = np.round(values, decimals) + 0.0
    return pl.Series(name, rounded, nan_to_null=True)


def _text(frame: pl.DataFrame, name: str) -> pl.Series:
    text = _column(frame, [name]).cast(pl.String).str.strip_chars()
    return text.set(text.is_in(["?", ""]), None)


def _label(frame: pl.DataFrame, layout: Layout) -> pl.Series:
    series = _column(frame, [layout.label, *layout.label_aliases])
    if layout.classes is None:
        values = numbers(series)
        positive, negative = values == 1, values == 0
    else:
        text = series.cast(pl.String).str.strip_chars()
        negative, positive = ((text == name).fill_null(False).to_numpy() for name in layout.classes)
    unknown = int((~(positive | negative)).sum())
    if unknown:
        raise LabelValueError(
            f"{unknown} of {len(series)} labels are of neither class",
            where=f"column {series.name!r}",
            hint="use the file as it was published",
        )
    return pl.Series(layout.label, positive.astype(np.int8))


# Levels of census-income's categories, fixed so that no split changes a column: sorted, without
# UCI's "?" for a missing value. The first of each gets no column, which leaves
# 7 + 6 + 13 + 5 + 4 + 1 + 40 = 76.
_CENSUS_LEVELS = {
    "workclass": (
        "Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc State-gov "
        "Without-pay"
    ),
    "marital-status": (
        "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married "
        "Separated Widowed"
    ),
    "occupation": (
        "Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners "
        "Machine-op-inspct Other-service Priv-house-serv Prof-specialty Protective-serv Sales "
        "Tech-support Transport-moving"
    ),
    "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "race": "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    "sex": "Female Male",
    "native-country": (
        "Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England "
        "France Germany Greece Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India "
        "Iran Ireland Italy Jamaica Japan Laos Mexico Nicaragua Outlying-US(Guam-USVI-etc) Peru "
        "Philippines Poland Portugal Puerto-Rico Scotland South Taiwan Thailand Trinadad&Tobago "
        "United-States Vietnam Yugoslavia"
    ),
}


NAMES = ("breast-cancer", "sklearn-digits", "census-income", "give-me-some-credit")
"""The paper's datasets, in its order."""
# Seconds for one answer from OpenML; a person waits for this.
_TIMEOUT = 15.0


@dataclass(frozen=True, slots=True)
class PublishedDataset:
    """A dataset by its files, its canonical layout, its digest and where it is published."""

    name: str
    files: tuple[str, ...]
    layout: Layout
    digest: str
    openml: int
    origin: str
    settings: PrepareSettings
    defaults: DatasetDefaults
    unused: tuple[str, ...] = ()
    vocabularies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def load(self, data_dir: Path | None = None) -> RawData:
        """Load it, from ``data_dir`` before all other sources."""
        file = _find(self, data_dir)
        table = (
            _from_openml(self, data_dir)
            if file is None
            else _verified(self, read_frame(file), str(file))
        )
        ids = RowIds.numbered(table.height)
        labels = LabelTable(ids, table[self.layout.label].to_numpy())
        frame = table.drop(self.layout.label, *self.unused)
        return RawData(self.name, frame, ids, labels, self.settings, self.vocabularies)

    def locate(self) -> Path | None:
        """Its file on this machine, not yet looked into; None where there is none."""
        return _find(self, None)

    @property
    def cache(self) -> Path:
        """Folder in which a fetched dataset is cached."""
        return cache_dir()


CENSUS_INCOME = PublishedDataset(
    name="census-income",
    files=("adult.csv.gz", "adult.csv"),
    layout=Layout(
        numeric=frozenset(
            {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
        ),
        features=tuple(
            "age workclass fnlwgt education education-num marital-status occupation relationship "
            "race sex capital-gain capital-loss hours-per-week native-country".split()
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
    defaults=DatasetDefaults(batch_size=32, learning_rate=0.05, epochs=10, l_rr=90),
    unused=("fnlwgt", "education"),
    vocabularies={name: tuple(levels.split()) for name, levels in _CENSUS_LEVELS.items()},
)

_CREDIT_FEATURES = tuple(
    "RevolvingUtilizationOfUnsecuredLines age NumberOfTime30-59DaysPastDueNotWorse DebtRatio "
    "MonthlyIncome NumberOfOpenCreditLinesAndLoans NumberOfTimes90DaysLate "
    "NumberRealEstateLoansOrLines NumberOfTime60-89DaysPastDueNotWorse NumberOfDependents".split()
)

GIVE_ME_SOME_CREDIT = PublishedDataset(
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
    # A smaller rate: a few of its standardised values lie beyond 200.
    defaults=DatasetDefaults(batch_size=8, learning_rate=0.003, epochs=10, l_rr=15),
)


def cache_dir() -> Path:
    """Folder in which fetched datasets are cached."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "taciturn"


def _places(data_dir: Path | None) -> list[Path]:
    named = os.environ.get("TACITURN_DATA")
    given = [Path(data_dir)] if data_dir is not None else []
    return [*given, *([Path(named)] if named else []), cache_dir()]


def _find(source: PublishedDataset, data_dir: Path | None) -> Path | None:
    candidates = (place / file for place in _places(data_dir) for file in source.files)
    return next((path for path in candidates if path.is_file()), None)


def _verified(source: PublishedDataset, frame: pl.DataFrame, where: str) -> pl.DataFrame:
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


def _from_openml(source: PublishedDataset, data_dir: Path | None) -> pl.DataFrame:
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
        _cache_file(written(table, source.layout), cache_dir() / source.files[1])
    return table


def _fetch(openml: int) -> pl.DataFrame:
    from sklearn.datasets import fetch_openml

    with _socket_timeout(_TIMEOUT), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bunch = fetch_openml(
            data_id=openml, as_frame=True, parser="auto", cache=False, n_retries=1, delay=0.1
        )
    return as_frame(bunch.frame)


@contextmanager
def _socket_timeout(seconds: float) -> Iterator[None]:
    # scikit-learn passes no timeout on; the sockets' default is the only handle there is.
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _cache_file(table: pl.DataFrame, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    # Renamed into place, so that an interrupted write leaves no half file.
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        table.write_csv(partial)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
