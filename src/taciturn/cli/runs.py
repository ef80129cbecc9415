"""The commands about runs: what a folder of results holds, side by side, on a page, in MLflow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from taciturn.cli.console import Json
from taciturn.cli.console import show as print_result
from taciturn.errors import ConfigError
from taciturn.files import require_writable, write_text

DEFAULT = Path("runs")

runs = typer.Typer(
    name="runs",
    help="List, show and compare the results that commands left with --out, and export them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Folder: TypeAlias = Annotated[Path, typer.Option(help="Where names of runs are looked up.")]
Names: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="RUN...", help="By name or path (default: all of the folder)."),
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
        help="Sort by time, name, auc, epsilon, leakage, seconds or bytes (default: time, or as "
        "they were named).",
        rich_help_panel="Which runs",
    ),
]


@runs.command(name="list")
def list_runs(
    folder: Annotated[Path, typer.Argument(help="A folder of runs.")] = DEFAULT,
    mechanism: Mechanism = None,
    dataset: Dataset = None,
    kind: Kind = None,
    sort: Sort = None,
    json: Json = False,
) -> None:
    """List the runs of a folder: the model, the ledger, the leakage, the cost.

    [bold]Examples[/bold]

    taciturn runs list

    taciturn runs list results --mechanism sealed --sort auc
    """
    from taciturn.report.runs import list_blocks
    from taciturn.runs.collection import Wanted, collect

    wanted = Wanted(mechanism, dataset, kind, sort)
    print_result(collect(folder, wanted).list, json, list_blocks)


@runs.command()
def show(
    run: Annotated[str, typer.Argument(metavar="RUN", help="By name or path.")],
    folder: Folder = DEFAULT,
    json: Json = False,
) -> None:
    """Show one run: what made it, and what its command printed.

    [bold]Examples[/bold]

    taciturn runs show 2026-11-17T101112-train-breast-cancer-sealed

    taciturn runs show results/first --json
    """
    from taciturn.report.runs import run_blocks
    from taciturn.results.run_record import RunRecord
    from taciturn.runs.collection import named

    (whole,) = named([run], folder)
    record = RunRecord(whole.manifest, whole.record)
    print_result(record, json, lambda _: run_blocks(whole))


@runs.command()
def compare(
    names: Names = None,
    folder: Folder = DEFAULT,
    mechanism: Mechanism = None,
    dataset: Dataset = None,
    kind: Kind = None,
    sort: Sort = None,
    json: Json = False,
) -> None:
    """Set runs side by side: the settings that differ, metrics, ledger, leakage, cost.

    The first is what the others are compared with. What keeps their figures from being compared,
    such as other rows or another seed, is said.

    [bold]Examples[/bold]

    taciturn runs compare first second

    taciturn runs compare --folder results --dataset breast-cancer --sort auc
    """
    from taciturn.report.runs import comparison_blocks
    from taciturn.runs.collection import Wanted, chosen
    from taciturn.runs.comparison import compare_runs

    wanted = Wanted(mechanism, dataset, kind, sort)
    parts = chosen(names or [], folder, wanted).parts
    print_result(compare_runs(parts), json, comparison_blocks)


@runs.command()
def report(
    names: Names = None,
    html: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("runs.html"),
    folder: Folder = DEFAULT,
    mechanism: Mechanism = None,
    dataset: Dataset = None,
    kind: Kind = None,
    sort: Sort = None,
    json: Json = False,
) -> None:
    """Write one HTML page about runs, with pictures: no script, no request.

    [bold]Examples[/bold]

    taciturn runs report --html runs.html

    taciturn runs report first second --html two.html
    """
    from taciturn.report.html import render
    from taciturn.report.runs import list_blocks
    from taciturn.report.runs_page import runs_page
    from taciturn.runs.collection import Wanted, chosen

    require_writable(html)
    collection = chosen(names or [], folder, Wanted(mechanism, dataset, kind, sort))
    if not collection.parts:
        raise ConfigError(
            "there is no run to report on",
            where=collection.folder,
            hint="taciturn runs list shows which are there",
        )
    write_text(html, render(runs_page(collection)))
    print_result(collection.list, json, list_blocks)


@runs.command()
def export(
    names: Annotated[list[str], typer.Argument(metavar="RUN...", help="By name or path.")],
    mlflow: Annotated[
        str,
        typer.Option(help="The address of an MLflow server, or sqlite:///FILE, or a folder."),
    ],
    experiment: Annotated[
        str, typer.Option(help="The experiment, made if it is not there.")
    ] = "taciturn",
    folder: Folder = DEFAULT,
    artifacts: Annotated[
        bool, typer.Option("--artifacts/--no-artifacts", help="Also send the runs' files.")
    ] = True,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Send a party's run too, whose figures may depend on labels."),
    ] = False,
    allow_http: Annotated[
        bool, typer.Option("--allow-http", help="Accept plain http to another machine.")
    ] = False,
    json: Json = False,
) -> None:
    """Send runs to MLflow: settings, metrics, curves, ledger, attacks, and their files.

    All that a run holds goes to the server that is named, and whoever can read that has it. A run
    that is there already is not sent again.

    [bold]Examples[/bold]

    taciturn runs export first second --mlflow http://127.0.0.1:5000

    taciturn runs export bobs-run --mlflow https://mlflow.bank.example --experiment credit --yes
    """
    from taciturn.errors import shown_by
    from taciturn.faces import COMMAND_LINE
    from taciturn.report.runs import export_blocks
    from taciturn.runs.collection import named
    from taciturn.runs.mlflow_export import export as send
    from taciturn.runs.tracking_uri import TrackingUri

    with shown_by(COMMAND_LINE):
        target = TrackingUri.of(mlflow, allow_http=allow_http)
        result = send(
            named(names, folder),
            target,
            experiment=experiment,
            confirmed=yes,
            artifacts=artifacts,
        )
    print_result(result, json, export_blocks)
