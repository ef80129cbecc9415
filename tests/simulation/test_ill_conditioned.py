"""Tables that make solvers stumble: newton trains on them, or says in a sentence what to do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from taciturn.__main__ import run
from taciturn.arrays import FloatArray, LabelArray
from taciturn.rng import KeyedEntropy
from tests.seldom import seldom

ROWS = 60
COINS = KeyedEntropy.from_seed(3)
VALUES: FloatArray = 4.0 * COINS.uniform((ROWS, 4)) - 2.0
NOISE = 3.0 * COINS.fork("noise").uniform((ROWS,)) - 1.5
NOISY = (VALUES @ [1.0, -1.0, 0.5, 0.0] + NOISE > 0).astype(int)
WIDE: FloatArray = 2.0 * COINS.fork("wide").uniform((12, 30)) - 1.0


def beside(column: FloatArray) -> FloatArray:
    return np.column_stack([VALUES, column])


def enlarged(factor: float) -> FloatArray:
    values: FloatArray = VALUES * np.array([1.0, factor, 1.0, 1.0])
    return values


# The table, its labels, and further options.
TRAINED: dict[str, tuple[FloatArray, LabelArray, str]] = {
    "duplicate columns": (np.hstack([VALUES, VALUES]), NOISY, ""),
    "duplicate columns as they are": (np.hstack([VALUES, VALUES]), NOISY, "--scale none"),
    "a column that follows from others": (beside(VALUES.sum(axis=1)), NOISY, "--scale none"),
    "a constant column": (beside(np.full(ROWS, 3.0)), NOISY, ""),
    "a constant column as it is": (beside(np.full(ROWS, 3.0)), NOISY, "--scale none"),
    "a column of zeros": (beside(np.zeros(ROWS)), NOISY, "--scale none"),
    "one column 1e9 times another": (enlarged(1e9), NOISY, "--scale none"),
    "one column 1e-9 times another": (enlarged(1e-9), NOISY, "--scale none"),
    "a copy that is 1e9 times as large": (beside(1e9 * VALUES[:, 0]), NOISY, "--scale none"),
    "fewer rows than columns": (WIDE, (WIDE[:, 0] > 0).astype(int), ""),
    "separable labels": (VALUES, (VALUES[:, 0] > 0).astype(int), ""),
    "separable labels, next to no penalty": (VALUES, (VALUES[:, 0] > 0).astype(int), "--l2 1e-5"),
    "one label among many": (VALUES, (np.arange(ROWS) < 2).astype(int), ""),
}


def command(folder: Path, values: FloatArray, labels: LabelArray, options: str) -> int:
    frame = pl.DataFrame({f"c{j}": values[:, j] for j in range(values.shape[1])})
    path = folder / "rows.csv"
    frame.with_columns(label=pl.Series(labels)).write_csv(path)
    words = f"train --data {path} --label label --scheme clear --seed 1 --json {options}"
    return run(words.split())


@pytest.mark.sampled(6)
@pytest.mark.parametrize("mechanism", seldom(["none", "sealed"], always=["sealed"]))
@pytest.mark.parametrize("name", TRAINED)
def test_it_trains_to_the_optimum(name, mechanism, tmp_path, capsys):
    values, labels, options = TRAINED[name]
    assert command(tmp_path, values, labels, f"--mechanism {mechanism} {options}") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["solver"] == "newton"
    assert -1e-9 < result["optimum"]["gap"] < 1e-4


@pytest.mark.parametrize("rows", [1, 2])
def test_too_few_rows_to_train_and_test_are_refused(rows, tmp_path, capsys):
    """Of two rows one is trained on: it has one label."""
    assert command(tmp_path, VALUES[:rows], np.arange(rows), "") == 20
    assert "Traceback" not in capsys.readouterr().err


def test_without_a_penalty_newton_says_what_to_do_and_is_not_the_default(tmp_path, capsys):
    separable = (VALUES[:, 0] > 0).astype(int)
    assert command(tmp_path, VALUES, separable, "--solver newton --l2 0") == 10
    assert "--l2" in capsys.readouterr().err
    assert command(tmp_path, VALUES, separable, "--mechanism none --l2 0 --epochs 2") == 0
    assert json.loads(capsys.readouterr().out)["solver"] == "sgd"


def test_columns_that_no_penalty_can_tell_apart_are_refused(tmp_path, capsys):
    copies = np.column_stack([VALUES, VALUES[:, :1]]) * 1e6
    assert command(tmp_path, copies, NOISY, "--scale none --l2 1e-9") == 10
    assert "where: --l2" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1_000, 10_000])
def test_thousands_of_columns(columns, tmp_path, capsys):
    """A square of a thousand columns takes seconds, as often as a reference iterates."""
    values = 2.0 * COINS.fork("columns").uniform((40, columns)) - 1.0
    code = command(tmp_path, values, (values[:, 0] > 0).astype(int), "--mechanism sealed")
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    if columns == 10_000:
        assert code == 10
        assert "8,192" in err
    else:
        assert code == 0
        assert json.loads(out)["optimum"]["gap"] < 1e-2
