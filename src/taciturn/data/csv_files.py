"""CSV files read into a polars frame, or refused with the reason.

What a CSV file leaves open is looked for where only one answer is possible: the separator in the
header, a decimal comma in columns that are numbers with it and text without, UTF-16 by its mark.
Everything else is for the person to say (``Dialect``).

polars fills short rows with nulls, turns blank lines into rows and renames repeated columns, all
without a word. A table that lost its shape that way would train to a wrong model, so a CSV file is
looked over before polars reads it.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import shutil
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from taciturn.data.frames import require_distinct
from taciturn.data.parquet import SUFFIX as PARQUET
from taciturn.data.parquet import (
    Columns,
    Fingerprint,
    ParquetTable,
    reporting_read_errors,
    require_file,
)
from taciturn.errors import ColumnError, FileError
from taciturn.files import file_kind, private_folder, reporting_write_errors
from taciturn.setting_syntax import Hint

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", "?")
SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")

LARGE_CSV = 256 << 20
"""A party's CSV file of more bytes is converted to Parquet parts before it is used."""

_BLOCK = 1 << 22
_CONVERTED = 1 << 24
_SEPARATORS = (",", ";", "\t", "|")
_LOOKED_AT = 20
# With a decimal comma, the dot stands between thousands; and the other way round.
_COMMA = r"^[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)(?:,\d+)?(?:[eE][+-]?\d+)?$"
_POINT = r"^[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?(?:[eE][+-]?\d+)?$"

