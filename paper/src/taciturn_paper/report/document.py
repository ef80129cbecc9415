"""Reproduction page: the paper's tables and figures next to ours, then the statements."""

from __future__ import annotations

from taciturn.report.blocks import (
    Figure,
    Figures,
    Page,
    Paragraph,
    Section,
    Span,
    Words,
    coded,
    table,
)
from taciturn_paper.report.plots import curves_svg
from taciturn_paper.report.tables import (
    SIGNS,
    cells,
    curve_name,
    epsilon,
    fixed_words,
    leak_tables,
    shapes,
    times,
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
            _statements(record),
            _table2(record["table2"]),
            *(_figure(record[name]) for name in FIGURES),
            _table3(record["table3"]),
            Section(
                "What is told of labels that were shuffled before training",
                "leaks",
                tuple(leak_tables(record["leaks"])),
                short="What is told",
            ),
            _claims(record["claims"]),
        ),
        wide=True,
    )


def _made(made: Record, command: str) -> Words:
    size = "A quick run: few seeds, a small grid. " if made["quick"] else ""
    return coded(
        f"{size}Made by `{command}` with taciturn {made['taciturn']}, Python {made['python']}, "
        f"NumPy {made['numpy']}, SciPy {made['scipy']} on {made['system']} {made['machine']} "
        f"({made['processor']}). Seeds begin at {made['seed']}. Every cell of Table II and of the "
        "figures can be had alone: `taciturn train --dataset D --mechanism M --epsilon E --scheme "
        "clear --seed S`, with `--variant`, `--b1` and `--b2` for `mult`."
    )


def _statements(record: Record) -> Section:
    rows: list[tuple[Words, ...]] = [
        (
            statement["name"],
            statement["paper"],
            statement["verdict"],
            statement["evidence"],
            Span(statement["command"], "code"),
        )
        for statement in record["statements"]
    ]
    headings = ("statement", "in the paper", "here", "evidence", "command")
    return Section(
        "What holds, what does not, what could not be decided",
        "statements",
        (table(headings, rows, caption="Each statement with its evidence", words=range(5)),),
        short="What holds",
    )


def _table2(record: Record) -> Section:
    signs = ", ".join(f"{sign} {words}" for words, sign in SIGNS.items())
    words = coded(
        "Means over seeds, each with a split, batches and noise of its own; ± is the 95 % interval "
        f"of the mean. Behind the paper's figure: {signs} (where it would lie in 95 of 100 cases "
        "if it were one more run of ours). `mult` is trained with the bounds that each seed's "
        "search finds on validation rows cut from its training rows, among as many as the last "
        "column says; all cells of a dataset share rate, epochs and batch size."
    )
    return Section("Table II", "table2", (Paragraph(words), *cells(record, whole=True)))


def _figure(record: Record) -> Section:
    title = f"Accuracy and AUC over {record['axis']}, means over seeds with 95 % intervals"
    drawing = Figure(record["figure"], title, "The table has the shapes.", curves_svg(record))
    return Section(
        f"Over {record['axis']}, at {fixed_words(record)}",
        record["figure"],
        (Figures((drawing,), wide=True), shapes(record)),
        short=f"Over {record['axis']}",
    )


def _table3(record: Record) -> Section:
    words = coded(
        f"Medians of {record['turns']} turns in which all contenders take part, both parties in "
        "one process; a whole training is scaled from the iterations measured. The rows of `phe` "
        "are the encrypted part of an iteration by python-paillier alone. The paper's seconds are "
        "of two machines across the Internet, and of epochs that it does not state: its ratios "
        "compare, its seconds do not."
    )
    absent = (Paragraph(f"Left out: {reason}.") for reason in record["left_out"])
    return Section("Table III", "table3", (Paragraph(words), *times(record, whole=True), *absent))


def _claims(record: Record) -> Section:
    rows = [
        (
            curve_name(row),
            f"{row['claimed']:g}",
            *(epsilon(row[name]) for name in ("residue", "label", "residue_at_least")),
            "refuted" if row["refuted"] else "",
        )
        for row in record["rows"]
    ]
    headings = ("mechanism", "claimed", "true, residue", "true, label", "shown, at least", "")
    words = (
        f"Shown: a lower bound from {record['samples']:,} samples on each secret, above the truth "
        f"with probability {record['failure']:g} at most."
    )
    claimed = table(headings, rows, caption="Claimed and true", words=(0, 5), grouped=True)
    return Section("The epsilon of one release", "claims", (Paragraph(words), claimed), "Epsilon")
