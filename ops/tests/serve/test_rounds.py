"""The conversation of a service refuses what is out of turn, out of form or out of bounds."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.engine.pair import run_pair
from taciturn.errors import CryptoError, RemoteProtocolError
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.row_products import row_products, row_transforms
from taciturn.protocol.alice.score_noise import ScoreNoise
from taciturn.protocol.alice.scoring import DueRows, RevealedResponder
from taciturn.protocol.alice.scoring_sealed import SealedResponder
from taciturn.protocol.bob.scoring import RevealedRequester, score_requester
from taciturn.protocol.codec import decode
from taciturn.protocol.masks import ZeroSum
from taciturn.protocol.messages import (
    Hello,
    Message,
    PartialScores,
    PublicBytes,
    RowNumbers,
    SealedScores,
    SealedWeights,
)
from taciturn.protocol.steps import ONLY, Program, Send
from taciturn.rng import KeyedEntropy
from taciturn_ops.serve.alice import RoundResponder, RowsRequest
from taciturn_ops.serve.bob import RoundRequester
from taciturn_ops.serve.messages import RowsAsked, RowsDue, RowsHeld
from taciturn_ops.serve.rounds import MOST_ASKED, Verdict, read_ids, write_ids
from tests.expected import refused
from tests.protocol.hostile import Change, altered, faults, instead, only
from tests.protocol.parties import ALICE, BOB, NOISE, NOISE_KEY
from tests.protocol.stars import StarTalk, converse, shared
from tests.protocol.test_conversations import USUAL, star_of

GRID = FixedPoint(20)


def finish(program: Generator[Any, Any, Any], *received: Message) -> tuple[list[Message], Any]:
    """What a program sends, and returns, when it receives these."""
    sent, incoming, answer = [], iter(received), None
    try:
        while True:
            step = program.send(answer)
            if isinstance(step, Send):
                sent.append(step.message)
                answer = None
            else:
                answer = next(incoming)
    except StopIteration as done:
        return sent, done.value


def responder(*, several: bool = False) -> RoundResponder:
    masks = ZeroSum((KeyedEntropy.from_seed(1),)) if several else ZeroSum()
    return RoundResponder(RevealedResponder(np.array([1.0, -2.0]), NOISE_KEY, GRID), masks)


def requester() -> RoundRequester:
    return RoundRequester(RevealedRequester(np.array([0.5]), (ONLY,), GRID))


@given(st.lists(st.text("aäß7 -_.", min_size=1, max_size=20).filter(str.strip), unique=True))
def test_ids_cross_as_they_are(ids):
    assert read_ids(write_ids(ids)) == tuple(ids)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff",
        b"[" * 100_000,
        b'{"a": 1}',
        b'["a", 1]',
        b'["a", "a"]',
        b'["a\\u0000"]',
        b'["\\ud800"]',
        b'[""]',
        write_ids(["x" * 257]),
        write_ids([str(n) for n in range(MOST_ASKED + 1)]),
    ],
)
def test_ids_that_are_none_are_refused(data):
    with refused(RemoteProtocolError):
        read_ids(data)


def test_a_round_of_alice():
    side = responder()
    _, asked = finish(side.asked(), RowsAsked(0, write_ids(["a", "b", "c"])))
    verdicts = [Verdict.HELD, Verdict.UNKNOWN, Verdict.HELD]
    sent, due = finish(side.held(asked, verdicts))
    assert sent == [RowsHeld(0, PublicBytes(b"\x00\x01\x00"))]
    assert due.tolist() == [0, 2]
    sent, _ = finish(side.give(asked, due, np.array([[1.0, 0.0], [0.0, 1.0]])))
    assert isinstance(sent[0], PartialScores)
    noise = ScoreNoise(NOISE_KEY, np.array([1.0, -2.0])).reals(["a", "c"], np.eye(2), GRID)
    assert sent[0].scores.tolist() == (np.array([1.0, -2.0]) + noise).tolist()


def test_alice_refuses_a_round_out_of_turn():
    side = responder()
    finish(side.asked(), RowsAsked(0, write_ids(["a"])))
    with refused(RemoteProtocolError):
        finish(side.asked(), RowsAsked(0, write_ids(["b"])))


def test_one_of_several_alices_refuses_rows_that_she_does_not_have():
    side, asked = responder(several=True), RowsRequest(0, ("a", "b"))
    verdicts = [Verdict.HELD, Verdict.UNKNOWN]
    with refused(RemoteProtocolError):
        finish(side.held(asked, verdicts), RowsDue(0, RowNumbers(np.array([0, 1]))))
    with refused(RemoteProtocolError):
        finish(side.held(asked, verdicts), RowsDue(5, RowNumbers(np.array([0]))))


def test_a_round_of_bob():
    side = requester()
    sent, result = finish(
        side.ask(["a", "b"], np.array([[2.0], [4.0]])),
        RowsHeld(0, PublicBytes(b"\x01\x00")),
        PartialScores(0, np.array([3.0])),
    )
    assert sent == [RowsAsked(0, write_ids(["a", "b"]))]
    assert result.verdicts == (Verdict.UNKNOWN, Verdict.HELD)
    assert result.scored.scores.tolist() == [5.0]
    # Where no row is due nothing is waited for.
    _, result = finish(side.ask(["a"], np.array([[2.0]])), RowsHeld(1, PublicBytes(b"\x03")))
    assert result.verdicts == (Verdict.DAY_SPENT,)
    assert len(result.scored.scores) == 0


@pytest.mark.parametrize(
    "answer",
    [
        RowsHeld(0, PublicBytes(b"\x00")),
        RowsHeld(1, PublicBytes(b"\x00\x00")),
        RowsHeld(0, PublicBytes(b"\x00\x09")),
        PartialScores(0, np.array([1.0])),
    ],
)
def test_bob_refuses_verdicts_that_are_none(answer):
    with refused(RemoteProtocolError):
        finish(requester().ask(["a", "b"], np.zeros((2, 1))), answer)


# --- weights of which each side has a share -------------------------------------------------------


@pytest.fixture(scope="module")
def sealed() -> StarTalk:
    return converse(star_of("sealed-table", epochs=3))


def sealed_round(
    talk: StarTalk, change: Change = lambda message: message, columns: int = 3
) -> tuple[list[Message], Any]:
    """What is said about three rows, changed on its way, and Bob's scores."""
    hers, terms, said = shared(talk.alice), star_of("sealed-table").terms, list[Message]()
    hello, entropy = Hello(4, "alice", "", 3, "", hers.magnitude_bits, columns), (ALICE, BOB)
    assert hers.whitening is not None
    values = hers.whitening.of_rows()(USUAL.alice.values[:3])

    def alice() -> Program[None]:
        answers = SealedResponder(hers, NOISE_KEY, terms, entropy[0])
        yield from answers.open(hello, hers.magnitude_bits)
        yield from answers.answer(DueRows(0, ["a", "b", "c"], values, block=32))

    def bob() -> Program[Any]:
        asking = score_requester(talk.bob.weights, shared(talk.bob), None, terms, entropy[1])
        yield from asking.open({ONLY: hello}, 0)
        return (yield from asking.ask(0, USUAL.bob.values[:3], 32))

    _, scored = run_pair(
        altered(alice(), change),
        altered(bob(), change),
        tap=lambda _, frame: said.append(decode(frame)),
    )
    return said, scored


