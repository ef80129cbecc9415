"""``taciturn reproduce`` and ``taciturn bench``: the paper's words beside what is found here.

Both are found by the product through its entry points. What they run is loaded when they run.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.cli.console import Json, Meter, progress_bar, show_record
from taciturn.cli.watching import Watch, WatchPort, watched_bar
from taciturn.errors import ConfigError, OutputError
from taciturn.files import require_writable, to_json, write_text

if TYPE_CHECKING:
    from taciturn.report.blocks import Block
    from taciturn_paper.record import Record


class Target(StrEnum):
    """What can be reproduced."""

    ALL = "all"
    TABLE2 = "table2"
    TABLE3 = "table3"
    FIG_B1 = "fig-b1"
    FIG_B2 = "fig-b2"
    FIG_EPS = "fig-eps"
    ATTACKS = "attacks"
    CLAIMS = "claims"
    LABELS = "labels"
    LEAKS = "leaks"
    LEARNING = "learning"
    RECOVERY = "recovery"


_FIGURES = (Target.FIG_B1, Target.FIG_B2, Target.FIG_EPS)
# Which targets take an option; the others refuse it.
_TAKES: Mapping[str, tuple[Target, ...]] = {
    "--plot": (Target.ATTACKS, *_FIGURES),
    "--dataset": (
        Target.ALL,
        Target.TABLE2,
        Target.TABLE3,
        Target.LEAKS,
        Target.ATTACKS,
        *_FIGURES,
    ),
    "--seeds": (Target.ALL, Target.TABLE2, *_FIGURES),
    "--cache": (Target.ALL, Target.TABLE2, Target.LEAKS, *_FIGURES),
    "--report": (Target.ALL,),
}


def reproduce(
    target: Annotated[
        Target,
        typer.Argument(
            help="all: everything of the paper, ending in what holds; table2, table3: its tables; "
            "fig-b1, fig-b2, fig-eps: its figures; leaks: what it says of safety, tried; "
            "attacks: mechanisms by datasets by attacks; claims: the epsilon of add and mult; "
            "labels: label-rr against add at the same total; "
            "learning: which variants of mult learn; recovery: where sparse recovery stops."
        ),
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer seeds and samples, a small grid.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Decides splits, noise and samples.")] = 0,
    seeds: Annotated[
        int | None, typer.Option(min=2, help="Tables and figures: how many seeds.")
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="This dataset alone; repeat it for more.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="attacks and figures: write the picture as an SVG file.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="all: write reproduction.md, .html and their data into this folder."),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Keep finished pieces here; an interrupted run goes on with them."),
    ] = None,
    watch: Watch = False,
    watch_port: WatchPort = None,
    json: Json = False,
) -> None:
    """Put the paper's words beside what is found here.

    [bold]Examples[/bold]

    taciturn reproduce all --quick --report .

    taciturn reproduce table2 --dataset breast-cancer --seeds 10

    taciturn reproduce fig-b1 --plot b1.svg

    taciturn reproduce attacks --quick --plot frontier.svg
    """
    _refuse_unused(
        target,
        {
            "--plot": plot,
            "--dataset": dataset,
            "--seeds": seeds,
            "--cache": cache,
            "--report": report,
        },
    )
    require_writable(plot)
    if report is not None:
        _require_folder(report)
    wanted = {"quick": quick, "seed": seed, "datasets": tuple(dataset or ())}
    from taciturn_paper.shelf import usual_folder

    with watched_bar("reproduce", watch, watch_port, {"target": target.value}) as meter:
        record = _run(target, wanted, seeds, cache or usual_folder(), meter)
    if plot is not None:
        write_text(plot, _picture(target, record))
    if report is not None:
        _write_report(report, record)
    show_record(record, json, lambda: _table(target)(record))


def bench(
    against: Annotated[
        str,
        typer.Option(
            help="Rivals, separated by commas: phe, heu, or none. Or spu alone: whole trainings "
            "beside SPU's Cheetah."
        ),
    ] = "none",
    quick: Annotated[bool, typer.Option("--quick", help="Two shapes, two repeats.")] = False,
    repeats: Annotated[
        int | None,
        typer.Option(min=1, help="Turns of each contender: 5 by default, beside spu 3."),
    ] = None,
    spu_python: Annotated[
        Path | None,
        typer.Option(
            envvar="TACITURN_SPU_PYTHON",
            help="--against spu: a Python that has SPU, which needs an environment of its own.",
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write the ratios as an SVG file.")] = None,
    whole: Annotated[
        bool,
        typer.Option(
            "--trainings",
            help="Instead: newton beside sgd, to the same model, between two processes on three "
            "links; and newton on large tables.",
        ),
    ] = False,
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="--trainings: this dataset alone; repeat it for more."),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(min=2, help="--trainings: newton on a table of so many rows alone."),
    ] = None,
    columns: Annotated[
        int, typer.Option(min=1, help="--trainings --rows: the table's columns.")
    ] = 20,
    report: Annotated[
        Path | None,
        typer.Option(help="--trainings, --against spu: write the tables as Markdown too."),
    ] = None,
    json: Json = False,
) -> None:
    """Time the encryption of one iteration on the paper's shapes, as ratios in one run.

    [bold]Examples[/bold]

    taciturn bench --quick

    taciturn bench --against phe,heu --plot bench.svg

    taciturn bench --trainings --dataset census-income

    taciturn bench --trainings --rows 1000000 --columns 20

    taciturn bench --against spu --spu-python spu-env/bin/python
    """
    rivals = () if against == "none" else tuple(name.strip() for name in against.split(","))
    if "spu" in rivals and not whole:
        _refuse_with_spu(rivals, {"--plot": plot, "--dataset": dataset, "--rows": rows})
        _bench_against_spu(spu_python, repeats, quick, report, json)
        return
    if whole:
        _refuse_with_trainings({"--plot": plot, "--against": against != "none"})
        _bench_trainings(quick, dataset, None if rows is None else (rows, columns), report, json)
        return
    for option, value in {"--dataset": dataset, "--rows": rows, "--report": report}.items():
        if value:
            raise ConfigError(
                f"{option} belongs to --trainings", where=option, hint="add --trainings"
            )
    from taciturn_paper import encryption, trainings
    from taciturn_paper.report.ratios import ratios_svg
    from taciturn_paper.report.tables import benchmark

    if plot is not None and "phe" not in rivals:
        raise ConfigError(
            "the plot shows ratios to phe", where="--plot", hint="use --against phe with it"
        )
    require_writable(plot)
    with progress_bar() as meter:
        shapes = encryption.run(rivals, quick=quick, repeats=repeats or 5, announce=meter.announce)
        done = [] if quick else trainings.measure_all(meter.announce)
    record = {
        "rows": [row.to_dict() for row in shapes],
        "trainings": [training.to_dict() for training in done],
    }
    if plot is not None:
        write_text(plot, ratios_svg(record))
    show_record(record, json, lambda: benchmark(record))


def _refuse_with_trainings(given: Mapping[str, object]) -> None:
    for option, value in given.items():
        if value:
            raise ConfigError(
                f"{option} belongs to the benchmark of the encryption",
                where=option,
                hint="leave it out, or leave --trainings out",
            )


def _refuse_with_spu(rivals: tuple[str, ...], given: Mapping[str, object]) -> None:
    if len(rivals) > 1:
        raise ConfigError(
            "SPU is compared by whole trainings, the other rivals by one iteration's encryption",
            where="--against",
            hint="use --against spu alone",
        )
    for option, value in given.items():
        if value:
            raise ConfigError(
                f"the comparison with SPU does not take {option}",
                where=option,
                hint="leave it out: it trains on breast-cancer",
            )


def _bench_against_spu(
    python: Path | None, repeats: int | None, quick: bool, report: Path | None, json: bool
) -> None:
    from taciturn_paper import against_spu
    from taciturn_paper.report.against_spu import comparison, page

    require_writable(report)
    with progress_bar() as meter:
        record = against_spu.run(
            python,
            announce=meter.announce,
            repeats=repeats or against_spu.REPEATS,
            quick=quick,
        )
    if report is not None:
        from taciturn.report.markdown import render

        write_text(report, render(page(record, shlex.join(["taciturn", *sys.argv[1:]]))))
    show_record(record, json, lambda: comparison(record))


def _bench_trainings(
    quick: bool,
    datasets: list[str] | None,
    size: tuple[int, int] | None,
    report: Path | None,
    json: bool,
) -> None:
    from taciturn_paper import solvers
    from taciturn_paper.report.solvers import page, solver_tables

    require_writable(report)
    with progress_bar() as meter:
        record = solvers.run(
            announce=meter.announce,
            datasets=datasets or (),
            sizes=() if size is None else (size,),
            quick=quick,
        )
    if report is not None:
        from taciturn.report.markdown import render

        write_text(report, render(page(record, shlex.join(["taciturn", *sys.argv[1:]]))))
    show_record(record, json, lambda: solver_tables(record))


def _run(target: Target, wanted: Record, seeds: int | None, folder: Path, meter: Meter) -> Record:
    from taciturn_paper import (
        claims,
        curves,
        everything,
        labels,
        leaks,
        learning,
        matrix,
        recovery,
        table2,
        table3,
    )

    ears: Record = {"announce": meter.announce, "progress": meter.progress}
    once = {"quick": wanted["quick"], "seed": wanted["seed"], "announce": meter.announce}
    match target:
        case Target.ALL:
            return everything.run(**wanted, **ears, seeds=seeds, folder=folder)
        case Target.TABLE2:
            return table2.run(**wanted, **ears, seeds=seeds, folder=folder)
        case Target.TABLE3:
            return table3.run(**wanted, **ears)
        case Target.FIG_B1 | Target.FIG_B2 | Target.FIG_EPS:
            return curves.run(target, **wanted, **ears, seeds=seeds, folder=folder)
        case Target.LEAKS:
            return leaks.run(**wanted, **ears, folder=folder)
        case Target.ATTACKS:
            return matrix.run(**{**once, "only": wanted["datasets"]}, progress=meter.progress)
        case Target.CLAIMS:
            samples = everything.QUICK_SAMPLES if wanted["quick"] else everything.SAMPLES
            return claims.run(samples=samples, seed=wanted["seed"], announce=meter.announce)
        case Target.LABELS:
            return labels.run(**once, progress=meter.progress)
        case Target.RECOVERY:
            return recovery.run(**once)
        case Target.LEARNING:
            return learning.run(**once)


def _refuse_unused(target: Target, given: Mapping[str, object]) -> None:
    for option, value in given.items():
        if value and target not in _TAKES[option]:
            takers = ", ".join(_TAKES[option])
            raise ConfigError(
                f"{target} does not take {option}",
                where=option,
                hint=f"leave it out, or reproduce {takers}",
            )


def _table(target: Target) -> Callable[[Record], list[Block]]:
    from taciturn_paper.report import tables, words

    if target is Target.ALL:
        return tables.everything
    if target in _FIGURES:
        return tables.figure
    blocks: Callable[[Record], list[Block]]
    blocks = getattr(tables, target, None) or getattr(words, target)
    return blocks


def _picture(target: Target, record: Record) -> str:
    # Imported here: drawing takes a second to load.
    from taciturn_paper.report.curves import curves_svg
    from taciturn_paper.report.frontier import frontier_svg

    return frontier_svg(record) if target is Target.ATTACKS else curves_svg(record)


def _require_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise OutputError("there is no such folder", where=str(folder), hint="make it first")
    require_writable(folder / "reproduction.md", folder / "reproduction.html")


def _write_report(folder: Path, record: Record) -> None:
    """The page, the same as HTML, and beside them the pictures and the data."""
    # Imported here: drawing takes a second to load.
    from taciturn.report.html import render as render_html
    from taciturn.report.markdown import render as render_markdown
    from taciturn_paper.report.document import reproduction_page

    page = reproduction_page(record, shlex.join(["taciturn", *sys.argv[1:]]))
    data = folder / "reproduction"
    try:
        data.mkdir(exist_ok=True)
    except OSError as problem:
        raise OutputError(
            f"the folder cannot be made: {problem.strerror}", where=str(data)
        ) from None
    write_text(folder / "reproduction.md", render_markdown(page, data.name))
    write_text(folder / "reproduction.html", render_html(page))
    for figure in page.figures:
        write_text(data / f"{figure.name}.svg", figure.svg)
    for name, part in record.items():
        write_text(data / f"{name}.json", to_json(part if isinstance(part, dict) else {name: part}))
