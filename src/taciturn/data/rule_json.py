"""Rules of a preparation as JSON, which a model file holds beside its weights."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from taciturn.data.binned_rule import BinnedRule
from taciturn.data.column_parsing import Reading
from taciturn.data.rules import CategoricalRule, NumericRule, Rule
from taciturn.data.transforms import Transform
from taciturn.errors import ConfigError, nearest

_RULES: dict[str, type[Rule]] = {
    "numeric": NumericRule,
    "categorical": CategoricalRule,
    "binned": BinnedRule,
}


def rule_to_json(rule: Rule) -> dict[str, Any]:
    """A rule as plain data."""
    kind = next(name for name, cls in _RULES.items() if cls is type(rule))
    return {"kind": kind, **_adapter(kind).dump_python(rule, mode="json")}


def rule_from_json(data: object, where: str) -> Rule:
    """Read the rule that ``rule_to_json`` wrote."""
    kind = str(data.get("kind")) if isinstance(data, dict) else ""
    if kind not in _RULES:
        raise ConfigError("a rule has no known kind", where=where, hint=nearest(kind, _RULES))
    values = dict(record_of(data, ("kind", *_names(_RULES[kind])), where))
    del values["kind"]
    for name, part in (("reading", Reading), ("transform", Transform)):
        if values.get(name) is not None:
            record_of(values[name], _names(part), f"{where}, {name}")
    try:
        # As JSON, in which a list may be a tuple, and nothing else is taken for another type.
        return _adapter(kind).validate_json(json.dumps(values), strict=True)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        place = ", ".join(str(part) for part in (where, *first["loc"]))
        raise ConfigError(first["msg"], where=place, hint="write the file again") from None


@cache
def _adapter(kind: str) -> TypeAdapter[Rule]:
    return TypeAdapter(_RULES[kind])


def _names(kind: Any) -> tuple[str, ...]:  # noqa: ANN401 - any dataclass
    return tuple(entry.name for entry in fields(kind))


def record_of(data: object, keys: tuple[str, ...], where: str) -> dict[str, Any]:
    """The value, if it is an object with exactly these keys; else ``ConfigError``."""
    if not isinstance(data, dict):
        raise ConfigError(
            f"{type(data).__name__} where an object is expected", where=where, hint="see to_json"
        )
    for key in data:
        if key not in keys:
            raise ConfigError(f"unknown key {key!r}", where=where, hint=nearest(str(key), keys))
    for key in keys:
        if key not in data:
            raise ConfigError(f"key {key!r} is missing", where=where, hint="write the file again")
    return data
