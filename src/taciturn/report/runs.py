"""Several runs in one record: which run's part is shown where they share none."""

from __future__ import annotations

from typing import Any

from taciturn.report.record import Record
from taciturn.report.words import plain


def part(record: Record, key: str) -> tuple[Any, str]:
    """A part of the record and whose it is: the first run's, where the runs share none."""
    if record.get(key) is not None:
        return record[key], ""
    for run in record.get("runs", []):
        if run.get(key) is not None:
            return run[key], scope_of(record, run)
    return None, ""


def scope_of(record: Record, run: Record) -> str:
    """Which of several runs it is, in words."""
    return f"seed {plain(run.get('seed'))}, one of {len(record['runs'])} runs"
