"""Preparation of large tables: linear in columns, and little memory beside table and result."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MEASURE = """
import gc
import numpy as np, polars as pl
from taciturn.data.ids import RowIds
from taciturn.data.prepare import PrepareSettings, fit, prepared_table

def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

rows, columns = 500_000, 16
draw = np.random.default_rng(1)
frame = pl.DataFrame({f"c{at}": draw.normal(size=rows) for at in range(columns)})
ids, order = RowIds.numbered(rows), draw.permutation(rows)
gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
plan = fit(frame, PrepareSettings(), ids=ids, rows=order)
table = prepared_table(plan, frame, ids, rows=order)
print((status("VmHWM") - before) / (rows * columns * 8))
"""


@pytest.mark.slow  # some seconds
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells the peak")
def test_beside_the_table_and_its_result_there_is_little_in_memory():
    """In tables: one for the result, and little for what else is at work.

    Sixteen whole columns at work would be a second one. Memory that was free before does not show.
    """
    answer = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True
    )
    beside = float(answer.stdout)
    print(f"{beside:.2f} tables beside the raw one")
    assert beside < 1.35
