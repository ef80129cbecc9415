"""The figures of an audit and of a comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    NullLocator,
)

from taciturn.report.blocks import printable
from taciturn.report.formatting import share
from taciturn.report.plots import (
    AMBER,
    CALM,
    COLOURS,
    DASHES,
    INK,
    LEAK,
    MUTED,
    POINTS,
    SURFACE,
    count_shares,
    plot,
    style,
    to_svg,
)
from taciturn_audit.results.audit import AfterEpochs, AttackScore, Findings
from taciturn_audit.results.compare import ComparedMechanism, Comparison
from taciturn_audit.verdict import Measure, Verdict, interval_of, value_of

# As many as there are attacks: colours and dashes come again, shapes do not.
_SHAPES = ("o", "s", "D", "^", "v", "X", "P", "p", "*", "h", "<")


def attacks_svg(findings: Findings, verdict: Verdict, name: str) -> str:
    """The picture of attacks and controls, for a page."""
    with style():
        return to_svg(attacks_figure(findings, verdict), name)


def attacks_figure(findings: Findings, verdict: Verdict) -> Figure:
    """Each attack's figure with its interval below the controls, which are vertical lines.

    The figure is that by which the verdict ranks; the axis names it. A filled dot is an attack that
    recovers more than every control; where the other figure shows it, it is given beside the dot.
    """
    controls, attacks, by = verdict.controls, findings.attacks, verdict.ranked_by
    names = [
        *(_short(scored.name) for scored in controls),
        *(_short(scored.name) for scored in attacks),
    ]
    names += [] if attacks else ["no attack applies"]
    lows = [interval_of(scored, by)[0] for scored in attacks]
    lowest = _floor([value_of(scored, by) for scored in controls] + lows)
    figure = Figure((430 / POINTS, (30 * len(names) + 60) / POINTS), layout="constrained")
    axes = figure.add_subplot(xlim=(lowest, 1.0), ylim=(len(names) - 0.4, -0.7), xlabel=by)
    count_shares(axes, "x", ticks=4)
    for place, control in enumerate(controls):
        ends = [place, len(names) - 0.5]
        looks = {"color": INK, "linestyle": DASHES[1 + place % 2]}
        plot(axes, [value_of(control, by)] * 2, ends, **looks)
        _beside(axes, place, share(value_of(control, by)))
    for place, attack in enumerate(attacks, start=len(controls)):
        _attack(axes, place, attack, verdict, lowest)
    axes.set_yticks(range(len(names)), names)
    for place, label in enumerate(axes.get_yticklabels()):
        label.set_color(MUTED if place < len(controls) else INK)
        label.set_fontweight("bold" if names[place] in map(_short, verdict.above) else "normal")
    return figure


def _attack(axes: Axes, place: int, attack: AttackScore, verdict: Verdict, lowest: float) -> None:
    by, above = verdict.ranked_by, verdict.above.get(attack.name)
    colour = LEAK if above is not None else INK
    ends = _inside(lowest, *interval_of(attack, by))
    plot(axes, ends, [place] * 2, color=colour, linewidth=2, marker="|", markersize=9)
    fill = {"markerfacecolor": colour if above is not None else SURFACE}
    dot = {"color": colour, "marker": "o", "markersize": 8, "markeredgewidth": 2, **fill}
    plot(axes, _inside(lowest, value_of(attack, by)), [place], **dot)
    other = f"\n{above} {share(value_of(attack, above))}" if above and above != by else ""
    _beside(axes, place, f"{share(value_of(attack, by))}{other}")


def bars_svg(
    names: Sequence[str],
    values: Sequence[float | None],
    leaks: Sequence[bool] | None,
    baseline: float | None,
    name: str,
) -> str:
    """One bar for each mechanism; red where an attack leaks, grey where ``leaks`` is None."""
    with style():
        figure = Figure((300 / POINTS, (30 * len(names) + 40) / POINTS), layout="constrained")
        axes = figure.add_subplot(xlim=(0, 1), ylim=(len(names) - 0.4, -0.6))
        count_shares(axes, "x", ticks=3)
        for place, value in enumerate(values):
            colour = MUTED if leaks is None else LEAK if leaks[place] else CALM
            if value is None:
                # Clear of the baseline, which is dashed through all rows.
                start = 0.02 if baseline is None or baseline > 0.5 else baseline + 0.03
                axes.text(start, place, "no attack", va="center", fontsize=12, color=CALM)
            else:
                bar = {"color": colour, "linewidth": 14, "solid_capstyle": "butt"}
                plot(axes, [0, value], [place] * 2, **bar)
                _beside(axes, place, share(value))
        if baseline is not None:
            ends = [-0.5, len(names) - 0.5]
            plot(axes, [baseline] * 2, ends, color=INK, linestyle=DASHES[1])
        axes.set_yticks(range(len(names)), [_short(entry) for entry in names])
        axes.tick_params(axis="y", labelcolor=INK)
        return to_svg(figure, name)


def compare_svg(comparison: Comparison, name: str) -> str:
    """Each mechanism's model against how well the best attack recovers shuffled labels.

    Where no attack applies, a mechanism stands at what is known without any message.
    """
    by = comparison.ranked_by
    known = max(row.shuffled.known for row in comparison.compared)
    spots = [(_recovered(row), 0.0 if row.auc is None else row.auc) for row in comparison.compared]
    left = _floor([x for x, _ in spots] + [known])
    low = min(0.9, math.floor(10 * min(y for _, y in spots)) / 10)
    with style():
        figure = Figure((860 / POINTS, 380 / POINTS), layout="constrained")
        axes = figure.add_subplot(xlim=(left, 1.0), ylim=(low, 1.0))
        axes.set_xlabel(f"{by} of the best attack on shuffled labels")
        axes.set_ylabel("model's AUC, held-out rows")
        count_shares(axes, "x", ticks=6)
        count_shares(axes, "y", ticks=6)
        axes.tick_params(pad=9)
        looks = {"color": INK, "linestyle": DASHES[1], "label": f"baseline {share(known)}"}
        plot(axes, [known, known], [low, 1.0], **looks)
        for place, (compared, (x, y)) in enumerate(zip(comparison.compared, spots, strict=True)):
            colour = outcome_colour(compared)
            near = [other for other in spots[:place] if abs(other[0] - x) < 0.01]
            # At the right edge there is room on the left only.
            step = 0.03 * (1.0 - left) * (-1 if x > 0.95 else 1)
            x += step * sum(abs(other[1] - y) < 0.02 for other in near)
            leak = compared.shuffled.leak
            epsilon = "" if compared.epsilon is None else f" ε {compared.epsilon:g}"
            mark = {"marker": _SHAPES[place % len(_SHAPES)], "markersize": 12, "linestyle": "none"}
            fill = {"markerfacecolor": colour if leak else SURFACE, "markeredgewidth": 2}
            label = _short(f"{compared.mechanism}{epsilon}")
            plot(axes, _inside(left, x), _inside(low, y), color=colour, label=label, **mark, **fill)
        figure.legend(loc="outside lower center", ncols=5, handlelength=2.5)
        return to_svg(figure, name)


def outcome_colour(compared: ComparedMechanism) -> str:
    """Red for a leak; amber for one that the ledger bounds, or no leak and no bound; else green."""
    if compared.cleared:
        return CALM
    return LEAK if compared.shuffled.leak and not compared.bounded else AMBER


def _recovered(compared: ComparedMechanism) -> float:
    best = compared.shuffled
    return best.known if best.value is None else best.value


class Point(NamedTuple):
    """Success of an attack after this many epochs, with its interval."""

    value: float
    low: float
    high: float


def epochs_svg(
    rows: Sequence[AfterEpochs], prior: float | None, name: str, by: Measure = "accuracy"
) -> str:
    """Each attack's figure by number of epochs; the prior is a horizontal line."""
    curves, epochs = curves_of(rows, by), [row.epochs for row in rows]
    lows = [point.low for points in curves.values() for point in points.values()]
    lowest = _floor([*lows, *([] if prior is None else [prior])])
    with style():
        height = 300 + 22 * math.ceil(len(curves) / 2)
        figure = Figure((860 / POINTS, height / POINTS), layout="constrained")
        axes = figure.add_subplot(xscale="log", xlabel="epochs (logarithmic)", ylim=(lowest, 1.0))
        axes.set_xlim(epochs[0] / 1.15, epochs[-1] * 1.15)
        axes.set_ylabel(by)
        axes.xaxis.set_major_locator(FixedLocator(epochs))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
        count_shares(axes, "y", ticks=7)
        same: dict[tuple[float, ...], list[str]] = {}
        for curve, points in curves.items():
            # Curves that coincide would hide each other: they are drawn once, with all names.
            heights = tuple(round(point.value, 3) for point in points.values())
            same.setdefault(heights, []).append(curve)
        for place, names in enumerate(same.values()):
            shown = ", ".join(map(_short, names))
            _curve(axes, place, shown, curves[names[0]], lowest)
        if prior is not None:
            looks = {"color": INK, "linestyle": DASHES[1], "label": f"prior {share(prior)}"}
            plot(axes, axes.get_xlim(), [prior, prior], **looks)
        figure.legend(loc="outside lower left", ncols=2, handlelength=3.5)
        return to_svg(figure, name)


