"""Alignment of several Alices with Bob: the right rows everywhere, and nothing else on any link."""

from __future__ import annotations

import hashlib
import tracemalloc
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.api import align as align_tables
from taciturn.crypto.group import ELEMENT_BYTES, Scalar
from taciturn.data.ids import Normalisation, RowIds
from taciturn.engine.driver import Driver
from taciturn.engine.pair import run_pair, run_star
from taciturn.errors import AgreementError, ConfigError, RemoteProtocolError, RowOrderError
from taciturn.jobs.align.intersection import (
    Matches,
    hear_common,
    match_each,
    tell_common,
    terms_among,
)
from taciturn.jobs.align.messages import AlignmentEnd, BlindedIds, CommonToAll, TwiceBlinded
from taciturn.jobs.align.pairwise import Alignment, Match, align, match_ids
from taciturn.jobs.align.simulation import AlignedStar, align_lists
from taciturn.memmap import MEMORY, Scratch
from taciturn.protocol.codec import decode, encode
from taciturn.protocol.messages import GroupElements, Message, PublicBytes, Role
from taciturn.protocol.steps import Program
from taciturn.rng import KeyedEntropy
from tests.expected import refused
from tests.jobs.align.test_pairwise import ids, numbered, shuffled
from tests.modules import module_of
from tests.protocol.hostile import Change, altered, only
from tests.protocol.stars import names


def terms(count: int) -> str:
    return terms_among(Normalisation(), dict.fromkeys(names(count), ""))


def entropy(name: str) -> KeyedEntropy:
    return KeyedEntropy.from_seed(7).fork(name)


def hers(name: str, own: RowIds, agreed: str) -> Program[Alignment]:
    match = yield from match_ids("alice", own, agreed, entropy(name))
    return (yield from hear_common(own, match))


def his(
    alices: tuple[str, ...], own: RowIds, agreed: str, scratch: Scratch = MEMORY
) -> Program[dict[str, Alignment]]:
    matches = yield from match_each(alices, own, agreed, entropy("bob"), scratch=scratch)
    return (yield from tell_common(own, matches))


def star_of(lists: Mapping[str, RowIds], bob: RowIds, **changes: Change) -> None:
    """All programs; of ``alice_2=...`` what she sends is changed."""
    agreed = terms(len(lists))
    programs = {name: hers(name, own, agreed) for name, own in lists.items()}
    for name, change in changes.items():
        shown = name.replace("_", "-")
        programs[shown] = altered(programs[shown], change)
    run_star(programs, his(tuple(lists), bob, agreed))


def require_right(
    alices: list[RowIds], bob: RowIds, how: str = "none", **options: Any
) -> list[str]:
    """Aligns, and holds every side's result against plain sets."""
    chosen = Normalisation.parse(how)
    lists = dict(zip(names(len(alices)), alices, strict=True))
    aligned = align_lists(lists, bob, normalisation=chosen, **options)
    expected = sorted(
        set.intersection(*({*chosen.apply(own).series.to_list()} for own in (*alices, bob)))
    )
    assert aligned.ids.series.to_list() == expected
    for name, own in lists.items():
        her, with_her = aligned.alices[name], aligned.bob[name]
        assert chosen.apply(own.take(her.rows)).series.to_list() == expected
        assert chosen.apply(bob.take(with_her.rows)).series.to_list() == expected
        assert her.digest == with_her.digest
        assert (her.peer_ids, with_her.peer_ids) == (len(bob), len(own))
    return expected


# --- the right rows ------------------------------------------------------------------------------

SPELLED = [
    "ann", "Ann", " ann", "bea", "BEA ", "cy", "007", "7", "07", "0x7", "\ufb01", "fi", "FI", "ß",
    "ss", "é", "e\u0301", "😀", "\uffee", "p-10", "p-9", "z",
]  # fmt: skip
WAYS = ["none", "trim", "case", "zeros", "nfkc,case", "trim,case,nfkc,zeros"]


@st.composite
def parties(draw: st.DrawFn) -> tuple[str, list[RowIds]]:
    """A way to normalise, and lists of several sides without two spellings of one id."""
    how = draw(st.sampled_from(WAYS))
    chosen = Normalisation.parse(how)
    count = 1 + draw(st.sampled_from([1, 2, 3, 5]))
    side = st.lists(st.sampled_from(SPELLED), min_size=1, unique_by=chosen.one)
    return how, [RowIds.from_values(draw(side)) for _ in range(count)]


