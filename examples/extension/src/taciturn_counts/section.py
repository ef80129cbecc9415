"""``CountsSection``: the section [counts] of a party's file."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from taciturn.settings.checked import Checked, PositiveInt, setting

_alices = partial(setting, owner="alice")


class CountsSection(Checked):
    """Which column Bob asks for, and what Alice gives."""

    section: ClassVar = "counts"

    column: str | None = setting(owner="bob", example="region")
    """Bob: Alice's column whose values are counted."""
    share: list[str] = _alices([], example=["region"])
    """Alice: columns whose counts this peer may have."""
    columns: PositiveInt = _alices(1)
    """Alice: maximum number of columns whose counts this peer ever receives."""
    least: PositiveInt = _alices(10)
    """Alice: values of fewer rows are counted together, as others."""
