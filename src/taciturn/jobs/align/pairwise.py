"""Private set intersection on row ids: the same program on both sides.

::

    Alice                                                  Bob
      AlignmentHello  version role terms rows share   <->  AlignmentHello
      both: salt = H(terms, share_A, share_B), context = (version, salt); secret scalars a, b
      for each turn, up to 8,192 ids of each side, in a secret random order:
        BlindedIds    H(x)^a for her ids              <->  BlindedIds    H(y)^b for his
        TwiceBlinded  (H(y)^b)^a, in his order        <->  TwiceBlinded  (H(x)^a)^b, in her order
      both: an id is common if its twice blinded element is among those of the other side
      AlignmentEnd    how many, digest                <->  AlignmentEnd

Each side keeps what it made of the peer's elements, and knows its own by their order. The common
ids are put in the order of their code points. The digest is over their twice blinded elements, in
the order of these: both have them, and no hash of an id ever leaves a party. It shows faults; a
peer that deviates can always make it agree.

**Guarantee.** Against a peer that follows the protocol: it learns how many ids this side has and
which of its own are among them, and nothing else. The salt is fresh if one of the two shares is: no
element means anything in another session.

**Assumes.** DDH in ristretto255 and a random function into it (``taciturn.crypto.group``)
[Meadows86, HubermanFranklin99]; against a peer that deviates, one-more gap Diffie-Hellman: it
learns membership of at most as many chosen ids as it says it has [JareckiLiu10].

The elements of two honest sides are uniform, so that buckets fill evenly: each has room for as many
as are expected and twelve standard deviations more, and the intersection is that of one bucket
after the other. Buckets follow each other in the order of their elements' bytes.

**Guarantee.** Memory follows the bucket and not the number of elements, where the scratch room has
a folder, also against a peer that deviates: a bucket that overflows is refused.

**Assumes.** Elements are canonical encodings, whose first bit is 0 [RFC9496]. Distinct ids of an
honest peer overflow a bucket with a probability below 1e-25.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from taciturn.arrays import BoolArray, IndexArray
from taciturn.crypto.group import ELEMENT_BYTES, Scalar, hashed, raised, require_elements
from taciturn.data.ids import RowIds
from taciturn.errors import AgreementError, CryptoError, RemoteProtocolError, ShapeError
from taciturn.jobs.align.messages import AlignmentEnd, AlignmentHello, BlindedIds, TwiceBlinded
from taciturn.memmap import MEMORY, Scratch, drop_pages, row_blocks
from taciturn.protocol.events import Aligning
from taciturn.protocol.handshake import require_roles
from taciturn.protocol.messages import GroupElements, PublicBytes, Role
from taciturn.protocol.model_name import MODEL_KEYS, other_model
from taciturn.protocol.steps import Program, emit, receive, send
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint
from taciturn.settings.agreement import differences

ElementArray: TypeAlias = NDArray[np.bytes_]
_ELEMENT = np.dtype(f"S{ELEMENT_BYTES}")
_NUMBERED = np.dtype([("element", _ELEMENT), ("row", np.uint32)])
# Two bytes without their lowest bit, which is 0 in every element.
_PREFIX_BITS = 15
_DEVIATIONS, _LEAST_ROOM = 12, 64


def bits_for(count: int, bucket_size: int) -> int:
    """Leading bits that name a bucket, with at most ``bucket_size`` of ``count`` expected in it.

    >>> bits_for(10_000_000, 65_536), bits_for(5, 65_536)
    (8, 0)
    """
    return min(max(math.ceil(count / bucket_size) - 1, 0).bit_length(), _PREFIX_BITS)


class ElementBuckets:
    """The elements of one side, each with the number of its row.

    ``bits`` is how many first bits name a bucket. ``fault`` is the error text for a repeated
    element. ``scratch`` has room for the elements, in a file without a name: nothing is left of it,
    however the process ends.

    >>> buckets = ElementBuckets(2, 1, "the peer repeats itself")
    >>> buckets.add(bytes([254] * 32 + [2] * 32), np.array([7, 8]))
    >>> [rows.tolist() for _, rows in buckets]
    [[8], [7]]
    """

    def __init__(self, count: int, bits: int, fault: str, scratch: Scratch = MEMORY) -> None:
        mean = count / (1 << bits)
        room = min(count, math.ceil(mean + _DEVIATIONS * math.sqrt(mean)) + _LEAST_ROOM)
        self.count, self._bits, self._room, self._fault = count, bits, room, fault
        self._filled = np.zeros(1 << bits, np.int64)
        self._numbered = scratch.unnamed((room << bits,), _NUMBERED)

    def add(self, elements: bytes, rows: NDArray[np.integer]) -> None:
        """Add concatenated elements with their rows; RemoteProtocolError if a bucket is full."""
        fresh = np.empty(len(rows), _NUMBERED)
        fresh["element"], fresh["row"] = np.frombuffer(elements, _ELEMENT), rows
        buckets = self._buckets(elements)
        counts = np.bincount(buckets, minlength=len(self._filled))
        if (self._filled + counts > self._room).any():
            raise RemoteProtocolError(
                "the peer's elements are not those of distinct ids: too many share a prefix"
            )
        # The first free place of each bucket, then one place after the other.
        firsts = np.arange(len(counts)) * self._room + self._filled
        before = np.cumsum(counts) - counts
        places = np.repeat(firsts - before, counts) + np.arange(len(fresh))
        self._numbered[places] = fresh[np.argsort(buckets, kind="stable")]
        self._filled += counts
        drop_pages(self._numbered)

    def _buckets(self, elements: bytes) -> IndexArray:
        octets = np.frombuffer(elements, np.uint8).reshape(-1, ELEMENT_BYTES)
        first, second = octets[:, 0].astype(np.int64), octets[:, 1].astype(np.int64)
        return (first >> 1 << 8 | second) >> (_PREFIX_BITS - self._bits)

    def __iter__(self) -> Iterator[tuple[ElementArray, IndexArray]]:
        """Each bucket's elements in the order of their bytes, with their rows."""
        for number, filled in enumerate(self._filled.tolist()):
            start = number * self._room
            bucket = self._numbered[start : start + filled]
            order = np.argsort(bucket["element"])
            ranked = bucket["element"][order]
            if (ranked[1:] == ranked[:-1]).any():
                raise RemoteProtocolError(self._fault)
            yield ranked, bucket["row"][order].astype(np.int64)
            drop_pages(self._numbered)


