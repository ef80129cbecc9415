"""Training with shared scores: the centralised model, and nothing in clear for either side.

The weights that two shares make are compared with SGD in the open on the *rounded* features with
the same sigmoid, from which only the rounding of the waves' numbers separates them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from taciturn.crypto import ClearScheme, Scheme
from taciturn.crypto.bfv import BfvScheme
from taciturn.data import FeatureTable, LabelTable
from taciturn.engine import run_pair
from taciturn.errors import ConfigError, RemoteProtocolError
from taciturn.numerics import LearningRate, Penalty, sigmoid
from taciturn.privacy import MUTUAL_ASSUMPTION as ASSUMPTION
from taciturn.privacy import Ledger, Mutual
from taciturn.privacy import mechanism as mechanism_of
from taciturn.protocol import (
    BatchCommitment,
    BatchShare,
    Boundary,
    Columns,
    GivenShare,
    Hello,
    KeyOffer,
    Message,
    Observation,
    Phases,
    Plan,
    Program,
    Receive,
    ResidueShares,
    RevealedShare,
    Scales,
    SharedProduct,
    SharedVector,
    ShareRevealed,
    Sigmoids,
    Terms,
    Trained,
    TrainingState,
    WeightShare,
    kind_of,
)
from taciturn.protocol.alice import TRAININGS as ALICES
from taciturn.protocol.alice import AliceInputs, predict_mutual_rows
from taciturn.protocol.bob import TRAININGS as BOBS
from taciturn.protocol.bob import BobInputs
from taciturn.protocol.bob import predict_mutual_rows as bob_predict_predict
from taciturn.settings import Agreement
from tests.protocol.parties import (
    ALICE,
    BOB,
    CLEAR,
    NOISE,
    NOISE_KEY,
    Tables,
    Talk,
    agreement,
    centralised,
    same,
    talk,
)


class TwoExchanges(ClearScheme):
    """The clear scheme where one large product is dearer than two."""

    def effort(self, rows: int, length: int) -> int:
        return rows * length


BFV = BfvScheme()


def mutual(scheme: Scheme = CLEAR, **changes: Any) -> Agreement:
    facts = {"reveal": False, "reveal_bob": False, "score_range": 32.0, "sigmoid_error": 1e-3}
    chosen = {"scheme": scheme.name, "key_bits": scheme.key_bits[0]}
    return agreement(mechanism="mutual", **{**facts, **chosen, **changes})


def pair(end: Trained) -> tuple[WeightShare, WeightShare]:
    assert end.share is not None
    assert end.bob_share is not None
    return end.share, end.bob_share


def weights(session: Talk) -> np.ndarray:
    """All weights, of both shares put together."""
    (hers_a, hers_b), (his_a, his_b) = pair(session.alice), pair(session.bob)
    scales = hers_a.scales
    assert same(scales, his_b.scales)
    return np.concatenate(
        [scales.weights(hers_a.values + his_a.values), scales.weights(hers_b.values + his_b.values)]
    )


def oracle(tables: Tables, agreed: Agreement, session: Talk) -> tuple[np.ndarray, float]:
    """SGD in the open on each batch's rounded features, with the same waves.

    Returns:
        The weights, and how far six standard deviations of every rounding can move one: a step does
        not expand distances while ``rate L <= 2`` (asserted), so that the errors of all steps add
        up.
    """
    terms = Terms(agreed, CLEAR)
    sigmoids = Sigmoids.of(terms, tables.labels.rows)
    scales, rate = (
        sigmoids.scales,
        LearningRate(agreed.learning_rate, agreed.schedule, agreed.decay),
    )
    low, high = agreed.class_weight or (1.0, 1.0)
    ours, error = np.zeros(tables.joined.shape[1]), 0.0
    for number, batch in enumerate(session.batches):
        rows = np.hstack(
            [
                scales.rounded(side.values[batch], coins.fork(f"rounding {number}"))
                for side, coins in ((tables.alice, ALICE), (tables.bob, BOB))
            ]
        )
        rows *= 2.0**-scales.feature_bits
        labels = tables.labels.values[batch]
        shared = sigmoids.at(number, len(batch))
        left = np.where(labels, high, low) * (labels - shared.sigmoid(rows @ ours))
        kept = Penalty(0.0, agreed.l2).gradient(ours, tables.free)
        step = rate.at(number) * (rows.T @ left / len(batch) - kept)
        ours = ours + step
        error += rate.at(number) * (6 * shared.rounding + 1 / shared.step) * np.abs(rows).max()
    steepest = np.square(np.abs(tables.joined) + 0.02).sum(axis=1).max() / 4 + agreed.l2
    assert agreed.learning_rate * steepest <= 2
    return ours, float(error * np.sqrt(len(ours)))


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
    "fine-sigmoid": {"sigmoid_error": 1e-5, "score_range": 12.0},
    "inverse": {"schedule": "inverse", "decay": 0.3, "epochs": 3},
    "one-row-a-batch": {"batch_size": 1, "epochs": 1},
    "batch-beyond-the-rows": {"batch_size": 1000, "epochs": 3},
    "no-short-batch": {"batch_size": 6},
    "class-weight": {"class_weight": (0.25, 1.0)},
}


@pytest.mark.sampled(26)
@pytest.mark.parametrize("scheme", [CLEAR, TwoExchanges()], ids=["one-exchange", "two-exchanges"])
@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("split", SPLITS)
def test_the_shared_model_is_the_centralised_one_up_to_rounding(split, terms, scheme):
    tables, agreed = SPLITS[split], mutual(**TERMS[terms])
    session = talk(tables, agreed, scheme)
    expected, tolerance = oracle(tables, agreed, session)
    ours = weights(session)
    assert np.abs(ours - expected).max() <= tolerance
    assert np.abs(expected).max() > 3 * tolerance


@pytest.mark.parametrize("terms", [{"l2": 0.1}, {"l2": 0.4, "schedule": "inverse", "decay": 0.3}])
@pytest.mark.parametrize("scheme", [CLEAR, TwoExchanges()], ids=["one-exchange", "two-exchanges"])
@pytest.mark.parametrize("split", ["all-at-alice", "halves", "halves-and-intercept"])
def test_an_l2_penalty_is_that_of_all_weights_but_the_intercept(split, terms, scheme):
    tables, agreed = SPLITS[split], mutual(**terms)
    session = talk(tables, agreed, scheme)
    expected, tolerance = oracle(tables, agreed, session)
    # An intercept's own scale is rounded at random to as many digits as a feature.
    digits = 2.0 ** -pair(session.alice)[0].scales.feature_bits
    tolerance += 2 * digits * np.sqrt(len(session.batches)) * tables.free
    assert np.abs(weights(session) - expected).max() <= tolerance
    shrunk = np.abs(centralised(tables, agreement(**terms)) - centralised(tables, agreement()))
    assert shrunk.max() > 3 * tolerance


@pytest.mark.parametrize("split", ["all-at-alice", "halves-and-intercept"])
def test_bfv_gives_the_shares_of_the_clear_scheme_bit_for_bit(split):
    tables, bfv = SPLITS[split], BfvScheme()
    plain = talk(tables, mutual(epochs=1))
    session = talk(tables, mutual(bfv, epochs=1), bfv)
    for one, other in ((plain.alice, session.alice), (plain.bob, session.bob)):
        assert [part.values.tolist() for part in pair(one)] == [
            part.values.tolist() for part in pair(other)
        ]


# --- fresh keys -------------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["halves", "all-at-alice"])
@pytest.mark.parametrize("scheme", [CLEAR, TwoExchanges()], ids=["one-exchange", "two-exchanges"])
def test_with_fresh_keys_every_vector_has_a_key_of_its_own_and_shares_stay_the_same(split, scheme):
    plain, fresh = (
        talk(SPLITS[split], mutual(epochs=1, fresh_keys=chosen), scheme) for chosen in (False, True)
    )
    for one, other in ((plain.alice, fresh.alice), (plain.bob, fresh.bob)):
        assert [part.values.tolist() for part in pair(one)] == [
            part.values.tolist() for part in pair(other)
        ]
    for role in ("alice", "bob"):
        kinds = [kind_of(frame) for frame in fresh.sent_by(role)]
        after = [kinds[at + 1] for at, kind in enumerate(kinds) if kind is KeyOffer]
        assert after == [kind for kind in kinds if kind in (Phases, SharedVector)]


def test_no_two_fresh_keys_are_alike():
    session = talk(SPLITS["halves"], mutual(BFV, epochs=1, batch_size=9, fresh_keys=True), BFV)
    offers = [
        message.public_key
        for role in ("alice", "bob")
        for message in session.said_by(role)
        if isinstance(message, KeyOffer)
    ]
    assert len(set(offers)) == len(offers) == 3 * 2


# --- what each side receives ------------------------------------------------------------------

OPENING: set[type[Message]] = {Hello, KeyOffer, BatchCommitment, BatchShare}


@pytest.mark.parametrize("split", SPLITS)
def test_after_the_opening_every_message_is_a_ciphertext(split):
    session = talk(SPLITS[split], mutual())
    both = {SharedVector, SharedProduct} if SPLITS[split].bob.columns else set()
    to_alice = {kind_of(frame) for frame in session.sent_by("bob")}
    to_bob = {kind_of(frame) for frame in session.sent_by("alice")}
    assert to_alice == {*OPENING, Phases, SharedVector, *both}
    assert to_bob == ({*OPENING, ResidueShares, SharedProduct, *both}) - {BatchCommitment} - (
        set() if both else {KeyOffer}
    )
    assert not session.seen(Observation)
    assert not len(session.alice.weights)
    assert not len(session.bob.weights)
    assert session.ledger.statement().label_epsilon_total == 0.0


def complement(tables: Tables) -> Tables:
    flipped = LabelTable.of(1 - tables.labels.values, ids=tables.labels.ids)
    return replace(tables, labels=flipped)


def shuffled(tables: Tables) -> Tables:
    """Alice's rows in another order, against Bob's."""
    order = np.roll(np.arange(tables.alice.rows), 5)
    values = tables.alice.values[order]
    return replace(tables, alice=FeatureTable.of(values, columns=list(tables.alice.columns)))


def test_all_that_alice_can_read_is_the_same_for_labels_and_their_opposites():
    """Her shares, and every number that she decrypts: no label enters them at all."""
    tables = SPLITS["halves-and-intercept"]
    ends = [talk(some, mutual()) for some in (tables, complement(tables))]
    one, other = (pair(end.alice) for end in ends)
    assert [part.values.tolist() for part in one] == [part.values.tolist() for part in other]
    assert np.abs(weights(ends[0]) - weights(ends[1])).max() > 0.1
    # In the clear scheme frames show what stands in the ciphertexts of her own key.
    hers = [
        [frame for frame in end.sent_by("bob") if kind_of(frame) is SharedProduct] for end in ends
    ]
    assert hers[0] == hers[1]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("change", [complement, shuffled])
@pytest.mark.parametrize("scheme", [CLEAR, BFV], ids=["clear", "bfv"])
def test_kinds_and_lengths_of_all_messages_depend_on_neither_labels_nor_columns(change, scheme):
    tables = SPLITS["halves"]
    shapes = [
        [
            (sender, kind_of(frame), len(frame))
            for sender, frame in talk(some, mutual(scheme, epochs=1), scheme).frames
        ]
        for some in (tables, change(tables))
    ]
    assert shapes[0] == shapes[1]


def test_what_bob_decrypts_is_uniform():
    """His shares at the end, over many rows of coins, fill the ring evenly."""
    tables, shares = SPLITS["halves"], []
    for seed in range(40):
        session = talk(tables, mutual(epochs=1), coins=BOB.fork(str(seed)))
        states = [event.state for event in session.seen(Boundary)]
        shares += [state.ahead for state in states if state.iteration]
    tops = np.concatenate(shares) >> np.int64(59 - 3)
    counts = np.bincount(tops + 4, minlength=8)
    expected = counts.sum() / 8
    # Chi-squared with 7 degrees of freedom: above 30 once in 10,000 times; both sides' shares.
    assert ((counts - expected) ** 2 / expected).sum() < 30


# --- revealing, resuming, predicting ----------------------------------------------------------


def test_each_side_s_weights_can_be_revealed_to_it():
    tables = SPLITS["halves-and-intercept"]
    quiet = talk(tables, mutual())
    revealed = talk(tables, mutual(reveal=True, reveal_bob=True))
    assert revealed.weights.tolist() == weights(quiet).tolist()
    assert kind_of(revealed.sent_by("bob")[-1]) is RevealedShare
    assert kind_of(revealed.sent_by("alice")[-1]) is GivenShare
    assert len(revealed.seen(ShareRevealed)) == 1
    assert revealed.ledger.statement().label_epsilon_total == np.inf
    only_his = talk(tables, mutual(reveal_bob=True))
    assert only_his.ledger.statement().label_epsilon_total == 0.0
    assert not only_his.seen(Observation)


def resumed(tables: Tables, agreed: Agreement, states: list[TrainingState], scheme: Scheme) -> Talk:
    """Both programs, each from a state; what it says of the way is left out."""
    terms, method = Terms(agreed, scheme), mechanism_of(agreed)
    ledger = Ledger(tables.labels.rows, method.assumption)
    hers, his = (TrainingState.of_bytes(state.to_bytes()) for state in states)
    alice, bob = run_pair(
        ALICES["mutual"](AliceInputs(tables.alice, terms, ALICE, hers)),
        BOBS["mutual"](BobInputs(tables.bob, tables.labels, terms, method, ledger, BOB, his)),
    )
    return Talk(alice, bob, (), (), ledger)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scheme", [CLEAR, BFV], ids=["clear", "bfv"])
@pytest.mark.parametrize(
    ("split", "fresh_keys"),
    [("all-at-alice", False), ("halves-and-intercept", False), ("halves-and-intercept", True)],
)
def test_a_resumed_training_ends_with_the_same_bits(split, fresh_keys, scheme):
    tables, agreed = SPLITS[split], mutual(scheme, epochs=1, fresh_keys=fresh_keys)
    whole = talk(tables, agreed, scheme)
    third = [event.state for event in whole.seen(Boundary) if event.state.iteration == 3]
    # Who comes to it first is the driver's affair; a state has the number of the peer's columns.
    third.sort(key=lambda state: state.columns == len(tables.alice.columns))
    again = resumed(tables, agreed, third, scheme)
    for one, other in ((whole.alice, again.alice), (whole.bob, again.bob)):
        assert [part.values.tolist() for part in pair(one)] == [
            part.values.tolist() for part in pair(other)
        ]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scheme", [CLEAR, BFV], ids=["clear", "bfv"])
@pytest.mark.parametrize("split", ["all-at-alice", "intercept-only-at-bob", "halves"])
def test_only_bob_learns_joint_scores_and_they_are_those_of_the_weights(split, scheme):
    tables, agreed = SPLITS[split], mutual(scheme, epochs=1, fresh_keys=split == "halves")
    session = talk(tables, agreed, scheme)
    frames: list[tuple[str, bytes]] = []
    terms = Terms(agreed, scheme)
    hers, his = pair(session.alice), pair(session.bob)
    nothing, scored = run_pair(
        predict_mutual_rows(tables.alice, *hers, NOISE_KEY, terms, ALICE.fork("new")),
        bob_predict_predict(tables.bob, *his, terms, BOB.fork("new")),
        tap=lambda sender, frame: frames.append((sender, frame)),
    )
    assert nothing is None
    grid = hers[0].scales.feature_grid
    rounded = np.hstack(
        [grid.decode(grid.rounded(side.values)) for side in (tables.alice, tables.bob)]
    )
    assert scored.scores == pytest.approx(rounded @ weights(session), abs=NOISE + 1e-9)
    assert scored.suspected_wraps == 0


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"l1": 0.1}, "mutual has no L1 penalty"),
        ({"evaluate": "epoch", "patience": 2}, "mutual does not stop early"),
        ({"evaluate": "epoch"}, "mutual evaluates at the end only"),
        ({"learning_rate": 1e-6}, "fewer than 8 bits"),
        ({"l2": 0.6, "epochs": 4}, "waves, and 128 are the most"),
    ],
)
def test_what_shares_cannot_give_is_refused_by_name(changes, words):
    with pytest.raises(ConfigError, match=words):
        talk(SPLITS["all-at-alice"], mutual(**changes))


def test_paillier_is_refused_by_name():
    with pytest.raises(ConfigError, match="mutual has no paillier"):
        mechanism_of(mutual().model_copy(update={"scheme": "paillier", "key_bits": 3072}))


def test_a_training_that_would_tell_too_much_of_a_table_is_refused():
    scheme = BfvScheme()
    terms = Terms(mutual(scheme, epochs=10, batch_size=8), scheme)
    with pytest.raises(ConfigError, match="would hide the tables to within"):
        Plan.of(terms, 100_000, Columns(20, 24), Columns(2, 2))
    assert Plan.of(terms, 1000, Columns(20, 4), Columns(2, 2)).bob_columns == 2


SIZES: dict[type[Message], str] = {
    Phases: "phases",
    ResidueShares: "answer",
    SharedVector: "vector",
    SharedProduct: "answer",
}


def longer(message: Message) -> Message:
    """The message with one entry more than is due."""
    name = SIZES[type(message)]
    inner = getattr(message, name)
    return replace(message, **{name: replace(inner, length=inner.length + 1)})


def spoilt(program: Program[Any], kind: type[Message], change: Any) -> Program[Any]:
    """A program whose messages of a kind are changed on their way in."""
    step: Any = next(program)
    while True:
        if isinstance(step, Receive):
            message = yield step
            step = program.send(change(message) if isinstance(message, kind) else message)
        else:
            step = program.send((yield step))


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("role", ["alice", "bob"])
def test_a_message_of_another_size_or_turn_is_refused_by_its_structure(kind, role):
    if role not in kind.senders:
        return
    tables, agreed = SPLITS["halves"], mutual()
    terms, method = Terms(agreed, CLEAR), Mutual()
    for change, words in (
        (longer, "entries"),
        (lambda message: replace(message, **{_turn(message): 77}), "77"),
    ):
        alice: Any = ALICES["mutual"](AliceInputs(tables.alice, terms, ALICE))
        ledger = Ledger(tables.labels.rows, ASSUMPTION)
        bob: Any = BOBS["mutual"](BobInputs(tables.bob, tables.labels, terms, method, ledger, BOB))
        if role == "alice":
            bob = spoilt(bob, kind, change)
        else:
            alice = spoilt(alice, kind, change)
        with pytest.raises(RemoteProtocolError, match=words):
            run_pair(alice, bob)


def _turn(message: Message) -> str:
    return "turn" if hasattr(message, "turn") else "iteration"


def test_scales_use_the_whole_ring_for_the_agreed_range():
    scales = Scales.of_shared_scores(mutual(l2=0.05), 18)
    assert scales.score_bound == pytest.approx(32.0 + np.log(4000.0))
    sigmoids = Sigmoids.of(Terms(mutual(l2=0.05), CLEAR), 18)
    assert sigmoids.error_bound <= 1e-3
    scores = np.linspace(-32, 32, 5001)
    for number in (0, len(scales.decay) - 2):
        error = np.abs(sigmoids.at(number, 4).sigmoid(scores) - sigmoid(scores))
        assert error.max() <= sigmoids.error_bound
