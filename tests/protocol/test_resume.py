"""A training that goes on from any boundary ends with the weights of one that never stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from taciturn.crypto import ClearScheme, PaillierScheme, Scheme
from taciturn.crypto.bfv import BfvScheme
from taciturn.data import FeatureTable
from taciturn.engine import run_pair
from taciturn.errors import StateError
from taciturn.numerics import FixedPoint, evaluate
from taciturn.privacy import Ledger
from taciturn.privacy import mechanism as mechanism_of
from taciturn.protocol import (
    BobTrained,
    Boundary,
    Event,
    HeldOut,
    HeldOutSeen,
    StopReason,
    Terms,
    Trained,
    TrainingState,
    at_scale,
)
from taciturn.protocol.alice import TRAININGS as ALICES
from taciturn.protocol.alice import AliceInputs, ScoreNoise, noise_key
from taciturn.protocol.bob import TRAININGS as BOBS
from taciturn.protocol.bob import BobInputs, released_labels
from tests.protocol.parties import ALICE, BOB, Tables, agreement

TABLES = Tables.make(rows=18, alice=4, bob=2, intercept=True)
SMALL = PaillierScheme(key_bits=(512,))

CASES: dict[str, tuple[Scheme, dict[str, Any]]] = {
    "none": (ClearScheme(), {}),
    "none-bfv": (BfvScheme(), {"scheme": "bfv", "key_bits": 128, "epochs": 1}),
    "none-small-paillier": (SMALL, {"scheme": SMALL.name, "key_bits": 512, "epochs": 1}),
    "add": (
        ClearScheme(),
        {"mechanism": "add", "epsilon": 2.0, "noise": "discrete", "bob_update": "released"},
    ),
    "hybrid": (
        ClearScheme(),
        {"mechanism": "hybrid", "epsilon": 1.0, "subset_size": 14, "batch_size": 4},
    ),
    "label-rr": (ClearScheme(), {"mechanism": "label-rr", "epsilon": 1.0, "over": "none"}),
}


@dataclass
class Halves:
    """Both programs' states at each boundary, in the order they were reported."""

    alice: list[TrainingState] = field(default_factory=list)
    bob: list[TrainingState] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        if isinstance(event, Boundary):
            size = len(event.state.weights)
            (self.alice if size == len(TABLES.alice.columns) else self.bob).append(event.state)


def programs(
    name: str, at: tuple[TrainingState, TrainingState] | None = None, **changes: Any
) -> tuple[Any, Any]:
    scheme, values = CASES[name]
    agreed = agreement(**{**values, **changes})
    method, terms = mechanism_of(agreed), Terms(agreed, scheme)
    ledger = Ledger(TABLES.labels.rows, method.assumption)
    alices, bobs = at or (None, None)
    alice = AliceInputs(TABLES.alice, terms, ALICE, alices)
    labels = released_labels(TABLES.labels, method, ledger, BOB)
    bob = BobInputs(TABLES.bob, labels, terms, method, ledger, BOB, bobs)
    return ALICES[method.conversation](alice), BOBS[method.conversation](bob)


def plain(ends: tuple[Trained, BobTrained]) -> list[tuple[list[float], int, StopReason | None]]:
    """What both sides have at the end, to be compared."""
    return [(end.weights.tolist(), end.iterations, end.stopped) for end in ends]


@pytest.mark.parametrize("name", CASES)
def test_from_every_boundary_the_weights_are_the_same_to_the_last_bit(name):
    seen = Halves()
    whole = plain(run_pair(*programs(name), observe=seen))
    assert [state.iteration for state in seen.alice] == [state.iteration for state in seen.bob]
    for at in zip(seen.alice, seen.bob, strict=True):
        kept = tuple(TrainingState.of_bytes(state.to_bytes()) for state in at)
        assert plain(run_pair(*programs(name, (kept[0], kept[1])))) == whole


def test_a_state_shows_no_secret():
    state = TrainingState(1, np.array([0.125]), seed=b"s" * 32, key=b"secret")
    assert "secret" not in repr(state)
    assert "0.125" not in repr(state)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"\xff", b'{"iteration": 0}'])
def test_bytes_that_are_no_state_are_refused(data):
    with pytest.raises(StateError, match="not the state of a training"):
        TrainingState.of_bytes(data)


# --- held-out rows --------------------------------------------------------------------------------


def held_out(rows: int = 7) -> tuple[FeatureTable, HeldOut]:
    more = Tables.make(rows=rows, alice=4, bob=2, intercept=True, seed=8)
    return more.alice, HeldOut(more.bob, more.labels)


