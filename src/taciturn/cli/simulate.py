"""``train``: both parties in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from taciturn.cli.console import Json, Verbose
from taciturn.cli.dashboard import Watch, WatchPort, watched_bar
from taciturn.cli.options import with_settings
from taciturn.cli.output import Out, asked, finish, plan_output, simulation_provenance
from taciturn.extensions import function
from taciturn.extras import RISK, require_packages
from taciturn.files import require_writable
from taciturn.output_paths import PathUse

PAGE_PACKAGES = ("scipy", "matplotlib", "jinja2", "markupsafe")
"""What the model report is computed and drawn with: packages of the extra ``audit``."""


@with_settings
def train(
    *,
    model_report: Annotated[
        Path | None,
        PathUse.WRITTEN,
        typer.Option(
            help="Write the model report (HTML): KS, gains, calibration, exact Wald tests."
        ),
    ] = None,
    watch: Watch = False,
    watch_port: WatchPort = None,
    out: Out = None,
    verbose: Verbose = False,
    json: Json = False,
    settings: dict[str, Any],
) -> None:
    """Train two simulated parties in this process: metrics, privacy ledger, traffic.

    Examples:
    taciturn train --dataset breast-cancer --mechanism none --seed 1

    taciturn train --dataset breast-cancer --seed 1 --out runs/

    taciturn train --data loans.csv --id customer --label default --alice-columns half

    taciturn train --dataset breast-cancer --watch

    taciturn train --dataset breast-cancer --model-report model.html
    """
    from taciturn import api
    from taciturn.report.training import training_summary
    from taciturn.results.parties import LedgerPlanned

    plan = plan_output(out)
    require_writable(model_report)
    # Before the training: where the distribution is absent, nothing is computed in vain.
    write_page = None
    if model_report is not None:
        wanted = "the model report (--model-report)"
        write_page = function("write_model_page", RISK, wanted=wanted)
        require_packages(*PAGE_PACKAGES)
    with watched_bar("train", watch, watch_port, asked(settings)) as meter:
        result = api.train(observe=meter.observe, **settings)
        meter.publish(LedgerPlanned(result.runs.first.ledger, settings.get("budget")))
    brief = None if verbose else lambda: training_summary(result.runs)
    finish(plan, result.runs, json, lambda: simulation_provenance(settings), brief)
    if write_page is not None:
        write_page(result.model_report(), model_report)
