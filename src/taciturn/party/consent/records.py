"""The records of a consent store: accounts, their entries, and values for each of their rows.

A namespace is one thing that is counted; it has an account for each partner. An account holds
entries, such as a session that was charged, and columns: the hashes of its rows' ids in ascending
order, and the rows' values in that order, each column in the narrowest of one bit, 8, 16, 32 and 64
bits. A column of bits, such as the rows that a model has scored, is a bitmap. Beside a column is a
small table of single charges, which come before it; when they are too many they are merged.

**Every record is checked when it is read, and so is its absence.** A column has a digest of its
content. An account has the sum of the checksums of its entries and of what its columns are, and the
first record that of the accounts.
"""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from taciturn.party.consent.database import damaged
from taciturn.rng import SystemEntropy

SCHEMA = (
    "create table meta (id integer primary key, salt blob, generation integer, sum integer)",
    "create table accounts (id integer primary key, namespace text, name text, sum integer)",
    "create table entries (account integer, number integer, kind text, name text, value text, "
    "primary key (account, number)) without rowid",
    "create table columns (account integer, name text, single integer, type text, digest blob, "
    "content blob, primary key (account, name, single))",
)
VALUE = "value"
"""The column that is meant where none is named."""
_TAGS, _BITS = "", "bits"
_PARTNERS, _FACT = "partners", "fact"
# More single charges are merged: one more rewrites all of a column.
_MOST_SINGLES = 256

Tags: TypeAlias = NDArray[np.int64]
Values: TypeAlias = NDArray[np.int64]
Pairs: TypeAlias = NDArray[np.int64]
"""Rows in ascending order, and their values."""
Flags: TypeAlias = NDArray[np.bool_]
Line: TypeAlias = tuple[Any, ...]
"""A row of a table."""
Cache: TypeAlias = dict[Line, tuple[Line, NDArray[Any]]]
"""Columns that were read, by their keys, each with what its account says of it."""

_NO_ROWS = np.empty((2, 0), np.int64)


@dataclass(slots=True)
class _AccountRecord:
    """A row of ``accounts``; the id is 0 before it is written."""

    id: int
    namespace: str
    name: str
    sum: int = 0


class Records:
    """The records of a store within one transaction; FileError where they are damaged."""

    def __init__(
        self, database: sqlite3.Connection, path: Path, cache: Cache | None = None
    ) -> None:
        self.database, self.path = database, path
        self.cache: Cache = {} if cache is None else cache
        meta = database.execute("select * from meta").fetchall()
        lines = database.execute("select * from accounts").fetchall()
        if len(meta) != 1 or meta[0][3] != checksum([*lines, meta[0][:3]]):
            raise damaged(path)
        _, self._salt, self._number, _ = meta[0]
        self._lines = {line[1:3]: line for line in lines}
        self._accounts: dict[tuple[str, str], Account] = {}

    @property
    def generation(self) -> bytes:
        """A hash of the store's salt, and the number of its last transaction."""
        name = hashlib.blake2b(self._salt, digest_size=8).hexdigest()
        # As long each time: a note of it is replaced in its place.
        return f"{name} {self._number:020}\n".encode()

    def account(self, namespace: str, name: str, key: bytes | None = None) -> Account:
        """An account, which is empty where it was never written.

        Its rows are hashed with ``key``, or with the salt of the file.
        """
        place = namespace, name
        if place not in self._accounts:
            record = _AccountRecord(*self._lines.get(place, (0, *place)))
            self._accounts[place] = Account(self, record)
        # It shares with every other one what was read.
        account = copy(self._accounts[place])
        account.key = self._salt if key is None else key
        return account

    def accounts(self, namespace: str) -> list[Account]:
        """All accounts of a namespace, by name."""
        written = {*self._lines, *(of for of, one in self._accounts.items() if one.record.id)}
        return [self.account(*place) for place in sorted(written) if place[0] == namespace]

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
        return max(0, *ids, *(account.record.id for account in self._accounts.values())) + 1

    def save(self) -> bool:
        """Write what has changed of the accounts; whether anything has."""
        lines = {of: astuple(one.record) for of, one in self._accounts.items() if one.record.id}
        changed = {of: line for of, line in lines.items() if line != self._lines.get(of)}
        if changed:
            self._number += 1
            self._lines |= changed
            for line in changed.values():
                self.replace("accounts", line)
            meta = (1, self._salt, self._number)
            self.replace("meta", (*meta, checksum([*self._lines.values(), meta])))
        return bool(changed)

    def replace(self, table: str, line: Line) -> None:
        """Write a row of a table in place of the one with its key."""
        # The table is one of ``SCHEMA``.
        statement = f"insert or replace into {table} values ({', '.join('?' * len(line))})"  # noqa: S608
        self.database.execute(statement, line)

    def verify(self) -> int:
        """The number of rows of all accounts, after every page and record of the file was read."""
        self.cache.clear()
        rows = sum(self.account(*place).verify() for place in self._lines)
        if self.database.execute("pragma quick_check(1)").fetchall() != [("ok",)]:
            raise damaged(self.path)
        return rows


