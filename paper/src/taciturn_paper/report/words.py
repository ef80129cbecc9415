"""Tables of ``taciturn reproduce``: the paper's words beside what was found."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from taciturn.report.record import Record
from taciturn.report.tables import percent


def claims(record: Record) -> RenderableType:
    """The claimed epsilon of a release beside the true one, and what samples show."""
    table = Table(title="Epsilon of one release: claimed, true, and shown", title_justify="left")
    for heading in ("", "claimed", "residue", "label", "by search", "residue ≥", "label ≥"):
        table.add_column(heading, justify="left" if not heading else "right")
    table.add_column("claim")
    last = None
    for row in record["rows"]:
        name = row["mechanism"] + (f" {row['variant']}" if row["variant"] else "")
        if last not in (None, name):
            table.add_section()
        last = name
        table.add_row(
            name,
            f"{row['claimed']:g}",
            *(
                _number(row[key])
                for key in ("residue", "label", "numerical", "residue_at_least", "label_at_least")
            ),
            _claim(row),
        )
    bounds = next((row for row in record["rows"] if row["b1"] is not None), None)
    clips = "" if bounds is None else f"mult: b1 = {bounds['b1']:g}, b2 = {bounds['b2']:g}. "
    note = (
        f"  {clips}Residue and label: closed forms. By search: the largest over all outputs of a "
        f"coarse grid.\n  ≥: from {record['samples']:,} samples on each secret, seed "
        f"{record['seed']}; above the truth with probability {record['failure']:g} at most."
    )
    return Group(table, Text(note, style="dim"))


def learning(record: Record) -> RenderableType:
    """Which variants of ``mult`` learn."""
    table = Table(
        title=f"mult at claimed epsilon {record['epsilon']:g} on {record['dataset']}, each variant "
        "at its best",
        title_justify="left",
    )
    table.add_column("")
    for heading in ("b1", "b2", "rate", "accuracy %", "AUC %", "95 % interval"):
        table.add_column(heading, justify="right")
    table.add_column("learns")
    for row in record["rows"]:
        table.add_row(
            row["variant"],
            f"{row['b1']:g}",
            f"{row['b2']:g}",
            f"{row['learning_rate']:g}",
            percent(row["accuracy"]),
            percent(row["auc"]),
            f"{percent(row['auc_low'])} – {percent(row['auc_high'])}",
            "yes" if row["learns"] else Text("not shown", style="red"),
        )
    table.add_section()
    noiseless = record["centralised"]
    figures = (percent(noiseless["accuracy"]), percent(noiseless["auc"]))
    table.add_row("[dim]no noise[/dim]", "", "", "", *figures, "", "")
    table.add_row("[dim]commoner label[/dim]", "", "", "", percent(record["commoner_label"]), "50")
    note = (
        f"  Chosen among {record['rows'][0]['configurations']} by the mean AUC on validation rows; "
        f"means of {record['judging_seeds']} fresh noise seeds\n  on the test rows, split by seed "
        f"{record['seed']}."
    )
    return Group(table, Text(note, style="dim"))


def attacks(record: Record) -> RenderableType:
    """Mechanisms by datasets: how good the model is, and what is told of the labels."""
    parts: list[RenderableType] = []
    for dataset in dict.fromkeys(row["dataset"] for row in record["rows"]):
        rows = [row for row in record["rows"] if row["dataset"] == dataset]
        prior = percent(rows[0]["commoner_label"])
        table = Table(
            title=f"{dataset}: utility beside leakage; the commoner label is {prior} %",
            title_justify="left",
        )
        table.add_column("")
        for heading in ("epsilon", "accuracy %", "AUC %", "label ε in all", "told %", "95 %"):
            table.add_column(heading, justify="right")
        table.add_column("by")
        for row in rows:
            low, high = percent(row["leakage_low"], 0), percent(row["leakage_high"], 0)
            table.add_row(
                row["curve"],
                "" if row["epsilon"] is None else f"{row['epsilon']:g}",
                percent(row["test_accuracy"]),
                percent(row["test_auc"]),
                _number(row["label_epsilon_total"]),
                percent(row["leakage"]),
                f"{low} – {high}",
                row["best_attack"] or "no attack applies",
            )
        parts.append(table)
    note = (
        f"  Told: right guesses of the best attack where labels were shuffled before training; "
        f"means of {record['seeds']} seeds from {record['seed']} on.\n  Accuracy and AUC: held-out "
        "rows, true labels. Every attack's figures: --json."
    )
    absent = [Text(f"  {name} is not here: left out", "yellow") for name in record["missing"]]
    return Group(*parts, Text(note, style="dim"), *absent)


def recovery(record: Record) -> RenderableType:
    """Where sparse recovery stops as the response grows."""
    table = Table(
        title=f"{record['dataset']}: hybrid as L_RR grows, {record['alice_columns']} columns, "
        f"{record['true_rows']:.1f} true rows, one epoch, shuffled labels",
        title_justify="left",
    )
    for heading in ("L_RR", "sparse right %", "certain %", "known-scores right %", "certain %"):
        table.add_column(heading, justify="right")
    table.add_column("curve")
    table.add_column("check on sparse")
    for row in record["rows"]:
        table.add_row(
            f"{row['l_rr']:.0f}",
            percent(row["sparse"]["right"], 1),
            percent(row["sparse"]["certain"], 1),
            percent(row["known_scores"]["right"], 1),
            percent(row["known_scores"]["certain"], 1),
            "recovers" if row["recoverable"] else "stops",
            row["check_sparse"],
        )
    note = (
        f"  Right: of the rows an attack speaks about. The curve of [DonohoMM09] stops at L_RR "
        f"{record['transition']}. Seed {record['seed']}."
    )
    return Group(table, Text(note, style="dim"))


def labels(record: Record) -> RenderableType:
    """``label-rr`` against ``add`` at the same total, and the two losses."""
    parts: list[RenderableType] = []
    for reference in record["references"]:
        table = Table(
            title=f"{reference['dataset']}: no noise {percent(reference['accuracy'])} %, AUC "
            f"{percent(reference['auc'])} %; the commoner label is "
            f"{percent(reference['commoner_label'])} %",
            title_justify="left",
        )
        table.add_column("")
        for heading in ("total", "epochs", "rate", "accuracy %", "AUC %", "95 %", "told %", "95 %"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("at most", justify="right")
        for row in record["rows"]:
            if row["dataset"] == reference["dataset"]:
                table.add_row(
                    row["mechanism"],
                    f"{row['label_epsilon_total']:g}",
                    f"{row['epochs']}",
                    f"{row['learning_rate']:g}",
                    percent(row["accuracy"]),
                    percent(row["auc"]),
                    _range(row, "auc"),
                    percent(row["told"]),
                    _range(row, "told"),
                    percent(row["ceiling"]),
                )
        parts.append(table)
    note = (
        "  The same total label epsilon; epochs and rate that did best on validation rows.\n"
        f"  Means and intervals over seeds of noise ({_seeds(record)}); split by seed "
        f"{record['seed']}.\n"
        "  Told: right guesses at coin labels. At most: what the total allows anyone."
    )
    absent = [Text(f"  {name} is not here: left out", "yellow") for name in record["missing"]]
    return Group(*parts, Text(note, style="dim"), *absent, _runaway(record))


def _seeds(record: Record) -> str:
    return " or ".join(str(each) for each in sorted({row["seeds"] for row in record["rows"]}))


def _range(row: Record, name: str) -> str:
    return f"{percent(row[f'{name}_low'], 0)} – {percent(row[f'{name}_high'], 0)}"


def _runaway(record: Record) -> RenderableType:
    table = Table(
        title="The same flipped labels of breast-cancer under two losses", title_justify="left"
    )
    table.add_column("loss")
    for heading in ("epsilon", "epochs", "largest weight", "its value", "accuracy %", "AUC %"):
        table.add_column(heading, justify="right")
    last = None
    for row in record["runaway"]:
        name = (row["loss_name"], row["epsilon"])
        if last not in (None, name):
            table.add_section()
        last = name
        table.add_row(
            row["loss_name"],
            f"{row['epsilon']:g}",
            f"{row['epochs']}",
            f"{row['largest_weight']:.2f}",
            f"{row['loss']:.3f}",
            percent(row["accuracy"]),
            percent(row["auc"]),
        )
    return table


def _claim(row: Record) -> Text:
    """What is left of the claim: refuted by samples, false by its closed form, or true."""
    if row["refuted"]:
        return Text("refuted", style="red")
    false = row["residue"] == "inf" or row["residue"] > row["claimed"] * (1 + 1e-9)
    return Text("false", style="red") if false else Text("holds")


def _number(value: Any) -> str:  # noqa: ANN401 - a number, or the text "inf"
    return "∞" if value == "inf" else f"{value:.3f}"
