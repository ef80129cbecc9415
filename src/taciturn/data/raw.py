"""Raw data: features as they came, with ids, labels and the way to prepare them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from taciturn.data.ids import RowIds
from taciturn.data.prepare import PrepareSettings
from taciturn.data.tables import LabelTable
from taciturn.errors import ShapeError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RawData:
    """A dataset before any preparation.

    ``whole`` trains on every row, with the numbers as they are: none is held out or prepared.
    ``own`` marks somebody's own table, which nobody has looked over.
    """

    name: str
    frame: pl.DataFrame
    ids: RowIds
    labels: LabelTable
    settings: PrepareSettings
    vocabularies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    whole: bool = False
    own: bool = False

    def __post_init__(self) -> None:
        if not self.frame.height == len(self.ids) == self.labels.rows:
            raise ShapeError(
                f"{self.name}: {self.frame.height} rows, {len(self.ids)} ids and "
                f"{self.labels.rows} labels",
                hint="give one id and one label per row",
            )

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.frame.height

    def __repr__(self) -> str:
        return f"RawData({self.name}, {self.rows} rows, {self.frame.width} raw columns)"