class Account:
    """One account of a store within a transaction."""

    def __init__(self, records: Records, record: _AccountRecord) -> None:
        self.record, self.namespace, self.name = record, record.namespace, record.name
        self.key = b""
        self._records = records
        ask, of = records.database.execute, (record.id,)
        entries = ask("select * from entries where account = ?", of).fetchall()
        query = "select account, name, single, type, digest from columns where account = ?"
        columns = ask(query, of).fetchall()
        if checksum([*entries, *columns]) != record.sum:
            raise damaged(records.path)
        self._entries: dict[tuple[str, str], Line] = {line[2:4]: line for line in sorted(entries)}
        self._columns: dict[tuple[str, int], Line] = {line[1:3]: line for line in columns}

    def entry(self, kind: str, name: str) -> str | None:
        """The value of an entry; None where there is none."""
        return self.entries(kind).get(name)

    def entries(self, kind: str) -> dict[str, str]:
        """Names and values of all entries of a kind, the oldest first."""
        return {name: value for _, _, of, name, value in self._entries.values() if of == kind}

    def write_entry(self, kind: str, name: str, value: str) -> None:
        """Adds an entry, or replaces its value."""
        former = self._entries.get((kind, name))
        number = former[1] if former else len(self._entries)
        line = self._entries[kind, name] = (self._id(), number, kind, name, value)
        self._records.replace("entries", line)
        self._change(former, line)

    def tags(self, ids: Iterable[str]) -> Tags:
        """A keyed hash of each id: other ones in every account."""
        head = repr((self.namespace, self.name)).encode()
        keyed = hashlib.blake2b(head, digest_size=8, key=self.key)
        digests = bytearray()
        for name in ids:
            hasher = keyed.copy()
            hasher.update(name.encode())
            digests += hasher.digest()
        return np.frombuffer(digests, "<i8").astype(np.int64)

    @property
    def row_count(self) -> int:
        """Number of rows with a value."""
        return len(self.rows()[0])

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
            if (column, 0) in self._columns:
                np.copyto(values, self._column(column)[places], where=known)
            rows, single = self._column(column, 1)
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
        if not len(tags):
            return
        rows, first = np.unique(tags, return_index=True)
        changes = {
            name: _replaced(self._column(name, 1), np.stack([rows, values[first]]))
            for name, values in columns.items()
        }
        if any(pairs.shape[1] > _MOST_SINGLES for pairs in changes.values()):
            self._merge(changes)
            return
        for name, pairs in changes.items():
            self._write_column(name, pairs, single=1)

    def rows(self, column: str = VALUE) -> Pairs:
        """All rows and their values."""
        singles = (self._column(name, 1)[0] for name, single in self._columns if single)
        tags = _union(self._column(_TAGS), *singles)
        return np.stack([tags, self.values(tags, column)])

    def distinct_values(self, column: str = VALUE) -> dict[int, int]:
        """Every value with the number of rows that have it."""
        values, counts = np.unique(self.rows(column)[1], return_counts=True)
        return dict(zip(values.tolist(), counts.tolist(), strict=True))

    def verify(self) -> int:
        """The number of rows, after all were read; FileError where one is damaged."""
        for name, single in self._columns:
            self._column(name, single)
        return self.row_count

    def _merge(self, changes: dict[str, Pairs]) -> None:
        """Write columns with new values of rows, and with all single charges."""
        for name in [name for name, single in self._columns if single]:
            changes.setdefault(name, self._column(name, 1))
            self._change(self._columns.pop((name, 1)), None)
        delete = "delete from columns where account = ? and single = 1"
        self._records.database.execute(delete, (self.record.id,))
        former = self._column(_TAGS)
        rows = _union(former, *(pairs[0] for pairs in changes.values()))
        grown = len(rows) > len(former)
        for name in changes.keys() | {name for name, _ in self._columns if grown and name != _TAGS}:
            pairs = changes.get(name, _NO_ROWS)
            if (name, 0) in self._columns:
                pairs = _replaced(np.stack([former, self._column(name)]), pairs)
            self._write_column(name, _spread(rows, pairs))
        if grown:
            self._write_column(_TAGS, rows)

    def _write_column(self, name: str, values: NDArray[np.int64], single: int = 0) -> None:
        low, high = int(values.min()), int(values.max())
        types = ((kind, np.iinfo(kind)) for kind in ("<u1", "<u2", "<u4", "<i8"))
        kind = next(kind for kind, of in types if of.min <= low and high <= of.max)
        if 0 <= low and high <= 1 and name != _TAGS and not single:
            kind, content = _BITS, np.packbits(values.astype(bool)).tobytes()
        else:
            content = values.astype(kind).tobytes()
        head = (self._id(), name, single, kind)
        line = (*head, _digest(head, content))
        self._records.replace("columns", (*line, content))
        self._change(self._columns.get((name, single)), line)
        self._columns[name, single] = line

    def _column(self, name: str, single: int = 0) -> NDArray[Any]:
        """A column as it is stored, or the rows and values of its single charges."""
        line, records = self._columns.get((name, single)), self._records
        if line is None:
            return _NO_ROWS if single else _NO_ROWS[0]
        # The bytes of a bitmap may stay the same where rows are added: they fill its last byte.
        count = len(self._column(_TAGS)) if line[3] == _BITS else None
        cached, values = records.cache.get(line[:3], ((), _NO_ROWS))
        if cached == line and count in (None, len(values)):
            return values
        query = "select content from columns where account = ? and name = ? and single = ?"
        contents = records.database.execute(query, line[:3]).fetchall()
        if len(contents) != 1 or _digest(line[:4], contents[0][0]) != line[4]:
            raise damaged(records.path)
        if count is None:
            values = np.frombuffer(contents[0][0], line[3])
        else:
            values = np.unpackbits(np.frombuffer(contents[0][0], np.uint8), count=count)
        values = values.reshape(2, -1) if single else values
        records.cache[line[:3]] = line, values
        return values

    def _change(self, former: Line | None, line: Line | None) -> None:
        self.record.sum += checksum([line] if line else []) - checksum([former] if former else [])

    def _id(self) -> int:
        """The id of the account, which is created where there is none."""
        self.record.id = self.record.id or self._records.next_id()
        return self.record.id


