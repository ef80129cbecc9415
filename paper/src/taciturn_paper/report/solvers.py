"""Tables of ``taciturn bench --trainings``: newton beside sgd, and what a row of a table costs."""

from __future__ import annotations

from taciturn.report.blocks import Block, Page, Paragraph, Span, Table, table
from taciturn.report.words import data_size
from taciturn_paper.record import Record
from taciturn_paper.report.tables import missing

_EXTRAPOLATED = "*"


def page(record: Record, command: str) -> Page:
    """The tables as a page of their own."""
    return Page(
        "taciturn bench", "Whole trainings", Span(command, "code"), tuple(solver_tables(record))
    )


def solver_tables(record: Record) -> list[Block]:
    """A table for each link, the ratios, the paper's times, and newton by size."""
    links = dict.fromkeys(row["link"] for row in record["solvers"])
    blocks: list[Block] = [_on_link(record["solvers"], link) for link in links]
    if blocks:
        blocks += [
            Paragraph(
                "steps are iterations of sgd and passes of newton: those that reach sgd's held-out "
                "loss and AUC, and the default ones; processor seconds are both parties'; "
                f"{_EXTRAPOLATED} extrapolated",
                "muted",
            ),
            _ratios(record["solvers"]),
            *_of_paper(record["solvers"]),
        ]
    if record["sizes"]:
        blocks += [_sizes(record["sizes"]), _stages(record["sizes"])]
    return [*blocks, machine(record), *missing(record)]


def _on_link(rows: list[Record], link: str) -> Table:
    lines = [
        (
            row["dataset"],
            row["solver"],
            f"{row['steps']:,}{_sign(row)}",
            _seconds(row["seconds"]),
            _seconds(row["processor_seconds"]),
            data_size(row["bytes_to_alice"]),
            data_size(row["bytes_to_bob"]),
            f"{row['round_trips']:,}",
            f"{row['test_loss']:.4f}",
            f"{row['test_auc']:.4f}",
        )
        for row in rows
        if row["link"] == link
    ]
    headings = ("", "solver", "steps", "s", "cpu s", "to Alice", "to Bob", "trips", "loss", "AUC")
    caption = f"Whole trainings with bfv, sgd with none and newton with sealed: {link}"
    return table(headings, lines, caption=caption, words=range(2), grouped=True)


def _ratios(rows: list[Record]) -> Table:
    """What sgd takes over what newton takes, for each of newton's rows."""
    lines = []
    base: Record = {}
    for row in rows:
        if row["solver"] == "sgd":
            base = row
            continue
        lines.append(
            (
                row["dataset"],
                row["link"],
                f"{row['steps']}{'' if row['reaches_target'] else ' (default)'}",
                *(
                    f"{_times(base, row, *names):,.1f}"
                    for names in (
                        ("seconds",),
                        ("processor_seconds",),
                        ("bytes_to_alice", "bytes_to_bob"),
                        ("round_trips",),
                    )
                ),
            )
        )
    headings = ("", "link", "passes", "time", "processor", "traffic", "round trips")
    caption = "How many times as much sgd takes as newton"
    return table(headings, lines, caption=caption, words=range(2), grouped=True)


def _of_paper(rows: list[Record]) -> list[Block]:
    known = {row["dataset"]: row["paper_seconds"] for row in rows if row["paper_seconds"]}
    if not known:
        return []
    listed = ", ".join(f"{name} {seconds:,.0f} s" for name, seconds in known.items())
    return [
        Paragraph(
            f"The paper's trainings, across the Internet, of epochs it does not state: {listed}",
            "muted",
        )
    ]


def machine(record: Record) -> Paragraph:
    """How many cores there were, and how busy they were with other things."""
    before, after = record["load_before"], record["load_after"]
    return Paragraph(
        f"{record['cores']} cores; the load was {before:.1f} before and {after:.1f} after",
        "muted",
    )


def _sizes(rows: list[Record]) -> Table:
    lines = [
        (
            f"{row['rows']:,} x {row['columns']}",
            f"{row['passes']}",
            _seconds(row["seconds_of_first_pass"]),
            _seconds(row["seconds_of_a_pass"]),
            f"{row['rows_per_second']:,.0f}",
            f"{row['rows_per_processor_second']:,.0f}",
            f"{row['bytes_to_alice_per_row']:.1f} + {row['bytes_to_bob_per_row']:.1f}",
            data_size(row["peak_bytes_alice"]),
            data_size(row["peak_bytes_bob"]),
        )
        for row in rows
    ]
    headings = (
        "",
        "passes",
        "first s",
        "pass s",
        "rows/s",
        "rows/cpu s",
        "bytes per row",
        "Alice",
        "Bob",
    )
    caption = (
        "A pass of newton between two processes; bytes to Alice and to Bob, and the memory of each"
    )
    return table(headings, lines, caption=caption)


def _stages(rows: list[Record]) -> Table:
    names = list(rows[0]["stages"])
    lines = [
        (
            f"{row['rows']:,} x {row['columns']}",
            *(_seconds(row["stages"][name]) for name in names),
            _seconds(row["seconds"]),
        )
        for row in rows
    ]
    caption = "Where the seconds go, over all passes and the last product"
    return table(("", *names, "in all"), lines, caption=caption)


def _sign(row: Record) -> str:
    return "" if row["steps_measured"] == row["steps"] else _EXTRAPOLATED


def _seconds(value: float) -> str:
    return f"{value:,.2f}" if value < 10 else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def _times(base: Record, row: Record, *names: str) -> float:
    return float(sum(base[name] for name in names) / sum(row[name] for name in names))
