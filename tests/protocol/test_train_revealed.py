"""Training with the revealed gradient: equal to training in the open, and strict with the peer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from taciturn.crypto import ClearScheme, EncryptedAnswer, EncryptedVector, PaillierScheme, Scheme
from taciturn.crypto.bfv import BfvScheme
from taciturn.data import FeatureTable
from taciturn.engine import run_pair
from taciturn.errors import (
    AgreementError,
    CryptoError,
    PrivacyError,
    RemoteProtocolError,
    RowOrderError,
)
from taciturn.numerics import FixedPoint, residue
from taciturn.privacy import Ledger, MaskedProduct, NonPrivate, PrivacyEvent, Released, Unprotected
from taciturn.protocol import (
    MESSAGES,
    PROTOCOL_VERSION,
    BatchCommitment,
    BatchShare,
    EncryptedResidues,
    Event,
    GradientSeen,
    Hello,
    KeyOffer,
    MaskedGradient,
    Message,
    PartialScores,
    Progress,
    PublicBytes,
    RevealedGradient,
    commitment,
    decode,
    kind_of,
    wire_form,
)
from taciturn.rng import Entropy
from tests.protocol.parties import (
    ByHand,
    Tables,
    agreement,
    alice_program,
    bob_program,
    centralised,
    plan_of,
    rounding_tolerance,
)

SMALL_KEY = PaillierScheme(key_bits=(512,))


def joint_weights(tables: Tables, terms: Any, scheme: Scheme | None = None) -> np.ndarray:
    chosen = scheme or ClearScheme()
    alice, bob = run_pair(alice_program(tables, terms, chosen), bob_program(tables, terms, chosen))
    assert len(alice.weights) == len(tables.alice.columns)
    assert len(bob.weights) == len(tables.bob.columns)
    return np.concatenate([alice.weights, bob.weights])


SPLITS = {
    "all-at-alice": Tables.make(alice=4),
    "halves": Tables.make(alice=2, bob=2),
    "intercept-only-at-bob": Tables.make(alice=4, intercept=True),
    "halves-and-intercept": Tables.make(alice=2, bob=2, intercept=True),
    "one-row": Tables.make(rows=1, alice=3),
}
TERMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "finer-grid": {"feature_bits": 24, "residue_bits": 30},
    "coarse-grid": {"feature_bits": 4, "residue_bits": 8},
    "l2": {"l2": 0.1},
    "l1": {"l1": 0.05},
    "l1-and-l2": {"l1": 0.02, "l2": 0.3},
    "inverse": {"schedule": "inverse", "decay": 0.3, "epochs": 3},
    "inverse-sqrt": {"schedule": "inverse-sqrt", "decay": 0.7, "epochs": 3},
    "one-row-a-batch": {"batch_size": 1, "epochs": 1},
    "batch-of-all-rows": {"batch_size": 18, "epochs": 3},
    "batch-beyond-the-rows": {"batch_size": 1000, "epochs": 3},
    "no-short-batch": {"batch_size": 6},
}


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("split", SPLITS)
def test_the_joint_model_is_the_centralised_one_to_fixed_point_precision(split, terms):
    """The tolerance is a bound, not a guess (``rounding_tolerance``).

    With L1 it also needs that no weight changes its sign in one run and not in the other: true for
    these fixed tables.
    """
    tables, agreed = SPLITS[split], agreement(**TERMS[terms])
    expected = centralised(tables, agreed)
    tolerance = rounding_tolerance(tables, agreed)
    assert np.abs(joint_weights(tables, agreed) - expected).max() <= tolerance
    # A tolerance that any weights meet would prove nothing.
    assert np.abs(expected).max() > 2 * tolerance


def test_the_default_grid_is_a_thousand_times_finer_than_the_weights():
    tables, agreed = SPLITS["halves"], agreement()
    assert rounding_tolerance(tables, agreed) < 1e-3 * np.abs(centralised(tables, agreed)).max()


@pytest.mark.parametrize("split", ["all-at-alice", "halves-and-intercept"])
def test_under_paillier_the_model_is_bit_for_bit_that_of_the_clear_scheme(split):
    """A key of 512 bits, which protects nothing; the arithmetic is that of the real sizes."""
    tables = SPLITS[split]
    in_clear = agreement(epochs=1)
    agreed = agreement(epochs=1, scheme="paillier-for-tests", key_bits=512)
    weights = joint_weights(tables, agreed, SMALL_KEY)
    assert weights.tolist() == joint_weights(tables, in_clear).tolist()
    tolerance = rounding_tolerance(tables, in_clear)
    assert np.abs(weights - centralised(tables, in_clear)).max() <= tolerance


@pytest.mark.parametrize("split", ["all-at-alice", "halves-and-intercept"])
@pytest.mark.parametrize("terms", ["plain", "finer-grid"])
def test_under_bfv_the_model_is_bit_for_bit_that_of_the_clear_scheme(split, terms):
    tables, values = SPLITS[split], {**TERMS[terms], "epochs": 1}
    agreed = agreement(**values, scheme="bfv", key_bits=128)
    weights = joint_weights(tables, agreed, BfvScheme())
    assert weights.tolist() == joint_weights(tables, agreement(**values)).tolist()


def test_the_intercept_carries_no_penalty():
    tables = SPLITS["halves-and-intercept"]
    agreed = agreement(l2=1.0, epochs=3)
    free = joint_weights(tables, agreed)
    plain = FeatureTable.of(
        tables.bob.values, columns=[f"c{at}" for at in range(len(tables.bob.columns))]
    )
    paid = joint_weights(Tables(tables.alice, plain, tables.labels), agreed)
    assert abs(free[-1] - paid[-1]) > 0.01


def test_alice_sees_the_exact_integer_gradient_of_every_batch():
    tables, agreed = SPLITS["halves"], agreement()
    seen: list[Event] = []
    run_pair(alice_program(tables, agreed), bob_program(tables, agreed), observe=seen.append)
    gradients = [event for event in seen if isinstance(event, GradientSeen)]
    plan = list(plan_of(tables, agreed))
    assert [(gradient.iteration, gradient.epoch) for gradient in gradients] == [
        (batch.iteration, batch.epoch) for batch in plan
    ]
    first, batch = gradients[0], plan[0]
    assert first.rows.tolist() == batch.rows.tolist()
    assert first.weights.tolist() == [0.0, 0.0]
    values = tables.alice.values[batch.rows]
    features = FixedPoint(16).encode(values, 1).tolist()
    left = residue(np.zeros(len(batch.rows)), tables.labels.values[batch.rows])
    residues = FixedPoint(20).encode(left, 0).tolist()
    assert first.gradient.tolist() == [
        sum(row[j] * r for row, r in zip(features, residues, strict=True)) for j in range(2)
    ]


def test_bob_reports_his_progress():
    tables, agreed = SPLITS["all-at-alice"], agreement()
    seen: list[Event] = []
    run_pair(alice_program(tables, agreed), bob_program(tables, agreed), observe=seen.append)
    steps = [event for event in seen if isinstance(event, Progress)]
    assert steps == [Progress(done, 10) for done in range(1, 11)]
    batches = [batch.rows.tolist() for batch in plan_of(tables, agreed)]
    assert [step.rows.tolist() for step in steps if step.rows is not None] == batches


# --- who says what ----------------------------------------------------------------------------


def test_the_conversation_is_the_chart():
    tables, agreed = SPLITS["halves"], agreement(epochs=1, batch_size=9)
    heard: list[tuple[str, Message]] = []
    run_pair(
        alice_program(tables, agreed),
        bob_program(tables, agreed),
        tap=lambda sender, frame: heard.append((sender, decode(frame))),
    )
    turn = [
        ("alice", PartialScores),
        ("bob", EncryptedResidues),
        ("alice", MaskedGradient),
        ("bob", RevealedGradient),
    ]
    said = [(who, type(message)) for who, message in heard]
    opening = [
        ("alice", Hello),
        ("bob", Hello),
        ("bob", KeyOffer),
        ("bob", BatchCommitment),
        ("alice", BatchShare),
        ("bob", BatchShare),
    ]
    assert said == [*opening, *turn, *turn]


def test_bob_sends_only_what_is_his_to_send():
    tables, agreed = SPLITS["halves"], agreement()
    frames: list[bytes] = []
    run_pair(
        alice_program(tables, agreed),
        bob_program(tables, agreed),
        tap=lambda sender, frame: frames.append(frame) if sender == "bob" else None,
    )
    kinds = {kind_of(frame) for frame in frames}
    assert kinds == {
        Hello,
        KeyOffer,
        BatchCommitment,
        BatchShare,
        EncryptedResidues,
        RevealedGradient,
    }
    assert kinds <= set(MESSAGES)
    assert all("bob" in kind.senders for kind in kinds)


def test_what_bob_returns_is_masked():
    """The residues on the wire differ from the gradient Alice sees, in every entry."""
    tables, agreed = SPLITS["all-at-alice"], agreement(epochs=1)
    revealed: list[Message] = []
    seen: list[Event] = []
    run_pair(
        alice_program(tables, agreed),
        bob_program(tables, agreed),
        tap=lambda _, frame: revealed.append(decode(frame)),
        observe=seen.append,
    )
    on_wire = [
        message.gradient.value for message in revealed if isinstance(message, RevealedGradient)
    ]
    unmasked = [event.gradient.tolist() for event in seen if isinstance(event, GradientSeen)]
    assert len(on_wire) == len(unmasked) == 5
    for masked, plain in zip(on_wire, unmasked, strict=True):
        assert all(m != p % 2**64 for m, p in zip(masked, plain, strict=True))


# --- charge, then release, then send ------------------------------------------------------------


def test_the_ledger_is_charged_before_a_gradient_is_sent():
    tables, agreed = SPLITS["all-at-alice"], agreement(batch_size=18, epochs=3)
    ledger = Ledger(18, "test")
    charged: list[int] = []

    def listen(sender: str, frame: bytes) -> None:
        if kind_of(frame) is RevealedGradient:
            charged.append(ledger.statement().releases_per_row)

    run_pair(alice_program(tables, agreed), bob_program(tables, agreed, ledger=ledger), tap=listen)
    assert charged == [1, 2, 3]


def test_every_row_is_charged_once_per_epoch():
    tables, agreed = SPLITS["halves"], agreement(batch_size=4, epochs=3)
    ledger = Ledger(18, "test")
    run_pair(alice_program(tables, agreed), bob_program(tables, agreed, ledger=ledger))
    assert ledger.statement().releases_per_row == 3


@dataclass(frozen=True, slots=True)
class Unpriced(PrivacyEvent):
    name = "unpriced"


class UnpricedMechanism(Unprotected):
    """A mechanism whose price nobody knows."""

    def release(self, secret: MaskedProduct, entropy: Entropy) -> Released[MaskedProduct]:
        return Released(secret, Unpriced())


def test_a_release_without_a_price_is_never_sent():
    tables, agreed = SPLITS["all-at-alice"], agreement()
    kinds: list[type[Message]] = []
    with pytest.raises(PrivacyError, match="Unpriced"):
        run_pair(
            alice_program(tables, agreed),
            bob_program(tables, agreed, mechanism=UnpricedMechanism()),
            tap=lambda _, frame: kinds.append(kind_of(frame)),
        )
    assert MaskedGradient in kinds
    assert RevealedGradient not in kinds


# --- a peer that does not keep to it: Alice's side ---------------------------------------------

ROWS = 6
TABLES = Tables.make(rows=ROWS, alice=3)
AGREED = agreement(batch_size=4, epochs=1)  # batches of 4 and 2 rows
DIGEST = TABLES.alice.ids.digest()
BOBS_HELLO = wire_form(Hello(PROTOCOL_VERSION, "bob", AGREED.canonical(), ROWS, DIGEST, 0, 4))
ALICES_HELLO = wire_form(Hello(PROTOCOL_VERSION, "alice", AGREED.canonical(), ROWS, DIGEST, 1, 3))
KEY = KeyOffer(PublicBytes(b""))
BOUND, SHARE = BatchCommitment(commitment(bytes(32))), BatchShare(PublicBytes(bytes(32)))


def vector(*values: int) -> EncryptedVector:
    return EncryptedVector(np.array(values, dtype="<i8").tobytes(), len(values))


def answer(*values: int) -> EncryptedAnswer:
    return EncryptedAnswer(np.array(values, dtype="<u8").tobytes(), len(values))


def alice_after(*messages: Message, scheme: Scheme | None = None) -> ByHand[Any]:
    side = ByHand("alice", alice_program(TABLES, AGREED, scheme or ClearScheme()))
    for message in messages:
        side.feed(message)
    return side


RESIDUES = EncryptedResidues(0, vector(1, 2, 3, 4))


def one_of_each(hello: Hello) -> list[Message]:
    return [
        hello,
        KEY,
        BOUND,
        SHARE,
        RESIDUES,
        RevealedGradient(0, Released.unprotected((1, 2, 3))),
        PartialScores(0, np.zeros(4)),
        MaskedGradient(0, answer(1, 2, 3)),
    ]


def introduce(alice: ByHand[Any], bob: ByHand[Any]) -> None:
    """Lets two programs talk to each other up to Alice's first scores."""
    heard = {"alice": 0, "bob": 0}
    while not any(isinstance(message, PartialScores) for message in alice.said):
        for name, side, other in (("bob", bob, alice), ("alice", alice, bob)):
            for frame in other.frames[heard[name] :]:
                side.driver.feed(frame)
                heard[name] += 1


