"""Reproduction page: verdicts on the paper's statements, then its tables and figures."""

from __future__ import annotations

from taciturn.report.blocks import (
    Figure,
    Figures,
    Page,
    Paragraph,
    Section,
    Words,
    coded,
)
from taciturn_paper.report.plots import curves_svg
from taciturn_paper.report.tables import (
    TABLE2_NOTE,
    TABLE3_NOTE,
    cells,
    fixed_words,
    load_words,
    shapes,
    statements,
    trainings,
    verdicts,
)
from taciturn_paper.tasks import Record

FIGURES = ("fig-b1", "fig-b2", "fig-eps")


def reproduction_page(record: Record, command: str) -> Page:
    """The page of ``taciturn reproduce all``, with the command as it was typed."""
    return Page(
        window="The paper, reproduced",
        title="The paper, reproduced",
        subject=_made(record["made_with"], command),
        blocks=(
            Section("Verdicts", "verdicts", tuple(verdicts(record))),
            Section("Statements", "statements", tuple(statements(record))),
            _table2(record["table2"]),
            _figures([record[name] for name in FIGURES]),
            _table3(record["table3"]),
        ),
        wide=True,
    )


def _made(made: Record, command: str) -> Words:
    size = "Quick run: few seeds, a small grid. " if made["quick"] else ""
    return coded(
        f"{size}Made by `{command}` with taciturn {made['taciturn']}, Python {made['python']}, "
        f"NumPy {made['numpy']}, SciPy {made['scipy']} on {made['system']} {made['machine']} "
        f"({made['processor']}); seeds from {made['seed']}. One cell: `taciturn train --dataset D "
        "--mechanism M --epsilon E --scheme clear --seed S` (`mult`: `--variant`, `--b1`, `--b2`). "
        "All figures: JSON files in `reproduction`."
    )


def _table2(record: Record) -> Section:
    return Section("Table II", "table2", (Paragraph(TABLE2_NOTE), *cells(record)))


def _figures(records: list[Record]) -> Section:
    drawings = [Figures((_figure(record),), wide=True) for record in records]
    words = Paragraph("Means over seeds with 95 % intervals.")
    return Section("Figures", "figures", (words, *drawings, shapes(records)))


def _figure(record: Record) -> Figure:
    title = f"Accuracy and AUC over {record['axis']} at {fixed_words(record)}"
    return Figure(record["figure"], title, "The table lists the shapes.", curves_svg(record))


def _table3(record: Record) -> Section:
    blocks = (Paragraph(TABLE3_NOTE), *load_words(record), trainings(record))
    return Section("Table III", "table3", blocks)
