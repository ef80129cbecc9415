"""``LabelTable``: Bob's labels, checked on entry and never shown.

Labels are 0 and 1, or numbers that their family can have; errors about them carry counts.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from taciturn.arrays import BoolArray, ByteLabels, FloatArray
from taciturn.data.frames import as_series, read_only
from taciturn.data.ids import RowIds, checked_indices, row_name
from taciturn.errors import (
    ColumnError,
    ConfigError,
    DataError,
    LabelValueError,
    MissingValueError,
    ShapeError,
)
from taciturn.families.base import UNCHANGED, Family, Response
from taciturn.families.registry import BINOMIAL, FAMILIES
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LabelTable:
    """Bob's labels, never shown: booleans, numbers that are exactly 0 or 1, or those of a family.

    ``exposure`` and ``weights`` are of other families than ``binomial``: how long or how much each
    row was observed, and how much it counts. ``response`` has the coordinates of scores.
    """

    ids: RowIds
    values: NDArray[Any]
    family: str = BINOMIAL
    exposure: FloatArray | None = None
    weights: FloatArray | None = None
    response: Response = UNCHANGED

    def __post_init__(self) -> None:
        series = as_series(self.values, name="labels", error=LabelValueError)
        if len(series) != len(self.ids):
            raise ShapeError(
                f"there are {len(series)} labels for {len(self.ids)} row ids",
                hint="give one label per row",
            )
        if not len(series):
            raise ShapeError("there are no labels", hint="pass at least one row")
        checked = _checked_labels(series, self.ids, self.kind)
        object.__setattr__(self, "values", read_only(checked))
        for name in ("exposure", "weights"):
            if getattr(self, name) is not None:
                given = as_series(getattr(self, name), name=name, error=ColumnError)
                object.__setattr__(self, name, read_only(checked_factor(given, self.ids, name)))

    @classmethod
    def from_data(
        cls,
        data: object,
        *,
        ids: object = None,
        family: str = BINOMIAL,
        exposure: object = None,
        weights: object = None,
    ) -> LabelTable:
        """Labels from a list, a 1-D array, or a pandas or polars series."""
        series: Any = as_series(data, name="labels", error=LabelValueError)
        beside: Any = exposure, weights
        return cls(RowIds.of_rows(ids, len(series)), series, family, *beside)

    @property
    def kind(self) -> Family:
        """The family of the labels."""
        return FAMILIES[self.family]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.ids)

    def take(self, indices: NDArray[np.integer], ids: RowIds | None = None) -> LabelTable:
        """The rows at these positions, in this order, under their own or other ids."""
        chosen = checked_indices(indices, self.rows)
        return self._moved(chosen, self.ids.take(chosen) if ids is None else ids)

    def permuted(self, entropy: Entropy) -> LabelTable:
        """The same labels, with exposure and weight, assigned to the rows at random."""
        return self._moved(entropy.permutation(self.rows), self.ids)

    def _moved(self, places: NDArray[np.integer], ids: RowIds) -> LabelTable:
        exposure, weights = (
            None if beside is None else beside[places] for beside in (self.exposure, self.weights)
        )
        values = self.values[places]
        return replace(self, ids=ids, values=values, exposure=exposure, weights=weights)

    def with_random_labels(self, entropy: Entropy, family: str | None = None) -> LabelTable:
        """Independent fair random labels for the same rows, of this family or another.

        They are the ``two_labels`` of the family.
        """
        bits = (entropy.words(self.rows) & np.uint64(1)).astype(np.int8)
        chosen = self.family if family is None else family
        return LabelTable(self.ids, bits + FAMILIES[chosen].two_labels[0], chosen)

    @property
    def upper(self) -> BoolArray:
        """Which rows have the label 1; of other families, one above the median.

        At least one is where labels differ: where none is above, those at the median are.
        """
        if self.kind.has_classes:
            return np.asarray(self.values == 1)
        middle = np.median(self.values)
        above: BoolArray = self.values > middle
        return above if above.any() else np.asarray(self.values >= middle)

    def standardised(self, *, intercept: bool) -> LabelTable:
        """The same labels, with coordinates of scores in which the best constant is 0."""
        if self.kind.has_classes:
            return self
        ones = np.ones(self.rows)
        exposure, weights = (
            ones if given is None else given for given in (self.exposure, self.weights)
        )
        values = np.asarray(self.values, dtype=np.float64)
        return replace(
            self, response=self.kind.response(values, exposure, weights, intercept=intercept)
        )

    def digest(self) -> str:
        """SHA-256 over row ids and labels, as hexadecimal text: as secret as the labels."""
        sha = hashlib.sha256(self.ids.digest().encode() + self.values.tobytes())
        for name in ("exposure", "weights"):
            if getattr(self, name) is not None:
                sha.update(name.encode() + getattr(self, name).tobytes())
        return sha.hexdigest()

    def require_classes(self) -> None:
        """Raise unless the labels are of two classes, and both occur."""
        if not self.kind.has_classes:
            raise ConfigError(
                f"weight of evidence counts labels of two classes, and these are of {self.family}",
                setting="family",
                hint=Hint("leave {family} out"),
            )
        self.require_variation()

    def rarest_class(self) -> int:
        """Number of labels of the rarer class; of other families, of all labels."""
        if not self.kind.has_classes:
            return self.rows
        ones = int(np.count_nonzero(self.values))
        return min(ones, self.rows - ones)

    def require_variation(self) -> None:
        """Raise unless labels differ; the error does not say which one occurs."""
        if self.values.min() == self.values.max():
            classes = self.kind.has_classes
            raise LabelValueError(
                f"all {self.rows} labels are the same",
                where="the label column",
                hint="a classifier needs rows of both classes: use more rows or another column"
                if classes
                else "there is nothing to predict: use more rows or another column",
            )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, LabelTable)
            and self.ids == other.ids
            and self.family == other.family
            and all(
                np.array_equal(getattr(self, name), getattr(other, name))
                for name in ("values", "exposure", "weights")
            )
        )

    def __repr__(self) -> str:
        return f"LabelTable({self.rows} rows, <hidden>)"


def _require_none(
    wrong: NDArray[np.bool_],
    problem: str,
    ids: RowIds,
    error: type[DataError],
    hint: str | Hint,
    setting: str = "",
) -> None:
    """Raise an error that counts the wrong rows and names the first, and never a value."""
    if wrong.any():
        raise error(
            problem.format(f"{int(wrong.sum())} of {len(wrong)}"),
            where=row_name(int(wrong.argmax()), ids),
            setting=setting,
            hint=hint,
        )


def _checked_labels(series: pl.Series, ids: RowIds, kind: Family) -> NDArray[Any]:
    """Labels that their family can have, without gaps."""
    series = series.fill_nan(None) if series.dtype.is_float() else series
    missing = "{} labels are missing"
    drop = "drop the rows without a label"
    _require_none(series.is_null().to_numpy(), missing, ids, MissingValueError, drop)
    if kind.has_classes:
        return _classes(series, ids)
    if not series.dtype.is_numeric():
        raise LabelValueError(
            f"the labels are {'text' if series.dtype == pl.String else series.dtype}, and those of "
            f"{kind.name} are numbers",
            setting="family",
            hint=Hint("name another label column, or use {family}", family=BINOMIAL),
        )
    values = series.cast(pl.Float64).to_numpy()
    # The family is asked about finite values only.
    finite = np.isfinite(values)
    wrong = ~kind.possible(values) if finite.all() else ~finite
    problem = f"{{}} labels are not {kind.valid}, and {kind.name} has no others"
    way_out = Hint(kind.remedy, family="gaussian")
    _require_none(wrong, problem, ids, LabelValueError, way_out, "family")
    return np.ascontiguousarray(values)


def _classes(series: pl.Series, ids: RowIds) -> ByteLabels:
    hint = "turn them into 0 and 1 (1 is the class to predict)"
    if not (series.dtype.is_numeric() or series.dtype == pl.Boolean):
        raise LabelValueError(f"the labels are {series.dtype}, not 0 and 1", hint=hint)
    values = series.to_numpy()
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        problem = f"{{}} labels are neither 0 nor 1 ({series.n_unique()} distinct values in all)"
        _require_none(wrong, problem, ids, LabelValueError, hint)
    return values.astype(np.int8)


def checked_factor(series: pl.Series, ids: RowIds, name: str) -> FloatArray:
    """Exposures or weights: finite numbers, above 0 or at least 0."""
    if len(series) != len(ids):
        raise ShapeError(
            f"{name} has {len(series)} rows, and there are {len(ids)} labels", setting=name
        )
    if not series.dtype.is_numeric():
        raise ColumnError(
            f"{name} is {series.dtype}, not numbers",
            setting=name,
            hint="name a column of numbers",
        )
    series = series.cast(pl.Float64).fill_nan(None)
    problem, complete = f"{name} is missing in {{}} rows", "complete these rows, or drop them"
    _require_none(series.is_null().to_numpy(), problem, ids, MissingValueError, complete, name)
    values = series.to_numpy()
    if name == "exposure":
        wrong, valid = values <= 0, "above 0"
        way_out = "a row that was not observed has no rate: drop it, or correct its exposure"
    else:
        wrong, valid = values < 0, "0 or more"
        way_out = "give such rows the weight 0, or drop them"
    problem = f"{name} is not {valid} in {{}} rows"
    _require_none(wrong | ~np.isfinite(values), problem, ids, ColumnError, way_out, name)
    if not values.any():
        raise ColumnError(
            "all weights are 0",
            setting=name,
            hint=Hint("name another column, or leave {weights} out"),
        )
    return np.ascontiguousarray(values)
