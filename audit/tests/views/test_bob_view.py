"""Bob's view: what he saw while it happened, from the recording alone."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from audit.tests.column_attacks.runs import newton, run, sgd

from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.clear import ClearScheme
from taciturn.engine.pair import run_pair
from taciturn.engine.transcript import Recorder, replay
from taciturn.jobs.train.simulation import programs
from taciturn.numerics.whitening import Whitening
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.registry import mechanism
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.observations import BobSignal
from taciturn.protocol.bob.party import bob_program
from taciturn.protocol.party import PartyResult
from taciturn.protocol.steps import ONLY, Persist, Program
from taciturn.protocol.terms import Terms
from taciturn.simulation import RunEntropy
from tests.protocol.parties import same

RUNS = {
    "none": lambda: sgd(),
    "add": lambda: sgd("add", epsilon=1.0, epochs=2),
    "hybrid": lambda: run(mechanism="hybrid", epochs=1),
    "label-rr": lambda: sgd("label-rr", epsilon=1.0, epochs=2),
    "penalty": lambda: sgd("none", l2=0.05, epochs=2),
    "newton": lambda: newton(),
    "newton none": lambda: newton("none"),
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.sampled(3)
def test_observations_are_those_of_the_live_run(name):
    made = RUNS[name]()
    assert made.live
    seen = made.view.observations
    assert len(seen) == len(made.live)
    assert all(same(now, then) for now, then in zip(seen, made.live, strict=True))


@pytest.mark.parametrize("name", ["none", "add", "hybrid", "label-rr", "penalty"])
def test_batches_say_how_the_weights_move(name):
    """Alice's weights, carried along with Bob's steps, give the scores that he saw."""
    made = RUNS[name]()
    weights = np.zeros(made.hers.shape[1])
    for batch in made.view.batches:
        rows = made.hers[batch.rows]
        assert np.abs(rows @ weights - batch.scores).max() < 0.02
        assert (batch.shrink < 1) == (name == "penalty")
        weights = batch.shrink * weights + batch.step @ rows


def test_directions_are_scored_by_the_whitened_table():
    made = newton()
    l2 = made.outcome.terms.agreement.l2
    table = Whitening.fit(made.hers, l2).apply(made.hers)
    for direction in made.view.directions:
        scores = table @ (table.T @ direction.direction)
        assert np.abs(scores - direction.scores).max() < 0.02 * np.abs(scores).max()


def test_a_view_until_an_epoch_ends_there():
    view = sgd().view.until(2)
    assert [event.iteration for event in view.batches] == list(range(2 * 29))
    assert BobSignal.PREDICTIONS not in view.signals
    assert len(newton().view.until(3).directions) == 3


def test_predictions_are_alices_part_of_the_scores():
    made = newton("none")
    hers = made.hers @ made.outcome.alice_weights
    assert made.view.predictions is not None
    assert np.abs(made.view.predictions - hers).max() < 2.0**-12 + 1e-5


def kept_by(program: Program[PartyResult], persisted: list[bytes]) -> Program[PartyResult]:
    """The same program; notes what it wants remembered."""
    answer = None
    while True:
        try:
            step = program.send(answer)
        except StopIteration as done:
            return cast(PartyResult, done.value)
        persisted += [step.data] if isinstance(step, Persist) else []
        answer = yield step


def test_an_encrypted_run_is_read_with_the_keys_that_were_kept():
    """What is opened under encryption is what a run without it opens, to the last bit."""
    plain = newton(passes=2)
    terms = replace(plain.outcome.terms, scheme=BfvScheme())
    agreed = terms.agreement.model_copy(update={"scheme": "bfv", "key_bits": 128})
    terms, entropy = replace(terms, agreement=agreed), RunEntropy.for_seed(3)
    ledger = Ledger(plain.view.labels.rows, mechanism(agreed).assumption)
    alices, bob = programs(plain.outcome.data, terms, entropy, ledger)
    persisted: list[bytes] = []
    recorder = Recorder()
    run_pair(alices[ONLY], kept_by(bob, persisted), tap=recorder)
    assert persisted
    view = replace(
        plain.view, agreement=agreed, conversation=recorder.finish({}), persisted=tuple(persisted)
    )
    seen = view.observations
    assert all(same(now, then) for now, then in zip(seen, plain.live, strict=True))


def test_the_replay_says_what_was_said_then():
    """With verification on, every frame of his is sent again byte for byte, in a clear run."""
    view = sgd().view
    terms, method = Terms(view.agreement, ClearScheme()), mechanism(view.agreement)
    ledger = Ledger(view.labels.rows, method.assumption)
    inputs = BobInputs(
        view.features, view.labels, terms, method, ledger, view.entropy, held_out=view.held_out
    )
    result = replay(bob_program(inputs), view.conversation, role="bob", verify=True)
    assert np.array_equal(result.trained.weights, sgd().outcome.bob_weights)
