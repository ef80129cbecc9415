"""Large gradients are the rare class's, where there is one and the model knows it."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.attacks import GradientNormAttack, best_cut
from taciturn.audit import judge_guess as judge
from tests.attacks.evidence import known_run, rare_run, sits_at_chance

ADD = {"mechanism": "add", "epsilon": 20.0}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rare", [0, 1])
@pytest.mark.parametrize("options", [{}, {**ADD, "batch_size": 16}], ids=["none", "add"])
def test_finds_the_rare_class_whichever_it_is(rare, options):
    view, truth = rare_run(rare, **options)
    guess = GradientNormAttack().infer(view)
    score = judge("", guess, truth)
    assert score.auc > 0.9
    assert score.accuracy > 0.8
    assert not guess.certain.any()
    assert sits_at_chance(guess, truth)


@pytest.mark.parametrize("options", [ADD, {}], ids=["add", "none"])
def test_says_little_of_classes_that_are_about_even(options):
    """Without an intercept the model is even-handed: sizes tell surprise, not the label."""
    view, truth = known_run(**options, epochs=3, permute_labels=True)
    guess = GradientNormAttack().infer(view)
    assert 0.3 < judge("", guess, truth).auc < 0.7
    assert sits_at_chance(guess, truth)


def test_the_best_cut_of_two_heaps_lies_between_them():
    draw = np.random.default_rng(1)
    heaps = np.concatenate([draw.normal(0, 0.1, 300), draw.normal(1, 0.1, 20)])
    assert 0.35 < best_cut(heaps) < 0.75
    assert best_cut(np.full(5, 0.25)) == 0.25
    assert best_cut(np.array([0.25])) == 0.25
