"""docs/config.md says what the settings are: every key, its type, its default."""

from __future__ import annotations

import re
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel

from taciturn.deploy import config
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import Settings

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "config.md").read_text(encoding="utf-8")
SECTIONS: dict[str, type[BaseModel]] = {
    "agreement": Agreement,
    "data": config.DataSection,
    "link": config.LinkSection,
    "state": config.StateSection,
    "output": config.OutputSection,
    "privacy": config.PrivacySection,
}
WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false"}


def rows(section: str) -> dict[str, tuple[str, str, str]]:
    (chapter,) = re.findall(rf"^## \[{section}\]\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    lines = re.findall(r"^\| `([a-z0-9-]+)` \| (.*?) \| (.*?) \| (.*) \|$", chapter, re.M)
    assert len({name for name, *_ in lines}) == len(lines)
    return {name: (kind, default, meaning) for name, kind, default, meaning in lines}


def word(kind: Any) -> str:
    origin = get_origin(kind)
    if origin is Annotated:
        return word(get_args(kind)[0])
    if origin is Literal:
        return ", ".join(f'`"{each}"`' for each in get_args(kind))
    if origin in (Union, types.UnionType):
        (only,) = [each for each in get_args(kind) if each is not type(None)]
        return word(only)
    if origin is tuple:
        assert {word(each) for each in get_args(kind)} == {"number"}
        return f"list of {('no', 'one', 'two')[len(get_args(kind))]} numbers"
    return WORDS[kind]


def shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


def default(section: str, name: str) -> str:
    field = SECTIONS[section].model_fields[name]
    if section == "agreement":
        if name in config._DEFAULTS:
            return shown(config._DEFAULTS[name])
        # What the file leaves out comes from the settings, or else from the agreement itself.
        field = Settings.model_fields.get(name, field)
    return "required" if field.is_required() else shown(field.default)


def test_the_sections_are_the_ones_that_are_read():
    assert tuple(SECTIONS) == config.SECTIONS
    assert tuple(re.findall(r"^## \[([a-z]+)\]$", PAGE, re.M)) == config.SECTIONS


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_is_on_the_page_and_no_other(section):
    extra = config._DERIVED if section == "agreement" else ()
    known = {name.replace("_", "-") for name in (*SECTIONS[section].model_fields, *extra)}
    assert set(rows(section)) == known


@pytest.mark.parametrize("section", SECTIONS)
def test_types_and_defaults_are_the_true_ones(section):
    page = rows(section)
    for name, field in SECTIONS[section].model_fields.items():
        kind, given, meaning = page[name.replace("_", "-")]
        assert kind == word(field.annotation), name
        assert given == default(section, name), name
        assert len(meaning) > 5


def test_what_is_refused_is_named():
    for name in config._LOCAL_ONLY:
        assert f"`{name.replace('_', '-')}`" in PAGE
