"""Tables of ``taciturn reproduce``: the paper's figures next to ours, as blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from taciturn.report.blocks import (
    Block,
    Bullets,
    Heading,
    Paragraph,
    Span,
    Table,
    Tone,
    Words,
    table,
)
from taciturn.report.formatting import percent
from taciturn_paper.tasks import Record

TONES: dict[str, Tone] = {
    "holds": "good",
    "does not hold": "bad",
    "holds in part": "warning",
    "not decided": "muted",
}


def missing(record: Record) -> list[Block]:
    """A line for each dataset that is not installed."""
    return [Paragraph(f"{name}: data not found, omitted", "warning") for name in record["missing"]]


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


TABLE2_NOTE = (
    "Per cent; mean over seeds ± its 95 % interval. Each seed has its own split, batches, noise "
    "and, for mult, bounds b1 and b2, selected on validation rows. No model has an intercept. ≠: "
    "the paper's figure lies "
    "outside the 95 % interval of a single run of ours."
)


def table2(record: Record) -> list[Block]:
    """Table II, two blocks for each dataset."""
    note = f"{TABLE2_NOTE} Seeds from {record['seed']} on. Bounds: --json."
    return [*cells(record), Paragraph(note, "muted"), *missing(record)]


def cells(record: Record) -> list[Table]:
    """The cells of Table II: for each dataset ``none`` and ``add``, then ``mult`` by variant."""
    tables = []
    for settings in record["settings"]:
        rows = [row for row in record["rows"] if row["dataset"] == settings["dataset"]]
        plain = [row for row in rows if row["mechanism"] != "mult"]
        lines = [
            (
                row["mechanism"],
                optional(row["epsilon"]),
                *(
                    cell
                    for metric in ("accuracy", "auc")
                    for cell in (percent(row[f"paper_{metric}"]), _mean(row, metric))
                ),
            )
            for row in plain
        ]
        caption = (
            f"{settings['dataset']}: {settings['train_rows']:,} training and "
            f"{settings['test_rows']:,} test rows, batch {settings['batch_size']}, learning rate "
            f"{settings['learning_rate']:g}, {settings['epochs']} epochs, {settings['seeds']} "
            f"seeds, majority class {percent(settings['commoner_label'])} %"
        )
        headings = ("", "ε", "accuracy: paper", "here", "AUC: paper", "here")
        tables.append(table(headings, lines, caption=caption))
        tables.append(_mult_cells(settings["dataset"], rows))
    return tables


def _mult_cells(dataset: str, rows: list[Record]) -> Table:
    """The paper's figure of ``mult`` and that of each variant, by metric and epsilon."""
    by_epsilon: dict[float, list[Record]] = {}
    for row in rows:
        if row["mechanism"] == "mult":
            by_epsilon.setdefault(row["epsilon"], []).append(row)
    lines = [
        (
            name,
            f"{epsilon:g}",
            percent(same[0][f"paper_{metric}"]),
            *(_mean(row, metric) for row in same),
        )
        for metric, name in (("accuracy", "accuracy"), ("auc", "AUC"))
        for epsilon, same in by_epsilon.items()
    ]
    variants = [row["variant"] for row in next(iter(by_epsilon.values()))]
    headings = ("mult", "ε", "paper", *variants)
    return table(headings, lines, label=f"{dataset}, mult by variant", grouped=True)


def _mean(row: Record, metric: str) -> str:
    half = (row[f"{metric}_high"] - row[f"{metric}_low"]) / 2
    outside = " ≠" if row[f"{metric}_place"] == "outside" else ""
    return f"{percent(row[metric])}±{percent(half)}{outside}"


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


def shapes(records: Sequence[Record]) -> Table:
    """Shape of each curve of figures on each dataset: accuracy, then AUC where it differs."""
    datasets = list(dict.fromkeys(shape["dataset"] for one in records for shape in one["shapes"]))
    rows = []
    for record in records:
        for curve in dict.fromkeys(shape["curve"] for shape in record["shapes"]):
            cells = []
            for dataset in datasets:
                both = [shape_words(record, dataset, curve, name) for name in ("accuracy", "auc")]
                cells.append("; ".join(dict.fromkeys(both)))
            rows.append((record["axis"], curve, *cells))
    caption = "Shape of accuracy; of AUC, where it differs"
    headings = ("over", "curve", *datasets)
    return table(headings, rows, caption=caption, words=range(len(headings)), grouped=True)


def shape_words(record: Record, dataset: str, curve: str, metric: str) -> str:
    """A curve's shape in words.

    >>> shape = {"dataset": "d", "curve": "add", "metric": "auc"}
    >>> record = {"shapes": [{**shape, "rises": True, "falls": True, "peak": 1.0}]}
    >>> shape_words(record, "d", "add", "auc")
    'peak at 1'
    """
    key = (dataset, curve, metric)
    shape = next(
        one for one in record["shapes"] if (one["dataset"], one["curve"], one["metric"]) == key
    )
    if shape["rises"] and shape["falls"]:
        return f"peak at {shape['peak']:.3g}"
    return "rises" if shape["rises"] else "falls" if shape["falls"] else "flat"


# --- Table III --------------------------------------------------------------------------------


TABLE3_NOTE = (
    "Both parties in one process, without a network; trainings are extrapolated. Mechanisms take "
    "turns in one run, so load affects both sides of a ratio; seconds depend on machine and load. "
    "phe (python-paillier) does the encrypted part alone. The paper used two "
    "machines across the Internet and an unstated number of epochs: compare ratios, not seconds."
)


def table3(record: Record) -> list[Block]:
    """Table III: times and ratios."""
    return [
        iterations(record),
        trainings(record),
        ratios(record),
        Paragraph(TABLE3_NOTE, "muted"),
        *load_words(record),
        *missing(record),
    ]


