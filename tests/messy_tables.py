"""Pairs of tables as two organisations really have them, with the clean rows behind them.

The same people at Alice and Bob: money in two notations, dates in two formats, ids in mixed case
and with leading zeros on one side, varied spellings of 40 categories, gaps, outliers, repeated ids,
and columns that mean nothing.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

Amount = Callable[[float], str]


def english(value: float) -> str:
    return f"{value:,.2f}"


def german(value: float) -> str:
    return english(value).translate(str.maketrans(",.", ".,"))


def swiss(value: float) -> str:
    return english(value).replace(",", "’")


def accounting(value: float) -> str:
    return f"({english(-value)})" if value < 0 else english(value)


@dataclass(frozen=True)
class Style:
    """How the two sides write. Several notations or formats are mixed in one column."""

    alice_money: tuple[Amount, ...] = (lambda value: f"€ {english(value)}",)
    bob_money: tuple[Amount, ...] = (lambda value: f"{german(value)} EUR",)
    alice_dates: tuple[str, ...] = ("%d.%m.%Y", "%Y-%m-%d")
    bob_dates: tuple[str, ...] = ("%m/%d/%Y", "%d %b %Y")
    words: tuple[str, str] = ("yes", "no")
    ids: str = "zeros"
    positives: float = 0.03


STYLES = {
    "bank": Style(),
    "clinic": Style(
        alice_money=(accounting,),
        bob_money=(lambda value: f"CHF {swiss(value)}",),
        alice_dates=("%Y/%m/%d", "%d-%m-%Y"),
        bob_dates=("%d.%m.%y", "%Y-%m-%d %H:%M"),
        words=("readmitted", "home"),
        ids="case",
    ),
    "shop": Style(
        alice_money=(lambda value: f"${english(value)}", lambda value: f"{german(value)} $"),
        bob_money=(lambda value: f"{german(abs(value))}{'-' if value < 0 else ''}",),
        alice_dates=("%B %d, %Y", "%Y%m%d"),
        bob_dates=("%d/%m/%Y %H:%M", "%Y-%m-%d"),
        words=("churned", "stayed"),
        ids="case,zeros",
    ),
}


@dataclass(frozen=True)
class Pair:
    """Messy tables of both sides, and the same people's numbers, categories and labels."""

    alice: pl.DataFrame
    bob: pl.DataFrame
    clean: pl.DataFrame
    labels: np.ndarray


