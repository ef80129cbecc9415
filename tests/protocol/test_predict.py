"""Joint prediction: the scores are X w, in chunks, and only Bob has them."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable
from taciturn.engine.pair import run_pair
from taciturn.errors import AgreementError, RemoteProtocolError
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.protocol.alice.scoring import RevealedResponder, answer_rows
from taciturn.protocol.bob.scoring import RevealedRequester, ask_rows
from taciturn.protocol.codec import decode
from taciturn.protocol.handshake import wire_form
from taciturn.protocol.messages import Hello, Message, PartialScores
from taciturn.protocol.prediction import CHUNK_ROWS, PREDICTION_TERMS, Scored
from taciturn.protocol.steps import Program
from taciturn.rng import KeyedEntropy
from taciturn.version import PROTOCOL_VERSION
from tests.expected import refused
from tests.protocol.parties import NOISE, NOISE_KEY, ByHand, Tables, agreement, alice_program

TABLES = Tables.make(rows=11, alice=3, bob=2, intercept=True)
GRID = FixedPoint(bits=20)
W_ALICE, W_BOB = np.array([0.5, -2.0, 1.0]), np.array([3.0, 0.25, -1.0])


def alices(table: FeatureTable = TABLES.alice, weights: FloatArray = W_ALICE) -> Program[None]:
    return answer_rows(RevealedResponder(weights, NOISE_KEY, GRID), table)


def bobs(table: FeatureTable = TABLES.bob, weights: FloatArray = W_BOB) -> Program[Scored]:
    return ask_rows(RevealedRequester(weights), table)


@pytest.mark.parametrize("rows", [CHUNK_ROWS, CHUNK_ROWS + 1])
def test_many_rows_go_in_chunks(rows):
    entropy = KeyedEntropy.from_seed(rows)
    hers = FeatureTable.from_data(entropy.uniform((rows, 1)))
    his = FeatureTable.from_data(entropy.uniform((rows, 2)))
    sizes: list[int] = []

    def listen(sender: str, frame: bytes) -> None:
        message = decode(frame)
        if isinstance(message, PartialScores):
            assert (sender, message.iteration) == ("alice", len(sizes))
            sizes.append(len(message.scores))

    nothing, scored = run_pair(
        alices(hers, np.array([2.0])),
        bobs(his, np.array([-1.0, 0.5])),
        tap=listen,
    )
    assert nothing is None
    assert sum(sizes) == rows
    assert sizes[:-1] == [CHUNK_ROWS] * (len(sizes) - 1)
    assert 0 < sizes[-1] <= CHUNK_ROWS
    expected = 2.0 * hers.values[:, 0] - his.values[:, 0] + 0.5 * his.values[:, 1]
    np.testing.assert_allclose(scored.scores, expected, rtol=1e-13, atol=NOISE + 2.0**-21)


def test_only_bob_learns_anything():
    heard: list[Message] = []
    nothing, _ = run_pair(
        alices(),
        bobs(),
        tap=lambda sender, frame: heard.append(decode(frame)) if sender == "bob" else None,
    )
    assert nothing is None
    assert heard == [
        wire_form(
            Hello(PROTOCOL_VERSION, "bob", PREDICTION_TERMS, 11, TABLES.bob.ids.digest(), 0, 3)
        )
    ]


HELLO = wire_form(
    Hello(PROTOCOL_VERSION, "alice", PREDICTION_TERMS, 11, TABLES.bob.ids.digest(), 0, 4)
)


@pytest.mark.parametrize("rows", [0, 10, 12])
def test_bob_refuses_another_number_of_scores(rows):
    side = ByHand("bob", bobs())
    side.feed(HELLO)
    with refused(RemoteProtocolError, names=(rows, 11)):
        side.feed(PartialScores(0, np.zeros(rows)))


def test_bob_refuses_another_chunk():
    side = ByHand("bob", bobs())
    side.feed(HELLO)
    with refused(RemoteProtocolError, names="PartialScores"):
        side.feed(PartialScores(1, np.zeros(11)))


def test_other_rows_are_refused():
    other = TABLES.alice.take(np.arange(11)[::-1])
    with refused(AgreementError):
        run_pair(alices(other), bobs())


def test_a_training_alice_does_not_get_predictions_from_a_predicting_bob():
    with refused(AgreementError, names="purpose"):
        run_pair(alice_program(TABLES, agreement()), bobs())
