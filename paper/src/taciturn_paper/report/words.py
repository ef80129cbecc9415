"""Tables of ``taciturn reproduce``: the paper's words beside what was found, as blocks."""

from __future__ import annotations

from taciturn.report.blocks import Block, Paragraph, Span, Words, table
from taciturn.report.words import percent
from taciturn_paper.record import Record
from taciturn_paper.report.tables import curve_name, missing, optional


def claims(record: Record) -> list[Block]:
    """The claimed epsilon of a release beside the true one, and what samples show."""
    keys = ("residue", "label", "numerical", "residue_at_least", "label_at_least")
    rows: list[tuple[Words, ...]] = [
        (curve_name(row), f"{row['claimed']:g}", *(epsilon(row[key]) for key in keys), _claim(row))
        for row in record["rows"]
    ]
    headings = ("", "claimed", "residue", "label", "by search", "residue ≥", "label ≥", "claim")
    bounds = next((row for row in record["rows"] if row["b1"] is not None), None)
    clips = "" if bounds is None else f"mult: b1 = {bounds['b1']:g}, b2 = {bounds['b2']:g}. "
    note = (
        f"{clips}Residue and label: closed forms. By search: the largest over all outputs of a "
        f"coarse grid. ≥: from {record['samples']:,} samples on each secret, seed "
        f"{record['seed']}; above the truth with probability {record['failure']:g} at most."
    )
    return [
        table(
            headings,
            rows,
            caption="Epsilon of one release: claimed, true, and shown",
            words=(0, 7),
            grouped=True,
        ),
        Paragraph(note, "muted"),
    ]


def _claim(row: Record) -> Words:
    """What is left of the claim: refuted by samples, false by its closed form, or true."""
    if row["refuted"]:
        return Span("refuted", "bad")
    false = row["residue"] == "inf" or row["residue"] > row["claimed"] * (1 + 1e-9)
    return Span("false", "bad") if false else "holds"


def epsilon(value: float | str) -> str:
    """An epsilon of a record, which is a number or the text inf.

    >>> epsilon("inf"), epsilon(0.5)
    ('∞', '0.500')
    """
    return "∞" if value == "inf" else f"{float(value):.3f}"


def learning(record: Record) -> list[Block]:
    """Which variants of ``mult`` learn."""
    rows: list[tuple[Words, ...]] = [
        (
            row["variant"],
            f"{row['b1']:g}",
            f"{row['b2']:g}",
            f"{row['learning_rate']:g}",
            percent(row["accuracy"]),
            percent(row["auc"]),
            f"{percent(row['auc_low'])} – {percent(row['auc_high'])}",
            "yes" if row["learns"] else Span("not shown", "bad"),
        )
        for row in record["rows"]
    ]
    noiseless, common = record["centralised"], percent(record["commoner_label"])
    figures = (percent(noiseless["accuracy"]), percent(noiseless["auc"]))
    rows += [
        (Span("no noise", "muted"), "", "", "", *figures, "", ""),
        (Span("commoner label", "muted"), "", "", "", common, percent(0.5), "", ""),
    ]
    headings = ("", "b1", "b2", "rate", "accuracy %", "AUC %", "95 % interval", "learns")
    caption = (
        f"mult at claimed epsilon {record['epsilon']:g} on {record['dataset']}, each variant at "
        "its best"
    )
    note = (
        f"Chosen among {record['rows'][0]['configurations']} by the mean AUC on validation rows; "
        f"means of {record['judging_seeds']} fresh noise seeds on the test rows, split by seed "
        f"{record['seed']}."
    )
    return [table(headings, rows, caption=caption, words=(0, 7)), Paragraph(note, "muted")]


