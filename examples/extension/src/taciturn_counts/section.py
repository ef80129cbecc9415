"""``CountsSection``: the section [counts] of a party's file."""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar

from taciturn.settings.checked import Checked, PositiveInt, Setting

_counts = partial(Setting, scope="counts")
_alices = partial(_counts, owner="alice")


class CountsSection(Checked):
    """Which column Bob asks for, and what Alice gives."""

    section: ClassVar = "counts"

    column: Annotated[
        str | None,
        _counts("Bob: Alice's column whose values are counted.", owner="bob", example="region"),
    ] = None
    share: Annotated[
        list[str],
        _alices("Alice: columns whose counts this peer may have.", example=["region"]),
    ] = []  # noqa: RUF012 - pydantic copies it
    columns: Annotated[
        PositiveInt,
        _alices("Alice: maximum number of columns whose counts this peer ever receives."),
    ] = 1
    least: Annotated[
        PositiveInt,
        _alices("Alice: values of fewer rows are counted together, as others."),
    ] = 10
