"""Scores of new rows, as ``taciturn predict`` wrote them, with the labels that came in later."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray, IndexArray, LabelArray
from taciturn.data.files import Dialect, read_frame
from taciturn.data.ids import RowIds
from taciturn.data.own import OwnTable
from taciturn.deploy.config import DataSection
from taciturn.errors import ColumnError, DataError, RowIdError, nearest

_WRITTEN = "name the file of scores that taciturn predict wrote"


@dataclass(frozen=True, slots=True)
class NewScores:
    """New rows with one logit each, and labels of 0 or 1 where they are known."""

    scores: FloatArray = field(repr=False)
    labels: LabelArray | None = field(default=None, repr=False)

    @classmethod
    def read(cls, path: Path, labels: Path | None, section: DataSection) -> NewScores:
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
        return cls(scores, _labels(ids, labels, section))


def places_of(wanted: RowIds, known: RowIds, path: Path) -> IndexArray:
    """Where the wanted rows stand among the known ones."""
    index = pl.DataFrame({"id": known.series, "place": np.arange(len(known))})
    joined = pl.DataFrame({"id": wanted.series}).join(
        index, on="id", how="left", maintain_order="left"
    )
    absent = joined.filter(pl.col("place").is_null())["id"]
    if len(absent):
        raise RowIdError(
            f"{len(absent):,} of {len(wanted):,} rows are not in it, such as that of id "
            f"{absent[0]!r}",
            where=str(path),
            hint="name a table that has all of them",
        )
    places: IndexArray = joined["place"].to_numpy().astype(np.int64)
    return places


def _labels(ids: RowIds, path: Path, section: DataSection) -> LabelArray:
    label = section.label or ""
    frame = read_frame(path, text=[section.id], dialect=Dialect.of(section))
    for name in (section.id, label):
        if name not in frame.columns:
            raise ColumnError(
                f"there is no column {name!r}", where=str(path), hint=nearest(name, frame.columns)
            )
    try:
        known = RowIds.of(frame[section.id])
        values = OwnTable.of(section).labels.values(frame[label], known).to_numpy()
    except DataError as problem:
        raise problem.at(str(path)) from None
    labels: LabelArray = values[places_of(ids, known, path)]
    return labels
