"""Results in a notebook: as HTML, as a pandas frame, as a picture.

Jinja, matplotlib (both of the extra ``audit``) and pandas are loaded only when they are needed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from taciturn.extras import explained, is_installed
from taciturn.results.audit import Findings
from taciturn.results.check import CheckResult
from taciturn.results.run_list import RunEntry, RunList
from taciturn.results.runs import AuditResult, Runs
from taciturn.results.serialise import record_of
from taciturn.results.training import TrainingRun

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from taciturn.report.blocks import Block

Shown = Runs[TrainingRun] | AuditResult | CheckResult | RunList


def blocks_of(result: Shown) -> list[Block]:
    """A result as the blocks that a terminal shows of it."""
    # Loaded here: a verdict needs what an audit needs.
    if isinstance(result, RunList):
        from taciturn.report.runs import list_blocks

        return list_blocks(result)
    if isinstance(result, CheckResult):
        from taciturn.report.check import check_blocks

        return check_blocks(result)
    if isinstance(result, AuditResult):
        from taciturn.report.audit import audit_blocks

        return audit_blocks(result)
    from taciturn.report.training import training_blocks

    return training_blocks(result)


def to_html(result: Shown) -> str | None:
    """A result as a part of a page; None where Jinja is not installed."""
    if not is_installed("jinja2"):
        return None
    from taciturn.report.html import fragment

    return fragment(blocks_of(result))


def rows_of(result: Shown) -> list[dict[str, Any]]:
    """A result's figures as table rows: one for each scored set, control, attack or run."""
    if isinstance(result, RunList):
        return [_run(entry) for entry in result.listed]
    if isinstance(result, CheckResult):
        return [record_of(verdict) for verdict in result.verdicts]
    if isinstance(result, AuditResult):
        return [
            {"seed": run.training.seed, "labels": labels, **row}
            for run in result.runs
            for labels, findings in (("true", run.findings), ("shuffled", run.canary))
            if findings is not None
            for row in _attacks(findings)
        ]
    return [
        {"seed": run.seed, "scored": scored, **_figures(record_of(metrics))}
        for run in result.trainings
        for scored, metrics in (
            ("training rows", run.train),
            ("held-out rows", run.test),
            ("held-out rows, trained in one place", run.centralised),
        )
    ]


def to_frame(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Rows as a pandas frame; without pandas a ConfigError names the extra that brings it."""
    with explained():
        import pandas as pd
    return pd.DataFrame(list(rows))


def draw(result: Shown) -> Figure:
    """Picture of a result; ConfigError without matplotlib, TypeError if it has no picture."""
    with explained():
        from taciturn.report.plots import attacks_figure, calibration_figure, style
    _let_cells_show_figures()
    with style():
        if isinstance(result, AuditResult):
            from taciturn.audit.verdict import conclude

            conclusion = conclude(result)
            weighed = conclusion.canary or conclusion.run
            return attacks_figure(weighed.findings, weighed.verdict)
        if isinstance(result, Runs):
            return calibration_figure(result.first.test)
    raise TypeError("a check or a list of runs has no picture; to_pandas() has its figures")


def _let_cells_show_figures() -> None:
    """A kernel knows how to show a figure once matplotlib's way to it is loaded."""
    if "ipykernel" not in sys.modules:
        return
    import matplotlib as mpl
    from matplotlib import pyplot

    pyplot.switch_backend(mpl.get_backend())


def _attacks(findings: Findings) -> list[dict[str, Any]]:
    # With shuffled labels the model is listed among the attacks, and stands once.
    judged = {one.name for one in findings.attacks}
    controls = [one for one in findings.controls if one.name not in judged]
    parts = (("control", controls), ("attack", findings.attacks))
    return [{"kind": kind, **record_of(score)} for kind, scores in parts for score in scores]


def _run(entry: RunEntry) -> dict[str, Any]:
    record = record_of(entry)
    leakage = record.pop("leakage") or {}
    return {**record, **{f"leak_{name}": value for name, value in leakage.items()}}


def _figures(metrics: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metrics.items() if not isinstance(value, list | dict)}
