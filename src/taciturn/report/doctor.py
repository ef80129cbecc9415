"""What the doctor found, for a terminal: one page."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from taciturn.report.record import Record
from taciturn.report.words import clean

_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def doctor(record: Record) -> RenderableType:
    """A line for each look, with the way out below what is not well."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for name in ("level", "area", "what"):
        table.add_column(name, no_wrap=name != "what", overflow="fold")
    for check in record["checks"]:
        what = Text(clean(check["what"]))
        if check["way_out"]:
            what.append(f"\ntry: {clean(check['way_out'])}", style="dim")
        level = Text(check["level"], style=_STYLES[check["level"]])
        table.add_row(level, Text(check["area"], style="dim"), what)
    return Group(table, _ending(record))


def _ending(record: Record) -> Text:
    problems, warnings = record["problems"], record["warnings"]
    if not problems and not warnings:
        return Text("all is well")
    return Text(
        f"{problems} {'problem' if problems == 1 else 'problems'}, "
        f"{warnings} {'warning' if warnings == 1 else 'warnings'}",
        style="bold red" if problems else "yellow",
    )
