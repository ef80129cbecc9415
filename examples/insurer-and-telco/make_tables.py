"""Writes the tables of a made-up motor insurer and a made-up phone company.

The insurer (Bob) knows each policy's years of exposure, its claims and what they cost; the phone
company (Alice) knows how its customers move. Claims are drawn from a Poisson distribution, their
mean cost from a gamma distribution, both with effects of columns on either side.

    python make_tables.py [--rows 20000] [--seed 1]

``insurer.csv`` is for claim frequency, ``claims.csv`` (policies with a claim) for severity, and
``telco.csv`` has the phone company's columns of all policies.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl


def tables(rows: int, seed: int) -> dict[str, pl.DataFrame]:
    """The three tables, by the names of their files."""
    draw = np.random.default_rng(seed)
    policy = [f"P{number:06d}" for number in range(rows)]
    years = np.round(draw.uniform(0.1, 1.0, rows), 3)
    age, car_age = np.clip(draw.normal(47, 15, rows), 18, 90), draw.exponential(7, rows)
    power = draw.choice([50, 66, 81, 110, 150], rows, p=[0.2, 0.3, 0.25, 0.2, 0.05])
    region = draw.choice(["city", "suburb", "country"], rows, p=[0.35, 0.4, 0.25])
    km = draw.gamma(2.0, 6.0, rows)
    night, fast = draw.beta(1.5, 9.0, rows), draw.beta(2.0, 12.0, rows)
    calls = draw.poisson(1.2, rows)
    frequency = np.exp(
        -2.6
        + 0.5 * (age < 25)
        - 0.004 * (age - 47)
        + 0.25 * (region == "city")
        + 0.025 * (km - 12)
        + 2.0 * night
        + 0.12 * calls
    )
    claims = draw.poisson(years * frequency)
    severity = np.exp(7.4 + 0.004 * power - 0.015 * car_age + 2.5 * fast + 0.1 * (km > 20))
    # The mean of k claims of a gamma distribution has k times its shape.
    shape = 1.5 * np.maximum(claims, 1)
    cost = np.round(draw.gamma(shape, severity / shape), 2)
    insurer = pl.DataFrame(
        {
            "policy": policy,
            "age": np.round(age),
            "car_age": np.round(car_age, 1),
            "power": power,
            "region": region,
            "years": years,
            "claims": claims,
        }
    )
    telco = pl.DataFrame(
        {
            "policy": policy,
            "km_per_day": np.round(km, 1),
            "night_share": np.round(night, 3),
            "fast_share": np.round(fast, 3),
            "calls_while_driving": calls,
        }
    )
    with_cost = insurer.drop("years").with_columns(mean_cost=pl.Series(np.maximum(cost, 1.0)))
    return {
        "insurer.csv": insurer,
        "claims.csv": with_cost.filter(pl.col("claims") > 0),
        "telco.csv": telco.sample(fraction=1.0, shuffle=True, seed=seed),
    }


def main() -> None:
    """Write the tables into this folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for name, table in tables(given.rows, given.seed).items():
        table.write_csv(Path(name))
        print(f"{name}: {table.height:,} rows")


if __name__ == "__main__":
    main()
