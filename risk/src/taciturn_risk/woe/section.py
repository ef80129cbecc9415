"""``WoeSection``: the section [woe] of a party's file."""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar

from taciturn.settings.checked import Checked, PositiveInt, Setting

_woe = partial(Setting, scope="woe")


class WoeSection(Checked):
    """Alice: whether, and how, Bob may learn the weights of evidence of her columns."""

    section: ClassVar = "woe"

    allow: Annotated[
        bool,
        _woe(
            "Alice: allow this peer to count its labels in the bins of her columns.",
            detail="With `taciturn woe` on both sides ([woe.md](../risk/docs/woe.md)). "
            "Without it she refuses",
            example=True,
        ),
    ] = False
    share_names: Annotated[
        bool,
        _woe(
            "Alice: share the names and the order of columns and bins.",
            detail="Without it Bob sees numbers in random order",
            example=True,
        ),
    ] = False
    min_rows: Annotated[
        PositiveInt | None,
        _woe(
            "Alice: minimum number of rows per bin; smaller bins are merged.",
            detail="By default 50 or 1 % of the rows, whichever is more",
            example=200,
        ),
    ] = None
    tables: Annotated[
        PositiveInt,
        _woe(
            "Alice: maximum number of weight-of-evidence tables that this peer ever receives.",
            detail="Two of them whose labels differ in one row reveal that row's bins",
        ),
    ] = 1
