"""``WoeSection``: the section [woe] of a party's file."""

from __future__ import annotations

from typing import ClassVar

from taciturn.settings.checked import Checked, PositiveInt, setting


class WoeSection(Checked):
    """Alice: whether, and how, Bob may learn the weights of evidence of her columns."""

    section: ClassVar = "woe"

    allow: bool = setting(False, example=True)
    """Alice: allow this peer to count its labels in the bins of her columns.

    With `taciturn woe` on both sides ([woe.md](../risk/docs/woe.md)). Without it she refuses.
    """
    share_names: bool = setting(False, example=True)
    """Alice: share the names and the order of columns and bins.

    Without it Bob sees numbers in random order.
    """
    min_rows: PositiveInt | None = setting(example=200)
    """Alice: minimum number of rows per bin; smaller bins are merged.

    By default 50 or 1 % of the rows, whichever is more.
    """
    tables: PositiveInt = setting(1)
    """Alice: maximum number of weight-of-evidence tables that this peer ever receives.

    Two of them whose labels differ in one row reveal that row's bins.
    """
