"""``OpenedScores``: how many scores and sums of Alice's rows a training opens to Bob."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from taciturn.protocol.mutual_sums import opened_sums
from taciturn.protocol.terms import Terms


@dataclass(frozen=True, slots=True)
class OpenedScores:
    """Number of scores a training opens to Bob; with several Alices, number of summed scores.

    ``per_row`` is the most of one training row. ``in_all`` includes ``sums`` over all training rows
    where no score is opened: losses, and a count. ``by_trained`` are those of ``per_row`` that the
    trained model gives, which may score the row again later; the others are by models of one pass.
    ``study_sums`` judge the settings of a study, and are among ``sums``.
    """

    per_row: int
    per_held_out_row: int
    in_all: int
    by_trained: int = 0
    sums: int = 0
    study_sums: int = 0

    @classmethod
    def from_terms(cls, terms: Terms, rows: int, held_out: int = 0) -> OpenedScores:
        """Counts of a training on this many rows."""
        agreed = terms.agreement
        looks = agreed.models + (agreed.rounds if agreed.evaluate == "epoch" else 0)
        if terms.shares_scores:
            sums = len(opened_sums(terms, rows))
            if terms.summed is not None:
                # A fold opens nothing; its setting's sum counts with the training on all rows.
                judged = int(not terms.summed.fold)
                return cls(0, 0, sums + judged, sums=sums + judged, study_sums=judged)
            return cls(0, looks, held_out * looks + sums, sums=sums)
        if terms.shares_weights:
            in_all = rows * agreed.rounds + held_out * looks
            return cls(agreed.rounds, looks, in_all)
        # Training rows are scored once more at the end.
        if agreed.subset_size is not None:
            iterations = terms.iterations(rows)
            # Bob names the rows of a hidden batch: he may name the same ones each time.
            asked = iterations * min(agreed.subset_size, rows)
            in_all = asked + rows + held_out * looks
            return cls(iterations + 1, looks, in_all, 1)
        per_row = agreed.rounds + 1
        return cls(per_row, looks, rows * per_row + held_out * looks, 1)


def counted_sums(trainings: Iterable[tuple[Terms, int]]) -> Counter[tuple[str, int, int]]:
    """Count the sums that ``mutual`` trainings open, each training given by its terms and its rows.

    Sums of the same kind, rows and passes have the same noise, and are counted together.
    """
    counts: Counter[tuple[str, int, int]] = Counter()
    for terms, rows in trainings:
        if not terms.shares_scores:
            continue
        passes = terms.agreement.rounds
        counts.update((kind, rows, passes) for kind in opened_sums(terms, rows))
        # The sum of a setting counts with its training on all rows.
        if terms.summed is not None and not terms.summed.fold:
            counts["study sum", terms.summed.rows, passes] += 1
    return counts
