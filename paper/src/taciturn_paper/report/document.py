"""The reproduction as a page: the paper's tables and figures beside ours, then what holds."""

from __future__ import annotations

from taciturn.report.record import Record
from taciturn.report.tables import percent
from taciturn_paper.report.curves import curves_svg
from taciturn_paper.report.page import Block, Grid, Heading, Paragraph, Picture
from taciturn_paper.report.tables import SIGNS, bounds, curve_name, leak_rows, ratio_of, shape_words

FIGURES = ("fig-b1", "fig-b2", "fig-eps")


def blocks(record: Record, command: str) -> list[Block]:
    """The page of ``taciturn reproduce all``.

    Args:
        record: Its record.
        command: The command as it was typed.
    """
    return [
        Heading("The paper, reproduced", 1),
        Paragraph(_made(record["made_with"], command)),
        *_statements(record),
        *_table2(record["table2"]),
        *(block for name in FIGURES for block in _figure(record[name])),
        *_table3(record["table3"]),
        *_leaks(record["leaks"]),
        *_claims(record["claims"]),
    ]


def pictures(page: list[Block]) -> list[Picture]:
    """The drawings of a page."""
    return [block for block in page if isinstance(block, Picture)]


def _made(made: Record, command: str) -> str:
    size = "A quick run: few seeds, a small grid. " if made["quick"] else ""
    return (
        f"{size}Made by `{command}` with taciturn {made['taciturn']}, Python {made['python']}, "
        f"NumPy {made['numpy']}, SciPy {made['scipy']} on {made['system']} {made['machine']} "
        f"({made['processor']}). Seeds begin at {made['seed']}. Every cell of Table II and of the "
        "figures can be had alone: `taciturn train --dataset D --mechanism M --epsilon E --scheme "
        "clear --seed S`, with `--variant`, `--b1` and `--b2` for `mult`."
    )


def _statements(record: Record) -> list[Block]:
    rows = [
        [each["name"], each["paper"], each["verdict"], each["evidence"], f"`{each['command']}`"]
        for each in record["statements"]
    ]
    headings = ["statement", "in the paper", "here", "evidence", "command"]
    return [
        Heading("What holds, what does not, what could not be decided"),
        Grid("Each statement with its evidence", headings, rows, words=range(5)),
    ]


def _table2(record: Record) -> list[Block]:
    found: list[Block] = [
        Heading("Table II"),
        Paragraph(
            "Means over seeds, each with a split, batches and noise of its own; ± is the 95 % "
            "interval of the mean. Behind the paper's figure: "
            + ", ".join(f"{sign} {words}" for words, sign in SIGNS.items())
            + " (where it would lie in 95 of 100 cases if it were one more run of ours). `mult` is "
            "trained with the bounds that each seed's search finds on validation rows cut from its "
            "training rows; all cells of a dataset share rate, epochs and batch size."
        ),
    ]
    for settings in record["settings"]:
        rows = [
            [
                curve_name(row),
                "" if row["epsilon"] is None else f"{row['epsilon']:g}",
                *(text for metric in ("accuracy", "auc") for text in _pair(row, metric)),
                bounds(row),
                "" if row["candidates"] is None else f"{row['candidates']}",
            ]
            for row in record["rows"]
            if row["dataset"] == settings["dataset"]
        ]
        caption = (
            f"{settings['dataset']}: {settings['train_rows']:,} rows to train, "
            f"{settings['test_rows']:,} to judge, batch {settings['batch_size']}, rate "
            f"{settings['learning_rate']:g}, {settings['epochs']} epochs, {settings['seeds']} "
            f"seeds; the commoner label is {percent(settings['commoner_label'])} %"
        )
        headings = ["", "ε", "accuracy %", "paper", "AUC %", "paper", "b1, b2 most often", "of"]
        found.append(Grid(caption, headings, rows))
    return found


