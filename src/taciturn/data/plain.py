"""Plain data: rules to and from what JSON can hold, every key and value checked on the way in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from taciturn.data.readings import Reading
from taciturn.data.rules import BinnedRule, CategoricalRule, NumericRule, Rule
from taciturn.data.transforms import Transform
from taciturn.errors import ConfigError, nearest

_KINDS: dict[type[Rule], str] = {
    NumericRule: "numeric",
    CategoricalRule: "categorical",
    BinnedRule: "binned",
}
# What the rules of former versions had, where that is not what today's have.
_FORMER: dict[int, dict[str, tuple[str, ...]]] = {
    1: {
        "numeric": ("column", "impute", "center", "scale", "clip"),
        "categorical": ("column", "levels", "dropped", "centers", "scales", "clip"),
    },
    2: {"binned": ("column", "edges", "impute", "missing", "clip", "reading")},
    3: {"binned": ("column", "edges", "impute", "missing", "clip", "reading", "shares", "padding")},
}


def rule_to_json(rule: Rule) -> dict[str, Any]:
    """A rule as plain data."""
    record: dict[str, Any] = {"kind": _KINDS[type(rule)]}
    for entry in fields(rule):
        value = getattr(rule, entry.name)
        if isinstance(value, Reading | Transform):
            value = {part.name: getattr(value, part.name) for part in fields(value)}
        record[entry.name] = _plain(value)
    return record


def _plain(value: Any) -> Any:  # noqa: ANN401 - what JSON can hold
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return list(value) if isinstance(value, tuple) else value


def rule_from_json(data: object, where: str, *, version: int | None = None) -> Rule:
    """The rule that ``rule_to_json`` wrote; ``version`` is that of a former preparation."""
    kind = str(data.get("kind")) if isinstance(data, dict) else ""
    former = _FORMER.get(version or 0, {})
    known = [*former] if version == 1 else [*_KINDS.values()]
    if kind not in known:
        raise ConfigError("a rule has no known kind", where=where, hint=nearest(kind, known))
    rule = next(cls for cls, name in _KINDS.items() if name == kind)
    names = former.get(kind) or tuple(entry.name for entry in fields(rule))
    record = record_of(data, ("kind", *names), where)
    # Of categories "missing" names a level; elsewhere it is a switch.
    read = {**_READ, "missing": _optional_text} if kind == "categorical" else _READ
    values = {name: read[name](record[name], f"{where}, {name}") for name in names}
    if values.pop("padding", 0):
        raise ConfigError(
            "its bins were merged by labels, which was removed",
            where=where,
            hint="train again, with bins at given edges",
        )
    return rule(**values)


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


def _numbers(value: object, where: str) -> tuple[float, ...]:
    return tuple(_number(part, where) for part in list_of(value, where))


def _texts(value: object, where: str) -> tuple[str, ...]:
    return tuple(text_of(part, where) for part in list_of(value, where))


def _optional_text(value: object, where: str) -> str | None:
    return None if value is None else text_of(value, where)


def _reading(value: object, where: str) -> Reading:
    record = record_of(value, ("kind", "format"), where)
    kind: Any = text_of(record["kind"], f"{where}, kind")
    return Reading(kind, _optional_text(record["format"], f"{where}, format"))


def _transform(value: object, where: str) -> Transform | None:
    if value is None:
        return None
    record = record_of(value, ("kind", "power", "knots", "ranks"), where)
    kind: Any = text_of(record["kind"], f"{where}, kind")
    return Transform(
        kind,
        _number(record["power"], f"{where}, power"),
        _numbers(record["knots"], f"{where}, knots"),
        _numbers(record["ranks"], f"{where}, ranks"),
    )


def _switch(value: object, where: str) -> object:
    if not isinstance(value, bool):
        raise ConfigError("true or false must stand here", where=where, hint="write the file again")
    return value


def _count(value: object, where: str) -> int:
    if type(value) is not int:
        raise ConfigError(
            "a whole number must stand here", where=where, hint="write the file again"
        )
    return value


_READ: dict[str, Callable[[object, str], Any]] = {
    "column": text_of,
    "impute": _optional_number,
    "center": _number,
    "scale": _number,
    "clip": _optional_number,
    "lower": _optional_number,
    "upper": _optional_number,
    "transform": _transform,
    "missing": _switch,
    "reading": _reading,
    "levels": _texts,
    "dropped": _optional_text,
    "centers": _numbers,
    "scales": _numbers,
    "unknown": _optional_text,
    "average": _numbers,
    "edges": _numbers,
    "shares": _numbers,
    "padding": _count,
}
