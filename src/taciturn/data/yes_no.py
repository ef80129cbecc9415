"""Words for yes and no in several languages, which are one category each."""

from __future__ import annotations

from collections.abc import Iterable

_PAIRS = (
    ("yes", "no"),
    ("y", "n"),
    ("true", "false"),
    ("t", "f"),
    ("1", "0"),
    ("on", "off"),
    ("ja", "nein"),
    ("j", "n"),
    ("ja", "nee"),
    ("oui", "non"),
    ("sí", "no"),
    ("si", "no"),
    ("sim", "não"),
)
YES, NO = "yes", "no"
YES_NO = {word: NO for _, word in _PAIRS} | {word: YES for word, _ in _PAIRS}


def is_yes_no(words: Iterable[str]) -> bool:
    """Whether normalised words are yes and no, in more than one way of saying so.

    >>> is_yes_no(["yes", "no", "y"]), is_yes_no(["yes", "no"]), is_yes_no(["n", "t", "o"])
    (True, False, False)
    """
    present = {*words}
    paired = any(present >= {*pair} for pair in _PAIRS)
    return paired and len(present) > 2 and present <= YES_NO.keys()
