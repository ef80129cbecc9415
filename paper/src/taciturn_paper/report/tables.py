"""Tables of ``taciturn reproduce``: the paper's figures next to ours, as blocks.

A page has room for more columns than a terminal: ``whole`` asks for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from taciturn.report.blocks import Block, Paragraph, Span, Table, Tone, Words, table
from taciturn.report.formatting import percent
from taciturn_paper.tasks import Record

# Where the paper's figure lies, as a sign behind it.
SIGNS = {
    "in the interval of the mean": "=",
    "in the interval of a run": "≈",
    "outside": "≠",
}
# A column: its heading, what it says of a row, and whether a terminal has room for it.
Columns = Sequence[tuple[str, Callable[[Record], str], bool]]


def chosen(
    columns: Columns, rows: Iterable[Record], *, whole: bool
) -> tuple[list[str], list[list[str]]]:
    """The headings and cells of a table: all columns, or those that a terminal has room for."""
    shown = [column for column in columns if whole or column[2]]
    cells = [[write(row) for _, write, _ in shown] for row in rows]
    return [heading for heading, _, _ in shown], cells


def missing(record: Record) -> list[Block]:
    """A line for each dataset that is not here."""
    return [Paragraph(f"{name} is not here: left out", "warning") for name in record["missing"]]


def curve_name(row: Record) -> str:
    """A mechanism with its variant.

    >>> curve_name({"mechanism": "mult", "variant": "printed"})
    'mult printed'
    """
    return f"{row['mechanism']} {row['variant'] or ''}".rstrip()


def optional(value: float | None, digits: str = "g") -> str:
    """A number, or nothing where there is none."""
    return "" if value is None else f"{value:{digits}}"


# --- Table II ---------------------------------------------------------------------------------


def table2(record: Record) -> list[Block]:
    """Table II, one block for each dataset."""
    note = (
        "± is the 95 % interval of the mean over seeds. The paper's figure: = lies in it, ≈ could "
        "be one more run of ours (95 %), ≠ neither. b1, b2: those chosen most often, for each seed "
        f"on validation rows. Seeds from {record['seed']} on."
    )
    return [*cells(record), Paragraph(note, "muted"), *missing(record)]


def cells(record: Record, *, whole: bool = False) -> list[Table]:
    """The cells of Table II, a table for each dataset."""
    columns: Columns = (
        ("", curve_name, True),
        ("ε", lambda row: optional(row["epsilon"]), True),
        ("accuracy %", lambda row: _mean(row, "accuracy"), True),
        ("paper", lambda row: _paper(row, "accuracy"), True),
        ("AUC %", lambda row: _mean(row, "auc"), True),
        ("paper", lambda row: _paper(row, "auc"), True),
        ("b1, b2", _bounds, True),
        ("of", lambda row: optional(row["candidates"]), False),
    )
    tables = []
    for settings in record["settings"]:
        rows = [row for row in record["rows"] if row["dataset"] == settings["dataset"]]
        headings, lines = chosen(columns, rows, whole=whole)
        caption = (
            f"{settings['dataset']}: {settings['train_rows']:,} rows to train, "
            f"{settings['test_rows']:,} to judge, batch {settings['batch_size']}, rate "
            f"{settings['learning_rate']:g}, {settings['epochs']} epochs, {settings['seeds']} "
            f"seeds; the commoner label is {percent(settings['commoner_label'])} %"
        )
        tables.append(table(headings, lines, caption=caption, grouped=True))
    return tables


def _mean(row: Record, metric: str) -> str:
    half = (row[f"{metric}_high"] - row[f"{metric}_low"]) / 2
    return f"{percent(row[metric])} ± {percent(half)}"


def _paper(row: Record, metric: str) -> str:
    return f"{percent(row[f'paper_{metric}'])} {SIGNS[row[f'{metric}_place']]}"


def _bounds(row: Record) -> str:
    """The bounds that were chosen most often, and how often."""
    bounds = [(run["b1"], run["b2"]) for run in row["runs"] if run["b1"] is not None]
    if not bounds:
        return ""
    most = max(sorted(set(bounds)), key=bounds.count)
    return f"{most[0]:.3g}, {most[1]:g} ({bounds.count(most)}/{len(bounds)})"


# --- the figures ------------------------------------------------------------------------------


def figure(record: Record) -> list[Block]:
    """A figure's curves as a table of AUCs, and what shape they have."""
    fixed = fixed_words(record)
    places = list(dict.fromkeys(row["at"] for row in record["rows"] if row["at"] is not None))
    blocks: list[Block] = []
    for dataset in dict.fromkeys(row["dataset"] for row in record["rows"]):
        rows = [row for row in record["rows"] if row["dataset"] == dataset]
        base = next(row for row in rows if row["curve"] == "none")
        lines = []
        for curve in dict.fromkeys(row["curve"] for row in rows if row["curve"] != "none"):
            values = {row["at"]: row["auc"] for row in rows if row["curve"] == curve}
            aucs = [percent(values[place], 1) for place in places]
            lines.append([curve, *aucs, shape_words(record, dataset, curve, "auc")])
        headings = ["", *(f"{place:.3g}" for place in places), "shape"]
        caption = (
            f"{dataset}: AUC % over {record['axis']} at {fixed}; without noise "
            f"{percent(base['auc'])}"
        )
        blocks.append(table(headings, lines, caption=caption, words=(0, len(headings) - 1)))
    note = (
        "Means over seeds. A curve rises (falls) if its peak lies above its first (last) point, by "
        "the 95 % interval of the paired difference. Accuracy and every interval: --json."
    )
    return [*blocks, Paragraph(note, "muted"), *missing(record)]


