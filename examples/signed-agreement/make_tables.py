"""Two tables of scikit-learn's breast-cancer data with the same people, each in its own order."""

from __future__ import annotations

import polars as pl
from sklearn.datasets import load_breast_cancer

PEOPLE, ALICE = 300, 8


def main() -> None:
    """Writes ``alice.csv`` and ``bob.csv``."""
    data = load_breast_cancer()
    people = [f"patient-{number:03d}" for number in range(PEOPLE)]
    names = [name.replace(" ", "_") for name in data.feature_names]
    columns = dict(zip(names, data.data[:PEOPLE].T, strict=True))
    hers = {name: columns[name] for name in names[:ALICE]}
    his = {name: columns[name] for name in names[ALICE : ALICE + 3]}
    pl.DataFrame({"id": people, **hers}).write_csv("alice.csv")
    bob = pl.DataFrame({"id": people, **his, "benign": data.target[:PEOPLE]})
    bob.reverse().write_csv("bob.csv")


if __name__ == "__main__":
    main()
