"""A model's file for a terminal: coefficients, and where they come from."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from taciturn.report.record import Record
from taciturn.report.tables import percent


def model_card(record: Record, top: int) -> RenderableType:
    """What a model's file says; at most so many coefficients."""
    title = Text(f"{record['role']}'s share of a model", style="bold")
    parts: list[RenderableType] = [title, _facts(record)]
    if record["coefficients"] is not None:
        parts.append(_coefficients(record, top))
        hidden = len(record["coefficients"]) - top
        if hidden > 0:
            parts.append(Text(f"and {hidden:,} smaller ones (--top, --json)", style="dim"))
    if record["metrics"]:
        parts.append(_metrics(record["metrics"]))
    parts.append(Text("preparation", style="bold"))
    lines = record["preparation"]
    parts += [Text(f"  {line}") for line in lines[:top]]
    if len(lines) > top:
        parts.append(Text(f"  and {len(lines) - top:,} more columns (--top, --json)", style="dim"))
    parts += [Text(f"note: {note}", style="yellow") for note in record["notes"]]
    return Group(*parts)


def _facts(record: Record) -> Table:
    table = Table(show_header=False, box=None)
    epsilon = "" if record["epsilon"] is None else f", epsilon {record['epsilon']}"
    for name, value in (
        ("holds", record["holds"]),
        ("protected by", f"{record['mechanism']}{epsilon}"),
        ("a label's epsilon in all", _paid(record["ledger"])),
        ("trained on", f"{record['rows']:,} rows, session {record['session']}"),
        ("agreement", record["agreement_digest"]),
        ("data", record["data_digest"]),
        ("written by", f"taciturn {record['taciturn']}"),
    ):
        table.add_row(Text(name, style="dim"), Text(value))
    return table


def _paid(ledger: Record) -> str:
    if not ledger:
        return "the ledger is in Bob's file"
    total = ledger.get("label_epsilon_total")
    said = "infinite: no protection" if total == "inf" else f"{_figure(total)}"
    return f"{said} ({ledger.get('assumption', 'the file does not say what that rests on')})"


def _figure(value: object, digits: str = "g") -> str:
    """A number in short; a dash for what is none: the file may come from anywhere."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:{digits}}" if number else "–"


def _coefficients(record: Record, top: int) -> Table:
    table = Table(box=None)
    table.add_column("column")
    table.add_column("prepared", justify="right")
    table.add_column("original unit", justify="right")
    for each in record["coefficients"][:top]:
        original = "says nothing" if each["original"] is None else f"{each['original']:.6g}"
        mark = " *" if each["clipped"] else ""
        table.add_row(Text(each["column"]), f"{each['prepared']:.6f}", f"{original}{mark}")
    name = "(this side's constant)" if record["intercept"] is None else "(intercept)"
    constant, offset = record["intercept"] or 0.0, record["original_offset"]
    table.add_row(name, f"{constant:.6f}", f"{offset:.6g}")
    if any(each["clipped"] for each in record["coefficients"]):
        table.caption = "* while the prepared value is within its clip"
    return table


def _metrics(metrics: Record) -> Table:
    table = Table(box=None)
    for name in ("", "accuracy %", "AUC %", "loss"):
        table.add_column(name, justify="left" if not name else "right")
    for key, name in (("train", "training rows"), ("held_out", "held-out rows")):
        found = metrics.get(key)
        if isinstance(found, dict):
            shares = (_share(found.get(each)) for each in ("accuracy", "auc"))
            table.add_row(name, *shares, _figure(found.get("loss"), ".4f"))
    return table


def _share(value: object) -> str:
    return percent(value) if isinstance(value, float) else "–"
