"""What the scores that a training opens to Bob tell him of Alice's columns: counts, and words.

A score is one linear function of a row of hers. A Bob who keeps to the protocol has as many of them
as the row was scored, with weights that he does not know; as many as she has columns determine her
columns up to a rotation.

A Bob who deviates chooses the weights, where the mechanism lets him (``steers_weights``), and reads
a column from each score. Where weights are shared he reads several: a feature is an integer of
``w = fx + b + 1`` bits with its sign, a score one modulo ``2^k``, and weights ``1, 2^w, 2^2w, …``
put ``floor(k / w)`` features side by side. Dither of s covers the lowest digits, and leaves
``k - log2(2 s 2^score_bits + 1)`` bits of a score. ``tests/deviating.py`` plays him.

**Guarantee.** The counts are exact for a training that is not ended early, and an upper bound for
one that is. ``columns_per_score`` is what the attack above reads of columns of any values; columns
of few values take fewer scores still.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from taciturn.protocol.scales import Scales
from taciturn.protocol.terms import Terms
from taciturn.results.check import ColumnExposure
from taciturn.rng import KEY_BYTES


@dataclass(frozen=True, slots=True)
class OpenedScores:
    """How many scores a training between two parties opens to Bob.

    Args:
        per_row: The most of one training row.
        per_held_out_row: Those of a held-out row.
        in_all: Those of all rows.
    """

    per_row: int
    per_held_out_row: int
    in_all: int

    @classmethod
    def of(cls, terms: Terms, rows: int, held_out: int = 0) -> OpenedScores:
        """The counts of a training on so many rows.

        Args:
            terms: The agreement in use.
            rows: Training rows.
            held_out: Held-out rows, which are scored at the end.
        """
        agreed, method = terms.agreement, terms.mechanism
        looks = 1 + (agreed.epochs if agreed.evaluate == "epoch" else 0)
        plan = terms.plan(bytes(KEY_BYTES), rows)
        if terms.whole_table and method.shares_weights:
            return cls(agreed.epochs, looks, rows * agreed.epochs + held_out * looks)
        if method.shares_weights:
            # The first batch's scores are zero, and are not asked for.
            unasked = len(next(iter(plan)).rows)
            return cls(agreed.epochs, looks, rows * agreed.epochs - unasked + held_out * looks)
        # Training rows are scored once more at the end.
        if agreed.subset_size is not None:
            # Bob names the rows of a hidden batch: he may name the same ones each time.
            asked = plan.iterations * min(agreed.subset_size, rows)
            return cls(plan.iterations + 1, looks, asked + rows + held_out * looks)
        per_row = agreed.epochs + 1
        return cls(per_row, looks, rows * per_row + held_out * looks)


def column_exposure(
    terms: Terms, rows: int, columns: int, magnitude_bits: int, held_out: int = 0
) -> ColumnExposure:
    """What a training tells Bob of Alice's columns.

    Args:
        terms: The agreement in use.
        rows: Training rows.
        columns: Alice's columns.
        magnitude_bits: No value of hers exceeds 2^magnitude_bits.
        held_out: Held-out rows.
    """
    opened = OpenedScores.of(terms, rows, held_out)
    per_score = columns_per_score(terms, rows, columns, magnitude_bits)
    return ColumnExposure(
        scores_per_row=opened.per_row,
        opened_values=opened.in_all,
        columns_per_score=per_score,
        scores_for_all=math.ceil(columns / per_score),
        warning=_warning(terms, opened, columns, per_score),
    )


def columns_per_score(terms: Terms, rows: int, columns: int, magnitude_bits: int) -> int:
    """How many columns of any values a Bob who deviates reads from one score of a row."""
    if not terms.mechanism.shares_weights:
        # Scores in floating point: the lowest digits of one feature would lie over the next.
        return 1
    scales = (
        Scales.of_table(terms.agreement, rows, columns, magnitude_bits)
        if terms.whole_table
        else Scales.of(terms.agreement, rows, magnitude_bits)
    )
    width = scales.feature_bits + magnitude_bits + 1
    return max(1, int(bits_per_score(scales, terms.agreement.dither or 0.0) // width))


def bits_per_score(scales: Scales, dither: float) -> float:
    """How many bits of a score from shared weights the dither leaves.

    >>> import numpy as np
    >>> scales = Scales(modulus_bits=50, feature_bits=10, residue_bits=21, decay=np.ones(1))
    >>> bits_per_score(scales, 0.0), round(bits_per_score(scales, 1.0), 3)
    (50.0, 8.0)
    """
    return scales.modulus_bits - math.log2(2 * scales.dither_steps(dither) + 1)


def _warning(terms: Terms, opened: OpenedScores, columns: int, per_score: int) -> str:
    agreed, needed = terms.agreement, math.ceil(columns / per_score)
    text = (
        f"Bob receives up to {_counted(opened.per_row, 'score')} of each training row. "
        f"{_counted(columns, 'score')} of each row determine her columns up to a rotation"
    )
    if not terms.mechanism.steers_weights:
        return f"{text}, also where he does not keep to the protocol"
    # Rows of the first batch have no useful score in the first epoch.
    if agreed.subset_size is None and agreed.epochs > needed:
        reach = f"all {columns} after {_counted(needed, 'score')}, by epoch {needed + 1}"
    elif opened.per_row > needed:
        reach = f"all {columns} after {_counted(needed, 'score')}"
    else:
        reach = f"up to {min(columns, per_score * opened.per_row)} of {columns} in this training"
    return (
        f"{text}; if he does not keep to the protocol, which she cannot notice, he reads "
        f"{_counted(per_score, 'column')} from each score, and {reach}; fewer scores do for "
        "columns of few values"
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