def common_to(
    elements: ElementBuckets, peers: ElementBuckets
) -> Iterator[tuple[IndexArray, ElementArray]]:
    """The rows of ``elements`` that ``peers`` has too, with their elements, bucket by bucket."""
    for (peer_elements, _), (own_elements, rows) in zip(peers, elements, strict=True):
        if not len(peer_elements):
            continue
        # Beyond the peer's last element there is no place to compare with.
        places = np.minimum(np.searchsorted(peer_elements, own_elements), len(peer_elements) - 1)
        common = peer_elements[places] == own_elements
        yield rows[common], own_elements[common]


ALIGNMENT_VERSION = 1
SHARE_BYTES = 32
TURN_IDS = 8192
MAX_IDS = 1 << 26
PARTIES = "parties"
"""What names several Alices among the terms."""
PART_IDS = 256
"""Ids that a thread takes at a time."""
BUCKET_IDS = 1 << 16
"""Elements that are compared at a time, at most."""
SORTED_IDS = 1 << 20
"""Common ids that are put in order at a time, about."""
_SAMPLED = 256
_CONTEXT, _SALT, _LIST, _REMAINING = (
    b"taciturn alignment id 1\0",
    b"taciturn alignment salt\0",
    b"taciturn aligned\0",
    b"taciturn common to all\0",
)

