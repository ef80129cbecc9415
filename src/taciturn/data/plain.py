"""Plain data: rules to and from what JSON can hold, every key and value checked on the way in."""

from __future__ import annotations

from typing import Any

from taciturn.data.rules import CategoricalRule, NumericRule, Rule
from taciturn.errors import ConfigError, nearest


def rule_to_json(rule: Rule) -> dict[str, Any]:
    """A rule as plain data.

    >>> rule_to_json(NumericRule("age"))["kind"]
    'numeric'
    """
    if isinstance(rule, NumericRule):
        return {
            "kind": "numeric",
            "column": rule.column,
            "impute": rule.impute,
            "center": rule.center,
            "scale": rule.scale,
            "clip": rule.clip,
        }
    return {
        "kind": "categorical",
        "column": rule.column,
        "levels": list(rule.levels),
        "dropped": rule.dropped,
        "centers": list(rule.centers),
        "scales": list(rule.scales),
        "clip": rule.clip,
    }


_NUMERIC_KEYS = ("kind", "column", "impute", "center", "scale", "clip")
_CATEGORICAL_KEYS = ("kind", "column", "levels", "dropped", "centers", "scales", "clip")


def rule_from_json(data: object, where: str) -> Rule:
    """The rule that ``rule_to_json`` wrote.

    Raises:
        ConfigError: If a key is unknown or missing, or a value is not what it must be.

    >>> rule_from_json(rule_to_json(NumericRule("age")), "rule 1").column
    'age'
    """
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind == "numeric":
        record = record_of(data, _NUMERIC_KEYS, where)
        return NumericRule(
            text_of(record["column"], f"{where}, column"),
            _optional_number(record["impute"], f"{where}, impute"),
            _number(record["center"], f"{where}, center"),
            _number(record["scale"], f"{where}, scale"),
            _optional_number(record["clip"], f"{where}, clip"),
        )
    if kind == "categorical":
        record = record_of(data, _CATEGORICAL_KEYS, where)
        dropped = record["dropped"]
        return CategoricalRule(
            text_of(record["column"], f"{where}, column"),
            tuple(
                text_of(v, f"{where}, levels")
                for v in list_of(record["levels"], f"{where}, levels")
            ),
            None if dropped is None else text_of(dropped, f"{where}, dropped"),
            tuple(_number(v, where) for v in list_of(record["centers"], f"{where}, centers")),
            tuple(_number(v, where) for v in list_of(record["scales"], f"{where}, scales")),
            _optional_number(record["clip"], f"{where}, clip"),
        )
    raise ConfigError(
        "a rule has no known kind",
        where=where,
        hint=nearest(str(kind), ("numeric", "categorical")),
    )


def record_of(data: object, keys: tuple[str, ...], where: str) -> dict[str, Any]:
    """An object with exactly these keys."""
    if not isinstance(data, dict):
        raise ConfigError(
            f"{type(data).__name__} where an object must stand", where=where, hint="see to_json"
        )
    for key in data:
        if key not in keys:
            raise ConfigError(f"unknown key {key!r}", where=where, hint=nearest(str(key), keys))
    for key in keys:
        if key not in data:
            raise ConfigError(f"key {key!r} is missing", where=where, hint="write the file again")
    return data


def list_of(value: object, where: str) -> list[object]:
    """A list."""
    if not isinstance(value, list):
        raise ConfigError("a list must stand here", where=where, hint="write the file again")
    return value


def text_of(value: object, where: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise ConfigError("text must stand here", where=where, hint="write the file again")
    return value


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError("a number must stand here", where=where, hint="write the file again")
    return float(value)


def _optional_number(value: object, where: str) -> float | None:
    return None if value is None else _number(value, where)
