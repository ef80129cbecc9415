"""``woe``: weight of evidence of Alice's columns, for Bob alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.console import Json, progress_bar
from taciturn.cli.options import with_settings
from taciturn.cli.output import (
    Out,
    OutputPlan,
    Provenance,
    finish,
    party_provenance,
    plan_output,
    simulation_provenance,
    without_training,
)
from taciturn.cli.party_console import stateless_side
from taciturn.errors import ConfigError
from taciturn.files import require_writable, write_private, write_text
from taciturn.output_paths import PathUse
from taciturn.setting_syntax import Hint, hyphenated

if TYPE_CHECKING:
    from taciturn_risk.woe.result import WoeResult


@with_settings
def woe(
    *,
    party: Annotated[
        Path | None,
        PathUse.READ,
        typer.Argument(
            help="This side's TOML file, as for taciturn party; without one both sides "
            "are simulated."
        ),
    ] = None,
    smoothing: Annotated[
        float | None,
        typer.Option(
            help="Bob: smoothing, added to both counts of every bin (default: 0.5).", hidden=True
        ),
    ] = None,
    min_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Alice: minimum number of rows per bin; smaller bins are merged (default: her "
            "file's, or the larger of 50 and 1 % of the rows).",
        ),
    ] = None,
    share_names: Annotated[
        bool | None,
        typer.Option(
            "--share-names/--no-share-names",
            help="Alice: share names of columns and bins (default: her file's, on when simulated).",
        ),
    ] = None,
    html: Annotated[
        Path | None, PathUse.WRITTEN, typer.Option(help="Write the result as one HTML file.")
    ] = None,
    out: Out = None,
    json: Json = False,
    settings: dict[str, Any],
) -> None:
    """Compute the weight of evidence of Alice's columns for Bob, on encrypted labels.

    Bob learns the weight of evidence and the information value of each of Alice's columns; Alice
    learns nothing about his labels. Between machines, run it on both sides; her file must allow it.
    Only training rows are counted. taciturn audit --woe shows what handing her the weights would
    reveal.

    Examples:
    taciturn woe --dataset breast-cancer --seed 1

    taciturn woe --data loans.csv --id customer --label default --alice-columns income,age

    taciturn woe bob.toml --smoothing 0.5

    taciturn woe alice.toml --min-rows 200 --share-names
    """
    plan = plan_output(out)
    require_writable(html)
    if party is not None:
        _refuse_settings(settings)
        _run_side(party, (smoothing, min_rows, share_names), html, plan, json)
        return
    from taciturn_risk import api

    wanted = {key: value for key, value in settings.items() if key != "record"}
    chosen: dict[str, Any] = {"min_rows": min_rows, "share_names": share_names is not False}
    chosen |= {} if smoothing is None else {"smoothing": smoothing}
    with progress_bar() as meter:
        meter.announce("counting")
        result = api.woe(observe=meter.observe, **chosen, **wanted)
    beside = {
        "smoothing": result.smoothing,
        "min_rows": result.min_rows,
        "share_names": share_names,
    }
    _show(result, html, plan, json, lambda: simulation_provenance(settings, **beside))


def _run_side(
    party: Path,
    options: tuple[float | None, int | None, bool | None],
    html: Path | None,
    plan: OutputPlan | None,
    json: bool,
) -> None:
    # Imported here: the transport takes a second to load.
    from taciturn.jobs.base import run_job
    from taciturn.party.config import PartyConfig
    from taciturn_risk.woe.job import WoeJob, WoeOptions

    config = PartyConfig.read(party)
    with stateless_side("woe", config) as callbacks:
        result = run_job(WoeJob(WoeOptions(*options)), config, callbacks)
    _show(result, html, plan, json, lambda: party_provenance(config))


def _show(
    result: WoeResult,
    html: Path | None,
    plan: OutputPlan | None,
    json: bool,
    origin: Callable[[], Provenance],
) -> None:
    made = datetime.now(UTC).isoformat(timespec="seconds")
    if html is not None:
        from taciturn.report.html import render

        # A party's result is its own: nobody else may read the file.
        write = write_text if result.role == "simulation" else write_private
        write(html, render(result.page(made)))
    finish(
        plan,
        result,
        json,
        lambda: without_training(origin()),
    )


def _refuse_settings(settings: dict[str, Any]) -> None:
    for name in settings:
        raise ConfigError(
            f"{hyphenated(name)} is set by the party's file",
            setting=name,
            hint=Hint("leave {" + name + "} out; with a party's file its own settings hold"),
        )
