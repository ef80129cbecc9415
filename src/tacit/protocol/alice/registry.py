"""Alice's trainings by the name of their conversation: one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from tacit.arrays import FloatArray
from tacit.data.tables import FeatureTable
from tacit.protocol.alice import train_hidden_batch, train_residues, train_revealed
from tacit.protocol.steps import Program
from tacit.protocol.terms import Terms
from tacit.rng import Entropy

Training: TypeAlias = Callable[[FeatureTable, Terms, Entropy], Program[FloatArray]]

TRAININGS: Mapping[str, Training] = MappingProxyType(
    {
        "revealed": train_revealed.train,
        "residues": train_residues.train,
        "hidden-batch": train_hidden_batch.train,
    }
)
