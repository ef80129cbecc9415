"""``hybrid``: training on a hidden batch is training on that batch, and says no more of it.

What every conversation promises is in ``test_conversations.py``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from taciturn.crypto.base import EncryptedAnswer, Scheme
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.clear import ClearScheme
from taciturn.crypto.paillier import PaillierScheme
from taciturn.engine.pair import run_pair
from taciturn.errors import ConfigError, RemoteProtocolError
from taciturn.privacy.base import Released
from taciturn.privacy.batch_response import BatchDesign, HiddenBatch, draw_batch
from taciturn.privacy.events import BatchResponse
from taciturn.privacy.ledger import Ledger
from taciturn.protocol.codec import decode, kind_of
from taciturn.protocol.handshake import wire_form
from taciturn.protocol.messages import (
    EncryptedResidues,
    Hello,
    HiddenBatchOffer,
    KeyOffer,
    MaskedGradient,
    Message,
    PartialScores,
    PublicBytes,
    RevealedGradient,
    RowNumbers,
)
from taciturn.protocol.outcome import Trained
from taciturn.settings.agreement import Agreement
from taciturn.version import PROTOCOL_VERSION
from tests.expected import refused
from tests.protocol.parties import (
    BOB,
    ByHand,
    Tables,
    agreement,
    alice_program,
    bob_program,
    centralised,
    rounding_tolerance,
)
from tests.protocol.stars import StarTalk, talk

SPLITS = {
    "all-at-alice": Tables.make(rows=24, alice=4),
    "halves": Tables.make(rows=24, alice=2, bob=2),
    "intercept-only-at-bob": Tables.make(rows=24, alice=4, intercept=True),
    "halves-and-intercept": Tables.make(rows=24, alice=2, bob=2, intercept=True),
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
    return BatchDesign.for_batch(terms.sgd.batch_size, terms.epsilon, terms.subset_size)


def tolerance(tables: Tables, terms: Agreement) -> float:
    """The bound of the other conversation; a batch may hold more rows than it is divided by."""
    return rounding_tolerance(tables, terms) * max(1.0, design(terms).marked / terms.sgd.batch_size)


def draws(tables: Tables, terms: Agreement) -> list[HiddenBatch]:
    """What Bob draws, from his coins."""
    rows, columns = tables.labels.rows, len(tables.alice.columns)
    iterations = terms.sgd.epochs * math.ceil(rows / terms.sgd.batch_size)
    return [
        draw_batch(design(terms), columns, rows, BOB.fork(f"batch {at}"))
        for at in range(iterations)
    ]


# --- the batch -----------------------------------------------------------------------------------


def offers(session: StarTalk) -> list[HiddenBatchOffer]:
    return [message for message in session.said_by("bob") if isinstance(message, HiddenBatchOffer)]


def asked(offer: HiddenBatchOffer) -> list[int]:
    return [int(row) for row in offer.subset[offer.response.value == 1]]


def encoded(session: StarTalk) -> list[list[int]]:
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
    other = Tables(tables.alice, tables.bob, type(tables.labels).from_data(values), tables.free)
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
        (frame for frame in session.sent("bob") if kind_of(frame) is EncryptedResidues),
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


def test_only_rows_of_a_true_batch_pay_for_gradients():
    session = talk(SPLITS["halves"], hidden(epochs=2))
    stated = session.ledger.statement()
    most = np.bincount(np.concatenate(session.batches), minlength=24).max()
    assert stated.releases_per_row == most
    assert math.isinf(stated.label_epsilon_total)


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


def alice_after(*messages: Message) -> ByHand[Trained]:
    side = ByHand("alice", alice_program(TABLES, AGREED))
    for message in (hello("bob"), KeyOffer(PublicBytes(b"")), *messages):
        side.feed(message)
    return side


ALL = list(range(7))


@pytest.mark.parametrize(
    "offer",
    [
        offer_of(list(range(8)), [1] * 8),
        offer_of([0, 1, 2, 3, 4, 5, 12], [1] * 7),
        offer_of([0, 1, 2, 3, 4, 5, 2**32 - 1], [1] * 7),
        offer_of(ALL, [0] * 7),
        offer_of(ALL, [1, 0, 2, 0, 0, 0, 1]),
        offer_of(ALL, [1, 0, -1, 0, 0, 0, 1]),
        offer_of(ALL, [1, 0, 2**62, 0, 0, 0, 1]),
    ],
    ids=["long", "row-beyond", "row-far-beyond", "no-one", "a-two", "negative", "huge"],
)
def test_alice_refuses_an_offer_that_does_not_fit(offer):
    side = alice_after()
    with refused(RemoteProtocolError):
        side.feed(offer)
    assert not any(isinstance(message, PartialScores) for message in side.said)


def test_alice_refuses_to_score_fewer_rows_than_the_agreed_minimum():
    agreed = hidden(subset_size=7, batch_size=2, minimum_batch=2)
    for bits, accepted in (([0, 1, 0, 0, 0, 0, 0], False), ([0, 1, 0, 0, 0, 0, 1], True)):
        side = ByHand("alice", alice_program(TABLES, agreed))
        side.feed(hello("bob", terms=agreed))
        side.feed(KeyOffer(PublicBytes(b"")))
        if accepted:
            side.feed(offer_of(ALL, bits))
        else:
            with refused(RemoteProtocolError):
                side.feed(offer_of(ALL, bits))
        assert isinstance(side.said[-1], PartialScores) == accepted


# --- the paper's requirement ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "changes", "setting"),
    [
        (4, {}, "l_rr"),
        (1000, {}, "l_rr"),
        (2, {"subset_size": 6}, "l_rr"),
        (2, {"subset_size": 13}, "subset_size"),
    ],
)
def test_bob_refuses_sizes_that_break_the_requirement_when_he_hears_alices_columns(
    columns, changes, setting
):
    """Before a key is made or a row is named."""
    agreed = hidden(**{"subset_size": 7, "batch_size": 2, **changes})
    side = ByHand("bob", bob_program(TABLES, agreed))
    with refused(ConfigError, setting=setting) as raised:
        side.feed(hello("alice", columns, agreed))
    assert raised.value.hint
    assert [type(message) for message in side.said] == [Hello]
