"""Problems: all that is wrong with a table, in one report instead of one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from taciturn.errors import DataError, FileError, TableError


class Problems:
    """What is wrong with a table so far.

    >>> from taciturn.errors import ColumnError
    >>> problems = Problems()
    >>> with problems.noted():
    ...     raise ColumnError("there is no column 'age'")
    >>> len(problems)
    1
    """

    def __init__(self) -> None:
        self._noted: list[DataError] = []

    def __len__(self) -> int:
        return len(self._noted)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Keep an error about data that is raised meanwhile; a FileError is passed on."""
        try:
            yield
        except FileError:
            raise
        except DataError as problem:
            self._noted.append(problem)

    def error(self, where: str = "") -> DataError:
        """What there is, all of it in one; the only problem as it is."""
        return TableError.of(self._noted, where=where)
