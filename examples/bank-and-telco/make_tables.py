"""Writes the tables of a made-up bank and a made-up phone company, as messy as real ones.

Each knows 50,000 people, of whom 35,000 are the same. Ids are written in mixed case and with
blanks; one person in twenty defaults; one amount in a thousand was entered with three zeros too
many. There are dates, remarks in free text, categories of thirty levels, columns that never vary,
and gaps, some of which mean something. A second pair of tables has new customers.

    python make_tables.py [--rows 50000] [--seed 1]
"""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TODAY = datetime.date(2026, 6, 30)
LEVELS = 30
# The share of a company's people whom the other knows too.
COMMON = 0.7
DEFAULTS = 0.05
OUTLIERS = 0.001
WORDS = ("asked", "branch", "called", "card", "fee", "letter", "loan", "moved", "paid", "waits")


class People:
    """Everybody there is: what each company knows of them, and who will default.

    Args:
        count: How many.
        seed: Of all that is drawn.
    """

    def __init__(self, count: int, seed: int) -> None:
        self.draw = draw = np.random.default_rng(seed)
        self.count = count
        self.age = np.clip(draw.normal(45, 14, count), 18, 92)
        self.income = np.exp(draw.normal(10.3, 0.45, count) + 0.006 * (self.age - 45))
        self.utilisation = draw.beta(1.6, 3.0, count)
        self.savings = np.exp(draw.normal(8.0, 1.4, count))
        self.account_years = draw.exponential(7, count)
        self.branch = draw.integers(0, LEVELS, count)
        self.employer_known = draw.random(count) < 0.85
        self.monthly_bill = np.exp(draw.normal(3.4, 0.5, count))
        self.late_bills = draw.poisson(0.5 + 0.8 * self.utilisation, count)
        self.data_gb = draw.gamma(1.5, 6.0, count)
        self.contract_years = draw.exponential(4, count)
        self.tariff = draw.integers(0, LEVELS, count)
        self.roams = draw.random(count) < 0.6
        self.label = self._defaults()

    def _defaults(self) -> NDArray[np.int64]:
        draw = self.draw
        branch, tariff = draw.normal(0, 0.25, LEVELS), draw.normal(0, 0.35, LEVELS)
        bank = (
            -0.42 * _standard(np.log(self.income))
            - 0.25 * _standard(self.age)
            + 0.55 * _standard(self.utilisation)
            - 0.35 * _standard(np.log(self.savings))
            - 0.20 * _standard(np.minimum(self.account_years, 25))
            + 0.50 * ~self.employer_known
            + branch[self.branch]
        )
        telco = (
            0.45 * _standard(np.minimum(self.late_bills, 5).astype(np.float64))
            - 0.30 * _standard(np.minimum(self.contract_years, 15))
            + 0.15 * _standard(np.log(self.monthly_bill))
            + tariff[self.tariff]
        )
        score = bank + telco
        shift = _shift(score, DEFAULTS)
        return (draw.random(self.count) < _sigmoid(score + shift)).astype(np.int64)

    def bank(self, rows: NDArray[np.int64]) -> pl.DataFrame:
        """What the bank knows of some of them, the label last."""
        return pl.DataFrame(
            {
                "customer": self._ids(rows, "{:s} "),
                "age": self.age[rows].round().astype(np.int64),
                "income": self._amounts(self.income[rows]),
                "savings": self._amounts(self.savings[rows]),
                "utilisation": self.utilisation[rows].round(3),
                "account_opened": _dates(self.account_years[rows]),
                "branch": [f"branch {number:02d}" for number in self.branch[rows].tolist()],
                "employer_since": _gaps(
                    self.draw.integers(1990, 2026, len(rows)), self.employer_known[rows]
                ),
                "remark": self._remarks(len(rows)),
                "currency": ["EUR"] * len(rows),
                "defaulted": self.label[rows],
            }
        )

    def telco(self, rows: NDArray[np.int64]) -> pl.DataFrame:
        """What the phone company knows of some of them."""
        return pl.DataFrame(
            {
                "customer": self._ids(rows, " {:s}"),
                "monthly_bill": self._amounts(self.monthly_bill[rows]),
                "late_bills": self.late_bills[rows],
                "data_gb": self.data_gb[rows].round(2),
                "contract_start": _dates(self.contract_years[rows]),
                "tariff": [f"tariff {number:02d}" for number in self.tariff[rows].tolist()],
                "roaming_days": _gaps(self.draw.poisson(6, len(rows)), self.roams[rows]),
                "handset": [
                    f"model {number}" for number in self.draw.zipf(1.6, len(rows)).tolist()
                ],
                "last_contact": self._remarks(len(rows)),
                "country": ["DE"] * len(rows),
            }
        )

    def _ids(self, rows: NDArray[np.int64], written: str) -> list[str]:
        """Ids as people type them: in either case, and sometimes with a blank."""
        lower, blank = (self.draw.random(len(rows)) < share for share in (0.5, 0.1))
        names = [f"DE{number:07d}X" for number in (rows * 7919 % 9_999_991).tolist()]
        cased = [name.lower() if small else name for name, small in zip(names, lower, strict=True)]
        return [
            written.format(name) if also else name for name, also in zip(cased, blank, strict=True)
        ]

    def _amounts(self, values: Floats) -> Floats:
        wrong = self.draw.random(len(values)) < OUTLIERS
        return np.where(wrong, values * 1000, values).round(2)

    def _remarks(self, count: int) -> list[str]:
        words = self.draw.choice(WORDS, (count, 3))
        numbers = self.draw.integers(0, 10**6, count)
        return [f"{' '.join(line)} {number}" for line, number in zip(words, numbers, strict=True)]


