"""Bob's trainings by the name of their conversation: one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from tacit.arrays import FloatArray
from tacit.data.tables import FeatureTable, LabelTable
from tacit.privacy.ledger import Ledger
from tacit.protocol.bob import train_hidden_batch, train_residues, train_revealed
from tacit.protocol.steps import Program
from tacit.protocol.terms import Terms
from tacit.rng import Entropy

# The mechanism's type is the conversation's own: each program names the narrow one that it needs.
Training: TypeAlias = Callable[
    [FeatureTable, LabelTable, Terms, Any, Ledger, Entropy], Program[FloatArray]
]

TRAININGS: Mapping[str, Training] = MappingProxyType(
    {
        "revealed": train_revealed.train,
        "residues": train_residues.train,
        "hidden-batch": train_hidden_batch.train,
    }
)
