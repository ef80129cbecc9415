"""Tables of ``taciturn bench``: encryption, newton and sgd, SPU's Cheetah."""

from __future__ import annotations

from taciturn.errors import counted
from taciturn.report.blocks import Block, Page, Paragraph, Span, Table, table
from taciturn.report.formatting import data_size, percent
from taciturn_paper.report.tables import missing
from taciturn_paper.tasks import Record

_EXTRAPOLATED = "*"


def bench_page(title: str, tables: list[Block], command: str) -> Page:
    """A page of a benchmark's tables."""
    return Page("taciturn bench", title, Span(command, "code"), tuple(tables))


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
    """Ratio of sgd's cost to newton's, for each of newton's rows."""
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
    """Number of cores, and the load average before and after."""
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


def comparison(record: Record) -> list[Block]:
    """Cost and quality for each shape; then what each side sees."""
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


def benchmark(record: Record) -> list[Block]:
    """The encryption benchmark, shape by shape."""
    rows = [
        (
            f"{row['shape']}, {row['rows']} x {row['columns']}",
            row["scheme"],
            str(row["bits"]),
            f"{row['ms']:.2f}{'*' if row['repeats'] == 1 else ''}",
            f"{row['ms_ahead']:.2f}",
            "–" if row["times_phe"] is None else f"{row['times_phe']:.1f}",
            data_size(row["bytes_up"]),
            data_size(row["bytes_down"]),
            str(row["max_error"]),
        )
        for row in record["rows"]
    ]
    headings = ("shape", "scheme", "bits", "ms", "ahead ms", "times phe", "up", "down", "error")
    caption = "One iteration, rows by columns; bytes to Alice and to Bob"
    return [
        table(headings, rows, caption=caption, words=(0, 1), grouped=True),
        Paragraph("* measured once", "muted"),
        *([_trainings(record["trainings"])] if record["trainings"] else []),
    ]


def _trainings(rows: list[Record]) -> Table:
    lines = [
        (
            f"{row['dataset']}, {row['scheme']}",
            f"{row['ms_per_iteration']:.1f}",
            f"{percent(row['encryption_share'], 0)} %",
            f"{row['epoch_seconds']:,.1f}",
            data_size(row["bytes_to_alice_per_epoch"]),
            data_size(row["bytes_to_bob_per_epoch"]),
            f"{row['training_seconds']:,.0f} ({row['epochs']})",
            f"{row['paper_seconds']:,.0f}",
        )
        for row in rows
    ]
    headings = ("", "ms", "in encryption", "epoch s", "to Alice", "to Bob", "epochs s", "paper s")
    return table(headings, lines, caption="Whole trainings, both parties in one process")
