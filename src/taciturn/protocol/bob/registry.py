"""Bob's trainings by the name of their conversation: one line each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable, LabelTable
from taciturn.privacy.ledger import Ledger
from taciturn.protocol.bob import (
    train_hidden_batch,
    train_residues,
    train_revealed,
    train_sealed,
)
from taciturn.protocol.held_out import HeldOut
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


class Training(Protocol):
    """Bob's program of a training; begins, or goes on from a state."""

    def __call__(
        self,
        features: FeatureTable,
        labels: LabelTable,
        terms: Terms,
        # The conversation's own type: each program names the narrow one that it needs.
        mechanism: Any,  # noqa: ANN401
        ledger: Ledger,
        entropy: Entropy,
        *,
        resume: TrainingState | None = None,
        held_out: HeldOut | None = None,
    ) -> Program[FloatArray]:
        """The program."""
        ...


TRAININGS: Mapping[str, Training] = MappingProxyType(
    {
        "revealed": train_revealed.train,
        "residues": train_residues.train,
        "hidden-batch": train_hidden_batch.train,
        "sealed": train_sealed.train,
    }
)
