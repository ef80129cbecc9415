"""Tables of ``taciturn bench --against spu``: what a training takes, and the model that comes out.

What each side may see is said beside them: processor time alone does not compare protocols.
"""

from __future__ import annotations

from taciturn.errors import counted
from taciturn.report.blocks import Block, Page, Paragraph, Span, Table, table
from taciturn.report.words import data_size
from taciturn_paper.record import Record
from taciturn_paper.report.solvers import machine

SEEN = (
    (
        "mutual",
        "sizes, settings",
        "sizes, settings",
        "both keep to the protocol; IND-CPA of BFV keys of 128 bits; masks within 2^-40",
    ),
    (
        "sealed",
        "sizes, settings",
        "besides, every row's score in every pass",
        "as mutual",
    ),
    (
        "spu",
        "sizes, program, batches",
        "sizes, program, batches",
        "both keep to the protocol; RLWE keys of 128 bits; LPN, for its OT",
    ),
)


def page(record: Record, command: str) -> Page:
    """The tables as a page of their own."""
    blocks = tuple(comparison(record))
    return Page("taciturn bench", "Beside SPU's Cheetah", Span(command, "code"), blocks)


def comparison(record: Record) -> list[Block]:
    """For each shape what it takes and what it gives; then who sees what."""
    blocks: list[Block] = []
    for shape in record["shapes"]:
        rows = [row for row in record["runs"] if row["batch_size"] == shape["batch_size"]]
        blocks += [_costs(shape, rows), _models(shape, rows)]
    had = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return [
        *blocks,
        Paragraph(
            "cpu s: of both processes, from when they are connected to the end of the last epoch "
            "or pass, "
            f"in the turn that took least ({counted(record['repeats'], 'turn')} each); ratio: over "
            "mutual; one more: each epoch or pass after the first; before: to load libraries and "
            "to compile, no part of the others; bytes as the kernel counts them, ours with TLS, "
            "SPU's by its default without",
            "muted",
        ),
        table(
            ("", "Alice sees", "Bob sees", "rests on"),
            SEEN,
            caption="Who sees what until something is opened",
            words=range(4),
        ),
        Paragraph(f"With SPU: {had}", "muted"),
        machine(record),
    ]


def _costs(shape: Record, rows: list[Record]) -> Table:
    base = next(row for row in rows if row["contender"] == "mutual")["processor_seconds"]
    lines = [
        (
            _name(row),
            f"{row['processor_seconds']:.2f}",
            f"{row['processor_seconds'] / base:.1f}",
            _further(row),
            f"{row['seconds']:.1f}",
            data_size(row["bytes_to_alice"]),
            data_size(row["bytes_to_bob"]),
            f"{row['start_processor_seconds']:.1f} + {row['compile_processor_seconds']:.1f}",
        )
        for row in rows
    ]
    headings = ("", "cpu s", "ratio", "one more", "s", "to Alice", "to Bob", "before")
    caption = (
        f"What it takes: {shape['dataset']}, {shape['rows']} rows, {shape['alice_columns']} + "
        f"{shape['bob_columns']} columns; ours on the whole table, SPU in batches of "
        f"{shape['batch_size']}, {counted(shape['iterations'], 'iteration')} in "
        f"{counted(shape['epochs'], 'epoch')}"
    )
    return table(headings, lines, caption=caption, words=range(1))


def _name(row: Record) -> str:
    return f"{row['contender']}, {row['sigmoid']}"


def _further(row: Record) -> str:
    if row["epochs"] == 1:
        return "–"
    later = row["processor_seconds"] - row["processor_seconds_of_first_epoch"]
    return f"{later / (row['epochs'] - 1):.2f}"


def _models(shape: Record, rows: list[Record]) -> Table:
    lines = [
        (
            _name(row),
            *_quality(row),
            f"{row['max_weight_difference']:.0e}",
            f"{row['sigmoid_error']:.0e}",
            f"{row['sigmoid_error_within_scores']:.0e}",
        )
        for row in rows
    ]
    joined = [
        ("joined rows, optimum", *_quality(shape["optimum"]), "–", "–", "–"),
        ("joined rows, batches", *_quality(shape), "–", "–", "–"),
    ]
    headings = ("", "accuracy", "AUC", "log loss", "weights", "sigmoid", "sigmoid, seen")
    caption = (
        "What comes out, on held-out rows; the largest differences from the training on joined "
        "rows (ours from the optimum): of a weight, of the sigmoid at scores up to 32, and at "
        f"scores up to {shape['largest_score']:.1f}, the largest of a training row"
    )
    return table(headings, [*lines, *joined], caption=caption, words=range(1))


def _quality(row: Record) -> tuple[str, str, str]:
    return f"{row['test_accuracy']:.2%}", f"{row['test_auc']:.4f}", f"{row['test_loss']:.4f}"
