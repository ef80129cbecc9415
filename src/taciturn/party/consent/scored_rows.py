"""The scores of Alice's rows that a partner was given: how many models scored a row, and which.

A score is one linear function of a row. Scores by different models are different functions, which
together determine the row. The same model may score a row again: where the partner's own columns
have changed since, the difference of the two scores tells him his weights, and Alice cannot see
that they have. So both are counted, each by itself.

**Contents.** The account ``scores`` of a partner has for each row

- its value: by how many different models the row was scored,
- ``repetitions``: how often a model scored it again that had scored it before,
- ``trainings``: in how many trainings it was a training row,

and for each model that has a name a bitmap of the rows that it has scored. A model of a pass, or of
a fold, has no name, since it scores nothing later: it counts in the value alone. So do the scores
that release 0.3 counted, which did not record the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from taciturn.party.consent.records import VALUE, Flags, Records, Tags, Values

SCORES, REPETITIONS, TRAININGS = "scores", "repetitions", "trainings"


def model_column(name: str) -> str:
    """The column of the rows that a model has scored."""
    return f"model {name}"


@dataclass(frozen=True, slots=True)
class RowOpening:
    """What each row of a charge is used for.

    ``models`` names the models that score it, each once. ``unnamed`` counts further ones, which
    score no row later. ``trainings`` counts the trainings of which it is a training row.
    """

    trainings: int = 0
    unnamed: int = 0
    models: tuple[str, ...] = ()

    @property
    def scores(self) -> int:
        """The number of scores of a row, at most as many different models."""
        return self.unnamed + len(self.models)


@dataclass(frozen=True, slots=True)
class RowChange:
    """Counts of rows before an opening, by column, and what the opening adds to each."""

    tags: Tags
    before: Mapping[str, Values]
    added: Mapping[str, Values]


@dataclass(frozen=True, slots=True)
class LargestCounts:
    """The number of rows of a partner's account, and the largest count of one row of each kind."""

    rows: int
    models: int
    repetitions: int
    trainings: int


class ScoredRows:
    """The scored rows of a partner, within a transaction."""

    def __init__(self, records: Records, partner: str) -> None:
        self._account = records.account(SCORES, partner)

    def change(self, tags: Tags, opening: RowOpening) -> RowChange:
        """The rows before an opening, and what it adds; nothing is written."""
        models = [model_column(name) for name in opening.models]
        columns = [VALUE, REPETITIONS, TRAININGS, *models]
        before = dict(zip(columns, self._account.read(tags, *columns), strict=True))
        again = sum((before[model] for model in models), np.zeros(len(tags), np.int64))
        added = {
            VALUE: opening.scores - again,
            REPETITIONS: again,
            TRAININGS: np.full(len(tags), opening.trainings),
            **{model: 1 - before[model] for model in models},
        }
        return RowChange(tags, before, added)

    def write(self, change: RowChange, rows: Flags | None = None) -> None:
        """Write an opening of the rows of a change, or of some of them."""
        chosen = slice(None) if rows is None else rows
        changed = {
            column: (change.before[column] + added)[chosen]
            for column, added in change.added.items()
            if added[chosen].any()
        }
        self._account.write(change.tags[chosen], changed)

    def largest(self) -> LargestCounts:
        """The largest counts of a row."""
        models, repetitions, trainings = (
            int(self._account.rows(column)[1].max(initial=0))
            for column in (VALUE, REPETITIONS, TRAININGS)
        )
        return LargestCounts(self._account.row_count, models, repetitions, trainings)
