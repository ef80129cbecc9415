"""The commands about runs: the list of a folder of results, and their export to MLflow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from taciturn.cli.console import Json
from taciturn.cli.console import show as print_result
from taciturn.cli.help import Command
from taciturn.output_paths import PathUse

DEFAULT = Path("runs")

runs = typer.Typer(
    name="runs",
    help="List and export the results that commands wrote with --out.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Folder: TypeAlias = Annotated[
    Path, PathUse.READ, typer.Option(help="Folder in which names of runs are looked up.")
]
Mechanism: TypeAlias = Annotated[
    str | None, typer.Option(help="Only runs with this mechanism.", rich_help_panel="Which runs")
]
Dataset: TypeAlias = Annotated[
    str | None, typer.Option(help="Only runs of these data.", rich_help_panel="Which runs")
]
Kind: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Only results of this kind: train, audit, audit-session, check, compare, demo, "
        "party or party-dry-run.",
        rich_help_panel="Which runs",
    ),
]
Sort: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Sort by time, name, auc, epsilon, leakage, seconds or bytes (default: time).",
        rich_help_panel="Which runs",
    ),
]


@runs.command(name="list", cls=Command)
def list_runs(
    folder: Annotated[Path, PathUse.READ, typer.Argument(help="A folder of runs.")] = DEFAULT,
    mechanism: Mechanism = None,
    dataset: Dataset = None,
    kind: Kind = None,
    sort: Sort = None,
    json: Json = False,
) -> None:
    """List the runs of a folder: model quality, privacy ledger, leakage, cost.

    Examples:
    taciturn runs list

    taciturn runs list results --mechanism sealed --sort auc
    """
    from taciturn_risk.runs.collection import RunFilter, collect

    wanted = RunFilter(mechanism, dataset, kind, sort)
    print_result(collect(folder, wanted).list, json)


@runs.command(cls=Command)
def export(
    names: Annotated[list[str], typer.Argument(metavar="RUN...", help="Runs, by name or path.")],
    mlflow: Annotated[
        str,
        typer.Option(
            help="Address of an MLflow server, sqlite:///FILE, or a folder, which MLflow 3 reads "
            "only with MLFLOW_ALLOW_FILE_STORE=true."
        ),
    ],
    experiment: Annotated[
        str, typer.Option(help="Experiment, created if it does not exist.")
    ] = "taciturn",
    folder: Folder = DEFAULT,
    artifacts: Annotated[
        bool, typer.Option("--artifacts/--no-artifacts", help="Also send the runs' files.")
    ] = True,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help="Export a party's run too, although its figures may depend on labels."
        ),
    ] = False,
    allow_http: Annotated[
        bool, typer.Option("--allow-http", help="Accept plain http to another machine.")
    ] = False,
    json: Json = False,
) -> None:
    """Export runs to MLflow: settings, metrics, curves, ledger, attacks and files.

    Everything in a run is sent to the named server, and anyone who can read the server can read it.
    A run that the server already has is not sent again.

    Examples:
    taciturn runs export first second --mlflow http://127.0.0.1:5000

    taciturn runs export bobs-run --mlflow https://mlflow.bank.example --experiment credit --yes
    """
    from taciturn.errors import rendering_errors_as
    from taciturn.setting_syntax import COMMAND_LINE
    from taciturn_risk.runs.collection import named
    from taciturn_risk.runs.mlflow_export import TrackingUri
    from taciturn_risk.runs.mlflow_export import export as send

    with rendering_errors_as(COMMAND_LINE):
        target = TrackingUri.parse(mlflow, allow_http=allow_http)
        result = send(
            named(names, folder),
            target,
            experiment=experiment,
            confirmed=yes,
            artifacts=artifacts,
        )
    print_result(result, json)
