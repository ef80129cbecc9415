"""How good a model is, as Alice is told it: rounded, or an accuracy with noise at its price."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from taciturn.numerics.metrics import auc
from taciturn.privacy.events import NoisyAccuracy, NonPrivate
from taciturn.privacy.noise import divisor, scale
from taciturn.privacy.prices import price
from taciturn.privacy.quality_release import STEPS, release, told_quality
from taciturn.rng import KeyedEntropy

SCORES = np.array([2.5, 1.1, 0.7, 0.2, -0.1, -0.6, -0.9, -1.4, -2.0, -3.1])
LABELS = np.array([1, 1, 0, 1, 1, 0, 0, 1, 0, 0], dtype=np.int8)


def test_without_epsilon_both_figures_are_told_in_whole_per_cent_at_an_infinite_price():
    entropy = KeyedEntropy.from_seed(1)
    released = release(SCORES, LABELS, None, entropy)
    assert released.event == NonPrivate()
    exact = float(np.mean((SCORES > 0) == LABELS)), auc(SCORES, LABELS)
    assert released.value.tolist() == [round(STEPS * figure) for figure in exact] == [70, 80]


@pytest.mark.slow  # a second or two, and others show the same on less
def test_with_epsilon_the_accuracy_alone_is_told_and_its_law_pays_for_one_label():
    """The ratio of what two neighbours are told, where both are told it often."""
    epsilon, draws = 1.0, 2_000
    assert price(NoisyAccuracy(epsilon)).label == epsilon
    # The noise on a count of right rows: one label moves the count by 1.
    assert scale(divisor(1.0 / epsilon)) >= 1.0 / epsilon
    other = LABELS.copy()
    other[0] = 0
    assert len(release(SCORES, LABELS, epsilon, KeyedEntropy.from_seed(3)).value) == 1
    counts = []
    for number, labels in enumerate((LABELS, other)):
        entropy = KeyedEntropy.from_seed(number)
        heard = [
            int(release(SCORES, labels, epsilon, entropy.fork(str(draw))).value[0])
            for draw in range(draws)
        ]
        counts.append(np.bincount(heard, minlength=STEPS + 1))
    # Ten rows: only tens of per cent are told, cut at the ends.
    assert set(np.flatnonzero(counts[0])) <= set(range(0, 101, 10))
    often = (counts[0] > 60) & (counts[1] > 60)
    assert often.sum() >= 4
    loss = np.abs(np.log(counts[0][often] / counts[1][often]))
    # Four standard deviations of the logarithm of a ratio of such counts.
    slack = 4 * np.sqrt(1 / counts[0][often] + 1 / counts[1][often])
    assert (loss <= epsilon + slack).all()
    # It would not hold for half the price.
    assert (loss > epsilon / 2 + slack).any()


@pytest.mark.parametrize(
    ("steps", "epsilon"),
    [([70], None), ([70, 80], 1.0), ([101, 80], None), ([70, -2], None), ([-1], 1.0), ([], None)],
)
def test_what_was_not_agreed_is_refused(steps, epsilon):
    assert told_quality(np.array(steps, dtype=np.int64), 10, epsilon) is None


def test_what_alice_can_have_of_it_with_known_scores():
    """Exact figures of known scores leave few labellings; whole per cent leave more of them.

    Attacks on a released AUC or loss search these. Beside them stands the bound of the module: what
    is told has less than 13.4 bits, however it is searched.
    """
    rows = 14
    generator = np.random.default_rng(4)
    scores = np.sort(generator.normal(size=rows))[::-1]
    truth = (scores + generator.normal(size=rows) > 0).astype(np.int8)

    def rounded(labels: np.ndarray) -> tuple[int, ...]:
        return tuple(release(scores, labels, None, KeyedEntropy.from_seed(0)).value.tolist())

    heard = rounded(truth)
    everything = [np.array(bits, dtype=np.int8) for bits in itertools.product((0, 1), repeat=rows)]
    left = [labels for labels in everything[::7] if rounded(labels) == heard]
    assert len(left) > 1
    assert math.log2((STEPS + 1) * (STEPS + 2)) < 13.4
