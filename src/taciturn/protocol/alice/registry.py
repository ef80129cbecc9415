"""Alice's trainings by the name of their conversation: one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from taciturn.protocol.alice import (
    train_hidden_batch,
    train_residues,
    train_revealed,
    train_table_mutual,
    train_table_revealed,
    train_table_sealed,
)
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.outcome import Trained
from taciturn.protocol.steps import Program

Training: TypeAlias = Callable[[AliceInputs], Program[Trained]]
"""Alice's program of a training; begins, or resumes from a state."""

TRAININGS: Mapping[str, Training] = MappingProxyType(
    {
        "revealed": train_revealed.train,
        "residues": train_residues.train,
        "hidden-batch": train_hidden_batch.train,
        "revealed-table": train_table_revealed.train,
        "sealed-table": train_table_sealed.train,
        "mutual-table": train_table_mutual.train,
    }
)
