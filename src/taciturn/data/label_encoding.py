"""Label encoding: labels that are words, or other numbers than 0 and 1, as 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from taciturn.data.column_parsing import TEXT, as_levels
from taciturn.data.ids import RowIds, row_name
from taciturn.errors import ColumnError, LabelValueError
from taciturn.faces import Hint

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

    @classmethod
    def of(cls, choices: object) -> LabelEncoding:
        """Label words from settings of the same names."""
        positive, negative = (getattr(choices, name) or () for name in ("positive", "negative"))
        return cls(positive, negative)

    def values(self, series: pl.Series, ids: RowIds | None) -> pl.Series:
        """A label column as 0 and 1, null where missing; other numbers unchanged."""
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
            self._refuse(series, text, text.is_in(list(others)), len(others), ids)
        values = dict.fromkeys(zeros, 0) | dict.fromkeys(ones, 1)
        return text.replace_strict(values, default=None, return_dtype=pl.Int8)

    def _refuse(
        self, series: pl.Series, text: pl.Series, wrong: pl.Series, count: int, ids: RowIds | None
    ) -> None:
        lacking = "negative" if self.positive and not self.negative else "positive"
        if self.positive and self.negative:
            hint = Hint("name them in {positive} or in {negative}, or correct them")
        else:
            value = int(lacking == "positive")
            hint = Hint(f"say which of them mean {value} too: {{{lacking}}}", **{lacking: ["WORD"]})
        raise LabelValueError(
            f"{wrong.sum()} of {len(text)} labels are none of the words that are named "
            f"({count} other words)",
            where=f"column {series.name!r}, first at {row_name(int(wrong.arg_max() or 0), ids)}",
            hint=hint,
        )


PLAIN = LabelEncoding()


def _words(series: pl.Series) -> pl.Series | None:
    try:
        return as_levels(series).str.strip_chars().str.to_lowercase()
    except ColumnError:
        return None


def _plain_values(series: pl.Series, ids: RowIds | None) -> pl.Series:
    if series.dtype not in TEXT:
        _refuse_numbers(series, ids)
        return series
    text = series.cast(pl.String).str.strip_chars().str.to_lowercase()
    values = text.replace_strict(_TRUTH, default=None, return_dtype=pl.Int8)
    wrong = values.is_null() & text.is_not_null()
    if wrong.any():
        raise LabelValueError(
            f"{wrong.sum()} of {len(text)} labels are text other than 0 and 1 "
            f"({text.n_unique()} distinct values in all)",
            where=f"column {series.name!r}, first at {row_name(int(wrong.arg_max() or 0), ids)}",
            hint=_label_hint(text),
        )
    return values


def _refuse_numbers(series: pl.Series, ids: RowIds | None) -> None:
    if not series.dtype.is_numeric():
        return
    wrong = ((series != 0) & (series != 1) & series.is_not_nan()).fill_null(False)
    if wrong.any():
        text = _words(series)
        raise LabelValueError(
            f"{wrong.sum()} of {len(series)} labels are neither 0 nor 1 "
            f"({series.n_unique()} distinct values in all)",
            where=f"column {series.name!r}, first at {row_name(int(wrong.arg_max() or 0), ids)}",
            hint="turn them into 0 and 1 (1 is the class to predict)"
            if text is None
            else _label_hint(text),
        )


def _label_hint(text: pl.Series) -> Hint:
    """Hint which word to name as 1; the labels' own words only where they are common ones."""
    present = set(text.drop_nulls().unique().to_list())
    word = next((one for one, zero in _PAIRS if present == {one, zero}), "WORD")
    return Hint("say which of them means 1, the class to predict: {positive}", positive=word)
