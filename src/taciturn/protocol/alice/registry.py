"""Alice's trainings by the name of their conversation: one line each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable
from taciturn.protocol.alice import (
    train_hidden_batch,
    train_residues,
    train_revealed,
    train_sealed,
)
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


class Training(Protocol):
    """Alice's program of a training; begins, or goes on from a state."""

    def __call__(
        self,
        features: FeatureTable,
        terms: Terms,
        entropy: Entropy,
        *,
        resume: TrainingState | None = None,
        held_out: FeatureTable | None = None,
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
