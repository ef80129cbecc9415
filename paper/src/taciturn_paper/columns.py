"""What Bob can tell of Alice's columns after so many passes: the table of ``docs/columns.md``.

::

    python -m taciturn_paper.columns run columns.jsonl
    python -m taciturn_paper.columns show columns.jsonl

Each training is run once, without encryption (what is opened to Bob is the same), with as many
passes as the largest number asked for; attacks then see the first of them. Of a table of more than
``MOST_ROWS`` rows, so many evenly spaced ones are used. ``mutual`` opens nothing before the end,
and is looked at once. A file that is there already is continued; several processes may each do one
part of the trainings (``run columns.jsonl 1/2``, into a file of its own each).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.audit.bob_seat import bob_view, examine_columns
from taciturn.audit.columns import Truth
from taciturn.column_attacks.anchored import AnchoredAttack
from taciturn.column_attacks.discrete import DiscreteAttack
from taciturn.column_attacks.gram import GramAttack
from taciturn.column_attacks.prediction import PredictionAttack
from taciturn.data.raw import RawData
from taciturn.errors import ConfigError
from taciturn.results.serialise import record_of
from taciturn.settings.schema import Settings
from taciturn.simulation.coins import Coins
from taciturn.simulation.run import simulate
from taciturn.simulation.source import load_raw

MOST_ROWS = 1000
PASSES = (1, 5, 10, 25)
MECHANISMS = ("sealed", "mutual", "none")
SPLITS = (
    ("breast-cancer", "half"),
    ("sklearn-digits", "all"),
    ("census-income", "all"),
    ("census-income", "half"),
    ("give-me-some-credit", "all"),
)


class FactorAlone(GramAttack):
    """``gram`` with no row known: with some it is beside ``anchored``."""

    uses_known_rows = False


ATTACKS = (AnchoredAttack(), FactorAlone(), DiscreteAttack(), PredictionAttack())


def spaced(raw: RawData) -> RawData:
    """At most ``MOST_ROWS`` rows, evenly spaced."""
    if raw.rows <= MOST_ROWS:
        return raw
    rows = np.arange(MOST_ROWS) * raw.rows // MOST_ROWS
    return replace(
        raw,
        frame=raw.frame[rows.tolist()],
        ids=raw.ids.take(rows),
        labels=raw.labels.take(rows),
    )


def configurations() -> Iterator[dict[str, Any]]:
    """All trainings, those that say most first."""
    for mechanism in MECHANISMS:
        for solver in ("newton", "sgd"):
            for canary in (False, True):
                for dataset, columns in SPLITS:
                    yield {
                        "dataset": dataset,
                        "alice_columns": columns,
                        "mechanism": mechanism,
                        "solver": solver,
                        "permute_rows": canary,
                    }


def measured(options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The findings of one training, after each number of passes."""
    length = {"epochs" if options["solver"] == "sgd" else "passes": max(PASSES)}
    settings = Settings.of({**options, **length, "scheme": "clear", "seed": 1}).resolved()
    coins = Coins.for_seed(1)
    outcome = simulate(settings, spaced(load_raw(settings)), keep=True, coins=coins)
    view, truth = bob_view(outcome, coins, predict=True), Truth.of(outcome.data.alice_train)
    for passes in PASSES if view.observations else PASSES[-1:]:
        # What one joint prediction tells does not depend on how many passes came before it.
        seen = view.until(passes) if passes < max(PASSES) else view
        known = coins.data.permute.fork("known rows")
        findings = examine_columns(seen, truth, known, attacks=ATTACKS)
        yield {
            **options,
            "passes": passes,
            "rows": view.features.rows,
            "columns": view.columns,
            **record_of(findings),
        }


