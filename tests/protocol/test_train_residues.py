"""Training with noisy residues in clear: what both sides compute from them, and when it ends."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from taciturn.arrays import FloatArray
from taciturn.crypto import EncryptedVector
from taciturn.data import LabelTable
from taciturn.engine import run_pair
from taciturn.errors import PrivacyError, RemoteProtocolError, RowOrderError
from taciturn.privacy import (
    Additive,
    AdditiveNoise,
    LaplaceDraws,
    Ledger,
    Released,
    mechanism,
    price,
)
from taciturn.protocol import (
    MESSAGES,
    PROTOCOL_VERSION,
    BatchCommitment,
    BatchShare,
    BobTrained,
    BudgetSpent,
    EncryptedResidues,
    Hello,
    KeyOffer,
    Message,
    NoisyResidues,
    PartialScores,
    Progress,
    PublicBytes,
    RealResidues,
    ResidueReply,
    ResiduesSeen,
    RevealedGradient,
    Role,
    StopReason,
    Trained,
    commitment,
    draw_share,
    kind_of,
    wire_form,
)
from taciturn.protocol.bob import train
from taciturn.rng import KeyedEntropy
from taciturn.settings import Agreement
from tests.modules import module_of
from tests.protocol.parties import (
    ALICE,
    ByHand,
    Tables,
    Talk,
    agreement,
    alice_program,
    bob_program,
    centralised,
    plan_of,
    same,
    talk,
)

KEYED = KeyedEntropy.from_seed(303)

SPLITS = {
    "all-at-alice": Tables.make(alice=4),
    "halves": Tables.make(alice=2, bob=2),
    "intercept-only-at-bob": Tables.make(alice=4, intercept=True),
    "halves-and-intercept": Tables.make(alice=2, bob=2, intercept=True),
}
PENALTIES: dict[str, dict[str, Any]] = {
    "plain": {},
    "l2": {"l2": 0.1},
    "l1": {"l1": 0.05},
    "l1-and-l2": {"l1": 0.02, "l2": 0.3},
}
MECHANISMS: dict[str, dict[str, Any]] = {
    "add": {"mechanism": "add"},
    **{
        f"mult-{variant}": {"mechanism": "mult", "variant": variant, "b1": 0.1, "b2": 2.0}
        for variant in ("printed", "one-sided", "mean-one")
    },
}


def noisy(**changes: Any) -> Agreement:
    base = {"mechanism": "add", "epsilon": 2.0, "noise": "discrete", "bob_update": "released"}
    return agreement(**{**base, **changes})


def released(session: Talk, terms: Agreement) -> list[FloatArray]:
    """The residues that crossed, at their real scale."""
    replies = [reply for reply in session.said_by("bob") if isinstance(reply, ResidueReply)]
    residues: list[FloatArray] = []
    for reply in replies:
        if isinstance(reply, NoisyResidues):
            residues.append(reply.residues.value / 2**terms.residue_bits)
        elif isinstance(reply, RealResidues):
            residues.append(reply.residues.value)
    return residues


def replayed(tables: Tables, terms: Agreement, releases: list[FloatArray]) -> FloatArray:
    """Both parties' weights, from the released residues in the open: the oracle."""
    values, weights = tables.joined, np.zeros(tables.joined.shape[1])
    his = np.arange(len(weights)) >= len(tables.alice.columns)
    punished = np.arange(len(weights)) < len(weights) - tables.free
    for batch, residues in zip(plan_of(tables, terms), releases, strict=False):
        used = residues
        slope = terms.l2 * weights + terms.l1 * np.sign(weights)
        step = punished * slope - values[batch.rows].T @ used / len(used)
        if terms.bob_update == "true":
            hers = values[batch.rows][:, ~his] @ weights[~his]
            unit = 2.0**-terms.residue_bits
            scores = np.rint(hers / unit) * unit + values[batch.rows][:, his] @ weights[his]
            true = tables.labels.values[batch.rows] - 1 / (1 + np.exp(-scores))
            exact = punished * slope - values[batch.rows].T @ true / len(true)
            step = np.where(his, exact, step)
        weights = weights - terms.learning_rate * step
    return weights


