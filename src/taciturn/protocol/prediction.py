"""What both sides of a joint prediction must agree on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from taciturn.arrays import BoolArray, FloatArray
from taciturn.data.tables import FeatureTable
from taciturn.errors import RemoteProtocolError
from taciturn.files import canonical_json
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.numerics.whitening import Whitening
from taciturn.protocol.messages import Hello
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.scales import Scales
from taciturn.protocol.terms import Terms

PREDICTION_TERMS = '{"purpose":"predict"}'
CHUNK_ROWS = 1 << 16
SEALED_CHUNK_ROWS = 1 << 12


@dataclass(frozen=True, slots=True)
class Scored:
    """Bob's result of a joint prediction.

    ``scores`` are log-odds. ``doubtful`` marks those from shared weights near the end of their
    range.
    """

    scores: FloatArray = field(repr=False)
    suspected_wraps: int = 0
    doubtful: BoolArray | None = field(default=None, repr=False)


def whitened_rows(features: FeatureTable, whitening: Whitening | None) -> FeatureTable:
    """Rows as a table of whitened columns; as they are where weights are those of the columns."""
    if whitening is None:
        return features
    return replace(features, values=whitening.of_rows()(features.values))


def shared_terms(terms: Terms, scales: Scales, purpose: str) -> str:
    """What both sides of a prediction from shared weights must agree on, in canonical form."""
    shared = {
        "purpose": purpose,
        "scheme": terms.agreement.scheme,
        "key_bits": terms.agreement.key_bits,
        "fresh_keys": terms.agreement.fresh_keys,
        "modulus_bits": scales.modulus_bits,
        "feature_bits": scales.feature_bits,
        "residue_bits": scales.residue_bits,
    }
    return canonical_json(shared)


class ScoringSide:
    """A side of a scoring conversation; its class follows from the kind of model.

    ``stated`` must be the same on both sides. ``own_share`` is this side's share of its weights, in
    whose coordinates its rows are; None where it has them in clear.
    """

    stated = PREDICTION_TERMS
    chunk_rows = CHUNK_ROWS
    own_share: WeightShare | None = None

    def whitened(self, features: FeatureTable) -> FeatureTable:
        """Rows in the coordinates of the weights."""
        return whitened_rows(features, None if self.own_share is None else self.own_share.whitening)

    def size_of(self, features: FeatureTable) -> int:
        """The size to state, in bits: at least that of the training, for few or small rows too."""
        if self.own_share is None:
            return 0
        return max(self.own_share.magnitude_bits, magnitude_bits(features.largest))


def require_columns(hello: Hello, shared: int) -> None:
    """Refuse a peer whose table does not have the columns whose weights are shared."""
    if hello.columns != shared:
        raise RemoteProtocolError(
            f"the peer's table has {hello.columns} columns, and {shared} weights are shared"
        )


def chunks(rows: int, size: int = CHUNK_ROWS) -> Iterator[tuple[int, slice]]:
    """Numbered slices that cover the rows, small enough for one frame each.

    >>> list(chunks(70_000))
    [(0, slice(0, 65536, None)), (1, slice(65536, 70000, None))]
    """
    for number, start in enumerate(range(0, rows, size)):
        yield number, slice(start, min(start + size, rows))
