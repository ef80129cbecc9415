"""Bob's trainings by the name of their conversation: one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from taciturn.protocol.bob import (
    train_hidden_batch,
    train_residues,
    train_revealed,
    train_table_mutual,
    train_table_revealed,
    train_table_sealed,
)
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.outcome import BobTrained
from taciturn.protocol.steps import Program

# Any: the mechanism's own type. Each program names the narrow one that it needs, and a mechanism
# names the conversation that suits it.
Training: TypeAlias = Callable[[BobInputs[Any]], Program[BobTrained]]
"""Bob's program of a training; begins, or resumes from a state."""

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
