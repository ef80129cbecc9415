"""Results as JSON records: how a record spells a value. ``taciturn.results.reading`` reads them.

A result is a frozen dataclass; its fields are the keys of its record, in their order. In a record
infinity is the text ``inf`` and what is not a number is null. Metadata of a field say the rest:

===========  ======================================================================
INLINE       the field's own keys stand in the record, in place of one key for all
inline(...)  the same, with other names for some, and some of them OMITTED
OMITTED      there is no key where the value is None
EMPTY        the record says ``{}`` where the value is None
key(...)     the record has another name for it
===========  ======================================================================

For these, and for numbers that are none, pydantic's adapters have no spelling; hence by hand. An
inlined agreement has the keys that a simulation sets; the rest has its defaults there.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self

from taciturn.extras import explained, is_installed
from taciturn.files import finite_json
from taciturn.settings.agreement import AGREEMENT_KEYS, ALSO_SIMULATED, Agreement
from taciturn.settings.mechanism_settings import FIELD

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


@dataclass(frozen=True, slots=True)
class Inlined:
    """Keys of an inlined field that differ from those of its own record, by field."""

    names: Mapping[str, str]
    omitted: frozenset[str]

    def key(self, field: Field[Any]) -> str:
        """Name of a field in the record."""
        return str(self.names.get(field.name) or field.metadata.get("key", field.name))

    def omits(self, field: Field[Any]) -> bool:
        """Whether there is no key where the field is None."""
        return "omitted" in field.metadata or field.name in self.omitted


OWN_KEYS: Final = Inlined({}, frozenset())
INLINE: Final = MappingProxyType({"inline": OWN_KEYS})
OMITTED: Final = MappingProxyType({"omitted": True})
EMPTY: Final = MappingProxyType({"empty": True})


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
        # Loaded here: a party that trains reads no result.
        from taciturn.results.reading import read

        return read(cls, record)

    @classmethod
    def schemas(cls, shared: dict[str, Any]) -> dict[str, Any]:
        """JSON schemas of its records, by name; ``shared`` takes those of the types within."""
        from taciturn.results.record_schema import object_schema

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


def inline(*omitted: str, **names: str) -> Mapping[str, Inlined]:
    """Metadata of an inlined field of which some keys are ``omitted``, and others renamed."""
    return MappingProxyType({"inline": Inlined(names, frozenset(omitted))})


def record_of(result: Dataclass, inlined: Inlined = OWN_KEYS) -> dict[str, Any]:
    """A dataclass as a JSON record: objects, lists, texts, finite numbers, true, false and null.

    >>> from taciturn.numerics.metrics import AddedAuc
    >>> record_of(AddedAuc(0.75, 0.5, float("nan")))
    {'auc': 0.75, 'low': 0.5, 'high': None}
    """
    record: dict[str, Any] = {}
    for field in fields(result):
        value, marks = getattr(result, field.name), field.metadata
        if isinstance(value, Agreement):
            record |= agreement_record(value)
        elif "inline" in marks:
            record |= record_of(value, marks["inline"])
        elif value is not None or not inlined.omits(field):
            plain = {} if value is None and "empty" in marks else _plain(value)
            record[inlined.key(field)] = plain
    return record


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON has no narrower type
    if isinstance(value, Result):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return record_of(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return finite_json(value.value if isinstance(value, Enum) else value)


AGREED: Final = tuple(name for name in AGREEMENT_KEYS if name in ALSO_SIMULATED)
"""Keys of an agreement in a result's record: those of another solver are null."""
AGREED_OMITTED: Final = ("family", FIELD)
FINGERPRINTS: Final = "fingerprints"
"""Key of the parties of several Alices; ``parties`` has their columns."""


def agreement_record(agreement: Agreement) -> dict[str, Any]:
    """The keys of an agreement in a result's record."""
    plain = finite_json(agreement.model_dump())
    record = {
        name: plain.get(name) for name in AGREED if name in plain or name not in AGREED_OMITTED
    }
    return record | ({FINGERPRINTS: agreement.parties} if agreement.parties else {})
