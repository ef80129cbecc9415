"""Number formatting of reports, the same in a terminal, on a page and in Markdown."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from taciturn.report.blocks import NO_BREAK

NONE = "–"
_HUGE = 1e5


def percent(value: float | None, digits: int = 2) -> str:
    """A share in per cent without the sign, or a dash where there is none.

    >>> percent(0.97368), percent(None), percent(math.nan)
    ('97.37', '–', '–')
    """
    return figure(None if value is None else 100 * value, digits)


def share(value: float | None, digits: int = 2) -> str:
    r"""A share in per cent, with its sign.

    >>> share(0.5), share(None)
    ('50.00\xa0%', '–')
    """
    shown = percent(value, digits)
    return shown if shown == NONE else f"{shown}{NO_BREAK}%"


def interval(low: float, high: float) -> str:
    r"""The ends of an interval of a share, in per cent; no end lies outside 0 to 100.

    >>> interval(0.9, 1.02), interval(math.nan, 1.0)
    ('90.00\xa0– 100.00\xa0%', '–')
    """
    if math.isnan(low) or math.isnan(high):
        return NONE
    return f"{percent(max(0.0, low))}{NO_BREAK}– {share(min(1.0, high))}"


def figure(value: float | None, digits: int = 4) -> str:
    """A number that is no share, or a dash; a huge one in short.

    >>> figure(0.12345), figure(None), figure(184488823.0)
    ('0.1235', '–', '1.84e+08')
    """
    if value is None or math.isnan(value):
        return NONE
    return f"{value:.{digits}f}" if abs(value) < _HUGE else f"{value:.3g}"


def epsilon(value: float | None) -> str:
    """An epsilon with four significant digits, "infinite", or a dash for None.

    >>> epsilon(math.inf), epsilon(2.302585), epsilon(0.0), epsilon(None)
    ('infinite', '2.303', '0', '–')
    """
    if value is None:
        return NONE
    return "infinite" if math.isinf(value) else f"{value:.4g}"


def most_sure(eps: float) -> str:
    r"""Largest certainty about a label from even prior odds, in words: e^eps / (1 + e^eps).

    >>> most_sure(0.0), most_sure(5.0), most_sure(50.0)
    ('up to 50.00\xa0% sure', 'up to 99.33\xa0% sure', 'all but certain')
    """
    sure = 1 / (1 + math.exp(-eps))
    return "all but certain" if sure > 0.9999 else f"up to {share(sure)} sure"


def data_size(count: float) -> str:
    r"""A number of bytes for a person.

    >>> data_size(1536), data_size(20), data_size(3 << 20)
    ('1.5\xa0KiB', '20\xa0B', '3.0\xa0MiB')
    """
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= 1024**power:
            return f"{count / 1024**power:.1f}{NO_BREAK}{unit}"
    return f"{count:.0f}{NO_BREAK}B"


def duration(seconds: float) -> str:
    r"""A time for a person.

    >>> duration(0.04), duration(75), duration(7300), duration(200_000)
    ('0.04\xa0s', '75\xa0s', '122\xa0min', '55.6\xa0h')
    """
    if seconds < 100:
        return f"{seconds:.2g}{NO_BREAK}s"
    if seconds < 100 * 3600:
        minutes = seconds / 60
        return f"{minutes:.0f}{NO_BREAK}min" if minutes < 600 else f"{minutes / 60:.1f}{NO_BREAK}h"
    return f"{seconds / 3600:.0f}{NO_BREAK}h"


def printed_date(moment: str) -> str:
    """An ISO 8601 time, converted to UTC, to the minute; other text is returned unchanged.

    >>> printed_date("2026-11-16T21:04:05+00:00"), printed_date("yesterday")
    ('2026-11-16 21:04 UTC', 'yesterday')
    """
    try:
        then = datetime.fromisoformat(moment)
    except ValueError:
        return moment
    return f"{then.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def footer(version: str | None, audited: str | None) -> str:
    """Footer of a page: program version, time if known, and that the page needs no other file."""
    made = f"Taciturn {version}" if version else "Taciturn, version not recorded"
    when = [printed_date(audited)] if audited else []
    return " · ".join([made, *when, "one file, no script, no request"])


def plain(value: object) -> str:
    """A setting as a person writes it.

    >>> plain(True), plain(0.1), plain(16), plain("bfv")
    ('yes', '0.1', '16', 'bfv')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def time_with_waits(seconds: float, waiting: float) -> str:
    """Duration of a session, and how much of it was waiting for the peer."""
    return f"{seconds:.1f} s, of which {waiting:.1f} s waiting for the peer"


def traffic(sent: int, received: int) -> str:
    """Bytes sent and received."""
    return f"{data_size(sent)} sent, {data_size(received)} received"
