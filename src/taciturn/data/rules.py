"""Rules: what becomes of one source column.

With ``c`` the centre and ``s`` the scale:

- numeric: missing values take ``impute``; the value is held between ``lower`` and ``upper``, goes
  through the transform, and becomes ``(x - c) / s``, clipped to ±``clip``. Where the rule says so,
  a second column ``column=(missing)`` is 1 where the value was missing.
- categorical: one output column ``column=level`` per level but the dropped one, 1 where the row has
  that level. An unknown level counts as the level ``unknown`` and a missing one as ``missing``;
  where the rule names none for it, the row is the average of the training rows in each column,
  which is none of the levels. Then ``(x - c) / s``, clipped.
- binned: one output column per interval of numbers but the first, 1 where the value lies in it. An
  interval holds its lower end and not its upper one. A missing value may be a bin of its own. A bin
  that no training row was in has a column of zeros, and a new row in it is the average of the
  training rows in the others.

``s = 0`` is the mark of a column that says nothing on the training rows: its output is zero
whatever the input, in training and ever after.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from taciturn.arrays import FloatArray
from taciturn.data.column_parsing import NUMBER, Reading, missing_error
from taciturn.data.ids import RowIds
from taciturn.data.recognition import MARK_NAMES
from taciturn.data.transforms import Transform
from taciturn.errors import ConfigError, nearest

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


@dataclass(frozen=True, slots=True)
class NumericRule:
    """Rule of a numeric column.

    ``impute`` None refuses missing values. ``scale`` 0 makes the output zero whatever the input.
    ``missing`` adds an indicator column of missing values.
    """

    column: str
    impute: float | None = None
    center: float = 0.0
    scale: float = 1.0
    clip: float | None = None
    lower: float | None = None
    upper: float | None = None
    transform: Transform | None = None
    missing: bool = False
    reading: Reading = NUMBER

    def __post_init__(self) -> None:
        where = f"rule of column {self.column!r}"
        for name in ("impute", "lower", "upper"):
            if (bound := getattr(self, name)) is not None:
                _require_finite(bound, f"{where}, {name}")
        _require_finite(self.center, f"{where}, center")
        _check_scale(self.scale, f"{where}, scale")
        check_clip(self.clip, f"{where}, clip")
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise ConfigError(
                "the lower bound exceeds the upper bound", where=where, hint="fit it again"
            )
        if self.missing and self.impute is None:
            raise ConfigError("missing values are marked and refused", where=where, hint="impute")

    @property
    def name(self) -> str:
        """Name of the column, or of the part of a date."""
        return self.reading.named(self.column)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the output columns."""
        return (self.name, f"{self.name}={MISSING}") if self.missing else (self.name,)

    @property
    def bins(self) -> tuple[Bin, ...]:
        """Empty: a number has no bins."""
        return ()

    def describe(self) -> str:
        """One-line description of the rule."""
        if self.scale == 0:
            steps = ["zeros (constant or empty on the training rows)"]
            return f"{self.name}: " + "; ".join(steps + _missing_step(self.missing))
        refused = "missing is refused"
        steps = [_kind(self.reading)]
        steps.append(refused if self.impute is None else f"missing set to {self.impute:g}")
        if self.lower is not None and self.upper is not None:
            steps.append(f"winsorised to {self.lower:g} … {self.upper:g}")
        if self.transform is not None:
            steps.append(self.transform.describe())
        plain = (self.center, self.scale) == (0.0, 1.0)
        shift = f"minus {self.center:g}, divided by {self.scale:g}"
        steps.append("not scaled" if plain else shift)
        return f"{self.name}: " + "; ".join(
            steps + _clip_step(self.clip) + _missing_step(self.missing)
        )

    def arrays(self, series: pl.Series, ids: RowIds | None = None) -> Iterator[FloatArray]:
        """The output column, and the indicator of missing values where the rule has one."""
        if self.scale == 0:
            yield np.zeros(len(series))
            if self.missing:
                yield _marked(np.isnan(self.reading.numbers(series, ids)), self.clip)
            return
        values = self.reading.numbers(series, ids)
        missing = np.isnan(values)
        if missing.any():
            if self.impute is None:
                raise missing_error(series.name, missing, ids)
            values = np.where(missing, self.impute, values)
        yield _clipped((self.shaped(values) - self.center) / self.scale, self.clip)
        if self.missing:
            yield _marked(missing, self.clip)

    def shaped(self, values: FloatArray) -> FloatArray:
        """Values before scaling: held between the bounds, and transformed."""
        if self.lower is not None or self.upper is not None:
            values = np.clip(values, self.lower, self.upper)
        return values if self.transform is None else self.transform.apply(values)