@pytest.mark.parametrize("noise", ["discrete", "continuous"])
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("split", SPLITS)
def test_both_sides_learn_what_the_released_residues_say(split, name, noise):
    tables, agreed = SPLITS[split], noisy(**MECHANISMS[name], noise=noise)
    session = talk(tables, agreed)
    releases = released(session, agreed)
    assert len(releases) == plan_of(tables, agreed).iterations
    np.testing.assert_allclose(
        session.weights, replayed(tables, agreed, releases), rtol=1e-11, atol=1e-13
    )


@pytest.mark.parametrize("update", ["released", "true"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("split", ["halves-and-intercept", "intercept-only-at-bob"])
def test_penalties_and_bobs_own_update_are_as_agreed(split, penalty, update):
    tables, agreed = SPLITS[split], noisy(**PENALTIES[penalty], bob_update=update)
    session = talk(tables, agreed)
    np.testing.assert_allclose(
        session.weights,
        replayed(tables, agreed, released(session, agreed)),
        rtol=1e-11,
        atol=1e-13,
    )


@pytest.mark.parametrize("noise", ["discrete", "continuous"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_what_is_released_is_not_the_true_residue(name, noise):
    agreed = noisy(**MECHANISMS[name], noise=noise)
    (first, *_) = released(talk(SPLITS["halves"], agreed), agreed)
    assert not np.isin(np.abs(first), 0.5).any()


# --- without noise it is centralised SGD ---------------------------------------------------------


class NoNoise:
    """A stock whose draws are all zero."""

    def __init__(self, draw: object, entropy: object, batch_size: int) -> None:
        pass

    def take(self, iteration: int, count: int) -> LaplaceDraws:
        return LaplaceDraws(np.zeros(count, np.uint64), np.zeros(count, np.uint64))


def grid_tolerance(tables: Tables, terms: Agreement) -> float:
    """How far rounding residues to their grid can move a weight, under a step that contracts.

    Each released residue is within ``2^-(bits+1)`` of the true one of the scores as Bob has them,
    which is within ``2^-(bits+3)`` of the exact scores' (the sigmoid's slope is at most 1/4), so
    each column's gradient is within the sum times ``max|x|``; steps do not expand distances, so the
    errors only add up.
    """
    steepest = float(np.square(tables.joined).sum(axis=1).max()) / 4 + terms.l2
    assert terms.learning_rate * steepest <= 2
    steps = plan_of(tables, terms).iterations * terms.learning_rate
    error = 1.25 * 2.0 ** -(terms.residue_bits + 1) * np.abs(tables.joined).max()
    return float(steps * math.sqrt(tables.joined.shape[1]) * error + 1e-13)


@pytest.mark.parametrize("bits", [8, 20, 40])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("split", SPLITS)
def test_add_without_noise_is_centralised_sgd_up_to_the_grid(monkeypatch, split, penalty, bits):
    """With L1 it also needs that no weight changes its sign in one run only: true for these."""
    monkeypatch.setattr(module_of(train), "Stock", NoNoise)
    tables = SPLITS[split]
    agreed = noisy(**PENALTIES[penalty], residue_bits=bits)
    expected, tolerance = centralised(tables, agreed), grid_tolerance(tables, agreed)
    assert np.abs(talk(tables, agreed).weights - expected).max() <= tolerance
    assert np.abs(expected).max() > 2 * tolerance


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("noise", ["discrete", "continuous"])
def test_add_with_next_to_no_noise_is_centralised_sgd(split, noise):
    """At epsilon 1e8 a discrete draw is not zero with probability exp(-47), and a continuous one
    beyond 1e-6 with exp(-50).
    """
    tables, agreed = SPLITS[split], noisy(epsilon=1e8, noise=noise)
    expected = centralised(tables, agreed)
    assert np.abs(talk(tables, agreed).weights - expected).max() < 1e-5


def test_mean_one_without_noise_and_with_wide_clips_is_centralised_sgd(monkeypatch):
    monkeypatch.setattr(module_of(train), "Stock", NoNoise)
    tables = SPLITS["halves-and-intercept"]
    agreed = noisy(mechanism="mult", variant="mean-one", b1=2.0**-20, b2=1.0)
    expected = centralised(tables, agreed)
    assert np.abs(talk(tables, agreed).weights - expected).max() <= grid_tolerance(tables, agreed)


def flipped(tables: Tables, rows: Any = slice(None)) -> Tables:
    """The same tables with the labels of some rows turned over."""
    values = tables.labels.values.copy()
    values[rows] = 1 - values[rows]
    return replace(tables, labels=LabelTable.of(values))


@pytest.mark.parametrize("bits", [8, 20, 40])
def test_a_label_moves_its_integer_by_exactly_one_unit_at_every_score(monkeypatch, bits):
    """Rounding ``y - f`` whole could move it by one step more, which the noise does not cover."""
    monkeypatch.setattr(module_of(train), "Stock", NoNoise)
    agreed = noisy(batch_size=18, epochs=1, residue_bits=bits)
    tables = SPLITS["all-at-alice"]
    scores = 8.0 * KEYED.uniform((18,)) - 4.0
    replies = []
    for world in (tables, flipped(tables)):
        side = ByHand("bob", bob_program(world, agreed))
        side.feed(hello("alice", tables, agreed))
        side.feed(BatchShare(draw_share(ALICE)))
        side.feed(PartialScores(0, scores))
        reply = side.said[-1]
        assert isinstance(reply, NoisyResidues)
        replies.append(reply.residues.value)
    labels = tables.labels.values[next(iter(plan_of(tables, agreed))).rows]
    assert (replies[0] - replies[1]).tolist() == [(2 * int(y) - 1) << bits for y in labels]


# --- who says what -------------------------------------------------------------------------------


def hello(role: Role, tables: Tables, terms: Agreement) -> Hello:
    rows, digest = tables.labels.rows, tables.alice.ids.digest()
    return wire_form(Hello(PROTOCOL_VERSION, role, terms.canonical(), rows, digest, 0, 4))


@pytest.mark.parametrize(
    ("noise", "reply"), [("discrete", NoisyResidues), ("continuous", RealResidues)]
)
def test_the_conversation_is_the_chart(noise, reply):
    session = talk(SPLITS["halves"], noisy(epochs=1, batch_size=9, noise=noise))
    said = [(who, kind_of(frame)) for who, frame in session.frames]
    turn = [("alice", PartialScores), ("bob", reply)]
    opening = [
        ("alice", Hello),
        ("bob", Hello),
        ("bob", BatchCommitment),
        ("alice", BatchShare),
        ("bob", BatchShare),
    ]
    assert said == [*opening, *turn, *turn]


@pytest.mark.parametrize("name", MECHANISMS)
def test_alice_reports_what_she_was_told_and_under_which_event(name):
    tables, agreed = SPLITS["halves"], noisy(**MECHANISMS[name])
    session = talk(tables, agreed)
    seen, plan = session.seen(ResiduesSeen), list(plan_of(tables, agreed))
    assert [(release.iteration, release.epoch, release.rows.tolist()) for release in seen] == [
        (batch.iteration, batch.epoch, batch.rows.tolist()) for batch in plan
    ]
    releases = released(session, agreed)
    assert all(same(release.residues, releases[at]) for at, release in enumerate(seen))
    assert {release.event for release in seen} == {mechanism(agreed).event}
    assert seen[0].weights.tolist() == [0.0, 0.0]


def test_bob_reports_his_progress_with_the_rows():
    tables, agreed = SPLITS["all-at-alice"], noisy()
    steps = talk(tables, agreed).seen(Progress)
    assert [(step.done, step.total) for step in steps] == [(at, 10) for at in range(1, 11)]
    batches = [batch.rows.tolist() for batch in plan_of(tables, agreed)]
    assert [step.rows.tolist() for step in steps if step.rows is not None] == batches


def test_the_ledger_is_charged_before_residues_are_sent():
    tables, agreed = SPLITS["all-at-alice"], noisy(batch_size=18, epochs=3)
    ledger, charged = Ledger(18, "test"), []

    def listen(_: str, frame: bytes) -> None:
        if kind_of(frame) is NoisyResidues:
            charged.append(ledger.statement().releases_per_row)

    run_pair(alice_program(tables, agreed), bob_program(tables, agreed, ledger=ledger), tap=listen)
    assert charged == [1, 2, 3]


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_row_pays_once_per_epoch(name):
    agreed = noisy(**MECHANISMS[name], epochs=3)
    stated = talk(SPLITS["halves"], agreed).ledger.statement()
    per_release = price(mechanism(agreed).event).label
    assert stated.releases_per_row == 3
    assert stated.label_epsilon_total == pytest.approx(3 * per_release)


# --- the budget ----------------------------------------------------------------------------------


@pytest.mark.parametrize("epochs", [1, 2, 4])
@pytest.mark.parametrize("noise", ["discrete", "continuous"])
@pytest.mark.parametrize("split", ["all-at-alice", "halves-and-intercept"])
def test_the_training_stops_before_the_release_that_would_exceed_the_budget(split, noise, epochs):
    """A release at epsilon 2 costs a label 1; a budget of half an epoch more pays nothing more."""
    tables = SPLITS[split]
    session = talk(tables, noisy(epochs=6, noise=noise), budget=epochs + 0.5)
    paid = talk(tables, noisy(epochs=epochs, noise=noise))
    releases = 5 * epochs
    kinds = [type(message) for message in session.said_by("bob")]
    reply = NoisyResidues if noise == "discrete" else RealResidues
    assert kinds == [Hello, BatchCommitment, BatchShare, *[reply] * releases, BudgetSpent]
    assert session.said_by("bob")[-1] == BudgetSpent(releases)
    assert [type(message) for message in session.said_by("alice")] == [
        Hello,
        BatchShare,
        *[PartialScores] * (releases + 1),
    ]
    assert session.weights.tolist() == paid.weights.tolist()
    assert (session.bob.iterations, session.bob.stopped) == (releases, StopReason.BUDGET)
    # Alice knows that Bob ended it, and when.
    assert (session.alice.iterations, session.alice.stopped) == (releases, StopReason.PEER)
    assert len(session.batches) == releases
    stated = session.ledger.statement()
    assert (stated.releases_per_row, stated.label_epsilon_total) == (epochs, float(epochs))


def test_a_budget_that_pays_exactly_is_spent_to_the_end():
    tables = SPLITS["halves"]
    whole = talk(tables, noisy(epochs=3), budget=3.0)
    assert [(end.iterations, end.stopped) for end in (whole.alice, whole.bob)] == [(15, None)] * 2
    assert whole.ledger.statement().label_epsilon_total == 3.0
    assert whole.weights.tolist() == talk(tables, noisy(epochs=3)).weights.tolist()


def test_rounding_in_the_last_bit_does_not_cost_a_release():
    """Three times 0.1 is above 0.3 in floating point."""
    session = talk(SPLITS["halves"], noisy(epsilon=0.2, epochs=4), budget=0.3)
    assert session.ledger.statement().releases_per_row == 3


def test_where_the_budget_pays_for_nothing_nothing_is_released():
    session = talk(SPLITS["halves-and-intercept"], noisy(), budget=0.5)
    assert [type(message) for message in session.said_by("bob")] == [
        Hello,
        BatchCommitment,
        BatchShare,
        BudgetSpent,
    ]
    assert session.weights.tolist() == [0.0] * 5
    assert session.ledger.statement().label_epsilon_total == 0.0
    assert session.seen(Progress) == []


def test_the_budgets_end_depends_on_no_label():
    """The only message whose time might tell something comes at the same iteration."""
    tables, agreed = SPLITS["halves-and-intercept"], noisy(epochs=6)
    ends = [
        talk(world, agreed, budget=2.5).said_by("bob")[-1] for world in (tables, flipped(tables))
    ]
    assert ends == [BudgetSpent(10), BudgetSpent(10)]


# --- a peer that does not keep to it -------------------------------------------------------------

ROWS = 6
TABLES = Tables.make(rows=ROWS, alice=3)
AGREED = noisy(batch_size=4, epochs=1)  # batches of 4 and 2 rows
SHARE = BatchShare(PublicBytes(bytes(32)))
SEED = (BatchCommitment(commitment(bytes(32))), SHARE)
EVENT = AdditiveNoise(2.0)


def residues_of(count: int, iteration: int = 0) -> NoisyResidues:
    return NoisyResidues(iteration, Released(np.arange(count, dtype=np.int64), EVENT))


def reals_of(count: int, iteration: int = 0) -> RealResidues:
    return RealResidues(iteration, Released(np.zeros(count), EVENT))


def alice_after(*messages: Message, terms: Agreement = AGREED) -> ByHand[Trained]:
    side = ByHand("alice", alice_program(TABLES, terms))
    for message in (hello("bob", TABLES, terms), *messages):
        side.feed(message)
    return side


def test_alice_goes_on_with_a_bob_who_keeps_to_it():
    side = alice_after(*SEED, residues_of(4), residues_of(2, 1))
    assert side.driver.finished
    sizes = [len(message.scores) for message in side.said if isinstance(message, PartialScores)]
    assert sizes == [4, 2]


@pytest.mark.parametrize("turn", [0, 1])
def test_alice_ends_with_what_she_has_where_the_budget_is_spent(turn):
    before = [residues_of(4)][:turn]
    side = alice_after(*SEED, *before)
    side.feed(BudgetSpent(turn))
    assert side.driver.finished
    assert np.any(side.driver.result.weights) == bool(turn)


@pytest.mark.parametrize(
    "message",
    [
        hello("bob", TABLES, AGREED),
        KeyOffer(PublicBytes(b"")),
        SHARE,
        PartialScores(0, np.zeros(4)),
        EncryptedResidues(0, EncryptedVector(bytes(32), 4)),
        RevealedGradient(0, Released.unprotected((1, 2, 3))),
    ],
    ids=lambda message: type(message).__name__,
)
def test_alice_refuses_every_message_that_is_no_reply(message):
    side = alice_after(*SEED)
    assert side.driver.expects == "ResidueReply"
    name = type(message).__name__
    with pytest.raises(RemoteProtocolError, match=f"sent {name} where ResidueReply was expected"):
        side.feed(message)


def test_the_replies_are_those_three():
    replies = {kind for kind in MESSAGES if issubclass(kind, ResidueReply)}
    assert replies == {NoisyResidues, RealResidues, BudgetSpent}


@pytest.mark.parametrize("message", [residues_of(4), KeyOffer(PublicBytes(b""))])
def test_alice_refuses_everything_but_the_seed_before_the_seed(message):
    side = alice_after()
    with pytest.raises(RemoteProtocolError, match="where BatchCommitment was expected"):
        side.feed(message)


@pytest.mark.parametrize("length", [0, 31, 33])
def test_alice_refuses_a_batch_seed_of_another_length(length):
    side = alice_after()
    with pytest.raises(RemoteProtocolError, match=f"seed commitment has {length} bytes"):
        side.feed(BatchCommitment(PublicBytes(bytes(length))))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 1000])
@pytest.mark.parametrize("noise", ["discrete", "continuous"])
def test_alice_refuses_another_number_of_residues(noise, count):
    """Two would fit the second, short batch, not this one."""
    side = alice_after(*SEED, terms=noisy(batch_size=4, epochs=1, noise=noise))
    message = residues_of(count) if noise == "discrete" else reals_of(count)
    with pytest.raises(
        RemoteProtocolError, match=f"released {count} residues where 4 are expected"
    ):
        side.feed(message)


@pytest.mark.parametrize("iteration", [-1, 1, 2**63 - 1])
@pytest.mark.parametrize("kind", [residues_of, reals_of])
def test_alice_refuses_residues_of_another_iteration(kind, iteration):
    message = kind(4, iteration)
    name = type(message).__name__
    with pytest.raises(
        RemoteProtocolError, match=f"{name} is for iteration {iteration} where 0 was expected"
    ):
        alice_after(*SEED).feed(message)


def test_alice_refuses_an_end_of_the_budget_at_another_iteration():
    with pytest.raises(
        RemoteProtocolError, match="BudgetSpent is for iteration 5 where 0 was expected"
    ):
        alice_after(*SEED).feed(BudgetSpent(5))


@pytest.mark.parametrize(
    ("agreed", "message", "sent"),
    [("discrete", reals_of(4), "continuous"), ("continuous", residues_of(4), "discrete")],
)
def test_alice_refuses_noise_of_another_kind_than_agreed(agreed, message, sent):
    side = alice_after(*SEED, terms=noisy(batch_size=4, epochs=1, noise=agreed))
    with pytest.raises(RemoteProtocolError, match=f"noise is {sent} where {agreed} is agreed"):
        side.feed(message)


def bob_after(*messages: Message, ledger: Ledger | None = None) -> ByHand[BobTrained]:
    side = ByHand("bob", bob_program(TABLES, AGREED, ledger=ledger))
    for message in (hello("alice", TABLES, AGREED), SHARE, *messages):
        side.feed(message)
    return side


@pytest.mark.parametrize("rows", [0, 2, 5])
def test_bob_refuses_another_number_of_scores_and_charges_nothing(rows):
    ledger = Ledger(ROWS, "test")
    side = bob_after(ledger=ledger)
    with pytest.raises(RemoteProtocolError, match=f"scored {rows} rows where 4 are expected"):
        side.feed(PartialScores(0, np.zeros(rows)))
    assert ledger.statement().releases_per_row == 0
    assert not any(isinstance(message, ResidueReply) for message in side.said)


@pytest.mark.parametrize("message", [residues_of(4), BudgetSpent(0), SEED[0]])
def test_bob_refuses_what_is_his_own_to_say(message):
    with pytest.raises(RemoteProtocolError, match="where PartialScores was expected"):
        bob_after().feed(message)


@pytest.mark.parametrize("scale", [1e300, -1e300])
def test_bob_survives_the_largest_scores(monkeypatch, scale):
    monkeypatch.setattr(module_of(train), "Stock", NoNoise)
    side = bob_after(PartialScores(0, np.full(4, scale)))
    reply = side.said[-1]
    assert isinstance(reply, NoisyResidues)
    assert set(np.abs(reply.residues.value).tolist()) <= {0, 2**20}


def test_bob_refuses_labels_of_other_rows():
    turned = replace(TABLES, labels=TABLES.labels.take(np.arange(ROWS)[::-1]))
    with pytest.raises(RowOrderError):
        ByHand("bob", bob_program(turned, AGREED))


class Understated(Additive):
    """Releases with another event than the one that is charged."""

    def release(self, residues, draws):
        return replace(super().release(residues, draws), event=AdditiveNoise(0.1))


def test_what_is_not_what_was_charged_is_not_sent():
    tables, agreed = Tables.make(rows=12, alice=2), noisy()
    method = Understated(AdditiveNoise(1.0), agreed.residue_bits)
    with pytest.raises(PrivacyError, match="add releases additive-noise"):
        talk(tables, agreed, mechanism=method)
