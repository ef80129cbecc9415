"""``WoeBook``: how many tables of weights of evidence a partner was given, in a file of Alice's.

A table has, for each bin of her columns, a sum of Bob's labels over its rows: one linear function
of which rows are in the bin. Another table with other labels is another one. Two whose labels
differ in one row tell, by the difference, in which bins that row is. One conversation does not know
of another; the book does, and refuses what would exceed ``[woe] tables``.

**Guarantee.** A partner of the book is given no more tables than the limit allows, also by two
programs at the same time. The file is on disk before anything of her columns leaves. What was begun
and not finished counts: the partner may have got it.

**Assumes.** The file is not deleted, restored from an older copy or used beside another one, and a
partner keeps its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from taciturn.deploy.book_file import BookFile
from taciturn.deploy.config import PartyConfig
from taciturn.errors import BudgetExceeded
from taciturn.faces import Hint


@dataclass(frozen=True, slots=True)
class GivenTable:
    """What one table was: how many rows, columns and bins."""

    rows: int
    columns: int
    bins: int


@dataclass(frozen=True, slots=True)
class WoeBook:
    """The tables that a partner was given, in a file, made when first charged."""

    path: Path
    partner: str
    limit: int

    @classmethod
    def of(cls, config: PartyConfig) -> WoeBook:
        """Where Alice counts what she gives to this peer."""
        return cls(config.path(config.woe.book), config.peer, config.woe.tables)

    def require(self) -> None:
        """Insists that one more table is within the limit (else BudgetExceeded); writes nothing."""
        self._require_room(self.given())

    def charge(self, table: GivenTable) -> int:
        """Charge the budget for one table before it is sent; returns how many there are with it.

        Nothing is counted on BudgetExceeded.
        """
        with self._file.alone():
            partners = self._read()
            given = partners.setdefault(self.partner, [])
            self._require_room(len(given))
            given.append(table)
            self._write(partners)
            return len(given)

    def given(self) -> int:
        """How many tables the partner was given so far."""
        return len(self._read().get(self.partner, []))

    def _require_room(self, given: int) -> None:
        if given < self.limit:
            return
        raise BudgetExceeded(
            f"{self.partner} was given {given} of the {self.limit} tables of weights of evidence "
            "that it may have: with another, differences tell single rows",
            setting="tables",
            hint=Hint(
                "write {tables} if this partner may learn more of your columns; nothing was sent",
                tables=given + 1,
            ),
        )

    @property
    def _file(self) -> BookFile:
        return BookFile(
            self.path,
            "book of weights of evidence",
            "without it the tables that were given are not counted",
        )

    def _read(self) -> dict[str, list[GivenTable]]:
        with self._file.reading() as record:
            if record is None:
                return {}
            return {
                str(name): [GivenTable(*map(int, entry)) for entry in entries]
                for name, entries in record["partners"].items()
            }

    def _write(self, partners: dict[str, list[GivenTable]]) -> None:
        entries = {
            name: [[one.rows, one.columns, one.bins] for one in tables]
            for name, tables in partners.items()
        }
        self._file.write({"partners": entries})
