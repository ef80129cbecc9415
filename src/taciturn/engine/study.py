"""The trainings of a study, and the scores that all of them open to Bob together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from taciturn.engine.exposure import OpenedScores
from taciturn.protocol.terms import Terms
from taciturn.settings.study import Point


@dataclass(frozen=True, slots=True)
class StudyModel:
    """One training of a study.

    ``number`` counts from 0 in the order of training. ``fold`` is the fold that it leaves out; None
    where it has all training rows. ``scored`` counts the rows scored at its end: its fold's, or the
    held-out ones.
    """

    number: int
    point: Point
    fold: int | None
    terms: Terms
    rows: int
    scored: int

    @property
    def passes(self) -> int:
        """How many iterations it takes."""
        return self.terms.agreement.epochs * self.terms.per_epoch(self.rows)

    @property
    def opened(self) -> OpenedScores:
        """The scores that it opens to Bob."""
        return OpenedScores.of(self.terms, self.rows, self.scored)


def opened_of_fold(models: Sequence[StudyModel], fold: int) -> int:
    """How many scores of a training row all trainings open to Bob; ``fold`` is 0 without folds."""
    return sum(
        model.opened.per_held_out_row if model.fold == fold else model.opened.per_row
        for model in models
    )


def opened_scores(models: Sequence[StudyModel], folds: int) -> OpenedScores:
    """The scores that all trainings open to Bob: the most of one row, and those of all rows."""
    whole = [model for model in models if model.fold is None]
    return OpenedScores(
        per_row=max(opened_of_fold(models, fold) for fold in range(max(folds, 1))),
        per_held_out_row=sum(model.opened.per_held_out_row for model in whole if model.scored),
        in_all=sum(model.opened.in_all for model in models),
    )
