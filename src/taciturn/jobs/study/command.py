"""``study``: a model for each combination of some settings' values, on all cores."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from taciturn.cli.console import Json
from taciturn.cli.dashboard import Watch, WatchPort, watched_bar
from taciturn.cli.options import with_settings
from taciturn.cli.output import (
    Out,
    asked,
    finish,
    moment,
    plan_output,
    simulation_provenance,
    write_page,
)
from taciturn.errors import ConfigError, rendering_errors_as
from taciturn.files import require_writable
from taciturn.output_paths import PathUse
from taciturn.setting_syntax import CommandLine, hyphenated

_EXAMPLE = "use --vary l2=1e-5,1e-4,1e-3, say"


@with_settings
def study(
    *,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            help="Setting and values to try, such as l2=1e-5,1e-4 or 'class-weight=0.2,1;0.5,1'; "
            "repeat for more settings."
        ),
    ] = None,
    folds: Annotated[
        int,
        typer.Option(help="Number of cross-validation folds; 0 to evaluate on the held-out rows."),
    ] = 3,
    rank_by: Annotated[
        str, typer.Option(help="Metric that ranks the models: loss or auc.", hidden=True)
    ] = "loss",
    open_scores: Annotated[
        bool,
        typer.Option(
            "--open-scores",
            help="mutual: judge by scores of rows, and not by one noisy sum per combination.",
            hidden=True,
        ),
    ] = False,
    processes: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of models trained in parallel (default: one per core).", hidden=True
        ),
    ] = None,
    html: Annotated[
        Path | None,
        PathUse.WRITTEN,
        typer.Option(help="Write the table as one HTML file.", hidden=True),
    ] = None,
    watch: Watch = False,
    watch_port: WatchPort = None,
    out: Out = None,
    json: Json = False,
    settings: dict[str, Any],
) -> None:
    """Train one model per combination of settings (grid search) and rank the models.

    Between machines a [study] in both sides' files does the same in one session of taciturn party.

    Examples:
    taciturn study --dataset breast-cancer --solver newton --vary l2=1e-4,1e-3,1e-2 --seed 1

    taciturn study --data loans.csv --id customer --label default --folds 5 --vary l2=1e-3,0.1
    """
    from taciturn import api
    from taciturn.jobs.study.result import study_rows
    from taciturn.results.parties import LedgerPlanned

    plan = plan_output(out)
    require_writable(html)
    wanted = {key: value for key, value in settings.items() if key != "record"}
    wanted |= {"folds": folds, "rank_by": rank_by, "processes": processes}
    wanted["open_scores"] = open_scores
    if not vary:
        raise ConfigError(
            "a study must list values of at least one setting",
            where="--vary",
            hint=_EXAMPLE,
        )
    axes = dict(map(_axis, vary))
    varied = frozenset(name.replace("-", "_") for name in axes)
    facts = {**asked(settings), "vary": " ".join(vary), "folds": folds}
    page = watched_bar("study", watch, watch_port, facts)
    with rendering_errors_as(_Varied(from_study=varied)), page as meter:
        meter.announce("training models")
        result = api.study(vary=axes, progress=meter.progress, **wanted)
        meter.publish(study_rows(result.study))
        meter.publish(LedgerPlanned(result.ledger, settings.get("budget")))
    if html is not None:
        write_page(result.page(moment()), html, None)
    finish(
        plan,
        result,
        json,
        lambda: simulation_provenance(settings, vary=axes, folds=folds, rank_by=rank_by),
    )


@dataclass(frozen=True, slots=True)
class _Varied(CommandLine):
    """Settings as options, but for those that vary.

    >>> _Varied(from_study=frozenset({"l2"})).place("l2"), _Varied().place("l2")
    ('--vary l2', '--l2')
    """

    from_study: frozenset[str] = frozenset()

    def place(self, setting: str, value: object = None) -> str:
        if setting in self.from_study:
            return f"--vary {hyphenated(setting)}"
        # Not super(): a dataclass with slots is a new class, and super() would look for the old.
        return CommandLine.place(self, setting, value)


def _axis(text: str) -> tuple[str, list[object]]:
    """A setting with its values.

    >>> _axis("l2=1e-5,0.001"), _axis("class-weight=0.2,1;0.5,1")
    (('l2', [1e-05, 0.001]), ('class-weight', [[0.2, 1], [0.5, 1]]))
    """
    name, sign, values = text.partition("=")
    if not sign or not values:
        raise ConfigError(
            f"{text!r} names no values",
            where="--vary",
            hint=_EXAMPLE,
        )
    if name.replace("-", "_") == "class_weight":
        words = [part.replace(",", " ").split() for part in values.split(";")]
        return name, [[_value(word) for word in part] for part in words]
    return name, [_value(word) for word in values.split(",")]


def _value(word: str) -> object:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word.strip()
