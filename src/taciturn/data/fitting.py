"""Fitting: from one raw column of the training rows to its rules and remarks.

Nothing here sees a label. The standard deviation is the population's (divided by n).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, TypeAlias, TypeVar, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from taciturn.arrays import FloatArray
from taciturn.data.column_parsing import (
    NUMBER,
    PARTS,
    TEXT,
    DatePart,
    Reading,
    as_levels,
    dates,
    kind_error,
    missing_error,
    without_blanks,
    words_error,
)
from taciturn.data.ids import RowIds
from taciturn.data.recognition import (
    ISO,
    MARK_NAMES,
    NO,
    YES,
    Doubt,
    Mark,
    NumberFormat,
    are_codes,
    compact_dates,
    date_formats,
    is_yes_no,
    look_of,
    looks_like_dates,
    number_format,
    parsed_dates,
    parsed_numbers,
)
from taciturn.data.rules import (
    MISSING,
    OTHER,
    BinnedRule,
    CategoricalRule,
    NumericRule,
    Rule,
    check_clip,
)
from taciturn.data.transforms import TransformKind, fit_transform, winsor_bounds
from taciturn.errors import ColumnError, ConfigError, InfiniteValueError, nearest, spelled
from taciturn.setting_syntax import Hint

Impute: TypeAlias = Literal["median", "mean", "bin", "none"]
Scale: TypeAlias = Literal["standard", "none"]
ColumnType: TypeAlias = Literal["number", "category", "date", "text"]
TransformChoice: TypeAlias = Literal["none"] | TransformKind
Bins: TypeAlias = int | tuple[float, ...]
"""So many intervals of about equally many rows; or where they begin, but for the first."""

# What a choice by column says of every column that it does not name.
EVERY = "*"
# The choices that may be made column by column.
BY_COLUMN = ("type", "transform", "bins", "winsorise", "decimal", "date_format")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PrepareSettings:
    """Preparation settings for columns that were not inspected by hand.

    A mapping is by column; its key ``*`` stands for every column that it does not name. With "none"
    for ``impute`` a missing number is an error; with "bin" it is a bin in columns that are cut into
    bins, and the median elsewhere. ``clip`` bounds the absolute value of any output after scaling.
    ``winsorise`` is the share of rows at either end whose numbers become the next one inwards. The
    rarest levels beyond ``max_levels``, and those of a smaller share of the rows than
    ``min_frequency``, are merged into one. ``normalise_categories`` compares levels without case
    and surrounding blanks.
    """

    impute: Impute = "median"
    scale: Scale = "standard"
    clip: float | None = None
    scale_categories: bool = False
    drop_first: bool = True
    max_levels: int = 100
    winsorise: Mapping[str, float] = field(default_factory=dict)
    missing_indicator: bool = False
    min_frequency: float = 0.0
    keep: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    type: Mapping[str, ColumnType] = field(default_factory=dict)
    transform: Mapping[str, TransformChoice] = field(default_factory=dict)
    bins: Mapping[str, Bins] = field(default_factory=dict)
    decimal: Mapping[str, Mark] = field(default_factory=dict)
    normalise_categories: bool = False
    date_format: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    date_parts: tuple[DatePart, ...] = ()

    def __post_init__(self) -> None:
        _one_of("impute", self.impute, get_args(Impute))
        _one_of("scale", self.scale, get_args(Scale))
        check_clip(self.clip, "clip")
        if self.max_levels < 1:
            raise ConfigError(
                f"max_levels is {self.max_levels}", setting="max_levels", hint="use 1 or more"
            )
        if not 0 <= self.min_frequency < 1:
            raise _share_error("min_frequency", self.min_frequency, 1)
        for share in self.winsorise.values():
            if not 0 <= share < 0.5:
                raise _share_error("winsorise", share, 0.5)
        for kind in self.type.values():
            _one_of("type", kind, get_args(ColumnType))
        for transform in self.transform.values():
            _one_of("transform", transform, ("none", *get_args(TransformKind)))
        for bins in self.bins.values():
            _check_bins(bins)
        for part in self.date_parts:
            _one_of("date_parts", part, PARTS)

    def named(self) -> Iterator[tuple[str, str]]:
        """Every column that a setting names, with that setting."""
        for setting in ("keep", "drop", *BY_COLUMN):
            yield from ((name, setting) for name in getattr(self, setting) or () if name != EVERY)


def of_column(choices: Mapping[str, T], column: str) -> T | None:
    """Value of a by-column setting for one column.

    >>> of_column({"*": 5, "age": 10}, "age"), of_column({"*": 5}, "age"), of_column({}, "age")
    (10, 5, None)
    """
    return choices.get(column, choices.get(EVERY))


def _check_bins(bins: Bins) -> None:
    if isinstance(bins, int):
        if bins < 0 or bins == 1:
            raise ConfigError(
                f"bins is {bins}", setting="bins", hint="use 2 or more, or 0 for none"
            )
        return
    rising = all(low < high for low, high in pairwise(bins))
    if not bins or not rising or not all(map(math.isfinite, bins)):
        raise ConfigError(
            f"the edges of bins are {list(bins)}",
            setting="bins",
            hint="name one or more finite numbers, each larger than the one before",
        )


def _share_error(name: str, value: float, below: float) -> ConfigError:
    return ConfigError(
        f"{name} is {value}", setting=name, hint=f"use a share from 0 to below {below:g}"
    )


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(f"{name} is {value!r}", setting=name, hint=nearest(str(value), known))


# Text is free text where more than this share of the values is distinct, and categories otherwise.
_FREE_SHARE, _FREE_LEVELS = 0.5, 20
# Outliers dominate a column whose standard deviation is this many times that of its other rows.
_RULED = 3.0
_WIDE = 10.0
# The interquartile range of a normal column, in standard deviations.
_NORMAL_IQR = 1.349
_LEVELS: dict[DatePart, tuple[str, ...]] = {
    "month": tuple(str(month) for month in range(1, 13)),
    "weekday": tuple(str(day) for day in range(1, 8)),
}


@dataclass(frozen=True, slots=True)
class Fitted:
    """Rules fitted for one column, perhaps none, and remarks."""

    rules: tuple[Rule, ...]
    notes: tuple[str, ...] = ()


def fit_column(
    series: pl.Series,
    settings: PrepareSettings,
    vocabulary: tuple[str, ...] | None = None,
    ids: RowIds | None = None,
    usual_mark: Callable[[], Mark | None] = lambda: None,
) -> Fitted:
    """Fit one column on its training rows, with a fixed ``vocabulary`` of levels or its own.

    ``usual_mark`` is asked for the decimal mark of other columns, where this one leaves it open.
    """
    name = series.name
    if vocabulary is not None:
        return _fixed_levels(series, settings, vocabulary)
    if of_column(settings.type, name) == "text":
        return Fitted((), (f"column {name} is left out: its type is text",))
    if _is_empty(series):
        edges = of_column(settings.bins, name)
        if isinstance(edges, tuple):
            return _given_edges(NumericRule(name, 0.0, clip=settings.clip), series, edges, settings)
        note = f"column {name} is entirely missing on the training rows: ignored"
        return Fitted((NumericRule(name, impute=0.0, scale=0.0, clip=settings.clip),), (note,))
    taken = _recognised(series, settings, ids, usual_mark)
    if taken.kind == "number":
        fitted = _fit_numeric(series, settings, ids, taken.reading)
    elif taken.kind == "date":
        fitted = _fit_date(series, settings, ids, taken.reading)
    else:
        fitted = _fit_text(series, settings, taken)
    return replace(fitted, notes=(*taken.notes, *fitted.notes))


def _fit_text(series: pl.Series, settings: PrepareSettings, taken: _Taken) -> Fitted:
    name = series.name
    for setting in ("transform", "bins", "winsorise"):
        if name in getattr(settings, setting):
            raise ColumnError(
                f"column {name!r} holds categories, and {setting} is for numbers",
                setting=setting,
                hint=Hint("leave it out there, or say {type}", type={name: "number"}),
            )
    left_out = of_column(settings.type, name) is None and _is_free_text(series, settings)
    if taken.doubt is not None:
        fate = "left out" if left_out else "taken as categories"
        fitted = Fitted(()) if left_out else _fit_categories(series, settings)
        return replace(fitted, notes=(_doubtful(name, taken.doubt, fate), *fitted.notes))
    return _free_text(series) if left_out else _fit_categories(series, settings)


def _is_empty(series: pl.Series) -> bool:
    if series.null_count() == len(series):
        return True
    return series.dtype.is_float() and series.is_nan().fill_null(True).all()


# --- recognition ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Taken:
    """What a column is taken for, and why it is not what it looks like."""

    kind: ColumnType
    reading: Reading = NUMBER
    notes: tuple[str, ...] = ()
    doubt: Doubt | None = None


def usual_decimal_mark(columns: Iterable[pl.Series]) -> Mark | None:
    """Decimal mark of the columns that leave no choice; None where there are none, or both."""
    marks = set[Mark]()
    for series in columns:
        if series.dtype in TEXT:
            form = number_format(series.cast(pl.String).drop_nulls())
            if form is not None and form.certain and form.decimal != "either":
                marks.add(form.decimal)
    return marks.pop() if len(marks) == 1 else None


def _recognised(
    series: pl.Series,
    settings: PrepareSettings,
    ids: RowIds | None,
    usual_mark: Callable[[], Mark | None],
) -> _Taken:
    name, kind = series.name, series.dtype
    wanted = of_column(settings.type, name)
    if wanted is None and name in settings.date_format:
        wanted = "date"
    if wanted == "date":
        return _as_date(series, settings, ids)
    if wanted == "category":
        return _Taken("category")
    if wanted is None and kind.is_integer() and compact_dates(series):
        return _compact(name)
    if kind.is_numeric() or kind == pl.Boolean:
        return _Taken("number")
    if kind == pl.Date or isinstance(kind, pl.Datetime):
        return _Taken("date", Reading("days"))
    if kind not in TEXT:
        raise kind_error(series)
    text = without_blanks(series.cast(pl.String))
    present = text.drop_nulls()
    if wanted is None:
        recognised = _text_dates(series, text, present, settings, ids)
        if recognised is not None:
            return recognised
    return _text_numbers(series, text, present, settings, ids, usual_mark)


def _as_date(series: pl.Series, settings: PrepareSettings, ids: RowIds | None) -> _Taken:
    """A column that is said to have dates."""
    formats = of_column(settings.date_format, series.name)
    if formats is not None or not (series.dtype in TEXT or series.dtype.is_integer()):
        return _Taken("date", Reading("days", formats or ()))
    if series.dtype.is_integer() and compact_dates(series):
        return _compact(series.name)
    form = date_formats(without_blanks(as_levels(series)).drop_nulls())
    if form is None or form.words.any():
        # It says which values are no dates, and where the first of them is.
        dates(series, () if form is None else form.formats, ids)
        return _Taken("date", Reading("days"))
    if form.doubt is not None:
        raise ColumnError(
            f"column {series.name!r} has dates in which {form.doubt.reason}",
            setting="date_format",
            hint=Hint(
                "say how they are written: {date_format}",
                date_format={series.name: str(form.doubt.choices[0][1])},
            ),
        )
    return _recognised_dates(series.name, form.formats)


def _text_dates(
    series: pl.Series,
    text: pl.Series,
    present: pl.Series,
    settings: PrepareSettings,
    ids: RowIds | None,
) -> _Taken | None:
    if looks_like_dates(text):
        return _Taken("date", Reading("days"))
    given = of_column(settings.date_format, series.name)
    if given and not parsed_dates(present, given).null_count():
        return _Taken("date", Reading("days", given))
    form = date_formats(present)
    if form is None:
        return None
    if form.words.any():
        # Refused with the place of the first value that is no date.
        dates(series, form.formats, ids)
    if form.doubt is not None:
        return _Taken("category", doubt=form.doubt)
    return _recognised_dates(series.name, form.formats)


def _recognised_dates(name: str, formats: tuple[str, ...]) -> _Taken:
    if not formats:
        return _Taken("date", Reading("days"))
    note = f"column {name}: dates written as {' or '.join(formats)}"
    # ISO 8601 has one meaning beside any of them.
    return _Taken("date", Reading("days", tuple(dict.fromkeys((*formats, ISO)))), (note,))


def _compact(name: str) -> _Taken:
    way = spelled(Hint("{type}", type={name: "number"}))
    note = f"column {name}: dates written as %Y%m%d ({way} takes them as numbers)"
    return _Taken("date", Reading("days", ("%Y%m%d",)), (note,))


def _text_numbers(
    series: pl.Series,
    text: pl.Series,
    present: pl.Series,
    settings: PrepareSettings,
    ids: RowIds | None,
    usual_mark: Callable[[], Mark | None],
) -> _Taken:
    name, given = series.name, settings.decimal.get(series.name)
    forced = given is not None or of_column(settings.type, name) == "number"
    usual = settings.decimal.get(EVERY)
    form = number_format(present, given, usual)
    if form is not None and form.unclear and (usual := usual_mark()) is not None:
        form = replace(number_format(present, given, usual) or form, unclear=form.unclear)
    if form is None:
        return _Taken("number" if forced else "category")
    if not forced:
        if are_codes(present):
            return _Taken("category")
        few = present.n_unique() <= _FREE_LEVELS
        if form.words.any() and (few or form.words.sum() * 2 > len(present)):
            return _Taken("category", doubt=form.doubt)
        if form.doubt is not None:
            return _Taken("category", doubt=form.doubt)
    if form.words.any():
        places = text.is_not_null().arg_true().gather(form.words.arg_true())
        words = pl.repeat(False, len(text), eager=True).scatter(places, True)
        raise words_error(series, words, ids, given)
    plain = form.decimal == "." and not present.cast(pl.Float64, strict=False).null_count()
    notes = () if plain and not form.unclear else (_numbers_note(name, form, usual),)
    return _Taken("number", NUMBER if plain else Reading(decimal=form.decimal), notes)


_UNIT_NAMES = {"%": "percentages", "": "numbers"}


def _numbers_note(name: str, form: NumberFormat, usual: Mark | None) -> str:
    """What was read, with an example; and the setting where it could have been read otherwise."""
    shown = _value_of(form.unclear or form.example, form)
    kind = _UNIT_NAMES.get(form.unit, "amounts of money")
    way = ""
    if form.unclear and usual is None:
        other = "," if form.decimal == "." else "."
        way = f" ({spelled(Hint('{decimal}', decimal={name: other}))} if that is wrong)"
    return (
        f"column {name}: {kind} with a decimal {MARK_NAMES[form.decimal]}, "
        f"{form.unclear or form.example!r} is {shown}{way}"
    )


def _value_of(text: str, form: NumberFormat) -> str:
    return f"{parsed_numbers(pl.Series([text]), form.decimal)[0]:.10g}"


def _doubtful(name: str, doubt: Doubt, fate: str) -> str:
    ways = " or ".join(
        spelled(Hint(f"{{{setting}}}", **{setting: {name: value}}))
        for setting, value in doubt.choices
    )
    reason = f", but {doubt.reason}" if doubt.reason else ""
    verb = "read" if len(doubt.choices) == 1 else "decide"
    return (
        f"column {name} looks like {doubt.look} (such as {doubt.example!r}){reason}: {fate} "
        f"({ways} {verb}s it)"
    )


def _is_free_text(series: pl.Series, settings: PrepareSettings) -> bool:
    levels = _keys(series, settings).drop_nulls().n_unique()
    return levels > _FREE_LEVELS and levels > _FREE_SHARE * series.count()


def _free_text(series: pl.Series) -> Fitted:
    name, levels = series.name, series.drop_nulls().n_unique()
    look = look_of(series.cast(pl.String).drop_nulls())
    way = spelled(Hint("{type}", type={name: "category"}))
    if look is None:
        seen = f"is free text, {levels:,} different values in {series.count():,} rows"
    else:
        seen = f"looks like {look[0]} (such as {look[1]!r})"
        if look[0] == "dates":
            form = {name: "%d.%m.%Y"}
            way = f"{spelled(Hint('{date_format}', date_format=form))} reads them; {way}"
        elif look[0] in ("codes with leading zeros", "amounts of money", "percentages"):
            way = f"{spelled(Hint('{type}', type={name: 'number'}))} reads numbers; {way}"
    note = f"column {name} {seen}: left out ({way} keeps its most frequent values)"
    return Fitted((), (note,))


# --- numbers -------------------------------------------------------------------------------------


def _fit_numeric(
    series: pl.Series, settings: PrepareSettings, ids: RowIds | None, reading: Reading
) -> Fitted:
    values = reading.numbers(series, ids)
    missing = np.isnan(values)
    if settings.impute == "none" and missing.any():
        raise missing_error(series.name, missing, ids)
    present = values[~missing] if missing.any() else values
    rule = NumericRule(series.name, clip=settings.clip, reading=reading)
    rule, remarks = _held(rule, present, settings)
    inside = present if rule.lower is None else np.clip(present, rule.lower, rule.upper)
    bins = of_column(settings.bins, series.name) or 0
    if settings.impute != "none":
        centre = np.mean(inside) if settings.impute == "mean" else np.median(inside)
        impute = _finite_statistic(float(centre), rule.name)
        marked = _is_marked(missing, settings) or (bool(bins) and settings.impute == "bin")
        rule = replace(rule, impute=impute, missing=marked)
    if isinstance(bins, tuple):
        return _given_edges(rule, series, bins, settings)
    if inside.min() == inside.max():
        note = f"column {rule.name} is constant on the training rows: ignored"
        return Fitted((replace(rule, center=float(inside[0]), scale=0.0),), (note,))
    if edges := _edges(inside, bins):
        return Fitted((_binned(rule, series, edges, settings),), remarks)
    rule = _shaped(rule, inside, of_column(settings.transform, series.name))
    if settings.scale == "none":
        return Fitted((rule,), remarks)
    filled = values if rule.impute is None else np.where(missing, rule.impute, values)
    return _scaled(rule, filled, remarks)


def _held(
    rule: NumericRule, present: FloatArray, settings: PrepareSettings
) -> tuple[NumericRule, tuple[str, ...]]:
    share = of_column(settings.winsorise, rule.column)
    if not share:
        wide = settings.scale != "none" and not of_column(settings.transform, rule.column)
        return rule, _wide(rule, present) if wide else ()
    low, high = winsor_bounds(present, share)
    outside = int(np.count_nonzero((present < low) | (present > high)))
    if not outside:
        return replace(rule, lower=low, upper=high), ()
    with np.errstate(all="ignore"):
        before, after = float(present.std()), float(np.clip(present, low, high).std())
    if not before > _RULED * after:
        return replace(rule, lower=low, upper=high), ()
    note = (
        f"column {rule.name}: {outside:,} of {len(present):,} values lay beyond {low:g} and "
        f"{high:g} and were cut to these: with them its standard deviation would be "
        f"{before / after:.0f} times as large"
    )
    return replace(rule, lower=low, upper=high), (note,)


def _wide(rule: NumericRule, present: FloatArray) -> tuple[str, ...]:
    low, high = np.quantile(present, (0.25, 0.75))
    with np.errstate(all="ignore"):
        times = float(present.std()) / ((high - low) / _NORMAL_IQR) if high > low else 0.0
    if not _WIDE < times < math.inf:
        return ()
    way = spelled(
        Hint("{winsorise} or {transform}", winsorise=0.005, transform={rule.column: "log"})
    )
    return (
        f"column {rule.name}: a few values far out make its standard deviation {times:.0f} times "
        f"what its middle half suggests, and the rest hardly differs after scaling ({way} helps)",
    )


def _shaped(rule: NumericRule, inside: FloatArray, choice: TransformChoice | None) -> NumericRule:
    if choice is None or choice == "none":
        return rule
    transform = fit_transform(choice, inside)
    if choice != "yeo-johnson":
        return replace(rule, transform=transform)
    # A power of what lies far beyond the training rows is beyond any number.
    lower, upper = float(inside.min()), float(inside.max())
    return replace(rule, transform=transform, lower=lower, upper=upper)


def _scaled(rule: NumericRule, filled: FloatArray, remarks: tuple[str, ...]) -> Fitted:
    """Fit centre and scale of a rule; its scale so far is 1 and its centre 0."""
    values = rule.shaped(filled)
    center = _finite_statistic(float(values.mean()), rule.name)
    scale = _finite_statistic(float(values.std()), rule.name)
    # A spread too small for float64 to hold counts as none.
    notes = [] if scale else [f"column {rule.name} hardly varies on the training rows: ignored"]
    return Fitted((replace(rule, center=center, scale=scale),), (*remarks, *notes))


def _is_marked(missing: NDArray[np.bool_], settings: PrepareSettings) -> bool:
    count = int(missing.sum())
    return (
        settings.missing_indicator and 0 < count and count >= settings.min_frequency * len(missing)
    )


def _edges(values: FloatArray, count: int) -> tuple[float, ...]:
    """Inner edges of intervals of about equally many rows; none where all would be in one.

    >>> _edges(np.arange(9.0), 4)
    (2.0, 4.0, 6.0)
    """
    if not count:
        return ()
    inner = np.percentile(values, np.linspace(0, 100, count + 1)[1:-1])
    return tuple(np.unique(inner[inner > values.min()]).tolist())


def _binned(
    rule: NumericRule, series: pl.Series, edges: tuple[float, ...], settings: PrepareSettings
) -> BinnedRule:
    # With a bin of their own there is nothing that missing values become.
    impute = None if settings.impute == "bin" else rule.impute
    binned = BinnedRule(rule.column, edges, impute, rule.missing, rule.clip, rule.reading)
    counts = np.bincount(binned.places(series), minlength=binned.count)
    return replace(binned, shares=tuple((counts / len(series)).tolist()))


def _given_edges(
    rule: NumericRule, series: pl.Series, edges: tuple[float, ...], settings: PrepareSettings
) -> Fitted:
    """A column cut at given edges: as many output columns as were asked for, whatever the rows."""
    marked = rule.missing or settings.impute == "bin"
    binned = _binned(replace(rule, missing=marked), series, edges, settings)
    intervals = binned.bins[: len(edges) + 1]
    unseen = [interval.label for interval in intervals if not interval.share]
    if not unseen:
        return Fitted((binned,))
    kept = "a column of zeros" if len(unseen) == 1 else "columns of zeros"
    note = f"column {rule.name}: no training row is in {', '.join(unseen)}: kept as {kept}"
    return Fitted((binned,), (note,))


def _finite_statistic(value: float, name: str) -> float:
    if not math.isfinite(value):
        raise InfiniteValueError(
            f"column {name!r}: its values are too large to average in float64",
            hint="change its unit, or take its logarithm",
        )
    return value


# --- dates ---------------------------------------------------------------------------------------


def _fit_date(
    series: pl.Series, settings: PrepareSettings, ids: RowIds | None, reading: Reading
) -> Fitted:
    fitted = [_fit_numeric(series, settings, ids, reading)]
    for part in settings.date_parts:
        reading = replace(reading, kind=part)
        if part == "year":
            fitted.append(_fit_numeric(series, settings, ids, reading))
        else:
            levels = reading.levels(series)
            fitted.append(_one_hot(series.name, levels, _LEVELS[part], settings, reading=reading))
    return Fitted(
        tuple(rule for column in fitted for rule in column.rules),
        tuple(note for column in fitted for note in column.notes),
    )


# --- categories ----------------------------------------------------------------------------------


def _fixed_levels(
    series: pl.Series, settings: PrepareSettings, vocabulary: tuple[str, ...]
) -> Fitted:
    """Given levels only: any other value is 0 in all columns."""
    rule = CategoricalRule(series.name, vocabulary, _reference(vocabulary, settings))
    return _scaled_levels(rule, as_levels(series), settings)


def _keys(series: pl.Series, settings: PrepareSettings) -> pl.Series:
    """Texts such that those of one level are equal."""
    return _spelling(settings).spelled(as_levels(series))


def _spelling(settings: PrepareSettings) -> Reading:
    return Reading(spelling="normalised") if settings.normalise_categories else NUMBER


def _fit_categories(series: pl.Series, settings: PrepareSettings) -> Fitted:
    text, reading = as_levels(series), _spelling(settings)
    spellings = pl.DataFrame({"key": reading.spelled(text), "text": text}).drop_nulls()
    spellings = spellings.group_by("key", "text").len()
    # Of spellings and of levels that are equally frequent the first in order come first.
    spellings = spellings.sort("len", "text", descending=[True, False])
    levels = spellings.group_by("key", maintain_order=True).agg(
        pl.col("text").first().str.strip_chars()
        if settings.normalise_categories
        else pl.col("text").first(),
        pl.col("len").sum(),
    )
    levels = levels.sort("len", "text", descending=[True, False])
    if settings.normalise_categories and is_yes_no(levels["key"].head(_FREE_LEVELS).to_list()):
        fitted = _one_hot(series.name, text, (NO, YES), settings, Reading(spelling="yes-no"))
        words = ", ".join(sorted(levels["text"].to_list()))
        return replace(fitted, notes=(f"column {series.name}: yes or no ({words})", *fitted.notes))
    threshold = settings.min_frequency * len(series)
    names = levels.filter(pl.col("len") >= threshold)["text"].head(settings.max_levels).to_list()
    fitted = _one_hot(series.name, text, tuple(sorted(names)), settings, reading)
    notes = [*fitted.notes]
    if spellings.height > levels.height:
        way = spelled(Hint("{normalise_categories}", normalise_categories=False))
        notes.append(
            f"column {series.name}: {levels.height:,} levels in {spellings.height:,} spellings, "
            f"compared without case and blanks ({way} keeps them apart)"
        )
    if levels.height > settings.max_levels:
        notes.append(
            f"column {series.name} has {levels.height:,} levels: the {len(names)} most frequent "
            f"have a column each, and the others are one level {OTHER} "
            f"({spelled(Hint('{max_levels}'))})"
        )
    return Fitted(fitted.rules, tuple(notes))


def _one_hot(
    name: str,
    text: pl.Series,
    frequent: tuple[str, ...],
    settings: PrepareSettings,
    reading: Reading = NUMBER,
) -> Fitted:
    threshold = max(1.0, settings.min_frequency * len(text))
    absent = text.null_count()
    keys = pl.Series(frequent, dtype=pl.String)
    if reading.kind == "number":
        text, keys = reading.spelled(text), reading.spelled(keys)
    others = len(text) - absent - int(text.is_in(keys.implode()).sum())
    unknown = OTHER if others >= threshold else None
    missing = MISSING if settings.missing_indicator and absent >= threshold else None
    # Text that is called so already is of that level.
    levels = tuple(dict.fromkeys([*frequent, *filter(None, (unknown, missing))]))
    rule = CategoricalRule(
        name,
        levels,
        _reference(levels, settings),
        unknown=unknown,
        missing=missing,
        reading=reading,
    )
    if not rule.outputs:
        zeros = NumericRule(name, 0.0, scale=0.0, clip=settings.clip)
        return Fitted((zeros,), (_one_level(rule, settings),))
    means = _means(rule, text)
    # Of the rows that have a level: the others are to be their average.
    known = 1.0 - ((0 if unknown else others) + (0 if missing else absent)) / len(text)
    average = tuple(mean / known for mean in means)
    return _scaled_levels(replace(rule, average=average), text, settings)


def _one_level(rule: CategoricalRule, settings: PrepareSettings) -> str:
    if rule.unknown is None:
        return f"column {rule.name} is constant on the training rows: ignored"
    way = spelled(Hint("{min_frequency}", min_frequency=settings.min_frequency / 10))
    return (
        f"column {rule.name}: each of its levels has less than {settings.min_frequency:.2%} of the "
        f"training rows: ignored ({way} keeps more of them)"
    )


def _means(rule: CategoricalRule, text: pl.Series) -> tuple[float, ...]:
    plain = replace(rule, reading=replace(rule.reading, kind="number"))
    return tuple(float(indicator.mean()) for indicator in plain.arrays(text))


def _reference(levels: tuple[str, ...], settings: PrepareSettings) -> str | None:
    return levels[0] if settings.drop_first and levels else None


def _scaled_levels(rule: CategoricalRule, text: pl.Series, settings: PrepareSettings) -> Fitted:
    if not settings.scale_categories or settings.scale == "none":
        return Fitted((replace(rule, clip=settings.clip),), _no_column(rule))
    shares = _means(rule, text)
    scales = tuple(math.sqrt(share * (1.0 - share)) for share in shares)
    notes = [
        f"column {output} is constant on the training rows: ignored"
        for output, scale in zip(rule.outputs, scales, strict=True)
        if scale == 0
    ]
    scaled = replace(rule, centers=shares, scales=scales, clip=settings.clip)
    return Fitted((scaled,), (*_no_column(rule), *notes))


def _no_column(rule: CategoricalRule) -> tuple[str, ...]:
    if rule.outputs:
        return ()
    return (f"column {rule.column} is constant on the training rows: ignored",)
