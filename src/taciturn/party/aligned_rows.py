"""``AlignedRows``: the list of rows that both sides have, which an alignment leaves.

A file with the table's id column: this side's own spelling of each common id, in the order of the
common ones. Where ids were normalised a second column has the common ones, by which both sides then
name their rows.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from taciturn.arrays import IndexArray
from taciturn.data.addresses import is_select
from taciturn.data.csv_files import Dialect
from taciturn.data.frames import require_column
from taciturn.data.ids import RowIds
from taciturn.data.source import read_frame
from taciturn.errors import ConfigError, FileError, RowIdError
from taciturn.files import private_file
from taciturn.party.config import PartyConfig
from taciturn.setting_syntax import Hint

COMMON = "common_id"
SUFFIXES = (".csv", ".parquet")
# Rows that are text in memory at a time.
_PART_ROWS = 1 << 18


@dataclass(frozen=True, slots=True)
class AlignedRows:
    """The common rows of one side's table.

    ``own_ids`` are as the table spells them, ``common`` as both sides know them, in the same
    order.
    """

    own_ids: RowIds
    common: RowIds
    where: str = ""

    @classmethod
    def read(cls, path: Path, id_column: str, named_by: str = "[data] aligned") -> AlignedRows:
        """Reads a list."""
        if not path.exists():
            raise FileError(
                "there is no such list of aligned rows",
                where=f"{path}, named by {named_by}",
                hint="taciturn align writes it, on both sides; or leave it out",
            )
        second = _second(id_column)
        # An id may be spelled NA: nothing stands for a missing value here.
        frame = read_frame(path, text=(id_column, second), dialect=Dialect(na_values=()))
        require_column(frame.columns, id_column, "id", where=str(path))
        own_ids = _ids(frame[id_column], path)
        return cls(
            own_ids, _ids(frame[second], path) if second in frame.columns else own_ids, str(path)
        )

    def write(self, path: Path, id_column: str) -> None:
        """Writes the list, whole or not at all, for its owner's eyes."""
        columns = {id_column: self.own_ids.series}
        if self.common != self.own_ids:
            columns[_second(id_column)] = self.common.series
        with private_file(path) as stream:
            for part in _written(pl.DataFrame(columns), path.suffix):
                stream.write(part)

    def rows_of(self, table: RowIds) -> IndexArray:
        """Positions of these rows in a table, in the list's order."""
        hint = "restore the table, or align again on both sides: taciturn align"
        return table.rows_of(self.own_ids, where=self.where, hint=hint)


def beside_rows(config: PartyConfig, rows: Path | str, kind: str) -> Path:
    """Default name of a CSV file about some rows: beside their file, or the party's for a query."""
    if isinstance(rows, str) and is_select(rows):
        return config.path(f"{Path(config.where).stem}.new.{kind}.csv")
    path = Path(rows)
    return path.with_name(f"{Path(path.name.removesuffix('.gz')).stem}.{kind}.csv")


def require_kind(path: Path, setting: str = "aligned") -> None:
    """Insists that a file is of a kind that can hold a list."""
    if path.suffix not in SUFFIXES:
        raise ConfigError(
            f"a list of aligned rows cannot be a {path.suffix or 'file without a suffix'}",
            setting=setting,
            value=str(path),
            hint="name a .csv or a .parquet file",
        )


def require_room(path: Path, ids: RowIds) -> None:
    """Insists that ids come back from such a file as they are, before any work is done for it."""
    if path.suffix == ".csv":
        padded = ids.series != ids.series.str.strip_chars()
        if padded.any():
            raise RowIdError(
                f"{padded.sum()} of {len(ids)} ids have spaces at their ends, which CSV loses",
                where=f"first in row {int(padded.arg_max() or 0) + 1}",
                hint=Hint("name a .parquet file with {out}"),
            )


def _written(frame: pl.DataFrame, suffix: str) -> Iterator[bytes]:
    if suffix == ".parquet":
        content = io.BytesIO()
        frame.write_parquet(content)
        yield content.getvalue()
        return
    for number, part in enumerate(frame.iter_slices(_PART_ROWS)):
        yield part.write_csv(include_header=number == 0).encode()


def _second(id_column: str) -> str:
    return COMMON if id_column != COMMON else COMMON + "_"


def _ids(series: pl.Series, path: Path) -> RowIds:
    try:
        return RowIds.from_values(series)
    except RowIdError as problem:
        raise problem.at(f"{path}, {problem.where}") from None
