"""Name of a model, on which both sides of a prediction of new rows must agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from taciturn.data.ids import Normalisation
from taciturn.data.tables import FeatureTable
from taciturn.errors import AgreementError
from taciturn.files import canonical_json
from taciturn.protocol.handshake import compare, greeting, same_ids, wire_form
from taciturn.protocol.messages import Hello, Role
from taciturn.protocol.steps import Program, receive, send
from taciturn.settings.agreement import differences

# What names a model among the terms of an alignment.
MODEL_KEYS = frozenset({"agreement", "purpose", "session", "shared"})


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
