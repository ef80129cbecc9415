"""``discrete``: columns of few values with no row known; nothing where scores are another row's."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest

from taciturn.audit import bob_view, controls
from taciturn.column_attacks import DiscreteAttack

# private: the rounding for itself, at its edges
from taciturn.column_attacks.discrete import _few_valued, _snapped
from taciturn.results import is_above
from taciturn.rng import KeyedEntropy
from taciturn.settings import Settings
from taciturn.simulation import Coins, load_raw, simulate
from tests.column_attacks.runs import Run, newton, sgd

ROWS = 800


@cache
def people() -> pl.DataFrame:
    """A made-up table: a category, a yes or no, a number of children, and amounts."""
    coins = KeyedEntropy.from_seed(9)
    places = np.array(["north", "south", "east", "west", "abroad"])
    amount = coins.fork("amount").uniform((ROWS, 2))
    return pl.DataFrame(
        {
            "place": places[coins.fork("place").integers(5, ROWS).astype(int)],
            "owner": np.where(coins.fork("owner").uniform((ROWS,)) < 0.3, "yes", "no"),
            "children": coins.fork("children").integers(4, ROWS).astype(float),
            "income": amount[:, 0],
            "debt": amount[:, 1],
            "label": (coins.fork("label").uniform((ROWS,)) < amount[:, 0]).astype(int),
        }
    )


@cache
def trained(columns: str, mechanism: str, **options: object) -> Run:
    base = {"label": "label", "alice_columns": columns, "mechanism": mechanism, "seed": 2}
    settings = Settings.of({**base, "scheme": "clear", **options}).resolved()
    raw = load_raw(settings, people())
    outcome = simulate(settings, raw, keep=True)
    return Run(outcome, (), bob_view(outcome, Coins.for_seed(2)))


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [("none", {"solver": "sgd", "epochs": 3}), ("none", {"passes": 3}), ("sealed", {"passes": 3})],
    ids=["none sgd", "none newton", "sealed newton"],
)
def test_equal_scores_are_equal_rows(mechanism, options):
    """Alice has one category: every row's is told, without a known row."""
    score = trained("place", mechanism, **options).score(DiscreteAttack(), 0)
    assert score.known_rows == 0
    assert score.recovered > 0.97


@pytest.mark.parametrize("mechanism", ["none", "sealed"])
@pytest.mark.sampled(1)
def test_columns_of_few_values_are_found_among_amounts(mechanism):
    """In every training: of two levels, and of four."""
    fits: dict[str, list[float]] = {"owner=yes": [], "children": []}
    for passes in (6, 12):
        one = trained("owner,children,income,debt", mechanism, passes=passes)
        estimate = DiscreteAttack().estimate(one.view, one.known(0))
        names = one.outcome.data.alice_train.columns
        for name, best in fits.items():
            column = one.hers[:, names.index(name)]
            best.append(max(abs(np.corrcoef(column, guess)[0, 1]) for guess in estimate.values.T))
    assert min(fits["owner=yes"]) > 0.999
    assert min(fits["children"]) > 0.999


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ("place", {"solver": "sgd", "epochs": 3}),
        ("place", {"passes": 3}),
        ("owner,children,income,debt", {"passes": 6}),
    ],
    ids=["sgd", "newton", "among amounts"],
)
def test_scores_of_other_rows_tell_nothing(columns, options):
    one = trained(columns, "none", **options)
    score = one.score(DiscreteAttack(), 0, one.hidden)
    assert not is_above(score, controls(one.truth, one.view.features, one.view.labels))


def test_scores_with_noise_of_their_own_have_no_columns_of_few_values():
    """No claim is made where every score has an error: levels would not fit it exactly."""
    one = trained("owner,children,income,debt", "sealed", passes=6)
    coins = KeyedEntropy.from_seed(8)
    noise = coins.uniform((6, len(one.hers)))
    noisy = [replace(e, scores=e.scores + noise[e.iteration]) for e in one.view.directions]
    view = replace(one.view)
    view.__dict__["observations"] = tuple(noisy)
    assert one.score(DiscreteAttack(), 0, view).remark.startswith("0 columns")


def test_levels_that_were_standardised_are_told_too():
    """Each level's score then moves with the steps of all: the fit finds how."""
    one = trained("place", "none", solver="sgd", epochs=3)
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


def test_scores_that_do_not_repeat_are_an_obstacle():
    assert "do not repeat" in DiscreteAttack().obstacle(sgd().view)
    assert DiscreteAttack().obstacle(newton().view) == ""


def test_amounts_have_no_levels():
    score = newton().score(DiscreteAttack(), 0)
    assert score.remark.startswith("0 columns")
    assert score.r2 is not None
    assert score.r2 < 0.05


def test_levels_lie_between_the_widest_gaps():
    values = np.array([0.0, 0.01, 1.0, 1.01, 3.0])
    snapped = _snapped(values)
    assert snapped is not None
    assert np.allclose(snapped, [0.005, 0.005, 1.005, 1.005, 3.0])


def test_levels_outside_the_span_are_not_taken():
    coins = KeyedEntropy.from_seed(1)
    basis, _ = np.linalg.qr(coins.uniform((200, 5)))
    assert _few_valued(basis[:, 0], basis) is None
