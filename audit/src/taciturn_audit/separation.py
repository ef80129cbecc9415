"""Test whether Bob can separate one Alice's scores from the sum of several.

Several Alices answer under masks that cancel in their sum (``taciturn.protocol.masks``). From
all that he has, decrypted with his own keys, this takes the numbers that each Alice answered and
asks of each whether they say anything of her scores. A ridge regression learns on the first half of
the training which numbers go with high scores, and says which half of the rest are the higher ones:
from a number, as a whole and modulo every power of two, its low bits that is; from the difference
of two answers about the same row, or in the same place of two messages; with three Alices or more
also from the sum of any two Alices' answers, against the sum of their scores.

The same looks are given to faults: scores without masks, masks that leave the low bits alone, and
masks that are used for two requests. So a report says what would have been noticed.

**Guarantee.** If masks are independent and uniform, a dependence is said to be noticed with
probability ``FALSE_ALARM`` at most, over all looks: the half that is called the higher one is then
any half with the same chance, so that the number of right calls is hypergeometric. That holds
whatever the scores are.

**Assumes.** Her true scores, which the judge has: from her columns and Bob's own steps in training
by batches, and in passes from the one way in which all Alices' columns make the sum. Where columns
of two Alices depend on each other there are several, and the look is weaker, not wrong. Chance is
no proof: a dependence that this learner does not see is not noticed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from scipy.special import betaincinv, gammaln

from taciturn.arrays import BoolArray, FloatArray, IndexArray, IntArray
from taciturn.data.tables import FeatureTable
from taciturn.parallel import one_thread
from taciturn.rng import KeyedEntropy
from taciturn_audit.column_attacks.scores import table_scores
from taciturn_audit.distinguishing_game import FALSE_ALARM, POWER, ridge
from taciturn_audit.exact_intervals import clopper_pearson
from taciturn_audit.results.columns import Fault, Look, Separation
from taciturn_audit.views.bob_view import BobView

MOST = 2000
"""So many numbers, evenly spaced, stand for more in a look."""

LEAST = 100
"""Of fewer numbers no look can be sure."""

_POWERS = 64
# The faults' scores are whole numbers of this many digits, of which their masks leave so many bits.
_DIGITS, _LEFT = 20, 28


@dataclass(frozen=True, slots=True)
class Answers:
    """One Alice's answers, number by number in the order of time.

    ``places`` are places in the message. ``numbers`` are under her masks, as Bob has them, and
    ``scores`` her true part of the score.
    """

    rows: IndexArray = field(repr=False)
    places: IndexArray = field(repr=False)
    numbers: IntArray = field(repr=False)
    scores: FloatArray = field(repr=False)

    def moved(self, owners: IndexArray) -> Answers:
        """Differences of two successive answers of one owner: a row, or a place.

        No answer is in two differences: they are as independent as the answers are.
        """
        order = np.argsort(owners, kind="stable")
        owners = owners[order]
        ranks = np.arange(len(owners)) - np.searchsorted(owners, owners)
        second = np.flatnonzero(ranks % 2 == 1)
        # In the order of time again: one half is learnt from, the other judged.
        second = second[np.argsort(order[second], kind="stable")]
        late, early = order[second], order[second - 1]
        return Answers(
            self.rows[late],
            self.places[late],
            self.numbers[late] - self.numbers[early],
            self.scores[late] - self.scores[early],
        )

    def __add__(self, other: Answers) -> Answers:
        return replace(
            self, numbers=self.numbers + other.numbers, scores=self.scores + other.scores
        )


def separate(view: BobView, tables: Sequence[FeatureTable]) -> Separation | None:
    """Try to separate each Alice's scores by her answers; None where there are too few of them.

    ``tables`` are in the agreement's order; no learner sees them.
    """
    start = time.perf_counter()
    with one_thread():
        answers = answers_of(view, tables)
        names = tuple(name or "alice" for name in view.partners)
        looked = {
            name: answered
            for name, answered in _looked(names, answers)
            if len(answered.rows) >= LEAST
        }
        looks = tuple(_look(name, answered, len(looked)) for name, answered in looked.items())
        if not looks:
            return None
        faults = tuple(_faults(answers[0], len(looked)))
    return Separation(
        alices=names,
        numbers=sum(len(answer.numbers) for answer in answers),
        looks=looks,
        false_alarm=FALSE_ALARM,
        detectable=_detectable(looks[0].judged, len(looks)),
        faults=faults,
        noticed=any(look.noticed for look in looks),
        seconds=time.perf_counter() - start,
    )


def _looked(names: Sequence[str], answers: Sequence[Answers]) -> Iterator[tuple[str, Answers]]:
    for name, answer in zip(names, answers, strict=True):
        yield f"{name}: numbers", answer
        yield f"{name}: differences of a row", answer.moved(answer.rows)
        # Passes have every row in its own place.
        if not np.array_equal(answer.rows, answer.places):
            yield f"{name}: differences of a place", answer.moved(answer.places)
    # Of two Alices it is the sum that Bob is given.
    pairs = combinations(zip(names, answers, strict=True), 2) if len(names) > 2 else ()
    for (name, answer), (second, other) in pairs:
        yield f"{name} and {second}: sums", answer + other


# --- numbers and scores -------------------------------------------------------------------------


def answers_of(view: BobView, tables: Sequence[FeatureTable]) -> list[Answers]:
    """The answers of each Alice, with her true scores."""
    asked = [*_of_passes(view, tables)] if view.directions else [*_of_batches(view, tables)]
    return [
        _joined(
            [
                Answers(rows, np.arange(len(rows)), answered[turn], parts[alice])
                for turn, rows, parts in asked
            ]
        )
        for alice, answered in enumerate(view.answers)
    ]


def _joined(parts: Sequence[Answers]) -> Answers:
    if not parts:
        none = np.empty(0, dtype=np.int64)
        return Answers(none, none, none, np.empty(0))
    rows, places, numbers = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("rows", "places", "numbers")
    )
    return Answers(rows, places, numbers, np.concatenate([part.scores for part in parts]))


def _of_batches(
    view: BobView, tables: Sequence[FeatureTable]
) -> Iterator[tuple[int, IndexArray, list[FloatArray]]]:
    weights = [np.zeros(len(table.columns)) for table in tables]
    for event in view.batches:
        values = [table.values.take(event.rows, axis=0) for table in tables]
        # All weights are zero at first: scores that are all alike have no middle.
        if event.iteration:
            parts = [
                part @ batch_weights for part, batch_weights in zip(values, weights, strict=True)
            ]
            yield event.iteration, event.rows, parts
        weights = [
            event.shrink * batch_weights + event.step @ part
            for part, batch_weights in zip(values, weights, strict=True)
        ]


def _of_passes(
    view: BobView, tables: Sequence[FeatureTable]
) -> Iterator[tuple[int, IndexArray, list[FloatArray]]]:
    rows = np.arange(view.features.rows)
    joined = np.hstack([table.values for table in tables])
    weights = np.linalg.lstsq(joined, table_scores(view), rcond=1e-9)[0]
    stops = np.cumsum([len(table.columns) for table in tables])[:-1]
    for event, direction in zip(view.directions, weights.T, strict=True):
        pairs = zip(tables, np.split(direction, stops), strict=True)
        yield event.iteration, rows, [table.values @ part for table, part in pairs]


# --- one look -----------------------------------------------------------------------------------


def _look(name: str, answers: Answers, looks: int) -> Look:
    spaced = np.linspace(0, len(answers.numbers) - 1, min(MOST, len(answers.numbers)))
    places = spaced.astype(np.int64)
    half = len(places) // 2
    known, asked = places[:half], places[half : 2 * half]
    known, asked = known[: len(known) // 2 * 2], asked[: len(asked) // 2 * 2]
    signs = np.where(_above(answers.scores[known]), 1.0, -1.0)
    features = _features(answers.numbers)
    guesses = _above(ridge(features[known], signs, features[asked]))
    right, judged = int(np.count_nonzero(guesses == _above(answers.scores[asked]))), len(asked)
    low, high = clopper_pearson(right, judged)
    return Look(name, right, judged, right / judged, low, high, right >= needed(judged, looks))


def needed(judged: int, looks: int) -> int:
    """The fewest right calls that are no chance: ``FALSE_ALARM`` over all looks.

    >>> needed(1000, 4)
    582
    """
    half = judged // 2
    hits = np.arange(half + 1)
    # As many of the higher half were called so, and as many of the lower one were not.
    ways = gammaln(half + 1) - gammaln(hits + 1) - gammaln(half - hits + 1)
    chances = np.exp(2.0 * ways + 2.0 * gammaln(half + 1) - gammaln(2 * half + 1))
    rare = np.flatnonzero(np.cumsum(chances[::-1])[::-1] <= FALSE_ALARM / looks)
    return 2 * int(hits[rare[0]]) if len(rare) else judged + 1


def _detectable(judged: int, looks: int) -> float:
    """The share of calls that a dependence must make right for it to be noticed with ``POWER``."""
    least = needed(judged, looks)
    return 1.0 if least > judged else float(betaincinv(least, judged - least + 1, POWER))


def _above(scores: FloatArray) -> BoolArray:
    above = np.zeros(len(scores), dtype=bool)
    above[np.argsort(scores, kind="stable")[len(scores) // 2 :]] = True
    return above


def _features(numbers: IntArray) -> FloatArray:
    """The number itself, and its position modulo every power of two."""
    words = numbers.view(np.uint64)[:, None]
    shifted = words << np.arange(_POWERS, dtype=np.uint64)
    angles = 2.0 * np.pi * shifted.astype(np.float64) / 2.0**64
    return np.column_stack([numbers.astype(np.float64), np.cos(angles), np.sin(angles)])


# --- faults that must be noticed ----------------------------------------------------------------


def _faults(answers: Answers, looks: int) -> Iterator[Fault]:
    whole = np.rint(np.clip(answers.scores, -128, 128) * 2.0**_DIGITS).astype(np.int64)
    words = KeyedEntropy.from_seed(len(whole)).fork("masks").words(len(whole)).view(np.int64)
    shifted = words >> _LEFT << _LEFT
    for name, numbers, described in (
        ("unmasked", whole, "scores without masks"),
        ("low-bits", whole + shifted, f"masks that leave the low {_LEFT} bits alone"),
    ):
        noticed = _look(name, replace(answers, numbers=numbers), looks).noticed
        yield Fault(name, described, "numbers", noticed)
    reused = replace(answers, numbers=whole + words[answers.rows % len(words)])
    moved = reused.moved(answers.rows)
    if len(moved.rows) >= LEAST:
        described = "the same mask for all answers about a row"
        noticed = _look("reused-mask", moved, looks).noticed
        yield Fault("reused-mask", described, "differences", noticed)
