"""The look at ciphertexts: faults in the real code are noticed, the real code is at chance."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import taciturn
from taciturn.arrays import IntArray
from taciturn.crypto.base import Capacity, EncryptedVector, TableSize
from taciturn.crypto.bfv.keys import BfvScheme, BfvSecretKey
from taciturn.crypto.bfv.seeds import KeySeeds
from taciturn.crypto.clear import ClearScheme
from taciturn.jobs.train.simulation import simulate_training
from taciturn.privacy.solvers import resolved
from taciturn.rng import Entropy, KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation import load_raw
from taciturn_audit.adversaries import outcome_view

# private: one look and its features, without a training
from taciturn_audit.distinguishing_game import (
    FALSE_ALARM,
    LEAST_ENTROPY,
    Challenge,
    _look,
    _shape_features,
    challenge,
    detectable,
    distinguish,
    needed,
    repeated_blocks,
)
from taciturn_audit.results.audit import Distinguisher
from taciturn_audit.results.columns import Look
from taciturn_audit.results.runs import AuditResult
from taciturn_audit.verdict import Status, apart_sentence, conclude
from taciturn_audit.views.alice_view import AliceView

COINS = KeyedEntropy.from_seed(5)
# Half of the usual, 60 of them guessed: noticed is what tells nine of ten trainings.
FEW = 90


@cache
def view(mechanism: str = "sealed") -> AliceView:
    chosen = resolved(
        Settings.from_mapping(
            {
                "dataset": "breast-cancer",
                "mechanism": mechanism,
                "scheme": "clear",
                "seed": 1,
                "passes": 1,
            }
        )
    )
    outcome = simulate_training(chosen, load_raw(chosen), keep=True)
    seen = outcome_view(outcome)
    # What was recorded in clear is no part of what the encryption is asked about.
    return replace(seen, conversation=replace(seen.conversation, records=_opening(seen)))


def _opening(seen: AliceView) -> tuple[Any, ...]:
    return seen.conversation.records[:6]


def look(result: Distinguisher, name: str) -> Look:
    return next(one for one in result.looks if one.name == name)


# --- faults in the real code ------------------------------------------------------------------


class ReusingKey(BfvSecretKey):
    """Encrypts one vector with the randomness of an earlier one."""

    made = 0

    def _zero(self) -> Any:
        self.made += 1
        fresh = super()._zero()
        if self.made == 1:
            self.earlier = replace(fresh, parts=[part.copy() for part in fresh.parts])
        return self.earlier if self.made == 3 else fresh


class WaitingKey(BfvSecretKey):
    """Takes longer where the first row's number, and so its label, is positive."""

    def encrypt_rows(
        self, vector: IntArray, size: TableSize, entropy: Entropy, part: slice | None = None
    ) -> EncryptedVector:
        # Longer than a busy machine interrupts as a rule, so that a test does not depend on it.
        time.sleep(0.1 if vector[0] > 0 else 0.0)
        return super().encrypt_rows(vector, size, entropy, part)


class FaultyBfv(BfvScheme):
    """The real scheme with another key."""

    key: type[BfvSecretKey] = BfvSecretKey

    def generate(
        self, bits: int, capacity: Capacity, entropy: Entropy, seed: bytes | None = None
    ) -> BfvSecretKey:
        return self.key(self._seal(bits, capacity), capacity, KeySeeds.draw(entropy, seed))


class ReusingBfv(FaultyBfv):
    key = ReusingKey


class WaitingBfv(FaultyBfv):
    key = WaitingKey


class PretendingClear(ClearScheme):
    """Says that it protects, and does not."""

    protects = True


@pytest.mark.slow  # some seconds
def test_a_seed_that_is_used_twice_is_noticed():
    result = distinguish(view(), COINS, ReusingBfv(), FEW)
    assert result.noticed
    # All of a ciphertext but the coefficients that hold the vector.
    assert result.repeated > 10_000
    assert not any(one.noticed for one in result.looks)


@pytest.mark.slow
def test_a_wait_that_depends_on_labels_is_noticed():
    result = distinguish(view(), COINS, WaitingBfv(), 60)
    assert result.noticed
    assert look(result, "times").noticed
    assert not look(result, "bytes").noticed
    assert result.repeated == 0


def test_residues_that_are_not_encrypted_are_noticed():
    result = distinguish(view(), COINS, PretendingClear(), FEW)
    assert result.noticed
    assert look(result, "bytes").accuracy > 0.95
    assert result.entropy < LEAST_ENTROPY


@pytest.mark.slow  # a whole audit of trainings with encryption
def test_what_is_noticed_is_a_leak_in_the_verdict():
    honest = audited()
    run = honest.runs[0]
    spoilt = distinguish(view(), COINS, PretendingClear(), FEW)
    conclusion = conclude(AuditResult((replace(run, distinguisher=spoilt),)))
    assert conclusion.status is Status.LEAK