def masked_by(side: ByHand[Any]) -> tuple[int, ...]:
    last = side.said[-1]
    assert isinstance(last, MaskedGradient)
    return tuple(np.frombuffer(last.answer.data, dtype="<u8").tolist())


def test_alice_goes_on_with_a_bob_who_keeps_to_it():
    side = alice_after(BOBS_HELLO, KEY, BOUND, SHARE, RESIDUES)
    side.feed(RevealedGradient(0, Released.unprotected(masked_by(side))))
    side.feed(EncryptedResidues(1, vector(5, 6)))
    side.feed(RevealedGradient(1, Released.unprotected(masked_by(side))))
    assert side.driver.finished
    assert len(side.driver.result.weights) == 3
    assert [type(message) for message in side.said] == [
        Hello,
        BatchShare,
        PartialScores,
        MaskedGradient,
        PartialScores,
        MaskedGradient,
    ]
    sizes = [len(message.scores) for message in side.said if isinstance(message, PartialScores)]
    assert sizes == [4, 2]


ALICE_WAITS: list[tuple[tuple[Message, ...], type[Message]]] = [
    ((), Hello),
    ((BOBS_HELLO,), KeyOffer),
    ((BOBS_HELLO, KEY), BatchCommitment),
    ((BOBS_HELLO, KEY, BOUND), BatchShare),
    ((BOBS_HELLO, KEY, BOUND, SHARE), EncryptedResidues),
    ((BOBS_HELLO, KEY, BOUND, SHARE, RESIDUES), RevealedGradient),
]


