"""Newton with shared scores: the steps of the open, and nothing in clear for either side.

The weights that two shares make are compared with the same steps in float64 on the *rounded* tables
with the same sigmoid, from which only the rounding of the waves' numbers separates them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from taciturn.crypto import Scheme
from taciturn.crypto.bfv import BfvScheme
from taciturn.data import FeatureTable, LabelTable
from taciturn.engine import run_pair
from taciturn.errors import ConfigError, CryptoError, RemoteProtocolError
from taciturn.numerics import (
    UNIT_BITS,
    fit_on_schedule,
    momentum,
    of_labels,
    optimum,
    penalised_loss,
    weighted_likelihood,
)
from taciturn.privacy import Ledger
from taciturn.privacy import mechanism as mechanism_of
from taciturn.protocol import (
    SHARED_ROOM,
    BatchCommitment,
    BatchShare,
    Boundary,
    CarryShares,
    Columns,
    GivenShare,
    Hello,
    KeyOffer,
    Message,
    Observation,
    OwnTable,
    Phases,
    Program,
    Receive,
    ResidueShares,
    RevealedShare,
    Scales,
    Segments,
    SharedProduct,
    SharedVector,
    ShareRevealed,
    TablePlan,
    Terms,
    Trained,
    TrainingState,
    WeightShare,
    kind_of,
    whitened_bits,
)
from taciturn.protocol.alice import TRAININGS as ALICES
from taciturn.protocol.alice import AliceInputs, predict_mutual_rows
from taciturn.protocol.bob import TRAININGS as BOBS
from taciturn.protocol.bob import BobInputs
from taciturn.protocol.bob import predict_mutual_rows as bob_predict_predict
from taciturn.rng import KeyedEntropy
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
    same,
    talk,
)

BFV = BfvScheme()
SPLITS = {
    "all-at-alice": Tables.make(alice=4),
    "halves": Tables.make(alice=2, bob=2),
    "intercept-only-at-bob": Tables.make(alice=4, intercept=True),
    "halves-and-intercept": Tables.make(alice=2, bob=2, intercept=True),
    "one-row": Tables.make(rows=1, alice=3),
    "more-columns-than-rows": Tables.make(rows=5, alice=6, bob=2),
}


OPENING: set[type[Message]] = {Hello, KeyOffer, BatchCommitment, BatchShare}


def newton(scheme: Scheme = CLEAR, **changes: Any) -> Agreement:
    steps = {"solver": "newton", "l2": 0.05, "epochs": 6, "batch_size": 18, "learning_rate": 1.0}
    facts = {"reveal": False, "reveal_bob": False, "score_range": 64.0, "sigmoid_error": 1e-3}
    chosen = {"scheme": scheme.name, "key_bits": scheme.key_bits[0]}
    return agreement(mechanism="mutual", **{**steps, **facts, **chosen, **changes})


def pair(end: Trained) -> tuple[WeightShare, WeightShare]:
    assert end.share is not None
    assert end.bob_share is not None
    return end.share, end.bob_share


def weights(session: Talk) -> np.ndarray:
    """All weights in the columns' own coordinates, of both shares put together."""
    (hers_a, hers_b), (his_a, his_b) = pair(session.alice), pair(session.bob)
    assert same(hers_a.scales, his_b.scales)
    parts = []
    for one, other in ((hers_a, his_a), (his_b, hers_b)):
        if len(one.values):
            assert other.whitening is None
            assert one.whitening is not None
            parts.append(one.whitening.weights(one.scales.weights(one.values + other.values)))
    return np.concatenate(parts)


def plan_of(tables: Tables, agreed: Agreement) -> TablePlan:
    terms = Terms(agreed, CLEAR)
    hers, his = (
        Columns(len(side.columns), whitened_bits(side, terms))
        for side in (tables.alice, tables.bob)
    )
    return TablePlan.of(terms, tables.labels.rows, hers, his)


