"""The scores of Alice's rows that a partner was given: how many models scored a row, and which.

A score is one linear function of a row. Scores by different models are different functions, which
together determine the row. The same model may score a row again: where the partner's own columns
have changed since, the difference of the two scores tells him his weights, and Alice cannot see
that they have. So both are counted, each by itself.

**Contents**, for each partner and row:

- ``models``: by how many different models the row was scored,
- ``repetitions``: how often a model scored it again that had scored it before,
- ``trainings``: in how many trainings it was a training row,

and for each partner and model that has a name the set of rows that it has scored. A model of a
pass, or of a fold, has no name, since it scores nothing later: it counts in ``models`` alone. So do
the scores that release 0.3 counted, which did not record the model.

**Storage.** The account ``scores`` packs into a row's value ``models``, ``trainings`` and one bit
for each of the first models; ``scored-by`` has the bits of further models, and ``repetitions`` that
count. The rows of all of them have the tags of ``scores``. A count of release 0.3 is a value
without the upper fields.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from taciturn.party.consent.records import Account, Records, Tags, Values

SCORES, REPETITIONS, SCORED_BY = "scores", "repetitions", "scored-by"
_MODEL = "model"
_MODEL_BITS, _TRAINING_BITS, _SET_BITS = 32, 15, 16
_TRAINING_SHIFT, _SET_SHIFT = _MODEL_BITS, _MODEL_BITS + _TRAINING_BITS
_MOST_MODELS, _MOST_TRAININGS = (1 << _MODEL_BITS) - 1, (1 << _TRAINING_BITS) - 1
_SETS = ((1 << _SET_BITS) - 1) << _SET_SHIFT
_FURTHER_SET_BITS = 63

Rows: TypeAlias = NDArray[np.bool_]


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
    """Counts of rows before an opening, and what the opening adds to each.

    ``new`` counts the models that had not scored the row, and ``again`` those that had.
    """

    opening: RowOpening
    tags: Tags
    stored: Values
    new: Values
    again: Values

    @property
    def models(self) -> Values:
        """The number of models that had scored each row."""
        return _models_of(self.stored)

    @property
    def trainings(self) -> Values:
        """The number of trainings of each row."""
        return _trainings_of(self.stored)


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
        self._records, self._partner = records, partner
        self._counts = records.account(SCORES, partner)
        self._repetitions = records.account(REPETITIONS, partner)
        entries = self._counts.entries(_MODEL)
        self._numbers = {name: int(number) for name, number in entries.items()}

    def change(self, tags: Tags, opening: RowOpening) -> RowChange:
        """The rows before an opening, and what it adds; nothing is written."""
        stored = self._counts.values(tags)
        again = np.zeros(len(tags), np.int64)
        for name in opening.models:
            if name in self._numbers:
                block, bit = _bit(self._numbers[name])
                bits = self._further(block).values(tags) if block else stored
                again += (bits & bit) != 0
        return RowChange(opening, tags, stored, opening.scores - again, again)

    def repetitions(self, tags: Tags) -> Values:
        """How often each row was scored again."""
        return self._repetitions.values(tags)

    def write(self, change: RowChange, rows: Rows | None = None) -> None:
        """Write an opening of the rows of a change, or of some of them."""
        opening, tags, stored = change.opening, change.tags, change.stored
        bits = self._named(opening.models)
        models = np.minimum(change.models + change.new, _MOST_MODELS)
        trainings = np.minimum(change.trainings + opening.trainings, _MOST_TRAININGS)
        after = models | trainings << _TRAINING_SHIFT | stored & _SETS | bits.pop(0, 0)
        _write_where(self._counts, tags, after, after != stored, rows)
        for block, added in bits.items():
            account = self._further(block)
            former = account.values(tags)
            _write_where(account, tags, former | added, former & added != added, rows)
        repeated = change.again > 0
        if repeated.any():
            total = self._repetitions.values(tags) + change.again
            _write_where(self._repetitions, tags, total, repeated, rows)

    def largest(self) -> LargestCounts:
        """The largest counts of a row."""
        packed = np.array([0, *self._counts.distinct_values()], np.int64)
        return LargestCounts(
            rows=self._counts.row_count,
            models=int(_models_of(packed).max()),
            repetitions=max(self._repetitions.distinct_values(), default=0),
            trainings=int(_trainings_of(packed).max()),
        )

    def _named(self, models: tuple[str, ...]) -> dict[int, int]:
        """The bits of models, by block; a model that is new gets a number."""
        bits: dict[int, int] = {}
        for name in models:
            if name not in self._numbers:
                self._numbers[name] = len(self._numbers)
                self._counts.write_entry(_MODEL, name, str(self._numbers[name]))
            block, bit = _bit(self._numbers[name])
            bits[block] = bits.get(block, 0) | bit
        return bits

    def _further(self, block: int) -> Account:
        return self._records.account(SCORED_BY, json.dumps([self._partner, block]))


def _bit(number: int) -> tuple[int, int]:
    """The block that has the bit of a model, and the bit; block 0 is the account of the counts.

    >>> _bit(0) == (0, 1 << 47), _bit(15) == (0, 1 << 62), _bit(16), _bit(79)
    (True, True, (1, 1), (2, 1))
    """
    if number < _SET_BITS:
        return 0, 1 << (_SET_SHIFT + number)
    block, place = divmod(number - _SET_BITS, _FURTHER_SET_BITS)
    return 1 + block, 1 << place


def _models_of(stored: Values) -> Values:
    return stored & _MOST_MODELS


def _trainings_of(stored: Values) -> Values:
    return stored >> _TRAINING_SHIFT & _MOST_TRAININGS


def _write_where(
    account: Account, tags: Tags, values: Values, changed: Rows, rows: Rows | None
) -> None:
    """Write the values that have changed, of the rows that are meant."""
    if rows is not None:
        changed = changed & rows
    if changed.all():
        account.write_values(tags, values)
    elif changed.any():
        account.write_values(tags[changed], values[changed])
