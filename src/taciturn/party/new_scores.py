"""Scores of new rows, as ``taciturn predict`` wrote them, with the labels that came in later."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray, LabelArray
from taciturn.data.frames import require_column
from taciturn.data.ids import RowIds
from taciturn.data.source import read_frame
from taciturn.data.user_table import UserTable
from taciturn.errors import ColumnError, DataError
from taciturn.party.config import PartyConfig

_WRITTEN = "name the file of scores that taciturn predict wrote"


@dataclass(frozen=True, slots=True)
class NewScores:
    """New rows with one logit each, and labels of 0 or 1 where they are known."""

    scores: FloatArray = field(repr=False)
    labels: LabelArray | None = field(default=None, repr=False)

    @classmethod
    def read(cls, path: Path, labels: Path | None, config: PartyConfig) -> NewScores:
        """Reads a file of scores and a table of labels.

        The scores are CSV with the columns id and score; the table has the id and label columns of
        the training's.
        """
        frame = read_frame(path, text=["id"])
        for name in ("id", "score"):
            if name not in frame.columns:
                raise ColumnError(f"there is no column {name!r}", where=str(path), hint=_WRITTEN)
        scores = frame["score"].cast(pl.Float64, strict=False).to_numpy()
        if not len(scores) or not np.isfinite(scores).all():
            raise DataError(
                "a score is missing, or is no finite number", where=str(path), hint=_WRITTEN
            )
        if labels is None:
            return cls(scores)
        try:
            ids = RowIds.of(frame["id"])
        except DataError as problem:
            raise problem.at(str(path)) from None
        return cls(scores, _labels(ids, labels, config))


def _labels(ids: RowIds, path: Path, config: PartyConfig) -> LabelArray:
    section, label = config.data, config.data.label or ""
    frame = config.table(path).frame(text=[section.id])
    for name in (section.id, label):
        require_column(frame.columns, name, where=str(path))
    try:
        known = RowIds.of(frame[section.id])
        values = UserTable.of(section).labels.values(frame[label], known).to_numpy()
    except DataError as problem:
        raise problem.at(str(path)) from None
    labels: LabelArray = values[known.rows_of(ids, where=str(path))]
    return labels
