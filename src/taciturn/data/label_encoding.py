"""Label encoding: the words of a label column that mean 1 and 0, and the columns beside it."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from taciturn.data.column_parsing import TEXT, as_levels
from taciturn.data.ids import RowIds, row_name
from taciturn.data.label_table import LabelTable
from taciturn.data.lazy_table import Columns
from taciturn.errors import ColumnError, ConfigError, LabelValueError
from taciturn.families.registry import BINOMIAL, FAMILIES
from taciturn.setting_syntax import Hint

_TRUTH = {"0": 0, "1": 1, "false": 0, "true": 1}
# Pairs of words of which the first is what people predict; shown in place of what the rows hold.
_PAIRS = (
    ("yes", "no"),
    ("y", "n"),
    ("t", "f"),
    ("ja", "nein"),
    ("oui", "non"),
    ("bad", "good"),
    ("positive", "negative"),
    ("pos", "neg"),
    ("default", "paid"),
    ("churned", "stayed"),
    ("1", "-1"),
    ("2", "1"),
)


@dataclass(frozen=True, slots=True)
class LabelEncoding:
    """Words that mean 1 and 0, without case; without ``negative`` the only other word means 0."""

    positive: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()
    family: str = BINOMIAL
    exposure: str | None = None
    weights: str | None = None

    @classmethod
    def from_settings(cls, choices: object, family: str = BINOMIAL) -> LabelEncoding:
        """Label words, and columns beside the labels, from settings of the same names."""
        positive, negative = (getattr(choices, name) or () for name in ("positive", "negative"))
        beside = (getattr(choices, name, None) for name in ("exposure", "weights"))
        encoding = cls(positive, negative, family, *beside)
        encoding.require_family()
        return encoding

    def require_family(self) -> None:
        """Refuse what the family of the labels does not have."""
        kind = FAMILIES[self.family]
        classes = kind.has_classes
        if self.exposure is not None and not kind.takes_exposure:
            raise ConfigError(
                f"{self.family} has no exposure: its link is no logarithm",
                setting="exposure",
                hint=Hint("use {family}, or leave {exposure} out", family=("poisson", "gamma")),
            )
        if self.weights is not None and classes:
            raise ConfigError(
                "binomial has no weights of single rows",
                setting="weights",
                hint=Hint("use {class_weight}, or leave {weights} out", class_weight="0.2,1"),
            )
        for name in ("positive", "negative"):
            if getattr(self, name) and not classes:
                raise ConfigError(
                    f"{name} is about labels of two classes, and those of {self.family} are "
                    "numbers",
                    setting=name,
                    hint=Hint(f"leave {{{name}}} out, or use {{family}}", family=BINOMIAL),
                )

    @property
    def beside(self) -> tuple[str, ...]:
        """Columns beside the label that are no features."""
        return tuple(name for name in (self.exposure, self.weights) if name is not None)

    def table(self, frame: Columns, column: str, ids: RowIds, names: RowIds | None) -> LabelTable:
        """Labels of a frame; rows go by their ``names`` in errors."""
        values = self.values(frame[column], names)
        return LabelTable.from_data(
            values,
            ids=ids,
            family=self.family,
            **{
                name: None if source is None else frame[source]
                for name, source in (("exposure", self.exposure), ("weights", self.weights))
            },
        )

    def values(self, series: pl.Series, ids: RowIds | None) -> pl.Series:
        """A label column as 0 and 1, null where missing; other numbers unchanged."""
        if not FAMILIES[self.family].has_classes:
            return series
        if not (self.positive or self.negative):
            return _plain_values(series, ids)
        text = _words(series)
        if text is None:
            raise LabelValueError(
                f"column {series.name!r} is {series.dtype}, which has no words",
                setting="positive",
                hint=Hint("leave {positive} and {negative} out"),
            )
        ones, zeros = (
            {word.strip().lower() for word in words} for words in (self.positive, self.negative)
        )
        others = set(text.drop_nulls().unique().to_list()) - ones - zeros
        if len(others) == 1 and not (zeros and ones):
            (zeros if ones else ones).update(others)
            others = set()
        if others:
            hint = Hint("name them in {positive} or in {negative}, or correct them")
            if not (self.positive and self.negative):
                lacking = "negative" if self.positive else "positive"
                say = f"say which of them mean {int(not self.positive)} too: {{{lacking}}}"
                hint = Hint(say, **{lacking: ["WORD"]})
            problem = f"none of the words that are named ({len(others)} other words)"
            _require_none(text.is_in([*others]), problem, ids, hint)
        values = dict.fromkeys(zeros, 0) | dict.fromkeys(ones, 1)
        return text.replace_strict(values, default=None, return_dtype=pl.Int8)


PLAIN = LabelEncoding()


def _words(series: pl.Series) -> pl.Series | None:
    try:
        return as_levels(series).str.strip_chars().str.to_lowercase()
    except ColumnError:
        return None


def _plain_values(series: pl.Series, ids: RowIds | None) -> pl.Series:
    """Labels that need no words; refused with the words to name where they are others."""
    if series.dtype in TEXT:
        text = series.cast(pl.String).str.strip_chars().str.to_lowercase()
        values = text.replace_strict(_TRUTH, default=None, return_dtype=pl.Int8)
        wrong = values.is_null() & text.is_not_null()
        if wrong.any():
            distinct = f"({text.n_unique()} distinct values in all)"
            _require_none(wrong, f"text other than 0 and 1 {distinct}", ids, _label_hint(text))
        return values
    if series.dtype.is_numeric():
        wrong = ((series != 0) & (series != 1) & series.is_not_nan()).fill_null(False)
        if wrong.any():
            words, distinct = _words(series), f"({series.n_unique()} distinct values in all)"
            numbers = "turn them into 0 and 1 (1 is the class to predict)"
            hint = numbers if words is None else _label_hint(words)
            _require_none(wrong, f"neither 0 nor 1 {distinct}", ids, hint)
    return series


def _require_none(wrong: pl.Series, problem: str, ids: RowIds | None, hint: str | Hint) -> None:
    """Refuse labels by their number and the first row, and never by a value."""
    if wrong.any():
        raise LabelValueError(
            f"{wrong.sum()} of {len(wrong)} labels are {problem}",
            where=f"column {wrong.name!r}, first at {row_name(int(wrong.arg_max() or 0), ids)}",
            hint=hint,
        )


def _label_hint(text: pl.Series) -> Hint:
    """Hint which word to name as 1; the labels' own words only where they are common ones."""
    present = set(text.drop_nulls().unique().to_list())
    word = next((one for one, zero in _PAIRS if present == {one, zero}), "WORD")
    return Hint("say which of them means 1, the class to predict: {positive}", positive=word)