RowArray: TypeAlias = NDArray[np.uint32]
Spread: TypeAlias = Callable[[Callable[[Any], bytes], Iterable[Any]], Iterable[bytes]]
"""Applies a function to each part of some work and gives the results in order: ``map``, or a
pool's. The program itself knows no thread."""
Report: TypeAlias = Callable[[int, int], Program[None]]
"""Says how many ids are through, and of how many."""


def report_progress(done: int, total: int) -> Program[None]:
    """Report the progress of the only alignment, as an event."""
    yield from emit(Aligning(done, total))


@dataclass(frozen=True, slots=True)
class Alignment:
    """Alignment result of one party.

    ``rows`` are in the order of their ids. ``digest`` is the same on both sides, and of this
    session only.
    """

    rows: IndexArray = field(repr=False)
    peer_ids: int
    digest: str


def align(
    role: Role,
    ids: RowIds,
    terms: str,
    entropy: Entropy,
    spread: Spread = map,
    scratch: Scratch = MEMORY,
) -> Program[Alignment]:
    """One side's whole alignment, with its normalised ``ids``.

    ``terms`` are the settings that both sides must share, in canonical form. ``spread`` maps work
    over parts, one after the other or several at a time. Raises ``ShapeError`` for no ids or too
    many, and ``AgreementError`` where the sides are set up differently or come to different lists.
    """
    match = yield from match_ids(role, ids, terms, entropy, spread, scratch)
    return Alignment(in_order_of_ids(ids, match.rows), match.peer_ids, match.digest)


@dataclass(frozen=True, slots=True)
class Match:
    """Matches of a pair, before they are sorted by id.

    ``rows`` are this side's rows that the other has too, in the order of their twice blinded
    elements: the same on both sides, and without a word on where an id stands among the others.
    ``digest`` is the same on both sides, and of this session only.
    """

    rows: RowArray = field(repr=False)
    peer_ids: int
    digest: str
    salt: bytes = field(repr=False)
    elements: ElementBuckets = field(repr=False)
    peers: ElementBuckets = field(repr=False)

    def narrowed(self, mask: BoolArray) -> tuple[RowArray, bytes]:
        """Some of the rows, and a digest of their elements."""
        return _common(self.elements, self.peers, self.salt, mask)


def match_ids(
    role: Role,
    ids: RowIds,
    terms: str,
    entropy: Entropy,
    spread: Spread = map,
    scratch: Scratch = MEMORY,
    report: Report = report_progress,
) -> Program[Match]:
    """One side's conversation with one peer; ``report`` aside, the arguments are ``align``'s."""
    if not 0 < len(ids) <= MAX_IDS:
        raise ShapeError(f"{len(ids)} ids cannot be aligned", hint=f"between 1 and {MAX_IDS:,} can")
    share = PublicBytes(entropy.fork("salt").token(SHARE_BYTES))
    hello = AlignmentHello(ALIGNMENT_VERSION, role, terms, len(ids), share)
    peer_hello = yield from _meet(hello)
    salt = _joint_salt(hello, peer_hello)
    blinder = _Blinder(Scalar.draw(entropy.fork("scalar")), _CONTEXT + salt, spread)
    order = entropy.fork("order").permutation(len(ids)).astype(np.uint32)
    own_elements, peer_elements = _room_for(len(ids), peer_hello.rows, scratch)
    yield from _exchange(ids, order, blinder, own_elements, peer_elements, report)
    rows, digest = _common(own_elements, peer_elements, salt)
    yield from compare_lists(AlignmentEnd(len(rows), PublicBytes(digest)))
    return Match(rows, peer_hello.rows, digest.hex(), salt, own_elements, peer_elements)


def _room_for(own_ids: int, peers: int, scratch: Scratch) -> tuple[ElementBuckets, ElementBuckets]:
    bits = bits_for(max(own_ids, peers), BUCKET_IDS)
    return (
        ElementBuckets(
            own_ids, bits, "the peer gave two ids of this side the same answer", scratch
        ),
        ElementBuckets(peers, bits, "the peer has the same id more than once", scratch),
    )


