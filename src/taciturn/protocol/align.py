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
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from taciturn.arrays import IndexArray
from taciturn.crypto.group import ELEMENT_BYTES, Scalar, hashed, raised, require_elements
from taciturn.data.ids import RowIds
from taciturn.errors import AgreementError, CryptoError, RemoteProtocolError, ShapeError
from taciturn.faces import Hint
from taciturn.protocol.events import Aligning
from taciturn.protocol.handshake import require_roles
from taciturn.protocol.messages import (
    AlignmentEnd,
    AlignmentHello,
    BlindedIds,
    GroupElements,
    PublicBytes,
    Role,
    TwiceBlinded,
)
from taciturn.protocol.prediction import MODEL_KEYS, other_model
from taciturn.protocol.steps import Program, emit, receive, send
from taciturn.rng import Entropy
from taciturn.settings.agreement import differences

ALIGNMENT_VERSION = 1
SHARE_BYTES = 32
TURN_IDS = 8192
MAX_IDS = 1 << 26
_PARTS = 4
_ELEMENT = np.dtype(f"S{ELEMENT_BYTES}")
_CONTEXT, _SALT, _LIST = (
    b"taciturn alignment id 1\0",
    b"taciturn alignment salt\0",
    b"taciturn aligned\0",
)

ElementArray: TypeAlias = NDArray[np.bytes_]
Spread: TypeAlias = Callable[[Callable[[Any], bytes], Iterable[Any]], Iterable[bytes]]
"""Applies a function to each part of some work and gives the results in order: ``map``, or a
pool's. The program itself knows no thread."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """What a party has at the end.

    Args:
        rows: Its rows that the other side has too, in the order of their ids.
        peer_ids: How many ids the other side has.
        digest: The same on both sides, and of this session only.
    """

    rows: IndexArray = field(repr=False)
    peer_ids: int
    digest: str


def align(
    role: Role, ids: RowIds, terms: str, entropy: Entropy, spread: Spread = map
) -> Program[Alignment]:
    """One side's whole part.

    Args:
        role: Who this side is.
        ids: Its ids, normalised.
        terms: What both sides must have chosen alike, in canonical form.
        entropy: Its coins.
        spread: How work is done on parts: one after the other, or several at a time.

    Raises:
        ShapeError: There are no ids, or too many.
        AgreementError: The two sides are not set up alike, or come to different lists.
        RemoteProtocolError: The peer says something that it may not say.
    """
    if not 0 < len(ids) <= MAX_IDS:
        raise ShapeError(f"{len(ids)} ids cannot be aligned", hint=f"between 1 and {MAX_IDS:,} can")
    share = PublicBytes(entropy.fork("salt").token(SHARE_BYTES))
    ours = AlignmentHello(ALIGNMENT_VERSION, role, terms, len(ids), share)
    theirs = yield from _meet(ours)
    salt = _joint_salt(ours, theirs)
    blinder = _Blinder(Scalar.draw(entropy.fork("scalar")), _CONTEXT + salt, spread)
    order = entropy.fork("order").permutation(len(ids))
    own, peers = yield from _exchange(ids, order, theirs.rows, blinder)
    rows, elements = _common(own, peers, ids, order)
    digest = list_digest(salt, elements)
    yield from _conclude(AlignmentEnd(len(rows), PublicBytes(digest)))
    return Alignment(rows, theirs.rows, digest.hex())


class _Blinder:
    """This side's secret scalar at work, part by part."""

    def __init__(self, scalar: Scalar, context: bytes, spread: Spread) -> None:
        self._scalar, self._context, self._spread = scalar, context, spread

    def ids(self, texts: list[str]) -> GroupElements:
        """``H(id)^k`` for each."""
        step = -(-len(texts) // _PARTS) or 1
        parts = [texts[at : at + step] for at in range(0, len(texts), step)]
        return GroupElements(b"".join(self._spread(self._blinded, parts)))

    def elements(self, elements: bytes) -> GroupElements:
        """Each element of the peer's, raised."""
        work = partial(raised, self._scalar)
        return GroupElements(_checked(work, elements, self._spread))

    def _blinded(self, texts: list[str]) -> bytes:
        return raised(self._scalar, hashed(self._context, texts))


def _checked(work: Callable[[bytes], bytes], elements: bytes, spread: Spread) -> bytes:
    """Work on elements that came from the peer, part by part."""
    step = ELEMENT_BYTES * (-(-len(elements) // (ELEMENT_BYTES * _PARTS)) or 1)
    parts = [elements[at : at + step] for at in range(0, len(elements), step)]
    try:
        return b"".join(spread(work, parts))
    except CryptoError as problem:
        raise RemoteProtocolError(f"among the peer's elements, {problem.message}") from None


def _meet(ours: AlignmentHello) -> Program[AlignmentHello]:
    """Exchanges greetings and compares them."""
    yield from send(ours)
    theirs = yield from receive(AlignmentHello)
    if theirs.version != ours.version:
        raise AgreementError(
            f"the peer aligns by version {theirs.version}, this side by {ours.version}",
            hint="install the same version of taciturn on both sides",
        )
    require_roles(ours.role, theirs.role)
    if theirs.terms != ours.terms:
        named = differences(ours.terms, theirs.terms) or ["spelled differently"]
        if any(text.partition(":")[0] in MODEL_KEYS for text in named):
            raise other_model(named)
        raise AgreementError(
            "the two sides normalise ids differently: " + "; ".join(named),
            hint=Hint("give the same {normalise} on both sides"),
        )
    if not 0 < theirs.rows <= MAX_IDS:
        raise RemoteProtocolError(
            f"the peer says it has {theirs.rows} ids",
            hint=f"between 1 and {MAX_IDS:,} are possible",
        )
    if len(theirs.share) != SHARE_BYTES:
        raise RemoteProtocolError(f"the peer's share of the salt has {len(theirs.share)} bytes")
    return theirs


def _joint_salt(ours: AlignmentHello, theirs: AlignmentHello) -> bytes:
    """Fresh, if one of the two shares is."""
    alice, bob = (ours, theirs) if ours.role == "alice" else (theirs, ours)
    terms = hashlib.sha256(ours.terms.encode()).digest()
    return hashlib.sha256(_SALT + terms + alice.share + bob.share).digest()


def _exchange(
    ids: RowIds, order: IndexArray, peer_ids: int, blinder: _Blinder
) -> Program[tuple[ElementArray, ElementArray]]:
    """Both sides' twice blinded elements: ours in the order in which they went out.

    A turn has at most one message of each kind from each side, and both read before they send more:
    what waits anywhere is bounded, whatever the number of ids.
    """
    own, peers = np.empty(len(ids), _ELEMENT), np.empty(peer_ids, _ELEMENT)
    ahead = blinder.ids(_texts(ids, order, 0))
    for turn in range(-(-max(len(ids), peer_ids) // TURN_IDS)):
        here, there = _due(turn, len(ids)), _due(turn, peer_ids)
        # In the last turns the side with fewer ids has none left, and still answers.
        if _size(here):
            yield from send(BlindedIds(turn, ahead))
        if _size(there):
            theirs = yield from receive(BlindedIds)
            twice = blinder.elements(_expected(theirs, turn, _size(there)))
            peers[there] = np.frombuffer(twice, _ELEMENT)
            yield from send(TwiceBlinded(turn, twice))
        # Before waiting: the peer is at work on ours.
        ahead = blinder.ids(_texts(ids, order, turn + 1))
        if _size(here):
            answer = yield from receive(TwiceBlinded)
            elements = _expected(answer, turn, _size(here))
            # They are compared and not raised again: nothing else would refuse what is no element.
            _checked(_looked_over, elements, map)
            own[here] = np.frombuffer(elements, _ELEMENT)
        yield from emit(Aligning(here.stop + there.stop, len(ids) + peer_ids))
    return own, peers


def _due(turn: int, count: int) -> slice:
    """Which of ``count`` ids a turn is about."""
    return slice(min(turn * TURN_IDS, count), min((turn + 1) * TURN_IDS, count))


def _size(due: slice) -> int:
    return int(due.stop - due.start)


def _texts(ids: RowIds, order: IndexArray, turn: int) -> list[str]:
    return ids.series.gather(order[_due(turn, len(ids))]).to_list()


def _looked_over(elements: bytes) -> bytes:
    require_elements(elements)
    return b""


def _expected(message: BlindedIds | TwiceBlinded, turn: int, count: int) -> GroupElements:
    """The elements of a message, which must be of this turn and as many as are due."""
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
    own: ElementArray, peers: ElementArray, ids: RowIds, order: IndexArray
) -> tuple[IndexArray, ElementArray]:
    """The rows whose elements are on both sides, by id, and these elements."""
    peers.sort()
    _refuse_repeated(peers, "the peer has the same id more than once")
    _refuse_repeated(np.sort(own), "the peer gave two ids of this side the same answer")
    # Beyond the peer's last element there is no place to compare with.
    place = np.minimum(np.searchsorted(peers, own), len(peers) - 1)
    common = np.flatnonzero(peers[place] == own)
    rows = order[common]
    # By id: the one order that both sides have.
    rank = ids.series.gather(rows).arg_sort().to_numpy()
    return rows[rank], own[common][rank]


def _refuse_repeated(ranked: ElementArray, fault: str) -> None:
    again = int((ranked[1:] == ranked[:-1]).sum())
    if again:
        raise RemoteProtocolError(f"{fault}: {again} repeated elements")


def list_digest(salt: bytes, elements: ElementArray) -> bytes:
    """What both sides compare at the end.

    In the order of the elements' bytes: that of the ids would tell a peer which forges a match for
    an id that it does not know where this id stands among the others.
    """
    return hashlib.sha256(_LIST + salt + np.sort(elements).tobytes()).digest()


def _conclude(ours: AlignmentEnd) -> Program[None]:
    """Compares what the two sides have come to."""
    yield from send(ours)
    theirs = yield from receive(AlignmentEnd)
    if theirs != ours:
        raise AgreementError(
            "the two sides have different lists of common ids: "
            f"{ours.common} here, {theirs.common} there",
            hint="run both sides again; if it happens again, one side deviates from the protocol",
        )