def fixed_words(record: Record) -> str:
    """Parameters that are fixed along a figure's axis."""
    return ", ".join(f"{name} = {value:g}" for name, value in record["fixed"].items())


def shapes(record: Record) -> Table:
    """Shape of each curve of a figure, by both metrics."""
    curves = dict.fromkeys((shape["dataset"], shape["curve"]) for shape in record["shapes"])
    rows = [
        (*curve, *(shape_words(record, *curve, metric) for metric in ("accuracy", "auc")))
        for curve in curves
    ]
    headings = ("dataset", "curve", "accuracy", "AUC")
    return table(headings, rows, caption="Shapes", words=range(4))


def shape_words(record: Record, dataset: str, curve: str, metric: str) -> str:
    """A curve's shape in words.

    >>> shape = {"dataset": "d", "curve": "add", "metric": "auc"}
    >>> record = {"shapes": [{**shape, "rises": True, "falls": False, "peak": 1.0}]}
    >>> shape_words(record, "d", "add", "auc")
    'rises'
    """
    key = (dataset, curve, metric)
    shape = next(
        one for one in record["shapes"] if (one["dataset"], one["curve"], one["metric"]) == key
    )
    if shape["rises"] and shape["falls"]:
        return f"rises to {shape['peak']:.3g}, falls"
    return "rises" if shape["rises"] else "falls" if shape["falls"] else "flat"


# --- Table III --------------------------------------------------------------------------------


def table3(record: Record) -> list[Block]:
    """Table III: times and ratios."""
    note = (
        f"Medians of {record['turns']} turns; trainings scaled from the iterations measured (phe: "
        "the encrypted part alone). The paper's seconds are of two machines, and of epochs that it "
        "does not state."
    )
    absent = [Paragraph(words, "warning") for words in record["left_out"]]
    return [*times(record), Paragraph(note, "muted"), *missing(record), *absent]


