"""The commands ``reproduce`` and ``bench``; what they run is loaded when they run."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.cli.console import Json, progress_bar, show_record
from taciturn.cli.dashboard import Watch, WatchPort, watched_bar
from taciturn.errors import ConfigError, OutputError
from taciturn.files import require_writable, to_json, write_text
from taciturn.output_paths import PathUse

if TYPE_CHECKING:
    from taciturn.report.blocks import Block
    from taciturn_paper.tasks import Record, Request


class Target(StrEnum):
    """A target of ``reproduce``."""

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
    MULT = "mult"
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
        Target.MULT,
        Target.ATTACKS,
        *_FIGURES,
    ),
    "--seeds": (Target.ALL, Target.TABLE2, Target.MULT, *_FIGURES),
    "--cache": (Target.ALL, Target.TABLE2, Target.LEAKS, Target.MULT, *_FIGURES),
    "--report": (Target.ALL,),
}


def reproduce(
    target: Annotated[
        Target,
        typer.Argument(
            show_choices=False,
            help="all: the whole paper, and which claims hold; table2, table3: its tables; fig-b1, "
            "fig-b2, fig-eps: its figures; leaks: its safety claims, tested; attacks: every "
            "attack on every mechanism and dataset; claims: the epsilon of add and mult; labels: "
            "label-rr against add at the same total; learning: which variants of mult learn; "
            "mult: the attack on its labels, and its AUC with an intercept; recovery: limit of "
            "sparse recovery.",
        ),
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer seeds and samples, a small grid.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of splits, noise and samples.")] = 0,
    seeds: Annotated[
        int | None, typer.Option(min=2, help="Number of seeds (tables and figures).")
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only this dataset; repeat for more.")
    ] = None,
    plot: Annotated[
        Path | None,
        PathUse.WRITTEN,
        typer.Option(help="Write the figure as an SVG file (attacks and figures)."),
    ] = None,
    report: Annotated[
        Path | None,
        PathUse.WRITTEN,
        typer.Option(help="Write reproduction.md, .html and their data to this folder (all)."),
    ] = None,
    cache: Annotated[
        Path | None,
        PathUse.READ,
        typer.Option(help="Folder of finished tasks; an interrupted run continues from it."),
    ] = None,
    watch: Watch = False,
    watch_port: WatchPort = None,
    json: Json = False,
) -> None:
    """Reproduce the paper's tables and figures.

    Examples:
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
    from taciturn_paper.tasks import Request, default_cache

    with watched_bar("reproduce", watch, watch_port, {"target": target.value}) as meter:
        request = Request(
            quick,
            seed,
            seeds,
            tuple(dataset or ()),
            cache or default_cache(),
            meter.announce,
            meter.progress,
        )
        record = _run(target, request)
    if plot is not None:
        write_text(plot, _picture(target, record))
    if report is not None:
        _write_report(report, record)
    show_record(record, json, lambda: _table(target)(record))


