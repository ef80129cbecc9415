"""Models with both sides' shares, and frames of raw columns to try them on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray
from taciturn.data.prepare import Preparation, RawData, fit
from taciturn.data.prepare_settings import PrepareSettings
from taciturn.data.tables import INTERCEPT
from taciturn.data.user_table import DEFAULTS
from taciturn.model.share import ModelShare
from taciturn.rng import KeyedEntropy


def share_of(
    plan: Preparation, role: str, *, intercept: bool = False, seed: int = 1, **changes: Any
) -> ModelShare:
    """A share with weights that were drawn, not trained: what is tested does not care."""
    columns = (*plan.columns, INTERCEPT) if intercept else plan.columns
    weights = KeyedEntropy.from_seed(seed).fork(role).uniform((len(columns),)) * 2 - 1
    share = ModelShare(
        role=role,
        columns=columns,
        weights=weights,
        preparation=plan,
        agreement={"mechanism": "none", "epsilon": None},
        session="ab" * 16,
        rows=100,
        data_digest="cd" * 32,
        noise_key="ef" * 32 if role == "alice" else "",
    )
    return replace(share, **changes)


def halves(raw: RawData) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The raw columns, cut in two."""
    names = raw.frame.columns
    middle = len(names) // 2
    return raw.frame.select(names[:middle]), raw.frame.select(names[middle:])


def people(rows: int = 200) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Numbers, gaps, categories, a constant; both sides have a column ``age``."""
    entropy = KeyedEntropy.from_seed(3)
    age = entropy.uniform((rows,)) * 60 + 20
    towns = np.array(["Aachen", "Bonn", "Köln", "Ulm"])[entropy.fork("t").integers(4, rows)]
    grades = np.array(["1", "2", "x"])[entropy.fork("g").integers(3, rows)]
    gaps = entropy.fork("gaps").uniform((rows,)) < 0.2
    hers = pl.DataFrame(
        {
            "age": [None if gap else value for gap, value in zip(gaps, age, strict=True)],
            "town": [None if gap else town for gap, town in zip(gaps[::-1], towns, strict=True)],
            "constant": np.ones(rows),
        }
    )
    his = pl.DataFrame(
        {"age": age - 1, "grade": grades, "debt": entropy.fork("d").uniform((rows,))}
    )
    return hers, his


WAYS = (
    DEFAULTS,
    PrepareSettings(impute="mean", clip=1.0, scale_categories=True, drop_first=False),
    PrepareSettings(scale="none"),
)


# What bends a column, which leaves no unit of the raw one.
SHAPES = tuple(
    replace(DEFAULTS, winsorise={"*": 0.05}, min_frequency=0.2, **choices)
    for choices in (
        {"transform": {"*": "log"}},
        {"transform": {"*": "rank"}, "clip": 1.5},
        {"transform": {"*": "yeo-johnson"}},
        {"bins": {"*": 4}},
        {"bins": {"*": 3}, "missing_indicator": False, "clip": 0.5},
        # His age has no gap, and nobody is older than 500.
        {"bins": {"age": (30.0, 45.0, 500.0)}, "impute": "bin"},
        {"bins": {"*": 5}, "impute": "bin", "clip": 0.5},
    )
)


def pair_of(
    hers: pl.DataFrame, his: pl.DataFrame, settings: PrepareSettings, **changes: Any
) -> tuple[ModelShare, ModelShare]:
    """Both shares of a model of these columns."""
    return (
        share_of(fit(hers, settings), "alice", **changes),
        share_of(fit(his, settings), "bob", intercept=True, **changes),
    )


def strange(frame: pl.DataFrame, *, gaps: bool = True) -> pl.DataFrame:
    """Rows with what the training never saw: unknown levels, far values, gaps where allowed."""
    altered = frame.clone()
    for name in altered.columns:
        values: list[Any] = altered[name].to_list()
        if altered[name].dtype == pl.String:
            values[:3] = [None, "nowhere", "bonn"]
        else:
            values[:3] = [None if gaps else 0, 10**6, -(10**6)]
        altered = altered.with_columns(pl.Series(name, values, dtype=altered[name].dtype))
    return altered


def feeds(
    frame: pl.DataFrame, names: dict[str, str], wanted: set[str]
) -> dict[str, np.ndarray[Any, Any]]:
    """A frame as an ONNX session takes it: text with "" where missing, doubles with NaN."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for column, name in names.items():
        if name not in wanted:
            continue
        series = frame[column]
        if series.dtype == pl.String:
            arrays[name] = np.array(series.fill_null("").to_list(), dtype=object).reshape(-1, 1)
        else:
            plain: FloatArray = series.cast(pl.Float64).to_numpy()
            arrays[name] = plain.reshape(-1, 1)
    return arrays