@given(parties())
def test_the_same_as_plain_sets(drawn):
    how, (bob, *alices) = drawn
    require_right(alices, bob, how)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_many_small_turns_with_lists_of_unequal_length(monkeypatch, count):
    monkeypatch.setattr(module_of(Alignment), "TURN_IDS", 16)
    monkeypatch.setattr(module_of(Alignment), "PART_IDS", 3)
    monkeypatch.setattr(module_of(Alignment), "BUCKET_IDS", 2)
    alices = [shuffled(numbered(number, 60 + 9 * number), number) for number in range(count)]
    with ThreadPoolExecutor(2) as pool:
        common = require_right(alices, shuffled(numbered(3, 90), 9), spread=pool.map)
    assert len(common) == 60 - max(3, count - 1)


@pytest.mark.parametrize(
    "alices",
    [[numbered(0, 10), numbered(90, 95), numbered(5, 20)], [numbered(0, 6), numbered(6, 12)]],
    ids=["one shares none", "every pair shares some"],
)
def test_where_not_all_share_an_id_nobody_has_any(alices):
    assert require_right(alices, numbered(0, 20)) == []


def test_tables_of_several_alices(tmp_path):
    (tmp_path / "one.csv").write_text("id,age\n010,31\n008,44\n007,50\n")
    (tmp_path / "two.csv").write_text("id,wage\n007,1\n010,2\n011,3\n")
    (tmp_path / "bob.csv").write_text("who,paid\n010,1\n7,0\n007,0\n")
    paths = [tmp_path / "one.csv", str(tmp_path / "two.csv")]
    (one, two), bob = align_tables(paths, tmp_path / "bob.csv", bob_id="who")
    assert one.rows() == [("007", 50), ("010", 31)]
    assert two.rows() == [("007", 1), ("010", 2)]
    assert bob.rows() == [("007", 0), ("010", 1)]
    (only,), other = align_tables(paths[:1], tmp_path / "bob.csv", bob_id="who")
    assert (len(only), len(other)) == (2, 2)
    with refused(ConfigError):
        align_tables([], tmp_path / "bob.csv")


# --- what crosses --------------------------------------------------------------------------------

Heard = dict[str, list[tuple[Role, bytes]]]


def listened(alices: list[RowIds], bob: RowIds, seed: int = 3) -> tuple[Heard, AlignedStar]:
    heard: Heard = defaultdict(list)
    aligned = align_lists(
        dict(zip(names(len(alices)), alices, strict=True)),
        bob,
        entropy=KeyedEntropy.from_seed(seed),
        tap=lambda link, sender, frame: heard[link].append((sender, frame)),
    )
    return heard, aligned


HERS, HIS = numbered(0, 20), numbered(10, 40)


def test_an_alice_hears_of_the_others_only_which_shared_ids_all_have():
    """Whatever the other has beside those, not a byte on her link is another."""
    beside = [range(0), range(20, 36), range(500, 530), [0, 5, 25, 500]]
    others = [
        RowIds.from_values([f"person-{number}" for number in (*range(12, 18), *more)])
        for more in beside
    ]
    links = [listened([HERS, other], HIS)[0]["alice-1"] for other in others]
    assert links[0] == links[1] == links[2] == links[3]
    assert links[0] != listened([HERS, numbered(12, 19)], HIS)[0]["alice-1"]


def test_lengths_tell_nothing_of_what_all_have():
    shapes = [
        [(sender, len(frame)) for sender, frame in listened([HERS, other], HIS)[0]["alice-1"]]
        for other in (numbered(10, 20), numbered(30, 40), numbered(90, 100))
    ]
    assert shapes[0] == shapes[1] == shapes[2]


def test_the_last_messages_are_a_bit_for_each_shared_id_and_two_ends():
    heard, _ = listened([HERS, numbered(12, 18)], HIS)
    said = [(sender, decode(frame)) for sender, frame in heard["alice-1"]]
    (bits,) = [message.bits for _, message in said if isinstance(message, CommonToAll)]
    assert len(bits) == 2
    assert sum(byte.bit_count() for byte in bits) == 6
    ends = [message for _, message in said if isinstance(message, AlignmentEnd)]
    assert [end.common for end in ends] == [10, 10, 6, 6]
    assert ends[0].digest != ends[2].digest


def elements(frames: list[tuple[Role, bytes]]) -> set[bytes]:
    sent = b"".join(
        message.elements
        for _, frame in frames
        if isinstance(message := decode(frame), BlindedIds | TwiceBlinded)
    )
    return {sent[at : at + ELEMENT_BYTES] for at in range(0, len(sent), ELEMENT_BYTES)}


