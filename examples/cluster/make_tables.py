"""Two made-up tables of the same people: Alice's columns, and Bob's with the label."""

from __future__ import annotations

import numpy as np
import polars as pl

ROWS, COLUMNS = 40_000, 6


def main() -> None:
    """Writes alice.csv and bob.csv."""
    draw = np.random.default_rng(2026)
    hers, his = draw.normal(size=(ROWS, COLUMNS)), draw.normal(size=ROWS)
    score = hers @ np.linspace(-1, 1, COLUMNS) + his
    label = (draw.random(ROWS) < 1 / (1 + np.exp(-score))).astype(int)
    ids = [f"person-{number:06d}" for number in range(ROWS)]
    columns = {f"usage_{number}": hers[:, number] for number in range(COLUMNS)}
    pl.DataFrame({"id": ids, **columns}).write_csv("alice.csv")
    pl.DataFrame({"id": ids, "balance": his, "default": label}).write_csv("bob.csv")


if __name__ == "__main__":
    main()