def attacks(record: Record) -> list[Block]:
    """Mechanisms by datasets: how good the model is, what is told of the labels and of columns."""
    blocks: list[Block] = []
    headings = ("", "ε", "AUC %", "label ε in all", "told %", "95 %", "by", "columns R2 %")
    for dataset in dict.fromkeys(row["dataset"] for row in record["rows"]):
        rows = [row for row in record["rows"] if row["dataset"] == dataset]
        lines = [
            (
                row["curve"],
                optional(row["epsilon"]),
                percent(row["test_auc"]),
                epsilon(row["label_epsilon_total"]),
                percent(row["leakage"]),
                _range(row, "leakage"),
                row["best_attack"] or "no attack applies",
                percent(row["columns_told"], 1),
            )
            for row in rows
        ]
        prior = percent(rows[0]["commoner_label"])
        caption = f"{dataset}: utility beside leakage; the commoner label is {prior} %"
        blocks.append(table(headings, lines, caption=caption, words=(0, 6)))
    note = (
        "Told: right guesses of the best attack where labels were shuffled before training; means "
        f"of {record['seeds']} seeds from {record['seed']} on. AUC: held-out rows, true labels. "
        "Columns: what the best attack from Bob's seat explains of Alice's, where her rows were "
        "permuted against his before training. Accuracy and every attack's figures: --json."
    )
    return [*blocks, Paragraph(note, "muted"), *missing(record)]


def recovery(record: Record) -> list[Block]:
    """Where sparse recovery stops as the response grows."""
    lines = [
        (
            f"{row['l_rr']:.0f}",
            *(
                percent(row[attack][figure], 1)
                for attack in ("sparse", "known_scores")
                for figure in ("right", "certain")
            ),
            "recovers" if row["recoverable"] else "stops",
            row["check_sparse"],
        )
        for row in record["rows"]
    ]
    headings = ("L_RR", "sparse %", "certain %", "known-scores %", "certain %", "curve", "check")
    caption = (
        f"{record['dataset']}: hybrid as L_RR grows, {record['alice_columns']} columns, "
        f"{record['true_rows']:.1f} true rows, one epoch, shuffled labels"
    )
    note = (
        "The shares are right guesses of the rows an attack speaks about; check is its verdict on "
        f"sparse. The curve of [DonohoMM09] stops at L_RR {record['transition']}. Seed "
        f"{record['seed']}."
    )
    return [table(headings, lines, caption=caption, words=(5, 6)), Paragraph(note, "muted")]


def labels(record: Record) -> list[Block]:
    """``label-rr`` against ``add`` at the same total, and the two losses."""
    blocks: list[Block] = []
    headings = ("", "total", "epochs", "rate", "accuracy %", "AUC %", "95 %", "told %", "95 %")
    for reference in record["references"]:
        lines = [
            (
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
            for row in record["rows"]
            if row["dataset"] == reference["dataset"]
        ]
        caption = (
            f"{reference['dataset']}: no noise {percent(reference['accuracy'])} %, AUC "
            f"{percent(reference['auc'])} %; the commoner label is "
            f"{percent(reference['commoner_label'])} %"
        )
        blocks.append(table((*headings, "at most"), lines, caption=caption))
    seeds = " or ".join(str(count) for count in sorted({row["seeds"] for row in record["rows"]}))
    note = (
        "The same total label epsilon; epochs and rate that did best on validation rows. Means and "
        f"intervals over seeds of noise ({seeds}); split by seed {record['seed']}. Told: right "
        "guesses at coin labels. At most: what the total allows anyone."
    )
    return [*blocks, Paragraph(note, "muted"), *missing(record), *_runaway(record)]


def _range(row: Record, name: str) -> str:
    return f"{percent(row[f'{name}_low'], 0)} – {percent(row[f'{name}_high'], 0)}"


def _runaway(record: Record) -> list[Block]:
    lines = [
        (
            f"{row['loss_name']} at {row['epsilon']:g}",
            f"{row['epochs']}",
            f"{row['largest_weight']:.2f}",
            f"{row['loss']:.3f}",
            percent(row["accuracy"]),
            percent(row["auc"]),
        )
        for row in record["runaway"]
    ]
    headings = ("loss at ε", "epochs", "largest weight", "its value", "accuracy %", "AUC %")
    caption = "The same flipped labels of breast-cancer under two losses"
    return [table(headings, lines, caption=caption, grouped=True)]
