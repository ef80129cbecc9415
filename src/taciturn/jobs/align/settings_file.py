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
            text = _with_line(text, section, name, value)
        if tomllib.loads(text) != wanted:
            return False
        write_private(path, text)
        path.chmod(stat.S_IMODE(status.st_mode))
    except (OSError, OutputError, ValueError, KeyError, TypeError):
        return False
    return True


def _with_line(text: str, section: str, name: str, value: str) -> str:
    r"""The text with one more setting in a section; as it was where no line is the section's head.

    >>> print(_with_line('[data]\nid = "id"\n# aligned = "x"  # a list', "data", "aligned", "y"))
    [data]
    id = "id"
    aligned = "y"  # a list
    """
    line = f"{name} = {toml_value(value)}"
    commented = re.compile(rf'^# *{re.escape(name)} *= *"[^"]*"(?= *(?:#.*)?\r?$)', re.MULTILINE)
    if commented.search(text):
        return commented.sub(lambda _: line, text, count=1)
    # tomlkit would append to the section, which is below the comment that heads the next one.
    head = re.compile(rf"^\[{re.escape(section)}\][^\n]*?(\r?\n)", re.MULTILINE)
    return head.sub(lambda place: f"{place[0]}{line}{place[1]}", text, count=1)
