"""The end of one side's part in an alignment, for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from taciturn.report.record import Record
from taciturn.report.tables import data_size


def align(record: Record) -> RenderableType:
    """How many rows are common, where the list is, and what comes next."""
    title = Text(f"{record['role']} with {record['peer']}: alignment", style="bold")
    parts: list[RenderableType] = [title, _facts(record)]
    if not record["configured"]:
        parts.append(
            Text("To train on these rows, name this list in the settings, as [data] aligned.")
        )
    if not record["peer_confirmed"]:
        parts.append(
            Text(
                "the peer has not confirmed the last message; if it has no list, run both again",
                "yellow",
            )
        )
    return Group(*parts)


def _facts(record: Record) -> Table:
    table = Table(show_header=False, box=None)
    rows = [
        ("common rows", f"{record['common']:,}"),
        ("ids", f"{record['ids']:,} here, {record['peer_ids']:,} there"),
        ("normalised", record["normalise"]),
        (
            "time",
            f"{record['seconds']:.1f} s, of which {record['waiting_seconds']:.1f} s waiting for "
            "the peer",
        ),
        (
            "traffic",
            f"{data_size(record['bytes_sent'])} sent, "
            f"{data_size(record['bytes_received'])} received",
        ),
        ("list", record["file"]),
    ]
    for name, value in rows:
        table.add_row(Text(name, style="dim"), Text(value))
    return table