def empty_database() -> sqlite3.Connection:
    """Database in memory with no account, and with a fresh salt."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    for statement in SCHEMA:
        database.execute(statement)
    meta = (1, SystemEntropy().token(16), 0)
    database.execute("insert into meta values (?, ?, ?, ?)", (*meta, checksum([meta])))
    return database


def checksum(lines: Iterable[Line]) -> int:
    """The sum of the checksums of rows."""
    return sum(zlib.crc32(repr(line).encode()) for line in lines)


def _digest(head: Line, content: object) -> bytes:
    """The digest of a column; empty, which none has, where damage has left no bytes."""
    if not isinstance(content, bytes):
        return b""
    hasher = hashlib.blake2b(repr(head).encode(), digest_size=16)
    hasher.update(content)
    return hasher.digest()


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
    if len(rows) == pairs.shape[1]:
        return np.array(pairs[1])
    spread = np.zeros(len(rows), np.int64)
    spread[np.searchsorted(rows, pairs[0])] = pairs[1]
    return spread


def _replaced(former: Pairs, new: Pairs) -> Pairs:
    """The values of rows after some were replaced, or added."""
    rows = _union(former[0], new[0])
    if len(rows) == new.shape[1]:
        return new
    values = _spread(rows, former)
    values[np.searchsorted(rows, new[0])] = new[1]
    return np.stack([rows, values])
