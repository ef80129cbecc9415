"""Newton with shared scores: near the optimum, uniform shares, predictions, and what is refused.

What every conversation promises is in ``test_conversations.py``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from taciturn.crypto import ClearScheme, Scheme
from taciturn.crypto.bfv import BfvScheme
from taciturn.engine import run_pair
from taciturn.errors import ConfigError, CryptoError, RemoteProtocolError
from taciturn.numerics import (
    centring_offset,
    fit_on_schedule,
    label_likelihood,
    optimum,
    penalised_loss,
    weighted_likelihood,
)
from taciturn.protocol import (
    Columns,
    GivenShare,
    Hello,
    Observation,
    RevealedShare,
    Scales,
    ShareRevealed,
    TablePlan,
    Terms,
    Trained,
    WeightShare,
)
from taciturn.settings import Agreement
from tests.expected import refused
from tests.protocol.hostile import altered, only
from tests.protocol.parties import ALICE, Tables
from tests.protocol.stars import Star, StarTalk, converse, shared
from tests.protocol.test_conversations import SPLITS, agreed

CLEAR, BFV = ClearScheme(), BfvScheme()


def newton(scheme: Scheme = CLEAR, **changes: Any) -> Agreement:
    return agreed("mutual-table", scheme, **changes)


def talk(tables: Tables, terms: Agreement, scheme: Scheme = CLEAR) -> StarTalk:
    return converse(Star.of(tables, terms, 1, scheme))


def pair(end: Trained) -> tuple[WeightShare, WeightShare]:
    assert end.bob_share is not None
    return shared(end), end.bob_share


@pytest.mark.parametrize("split", ["all-at-alice", "halves-and-intercept"])
@pytest.mark.sampled(1)
def test_rounding_aside_it_is_the_fit_in_clear_and_near_scikit_learn_s_optimum(split):
    from sklearn.linear_model import LogisticRegression

    tables = SPLITS[split]
    ours = talk(tables, newton(sigmoid_error=1e-6, epochs=120)).weights
    likelihood = label_likelihood(
        tables.labels.values, partial(weighted_likelihood, class_weight=None)
    )
    fit = fit_on_schedule(
        tables.alice.values, tables.bob.values, likelihood, 0.05, tables.free, 120
    )
    assert np.abs(ours - np.concatenate([fit.alice, fit.own])).max() < 1e-3
    best = optimum(tables.joined, likelihood, 0.05, tables.free)
    loss = penalised_loss(tables.joined @ ours, likelihood, ours, 0.05, tables.free)
    assert 0 <= loss - best.loss < 1e-6
    own = tables.joined[:, : tables.joined.shape[1] - tables.free]
    scikit = LogisticRegression(
        C=1 / (0.05 * tables.labels.rows), fit_intercept=bool(tables.free), tol=1e-10
    ).fit(own, tables.labels.values)
    found_by_scikit = np.append(scikit.coef_, scikit.intercept_[: tables.free])
    assert np.abs(ours - found_by_scikit).max() < 5e-3


def test_what_bob_ends_with_is_uniform():
    """His shares, over many coins of Alice's, fill the ring evenly."""
    tables = Tables.make(alice=8, bob=8)
    star, shares = Star.of(tables, newton(epochs=1), 1), list[np.ndarray]()
    for seed in range(15):
        alice = star.alice_program(entropy=ALICE.fork(str(seed)))
        _, bob = run_pair(alice, star.bob_program())
        shares += [part.values for part in pair(bob)]
    counts = np.bincount((np.concatenate(shares) >> np.int64(59 - 3)) + 4, minlength=8)
    expected = counts.sum() / 8
    # Chi-squared with 7 degrees of freedom: above 30 once in 10,000 times.
    assert ((counts - expected) ** 2 / expected).sum() < 30


def test_each_side_s_weights_can_be_revealed_to_it():
    tables = SPLITS["halves-and-intercept"]
    quiet = talk(tables, newton())
    revealed = talk(tables, newton(reveal=True, reveal_bob=True))
    both = np.concatenate([revealed.alice.weights, revealed.bob.weights])
    # To Bob's intercept Alice's means are missing, which stay hers.
    both[-1] += centring_offset(revealed.alice.weights, tables.alice.values.mean(axis=0))
    assert both == pytest.approx(quiet.weights, abs=1e-12)
    assert isinstance(revealed.said_by("bob")[-1], RevealedShare)
    assert isinstance(revealed.said_by("alice")[-1], GivenShare)
    assert len(revealed.seen(ShareRevealed)) == 1
    assert not talk(tables, newton(reveal_bob=True)).seen(Observation)


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"l2": 0.0}, "l2"),
        ({"feature_bits": 8}, None),
        ({"evaluate": "epoch"}, "evaluate"),
        ({"score_range": 256.0, "sigmoid_error": 1e-6}, "score_range"),
    ],
)
def test_what_shares_cannot_give_is_refused_by_name(changes, setting):
    with refused(ConfigError, setting=setting):
        talk(SPLITS["all-at-alice"], newton(**changes))


def test_a_training_that_would_tell_too_much_of_a_table_is_refused():
    terms = Terms(newton(BFV, epochs=600), BFV)
    with refused(ConfigError, names=("600", "1,000,000")):
        TablePlan.from_terms(terms, 1_000_000, Columns(6, 9), Columns(0, 0))
    terms = Terms(newton(BFV, epochs=40), BFV)
    with refused(CryptoError):
        TablePlan.from_terms(terms, 100_000, Columns(50, 18), Columns(2, 2))
    plan = TablePlan.from_terms(terms, 40_000, Columns(41, 9), Columns(40, 9))
    assert max(plan.alice_leak, plan.bob_leak) < 2.0**-40


def test_a_bob_without_the_agreed_intercept_is_refused():
    star = Star.of(SPLITS["halves-and-intercept"], newton(), 1)
    bob = altered(star.bob_program(), only(Hello, lambda hello: replace(hello, columns=0)))
    with refused(RemoteProtocolError):
        run_pair(star.alice_program(), bob)


def test_a_table_of_several_parts_is_refused_by_name():
    scheme = BfvScheme(part_tiles=2)
    terms = Terms(newton(scheme, epochs=1), scheme)
    TablePlan.from_terms(terms, 10_000, Columns(2, 4), Columns(0, 0))
    for columns in ((Columns(2, 4), Columns(0, 0)), (Columns(2, 4), Columns(1, 4))):
        with refused(ConfigError, names="sealed"):
            TablePlan.from_terms(terms, 40_000, *columns)


@pytest.mark.parametrize("rows", [1, 455, 39_073, 120_000, 1_000_000])
def test_scales_use_the_whole_ring_for_the_agreed_range(rows):
    scales = Scales.for_shared_table(newton(), rows)
    assert scales.score_bound == pytest.approx(64.0 + np.log(4000.0))
    assert 10 <= scales.feature_bits <= 16
    # A product is four times as far from its quarter of the ring as a score from its end.
    unit = scales.weight_bits + scales.shared_shift
    assert 2.0 ** (59 - 2 - unit) * scales.factor == pytest.approx(2 * scales.score_bound)
    assert scales.shared_unit / rows >= 2.0**16
