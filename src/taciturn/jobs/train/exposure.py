"""Exposure of Alice's columns through the scores that a training opens to Bob.

Each opened score is a linear combination of one row of Alice's columns. With several Alices it is
the sum over all of them, and the bounds apply to their joint columns. A Bob who keeps to the
protocol has as many of them as the row was scored, with weights that he does not know. That does
not protect her columns: with whole-table training the scores of a pass are integers of one hidden
table times one hidden vector, a hidden subset sum problem, and lattice reduction finds the table
(Nguyen and Stern 1999; Coron and Gini 2020) for up to about twice as many columns as passes, with
no known row. Columns of small integers are short vectors of that lattice and need fewer passes
still. By batches the vectors differ from batch to batch; as many scores as she has columns
determine her columns up to a rotation, at least.

A Bob who deviates chooses the weights, where the mechanism lets him (``chosen_scores``), and reads
columns from each score, as many as its bits hold. Once he has seen some values of a column he knows
which it takes: two values need one bit, not a feature's.

- Weights that are shared: a score is an integer modulo ``2^k``. A column of few values takes the
  bits of their number, and one more where it was rounded; any other those of its range.
- Gradients that are returned: a score is a real of 53 bits, of columns that are not rounded. Those
  of few values take the bits of their number, and one other fits below them.

``tests/deviating.py`` plays him. Of columns of any values he needs as many scores as the bits say;
where most have two values, up to twice as many.

**Guarantee.** The counts of scores are exact for a training that is not ended early, and an upper
bound for one that is. ``scores_for_all`` is no more than the played attacks need. It is no bound on
all attacks: what is known of the columns besides (that one of a group is 1 and the others are 0)
takes fewer bits still.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable
from taciturn.errors import counted
from taciturn.jobs.train.few_columns import few_columns_text
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.protocol.opened_scores import OpenedScores
from taciturn.protocol.openings import (
    DEVIATING_STUDY_TEXT,
    SCORE_NOISE_TEXT,
    distance_text,
    study_sums_text,
    sums_text,
)
from taciturn.protocol.scales import Scales
from taciturn.protocol.table_scales import table_scales
from taciturn.protocol.terms import Terms
from taciturn.results.cost_preview import ColumnExposure


def sums_alone(terms: Terms) -> tuple[str, ...]:
    """Note that Bob learns only the sums of several Alices' scores; none for one Alice."""
    if terms.agreement.alices == 1:
        return ()
    return (
        f"Bob receives the sum of {terms.agreement.alices} Alices' scores of a row and no single "
        "Alice's, as long as he keeps to the protocol and another Alice does not tell him hers",
    )


def reconstruction(terms: Terms, opened: OpenedScores | None = None) -> str | None:
    """Columns of Alice's that a semi-honest Bob can reconstruct.

    The text has no final full stop; None where no training score is opened to him. ``opened``
    counts the scores of several trainings.
    """
    agreed = terms.agreement
    if terms.shares_scores:
        return None if opened is None or not opened.per_row else _from_study(opened)
    whose, row, has = (
        ("Alice's columns", "a row of hers", "she has")
        if agreed.alices == 1
        else ("the columns of all Alices", "a row of theirs", "they have")
    )
    if terms.whole_table:
        return (
            f"Bob can reconstruct {whose} from the scores that he receives: almost completely for "
            f"up to about {counted(2 * agreed.rounds, 'column')} from "
            f"{counted(agreed.rounds, 'pass')}, by known attacks. He need not deviate, nor know "
            f"{row}. Integer or one-hot columns need fewer passes, more passes make it "
            "easier, and no number of passes is known to be safe"
        )
    return (
        f"Bob can reconstruct {whose} from as many scores of a row as {has} columns: up to a "
        "rotation at least, and completely where he knows a few rows; he need not deviate. Integer "
        "or one-hot columns may need less, and no number of epochs is known to be safe"
    )


def column_exposure(
    terms: Terms,
    rows: int,
    table: FeatureTable,
    held_out: int = 0,
    opened: OpenedScores | None = None,
) -> ColumnExposure:
    """Exposure of Alice's columns to Bob in a training.

    ``table`` may be a sample of the training rows. ``opened`` counts the scores of several
    trainings.
    """
    opened = opened or OpenedScores.from_terms(terms, rows, held_out)
    few = few_columns_text(table)
    few = f". {few}" if few else ""
    if terms.shares_scores:
        read = opened.per_row > 0
        return ColumnExposure(
            scores_per_row=opened.per_row,
            opened_values=opened.in_all,
            columns_per_score=int(read),
            scores_for_all=len(table.columns) if read else 0,
            warning=(_from_study(opened) if read else _unseen(terms, rows, opened)) + few,
        )
    room = _Room.from_terms(terms, rows, table)
    return ColumnExposure(
        scores_per_row=opened.per_row,
        opened_values=opened.in_all,
        columns_per_score=room.columns_per_score,
        scores_for_all=room.scores_for_all,
        warning=_warning(terms, opened, len(table.columns), room) + few,
    )


@dataclass(frozen=True, slots=True)
class _Room:
    columns_per_score: int
    scores_for_all: int

    @classmethod
    def from_terms(cls, terms: Terms, rows: int, table: FeatureTable) -> _Room:
        form = terms.mechanism.chosen_scores
        if form is None:
            return cls(1, len(table.columns))
        values = table.values[:_LOOKED_AT]
        if form == "real":
            few = [taken for column in values.T if (taken := _level_bits(column)) is not None]
            remaining = len(table.columns) - len(few)
            # The lowest digits of one column of any values lie over the next.
            return cls(
                min(remaining, 1) + _fitting(few, _REAL_BITS),
                max(remaining, math.ceil(sum(few) / _REAL_BITS), 1),
            )
        scales = _scales(terms, rows, table)
        bits, room = _shared_bits(values, scales), scales.modulus_bits
        alone = sum(column > room for column in bits)
        beside = [column for column in bits if column <= room]
        return cls(max(1, _fitting(beside, room)), max(1, alone + math.ceil(sum(beside) / room)))