@pytest.mark.slow  # a whole audit of trainings with encryption
def test_a_look_that_misses_its_own_faults_has_tested_nothing():
    run = audited().runs[0]
    result = run.distinguisher
    assert result is not None
    blind = replace(result, faults=tuple(replace(one, noticed=False) for one in result.faults))
    conclusion = conclude(AuditResult((replace(run, distinguisher=blind),)))
    assert conclusion.status is Status.NOT_TESTED
    assert apart_sentence(blind) != apart_sentence(result)


# --- the real code ----------------------------------------------------------------------------


@cache
def audited() -> AuditResult:
    return taciturn.audit(
        dataset="breast-cancer", mechanism="sealed", seed=1, passes=1, seat="alice"
    )


@pytest.mark.slow  # a whole audit of trainings with encryption
def test_the_audit_of_sealed_is_at_chance_and_says_what_it_would_have_noticed():
    """False alarm: ``FALSE_ALARM``."""
    audit = audited()
    result = audit.runs[0].distinguisher
    assert result is not None
    assert not result.noticed
    assert (result.trained, result.judged, result.repeated) == (60, 120, 0)
    assert result.entropy > 7.9
    noticed = {fault.name: fault.noticed for fault in result.faults}
    # Whether the machine was too busy for the clock to tell is its own affair.
    assert noticed | {"delay": True} == dict.fromkeys(noticed, True)
    conclusion = conclude(audit)
    assert conclusion.status is Status.NOT_SHOWN


@pytest.mark.slow  # ten trainings with encryption
def test_over_several_seeds_the_guesses_are_those_of_fair_coins():
    """False alarm: 1e-6 in each of three looks."""
    results = [
        distinguish(view(), KeyedEntropy.from_seed(seed), BfvScheme(), FEW) for seed in range(10)
    ]
    assert not any(result.noticed for result in results)
    for place in range(3):
        right = sum(result.looks[place].right for result in results)
        judged = sum(result.looks[place].judged for result in results)
        assert 5e-7 < binom.cdf(right, judged, 0.5) < 1 - 5e-7


@pytest.mark.slow  # some seconds
@pytest.mark.parametrize(
    "options",
    [
        {"mechanism": "sealed", "scheme": "clear", "passes": 1},
        {"mechanism": "none", "scheme": "clear", "epochs": 1},
    ],
)
def test_where_messages_are_in_clear_there_is_nothing_to_look_at(options):
    record = taciturn.audit(dataset="breast-cancer", seed=1, seat="alice", **options).to_dict()
    assert "distinguisher" not in record


# --- its parts --------------------------------------------------------------------------------


def test_the_threshold_keeps_to_the_false_alarm_and_to_the_power():
    for judged in (60, 120, 240):
        least = needed(judged)
        assert 3 * binom.sf(least - 1, judged, 0.5) <= FALSE_ALARM
        assert 3 * binom.sf(least - 2, judged, 0.5) > FALSE_ALARM
        assert binom.sf(least - 1, judged, detectable(judged)) == pytest.approx(0.95)


def test_a_handful_of_trainings_notices_nothing():
    assert needed(10) == 11
    assert detectable(10) == 1.0


def test_the_coins_are_the_labels_of_the_trainings():
    received = challenge(view(), ClearScheme(), COINS, FEW)
    assert len(received.messages) == len(received.secret_bits) == FEW
    # A row's number is positive where the label is 1, and the scheme clear shows it.
    first = [np.frombuffer(one.payload, "<i8")[0] > 0 for one in received.messages]
    np.testing.assert_array_equal(first, received.secret_bits)
    assert 0.2 < received.secret_bits.mean() < 0.8


def lengths(received: Challenge) -> set[tuple[Any, ...]]:
    return {(one.kinds, one.lengths) for one in received.messages}


@pytest.mark.parametrize("mechanism", ["sealed", "mutual"])
def test_kinds_and_lengths_are_the_same_in_every_training(mechanism):
    assert len(lengths(challenge(view(mechanism), BfvScheme(), COINS, 6))) == 1


@pytest.mark.parametrize(("payloads", "expected"), [([], 0), ([b"short"], 0), ([bytes(64)], 3)])
def test_repeated_blocks(payloads, expected):
    assert repeated_blocks(payloads) == expected


def test_halves_alone_are_no_repeated_block():
    first, second, third = (bytes([value]) * 8 for value in (1, 2, 3))
    assert repeated_blocks([first + second, first + third, third + second]) == 0


def test_a_longer_message_where_labels_are_1_is_noticed():
    received = challenge(view(), ClearScheme(), COINS, FEW)
    messages = tuple(
        replace(one, lengths=(one.lengths[0] + int(coin), *one.lengths[1:]))
        for one, coin in zip(received.messages, received.secret_bits, strict=True)
    )
    spoilt = replace(received, messages=messages)
    assert _look("lengths and order", _shape_features(spoilt), received.secret_bits).noticed
    assert not _look("lengths and order", _shape_features(received), received.secret_bits).noticed