def test_no_element_of_one_pair_occurs_in_another():
    """Two Alices who pool what they have cannot tell which elements of Bob's are of one id."""
    heard, aligned = listened([HERS, HERS], HIS)
    assert "array" not in repr(aligned)
    assert "person" not in repr(aligned)
    one, two = (elements(heard[name]) for name in names(2))
    # Twenty of hers and thirty of his, once and twice blinded, of which ten are common.
    assert len(one) == len(two) == 2 * (20 + 30) - 10
    assert not one & two


# --- a party that misbehaves ---------------------------------------------------------------------

LISTS = {"alice-1": numbered(0, 9), "alice-2": numbered(2, 12), "alice-3": numbered(1, 8)}


def lying(number: int) -> Change:
    """Of her two ends, this one says another digest."""
    ends = iter(range(2))

    def change(message: Message) -> Message:
        if isinstance(message, AlignmentEnd) and next(ends) == number:
            return replace(message, digest=PublicBytes(bytes(32)))
        return message

    return change


@pytest.mark.parametrize("number", [0, 1])
def test_an_alice_who_lies_about_the_digest_is_named(number):
    with refused(AgreementError, names="alice-2"):
        star_of(LISTS, numbered(0, 9), alice_2=lying(number))


def test_an_alice_who_sends_no_elements_is_named():
    def change(message: BlindedIds) -> Message:
        return replace(message, elements=GroupElements(b"\xff" * len(message.elements)))

    with refused(RemoteProtocolError, names="alice-3"):
        star_of(LISTS, numbered(0, 9), alice_3=only(BlindedIds, change))


@pytest.mark.parametrize(
    "other",
    [
        Normalisation().canonical(),
        terms_among(Normalisation(), {"alice-1": "", "carol": ""}),
        terms_among(Normalisation(), {"alice-2": "", "alice-1": ""}),
        terms_among(Normalisation(), {"alice-1": "", "alice-2": "0f"}),
    ],
    ids=["none", "another", "another-order", "another-key"],
)
def test_an_alice_who_names_other_parties_is_named(other):
    programs = {
        "alice-1": hers("alice-1", numbered(0, 5), terms(2)),
        "alice-2": hers("alice-2", numbered(0, 5), other),
    }
    # Who is fed first says it first, here as there.
    with refused(AgreementError):
        run_star(programs, his(names(2), numbered(0, 5), terms(2)))


def test_bob_names_the_alice_whose_terms_differ():
    program = his(names(2), numbered(0, 5), terms(2))
    bob = Driver("bob", program, dict.fromkeys(names(2), ignored))
    bob.start()
    sent: list[bytes] = []
    alice = Driver(
        "alice",
        hers(
            "a", numbered(0, 5), terms_among(Normalisation.parse("trim"), dict.fromkeys("ab", ""))
        ),
        sent.append,
    )
    alice.start()
    with refused(AgreementError, names="alice-1"):
        bob.feed(sent[0])


def ignored(frame: bytes) -> None:
    """Nobody listens."""


class Hearing:
    """An Alice who has aligned with Bob, before a Bob who is made by hand."""

    def __init__(self) -> None:
        own = numbered(0, 10)
        self.sent: list[Message] = []
        match = run_pair(
            match_ids("alice", own, terms(2), entropy("a")),
            match_ids("bob", own, terms(2), entropy("b")),
        )[0]
        self._alice = Driver("alice", hear_common(own, match), self._note)
        self._alice.start()

    def _note(self, frame: bytes) -> None:
        self.sent.append(decode(frame))

    def say(self, message: Message) -> None:
        self._alice.feed(encode(message))

    @property
    def result(self) -> Alignment:
        return self._alice.result


@pytest.mark.parametrize(
    "message",
    [
        *(
            CommonToAll(PublicBytes(bits))
            for bits in (b"", b"\xff", b"\xff\x40\x00", b"\xff\x60", b"\xff\xc1")
        ),
        AlignmentEnd(10, PublicBytes(bytes(32))),
    ],
)
def test_bits_that_do_not_fit_the_shared_ids_are_refused(message):
    with refused(RemoteProtocolError, names="CommonToAll"):
        Hearing().say(message)


# --- memory --------------------------------------------------------------------------------------

MANY = 10_000


