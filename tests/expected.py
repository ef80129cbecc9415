"""What a test asks of an error: its type, its setting and what it names, never its words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from taciturn.errors import TaciturnError

E = TypeVar("E", bound=TaciturnError)


@contextmanager
def refused(
    kind: type[E], *, setting: str | None = None, names: object = ()
) -> Iterator[pytest.ExceptionInfo[E]]:
    """The block raises an error of exactly this type.

    Args:
        kind: The type, not one above it in the tree.
        setting: The setting that the error is about, as Python spells it.
        names: What the message, the place or the way out must name: a column, a file, a value.
            One thing, or several.
    """
    with pytest.raises(kind) as raised:
        yield raised
    assert type(raised.value) is kind
    if setting is not None:
        assert raised.value.setting == setting
    for named in names if isinstance(names, tuple | list) else (names,):
        assert str(named) in str(raised.value)
    # The traceback holds this frame: with the name, what the block used would outlive the test's
    # last reference to it, until the next garbage collection.
    del raised


def all_refused(
    kind: type[E], *ends: object, setting: str | None = None, names: object = ()
) -> None:
    """Every party of a session ended with an error of exactly this type (see ``refused``)."""
    for end in ends:
        assert isinstance(end, kind), end
        with refused(kind, setting=setting, names=names):
            raise end
