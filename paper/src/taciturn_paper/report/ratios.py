"""The benchmark's figure: bars on a logarithmic scale."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from taciturn.report.plots import INK, LINE, MUTED, style, to_svg
from taciturn_paper.record import Record

_COLOURS = {"bfv": "#0072b2", "paillier": "#d55e00", "heu": "#999999"}


def ratios_svg(record: Record) -> str:
    """How many times python-paillier each scheme is, by shape; a log scale from 1 to 10,000.

    Args:
        record: Of ``taciturn bench`` with phe among the rivals.
    """
    shown = [row for row in record["rows"] if row["times_phe"] and row["scheme"] != "phe"]
    names = [f"{row['shape']}, {row['scheme']} {row['bits']}" for row in shown]
    with style():
        figure = Figure(figsize=(12.0, 0.6 + 0.25 * len(shown)), layout="constrained")
        axes = figure.add_subplot()
        colours = [_COLOURS.get(row["scheme"].split("-")[0], MUTED) for row in shown]
        bars = axes.barh(names, [row["times_phe"] for row in shown], color=colours)
        axes.bar_label(bars, [f" {row['times_phe']:,.0f}x" for row in shown], color=INK)
        axes.set_xscale("log")
        axes.set_xlim(1, 10_000)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.invert_yaxis()
        axes.set_axisbelow(True)
        axes.grid(axis="x", color=LINE)
        axes.set_xlabel("times as fast as python-paillier, one iteration")
        return to_svg(figure, "ratios")