class _Blinder:
    def __init__(self, scalar: Scalar, context: bytes, spread: Spread) -> None:
        self._scalar, self._context, self._spread = scalar, context, spread

    def ids(self, texts: list[str]) -> Iterable[bytes]:
        """``H(id)^k`` for each: work that threads begin at once, and whose results come later."""
        parts = [texts[at : at + PART_IDS] for at in range(0, len(texts), PART_IDS)]
        return self._spread(self._blinded, parts)

    def elements(self, elements: bytes) -> GroupElements:
        return GroupElements(self._on_parts(partial(raised, self._scalar), elements))

    def require_elements(self, elements: bytes) -> None:
        self._on_parts(_looked_over, elements)

    def _blinded(self, texts: list[str]) -> bytes:
        return raised(self._scalar, hashed(self._context, texts))

    def _on_parts(self, work: Callable[[bytes], bytes], elements: bytes) -> bytes:
        step = ELEMENT_BYTES * PART_IDS
        parts = [elements[at : at + step] for at in range(0, len(elements), step)]
        try:
            return b"".join(self._spread(work, parts))
        except CryptoError as problem:
            raise RemoteProtocolError(f"among the peer's elements, {problem.message}") from None


def _meet(hello: AlignmentHello) -> Program[AlignmentHello]:
    yield from send(hello)
    peer_hello = yield from receive(AlignmentHello)
    if peer_hello.version != hello.version:
        raise AgreementError(
            f"the peer's alignment has version {peer_hello.version}, this side's {hello.version}",
            hint="install the same version of taciturn on both sides",
        )
    require_roles(hello.role, peer_hello.role)
    if peer_hello.terms != hello.terms:
        raise _other_terms(differences(hello.terms, peer_hello.terms) or ["spelled differently"])
    if not 0 < peer_hello.rows <= MAX_IDS:
        raise RemoteProtocolError(
            f"the peer claims to have {peer_hello.rows} ids",
            hint=f"the number must be between 1 and {MAX_IDS:,}",
        )
    if len(peer_hello.share) != SHARE_BYTES:
        raise RemoteProtocolError(f"the peer's share of the salt has {len(peer_hello.share)} bytes")
    return peer_hello


def _other_terms(apart: list[str]) -> AgreementError:
    keys = {text.partition(":")[0] for text in apart}
    if keys & MODEL_KEYS:
        return other_model(apart)
    # One of them is named by its place.
    if any(key.startswith((PARTIES, "party ")) for key in keys):
        return AgreementError(
            "the peer names other parties: " + "; ".join(apart),
            hint=Hint("give the same {parties} on all sides"),
        )
    return AgreementError(
        "the two sides normalise ids differently: " + "; ".join(apart),
        hint=Hint("give the same {normalise_ids} on both sides"),
    )


def _joint_salt(hello: AlignmentHello, peer_hello: AlignmentHello) -> bytes:
    """Fresh, if one of the two shares is."""
    alice, bob = (hello, peer_hello) if hello.role == "alice" else (peer_hello, hello)
    terms = hashlib.sha256(hello.terms.encode()).digest()
    return hashlib.sha256(_SALT + terms + alice.share + bob.share).digest()


