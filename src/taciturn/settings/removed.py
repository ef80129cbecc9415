"""Names of earlier versions that were renamed or removed: settings, options, commands, JSON keys.

The one table of them makes the errors for an old name and the list on the page about upgrades.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from taciturn.errors import ConfigError
from taciturn.setting_syntax import Hint, SettingSyntax, hyphenated


class Kind(StrEnum):
    """Kind of a removed name."""

    OPTION = "option"
    COMMAND = "command"
    KEY = "key in a file"
    KEYWORD = "Python keyword"
    RECORD = "JSON key"


Place: TypeAlias = tuple[Kind, str]
"""A kind, and within what: a command, a section of a party's file, a function.

Empty is every command or function that takes settings, the top level of a file of settings, or
any JSON result.
"""


@dataclass(frozen=True, slots=True)
class FormerName:
    """An old name, its new one or None, where it stood, and why.

    ``old`` and ``new`` are spelled with hyphens. ``instead`` is the way out where there is no new
    name.
    """

    old: str
    new: str | None
    places: tuple[Place, ...]
    why: str
    instead: Hint | None = None

    @property
    def hint(self) -> Hint:
        """The way out: the new name, or what to use in its place."""
        if self.instead is not None:
            return self.instead
        return Hint(f"use {{{(self.new or '').replace('-', '_')}}}")

    def message(self, spelled: str) -> str:
        """Error message for the name, as the user spelled it."""
        change = "was removed" if self.new is None else "was renamed"
        return f"{spelled} {change}: {self.why}"


def simulated_places(*sections: str) -> tuple[Place, ...]:
    """Places of a setting that simulations take, and these sections of a party's file."""
    everywhere = (Kind.OPTION, ""), (Kind.KEYWORD, ""), (Kind.KEY, "")
    return (*everywhere, *file_places(*sections))


def file_places(*sections: str) -> tuple[Place, ...]:
    """Places of a key of these sections of a party's file."""
    return tuple((Kind.KEY, section) for section in sections)


# One line for each name that changes after version 0.3, such as
# FormerName("over", "base-mechanism", simulated_places("agreement"), "it names a mechanism").
FORMER_NAMES: tuple[FormerName, ...] = ()


def former_name(kind: Kind, within: str, name: str) -> FormerName | None:
    """The entry of an old name, spelled with hyphens or underscores; None for any other name."""
    old = hyphenated(name)
    return next(
        (entry for entry in FORMER_NAMES if entry.old == old and (kind, within) in entry.places),
        None,
    )


def refuse_former_key(key: str, section: str, syntax: SettingSyntax | None = None) -> None:
    """Raise ``ConfigError`` for an old key of a section; return for any other name.

    The section is empty for a settings file, and for keywords that are checked like its keys.
    """
    if (entry := former_name(Kind.KEY, section, key)) is not None:
        raise ConfigError(
            entry.message(key),
            where="" if syntax is None else syntax.within(section).source,
            setting=key.replace("-", "_"),
            hint=entry.hint,
        )


def refuse_former_keyword(keyword: str, function: str) -> None:
    """Raise ``ConfigError`` for an old keyword of a function; return for any other name."""
    entry = former_name(Kind.KEYWORD, function, keyword)
    if entry := entry or former_name(Kind.KEYWORD, "", keyword):
        raise ConfigError(entry.message(keyword), setting=keyword, hint=entry.hint)


def former_usage(arguments: Sequence[str], unknown: str = "") -> ConfigError | None:
    """The error of an old command, or of an old option: ``unknown``; None for any other."""
    words = [argument.partition("=")[0] for argument in arguments]
    option = unknown.removeprefix("--")
    for entry in FORMER_NAMES:
        for kind, within in entry.places:
            command = within.split()
            if words[: len(command)] != command:
                continue
            place = " ".join(["taciturn", *command])
            if kind is Kind.OPTION and entry.old in (option, option.removeprefix("no-")):
                usage = f"--{entry.old}"
            elif kind is Kind.COMMAND and words[len(command) :][:1] == [entry.old]:
                usage = f"{place} {entry.old}"
            else:
                continue
            where = place if within else usage
            return ConfigError(entry.message(usage), where=where, hint=entry.hint)
    return None