def oracle(tables: Tables, agreed: Agreement) -> np.ndarray:
    """The steps in float64, on rounded tables, with the sum of waves for a sigmoid."""
    plan = plan_of(tables, agreed)
    sides = [side for side in (tables.alice, tables.bob) if side.columns]
    counts = [len(side.columns) for side in sides]
    owned = [
        OwnTable.of(side, plan, sum(counts) - count)
        for side, count in zip(sides, counts, strict=True)
    ]
    rows, grid = plan.rows, 2.0**-plan.scales.feature_bits
    table = np.hstack([own.whole[:rows] * grid for own in owned])
    kept = [own.whole[rows:] * grid * 2.0**SHARED_ROOM for own in owned]
    low, high = agreed.class_weight or (1.0, 1.0)
    labels, splits = tables.labels.values, np.cumsum(counts)[:-1]
    now = ahead = np.zeros(sum(counts))
    for number in range(agreed.epochs):
        residues = np.where(labels, high, low) * (labels - plan.sigmoid.sigmoid(table @ ahead))
        stays = [part @ square for square, part in zip(kept, np.split(ahead, splits), strict=True)]
        before, now = now, np.concatenate(stays) + residues @ table / rows
        ahead = now + momentum(number) / (1 << UNIT_BITS) * (now - before)
    parts = np.split(now, splits)
    return np.concatenate(
        [own.whitening.weights(part) for own, part in zip(owned, parts, strict=True)]
    )


TERMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "ten-digits": {"feature_bits": 10},
    "fine-sigmoid": {"sigmoid_error": 1e-5, "score_range": 12.0},
    "class-weight": {"class_weight": (0.125, 0.5)},
    "one-pass": {"epochs": 1},
}


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.sampled(10)
def test_the_shared_model_is_that_of_the_same_steps_in_the_open(split, terms):
    tables, agreed = SPLITS[split], newton(**TERMS[terms])
    expected = oracle(tables, agreed)
    assert np.abs(weights(talk(tables, agreed)) - expected).max() <= 2e-4
    assert np.abs(expected).max() > 0.02


@pytest.mark.parametrize("split", ["all-at-alice", "halves-and-intercept"])
@pytest.mark.sampled(1)
def test_rounding_aside_it_is_the_fit_in_clear_and_near_scikit_learn_s_optimum(split):
    tables, agreed = SPLITS[split], newton(sigmoid_error=1e-6, epochs=120)
    ours = weights(talk(tables, agreed))
    likelihood = of_labels(tables.labels.values, partial(weighted_likelihood, class_weight=None))
    fit = fit_on_schedule(
        tables.alice.values, tables.bob.values, likelihood, 0.05, tables.free, 120
    )
    assert np.abs(ours - np.concatenate([fit.alice, fit.own])).max() < 1e-3
    best = optimum(tables.joined, likelihood, 0.05, tables.free)
    loss = penalised_loss(tables.joined @ ours, likelihood, ours, 0.05, tables.free)
    assert 0 <= loss - best.loss < 1e-6
    own = tables.joined[:, : tables.joined.shape[1] - tables.free]
    scikit = LogisticRegression(
        C=1 / (0.05 * tables.labels.rows), fit_intercept=bool(tables.free), tol=1e-10
    ).fit(own, tables.labels.values)
    found_by_scikit = np.append(scikit.coef_, scikit.intercept_[: tables.free])
    assert np.abs(ours - found_by_scikit).max() < 5e-3


@pytest.mark.parametrize("split", ["all-at-alice", "halves-and-intercept"])
def test_bfv_gives_the_shares_of_the_clear_scheme_bit_for_bit(split):
    tables = SPLITS[split]
    plain = talk(tables, newton(epochs=2))
    session = talk(tables, newton(BFV, epochs=2), BFV)
    for one, other in ((plain.alice, session.alice), (plain.bob, session.bob)):
        assert [part.values.tolist() for part in pair(one)] == [
            part.values.tolist() for part in pair(other)
        ]


# --- what each side receives ------------------------------------------------------------------


@pytest.mark.parametrize("split", SPLITS)
def test_after_the_opening_every_message_is_a_ciphertext(split):
    session = talk(SPLITS[split], newton())
    both = {SharedVector, SharedProduct} if SPLITS[split].bob.columns else set()
    to_alice = {kind_of(frame) for frame in session.sent_by("bob")}
    to_bob = {kind_of(frame) for frame in session.sent_by("alice")}
    assert to_alice - OPENING == {Phases, Segments, SharedVector, *both}
    assert to_bob - OPENING == {ResidueShares, CarryShares, SharedProduct, *both}
    assert (KeyOffer in to_bob) == bool(both)
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
    ends = [talk(some, newton()) for some in (tables, complement(tables))]
    one, other = (pair(end.alice) for end in ends)
    assert [part.values.tolist() for part in one] == [part.values.tolist() for part in other]
    assert np.abs(weights(ends[0]) - weights(ends[1])).max() > 0.1
    # In the clear scheme frames show what stands in the ciphertexts of her own key.
    hers = [
        [frame for frame in end.sent_by("bob") if kind_of(frame) is SharedProduct] for end in ends
    ]
    assert hers[0] == hers[1]