Widths = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Dialect:
    """Format of a CSV file; None is detected. ``na_values`` and an empty field mean missing."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    na_values: tuple[str, ...] | None = None

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
    require_file(path)
    with reporting_read_errors(path):
        frame = _read_csv(path, _suffix(path), tuple(text), dialect)
    if not frame.height:
        raise _no_rows(path)
    return frame


@dataclass(frozen=True, slots=True, repr=False)
class TextColumns:
    """Columns of text that are parsed one at a time, with the types that ``read_csv`` gives.

    ``text`` are those that stay text. ``fingerprints`` are those of rows that came from no file.
    """

    table: Columns
    height: int
    missing: tuple[str, ...]
    text: tuple[str, ...]
    decimal: str | None
    fingerprints: tuple[Fingerprint, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self.table.columns

    def select(self, names: list[str], /) -> TextColumns:
        """The table with these columns alone."""
        return replace(self, table=self.table.select(names))

    def words(self, name: str) -> pl.Series:
        """A column as unparsed text."""
        return self.table[name].head(self.height)

    def __getitem__(self, name: str, /) -> pl.Series:
        frame = self.words(name).to_frame()
        if name not in self.text and self.decimal != ",":
            frame = _with_kind(frame)
        frame = _stripped(frame, self.missing, self.text)
        if self.decimal is not None:
            frame = _as_numbers(frame, self.text, self.decimal)
        return frame[name]


def _with_kind(frame: pl.DataFrame) -> pl.DataFrame:
    """The column with the type that polars infers from a CSV file of all its rows."""
    stream = io.BytesIO()
    # Beside another column, for a line of one missing value would be a blank line.
    frame.with_columns(pl.lit(0).alias(frame.columns[0] + "_")).write_csv(stream)
    kinds = pl.read_csv(stream.getvalue(), infer_schema_length=None, null_values=[""])
    return kinds.select(frame.columns)


def converts(path: Path, dialect: Dialect) -> bool:
    """Whether a CSV file is large enough to be converted to Parquet, and can be."""
    usual = dialect.encoding is None or codecs.lookup(dialect.encoding).name == "utf-8"
    plain = path.name.lower().endswith((".csv", ".tsv"))
    if not (usual and plain and path.is_file() and path.stat().st_size > LARGE_CSV):
        return False
    with path.open("rb") as stream:
        return stream.read(2) not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def converted(
    path: Path, folder: Path, *, text: tuple[str, ...] = (), dialect: Dialect = USUAL
) -> TextColumns:
    """Convert a CSV file to Parquet parts in a folder, block by block."""
    with reporting_read_errors(path):
        separator, trailing = _layout(path, dialect, path)
        with path.open("rb") as stream:
            table = stored(_text_parts(stream, separator, dialect, path), folder)
    if table is None:
        raise _no_rows(path)
    height = table.height - trailing
    columns = TextColumns(table, height, dialect.missing, text, dialect.decimal)
    if dialect.decimal is None and _has_decimal_comma(columns, text, path):
        columns = replace(columns, decimal=",")
    return columns


def _text_parts(
    stream: BinaryIO, separator: str, dialect: Dialect, path: Path
) -> Iterator[pl.DataFrame]:
    blocks = _line_blocks(stream)
    header = next(blocks)
    for block in blocks:
        with _parsing(path, path):
            yield pl.read_csv(
                header + block,
                separator=separator,
                infer_schema=False,
                null_values=list(dialect.missing),
            )


def stored(parts: Iterable[pl.DataFrame], folder: Path) -> ParquetTable | None:
    """Store parts of a table as Parquet files in a private folder; None where there are none."""
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
    return ParquetTable.at(folder) if number else None


def _line_blocks(stream: BinaryIO) -> Iterator[bytes]:
    """The header, and then some megabytes of whole rows at a time."""
    header = stream.readline()
    while header.count(b'"') % 2 and (line := stream.readline()):
        header += line
    yield header
    rest = b""
    while block := stream.read(_CONVERTED):
        block = rest + block
        octets = np.frombuffer(block, dtype=np.uint8)
        ends, quotes = (np.flatnonzero(octets == ord(sign)) for sign in '\n"')
        # Within quotes, after an odd number of them, a row continues.
        whole = ends[np.searchsorted(quotes, ends) % 2 == 0]
        end = int(whole[-1]) + 1 if len(whole) else 0
        rest = block[end:]
        if end:
            yield block[:end]
    if rest:
        yield rest


def _no_rows(path: Path) -> FileError:
    return FileError(
        "the file has a header and no rows", where=str(path), hint="add at least one row"
    )


def _suffix(path: Path) -> str:
    name = path.name.lower()
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if name.endswith(suffix):
            return suffix
    raise FileError(
        f"the kind of file is unknown: {path.name}",
        where=str(path),
        hint=f"use one of {', '.join(SUFFIXES)}",
    )


def _read_csv(path: Path, suffix: str, text: tuple[str, ...], dialect: Dialect) -> pl.DataFrame:
    source: Path | bytes = _decompressed(path) if suffix.endswith(".gz") else path
    source = _as_utf8(source, dialect.encoding, path)
    separator, trailing = _layout(source, dialect, path)

    def parsed(*, kinds: bool) -> pl.DataFrame:
        return pl.read_csv(
            source,
            separator=separator,
            infer_schema=kinds,
            infer_schema_length=None,
            null_values=list(dialect.missing),
            schema_overrides=dict.fromkeys(text, pl.String),
            glob=False,
        )

    with _parsing(source, path):
        frame = parsed(kinds=dialect.decimal != ",")
        if dialect.decimal is None and _has_decimal_comma(frame, text, path):
            # All of it once more as text: a dot may stand between thousands.
            dialect, frame = replace(dialect, decimal=","), parsed(kinds=False)
    frame = _stripped(frame.head(frame.height - trailing), dialect.missing, text)
    if dialect.decimal is None:
        return frame
    return _as_numbers(frame, text, dialect.decimal)


@contextmanager
def _parsing(source: Path | bytes, path: Path) -> Iterator[None]:
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        if "utf-8" in str(problem).lower():
            raise _not_utf8(source, path) from problem
        # polars quotes the offending value, which may be a person's: only the kind is passed on.
        raise FileError(
            "the file is not well-formed CSV: its quoting is wrong",
            where=str(path),
            hint="write it again, with quotes inside values doubled",
        ) from problem


def _as_utf8(source: Path | bytes, encoding: str | None, path: Path) -> Path | bytes:
    if encoding is None:
        with _opened(source) as stream:
            marked = stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        encoding = "utf-16" if marked else "utf-8"
    if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii"):
        return source
    with _opened(source) as stream:
        content = stream.read()
    try:
        return content.decode(encoding).encode()
    except UnicodeDecodeError as problem:
        raise FileError(
            f"the file is not {encoding} text, from byte {problem.start:,} on",
            where=str(path),
            hint=Hint("leave {encoding} out for UTF-8, or name the one that it has"),
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
    decoder, line = codecs.getincrementaldecoder("utf-8")(), 0
    with _opened(source) as stream:
        for octets in stream:
            try:
                decoder.decode(octets)
            except UnicodeDecodeError:
                break
            line += 1
    place = f"row {line}" if line else "the header"
    return FileError(
        f"{place} is not UTF-8 text",
        where=f"{path} (rows counted from 1 below the header)",
        hint=Hint("say how the file is encoded: {encoding}, say", encoding="latin-1"),
    )


def _separator(source: Path | bytes, path: Path) -> str:
    with _opened(source) as stream:
        lines = [stream.readline() for _ in range(1 + _LOOKED_AT)]
    try:
        shown = b"".join(lines).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise _not_utf8(source, path) from None
    widths = {separator: _first_widths(shown, separator) for separator in _SEPARATORS}
    likely = [separator for separator, counts in widths.items() if counts[:1] > [1]]
    even = [separator for separator in likely if len(set(widths[separator])) == 1]
    (only,) = even if len(even) == 1 else likely if len(likely) == 1 else [","]
    return only


def _first_widths(lines: list[str], separator: str) -> list[int]:
    # A field beyond the reader's limit is no reason to stop: the separator is another one.
    with suppress(csv.Error):
        return [len(row) for row in csv.reader(lines, delimiter=separator) if row]
    return []


def _has_decimal_comma(
    frame: pl.DataFrame | TextColumns, text: tuple[str, ...], path: Path
) -> bool:
    unclear = ""
    for name in frame.columns:
        column = frame.words(name) if isinstance(frame, TextColumns) else frame[name]
        if column.dtype != pl.String or name in text:
            continue
        values = column.drop_nulls().str.strip_chars()
        # The first is looked at before the rest: most columns of text are no numbers.
        if not values.head(1).str.contains(_COMMA).any() or not values.str.contains(_COMMA).all():
            if not _thousands(values):
                continue
        elif not values.str.contains(",", literal=True).any():
            continue
        elif not _thousands(values):
            return True
        unclear = unclear or name
    if unclear:
        raise ColumnError(
            f"the comma in the numbers of column {unclear!r} may be a decimal comma, or stand "
            "between thousands",
            where=str(path),
            hint=Hint("say which is the decimal point: {decimal}", decimal=(",", ".")),
        )
    return False


def _thousands(values: pl.Series) -> bool:
    """Whether every comma could separate thousands, and there is one."""
    if not values.head(1).str.contains(_POINT).any() or not values.str.contains(_POINT).all():
        return False
    return bool(values.str.contains(",", literal=True).any())


def _as_numbers(frame: pl.DataFrame, text: tuple[str, ...], decimal: str) -> pl.DataFrame:
    pattern, between = (_COMMA, ".") if decimal == "," else (_POINT, ",")
    for name, kind in frame.schema.items():
        if kind != pl.String or name in text:
            continue
        values = frame[name]
        present = values.drop_nulls()
        if not len(present) or not present.str.contains(pattern).all():
            continue
        plain = values.str.replace_all(between, "", literal=True)
        frame = frame.with_columns(
            plain.str.replace(decimal, ".", literal=True).cast(pl.Float64, strict=False)
        )
    return frame


def _decompressed(path: Path) -> bytes:
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


def _opened(source: Path | bytes) -> BinaryIO:
    return source.open("rb") if isinstance(source, Path) else io.BytesIO(source)


def _layout(source: Path | bytes, dialect: Dialect, path: Path) -> tuple[str, int]:
    """Check the header and the width of every row; separator and number of final blank lines."""
    tab = "\t" if path.name.lower().endswith((".tsv", ".tsv.gz")) else None
    separator = dialect.separator or tab or _separator(source, path)
    with _opened(source) as stream:
        header = _header(stream, separator, source, path)
    if not header:
        raise FileError("the first line is blank", where=str(path), hint="begin with a header")
    require_distinct(list(header), where=str(path))
    with _opened(source) as stream:
        quoted = any(b'"' in block for block in iter(lambda: stream.read(_BLOCK), b""))
    with _opened(source) as stream:
        widths = _quoted_widths if quoted else _plain_widths
        return separator, _check_widths(widths(stream, separator), len(header), path)


def _header(stream: BinaryIO, separator: str, source: Path | bytes, path: Path) -> tuple[str, ...]:
    lines = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    try:
        return tuple(next(csv.reader(lines, delimiter=separator), ()))
    except UnicodeDecodeError as problem:
        # A block is decoded at once: the first row that is not UTF-8 need not be the header.
        raise _not_utf8(source, path) from problem
    except csv.Error as problem:
        raise FileError(
            "the header is not CSV", where=str(path), hint="save the file as CSV"
        ) from problem
    finally:
        lines.detach()


def _plain_widths(stream: BinaryIO, separator: str) -> Iterator[Widths]:
    """Fields per line, 0 for a blank line, in blocks; for files without quotes."""
    mark, rest = ord(separator), b""
    while block := stream.read(_BLOCK):
        head, newline, tail = (rest + block).rpartition(b"\n")
        rest = tail
        if newline:
            yield _widths_of(head + newline, mark)
    if rest:
        yield _widths_of(rest + b"\n", mark)


def _widths_of(lines: bytes, mark: int) -> Widths:
    octets = np.frombuffer(lines, dtype=np.uint8)
    ends = np.flatnonzero(octets == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    marks = np.flatnonzero(octets == mark)
    widths = 1 + np.searchsorted(marks, ends) - np.searchsorted(marks, starts)
    # A blank line may still hold the carriage return of a Windows line end.
    short = ends - starts
    blank = (short == 0) | ((short == 1) & (octets[starts] == ord("\r")))
    return np.where(blank, 0, widths)


def _quoted_widths(stream: BinaryIO, separator: str) -> Iterator[Widths]:
    # Undecodable bytes are left to polars to refuse; they do not change the number of fields.
    lines = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
    rows = csv.reader(lines, delimiter=separator)
    while True:
        widths = [len(row) for row, _ in zip(rows, range(1 << 16), strict=False)]
        if not widths:
            break
        yield np.array(widths)
    lines.detach()


def _check_widths(blocks: Iterator[Widths], expected: int, path: Path) -> int:
    """Require equal widths; blank lines are tolerated at the end, and counted."""
    line, blanks = 0, 0
    for counts in blocks:
        # In a file of one column a blank line is a missing value.
        widths = np.maximum(counts, 1) if expected == 1 else counts
        filled = np.flatnonzero(widths)
        if filled.size:
            if blanks:
                raise _width_error(path, line - blanks, 0, expected)
            last = int(filled[-1])
            wrong = np.flatnonzero(widths[: last + 1] != expected)
            if wrong.size:
                raise _width_error(path, line + int(wrong[0]), int(widths[wrong[0]]), expected)
            blanks = len(widths) - 1 - last
        else:
            blanks += len(widths)
        line += len(widths)
    return blanks


def _width_error(path: Path, line: int, width: int, expected: int) -> FileError:
    return FileError(
        f"row {line} has {width} fields and the header has {expected}",
        where=f"{path} (rows counted from 1 below the header)",
        hint="give every row as many fields as the header",
    )


def _stripped(frame: pl.DataFrame, missing: tuple[str, ...], text: tuple[str, ...]) -> pl.DataFrame:
    for name, kind in frame.schema.items():
        if kind != pl.String or not frame[name].str.contains(r"^\s|\s$").any():
            continue
        stripped = frame[name].str.strip_chars()
        marked = stripped.set(stripped.is_in(list(missing)), None)
        numbers = marked.cast(pl.Float64, strict=False)
        numeric = name not in text and numbers.null_count() == marked.null_count() < len(marked)
        frame = frame.with_columns(numbers if numeric else marked)
    return frame
