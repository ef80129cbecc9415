"""What Bob can tell of Alice's columns after so many passes: the table of ``docs/columns.md``.

::

    python -m taciturn_paper.columns --out columns.jsonl
    python -m taciturn_paper.columns --show columns.jsonl

Each training is run once, without encryption (what is opened to Bob is the same), with as many
passes as the largest number asked for; attacks then see the first of them. Of a table of more than
``MOST_ROWS`` rows, so many evenly spaced ones are used. A file that is there already is continued.
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
from taciturn.data.raw import RawData
from taciturn.results.serialise import record_of
from taciturn.settings.schema import Settings
from taciturn.simulation.coins import Coins
from taciturn.simulation.run import simulate
from taciturn.simulation.source import load_raw

MOST_ROWS = 1500
PASSES = (1, 5, 10, 25)
SPLITS = (
    ("breast-cancer", "half"),
    ("sklearn-digits", "all"),
    ("census-income", "all"),
    ("census-income", "half"),
    ("give-me-some-credit", "all"),
)


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
    for mechanism in ("sealed", "none"):
        for canary in (False, True):
            for dataset, columns in SPLITS:
                for solver in ("newton", "sgd"):
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
    view, truth = bob_view(outcome, coins), Truth.of(outcome.data.alice_train)
    for passes in PASSES:
        # What one joint prediction tells does not depend on how many passes came before it.
        seen = view.until(passes) if passes < max(PASSES) else view
        findings = examine_columns(seen, truth, coins.data.permute.fork("known rows"))
        yield {
            **options,
            "passes": passes,
            "rows": view.features.rows,
            "columns": view.columns,
            **record_of(findings),
        }


def run(path: Path) -> None:
    """Appends what is missing to a file of JSON lines."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    done = [json.loads(line) for line in lines]
    for options in configurations():
        if any(all(one[key] == value for key, value in options.items()) for one in done):
            continue
        records = list(measured(options))
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)


def tables(path: Path) -> str:
    """The file as Markdown: one table for the runs, one for the canaries."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    names = ("anchored", "gram", "discrete", "prediction")
    text = []
    for canary in (False, True):
        title = "Rows permuted (canary)" if canary else "The rows as they are"
        text += [f"**{title}**", ""]
        heads = ["table", "mechanism", "solver", "passes", "control", *names]
        text += ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
        for record in records:
            if record["permute_rows"] == canary:
                text.append("| " + " | ".join(_cells(record, names)) + " |")
        text.append("")
    return "\n".join(text)


def _cells(record: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    known = max(record["controls"], key=lambda one: one["recovered"])
    cells = [
        f"{record['dataset']} {record['alice_columns']}, {record['columns']} columns",
        record["mechanism"],
        record["solver"],
        str(record["passes"]),
        _figures(known),
    ]
    for name in names:
        scores = [one for one in record["attacks"] if one["name"] == name]
        cells.append(
            "; ".join(f"{one['known_rows']:.0f}: {_figures(one)}" for one in scores) or "–"
        )
    return cells


def _figures(score: dict[str, Any]) -> str:
    fit = "–" if score["r2"] is None else f"{score['r2']:.2f}"
    return f"{100 * score['recovered']:.0f} % ({fit})"


def main() -> None:
    """Runs, or shows what was run."""
    parser = argparse.ArgumentParser(description="What Bob can tell of Alice's columns.")
    parser.add_argument("--out", type=Path, help="run what is missing in this file")
    parser.add_argument("--show", type=Path, help="print this file as Markdown")
    given = parser.parse_args()
    if given.out is not None:
        run(given.out)
    if given.show is not None:
        print(tables(given.show))


if __name__ == "__main__":
    main()
