"""``hybrid``: training on a hidden batch is training on that batch, and says no more of it."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from taciturn.crypto import ClearScheme, EncryptedAnswer, PaillierScheme, Scheme
from taciturn.crypto.bfv import BfvScheme
from taciturn.engine import run_pair
from taciturn.errors import ConfigError, RemoteProtocolError
from taciturn.numerics import FixedPoint
from taciturn.privacy import (
    BatchDesign,
    BatchResponse,
    HiddenBatch,
    HiddenBatchGradient,
    Hybrid,
    Ledger,
    Released,
    draw_batch,
)
from taciturn.protocol import (
    PROTOCOL_VERSION,
    BatchShare,
    BobTrained,
    EncryptedResidues,
    GradientSeen,
    Hello,
    HiddenBatchOffer,
    HiddenBatchSeen,
    KeyOffer,
    MaskedGradient,
    Message,
    PartialScores,
    Progress,
    PublicBytes,
    RevealedGradient,
    RowNumbers,
    Trained,
    decode,
    kind_of,
    wire_form,
)
from taciturn.settings import Agreement
from tests.protocol.parties import (
    BOB,
    ByHand,
    Tables,
    Talk,
    agreement,
    alice_program,
    bob_program,
    centralised,
    rounding_tolerance,
    talk,
)

SPLITS = {
    "all-at-alice": Tables.make(rows=24, alice=4),
    "halves": Tables.make(rows=24, alice=2, bob=2),
    "intercept-only-at-bob": Tables.make(rows=24, alice=4, intercept=True),
    "halves-and-intercept": Tables.make(rows=24, alice=2, bob=2, intercept=True),
}
TERMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "l2": {"l2": 0.1},
    "l1-and-l2": {"l1": 0.02, "l2": 0.3},
    "inverse": {"schedule": "inverse", "decay": 0.3, "epochs": 3},
    "finer-grid": {"feature_bits": 24, "residue_bits": 30},
    "coarse-grid": {"feature_bits": 6, "residue_bits": 8},
    "larger-batch": {"batch_size": 5, "subset_size": 20},
    "all-rows-in-the-subset": {"subset_size": 24},
}
SCHEMES: dict[str, tuple[Scheme, dict[str, Any]]] = {
    "clear": (ClearScheme(), {}),
    "paillier": (
        PaillierScheme(key_bits=(512,)),
        {"scheme": "paillier-for-tests", "key_bits": 512},
    ),
    "bfv": (BfvScheme(), {"scheme": "bfv", "key_bits": 128}),
}


def hidden(**changes: Any) -> Agreement:
    base = {"mechanism": "hybrid", "epsilon": 1.0, "subset_size": 16, "batch_size": 3}
    return agreement(**{**base, **changes})


def design(terms: Agreement) -> BatchDesign:
    assert terms.epsilon is not None
    assert terms.subset_size is not None
    return BatchDesign.of(terms.batch_size, terms.epsilon, terms.subset_size)


def tolerance(tables: Tables, terms: Agreement) -> float:
    """The bound of the other conversation; a batch may hold more rows than it is divided by."""
    return rounding_tolerance(tables, terms) * max(1.0, design(terms).marked / terms.batch_size)


def draws(tables: Tables, terms: Agreement) -> list[HiddenBatch]:
    """What Bob draws, from his coins."""
    rows, columns = tables.labels.rows, len(tables.alice.columns)
    iterations = terms.epochs * math.ceil(rows / terms.batch_size)
    return [
        draw_batch(design(terms), columns, rows, BOB.fork(f"batch {at}"))
        for at in range(iterations)
    ]


# --- the model -----------------------------------------------------------------------------------


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.sampled(12)
def test_the_joint_model_is_centralised_sgd_on_the_true_batches(split, terms):
    """With L1 it also needs that no weight changes its sign in one run only: true for these."""
    tables, agreed = SPLITS[split], hidden(**TERMS[terms])
    session = talk(tables, agreed)
    expected = centralised(tables, agreed, session.batches)
    assert len(session.batches) == agreed.epochs * math.ceil(24 / agreed.batch_size)
    assert np.abs(session.weights - expected).max() <= tolerance(tables, agreed)
    assert np.abs(expected).max() > 2 * tolerance(tables, agreed)


@pytest.mark.parametrize("split", ["all-at-alice", "halves-and-intercept"])
@pytest.mark.parametrize("scheme", ["paillier", "bfv"])
def test_encryption_changes_no_bit_of_the_model(scheme, split):
    """Paillier with a key of 512 bits, which protects nothing; the arithmetic is the real one."""
    tables, (chosen, names) = SPLITS[split], SCHEMES[scheme]
    values = {"epochs": 1, "l2": 0.1}
    session = talk(tables, hidden(**values, **names), chosen)
    in_clear = talk(tables, hidden(**values))
    assert session.weights.tolist() == in_clear.weights.tolist()
    assert [rows.tolist() for rows in session.batches] == [
        rows.tolist() for rows in in_clear.batches
    ]
    agreed = hidden(**values)
    expected = centralised(tables, agreed, session.batches)
    assert np.abs(session.weights - expected).max() <= tolerance(tables, agreed)


def test_the_intercept_carries_no_penalty():
    tables = SPLITS["intercept-only-at-bob"]
    free, light = (talk(tables, hidden(l2=l2, epochs=3)) for l2 in (2.0, 0.0))
    assert abs(free.bob.weights[-1]) > 0.02
    assert np.abs(free.alice.weights).max() < 0.6 * np.abs(light.alice.weights).max()


# --- the batch -----------------------------------------------------------------------------------


def offers(session: Talk) -> list[HiddenBatchOffer]:
    return [message for message in session.said_by("bob") if isinstance(message, HiddenBatchOffer)]


def asked(offer: HiddenBatchOffer) -> list[int]:
    return [int(row) for row in offer.subset[offer.response.value == 1]]


def encoded(session: Talk) -> list[list[int]]:
    """What Bob encrypts, where the scheme is clear."""
    return [
        np.frombuffer(message.residues.data, dtype="<i8").tolist()
        for message in session.said_by("bob")
        if isinstance(message, EncryptedResidues)
    ]


def test_the_true_batch_is_what_was_marked_and_told_to_be():
    tables, agreed = SPLITS["halves"], hidden(epochs=3)
    session = talk(tables, agreed)
    drawn = draws(tables, agreed)
    for rows, draw in zip(session.batches, drawn, strict=True):
        assert rows.tolist() == draw.subset[draw.marks & draw.response].tolist()
        assert np.count_nonzero(draw.marks) == design(agreed).marked
    turned = [draw.subset[draw.marks & ~draw.response] for draw in drawn]
    assert sum(map(len, turned)) > 10
    for rows, lost in zip(session.batches, turned, strict=True):
        assert not np.isin(lost, rows).any()


def test_a_marked_row_that_was_turned_to_zero_is_not_trained_on():
    """Its label can be the other one and nothing that is computed in that iteration changes."""
    tables, agreed = SPLITS["halves-and-intercept"], hidden(epochs=1)
    first = draws(tables, agreed)[0]
    lost = first.subset[first.marks & ~first.response]
    assert len(lost)
    values = tables.labels.values.copy()
    values[lost] = 1 - values[lost]
    other = Tables(tables.alice, tables.bob, type(tables.labels).of(values), tables.free)
    one, two = (talk(world, agreed) for world in (tables, other))
    turn = 3 + 5  # three of the opening, then offer, scores, residues, answer, gradient
    assert one.frames[: turn + 1] == two.frames[: turn + 1]
    assert one.frames != two.frames


@pytest.mark.parametrize("split", SPLITS)
def test_every_row_off_the_true_batch_has_a_residue_of_exactly_zero(split):
    session = talk(SPLITS[split], hidden())
    for offer, numbers, rows in zip(
        offers(session), encoded(session), session.batches, strict=True
    ):
        true = np.isin(asked(offer), rows)
        assert len(numbers) == len(true)
        assert [bool(number) for number in numbers] == true.tolist()


def test_residues_are_scaled_so_that_alice_divides_by_the_agreed_size():
    """In the first iteration every residue is a half, times ``batch_size / k``."""
    tables, agreed = SPLITS["all-at-alice"], hidden(epochs=1)
    session = talk(tables, agreed)
    rows, numbers = session.batches[0], encoded(session)[0]
    signs = [1 if label else -1 for label in tables.labels.values[rows]]
    expected = [round(2**20 * sign * 0.5 * 3 / len(rows)) for sign in signs]
    assert [number for number in numbers if number] == expected


def test_an_empty_true_batch_works_and_shows_nothing():
    """At an epsilon next to 0 a marked row is kept with probability 1/2: of two, none by 1/4."""
    tables = SPLITS["halves-and-intercept"]
    agreed = hidden(batch_size=1, epsilon=1e-3, l2=0.1)
    session = talk(tables, agreed)
    sizes = [len(rows) for rows in session.batches]
    assert sizes.count(0) >= 3
    assert max(sizes) == 2
    for rows, numbers in zip(session.batches, encoded(session), strict=True):
        assert any(numbers) == bool(len(rows))
    assert {type(message) for message in session.said_by("bob")} == BOBS_WORDS
    expected = centralised(tables, agreed, session.batches)
    assert np.abs(session.weights - expected).max() <= tolerance(tables, agreed)


@pytest.mark.parametrize("scheme", ["paillier", "bfv"])
def test_an_empty_true_batch_works_under_encryption(scheme):
    tables, (chosen, names) = SPLITS["all-at-alice"], SCHEMES[scheme]
    values: dict[str, Any] = {"batch_size": 1, "epsilon": 1e-3, "epochs": 1}
    session = talk(tables, hidden(**values, **names), chosen)
    assert any(not len(rows) for rows in session.batches)
    assert session.weights.tolist() == talk(tables, hidden(**values)).weights.tolist()


def test_draws_that_are_too_short_are_made_anew_and_counted():
    """With 4 columns and 5.1 rows asked on average, many responses are too short."""
    tables, agreed = SPLITS["all-at-alice"], hidden(subset_size=12, epochs=4)
    session = talk(tables, agreed)
    redraws = [draw.redraws for draw in draws(tables, agreed)]
    assert session.bob.redraws == sum(redraws)
    assert np.count_nonzero(redraws) > 5
    assert all(sum(offer.response.value.tolist()) > 4 for offer in offers(session))


# --- what Alice sees -----------------------------------------------------------------------------

BOBS_WORDS = {Hello, KeyOffer, HiddenBatchOffer, EncryptedResidues, RevealedGradient}


def test_the_conversation_is_the_chart():
    session = talk(SPLITS["halves"], hidden(epochs=1, batch_size=5))
    said = [(who, kind_of(frame)) for who, frame in session.frames]
    turn = [
        ("bob", HiddenBatchOffer),
        ("alice", PartialScores),
        ("bob", EncryptedResidues),
        ("alice", MaskedGradient),
        ("bob", RevealedGradient),
    ]
    assert said == [("alice", Hello), ("bob", Hello), ("bob", KeyOffer), *turn * 5]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_frame_tells_how_many_rows_the_true_batch_has(scheme):
    """Every length in Bob's messages is that of the subset, of the ones or of the columns.

    And the size of an encrypted vector depends on the rows asked alone, while k varies.
    """
    chosen, names = SCHEMES[scheme]
    session = talk(SPLITS["all-at-alice"], hidden(epochs=2, **names), chosen)
    sizes: dict[int, set[int]] = {}
    ks: dict[int, set[int]] = {}
    turns = zip(
        offers(session),
        (frame for frame in session.sent_by("bob") if kind_of(frame) is EncryptedResidues),
        (message for message in session.said_by("bob") if isinstance(message, RevealedGradient)),
        session.batches,
        strict=True,
    )
    for offer, frame, gradient, rows in turns:
        vector = decode(frame)
        assert isinstance(vector, EncryptedResidues)
        ones = len(asked(offer))
        assert vector.residues.length == ones
        assert len(offer.subset) == len(offer.response.value) == 16
        assert len(gradient.gradient.value) == 4
        sizes.setdefault(ones, set()).add(len(frame))
        ks.setdefault(ones, set()).add(len(rows))
    assert all(len(lengths) == 1 for lengths in sizes.values())
    assert any(len(counts) > 1 for counts in ks.values())


def test_alice_reports_the_offer_and_the_gradient_of_the_rows_she_scored():
    tables, agreed = SPLITS["halves"], hidden()
    session = talk(tables, agreed)
    shown, gradients = session.seen(HiddenBatchSeen), session.seen(GradientSeen)
    assert len(shown) == len(gradients) == len(session.batches) == 16
    features = FixedPoint(agreed.feature_bits).rounded(tables.alice.values)
    for at, (offer, numbers) in enumerate(zip(offers(session), encoded(session), strict=True)):
        assert shown[at].subset.tolist() == offer.subset.tolist()
        assert shown[at].response.tolist() == (offer.response.value == 1).tolist()
        seen = gradients[at]
        assert (seen.iteration, seen.epoch, seen.largest) == (at, at // 8, 3.0)
        assert seen.rows.tolist() == asked(offer)
        assert seen.gradient.tolist() == (features[seen.rows].T @ np.array(numbers)).tolist()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("batch_size", [1, 2, 3, 4])
def test_a_lone_row_with_the_largest_residue_fits_the_capacity(batch_size):
    """``batch_size`` times a residue of 1: an untruthful Alice can bring that about."""
    agreed = hidden(subset_size=12, batch_size=batch_size, epochs=20 * batch_size)
    side = ByHand("bob", bob_program(TABLES, agreed))
    side.feed(hello("alice", terms=agreed))
    largest = 0
    while not side.driver.finished:
        offer = decode(side.frames[-1])
        assert isinstance(offer, HiddenBatchOffer)
        wrong = np.where(TABLES.labels.values[asked(offer)] == 1, -1e3, 1e3)
        side.feed(PartialScores(offer.iteration, wrong))
        sent = decode(side.frames[-1])
        assert isinstance(sent, EncryptedResidues)
        largest = max(largest, *np.abs(np.frombuffer(sent.residues.data, dtype="<i8")).tolist())
        side.feed(MaskedGradient(offer.iteration, EncryptedAnswer(bytes(16), 2)))
    assert largest == batch_size * 2**20


def test_bob_reports_the_true_rows_with_his_progress():
    steps = talk(SPLITS["halves"], hidden(epochs=1)).seen(Progress)
    assert [(step.done, step.total) for step in steps] == [(at, 8) for at in range(1, 9)]


# --- the ledger ----------------------------------------------------------------------------------


def test_the_response_is_charged_before_the_offer_and_the_gradient_before_it_is_revealed():
    tables, agreed = SPLITS["halves"], hidden(epochs=1)
    ledger, charged = Ledger(24, "test"), []

    def listen(_: str, frame: bytes) -> None:
        message = decode(frame)
        if isinstance(message, HiddenBatchOffer | RevealedGradient):
            stated = ledger.statement()
            charged.append(
                (
                    type(message).__name__,
                    stated.claimed_epsilon_per_release,
                    stated.label_epsilon_total,
                )
            )

    run_pair(alice_program(tables, agreed), bob_program(tables, agreed, ledger=ledger), tap=listen)
    assert charged[:2] == [("HiddenBatchOffer", 1.0, 0.0), ("RevealedGradient", 1.0, math.inf)]


def test_the_events_on_the_wire_are_the_response_and_the_gradient():
    session = talk(SPLITS["halves"], hidden(epochs=1))
    assert {offer.response.event for offer in offers(session)} == {BatchResponse(1.0)}
    replies = [reply for reply in session.said_by("bob") if isinstance(reply, RevealedGradient)]
    assert {reply.gradient.event for reply in replies} == {HiddenBatchGradient(1.0)}


def test_only_rows_of_a_true_batch_pay_for_gradients():
    session = talk(SPLITS["halves"], hidden(epochs=2))
    stated = session.ledger.statement()
    most = np.bincount(np.concatenate(session.batches), minlength=24).max()
    assert stated.releases_per_row == most
    assert math.isinf(stated.label_epsilon_total)
    assert "no protection" in stated.assumption


# --- a peer that does not keep to it -------------------------------------------------------------

ROWS = 12
TABLES = Tables.make(rows=ROWS, alice=2)
AGREED = hidden(subset_size=7, batch_size=2)


def hello(role: str, columns: int = 2, terms: Agreement = AGREED) -> Hello:
    digest = TABLES.alice.ids.digest()
    return wire_form(Hello(PROTOCOL_VERSION, role, terms.canonical(), ROWS, digest, 1, columns))


def offer_of(subset: list[int], bits: list[int], iteration: int = 0) -> HiddenBatchOffer:
    return HiddenBatchOffer(
        iteration,
        RowNumbers(np.array(subset, dtype=np.int64)),
        Released(np.array(bits, dtype=np.int64), BatchResponse(1.0)),
    )


GOOD = offer_of([0, 1, 2, 3, 5, 8, 11], [1, 0, 1, 0, 0, 1, 1])


def alice_after(*messages: Message) -> ByHand[Trained]:
    side = ByHand("alice", alice_program(TABLES, AGREED))
    for message in (hello("bob"), KeyOffer(PublicBytes(b"")), *messages):
        side.feed(message)
    return side


def test_alice_scores_the_rows_whose_bit_is_one():
    side = alice_after(GOOD)
    last = side.said[-1]
    assert isinstance(last, PartialScores)
    assert len(last.scores) == 4
    assert side.driver.expects == "EncryptedResidues"


@pytest.mark.parametrize(
    ("offer", "said"),
    [
        (offer_of([0, 1, 2], [1, 1, 1]), "subset has 3 rows and its response 3, where 7"),
        (offer_of(list(range(8)), [1] * 8), "subset has 8 rows and its response 8, where 7"),
        (offer_of(list(range(7)), [1] * 6), "subset has 7 rows and its response 6, where 7"),
        (offer_of(list(range(7)), [1] * 9), "subset has 7 rows and its response 9, where 7"),
        (offer_of([], []), "subset has 0 rows and its response 0, where 7"),
        (offer_of([0, 1, 2, 3, 4, 5, 12], [1] * 7), "names a row beyond the 12 there are"),
        (offer_of([0, 1, 2, 3, 4, 5, 2**32 - 1], [1] * 7), "names a row beyond the 12"),
        (offer_of(list(range(7)), [0] * 7), "not of zeros and ones, or has no one"),
        (offer_of(list(range(7)), [1, 0, 2, 0, 0, 0, 1]), "not of zeros and ones"),
        (offer_of(list(range(7)), [1, 0, -1, 0, 0, 0, 1]), "not of zeros and ones"),
        (offer_of(list(range(7)), [1, 0, 2**62, 0, 0, 0, 1]), "not of zeros and ones"),
    ],
    ids=[
        "short",
        "long",
        "fewer-bits",
        "more-bits",
        "empty",
        "row-beyond",
        "row-far-beyond",
        "no-one",
        "a-two",
        "negative",
        "huge",
    ],
)
def test_alice_refuses_an_offer_that_does_not_fit(offer, said):
    side = alice_after()
    with pytest.raises(RemoteProtocolError, match=said):
        side.feed(offer)
    assert not any(isinstance(message, PartialScores) for message in side.said)


@pytest.mark.parametrize("iteration", [-1, 1, 2**63 - 1])
def test_alice_refuses_an_offer_of_another_iteration(iteration):
    side = alice_after()
    with pytest.raises(
        RemoteProtocolError,
        match=f"HiddenBatchOffer is for iteration {iteration} where 0 was expected",
    ):
        side.feed(offer_of(GOOD.subset.tolist(), GOOD.response.value.tolist(), iteration))


@pytest.mark.parametrize(
    "message",
    [
        hello("bob"),
        BatchShare(PublicBytes(bytes(32))),
        KeyOffer(PublicBytes(b"")),
        PartialScores(0, np.zeros(4)),
        RevealedGradient(0, Released.unprotected((1, 2))),
    ],
    ids=lambda message: type(message).__name__,
)
def test_alice_refuses_every_message_but_the_offer(message):
    side = alice_after()
    assert side.driver.expects == "HiddenBatchOffer"
    name = type(message).__name__
    with pytest.raises(
        RemoteProtocolError, match=f"sent {name} where HiddenBatchOffer was expected"
    ):
        side.feed(message)


def bob_after(*messages: Message, terms: Agreement = AGREED) -> ByHand[BobTrained]:
    side = ByHand("bob", bob_program(TABLES, terms))
    for message in messages:
        side.feed(message)
    return side


def test_bob_takes_scores_of_the_asked_rows_only():
    side = bob_after(hello("alice"))
    offer = side.said[-1]
    assert isinstance(offer, HiddenBatchOffer)
    wrong = len(offer.subset)
    with pytest.raises(RemoteProtocolError, match=f"scored {wrong} rows where {len(asked(offer))}"):
        side.feed(PartialScores(0, np.zeros(wrong)))


# --- the paper's requirement ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "changes", "said"),
    [
        (4, {}, "hybrid needs d_A < L_RR, and 4 < 3.3 does not hold"),
        (1000, {}, "hybrid needs d_A < L_RR, and 1000 < 3.3 does not hold"),
        (2, {"subset_size": 6}, "hybrid needs q < 1/2, and 3 of 6 rows are marked"),
        (2, {"subset_size": 13}, "hybrid needs a subset of 13 rows, and there are 12"),
    ],
)
def test_bob_refuses_sizes_that_break_the_requirement_when_he_hears_alices_columns(
    columns, changes, said
):
    """Before a key is made or a row is named."""
    agreed = hidden(**{"subset_size": 7, "batch_size": 2, **changes})
    side = ByHand("bob", bob_program(TABLES, agreed))
    with pytest.raises(ConfigError, match=re.escape(said)) as raised:
        side.feed(hello("alice", columns, agreed))
    assert raised.value.setting in ("l_rr", "subset_size")
    assert raised.value.hint
    assert [type(message) for message in side.said] == [Hello]


@pytest.mark.parametrize("epsilon", [1e-20, 40.0])
def test_an_epsilon_without_a_coin_is_no_mechanism(epsilon):
    with pytest.raises(ConfigError, match="hybrid needs 1/2 < p < 1"):
        bob_program(TABLES, hidden(subset_size=7, batch_size=2, epsilon=epsilon))


def test_the_mechanism_returns_the_masked_gradient_as_it_is():
    method = Hybrid(BatchDesign(7, 3, 1.0))
    assert method.release((1, 2), BOB).value == (1, 2)
