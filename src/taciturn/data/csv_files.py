"""CSV files read into a polars frame, or refused with the reason.

What a CSV file leaves open is looked for where only one answer is possible: the separator in the
header, UTF-16 by its mark. Everything else is for the person to say (``Dialect``).

Every column is read as text, and only plain numbers get another type here (``typed``). How others
are written is decided when a column is fitted (``recognition``), so that new rows are read the same
way.

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
from taciturn.data.ids import Duplicates
from taciturn.data.parquet import SUFFIX as PARQUET
from taciturn.data.parquet import (
    Columns,
    Fingerprint,
    ParquetTable,
    reporting_read_errors,
    require_file,
)
from taciturn.data.recognition import are_codes, may_be_thousands
from taciturn.errors import FileError
from taciturn.file_kinds import file_kind
from taciturn.files import private_folder, reporting_write_errors
from taciturn.setting_syntax import Hint

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", "?")
SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")

LARGE_CSV = 256 << 20
"""A party's CSV file of more bytes is converted to Parquet parts before it is used."""

_BLOCK = 1 << 22
_CONVERTED = 1 << 24
_SEPARATORS = (",", ";", "\t", "|")
_LOOKED_AT = 20
_TRUTH = ["true", "false"]

Widths = NDArray[np.int64]


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
    fingerprints: tuple[Fingerprint, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self.table.columns

    def select(self, names: list[str], /) -> TextColumns:
        """The table with these columns alone."""
        return replace(self, table=self.table.select(names))

    def __getitem__(self, name: str, /) -> pl.Series:
        words = self.table[name].head(self.height)
        return _stripped(words, self.missing) if name in self.text else typed(words, self.missing)


@dataclass(frozen=True, slots=True, repr=False)
class MarkedColumns:
    """Columns of any type; in those of text, ``missing`` are the words for a missing value.

    ``text`` are columns that stay as they are, such as ids.
    """

    table: Columns
    missing: tuple[str, ...]
    text: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self.table.columns

    @property
    def height(self) -> int:
        """Number of rows."""
        return self.table.height

    def select(self, names: list[str], /) -> MarkedColumns:
        """The table with these columns alone."""
        return replace(self, table=self.table.select(names))

    def __getitem__(self, name: str, /) -> pl.Series:
        series = self.table[name]
        if series.dtype != pl.String or name in self.text:
            return series
        return series.set(series.str.strip_chars().is_in([*self.missing]), None)


def typed(words: pl.Series, missing: Sequence[str] = ()) -> pl.Series:
    """A column of text without surrounding blanks, as numbers or booleans where all values are.

    Text stays text where a number would lose something: leading zeros, or a point that may stand
    between thousands.

    >>> [str(typed(pl.Series(["1", word])).dtype) for word in ("2", "2.5", "02", "2.500", "x")]
    ['Int64', 'Float64', 'String', 'String', 'String']
    """
    text = _stripped(words, missing)
    present = text.drop_nulls()
    # The first is looked at before the rest: most columns of text are no numbers.
    first = present.head(1)
    if first.is_in(_TRUTH).any() and present.is_in(_TRUTH).all():
        return text == _TRUTH[0]
    if not first.cast(pl.Float64, strict=False).count():
        return text
    whole = text.cast(pl.Int64, strict=False)
    if whole.null_count() == text.null_count():
        return text if are_codes(present) else whole
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() > text.null_count() or may_be_thousands(present):
        return text
    return numbers


def _stripped(words: pl.Series, missing: Sequence[str]) -> pl.Series:
    if not words.str.contains(r"^\s|\s$").any():
        return words
    text = words.str.strip_chars()
    return text.set(text.is_in([*missing]), None)


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
    return TextColumns(table, table.height - trailing, dialect.missing, text)


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

    with _parsing(source, path):
        words = pl.read_csv(
            source,
            separator=separator,
            infer_schema=False,
            null_values=list(dialect.missing),
            glob=False,
        )
    table = TextColumns(words, words.height - trailing, dialect.missing, text)
    return pl.DataFrame([table[name] for name in table.columns])


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
