"""The options that commands share, made from the declarations of the settings.

Every option is a field of ``Settings`` and a key of the TOML file of the same name. An option that
is given overrides the file's key; one that is not is taken from the file, or else the default.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from taciturn import extensions
from taciturn.cli.help import OWN_VALUES
from taciturn.errors import rendering_errors_as
from taciturn.output_paths import PathUse, UsedPath, require_no_overwrite
from taciturn.setting_syntax import COMMAND_LINE, CommandLine, hyphenated, plain_value
from taciturn.settings.checked import Checked, Panel, Setting, declared
from taciturn.settings.mechanism_settings import declared_by
from taciturn.settings.schema import OWN_DATA_DEFAULTS, Settings, settings_file

ESSENTIAL = ("data", "alice_data", "id", "label", "alice_columns", "dataset", "mechanism", "seed")
"""The shared options of a command's short help, in its order; ``--help-all`` shows all of them."""


def _option(name: str, declaration: Setting, *, essential: bool) -> Any:  # noqa: ANN401 - a type form
    spelled = f"--{hyphenated(name)}"
    if declaration.both_ways:
        spelled += f"/--no-{hyphenated(name)}"
    words = f"{declaration.plain_help.removesuffix('.')}{_default(name)}.{_added(name)}"
    panel = str(declaration.panel)
    option = typer.Option(spelled, help=words, rich_help_panel=panel, hidden=not essential)
    return Annotated[_kind(name) | None, option]


def _added(name: str) -> str:
    """The values of a setting that other packages add; nothing of them is imported."""
    added = extensions.listed(extensions.MECHANISMS) if name == "mechanism" else ""
    return f" Of other packages: {added}." if added else ""


def _kind(name: str, model: type[Checked] = Settings) -> Any:  # noqa: ANN401 - a type form
    """Parser type of an option: a number, a switch, or a text that ``Settings`` validates."""
    types = {_plain(part) for part in _parts(model.model_fields[name].annotation)}
    return next((kind for kind in (bool, int, float) if types == {kind}), str)


def _parts(annotation: Any) -> list[Any]:  # noqa: ANN401 - a type form
    return [part for part in get_args(annotation) if part is not type(None)] or [annotation]


def _plain(kind: Any) -> Any:  # noqa: ANN401 - a type form
    return kind.__origin__ if hasattr(kind, "__metadata__") else kind


def _default(name: str) -> str:
    """Default value in brackets, empty if there is none; mechanisms describe their own."""
    default = getattr(OWN_DATA_DEFAULTS, name, None)
    if default is not None:
        value = "on" if default is True else plain_value(default)
        return f" (default: {value}; each dataset has its own)"
    default = None if name == "mechanism" else Settings.model_fields[name].default
    return "" if default is None or default is False else f" (default: {plain_value(default)})"


def _shared() -> dict[str, Any]:
    declarations = declared(Settings)
    settings = {
        name: _option(name, declaration, essential=name in ESSENTIAL)
        for panel in Panel
        for name, declaration in declarations.items()
        if declaration.panel is panel
    }
    run = str(Panel.RUN)
    options = {
        **settings,
        "config": Annotated[
            Path | None,
            PathUse.READ,
            typer.Option(
                help="A TOML file with any of these settings.", rich_help_panel=run, hidden=True
            ),
        ],
        "record": Annotated[
            Path | None,
            PathUse.WRITTEN,
            typer.Option(
                help="Write the transcript to this file.", rich_help_panel=run, hidden=True
            ),
        ],
    }
    return {name: options[name] for name in sorted(options, key=_place)}


def _place(name: str) -> int:
    """Place among the options: the essential ones first, the others as they are declared."""
    return ESSENTIAL.index(name) if name in ESSENTIAL else len(ESSENTIAL)


SHARED: Mapping[str, Any] = _shared()


def own_options(arguments: Sequence[str]) -> list[Any]:
    """Options for the settings that mechanisms of other packages declare, if these name one.

    Only a package whose mechanism is named is imported.
    """
    words = {word for argument in arguments for word in re.split("[=,:]", argument)}
    kinds: dict[str, Any] = {}
    for mechanism in extensions.names(extensions.MECHANISMS):
        if mechanism not in words or (model := declared_by(mechanism)) is None:
            continue
        for name, setting in declared(model).items():
            spelled, kind = f"--{hyphenated(name)}", _kind(name, model)
            if kind is bool:
                spelled += f"/--no-{hyphenated(name)}"
            text = f"{mechanism}: {setting.plain_help}"
            option = typer.Option(spelled, help=text, rich_help_panel="Protection")
            kinds[name] = Annotated[kind | None, option]

    def declare(**values: object) -> None:
        """Take the options, for the parser to make them."""

    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in kinds.items()
    ]
    declare.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    declare.__annotations__ = kinds
    app = typer.Typer(add_completion=False)
    app.command()(declare)
    return [each for each in typer.main.get_command(app).params if each.name in kinds]


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command with the shared options; it receives those given in ``settings``."""
    own = [
        parameter
        for parameter in inspect.signature(command, eval_str=True).parameters.values()
        if parameter.name != "settings"
    ]
    kinds = dict(SHARED)
    if any(parameter.name == "mechanisms" for parameter in own):
        # In the short help of ``compare`` two options of nearly one name would be confused.
        setting = declared(Settings)["mechanism"]
        kinds["mechanism"] = _option("mechanism", setting, essential=False)
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in kinds.items()
    ]

    @wraps(command)
    def run(**values: object) -> None:
        others = {parameter.name: values.pop(parameter.name) for parameter in own}
        settings, syntax = merged({**values, **OWN_VALUES.get()})
        with rendering_errors_as(syntax):
            require_no_overwrite(_paths(settings, syntax))
            command(settings=settings, **others)

    keyword_only = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    # The essential options are those of the table and the protection, not of this one command.
    parameters = shared + keyword_only
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del run.__dict__["__wrapped__"]
    return run


def _paths(settings: Mapping[str, object], syntax: CommandLine) -> Iterator[UsedPath]:
    """Files that settings name, from options or a file of settings."""
    for name, declaration in declared(Settings).items():
        value = settings.get(name)
        if declaration.path is not None and isinstance(value, str):
            place = syntax.place(name)
            yield UsedPath(place, Path(value), declaration.path, name, option=True)


def merged(values: dict[str, object]) -> tuple[dict[str, object], CommandLine]:
    """Command-line options merged over the file's keys, and the keys that came from the file."""
    config = values.pop("config", None)
    given = {key: value for key, value in values.items() if value is not None}
    if not isinstance(config, Path):
        return given, COMMAND_LINE
    base = Settings.read_toml(config)
    syntax = CommandLine(settings_file(config), frozenset(base.keys() - given.keys()))
    return {**base, **given}, syntax
