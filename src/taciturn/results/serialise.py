"""Results as JSON records, and back: the one place that knows how a record spells a value.

A result is a frozen dataclass; its fields are the keys of its record, in their order. In a record
infinity is the text ``inf`` and what is not a number is null. Metadata of a field say the rest:

========  =========================================================================
INLINE    the field's own keys stand in the record, in place of one key for all
OMITTED   there is no key where the value is None
EMPTY     the record says ``{}`` where the value is None
key(...)  the record has another name for it
========  =========================================================================

For these, and for numbers that are none, pydantic's adapters have no spelling; hence by hand.

**Guarantee.** ``read(type(result), record_of(result))`` equals the result, but for NaN, which
equals nothing. What is not such a record raises; no key is ignored and none is made up.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import PurePath
from types import MappingProxyType, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Literal,
    Protocol,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
)
from typing import get_type_hints as type_hints

from taciturn.errors import DataError
from taciturn.extras import explained, is_installed
from taciturn.files import finite_json
from taciturn.settings.removed import Kind, former_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from taciturn.report.blocks import Block, Page
    from taciturn.results.figures import Curve, Part

OWN_DATA = "own data"


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of a result; unknown fields are None."""

    data: str | None = None
    mechanism: str | None = None
    rows: int | None = None
    held_out_rows: int | None = None
    columns: Mapping[str, int] = dataclasses.field(default_factory=dict)


def data_name(source: object) -> str:
    """The name of data: a dataset's, or that of an own file without its folder and endings.

    >>> data_name("breast-cancer"), data_name("tables/loans.csv.gz"), data_name(None)
    ('breast-cancer', 'loans', 'own data')
    """
    if not isinstance(source, str) or not source:
        return OWN_DATA
    name = PurePath(source).name
    return name.partition(".")[0] or OWN_DATA


INLINE: Final = MappingProxyType({"inline": True})
OMITTED: Final = MappingProxyType({"omitted": True})
EMPTY: Final = MappingProxyType({"empty": True})

NUMBER: Final[dict[str, Any]] = {
    "description": "A number; the text inf where it is infinite, null where there is none.",
    "anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}, {"type": "null"}],
}
# Plain types: the name in a schema, and in an error.
_PLAIN: Final[dict[Any, tuple[str, str]]] = {
    str: ("string", "a text"),
    int: ("integer", "a whole number"),
    bool: ("boolean", "true or false"),
}

T = TypeVar("T")


class Dataclass(Protocol):
    """Any dataclass's instance."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


class Result:
    """Result of a command, with its kind, its JSON record and its report.

    ``kind`` is the name of its command, and ``known_by`` a key that tells its record from others.
    """

    __slots__ = ()
    kind: ClassVar[str] = ""
    known_by: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """The result as a JSON record."""
        return record_of(self)  # type: ignore[arg-type]  # every subclass is a dataclass

    @classmethod
    def recognises(cls, record: Mapping[str, Any]) -> bool:
        """Whether a record is of this kind rather than of another."""
        return cls.known_by in record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read the result from its JSON record; raise DataError with the invalid field."""
        return read(cls, record)

    @classmethod
    def schemas(cls, shared: dict[str, Any]) -> dict[str, Any]:
        """JSON schemas of its records, by name; ``shared`` takes those of the types within."""
        return {cls.kind: object_schema(cls, shared)}

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        raise TypeError(f"{type(self).__name__} is not shown as text")

    def page(self, made: str = "") -> Page | None:
        """The HTML report, ``made`` at that time; None where its kind has none."""
        return None

    def to_pandas(self) -> pd.DataFrame:
        """The figures as a pandas frame; ConfigError where pandas is not installed."""
        with explained():
            import pandas as pd
        return pd.DataFrame(self.table_rows())

    def plot(self) -> Figure:
        """The picture; ConfigError without matplotlib, TypeError where its kind has none."""
        with explained():
            from taciturn.report.plots import style
        if "ipykernel" in sys.modules:
            # A kernel can show a figure once matplotlib's backend for it is loaded.
            import matplotlib as mpl
            from matplotlib import pyplot

            pyplot.switch_backend(mpl.get_backend())
        with style():
            return self.figure()

    def _repr_html_(self) -> str | None:
        if not is_installed("jinja2"):
            return None
        from taciturn.report.html import fragment

        return fragment(self.blocks())

    def table_rows(self) -> list[dict[str, Any]]:
        """The figures as rows of a table, for a data frame."""
        raise TypeError(f"{type(self).__name__} has no table")

    def figure(self) -> Figure:
        """The picture; TypeError where its kind has none."""
        raise TypeError(f"{type(self).__name__} has no picture; to_pandas() has its figures")

    def subject(self) -> Subject:
        """Data and mechanism that the result is about."""
        return Subject()

    def curves(self) -> dict[str, Curve]:
        """Figures step by step, by name; of several seeds the first run's."""
        return {}

    def parts(self, bare: Part) -> tuple[Part, ...]:
        """The runs that the result holds; ``bare`` has what is known without it."""
        return (bare,)


