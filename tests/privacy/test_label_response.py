"""``label-rr``: exact flips, one price whatever the epochs, and nothing true beyond them."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import taciturn
from taciturn.data.label_table import LabelTable
from taciturn.engine.pair import run_pair
from taciturn.errors import BudgetExceeded, PrivacyError
from taciturn.privacy.base import Mechanism
from taciturn.privacy.events import FlippedLabelGradient, LabelResponse
from taciturn.privacy.label_response import FlippedLabels
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.noise import response_flips
from taciturn.privacy.registry import MECHANISMS, accepted_settings, mechanism, mechanism_class
from taciturn.privacy.unprotected import Unprotected
from taciturn.protocol.bob.inputs import released_labels
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Protection
from tests.expected import refused
from tests.modules import module_of
from tests.privacy.odds import fits, happens
from tests.protocol.parties import BOB, CLEAR, Tables, agreement, alice_program, bob_program

EPSILONS = [0.01, 0.1, 1.0, 3.0, 10.0]
AGREED = agreement(mechanism="label-rr", epsilon=1.0, base_mechanism="none")


def method(epsilon: float) -> FlippedLabels:
    return FlippedLabels(LabelResponse(epsilon), Unprotected())


def entropy(purpose: str) -> KeyedEntropy:
    return KeyedEntropy.from_seed(77).fork(purpose)


def run(**options: Any) -> taciturn.api.TrainResult:
    base = {"dataset": "breast-cancer", "mechanism": "label-rr", "scheme": "clear", "seed": 3}
    return taciturn.train(**{**base, "epsilon": 1.0, **options})


# --- flips ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("label", [0, 1])
def test_each_label_is_kept_with_its_exact_probability_with_false_alarm_rate_1e_minus_6(
    epsilon, label
):
    size = 100_000
    labels = LabelTable.from_data(np.full(size, label))
    released = method(epsilon).respond(labels, entropy(f"{epsilon} {label}"))
    kept = int((released.values == label).sum())
    assert happens(kept, size, math.exp(epsilon) / (1 + math.exp(epsilon)))
    keep = method(epsilon).keep
    assert math.log(keep / (1 - keep)) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_flips_of_neighbours_are_independent_by_chi_square_with_false_alarm_rate_1e_minus_6(
    epsilon,
):
    flips = response_flips(epsilon, 200_000, entropy(f"pairs {epsilon}"))
    flipped = 1 / (1 + math.exp(epsilon))
    counts = np.bincount(2 * flips[::2] + flips[1::2], minlength=4)
    once = flipped * (1 - flipped)
    assert fits(counts, [(1 - flipped) ** 2, once, once, flipped**2])


# --- the ledger ----------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("epochs", [1, 2, 20])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_total_is_epsilon_whatever_the_number_of_epochs(epochs, epsilon):
    ledger = run(epsilon=epsilon, epochs=epochs).to_dict()["ledger"]
    assert ledger["releases_per_row"] == 1
    for key in (
        "claimed_epsilon_per_release",
        "residue_epsilon_per_release",
        "label_epsilon_per_release",
        "residue_epsilon_total",
        "label_epsilon_total",
    ):
        assert ledger[key] == epsilon
    assert 0 < ledger["label_epsilon_total_delta"] <= epsilon
    assert ledger["assumption"]


def test_flipping_again_spends_again():
    labels, ledger = LabelTable.from_data([0, 1, 1]), Ledger(3, "test")
    for _ in range(3):
        released_labels(labels, method(0.5), ledger, entropy("again"))
    assert ledger.statement().label_epsilon_total == 1.5
    assert ledger.statement().releases_per_row == 3


def test_every_row_is_charged_before_anything_is_drawn_or_sent():
    labels = LabelTable.from_data([0, 1, 1])
    ledger = Ledger(3, "test", budget=0.5)
    with pytest.raises(BudgetExceeded):
        released_labels(labels, method(1.0), ledger, entropy("budget"))
    assert ledger.statement().releases_per_row == 0
    with pytest.raises(BudgetExceeded):
        run(epsilon=1.0, budget=0.5)
    assert run(epsilon=1.0, budget=1.0).to_dict()["stopped"] is None


def test_a_program_that_was_handed_labels_without_a_flip_sends_no_gradient():
    tables = Tables.make()
    with refused(PrivacyError, names="label-response"):
        run_pair(alice_program(tables, AGREED), bob_program(tables, AGREED))


def test_a_flip_with_another_epsilon_does_not_pay_for_it():
    ledger = Ledger(2, "test")
    ledger.charge(LabelResponse(1.0), np.arange(2))
    ledger.charge(FlippedLabelGradient(1.0), np.arange(2))
    with pytest.raises(PrivacyError):
        ledger.charge(FlippedLabelGradient(0.5), np.arange(2))
    assert ledger.statement().label_epsilon_total == 1.0


# --- the training --------------------------------------------------------------------------------


def conversation(tables: Tables, released: LabelTable) -> list[tuple[str, bytes]]:
    """Every frame of a training on these released labels."""

    ledger = Ledger(released.rows, "test")
    ledger.charge(LabelResponse(1.0), np.arange(released.rows))
    handed = Tables(tables.alice, tables.bob, released, tables.free)
    frames: list[tuple[str, bytes]] = []
    run_pair(
        alice_program(handed, AGREED, CLEAR),
        bob_program(handed, AGREED, CLEAR, ledger=ledger, entropy=BOB),
        tap=lambda sender, frame: frames.append((sender, frame)),
    )
    return frames


@pytest.mark.parametrize("intercept", [False, True])
def test_the_whole_conversation_is_a_function_of_the_released_labels(intercept):
    """Also where Bob has columns and an intercept, whose weights learn from the same labels."""
    tables = Tables.make(bob=2 if intercept else 0, intercept=intercept)
    released = method(1.0).respond(tables.labels, entropy("one"))
    other = LabelTable(tables.labels.ids, 1 - tables.labels.values)
    turned = Tables(tables.alice, tables.bob, other, tables.free)
    assert conversation(tables, released) == conversation(turned, released)
    assert conversation(tables, released) != conversation(
        tables, LabelTable(released.ids, 1 - released.values)
    )


def test_without_flips_it_is_the_baseline_and_with_them_it_is_near_at_a_large_epsilon():
    plain = taciturn.train(dataset="breast-cancer", mechanism="none", scheme="clear", seed=3)
    huge = run(epsilon=60.0)
    assert huge.weights["alice"].tobytes() == plain.weights["alice"].tobytes()
    assert huge.to_dict()["test"] == plain.to_dict()["test"]


# --- over another conversation -------------------------------------------------------------------


class Beneath(Mechanism):
    """A mechanism with a conversation and a setting of its own."""

    name = "sealed"
    takes = ("b1",)
    defaults = MappingProxyType({"b1": 0.5})
    conversation = "of its own"
    assumption = "nothing is sent in clear"
    event = LabelResponse(1.0)

    @classmethod
    def from_agreement(cls, agreed):
        return cls()


def test_it_takes_the_conversation_and_the_settings_of_what_it_runs_over(monkeypatch):
    known = {**MECHANISMS, "sealed": Beneath}
    monkeypatch.setattr(module_of(mechanism_class), "MECHANISMS", known)
    made = mechanism(AGREED.model_copy(update={"base_mechanism": "sealed"}))
    assert (made.name, made.conversation) == ("label-rr", "of its own")
    assert made.assumption.endswith(Beneath.assumption)
    both = accepted_settings(Protection(mechanism="label-rr", base_mechanism="sealed"))
    assert both.names == ("epsilon", "base_mechanism", "b1")
    assert both.defaults == {"base_mechanism": "none", "b1": 0.5}
    # What does not run over another is not concerned.
    alone = accepted_settings(Protection(mechanism="add", base_mechanism="sealed"))
    assert alone.names == MECHANISMS["add"].takes
