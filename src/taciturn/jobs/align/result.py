"""One side's part in an alignment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from taciturn.data.ids import Normalisation
from taciturn.data.spellings import Spelling, describe_spellings, further
from taciturn.report.blocks import Block, Facts, Paragraph
from taciturn.report.formatting import share, time_with_waits, traffic
from taciturn.results.serialise import OMITTED, Result, Subject


@dataclass(frozen=True, slots=True)
class SharedIds:
    """A peer in an alignment of several: how many ids it has, and how many this side has too."""

    name: str
    ids: int
    common: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentResult(Result):
    """One side's part in an alignment.

    ``match`` is the common fraction of the shorter list. ``spellings`` is about this side's own
    ids, where some did not match. ``added`` has the lines that were written into the party's file
    (``settings``), ``to_add`` those that a person has to write.

    With several Alices ``parties`` are this side's peers, ``common`` is how many ids all have, and
    ``peer_ids`` and ``match`` are of the shortest list that this side knows of.
    """

    kind: ClassVar[str] = "align"
    known_by: ClassVar[str] = "to_add"

    role: str
    peer: str
    normalise_ids: str
    ids: int
    peer_ids: int
    common: int
    match: float
    parties: tuple[SharedIds, ...] | None = field(default=None, metadata=OMITTED)
    spellings: tuple[Spelling, ...]
    file: str
    configured: bool
    settings: str
    added: tuple[str, ...]
    to_add: tuple[str, ...]
    peer_confirmed: bool
    seconds: float
    waiting_seconds: float
    bytes_sent: int
    bytes_received: int
    version: str

    def blocks(self) -> list[Block]:
        """The result for a terminal."""
        facts = {
            **_common_rows(self),
            "id normalisation": self.normalise_ids,
            "time": time_with_waits(self.seconds, self.waiting_seconds),
            "traffic": traffic(self.bytes_sent, self.bytes_received),
            "list": self.file,
        }
        title = Paragraph(f"{self.role} with {self.peer}: alignment", "strong")
        return [
            title,
            Facts(facts),
            *_spellings(self),
            *_settings(self),
            *([] if self.peer_confirmed else [Paragraph(_NO_LIST, "warning")]),
        ]

    def subject(self) -> Subject:
        """The rows that the sides have in common."""
        return Subject(rows=self.common)


# Below it, ways to spell ids are named also where this side's table is consistent in them.
_LOW_MATCH = 0.8
_NO_LIST = "the peer has not confirmed the last message; if it has no list, run both again"


def _common_rows(result: AlignmentResult) -> dict[str, str]:
    here = f"{result.common:,}: {share(result.common / result.ids, 1)} of {result.ids:,} here"
    if result.parties is None:
        there = f"{share(result.common / result.peer_ids, 1)} of {result.peer_ids:,} there"
        return {"common rows": f"{here}, {there}"}
    shared = {
        f"shared with {peer.name}": f"{peer.common:,}: {share(peer.common / result.ids, 1)} of "
        f"{result.ids:,} here, {share(peer.common / peer.ids, 1)} of {peer.ids:,} there"
        for peer in result.parties
    }
    return {"common to all": here, **shared}


def _spellings(result: AlignmentResult) -> list[Block]:
    low = result.match < _LOW_MATCH
    tried = [spelling for spelling in result.spellings if low or spelling.mixed]
    if not tried:
        return []
    better = further(Normalisation.parse(result.normalise_ids), tried)
    way_out = f"; to try it, give --normalise-ids {better} on both sides"
    words = f"Of the spelling: {describe_spellings(tried, result.ids)}"
    return [
        Paragraph(f"{words}{way_out if any(not spelling.merges for spelling in tried) else ''}.")
    ]


def _settings(result: AlignmentResult) -> list[Block]:
    if result.added:
        return [Paragraph(f"wrote into {result.settings}, under [data]: {'; '.join(result.added)}")]
    if result.to_add:
        lines = "; ".join(result.to_add)
        words = f"To train on these rows, write into {result.settings}, under [data]: {lines}"
        return [Paragraph(words, "warning")]
    return []
