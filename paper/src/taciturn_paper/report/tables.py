"""Terminal tables of ``taciturn reproduce``: the paper's tables and figures beside ours."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from taciturn.report.record import Record
from taciturn.report.tables import data_size, percent

# Where the paper's figure lies, as a sign behind it.
SIGNS = {
    "in the interval of the mean": "=",
    "in the interval of a run": "≈",
    "outside": "≠",
}


def table2(record: Record) -> RenderableType:
    """Table II, one block for each dataset."""
    parts: list[RenderableType] = []
    for settings in record["settings"]:
        table = Table(
            title=f"{settings['dataset']}: batch {settings['batch_size']}, rate "
            f"{settings['learning_rate']:g}, {settings['epochs']} epochs, {settings['seeds']} "
            f"seeds; the commoner label is {percent(settings['commoner_label'])} %",
            title_justify="left",
        )
        table.add_column("", no_wrap=True)
        for heading in ("ε", "accuracy %", "paper", "AUC %", "paper", "b1, b2 most often"):
            table.add_column(heading, justify="right", no_wrap=True)
        last = None
        for row in (r for r in record["rows"] if r["dataset"] == settings["dataset"]):
            name = curve_name(row)
            if last not in (None, name):
                table.add_section()
            last = name
            table.add_row(
                name,
                "" if row["epsilon"] is None else f"{row['epsilon']:g}",
                *(
                    text
                    for metric in ("accuracy", "auc")
                    for text in (_mean(row, metric), _paper(row, metric))
                ),
                bounds(row),
            )
        parts.append(table)
    note = (
        "  ± is the 95 % interval of the mean over seeds. The paper's figure: = lies in it,\n  ≈ "
        "could be one more run of ours (95 %), ≠ neither. b1, b2: chosen for each seed on\n  "
        f"validation rows. Seeds from {record['seed']} on."
    )
    return Group(*parts, Text(note, style="dim"), *missing(record))


def curve_name(row: Record) -> str:
    """A mechanism with its variant.

    >>> curve_name({"mechanism": "mult", "variant": "printed"})
    'mult printed'
    """
    return f"{row['mechanism']} {row['variant'] or ''}".rstrip()


def bounds(row: Record) -> str:
    """The bounds that were chosen most often, and how often."""
    chosen = [(run["b1"], run["b2"]) for run in row["runs"] if run["b1"] is not None]
    if not chosen:
        return ""
    most = max(sorted(set(chosen)), key=chosen.count)
    return f"{most[0]:.3g}, {most[1]:g} ({chosen.count(most)}/{len(chosen)})"


def figure(record: Record) -> RenderableType:
    """A figure's curves as a table of AUCs, and what shape they have."""
    fixed = ", ".join(f"{name} = {value:g}" for name, value in record["fixed"].items())
    places = list(dict.fromkeys(row["at"] for row in record["rows"] if row["at"] is not None))
    parts: list[RenderableType] = []
    for dataset in dict.fromkeys(row["dataset"] for row in record["rows"]):
        rows = [row for row in record["rows"] if row["dataset"] == dataset]
        base = next(row for row in rows if row["curve"] == "none")
        table = Table(
            title=f"{dataset}: AUC % over {record['axis']} at {fixed}; without noise "
            f"{percent(base['auc'])}",
            title_justify="left",
        )
        table.add_column("")
        for place in places:
            table.add_column(f"{place:.3g}", justify="right", no_wrap=True)
        table.add_column("shape")
        for curve in dict.fromkeys(row["curve"] for row in rows if row["curve"] != "none"):
            values = {row["at"]: row["auc"] for row in rows if row["curve"] == curve}
            table.add_row(
                curve,
                *(percent(values[place], 1) for place in places),
                shape_words(_shape(record, dataset, curve)),
            )
        parts.append(table)
    note = (
        "  Means over seeds. A curve rises (falls) if its peak lies above its first (last) point,\n"
        "  by the 95 % interval of the paired difference. Accuracy and every interval: --json."
    )
    return Group(*parts, Text(note, style="dim"), *missing(record))


def _shape(record: Record, dataset: str, curve: str) -> Record:
    found: Record = next(
        each
        for each in record["shapes"]
        if (each["dataset"], each["curve"], each["metric"]) == (dataset, curve, "auc")
    )
    return found


def shape_words(shape: Record) -> str:
    """A curve's shape in words.

    >>> shape_words({"rises": True, "falls": False, "peak": 1.0})
    'rises'
    """
    if shape["rises"] and shape["falls"]:
        return f"rises to {shape['peak']:.3g}, falls"
    return "rises" if shape["rises"] else "falls" if shape["falls"] else "flat"


def table3(record: Record) -> RenderableType:
    """Table III: times and ratios."""
    table = Table(
        title="One iteration and a whole training, both parties in one process",
        title_justify="left",
    )
    for heading in ("", "", "scheme"):
        table.add_column(heading, no_wrap=True)
    for heading in ("ms", "training s", "paper s", "over none", "paper"):
        table.add_column(heading, justify="right", no_wrap=True)
    last = None
    for row in record["rows"]:
        if last not in (None, row["dataset"]):
            table.add_section()
        ratio = ratio_of(record, row)
        table.add_row(
            "" if last == row["dataset"] else row["dataset"],
            row["mechanism"],
            "none" if row["scheme"] is None else f"{row['scheme']} {row['key_bits']}",
            f"{row['ms_per_iteration']:.2f}",
            f"{row['training_seconds']:,.1f}",
            "" if row["paper_seconds"] is None else f"{row['paper_seconds']:,.1f}",
            "" if ratio is None else f"{ratio['ratio']:.2f}",
            "" if ratio is None or ratio["paper_ratio"] is None else f"{ratio['paper_ratio']:.2f}",
        )
        last = row["dataset"]
    note = (
        f"  Medians of {record['turns']} turns; trainings scaled from the iterations measured "
        "(phe: the encrypted part alone).\n  The paper's seconds are of two machines, and of "
        "epochs that it does not state."
    )
    absent = [Text(f"  {each}", "yellow") for each in record["left_out"]]
    return Group(table, Text(note, style="dim"), *missing(record), *absent)


