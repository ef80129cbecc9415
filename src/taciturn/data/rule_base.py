"""What the rules of columns have in common: bins, one-hot columns, checks and words."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from taciturn.arrays import FloatArray
from taciturn.data.column_parsing import Reading
from taciturn.data.ids import RowIds
from taciturn.data.number_formats import MARK_NAMES
from taciturn.errors import ConfigError

# The levels of what is grouped and of what is not there.
OTHER, MISSING = "(other)", "(missing)"


@dataclass(frozen=True, slots=True)
class Bin:
    """One bin, or level, of a column.

    ``output`` is the prepared column that marks it; None for the reference, which has none.
    ``share`` is that of the training rows; None where it was not counted.
    """

    label: str
    output: str | None
    share: float | None = None


class ColumnRule:
    """What a rule says about its column, of which a date may give several parts."""

    __slots__ = ()
    column: str
    reading: Reading

    @property
    def name(self) -> str:
        """Name of the column, or of the part of a date."""
        return self.reading.named(self.column)

    @property
    def bins(self) -> tuple[Bin, ...]:
        """Every level or interval, in order, the reference included; none of a number."""
        return ()


class OneHotRule(ColumnRule, ABC):
    """A rule that puts every row in a place, such as a level, with output values for each place."""

    __slots__ = ()

    @abstractmethod
    def places(self, series: pl.Series, ids: RowIds | None = None) -> NDArray[np.int64]:
        """Place of each row."""

    @abstractmethod
    def table(self) -> FloatArray:
        """Output values of each place: places by columns."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the output columns."""
        return tuple(bin_.output for bin_ in self.bins if bin_.output is not None)

    def arrays(self, series: pl.Series, ids: RowIds | None = None) -> Iterator[FloatArray]:
        """The output columns, one after the other."""
        return self.columns_of(self.places(series, ids))

    def columns_of(self, places: NDArray[np.int64]) -> Iterator[FloatArray]:
        """The output columns of rows at these places."""
        for column in self.table().T:
            filled = np.flatnonzero(column)
            # Most columns mark one place: to compare is several times faster than to look up.
            one = len(filled) == 1
            yield (places == filled[0]) * column[filled[0]] if one else column[places]


def clipped(values: FloatArray, clip: float | None) -> FloatArray:
    """Values between -clip and clip; all of them without one."""
    return values if clip is None else np.clip(values, -clip, clip)


def described(name: str, *steps: str | None) -> str:
    """One line about a column: the steps of its preparation that there are."""
    return f"{name}: " + "; ".join(filter(None, steps))


def kind_step(reading: Reading) -> str:
    """How the raw values are read."""
    if reading.kind == "days":
        written = f" written as {' or '.join(reading.formats)}" if reading.formats else ""
        return f"date{written}, as days since 1970-01-01"
    if reading.kind != "number":
        return f"{reading.kind} of a date"
    mark = reading.decimal
    return "numeric" if mark is None else f"numeric, with a decimal {MARK_NAMES[mark]}"


def gap_step(impute: float | None) -> str:
    """What becomes of a missing value without a column or bin of its own."""
    return "missing is refused" if impute is None else f"missing set to {impute:g}"


def clip_step(clip: float | None) -> str | None:
    """The bound of the output, where there is one."""
    return None if clip is None else f"clipped to ±{clip:g}"


def missing_step(missing: bool) -> str | None:
    """The column of its own for missing values, where there is one."""
    return "one column more says where it is missing" if missing else None


def require(sound: object, column: str, problem: str) -> None:
    """Refuse the rule of a column, which a file may hold, unless it is sound."""
    if not sound:
        raise ConfigError(problem, where=f"rule of column {column!r}", hint="fit it again")


def require_finite(column: str, name: str, *numbers: float | None) -> None:
    """Refuse numbers of a rule that are not finite."""
    finite = all(number is None or math.isfinite(number) for number in numbers)
    require(finite, column, f"{name} must be finite")


def check_clip(clip: float | None, where: str) -> None:
    """Refuse a clip that is not a positive number."""
    if clip is not None and not 0 < clip < math.inf:
        raise ConfigError(
            f"clip is {clip}", where=where, setting="clip", hint="use a positive number, or None"
        )
