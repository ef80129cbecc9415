"""``Study``: several models in one session, one for each combination of some settings' values.

Both sides have the same one, as a section of their files. Which models there are follows from it
alone, and from no label. Data choices (``bins``, ``columns``) vary slowest, so that a table is
prepared once for all models that use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from taciturn.errors import ConfigError
from taciturn.faces import Hint, hyphenated, toml_value
from taciturn.files import canonical_json
from taciturn.settings.checked import Checked, ClassWeight, NonNegative, Positive, PositiveInt
from taciturn.settings.schema import Variant
from taciturn.settings.setting import Scope, Setting

MOST_MODELS = 2000
"""The most trainings of one study, folds included."""
FEWEST_FOLDS, MOST_FOLDS = 2, 20
EVERY_COLUMN = "all"
# What changes a side's table; the first varies slowest.
DATA_AXES = ("columns", "bins")
RankBy = Literal["loss", "auc"]
Value: TypeAlias = float | int | str | tuple[float, ...] | tuple[str, ...]

_study = partial(Setting, scope=Scope.STUDY)


def _values(given: object) -> object:
    """A list of values, each once."""
    if not isinstance(given, list | tuple) or not given:
        raise ValueError(f"it is a list of values to try, not {given!r}")
    if any(given[place] in given[:place] for place in range(len(given))):
        raise ValueError("a value stands in it twice")
    return tuple(given)


def _column_sets(given: object) -> object:
    """Lists of columns, or the word for all of them."""
    if isinstance(given, list | tuple):
        given = [(one,) if isinstance(one, str) else one for one in given]
        if all(isinstance(one, list | tuple) and one for one in given):
            given = [tuple(one) for one in given]
    return _values(given)


def _bins(number: int) -> int:
    if number < 0 or number == 1:
        raise ValueError(f"it is 2 or more intervals, or 0 for none, not {number}")
    return number


def _folds(number: int) -> int:
    if number != 0 and not FEWEST_FOLDS <= number <= MOST_FOLDS:
        raise ValueError(
            f"it is {FEWEST_FOLDS} to {MOST_FOLDS} folds, or 0 for the held-out rows, not {number}"
        )
    return number


_Listed = BeforeValidator(_values)
_Bins = Annotated[int, BeforeValidator(lambda v: _bins(v) if isinstance(v, int) else v)]


class Study(Checked):
    """The settings whose values are tried, and what judges the models."""

    folds: Annotated[
        int,
        BeforeValidator(lambda v: _folds(v) if isinstance(v, int) else v),
        _study(
            "Judge each combination by this many folds of the training rows; 0: by the held-out "
            "rows alone.",
            detail="An id alone decides in which fold its row is. A fold is trained without its "
            "rows, and they are scored",
            example=3,
        ),
    ] = 0
    rank_by: Annotated[
        RankBy,
        _study("Bob: by what models are ranked, `loss` (log loss) or `auc`.", example="auc"),
    ] = "loss"
    columns: Annotated[
        Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_column_sets)] | None,
        _study(
            "Sets of columns to try, each a list of `bob`, `alice`, `bob.NAME`, `alice.NAME`.",
            detail='`-alice.NAME` leaves one out; `"all"` is every column of both sides. With '
            "several Alices the names in the agreement stand for `alice`. These names are told to "
            "the other side: both sign them",
            example=[["all"], ["-alice.income"]],
        ),
    ] = None
    bins: Annotated[
        Annotated[tuple[_Bins, ...], _Listed] | None,
        _study("Numbers of intervals into which all numeric columns are cut; 0 is none."),
    ] = None
    l2: Annotated[
        Annotated[tuple[NonNegative, ...], _Listed] | None,
        _study("L2 penalties to try.", example=[1e-05, 0.0001, 0.001]),
    ] = None
    l1: Annotated[
        Annotated[tuple[NonNegative, ...], _Listed] | None, _study("L1 penalties to try.")
    ] = None
    passes: Annotated[
        Annotated[tuple[Annotated[int, Field(ge=1, le=1000)], ...], _Listed] | None,
        _study("`newton`: numbers of passes to try."),
    ] = None
    epochs: Annotated[
        Annotated[tuple[PositiveInt, ...], _Listed] | None,
        _study("`sgd`: numbers of epochs to try."),
    ] = None
    batch_size: Annotated[
        Annotated[tuple[PositiveInt, ...], _Listed] | None,
        _study("`sgd`: batch sizes to try."),
    ] = None
    learning_rate: Annotated[
        Annotated[tuple[Positive, ...], _Listed] | None,
        _study("`sgd`: step sizes to try."),
    ] = None
    class_weight: Annotated[
        Annotated[tuple[ClassWeight, ...], _Listed] | None,
        _study("Pairs of class weights to try."),
    ] = None
    epsilon: Annotated[
        Annotated[tuple[Positive, ...], _Listed] | None,
        _study("`add`, `mult`, `hybrid`: privacy parameters to try; all of them are paid for."),
    ] = None
    variant: Annotated[
        Annotated[tuple[Variant, ...], _Listed] | None, _study("`mult`: variants to try.")
    ] = None
    b1: Annotated[
        Annotated[tuple[Positive, ...], _Listed] | None, _study("`mult`: lower clips to try.")
    ] = None
    b2: Annotated[
        Annotated[tuple[Positive, ...], _Listed] | None, _study("`mult`: upper clips to try.")
    ] = None
    score_range: Annotated[
        Annotated[tuple[Annotated[float, Field(ge=4, le=256)], ...], _Listed] | None,
        _study("`mutual`: ranges of scores to try."),
    ] = None
    sigmoid_error: Annotated[
        Annotated[tuple[Annotated[float, Field(ge=1e-6, le=1e-2)], ...], _Listed] | None,
        _study("`mutual`: errors of the sigmoid to try."),
    ] = None

    @model_validator(mode="after")
    def _sized(self) -> Self:
        if not self.axes:
            raise ConfigError(
                "a study names values to try of at least one setting",
                setting="l2",
                hint=Hint("write {l2}, say", l2=[1e-05, 0.0001, 0.001]),
            )
        if self.models > MOST_MODELS:
            raise ConfigError(
                f"{len(self.points)} combinations with {self.folds} folds are {self.models:,} "
                f"models, and a study has {MOST_MODELS:,} at most",
                setting="folds",
                hint="try fewer values, or use fewer folds",
            )
        return self

    @property
    def axes(self) -> dict[str, tuple[Value, ...]]:
        """The settings that vary, with their values; the first varies slowest."""
        names = [name for name in type(self).model_fields if name not in ("folds", "rank_by")]
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
        """How many trainings there are: one for each fold and one on all rows, of every point."""
        count = 1
        for values in self.axes.values():
            count *= len(values)
        return count * (self.folds + 1)

    def canonical(self) -> str:
        """One text for one study, whose keys say where they belong: sorted, no blanks."""
        values = self.model_dump(mode="json", exclude_none=True)
        named = {f"study {hyphenated(name)}": value for name, value in values.items()}
        return canonical_json({"purpose": "study", **named})


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of a study's values.

    Args:
        number: From 1 on.
        values: The value of each setting that varies.
    """

    number: int
    values: Mapping[str, Value]

    @property
    def agreed(self) -> dict[str, Value]:
        """Those that the agreement holds."""
        return {name: value for name, value in self.values.items() if name not in DATA_AXES}

    @property
    def data(self) -> dict[str, Value]:
        """Those that decide a side's table."""
        return {name: value for name, value in self.values.items() if name in DATA_AXES}

    def __str__(self) -> str:
        """In words.

        >>> str(Point(1, {"l2": 0.001, "columns": ("bob", "-alice.age")}))
        'l2 0.001, columns bob -alice.age'
        """
        return ", ".join(
            f"{hyphenated(name)} {shown_value(value)}" for name, value in self.values.items()
        )


