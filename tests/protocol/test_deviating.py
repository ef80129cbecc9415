"""Parties that do not keep to the protocol get what the check tells the other side, and no less.

``tests/deviating.py`` plays them against the other side's own program.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from taciturn.engine.pair import run_pair
from taciturn.errors import CryptoError
from taciturn.jobs.train.exposure import column_exposure
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.party import alice_program
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.party import bob_program
from taciturn.protocol.codec import decode
from taciturn.protocol.messages import PartialScores, Role, SealedScores
from taciturn.protocol.opened_scores import OpenedScores
from taciturn.protocol.outcome import HeldOut
from taciturn.results.cost_preview import ColumnExposure
from tests.deviating import (
    Scored,
    Setup,
    as_chosen,
    columns_from_known_rows,
    gram_of_differences,
    hidden_oracle_alice,
    inventing_alice,
    labels_of,
    oracle_alice,
    packing_alice,
    read_by,
    saturating_alice,
    stacking_bob,
    steering_bob,
    unwhitened,
    values_guessed,
    whole_table_bob,
    with_half_of_its_own,
)
from tests.expected import refused

MECHANISMS: dict[str, dict[str, Any]] = {
    "none": {"mechanism": "none"},
    "add": {"mechanism": "add", "epsilon": 1.0},
    "mult": {"mechanism": "mult", "epsilon": 1.0},
    "label-rr": {"mechanism": "label-rr", "epsilon": 1.0},
    "sealed": {"mechanism": "sealed", "passes": 2},
    "label-rr over sealed": {
        "mechanism": "label-rr",
        "epsilon": 1.0,
        "base_mechanism": "sealed",
        "passes": 2,
    },
}


def exposure(setup: Setup) -> ColumnExposure:
    return column_exposure(setup.terms, len(setup.columns), setup.data.alice_train)


# --- Counts --------------------------------------------------------------------------------------


class Counter:
    """Counts the scores that leave Alice."""

    def __init__(self) -> None:
        self.scores = 0

    def __call__(self, sender: Role, frame: bytes) -> None:
        message = decode(frame)
        if isinstance(message, PartialScores):
            self.scores += len(message.scores)
        elif isinstance(message, SealedScores):
            self.scores += message.answer.length


@pytest.mark.sampled(4)
@pytest.mark.parametrize("evaluate", ["end", "epoch"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_counts_are_those_of_a_whole_training(name, evaluate):
    chosen = MECHANISMS[name]
    setup = Setup.of(**chosen if "passes" in chosen else {**chosen, "epochs": 2})
    agreed = setup.terms.agreement.model_copy(update={"evaluate": evaluate})
    terms = type(setup.terms)(agreed, setup.terms.scheme)
    data, his = setup.data, setup.bob_inputs()
    looked_at = HeldOut(data.bob_test, data.labels_test)
    bob = BobInputs(
        his.features, his.labels, terms, his.mechanism, his.ledger, his.entropy, None, looked_at
    )
    alice = AliceInputs(data.alice_train, terms, setup.entropy.alice, None, data.alice_test)
    counter = Counter()
    run_pair(alice_program(alice), bob_program(bob), tap=counter)
    counts = OpenedScores.from_terms(terms, data.alice_train.rows, data.alice_test.rows)
    assert counts.in_all == counter.scores


def test_of_a_hidden_batch_alice_is_told_the_most_that_bob_can_ask_for():
    setup = Setup.of(mechanism="hybrid", epochs=1)
    rows, _ = setup.columns.shape
    counts = OpenedScores.from_terms(setup.terms, rows)
    iterations, named = setup.terms.per_epoch(rows), setup.terms.agreement.subset_size
    assert named is not None
    assert counts.per_row == iterations + 1
    assert counts.in_all == iterations * named + rows


# --- Either --------------------------------------------------------------------------------------


def test_with_a_uniform_half_of_its_choice_a_keys_owner_confirms_every_guess():
    assert values_guessed(as_chosen, values=8) == 1.0
    # Sixteen coins, all of which fall right once in 65,536 times.
    assert values_guessed(lambda half: half) < 1.0


@pytest.mark.parametrize("owner", ["alice", "bob"])
def test_a_uniform_half_of_its_own_is_refused_by_name(owner):
    setup = Setup.of(mechanism="mutual", passes=1, scheme="bfv")
    programs = {"alice": setup.alice(), "bob": setup.bob()}
    programs[owner] = with_half_of_its_own(programs[owner])
    with refused(CryptoError):
        run_pair(programs["alice"], programs["bob"])


# --- Bob -----------------------------------------------------------------------------------------


def test_a_steering_bob_reads_a_column_an_epoch_where_gradients_are_returned():
    setup = Setup.of(mechanism="none", epochs=16)
    exposed = exposure(setup)
    assert (exposed.columns_per_score, exposed.scores_for_all) == (1, 15)
    assert "16" in exposed.warning
    notes = read_by(steering_bob, setup)
    assert notes.recovered(setup.columns, 15) == 1.0
    assert notes.recovered(setup.columns, 14) < 1.0


def test_where_gradients_are_returned_columns_of_two_values_share_a_score():
    setup = Setup.of(mechanism="none", dataset="sklearn-digits", epochs=2)
    exposed = exposure(setup)
    assert read_by(steering_bob, setup).recovered(setup.columns, 1) < 0.07
    share = read_by(stacking_bob, setup).recovered(setup.columns, 1)
    assert 0.2 < share < 2 * exposed.columns_per_score / setup.columns.shape[1]


def test_of_whole_tables_he_reads_whitened_columns_and_undoes_the_whitening():
    """Two columns a pass, of twelve passes by default; the check says no more scores than that."""
    setup = Setup.of(mechanism="sealed", solver="newton")
    exposed = exposure(setup)
    assert exposed.scores_for_all <= 8 <= exposed.scores_per_row
    assert str(exposed.scores_for_all) in exposed.warning
    notes = read_by(whole_table_bob, setup)
    assert np.isnan(notes.estimate(6)).any()
    columns = unwhitened(notes.estimate(7), setup.terms.agreement.l2)
    assert np.abs(columns - setup.columns).max() < 0.1


def test_in_a_hidden_batch_he_names_the_rows_and_needs_iterations_not_epochs():
    setup = Setup.of(mechanism="hybrid", epochs=1)
    named, columns = setup.terms.agreement.subset_size or 0, setup.columns.shape[1]
    notes = read_by(steering_bob, setup)
    error = notes.estimate(columns)[:named] - setup.columns[:named]
    assert np.abs(error).max() < 1e-6
    assert np.isnan(notes.estimate(columns)[named:]).all()


def test_where_residues_are_told_he_needs_known_rows_to_leave_the_rotation():
    setup = Setup.of(mechanism="add", epsilon=1.0, epochs=16)
    assert exposure(setup).columns_per_score == 1
    assert np.abs(columns_from_known_rows(setup) - setup.columns).max() < 1e-6


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_an_honest_bob_has_her_rows_up_to_a_rotation(seed):
    """From how his residues move the scores; the error is the rounding of her features."""
    bob = Scored.of(seed)
    assert bob.error(gram_of_differences(bob)) < 2e-4


# --- Alice ---------------------------------------------------------------------------------------


def test_one_column_gives_a_deviating_alice_all_labels_where_gradients_are_returned():
    setup = Setup.of(mechanism="none", epochs=1, alice_columns=1)
    assert labels_of(saturating_alice, setup, 0) == [1.0]


@pytest.mark.parametrize("scheme", ["clear", "bfv"])
def test_a_sum_over_all_rows_holds_two_labels_for_each_column_that_she_names(scheme):
    """Bob's program ends as ever; his numbers of the first pass have the signs of the labels."""
    setup = Setup.of(
        mechanism="none", solver="newton", passes=1, alice_columns="all", scheme=scheme
    )
    rows, columns = setup.columns.shape
    assert labels_of(packing_alice, setup, 0) == [2 * columns / rows]
    assert labels_of(inventing_alice, setup, 0) == [1.0]


def test_a_hidden_batch_gives_her_most_labels_in_three_epochs():
    """Bob's program ends as ever: a row of the batch has a residue, and its sign is the label."""
    setup = Setup.of(mechanism="hybrid", epochs=3)
    per_epoch = setup.terms.per_epoch(len(setup.columns))
    shares = labels_of(hidden_oracle_alice, setup, *(per_epoch * at - 1 for at in (1, 3)))
    assert shares[0] > 0.5
    assert shares[1] > 0.9


def test_of_flipped_labels_she_has_the_answers_and_no_more():
    """Bob's program holds no true label: she has all answers, right as often as kept."""
    setup = Setup.of(mechanism="label-rr", epsilon=1.0, epochs=1)
    flips = setup.terms.mechanism.label_flips
    assert flips is not None
    (share,) = labels_of(oracle_alice, setup, 0)
    assert share == pytest.approx(flips.keep, abs=0.06)