@dataclass(frozen=True, slots=True)
class CategoricalRule:
    """Rule of a column of categories.

    ``dropped`` is the level that gets no column. ``centers`` and ``scales`` have one entry per
    output column, and are empty where nothing is scaled. ``average`` is what a row without a level
    has in each output column, before scaling; empty for 0.
    """

    column: str
    levels: tuple[str, ...]
    dropped: str | None = None
    centers: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    clip: float | None = None
    unknown: str | None = None
    missing: str | None = None
    average: tuple[float, ...] = ()
    reading: Reading = NUMBER

    def __post_init__(self) -> None:
        where = f"rule of column {self.column!r}"
        if len({*self._spelled()}) != len(self.levels):
            raise ConfigError("a level is repeated", where=where, hint="name every level once")
        for name in ("dropped", "unknown", "missing"):
            if (level := getattr(self, name)) is not None and level not in self.levels:
                raise ConfigError(
                    f"the {name} level is not a level", where=where, hint="name a level"
                )
        for name in ("centers", "scales", "average"):
            given = getattr(self, name)
            if given and len(given) != len(self.kept):
                raise ConfigError(
                    f"there are {len(given)} {name} for {len(self.kept)} output columns",
                    where=where,
                    hint="give one per output column, or none",
                )
        for number in (*self.centers, *self.average):
            _require_finite(number, f"{where}, centers and average")
        for scale in self.scales:
            _check_scale(scale, f"{where}, scales")
        check_clip(self.clip, f"{where}, clip")

    @property
    def name(self) -> str:
        """Name of the column, or of the part of a date."""
        return self.reading.named(self.column)

    @property
    def kept(self) -> tuple[str, ...]:
        """Levels with a column."""
        return tuple(level for level in self.levels if level != self.dropped)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the output columns."""
        return tuple(f"{self.name}={level}" for level in self.kept)

    @property
    def bins(self) -> tuple[Bin, ...]:
        """Every level, in order, the reference included."""
        return tuple(
            Bin(
                f"{self.name} missing" if level == MISSING else f"{self.name} = {level}",
                None if level == self.dropped else f"{self.name}={level}",
            )
            for level in self.levels
        )

    def describe(self) -> str:
        """One-line description of the rule."""
        count = len(self.kept)
        steps = [f"one-hot, {count} column{'' if count == 1 else 's'}"]
        if self.dropped is not None:
            steps.append(f"level {self.dropped} gets no column")
        steps += self._absent()
        scaled = bool(self.centers or self.scales)
        steps.append("each centred and scaled" if scaled else "0 and 1, not scaled")
        if zeros := sum(scale == 0 for scale in self.scales):
            steps.append(f"{zeros} of them zeros (constant on the training rows)")
        return f"{self.name}: " + "; ".join(steps + _clip_step(self.clip))

    def _absent(self) -> list[str]:
        none = "is the average of the training rows" if self.average else "gets no column"
        if self.unknown is None and self.missing is None:
            return [f"an unknown or missing level {none}"]
        pairs = (("an unknown or rare", self.unknown), ("a missing", self.missing))
        return [
            f"{which} level {none if level is None else f'is {level}'}" for which, level in pairs
        ]

    def arrays(self, series: pl.Series, ids: RowIds | None = None) -> Iterator[FloatArray]:
        """The output columns, one after the other."""
        codes = self._codes(series)
        places = {level: place for place, level in enumerate(self.levels)}
        for j, level in enumerate(self.kept):
            # One entry per level, and a last one for a row that has none.
            indicator = np.zeros(len(self.levels) + 1)
            indicator[places[level]] = 1.0
            if self.average:
                indicator[-1] = self.average[j]
            yield self._scaled(indicator, j)[codes]

    def _scaled(self, indicator: FloatArray, j: int) -> FloatArray:
        center = self.centers[j] if self.centers else 0.0
        scale = self.scales[j] if self.scales else 1.0
        if scale == 0:
            return np.zeros_like(indicator)
        return _clipped((indicator - center) / scale, self.clip)

    def _codes(self, series: pl.Series) -> NDArray[np.int64]:
        text = self.reading.levels(series)
        if not self.levels:
            return np.zeros(len(series), dtype=np.int64)
        known = text.cast(pl.Enum(self._spelled()), strict=False).to_physical().cast(pl.Int64)
        codes: NDArray[np.int64] = known.fill_null(self._place(self.unknown)).to_numpy()
        if self.missing != self.unknown and text.null_count():
            codes = np.where(text.is_null().to_numpy(), self._place(self.missing), codes)
        return codes

    def _spelled(self) -> list[str]:
        """Levels as rows are compared with them."""
        if self.reading.spelling == "exact":
            return [*self.levels]
        return self.reading.spelled(pl.Series(self.levels, dtype=pl.String)).to_list()

    def _place(self, level: str | None) -> int:
        return len(self.levels) if level is None else self.levels.index(level)


@dataclass(frozen=True, slots=True)
class BinnedRule:
    """Rule of a numeric column that is cut into intervals.

    Bins are counted from 0: the intervals from low to high, then that of missing values, where
    there is one. Each has an output column but the reference, which is the first that a training
    row was in.

    An edge belongs to the interval that begins there. ``impute`` None refuses missing values
    without a bin. ``shares`` are those of the training rows in each bin; empty where they were not
    counted.
    """

    column: str
    edges: tuple[float, ...]
    impute: float | None = None
    missing: bool = False
    clip: float | None = None
    reading: Reading = NUMBER
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        where = f"rule of column {self.column!r}"
        rising = all(low < high for low, high in pairwise(self.edges))
        if not rising or not all(map(math.isfinite, self.edges)):
            raise ConfigError(
                "the edges are not in ascending order", where=where, hint="fit it again"
            )
        if not self.edges:
            raise ConfigError("there are no edges", where=where, hint="fit it again")
        sound = all(0 <= share <= 1 for share in self.shares)
        if self.shares and not (sound and len(self.shares) == self.count):
            raise ConfigError("the shares do not fit the bins", where=where, hint="fit it again")
        if self.impute is not None:
            _require_finite(self.impute, f"{where}, impute")
        check_clip(self.clip, f"{where}, clip")

    @property
    def name(self) -> str:
        """Name of the column, or of the part of a date."""
        return self.reading.named(self.column)

    @property
    def count(self) -> int:
        """Number of bins."""
        return len(self.edges) + 1 + self.missing

    @property
    def reference(self) -> int:
        """The bin without a column: the first that a training row was in."""
        seen = (place for place, share in enumerate(self.shares) if share)
        return next(seen, 0)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the output columns."""
        words = [*self._words()]
        del words[self.reference]
        return tuple(f"{self.name}={word}" for word in words)

    def _words(self) -> Iterator[str]:
        edges = [_number(edge) for edge in self.edges]
        yield f"below {edges[0]}"
        yield from (f"{low} to {high}" for low, high in pairwise(edges))
        yield f"{edges[-1]} or more"
        if self.missing:
            yield MISSING

    @property
    def bins(self) -> tuple[Bin, ...]:
        """Every bin, in order, the reference included."""
        names: list[str | None] = [*self.outputs]
        names.insert(self.reference, None)
        return tuple(
            Bin(label, output, self.shares[place] if self.shares else None)
            for place, (label, output) in enumerate(zip(self._labels(), names, strict=True))
        )

    def _labels(self) -> Iterator[str]:
        name, edges = self.name, _short_numbers(self.edges)
        yield f"{name} < {edges[0]}"
        yield from (f"{low} ≤ {name} < {high}" for low, high in pairwise(edges))
        yield f"{edges[-1]} ≤ {name}"
        if self.missing:
            yield f"{name} missing"

    def describe(self) -> str:
        """One-line description of the rule."""
        steps = [f"{_kind(self.reading)} in {len(self.edges) + 1} intervals, one-hot"]
        steps.append(f"{[*self._words()][self.reference]} gets no column")
        if not self.missing:
            refused = self.impute is None
            steps.append("missing is refused" if refused else f"missing set to {self.impute:g}")
        if unseen := [bin_.label for bin_ in self.bins if bin_.share == 0]:
            steps.append(f"no training row in {', '.join(unseen)}: zeros")
        return f"{self.name}: " + "; ".join(
            steps + _clip_step(self.clip) + _missing_step(self.missing)
        )

    def places(self, series: pl.Series, ids: RowIds | None = None) -> NDArray[np.int64]:
        """Bin of each row."""
        values = self.reading.numbers(series, ids)
        missing = np.isnan(values)
        if missing.any() and not self.missing:
            if self.impute is None:
                raise missing_error(series.name, missing, ids)
            values = np.where(missing, self.impute, values)
        places = np.searchsorted(self.edges, values, side="right").astype(np.int64)
        return np.where(missing, self.count - 1, places) if self.missing else places

    def table(self) -> FloatArray:
        """Output values of each bin: bins by columns."""
        values = np.eye(self.count)
        if self.shares:
            shares = np.array(self.shares)
            values[shares == 0] = shares
        return _clipped(np.delete(values, self.reference, axis=1), self.clip)

    def arrays(self, series: pl.Series, ids: RowIds | None = None) -> Iterator[FloatArray]:
        """The output columns, one after the other."""
        places = self.places(series, ids)
        for column in self.table().T:
            filled = np.flatnonzero(column)
            # Most columns mark one bin: to compare is several times faster than to look up.
            one = len(filled) == 1
            yield (places == filled[0]) * column[filled[0]] if one else column[places]


