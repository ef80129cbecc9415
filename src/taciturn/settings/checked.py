"""Frozen models that refuse unknown keys and wrong values, and the kinds of value they share.

``Setting``: the one declaration of a setting, beside its type and its default in a model.

The options of the commands, the sections of a party's file, the files to begin with, the parameters
of the estimator and the tables of ``docs/config.md`` are made from it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from inspect import cleandoc, get_annotations, getsource
from itertools import pairwise
from types import ModuleType
from typing import Annotated, Any, ClassVar, Self, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from taciturn.errors import ConfigError, nearest_setting, rendering_errors_as
from taciturn.output_paths import PathUse
from taciturn.setting_syntax import Hint, SettingSyntax, hyphenated
from taciturn.settings.removed import refuse_former_key


class Scope(StrEnum):
    """Section of every party's file for a setting; none if only simulations have it."""

    SIMULATION = ""
    AGREEMENT = "agreement"
    STUDY = "study"
    DATA = "data"
    LINK = "link"
    STATE = "state"
    OUTPUT = "output"
    PRIVACY = "privacy"
    COMPUTE = "compute"


class Panel(StrEnum):
    """Heading of the setting in a command's help."""

    DATA = "Data"
    MODEL = "Model"
    PROTECTION = "Protection"
    RUN = "Run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Declaration of a setting: a field of a model that has a ``setting()`` as its default.

    The text below the field is the ``help``, its first paragraph, and the ``detail``.

    ``in_file`` is what a party's file says in place of ``help``, where it means another thing
    there, and ``file_default`` its default, where that is not the simulation's. ``example`` is a
    value that makes sense, where there is no default or it does little. ``refused`` says why a
    party's file may not hold it. ``owner`` is the role whose file alone may hold it; empty for
    either. ``scope`` is a ``Scope``, or the name of a job's section; by default the model's.
    ``both_ways`` is a switch that may be on by itself: ``--x`` and ``--no-x``. ``path`` is what
    happens to the file that the value names.
    """

    name: str
    model: type[BaseModel]
    scope: str
    panel: Panel | None = None
    in_file: str = ""
    file_default: Any = None
    example: Any = None
    refused: str = ""
    owner: str = ""
    both_ways: bool = False
    path: PathUse | None = None

    @property
    def help(self) -> str:
        """What the setting is, in one sentence."""
        return self._paragraph(0)

    @property
    def detail(self) -> str:
        """What else the page on settings says; mostly empty."""
        return self._paragraph(1)

    @property
    def plain_help(self) -> str:
        """The help without marks, for a terminal."""
        return self.help.replace("`", "")

    @property
    def comment(self) -> str:
        """Comment on the setting in a party's file."""
        return (self.in_file or self.help).replace("`", "")

    def _paragraph(self, number: int) -> str:
        text = _texts(sys.modules[self.model.__module__]).get((self.model.__name__, self.name), "")
        paragraphs = text.split("\n\n")
        return " ".join(paragraphs[number].split()) if number < len(paragraphs) else ""


def setting(default: Any = None, **facts: Any) -> Any:  # noqa: ANN401 - as pydantic's Field
    """A field's default, ``...`` for none, and the facts of its ``Setting``."""
    return Field(default, json_schema_extra={_FACTS: facts})


_FACTS = "setting"


def declared(*models: type[Checked]) -> dict[str, Setting]:
    """The settings that models declare, by name; the first that declares one decides."""
    return {name: found for model in reversed(models) for name, found in _declared(model).items()}


@cache
def _declared(model: type[Checked]) -> dict[str, Setting]:
    found = {}
    for name, field in model.model_fields.items():
        extra = field.json_schema_extra
        if isinstance(extra, dict) and _FACTS in extra:
            owner: Any = next(base for base in model.__mro__ if name in get_annotations(base))
            facts: Any = {"scope": owner.section, **cast("dict[str, Any]", extra[_FACTS])}
            found[name] = Setting(name=name, model=owner, **facts)
    return found


@cache
def _texts(module: ModuleType) -> dict[tuple[str, str], str]:
    """The text below each field of a module's classes, by class and field, from its source.

    pydantic would read them whenever a class is made, which takes a tenth of a second at every
    start of a command; a session without an error needs none.
    """
    texts = {}
    nodes = ast.parse(getsource(module)).body
    for model in (node for node in nodes if isinstance(node, ast.ClassDef)):
        for field, below in pairwise(model.body):
            match field, below:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                    texts[model.name, name] = cleandoc(text)
    return texts


