"""The end of one side's part in a training, for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from taciturn.report.record import Record
from taciturn.report.tables import data_size, percent


def party(record: Record) -> RenderableType:
    """What one side has: how it went, how good the model is, what the labels paid."""
    title = Text(f"{record['role']} with {record['peer']}: ", style="bold")
    encrypted = f", {record['scheme']} {record['key_bits']}" if record["key_bits"] else ""
    title.append(f"{record['mechanism']}{encrypted}", style="bold")
    parts: list[RenderableType] = [title, _facts(record)]
    if record.get("metrics"):
        parts.append(_metrics(record["metrics"]))
    if record.get("ledger"):
        parts.append(_ledger(record["ledger"]))
    if not record.get("peer_confirmed", True):
        parts.append(
            Text(
                "the peer has not confirmed the last message; if it lacks it, run both sides again",
                "yellow",
            )
        )
    return Group(*parts)


def _facts(record: Record) -> Table:
    table = Table(show_header=False, box=None)
    rows = [
        ("rows", f"{record['rows']:,} for training, {record['held_out_rows']:,} held out"),
        ("columns", f"{record['columns']} here"),
    ]
    if record.get("dry_run"):
        rows.append(("peer's columns", str(record["peer_columns"])))
        rows.append(("dry run", "the two sides fit; nothing was trained"))
        lines = [f"{name} = {value}" for name, value in record["agreement"].items()]
        rows.append(("[agreement]", "to hold on to these sizes, add on both sides:"))
        rows += [("", line) for line in lines]
        if record["estimate"]:
            rows.append(("estimate", _estimate(record["estimate"])))
    else:
        rows += _run(record)
    for name, value in rows:
        table.add_row(Text(name, style="dim"), Text(value))
    return table


def _estimate(estimate: Record) -> str:
    traffic = data_size(estimate["bytes_to_alice"] + estimate["bytes_to_bob"])
    seconds = estimate["seconds"]
    computing = "under 0.1 s" if seconds < 0.1 else f"about {seconds:,.1f} s"
    return (
        f"{estimate['iterations']:,} iterations, {computing} of computing, {traffic} of traffic; "
        "the network's time comes on top"
    )


def _run(record: Record) -> list[tuple[str, str]]:
    run = record["run"]
    total = run["iterations_total"]
    return [
        *([("iterations", f"{run['iterations']:,} of {total:,}")] if total else []),
        *([("ended early", record["stopped"])] if record["stopped"] else []),
        (
            "time",
            f"{run['seconds']:.1f} s, of which {run['waiting_seconds']:.1f} s waiting for the peer",
        ),
        (
            "traffic",
            f"{data_size(run['bytes_sent'])} sent, {data_size(run['bytes_received'])} received, "
            f"over {run['links']} link{'s' if run['links'] != 1 else ''}",
        ),
        ("model", record["model"]),
    ]


def _metrics(metrics: Record) -> Table:
    table = Table(box=None)
    for name in ("", "accuracy %", "AUC %", "loss"):
        table.add_column(name, justify="left" if not name else "right")
    for key, name in (("train", "training rows"), ("held_out", "held-out rows")):
        if key in metrics:
            found = metrics[key]
            table.add_row(
                name, percent(found["accuracy"]), percent(found["auc"]), f"{found['loss']:.4f}"
            )
    return table


def _ledger(ledger: Record) -> Text:
    total = ledger["label_epsilon_total"]
    said = "infinite: no protection" if total == "inf" else f"{total:g}"
    return Text(f"a label's epsilon in all: {said}\n  {ledger['assumption']}")
