"""Settings of earlier versions: why each is gone, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from taciturn.errors import ConfigError
from taciturn.faces import Face, Hint

Removed: TypeAlias = Mapping[str, tuple[str, Hint]]

REMOVED: Removed = MappingProxyType(
    {
        "dither": (
            "noise on training scores costs the optimum and does not hide Alice's columns",
            Hint(
                "leave it out, or use {mechanism}, which opens no training score",
                mechanism="mutual",
            ),
        ),
        "monotone": (
            "it cut Bob's columns by his labels, which no ledger counts",
            Hint("leave it out, or give edges: {bins}", bins={"age": [25, 35, 50]}),
        ),
    }
)
# Elsewhere bins and columns are still settings.
REMOVED_FROM_STUDY: Removed = MappingProxyType(
    {
        **REMOVED,
        "bins": (
            "a study no longer varies it, since all its models train on one table",
            Hint("prepare it with {bins}, and run a study for each number of bins", bins=8),
        ),
        "columns": (
            "a study no longer varies it, since all its models train on one table",
            Hint(
                "choose its columns with {keep} or {drop}, and run a study for each choice",
                keep=["age", "income"],
                drop=["note"],
            ),
        ),
    }
)


def refuse_removed(key: str, face: Face | None = None, removed: Removed = REMOVED) -> None:
    """Refuses the name of a removed setting; returns for any other name.

    Args:
        key: The name as it was given: a key, an option or a keyword argument.
        face: Where it was given.
        removed: The settings that were removed there.

    Raises:
        ConfigError: The setting was removed; says why, and what to use instead.
    """
    known = removed.get(key.lstrip("-").replace("-", "_"))
    if known is not None:
        reason, hint = known
        where = "" if face is None else face.source
        raise ConfigError(f"setting {key} was removed: {reason}", where=where, hint=hint)
