"""The command that writes a model's page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.cli.console import Json, show
from taciturn.cli.output import moment
from taciturn.errors import ConfigError, rendering_errors_as
from taciturn.files import require_writable, write_private
from taciturn.output_paths import PathUse, Replaces

if TYPE_CHECKING:
    from taciturn.party.config import PartyConfig
    from taciturn_risk.scorecard.gains import Costs
    from taciturn_risk.scorecard.points import Scale
    from taciturn_risk.scorecard.result import ModelReport


def report(
    config: Annotated[
        Path, PathUse.READ, typer.Argument(help="This side's TOML file, as for taciturn party.")
    ],
    model: Annotated[
        Path | None,
        PathUse.READ,
        typer.Option(help="This side's model file (default: the one in the party's file)."),
    ] = None,
    out: Annotated[
        Path | None,
        PathUse.WRITTEN,
        Replaces("report"),
        typer.Option(
            help="HTML file to write (default: NAME.model.html beside the model, unless --json is "
            "given)."
        ),
    ] = None,
    scores: Annotated[
        Path | None,
        PathUse.READ,
        typer.Option(help="Scores of new rows, written by taciturn predict, to compare with."),
    ] = None,
    labels: Annotated[
        Path | None,
        PathUse.READ,
        typer.Option(
            help="Table with the labels of the new rows, on which the model is evaluated."
        ),
    ] = None,
    costs: Annotated[
        str | None,
        typer.Option(
            metavar="ALARM:MISS",
            help="Costs of a false positive and a false negative, such as 1:10; determines the "
            "threshold.",
        ),
    ] = None,
    bands: Annotated[
        str,
        typer.Option(help="Score bands: their number, or the probabilities at which they begin."),
    ] = "10",
    base_score: Annotated[
        float, typer.Option(help="Scorecard: the points at the base odds.")
    ] = 600,
    base_odds: Annotated[
        float, typer.Option(help="Scorecard: labels 0 for one label 1 at the base score.")
    ] = 50,
    pdo: Annotated[float, typer.Option(help="Scorecard: the points that double the odds.")] = 20,
    alice_model: Annotated[
        list[Path] | None,
        PathUse.READ,
        typer.Option(
            help="Alice's model file, for exact standard errors; repeat for several Alices."
        ),
    ] = None,
    alice_rows: Annotated[
        list[Path] | None,
        PathUse.READ,
        typer.Option(help="Alice's training table, one for each --alice-model, in the same order."),
    ] = None,
    alice_id: Annotated[
        str | None, typer.Option(help="Id column of Alice's table, if it has another name.")
    ] = None,
    json: Json = False,
) -> None:
    """Write a model report: KS, gains, calibration, score bands, points, Wald tests.

    Bob's report is computed from the scores that the training saved beside his model. Alice has no
    scores: her report shows the value of her own columns, if she has their weights.

    Examples:
    taciturn model report bob.toml --costs 1:10

    taciturn model report bob.toml --scores march.scores.csv --labels march.csv --out march.html

    taciturn model report bob.toml --alice-model alice.model.json --alice-rows alice.csv --json
    """
    from taciturn.extras import explained
    from taciturn.party.config import PartyConfig
    from taciturn_risk.scorecard.build import ReportRequest
    from taciturn_risk.scorecard.party import party_report

    settings = PartyConfig.read(config)
    file = settings.path(settings.output.model) if model is None else model
    if out is None and not json:
        beside = file.with_name(f"{file.name.removesuffix('.json')}.html")
        out = settings.path(settings.output.report_file) if model is None else beside
        settings.require_unused("out", out, replaces="report")
    require_writable(out)
    request = ReportRequest(
        model=file,
        scores=scores,
        labels=labels,
        costs=_costs(costs, settings),
        bands=_bands(bands),
        scale=_scale(base_score, base_odds, pdo),
        alice_models=tuple(alice_model or ()),
        alice_rows=tuple(alice_rows or ()),
        alice_id=alice_id,
    )
    with rendering_errors_as(settings.syntax), explained():
        result = party_report(settings, request)
    if out is not None:
        result = replace(result, html=str(out))
        write_model_page(result, out)
    show(result, json)


def write_model_page(result: ModelReport, out: Path) -> None:
    """Write the page; it depends on labels, so that only its owner may read it."""
    from taciturn.extras import explained

    with explained():
        from taciturn.report.html import render

        page = result.page(moment())
    write_private(out, render(page))


def _costs(text: str | None, settings: PartyConfig) -> Costs | None:
    from taciturn_risk.scorecard.gains import Costs

    miss = settings.output.false_negative_cost
    if text is None:
        return None if miss is None else Costs(1.0, miss)
    try:
        alarm, miss = map(float, text.split(":"))
        return Costs(alarm, miss)
    except (ValueError, ConfigError):
        raise ConfigError(
            f"costs are two positive numbers, and {text!r} is not",
            where="--costs",
            hint="use 1:10, where a missed 1 costs as much as ten false alarms",
        ) from None


def _bands(text: str) -> int | tuple[float, ...]:
    from taciturn_risk.scorecard.bands import MOST_BANDS

    try:
        if text.isdecimal() and 1 <= int(text) <= MOST_BANDS:
            return int(text)
        edges = tuple(float(edge) for edge in text.split(","))
        if all(0 < edge < 1 for edge in edges) and list(edges) == sorted({*edges}):
            return edges
    except ValueError:
        pass
    raise ConfigError(
        f"score bands cannot be made of {text!r}",
        where="--bands",
        hint="use a number up to 100, or rising probabilities such as 0.02,0.05,0.1",
    )


def _scale(base_score: float, base_odds: float, pdo: float) -> Scale:
    from taciturn_risk.scorecard.points import Scale

    try:
        return Scale(base_score, base_odds, pdo)
    except ConfigError as problem:
        option = "--base-odds" if not base_odds > 0 else "--pdo"
        raise ConfigError(problem.message, where=option, hint=problem.hint) from None
