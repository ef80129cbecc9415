"""The records of a consent store: accounts, their entries, and values for each of their rows.

A namespace is one thing that is counted; it has an account for each partner. An account holds
entries, such as a session that was charged, and columns: the hashes of its rows' ids in ascending
order, and the rows' values in that order, each column in the narrowest of one bit, 8, 16, 32 and 64
bits. A column of bits, such as the rows that a model has scored, is a bitmap. Single charges are
rows of a small table; when they are too many they are merged into the columns.

**Every record is checked when it is read, and so is its absence.** A column has its checksum. An
account has the sum of the checksums of its entries, of its single charges and of what its columns
are, and is read with all of them. The first record has the sum of the accounts' checksums.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from taciturn.party.consent.database import Database, damaged
from taciturn.rng import SystemEntropy

SCHEMA = (
    "create table meta (id integer primary key, salt blob, generation integer, sum integer)",
    "create table accounts (id integer primary key, namespace text, name text, generation integer, "
    "sum integer)",
    "create table entries (account integer, number integer, kind text, name text, value text, "
    "primary key (account, number)) without rowid",
    "create table columns (account integer, name text, type text, sum integer, content blob, "
    "primary key (account, name))",
    "create table singles (account integer, name text, tag integer, value integer, "
    "primary key (account, name, tag)) without rowid",
)
VALUE = "value"
"""The column that is meant where none is named."""
_TAGS, _PARTNERS, _FACT, _BITS = "", "partners", "fact", "bits"
# More single charges of a column are merged: all of an account are read with it.
_MOST_SINGLES = 1024
_NOTED = re.compile(rb"[0-9a-f]{16} [0-9]{20}\n")

Tags: TypeAlias = NDArray[np.int64]
Values: TypeAlias = NDArray[np.int64]
Pairs: TypeAlias = tuple[Tags, Values]
"""Rows in ascending order, and their values."""
Flags: TypeAlias = NDArray[np.bool_]
Line: TypeAlias = tuple[Any, ...]
"""A row of a table."""

_NONE = np.empty(0, np.int64)
_NO_ROWS = _NONE, _NONE


@dataclass(slots=True)
class AccountRecord:
    """A row of ``accounts``, and what it sums up as far as it was read.

    The id is 0 before it is written, the generation -1 from a change until it is.
    """

    id: int
    namespace: str
    name: str
    generation: int = 0
    sum: int = 0
    entries: dict[tuple[str, str], Line] = field(default_factory=dict)
    columns: dict[str, Line] = field(default_factory=dict)
    singles: dict[str, Pairs] = field(default_factory=dict)
    contents: dict[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def line(self) -> Line:
        """The row of ``accounts``."""
        return self.id, self.namespace, self.name, self.generation, self.sum


class Records:
    """The records of a store within one transaction; FileError where they are damaged.

    ``cache`` has the accounts that former transactions have read, by their ids.
    """

    def __init__(self, database: Database, cache: dict[int, AccountRecord] | None = None) -> None:
        self.database, self.path = database, database.path
        self._cache = {} if cache is None else cache
        meta, lines = database.ask("select * from meta"), database.ask("select * from accounts")
        if len(meta) != 1 or meta[0][3] != checksum_of([*lines, meta[0][:3]]):
            raise damaged(self.path)
        _, self._salt, self._generation, _ = meta[0]
        self._lines = {line[1:3]: line for line in lines}
        self._accounts: dict[tuple[str, str], AccountRecord] = {}

    @property
    def generation(self) -> bytes:
        """A hash of the store's salt, and the number of its last transaction."""
        name = hashlib.blake2b(self._salt, digest_size=8).hexdigest()
        # As long each time: a note of it is replaced in its place.
        return f"{name} {self._generation:020}\n".encode()

    def follows(self, noted: bytes) -> bool:
        """Whether this is the noted state of the store or a later one; less than a note is none."""
        if not _NOTED.fullmatch(noted):
            return True
        return noted[:17] == self.generation[:17] and noted <= self.generation

    def account(self, namespace: str, name: str, key: bytes | None = None) -> Account:
        """An account, which is empty where it was never written.

        Its rows are hashed with ``key``, or with the salt of the file.
        """
        place = namespace, name
        if place not in self._accounts:
            line = self._lines.get(place, (0, *place))
            record = self._cache.get(line[0])
            if record is None or record.line != line:
                record = self._read(line)
            self._accounts[place] = record
        return Account(self, self._accounts[place], self._salt if key is None else key)

    def accounts(self, namespace: str) -> list[Account]:
        """All accounts of a namespace, by name."""
        created = [place for place, record in self._accounts.items() if record.id]
        places = sorted({*self._lines, *created})
        return [self.account(*place) for place in places if place[0] == namespace]

    def partner_facts(self, partner: str) -> dict[str, bytes]:
        """What was noted of a partner, by name, the oldest first."""
        facts = self.account(_PARTNERS, partner).entries(_FACT)
        return {name: bytes.fromhex(value) for name, value in facts.items()}

    def write_partner_fact(self, partner: str, name: str, value: bytes) -> None:
        """Note something of a partner, in place of what has that name."""
        self.account(_PARTNERS, partner).write_entry(_FACT, name, value.hex())

    def next_id(self) -> int:
        """The id of a new account."""
        ids: list[int] = [line[0] for line in self._lines.values()]
        return max(0, *ids, *(record.id for record in self._accounts.values())) + 1

    def save(self) -> bool:
        """Write what has changed of the accounts; whether anything has."""
        changed = [record for record in self._accounts.values() if record.generation < 0]
        if changed:
            self._generation += 1
            for record in changed:
                record.generation = self._generation
                self._lines[record.namespace, record.name] = record.line
                self._cache[record.id] = record
            self.database.write("accounts", [record.line for record in changed])
            meta = (1, self._salt, self._generation)
            self.database.write("meta", [(*meta, checksum_of([*self._lines.values(), meta]))])
        return bool(changed)

    def verify(self) -> int:
        """The number of rows of all accounts, after every page and record of the file was read."""
        rows = 0
        for line in self._lines.values():
            account = Account(self, self._read(line), b"")
            rows += account.verify()
        if self.database.ask("pragma quick_check(1)") != [("ok",)]:
            raise damaged(self.path)
        return rows

    def _read(self, line: Line) -> AccountRecord:
        record = AccountRecord(*line)
        entries, columns, singles = (
            self.database.ask(f"select {what} where account = ?", line[:1])
            for what in (
                "* from entries",
                "account, name, type, sum from columns",
                "* from singles",
            )
        )
        if checksum_of([*entries, *columns, *singles]) != record.sum:
            raise damaged(self.path)
        record.entries = {entry[2:4]: entry for entry in sorted(entries)}
        record.columns = {column[1]: column for column in columns}
        for name in {single[1] for single in singles}:
            of_column = sorted(single[2:] for single in singles if single[1] == name)
            tags, values = np.array(of_column, np.int64).T
            record.singles[name] = tags, values
        if record.id:
            self._cache[record.id] = record
        return record