@pytest.mark.parametrize("change", [complement, shuffled])
@pytest.mark.parametrize("scheme", [CLEAR, BFV], ids=["clear", "bfv"])
@pytest.mark.sampled(1)
def test_kinds_and_lengths_of_all_messages_depend_on_neither_labels_nor_columns(change, scheme):
    tables = SPLITS["halves"]
    shapes = [
        [
            (sender, kind_of(frame), len(frame))
            for sender, frame in talk(some, newton(scheme, epochs=2), scheme).frames
        ]
        for some in (tables, change(tables))
    ]
    assert shapes[0] == shapes[1]


def test_what_bob_ends_with_is_uniform():
    """His shares, over many coins of Alice's, fill the ring evenly."""
    shares: list[np.ndarray] = []
    for seed in range(60):
        coins = ALICE.fork(str(seed))
        _, bob = run_pair(*programs(SPLITS["halves"], newton(epochs=2), coins=coins))
        shares += [part.values for part in pair(bob)]
    counts = np.bincount((np.concatenate(shares) >> np.int64(59 - 3)) + 4, minlength=8)
    expected = counts.sum() / 8
    # Chi-squared with 7 degrees of freedom: above 30 once in 10,000 times.
    assert ((counts - expected) ** 2 / expected).sum() < 30


# --- revealing, resuming, predicting ----------------------------------------------------------


def test_each_side_s_weights_can_be_revealed_to_it():
    tables = SPLITS["halves-and-intercept"]
    quiet = talk(tables, newton())
    revealed = talk(tables, newton(reveal=True, reveal_bob=True))
    assert revealed.weights == pytest.approx(weights(quiet), abs=1e-12)
    assert kind_of(revealed.sent_by("bob")[-1]) is RevealedShare
    assert kind_of(revealed.sent_by("alice")[-1]) is GivenShare
    assert len(revealed.seen(ShareRevealed)) == 1
    assert revealed.ledger.statement().label_epsilon_total == np.inf
    only_his = talk(tables, newton(reveal_bob=True))
    assert only_his.ledger.statement().label_epsilon_total == 0.0
    assert not only_his.seen(Observation)


def programs(
    tables: Tables,
    agreed: Agreement,
    scheme: Scheme = CLEAR,
    states: tuple[TrainingState | None, TrainingState | None] = (None, None),
    coins: KeyedEntropy = ALICE,
) -> tuple[Any, Any]:
    terms, method = Terms(agreed, scheme), mechanism_of(agreed)
    ledger = Ledger(tables.labels.rows, method.assumption)
    bob = BobInputs(tables.bob, tables.labels, terms, method, ledger, BOB, states[1])
    alice = AliceInputs(tables.alice, terms, coins, states[0])
    return ALICES["mutual-table"](alice), BOBS["mutual-table"](bob)


@pytest.mark.parametrize(
    ("split", "scheme"),
    [("all-at-alice", CLEAR), ("halves-and-intercept", CLEAR), ("halves-and-intercept", BFV)],
)
def test_a_resumed_training_ends_with_the_same_bits(split, scheme):
    tables, agreed = SPLITS[split], newton(scheme, epochs=3)
    whole = talk(tables, agreed, scheme)
    second = [event.state for event in whole.seen(Boundary) if event.state.iteration == 2]
    hers, his = (TrainingState.of_bytes(state.to_bytes()) for state in second)
    ends = run_pair(*programs(tables, agreed, scheme, (hers, his)))
    for one, other in zip((whole.alice, whole.bob), ends, strict=True):
        assert [part.values.tolist() for part in pair(one)] == [
            part.values.tolist() for part in pair(other)
        ]


def test_the_state_of_another_conversation_is_refused():
    tables, agreed = SPLITS["halves"], newton()
    other = TrainingState(1, np.zeros(2))
    for states in ((other, None), (None, other)):
        with pytest.raises(RemoteProtocolError, match="not that of a training that shares scores"):
            run_pair(*programs(tables, agreed, CLEAR, states))


