"""Plots as SVG text: bars on a logarithmic scale, drawn by hand, no library needed."""

from __future__ import annotations

import math
from html import escape

from taciturn.report.record import Record

_COLOURS = {"bfv": "#1b6ca8", "paillier": "#d1495b", "heu": "#8a8a8a"}
_BAR, _GAP, _LEFT, _WIDTH, _HEAD = 16, 14, 210, 620, 56


def ratios_svg(record: Record) -> str:
    """How many times python-paillier each scheme is, by shape; a log scale from 1 to 10,000.

    >>> row = {"shape": "x", "scheme": "bfv", "bits": 128, "times_phe": 100.0}
    >>> ratios_svg({"rows": [row]}).count("<rect")
    2
    """
    shown = [row for row in record["rows"] if row["times_phe"] and row["scheme"] != "phe"]
    shapes = list(dict.fromkeys(row["shape"] for row in shown))
    parts, top = [], _HEAD
    for shape in shapes:
        bars = [row for row in shown if row["shape"] == shape]
        middle = top + _BAR * len(bars) / 2 + 5
        parts.append(_text(_LEFT - 10, middle, shape, anchor="end"))
        for row in bars:
            parts.append(_bar(row, top))
            top += _BAR
        top += _GAP
    height = top + 10
    grid = "".join(_line(power, height) for power in range(5))
    title = _text(_LEFT, 22, "times as fast as python-paillier, one iteration", size=15)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 120} {height}" '
        'font-family="sans-serif">'
        f'<rect width="100%" height="100%" fill="white"/>{title}{grid}{"".join(parts)}</svg>\n'
    )


def _place(times: float) -> float:
    return _WIDTH * max(0.0, min(4.0, math.log10(times))) / 4


def _bar(row: Record, top: float) -> str:
    colour = _COLOURS.get(row["scheme"].split("-")[0], "#555555")
    length = max(1.0, _place(row["times_phe"]))
    label = f"{row['scheme']} {row['bits']}: {row['times_phe']:,.0f}x"
    return (
        f'<rect x="{_LEFT}" y="{top}" width="{length:.1f}" height="{_BAR - 3}" fill="{colour}"/>'
        + _text(_LEFT + length + 6, top + _BAR - 5, label)
    )


def _line(power: int, height: float) -> str:
    x = _LEFT + _WIDTH * power / 4
    label = _text(x, _HEAD - 12, f"{10**power:,}", anchor="middle")
    return f'<path d="M{x} {_HEAD - 6}V{height - 8}" stroke="#dddddd"/>{label}'


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 11) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )
