"""What a state shows, and what Bob's looks at held-out rows cost: metrics, patience, the ledger."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from taciturn.errors import StateError
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.metrics import evaluate
from taciturn.privacy.events import NonPrivate
from taciturn.protocol.alice.score_noise import ScoreNoise, noise_key
from taciturn.protocol.codec import kind_of
from taciturn.protocol.events import HeldOutSeen
from taciturn.protocol.messages import EpochVerdict
from taciturn.protocol.outcome import StopReason
from taciturn.protocol.scores import at_scale
from taciturn.protocol.state import TrainingState
from tests.expected import refused
from tests.protocol.parties import ALICE, agreement
from tests.protocol.stars import StarTalk, converse
from tests.protocol.test_conversations import HELD_OUT, LABEL_RR, star_of


def test_a_state_shows_no_secret():
    state = TrainingState(1, np.array([0.125]), seed=b"s" * 32, key=b"secret")
    assert "secret" not in repr(state)
    assert "0.125" not in repr(state)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"\xff", b'{"iteration": 0}'])
def test_bytes_that_are_no_state_are_refused(data):
    with refused(StateError):
        TrainingState.from_bytes(data)


# --- held-out rows --------------------------------------------------------------------------------


def watched(name: str, **changes: Any) -> StarTalk:
    return converse(star_of(name, evaluate="epoch", **changes), held_out=HELD_OUT)


@pytest.mark.parametrize("name", ["revealed", "residues", "hidden-batch"])
def test_bob_learns_how_good_the_model_is_after_each_epoch(name):
    talk = watched(name, epochs=3, batch_size=4)
    seen = talk.seen(HeldOutSeen)
    assert [event.iteration for event in seen] == [4, 9, 14]
    grid = FixedPoint(agreement().residue_bits)
    theirs = HELD_OUT.alice
    drawn = ScoreNoise.for_pass(noise_key(ALICE), 14).reals(theirs.ids, theirs.values, grid)
    hers = at_scale(theirs.values @ talk.alice.weights + drawn, grid)
    scores = hers + HELD_OUT.bob.values @ talk.bob.weights
    assert seen[-1].metrics.loss == evaluate(scores, HELD_OUT.labels.values).loss


def test_patience_ends_the_training_on_both_sides_and_the_ledger_says_what_it_costs():
    """Noise of scale 40 makes the loss rise at once."""
    talk = watched("residues", epsilon=0.05, epochs=40, patience=2, learning_rate=5.0)
    assert (talk.bob.stopped, talk.alice.stopped) == (StopReason.LOSS, StopReason.PEER)
    assert talk.bob.iterations == talk.alice.iterations < 40 * 5
    assert talk.bob.iterations % 5 == 0
    assert len(talk.weights) == 6
    assert talk.ledger.statement().label_epsilon_total == float("inf")


def test_each_verdict_is_charged_before_it_is_sent():
    star, charged = star_of("revealed", evaluate="epoch", patience=2, epochs=3), list[int]()
    ledger = star.bob_inputs().ledger

    def listen(link: str, sender: str, frame: bytes) -> None:
        if kind_of(frame) is EpochVerdict:
            charged.append(ledger.history(0)[NonPrivate()])

    converse(star, held_out=HELD_OUT, tap=listen, ledger=ledger)
    # Beside the gradients, of which a row has one in an epoch.
    assert charged == [2, 4, 6]


def test_stopping_by_true_labels_voids_what_flipping_them_gave():
    """Looking costs nothing; a stop that Alice sees depends on labels that were not flipped."""
    flipped = {**LABEL_RR, "base_mechanism": "none", "epochs": 3}
    assert watched("revealed", **flipped).ledger.statement().label_epsilon_total == 1.0
    stopped = watched("revealed", **flipped, patience=2)
    assert stopped.ledger.statement().label_epsilon_total == float("inf")
