"""Parquet: a table in one or many files, of which no more is read than is asked for.

A table that is larger than memory comes in row parts: one file, the files of a folder, or those
that a pattern names, in the order of their names. Only their descriptions are read at first; then
one column at a time, of all rows.

**Guarantee.** All parts have the same columns of the same types. A part that is changed, cut short
or removed after it was first looked at is refused by its name: what was read before and what is
read after belong to the same table.

**Assumes.** A change shows in a file's size or in its time of change.
"""

from __future__ import annotations

import glob
import io
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from taciturn.data.lazy_table import LazyTable
from taciturn.data.table_files import (
    PARQUET,
    Fingerprint,
    fingerprint,
    is_pattern,
    reporting_read_errors,
    require_file,
    require_unchanged,
)
from taciturn.errors import ColumnError, FileError
from taciturn.file_kinds import file_kind
from taciturn.files import private_folder, reporting_write_errors


def open_parquet(path: Path) -> LazyTable:
    """Open a Parquet file, a folder of them, or the files that a pattern names."""
    files, parts, rows = files_of(path), list[Fingerprint](), 0
    first: dict[str, pl.DataType] = {}
    for file in files:
        require_file(file)
        with _reporting(file):
            parts.append(fingerprint(file))
            scan = pl.scan_parquet(file, glob=False)
            rows += scan.select(pl.len()).collect().item()
            schema = dict(scan.collect_schema())
        first = first or schema
        _require_same_columns(schema, first, f"{file}; the first part is {files[0]}")
    if not rows:
        raise FileError(
            "the table has columns and no rows", where=str(path), hint="add at least one row"
        )

    def read(names: list[str]) -> pl.DataFrame:
        return pl.concat([_read(part, names) for part in parts], rechunk=True)

    return LazyTable([*first], rows, read)


def _read(part: Fingerprint, names: list[str]) -> pl.DataFrame:
    require_unchanged(part)
    with _reporting(Path(part[0])):
        frame = pl.read_parquet(part[0], columns=names, glob=False)
    # Behind the reading too: it may have been written while it was read.
    require_unchanged(part)
    return frame


def files_of(path: Path) -> list[Path]:
    """Files that a path names, sorted by name."""
    if path.is_dir():
        inside = (file for file in path.iterdir() if file.name.lower().endswith(PARQUET))
        files = [file for file in inside if not file.name.startswith((".", "_"))]
        problem = "the folder has no Parquet file"
    elif is_pattern(path):
        files = [*map(Path, glob.glob(str(path), recursive=True))]
        problem = "no file matches this pattern"
    else:
        return [path]
    for file in files:
        if not file.name.lower().endswith(PARQUET):
            raise FileError(
                "a pattern may name Parquet files only, and it names this one",
                where=str(file),
                hint="end it with .parquet, or write the table as Parquet",
            )
    if not files:
        raise FileError(
            problem,
            where=str(path),
            hint="name a folder of .parquet files, or a file; folders below it need a pattern, "
            "such as FOLDER/*/*.parquet",
        )
    return sorted(files)


def _require_same_columns(
    schema: dict[str, pl.DataType], first: dict[str, pl.DataType], where: str
) -> None:
    for name in (*first, *schema):
        if schema.get(name) != first.get(name):
            here, there = (kinds.get(name, "absent") for kinds in (schema, first))
            raise ColumnError(
                f"column {name!r} is {here} in a part of the table, and {there} in the first",
                where=where,
                hint="write all parts with the same columns and types",
            )


@contextmanager
def _reporting(path: Path) -> Iterator[None]:
    try:
        with reporting_read_errors(path):
            yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        kind = file_kind(path)
        if kind not in ("", "a Parquet file"):
            raise FileError(
                f"this is {kind}, and not a Parquet file",
                where=str(path),
                hint="give it the ending of its kind: .csv, .csv.gz, .tsv or .tsv.gz",
            ) from problem
        raise FileError(
            "the Parquet file is cut short or damaged",
            where=str(path),
            hint="copy or write it again",
        ) from problem


def stored(parts: Iterable[pl.DataFrame], folder: Path) -> LazyTable:
    """Store parts of a table as Parquet files in a private folder."""
    hint = "make room on that disk, or name another folder; nothing was lost"
    # What a program that was killed has left.
    shutil.rmtree(folder, ignore_errors=True)
    number = 0
    for number, part in enumerate(parts, start=1):
        # By way of memory: what the system says to a full disk then has a name.
        content = io.BytesIO()
        part.write_parquet(content, compression="lz4")
        with reporting_write_errors(folder, "folder for a table", hint):
            private_folder(folder)
            (folder / f"{number:06d}{PARQUET}").write_bytes(content.getbuffer())
    return open_parquet(folder) if number else LazyTable([], 0, pl.DataFrame().select)