def bench(
    against: Annotated[
        str,
        typer.Option(
            help="Libraries to compare with, separated by commas: phe, heu, or none; or spu "
            "alone: whole trainings, compared with SPU's Cheetah."
        ),
    ] = "none",
    quick: Annotated[bool, typer.Option("--quick", help="Two shapes, two repeats.")] = False,
    repeats: Annotated[
        int | None,
        typer.Option(min=1, help="Repetitions of each measurement (default: 5; with spu 3)."),
    ] = None,
    spu_python: Annotated[
        Path | None,
        PathUse.READ,
        typer.Option(
            envvar="TACITURN_SPU_PYTHON",
            help="--against spu: a Python that has SPU, which needs an environment of its own.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, PathUse.WRITTEN, typer.Option(help="Write the ratios as an SVG file.")
    ] = None,
    whole: Annotated[
        bool,
        typer.Option(
            "--trainings",
            help="Time whole trainings instead: newton and sgd between two processes on three "
            "links, and newton on large tables.",
        ),
    ] = False,
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="--trainings: only this dataset; repeat for more."),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(min=2, help="--trainings: only newton, on a table of this many rows."),
    ] = None,
    columns: Annotated[
        int, typer.Option(min=1, help="--trainings --rows: number of columns of the table.")
    ] = 20,
    report: Annotated[
        Path | None,
        PathUse.WRITTEN,
        typer.Option(help="--trainings, --against spu: write the tables as Markdown too."),
    ] = None,
    json: Json = False,
) -> None:
    """Benchmark the encryption of one iteration on tables of the paper's shapes.

    Examples:
    taciturn bench --quick

    taciturn bench --against phe,heu --plot bench.svg

    taciturn bench --trainings --dataset census-income

    taciturn bench --trainings --rows 1000000 --columns 20

    taciturn bench --against spu --spu-python spu-env/bin/python
    """
    rivals = () if against == "none" else tuple(name.strip() for name in against.split(","))
    if "spu" in rivals and not whole:
        _refuse_with_spu(rivals, {"--plot": plot, "--dataset": dataset, "--rows": rows})
        from taciturn_paper import against_spu
        from taciturn_paper.report.benchmarks import comparison

        require_writable(report)
        turns = repeats or against_spu.REPEATS
        with progress_bar() as meter:
            record = against_spu.run(
                spu_python, announce=meter.announce, repeats=turns, quick=quick
            )
        _finish_bench("Beside SPU's Cheetah", record, comparison(record), report, json)
        return
    if whole:
        _refuse_with_trainings({"--plot": plot, "--against": against != "none"})
        from taciturn_paper import solvers
        from taciturn_paper.report.benchmarks import solver_tables

        require_writable(report)
        sizes = () if rows is None else ((rows, columns),)
        with progress_bar() as meter:
            record = solvers.run(
                announce=meter.announce, datasets=dataset or (), sizes=sizes, quick=quick
            )
        _finish_bench("Whole trainings", record, solver_tables(record), report, json)
        return
    for option, value in {"--dataset": dataset, "--rows": rows, "--report": report}.items():
        if value:
            raise ConfigError(
                f"{option} belongs to --trainings", where=option, hint="add --trainings"
            )
    from taciturn_paper import encryption
    from taciturn_paper.report.benchmarks import benchmark
    from taciturn_paper.report.plots import ratios_svg

    if plot is not None and "phe" not in rivals:
        raise ConfigError(
            "the plot shows ratios to phe", where="--plot", hint="use --against phe with it"
        )
    require_writable(plot)
    with progress_bar() as meter:
        shapes = encryption.run(rivals, quick=quick, repeats=repeats or 5, announce=meter.announce)
        done = [] if quick else encryption.measure_trainings(meter.announce)
    record = {
        "rows": [asdict(row) for row in shapes],
        "trainings": [asdict(training) for training in done],
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


def _finish_bench(
    title: str, record: Record, tables: list[Block], report: Path | None, json: bool
) -> None:
    from taciturn.report.markdown import render
    from taciturn_paper.report.benchmarks import bench_page

    if report is not None:
        page = bench_page(title, tables, shlex.join(["taciturn", *sys.argv[1:]]))
        write_text(report, render(page))
    show_record(record, json, lambda: tables)


def _run(target: Target, request: Request) -> Record:
    from taciturn_paper import (
        claims,
        curves,
        labels,
        leaks,
        learning,
        matrix,
        mult,
        statements,
        table2,
        table3,
    )

    if target in _FIGURES:
        return curves.run(target, request)
    if target is Target.CLAIMS:
        samples = claims.QUICK_SAMPLES if request.quick else claims.SAMPLES
        return claims.run(samples=samples, seed=request.seed, announce=request.announce)
    runs: dict[Target, Callable[[Request], Record]] = {
        Target.ALL: statements.run_all,
        Target.TABLE2: table2.run,
        Target.TABLE3: table3.run,
        Target.LEAKS: leaks.run,
        Target.RECOVERY: leaks.run_recovery,
        Target.ATTACKS: matrix.run,
        Target.LABELS: labels.run,
        Target.LEARNING: learning.run,
        Target.MULT: mult.run,
    }
    return runs[target](request)


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
    from taciturn_paper.report import tables

    if target is Target.ALL:
        return tables.everything
    if target in _FIGURES:
        return tables.figure
    blocks: Callable[[Record], list[Block]] = getattr(tables, target)
    return blocks


def _picture(target: Target, record: Record) -> str:
    # Imported here: drawing takes a second to load.
    from taciturn_paper.report.plots import curves_svg, frontier_svg

    return frontier_svg(record) if target is Target.ATTACKS else curves_svg(record)


def _require_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise OutputError("the folder does not exist", where=str(folder), hint="make it first")
    require_writable(folder / "reproduction.md", folder / "reproduction.html")


def _write_report(folder: Path, record: Record) -> None:
    """Write the page as Markdown and HTML, with its pictures and data."""
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
