"""Openings of an agreement: which rows of the table of openings a training opens, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from taciturn.errors import counted
from taciturn.privacy.openings import (
    LOSS_CAP,
    OPENINGS,
    SCORE_NOISE,
    STUDY_SUM_BITS,
    Kind,
    Noise,
    Opening,
    Receiver,
    bits_text,
    noise_of,
)
from taciturn.privacy.row_noise import OPENING_ROWS, RowNoise, row_noise
from taciturn.protocol.mutual_sums import opened_sums
from taciturn.protocol.terms import Terms

SCORE_NOISE_TEXT = f"practically exact (noise of up to {SCORE_NOISE.half_width:.5f})"
"""Precision of the scores that Bob receives after training."""
DEVIATING_STUDY_TEXT = (
    f"If he deviates, a setting's sum carries at most {STUDY_SUM_BITS} bits, and those at the end "
    "of a training 60 together, about rows of his choice: a sum can be one row's score at a fold's "
    "model"
)
"""What the sums of a study tell a Bob who deviates."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An opening of one training: its row of the table, with its number and its noise.

    ``numbers`` counts them per ``opening.per``; None if it is not known before.
    """

    opening: Opening
    numbers: int | None
    noise: Noise | None

    @property
    def noise_rows(self) -> float | None:
        """Width of the noise on a sum over rows, in rows; None for other numbers."""
        return self.noise.width if isinstance(self.noise, RowNoise) else None

    @property
    def noise_text(self) -> str:
        """The noise on each number; of a sum over rows also what one row moves."""
        if not isinstance(self.noise, RowNoise):
            return self.opening.noise_text
        return f"{self.noise.width_text}; {self.noise.moved_text}"


def openings_of(
    terms: Terms, rows: int, per_row: int, per_held_out_row: int = 0
) -> tuple[Opened, ...]:
    """Return all openings of a training on ``rows`` rows.

    ``per_row`` and ``per_held_out_row`` are the scores of a training row and a held-out row.
    """
    passes = terms.agreement.rounds
    return tuple(
        Opened(OPENINGS[kind, receiver], numbers, noise_of(kind, rows, passes))
        for kind, receiver, numbers in (
            *_to_both(),
            *_to_alice(terms),
            *_to_bob(terms, rows, per_row, per_held_out_row),
        )
    )


_Counted: TypeAlias = tuple[Kind, Receiver, int | None]


def _to_both() -> Iterator[_Counted]:
    receivers: tuple[Receiver, ...] = ("alice", "bob")
    for receiver in receivers:
        yield "shared ids", receiver, None
        yield "sizes", receiver, 2
        yield "largest value", receiver, 1


def _to_alice(terms: Terms) -> Iterator[_Counted]:
    agreed = terms.agreement
    if not terms.shares_weights:
        yield "label release", "alice", None
    if agreed.reveal_epsilon is not None:
        yield "noisy weights", "alice", 1
    elif agreed.reveal or not terms.shares_weights:
        yield "weights of Alice", "alice", 1
    if agreed.share_metrics == "quality":
        yield "quality", "alice", 1 if agreed.metrics_epsilon is not None else 2
    if agreed.patience is not None:
        yield "end of the training", "alice", 1


def _to_bob(terms: Terms, rows: int, per_row: int, per_held_out_row: int) -> Iterator[_Counted]:
    if terms.shares_scores:
        for kind in opened_sums(terms, rows):
            yield kind, "bob", 1
        if terms.summed is not None:
            yield "study sum", "bob", 1
        # Of training rows a study may open scores: each is held out of one fold.
        per_held_out_row = max(per_row, per_held_out_row)
    else:
        yield "training score", "bob", per_row
    if per_held_out_row and terms.summed is None:
        yield "held-out score", "bob", per_held_out_row
    if not terms.shares_scores or terms.agreement.reveal_bob:
        yield "weights of Bob", "bob", 1


def known_others_bits(terms: Terms, rows: int, trainings: int = 1) -> float:
    """Upper bound in bits on what the opened sums tell of a row to a Bob who knows all others.

    He chose a column or a label against that row; where scores wrap, no bound is known.
    """
    noises = (row_noise(kind, rows, terms.agreement.rounds) for kind in opened_sums(terms, rows))
    return sum(noise.bits(noise.moved.chosen, trainings) for noise in noises)


def distance_text(scores: int) -> str:
    """Statistical distance of so many opened scores from ones without the error of encryption."""
    return SCORE_NOISE.distance_text(scores)


def sums_text(terms: Terms, rows: int) -> str:
    """Sentence on the sums over all rows that a ``mutual`` training opens to Bob."""
    kinds = opened_sums(terms, rows)
    if not kinds:
        return (
            f"Of a training on fewer than {OPENING_ROWS:,} rows nothing is opened: Bob does not "
            "learn whether it converged"
        )
    noises = {kind: row_noise(kind, rows, terms.agreement.rounds) for kind in kinds}
    texts = "; ".join(
        f"the {OPENINGS[kind, 'bob'].description}, with {noise.width_text}: {noise.moved_text}"
        for kind, noise in noises.items()
    )
    bits = known_others_bits(terms, rows)
    return (
        f"At the end Bob learns {counted(len(kinds), 'sum')} over all training rows: "
        f"{texts}. That is {bits_text(bits)}; trainings of the same rows add up, and average the "
        "noise. It is no differential privacy: the model moves with the row too"
    )


def study_sums_text(rows: int, settings: int) -> str:
    """Describe what the sums of a study's settings tell Bob, without a final full stop."""
    noise = row_noise("study sum", rows)
    honest, chosen = (
        noise.bits(moved, settings) for moved in (noise.moved.honest, noise.moved.chosen)
    )
    return (
        "Bob receives no score of any row, and one noisy number per setting: "
        f"{counted(settings, 'sum')} over {rows:,} rows of a loss of at most {LOSS_CAP:g}, with "
        f"Laplace noise of {noise.width:g} rows each, which tell a Bob who knows all other rows "
        f"about {honest:.1g} bits of a row together, or {chosen:.1g} where he chose a column and "
        "the settings against it, if no score wraps"
    )