def messy_pair(rows: int, style: Style, seed: int, first: int = 0) -> Pair:
    """Two tables of about ``rows`` people each, most of them common; ids count from ``first``."""
    rng = np.random.default_rng(seed)
    # What the people are like must not depend on how many there are.
    world = np.random.default_rng(7)
    towns = [f"Town {chr(65 + n // 2)}{'ab'[n % 2]}" for n in range(40)]
    jobs = ["Clerk", "Driver", "Nurse", "Teacher", "Cook", "Farmer"]
    town_effect, job_effect = world.normal(0, 0.7, 40), world.normal(0, 0.5, len(jobs))
    zips = [f"{n:05}" for n in world.choice(np.arange(1000, 9999), 12, replace=False)]
    zip_effect = world.normal(0, 0.5, 12)

    numbers = [number * 7 + 1000 for number in range(first, first + rows)]
    income = rng.lognormal(7.6, 0.6, rows).round(2)
    balance = rng.normal(300, 900, rows).round(2)
    spend = rng.lognormal(6.5, 0.8, rows).round(2)
    rate = rng.uniform(0, 40, rows).round(1)
    age = rng.integers(19, 85, rows)
    visits = rng.poisson(3, rows)
    town, job, area = (rng.integers(0, size, rows) for size in (40, len(jobs), 12))
    member = rng.random(rows) < 0.4
    opened, seen = (rng.integers(0, 3000, rows) for _ in range(2))
    score = (
        -1.1 * (np.log(income) - 7.6) - 0.0006 * balance + 0.7 * (np.log(spend) - 6.5)
        + 0.03 * rate + 0.012 * (age - 50) + 0.2 * (visits - 3)
        + town_effect[town] + job_effect[job] + zip_effect[area] - 0.7 * member
        - 0.0004 * opened + 0.0005 * seen
    )  # fmt: skip
    # The largest sums with logistic noise: the wanted share of positives, whatever the effects.
    noisy = score + rng.logistic(size=rows)
    labels = (noisy > np.quantile(noisy, 1 - style.positives)).astype(np.int64)

    gaps = {name: rng.random(rows) < 0.3 for name in ("balance", "age", "rate")}
    visits_raw = visits.astype(np.float64)
    visits_raw[rng.integers(0, rows, 2)] = 1e9

    def dates(days: np.ndarray, formats: tuple[str, ...]) -> list[str]:
        base = datetime.datetime(2015, 3, 1)
        moments = (base + datetime.timedelta(days=int(day)) for day in days)
        return [day.strftime(formats[at % len(formats)]) for at, day in enumerate(moments)]

    def money(values: np.ndarray, notations: tuple[Amount, ...]) -> list[str]:
        return [notations[at % len(notations)](value) for at, value in enumerate(values)]

    def varied(words: list[str]) -> list[str]:
        shapes: tuple[Callable[[str], str], ...] = (
            str,
            str,
            str.upper,
            str.lower,
            lambda w: f" {w} ",
        )
        return [shapes[rng.integers(0, len(shapes))](word) for word in words]

    def gappy(words: list[str], mask: np.ndarray) -> list[str | None]:
        return [None if absent else word for word, absent in zip(words, mask, strict=True)]

    def named(number: int, *, padded: bool) -> str:
        lettered = "case" in style.ids and (number % 2 or "zeros" not in style.ids)
        return f"kd{number}" if lettered else f"{number:0{9 * padded}}"

    said = (("yes", "Y", "TRUE", "1"), ("no", "N", "False", "0"))
    alice = pl.DataFrame(
        {
            "customer": varied([named(number, padded=True) for number in numbers]),
            "income": money(income, style.alice_money),
            "balance": gappy(money(balance, style.alice_money), gaps["balance"]),
            "opened": dates(opened, style.alice_dates),
            "town": varied([towns[place] for place in town]),
            "member": [said[0 if yes else 1][rng.integers(0, 4)] for yes in member],
            "rate": gappy([f"{value} %" for value in rate], gaps["rate"]),
            "zip": [zips[place] for place in area],
            "phone": [f"0{number}{rng.integers(100, 999)}" for number in numbers],
            "note": [f"called on day {number}, again" for number in numbers],
        }
    )
    bob = pl.DataFrame(
        {
            "customer": [named(number, padded=False).upper() for number in numbers],
            "spend": money(spend, style.bob_money),
            "seen": dates(seen, style.bob_dates),
            "job": varied([jobs[place] for place in job]),
            "age": gappy([str(value) for value in age], gaps["age"]),
            "visits": visits_raw,
            "outcome": [style.words[0 if label else 1] for label in labels],
        }
    )
    clean = pl.DataFrame(
        {
            **{"income": income, "balance": np.where(gaps["balance"], np.nan, balance)},
            **{"opened": opened, "rate": np.where(gaps["rate"], np.nan, rate)},
            **{"member": member.astype(np.int64), "town": [towns[place] for place in town]},
            **{"zip": [zips[place] for place in area], "spend": spend, "seen": seen},
            **{"job": [jobs[place] for place in job], "visits": visits_raw},
            "age": np.where(gaps["age"], np.nan, age),
        }
    )
    return Pair(alice, bob, clean, labels)


def with_duplicates(table: pl.DataFrame, every: int = 50) -> pl.DataFrame:
    """The table with some rows once more at its end, in another order of rows."""
    return pl.concat([table, table.gather_every(every).reverse()])