def _scales(terms: Terms, rows: int, table: FeatureTable) -> Scales:
    # Whitened columns mix those before them: they hold no less than the columns themselves do, and
    # who knows the whitening reads these. So they are counted as the columns are.
    size = min(magnitude_bits(table.largest), _WHITENED)
    return table_scales(terms.agreement, rows, len(table.columns), size)


_WHITENED = 8
"""The bits of a whitened value that is large: outliers have more, and leave a score less room."""

_LOOKED_AT = 50_000
"""Rows in which a column's values are counted; where it has more of them in others, it counts as
having fewer, which errs to the safe side."""

_REAL_BITS = 53
"""What a 64-bit real holds."""


def _level_bits(column: FloatArray) -> float | None:
    """The bits of the number of a column's values, where they recur; None where they do not.

    One at least: a column that is constant in a sample need not be so in the table.

    >>> _level_bits(np.array([0.0, 1.0, 1.0, 0.0]))
    1.0
    >>> _level_bits(np.array([0.1, 0.2, 0.3, 0.4]))
    """
    levels = len(np.unique(column))
    return math.log2(max(levels, 2)) if levels <= 2 or levels**2 <= len(column) else None


def _shared_bits(values: FloatArray, scales: Scales) -> list[float]:
    """The bits that each column takes of a score from shared weights."""
    unit, bits = 2.0**scales.feature_bits, []
    for column in values.T:
        levels = _level_bits(column)
        if levels is None:
            bits.append(math.log2(float(np.ptp(column)) * unit + 2))
        else:
            # A value between two points of the grid is rounded, to one of two.
            rounded = bool((column * unit % 1.0).any())
            bits.append(levels + rounded)
    return bits


def _fitting(bits: list[float], room: float) -> int:
    return int(np.searchsorted(np.cumsum(sorted(bits)), room, side="right"))


def _from_study(opened: OpenedScores) -> str:
    """Exposure by a study that opens scores (``open-scores``)."""
    return (
        f"Bob receives up to {counted(opened.per_row, 'score')} of each training row, "
        f"{SCORE_NOISE_TEXT}, and can reconstruct Alice's columns from them while he keeps to the "
        "protocol: without his own columns, as many scores of a row as she has columns span hers, "
        "and a few known rows give the values"
    )


def study_sums_of(terms: Terms, opened: OpenedScores) -> str:
    """What a study tells Bob that opens one sum for each setting."""
    return study_sums_text(0 if terms.summed is None else terms.summed.rows, opened.study_sums)


def _unseen(terms: Terms, rows: int, opened: OpenedScores) -> str:
    if terms.summed is not None:
        ends = opened.sums - opened.study_sums
        beside = f"; and {counted(ends, 'sum')} at the end of trainings on all rows" if ends else ""
        return f"{study_sums_of(terms, opened)}{beside}. {DEVIATING_STUDY_TEXT}"
    text = f"Bob receives no score of a training row. {sums_text(terms, rows)}"
    if opened.sums:
        text += (
            ". If he deviates from the protocol, he learns at most 60 bits (about seven "
            "characters) per training, about rows of his choice; trainings-per-row limits them"
        )
    scores = opened.in_all - opened.sums
    if not scores:
        return text
    return (
        f"{text}. He learns {counted(scores, 'score')} of held-out rows, {SCORE_NOISE_TEXT}, which "
        f"hide the error of encryption to within {distance_text(scores)}. As many "
        "scores of rows whose values he knows as Alice has columns give him her weights, and these "
        "a training row if he knows all others; if he deviates, they can tell him about training "
        "rows of his choice"
    )


def _warning(terms: Terms, opened: OpenedScores, columns: int, room: _Room) -> str:
    agreed, needed, per_score = terms.agreement, room.scores_for_all, room.columns_per_score
    several = agreed.alices > 1
    summed = f", each the sum of {agreed.alices} Alices'" if several else ""
    whose = "the columns of all Alices" if several else "her columns"
    text = f"Bob receives up to {counted(opened.per_row, 'score')} of each training row{summed}"
    if terms.whole_table:
        text += f", and can reconstruct {whose} from them while he keeps to the protocol"
    else:
        plural = "s" if columns == 1 else ""
        text += f"; {counted(columns, 'score')} of each determine{plural} {whose} at least up to a "
        text += "rotation"
    if terms.mechanism.chosen_scores is None:
        return f"{text}, also where he deviates"
    if terms.whole_table and agreed.rounds >= needed:
        reach = f"all {columns} after {counted(needed, 'score')}, by pass {needed}"
    # Rows of the first batch have no useful score in the first epoch.
    elif agreed.subset_size is None and agreed.rounds > needed:
        reach = f"all {columns} after {counted(needed, 'score')}, by epoch {needed + 1}"
    elif opened.per_row > needed:
        reach = f"all {columns} after {counted(needed, 'score')}"
    else:
        most = columns if opened.per_row == needed else columns - 1
        reach = f"up to {min(most, per_score * opened.per_row)} of {columns} in this training"
    return (
        f"{text}; if he deviates, which {'they' if several else 'she'} cannot notice, he can "
        f"read {'' if per_score == 1 else 'up to '}{counted(per_score, 'column')} from one score, "
        f"and {reach}"
    )
