"""Training with shared weights: the centralised model, nothing in clear, a Bob who never reacts.

The weights that two shares make are compared with SGD in the open on the *rounded* features, from
which only the rounding of residues separates them; ``tests/simulation/test_sealed.py`` compares
with centralised training on the true ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, get_type_hints

import numpy as np
import pytest

from taciturn.crypto import ClearScheme, EncryptedAnswer, EncryptedVector, PaillierScheme, Scheme
from taciturn.crypto.bfv import BfvScheme
from taciturn.data import FeatureTable, LabelTable
from taciturn.engine import run_pair
from taciturn.errors import ConfigError, CryptoError, RemoteProtocolError
from taciturn.numerics import LearningRate, Penalty, evaluate, gradient, residue
from taciturn.privacy import SEALED_ASSUMPTION as ASSUMPTION
from taciturn.privacy import Ledger, Sealed
from taciturn.privacy import mechanism as mechanism_of
from taciturn.protocol import (
    MESSAGES,
    BatchCommitment,
    BatchShare,
    Boundary,
    Event,
    HeldOut,
    HeldOutSeen,
    Hello,
    KeyOffer,
    Message,
    Observation,
    Program,
    Progress,
    Receive,
    RevealedShare,
    Scales,
    SealedGradient,
    SealedResidues,
    SealedScores,
    SealedWeights,
    Send,
    ShareRevealed,
    Terms,
    Trained,
    TrainingState,
    WeightShare,
    decode,
    encode,
    field_codecs,
    kind_of,
)
from taciturn.protocol.alice import TRAININGS as ALICES
from taciturn.protocol.alice import AliceInputs, predict_sealed_rows
from taciturn.protocol.bob import TRAININGS as BOBS
from taciturn.protocol.bob import BobInputs
from taciturn.protocol.bob import predict_sealed_rows as bob_predict_predict
from taciturn.settings import Agreement
from tests.protocol.parties import (
    ALICE,
    BOB,
    NOISE,
    NOISE_KEY,
    ByHand,
    Tables,
    Talk,
    agreement,
    alice_program,
    bob_program,
    same,
    talk,
)

SMALL_KEY = PaillierScheme(key_bits=(512,))
SCHEMES: dict[str, Scheme] = {"clear": ClearScheme(), "bfv": BfvScheme(), "paillier": SMALL_KEY}


class TwoExchanges(ClearScheme):
    """The clear scheme where one large product is dearer than two: paillier's conversation."""

    def effort(self, rows: int, length: int) -> int:
        return SMALL_KEY.effort(rows, length)


WAYS: dict[str, Scheme] = {"one-exchange": ClearScheme(), "two-exchanges": TwoExchanges()}


def sealed(scheme: Scheme | None = None, **changes: Any) -> Agreement:
    chosen = scheme or ClearScheme()
    return agreement(mechanism="sealed", scheme=chosen.name, key_bits=chosen.key_bits[0], **changes)


@dataclass(frozen=True)
class Opened:
    """A talk with both shares put together."""

    talk: Talk
    scales: Scales
    shares: dict[str, Any]

    @property
    def weights(self) -> np.ndarray:
        alice = self.scales.weights(self.shares["alice"] + self.shares["bob"])
        return np.concatenate([alice, self.talk.bob.weights])


def shared(end: Trained) -> WeightShare:
    """The share that a training left."""
    assert end.share is not None
    return end.share


def opened(session: Talk) -> Opened:
    hers, his = shared(session.alice), shared(session.bob)
    assert same(hers.scales, his.scales)
    return Opened(session, hers.scales, {"alice": hers.values, "bob": his.values})


def trained(tables: Tables, agreed: Agreement, scheme: Scheme | None = None) -> Opened:
    return opened(talk(tables, agreed, scheme or ClearScheme()))


def rounded(tables: Tables, scales: Scales) -> np.ndarray:
    grid = scales.feature_grid
    return np.hstack([grid.decode(grid.rounded(tables.alice.values)), tables.bob.values])


