"""The audit page's pictures as SVG text, drawn by hand: no library, no outside request.

Colours come from the page (``currentColor`` and custom properties, with a colour of their own
where a page has none), so that one drawing serves a light page, a dark one and paper. Nothing is
told by colour alone: shapes, fills and dashes go with it. Each picture has a title and a
description that says its figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from taciturn.report.findings import Attack, Curve, Findings, OverEpochs
from taciturn.report.words import interval, share

_WIDTH, _FIGURES = 430, 84
_ROW, _AXIS = 32, 30
_COLOURS = ("#1f6fb2", "#c2410c", "#4d7c0f", "#7c3aed", "#0f766e", "#be185d")
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "5 5", "1 4")
# As many as there are attacks: colours and dashes come again, shapes do not.
_SHAPES = (
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0",
    "M-4.5 -4.5h9v9h-9z",
    "M0 -6l6 6l-6 6l-6 -6z",
    "M0 -6l5.5 10h-11z",
    "M0 6l5.5 -10h-11z",
    "M-5 -5l10 10M5 -5l-10 10",
    "M-6 0h12M0 -6v12",
    "M-7 -3h14v6h-14z",
    "M-3 -7h6v14h-6z",
)


def attacks_svg(found: Findings, ident: str) -> str:
    """Each attack's accuracy with its interval; the controls are vertical lines.

    A filled dot is an attack whose interval lies above every control.

    Args:
        found: What a run showed.
        ident: A name for the picture, used once on a page.
    """
    lowest = _floor(
        [each.accuracy for each in found.controls] + [each.accuracy_low for each in found.attacks]
    )
    left = min(170.0, 14 + 7.2 * max((len(each.name) for each in found.attacks), default=0))
    scale = _Scale(lowest, left, _WIDTH - _FIGURES)
    controls = [each for each in found.controls if each.accuracy is not None]
    head = 18 * len(controls) + 8
    bottom = head + _ROW * max(1, len(found.attacks))
    parts = []
    for tick in _ticks(lowest, most=6 if left < 140 else 4):
        x = scale.at(tick)
        parts.append(_grid(f"M{x:.1f} {head}V{bottom}"))
        parts.append(_text(x, bottom + 18, share(tick, 0), anchor="middle", muted=True, size=12))
    lines = [scale.at(each.accuracy or 0.0) for each in controls]
    for place, (x, control) in enumerate(zip(lines, controls, strict=True)):
        top = 18 * place + 2
        parts.append(
            f'<path d="M{x:.1f} {top}V{bottom}" fill="none" stroke="currentColor" '
            f'stroke-width="1.5" stroke-dasharray="{_DASHES[1 + place % 2]}"/>'
        )
        words = f"{_short(control.name)} {share(control.accuracy)}"
        reach = x + 8 + 7 * len(words)
        # The words stand to the right of their line, unless another line or the edge is in the way.
        crossed = any(x < other < reach for other in lines[:place])
        anchor, offset = ("end", -6) if crossed or reach > _WIDTH else ("start", 6)
        parts.append(_text(x + offset, top + 12, words, anchor=anchor, size=12))
    for place, attack in enumerate(found.attacks):
        parts.append(_attack(attack, head + _ROW * (place + 0.5), scale))
    if not found.attacks:
        parts.append(_text(_WIDTH / 2, head + 21, "no attack applies", anchor="middle"))
    title = f"{found.title}: accuracy of each attack beside the controls"
    return _svg(ident, title, _describe(found), bottom + _AXIS, "".join(parts))


def epochs_svg(found: OverEpochs, ident: str) -> str:
    """Each attack's accuracy after so many epochs; the prior is a horizontal line.

    Args:
        found: The curves.
        ident: A name for the picture, used once on a page.
    """
    width, left, top, height = 860, 56, 14, 230
    epochs = sorted({point.epochs for curve in found.curves for point in curve.points})
    lowest = _floor([found.prior, *(p.low for curve in found.curves for p in curve.points)])
    right, bottom = width - 24, top + height

    def at(epoch: int) -> float:
        first, last = math.log(epochs[0]), math.log(epochs[-1])
        if last == first:
            return (left + right) / 2
        return left + 18 + (right - left - 36) * (math.log(epoch) - first) / (last - first)

    def up(value: float) -> float:
        return bottom - height * (min(1.0, max(lowest, value)) - lowest) / (1 - lowest)

    parts = []
    for tick in _ticks(lowest):
        y = up(tick)
        parts.append(_grid(f"M{left} {y:.1f}H{right}"))
        parts.append(_text(left - 8, y + 4, share(tick, 0), anchor="end", muted=True))
    for epoch in epochs:
        parts.append(_text(at(epoch), bottom + 20, str(epoch), anchor="middle", muted=True))
    middle = (left + right) / 2
    parts.append(_text(middle, bottom + 40, "epochs (logarithmic)", anchor="middle", muted=True))
    if found.prior is not None:
        y = up(found.prior)
        parts.append(
            f'<path d="M{left} {y:.1f}H{right}" stroke="currentColor" stroke-width="1.5" '
            f'stroke-dasharray="{_DASHES[1]}"/>'
        )
        parts.append(_text(right, y - 6, f"prior {share(found.prior)}", anchor="end"))
    for place, curve in enumerate(found.curves):
        style = _paint(place)
        places = [(at(point.epochs), point) for point in curve.points]
        for x, point in places:
            parts.append(
                f'<path d="M{x:.1f} {up(point.low):.1f}V{up(point.high):.1f}" fill="none" '
                f'style="stroke:{style}" stroke-width="4" stroke-opacity=".28"/>'
            )
        line = "L".join(f"{x:.1f} {up(point.accuracy):.1f}" for x, point in places)
        parts.append(
            f'<path d="M{line}" fill="none" style="stroke:{style}" stroke-width="2" '
            f'stroke-dasharray="{_DASHES[place % len(_DASHES)]}"/>'
        )
        parts += [_marker(place, x, up(point.accuracy)) for x, point in places]
    legend, end = _legend(found.curves, left, bottom + 66, right)
    words = "; ".join(
        f"{curve.name}: "
        + ", ".join(f"{share(point.accuracy)} after {point.epochs}" for point in curve.points)
        for curve in found.curves
    )
    return _svg(
        ident,
        "Accuracy of each attack on shuffled labels, by number of epochs",
        words,
        end + 12,
        "".join(parts) + legend,
        width=width,
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """Shares from ``lowest`` to 1, laid out from left to right."""

    lowest: float
    left: float
    right: float

    def at(self, value: float) -> float:
        inside = min(1.0, max(self.lowest, value))
        return self.left + (self.right - self.left) * (inside - self.lowest) / (1 - self.lowest)


def _attack(attack: Attack, y: float, scale: _Scale) -> str:
    """A name, the interval with its dot, and the figure."""
    parts = [
        _text(0, y + 4, _short(attack.name), strong=attack.above),
        _text(_WIDTH, y + 4, share(attack.accuracy), anchor="end", strong=attack.above),
    ]
    if attack.by_auc and not attack.by_accuracy:
        words = f"AUC {share(attack.auc)}"
        parts.append(_text(_WIDTH, y + 16, words, anchor="end", size=10, strong=True))
    colour = "var(--leak, #b3261e)" if attack.by_accuracy else "currentColor"
    if attack.accuracy_low is not None and attack.accuracy_high is not None:
        low, high = scale.at(attack.accuracy_low), scale.at(attack.accuracy_high)
        parts.append(
            f'<path d="M{low:.1f} {y}H{high:.1f}M{low:.1f} {y - 5}v10M{high:.1f} {y - 5}v10" '
            f'fill="none" style="stroke:{colour}" stroke-width="2"/>'
        )
    if attack.accuracy is not None:
        fill = colour if attack.by_accuracy else "var(--surface, #ffffff)"
        parts.append(
            f'<circle cx="{scale.at(attack.accuracy):.1f}" cy="{y}" r="4.5" '
            f'style="fill:{fill};stroke:{colour}" stroke-width="2"/>'
        )
    return "".join(parts)


def _short(name: str) -> str:
    """A name that fits beside the plot; the table has the whole of it.

    >>> _short("least-squares"), _short("a-name-that-nobody-should-give")
    ('least-squares', 'a-name-that-nobody-sh…')
    """
    return name if len(name) <= 22 else f"{name[:21]}…"


def _floor(values: Sequence[float | None]) -> float:
    """Where an axis starts: at a half, or at the next tenth below the least value.

    >>> _floor([0.62, None]), _floor([0.47, 0.9]), _floor([])
    (0.5, 0.4, 0.5)
    """
    least = min((value for value in values if value is not None), default=0.5)
    return max(0.0, min(5, math.floor(10 * least)) / 10)


def _ticks(lowest: float, most: int = 7) -> list[float]:
    """Tenths down from 1, or fifths where tenths would be too many.

    >>> _ticks(0.5)
    [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    >>> _ticks(0.5, most=4), _ticks(0.0)
    ([0.6, 0.8, 1.0], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    """
    first = round(10 * lowest)
    step = 1 if 11 - first <= most else 2
    return [tenth / 10 for tenth in range(10, first - 1, -step)][::-1]


def _paint(place: int) -> str:
    number = place % len(_COLOURS)
    return f"var(--s{number + 1}, {_COLOURS[number]})"


def _marker(place: int, x: float, y: float) -> str:
    """A shape of its own for each curve."""
    return (
        f'<path transform="translate({x:.1f} {y:.1f})" d="{_SHAPES[place % len(_SHAPES)]}" '
        f'style="fill:var(--surface, #ffffff);stroke:{_paint(place)}" stroke-width="2"/>'
    )


def _legend(curves: Sequence[Curve], left: float, top: float, right: float) -> tuple[str, float]:
    """Line, shape and name of each curve, in as many lines as they need."""
    parts, x, y = [], left, top
    for place, curve in enumerate(curves):
        wide = 60 + 8 * len(_short(curve.name))
        if x + wide > right and x > left:
            x, y = left, y + 24
        parts.append(
            f'<path d="M{x:.1f} {y}h30" fill="none" style="stroke:{_paint(place)}" '
            f'stroke-width="2" stroke-dasharray="{_DASHES[place % len(_DASHES)]}"/>'
            + _marker(place, x + 15, y)
            + _text(x + 38, y + 4, _short(curve.name))
        )
        x += wide
    return "".join(parts), y


def _describe(found: Findings) -> str:
    attacks = [
        f"{each.name} {share(each.accuracy)}, 95 % interval "
        f"{interval(each.accuracy_low, each.accuracy_high)}"
        for each in found.attacks
    ]
    controls = [f"{each.name} {share(each.accuracy)}" for each in found.controls]
    return f"Controls: {'; '.join(controls)}. Attacks: {'; '.join(attacks) or 'none applies'}."


def _grid(path: str) -> str:
    return f'<path d="{path}" fill="none" style="stroke:var(--line, #d8dce3)"/>'


def _text(
    x: float,
    y: float,
    words: str,
    *,
    anchor: str = "start",
    muted: bool = False,
    strong: bool = False,
    size: int = 13,
) -> str:
    """Words with a rim in the colour of the ground, so that lines behind them do not disturb."""
    colour = "var(--muted, #5b6472)" if muted else "currentColor"
    weight = ' font-weight="600"' if strong else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{weight} '
        f'style="fill:{colour};stroke:var(--surface, #ffffff)" stroke-width="4" '
        f'stroke-linejoin="round" paint-order="stroke">{escape(words)}</text>'
    )


def _svg(
    ident: str, title: str, words: str, height: float, body: str, *, width: float = _WIDTH
) -> str:
    ident = escape(ident)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'role="img" aria-labelledby="{ident}-title {ident}-words" '
        'font-family="system-ui, sans-serif">'
        f'<title id="{ident}-title">{escape(title)}</title>'
        f'<desc id="{ident}-words">{escape(words)}</desc>{body}</svg>'
    )