Rule: TypeAlias = NumericRule | CategoricalRule | BinnedRule


def _marked(mask: NDArray[np.bool_], clip: float | None) -> FloatArray:
    return _clipped(mask.astype(np.float64), clip)


def _clipped(values: FloatArray, clip: float | None) -> FloatArray:
    return values if clip is None else np.clip(values, -clip, clip)


def _number(value: float) -> str:
    """Shortest exact text of a number, so that two of them never look the same."""
    return repr(value).removesuffix(".0")


def _short_numbers(values: tuple[float, ...]) -> list[str]:
    """Rounded texts of numbers, with enough digits that no two look the same.

    >>> _short_numbers((54.379999999999995, 59.0, 1234567.0))
    ['54.38', '59', '1234567']
    """
    for digits in (6, 9, 12):
        texts = [f"{value:.{digits}g}" for value in values]
        if len({*texts}) == len(texts) and not any("e" in text for text in texts):
            return texts
    return [_number(value) for value in values]


def _kind(reading: Reading) -> str:
    if reading.kind == "days":
        written = f" written as {' or '.join(reading.formats)}" if reading.formats else ""
        return f"date{written}, as days since 1970-01-01"
    if reading.kind != "number":
        return f"{reading.kind} of a date"
    if reading.decimal is None:
        return "numeric"
    return f"numeric, with a decimal {MARK_NAMES[reading.decimal]}"