def times(record: Record, *, whole: bool = False) -> list[Table]:
    """One iteration and a whole training of each contender, and its ratio to the baseline."""

    def ratio(name: str, digits: str = ".2f") -> Callable[[Record], str]:
        def write(row: Record) -> str:
            ratios = _ratio(record, row)
            return "" if ratios is None else optional(ratios[name], digits)

        return write

    def spread(row: Record) -> str:
        ratios = _ratio(record, row)
        if ratios is None:
            return ""
        return f"{max(0.0, ratios['ratio_low']):.2f} to {ratios['ratio_high']:.2f}"

    columns: Columns = (
        ("mechanism", lambda row: row["mechanism"], True),
        ("scheme", lambda row: row["scheme"] or "none", True),
        ("bits", lambda row: optional(row["key_bits"]), True),
        ("ms", lambda row: f"{row['ms_per_iteration']:.2f}", True),
        ("measured", lambda row: str(row["iterations_measured"]), False),
        ("iterations", lambda row: f"{row['iterations']:,}", False),
        ("training s", lambda row: f"{row['training_seconds']:,.1f}", True),
        ("paper s", lambda row: optional(row["paper_seconds"], ",.1f"), True),
        ("over none", ratio("ratio"), True),
        ("95 %", spread, False),
        ("paper", ratio("paper_ratio"), True),
    )
    tables = []
    for dataset in dict.fromkeys(row["dataset"] for row in record["rows"]):
        rows = [row for row in record["rows"] if row["dataset"] == dataset]
        headings, lines = chosen(columns, rows, whole=whole)
        caption = f"{dataset}: one iteration and a whole training, both parties in one process"
        tables.append(table(headings, lines, caption=caption, words=range(2)))
    return tables


def _ratio(record: Record, row: Record) -> Record | None:
    """The ratio to the baseline that belongs to a row of times."""
    key = (row["dataset"], row["mechanism"], row["scheme"])
    return next(
        (r for r in record["ratios"] if (r["dataset"], r["mechanism"], r["scheme"]) == key), None
    )


# --- what is told, and what holds -------------------------------------------------------------


def leaks(record: Record) -> list[Block]:
    """Recovery of labels shuffled before training; hybrid's distance from centralised weights."""
    trained = [
        Paragraph(
            f"{row['dataset']}: hybrid's weights differ by "
            f"{row['hybrid_trained']['max_weight_difference']:.1e} at most from centralised ones",
            "muted",
        )
        for row in record["rows"]
    ]
    return [*leak_tables(record), *trained, *missing(record)]


def leak_tables(record: Record) -> list[Table]:
    """A line for each attack: what it was run on, and what it got right."""
    headings = ("mechanism", "ε", "epochs", "attack", "right %", "certain %", "prior %", "seconds")
    tables = []
    for row in record["rows"]:
        views = [("none", row["none"]), ("hybrid", row["hybrid"])]
        views += [("add", noisy) for noisy in row["add"]]
        lines = [
            (
                mechanism,
                f"{view['epsilon']:g}" if mechanism == "add" else "",
                str(view["epochs"]),
                score["name"],
                percent(score["accuracy"]),
                percent(score["decided"]),
                percent(view["commoner_label"]),
                f"{score['seconds']:.1f}",
            )
            for mechanism, view in views
            for score in view["attacks"]
        ]
        caption = f"{row['dataset']}: labels shuffled before training"
        tables.append(table(headings, lines, caption=caption, words=(0, 3), grouped=True))
    return tables


def everything(record: Record) -> list[Block]:
    """Verdict on each statement."""
    tones: dict[str, Tone] = {"holds": "good", "does not hold": "bad", "holds in part": "warning"}
    rows: list[tuple[Words, ...]] = [
        (
            statement["name"],
            Span(statement["verdict"], tones.get(statement["verdict"], "")),
            statement["evidence"],
        )
        for statement in record["statements"]
    ]
    statements = table(
        ("statement", "here", "evidence"),
        rows,
        caption="What the paper states",
        words=range(3),
        grouped=True,
    )
    return [statements, *missing(record["table2"])]


def claims(record: Record) -> list[Block]:
    """Claimed and true epsilon of a release, with bounds from samples."""
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
    """Verdict on the claim: refuted by samples, false by its closed form, or true."""
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
    """Mechanisms by datasets: model quality, and recovered labels and columns."""
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
                _percent_range(row, "leakage"),
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
    """Limit of sparse recovery as the response grows."""
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
                _percent_range(row, "auc"),
                percent(row["told"]),
                _percent_range(row, "told"),
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


def _percent_range(row: Record, name: str) -> str:
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
