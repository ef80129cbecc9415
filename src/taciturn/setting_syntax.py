"""Spelling of a setting where a user gave it: option, file key or keyword argument.

The packages below name a setting (``epsilon``) and never its spelling (``--epsilon``). An error, or
a ``Hint``, is put into words by the ``SettingSyntax`` in use.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Protocol


class SettingSyntax(Protocol):
    """Spelling of settings in one kind of input."""

    @property
    def source(self) -> str:
        """File of the settings; empty if there is none."""

    def within(self, section: str) -> SettingSyntax:
        """The same input while one section of it is being read."""

    def name(self, setting: str) -> str:
        """Name of the setting within a sentence."""

    def assignment(self, setting: str, value: object) -> str:
        """Assignment of a value to the setting; a tuple is a choice of values."""

    def place(self, setting: str, value: object = None) -> str:
        """Place of the setting, as an error shows it; with its value unless that is None."""


@dataclass(frozen=True, slots=True)
class PythonCall:
    """Settings as keyword arguments of a function.

    >>> PYTHON.name("batch_size"), PYTHON.place("batch_size")
    ('batch_size', 'batch_size=')
    >>> PYTHON.assignment("variant", ("printed", "mean-one"))
    'variant="printed" or "mean-one"'
    """

    source: str = ""

    def within(self, section: str) -> PythonCall:
        """The same: keywords have no sections."""
        return self

    def name(self, setting: str) -> str:
        """``batch_size``."""
        return setting

    def assignment(self, setting: str, value: object) -> str:
        """``batch_size=16``."""
        return f"{setting}={_choice(value, _python_value)}"

    def place(self, setting: str, value: object = None) -> str:
        """``batch_size=``."""
        return f"{setting}=" if value is None else self.assignment(setting, value)


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Settings as options of a command.

    ``from_file`` are the settings that came from ``file``, and not from an option.

    >>> COMMAND_LINE.place("batch_size"), COMMAND_LINE.assignment("batch_size", 16)
    ('--batch-size', '--batch-size 16')
    >>> COMMAND_LINE.assignment("reveal", True), COMMAND_LINE.assignment("reveal", False)
    ('--reveal', '--no-reveal')
    """

    file: SettingSyntax | None = None
    from_file: frozenset[str] = frozenset()
    source: str = ""

    def within(self, section: str) -> CommandLine:
        """The same: options have no sections."""
        return self

    def name(self, setting: str) -> str:
        """``--batch-size``."""
        return f"--{hyphenated(setting)}"

    def assignment(self, setting: str, value: object) -> str:
        """``--batch-size 16``; a switch takes no value."""
        if isinstance(value, bool):
            return self.name(setting if value else f"no_{setting}")
        return f"{self.name(setting)} {_choice(value, plain_value)}"

    def place(self, setting: str, value: object = None) -> str:
        """``--batch-size``; or the file's key, where the value came from there."""
        if self.file is not None and setting in self.from_file:
            return self.file.place(setting, value)
        return self.name(setting) if value is None else self.assignment(setting, value)


@dataclass(frozen=True, slots=True)
class TomlFile:
    """Settings as keys of a TOML file.

    ``sections`` has the section of each setting that the file may hold; an empty one is the top
    level. A name that is not among them is the command's, and is spelled as its option. ``section``
    is the one that is being read: every name is one of its keys.

    >>> file = TomlFile("bob.toml", {"epsilon": "agreement"})
    >>> file.place("epsilon"), file.assignment("epsilon", 1.0), file.assignment("fresh", True)
    ('bob.toml, [agreement] epsilon', 'epsilon = 1', '--fresh')
    >>> file.within("link").place("peer")
    'bob.toml, [link] peer'
    """

    file: str
    sections: Mapping[str, str] = field(default_factory=dict)
    section: str | None = None

    @property
    def source(self) -> str:
        """The file, and the section that is being read."""
        return self._in_section(self.section or "")

    def within(self, section: str) -> TomlFile:
        """The same file while one section of it is being read."""
        return TomlFile(self.file, self.sections, section)

    def name(self, setting: str) -> str:
        """``batch-size``."""
        return hyphenated(setting) if self._holds(setting) else COMMAND_LINE.name(setting)

    def assignment(self, setting: str, value: object) -> str:
        """``batch-size = 16``; by column, a line for each: ``transform.age = "log"``."""
        if not self._holds(setting):
            return COMMAND_LINE.assignment(setting, value)
        if isinstance(value, Mapping):
            name = self.name(setting)
            return ", ".join(f"{name}.{_key(k)} = {toml_value(v)}" for k, v in value.items())
        return f"{self.name(setting)} = {_choice(value, toml_value)}"

    def place(self, setting: str, value: object = None) -> str:
        """``bob.toml, [agreement] batch-size``."""
        if not self._holds(setting):
            return COMMAND_LINE.place(setting, value)
        section = self.sections[setting] if self.section is None else self.section
        key = self.name(setting) if value is None else self.assignment(setting, value)
        place = self._in_section(section)
        return f"{place} {key}" if section else f"{place}, {key}"

    def _holds(self, setting: str) -> bool:
        return self.section is not None or setting in self.sections

    def _in_section(self, section: str) -> str:
        return f"{self.file}, [{section}]" if section else self.file