class Account:
    """One account of a store within a transaction."""

    def __init__(self, records: Records, record: AccountRecord, key: bytes) -> None:
        self._records, self._record, self._key = records, record, key
        self.namespace, self.name = record.namespace, record.name

    def entry(self, kind: str, name: str) -> str | None:
        """The value of an entry; None where there is none."""
        return self.entries(kind).get(name)

    def entries(self, kind: str) -> dict[str, str]:
        """Names and values of all entries of a kind, the oldest first."""
        lines = self._record.entries.values()
        return {name: value for _, _, of, name, value in lines if of == kind}

    def write_entry(self, kind: str, name: str, value: str) -> None:
        """Adds an entry, or replaces its value."""
        entries = self._record.entries
        former = [entries[kind, name]] if (kind, name) in entries else []
        line = (self._changed(), former[0][1] if former else len(entries), kind, name, value)
        self._write("entries", [line], former)
        entries[kind, name] = line

    def tags(self, ids: Iterable[str]) -> Tags:
        """A keyed hash of each id: other ones in every account."""
        head = repr((self.namespace, self.name)).encode()
        keyed = hashlib.blake2b(head, digest_size=8, key=self._key)
        digests = bytearray()
        for name in ids:
            hasher = keyed.copy()
            hasher.update(name.encode())
            digests += hasher.digest()
        return np.frombuffer(digests, "<i8").astype(np.int64)

    @property
    def columns(self) -> set[str]:
        """The columns in which a row has a value."""
        return {*self._record.columns, *self._record.singles} - {_TAGS}

    @property
    def row_count(self) -> int:
        """Number of rows with a value."""
        return len(self._rows())

    def values(self, tags: Tags, column: str = VALUE) -> Values:
        """The value of each row; 0 where it has none."""
        return self.read(tags, column)[0]

    def read(self, tags: Tags, *columns: str) -> list[Values]:
        """The values of each row in some columns."""
        # A search for tags in disorder takes several times as long.
        order, found = np.argsort(tags, kind="stable"), []
        asked = tags[order]
        places, known = _places(self._column(_TAGS), asked)
        for column in columns:
            values = np.zeros(len(tags), np.int64)
            if column in self._record.columns:
                np.copyto(values, self._column(column)[places], where=known)
            rows, single = self._record.singles.get(column, _NO_ROWS)
            near, hit = _places(rows, asked)
            values[hit] = single[near[hit]]
            found.append(np.empty_like(values))
            found[-1][order] = values
        return found

    def write_values(self, tags: Tags, values: Values, column: str = VALUE) -> None:
        """Replaces the values of rows."""
        self.write(tags, {column: values})

    def write(self, tags: Tags, columns: Mapping[str, Values]) -> None:
        """Replaces the values of rows in some columns."""
        if not len(tags) or not columns:
            return
        record, singles = self._record, self._record.singles
        rows, first = np.unique(tags, return_index=True)
        new = {name: (rows, values[first]) for name, values in columns.items()}
        merged = singles | {name: _replaced(singles.get(name, _NO_ROWS), new[name]) for name in new}
        account = self._changed()
        if max((len(pairs[0]) for pairs in merged.values()), default=0) > _MOST_SINGLES:
            former = [line for name in singles for line in _lines(account, name, singles[name])]
            self._records.database.ask("delete from singles where account = ?", (account,))
            self._merge(merged)
            new, merged = {}, {}
        else:
            former = [
                line
                for name in new.keys() & singles.keys()
                for line in _lines(account, name, singles[name], np.isin(singles[name][0], rows))
            ]
        self._write(
            "singles", [line for name in new for line in _lines(account, name, new[name])], former
        )
        record.singles = merged

    def rows(self, column: str = VALUE) -> Pairs:
        """All rows and their values."""
        tags = self._rows()
        return tags, self.values(tags, column)

    def distinct_values(self, column: str = VALUE) -> dict[int, int]:
        """Every value with the number of rows that have it."""
        values, counts = np.unique(self.rows(column)[1], return_counts=True)
        return dict(zip(values.tolist(), counts.tolist(), strict=True))

    def verify(self) -> int:
        """The number of rows, after all were read; FileError where one is damaged."""
        for column in self._record.columns:
            self._column(column)
        return self.row_count

    def _rows(self) -> Tags:
        return _union(self._column(_TAGS), *(rows for rows, _ in self._record.singles.values()))

    def _merge(self, changes: Mapping[str, Pairs]) -> None:
        """Write columns with new values of rows."""
        former, columns = self._column(_TAGS), {*changes}
        rows = _union(former, *(of for of, _ in changes.values()))
        if len(rows) > len(former):
            columns |= self._record.columns.keys() - {_TAGS}
        for name in columns:
            pairs = changes.get(name, _NO_ROWS)
            if name in self._record.columns:
                pairs = _replaced((former, self._column(name)), pairs)
            self._write_column(name, _spread(rows, pairs))
        if len(rows) > len(former):
            self._write_column(_TAGS, rows)

    def _write_column(self, name: str, values: Values) -> None:
        record, low, high = self._record, int(values.min()), int(values.max())
        if name != _TAGS and 0 <= low and high <= 1:
            kind, content = _BITS, np.packbits(values.astype(bool)).tobytes()
        else:
            types = ((kind, np.iinfo(kind)) for kind in ("<u1", "<u2", "<u4", "<i8"))
            kind = next(kind for kind, of in types if of.min <= low and high <= of.max)
            values = values.astype(kind)
            content = values.tobytes()
        head = (record.id, name, kind)
        line = (*head, zlib.crc32(content, checksum_of([head])))
        self._records.database.write("columns", [(*line, content)])
        record.sum += checksum_of([line]) - checksum_of(
            [record.columns[name]] if name in record.columns else []
        )
        record.columns[name], record.contents[name] = line, values

    def _column(self, name: str) -> NDArray[Any]:
        """A column as it is stored, without single charges."""
        record, path = self._record, self._records.path
        if name not in record.columns:
            return _NONE
        if name not in record.contents:
            *head, kind, checksum = record.columns[name]
            query = "select content from columns where account = ? and name = ?"
            lines = self._records.database.ask(query, (*head,))
            content = lines[0][0] if lines else None
            if not isinstance(content, bytes):
                raise damaged(path)
            if zlib.crc32(content, checksum_of([(*head, kind)])) != checksum:
                raise damaged(path)
            if kind == _BITS:
                bits = np.frombuffer(content, np.uint8)
                record.contents[name] = np.unpackbits(bits, count=len(self._column(_TAGS)))
            else:
                record.contents[name] = np.frombuffer(content, kind)
        return record.contents[name]

    def _write(self, table: str, lines: list[Line], former: list[Line]) -> None:
        self._records.database.write(table, lines)
        self._record.sum += checksum_of(lines) - checksum_of(former)

    def _changed(self) -> int:
        """The id of the account, which is created where there is none, and written at the end."""
        self._record.id = self._record.id or self._records.next_id()
        self._record.generation = -1
        return self._record.id