def test_a_sealed_round_gives_the_scores_and_refuses_what_is_not_due(sealed):
    said, scored = sealed_round(sealed)
    assert scored.scores == pytest.approx(USUAL.joined[:3] @ sealed.weights, abs=NOISE + 2.0**-8)
    for kind in (SealedWeights, SealedScores):
        (due,) = (message for message in said if isinstance(message, kind))
        for name, wrong in faults(due):
            # Bytes that do not have the stated length are the scheme's to refuse.
            expected = CryptoError if name.endswith("cut") else RemoteProtocolError
            with refused(expected):
                sealed_round(sealed, only(kind, instead(wrong)))
    with refused(RemoteProtocolError, names=(2, 3)):
        sealed_round(sealed, columns=2)


@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 12))
def test_a_rows_product_does_not_depend_on_its_neighbours(seed, rows, columns):
    draw = np.random.default_rng(seed)
    values, weights = draw.normal(size=(rows, columns)), draw.normal(size=columns)
    together = row_products(values, weights)
    assert np.allclose(together, values @ weights)
    matrix = draw.normal(size=(columns, 3))
    transformed = row_transforms(values, matrix)
    assert np.allclose(transformed, values @ matrix)
    for place in range(rows):
        alone = values[place : place + 1]
        assert row_products(alone, weights)[0] == together[place]
        assert np.array_equal(row_transforms(alone, matrix)[0], transformed[place])