PYTHON = PythonCall()
COMMAND_LINE = CommandLine()


class Hint:
    """A way out that names settings, put into words by a ``SettingSyntax``.

    ``template`` is a text in the manner of ``str.format``: ``{epsilon}`` is the setting of that
    name, ``{0}`` the first of the words, which are put in as they are, or a further hint. A setting
    without a value is only named.

    >>> hint = Hint("use {epsilon}, or a smaller {batch_size}", epsilon=1.0)
    >>> hint.text(COMMAND_LINE)
    'use --epsilon 1, or a smaller --batch-size'
    >>> hint.text(PYTHON)
    'use epsilon=1, or a smaller batch_size'
    """

    __slots__ = ("template", "values", "words")

    def __init__(self, template: str, *words: object, **values: object) -> None:
        self.template, self.words, self.values = template, words, values

    def __repr__(self) -> str:
        return f"Hint({self.text(PYTHON)!r})"

    def text(self, syntax: SettingSyntax) -> str:
        """The hint as one kind of reader should see it."""
        words = [word.text(syntax) if isinstance(word, Hint) else word for word in self.words]
        return Formatter().vformat(self.template, words, _Spelling(syntax, self.values))


@dataclass(frozen=True, slots=True)
class _Spelling(Mapping[str, str]):
    syntax: SettingSyntax
    given: Mapping[str, object]

    def __getitem__(self, setting: str) -> str:
        if setting in self.given:
            return self.syntax.assignment(setting, self.given[setting])
        return self.syntax.name(setting)

    def __iter__(self) -> Iterator[str]:
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)


def hyphenated(setting: str) -> str:
    """A setting's name as options and files spell it.

    >>> hyphenated("batch_size")
    'batch-size'
    """
    return setting.replace("_", "-")


def plain_value(value: object) -> str:
    """A value as a person writes it.

    >>> plain_value(1.0), plain_value(3072), plain_value("printed")
    ('1', '3072', 'printed')
    >>> plain_value(["age", "sex"]), plain_value({"age": "log"})
    ('age,sex', 'age=log')
    """
    if isinstance(value, list):
        return ",".join(map(plain_value, value))
    if isinstance(value, Mapping):
        return ",".join(f"{key}={plain_value(part)}" for key, part in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)


def toml_value(value: object) -> str:
    """A value as a TOML file holds it.

    >>> toml_value("printed"), toml_value(True), toml_value(1.0), toml_value(["a", "b"])
    ('"printed"', 'true', '1', '["a", "b"]')
    >>> toml_value({"net income": "log"})
    '{ "net income" = "log" }'
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(k)} = {toml_value(v)}' for k, v in value.items())} }}"
    return _quoted(value) if isinstance(value, str) else plain_value(value)


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if bare else _quoted(name)


def _python_value(value: object) -> str:
    if isinstance(value, list | dict):
        return repr(value)
    return _quoted(value) if isinstance(value, str) else plain_value(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _choice(value: object, spell: Callable[[object], str]) -> str:
    """A value, or several of which one is to be chosen.

    >>> _choice(("a", "b", "c"), str)
    'a, b or c'
    """
    if not isinstance(value, tuple):
        return spell(value)
    *others, last = map(spell, value)
    return f"{', '.join(others)} or {last}" if others else last
