"""Checked settings from the arguments of the Python functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from taciturn.errors import ConfigError
from taciturn.setting_syntax import Hint
from taciturn.settings.checked import named
from taciturn.settings.mechanism_settings import collected
from taciturn.settings.removed import refuse_former_keyword
from taciturn.settings.schema import Settings
from taciturn.settings.signatures import SettingsOptions

P = ParamSpec("P")
T = TypeVar("T")


def refusing_former_keywords(function: Callable[P, T]) -> Callable[P, T]:
    """The function, which refuses keywords of earlier versions with a ConfigError."""
    known = inspect.signature(function).parameters
    name = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*given: P.args, **keywords: P.kwargs) -> T:
        for keyword in keywords.keys() - known.keys():
            refuse_former_keyword(keyword, name)
        return function(*given, **keywords)

    return checked


def given_options(options: SettingsOptions, function: Callable[..., object]) -> dict[str, object]:
    """The options by their settings' names, without those that are None, which means not given.

    Raises:
        ConfigError: One is neither a setting nor a parameter of the function.
    """
    parameters = [name for name in inspect.signature(function).parameters if name != "options"]
    for name in options.keys() - Settings.model_fields.keys():
        refuse_former_keyword(name, function.__name__)
    known = [*Settings.model_fields, *parameters]
    given = named(collected(options, known), known)
    return {name: value for name, value in given.items() if value is not None}


def record_target(record: str | Path | None, settings: Settings) -> Path | None:
    """Path of the transcript; raise ConfigError if there are several runs."""
    if record is not None and settings.seeds > 1:
        raise ConfigError(
            "a transcript holds one run", setting="record", hint=Hint("leave {seeds} out")
        )
    return None if record is None else Path(record)


def per_seed(settings: Settings) -> list[Settings]:
    """One run's settings for each seed; without a first seed they count from 0."""
    if settings.seeds == 1:
        return [settings]
    first = settings.seed or 0
    return [
        settings.model_copy(update={"seed": first + number}) for number in range(settings.seeds)
    ]