def oracle(tables: Tables, agreed: Agreement, run: Opened) -> tuple[np.ndarray, float]:
    """SGD in the open on each batch's rounded features, and how far residues' rounding can move it.

    Each residue, times the step over the rows, is off by at most ``2^-(fr+1) c``; a step does not
    expand distances while ``rate L <= 2`` (asserted), so that the errors of all steps add up.
    """
    rate = LearningRate(agreed.learning_rate, agreed.schedule, agreed.decay)
    penalty, weights = Penalty(agreed.l1, agreed.l2), np.zeros(tables.joined.shape[1])
    for number, batch in enumerate(run.talk.batches):
        whole = run.scales.rounded(tables.alice.values[batch], ALICE.fork(f"rounding {number}"))
        rows = np.hstack([whole * 2.0**-run.scales.feature_bits, tables.bob.values[batch]])
        left = residue(rows @ weights, tables.labels.values[batch])
        slope = gradient(rows, left) + penalty.gradient(weights, tables.free)
        weights = weights - rate.at(number) * slope
    steepest = np.square(np.abs(tables.joined) + 0.02).sum(axis=1).max() / 4 + agreed.l2
    assert agreed.learning_rate * steepest <= 2
    rounding = 2.0 ** -(run.scales.residue_bits + 1) * np.abs(tables.alice.values).max() + 1e-15
    rows_seen = sum(len(batch) for batch in run.talk.batches)
    return weights, float(1.01 * rows_seen * rounding * np.sqrt(len(tables.alice.columns)) + 1e-12)


SPLITS = {
    "all-at-alice": Tables.make(alice=4),
    "halves": Tables.make(alice=2, bob=2),
    "intercept-only-at-bob": Tables.make(alice=4, intercept=True),
    "halves-and-intercept": Tables.make(alice=2, bob=2, intercept=True),
    "one-row": Tables.make(rows=1, alice=3),
}
TERMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "coarse-grid": {"feature_bits": 6},
    "l2": {"l2": 0.1},
    "strong-l2": {"l2": 1.0, "epochs": 3},
    "inverse": {"schedule": "inverse", "decay": 0.3, "epochs": 3},
    "inverse-and-l2": {"schedule": "inverse-sqrt", "decay": 0.7, "epochs": 3, "l2": 0.3},
    "one-row-a-batch": {"batch_size": 1, "epochs": 1},
    "batch-beyond-the-rows": {"batch_size": 1000, "epochs": 3},
    "no-short-batch": {"batch_size": 6},
    "fresh-keys": {"fresh_keys": True},
}


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("split", SPLITS)
def test_the_shared_model_is_the_centralised_one_to_fixed_point_precision(split, terms):
    tables, agreed = SPLITS[split], sealed(**TERMS[terms])
    run = trained(tables, agreed)
    expected, tolerance = oracle(tables, agreed, run)
    assert np.abs(run.weights - expected).max() <= tolerance
    assert np.abs(expected).max() > 20 * tolerance


@pytest.mark.sampled(18)
@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("split", SPLITS)
def test_one_exchange_and_two_give_the_same_numbers_to_the_last_bit(split, terms):
    """Both shares, Bob's weights, and every score that he saw on the way."""
    tables, agreed = SPLITS[split], sealed(**TERMS[terms])
    one, two = (opened(talk(tables, agreed, scheme)) for scheme in WAYS.values())
    assert {role: share.tolist() for role, share in one.shares.items()} == {
        role: share.tolist() for role, share in two.shares.items()
    }
    assert one.talk.bob.weights.tolist() == two.talk.bob.weights.tolist()
    seen = [[step.scores.tolist() for step in run.talk.seen(Progress)] for run in (one, two)]
    assert seen[0] == seen[1]