@pytest.mark.parametrize(
    ("before", "due", "message"),
    [
        pytest.param(before, due, message, id=f"{type(message).__name__}-not-{due.__name__}")
        for before, due in ALICE_WAITS
        for message in one_of_each(BOBS_HELLO)
        if type(message) is not due
    ],
)
def test_alice_refuses_every_message_that_is_not_due(before, due, message):
    side = alice_after(*before)
    assert side.driver.expects == due.__name__
    name = type(message).__name__
    with pytest.raises(RemoteProtocolError, match=f"sent {name} where {due.__name__} was expected"):
        side.feed(message)


@pytest.mark.parametrize("iteration", [-1, 1, 2**63 - 1])
def test_alice_refuses_residues_of_another_iteration(iteration):
    side = alice_after(BOBS_HELLO, KEY, BOUND, SHARE)
    with pytest.raises(
        RemoteProtocolError, match=f"EncryptedResidues is for iteration {iteration} where 0"
    ):
        side.feed(EncryptedResidues(iteration, RESIDUES.residues))


def test_alice_refuses_a_gradient_of_another_iteration():
    side = alice_after(BOBS_HELLO, KEY, BOUND, SHARE, RESIDUES)
    with pytest.raises(
        RemoteProtocolError, match="RevealedGradient is for iteration 1 where 0 was expected"
    ):
        side.feed(RevealedGradient(1, Released.unprotected(masked_by(side))))


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_alice_refuses_a_batch_seed_of_another_length(length):
    side = alice_after(BOBS_HELLO, KEY)
    with pytest.raises(RemoteProtocolError, match=f"seed commitment has {length} bytes"):
        side.feed(BatchCommitment(PublicBytes(bytes(length))))


