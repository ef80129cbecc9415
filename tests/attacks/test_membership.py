"""Who is in a hidden batch: seen through, beside what guessing everyone would give."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.attacks.membership import MembershipGuess, guess_membership
from tacit.audit.membership import judge_membership
from tacit.config import Settings
from tacit.simulation.run import simulate
from tacit.simulation.source import load_raw
from tacit.view.alice_view import AliceView


@pytest.mark.parametrize("dataset", ["breast-cancer", "sklearn-digits"])
def test_the_batch_is_seen_through_at_the_papers_parameters(dataset):
    options = {"dataset": dataset, "mechanism": "hybrid", "scheme": "clear", "seed": 5, "epochs": 2}
    settings = Settings.of(options).resolved()
    outcome = simulate(settings, load_raw(settings), keep=True)
    assert outcome.transcript is not None
    view = AliceView.of(outcome.transcript, outcome.data.alice_train)
    guesses = guess_membership(view, most=20)
    assert len(guesses) == 20
    score = judge_membership(guesses, dict(enumerate(outcome.batches)))
    assert score.base_rate < 0.55
    assert score.precision is not None
    assert score.recall is not None
    assert score.precision > 0.9
    assert score.recall > 0.9
    assert score.k_exact > 0.4


def test_the_score_counts_rows_over_all_iterations():
    asked = np.arange(6)
    guesses = [
        MembershipGuess(3, asked, np.array([0, 1]), True),
        MembershipGuess(8, asked, np.array([2]), False),
    ]
    truth = {3: np.array([0, 1]), 8: np.array([4, 5])}
    score = judge_membership(guesses, truth)
    assert score.precision == pytest.approx(2 / 3)
    assert score.recall == 0.5
    assert score.k_exact == score.certified == 0.5
    assert score.base_rate == pytest.approx(4 / 12)
    assert score.to_dict()["iterations"] == 2


def test_nothing_guessed_has_no_precision():
    empty = np.empty(0, dtype=np.int64)
    score = judge_membership([MembershipGuess(0, np.arange(3), empty, False)], {0: empty})
    assert score.precision is None
    assert score.recall is None
