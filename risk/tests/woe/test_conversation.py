"""Weight of evidence between two sides: exact counts for Bob, and nothing for Alice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.crypto.base import EncryptedAnswer, EncryptedVector
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.clear import ClearScheme
from taciturn.crypto.paillier import PaillierScheme
from taciturn.crypto.paillier import PaillierSecretKey as PaillierSecret
from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.engine.driver import Tap
from taciturn.engine.pair import run_pair
from taciturn.engine.transcript import Recorder, replay
from taciturn.errors import AgreementError, ConfigError, RemoteProtocolError
from taciturn.privacy.events import CiphertextsOnly
from taciturn.privacy.ledger import Ledger
from taciturn.protocol.codec import decode, kind_of
from taciturn.protocol.messages import Hello, KeyOffer, Message, Role
from taciturn.rng import KeyedEntropy
from taciturn_risk.woe.alice import DisclosedColumn, FeatureInputs, hidden
from taciturn_risk.woe.alice import answer as alice_answer
from taciturn_risk.woe.bins import Bins
from taciturn_risk.woe.bob import LabelInputs, ask
from taciturn_risk.woe.messages import BinnedColumn, BinSums, SealedLabels
from taciturn_risk.woe.terms import BinsDue, Counts, SizedColumn, WoeTerms
from tests.expected import refused
from tests.modules import module_of
from tests.protocol.hostile import altered, only
from tests.protocol.parties import ByHand

CLEAR = WoeTerms.for_scheme(ClearScheme(), None)
# Small keys hide nothing, and count the same.
PAILLIER = WoeTerms.for_scheme(PaillierScheme((512,)), 512)
HERS, HIS = KeyedEntropy.from_seed(5), KeyedEntropy.from_seed(6)


def bins(name: str, codes: Any, count: int | None = None) -> Bins:
    count = count or int(max(codes)) + 1
    labels = tuple(f"{name} {number}" for number in range(count))
    return Bins(name, labels, np.array(codes, dtype=np.int64), ordered=True)


def sides(
    columns: Sequence[Bins], labels: list[int], terms: WoeTerms = CLEAR, *, names: bool = True
) -> tuple[FeatureInputs, LabelInputs]:
    ids = RowIds.numbered(len(labels))
    hers = FeatureInputs(ids, tuple(columns), terms, HERS, names)
    truth = LabelTable(ids, np.array(labels, dtype=np.int8))
    his = LabelInputs(truth, terms, Ledger(len(labels), "tests"), HIS)
    return hers, his


def counted(
    columns: Sequence[Bins],
    labels: list[int],
    terms: WoeTerms = CLEAR,
    *,
    names: bool = True,
    tap: Tap | None = None,
) -> tuple[tuple[DisclosedColumn, ...], Counts]:
    hers, his = sides(columns, labels, terms, names=names)
    said, counts = run_pair(alice_answer(hers), ask(his), tap=tap)
    counts.require_possible()
    assert his.ledger.statement().label_epsilon_total == 0
    assert his.ledger.history(0) == {CiphertextsOnly(): 1}
    return said, counts


def oracle(column: Bins, labels: list[int]) -> list[int]:
    marked = np.array(labels) == 1
    counts: list[int] = np.bincount(column.codes[marked], minlength=len(column.labels)).tolist()
    return counts


TABLES = st.integers(2, 40).flatmap(
    lambda rows: st.tuples(
        st.lists(
            st.lists(st.integers(0, 3), min_size=rows, max_size=rows).filter(
                lambda codes: set(codes) == set(range(max(codes) + 1)) and max(codes) > 0
            ),
            min_size=1,
            max_size=3,
        ),
        st.lists(st.integers(0, 1), min_size=rows, max_size=rows),
    )
)


@given(TABLES, st.booleans())
def test_bob_gets_the_counts_of_the_joined_table_and_no_other(table, names):
    codes, labels = table
    columns = [bins(f"c{number}", one) for number, one in enumerate(codes)]
    _, counts = counted(columns, labels, names=names)
    by_hand = [sorted(zip(c.rows.tolist(), oracle(c, labels), strict=True)) for c in columns]
    received = [
        sorted(zip(one.column.rows.tolist(), one.ones.tolist(), strict=True))
        for one in counts.columns
    ]
    if names:
        assert received == by_hand
        assert [one.ones.tolist() for one in counts.columns] == [
            oracle(column, labels) for column in columns
        ]
    else:
        assert sorted(received) == sorted(by_hand)
    assert counts.total == sum(labels)


def many(rows: int = 700, seed: int = 1) -> tuple[list[Bins], list[int]]:
    rng = np.random.default_rng(seed)
    columns = [bins(f"c{number}", rng.integers(0, 6, rows), 6) for number in range(4)]
    return columns, (rng.random(rows) < 0.3).astype(int).tolist()


@pytest.mark.parametrize(
    ("terms", "rows", "kind", "parts"),
    [
        (WoeTerms.for_scheme(BfvScheme(), None), 700, SealedLabels, 1),
        (WoeTerms.for_scheme(ClearScheme(part_tiles=1), None), 9000, SealedLabels, 5),
        # Each part has an answer; none of them alone is that part's counts.
        (PAILLIER, 40, BinSums, 3),
    ],
    ids=["bfv", "labels in parts", "answers in parts"],
)
def test_encryption_and_parts_of_rows_count_the_same(monkeypatch, terms, rows, kind, parts):
    monkeypatch.setattr(module_of(WoeTerms), "SEALED_CHUNK_ROWS", 16)
    columns, labels = many(rows)
    sent: list[type[Message]] = []
    _, counts = counted(columns, labels, terms, tap=lambda _, frame: sent.append(kind_of(frame)))
    assert sent.count(kind) == parts
    for column, one in zip(columns, counts.columns, strict=True):
        assert one.ones.tolist() == oracle(column, labels)


@pytest.mark.parametrize("part", [0, 1, 2])
def test_what_one_part_decrypts_to_is_uniform_and_no_count(part, monkeypatch):
    monkeypatch.setattr(module_of(WoeTerms), "SEALED_CHUNK_ROWS", 16)
    columns, labels = many(rows=40)
    hers, his = sides(columns, labels, PAILLIER)
    shares = []
    ring = PAILLIER.ring(40)
    original = PaillierSecret.decrypt_shares

    def spy(self, answer, length):
        values = original(self, answer, length)
        shares.append(values)
        return values

    monkeypatch.setattr(PaillierSecret, "decrypt_shares", spy)
    run_pair(alice_answer(hers), ask(his))
    rows = slice(16 * part, min(40, 16 * part + 16))
    codes = [np.bincount(c.codes[rows][np.array(labels)[rows] == 1], minlength=6) for c in columns]
    true = np.concatenate(codes)
    assert np.count_nonzero(shares[part] == true) < len(true) // 2
    assert np.abs(shares[part]).max() > 16
    assert np.abs(shares[part]).max() < 1 << ring.modulus_bits


def test_alices_view_is_the_same_for_other_labels_but_for_ciphertexts():
    columns, labels = many()
    other = np.random.default_rng(9).permutation(labels).tolist()
    heard: list[list[Message]] = [[], []]
    terms = WoeTerms.for_scheme(BfvScheme(), None)
    for one, frames in zip((labels, other), heard, strict=True):

        def listen(sender: Role, frame: bytes, frames: list[Message] = frames) -> None:
            if sender == "bob":
                frames.append(decode(frame))

        counted(columns, one, terms, tap=listen)
    for ours, theirs in zip(*heard, strict=True):
        if isinstance(ours, SealedLabels):
            assert isinstance(theirs, SealedLabels)
            assert (ours.part, ours.labels.length, len(ours.labels.data)) == (
                theirs.part,
                theirs.labels.length,
                len(theirs.labels.data),
            )
            assert ours.labels.data != theirs.labels.data
        else:
            assert ours == theirs


def test_hidden_names_tell_neither_names_nor_edges_nor_order():
    columns = [bins("income", [0, 0, 0, 1, 2]), bins("age", [0, 1, 1, 1, 1])]
    said, counts = counted(columns, [1, 0, 0, 1, 0], names=False)
    for one in counts.columns:
        assert one.column.name in ("alice.1", "alice.2")
        assert one.column.labels == tuple(map(str, range(1, len(one.column.labels) + 1)))
        assert not one.column.ordered
    assert [one.sized.name for one in said] == [one.column.name for one in counts.columns]
    # She herself can tell which is which.
    by_name = {column.name: column for column in columns}
    for given_column in said:
        own = by_name[given_column.name]
        words = [own.labels[code] for code in own.codes]
        assert words == [given_column.labels[code] for code in given_column.bins.codes]
    orders = {
        tuple(len(one.labels) for one in hidden(columns, KeyedEntropy.from_seed(seed)))
        for seed in range(12)
    }
    assert orders == {(2, 3), (3, 2)}


def test_she_says_what_leaves_before_it_leaves():
    seen: list[type] = []
    hers, his = sides(*many(rows=60))
    run_pair(
        alice_answer(hers),
        ask(his),
        tap=lambda _, frame: seen.append(kind_of(frame)),
        observe=lambda event: seen.append(type(event)),
    )
    assert seen.index(KeyOffer) < seen.index(BinsDue) < seen.index(BinnedColumn)


def test_the_modulus_has_no_room_beside_the_counts():
    """What a vector of other numbers than labels could read of a sum is that many bits."""
    for rows in (4, 100, 39_073, 120_000):
        bits = CLEAR.ring(rows).modulus_bits
        assert rows < 1 << (bits - 1)
        assert rows >= 1 << (bits - 2)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"key_bits": 512, "scheme": PaillierScheme((512,))}, "scheme"),
        ({"agreed": '{"held_out":0.2}'}, "held-out"),
    ],
)
def test_other_terms_are_named(changes, named):
    columns, labels = many(rows=60)
    hers, _ = sides(columns, labels, replace(CLEAR, **changes))
    _, his = sides(columns, labels)
    with refused(AgreementError, names=named):
        run_pair(alice_answer(hers), ask(his))


def test_other_rows_are_refused():
    columns, labels = many(rows=60)
    hers, _ = sides(columns, labels)
    other = replace(hers, ids=RowIds.from_values([f"p{number}" for number in range(60)]))
    with refused(AgreementError):
        run_pair(alice_answer(other), ask(sides(columns, labels)[1]))


def test_keys_of_another_size_are_refused():
    with refused(ConfigError):
        WoeTerms.for_scheme(PaillierScheme((512,)), 1000)


def conversation(
    columns: Sequence[Bins], labels: list[int], terms: WoeTerms = CLEAR
) -> tuple[FeatureInputs, LabelInputs, list[tuple[str, Message]]]:
    """Every message of one conversation, by sender, to be told again."""
    said: list[tuple[str, Message]] = []
    hers, his = sides(columns, labels, terms)
    run_pair(
        alice_answer(hers),
        ask(his),
        tap=lambda sender, frame: said.append((sender, decode(frame))),
    )
    return hers, his, said


BAD_COLUMNS = [
    ("not JSON", "{"),
    ("no object", "[]"),
    ("other keys", '{"bins":[["a",30],["b",30]],"name":"x","ordered":true,"y":1}'),
    ("a size that is no number", '{"bins":[["a",true],["b",59]],"name":"x","ordered":true}'),
    ("too few rows", '{"bins":[["a",10],["b",20]],"name":"x","ordered":true}'),
    ("an empty bin", '{"bins":[["a",0],["b",60]],"name":"x","ordered":true}'),
    ("one bin", '{"bins":[["a",60]],"name":"x","ordered":true}'),
    ("a long name", '{"bins":[["a",30],["b",30]],"name":"' + "x" * 300 + '","ordered":true}'),
]


@pytest.mark.parametrize("text", [text for _, text in BAD_COLUMNS], ids=[n for n, _ in BAD_COLUMNS])
def test_a_description_of_a_column_that_is_none_is_refused(text):
    with refused(RemoteProtocolError):
        SizedColumn.from_text(text, 60)


@pytest.mark.parametrize(
    ("role", "kind", "place", "changes"),
    [
        # All his bins are asked for at once: too few or too many are no table.
        ("bob", Hello, 0, {"columns": 1}),
        ("bob", Hello, 0, {"columns": 1 << 20}),
        ("bob", BinnedColumn, 0, {"number": 1}),
        ("bob", BinnedColumn, 0, {"columns": 1}),
        ("bob", BinnedColumn, 0, {"columns": 1 << 20}),
        ("bob", BinnedColumn, 1, {"columns": 5}),
        ("bob", BinSums, 0, {"part": 1}),
        ("bob", BinSums, 0, {"answer": EncryptedAnswer(b"", 3)}),
        ("alice", SealedLabels, 0, {"part": 1}),
        ("alice", SealedLabels, 0, {"labels": EncryptedVector(b"", 3)}),
    ],
)
@pytest.mark.parametrize("terms", [CLEAR, PAILLIER], ids=["whole tables", "parts"])
def test_a_message_of_another_turn_or_length_is_refused(terms, role, kind, place, changes):
    hers, his, said = conversation(*many(rows=60), terms)
    side: ByHand[Any] = ByHand(role, ask(his) if role == "bob" else alice_answer(hers))
    heard = [message for sender, message in said if sender != role]
    at = [number for number, message in enumerate(heard) if isinstance(message, kind)][place]
    for message in heard[:at]:
        side.feed(message)
    before = len(side.frames)
    with refused(RemoteProtocolError):
        side.feed(replace(heard[at], **changes))
    assert len(side.frames) == before


def test_sums_that_are_no_counts_are_noticed_after_the_last_word_alone():
    """An end on the way would tell her whether altered sums were still possible."""
    columns, labels = many(rows=60)
    hers, his = sides(columns, labels)
    wrong = [replace(c, codes=np.zeros_like(c.codes)) for c in columns]
    lying = replace(hers, columns=tuple(wrong))
    # Sizes that she states are those of her bins; here they are made not to fit her sums.
    sizes = iter([SizedColumn.from_bins(column).to_text() for column in columns])
    stating = only(BinnedColumn, lambda message: replace(message, text=next(sizes)))
    _, counts = run_pair(altered(alice_answer(lying), stating), ask(his))
    with refused(RemoteProtocolError):
        counts.require_possible()


def test_more_bins_than_can_be_asked_for_are_refused(monkeypatch):
    monkeypatch.setattr(module_of(FeatureInputs), "MOST_BINS", 10)
    hers, _ = sides(*many(rows=60))
    with refused(ConfigError):
        next(alice_answer(hers))


def test_a_bob_who_encrypts_powers_of_two_reads_as_many_rows_as_the_modulus_has_bits():
    """What is not claimed: numbers in place of labels tell single rows; the modulus limits them."""
    columns, labels = many()
    bits = CLEAR.ring(len(labels)).modulus_bits
    crafted = np.zeros(len(labels), dtype=np.int64)
    asked = np.arange(bits)
    crafted[asked] = CLEAR.ring(len(labels)).centred(1 << asked)
    hers, his = sides(columns, labels)
    forged: Any = SimpleNamespace(rows=his.labels.rows, ids=his.labels.ids, values=crafted)
    _, counts = run_pair(alice_answer(hers), ask(replace(his, labels=forged)))
    for column, one in zip(columns, counts.columns, strict=True):
        read = (one.ones[:, None] >> asked) & 1
        assert read.argmax(axis=0).tolist() == column.codes[asked].tolist()
        assert (read.sum(axis=0) == 1).all()


def test_two_tables_whose_labels_differ_in_one_row_tell_its_bins():
    """Why Alice counts tables: neither of the two Bobs deviates."""
    columns, labels = many(rows=200)
    row = 17
    other = [*labels]
    other[row] = 1 - labels[row]
    _, before = counted(columns, labels)
    _, after = counted(columns, other)
    for column, one, two in zip(columns, before.columns, after.columns, strict=True):
        assert np.flatnonzero(one.ones != two.ones).tolist() == [column.codes[row]]


def test_alices_side_replays_from_a_recording_with_bob_absent():
    columns, labels = many(rows=60)
    recorder = Recorder()
    said, counts = counted(columns, labels, tap=recorder)
    recording = recorder.finish({})
    hers, his = sides(columns, labels)
    for one, before in zip(replay(alice_answer(hers), recording), said, strict=True):
        assert one.sized.to_text() == before.sized.to_text()
    again = replay(ask(his), recording, role="bob")
    assert [one.ones.tolist() for one in again.columns] == [
        one.ones.tolist() for one in counts.columns
    ]


def test_a_column_of_more_bins_than_a_text_holds_is_refused():
    wide = bins("id", list(range(1001)))
    hers, _ = sides([wide], [0, 1] * 500 + [0])
    with refused(ConfigError):
        next(alice_answer(hers))
    with refused(RemoteProtocolError):
        SizedColumn.from_text(SizedColumn.from_bins(wide).to_text(), 1001)
