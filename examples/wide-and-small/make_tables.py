"""Makes two tables of awkward shapes: one wide and sparse, one of 300 rows. Nobody in them exists.

``wide.csv`` has 2,000 people, 300 counts that are nearly always 0 (visits to as many shops, say)
and 12 numbers; ``small.csv`` has 300 people and 8 numbers. Columns a… are Alice's, b… are Bob's.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def main() -> None:
    """Writes both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path())
    folder = parser.parse_args().folder
    for name, table in (("wide", wide), ("small", small)):
        table(np.random.default_rng(5)).write_csv(folder / f"{name}.csv")


def wide(generator: np.random.Generator, rows: int = 2000, columns: int = 300) -> pl.DataFrame:
    """Sparse counts, of which one in five matters."""
    counts = generator.poisson(0.04, (rows, columns)).astype(np.float64)
    weights = generator.normal(0, 1.2, columns) * (generator.random(columns) < 0.2)
    numbers = generator.normal(size=(rows, 12))
    scores = counts @ weights + numbers @ generator.normal(0, 0.25, 12) - 1.2
    return _table(generator, counts, numbers.round(4), scores)


def small(generator: np.random.Generator, rows: int = 300) -> pl.DataFrame:
    """So few rows that every interval is wide."""
    hers, his = generator.normal(size=(rows, 5)), generator.normal(size=(rows, 3))
    scores = hers @ np.array([1.0, 0.6, -0.5, 0.3, 0.0]) + his @ np.array([0.8, -0.4, 0.2])
    return _table(generator, hers.round(4), his.round(4), scores)


def _table(
    generator: np.random.Generator, hers: FloatArray, his: FloatArray, scores: FloatArray
) -> pl.DataFrame:
    labels = generator.random(len(scores)) < 1 / (1 + np.exp(-scores))
    return pl.DataFrame(
        {
            "person": [f"p{number}" for number in range(len(scores))],
            **{f"a{place}": column for place, column in enumerate(hers.T)},
            **{f"b{place}": column for place, column in enumerate(his.T)},
            "label": labels.astype(np.int64),
        }
    )


if __name__ == "__main__":
    main()