PositiveInt = Annotated[int, Field(ge=1)]
# Adding zero turns -0.0 into 0.0: equal settings have equal texts.
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False), AfterValidator(lambda v: v + 0.0)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _class_weight(value: object) -> object:
    parts = value.split(",") if isinstance(value, str) else value
    try:
        zero, one = (float(part) + 0.0 for part in parts)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        zero, one = -1.0, -1.0
    if not (0 <= zero <= 1 and 0 <= one <= 1 and zero + one > 0):
        raise ValueError(
            "must be two numbers from 0 to 1, of label 0 and of label 1, such as 0.2,1; "
            "one of them is above 0"
        )
    return zero, one


# What a row of label 0 and one of label 1 counts. Residues stay within [-1, 1].
ClassWeight = Annotated[tuple[float, float], BeforeValidator(_class_weight)]


class Checked(BaseModel):
    """A frozen model that refuses unknown keys and wrong types with a ``ConfigError``.

    ``section`` is the section of a party's file that it reads, empty where it reads none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    section: ClassVar[str] = ""

    @classmethod
    def from_mapping(
        cls, values: Mapping[str, Any], *, syntax: SettingSyntax | None = None
    ) -> Self:
        """Check ``values``; keys may be spelled with hyphens or underscores.

        ``syntax`` spells them in an error; None leaves it to the caller.
        """
        with rendering_errors_as(syntax, cls.section):
            return cls.model_validate(cls.named(values, syntax=syntax))

    @classmethod
    def named(
        cls, values: Mapping[str, Any], *, syntax: SettingSyntax | None = None
    ) -> dict[str, Any]:
        """The same values under the names of the fields."""
        return named(values, cls.model_fields, syntax, cls.section)

    def __init__(self, **values: object) -> None:
        try:
            super().__init__(**values)
        except ValidationError as problem:
            raise _explain(problem, type(self)) from None


def named(
    values: Mapping[str, Any],
    known: Collection[str],
    syntax: SettingSyntax | None = None,
    section: str = "",
) -> dict[str, Any]:
    """Values by the names of settings, from keys that are spelled with hyphens or underscores.

    ``section`` is the section of a party's file that holds them, for keys of earlier versions.

    >>> named({"batch-size": 16}, ["batch_size"])
    {'batch_size': 16}
    """
    plain: dict[str, Any] = {}
    with rendering_errors_as(syntax, section):
        for key, value in values.items():
            name = key.replace("-", "_")
            if name not in known:
                refuse_former_key(key, section, syntax)
                raise ConfigError(
                    f"unknown setting {key}",
                    setting=name,
                    where="" if syntax is None else syntax.within(section).source,
                    hint=nearest_setting(key, known),
                )
            if name in plain:
                raise ConfigError(f"setting {hyphenated(name)} is given twice", setting=name)
            plain[name] = value
    return plain


def require(
    sound: object, problem: str, setting: str = "", hint: str = "", **values: object
) -> None:
    """Raise ``ConfigError`` about a setting unless it is ``sound``.

    ``hint`` is the template of a ``Hint`` with these values.
    """
    if not sound:
        raise ConfigError(problem, setting=setting, hint=Hint(hint, **values))


def _explain(problem: ValidationError, kind: type[Checked]) -> ConfigError:
    # One at a time: a wrong setting often makes others wrong.
    first = problem.errors(include_url=False, include_context=False)[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    reason = first["msg"].removeprefix("Value error, ")
    declaration = declared(kind).get(name)
    hint = Hint(f"{{{name}}}: {{0}}", declaration.comment) if declaration else ""
    if first["type"] == "missing":
        return ConfigError(f"setting {hyphenated(name)} is missing", setting=name, hint=hint)
    # Our own validators say what is wrong with their value.
    given = "" if first["type"] == "value_error" else f", not {first['input']!r}"
    subject = f"setting {hyphenated(name)}: " if name else ""
    return ConfigError(f"{subject}{reason[:1].lower()}{reason[1:]}{given}", setting=name, hint=hint)
