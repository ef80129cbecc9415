"""Openings: what a training, a study or a scoring opens to a party, as data.

An *opening* is a kind of number that a party receives in clear and that depends on the other
party's table: scores, noisy sums, released weights, shared ids. Programs take the width of their
noise from here, and the ledger, the exposure text and the pages take their sentences and figures
from the same rows. ``jobs.train.exposure`` selects the openings of an agreement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from taciturn.numerics.bounded_waves import CAP
from taciturn.privacy.row_noise import (
    OPENING_ROWS,
    SCORE_NOISE_BITS,
    SUM_ROWS,
    USUAL_PASSES,
    RowNoise,
    row_noise,
)

STUDY_SUM_BITS = 24
"""Most bits that one sum of a study carries, whatever Bob sends: 16.6 up to 2^18 rows, 22.6 at ten
million, and fewer than this up to 2^25."""
LOSS_CAP = CAP
"""Largest loss of one row in a study's sum."""

Receiver: TypeAlias = Literal["alice", "bob"]
Unit: TypeAlias = Literal[
    "session",
    "training",
    "setting",
    "pass",
    "training row",
    "training row and pass",
    "held-out row",
    "held-out row and pass",
    "new row",
    "column",
]
"""What a number of an opening is counted per."""
Kind: TypeAlias = Literal[
    "shared ids",
    "sizes",
    "largest value",
    "change of the loss",
    "count of scores",
    "study sum",
    "training score",
    "held-out score",
    "new score",
    "label release",
    "noisy weights",
    "weights of Alice",
    "weights of Bob",
    "quality",
    "end of the training",
]


def bits_text(bits: float) -> str:
    """Upper bound on what opened sums tell a Bob who knows all other rows, in words.

    >>> bits_text(0.0874)
    'at most 0.087 bits about a row for a Bob who knows all others, if no score wraps'
    """
    return f"at most {bits:.2g} bits about a row for a Bob who knows all others, if no score wraps"


@dataclass(frozen=True, slots=True)
class ScoreNoise:
    """Noise on each number of an opening, uniform in ±``half_width`` of a log-odd.

    ``distance`` is the statistical distance of one opened number from one that does not depend on
    the error of encryption; those of several numbers add up.
    """

    half_width: float
    distance: float

    def summed_distance(self, numbers: int) -> float:
        """Upper bound on the statistical distance of all opened numbers together, at most 1.

        >>> math.log2(ScoreNoise(2.0**-12, 2.0**-19).summed_distance(1 << 15))
        -4.0
        """
        return min(1.0, numbers * self.distance)

    def distance_text(self, numbers: int) -> str:
        """The summed distance as a power of two.

        >>> ScoreNoise(2.0**-12, 2.0**-19).distance_text(30_000)
        '2^-4 over 30,000 scores'
        """
        summed = self.summed_distance(numbers)
        bound = f"2^{math.ceil(math.log2(summed))}" if summed < 1.0 else "no bound"
        return f"{bound} over {numbers:,} scores"


Noise: TypeAlias = RowNoise | ScoreNoise


_SEMI_HONEST = "both parties follow the protocol"


@dataclass(frozen=True, slots=True)
class Opening:
    """One kind of number that a party receives in clear.

    Attributes:
        kind: Its key in the table.
        description: What is opened, as a noun phrase.
        receiver: The party that receives it.
        numbers: How many numbers per ``per``; None if the agreement decides.
        per: What they are counted per.
        noise_text: The noise on each number, in words.
        bounded_by: What bounds how much it reveals, or that nothing does.
        rests_on: The assumption on which the bound rests.
        on_labels: Whether it depends on labels.
    """

    kind: Kind
    description: str
    receiver: Receiver
    numbers: int | None
    per: Unit
    noise_text: str
    bounded_by: str
    rests_on: str = _SEMI_HONEST
    on_labels: bool = True

    @property
    def on_columns(self) -> bool:
        """Whether it depends on Alice's columns: all that Bob receives but the shared ids."""
        return self.receiver == "bob" and self.kind != "shared ids"


_BOTH: tuple[Receiver, ...] = ("alice", "bob")
_NOTHING = "exact"

