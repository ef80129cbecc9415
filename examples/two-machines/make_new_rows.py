"""Writes new-alice.csv and new-bob.csv: a few people whom the training has not seen.

Each is the mean of two patients of scikit-learn's breast-cancer data, so they are nobody. Alice's
file has her columns, Bob's has his, and no labels. Each has two people whom the other does
not know.
"""

from __future__ import annotations

import csv
from pathlib import Path

from sklearn.datasets import load_breast_cancer

ALICES, PEOPLE, OTHERS = 20, 12, 2


def main() -> None:
    """Writes both files to the folder in which one stands."""
    data = load_breast_cancer()
    names = [str(name).replace(" ", "_") for name in data.feature_names]
    everybody = PEOPLE + OTHERS
    values = ((data.data[:everybody] + data.data[-everybody:]) / 2).tolist()
    rows = [(f"new-{number:02d}", *row) for number, row in enumerate(values)]
    hers = [row[: 1 + ALICES] for row in rows[:PEOPLE]]
    his = [(row[0], *row[1 + ALICES :]) for row in reversed(rows[-PEOPLE:])]
    write(Path("new-alice.csv"), ["id", *names[:ALICES]], hers)
    write(Path("new-bob.csv"), ["id", *names[ALICES:]], his)


def write(path: Path, header: list[str], rows: list[tuple[object, ...]]) -> None:
    """Writes one table and says so."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])
    print(f"wrote {path}: {len(rows)} rows, {len(header) - 1} columns beside the id")


if __name__ == "__main__":
    main()
