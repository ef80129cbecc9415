"""Adds settings to a party's file, where that can be done without touching anything else in it.

The file is a person's, with comments: only the lines in question change, and the result is read
again before it replaces the file. What cannot be done that way is left to the person.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path

from taciturn.errors import OutputError
from taciturn.faces import toml_value
from taciturn.files import write_private


def add_settings(path: Path, section: str, values: Mapping[str, str]) -> bool:
    """Writes settings into a section of a party's file; False where nothing was written.

    A line that is there as a comment (``# aligned = "..."``) is switched on; otherwise the setting
    goes below the head of its section. Nothing is written where the file is a link, another
    account's or not to be written, holds one of the settings already, or is not shaped as this can
    be done safely.
    """
    try:
        status = path.lstat()
        own = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()
        if not own or not os.access(path, os.W_OK):
            return False
        text = path.read_bytes().decode()
        before = tomllib.loads(text)
        wanted = {**before, section: {**before[section], **values}}
        if values.keys() & before[section].keys():
            return False
        for name, value in values.items():
            text = _with_line(text, section, name, f"{name} = {toml_value(value)}")
        if tomllib.loads(text) != wanted:
            return False
        write_private(path, text)
        path.chmod(stat.S_IMODE(status.st_mode))
    except (OSError, OutputError, ValueError, KeyError, TypeError):
        return False
    return True


def _with_line(text: str, section: str, name: str, line: str) -> str:
    r"""The text with one more setting in a section; ValueError where the section has no head.

    >>> print(_with_line('[data]\nid = "id"\n# aligned = "x.csv"  # a list', "data", "aligned",
    ...     'aligned = "y.csv"'))
    [data]
    id = "id"
    aligned = "y.csv"  # a list
    """
    lines = text.splitlines(keepends=True)
    head = [_is_head(row, section) for row in lines].index(True)
    rest = (at for at in range(head + 1, len(lines)) if lines[at].startswith("["))
    commented = re.compile(rf'^# *{re.escape(name)} *= *"[^"]*"( *#.*)?(\r?\n?)$')
    for at in range(head + 1, next(rest, len(lines))):
        if (place := commented.match(lines[at])) is not None:
            lines[at] = f"{line}{place[1] or ''}{place[2]}"
            return "".join(lines)
    ending = "\r\n" if lines[head].endswith("\r\n") else "\n"
    lines.insert(head + 1, line + ending)
    return "".join(lines)


def _is_head(line: str, section: str) -> bool:
    return line.split("#")[0].strip() == f"[{section}]"