def run(path: Path, part: int, parts: int) -> None:
    """Appends what is missing to a file of JSON lines."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    done = [json.loads(line) for line in lines]
    for number, options in enumerate(configurations()):
        if number % parts != part:
            continue
        if any(all(one[key] == value for key, value in options.items()) for one in done):
            continue
        try:
            records = list(measured(options))
        except ConfigError as refused:
            print(f"not run: {options}: {refused.message}")
            continue
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)


HEADS = (
    "table",
    "solver",
    "passes",
    "control",
    "`anchored`, 10 known",
    "as many as columns",
    "`gram`, none known",
    "`discrete`",
    "`prediction`",
    "canary: control",
    "`anchored`",
    "`gram`",
    "`discrete`",
    "`prediction`",
)
MUTUAL_HEADS = (
    "table",
    "solver",
    "rows",
    "control",
    "`prediction`, 10 known",
    "as many as columns",
    "skipped",
)


def tables(path: Path, mechanism: str) -> str:
    """One mechanism's lines of a file as a Markdown table, each run beside its canary."""
    records = _records(path, mechanism)
    canaries = {_place(record): record for record in records if record["permute_rows"]}
    text = ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    for record in records:
        if not record["permute_rows"]:
            cells = _cells(record, canaries.get(_place(record)))
            text.append("| " + " | ".join(cells) + " |")
    return "\n".join(text)


def mutual_table(path: Path) -> str:
    """What is left under ``mutual``: a joint prediction, with its intervals."""
    text = ["| " + " | ".join(MUTUAL_HEADS) + " |", "|" + "---|" * len(MUTUAL_HEADS)]
    for record in _records(path, "mutual"):
        cells = [
            f"{record['dataset']}, {record['columns']} columns",
            record["solver"],
            "permuted" if record["permute_rows"] else "as they are",
            _control(record),
            _interval(record, 10),
            _interval(record, record["columns"]),
            ", ".join(f"`{one['name']}`" for one in record["skipped"]),
        ]
        text.append("| " + " | ".join(cells) + " |")
    return "\n".join(text)


def _interval(record: dict[str, Any], known: int) -> str:
    for one in record["attacks"]:
        if (one["name"], one["known_rows"]) == ("prediction", known):
            low, high = (100 * one[key] for key in ("recovered_low", "recovered_high"))
            return f"{_words(one)}, {low:.1f} – {high:.1f} %"
    return "–"


def _records(path: Path, mechanism: str) -> list[dict[str, Any]]:
    """One mechanism's records, by table, solver and passes."""
    records = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    order = {split: number for number, split in enumerate(SPLITS)}
    return sorted(
        (record for record in records if record["mechanism"] == mechanism),
        key=lambda one: (
            order[one["dataset"], one["alice_columns"]],
            one["solver"],
            one["permute_rows"],
            one["passes"],
        ),
    )


def _place(record: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(record[key] for key in ("dataset", "alice_columns", "solver", "passes"))


def _cells(record: dict[str, Any], canary: dict[str, Any] | None) -> list[str]:
    columns = record["columns"]
    return [
        f"{record['dataset']}, {columns} columns",
        record["solver"],
        str(record["passes"]),
        _control(record),
        _figures(record, "anchored", 10),
        _figures(record, "anchored", columns),
        _figures(record, "gram", 0),
        _figures(record, "discrete", 0),
        _figures(record, "prediction", columns),
        _control(canary),
        _figures(canary, "anchored", columns),
        _figures(canary, "gram", 0),
        _figures(canary, "discrete", 0),
        _figures(canary, "prediction", columns),
    ]


def _control(record: dict[str, Any] | None) -> str:
    if record is None:
        return "–"
    return _words(max(record["controls"], key=lambda one: float(one["recovered"])))


def _figures(record: dict[str, Any] | None, name: str, known: int) -> str:
    attacks = [] if record is None else record["attacks"]
    scores = [one for one in attacks if (one["name"], one["known_rows"]) == (name, known)]
    return _words(scores[0]) if scores else "–"


def _words(score: dict[str, Any]) -> str:
    fit = "–" if score["r2"] is None else f"{score['r2']:.2f}" if score["r2"] > -1 else "< -1"
    return f"{100 * score['recovered']:.0f} % ({fit})"


def main() -> None:
    """Runs, or shows what was run."""
    parser = argparse.ArgumentParser(description="What Bob can tell of Alice's columns.")
    parser.add_argument("action", choices=("run", "show"))
    parser.add_argument("file", type=Path, help="JSON lines: what is missing is run")
    parser.add_argument("part", nargs="?", default="1/1", help="which part of them: 1/2, 2/2")
    given = parser.parse_args()
    if given.action == "run":
        part, parts = map(int, given.part.split("/"))
        run(given.file, part - 1, parts)
        return
    for mechanism in ("sealed", "none"):
        print(tables(given.file, mechanism), end="\n\n")
    print(mutual_table(given.file))


if __name__ == "__main__":
    main()
