"""Alice's view of every kind of batch training: what she saw, from the recording alone."""

from __future__ import annotations

from typing import Any

import pytest

from taciturn.crypto.registry import scheme
from taciturn.data.datasets import load
from taciturn.engine.transcript import replay
from taciturn.jobs.train.simulation import Outcome, simulate_training
from taciturn.privacy.registry import mechanism
from taciturn.privacy.solvers import resolved
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.party import alice_program
from taciturn.protocol.events import Event
from taciturn.protocol.observations import (
    GradientSeen,
    HiddenBatchSeen,
    Observation,
    ResiduesSeen,
    Signal,
)
from taciturn.protocol.terms import Terms
from taciturn.settings.schema import Settings
from taciturn_audit.adversaries import outcome_view
from taciturn_audit.views.alice_view import AliceView
from tests.protocol.parties import same

RUNS: dict[str, dict[str, Any]] = {
    "none": {"mechanism": "none", "batch-size": 16},
    "add": {"mechanism": "add", "epsilon": 1.0},
    "add-continuous": {"mechanism": "add", "epsilon": 1.0, "noise": "continuous"},
    "add-with-a-budget": {"mechanism": "add", "epsilon": 1.0, "budget": 0.75},
    "mult": {"mechanism": "mult", "epsilon": 1.0, "variant": "mean-one"},
    "hybrid": {"mechanism": "hybrid"},
    "hybrid-bfv": {"mechanism": "hybrid", "scheme": "bfv", "epochs": 1, "batch_size": 60},
}
OF_RESIDUES = {Signal.FEATURES, Signal.WEIGHTS, Signal.RESIDUES}
OF_BATCHES = {Signal.FEATURES, Signal.WEIGHTS, Signal.GRADIENTS}
SIGNALS = {"none": OF_BATCHES, "hybrid": OF_BATCHES | {Signal.RESPONSE}}


def run(name: str) -> tuple[Outcome, list[Observation], AliceView]:
    base = {"dataset": "breast-cancer", "scheme": "clear", "epochs": 2, "seed": 3}
    settings = resolved(Settings.from_mapping({**base, "alice-columns": "half", **RUNS[name]}))
    seen: list[Observation] = []

    def keep(event: Event) -> None:
        if isinstance(event, Observation):
            seen.append(event)

    outcome = simulate_training(settings, load("breast-cancer"), keep=True, observe=keep)
    return outcome, seen, outcome_view(outcome)


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.sampled(2)
def test_observations_and_weights_are_those_of_the_live_run(name):
    outcome, live, view = run(name)
    observations = view.observations
    kinds: tuple[type[Observation], ...] = (ResiduesSeen,)
    if "GRADIENTS" in {signal.name for signal in view.signals}:
        kinds = (HiddenBatchSeen, GradientSeen) if "hybrid" in name else (GradientSeen,)
    assert [type(event) for event in observations.events] == [
        *kinds
    ] * outcome.result.cost.iterations
    assert all(same(now, then) for now, then in zip(observations.events, live, strict=True))
    assert same(observations.weights, outcome.alice_weights)
    assert view.signals == SIGNALS.get(name.partition("-")[0], OF_RESIDUES)


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.sampled(2)
def test_the_fast_replay_equals_the_full_one(name):
    _, _, view = run(name)
    agreed = view.agreement
    terms = Terms(agreed, scheme(agreed.scheme))
    program = alice_program(AliceInputs(view.features, terms, view.entropy, held_out=view.held_out))
    # SEAL draws for itself: under bfv a second run gives the same weights, not the same bytes.
    seen: list[Event] = []
    verify = agreed.scheme != "bfv"
    trained = replay(program, view.conversation, verify=verify, observe=seen.append).trained
    assert same(trained.weights, view.observations.weights)
    full = [event for event in seen if isinstance(event, Observation)]
    assert all(same(one, two) for one, two in zip(full, view.observations.events, strict=True))


def test_a_run_that_ended_early_replays_to_its_end():
    outcome, _, view = run("add-with-a-budget")
    assert outcome.result.cost.iterations == 29
    assert outcome.result.stopped
    seen = view.observations.of_kind(ResiduesSeen)
    assert len(seen) == 29
    assert {one.event for one in seen} == {mechanism(outcome.terms.agreement).event}
