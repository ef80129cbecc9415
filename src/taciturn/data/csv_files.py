"""CSV files read into polars, or refused with the reason.

What a CSV file leaves open is looked for where only one answer is possible: the separator in the
first lines, UTF-16 by its mark. Everything else is for the person to say (``Dialect``).

Every column is read as text, and only plain numbers get another type here (``column_types``). How
others are written is decided when a column is fitted (``recognition``), so that new rows are read
the same way.

polars fills short rows with nulls, turns blank lines into rows and renames repeated columns, all
without a word. A table that lost its shape that way would train to a wrong model, so the header and
the width of every row are checked before polars reads them.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from itertools import chain, groupby, islice
from pathlib import Path
from typing import BinaryIO

import polars as pl

from taciturn.data.column_types import parsed
from taciturn.data.frames import require_distinct
from taciturn.data.ids import Duplicates
from taciturn.data.lazy_table import LazyTable
from taciturn.data.parquet import stored
from taciturn.data.table_files import reporting_read_errors, require_file
from taciturn.errors import FileError
from taciturn.file_kinds import file_kind
from taciturn.setting_syntax import Hint

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", "?")
SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")

LARGE_CSV = 256 << 20
"""A party's CSV file of more bytes is converted to Parquet parts before it is used."""

_SEPARATORS = (",", ";", "\t", "|")
_LOOKED_AT = 20
_LINES_AT_ONCE = 1 << 14
# Of a CSV file that is converted, one Parquet part has about so many.
_PART_BYTES = 1 << 24
_UTF_8 = ("utf-8", "utf-8-sig", "ascii")


@dataclass(frozen=True, slots=True)
class Dialect:
    """Format of a CSV file; None is detected. ``na_values`` and an empty field mean missing.

    ``duplicates`` says which of several rows with one id is taken, of any table; None refuses them.
    """

    separator: str | None = None
    encoding: str | None = None
    na_values: tuple[str, ...] | None = None
    duplicates: Duplicates | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """Words that stand for a missing value."""
        return MISSING if self.na_values is None else ("", *self.na_values)

    @classmethod
    def from_settings(cls, choices: object) -> Dialect:
        """Dialect from settings of the same names."""
        return cls(**{entry.name: getattr(choices, entry.name) for entry in fields(cls)})


USUAL = Dialect()


def read_csv(path: Path, text: Sequence[str], dialect: Dialect) -> pl.DataFrame:
    """Read a CSV file; all rows are looked at before a column's type is decided.

    Columns in ``text`` stay text. Blanks around values are stripped; missing values are null.
    """
    with _scanned(path, dialect) as (scan, lines, rows):
        words = scan.collect()
        _require_lines(words.height, lines)
    table = LazyTable(words.columns, rows, lambda names: words[names].head(rows))
    return parsed(table, text, dialect.missing).frame()


def converts(path: Path, dialect: Dialect) -> bool:
    """Whether a CSV file is large enough to be converted to Parquet, and can be."""
    plain = path.name.lower().endswith((".csv", ".tsv")) and path.is_file()
    return plain and path.stat().st_size > LARGE_CSV and _encoding(path, dialect) in _UTF_8


def converted(
    path: Path, folder: Path, *, text: Sequence[str] = (), dialect: Dialect = USUAL
) -> LazyTable:
    """Like ``read_csv`` for a file of any size, by way of Parquet parts in a private folder."""
    with _scanned(path, dialect) as (scan, lines, rows):
        size = 1 + lines * _PART_BYTES // path.stat().st_size
        words = stored(scan.collect_batches(chunk_size=size, maintain_order=True), folder)
        _require_lines(words.height, lines)
    table = LazyTable(words.columns, rows, lambda names: words.read(names).head(rows))
    return parsed(table, text, dialect.missing)


def _require_lines(read: int, lines: int) -> None:
    """Refuse a file of which polars and ``csv`` see different rows."""
    if read != lines:
        raise csv.Error(f"{read} rows of {lines}")


@contextmanager
def _scanned(path: Path, dialect: Dialect) -> Iterator[tuple[pl.LazyFrame, int, int]]:
    """The lines below the header as text; their number, without and with blank ones at the end."""
    require_file(path)
    if not path.name.lower().endswith(SUFFIXES):
        raise FileError(
            f"the kind of file is unknown: {path.name}",
            where=str(path),
            hint=f"use one of {', '.join(SUFFIXES)}",
        )
    with reporting_read_errors(path):
        source = _in_utf8(path, dialect)
        with _reporting_faults(source, path):
            separator, lines, rows = _layout(source, dialect, path)
            if not rows:
                raise FileError(
                    "the file has a header and no rows",
                    where=str(path),
                    hint="add at least one row",
                )
            scan = pl.scan_csv(
                source,
                separator=separator,
                infer_schema=False,
                null_values=[*dialect.missing],
                glob=False,
            )
            yield scan, lines, rows


# --- encoding ------------------------------------------------------------------------------------


def _opened(source: Path | bytes) -> BinaryIO:
    return source.open("rb") if isinstance(source, Path) else io.BytesIO(source)


def _encoding(source: Path | bytes, dialect: Dialect) -> str:
    if dialect.encoding is not None:
        return codecs.lookup(dialect.encoding).name
    with _opened(source) as stream:
        marked = stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return "utf-16" if marked else "utf-8"