@pytest.mark.parametrize("split", ["all-at-alice", "halves-and-intercept"])
@pytest.mark.parametrize("terms", ["plain", "l2", "fresh-keys"])
@pytest.mark.parametrize("name", ["bfv", "paillier"])
def test_the_schemes_give_the_shares_of_the_clear_one_bit_for_bit(name, split, terms):
    values = {**TERMS[terms], "epochs": 1}
    run = trained(SPLITS[split], sealed(SCHEMES[name], **values), SCHEMES[name])
    plain = trained(SPLITS[split], sealed(**values))
    assert run.weights.tolist() == plain.weights.tolist()
    assert run.shares["alice"].tolist() == plain.shares["alice"].tolist()


def wide_tables() -> Tables:
    """Values beyond 200, as give-me-some-credit has: the larger modulus is taken."""
    base = Tables.make(rows=18, alice=3, bob=1)
    values = base.alice.values.copy()
    values[3, 1] = 230.0
    return replace(base, alice=FeatureTable.of(values))


@pytest.mark.parametrize("name", SCHEMES)
def test_large_values_take_the_larger_modulus(name):
    agreed = sealed(SCHEMES[name], learning_rate=1e-4, epochs=1)
    run = trained(wide_tables(), agreed, SCHEMES[name])
    assert run.scales.modulus_bits == 59
    expected, tolerance = oracle(wide_tables(), agreed, run)
    assert np.abs(run.weights - expected).max() <= tolerance


# --- what Alice receives ----------------------------------------------------------------------


def complement(tables: Tables) -> Tables:
    flipped = LabelTable.of(1 - tables.labels.values, ids=tables.labels.ids)
    return replace(tables, labels=flipped)