def test_alice_refuses_a_public_key_where_there_is_none():
    side = alice_after(BOBS_HELLO)
    with pytest.raises(CryptoError, match="public key of 3 bytes"):
        side.feed(KeyOffer(PublicBytes(b"key")))


@pytest.mark.parametrize(
    "key",
    [b"", bytes(64), b"\xff" * 63, b"\x80" + bytes(63), b"\x80" + bytes(62) + b"\x03"],
    ids=["empty", "zero", "short", "even", "small-factor-or-prime"],
)
def test_alice_refuses_a_bad_paillier_key(key):
    agreed = agreement(batch_size=4, epochs=1, scheme="paillier-for-tests", key_bits=512)
    side = ByHand("alice", alice_program(TABLES, agreed, SMALL_KEY))
    side.feed(wire_form(Hello(PROTOCOL_VERSION, "bob", agreed.canonical(), ROWS, DIGEST, 0, 4)))
    with pytest.raises(CryptoError, match="public key"):
        side.feed(KeyOffer(PublicBytes(key)))


@pytest.mark.parametrize(
    "bad",
    [
        EncryptedVector(b"", 4),
        EncryptedVector(bytes(31), 4),
        EncryptedVector(bytes(33), 4),
        EncryptedVector(bytes(32), 2**32 - 1),
        EncryptedVector(b"", 0),
        vector(1, 2, 3),
        vector(1, 2, 3, 4, 5),
        vector(1, 2, 3, 2**20 + 1),
        vector(1, 2, 3, -(2**63)),
    ],
    ids=["empty", "short", "long", "huge-length", "none", "3-rows", "5-rows", "wide", "widest"],
)
def test_alice_refuses_malformed_residues(bad):
    side = alice_after(BOBS_HELLO, KEY, BOUND, SHARE)
    with pytest.raises(CryptoError):
        side.feed(EncryptedResidues(0, bad))


