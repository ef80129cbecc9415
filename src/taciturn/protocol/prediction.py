"""What both sides of a joint prediction must agree on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from taciturn.arrays import BoolArray, FloatArray
from taciturn.data.ids import Normalisation
from taciturn.data.tables import FeatureTable
from taciturn.errors import AgreementError, RemoteProtocolError
from taciturn.files import canonical_json
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.numerics.whitening import Whitening
from taciturn.protocol.handshake import compare, greeting, same_ids, wire_form
from taciturn.protocol.messages import Hello, Role
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.scales import Scales
from taciturn.protocol.steps import Program, receive, send
from taciturn.protocol.terms import Terms
from taciturn.settings.agreement import differences

PREDICTION_TERMS = '{"purpose":"predict"}'
# What names a model among the terms of an alignment.
MODEL_KEYS = frozenset({"agreement", "purpose", "session", "shared"})
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


@dataclass(frozen=True, slots=True)
class ModelName:
    """Which training a model comes from: the same on both of its sides."""

    session: str
    agreement: str
    shared: bool

    def to_json(self) -> dict[str, Any]:
        """JSON that the two sides compare."""
        return {**asdict(self), "purpose": "predict new rows"}

    def canonical(self) -> str:
        """One text for one model: sorted keys, no blanks."""
        return canonical_json(self.to_json())


def meet(role: Role, model: ModelName, features: FeatureTable) -> Program[Hello]:
    """The greeting for a prediction of new rows; ``AgreementError`` if models or rows differ."""
    hello = greeting(role, model.canonical(), features)
    yield from send(wire_form(hello))
    peer_hello = yield from receive(Hello)
    # What differs is said here in words for models and new rows; the rest is said below.
    if peer_hello.version == hello.version and peer_hello.role != hello.role:
        _require_same(hello, peer_hello)
    compare(hello, peer_hello)
    return peer_hello


def alignment_terms(normalisation: Normalisation, model: ModelName) -> str:
    """What both sides must agree on before they align new rows: how ids are read, and the model.

    A party with another model learns nothing about the rows.
    """
    return canonical_json({**asdict(normalisation), **model.to_json()})


def other_model(apart: Sequence[str]) -> AgreementError:
    """The error for two model files of different trainings; ``apart`` says what differs."""
    return AgreementError(
        f"the two model files do not come from the same training: {'; '.join(apart)}",
        hint="name the two files that one training wrote (taciturn model show says which)",
    )


def _require_same(hello: Hello, peer_hello: Hello) -> None:
    if peer_hello.terms != hello.terms:
        raise other_model(differences(hello.terms, peer_hello.terms))
    if peer_hello.rows != hello.rows or not same_ids(hello, peer_hello):
        counts = (
            f"this side has {hello.rows} rows, the peer {peer_hello.rows}"
            if peer_hello.rows != hello.rows
            else f"both have {hello.rows} rows, and not the same ids"
        )
        raise AgreementError(
            f"the rows to score are not the same on both sides: {counts}",
            hint="align them again: taciturn align finds the rows that both have",
        )


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
