"""A model's page: what it is worth on rows it has not seen, and what its columns do."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from taciturn.report import blocks as b
from taciturn.report.formatting import NONE, figure, footer, share
from taciturn_risk.scorecard import plots
from taciturn_risk.scorecard import report as shared
from taciturn_risk.scorecard.result import JudgedRows, ModelReport

_MOST_EFFECTS = 40
_MOST_DRAWN = 25
_ROWS = {
    "held-out": "held-out rows, which no training step used",
    "new": "new rows",
    "training": "the training rows, which is optimistic",
}


def model_page(report: ModelReport, made: str) -> b.Page:
    """The page of ``taciturn model report``; ``made`` is in ISO 8601."""
    rows = shared.main_rows(report)
    sections: list[b.Section] = [_short(report, rows)]
    headline = "Coefficients and points"
    if rows is not None:
        headline = f"KS {share(rows.metrics.ks, 1)}, AUC {share(rows.metrics.auc, 1)}"
        sections += [
            _ranking(report, rows),
            _gains(report, rows),
            _calibration(report, rows),
            _bands(report, rows),
            _thresholds(report, rows),
        ]
    sections += [*_stability(report), _coefficients(report), *_effects(report), _points(report)]
    return b.Page(
        window=f"{headline} – Taciturn model report",
        title="Model report" if rows is not None else "Report on the columns",
        subject=f"{report.role} · mechanism {report.mechanism} · {report.rows:,} training rows · "
        f"session {report.session[:16]}",
        blocks=tuple(sections),
        footer=footer(report.version, made),
    )


# --- in short -----------------------------------------------------------------------------------


def _short(report: ModelReport, rows: JudgedRows | None) -> b.Section:
    title, blocks = "Summary", list[b.Block]()
    if rows is not None:
        metrics, ks = rows.metrics, rows.metrics.ks
        title = f"AUC {share(metrics.auc, 1)}, KS {share(ks, 1)}"
        auc_ends = shared.ends(metrics.auc_low, metrics.auc_high, "share") or NONE
        words = (
            f"On {_ROWS[rows.name]}: of a row with label 1 and one with label 0, the model ranks "
            f"the first higher in {share(metrics.auc, 1)} of cases (95 % interval {auc_ends})."
        )
        blocks += [b.Paragraph(words), _cards(report, rows), shared.figures_table(report)]
    blocks += [b.Paragraph(note, "warning") for note in report.notes]
    blocks.append(b.Details("Where the model comes from", (b.Facts(shared.facts(report)),)))
    return b.Section(title, "short", tuple(blocks), "Summary")


def _cards(report: ModelReport, rows: JudgedRows) -> b.Cards:
    metrics, first = rows.metrics, rows.gains[0]
    ks_ends = shared.ends(metrics.ks_low, metrics.ks_high, "share")
    cards = [
        b.Card(
            "Ranking: KS",
            share(metrics.ks, 1),
            ("95\u00a0% interval", ks_ends or NONE),
            {"AUC": share(metrics.auc, 1), "Gini": share(2 * metrics.auc - 1, 1)},
            "The largest difference between the score distributions of label 1 and label 0.",
        ),
        b.Card(
            "Capture rate of the top decile",
            share(first.ones_so_far, 1),
            ("of all rows with label 1", f"lift {figure(first.lift, 2)}"),
            {
                "rate of label 1 there": share(first.rate, 1),
                "base rate": share(metrics.base_rate, 1),
            },
            "Share of all rows with label 1 that are among the 10 % with the highest scores.",
        ),
        b.Card(
            "Calibration of the probabilities",
            figure(metrics.calibration_ratio, 2),
            ("observed / expected label 1", f"calibration slope {figure(rows.line.slope, 2)}"),
            {
                "Hosmer-Lemeshow": shared.p_words(rows.hosmer_lemeshow.p_value),
                "Spiegelhalter": shared.p_words(rows.spiegelhalter.p_value),
            },
            "Ratio and slope 1 are ideal. A small p-value: chance alone does not explain the "
            "deviation.",
        ),
    ]
    # The newest comparison: that of new rows, where there are any.
    for compared in report.compared[-1:]:
        stability = compared.stability
        card = b.Card(
            f"Stability of {compared.new} rows: PSI",
            f"{stability.psi:.3f}",
            (f"against {compared.reference} rows", shared.RULE_WORDS[stability.rule]),
            {
                "PSI by chance alone": f"{stability.expected:.3f}",
                "equal distributions": shared.p_words(stability.p_value),
            },
            "With few rows the PSI is above 0 by chance alone.",
        )
        cards.append(card)
    return b.Cards(tuple(cards))


# --- figures on rows ----------------------------------------------------------------------------


def _ranking(report: ModelReport, rows: JudgedRows) -> b.Section:
    sets, shift = (
        [judged for judged in report.judged if judged.roc],
        report.log_odds_shift,
    )
    figures: list[b.Figure] = []
    if sets:
        alt = "; ".join(f"{judged.name}: AUC {share(judged.metrics.auc)}" for judged in sets)
        title = "Receiver operating characteristic"
        figures.append(b.Figure("roc", title, alt, plots.roc_svg(sets, "roc")))
    if rows.roc and rows.ks is not None:
        at = share(shared.probability(rows.ks.score - shift))
        alt = f"KS {share(rows.ks.distance)} at a probability of {at}"
        title = f"Score distribution by label, {rows.name} rows"
        figures.append(b.Figure("ks", title, alt, plots.ks_svg(rows, shift, "ks")))
    block: b.Block = b.Paragraph(
        "All these rows have the same label, so a ranking cannot be evaluated.", "muted"
    )
    if figures:
        block = b.Figures(
            tuple(figures),
            caption="Left: true positive rate against false positive rate; the marks show the "
            "threshold of KS. Right: cumulative distributions of both labels; KS is their largest "
            "difference.",
            instead=tuple(_ks_facts(judged, shift) for judged in sets),
            summary="KS as text",
        )
    return b.Section("Ranking", "ranking", (block,), "Ranking")


def _ks_facts(rows: JudgedRows, shift: float) -> b.Block:
    if rows.ks is None:
        return b.Paragraph(f"{rows.name}: one class only", "muted")
    ends = shared.ends(rows.metrics.ks_low, rows.metrics.ks_high, "share")
    words = (
        f"KS {share(rows.ks.distance)} (95 % interval {ends}), reached at a probability of "
        f"{share(shared.probability(rows.ks.score - shift))}: {share(rows.ks.ones)} of the rows "
        f"with label 1 and {share(rows.ks.zeros)} of those with label 0 score at least as high"
    )
    return b.Facts({f"{rows.name} rows": words})


def _gains(report: ModelReport, rows: JudgedRows) -> b.Section:
    table = shared.gains_table(rows)
    if not rows.roc:
        return b.Section("Gains and lift", "gains", (table,), "Gains")
    alt = "; ".join(
        f"{judged.name}: {share(judged.gains[0].ones_so_far)} of label 1 in the top decile"
        for judged in report.judged
    )
    lifts = ", ".join(f"{row.lift:.2f}" for row in rows.gains)
    sets = [judged for judged in report.judged if judged.roc]
    figures = (
        b.Figure("gains", "Gains", alt, plots.gains_svg(sets, "gains")),
        b.Figure("lift", f"Lift by decile, {rows.name} rows", lifts, plots.lift_svg(rows, "lift")),
    )
    caption = "Rows with tied scores are averaged; the dashed lines show a random ranking."
    blocks: tuple[b.Block, ...] = (
        b.Figures(figures, caption=caption, instead=(table,)),
        *_others(report, rows, shared.gains_table),
    )
    return b.Section("Gains and lift", "gains", blocks, "Gains")


def _calibration(report: ModelReport, rows: JudgedRows) -> b.Section:
    alt = "; ".join(
        f"{share(group.predicted)} predicted, {share(group.observed)} observed"
        for group in rows.groups
    )
    lines = [
        (
            share(group.predicted),
            share(group.observed),
            shared.ends(group.low, group.high, "share"),
            f"{group.rows:,}",
        )
        for group in rows.groups
    ]
    headings = ("predicted", "observed", "95 % interval", "rows")
    table = b.table(headings, lines, words=(), label="Groups by predicted probability")
    svg = plots.calibration_svg(report.judged, "calibration")
    caption = (
        "Groups of equal size; the pale bars are 95 % intervals. On the dashed line predictions "
        "are right on average; below it the model predicts too high."
    )

    def tests(judged: JudgedRows) -> b.Facts:
        return b.Facts(shared.calibration_facts(judged))

    meaning = b.Paragraph(f"A probability here is that {report.meaning}.")
    chart = b.Figure("calibration", "Observed against predicted", alt, svg)
    blocks: tuple[b.Block, ...] = (
        *([meaning] if report.meaning else []),
        b.Figures((chart,), caption=caption, instead=(table,)),
        b.Heading(f"Tests on {rows.name} rows"),
        tests(rows),
        *_others(report, rows, tests),
    )
    return b.Section("Calibration", "calibration", blocks)


def _bands(report: ModelReport, rows: JudgedRows) -> b.Section:
    names = [shared.band_words(band.low, band.high, report) for band in rows.bands]
    named = zip(names, rows.bands, strict=True)
    alt = "; ".join(f"{name}: {share(band.rate)}" for name, band in named)
    svg = plots.bands_svg(rows, names, "bands")
    figures = b.Figures(
        (b.Figure("bands", "Rate of label 1 by score band", alt, svg),),
        caption="Bands by predicted probability, highest first; the lines are 95 % intervals.",
        wide=True,
    )
    blocks: tuple[b.Block, ...] = (
        figures,
        shared.bands_table(rows, report),
        *_others(report, rows, lambda judged: shared.bands_table(judged, report)),
    )
    return b.Section(f"Score bands, {rows.name} rows", "bands", blocks, "Bands")


def _thresholds(report: ModelReport, rows: JudgedRows) -> b.Section:
    best = rows.cheapest
    hint = (
        "Give the costs of a false positive and of a false negative (--costs) to see the cheapest."
    )
    blocks: list[b.Block] = [b.Paragraph(hint, "muted")]
    if best is not None:
        words = (
            f"The cheapest threshold on these rows is {share(best.probability)}: "
            f"{share(best.called, 1)} of the rows are above it, at a cost of {figure(best.cost)} "
            "per row."
        )
        drawn = b.Figure("cost", "Cost by threshold", words, plots.cost_svg(rows, "cost"))
        blocks = [b.Paragraph(words), b.Figures((drawn,), caption="Cost per row", wide=True)]
    if report.threshold is not None:
        probability, rule = share(report.threshold.probability), report.threshold.rule
        words = f"The model file predicts class 1 above {probability} (rule: {rule})."
        blocks.append(b.Paragraph(words))
    blocks.append(shared.cutoffs_table(rows))
    return b.Section(f"Thresholds, {rows.name} rows", "thresholds", tuple(blocks), "Thresholds")


def _others(
    report: ModelReport, rows: JudgedRows, make: Callable[[JudgedRows], b.Block]
) -> list[b.Details]:
    """The same of the other sets of rows, folded."""
    other_rows = [judged for judged in report.judged if judged is not rows]
    return [b.Details(f"The same for {other.name} rows", (make(other),)) for other in other_rows]


def _stability(report: ModelReport) -> list[b.Section]:
    if not report.compared:
        return []
    blocks: list[b.Block] = [
        b.Paragraph(
            "Whether the distribution of scores has changed. The usual limits of PSI ignore the "
            "number of rows; the chi-square test does not."
        )
    ]
    for number, compared in enumerate(report.compared):
        ends, name = (-math.inf, *compared.edges, math.inf), f"stability-{number}"
        bands = [shared.band_words(*pair, report) for pair in pairwise(ends)]
        title = f"{compared.new} against {compared.reference} rows, by score band"
        alt, svg = f"PSI {compared.stability.psi:.4f}", plots.stability_svg(compared, bands, name)
        figures = b.Figures(
            (b.Figure(name, title, alt, svg),),
            caption=title,
            instead=(shared.stability_table(compared, bands),),
            wide=True,
        )
        blocks += [*shared.stability_blocks(compared), figures]
    return [b.Section("Stability of scores", "stability", tuple(blocks), "Stability")]


# --- columns ------------------------------------------------------------------------------------


def _coefficients(report: ModelReport) -> b.Section:
    title, count = "Coefficients", len(report.coefficients)
    if not count:
        return b.Section(title, "coefficients", (b.Paragraph(report.errors_reason, "muted"),))
    drawn = shared.shown(report, _MOST_DRAWN)
    alt = "; ".join(f"{coefficient.column} {coefficient.prepared:.3f}" for coefficient in drawn)
    intervals = {
        "exact": "The lines are 95 % intervals. Filled dot: the interval excludes 0.",
        "at-least": "The lines are intervals of 95 % at most: true ones are at least as wide.",
        "estimated": "The lines are intervals of 95 % at most, estimated on held-out rows.",
        "none": "Without standard errors there are no intervals.",
    }
    chart = b.Figures(
        (b.Figure("weights", "Weights", alt, plots.coefficients_svg(drawn, "weights")),),
        caption=f"Weights of prepared columns, on one scale. {intervals[report.errors]}",
        wide=True,
    )
    reason = b.Paragraph(report.errors_reason, "" if report.errors == "exact" else "warning")
    # The last of them is the reason, which stands above.
    tables: tuple[b.Block, ...] = tuple(shared.coefficient_blocks(report, count)[:-1])
    if count > _MOST_DRAWN:
        tables = (b.Details(f"All {count:,} coefficients", tables),)
    return b.Section(title, "coefficients", (reason, chart, *tables))


def _effects(report: ModelReport) -> list[b.Section]:
    if not report.effects:
        return []
    listed = report.effects[:_MOST_EFFECTS]
    points = [level.points for effect in listed for level in effect.levels]
    ends = (min(0.0, *points), max(0.0, *points))
    figures = tuple(
        b.Figure(
            f"effect-{number}",
            f"{effect.column} ({effect.side})",
            ", ".join(f"{level.level}: {level.points:+.1f}" for level in effect.levels),
            plots.effect_svg(effect, ends, f"effect-{number}"),
        )
        for number, effect in enumerate(listed)
    )
    caption = (
        "Points of each bin or category relative to the reference (0), on one scale for all "
        "columns: more points, label 1 less likely. Shown for the columns whose weights this side "
        "may see."
    )
    tables = tuple(map(shared.effect_table, listed))
    blocks: list[b.Block] = [b.Figures(figures, caption=caption, instead=tables)]
    hidden = len(report.effects) - len(listed)
    if hidden:
        blocks.append(b.Paragraph(f"and {hidden:,} more columns (all with --json)", "muted"))
    return [b.Section("Bins and categories", "effects", tuple(blocks), "Bins")]


def _points(report: ModelReport) -> b.Section:
    scale = report.score_scale
    facts: dict[str, b.Words] = {
        "points of a row": f"{scale.offset:.2f} − {scale.factor:.3f} × its log-odds of label 1: "
        "points fall as the probability of label 1 rises",
        "odds": f"{scale.base_score:g} points mean odds of {scale.base_odds:g} to 1 for label 0",
    }
    if scale.constant is not None:
        facts["constant"] = (
            f"{scale.constant:.2f} points, where this side's raw columns are 0 or at their "
            "reference; the other side's points are added"
        )
    return b.Section("Score scale", "points", (b.Facts(facts),), "Points")
