"""JSON schemas of results, made from their types."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin
from typing import get_type_hints as type_hints

from taciturn.results.reading import PLAIN, typed_fields
from taciturn.results.serialise import (
    AGREED,
    AGREED_OMITTED,
    FINGERPRINTS,
    OWN_KEYS,
    Inlined,
)
from taciturn.settings.agreement import Agreement
from taciturn.settings.mechanism_settings import FIELD
from taciturn.settings.schema import Newton, Sgd, SolverName

NUMBER: Final[dict[str, Any]] = {
    "description": "A number; the text inf where it is infinite, null where there is none.",
    "anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}, {"type": "null"}],
}


def properties(
    kind: type, shared: dict[str, Any], inlined: Inlined = OWN_KEYS
) -> tuple[dict[str, Any], list[str]]:
    """The keys of a dataclass's record with their JSON schemas, and which of them are always there.

    ``shared`` takes the schemas of the types that it mentions, by their names.
    """
    schemas: dict[str, Any] = {}
    required: list[str] = []
    for field, hint in typed_fields(kind):
        if "inline" in field.metadata:
            inner, always = (
                _agreed(shared)
                if hint is Agreement
                else properties(hint, shared, field.metadata["inline"])
            )
            schemas |= inner
            required += always
            continue
        schemas[inlined.key(field)] = _schema(hint, shared, empty="empty" in field.metadata)
        required += [] if inlined.omits(field) else [inlined.key(field)]
    return schemas, required


def _agreed(shared: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The keys of an agreement with their schemas, and which of them are always there."""
    solvers = {
        name: hint | None
        for kind in (Newton, Sgd)
        for name, hint in type_hints(kind).items()
        if name in kind.model_fields
    }
    others = {"solver": SolverName, FIELD: Mapping[str, object] | None}
    hints: dict[str, Any] = {**type_hints(Agreement), **solvers, **others}
    schemas = {name: _schema(hints[name], shared) for name in AGREED}
    schemas[FINGERPRINTS] = _schema(Mapping[str, str], shared)
    return schemas, [name for name in AGREED if name not in AGREED_OMITTED]


def object_schema(kind: type, shared: dict[str, Any], **also: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """The JSON schema of a dataclass's record; ``also`` has keys that may be added to it."""
    known, required = properties(kind, shared)
    return {
        "description": (kind.__doc__ or "").partition("\n")[0],
        "type": "object",
        "properties": known | also,
        "required": required,
        "additionalProperties": False,
    }


def _schema(hint: Any, shared: dict[str, Any], *, empty: bool = False) -> dict[str, Any]:  # noqa: ANN401 - any type of a field
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is object:
        return {}
    if hint in PLAIN:
        return {"type": PLAIN[hint][0]}
    if origin in (Union, UnionType):
        options = [_schema(option, shared) for option in arguments if option is not NoneType]
        nothing = {"type": "object", "maxProperties": 0} if empty else {"type": "null"}
        return {"anyOf": [*options, *([nothing] if NoneType in arguments else [])]}
    if origin is tuple and arguments[-1] is Ellipsis:
        return {"type": "array", "items": _schema(arguments[0], shared)}
    if origin is tuple:
        parts = [_schema(part, shared) for part in arguments]
        return {"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _schema(arguments[1], shared)}
    if origin is Literal or issubclass(hint, Enum):
        return {"enum": list(arguments) or [member.value for member in hint]}
    name = "Number" if hint is float else hint.__name__
    if name not in shared:
        shared[name] = NUMBER if hint is float else object_schema(hint, shared)
    return {"$ref": f"#/$defs/{name}"}