OPENING: set[type[Message]] = {Hello, KeyOffer, BatchCommitment, BatchShare}
TO_ALICE = {
    "one-exchange": {*OPENING, SealedResidues},
    "two-exchanges": {*OPENING, SealedWeights, SealedResidues},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("changes", [{}, {"fresh_keys": True}])
def test_every_message_to_alice_is_public_or_a_ciphertext(changes, way):
    session = talk(SPLITS["halves"], sealed(**changes), WAYS[way])
    kinds = {type(message) for message in session.said_by("bob")}
    assert kinds == TO_ALICE[way]
    assert kinds <= set(MESSAGES)
    hidden = {SealedWeights, SealedResidues}
    for kind in kinds:
        types = {get_type_hints(kind)[name] for name, _ in field_codecs(kind)}
        assert (EncryptedVector in types) == (kind in hidden)
        assert not any("Released" in str(field_type) for field_type in types)


def without_ciphertext(message: Message) -> Message:
    """The message as Alice reads it who cannot decrypt: the bytes under Bob's key are left out."""
    if isinstance(message, SealedWeights):
        return replace(message, weights=EncryptedVector(b"", message.weights.length))
    if isinstance(message, SealedResidues):
        return replace(message, residues=EncryptedVector(b"", message.residues.length))
    return message


@pytest.mark.parametrize("name", ["clear", "paillier"])
def test_complementary_labels_change_nothing_that_alice_can_read(name):
    """The same coins on both sides; bfv's key is the operating system's, so its bytes differ."""
    tables, scheme = SPLITS["halves-and-intercept"], SCHEMES[name]
    agreed = sealed(scheme, epochs=1)
    one, other = (talk(world, agreed, scheme) for world in (tables, complement(tables)))
    seen = [
        [encode(without_ciphertext(message)) for message in run.said_by("bob")]
        for run in (one, other)
    ]
    assert seen[0] == seen[1]
    # And the lengths of the whole frames, and all that Alice does beside her answers, are the same.
    assert [len(frame) for _, frame in one.frames] == [len(frame) for _, frame in other.frames]
    assert opened(one).shares["alice"].tolist() == opened(other).shares["alice"].tolist()
    # The labels did matter: to Bob.
    assert opened(one).weights.tolist() != opened(other).weights.tolist()


@pytest.mark.parametrize("name", ["bfv"])
def test_under_bfv_kinds_and_lengths_do_not_depend_on_labels(name):
    tables, scheme = SPLITS["halves"], SCHEMES[name]
    agreed = sealed(scheme, epochs=1)
    one, other = (talk(world, agreed, scheme) for world in (tables, complement(tables)))
    assert [(who, kind_of(frame), len(frame)) for who, frame in one.frames] == [
        (who, kind_of(frame), len(frame)) for who, frame in other.frames
    ]


def test_alice_observes_nothing_and_returns_no_weights():
    session = talk(SPLITS["halves"], sealed())
    assert session.seen(Observation) == []
    assert session.alice.weights.tolist() == []


def test_alices_share_does_not_depend_on_labels_at_all():
    shares = [
        trained(world, sealed()).shares["alice"].tolist()
        for world in (SPLITS["halves"], complement(SPLITS["halves"]))
    ]
    assert shares[0] == shares[1]


def test_a_share_alone_looks_uniform():
    """Of 4 columns over many coins: the mean of the top byte, 6 sigma, false alarm below 1e-8."""
    tables, agreed = SPLITS["all-at-alice"], sealed(epochs=1)
    top = []
    for seed in range(100):
        coins = ALICE.fork(str(seed))
        alice = ALICES["sealed"](AliceInputs(tables.alice, Terms(agreed, ClearScheme()), coins))
        _, bob = run_pair(alice, bob_program(tables, agreed))
        top += (shared(bob).values >> 42).tolist()
    assert abs(np.mean(top) + 0.5) < 6 * (256 / np.sqrt(12)) / np.sqrt(len(top))
    assert np.std(top) > 60


STEP: list[tuple[str, type[Message]]] = [("bob", SealedResidues), ("alice", SealedGradient)]
SCORES: list[tuple[str, type[Message]]] = [("bob", SealedWeights), ("alice", SealedScores)]


@pytest.mark.parametrize(
    ("way", "turns"),
    [("one-exchange", 3 * STEP), ("two-exchanges", [*STEP, *SCORES, *STEP, *SCORES, *STEP])],
)
def test_the_conversation_is_the_chart(way, turns):
    session = talk(SPLITS["halves"], sealed(epochs=1, batch_size=6), WAYS[way])
    opening = [
        ("alice", Hello),
        ("bob", Hello),
        ("bob", BatchCommitment),
        ("alice", BatchShare),
        ("bob", BatchShare),
        ("bob", KeyOffer),
    ]
    said = [(who, kind_of(frame)) for who, frame in session.frames]
    # Who of two speaks first is the driver's affair; each side's own order is the chart's.
    for role in ("alice", "bob"):
        assert [kind for who, kind in said if who == role] == [
            kind for who, kind in [*opening, *turns] if who == role
        ]


def test_the_vector_is_as_long_as_the_chart_says_and_the_last_asks_for_no_scores():
    """18 rows in batches of 5, the last one of 3; two columns at Alice."""
    session = talk(SPLITS["halves"], sealed(epochs=1, batch_size=5))
    asked = [message for message in session.said_by("bob") if isinstance(message, SealedResidues)]
    answered = [
        message for message in session.said_by("alice") if isinstance(message, SealedGradient)
    ]
    assert [message.residues.length for message in asked] == [5 + 5 + 2, 5 + 5 + 2, 5 + 5 + 2, 3]
    assert [message.answer.length for message in answered] == [2 + 5, 2 + 5, 2 + 3, 2]


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("clear", [SealedResidues] * 5),
        ("paillier", [SealedResidues, *[SealedWeights, SealedResidues] * 4]),
    ],
)
def test_with_fresh_keys_every_vector_has_a_key_of_its_own(name, after):
    scheme = SCHEMES[name]
    session = talk(SPLITS["halves"], sealed(scheme, epochs=1, fresh_keys=True), scheme)
    said = session.said_by("bob")
    offers = [message for message in said if isinstance(message, KeyOffer)]
    assert len({offer.public_key for offer in offers}) == (len(offers) if name != "clear" else 1)
    kinds = [type(message) for message in said if not isinstance(message, Hello)]
    assert [kinds[at + 1] for at, kind in enumerate(kinds) if kind is KeyOffer] == after