def key(name: str) -> Mapping[str, str]:
    """Metadata of a field whose name in a record is another."""
    return MappingProxyType({"key": name})


def record_of(result: Dataclass) -> dict[str, Any]:
    """A dataclass as a JSON record: objects, lists, texts, finite numbers, true, false and null.

    >>> from taciturn.numerics.metrics import AddedAuc
    >>> record_of(AddedAuc(0.75, 0.5, float("nan")))
    {'auc': 0.75, 'low': 0.5, 'high': None}
    """
    record: dict[str, Any] = {}
    for field in fields(result):
        value, marks = getattr(result, field.name), field.metadata
        if "inline" in marks:
            record |= record_of(value)
        elif value is not None or "omitted" not in marks:
            record[_key(field)] = {} if value is None and "empty" in marks else _plain(value)
    return record


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON has no narrower type
    if isinstance(value, Result):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return record_of(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return finite_json(value.value if isinstance(value, Enum) else value)


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


def _read_fields(kind: type[T], record: Mapping[str, Any], place: str) -> T:
    values: dict[str, Any] = {}
    for field, hint in _fields(kind):  # type: ignore[arg-type]  # a class is hashable
        name, marks = _key(field), field.metadata
        if "inline" in marks:
            values[field.name] = _read_fields(hint, record, place)
        elif name in record:
            nothing = "empty" in marks and record[name] == {}
            where = f"{place}.{name}".lstrip(".")
            values[field.name] = None if nothing else _read(hint, record[name], where)
        elif "omitted" not in marks and field.default is MISSING:
            raise refusal(place, f"has no {name}")
    return kind(**values)


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
    if hint in _PLAIN and type(value) is hint:
        return value
    one_of = f"one of {', '.join(map(str, arguments))}"
    words = one_of if origin is Literal else _PLAIN.get(hint, ("", "of its kind"))[1]
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


def properties(kind: type, shared: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The keys of a dataclass's record with their JSON schemas, and which of them are always there.

    ``shared`` takes the schemas of the types that it mentions, by their names.
    """
    schemas: dict[str, Any] = {}
    required: list[str] = []
    for field, hint in _fields(kind):
        if "inline" in field.metadata:
            inner, always = properties(hint, shared)
            schemas |= inner
            required += always
            continue
        schemas[_key(field)] = _schema(hint, shared, empty="empty" in field.metadata)
        required += [] if "omitted" in field.metadata else [_key(field)]
    return schemas, required


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
    if hint in _PLAIN:
        return {"type": _PLAIN[hint][0]}
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


def _key(field: Field[Any]) -> str:
    return str(field.metadata.get("key", field.name))


@cache
def _keys(kind: Any) -> frozenset[str]:  # noqa: ANN401 - any dataclass
    return frozenset(properties(kind, {})[0])


@cache
def _fields(kind: Any) -> list[tuple[Field[Any], Any]]:  # noqa: ANN401 - any dataclass
    hints = type_hints(kind)
    return [(field, hints[field.name]) for field in fields(kind)]