def empty_database(path: Path) -> Database:
    """Database in memory with no account, and with a fresh salt."""
    database, meta = Database(path), (1, SystemEntropy().token(16), 0)
    for statement in SCHEMA:
        database.ask(statement)
    database.write("meta", [(*meta, checksum_of([meta]))])
    return database


def _places(stored: Tags, asked: Tags) -> tuple[NDArray[np.intp], Flags]:
    """Where each of some tags is in an ascending array, and whether it is there."""
    if np.array_equal(stored, asked) or not len(stored):
        return np.arange(len(asked)), np.full(len(asked), len(stored) > 0)
    # The first that is not smaller: the one itself, or another one.
    places = np.minimum(np.searchsorted(stored, asked), len(stored) - 1)
    return places, stored[places] == asked


def _union(*ascending: Tags) -> Tags:
    """The rows of all, each once."""
    longest = max(ascending, key=len)
    joined = np.concatenate([longest, *(of for of in ascending if not np.array_equal(of, longest))])
    # Runs that are in order are merged.
    joined.sort(kind="stable")
    return joined[np.append(joined[:-1] != joined[1:], True)] if len(joined) else joined


def _spread(rows: Tags, pairs: Pairs) -> Values:
    """The values of rows, of which some have one, and the others 0."""
    spread = np.zeros(len(rows), np.int64)
    spread[slice(None) if len(rows) == len(pairs[0]) else np.searchsorted(rows, pairs[0])] = pairs[
        1
    ]
    return spread


def _replaced(former: Pairs, new: Pairs) -> Pairs:
    """The values of rows after some were replaced, or added."""
    rows = _union(former[0], new[0])
    if len(rows) == len(new[0]):
        return new
    values = _spread(rows, former)
    values[np.searchsorted(rows, new[0])] = new[1]
    return rows, values


def _lines(
    account: int, column: str, pairs: Pairs, which: slice | Flags = slice(None)
) -> list[Line]:
    tags, values = (part[which].tolist() for part in pairs)
    return [(account, column, *pair) for pair in zip(tags, values, strict=True)]


def checksum_of(lines: Iterable[Line]) -> int:
    """The sum of the checksums of rows: what one of them was changed or lost changes."""
    return sum(zlib.crc32(repr(line).encode()) for line in lines)