# --- the ledger -------------------------------------------------------------------------------


def test_the_ledger_is_zero_and_says_what_it_rests_on():
    stated = talk(SPLITS["halves"], sealed()).ledger.statement()
    assert stated.assumption == "IND-CPA, honest-but-curious" == ASSUMPTION
    assert stated.label_epsilon_total == stated.label_epsilon_per_release == 0.0
    assert stated.residue_epsilon_total == stated.claimed_epsilon_per_release == 0.0
    assert stated.releases_per_row == 0


def test_a_revealed_share_costs_infinity_and_gives_alice_her_weights():
    tables, agreed = SPLITS["halves"], sealed(reveal=True)
    session = talk(tables, agreed)
    run = opened(session)
    weights = session.alice.weights.tolist()
    assert weights == run.weights[:2].tolist()
    assert [event.weights.tolist() for event in session.seen(ShareRevealed)] == [weights]
    assert isinstance(session.said_by("bob")[-1], RevealedShare)
    stated = session.ledger.statement()
    assert stated.label_epsilon_total == float("inf")
    assert "malicious Alice" in stated.assumption


def test_bobs_residues_come_from_the_mechanism():
    class Half(Sealed):
        def residue(self, scores: Any, labels: Any) -> Any:
            return 0.5 * super().residue(scores, labels)

    tables, agreed = SPLITS["halves"], sealed(epochs=1, batch_size=18)
    half = opened(talk(tables, agreed, mechanism=Half()))
    whole = trained(tables, agreed)
    assert np.allclose(2 * half.weights, whole.weights, atol=1e-4)


# --- a malicious Alice: Bob does not react ------------------------------------------------------


def garbled(program: Program[Any], craft: Any) -> Program[Any]:
    """Alice's program with her answers replaced by others of the right structure."""
    message: Message | bytes | None = None
    while True:
        try:
            step = program.send(message)
        except StopIteration as end:
            return end.value
        if isinstance(step, Send) and isinstance(step.message, SealedScores | SealedGradient):
            step = Send(replace(step.message, answer=craft(step.message.answer)))
        message = yield step


def zeros(answer: EncryptedAnswer) -> EncryptedAnswer:
    return EncryptedAnswer(bytes(len(answer.data)), answer.length)


def noise(answer: EncryptedAnswer) -> EncryptedAnswer:
    """Random coefficients below every prime: the top bytes are small."""
    drawn = bytearray(ALICE.fork("garbage").token(len(answer.data)))
    drawn[7::8] = bytes(len(drawn[7::8]))
    return EncryptedAnswer(bytes(drawn), answer.length)


