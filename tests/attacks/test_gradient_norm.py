"""Large gradients are the rare class's, where there is one and the model knows it."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pytest

from taciturn.attacks import GradientNormAttack, best_cut
from taciturn.audit import judge_guess as judge
from taciturn.data import LabelTable
from taciturn.view import AliceView
from tests.attacks.evidence import DATASETS, applies, known_run, run, sits_at_chance
from tests.seldom import seldom

ADD = {"mechanism": "add", "epsilon": 20.0}
SMALL_BATCHES = {"mechanism": "none", "batch_size": 4}


@cache
def rare_run(rare: int, permute_labels: bool, mechanism: str) -> tuple[AliceView, LabelTable]:
    """A class of 8 % in 600 rows, with an intercept at Bob; ``rare`` is its label."""
    draw = np.random.default_rng(3)
    values = draw.normal(size=(600, 6))
    leaning = values @ draw.normal(size=6) + draw.logistic(size=600)
    labels = (leaning > np.quantile(leaning, 0.92)).astype(int)
    frame = pl.DataFrame({f"x{at}": values[:, at] for at in range(6)})
    frame = frame.with_columns(y=pl.Series(labels if rare else 1 - labels))
    options = {**(ADD if mechanism == "add" else SMALL_BATCHES), "permute_labels": permute_labels}
    return run(
        frame,
        dataset=None,
        label="y",
        **{"batch_size": 16, "epochs": 6, "learning_rate": 0.1, **options},
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rare", [0, 1])
@pytest.mark.parametrize("permute_labels", [False, True])
@pytest.mark.parametrize("mechanism", seldom(["add", "none"], always=["none"]))
def test_finds_the_rare_class_whichever_it_is(rare, permute_labels, mechanism):
    view, truth = rare_run(rare, permute_labels, mechanism)
    guess = GradientNormAttack().infer(view)
    score = judge("", guess, truth)
    assert score.auc > 0.9
    assert score.accuracy > 0.8
    assert not guess.certain.any()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mechanism", ["add", "none"])
@pytest.mark.parametrize("rare", [0, 1])
def test_sits_at_chance_against_labels_shuffled_after_the_run(rare, mechanism):
    """False alarm: about 2e-5 for each."""
    view, truth = rare_run(rare, False, mechanism)
    assert sits_at_chance(GradientNormAttack().infer(view), truth)


@pytest.mark.parametrize("dataset", seldom(DATASETS, always=DATASETS[:1]))
@pytest.mark.parametrize("options", [{**ADD, "epochs": 3}, {"epochs": 3}], ids=["add", "none"])
def test_says_little_of_classes_that_are_about_even(dataset, options):
    """Without an intercept the model is even-handed: sizes tell surprise, not the label."""
    view, truth = known_run(**options, dataset=dataset, permute_labels=True)
    guess = GradientNormAttack().infer(view)
    assert 0.3 < judge("", guess, truth).auc < 0.7
    assert sits_at_chance(guess, truth)


def test_runs_with_columns_at_bob():
    view, _ = known_run(**ADD, epochs=3, alice_columns="half", intercept=True)
    guess = GradientNormAttack().infer(view)
    assert guess.signal.all()
    assert not guess.certain.any()


def test_needs_something_with_a_size():
    view, _ = known_run(epochs=1)
    nothing = view.until(0)
    assert applies(GradientNormAttack(), view)
    reason = GradientNormAttack().obstacle(nothing)
    assert "neither a noisy residue" in reason
    assert not GradientNormAttack().infer(nothing).signal.any()


def test_the_best_cut_of_two_heaps_lies_between_them():
    draw = np.random.default_rng(1)
    heaps = np.concatenate([draw.normal(0, 0.1, 300), draw.normal(1, 0.1, 20)])
    assert 0.35 < best_cut(heaps) < 0.75
    assert best_cut(np.full(5, 0.25)) == 0.25
    assert best_cut(np.array([0.25])) == 0.25


def test_progress_runs_from_nothing_to_everything():
    reports: list[tuple[int, int]] = []
    view, _ = known_run(**ADD, epochs=3, dataset="breast-cancer", permute_labels=True)
    GradientNormAttack().infer(view, lambda done, total: reports.append((done, total)))
    assert reports[0] == (0, 87)
    assert reports[-1] == (87, 87)