def _pair(row: Record, metric: str) -> tuple[str, str]:
    half = (row[f"{metric}_high"] - row[f"{metric}_low"]) / 2
    sign = SIGNS[row[f"{metric}_place"]]
    return (
        f"{percent(row[metric])} ± {percent(half)}",
        f"{percent(row[f'paper_{metric}'])} {sign}",
    )


def _figure(record: Record) -> list[Block]:
    fixed = ", ".join(f"{name} = {value:g}" for name, value in record["fixed"].items())
    rows = []
    for shape in record["shapes"]:
        if shape["metric"] == "auc":
            both = [
                each
                for each in record["shapes"]
                if (each["dataset"], each["curve"]) == (shape["dataset"], shape["curve"])
            ]
            words = {each["metric"]: shape_words(each) for each in both}
            rows.append([shape["dataset"], shape["curve"], words["accuracy"], words["auc"]])
    return [
        Heading(f"Over {record['axis']}, at {fixed}"),
        Picture(
            record["figure"],
            f"Accuracy and AUC over {record['axis']}, means over seeds with 95 % intervals",
            curves_svg(record),
        ),
        Grid("Shapes", ["dataset", "curve", "accuracy", "AUC"], rows, words=range(4)),
    ]


def _table3(record: Record) -> list[Block]:
    rows = []
    for row in record["rows"]:
        ratio = ratio_of(record, row)
        rows.append(
            [
                row["dataset"],
                row["mechanism"],
                row["scheme"] or "none",
                "" if row["key_bits"] is None else str(row["key_bits"]),
                f"{row['ms_per_iteration']:.2f}",
                str(row["iterations_measured"]),
                f"{row['iterations']:,}",
                f"{row['training_seconds']:,.1f}",
                "" if row["paper_seconds"] is None else f"{row['paper_seconds']:,.1f}",
                "" if ratio is None else f"{ratio['ratio']:.2f}",
                ""
                if ratio is None
                else f"{max(0.0, ratio['ratio_low']):.2f} to {ratio['ratio_high']:.2f}",
                ""
                if ratio is None or ratio["paper_ratio"] is None
                else f"{ratio['paper_ratio']:.2f}",
            ]
        )
    headings = ["dataset", "mechanism", "scheme", "bits", "ms an iteration", "measured"]
    headings += ["iterations", "training s", "paper s", "over none", "95 %", "paper"]
    absent = [Paragraph(f"Left out: {each}.") for each in record["left_out"]]
    return [
        Heading("Table III"),
        Paragraph(
            f"Medians of {record['turns']} turns in which all contenders take part, both parties "
            "in one process; a whole training is scaled from the iterations measured. The rows of "
            "`phe` are the encrypted part of an iteration by python-paillier alone. The paper's "
            "seconds are of two machines across the Internet, and of epochs that it does not "
            "state: its ratios compare, its seconds do not."
        ),
        Grid("Times", headings, rows, words=range(3)),
        *absent,
    ]


def _leaks(record: Record) -> list[Block]:
    headings = ["dataset", "mechanism", "ε", "epochs", "attack", "right %", "certain %"]
    headings += ["prior %", "seconds"]
    return [
        Heading("What is told of labels that were shuffled before training"),
        Grid("Attacks on what Alice received", headings, leak_rows(record), words=(0, 1, 4)),
    ]


def _claims(record: Record) -> list[Block]:
    rows = [
        [
            curve_name(row),
            f"{row['claimed']:g}",
            *(_epsilon(row[name]) for name in ("residue", "label", "residue_at_least")),
            "refuted" if row["refuted"] else "",
        ]
        for row in record["rows"]
    ]
    headings = ["mechanism", "claimed", "true, residue", "true, label", "shown, at least", ""]
    return [
        Heading("The epsilon of one release"),
        Paragraph(
            f"Shown: a lower bound from {record['samples']:,} samples on each secret, above the "
            f"truth with probability {record['failure']:g} at most."
        ),
        Grid("Claimed and true", headings, rows, words=(0, 5)),
    ]


def _epsilon(value: float | str) -> str:
    return "∞" if value == "inf" else f"{float(value):.3f}"
