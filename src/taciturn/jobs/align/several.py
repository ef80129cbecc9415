"""Private set intersection of one Bob and several Alices: each with him, then what all have.

::

    each Alice                                             Bob
      the alignment of the two (``taciturn.jobs.align.pairwise``), with all of them at once
      both: the ids that the two share, in the order of their twice blinded elements
                                                      <--  CommonToAll   of these, which all have
      AlignmentEnd    how many remain, digest         <->  AlignmentEnd

An Alice speaks to Bob only. Every pair has its own salt, scalars and orders, so that no element of
one pair means anything to another Alice. All end with the same ids in the order of their code
points; the last digest is over the remaining elements of a pair, and shows faults, not lies.

**Guarantee.** Against parties that follow the protocol, Bob learns which of his ids each Alice has,
and how many she has. An Alice learns which of her ids Bob has, how many he has, and which of the
shared ones all others have too: not which of the others lacks one, nor how many ids they have.
Nobody learns anything of an id that is not its own. Alices who pool what they have learn no more
than that of each.

**Assumes.** What ``taciturn.jobs.align.pairwise`` assumes, of each pair. A Bob who deviates can
tell an Alice any part of what the two share for what all share; the greetings of a training compare
the ids themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from taciturn.arrays import BoolArray
from taciturn.data.ids import RowIds
from taciturn.data.normalisation import Normalisation
from taciturn.errors import RemoteProtocolError
from taciturn.files import canonical_json
from taciturn.jobs.align.pairwise import (
    PARTIES,
    Alignment,
    Match,
    RowArray,
    Spread,
    compare_lists,
    in_order_of_ids,
    match_ids,
    report_progress,
)
from taciturn.memmap import MEMORY, Scratch
from taciturn.protocol.messages import AlignmentEnd, CommonToAll, PublicBytes
from taciturn.protocol.steps import Program, receive, send
from taciturn.protocol.together import together
from taciturn.rng import Entropy

Accept: TypeAlias = Callable[[str, Match], None]
"""Looks at what Bob has in common with an Alice; raises where that will not do."""


def accept_any(name: str, match: Match) -> None:
    """Any number will do."""


def terms_among(normalisation: Normalisation, parties: Mapping[str, str]) -> str:
    """What all sides must have chosen alike: how ids are read, and who takes part.

    ``parties`` has the fingerprint of each Alice's key by her name, in their order.
    """
    named = [list(pair) for pair in parties.items()]
    return canonical_json({**asdict(normalisation), PARTIES: named})


@dataclass(frozen=True, slots=True)
class Matches:
    """What Bob has in common with each Alice; ``holders`` counts the Alices who have each row."""

    pairs: Mapping[str, Match]
    holders: NDArray[np.uint8] = field(repr=False)

    @classmethod
    def of(cls, ids: int, pairs: Mapping[str, Match]) -> Matches:
        """The matches of a Bob with ``ids`` ids."""
        holders = np.zeros(ids, np.uint8)
        for match in pairs.values():
            holders[match.rows] += 1
        return cls(pairs, holders)

    @property
    def everywhere(self) -> BoolArray:
        """Which of his rows all of them have."""
        everywhere: BoolArray = self.holders == len(self.pairs)
        return everywhere

    @property
    def common(self) -> int:
        """How many ids all have."""
        return int(np.count_nonzero(self.everywhere))

    def lacking(self, name: str) -> int:
        """How many ids this Alice lacks that Bob and all the others have."""
        others = len(self.pairs) - 1
        hers = self.holders[self.pairs[name].rows]
        return int(np.count_nonzero(self.holders == others) - np.count_nonzero(hers == others))


def match_each(
    names: Sequence[str],
    ids: RowIds,
    terms: str,
    entropy: Entropy,
    spread: Spread = map,
    scratch: Scratch = MEMORY,
    accept: Accept = accept_any,
) -> Program[Matches]:
    """Bob's alignments with all Alices, at once.

    One after the other, the last of them would wait for all before her. At once, each of them takes
    up to eight bytes more for each of his ids: her order, and the rows that the two share. Elements
    are in the scratch room.

    ``accept`` is called with each pair as soon as it has aligned: where it raises, the others stop.
    Errors name the Alice.
    """
    progress = _Progress(len(names))

    def matched(name: str) -> Program[Match]:
        coins, report = entropy.fork(f"with {name}"), partial(progress.report, name)
        match = yield from match_ids("bob", ids, terms, coins, spread, scratch, report)
        accept(name, match)
        return match

    return Matches.of(len(ids), (yield from together({name: matched(name) for name in names})))


class _Progress:
    def __init__(self, pairs: int) -> None:
        self._pairs = pairs
        self._reached: dict[str, tuple[int, int]] = {}

    def report(self, name: str, done: int, total: int) -> Program[None]:
        self._reached[name] = done, total
        # Before all have begun the total is not known.
        if len(self._reached) == self._pairs:
            counts = np.array([*self._reached.values()]).sum(axis=0).tolist()
            yield from report_progress(*counts)


def tell_common(ids: RowIds, matches: Matches) -> Program[dict[str, Alignment]]:
    """Tells each Alice which of the ids that she shares with Bob all have.

    Returns his alignment with each, by her name: the same rows, in the order that all have.
    """
    everywhere = matches.everywhere
    digests = yield from together(
        {name: _tell(match, everywhere) for name, match in matches.pairs.items()}
    )
    rows = in_order_of_ids(ids, np.flatnonzero(everywhere))
    return {
        name: Alignment(rows, match.peer_ids, digests[name])
        for name, match in matches.pairs.items()
    }


def _tell(match: Match, everywhere: BoolArray) -> Program[str]:
    kept = everywhere[match.rows]
    yield from send(CommonToAll(PublicBytes(np.packbits(kept).tobytes())))
    _, digest = yield from _narrow(match, kept)
    return digest


def hear_common(ids: RowIds, match: Match) -> Program[Alignment]:
    """An Alice's part once she has aligned with Bob: which of the shared ids all have."""
    message = yield from receive(CommonToAll)
    rows, digest = yield from _narrow(match, _bits_of(message, len(match.rows)))
    return Alignment(in_order_of_ids(ids, rows), match.peer_ids, digest)


def _bits_of(message: CommonToAll, shared: int) -> BoolArray:
    """Bitmap of shared ids, zero-padded to a whole byte."""
    octets = np.frombuffer(message.bits, np.uint8)
    if len(octets) != -(-shared // 8) or np.unpackbits(octets)[shared:].any():
        raise RemoteProtocolError(
            f"the peer's CommonToAll is not about the {shared} ids that both have"
        )
    return np.unpackbits(octets, count=shared).astype(np.bool_)


def _narrow(match: Match, kept: BoolArray) -> Program[tuple[RowArray, str]]:
    rows, digest = match.narrowed(kept)
    yield from compare_lists(AlignmentEnd(len(rows), PublicBytes(digest)))
    return rows, digest.hex()