def leaks(record: Record) -> RenderableType:
    """What attacks get right of labels that were shuffled before training."""
    table = Table(title="Labels shuffled before training", title_justify="left")
    for heading in ("", "mechanism", "ε", "epochs", "attack"):
        table.add_column(heading, no_wrap=True)
    for heading in ("right %", "certain %", "prior %", "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    last = None
    for each in leak_rows(record):
        if last not in (None, each[0]):
            table.add_section()
        table.add_row("" if last == each[0] else each[0], *each[1:])
        last = each[0]
    trained = [
        Text(
            f"  {row['dataset']}: hybrid's weights differ by "
            f"{row['hybrid_trained']['max_weight_difference']:.1e} at most from centralised ones",
            style="dim",
        )
        for row in record["rows"]
    ]
    return Group(table, *trained, *missing(record))


def leak_rows(record: Record) -> list[list[str]]:
    """One line for each attack: what it was run on, and what it got right."""
    found = []
    for row in record["rows"]:
        seen = [("none", row["none"]), ("hybrid", row["hybrid"])]
        for mechanism, each in [*seen, *(("add", noisy) for noisy in row["add"])]:
            epsilon = f"{each['epsilon']:g}" if mechanism == "add" else ""
            found += [
                [
                    row["dataset"],
                    mechanism,
                    epsilon,
                    str(each["epochs"]),
                    score["name"],
                    percent(score["accuracy"]),
                    percent(score["decided"]),
                    percent(each["commoner_label"]),
                    f"{score['seconds']:.1f}",
                ]
                for score in each["attacks"]
            ]
    return found


def ratio_of(record: Record, row: Record) -> Record | None:
    """The ratio to the baseline that belongs to a row of times."""
    key = (row["dataset"], row["mechanism"], row["scheme"])
    return next(
        (r for r in record["ratios"] if (r["dataset"], r["mechanism"], r["scheme"]) == key), None
    )


def everything(record: Record) -> RenderableType:
    """What is left of each statement."""
    styles = {"holds": "green", "does not hold": "red", "holds in part": "yellow"}
    table = Table(title="What the paper states", title_justify="left", show_lines=False)
    table.add_column("statement", max_width=30)
    table.add_column("here", no_wrap=True)
    table.add_column("evidence")
    for each in record["statements"]:
        verdict = Text(each["verdict"], style=styles.get(each["verdict"], ""))
        table.add_row(each["name"], verdict, each["evidence"])
        table.add_section()
    return Group(table, *missing(record["table2"]))


def missing(record: Record) -> Iterable[Text]:
    """A line for each dataset that is not here."""
    return [Text(f"  {name} is not here: left out", "yellow") for name in record["missing"]]


def _mean(row: Record, metric: str) -> str:
    half = (row[f"{metric}_high"] - row[f"{metric}_low"]) / 2
    return f"{percent(row[metric])} ± {percent(half)}"


def _paper(row: Record, metric: str) -> str:
    return f"{percent(row[f'paper_{metric}'])} {SIGNS[row[f'{metric}_place']]}"


def benchmark(record: Record) -> RenderableType:
    """The encryption benchmark, shape by shape."""
    table = Table(
        title="One iteration, rows by columns; bytes to Alice and to Bob", title_justify="left"
    )
    for heading in ("", "scheme", "bits"):
        table.add_column(heading)
    for heading in ("ms", "ahead ms", "times phe", "up", "down", "error"):
        table.add_column(heading, justify="right")
    last = ""
    for row in record["rows"]:
        if last and row["shape"] != last:
            table.add_section()
        name = f"{row['shape']}, {row['rows']} x {row['columns']}" if row["shape"] != last else ""
        last = row["shape"]
        once = "*" if row["repeats"] == 1 else ""
        table.add_row(
            name,
            row["scheme"],
            str(row["bits"]),
            f"{row['ms']:.2f}{once}",
            f"{row['ms_ahead']:.2f}",
            "–" if row["times_phe"] is None else f"{row['times_phe']:.1f}",
            data_size(row["bytes_up"]),
            data_size(row["bytes_down"]),
            str(row["max_error"]),
        )
    notes = Text("  * measured once", style="dim")
    trainings = [_trainings(record["trainings"])] if record["trainings"] else []
    return Group(table, notes, *trainings)


def _trainings(rows: list[Record]) -> Table:
    table = Table(title="Whole trainings, both parties in one process", title_justify="left")
    table.add_column("")
    for heading in (
        "ms per iteration",
        "in encryption %",
        "epoch s",
        "epoch to Alice",
        "to Bob",
        "all epochs s",
        "paper s",
    ):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            f"{row['dataset']}, {row['scheme']}",
            f"{row['ms_per_iteration']:.1f}",
            percent(row["encryption_share"], 0),
            f"{row['epoch_seconds']:,.1f}",
            data_size(row["bytes_to_alice_per_epoch"]),
            data_size(row["bytes_to_bob_per_epoch"]),
            f"{row['training_seconds']:,.0f} ({row['epochs']})",
            f"{row['paper_seconds']:,.0f}",
        )
    return table