def ones(answer: EncryptedAnswer) -> EncryptedAnswer:
    """Paillier: elements that are 1, encryptions of zero without randomness."""
    width = 128
    one = (1).to_bytes(width, "big")
    return EncryptedAnswer(one * (len(answer.data) // width), answer.length)


CRAFTED = {
    "bfv-zeros": ("bfv", zeros),
    "bfv-noise": ("bfv", noise),
    "clear-zeros": ("clear", zeros),
    "clear-noise": ("clear", noise),
    "paillier-ones": ("paillier", ones),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("how", CRAFTED)
@pytest.mark.parametrize("changes", [{}, {"l2": 0.1}, {"fresh_keys": True}])
def test_crafted_answers_change_neither_kind_nor_length_nor_number_of_bobs_frames(how, changes):
    name, craft = CRAFTED[how]
    tables, scheme = SPLITS["halves-and-intercept"], SCHEMES[name]
    agreed = sealed(scheme, epochs=1, **changes)
    frames: dict[str, list[bytes]] = {}
    for who in ("honest", "crafted"):
        alice = alice_program(tables, agreed, scheme)
        said: list[tuple[str, bytes]] = []
        run_pair(
            garbled(alice, craft) if who == "crafted" else alice,
            bob_program(tables, agreed, scheme),
            tap=lambda *heard: said.append(heard),  # noqa: B023 - it is called before the next turn
        )
        frames[who] = [frame for sender, frame in said if sender == "bob"]
    shapes = [[(kind_of(frame), len(frame)) for frame in frames[who]] for who in frames]
    assert shapes[0] == shapes[1]


def test_wraps_are_counted_for_bob_and_change_nothing_that_is_seen():
    tables = SPLITS["halves"]
    agreed = sealed(epochs=1)
    frames: list[bytes] = []

    def far(answer: EncryptedAnswer) -> EncryptedAnswer:
        return EncryptedAnswer((1 << 49).to_bytes(8, "little") * answer.length, answer.length)

    _, bob = run_pair(
        garbled(alice_program(tables, agreed), far),
        bob_program(tables, agreed),
        tap=lambda sender, frame: frames.append(frame) if sender == "bob" else None,
    )
    # All rows but those of the first batch, whose scores nobody asks for.
    assert bob.suspected_wraps == 14
    honest = talk(tables, agreed)
    assert [len(frame) for frame in frames] == [len(frame) for frame in honest.sent_by("bob")]
    assert honest.bob.suspected_wraps == 0


def test_an_answer_of_another_length_is_refused_by_its_structure():
    tables, agreed = SPLITS["halves"], sealed()
    with pytest.raises(RemoteProtocolError, match="5 entries where 6 are expected"):
        run_pair(
            garbled(alice_program(tables, agreed), lambda a: EncryptedAnswer(a.data, 5)),
            bob_program(tables, agreed),
        )
    with pytest.raises(CryptoError):
        run_pair(
            garbled(alice_program(tables, agreed), lambda a: EncryptedAnswer(b"", a.length)),
            bob_program(tables, agreed),
        )


def bob_by_hand() -> tuple[ByHand[Any], list[Message]]:
    """Bob's program at its first SealedResidues, and what an honest Alice had said until then."""
    tables, agreed = SPLITS["halves"], sealed()
    said = talk(tables, agreed).said_by("alice")
    bob = ByHand("bob", bob_program(tables, agreed))
    bob.feed(said[0])
    bob.feed(said[1])
    return bob, said


def test_a_message_of_another_turn_is_refused():
    bob, said = bob_by_hand()
    assert isinstance(said[2], SealedGradient)
    with pytest.raises(RemoteProtocolError, match="iteration 7 where 0 was expected"):
        bob.feed(replace(said[2], iteration=7))


@pytest.mark.parametrize("length", [1, 4, 9, 11])
def test_alice_refuses_vectors_of_another_length(length):
    tables, agreed = SPLITS["halves"], sealed()
    bobs = talk(tables, agreed).said_by("bob")
    alice = ByHand("alice", alice_program(tables, agreed))
    for message in bobs[:4]:
        alice.feed(message)
    assert isinstance(bobs[4], SealedResidues)
    wrong = SealedResidues(0, EncryptedVector(bytes(8 * length), length))
    with pytest.raises(RemoteProtocolError, match=f"{length} entries, not 10"):
        alice.feed(wrong)


def test_alice_refuses_a_share_of_another_length():
    tables, agreed = SPLITS["halves"], sealed()
    bobs = talk(tables, agreed, TwoExchanges()).said_by("bob")
    alice = ByHand("alice", alice_program(tables, agreed, TwoExchanges()))
    for message in bobs[:5]:
        alice.feed(message)
    assert isinstance(bobs[5], SealedWeights)
    with pytest.raises(RemoteProtocolError, match="3 entries for 2 columns"):
        alice.feed(SealedWeights(1, EncryptedVector(bytes(24), 3)))


# --- going on ---------------------------------------------------------------------------------

GOING_ON: dict[str, tuple[str, dict[str, Any]]] = {
    "clear": ("clear", {"l2": 0.05}),
    "short-batches": ("clear", {"batch_size": 5, "minimum_batch": 2}),
    "bfv": ("bfv", {"epochs": 1}),
    "paillier": ("paillier", {"epochs": 1}),
    "fresh-keys": ("paillier", {"epochs": 1, "fresh_keys": True}),
}


@dataclass
class Halves:
    states: dict[str, list[TrainingState]] = field(default_factory=lambda: {"alice": [], "bob": []})
    shares: dict[str, list[int]] = field(default_factory=dict)

    def __call__(self, event: Event) -> None:
        if isinstance(event, Boundary):
            # Alice keeps no weights beside her share.
            self.states["bob" if len(event.state.weights) else "alice"].append(event.state)


def resumed(
    name: str, changes: dict[str, Any], at: tuple[TrainingState, TrainingState] | None = None
) -> Halves:
    tables, scheme = SPLITS["halves-and-intercept"], SCHEMES[name]
    agreed = sealed(scheme, **changes)
    terms, method, seen = Terms(agreed, scheme), mechanism_of(agreed), Halves()
    alices, bobs = at or (None, None)
    ledger = Ledger(tables.labels.rows, "")
    alice, bob = run_pair(
        ALICES["sealed"](AliceInputs(tables.alice, terms, ALICE, alices)),
        BOBS["sealed"](BobInputs(tables.bob, tables.labels, terms, method, ledger, BOB, bobs)),
        observe=seen,
    )
    seen.shares = {"alice": shared(alice).values.tolist(), "bob": shared(bob).values.tolist()}
    return seen


@pytest.mark.parametrize("name", GOING_ON)
@pytest.mark.sampled(2)
def test_from_every_boundary_the_shares_are_the_same_to_the_last_bit(name):
    scheme, changes = GOING_ON[name]
    whole = resumed(scheme, changes)
    for at in zip(whole.states["alice"], whole.states["bob"], strict=True):
        alices, bobs = (TrainingState.of_bytes(state.to_bytes()) for state in at)
        assert alices.iteration == bobs.iteration
        assert resumed(scheme, changes, (alices, bobs)).shares == whole.shares


def test_a_state_shows_no_share():
    share, ahead = np.array([123456789]), np.array([987654321, -5])
    state = TrainingState(1, np.empty(0), share=share, ahead=ahead)
    assert "123456789" not in repr(state)
    assert "987654321" not in repr(state)
    again = TrainingState.of_bytes(state.to_bytes())
    assert (again.share.tolist(), again.ahead.tolist()) == ([123456789], [987654321, -5])


# --- held-out rows and prediction ---------------------------------------------------------------


def more_rows() -> Tables:
    return Tables.make(rows=7, alice=4, bob=2, intercept=True, seed=8)


@pytest.mark.parametrize("name", SCHEMES)
def test_only_bob_learns_the_scores_of_a_prediction_from_shares(name):
    scheme, tables = SCHEMES[name], Tables.make(rows=18, alice=4, bob=2, intercept=True)
    agreed = sealed(scheme, epochs=1, l2=0.1)
    run = trained(tables, agreed, scheme)
    new, terms = more_rows(), Terms(agreed, scheme)
    frames: list[tuple[str, Message]] = []
    weights = run.talk.bob.weights
    nothing, scored = run_pair(
        predict_sealed_rows(new.alice, run.shares["alice"], terms, run.scales, NOISE_KEY, ALICE),
        bob_predict_predict(new.bob, weights, run.shares["bob"], terms, run.scales, BOB),
        tap=lambda sender, frame: frames.append((sender, decode(frame))),
    )
    assert nothing is None
    expected = rounded(new, run.scales) @ run.weights
    assert np.abs(scored.scores - expected).max() < NOISE + 1e-9
    assert scored.suspected_wraps == 0
    kinds = {type(message) for sender, message in frames if sender == "bob"}
    assert kinds == {*OPENING, SealedWeights}


def test_prediction_with_other_scales_is_refused():
    tables, agreed = SPLITS["halves"], sealed()
    run, terms = trained(tables, agreed), Terms(sealed(), ClearScheme())
    other = replace(run.scales, feature_bits=run.scales.feature_bits - 1)
    his, weights = run.shares["bob"], run.talk.bob.weights
    with pytest.raises(RemoteProtocolError, match="feature_bits"):
        run_pair(
            predict_sealed_rows(
                tables.alice, run.shares["alice"], terms, run.scales, NOISE_KEY, ALICE
            ),
            bob_predict_predict(tables.bob, weights, his, terms, other, BOB),
        )


def test_bob_looks_at_held_out_rows_and_says_nothing_of_them():
    tables, new = Tables.make(rows=18, alice=4, bob=2, intercept=True), more_rows()
    agreed = sealed(epochs=3, evaluate="epoch")
    terms, method = Terms(agreed, ClearScheme()), mechanism_of(agreed)
    ledger = Ledger(18, method.assumption)
    events: list[Event] = []
    frames: list[Message] = []
    held_out = HeldOut(new.bob, new.labels)
    alice, bob = run_pair(
        ALICES["sealed"](AliceInputs(tables.alice, terms, ALICE, held_out=new.alice)),
        BOBS["sealed"](
            BobInputs(tables.bob, tables.labels, terms, method, ledger, BOB, held_out=held_out)
        ),
        observe=events.append,
        tap=lambda sender, frame: frames.append(decode(frame)) if sender == "bob" else None,
    )
    seen = [event for event in events if isinstance(event, HeldOutSeen)]
    assert [event.iteration for event in seen] == [4, 9, 14]
    scales = shared(bob).scales
    weights = scales.weights(shared(alice).values + shared(bob).values)
    scores = rounded(new, scales) @ np.concatenate([weights, bob.weights])
    loss = evaluate(scores, new.labels.values).loss
    assert seen[-1].metrics.loss == pytest.approx(loss, abs=NOISE)
    assert {type(message) for message in frames} == TO_ALICE["two-exchanges"]
    assert ledger.statement().label_epsilon_total == 0


# --- what does not fit --------------------------------------------------------------------------


def test_what_the_scales_promise_is_what_fits():
    scales = Scales.of(sealed(batch_size=16, learning_rate=0.1, epochs=10), 455, 4)
    assert scales.modulus_bits == 50
    assert scales.feature_bits >= 10
    assert 0.1 / 16 * 2**scales.residue_bits >= 2**10
    assert scales.score_bound >= 2**8
    assert scales.score_bits + np.log2(scales.score_bound) <= scales.modulus_bits - 1


@pytest.mark.parametrize(
    ("changes", "size"), [({"l2": 3.9, "epochs": 40}, 2), ({}, 30), ({"learning_rate": 1e-9}, 6)]
)
def test_what_does_not_fit_is_refused_with_a_way_out(changes, size):
    with pytest.raises(ConfigError, match="leave fewer than 8 bits") as raised:
        Scales.of(sealed(**changes), 18, size)
    assert "(clip=16)" in raised.value.hint


def test_steps_are_some_integers_whatever_the_residues_are():
    scales = Scales.of(sealed(), 18, 2)
    strange = np.array([np.nan, np.inf, -np.inf, 1e300])
    steps = scales.steps(strange, 0.25, 0)
    assert np.abs(steps).max() < 1 << 49


def test_receive_is_the_only_thing_bob_waits_for():
    """Bob's program yields nothing that depends on a value: a listing of its steps' types."""
    tables, agreed = SPLITS["halves"], sealed(epochs=1)
    bob = bob_program(tables, agreed)
    assert isinstance(bob.send(None), Send | Receive)