def watched(events: list[Event], **changes: Any) -> tuple[Any, Ledger]:
    agreed = agreement(evaluate="epoch", **changes)
    method, terms = mechanism_of(agreed), Terms(agreed, ClearScheme())
    ledger = Ledger(TABLES.labels.rows, method.assumption)
    theirs, ours = held_out()
    labels = released_labels(TABLES.labels, method, ledger, BOB)
    alice = AliceInputs(TABLES.alice, terms, ALICE, held_out=theirs)
    bob = BobInputs(TABLES.bob, labels, terms, method, ledger, BOB, held_out=ours)
    result = run_pair(
        ALICES[method.conversation](alice),
        BOBS[method.conversation](bob),
        observe=events.append,
    )
    return result, ledger


NOISY = {"mechanism": "add", "epsilon": 2.0, "noise": "discrete", "bob_update": "released"}
HIDDEN = {"mechanism": "hybrid", "epsilon": 1.0, "subset_size": 14}


@pytest.mark.parametrize("changes", [{}, NOISY, HIDDEN], ids=["none", "add", "hybrid"])
def test_bob_learns_how_good_the_model_is_after_each_epoch(changes):
    events: list[Event] = []
    (alice, bob), _ = watched(events, epochs=3, **changes)
    seen = [event for event in events if isinstance(event, HeldOutSeen)]
    theirs, ours = held_out()
    assert [event.iteration for event in seen] == [4, 9, 14]
    grid = FixedPoint(agreement().residue_bits)
    noise = ScoreNoise.of_pass(noise_key(ALICE), 14)
    drawn = noise.reals(theirs.ids, theirs.values, grid)
    hers = at_scale(theirs.values @ alice.weights + drawn, grid)
    scores = hers + ours.features.values @ bob.weights
    assert seen[-1].metrics.loss == evaluate(scores, ours.labels.values).loss


def test_looking_at_held_out_rows_does_not_change_the_training():
    (alice, _), ledger = watched([], epochs=3, **NOISY)
    without = programs("add", epochs=3, evaluate="epoch")
    assert run_pair(*without)[0].weights.tolist() == alice.weights.tolist()
    assert ledger.statement().label_epsilon_total == 3.0


def test_patience_ends_the_training_on_both_sides_and_the_ledger_says_what_it_costs():
    """Noise of scale 40 makes the loss rise at once."""
    (alice, bob), ledger = watched(
        [], **{**NOISY, "epsilon": 0.05}, epochs=40, patience=2, learning_rate=5.0
    )
    assert (bob.stopped, alice.stopped) == (StopReason.LOSS, StopReason.PEER)
    assert bob.iterations == alice.iterations
    assert bob.iterations < 40 * 5
    assert bob.iterations % 5 == 0
    assert len(alice.weights) == 4
    assert len(bob.weights) == 3
    stated = ledger.statement()
    assert stated.label_epsilon_total == float("inf")
    assert "Alice sees when he does" in stated.assumption


def test_stopping_by_true_labels_voids_what_flipping_them_gave():
    """Looking costs nothing; a stop that Alice sees depends on labels that were not flipped."""
    flipped = {"mechanism": "label-rr", "epsilon": 1.0, "over": "none"}
    _, looked = watched([], **flipped, epochs=3)
    assert looked.statement().label_epsilon_total == 1.0
    _, stopped = watched([], **flipped, epochs=3, patience=2)
    assert stopped.statement().label_epsilon_total == float("inf")


def test_a_resumed_run_keeps_its_patience():
    seen = Halves()
    agreed = agreement(evaluate="epoch", patience=2, epochs=6)
    terms, method = Terms(agreed, ClearScheme()), mechanism_of(agreed)
    theirs, ours = held_out()

    def pair(alices: TrainingState | None = None, bobs: TrainingState | None = None) -> Any:
        ledger = Ledger(TABLES.labels.rows, "")
        alice = AliceInputs(TABLES.alice, terms, ALICE, alices, theirs)
        bob = BobInputs(TABLES.bob, TABLES.labels, terms, method, ledger, BOB, bobs, ours)
        return plain(run_pair(ALICES["revealed"](alice), BOBS["revealed"](bob), observe=seen))

    whole = pair()
    boundaries = list(zip(seen.alice, seen.bob, strict=True))
    for alices, bobs in boundaries[::4]:
        assert pair(alices, bobs) == whole
    assert [len(bobs.losses) for _, bobs in boundaries] == [
        state.iteration // 5 for state, _ in boundaries
    ]
