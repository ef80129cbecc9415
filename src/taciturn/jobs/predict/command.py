"""The command that scores new rows with the peer."""

from __future__ import annotations

import csv
import io
from dataclasses import astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.cli.console import show
from taciturn.cli.party_console import NormaliseIds, stateless_side
from taciturn.errors import ConfigError
from taciturn.files import require_writable, write_private
from taciturn.output_paths import PathUse

if TYPE_CHECKING:
    from taciturn.party.config import PartyConfig
    from taciturn.results.parties import MeanRow, ScoredRow

COLUMNS = ("id", "score", "probability", "class")
MEAN_COLUMNS = ("id", "score", "mean")


def predict(
    config: Annotated[
        Path, PathUse.READ, typer.Argument(help="This side's TOML file, as for taciturn party.")
    ],
    rows: Annotated[
        str,
        PathUse.READ,
        typer.Option(
            help="Rows to score, with this side's columns and the id: a file, or a SELECT "
            "statement."
        ),
    ],
    model: Annotated[
        Path | None,
        PathUse.READ,
        typer.Option(help="This side's model file (default: the one in the party's file)."),
    ] = None,
    id: Annotated[
        list[str] | None,
        typer.Option(help="Score only the row with this id; repeat for more."),
    ] = None,
    normalise_ids: NormaliseIds = None,
    aligned: Annotated[
        Path | None,
        PathUse.READ,
        typer.Option(
            help="List of common rows by taciturn align --rows, on both sides (default: align now)."
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Bob: class 1 is above this probability (default: the model file's, chosen on the "
            "held-out rows)."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        PathUse.WRITTEN,
        typer.Option(
            help="Bob: file for the scores (default: NAME.scores.csv, or bob.new.scores.csv for a "
            "SELECT statement; none with --id or --json)."
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Score new rows with the peer; only Bob learns the scores. Run it on both sides.

    Each side gives a table with its own columns, in any order. The rows that both sides have are
    found as by taciturn align, prepared as the model file says, and scored. Nothing is stored: run
    both sides again after a stop.

    Examples:
    taciturn predict alice.toml --rows new-alice.csv

    taciturn predict bob.toml --rows new-bob.csv --out scores.csv

    taciturn predict bob.toml --rows "select * from applicants"

    taciturn predict bob.toml --rows new-bob.csv --id c0042 --normalise-ids trim,case --json
    """
    # Imported here: the transport takes a second to load.
    from taciturn.data.ids import Normalisation
    from taciturn.jobs.base import run_job
    from taciturn.jobs.predict.job import PredictJob
    from taciturn.party.aligned_rows import beside_rows
    from taciturn.party.config import PartyConfig

    normalisation = None if normalise_ids is None else Normalisation.parse(normalise_ids)
    settings = PartyConfig.read(config)
    _require_listed_alone(aligned, id, normalise_ids)
    _require_bobs(settings, out, threshold)
    if out is None and settings.role == "bob" and not json and not id:
        out = beside_rows(settings, rows, "scores")
        settings.require_unused("out", out)
    require_writable(out)
    file = settings.path(settings.output.model) if model is None else model

    job = PredictJob(file, rows, tuple(id or ()), normalisation, aligned, threshold)
    with stateless_side("predict", settings) as callbacks:
        answer = run_job(job, settings, callbacks)
    scored = answer.rows()
    if out is not None:
        write_private(out, _csv(scored))
    result = replace(answer.result, model=str(file), out=None if out is None else str(out))
    if answer.scores is not None and (out is None or not json):
        result = replace(result, scores=scored)
    show(result, json)


def _require_listed_alone(
    aligned: Path | None, id: list[str] | None, normalise_ids: str | None
) -> None:
    """Refuse options that name rows or ids beside a list of common rows."""
    if aligned is not None and (id or normalise_ids is not None):
        raise ConfigError(
            "a list says which rows are scored, and under which ids",
            where="--aligned",
            hint="leave it out, or leave --id and --normalise-ids out",
        )


def _require_bobs(settings: PartyConfig, out: Path | None, threshold: float | None) -> None:
    """Refuse Bob's options at Alice, and a threshold that is no probability."""
    for option, given in (("--out", out), ("--threshold", threshold)):
        if settings.role == "alice" and given is not None:
            raise ConfigError(
                "Alice learns no scores",
                where=option,
                hint="leave it out here; Bob gives it on his side",
            )
    if threshold is not None and not 0 < threshold < 1:
        raise ConfigError(
            f"a probability must be between 0 and 1, not {threshold:g}",
            where="--threshold",
            hint="use 0.2, say; leave it out for the one that the training chose",
        )


def _csv(rows: tuple[ScoredRow | MeanRow, ...]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    means = bool(rows) and not hasattr(rows[0], "probability")
    writer.writerow(MEAN_COLUMNS if means else COLUMNS)
    writer.writerows(astuple(row) for row in rows)
    return text.getvalue()
