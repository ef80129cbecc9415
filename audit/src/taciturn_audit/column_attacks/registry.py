"""The column attacks, one line each."""

from __future__ import annotations

from taciturn_audit.column_attacks.base import ColumnAttack
from taciturn_audit.column_attacks.discrete import DiscreteAttack
from taciturn_audit.column_attacks.integer_columns import IntegerColumnsAttack
from taciturn_audit.column_attacks.lattice import LatticeAttack
from taciturn_audit.column_attacks.regression import AnchoredAttack, GramAttack, PredictionAttack

COLUMN_ATTACKS: tuple[ColumnAttack, ...] = (
    AnchoredAttack(),
    GramAttack(),
    DiscreteAttack(),
    LatticeAttack(),
    IntegerColumnsAttack(),
    PredictionAttack(),
)
