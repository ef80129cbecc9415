"""A model's report as blocks: the tables that risk people ask for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from taciturn.numerics.metrics import Metrics
from taciturn.report import blocks as b
from taciturn.report.formatting import NONE, figure, percent, share
from taciturn_risk.scorecard.result import (
    CoefficientTest,
    ColumnEffect,
    ComparedScores,
    JudgedRows,
    ModelReport,
)

MOST_COEFFICIENTS = 30
RULE_WORDS = {
    "stable": "below 0.1: hardly any change",
    "moved": "0.1 to 0.25: some change",
    "shifted": "above 0.25: a large change",
}
_FIGURES = (
    ("AUC", "auc", "share"),
    ("Gini", "gini", "share"),
    ("KS", "ks", "share"),
    ("PR-AUC", "pr_auc", "share"),
    ("Brier score", "brier", "figure"),
    ("log loss", "loss", "figure"),
    ("observed / expected", "calibration_ratio", "figure"),
    ("base rate", "base_rate", "share"),
)


def main_rows(report: ModelReport) -> JudgedRows | None:
    """The rows that a reader should look at first: those that the model has not seen."""
    known = {rows.name: rows for rows in report.judged}
    return next((known[name] for name in ("held-out", "new", "training") if name in known), None)


def report_blocks(report: ModelReport, top: int = MOST_COEFFICIENTS) -> list[b.Block]:
    """The report for a terminal."""
    blocks: list[b.Block] = [
        b.Paragraph(f"{report.role}'s model of session {report.session[:16]}", "strong"),
        b.Facts(facts(report)),
    ]
    rows = main_rows(report)
    if report.judged:
        blocks.append(figures_table(report))
    if rows is not None:
        blocks += [
            b.Heading(f"On {rows.name} rows"),
            gains_table(rows),
            bands_table(rows, report),
            cutoffs_table(rows),
            b.Facts(calibration_facts(rows)),
        ]
    for compared in report.compared:
        blocks += stability_blocks(compared)
    blocks += coefficient_blocks(report, top)
    for effect in report.effects[:top]:
        blocks.append(effect_table(effect))
    if report.html is not None:
        blocks.append(b.Paragraph(f"wrote {report.html}", "muted"))
    return [*blocks, *(b.Paragraph(f"note: {note}", "warning") for note in report.notes)]


def facts(report: ModelReport) -> dict[str, b.Words]:
    """Provenance of the model, and the meaning of its numbers."""
    scale = report.score_scale
    pairs: dict[str, b.Words] = {
        "model": report.model,
        "protected by": report.mechanism,
        "trained on": f"{report.rows:,} rows",
    }
    if report.meaning is not None:
        pairs["meaning of a probability"] = f"that {report.meaning}"
    if report.log_odds_shift:
        pairs["class weights"] = (
            f"shifted the scores by {report.log_odds_shift:.4g}; probabilities and points are "
            "corrected for it"
        )
    if report.threshold is not None:
        probability = share(report.threshold.probability)
        pairs["predicted class 1"] = f"above {probability} (rule: {report.threshold.rule})"
    pairs["points"] = (
        f"{scale.base_score:g} points mean odds of {scale.base_odds:g} to 1 for label 0; "
        f"{scale.points_to_double:g} more points double the odds"
    )
    return pairs


def figures_table(report: ModelReport) -> b.Table:
    """The figures of all sets of rows, side by side."""
    sets = report.judged
    headings = ["", *(part for rows in sets for part in (rows.name, "95 % interval"))]
    lines = [
        [name, *(part for rows in sets for part in _figure(rows.metrics, key, kind))]
        for name, key, kind in _FIGURES
    ]
    counts = ["rows", *(part for rows in sets for part in (f"{rows.metrics.rows:,}", ""))]
    return b.table(headings, [*lines, counts], label="The model's figures")


def _figure(metrics: Metrics, key: str, kind: str) -> list[str]:
    if key == "gini":
        value, low, high = (2 * auc - 1 for auc in (metrics.auc, metrics.auc_low, metrics.auc_high))
    else:
        value = getattr(metrics, key)
        low, high = (getattr(metrics, f"{key}_{end}", math.nan) for end in ("low", "high"))
    return [share(value) if kind == "share" else figure(value), ends(low, high, kind)]


def ends(low: float, high: float, kind: str) -> str:
    """The ends of an interval, of a share or of another figure; empty where there is none."""
    if math.isnan(low) or math.isnan(high):
        return ""
    if kind == "share":
        return f"{percent(low, 1)} – {share(high, 1)}"
    return f"{low:.3f} – {high:.3f}"


def gains_table(rows: JudgedRows) -> b.Table:
    """Deciles of the rows, the highest scores first."""
    headings = [
        *("decile", "rows", "label 1", "rate of label 1", "lift"),
        *("cumulative rows", "cumulative capture rate", "cumulative lift"),
    ]
    lines = [
        (
            str(row.part),
            f"{row.rows:,}",
            f"{row.ones:,.6g}",
            share(row.rate),
            figure(row.lift, 2),
            share(row.rows_so_far, 0),
            share(row.ones_so_far, 1),
            figure(row.lift_so_far, 2),
        )
        for row in rows.gains
    ]
    return b.table(headings, lines, caption="Gains and lift by decile, highest scores first")


def bands_table(rows: JudgedRows, report: ModelReport) -> b.Table:
    """Score bands, the riskiest first."""
    headings = [
        *("probability", "points", "rows", "share of rows", "label 1"),
        *("rate of label 1", "predicted", "cumulative capture rate"),
    ]
    lines = [
        (
            band_words(row.low, row.high, report),
            points_words(row.low, row.high, report),
            f"{row.rows:,}",
            share(row.fraction, 1),
            f"{row.ones:,}",
            share(row.rate),
            share(row.predicted),
            share(row.ones_so_far, 1),
        )
        for row in rows.bands
    ]
    return b.table(headings, lines, caption="Score bands, highest scores first", words=(0, 1))


def band_words(low: float, high: float, report: ModelReport) -> str:
    """A band by the probabilities at its ends."""
    least, most = (probability(end - report.log_odds_shift) for end in (low, high))
    if math.isinf(low):
        return "all" if math.isinf(high) else f"below {share(most)}"
    if math.isinf(high):
        return f"{share(least)} and more"
    return f"{percent(least)} – {share(most)}"


def points_words(low: float, high: float, report: ModelReport) -> str:
    """A band by its points, which fall as scores rise."""
    scale, shift = report.score_scale, report.log_odds_shift
    least, most = (
        NONE if math.isinf(end) else f"{scale.offset - scale.factor * (end - shift):.0f}"
        for end in (high, low)
    )
    if math.isinf(low):
        return "all" if math.isinf(high) else f"above {least}"
    return f"up to {most}" if math.isinf(high) else f"{least} – {most}"


def probability(score: float) -> float:
    """The probability at a logit, however far from 0."""
    if score >= 0:
        return 1 / (1 + math.exp(-score))
    raised = math.exp(score)
    return raised / (1 + raised)


def cutoffs_table(rows: JudgedRows) -> b.Table:
    """Table of thresholds, with the cheapest one if costs are known."""
    costly = rows.cheapest is not None
    headings = [
        *("threshold", "rows above", "true positives", "false positives", "false negatives"),
        *("sensitivity", "specificity", "precision", *(("cost",) if costly else ())),
    ]
    listed = [(cutoff, "") for cutoff in rows.cutoffs]
    if rows.cheapest is not None:
        listed.append((rows.cheapest, " cheapest"))
    listed.sort(key=lambda pair: (-pair[0].score, pair[1]))
    lines = [
        [
            b.Span(f"{share(cutoff.probability)}{mark}", "strong" if mark else ""),
            share(cutoff.called, 1),
            f"{cutoff.true_ones:,}",
            f"{cutoff.false_ones:,}",
            f"{cutoff.missed_ones:,}",
            share(cutoff.sensitivity, 1),
            share(cutoff.specificity, 1),
            share(cutoff.precision, 1),
            *((figure(cutoff.cost),) if costly else ()),
        ]
        for cutoff, mark in listed
    ]
    return b.table(headings, lines, caption="Thresholds")


def calibration_facts(rows: JudgedRows) -> dict[str, b.Words]:
    """Results of the calibration tests, one line each."""
    test, line, other = rows.hosmer_lemeshow, rows.line, rows.spiegelhalter
    return {
        "Hosmer-Lemeshow": f"chi-square {figure(test.statistic, 2)} with {test.degrees} degrees of "
        f"freedom, {p_words(test.p_value)}",
        "Spiegelhalter": f"z {figure(other.z, 2)}, {p_words(other.p_value)}",
        "calibration slope": f"{figure(line.slope, 3)} ± {figure(line.slope_error, 3)} (1 is "
        "ideal; below it the model is overconfident)",
        "calibration intercept": f"{figure(line.in_the_large, 3)} ± "
        f"{figure(line.in_the_large_error, 3)} (0 is ideal; above it predictions are too low)",
    }


def p_words(value: float) -> str:
    r"""A p value; a small one as a bound.

    >>> p_words(0.04321), p_words(1e-9), p_words(math.nan)
    ('p\xa0=\xa00.0432', 'p\xa0<\xa00.0001', 'p not known')
    """
    if math.isnan(value):
        return "p not known"
    words = "p < 0.0001" if value < 1e-4 else f"p = {value:.4f}"
    return words.replace(" ", b.NO_BREAK)


def stability_blocks(compared: ComparedScores) -> list[b.Block]:
    """The stability of one set of rows against another."""
    stability = compared.stability
    return [
        b.Heading(f"Stability: {compared.new} against {compared.reference} rows"),
        b.Facts(
            {
                "PSI": f"{stability.psi:.4f} ({RULE_WORDS[stability.rule]})",
                "PSI by chance alone": f"{stability.expected:.4f} on average, above "
                f"{stability.critical:.4f} in 5 % of cases ({stability.reference_rows:,} and "
                f"{stability.new_rows:,} rows)",
                "test of equal distributions": f"chi-square {stability.chi_square:.2f} with "
                f"{stability.degrees} degrees of freedom, {p_words(stability.p_value)}",
            }
        ),
    ]


def stability_table(compared: ComparedScores, names: Sequence[str]) -> b.Table:
    """The bands of a comparison, the riskiest first; ``names`` begins with the lowest scores."""
    lines = [
        (name, share(band.reference), share(band.new), f"{band.summand:.4f}")
        for name, band in zip(names, compared.stability.bands, strict=True)
    ]
    headings = ("probability", compared.reference, compared.new, "share of PSI")
    return b.table(headings, lines[::-1], label="Score bands of both sets of rows")


def coefficient_blocks(report: ModelReport, top: int) -> list[b.Block]:
    """The coefficients with their tests, and what the errors rest on."""
    if not report.coefficients:
        return [b.Paragraph(report.errors_reason, "muted")]
    blocks: list[b.Block] = [coefficients_table(report, top)]
    hidden = len(report.coefficients) - top
    if hidden > 0:
        blocks.append(b.Paragraph(f"and {hidden:,} smaller ones (all with --json)", "muted"))
    if report.errors != "none" and any(
        math.isnan(coefficient.error) for coefficient in report.coefficients
    ):
        words = f"{NONE}: not identifiable: the column is collinear with others"
        blocks.append(b.Paragraph(words, "muted"))
    if any(coefficient.clipped for coefficient in report.coefficients[:top]):
        blocks.append(b.Paragraph("* valid while the value is within its clipping bounds", "muted"))
    return [*blocks, b.Paragraph(report.errors_reason, "muted")]


def coefficients_table(report: ModelReport, top: int) -> b.Table:
    """The first coefficients, the intercept among them."""
    several = len({coefficient.side for coefficient in report.coefficients}) > 1
    tested = report.errors != "none"
    least = {"at-least": "≥ ", "estimated": "≳ "}.get(report.errors, "")
    headings = (
        *(("side",) if several else ()),
        *("column", "weight"),
        *((f"{least}error", "z", "p") if tested else ()),
        *("per unit", "points per unit"),
    )
    lines = []
    for coefficient in shown(report, top):
        p = NONE if math.isnan(coefficient.p_value) else f"{coefficient.p_value:.4f}"
        test = (
            figure(coefficient.error),
            figure(coefficient.z, 2),
            "<0.0001" if coefficient.p_value < 1e-4 else p,
        )
        line = [
            *([coefficient.side] if several else []),
            *(coefficient.column, f"{coefficient.prepared:.4f}"),
            *(test if tested else ()),
            NONE
            if coefficient.original is None
            else f"{coefficient.original:.4g}{' *' * coefficient.clipped}",
            NONE if coefficient.points is None else f"{coefficient.points:+.4g}",
        ]
        lines.append(line)
    words = (0, 1) if several else (0,)
    return b.table(headings, lines, caption="Coefficients", words=words, grouped=several)


def shown(report: ModelReport, top: int) -> list[CoefficientTest]:
    """The largest coefficients, side by side as they are, and every intercept."""
    ranked = sorted(report.coefficients, key=lambda coefficient: -abs(coefficient.prepared))[:top]
    listed = {id(coefficient) for coefficient in ranked}
    return [coefficient for coefficient in report.coefficients if id(coefficient) in listed]


def effect_table(effect: ColumnEffect) -> b.Table:
    """A column's bins or categories, as a scorecard lists attributes."""
    headings = ("", "rows", "rate of label 1", "log-odds", "error", "points")
    lines = [
        (
            f"{level.level} (reference)" if level.reference else level.level,
            NONE if level.rows is None else f"{level.rows:,}",
            share(level.rate),
            f"{level.effect:+.4f}",
            NONE if level.reference else figure(level.error),
            f"{level.points:+.1f}",
        )
        for level in effect.levels
    ]
    return b.table(headings, lines, caption=f"{effect.column} ({effect.side})")
