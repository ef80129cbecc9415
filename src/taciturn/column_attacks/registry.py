"""The column attacks, one line each."""

from __future__ import annotations

from taciturn.column_attacks.anchored import AnchoredAttack
from taciturn.column_attacks.base import ColumnAttack

COLUMN_ATTACKS: tuple[ColumnAttack, ...] = (AnchoredAttack(),)