def _standard(values: Floats) -> Floats:
    return (values - values.mean()) / values.std()


def _sigmoid(scores: Floats) -> Floats:
    return 1 / (1 + np.exp(-scores))


def _shift(scores: Floats, share: float) -> float:
    """What must be added to the scores for so many to default."""
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _sigmoid(scores + middle).mean() < share else (low, middle)
    return low


def _dates(years: Floats) -> list[str]:
    return [str(TODAY - datetime.timedelta(days=int(past * 365.25))) for past in years.tolist()]


def _gaps(values: NDArray[np.int64], known: NDArray[np.bool_]) -> list[int | None]:
    return [v if there else None for v, there in zip(values.tolist(), known.tolist(), strict=True)]


def companies(count: int, first: int, draw: np.random.Generator) -> tuple[NDArray[np.int64], ...]:
    """The bank's and the phone company's people, each in an order of its own.

    Args:
        count: How many each of them knows.
        first: The first person's number.
        draw: Of the orders.
    """
    common = round(COMMON * count)
    bank = np.arange(first, first + count)
    telco = np.arange(first + count - common, first + 2 * count - common)
    return draw.permutation(bank), draw.permutation(telco)


def main() -> None:
    """Writes four files to the folder in which one stands."""
    parser = argparse.ArgumentParser(description="Makes the tables of a bank and a telco.")
    parser.add_argument("--rows", type=int, default=50_000, help="rows of each company's table")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    new = options.rows // 20
    people = People(2 * (options.rows + new), options.seed)
    for prefix, count, first in (("", options.rows, 0), ("new_", new, 2 * options.rows)):
        bank, telco = companies(count, first, people.draw)
        tables = {"bank": people.bank(bank), "telco": people.telco(telco)}
        if prefix:
            # What nobody knows yet.
            tables["bank"] = tables["bank"].drop("defaulted")
        for name, table in tables.items():
            path = Path(f"{prefix}{name}.csv")
            table.write_csv(path)
            print(f"wrote {path}: {table.height} rows, {table.width - 1} columns beside the id")


if __name__ == "__main__":
    main()