_ROWS: tuple[Opening, ...] = (
    *(
        Opening(
            "shared ids",
            "which ids both tables have, and the number of rows of the other table",
            receiver,
            None,
            "session",
            _NOTHING,
            "nothing: both sides need them",
            on_labels=False,
        )
        for receiver in _BOTH
    ),
    *(
        Opening(
            "sizes",
            "number of rows and columns of the other table",
            receiver,
            2,
            "training",
            _NOTHING,
            "nothing: both sides need them",
            on_labels=False,
        )
        for receiver in _BOTH
    ),
    *(
        Opening(
            "largest value",
            "binary logarithm of the other table's largest prepared value: in whitened columns, "
            "of its row with the largest leverage",
            receiver,
            1,
            "training",
            "rounded up to a power of two",
            "one whole number below 64",
            on_labels=False,
        )
        for receiver in _BOTH
    ),
    Opening(
        "change of the loss",
        "decrease of the mean training loss between the last two passes",
        "bob",
        1,
        "training",
        "uniform, counted in rows",
        f"nothing is opened below {OPENING_ROWS:,} training rows; noise of one row at least",
    ),
    Opening(
        "count of scores",
        "number of training scores that may lie beyond the range",
        "bob",
        1,
        "training",
        "uniform, counted in rows",
        f"nothing is opened below {OPENING_ROWS:,} training rows; noise of {SUM_ROWS} rows",
    ),
    Opening(
        "study sum",
        "sum over all rows of a bounded loss of each row's score at the model of the fold that "
        "held it out",
        "bob",
        1,
        "setting",
        "Laplace, counted in rows",
        f"a row's loss is capped at {LOSS_CAP:g}; noise of {SUM_ROWS} rows",
    ),
    Opening(
        "training score",
        "Alice's part of a training row's score",
        "bob",
        None,
        "training row",
        "exact, or rounded to the residues' grid",
        "nothing: Alice's columns can be reconstructed from the scores of enough passes",
        "none",
    ),
    Opening(
        "held-out score",
        "score of a held-out row",
        "bob",
        None,
        "held-out row",
        f"noise of at most 2^-{SCORE_NOISE_BITS} each",
        "scores-per-row of Alice's file",
    ),
    Opening(
        "new score",
        "score of a new row",
        "bob",
        1,
        "new row",
        f"noise of at most 2^-{SCORE_NOISE_BITS} each",
        "scores-per-row, repetitions-per-row and rows-per-day of Alice's file",
    ),
    Opening(
        "label release",
        "a residue, gradient or label answer with the mechanism's noise",
        "alice",
        None,
        "training row",
        "noise of the mechanism, priced by the ledger",
        "budget and budget-total of Bob's file",
        "the ledger's assumption",
    ),
    Opening(
        "noisy weights",
        "Alice's weights with Gaussian noise",
        "alice",
        1,
        "column",
        "Gaussian noise, priced by the ledger",
        "budget and budget-total of Bob's file",
        "the ledger's assumption",
    ),
    Opening(
        "weights of Alice",
        "Alice's weights",
        "alice",
        1,
        "column",
        "exact, in mutual rounded",
        "nothing: label epsilon is infinite",
        "none",
    ),
    Opening(
        "weights of Bob",
        "the weights of Bob's columns, which depend on Alice's columns",
        "bob",
        1,
        "column",
        "exact, in mutual rounded",
        "nothing",
    ),
    Opening(
        "quality",
        "accuracy, and without metrics-epsilon AUC, on the held-out rows in whole per cent",
        "alice",
        None,
        "training",
        "rounded, or with discrete Laplace noise",
        "13.4 bits, or metrics-epsilon",
        "Alice's scores of held-out rows do not depend on their labels",
    ),
    Opening(
        "end of the training",
        "the pass after which Bob ends the training (patience)",
        "alice",
        1,
        "training",
        _NOTHING,
        "log2 of the number of passes",
        "none",
    ),
)

OPENINGS: Mapping[tuple[Kind, Receiver], Opening] = MappingProxyType(
    {(opening.kind, opening.receiver): opening for opening in _ROWS}
)
"""Every kind of opening, by kind and receiver."""

SCORE_NOISE = ScoreNoise(2.0**-SCORE_NOISE_BITS, 2.0**-19)
"""Noise on each score that Alice opens after training."""


def noise_of(kind: Kind, rows: int, passes: int = USUAL_PASSES) -> Noise | None:
    """Return the noise of any opening for a table of ``rows``; None if it has none counted here."""
    if kind in ("change of the loss", "count of scores", "study sum"):
        return row_noise(kind, rows, passes)
    return SCORE_NOISE if kind in ("held-out score", "new score") else None
