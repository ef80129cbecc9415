"""What a file is, by its first bytes: for the error of one that is something else."""

from __future__ import annotations

import re
from pathlib import Path

_LOOKED_AT = 4096
_BY_FIRST_BYTES = (
    (b"PAR1", "a Parquet file"),
    (b"PK\x03\x04", "a ZIP archive or an Excel workbook (.xlsx)"),
    (b"\xd0\xcf\x11\xe0", "an old Excel or Word file"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x89PNG", "a picture (PNG)"),
    (b"\xff\xd8\xff", "a picture (JPEG)"),
    (b"%PDF", "a PDF document"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"TACITURN-TRANSCRIPT\n", "a transcript of taciturn"),
    (b"-----BEGIN ", "a certificate or a key (PEM)"),
    (b"<", "an HTML or XML document"),
)
_SETTING = re.compile(r"\s*(\[[\w.-]+\]|[\w-]+\s*=)")
_TABLE = "a CSV table"


def file_kind(path: Path) -> str:
    """The kind of a file, with its article; empty where it is not recognised.

    Text whose first lines have the same number of separators counts as a CSV table.
    """
    try:
        with path.open("rb") as stream:
            first = stream.read(_LOOKED_AT)
    except OSError:
        return "a folder" if path.is_dir() else ""
    for octets, kind in _BY_FIRST_BYTES:
        if first.startswith(octets):
            return kind
    # A letter may be cut at the end of what was read.
    text = first.decode("utf-8-sig", errors="replace").removesuffix("\N{REPLACEMENT CHARACTER}")
    if "\0" in text and not first.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "a binary file"
    if text.lstrip().startswith(("{", "[{")):
        return "a model file" if '"taciturn-model"' in text else "a JSON file"
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if lines and _SETTING.match(lines[0]):
        party = any(re.match(r"role\s*=", line) for line in lines)
        return "a party's file (TOML)" if party else "a TOML file"
    separators = {lines[0].count(mark) for mark in ",;\t"} if lines else {0}
    return _TABLE if max(separators) else ""
