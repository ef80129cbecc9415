"""Training with noisy residues in clear: without noise, what Alice is told, and when it ends.

What every conversation promises is in ``test_conversations.py``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from taciturn.data.label_table import LabelTable
from taciturn.errors import PrivacyError, RemoteProtocolError
from taciturn.privacy.additive import Additive
from taciturn.privacy.base import Released
from taciturn.privacy.events import AdditiveNoise
from taciturn.privacy.noise import LaplaceDraws
from taciturn.privacy.prices import price
from taciturn.privacy.registry import mechanism
from taciturn.protocol.bob.train_residues import train
from taciturn.protocol.events import Progress
from taciturn.protocol.messages import (
    BatchCommitment,
    BatchShare,
    BudgetSpent,
    Hello,
    NoisyResidues,
    PartialScores,
    RealResidues,
)
from taciturn.protocol.observations import ResiduesSeen
from taciturn.protocol.outcome import StopReason
from taciturn.rng import KeyedEntropy
from taciturn.settings.agreement import Agreement
from tests.expected import refused
from tests.modules import module_of
from tests.protocol.parties import ByHand, Tables, agreement, centralised, plan_of, same
from tests.protocol.stars import Star, StarTalk, converse
from tests.protocol.test_conversations import ADD, SPLITS, released

MECHANISMS: dict[str, dict[str, Any]] = {
    "add": {},
    **{
        f"mult-{variant}": {"mechanism": "mult", "variant": variant, "b1": 0.1, "b2": 2.0}
        for variant in ("printed", "one-sided", "mean-one")
    },
}
PENALTIES: dict[str, dict[str, Any]] = {
    "plain": {},
    "l2": {"l2": 0.1},
    "l1": {"l1": 0.05},
    "l1-and-l2": {"l1": 0.02, "l2": 0.3},
}
TABLES = SPLITS["halves-and-intercept"]


def noisy(**changes: Any) -> Agreement:
    return agreement(**{**ADD, **changes})


def talked(terms: Agreement, tables: Tables = TABLES, **changes: Any) -> StarTalk:
    return converse(Star.of(tables, terms, 1), **changes)


@pytest.mark.parametrize("noise", ["discrete", "continuous"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_what_is_released_is_not_the_true_residue(name, noise):
    terms = noisy(**MECHANISMS[name], noise=noise)
    (first, *_) = released(talked(terms), terms)
    assert not np.isin(np.abs(first), 0.5).any()


@pytest.mark.parametrize("name", MECHANISMS)
def test_alice_reports_what_she_was_told_and_every_row_pays_once_an_epoch(name):
    terms = noisy(**MECHANISMS[name], epochs=3)
    talk = talked(terms)
    seen, plan = talk.seen(ResiduesSeen), list(plan_of(TABLES, terms))
    assert [(release.iteration, release.epoch, release.rows.tolist()) for release in seen] == [
        (batch.iteration, batch.epoch, batch.rows.tolist()) for batch in plan
    ]
    assert all(map(same, [release.residues for release in seen], released(talk, terms)))
    event = mechanism(terms).event
    assert {release.event for release in seen} == {event}
    assert not seen[0].weights.any()
    stated = talk.ledger.statement()
    assert stated.releases_per_row == 3
    assert stated.label_epsilon_total == pytest.approx(3 * price(event).label)


# --- without noise it is centralised SGD ---------------------------------------------------------


class NoNoise:
    """A stock whose draws are all zero."""

    def __init__(self, draw: object, entropy: object, batch_size: int) -> None:
        pass

    def take(self, iteration: int, count: int) -> LaplaceDraws:
        return LaplaceDraws(np.zeros(count, np.uint64), np.zeros(count, np.uint64))


def grid_tolerance(tables: Tables, terms: Agreement) -> float:
    """How far rounding residues to their grid can move a weight, under a step that contracts.

    Each released residue is within ``2^-(bits+1)`` of the true one of the scores as Bob has them,
    which is within ``2^-(bits+3)`` of the exact scores' (the sigmoid's slope is at most 1/4), so
    each column's gradient is within the sum times ``max|x|``; steps do not expand distances, so the
    errors only add up.
    """
    steepest = float(np.square(tables.joined).sum(axis=1).max()) / 4 + terms.l2
    assert terms.sgd.learning_rate * steepest <= 2
    steps = plan_of(tables, terms).iterations * terms.sgd.learning_rate
    error = 1.25 * 2.0 ** -(terms.residue_bits + 1) * np.abs(tables.joined).max()
    return float(steps * math.sqrt(tables.joined.shape[1]) * error + 1e-13)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("bits", [8, 20, 40])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("split", ["all-at-alice", "halves-and-intercept"])
def test_add_without_noise_is_centralised_sgd_up_to_the_grid(monkeypatch, split, penalty, bits):
    """With L1 it also needs that no weight changes its sign in one run only: true for these."""
    monkeypatch.setattr(module_of(train), "Stock", NoNoise)
    tables, terms = SPLITS[split], noisy(**PENALTIES[penalty], residue_bits=bits)
    expected, tolerance = centralised(tables, terms), grid_tolerance(tables, terms)
    assert np.abs(talked(terms, tables).weights - expected).max() <= tolerance
    assert np.abs(expected).max() > 2 * tolerance


def test_mean_one_without_noise_and_with_wide_clips_is_centralised_sgd(monkeypatch):
    monkeypatch.setattr(module_of(train), "Stock", NoNoise)
    terms = noisy(mechanism="mult", variant="mean-one", b1=2.0**-20, b2=1.0)
    expected = centralised(TABLES, terms)
    assert np.abs(talked(terms).weights - expected).max() <= grid_tolerance(TABLES, terms)


def flipped(tables: Tables) -> Tables:
    return replace(tables, labels=LabelTable.from_data(1 - tables.labels.values))


@pytest.mark.parametrize("bits", [8, 20, 40])
def test_a_label_moves_its_integer_by_exactly_one_unit_at_every_score(monkeypatch, bits):
    """Rounding ``y - f`` whole could move it by one step more, which the noise does not cover."""
    monkeypatch.setattr(module_of(train), "Stock", NoNoise)
    terms, tables = noisy(batch_size=18, epochs=1, residue_bits=bits), SPLITS["all-at-alice"]
    scores = 8.0 * KeyedEntropy.from_seed(303).uniform((18,)) - 4.0
    opening = talked(terms, tables).said_by("alice")[:2]
    replies = []
    for world in (tables, flipped(tables)):
        side = ByHand("bob", Star.of(world, terms, 1).bob_program())
        for message in (*opening, PartialScores(0, scores)):
            side.feed(message)
        reply = side.said[-1]
        assert isinstance(reply, NoisyResidues)
        replies.append(reply.residues.value)
    labels = tables.labels.values[next(iter(plan_of(tables, terms))).rows]
    assert (replies[0] - replies[1]).tolist() == [(2 * int(y) - 1) << bits for y in labels]


# --- the budget ----------------------------------------------------------------------------------


@pytest.mark.parametrize("epochs", [0, 1, 4])
@pytest.mark.parametrize("noise", ["discrete", "continuous"])
@pytest.mark.parametrize("split", ["all-at-alice", "halves-and-intercept"])
def test_the_training_stops_before_the_release_that_would_exceed_the_budget(split, noise, epochs):
    """A release at epsilon 2 costs a label 1; a budget of half an epoch more pays nothing more."""
    tables, releases = SPLITS[split], 5 * epochs
    talk = talked(noisy(epochs=6, noise=noise), tables, budget=epochs + 0.5)
    kinds = [type(message) for message in talk.said_by("bob")]
    reply = NoisyResidues if noise == "discrete" else RealResidues
    assert kinds == [Hello, BatchCommitment, BatchShare, *[reply] * releases, BudgetSpent]
    assert talk.said_by("bob")[-1] == BudgetSpent(releases)
    assert [type(message) for message in talk.said_by("alice")] == [
        Hello,
        BatchShare,
        *[PartialScores] * (releases + 1),
    ]
    if epochs:
        paid = talked(noisy(epochs=epochs, noise=noise), tables)
        assert talk.weights.tolist() == paid.weights.tolist()
    else:
        assert not talk.weights.any()
    assert (talk.bob.iterations, talk.bob.stopped) == (releases, StopReason.BUDGET)
    # Alice knows that Bob ended it, and when.
    assert (talk.alice.iterations, talk.alice.stopped) == (releases, StopReason.PEER)
    assert len(talk.seen(Progress)) == releases
    stated = talk.ledger.statement()
    assert (stated.releases_per_row, stated.label_epsilon_total) == (epochs, float(epochs))


def test_a_budget_that_pays_exactly_is_spent_to_the_end():
    whole = talked(noisy(epochs=3), budget=3.0)
    assert [(end.iterations, end.stopped) for end in (whole.alice, whole.bob)] == [(15, None)] * 2
    assert whole.ledger.statement().label_epsilon_total == 3.0
    assert whole.weights.tolist() == talked(noisy(epochs=3)).weights.tolist()


def test_rounding_in_the_last_bit_does_not_cost_a_release():
    """Three times 0.1 is above 0.3 in floating point."""
    talk = talked(noisy(epsilon=0.2, epochs=4), budget=0.3)
    assert talk.ledger.statement().releases_per_row == 3


def test_the_budgets_end_depends_on_no_label():
    """The only message whose time might tell something comes at the same iteration."""
    ends = [
        talked(noisy(epochs=6), tables, budget=2.5).said_by("bob")[-1]
        for tables in (TABLES, flipped(TABLES))
    ]
    assert ends == [BudgetSpent(10), BudgetSpent(10)]


# --- a peer that does not keep to it -------------------------------------------------------------


@pytest.mark.parametrize("agreed", ["discrete", "continuous"])
def test_alice_refuses_noise_of_another_kind_and_an_end_at_another_iteration(agreed):
    terms = noisy(noise=agreed)
    opening = talked(terms).said_by("bob")[:3]
    event, zeros = AdditiveNoise(2.0), np.zeros(4)
    other = (
        RealResidues(0, Released(zeros, event))
        if agreed == "discrete"
        else NoisyResidues(0, Released(zeros.astype(np.int64), event))
    )
    for message in (other, BudgetSpent(5)):
        side = ByHand("alice", Star.of(TABLES, terms, 1).alice_program())
        for before in opening:
            side.feed(before)
        with refused(RemoteProtocolError):
            side.feed(message)


@pytest.mark.parametrize("scale", [1e300, -1e300])
def test_the_largest_scores_give_the_largest_residues(monkeypatch, scale):
    monkeypatch.setattr(module_of(train), "Stock", NoNoise)
    opening = talked(noisy()).said_by("alice")[:2]
    side = ByHand("bob", Star.of(TABLES, noisy(), 1).bob_program())
    for message in (*opening, PartialScores(0, np.full(4, scale))):
        side.feed(message)
    reply = side.said[-1]
    assert isinstance(reply, NoisyResidues)
    assert set(np.abs(reply.residues.value).tolist()) <= {0, 2**20}


class Understated(Additive):
    """Releases with another event than the one that is charged."""

    def release(self, residues, draws):
        return replace(super().release(residues, draws), event=AdditiveNoise(0.1))


def test_what_is_not_what_was_charged_is_not_sent():
    terms = noisy()
    with refused(PrivacyError, names=AdditiveNoise.name):
        talked(terms, mechanism=Understated(AdditiveNoise(1.0), terms.residue_bits))
