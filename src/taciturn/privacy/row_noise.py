"""Noise on opened sums over rows, counted in rows: its width, and what it hides.

A sum over all rows hides one row from a party that knows the others
only if its noise is large beside what that row adds to the sum, whatever the number of rows is. A
row of a loss is 1 unit of one row's loss, and a row of a count is one score.

**Guarantee.** A row that moves an opened sum by at most D gives at most ``log2(1 + D/W)`` bits
through uniform noise of width W, and at most ``h + exp(-h) - 1`` nats, ``h = D/(2b)``, through
Laplace noise of scale b: the divergence from a row in the middle. Bits of several openings add up,
and so do those of several trainings.

**Assumes.** The D of an opening are measured, not proven (``RowNoise.moved``), but for a row's own
part of a count or of a bounded loss. None of this is differential privacy: a row moves the model
too, and whatever else is opened of the model. As many scores of known rows as Alice has columns
give her weights to a Bob who knows all other rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

OPENING_ROWS = 8192
"""Number of training rows from which a ``mutual`` training opens a sum over all rows."""
CHANGE_PART = 2.0**-14
"""Width of the noise on the change of the loss, as a part of the training rows; 1 row at least."""
SUM_ROWS = 16
"""Width of the noise on a count and scale of that on a study's sum, in rows."""
SCORE_NOISE_BITS = 12
"""Alice adds noise of at most 2^-SCORE_NOISE_BITS to every score that is opened after training."""
SumKind: TypeAlias = Literal["change of the loss", "count of scores"]
"""A sum over all rows that a ``mutual`` training opens at its end."""
RowSumKind: TypeAlias = Literal["change of the loss", "count of scores", "study sum"]
"""A sum over all rows with noise that is counted in rows."""


@dataclass(frozen=True, slots=True)
class Moved:
    """By how many rows one row moves an opened sum, at most; None where no bound is known.

    ``honest`` is for tables as they come, ``chosen`` for a table with a column that the receiver
    chose against that row, ``wrapped`` where scores exceed their range.
    """

    honest: float
    chosen: float
    wrapped: float | None


@dataclass(frozen=True, slots=True)
class RowNoise:
    """Noise on a sum over rows, counted in rows.

    ``width`` is that of uniform noise, or the scale of Laplace noise. ``moves`` says what one row
    moves the sum through.
    """

    shape: Literal["uniform", "laplace"]
    width: float
    moves: str
    moved: Moved

    def bits(self, moved: float, openings: int = 1) -> float:
        """Upper bound in bits on what ``openings`` sums tell of a row that moves each by ``moved``.

        >>> noise = row_noise("change of the loss", 8192)
        >>> round(noise.bits(0.06), 2), round(noise.bits(2.0, openings=12), 1)
        (0.08, 19.0)
        """
        part = moved / self.width
        if self.shape == "uniform":
            return openings * math.log2(1.0 + part)
        half = part / 2.0
        return openings * (half + math.expm1(-half)) / math.log(2.0)

    @property
    def width_text(self) -> str:
        """Shape and width of the noise.

        >>> row_noise("count of scores", 8192).width_text
        'uniform noise, 16 rows wide'
        """
        rows = f"{self.width:.3g} row{'' if self.width == 1 else 's'}"
        return (
            f"uniform noise, {rows} wide"
            if self.shape == "uniform"
            else f"Laplace noise of scale {rows}"
        )

    @property
    def moved_text(self) -> str:
        """By how much one row moves the sum, and through what.

        >>> row_noise("count of scores", 8192).moved_text
        "one row moves it by at most 1 row (whether the row's score is counted), without a bound \
where scores wrap"
        """
        moved = self.moved
        text = f"one row moves it by at most {_rows(moved.honest)} ({self.moves})"
        if moved.chosen > moved.honest:
            text += f", {_rows(moved.chosen)} with a column or label that Bob chose against it"
        return text if moved.wrapped is not None else f"{text}, without a bound where scores wrap"


def _rows(count: float) -> str:
    return f"{count:g} row{'' if count == 1 else 's'}"


# Measured by `python -m taciturn_paper.known_others` on tables of 8,192 rows and more, rounded up:
# the most that a row moves the change, from so many passes on. The earlier the last pass, the more
# its loss still changes. Chosen: columns, and the label of that row. Of some thirty choices without
# a wrapped score the largest moved it by 0.22; there may be larger ones.
_CHANGE_MOVED = (
    (28, Moved(0.1, 0.25, None)),
    (14, Moved(0.1, 0.35, None)),
    (0, Moved(1.0, 1.0, None)),
)

USUAL_PASSES = 28
# Measured where no score wraps. `python -m taciturn_paper.noisy_study bits` has 0.96 and 15.5 on
# drawn tables of 300 and 900 rows; breast-cancer (569 rows) without columns at Bob has 10.0.
_STUDY_MOVED = Moved(10.0, 16.0, None)


def row_noise(
    kind: RowSumKind,
    rows: int,
    passes: int = USUAL_PASSES,
) -> RowNoise:
    """Return the noise of an opened sum over ``rows`` training rows, counted in rows.

    >>> row_noise("change of the loss", 8192).width, row_noise("change of the loss", 65536).width
    (1.0, 4.0)
    """
    if kind == "change of the loss":
        width = max(1.0, rows * CHANGE_PART)
        moved = next(moved for least, moved in _CHANGE_MOVED if passes >= least)
        return RowNoise("uniform", width, "the row's loss in the last two passes", moved)
    if kind == "count of scores":
        moved = Moved(1.0, 1.0, None)
        return RowNoise("uniform", float(SUM_ROWS), "whether the row's score is counted", moved)
    moves = "the row's capped loss, and the models that it moves"
    return RowNoise("laplace", float(SUM_ROWS), moves, _STUDY_MOVED)


def opens_sums(rows: int) -> bool:
    """Return whether a ``mutual`` training on ``rows`` opens sums over all its rows."""
    return rows >= OPENING_ROWS