@contextmanager
def named(point: Point) -> Iterator[None]:
    """What is wrong with a combination's settings is said with its number."""
    try:
        yield
    except ConfigError as problem:
        problem.message = f"model {point.number} of the study ({point}): {problem.message}"
        problem.args = (problem.message,)
        raise


def shown_value(value: Value) -> str:
    """A value of a study in a table.

    >>> shown_value(1e-05), shown_value(("alice.age", "bob")), shown_value((0.2, 1.0))
    ('1e-05', 'alice.age bob', '0.2 1')
    """
    if isinstance(value, tuple | list):
        return " ".join(map(shown_value, value))
    return value if isinstance(value, str) else toml_value(value)


def left_out(wanted: tuple[str, ...], owner: str, columns: list[str]) -> list[str]:
    """Which of a side's columns a set of a study leaves out.

    Args:
        wanted: The set, as the study has it.
        owner: The side's name in it.
        columns: The side's columns.

    Raises:
        ConfigError: One that is named as this side's is not there.

    >>> left_out(("-alice.age",), "alice", ["age", "income"])
    ['age']
    >>> left_out(("bob", "alice.age"), "alice", ["age", "income"])
    ['income']
    >>> left_out(("all",), "alice", ["age", "income"])
    []
    """
    own = [word.removeprefix("-").removeprefix(f"{owner}.") for word in wanted if _is(word, owner)]
    for name in own:
        if name not in columns:
            raise ConfigError(
                f"{owner} has no column {name!r}, which a set of the study names",
                setting="columns",
                hint=f"its columns are {', '.join(columns[:12])}"
                + (" …" if len(columns) > 12 else ""),
            )
    gone = {word.removeprefix(f"-{owner}.") for word in wanted if word.startswith(f"-{owner}.")}
    named = {word.removeprefix(f"{owner}.") for word in wanted if word.startswith(f"{owner}.")}
    # A set of exclusions alone begins with every column.
    begins = EVERY_COLUMN in wanted or all(word.startswith("-") for word in wanted)
    kept = set(columns) if begins or owner in wanted else named
    return [name for name in columns if name not in kept or name in gone]


def _is(word: str, owner: str) -> bool:
    return word.removeprefix("-").startswith(f"{owner}.")


def require_some(point: Point, owner: str, columns: int) -> None:
    """Insists that a combination has a column of every Alice.

    Args:
        point: The combination.
        owner: Whose columns they are.
        columns: How many are left.

    Raises:
        ConfigError: One has none.
    """
    if owner != "bob" and not columns:
        raise ConfigError(
            f"model {point.number} of the study has no column of {owner}",
            setting="columns",
            hint="leave her one column at least: Bob's model alone needs no partner",
        )


def require_owners(study: Study, owners: tuple[str, ...]) -> None:
    """Insists that every column of a study is somebody's.

    Raises:
        ConfigError: Says which is not.
    """
    for word in {word for wanted in study.columns or () for word in wanted}:
        plain = word.removeprefix("-")
        owner = next((name for name in owners if plain.startswith(f"{name}.")), None)
        alone = plain in owners or plain == EVERY_COLUMN
        if owner is None and not (alone and plain == word):
            raise ConfigError(
                f"{word!r} names no column of {' or '.join(owners)}",
                setting="columns",
                hint=f"write {owners[0]}.NAME, -{owners[0]}.NAME, {owners[0]} or all",
            )