@pytest.mark.parametrize(
    "data",
    [b"", bytes(4 * 128), b"\xff" * (4 * 128), bytes(4 * 128 - 1)],
    ids=["empty", "zeros", "beyond-n-squared", "cut"],
)
def test_alice_refuses_malformed_paillier_ciphertexts(data):
    agreed = agreement(batch_size=4, epochs=1, scheme="paillier-for-tests", key_bits=512)
    bob = ByHand("bob", bob_program(TABLES, agreed, SMALL_KEY))
    alice = ByHand("alice", alice_program(TABLES, agreed, SMALL_KEY))
    introduce(alice, bob)
    with pytest.raises(CryptoError):
        alice.feed(EncryptedResidues(0, EncryptedVector(data, 4)))


@pytest.mark.parametrize("key", [b"", bytes(100), b"\xff" * (2 * 8192 * 24)])
def test_alice_refuses_a_bad_bfv_key(key):
    agreed = agreement(batch_size=4, epochs=1, scheme="bfv", key_bits=128)
    side = ByHand("alice", alice_program(TABLES, agreed, BfvScheme()))
    side.feed(wire_form(Hello(PROTOCOL_VERSION, "bob", agreed.canonical(), ROWS, DIGEST, 0, 4)))
    with pytest.raises(CryptoError, match=r"public key of|coefficient lies outside"):
        side.feed(KeyOffer(PublicBytes(key)))


