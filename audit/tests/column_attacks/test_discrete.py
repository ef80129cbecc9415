"""``discrete``: columns of few values with no row known; nothing where scores are another row's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from audit.tests.attacks.evidence import numbers
from audit.tests.column_attacks.runs import newton, of_people

from taciturn.rng import KeyedEntropy
from taciturn_audit.column_attacks.discrete import DiscreteAttack
from taciturn_audit.columns import controls
from taciturn_audit.results.columns import is_above

BATCHES: dict[str, Any] = {"mechanism": "none", "solver": "sgd", "epochs": 3}


def test_equal_scores_of_batches_are_equal_rows():
    """Alice has one category: every row's is told, without a known row."""
    one = of_people("place", **BATCHES)
    assert one.score(DiscreteAttack(), 0).recovered > 0.97
    blind = one.score(DiscreteAttack(), 0, one.hidden)
    assert not is_above(blind, controls(one.truth, one.view.features, one.view.labels))


@pytest.mark.parametrize("mechanism", ["none", "sealed"])
@pytest.mark.sampled(1)
def test_columns_of_few_values_are_found_among_amounts(mechanism):
    """In every training: of two levels, and of four."""
    fits: dict[str, list[float]] = {"owner=yes": [], "children": []}
    for passes in (6, 12):
        one = of_people("owner,children,income,debt", mechanism, passes=passes)
        estimate = DiscreteAttack().estimate(one.view, one.known(0))
        names = one.outcome.data.alice_train.columns
        for name, best in fits.items():
            column = one.hers[:, names.index(name)]
            best.append(max(abs(np.corrcoef(column, guess)[0, 1]) for guess in estimate.values.T))
    assert min(fits["owner=yes"]) > 0.999
    assert min(fits["children"]) > 0.999


@pytest.mark.slow  # some seconds
def test_scores_of_other_rows_have_no_columns_of_few_values():
    one = of_people("owner,children,income,debt", passes=6)
    score = one.score(DiscreteAttack(), 0, one.hidden)
    assert not is_above(score, controls(one.truth, one.view.features, one.view.labels))


def test_scores_with_noise_of_their_own_have_no_columns_of_few_values():
    """No claim is made where every score has an error: levels would not fit it exactly."""
    one = of_people("owner,children,income,debt", passes=6)
    entropy = KeyedEntropy.from_seed(8)
    noise = entropy.uniform((6, len(one.hers)))
    noisy = [replace(e, scores=e.scores + noise[e.iteration]) for e in one.view.directions]
    view = replace(one.view)
    view.__dict__["observations"] = tuple(noisy)
    assert numbers(one.score(DiscreteAttack(), 0, view).remark) == [0]


def test_levels_that_were_standardised_are_told_too():
    """Each level's score then moves with the steps of all: the fit finds how."""
    one = of_people("place", **BATCHES)
    hers = one.hers
    scaled = (hers - hers.mean(axis=0)) / hers.std(axis=0)
    weights, events = np.zeros(hers.shape[1]), []
    for event in one.view.batches:
        rows = scaled[event.rows]
        events.append(replace(event, scores=np.round(rows @ weights * 2**20) / 2**20))
        weights = weights + event.step @ rows
    view = replace(one.view)
    view.__dict__["observations"] = tuple(events)
    assert one.score(DiscreteAttack(), 0, view).recovered > 0.97


def test_amounts_have_no_levels():
    score = newton(passes=3).score(DiscreteAttack(), 0)
    assert numbers(score.remark) == [0]
    assert score.r2 is not None
    assert score.r2 < 0.05