def load_words(record: Record) -> list[Block]:
    """Number of turns, load of the machine, and what was left out of the measurement."""
    load = record.get("load")
    words = f"Medians of {record['turns']} turns."
    if load is not None:
        words += f" Load average: {load[0]:.1f} before, {load[1]:.1f} after."
    absent = [Paragraph(f"Omitted: {reason}.", "warning") for reason in record["left_out"]]
    return [Paragraph(words, "muted"), *absent]


def iterations(record: Record) -> Table:
    """Milliseconds per iteration, by mechanism and dataset."""
    return _times(record, "One iteration, ms", lambda row: f"{row['ms_per_iteration']:.2f}")


def trainings(record: Record) -> Table:
    """Seconds of a whole training, by mechanism and dataset, and the paper's."""

    def seconds(row: Record) -> str:
        paper = row["paper_seconds"]
        beside = "" if paper is None else f" ({paper:,.1f})"
        return f"{row['training_seconds']:,.1f}{beside}"

    return _times(record, "Whole training, s (the paper's in brackets)", seconds)


def _times(record: Record, caption: str, write: Callable[[Record], str]) -> Table:
    datasets = list(dict.fromkeys(row["dataset"] for row in record["rows"]))
    by_key = {(row["mechanism"], row["scheme"], row["dataset"]): row for row in record["rows"]}
    lines = [
        (
            mechanism,
            _scheme_name(by_key[mechanism, scheme, datasets[0]]),
            *(write(by_key[mechanism, scheme, dataset]) for dataset in datasets),
        )
        for mechanism, scheme in dict.fromkeys(
            (mechanism, scheme) for mechanism, scheme, _ in by_key
        )
    ]
    return table(("mechanism", "scheme", *datasets), lines, caption=caption, words=range(2))


def _scheme_name(row: Record) -> str:
    """The scheme with its key: bits of security for BFV, of the modulus for Paillier."""
    return "none" if row["scheme"] is None else f"{row['scheme']}-{row['key_bits']}"


def ratios(record: Record) -> Table:
    """Time of an iteration of ``hybrid`` over one of the baseline."""
    lines = [
        (
            row["dataset"],
            row["scheme"],
            f"{row['ratio']:.2f}",
            f"{max(0.0, row['ratio_low']):.2f} to {row['ratio_high']:.2f}",
            optional(row["paper_ratio"]),
        )
        for row in record["ratios"]
    ]
    headings = ("dataset", "scheme", "hybrid over none", "95 % interval", "paper")
    return table(headings, lines, caption="Ratios", words=range(2), grouped=True)


# --- recovered labels, and verdicts -------------------------------------------------------------


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


def mult(record: Record) -> list[Block]:
    """Recovery of labels from the releases of ``mult``, and its AUC with an intercept."""
    attacked = [
        (
            row["dataset"],
            f"{run['epsilon']:g}",
            f"{run['ledger']['label_epsilon_total']:.4g}",
            percent(score["accuracy"]),
            percent(run["commoner_label"]),
        )
        for row in record["rows"]
        for run in row["attacks"]
        for score in run["attacks"]
    ]
    headings = ("dataset", "ε", "label ε in total", "right %", "prior %")
    caption = "mult printed: labels shuffled before training"
    trained = [
        (
            row["dataset"],
            row["intercept"],
            f"{row['epsilon']:g}",
            f"{percent(row['auc'])} ({percent(row['auc_low'])}–{percent(row['auc_high'])})",
        )
        for row in record["intercept"]
    ]
    return [
        table(headings, attacked, caption=caption, grouped=True),
        table(
            ("dataset", "intercept", "ε", "AUC %"),
            trained,
            caption="mult printed: AUC with an intercept that learns from the released values",
            words=(0, 1),
            grouped=True,
        ),
        *missing(record),
    ]


def everything(record: Record) -> list[Block]:
    """Verdict on each statement, with its figures."""
    return [*statements(record), *missing(record["table2"])]


def statements(record: Record) -> list[Block]:
    """Each statement: verdict, finding, figures, and the command that makes them."""
    words = "± and brackets: 95 % intervals. Attacks: labels shuffled before training, per cent."
    blocks: list[Block] = [Paragraph(words)]
    for one in record["statements"]:
        verdict = one["verdict"]
        blocks += [
            Heading(
                (Span(f"{verdict[0].upper()}{verdict[1:]}", TONES[verdict]), f": {one['name']}")
            ),
            Paragraph(f"Paper: {one['paper']}", "muted"),
            Paragraph(one["finding"]),
        ]
        figures = one["evidence"]
        if figures is not None:
            names = range(figures["names"])
            blocks.append(
                table(
                    figures["headings"],
                    figures["rows"],
                    label=one["name"],
                    words=names,
                    grouped=len(names) == 2,
                )
            )
        note = f"{one['note']} " if one["note"] else ""
        commands = [Span(part, "code") for part in one["command"].split("; ")]
        between: list[str | Span] = [commands[0]]
        for command in commands[1:]:
            between += ["; ", command]
        blocks.append(Paragraph((note, *between), "muted"))
    return blocks


def verdicts(record: Record) -> list[Block]:
    """The statements by verdict."""
    by_verdict: dict[str, list[str]] = {verdict: [] for verdict in TONES}
    for one in record["statements"]:
        by_verdict[one["verdict"]].append(one["name"])
    items: list[Words] = [
        (Span(verdict, TONES[verdict]), f" ({len(names)}): {'; '.join(names)}")
        for verdict, names in by_verdict.items()
        if names
    ]
    return [Bullets(tuple(items))]


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
