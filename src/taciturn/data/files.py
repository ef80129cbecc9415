"""Files: CSV and Parquet read into a polars frame, or refused with the reason.

polars fills short rows with nulls, turns blank lines into rows and renames repeated columns, all
without a word. A table that lost its shape that way would train to a wrong model, so a CSV file is
looked over before polars reads it.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from taciturn.data.frames import require_distinct
from taciturn.errors import FileError

MISSING = ("", "NA", "NaN", "nan", "null", "?")
SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")

_BLOCK = 1 << 22

Widths = NDArray[np.int64]


def read_frame(
    path: Path | str, *, missing: Sequence[str] = MISSING, text: Sequence[str] = ()
) -> pl.DataFrame:
    r"""Read a table; all rows are looked at before a column's type is decided.

    Args:
        path: A .csv, .csv.gz, .tsv, .tsv.gz or .parquet file.
        missing: What stands for a missing value in a CSV file.
        text: Columns to keep as text, such as ids, whose leading zeros count.

    Returns:
        The table; blanks around values are stripped, missing values are null.

    Raises:
        FileError: If the file is absent, empty, cut short, ragged or of an unknown kind.
        ColumnError: If column names repeat.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("id,age\n007,31\n008,NA\n")
    ...     read_frame(file, text=["id"]).rows()
    [('007', 31), ('008', None)]
    """
    path = Path(path)
    _require_file(path)
    suffix = _suffix(path)
    try:
        if suffix == ".parquet":
            frame = _read_parquet(path)
        else:
            frame = _read_csv(path, suffix, tuple(missing), tuple(text))
    except OSError as problem:
        raise FileError(
            f"the file cannot be read: {problem.strerror or type(problem).__name__}",
            where=str(path),
            hint="check the file and its permissions",
        ) from problem
    if not frame.height:
        raise FileError(
            "the file has a header and no rows", where=str(path), hint="add at least one row"
        )
    return frame


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


def _require_file(path: Path) -> None:
    if path.is_dir():
        raise FileError("this is a directory, not a file", where=str(path), hint="name a file")
    if not path.is_file():
        raise FileError("there is no such file", where=str(path), hint="check the path")
    if path.stat().st_size == 0:
        raise FileError("the file is empty", where=str(path), hint="write it again")


def _read_parquet(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path, glob=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        raise FileError(
            "the Parquet file is cut short or damaged",
            where=str(path),
            hint="copy or write it again",
        ) from problem


def _read_csv(
    path: Path, suffix: str, missing: tuple[str, ...], text: tuple[str, ...]
) -> pl.DataFrame:
    separator = "\t" if suffix.startswith(".tsv") else ","
    source = _decompressed(path) if suffix.endswith(".gz") else path
    trailing = _check_layout(source, separator, path)
    try:
        frame = pl.read_csv(
            source,
            separator=separator,
            infer_schema_length=None,
            null_values=list(missing),
            schema_overrides=dict.fromkeys(text, pl.String),
            glob=False,
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        # polars quotes the offending value, which may be a person's: only the kind is passed on.
        kind = (
            "its text is not UTF-8" if "utf-8" in str(problem).lower() else "its quoting is wrong"
        )
        raise FileError(
            f"the file is not well-formed CSV: {kind}",
            where=str(path),
            hint="write it again as UTF-8, with quotes inside values doubled",
        ) from problem
    return _tidied(frame.head(frame.height - trailing), missing, text)


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


def _check_layout(source: Path | bytes, separator: str, path: Path) -> int:
    """Check the header and every row's fields; returns how many blank lines end the file."""
    with _opened(source) as stream:
        header = _header(stream, separator, path)
    if not header:
        raise FileError("the first line is blank", where=str(path), hint="begin with a header")
    require_distinct(list(header), where=str(path))
    with _opened(source) as stream:
        quoted = any(b'"' in block for block in iter(lambda: stream.read(_BLOCK), b""))
    with _opened(source) as stream:
        widths = _quoted_widths if quoted else _plain_widths
        return _check_widths(widths(stream, separator), len(header), path)


def _header(stream: BinaryIO, separator: str, path: Path) -> tuple[str, ...]:
    lines = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    try:
        return tuple(next(csv.reader(lines, delimiter=separator), ()))
    except (UnicodeDecodeError, csv.Error) as problem:
        raise FileError(
            "the header is not UTF-8 text", where=str(path), hint="save the file as UTF-8 CSV"
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
    """Insist on equal widths; blank lines are tolerated at the end, and counted."""
    line, blanks = 0, 0
    for counts in blocks:
        # In a file of one column a blank line is a missing value.
        widths = np.maximum(counts, 1) if expected == 1 else counts
        filled = np.flatnonzero(widths)
        if filled.size:
            if blanks:
                raise _ragged(path, line - blanks, 0, expected)
            last = int(filled[-1])
            wrong = np.flatnonzero(widths[: last + 1] != expected)
            if wrong.size:
                raise _ragged(path, line + int(wrong[0]), int(widths[wrong[0]]), expected)
            blanks = len(widths) - 1 - last
        else:
            blanks += len(widths)
        line += len(widths)
    return blanks


def _ragged(path: Path, line: int, width: int, expected: int) -> FileError:
    return FileError(
        f"row {line} has {width} fields and the header has {expected}",
        where=f"{path} (rows counted from 1 below the header)",
        hint="give every row as many fields as the header",
    )


def _tidied(frame: pl.DataFrame, missing: tuple[str, ...], text: tuple[str, ...]) -> pl.DataFrame:
    """Strip blanks around values, and read as numbers what they kept from being numbers."""
    for name, kind in frame.schema.items():
        if kind != pl.String or not frame[name].str.contains(r"^\s|\s$").any():
            continue
        stripped = frame[name].str.strip_chars()
        marked = stripped.set(stripped.is_in(list(missing)), None)
        numbers = marked.cast(pl.Float64, strict=False)
        numeric = name not in text and numbers.null_count() == marked.null_count() < len(marked)
        frame = frame.with_columns(numbers if numeric else marked)
    return frame