@pytest.mark.parametrize("change", ["empty", "cut", "longer", "beyond-the-primes"])
def test_alice_refuses_malformed_bfv_ciphertexts(change):
    agreed = agreement(batch_size=4, epochs=1, scheme="bfv", key_bits=128)
    bob = ByHand("bob", bob_program(TABLES, agreed, BfvScheme()))
    alice = ByHand("alice", alice_program(TABLES, agreed, BfvScheme()))
    introduce(alice, bob)
    size = 8192 * (8 + 5 + 8) + 64
    sizes = {"empty": 0, "cut": size - 1, "longer": size + 1, "beyond-the-primes": size}
    data = (b"\xff" if change == "beyond-the-primes" else b"\0") * sizes[change]
    message = (
        "coefficient" if change == "beyond-the-primes" else f"an encrypted vector of {len(data)}"
    )
    with pytest.raises(CryptoError, match=message):
        alice.feed(EncryptedResidues(0, EncryptedVector(data, 4)))


@pytest.mark.parametrize(
    "change",
    [
        lambda values: tuple((v + 2**50) % 2**64 for v in values),
        lambda values: tuple((v - 2**50) % 2**64 for v in values),
        lambda values: (2**64, *values[1:]),
        lambda values: (2**4000, *values[1:]),
        lambda values: values[:2],
        lambda values: (*values, 0),
        lambda values: (),
    ],
    ids=["above", "below", "modulus", "far-beyond", "one-less", "one-more", "none"],
)
def test_alice_refuses_a_gradient_outside_the_capacity(change):
    side = alice_after(BOBS_HELLO, KEY, BOUND, SHARE, RESIDUES)
    with pytest.raises(CryptoError):
        side.feed(RevealedGradient(0, Released.unprotected(change(masked_by(side)))))


def test_alice_refuses_to_train_with_another_row_order():
    side = ByHand("alice", alice_program(TABLES, AGREED))
    with pytest.raises(AgreementError, match="order"):
        side.feed(
            wire_form(Hello(PROTOCOL_VERSION, "bob", AGREED.canonical(), ROWS, "00" * 32, 0, 4))
        )


# --- a peer that does not keep to it: Bob's side -----------------------------------------------

SCORES = PartialScores(0, np.zeros(4))


def bob_after(*messages: Message, ledger: Ledger | None = None) -> ByHand[Any]:
    side = ByHand("bob", bob_program(TABLES, AGREED, ledger=ledger))
    for message in messages:
        side.feed(message)
    return side


def test_bob_goes_on_with_an_alice_who_keeps_to_it():
    side = bob_after(ALICES_HELLO, SHARE, SCORES, MaskedGradient(0, answer(1, 2, 3)))
    side.feed(PartialScores(1, np.zeros(2)))
    side.feed(MaskedGradient(1, answer(4, 5, 6)))
    assert side.driver.finished
    assert side.driver.result.weights.tolist() == []
    revealed = [message for message in side.said if isinstance(message, RevealedGradient)]
    assert [message.gradient.value for message in revealed] == [(1, 2, 3), (4, 5, 6)]
    assert [message.gradient.event for message in revealed] == [NonPrivate(), NonPrivate()]


BOB_WAITS: list[tuple[tuple[Message, ...], type[Message]]] = [
    ((), Hello),
    ((ALICES_HELLO,), BatchShare),
    ((ALICES_HELLO, SHARE), PartialScores),
    ((ALICES_HELLO, SHARE, SCORES), MaskedGradient),
]


@pytest.mark.parametrize(
    ("before", "due", "message"),
    [
        pytest.param(before, due, message, id=f"{type(message).__name__}-not-{due.__name__}")
        for before, due in BOB_WAITS
        for message in one_of_each(ALICES_HELLO)
        if type(message) is not due
    ],
)
def test_bob_refuses_every_message_that_is_not_due(before, due, message):
    side = bob_after(*before)
    assert side.driver.expects == due.__name__
    name = type(message).__name__
    with pytest.raises(RemoteProtocolError, match=f"sent {name} where {due.__name__} was expected"):
        side.feed(message)


