"""``Study``: several models in one session, one for each combination of some settings' values.

Both sides have the same one, as a section of their files. Which models there are follows from it
alone, and from no label. All models train on one table: what prepares it does not vary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Annotated, ClassVar, Literal, Self, TypeAlias, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from taciturn.errors import ConfigError
from taciturn.families.registry import FAMILIES
from taciturn.files import canonical_json
from taciturn.setting_syntax import hyphenated, toml_value
from taciturn.settings.checked import (
    Checked,
    ClassWeight,
    NonNegative,
    Positive,
    PositiveInt,
    require,
    setting,
)
from taciturn.settings.schema import Variant

MOST_MODELS = 2000
"""The most trainings of one study, folds included."""
FEWEST_FOLDS, MOST_FOLDS = 2, 20
RankBy = Literal["loss", "auc"]
Value: TypeAlias = float | int | str | tuple[float, ...]

_SUMMED = "mutual"
LEAST_RATIO = 2.0
"""Least ratio of two values of a setting of ``_SPACED`` in a study of ``mutual``."""
_SPACED = ("passes", "score_range", "sigmoid_error")
_JUDGING = ("folds", "rank_by", "open_scores")


def _values(given: object) -> object:
    if not isinstance(given, list | tuple) or not given:
        raise ValueError(f"must be a list of values to try, not {given!r}")
    if any(given[place] in given[:place] for place in range(len(given))):
        raise ValueError("a value is repeated")
    return tuple(given)


def _folds(number: int) -> int:
    if number != 0 and not FEWEST_FOLDS <= number <= MOST_FOLDS:
        raise ValueError(
            f"must be {FEWEST_FOLDS} to {MOST_FOLDS}, or 0 for the held-out rows, not {number}"
        )
    return number


T = TypeVar("T")
Values = Annotated[tuple[T, ...], BeforeValidator(_values)]


class Study(Checked):
    """The settings whose values are tried, and what judges the models."""

    section: ClassVar = "study"

    folds: Annotated[int, BeforeValidator(lambda v: _folds(v) if isinstance(v, int) else v)] = (
        setting(0, example=3)
    )
    """Number of cross-validation folds for each combination; 0 to evaluate on the held-out rows.

    The id alone decides the fold of a row. The model of a fold is trained without its rows, and
    scores them.
    """
    rank_by: RankBy = setting("loss", example="auc")
    """Bob: metric that ranks the models, `loss` (log loss) or `auc`."""
    open_scores: bool = setting(False, example=True)
    """`mutual`: open a score of every training row for each combination, from which Bob can
    reconstruct Alice's columns.

    Without it one noisy sum is opened for each combination. Alice's file must have
    `accept-column-exposure`.
    """
    l2: Values[NonNegative] | None = setting(example=[1e-05, 0.0001, 0.001])
    """L2 penalties to try."""
    l1: Values[NonNegative] | None = setting()
    """L1 penalties to try."""
    passes: Values[Annotated[int, Field(ge=1, le=1000)]] | None = setting()
    """`newton`: numbers of passes to try."""
    epochs: Values[PositiveInt] | None = setting()
    """`sgd`: numbers of epochs to try."""
    batch_size: Values[PositiveInt] | None = setting()
    """`sgd`: batch sizes to try."""
    learning_rate: Values[Positive] | None = setting()
    """`sgd`: step sizes to try."""
    class_weight: Values[ClassWeight] | None = setting()
    """Pairs of class weights to try."""
    epsilon: Values[Positive] | None = setting()
    """`add`, `mult`, `hybrid`: privacy parameters to try; each of them is charged."""
    variant: Values[Variant] | None = setting()
    """`mult`: variants to try."""
    b1: Values[Positive] | None = setting()
    """`mult`: lower bounds to try."""
    b2: Values[Positive] | None = setting()
    """`mult`: upper bounds to try."""
    score_range: Values[Annotated[float, Field(ge=4, le=256)]] | None = setting()
    """`mutual`: score ranges to try."""
    sigmoid_error: Values[Annotated[float, Field(ge=1e-6, le=1e-2)]] | None = setting()
    """`mutual`: sigmoid errors to try."""

    @model_validator(mode="after")
    def _sized(self) -> Self:
        require(
            self.axes,
            "a study must list values of at least one setting",
            "l2",
            "write {l2}, say",
            l2=[1e-05, 0.0001, 0.001],
        )
        require(
            self.models <= MOST_MODELS,
            f"{self.models // (self.folds + 1)} combinations with {self.folds} folds are "
            f"{self.models:,} models, and a study has {MOST_MODELS:,} at most",
            "folds",
            "try fewer values, or use fewer folds",
        )
        return self

    def require_family(self, family: str) -> None:
        """Refuse a metric that the family of the labels does not have."""
        require(
            self.rank_by != "auc" or FAMILIES[family].has_classes,
            f"an AUC is of two classes, and the labels are of {family}",
            "rank_by",
            "use {rank_by}",
            rank_by="loss",
        )

    def sums_losses(self, mechanism: str) -> bool:
        """Whether settings are judged by one noisy sum each, and no score is opened."""
        return mechanism == _SUMMED and not self.open_scores

    def require_mechanism(self, mechanism: str) -> None:
        """Refuse what the mechanism cannot judge, and neighbouring values of a setting.

        Sums at nearly the same model average the noise. Values that are apart do not exclude that:
        penalties too small to matter and most score ranges give one model. What bounds the sums
        together is their number.
        """
        if mechanism != _SUMMED:
            require(
                not self.open_scores,
                f"open-scores is for {_SUMMED}; {mechanism} opens scores in any case",
                "open_scores",
                "leave {open_scores} out",
            )
            return
        require(
            self.rank_by != "auc" or self.open_scores,
            f"an AUC needs a score of every row, and a study of {_SUMMED} opens none",
            "rank_by",
            "use {rank_by}, or agree on {open_scores}",
            rank_by="loss",
            open_scores=True,
        )
        # The noise of sums is what values must be apart for; penalties in any case.
        for name in ("l2", *(() if self.open_scores else _SPACED)):
            self._require_spaced(name)

    def _require_spaced(self, name: str) -> None:
        """Refuse two values of a setting that are less than ``LEAST_RATIO`` apart."""
        for low, high in pairwise(sorted(getattr(self, name) or ())):
            if high < LEAST_RATIO * low * (1 - 1e-9):
                raise ConfigError(
                    f"{low:g} and {high:g} are less than a factor of {LEAST_RATIO:g} apart, as "
                    f"values of {hyphenated(name)} in a study of {_SUMMED} must be",
                    setting=name,
                    hint=f"leave one of them out, or use {LEAST_RATIO * low:g} instead of {high:g}",
                )

    @property
    def axes(self) -> dict[str, tuple[Value, ...]]:
        """The settings that vary, with their values; the first varies slowest."""
        names = [name for name in type(self).model_fields if name not in _JUDGING]
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @property
    def points(self) -> tuple[Point, ...]:
        """Every combination, numbered from 1."""
        axes = self.axes
        return tuple(
            Point(number, dict(zip(axes, values, strict=True)))
            for number, values in enumerate(product(*axes.values()), start=1)
        )

    @property
    def models(self) -> int:
        """Number of trainings: per combination one for each fold and one on all rows."""
        return math.prod(map(len, self.axes.values())) * (self.folds + 1)

    def canonical(self) -> str:
        """One text for one study, whose keys say where they belong: sorted, no blanks."""
        values = self.model_dump(mode="json", exclude_none=True)
        named = {f"study {hyphenated(name)}": value for name, value in values.items()}
        return canonical_json({"purpose": "study", **named})


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of a study's values, numbered from 1 on."""

    number: int
    values: Mapping[str, Value]

    def __str__(self) -> str:
        """The settings of the combination with their values.

        >>> str(Point(1, {"l2": 0.001, "class_weight": (0.2, 1.0)}))
        'l2 0.001, class-weight 0.2 1'
        """
        return ", ".join(
            f"{hyphenated(name)} {shown_value(value)}" for name, value in self.values.items()
        )


@contextmanager
def named(point: Point) -> Iterator[None]:
    """Add a combination's number to errors in its settings."""
    try:
        yield
    except ConfigError as problem:
        problem.message = f"model {point.number} of the study ({point}): {problem.message}"
        problem.args = (problem.message,)
        raise


def shown_value(value: object) -> str:
    """A value of a study in a table.

    >>> shown_value(1e-05), shown_value("mean-one"), shown_value((0.2, 1.0))
    ('1e-05', 'mean-one', '0.2 1')
    """
    if isinstance(value, tuple | list):
        return " ".join(map(shown_value, value))
    return value if isinstance(value, str) else toml_value(value)