@pytest.mark.parametrize(
    ("split", "scheme"),
    [
        *((split, CLEAR) for split in ("all-at-alice", "intercept-only-at-bob", "halves")),
        # Keys of either side; what is decrypted is that of the clear scheme.
        ("halves", BFV),
    ],
)
def test_only_bob_learns_joint_scores_and_they_are_those_of_the_weights(split, scheme):
    tables, agreed = SPLITS[split], newton(scheme, epochs=2)
    session, terms = talk(tables, agreed, scheme), Terms(agreed, scheme)
    hers, his = pair(session.alice), pair(session.bob)
    nothing, scored = run_pair(
        predict_mutual_rows(tables.alice, *hers, NOISE_KEY, terms, ALICE.fork("new")),
        bob_predict_predict(tables.bob, *his, terms, BOB.fork("new")),
    )
    assert nothing is None
    assert scored.scores == pytest.approx(tables.joined @ weights(session), abs=NOISE + 1e-3)
    assert np.abs(scored.scores).max() > 0.1
    assert scored.suspected_wraps == 0


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"l2": 0.0}, "needs an L2 penalty above 0"),
        ({"feature_bits": 8}, "fewer than 10 bits"),
        ({"evaluate": "epoch"}, "mutual evaluates at the end only"),
        ({"score_range": 256.0, "sigmoid_error": 1e-6}, "waves, and 128 are the most"),
    ],
)
def test_what_shares_cannot_give_is_refused_by_name(changes, words):
    with pytest.raises(ConfigError, match=words):
        talk(SPLITS["all-at-alice"], newton(**changes))


def test_a_training_that_would_tell_too_much_of_a_table_is_refused():
    terms = Terms(newton(BFV, epochs=40), BFV)
    with pytest.raises(ConfigError, match="40 passes over 2,000,000 rows would hide the tables"):
        TablePlan.of(terms, 2_000_000, Columns(4, 4), Columns(0, 0))
    with pytest.raises(CryptoError, match="would hide the table"):
        TablePlan.of(terms, 100_000, Columns(50, 18), Columns(2, 2))
    plan = TablePlan.of(terms, 40_000, Columns(41, 9), Columns(40, 9))
    assert max(plan.alice_leak, plan.bob_leak) < 2.0**-40


def test_a_table_of_several_parts_is_refused_by_name():
    scheme = BfvScheme(part_tiles=2)
    terms = Terms(newton(scheme, epochs=1), scheme)
    TablePlan.of(terms, 10_000, Columns(2, 4), Columns(0, 0))
    for columns in ((Columns(2, 4), Columns(0, 0)), (Columns(2, 4), Columns(1, 4))):
        with pytest.raises(ConfigError, match=r"tables of up to about [\d,]+ rows") as raised:
            TablePlan.of(terms, 40_000, *columns)
        assert "sealed" in str(raised.value)


SIZES: dict[type[Message], str] = {
    Phases: "phases",
    ResidueShares: "answer",
    SharedVector: "vector",
    SharedProduct: "answer",
    Segments: "marks",
    CarryShares: "answer",
}


def longer(message: Message) -> Message:
    """The message with one entry more than is due."""
    name = SIZES[type(message)]
    inner = getattr(message, name)
    return replace(message, **{name: replace(inner, length=inner.length + 1)})


def of_another_turn(message: Message) -> Message:
    return replace(message, **{"turn" if hasattr(message, "turn") else "iteration": 77})


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
@pytest.mark.parametrize(("change", "words"), [(longer, "entries"), (of_another_turn, "77")])
def test_a_message_of_another_size_or_turn_is_refused_by_its_structure(kind, role, change, words):
    if role not in kind.senders:
        return
    alice, bob = programs(SPLITS["halves"], newton())
    if role == "alice":
        bob = spoilt(bob, kind, change)
    else:
        alice = spoilt(alice, kind, change)
    with pytest.raises(RemoteProtocolError, match=words):
        run_pair(alice, bob)


@pytest.mark.parametrize("rows", [1, 455, 39_073, 120_000, 1_000_000])
def test_scales_use_the_whole_ring_for_the_agreed_range(rows):
    scales = Scales.of_shared_table(newton(), rows)
    assert scales.score_bound == pytest.approx(64.0 + np.log(4000.0))
    assert 10 <= scales.feature_bits <= 16
    # A product is four times as far from its quarter of the ring as a score from its end.
    unit = scales.weight_bits + scales.shared_shift
    assert 2.0 ** (59 - 2 - unit) * scales.factor == pytest.approx(2 * scales.score_bound)
    assert scales.shared_unit / rows >= 2.0**16