@pytest.mark.parametrize(
    ("rows", "said"),
    [(0, "scored 0 rows"), (1, "scored 1 rows"), (2, "scored 2 rows"), (5, "scored 5 rows")],
)
def test_bob_refuses_another_number_of_scores(rows, said):
    """Two scores would fit the second, short batch, not this one."""
    side = bob_after(ALICES_HELLO, SHARE)
    with pytest.raises(RemoteProtocolError, match=f"{said} where 4 are expected"):
        side.feed(PartialScores(0, np.zeros(rows)))


def test_bob_refuses_full_scores_for_the_short_last_batch():
    side = bob_after(ALICES_HELLO, SHARE, SCORES, MaskedGradient(0, answer(1, 2, 3)))
    with pytest.raises(RemoteProtocolError, match="scored 4 rows where 2 are expected"):
        side.feed(PartialScores(1, np.zeros(4)))


@pytest.mark.parametrize("iteration", [-1, 1])
def test_bob_refuses_scores_of_another_iteration(iteration):
    side = bob_after(ALICES_HELLO, SHARE)
    with pytest.raises(RemoteProtocolError, match=f"PartialScores is for iteration {iteration}"):
        side.feed(PartialScores(iteration, np.zeros(4)))


def test_bob_refuses_an_answer_of_another_iteration_and_charges_nothing():
    ledger = Ledger(ROWS, "test")
    side = bob_after(ALICES_HELLO, SHARE, SCORES, ledger=ledger)
    with pytest.raises(RemoteProtocolError, match="MaskedGradient is for iteration 3 where 0"):
        side.feed(MaskedGradient(3, answer(1, 2, 3)))
    assert ledger.statement().releases_per_row == 0


@pytest.mark.parametrize(
    "bad",
    [
        EncryptedAnswer(b"", 3),
        EncryptedAnswer(bytes(23), 3),
    ],
    ids=["empty", "short"],
)
def test_bob_refuses_a_malformed_answer(bad):
    side = bob_after(ALICES_HELLO, SHARE, SCORES)
    with pytest.raises(CryptoError):
        side.feed(MaskedGradient(0, bad))
    assert not any(isinstance(message, RevealedGradient) for message in side.said)


@pytest.mark.parametrize("length", [0, 2, 4, 2**32 - 1])
def test_bob_decrypts_no_other_number_of_entries_than_alice_has_columns(length):
    side = bob_after(ALICES_HELLO, SHARE, SCORES)
    with pytest.raises(RemoteProtocolError, match=f"{length} entries for 3 columns"):
        side.feed(MaskedGradient(0, EncryptedAnswer(bytes(24), length)))
    assert not any(isinstance(message, RevealedGradient) for message in side.said)


def test_bob_refuses_labels_of_other_rows():
    turned = replace(TABLES, labels=TABLES.labels.take(np.arange(ROWS)[::-1]))
    with pytest.raises(RowOrderError):
        ByHand("bob", bob_program(turned, AGREED))


def test_bob_refuses_features_too_large_for_any_product():
    side = bob_after()
    with pytest.raises(CryptoError, match="do not fit 62"):
        side.feed(
            wire_form(Hello(PROTOCOL_VERSION, "alice", AGREED.canonical(), ROWS, DIGEST, 40, 4))
        )


@pytest.mark.parametrize("scale", [1e300, -1e300])
def test_bob_survives_the_largest_scores(scale):
    side = bob_after(ALICES_HELLO, SHARE, PartialScores(0, np.full(4, scale)))
    sent = side.said[-1]
    assert isinstance(sent, EncryptedResidues)
    numbers = np.frombuffer(sent.residues.data, dtype="<i8")
    assert set(np.abs(numbers).tolist()) <= {0, 2**20}
