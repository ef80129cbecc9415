"""Writes alice.csv and bob.csv: the two tables of the runbook.

scikit-learn's breast-cancer data, cut in two. Alice gets the first 20 columns, Bob the other 10 and
the labels. As with two companies, each has people whom the other does not know (one in ten), and
rows in an order of its own.
"""

from __future__ import annotations

import csv
from pathlib import Path

from sklearn.datasets import load_breast_cancer

ALICES = 20


def main() -> None:
    """Writes both files to the folder in which one stands."""
    data = load_breast_cancer()
    names = [str(name).replace(" ", "_") for name in data.feature_names]
    rows = [(f"patient-{number:03d}", *values) for number, values in enumerate(data.data.tolist())]
    labels = data.target.tolist()
    hers = [row[: 1 + ALICES] for number, row in enumerate(rows) if number % 10 != 3]
    his = [
        (row[0], *row[1 + ALICES :], labels[number])
        for number, row in enumerate(rows)
        if number % 10 != 7
    ]
    write(Path("alice.csv"), ["id", *names[:ALICES]], sorted(hers, key=lambda row: row[1]))
    write(Path("bob.csv"), ["id", *names[ALICES:], "label"], his[::-1])


def write(path: Path, header: list[str], rows: list[tuple[object, ...]]) -> None:
    """Writes one table and says so."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])
    print(f"wrote {path}: {len(rows)} rows, {len(header) - 1} columns beside the id")


if __name__ == "__main__":
    main()