def _clip_step(clip: float | None) -> list[str]:
    return [] if clip is None else [f"clipped to ±{clip:g}"]


def _missing_step(missing: bool) -> list[str]:
    return ["one column more says where it is missing"] if missing else []


def _require_finite(value: float, where: str) -> None:
    if not math.isfinite(value):
        raise ConfigError("a number must be finite", where=where, hint="give a finite number")


def _check_scale(scale: float, where: str) -> None:
    if not (math.isfinite(scale) and scale >= 0):
        raise ConfigError("a scale must be finite, 0 or more", where=where, hint="fit it again")


def check_clip(clip: float | None, where: str) -> None:
    """Refuse a clip that is not a positive number."""
    if clip is not None and not (math.isfinite(clip) and clip > 0):
        raise ConfigError(
            f"clip is {clip}", where=where, setting="clip", hint="use a positive number, or None"
        )


_RULES: dict[str, type[Rule]] = {
    "numeric": NumericRule,
    "categorical": CategoricalRule,
    "binned": BinnedRule,
}


def rule_to_json(rule: Rule) -> dict[str, Any]:
    """A rule as plain data."""
    kind = next(name for name, cls in _RULES.items() if cls is type(rule))
    return {"kind": kind, **_adapter(kind).dump_python(rule, mode="json")}


def rule_from_json(data: object, where: str) -> Rule:
    """Read the rule that ``rule_to_json`` wrote."""
    kind = str(data.get("kind")) if isinstance(data, dict) else ""
    if kind not in _RULES:
        raise ConfigError("a rule has no known kind", where=where, hint=nearest(kind, _RULES))
    values = dict(record_of(data, ("kind", *_names(_RULES[kind])), where))
    del values["kind"]
    for name, part in (("reading", Reading), ("transform", Transform)):
        if values.get(name) is not None:
            record_of(values[name], _names(part), f"{where}, {name}")
    try:
        # As JSON, in which a list may be a tuple, and nothing else is taken for another type.
        return _adapter(kind).validate_json(json.dumps(values), strict=True)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        place = ", ".join(str(part) for part in (where, *first["loc"]))
        raise ConfigError(first["msg"], where=place, hint="write the file again") from None


@cache
def _adapter(kind: str) -> TypeAdapter[Rule]:
    return TypeAdapter(_RULES[kind])


def _names(kind: Any) -> tuple[str, ...]:  # noqa: ANN401 - any dataclass
    return tuple(entry.name for entry in fields(kind))


def record_of(data: object, keys: tuple[str, ...], where: str) -> dict[str, Any]:
    """The value, if it is an object with exactly these keys; else ``ConfigError``."""
    if not isinstance(data, dict):
        raise ConfigError(
            f"{type(data).__name__} where an object is expected", where=where, hint="see to_json"
        )
    for key in data:
        if key not in keys:
            raise ConfigError(f"unknown key {key!r}", where=where, hint=nearest(str(key), keys))
    for key in keys:
        if key not in data:
            raise ConfigError(f"key {key!r} is missing", where=where, hint="write the file again")
    return data


def list_of(value: object, where: str) -> list[object]:
    """The value, if it is a list; else ``ConfigError``."""
    if not isinstance(value, list):
        raise ConfigError("expected a list", where=where, hint="write the file again")
    return value


def text_of(value: object, where: str) -> str:
    """The value, if it is a text; else ``ConfigError``."""
    if not isinstance(value, str):
        raise ConfigError("expected text", where=where, hint="write the file again")
    return value