def quickly_hashed(context: bytes, texts: list[str]) -> bytes:
    digests = (hashlib.sha256(context + text.encode()).digest() for text in texts)
    # The first bit of an element is 0.
    return b"".join(bytes([digest[0] & 0xFE]) + digest[1:] for digest in digests)


def quickly_raised(scalar: Scalar, data: bytes) -> bytes:
    """XOR with the scalar: it commutes as well."""
    mask = np.frombuffer(scalar._bytes, np.uint8) & np.array([0xFE] + [0xFF] * 31, np.uint8)
    return (np.frombuffer(data, np.uint8).reshape(-1, ELEMENT_BYTES) ^ mask).tobytes()


@pytest.fixture
def quick_group(monkeypatch):
    monkeypatch.setattr(module_of(Alignment), "hashed", quickly_hashed)
    monkeypatch.setattr(module_of(Alignment), "raised", quickly_raised)
    monkeypatch.setattr(module_of(Alignment), "require_elements", lambda data: None)
    monkeypatch.setattr(module_of(Alignment), "TURN_IDS", 128)
    monkeypatch.setattr(module_of(Alignment), "BUCKET_IDS", 512)
    monkeypatch.setattr(module_of(Alignment), "SORTED_IDS", 1024)


def peak(alices: Mapping[str, Callable[[], Program[Any]]], bob: Callable[[], Program[Any]]) -> int:
    """The most that Bob's program holds, played again to what the Alices have sent."""
    frames: dict[str, deque[bytes]] = {name: deque() for name in alices}

    def note(link: str, sender: Role, frame: bytes) -> None:
        if sender == "alice":
            frames[link].append(frame)

    run_star({name: program() for name, program in alices.items()}, bob(), tap=note)
    driver = Driver("bob", bob(), dict.fromkeys(alices, ignored))
    tracemalloc.start()
    try:
        driver.start()
        while not driver.finished:
            driver.feed(frames[driver.awaits].popleft())
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow  # some seconds
@pytest.mark.usefixtures("quick_group")
def test_one_alice_takes_no_more_memory_than_before_and_another_eight_bytes_for_an_id(tmp_path):
    own = numbered(0, MANY)

    def star(count: int) -> int:
        scratch, agreed = Scratch(tmp_path / f"{count}", least=1), terms(count)
        alices = {name: partial(hers, name, own, agreed) for name in names(count)}
        return peak(alices, partial(his, names(count), own, agreed, scratch))

    pair = peak(
        {"": partial(align, "alice", own, "{}", entropy("a"))},
        partial(align, "bob", own, "{}", entropy("b"), scratch=Scratch(tmp_path, least=1)),
    )
    one, four = star(1), star(4)
    assert one < 1.1 * pair
    # Eight bytes are the order and the shared rows; the rest are turns that are under way.
    assert four - one < 3 * (8 * MANY + (1 << 16))


def test_rows_that_all_have_are_counted():
    lists = {"alice-1": numbered(0, 6), "alice-2": numbered(3, 9)}
    agreed, seen = terms(2), list[Matches]()

    def bob() -> Program[None]:
        own = ids("person-5", "person-1", "person-4", "person-8")
        seen.append((yield from match_each(names(2), own, agreed, entropy("bob"))))
        yield from tell_common(own, seen[0])

    run_star({name: hers(name, own, agreed) for name, own in lists.items()}, bob())
    assert seen[0].common == 2
    assert seen[0].everywhere.tolist() == [True, False, True, False]
    # person-8 is at the second alone, and person-1 at the first.
    assert [seen[0].lacking(name) for name in names(2)] == [1, 1]
    assert {name: len(match.rows) for name, match in seen[0].pairs.items()} == {
        "alice-1": 3,
        "alice-2": 3,
    }


def test_a_pair_that_will_not_do_stops_all_at_once(monkeypatch):
    """The others, who have many turns to go, are spared them."""
    monkeypatch.setattr(module_of(Alignment), "TURN_IDS", 4)
    agreed, sent = terms(2), list[str]()

    def accept(name: str, match: Match) -> None:
        if not len(match.rows):
            raise RowOrderError(f"{name} has no id in common")

    own = numbered(0, 4)
    alices = {
        "alice-1": hers("alice-1", numbered(0, 90), agreed),
        "alice-2": hers("alice-2", numbered(90, 92), agreed),
    }
    with refused(RowOrderError, names="alice-2"):
        run_star(
            alices,
            match_each(names(2), own, agreed, entropy("bob"), accept=accept),
            tap=lambda link, sender, frame: sent.append(link),
        )
    assert sent.count("alice-1") < 30
