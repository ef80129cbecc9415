"""What a result is about: which data, which mechanism, how many rows and columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

OWN_DATA = "own data"


@dataclass(frozen=True, slots=True)
class Subject:
    """What a result is about; what it does not say is None."""

    data: str | None = None
    mechanism: str | None = None
    rows: int | None = None
    held_out_rows: int | None = None
    columns: Mapping[str, int] = field(default_factory=dict)


def data_name(source: object) -> str:
    """The name of data: a dataset's, or that of an own file without its folder and endings.

    >>> data_name("breast-cancer"), data_name("tables/loans.csv.gz"), data_name(None)
    ('breast-cancer', 'loans', 'own data')
    """
    if not isinstance(source, str) or not source:
        return OWN_DATA
    name = PurePath(source).name
    return name.partition(".")[0] or OWN_DATA
