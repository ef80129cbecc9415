"""A simulated training is a session between machines, from the first message to the last."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from taciturn.engine.transcript import replay
from taciturn.jobs.train.simulation import Outcome, simulate_training
from taciturn.numerics.metrics import evaluate
from taciturn.privacy.solvers import resolved
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.party import bob_program
from taciturn.protocol.codec import kind_of
from taciturn.protocol.messages import Hello
from taciturn.protocol.outcome import HeldOut
from taciturn.protocol.party import PartyResult
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, load_raw

RUNS: dict[str, dict[str, Any]] = {
    "none": {"mechanism": "none", "epochs": 1},
    "add": {"mechanism": "add", "epsilon": 1.0, "epochs": 1},
    "hybrid": {"mechanism": "hybrid", "epochs": 1},
    "sealed": {"mechanism": "sealed", "passes": 2},
    "mutual": {"mechanism": "mutual", "passes": 2},
    "label-rr": {"mechanism": "label-rr", "epsilon": 1.0, "epochs": 1},
}
SHARED = {"sealed", "mutual"}


@cache
def simulated(name: str) -> Outcome:
    base = {"dataset": "breast-cancer", "scheme": "clear", "seed": 3, "alice_columns": "half"}
    settings = resolved(Settings.from_mapping({**base, **RUNS[name]}))
    return simulate_training(settings, load_raw(settings), keep=True)


def at_bob(outcome: Outcome) -> PartyResult:
    """What Bob has at the end, from the transcript, his tables and his coins."""
    data, terms, entropy = outcome.data, outcome.terms, RunEntropy.for_seed(3).bob
    inputs = BobInputs.without_budget(data.bob_train, data.labels_train, terms, entropy)
    held_out = HeldOut(data.bob_test, data.labels_test)
    assert outcome.transcript is not None
    return replay(bob_program(replace(inputs, held_out=held_out)), outcome.transcript, role="bob")


@pytest.mark.parametrize("name", RUNS)
def test_figures_are_those_of_the_scores_that_bob_has(name):
    outcome = simulated(name)
    bob, data, shift = at_bob(outcome), outcome.data, outcome.terms.log_odds_shift
    assert bob.held_out_scores is not None
    assert (
        evaluate(bob.held_out_scores, data.labels_test.values, shift) == outcome.result.metrics.test
    )
    if name in SHARED:
        assert bob.train_scores is None
    else:
        assert bob.train_scores is not None
        assert np.array_equal(bob.train_scores, outcome.train_scores)


@pytest.mark.parametrize("name", RUNS)
def test_a_transcript_begins_with_the_held_out_rows_and_has_every_counted_byte(name):
    outcome = simulated(name)
    transcript, run = outcome.transcript, outcome.result
    assert transcript is not None
    assert sum(map(len, transcript.frames("bob"))) == run.cost.bytes_to_alice
    assert sum(map(len, transcript.frames("alice"))) == run.cost.bytes_to_bob
    kinds = [kind_of(frame) for frame in transcript.frames("bob")]
    # Held-out rows, the training, and the scores: of training rows only where weights are not
    # shared, and of held-out rows.
    assert kinds[0] is Hello
    assert kinds.count(Hello) == (3 if name in SHARED else 4)


def test_rows_that_are_all_trained_on_are_scored_once():
    settings = resolved(
        Settings.from_mapping(
            {"dataset": "breast-cancer", "scheme": "clear", "seed": 3, **RUNS["none"]}
        )
    )
    whole = replace(simulated("none").data, held_out=False)
    train = replace(
        whole,
        alice_test=whole.alice_train,
        bob_test=whole.bob_train,
        labels_test=whole.labels_train,
    )
    outcome = simulate_training(settings, train, keep=True)
    assert outcome.transcript is not None
    kinds = [kind_of(frame) for frame in outcome.transcript.frames("bob")]
    assert kinds.count(Hello) == 2
    assert outcome.result.metrics.test == outcome.result.metrics.train
