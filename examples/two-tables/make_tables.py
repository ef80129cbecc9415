"""Make bank.csv and telco.csv: 2,000 made-up customers whom both companies know."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

CUSTOMERS = 2_000
REGIONS = ("north", "east", "south", "west")
HERE = Path(__file__).parent


def main() -> None:
    """Write both tables beside this file; the telco lists its customers in another order."""
    draw = np.random.default_rng(7)
    age = draw.integers(19, 75, CUSTOMERS)
    income = np.round(draw.lognormal(7.8, 0.4, CUSTOMERS), -1)
    debt = np.round(draw.beta(2, 5, CUSTOMERS), 2)
    bill = np.round(draw.gamma(6, 6, CUSTOMERS), 2)
    late = draw.poisson(0.7, CUSTOMERS)
    years = np.round(draw.exponential(4, CUSTOMERS), 1)
    region = draw.integers(0, len(REGIONS), CUSTOMERS)
    risk = -3.1 + 3.0 * debt - 0.0002 * income - 0.01 * age
    risk += 0.9 * late + 0.02 * bill - 0.12 * years + 0.4 * (region == 0)
    defaulted = draw.random(CUSTOMERS) < 1 / (1 + np.exp(-risk))
    ids = [f"C{number:05d}" for number in draw.permutation(99_999)[:CUSTOMERS]]
    bank = zip(ids, age, income, debt, defaulted.astype(int), strict=True)
    _write("bank.csv", ("customer", "age", "income", "debt_ratio", "defaulted"), bank)
    names = [REGIONS[place] for place in region]
    telco = sorted(zip(ids, bill, late, years, names, strict=True))
    _write(
        "telco.csv", ("customer", "monthly_bill", "late_bills", "contract_years", "region"), telco
    )


def _write(name: str, columns: tuple[str, ...], rows: object) -> None:
    with (HERE / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)  # type: ignore[arg-type]  # an iterable of tuples


if __name__ == "__main__":
    main()
