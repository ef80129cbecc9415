"""``Setting``: the declaration of a setting, next to its type and default in a model.

The options of the commands, the sections of a party's file, the files to begin with, the parameters
of the estimator and the tables of ``docs/config.md`` are made from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import BaseModel


class Scope(StrEnum):
    """Section of a party's file for the setting; none if only simulations have it."""

    SIMULATION = ""
    AGREEMENT = "agreement"
    STUDY = "study"
    DATA = "data"
    LINK = "link"
    STATE = "state"
    OUTPUT = "output"
    PRIVACY = "privacy"
    WOE = "woe"
    COMPUTE = "compute"
    SERVE = "serve"


class Panel(StrEnum):
    """Heading of the setting in a command's help."""

    DATA = "Data"
    MODEL = "Model"
    PROTECTION = "Protection"
    RUN = "Run"


@dataclass(frozen=True, slots=True)
class Setting:
    """Declaration of a setting, next to its type and default.

    ``in_file`` is what a party's file says in place of ``help``, where it means another thing
    there, and ``file_default`` its default, where that is not the simulation's. ``example`` is a
    value that makes sense, where there is no default or it does little. ``refused`` says why a
    party's file may not hold it. ``owner`` is the role whose file alone may hold it; empty for
    either. ``both_ways`` is a switch that may be on by itself: ``--x`` and ``--no-x``.
    """

    help: str
    scope: Scope
    panel: Panel | None = None
    detail: str = ""
    in_file: str = ""
    file_default: Any = None
    example: Any = None
    refused: str = ""
    owner: str = ""
    both_ways: bool = False

    @property
    def plain_help(self) -> str:
        """The help without marks, for a terminal."""
        return self.help.replace("`", "")

    @property
    def comment(self) -> str:
        """Comment on the setting in a party's file."""
        return (self.in_file or self.help).replace("`", "")


def declared(*models: type[BaseModel]) -> dict[str, Setting]:
    """The settings that models declare, by name; the first that declares one decides."""
    return {
        name: setting
        for model in reversed(models)
        for name, field in model.model_fields.items()
        for setting in field.metadata
        if isinstance(setting, Setting)
    }
