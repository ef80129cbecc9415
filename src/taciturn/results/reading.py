"""Results read from their JSON records; ``taciturn.results.serialise`` writes them.

**Guarantee.** ``read(type(result), record_of(result))`` equals the result, but for NaN, which
equals nothing. What is not such a record raises; no key is ignored and none is made up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin
from typing import get_type_hints as type_hints

from taciturn.errors import ConfigError, DataError
from taciturn.results.serialise import AGREED, FINGERPRINTS, OWN_KEYS, Inlined
from taciturn.settings.agreement import Agreement
from taciturn.settings.mechanism_settings import FIELD
from taciturn.settings.removed import Kind, former_name
from taciturn.settings.schema import Settings

PLAIN: Final[dict[Any, tuple[str, str]]] = {
    str: ("string", "a text"),
    int: ("integer", "a whole number"),
    bool: ("boolean", "true or false"),
}
"""Plain types: the name in a schema, and in an error."""

T = TypeVar("T")


def read(kind: type[T], record: object, place: str = "") -> T:
    """Read a dataclass from its JSON record; raise DataError with the invalid field.

    ``place`` is where the record lies in a larger one, for the error. Keys that only earlier
    versions wrote (``removed_keys`` of the dataclass) are left out.

    >>> from taciturn.numerics.metrics import AddedAuc
    >>> read(AddedAuc, {"auc": 0.5, "low": "-inf", "high": "inf"})
    AddedAuc(auc=0.5, low=-inf, high=inf)
    """
    if not isinstance(record, Mapping):
        raise refusal(place, "is not an object")
    known = _keys(kind) | {*getattr(kind, "removed_keys", ())}  # type: ignore[arg-type]
    if unknown := [name for name in record if name not in known]:
        problem = refusal(place, f"has a part that is not known: {unknown[0]}")
        raise _former_key(unknown[0]) or problem
    return _read_fields(kind, record, place)


def _former_key(name: str) -> DataError | None:
    entry = former_name(Kind.RECORD, "", name)
    if entry is None or entry.new is None:
        return None
    return DataError(
        f"this is a result of an earlier version: {entry.message(name)}",
        hint=f"run the command again, or rename the key to {entry.new.replace('-', '_')}",
    )


def _read_fields(
    kind: type[T], record: Mapping[str, Any], place: str, inlined: Inlined = OWN_KEYS
) -> T:
    values: dict[str, Any] = {}
    for field, hint in typed_fields(kind):  # type: ignore[arg-type]  # a class is hashable
        name, marks = inlined.key(field), field.metadata
        if hint is Agreement:
            values[field.name] = _read_agreement(record, place)
        elif "inline" in marks:
            values[field.name] = _read_fields(hint, record, place, marks["inline"])
        elif name in record:
            nothing = "empty" in marks and record[name] == {}
            value = None if nothing else _read(hint, record[name], _within(place, name))
            values[field.name] = value
        elif not inlined.omits(field) and field.default is MISSING:
            raise refusal(place, f"has no {name}")
    return kind(**values)


def _within(place: str, name: str) -> str:
    return f"{place}.{name}".lstrip(".")


def _read_agreement(record: Mapping[str, Any], place: str) -> Agreement:
    """An agreement of the keys that a simulation sets; records of earlier versions lack some."""
    if "solver" not in record:
        raise refusal(place, "has no solver")
    given = {name: record[name] for name in AGREED if record.get(name) is not None}
    # Read as they are: the package that declares them may not be installed here.
    declared = given.pop(FIELD, None)
    if declared is not None:
        declared = _read(Mapping[str, object], declared, _within(place, FIELD))
    usual = {name: Settings.model_fields[name].default for name in ("feature_bits", "residue_bits")}
    try:
        agreement = Agreement.from_mapping({**usual, **given, "parties": record.get(FINGERPRINTS)})
    except ConfigError as problem:
        raise refusal(_within(place, problem.setting), f"is refused: {problem.message}") from None
    return agreement.model_copy(update={FIELD: declared})


def _read(hint: Any, value: Any, place: str) -> Any:  # noqa: ANN401 - any type of a field
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        options = [option for option in arguments if option is not NoneType]
        # Of several dataclasses, the one that knows all keys of the record; else the first.
        given = {*value} if isinstance(value, Mapping) else set()
        known = (
            (one, _keys(one)) for one in options if isinstance(one, type) and is_dataclass(one)
        )
        fitting = (one for one, keys in known if given <= keys)
        hint = next(fitting, options[0])
        return None if value is None else _read(hint, value, place)
    if is_dataclass(hint):
        return read(hint, value, place)  # type: ignore[arg-type]  # a class, as every hint
    if hint is float:
        return _number(value, place)
    if origin is tuple and isinstance(value, list):
        kinds = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        if len(kinds) != len(value):
            raise refusal(place, f"has {len(value)} parts, not {len(kinds)}")
        parts = enumerate(zip(kinds, value, strict=True))
        return tuple(_read(kind, item, f"{place}[{number}]") for number, (kind, item) in parts)
    if origin is Mapping and isinstance(value, Mapping):
        return {name: _read(arguments[1], item, f"{place}.{name}") for name, item in value.items()}
    if hint is object or (origin is Literal and value in arguments):
        return value
    if (
        isinstance(hint, type)
        and issubclass(hint, Enum)
        and value in [member.value for member in hint]
    ):
        return hint(value)
    # The type itself: true is no number, although Python counts it among them.
    if hint in PLAIN and type(value) is hint:
        return value
    one_of = f"one of {', '.join(map(str, arguments))}"
    words = one_of if origin is Literal else PLAIN.get(hint, ("", "of its kind"))[1]
    raise refusal(place, f"is not {words}")


def _number(value: Any, place: str) -> float:  # noqa: ANN401 - whatever the record holds
    if value is None:
        return math.nan
    if value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise refusal(place, "is not a number")


def refusal(place: str, problem: str) -> DataError:
    """The error for a record that is no result: which part of it, and what is wrong there."""
    return DataError(
        f"this is not a result of taciturn: {place or 'it'} {problem}",
        hint="taciturn's commands print results as JSON",
    )


@cache
def _keys(kind: Any) -> frozenset[str]:  # noqa: ANN401 - any dataclass
    return frozenset(_each_key(kind, OWN_KEYS))


def _each_key(kind: Any, inlined: Inlined) -> Iterator[str]:  # noqa: ANN401 - any dataclass
    for field, hint in typed_fields(kind):
        if hint is Agreement:
            yield from (*AGREED, FINGERPRINTS)
        elif "inline" in field.metadata:
            yield from _each_key(hint, field.metadata["inline"])
        else:
            yield inlined.key(field)


@cache
def typed_fields(kind: Any) -> list[tuple[Field[Any], Any]]:  # noqa: ANN401 - any dataclass
    """The fields of a dataclass, each with its type."""
    hints = type_hints(kind)
    return [(field, hints[field.name]) for field in fields(kind)]
