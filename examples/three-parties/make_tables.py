"""Three tables of scikit-learn's breast-cancer data, each with people and columns of its own."""

from __future__ import annotations

import polars as pl
from sklearn.datasets import load_breast_cancer

SHARES = {"alice-1": slice(0, 10), "alice-2": slice(10, 20), "bob": slice(20, 30)}
# Of these people each table lacks some of its own.
LACKS = {"alice-1": 3, "alice-2": 5, "bob": 7}


def main() -> None:
    """Writes ``alice-1.csv``, ``alice-2.csv`` and ``bob.csv``."""
    data = load_breast_cancer()
    people = [f"patient-{number:03d}" for number in range(len(data.data))]
    names = [name.replace(" ", "_") for name in data.feature_names]
    for order, (party, place) in enumerate(SHARES.items()):
        columns = dict(zip(names[place], data.data[:, place].T, strict=True))
        frame = pl.DataFrame({"id": people, **columns})
        if party == "bob":
            frame = frame.with_columns(pl.Series("benign", data.target))
        # One in so many is absent, and rows are in an order of their own.
        frame = frame.filter(pl.int_range(pl.len()) % (10 * LACKS[party]) != order)
        frame.sample(fraction=1.0, shuffle=True, seed=order).write_csv(f"{party}.csv")


if __name__ == "__main__":
    main()