def curves_of(rows: Sequence[AfterEpochs], by: Measure = "accuracy") -> dict[str, dict[int, Point]]:
    """Each attack's figure by number of epochs."""
    curves: dict[str, dict[int, Point]] = {}
    for row in rows:
        for attack in row.attacks:
            point = Point(attack.accuracy, attack.accuracy_low, attack.accuracy_high)
            if by == "AUC" and attack.auc is not None:
                # The caller that asks for the AUC has checked that every record has it.
                point = Point(attack.auc, attack.auc_low or 0.0, attack.auc_high or 0.0)
            curves.setdefault(attack.name, {})[row.epochs] = point
    return curves


def _curve(axes: Axes, place: int, name: str, points: dict[int, Point], lowest: float) -> None:
    colour = COLOURS[place % len(COLOURS)]
    for epochs, point in points.items():
        ends = _inside(lowest, point.low, point.high)
        plot(axes, [epochs, epochs], ends, color=colour, alpha=0.3, linewidth=4)
    looks = {"color": colour, "linewidth": 2, "markersize": 8, "markerfacecolor": SURFACE}
    dash, shape = DASHES[place % len(DASHES)], _SHAPES[place % len(_SHAPES)]
    heights = _inside(lowest, *(point.value for point in points.values()))
    named = {"linestyle": dash, "marker": shape, "label": name}
    plot(axes, list(points), heights, **looks, **named)


def _beside(axes: Axes, place: int, words: str) -> None:
    size = 10 if "\n" in words else 12
    where = axes.get_yaxis_transform()
    axes.text(1.06, place, words, transform=where, va="center", fontsize=size, color=INK)


def _inside(lowest: float, *values: float) -> list[float]:
    """Shares clipped to the scale: an interval of a mean may extend beyond it."""
    return [min(1.0, max(lowest, value)) for value in values]


def _floor(values: Sequence[float]) -> float:
    """Start of an axis: a half, or the next tenth below the least value that is not NaN.

    >>> _floor([0.62]), _floor([0.47, 0.9]), _floor([math.nan])
    (0.5, 0.4, 0.5)
    """
    known = [value for value in values if not math.isnan(value)]
    return max(0.0, min(5, math.floor(10 * min(known, default=1.0))) / 10)


def _short(name: str) -> str:
    plain = printable(name)
    return plain if len(plain) <= 22 else f"{plain[:21]}…"
