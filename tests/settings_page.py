"""The tables of ``docs/config.md``, made from the declarations of the settings.

``python -m tests.settings_page`` writes them anew; a test compares.
"""

from __future__ import annotations

import re
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from taciturn.party.config import DERIVED, SECTIONS, file_default, job_sections, section_settings
from taciturn.setting_syntax import hyphenated
from taciturn.settings.checked import Scope, Setting, declared
from taciturn.settings.schema import Newton, Settings, Sgd
from taciturn.settings.study import Study

ALL_SECTIONS = {**SECTIONS, **job_sections()}
PAGE = Path(__file__).resolve().parents[1] / "docs" / "config.md"
HEAD = "| key | type | default | meaning |\n|---|---|---|---|\n"
WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false"}
# What a file may hold beside the agreement has the type of a simulation's setting, or a narrower.
DERIVED_TYPES = {
    **dict.fromkeys(("l_rr", "alice_columns", "rows"), "whole number"),
    "file": "text",
    "signed": "true or false",
}
# The solver is one object of an agreement, and several keys of a file.
STEPS = ("solver", *Newton.model_fields, *Sgd.model_fields)
# Tables that have other keys than columns.
OTHER_KEYS = {"parties": "by name"}


def word(kind: Any) -> str:
    """A type in words."""
    origin = get_origin(kind)
    if origin is Annotated:
        return word(get_args(kind)[0])
    if origin is Literal:
        return ", ".join(f'`"{value}"`' for value in get_args(kind))
    if origin in (Union, types.UnionType):
        return " or ".join(word(part) for part in get_args(kind) if part is not type(None))
    if origin is dict:
        return "by column"
    if origin is tuple and get_args(kind)[1:] == (...,):
        return f"list of {word(get_args(kind)[0])}"
    if origin is tuple:
        assert {word(part) for part in get_args(kind)} == {"number"}
        return f"list of {('no', 'one', 'two')[len(get_args(kind))]} numbers"
    return WORDS[kind]


def shown(value: Any) -> str:
    """A default as the file would hold it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


def row(section: str, name: str, setting: Setting) -> str:
    field = ALL_SECTIONS[section].model_fields.get(name)
    if name in STEPS and section == "agreement":
        field = Settings.model_fields[name]
    kind = DERIVED_TYPES[name] if field is None else OTHER_KEYS.get(name, word(field.annotation))
    required = field is not None and field.is_required() and section != "agreement"
    default = "required" if required else shown(file_default(section, name))
    return line(name, kind, default, setting)


def line(name: str, kind: str, default: str, setting: Setting) -> str:
    meaning = f"{setting.in_file or setting.help} {setting.detail}".strip().removesuffix(".")
    return f"| `{hyphenated(name)}` | {kind} | {default} | {meaning} |\n"


def table(section: str) -> str:
    """The table of one section of a party's file."""
    settings = section_settings(section)
    names = [name for name in settings if name not in DERIVED]
    if len(names) < len(settings):
        # Beside the size that is derived from them.
        after = names.index("subset_size") + 1
        names[after:after] = DERIVED
    return HEAD + "".join(row(section, name, settings[name]) for name in names)


def study_table() -> str:
    """The table of what a study may hold."""
    settings, fields = declared(Study), Study.model_fields
    kinds = {"class_weight": "list of pairs"}
    return HEAD + "".join(
        line(
            name,
            kinds.get(name) or word(fields[name].annotation),
            shown(fields[name].default),
            settings[name],
        )
        for name in settings
    )


def simulation_table() -> str:
    """The table of what only a simulation takes."""
    settings = declared(Settings)
    names = [name for name in settings if settings[name].scope is Scope.SIMULATION]
    fields = Settings.model_fields
    return HEAD + "".join(
        line(name, word(fields[name].annotation), shown(fields[name].default), settings[name])
        for name in names
    )


def render(page: str) -> str:
    """The page with its tables made anew."""
    tables = {f"[{section}]": table(section) for section in ALL_SECTIONS}
    tables["[study]"] = study_table()
    chapters = re.split(r"(?m)^(?=## )", page)
    for heading, made in {**tables, "Simulations": simulation_table()}.items():
        (place,) = [at for at, text in enumerate(chapters) if text.startswith(f"## {heading}\n")]
        before, rows = re.split(r"(?m)^(?=\| key \|)", chapters[place])
        after = re.sub(r"\A(\|.*\n)+", "", rows)
        chapters[place] = before + made + after
    return "".join(chapters)


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
