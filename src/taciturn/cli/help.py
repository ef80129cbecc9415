"""The help of a command: its essential options, and all of them with ``--help-all``.

An option that is declared hidden is in the long help alone. What a command's options name is
compared before the command runs: an output must not be an input (``output_paths``).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any

import typer
from typer.core import TyperCommand

from taciturn.output_paths import PathUse, Replaces, UsedPath, command_paths
from taciturn.setting_syntax import COMMAND_LINE

EXAMPLES = "Examples:"
HELP_ALL = "--help-all"
OWN_VALUES: ContextVar[Mapping[str, object]] = ContextVar(
    "OWN_VALUES", default=MappingProxyType({})
)
"""Values of the running command's options that a mechanism of another package declares."""


class Command(TyperCommand):
    """A command whose help lists its examples line by line, and its options by panel."""

    shows_all = False
    own: Sequence[Any] = ()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - the parser's
        """Show every option where that is asked for, and parse otherwise."""
        self._take_own_settings(args)
        if HELP_ALL in args:
            self.shows_all = True
            for parameter in self._hidden():
                parameter.hidden = False
            typer.echo(ctx.get_help())
            raise typer.Exit
        return super().parse_args(ctx, args)

    def _take_own_settings(self, args: list[str]) -> None:
        """Add the options of the settings that the mechanisms among the arguments declare."""
        # The parser keeps its commands: what another line named is taken away again.
        self.params = [parameter for parameter in self.params if parameter not in self.own]
        present = {parameter.name for parameter in self.params}
        if "mechanism" in present:
            # Imported here: most commands have no mechanism.
            from taciturn.cli.options import own_options

            self.own = [option for option in own_options(args) if option.name not in present]
            self.params += self.own

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - the parser's
        """Run the command, unless one of its options would overwrite what another one names."""
        own = {option.name: ctx.params.pop(option.name, None) for option in self.own}
        # The parser hands a function what its signature has.
        token = OWN_VALUES.set(own)
        try:
            with command_paths(self._paths(ctx.params)):
                return super().invoke(ctx)
        finally:
            OWN_VALUES.reset(token)

    def _paths(self, values: Mapping[str, Any]) -> Iterator[UsedPath]:
        """Paths that the options name, by the ``PathUse`` in their annotations."""
        titles = {each.name: each for each in self.params}
        for name, (use, replaces) in path_options(self.callback).items():
            value = values.get(name)
            is_option = titles[name].param_type_name == "option"
            title = COMMAND_LINE.place(name) if is_option else name.upper()
            for path in value if isinstance(value, list | tuple) else [value]:
                if path is not None and not _is_query(path):
                    yield UsedPath(title, Path(path), use, name, replaces, option=True)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write the description, and the examples as they are."""
        text, _, examples = inspect.cleandoc(self.help or "").partition(f"\n\n{EXAMPLES}\n")
        formatter.write_paragraph()
        formatter.write_text(text)
        if examples:
            with formatter.section(EXAMPLES.removesuffix(":")):
                for example in inspect.cleandoc(examples).split("\n\n"):
                    formatter.write(f"  {' '.join(example.split())}\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write the arguments, then the options, of the long help by panel."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                name, words = record
                panels.setdefault(self._panel(parameter), []).append((_plain(name), words))
        if self._hidden():
            panels["Options"].append((HELP_ALL, "Show every option and exit."))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows, col_max=34)

    def _panel(self, parameter: Any) -> str:  # noqa: ANN401
        if parameter.param_type_name == "argument":
            return "Arguments"
        return (self.shows_all and getattr(parameter, "rich_help_panel", None)) or "Options"

    def _hidden(self) -> list[Any]:
        return [parameter for parameter in self.params if getattr(parameter, "hidden", False)]


def path_options(callback: Any) -> dict[str, tuple[PathUse, str]]:  # noqa: ANN401 - a command
    """Options of a command that name files: what happens to them, and the setting replaced."""
    found = {}
    for name, parameter in inspect.signature(callback, eval_str=True).parameters.items():
        notes = getattr(parameter.annotation, "__metadata__", ())
        replaces = [note.setting for note in notes if isinstance(note, Replaces)]
        for use in (note for note in notes if isinstance(note, PathUse)):
            found[name] = (use, "".join(replaces))
    return found


def _is_query(value: object) -> bool:
    # Imported here: the help does not need it.
    from taciturn.data.addresses import is_select

    return isinstance(value, str) and is_select(value)


def _plain(name: str) -> str:
    """The option with a plain type: ``--vary <list[str]>`` as ``--vary <text>``."""
    name = re.sub(r"<list\[(\w+)\]>", lambda match: f"<{match[1].lower()}>", name)
    return name.replace("<str>", "<text>").replace("<int range>", "<int>")