def _exchange(
    ids: RowIds,
    order: RowArray,
    blinder: _Blinder,
    own_elements: ElementBuckets,
    peers: ElementBuckets,
    report: Report,
) -> Program[None]:
    """Fill both sides' buckets with twice blinded elements, ours in a secret order.

    Whenever this side waits for the peer it has work under way: the turn after the next is being
    blinded. The ids of one turn leave before the answer to those of the turn before is read, and no
    more: what waits anywhere is bounded, whatever the number of ids.
    """
    yield from _send_ids(0, blinder.ids(_texts(ids, order, 0)))
    ahead = blinder.ids(_texts(ids, order, 1))
    for turn in range(-(-max(own_elements.count, peers.count) // TURN_IDS)):
        here, there = _due(turn, own_elements.count), _due(turn, peers.count)
        # In the last turns the side with fewer ids has none left, and still answers.
        if _size(there):
            blinded = yield from receive(BlindedIds)
            twice = blinder.elements(_expected(blinded, turn, _size(there)))
            yield from send(TwiceBlinded(turn, twice))
            peers.add(twice, np.arange(there.start, there.stop))
        yield from _send_ids(turn + 1, ahead)
        ahead = blinder.ids(_texts(ids, order, turn + 2))
        if _size(here):
            answer = yield from receive(TwiceBlinded)
            elements = _expected(answer, turn, _size(here))
            # They are compared and not raised again: nothing else would refuse what is no element.
            blinder.require_elements(elements)
            own_elements.add(elements, order[here])
        yield from report(here.stop + there.stop, own_elements.count + peers.count)


def _send_ids(turn: int, blinded: Iterable[bytes]) -> Program[None]:
    if elements := b"".join(blinded):
        yield from send(BlindedIds(turn, GroupElements(elements)))


def _due(turn: int, count: int) -> slice:
    return slice(min(turn * TURN_IDS, count), min((turn + 1) * TURN_IDS, count))


def _size(due: slice) -> int:
    return int(due.stop - due.start)


def _texts(ids: RowIds, order: RowArray, turn: int) -> list[str]:
    return ids.series.gather(order[_due(turn, len(ids))]).to_list()


def _looked_over(elements: bytes) -> bytes:
    require_elements(elements)
    return b""


def _expected(message: BlindedIds | TwiceBlinded, turn: int, count: int) -> GroupElements:
    name = type(message).__name__
    if message.turn != turn:
        raise RemoteProtocolError(f"the peer's {name} is of turn {message.turn}, not {turn}")
    received = len(message.elements) // ELEMENT_BYTES
    if received != count:
        raise RemoteProtocolError(
            f"the peer's {name} has {received} elements where {count} were expected"
        )
    return message.elements


def _common(
    own_elements: ElementBuckets, peers: ElementBuckets, salt: bytes, mask: BoolArray | None = None
) -> tuple[RowArray, bytes]:
    """The rows whose elements are on both sides, in the elements' order, and their digest.

    The digest is over the elements in the order of their bytes: that of the ids would tell a peer
    which forges a match for an id that it does not know where this id stands among the others.
    """
    digest = hashlib.sha256((_LIST if mask is None else _REMAINING) + salt)
    rows, start = [np.empty(0, np.uint32)], 0
    for matched, elements in common_to(own_elements, peers):
        stop = start + len(matched)
        chosen = slice(None) if mask is None else mask[start:stop]
        digest.update(elements[chosen].tobytes())
        rows.append(matched[chosen].astype(np.uint32))
        start = stop
    return np.concatenate(rows), digest.digest()


def in_order_of_ids(ids: RowIds, rows: RowArray | IndexArray) -> IndexArray:
    """Rows in the order of their ids: the one order that all sides have.

    One range of ids after the other: sorting all of many millions takes eighty bytes for each.
    """
    sample = ids.series.gather(rows[:: max(SORTED_IDS // _SAMPLED, 1)]).sort()
    bounds = sample.gather_every(_SAMPLED)[1:]
    ranges = np.zeros(len(rows), np.uint16)
    for place, block in row_blocks(rows) if len(bounds) else ():
        ranges[place] = bounds.search_sorted(ids.series.gather(block), side="right").to_numpy()
    parts = (rows[ranges == number] for number in range(len(bounds) + 1))
    ranked = [part[ids.series.gather(part).arg_sort().to_numpy()] for part in parts]
    return np.concatenate(ranked).astype(np.int64, copy=False)


def compare_lists(end: AlignmentEnd) -> Program[None]:
    """Compares what the two sides have come to."""
    yield from send(end)
    peer_end = yield from receive(AlignmentEnd)
    if peer_end != end:
        raise AgreementError(
            "the two sides have different lists of common ids: "
            f"{end.common} here, {peer_end.common} there",
            hint="run both sides again; if it happens again, one side deviates from the protocol",
        )
