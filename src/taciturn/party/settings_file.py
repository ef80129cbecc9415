"""Lines that a command writes into a party's file.

The file is a person's, with comments: only the lines in question change, and the result is read
again before it replaces the file. What cannot be done that way is left to the person.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from taciturn.errors import OutputError
from taciturn.files import write_private
from taciturn.setting_syntax import toml_value

_HEAD = re.compile(r"^[ \t]*\[+[ \t]*([\w-]+)")
# What the file of an agreement holds in their place.
_AGREED = ("agreement", "study")


def add_settings(path: Path, section: str, values: Mapping[str, str]) -> bool:
    """Write settings into a section of a party's file; False where nothing was written.

    A line that is there as a comment (``# aligned = "..."``) is switched on; otherwise the setting
    goes below the head of its section. Nothing is written where the file holds one of the settings
    already.
    """

    def wanted(before: dict[str, Any]) -> dict[str, Any]:
        if values.keys() & before[section].keys():
            raise ValueError(section)
        return {**before, section: {**before[section], **values}}

    def changed(text: str) -> str:
        for name, value in values.items():
            text = _with_line(text, section, name, value)
        return text

    return _rewritten(path, changed, wanted)


def name_agreement(path: Path, agreement: str) -> bool:
    """Make [agreement] of a party's file name a signed file, and hold nothing else.

    False where the file has to be edited by hand.
    """
    named = {"file": agreement, "signed": True}

    def wanted(before: dict[str, Any]) -> dict[str, Any]:
        own = {name: value for name, value in before.items() if name not in _AGREED}
        return {**own, "agreement": named}

    return _rewritten(path, lambda text: _with_agreement(text, named), wanted)


def _rewritten(
    path: Path,
    change: Callable[[str], str],
    wanted: Callable[[dict[str, Any]], dict[str, Any]],
) -> bool:
    """Whether a changed text, which must give the wanted values, took the place of a file's.

    Nothing is written where the file is a link, another account's or not to be written, or where
    its shape is not one that the change can be made in.
    """
    try:
        status = path.lstat()
        own = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()
        if not own or not os.access(path, os.W_OK):
            return False
        text = path.read_bytes().decode()
        values = wanted(tomllib.loads(text))
        if tomllib.loads(text) == values:
            return True
        text = change(text)
        if tomllib.loads(text) != values:
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


def _with_agreement(text: str, named: Mapping[str, object]) -> str:
    r"""The text with these lines alone in [agreement], and without [study].

    >>> text = '[agreement]\npasses = 4\n# l2 = 1\n\n# Own.\n[data]\nid = "id"\n'
    >>> print(_with_agreement(text, {"signed": True}), end="")
    [agreement]
    signed = true
    <BLANKLINE>
    # Own.
    [data]
    id = "id"
    """
    lines = [f"{name} = {toml_value(value)}\n" for name, value in named.items()]
    section, parts = ["[agreement]\n", *lines], list[str]()
    for name, part in _sections(text):
        if name not in _AGREED:
            parts += part
            continue
        # Of the comments at its end, those below the last blank line head the next section.
        end = len(part)
        while end and part[end - 1].startswith("#"):
            end -= 1
        heads_next = part[end:] if end and not part[end - 1].strip() else []
        parts += [*(section or []), "\n", *heads_next]
        section = []
    return "".join([*parts, *(["\n", *section] if section else [])])


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """The lines of each section, from its head, by the first part of its name."""
    name, lines = "", list[str]()
    for line in text.splitlines(keepends=True):
        head = _HEAD.match(line)
        if head:
            yield name, lines
            name, lines = head[1], []
        lines.append(line)
    yield name, lines
