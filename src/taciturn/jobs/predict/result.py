"""One side's part in a prediction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from taciturn.numerics.threshold import Threshold
from taciturn.results.parties import MeanRow, ScoredRow
from taciturn.results.serialise import OMITTED, Result

if TYPE_CHECKING:
    from taciturn.report.blocks import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionResult(Result):
    """One side's part in a prediction; scores, and what they mean, are Bob's.

    ``rows`` were scored, of ``ids`` in this side's file; what the peer has in all, and how ids were
    normalised, where the two aligned.
    """

    kind: ClassVar[str] = "predict"
    known_by: ClassVar[str] = "shared_weights"

    role: str
    peer: str
    mechanism: str
    shared_weights: bool
    session: str
    rows: int
    ids: int
    peer_ids: int | None = field(default=None, metadata=OMITTED)
    normalise_ids: str | None = field(default=None, metadata=OMITTED)
    columns: int
    seconds: float
    bytes_sent: int
    bytes_received: int
    peer_confirmed: bool
    learnt: str | None = field(default=None, metadata=OMITTED)
    suspected_wraps: int | None = field(default=None, metadata=OMITTED)
    meaning: str | None = field(default=None, metadata=OMITTED)
    threshold: Threshold | None = field(default=None, metadata=OMITTED)
    model: str | None = None
    out: str | None = None
    scores: tuple[ScoredRow | MeanRow, ...] | None = field(
        default=None, metadata=OMITTED, repr=False
    )

    def blocks(self) -> list[Block]:
        """The result for a terminal."""
        # Loaded here: with --json nothing is rendered.
        from taciturn.jobs.predict.report import prediction_blocks

        return prediction_blocks(self)
