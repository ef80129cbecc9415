"""``woe``: weight of evidence of Alice's columns, for Bob alone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from taciturn.cli.console import Json, progress_bar
from taciturn.cli.options import with_settings
from taciturn.cli.out import Out, Plan, finish, of_party, planned, simulated, untrained, write_page
from taciturn.cli.party import again_on_both, shown, stoppable
from taciturn.errors import ConfigError, shown_by
from taciturn.faces import Hint, hyphenated
from taciturn.files import require_writable, write_private


@with_settings
def woe(
    *,
    party: Annotated[
        Path | None,
        typer.Argument(help="This side's TOML file, as for taciturn party; none to simulate."),
    ] = None,
    smoothing: Annotated[
        float | None,
        typer.Option(help="Bob: added to the ones and to the zeros of every bin (default: 0.5)."),
    ] = None,
    min_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Alice: bins of fewer rows are merged (default: her file's; 50, or one in a "
            "hundred rows).",
        ),
    ] = None,
    names: Annotated[
        bool | None,
        typer.Option(
            "--names/--no-names",
            help="Alice: tell what columns and bins are called (default: her file's; in a "
            "simulation they are told).",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the result as one HTML file.")] = None,
    out: Out = None,
    json: Json = False,
    settings: dict[str, Any],
) -> None:
    """Weigh Alice's columns for Bob: his labels are counted in her bins under his key.

    Bob learns weight of evidence and information value of each of her columns, she learns nothing
    of his labels. Between machines run it on both sides; her file must allow it. Only training rows
    are counted. taciturn audit --woe shows what the usual way tells.

    [bold]Examples[/bold]

    taciturn woe --dataset breast-cancer --seed 1

    taciturn woe --data loans.csv --id customer --label default --alice-columns income,age

    taciturn woe bob.toml --smoothing 0.5

    taciturn woe alice.toml --min-rows 200 --names
    """
    plan = planned(out)
    require_writable(html)
    if party is not None:
        _refuse_settings(settings)
        _weigh(party, (smoothing, min_rows, names), html, plan, json)
        return
    from taciturn import api
    from taciturn.report.woe import woe_page

    wanted = {key: value for key, value in settings.items() if key != "record"}
    choice: dict[str, Any] = {"min_rows": min_rows, "names": names is not False}
    choice |= {} if smoothing is None else {"smoothing": smoothing}
    with progress_bar() as meter:
        meter.announce("counting")
        result = api.woe(observe=meter.observe, **choice, **wanted)
    made = datetime.now(UTC).isoformat(timespec="seconds")
    if html is not None:
        write_page(woe_page(result, made), html, None)
    beside = {"smoothing": result.smoothing, "min_rows": result.min_rows, "names": names}
    finish(
        plan,
        result,
        json,
        lambda: untrained(simulated(settings, **beside)),
    )


def _weigh(
    party: Path,
    chosen: tuple[float | None, int | None, bool | None],
    html: Path | None,
    plan: Plan | None,
    json: bool,
) -> None:
    # Imported here: the transport takes a second to load.
    from taciturn.deploy.config import PartyConfig
    from taciturn.deploy.woe import OwnChoice, weigh
    from taciturn.report.woe import woe_page

    config = PartyConfig.read(party)
    again = again_on_both("woe", config.peer)
    with shown_by(config.face), stoppable(), again, shown(config) as callbacks:
        result = weigh(config, OwnChoice(*chosen), callbacks)
    made = datetime.now(UTC).isoformat(timespec="seconds")
    if html is not None:
        from taciturn.report.html import render

        # What it says is this side's alone.
        write_private(html, render(woe_page(result, made)))
    finish(
        plan,
        result,
        json,
        lambda: untrained(of_party(config)),
    )


def _refuse_settings(settings: dict[str, Any]) -> None:
    for name in settings:
        raise ConfigError(
            f"{hyphenated(name)} is said by the party's file",
            setting=name,
            hint=Hint("leave {" + name + "} out; with a party's file its own settings hold"),
        )
