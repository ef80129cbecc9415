"""The end of one side's part in a joint prediction, for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from taciturn.report.record import Record
from taciturn.report.tables import data_size

MOST_SHOWN = 10


def prediction(record: Record) -> RenderableType:
    """What one side did; at Bob the first of the scores, and what they mean."""
    title = Text(f"{record['role']} with {record['peer']}: prediction of ", style="bold")
    title.append(f"{record['rows']:,} row{'s' if record['rows'] != 1 else ''}", style="bold")
    parts: list[RenderableType] = [title, _facts(record)]
    if record["role"] == "alice":
        parts.append(Text(f"You learnt {record['learnt']}."))
        return Group(*parts)
    parts.append(_scores(record["scores"]))
    if len(record["scores"]) > MOST_SHOWN:
        parts.append(Text(f"and {len(record['scores']) - MOST_SHOWN:,} more", style="dim"))
    parts.append(Text(f"The probability is that {record['meaning']}."))
    if record["suspected_wraps"]:
        parts.append(
            Text(
                f"{record['suspected_wraps']:,} scores lie near the end of their range, and may "
                "have wrapped: these rows have values far beyond the training's",
                "yellow",
            )
        )
    if record["out"]:
        parts.append(Text(f"wrote {record['out']}"))
    return Group(*parts)


def _facts(record: Record) -> Table:
    table = Table(show_header=False, box=None)
    weights = "Alice's weights are shared" if record["shared_weights"] else "weights of each side"
    for name, value in (
        ("model", record["model"]),
        ("training", f"{record['mechanism']}, session {record['session']}; {weights}"),
        ("time", f"{record['seconds']:.1f} s"),
        (
            "traffic",
            f"{data_size(record['bytes_sent'])} sent, "
            f"{data_size(record['bytes_received'])} received",
        ),
    ):
        table.add_row(Text(name, style="dim"), Text(value))
    return table


def _scores(lines: list[Record]) -> Table:
    table = Table(box=None)
    for name in ("id", "score", "probability", "class"):
        table.add_column(name, justify="left" if name == "id" else "right")
    for line in lines[:MOST_SHOWN]:
        table.add_row(
            Text(line["id"]),
            f"{line['score']:.6f}",
            f"{line['probability']:.6f}",
            f"{line['class']}",
        )
    return table
