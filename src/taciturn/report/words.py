"""How a report writes numbers and texts: one spelling for the page and for the pull request."""

from __future__ import annotations

import math
from typing import Any

from taciturn.report.tables import percent

NONE = "–"
# Keeps a number and its sign on one line.
_SPACE = "\u00a0"


def number(value: Any) -> float | None:  # noqa: ANN401 - a record holds JSON's types
    """A record's number: the text ``inf`` is infinity, null and NaN are no number.

    >>> number("inf"), number(None), number(float("nan")), number(3)
    (inf, None, None, 3.0)
    """
    if value is None or isinstance(value, bool):
        return None
    found = float(value)
    return None if math.isnan(found) else found


def clean(text: object) -> str:
    r"""A text on one line, with a mark for what does not print (bidirectional signs too).

    >>> clean("a\nb\u202ec")
    'a b�c'
    """
    spaced = (" " if sign.isspace() else sign for sign in str(text))
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in spaced).strip()


def share(value: float | None, digits: int = 2) -> str:
    r"""A share in per cent, with its sign.

    >>> share(0.5), share(None)
    ('50.00\xa0%', '–')
    """
    return NONE if value is None else f"{percent(value, digits)}{_SPACE}%"


def interval(low: float | None, high: float | None) -> str:
    r"""The ends of an interval of a share, in per cent; no end lies outside 0 to 100.

    >>> interval(0.9, 1.02)
    '90.00\xa0– 100.00\xa0%'
    """
    if low is None or high is None:
        return NONE
    return f"{percent(max(0.0, low))}{_SPACE}– {percent(min(1.0, high))}{_SPACE}%"


def epsilon(value: float | None) -> str:
    """An epsilon with four digits, or the word.

    >>> epsilon(math.inf), epsilon(2.302585), epsilon(0.0), epsilon(None)
    ('infinite', '2.303', '0', '–')
    """
    if value is None:
        return NONE
    return "infinite" if math.isinf(value) else f"{value:.4g}"


def most_sure(eps: float) -> str:
    r"""How sure of a label someone can be who was at even odds before: e^eps / (1 + e^eps).

    >>> most_sure(0.0), most_sure(5.0), most_sure(50.0)
    ('up to 50.00\xa0% sure', 'up to 99.33\xa0% sure', 'all but certain')
    """
    sure = 1 / (1 + math.exp(-eps))
    return "all but certain" if sure > 0.9999 else f"up to {share(sure)} sure"


def plain(value: Any) -> str:  # noqa: ANN401 - a record holds JSON's types
    """A setting as a person writes it.

    >>> plain(True), plain(0.1), plain(16), plain("bfv")
    ('yes', '0.1', '16', 'bfv')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return clean(value)