def _in_utf8(path: Path, dialect: Dialect) -> Path | bytes:
    """The file; or its content, where it is packed or has another encoding."""
    source = _unpacked(path) if path.name.lower().endswith(".gz") else path
    encoding = _encoding(source, dialect)
    if encoding in _UTF_8:
        return source
    content = source.read_bytes() if isinstance(source, Path) else source
    try:
        return content.decode(encoding).encode()
    except UnicodeDecodeError as problem:
        raise FileError(
            f"the file is not {encoding} text, from byte {problem.start:,} on",
            where=str(path),
            hint=Hint("leave {encoding} out for UTF-8, or name the one that it has"),
        ) from problem


def _unpacked(path: Path) -> bytes:
    try:
        with gzip.open(path) as stream:
            content = stream.read()
    except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
        raise FileError(
            "the gzip file is cut short or damaged",
            where=str(path),
            hint="copy or download it again",
        ) from problem
    if not content:
        raise FileError("the file is empty", where=str(path), hint="write it again")
    return content


# --- layout --------------------------------------------------------------------------------------


def _layout(source: Path | bytes, dialect: Dialect, path: Path) -> tuple[str, int, int]:
    """Separator; number of lines below the header, with and without blank ones at the end."""
    tab = "\t" if path.name.lower().endswith((".tsv", ".tsv.gz")) else None
    # As polars: a carriage return ends no line.
    with io.TextIOWrapper(_opened(source), encoding="utf-8-sig", newline="\n") as stream:
        first = [*islice(stream, 1 + _LOOKED_AT)]
        separator, text = dialect.separator or tab or _separator(first), chain(first, stream)
        header = next(csv.reader(text, delimiter=separator), [])
        if not header:
            raise FileError("the first line is blank", where=str(path), hint="begin with a header")
        require_distinct(header, where=str(path))
        line = rows = 0
        for fields_, count in _runs(text, separator):
            # In a file of one column a blank line is a missing value.
            width = fields_ or int(len(header) == 1)
            if width and (width != len(header) or line > rows):
                raise FileError(
                    f"row {rows + 1} has {0 if line > rows else width} fields and the header has "
                    f"{len(header)}",
                    where=f"{path} (rows counted from 1 below the header)",
                    hint="give every row as many fields as the header",
                )
            line += count
            rows = line if width else rows
    return separator, line, rows


def _runs(lines: Iterator[str], separator: str) -> Iterator[tuple[int, int]]:
    """Number of fields, 0 for a blank line, and of the rows in succession that have it."""
    while some := [*islice(lines, _LINES_AT_ONCE)]:
        widths: Iterable[int] = [line.count(separator) + 1 for line in some]
        if '"' in "".join(some):
            # From here on a field may hold separators and the ends of lines.
            widths = map(len, csv.reader(chain(some, lines), delimiter=separator))
        elif 1 in widths:
            # A line without a separator may be blank.
            widths = map(len, csv.reader(some, delimiter=separator))
        for width, run in groupby(widths):
            yield width, sum(1 for _ in run)


def _separator(lines: Sequence[str]) -> str:
    """The one that divides the header, and the first rows alike; else a comma."""
    widths = {separator: _first_widths(lines, separator) for separator in _SEPARATORS}
    likely = [separator for separator, counts in widths.items() if counts[:1] > [1]]
    even = [separator for separator in likely if len({*widths[separator]}) == 1]
    (only,) = even if len(even) == 1 else likely if len(likely) == 1 else [","]
    return only


def _first_widths(lines: Sequence[str], separator: str) -> list[int]:
    try:
        return [len(row) for row in csv.reader(lines, delimiter=separator) if row]
    except csv.Error:
        # A field beyond the reader's limit is no reason to stop: the separator is another one.
        return []


# --- faults --------------------------------------------------------------------------------------


@contextmanager
def _reporting_faults(source: Path | bytes, path: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as problem:
        raise _not_utf8(source, path) from problem
    except (csv.Error, pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        # polars quotes the offending value, which may be a person's: only the kind is passed on.
        raise FileError(
            "the file is not well-formed CSV: its quoting is wrong",
            where=str(path),
            hint="write it again, with quotes inside values doubled",
        ) from problem


# What to do with a file that is no CSV table.
_OTHER_KINDS = {
    "Parquet": "give it the ending .parquet",
    "gzip": "give it the ending .csv.gz",
    "Excel": "save the sheet as CSV, or as Parquet",
    "SQLite": "name it sqlite:FILE, with a query",
}


def _not_utf8(source: Path | bytes, path: Path) -> FileError:
    kind = file_kind(path) if isinstance(source, Path) else ""
    if kind not in ("", "a CSV table", "a TOML file"):
        ways = (way for word, way in _OTHER_KINDS.items() if word in kind)
        return FileError(
            f"this is {kind}, and not a CSV table",
            where=str(path),
            hint=next(ways, "name a table: .csv, .tsv or .parquet"),
        )
    line = 0
    with _opened(source) as stream, suppress(UnicodeDecodeError):
        # A line ends with a byte that no other character of UTF-8 has.
        for octets in stream:
            octets.decode()
            line += 1
    return FileError(
        f"{f'row {line}' if line else 'the header'} is not UTF-8 text",
        where=f"{path} (rows counted from 1 below the header)",
        hint=Hint("say how the file is encoded: {encoding}, say", encoding="latin-1"),
    )
