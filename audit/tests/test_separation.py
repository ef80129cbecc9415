"""Bob tries to tell single Alices' scores: of one he has them, of two he is at chance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from audit.tests.views.several import NEWTON, Several, several

from taciturn.protocol.masks import ZeroSum
from taciturn_audit.distinguishing_game import FALSE_ALARM
from taciturn_audit.results.columns import Separation
from taciturn_audit.separation import answers_of, separate

PASSES = {**NEWTON, "batch_size": 200, "epochs": 6}
BATCHES = {"batch_size": 20, "epochs": 6}
TRAININGS: dict[str, dict[str, Any]] = {
    "none": BATCHES,
    "none by passes": PASSES,
    "sealed by passes": {"mechanism": "sealed", **PASSES},
}
ALL_TRAININGS = pytest.mark.parametrize("options", TRAININGS.values(), ids=list(TRAININGS))


def made(alices: int, **options: Any) -> Several:
    return several(alices, rows=200, columns=6, bob=1, **options)


def tried(training: Several) -> Separation:
    separation = separate(training.bob, [*training.star.shares.values()])
    assert separation is not None
    return separation


def best(separation: Separation) -> float:
    return max(look.accuracy for look in separation.looks)


@ALL_TRAININGS
def test_of_one_alice_he_has_the_scores(options):
    separation = tried(made(1, **options))
    assert separation.alices == ("alice",)
    assert separation.noticed
    assert all(look.noticed for look in separation.looks)
    assert best(separation) > 0.9


@ALL_TRAININGS
@pytest.mark.parametrize("alices", [2, 3])
@pytest.mark.sampled(2)
def test_of_several_he_is_at_chance(options, alices):
    separation = tried(made(alices, **options))
    assert not separation.noticed
    # The widest of a dozen looks at 300 to 600 fair coins.
    assert best(separation) < 0.62
    assert separation.false_alarm == FALSE_ALARM
    names = [fault.name for fault in separation.faults]
    assert names == ["unmasked", "low-bits", "reused-mask"]
    assert all(fault.noticed for fault in separation.faults)


@pytest.mark.slow  # with real keys, some seconds
@pytest.mark.parametrize("alices", [1, 2])
def test_so_it_is_where_he_decrypts(alices):
    training = made(alices, mechanism="sealed", scheme="bfv", key_bits=128, **PASSES)
    assert training.bob.persisted
    assert tried(training).noticed is (alices == 1)


def test_the_numbers_are_those_that_he_adds_up():
    """Modulo t, the least power of two that holds them all."""
    bob = made(2, mechanism="sealed", scheme="bfv", key_bits=128, **PASSES).bob
    one, other = bob.answers
    modulus = 2 << int(np.abs([*one.values()][-1]).max()).bit_length()
    for event in bob.directions:
        total = (one[event.iteration] + other[event.iteration]) % modulus
        centred = np.where(total < modulus // 2, total, total - modulus)
        assert np.corrcoef(centred, event.scores)[0, 1] > 1 - 1e-9


@ALL_TRAININGS
def test_the_judge_has_the_right_scores_and_they_add_up(options):
    training = made(3, **options)
    tables = [*training.star.shares.values()]
    answers = answers_of(training.bob, tables)
    total = np.sum([one.scores for one in answers], axis=0)
    seen = training.bob.directions or training.bob.batches[1:]
    sums = np.concatenate([event.scores for event in seen])
    assert np.abs(total - sums).max() < 5e-3


@ALL_TRAININGS
@pytest.mark.sampled(1)
def test_without_masks_it_is_noticed_of_every_alice(options, monkeypatch):
    """The positive control: the same training, each with her own scores in clear."""
    monkeypatch.setattr(ZeroSum, "over", lambda masks, values: values)
    training = several.__wrapped__(2, rows=200, columns=6, bob=1, **options)
    separation = tried(training)
    assert all(look.noticed for look in separation.looks if "numbers" in look.name)


@ALL_TRAININGS
@pytest.mark.sampled(1)
def test_masks_that_are_used_for_every_request_are_noticed(options, monkeypatch):
    true_fork = ZeroSum.fork
    monkeypatch.setattr(ZeroSum, "fork", lambda masks, purpose: true_fork(masks, "any"))
    training = several.__wrapped__(2, rows=200, columns=6, bob=1, **options)
    separation = tried(training)
    by = "a row" if options.get("solver") else "a place"
    assert all(look.noticed for look in separation.looks if look.name.endswith(by))


def test_masks_that_cancel_between_two_of_three_are_noticed(monkeypatch):
    """Neighbours with a mask of their own: no single answer tells, but their sum does."""
    true_masks = ZeroSum.over

    def alone(masks: ZeroSum, values: Any) -> Any:
        # The first and the second have one in common; the third is left without.
        if not masks.added:
            return values
        return true_masks(ZeroSum(added=masks.added[:1]), values)

    def opposite(masks: ZeroSum, values: Any) -> Any:
        if masks.added and masks.subtracted:
            return true_masks(ZeroSum(subtracted=masks.subtracted), values)
        return alone(masks, values)

    monkeypatch.setattr(ZeroSum, "over", opposite)
    training = several.__wrapped__(3, rows=200, columns=6, bob=1, **BATCHES)
    noticed = {look.name: look.noticed for look in tried(training).looks}
    assert noticed["alice-1 and alice-2: sums"]
    assert noticed["alice-3: numbers"]
    assert not noticed["alice-1: numbers"]
    assert not noticed["alice-2: numbers"]


def test_what_was_asked_too_seldom_is_not_looked_at():
    once = made(2, batch_size=20, epochs=1)
    looks = {look.name.partition(": ")[2] for look in tried(once).looks}
    assert looks == {"numbers"}
    assert [fault.name for fault in tried(once).faults] == ["unmasked", "low-bits"]
    nothing = made(2, batch_size=200, epochs=1)
    assert separate(nothing.bob, [*nothing.star.shares.values()]) is None
