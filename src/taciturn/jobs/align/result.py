"""One side's part in an alignment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from taciturn.data.normalisation import Spelling
from taciturn.results.serialise import OMITTED, Result
from taciturn.results.subject import Subject

if TYPE_CHECKING:
    from taciturn.report.blocks import Block


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
        # Loaded here: with --json nothing is rendered.
        from taciturn.jobs.align.report import alignment_blocks

        return alignment_blocks(self)

    def subject(self) -> Subject:
        """The rows that the sides have in common."""
        return Subject(rows=self.common)
