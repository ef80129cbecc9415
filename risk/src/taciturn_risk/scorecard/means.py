"""Report of a model of counts, amounts or numbers: deviance, calibration by exposure, lift."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from taciturn.families.registry import FAMILIES
from taciturn.model.scores_file import ScoredRows
from taciturn.model.share import ModelShare
from taciturn.numerics.label_metrics import evaluate_labels
from taciturn.numerics.regression_metrics import RegressionMetrics
from taciturn.party.applied_model import mean_meaning
from taciturn.protocol.terms import Terms
from taciturn.report import blocks as b
from taciturn.report.formatting import NONE, figure, footer, share
from taciturn.report.training import MEANS, ends
from taciturn.results.serialise import record_of
from taciturn.version import __version__
from taciturn_risk.scorecard.card import SideWeights, coefficient_tests
from taciturn_risk.scorecard.result import CoefficientTest, JudgedMeans, ModelReport

_NO_ERRORS = "No standard errors: they are computed for labels of two classes alone."
_SHARES = ("deviance_explained", "gini")


def means_report(
    terms: Terms,
    sides: Iterable[SideWeights],
    share: ModelShare,
    model: str,
    *,
    sets: Mapping[str, ScoredRows],
    notes: Iterable[str] = (),
) -> ModelReport:
    """Report of one side's ``share`` of a model on ``sets`` of rows."""
    response, judged = share.coordinates_of_scores, []
    for name, rows in sets.items():
        metrics = evaluate_labels(rows.scores, rows.table(response))
        if isinstance(metrics, RegressionMetrics):
            judged.append(JudgedMeans(name=name, fitted=name == "training", metrics=metrics))
    return ModelReport(
        role=share.role,
        model=model,
        session=share.session,
        mechanism=terms.agreement.mechanism,
        family=terms.agreement.family,
        meaning=mean_meaning(share.family, exposure=False) if share.is_bob else None,
        log_odds_shift=0.0,
        rows=share.rows,
        threshold=None,
        judged=(),
        means=tuple(judged),
        compared=(),
        scale=None,
        errors="none",
        errors_reason=_NO_ERRORS,
        coefficients=tuple(one for side in sides for one in coefficient_tests(side, None)),
        effects=(),
        notes=tuple(notes),
        version=__version__,
    )


def means_blocks(report: ModelReport) -> list[b.Block]:
    """The report for a terminal."""
    blocks: list[b.Block] = [
        b.Paragraph(f"{report.role}'s model of session {report.session[:16]}", "strong"),
        b.Facts(_facts(report)),
        *_figures(report),
    ]
    for rows in report.means[-1:]:
        blocks += [b.Heading(f"On {rows.name} rows"), _groups_table(rows)]
    blocks += _coefficients(report)
    if report.html is not None:
        blocks.append(b.Paragraph(f"wrote {report.html}", "muted"))
    return [*blocks, *(b.Paragraph(f"note: {note}", "warning") for note in report.notes)]


def means_page(report: ModelReport, made: str) -> b.Page:
    """The page of ``taciturn model report``; ``made`` is in ISO 8601."""
    headline, rows = "Coefficients", report.means[-1] if report.means else None
    sections = [
        b.Section(
            "In short",
            "short",
            (
                *_figures(report),
                *(b.Paragraph(note, "warning") for note in report.notes),
                b.Details("Where the model comes from", (b.Facts(_facts(report)),)),
            ),
            "In short",
        )
    ]
    if rows is not None:
        headline = f"Deviance explained {share(rows.metrics.deviance_explained, 1)}"
        figures = b.Figures((_drawing(rows),), instead=(_groups_table(rows),))
        sections.append(
            b.Section(f"Calibration and lift: {rows.name} rows", "calibration", (figures,))
        )
    sections.append(b.Section("Coefficients", "coefficients", tuple(_coefficients(report))))
    return b.Page(
        window=f"{headline} – Taciturn model report",
        title="Model report" if rows is not None else "Report on the columns",
        subject=f"{report.role} · {report.family} · mechanism {report.mechanism} · "
        f"{report.rows:,} training rows · session {report.session[:16]}",
        blocks=tuple(sections),
        footer=footer(report.version, made),
    )


def _facts(report: ModelReport) -> dict[str, b.Words]:
    facts: dict[str, b.Words] = {
        "model": report.model,
        "family": f"{report.family}, {FAMILIES[report.family or ''].link} link",
        "protected by": report.mechanism,
        "trained on": f"{report.rows:,} rows",
    }
    return facts if report.meaning is None else {**facts, "a mean is": report.meaning}


def _figures(report: ModelReport) -> list[b.Block]:
    """The figures of all sets of rows, side by side; nothing where there are none."""
    if not report.means:
        return []
    lines = []
    for key, name in MEANS.items():
        cells = [name]
        for rows in report.means:
            record = record_of(rows.metrics)
            value = getattr(rows.metrics, key)
            cells += [share(value) if key in _SHARES else figure(value), ends(record, key)]
        lines.append(cells)
    headings = ["", *(part for rows in report.means for part in (rows.name, "95 % interval"))]
    counts = [part for rows in report.means for part in (f"{rows.metrics.rows:,}", "")]
    volumes = [part for rows in report.means for part in (figure(rows.metrics.exposure, 1), "")]
    lines += [["rows", *counts], ["exposure times weights", *volumes]]
    return [b.table(headings, lines, label="The model's figures")]


def _groups_table(rows: JudgedMeans) -> b.Table:
    """Tenths of the exposure, the highest predictions first."""
    mean = rows.metrics.mean_label
    lines = [
        (
            str(number),
            f"{group.count:,}",
            figure(group.exposure, 1),
            figure(group.predicted),
            figure(group.observed),
            figure(group.observed / group.predicted, 2) if group.predicted else NONE,
            figure(group.observed / mean, 2) if mean else NONE,
        )
        for number, group in enumerate(reversed(rows.metrics.calibration), 1)
    ]
    headings = ("tenth", "rows", "exposure", "predicted", "observed", "observed / expected", "lift")
    return b.table(headings, lines, label="Rows by predicted mean, the highest first")


def _coefficients(report: ModelReport) -> list[b.Block]:
    if not report.coefficients:
        return []
    log = FAMILIES[report.family or ""].link == "log"
    lines = [_coefficient(one, log) for one in report.coefficients]
    headings = ("column", "side", "prepared", "original unit", *(["factor"] if log else []))
    return [
        b.table(headings, lines, label="Coefficients", words=(0, 1)),
        b.Paragraph(report.errors_reason, "muted"),
    ]


def _coefficient(one: CoefficientTest, log: bool) -> tuple[str, ...]:
    original = NONE if one.original is None else f"{one.original:.6g}"
    cells = (one.column, one.side, f"{one.prepared:.6f}", original)
    # What one prepared unit multiplies the mean by.
    return (*cells, f"{math.exp(one.prepared):.4g}") if log else cells


def _drawing(rows: JudgedMeans) -> b.Figure:
    # Loaded here: drawing takes a second to load, and a terminal has no picture.
    from taciturn.report.plots import calibration_figure, style, to_svg

    with style():
        svg = to_svg(calibration_figure(rows.metrics), "means")
    alt = f"observed over expected {figure(rows.metrics.calibration_ratio, 2)}"
    return b.Figure("means", "Predicted and observed means, by tenths of the exposure", alt, svg)
