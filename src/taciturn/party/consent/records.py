"""The records of a consent store: accounts, their entries, and a value for each of their rows.

A namespace is one thing that is counted; it has an account for each partner. An account holds
entries, such as a session that was charged, and rows in buckets: by the hash of its id a row is in
one bucket, and in no other. Buckets are split one after the other as rows are added (linear
hashing), so that a charge touches as many buckets as it has rows, and no more with a longer file.

**Every record is checked when it is read, and so is its absence.** A bucket has its checksum.
An account has the number of its buckets, which all exist, and the sums of the checksums of its
entries and of its buckets. The first record has the sum of the accounts' checksums. An account or
an entry is read with all that its sum covers; the sum over buckets is compared where all rows are
read.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from taciturn.party.consent.database import Database, connection, damaged
from taciturn.rng import SystemEntropy

_SALT_BYTES = 16
_SCHEMA = """
create table meta (salt blob, generation integer, account_sum integer, sum integer);
create table accounts (id integer primary key, namespace text, name text, entry_sum integer,
    rows integer, buckets integer, bucket_sum integer);
create table entries (account integer, number integer, kind text, name text, value text,
    primary key (account, number)) without rowid;
create table buckets (id integer primary key, content blob, sum integer);
"""
# Rows of a bucket on average, of 16 bytes each: fewer make a charge of all rows slower, and more a
# charge of one.
_BUCKET_ROWS = 64
# Buckets in memory at a time.
_GROUP = 4096
# The number of a bucket is in the lower half of its id, that of its account in the upper one.
_ACCOUNT_SHIFT = 32
_NOTED = re.compile(r"([0-9a-f]{16}) ([0-9]{20})\n", re.ASCII)

Tags: TypeAlias = NDArray[np.int64]
Values: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Generation:
    """Number of transactions of a store, which is named by a hash of its salt."""

    store: str
    number: int

    @classmethod
    def parse(cls, text: str) -> Generation | None:
        """A generation as ``str`` writes it; None where the text is none."""
        noted = _NOTED.fullmatch(text)
        return None if noted is None else cls(noted[1], int(noted[2]))

    def __str__(self) -> str:
        # As long each time: it replaces the one before in its place.
        return f"{self.store} {self.number:020}\n"

    def follows(self, other: Generation) -> bool:
        """Whether this is a state of the same store, and not an earlier one."""
        return self.store == other.store and self.number >= other.number


@dataclass(slots=True)
class _AccountRecord:
    """A row of ``accounts``; the id is 0 before it is written."""

    id: int
    namespace: str
    name: str
    entry_sum: int = 0
    rows: int = 0
    buckets: int = 0
    bucket_sum: int = 0


class Records:
    """The records of a store within one transaction; FileError where they are damaged."""

    def __init__(self, database: Database) -> None:
        self._database, self.path = database, database.path
        meta = database.ask("select salt, generation, account_sum, sum from meta")
        if len(meta) != 1 or meta[0][-1] != _checksum(*meta[0][:-1]):
            raise damaged(self.path)
        self._salt, self._generation, account_sum, _ = meta[0]
        lines = database.ask("select * from accounts order by id")
        if sum(_checksum(*line) for line in lines) != account_sum:
            raise damaged(self.path)
        self._lines = {line[0]: line for line in lines}
        self._accounts = {line[1:3]: _AccountRecord(*line) for line in lines}

    @property
    def generation(self) -> Generation:
        """The state that this transaction began with, or the one that it has saved."""
        name = hashlib.blake2b(self._salt, digest_size=8).hexdigest()
        return Generation(name, self._generation)

    def account(self, namespace: str, name: str, key: bytes | None = None) -> Account:
        """An account, which is empty where it was never written.

        Its rows are hashed with ``key``, or with the salt of the file.
        """
        record = self._accounts.setdefault((namespace, name), _AccountRecord(0, namespace, name))
        return Account(self, self._database, record, self._salt if key is None else key)

    def accounts(self, namespace: str) -> list[Account]:
        """All accounts of a namespace, by name."""
        written = [record for record in self._accounts.values() if record.id]
        names = sorted(record.name for record in written if record.namespace == namespace)
        return [self.account(namespace, name) for name in names]

    def next_id(self) -> int:
        """The id of a new account."""
        return 1 + max((record.id for record in self._accounts.values()), default=0)

    def save(self) -> bool:
        """Write what has changed of the accounts; whether anything has."""
        lines = [astuple(record) for record in self._accounts.values() if record.id]
        changed = [line for line in lines if line != self._lines.get(line[0])]
        if changed:
            self._generation += 1
            statement = "insert or replace into accounts values (?, ?, ?, ?, ?, ?, ?)"
            self._database.write(statement, changed)
            meta = (self._salt, self._generation, sum(_checksum(*line) for line in lines))
            self._database.ask(
                "update meta set salt = ?, generation = ?, account_sum = ?, sum = ?",
                (*meta, _checksum(*meta)),
            )
        return bool(changed)

    def verify(self) -> int:
        """The number of rows of all accounts, after every page and record of the file was read."""
        accounts = [record for record in self._accounts.values() if record.id]
        for record in accounts:
            Account(self, self._database, record, b"").verify()
        count = "select count(*) from buckets"
        if self._database.ask("pragma quick_check(1)") != [("ok",)] or self._database.ask(
            count
        ) != [(sum(record.buckets for record in accounts),)]:
            raise damaged(self.path)
        return sum(record.rows for record in accounts)


class Account:
    """One account of a store within a transaction."""

    def __init__(
        self, records: Records, database: Database, record: _AccountRecord, key: bytes
    ) -> None:
        self._records, self._database, self._record, self._key = records, database, record, key
        self.namespace, self.name = record.namespace, record.name

    def entry(self, kind: str, name: str) -> str | None:
        """The value of an entry; None where there is none."""
        return self.entries(kind).get(name)

    def entries(self, kind: str) -> dict[str, str]:
        """Names and values of all entries of a kind, the oldest first."""
        return {name: value for _, _, of, name, value in self._entries() if of == kind}

    def write_entry(self, kind: str, name: str, value: str) -> None:
        """Adds an entry, or replaces its value."""
        record, entries = self._created(), self._entries()
        former = [line for line in entries if line[2:4] == (kind, name)]
        number = former[0][1] if former else len(entries)
        line = (record.id, number, kind, name, value)
        self._database.write("insert or replace into entries values (?, ?, ?, ?, ?)", [line])
        record.entry_sum += _checksum(*line) - sum(_checksum(*entry) for entry in former)

    def _entries(self) -> list[tuple[int, int, str, str, str]]:
        query = "select * from entries where account = ? order by number"
        lines = self._database.ask(query, (self._record.id,))
        if sum(_checksum(*line) for line in lines) != self._record.entry_sum:
            raise damaged(self._database.path)
        return lines

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
    def row_count(self) -> int:
        """Number of rows with a value."""
        return self._record.rows

    def values(self, tags: Tags) -> Values:
        """The value of each row; 0 where it has none."""
        return self._found(tags)[0]

    def _found(self, tags: Tags) -> tuple[Values, NDArray[np.bool_]]:
        """The value of each row, and whether it has one."""
        values, known = np.zeros(len(tags), np.int64), np.zeros(len(tags), bool)
        for numbers, places in self._grouped(tags):
            stored, of_stored, _ = self._read(numbers)
            if len(stored):
                # Both in order: a search for tags in disorder takes several times as long.
                order, places = np.argsort(stored), places[np.argsort(tags[places])]
                stored, asked = stored[order], tags[places]
                # The first row that is not smaller: the row itself, or another one.
                near = np.minimum(np.searchsorted(stored, asked), len(stored) - 1)
                known[places] = stored[near] == asked
                values[places] = np.where(known[places], of_stored[order[near]], 0)
        return values, known

    def write_values(self, tags: Tags, values: Values) -> None:
        """Replaces the values of rows."""
        self._created()
        added = len(tags)
        # A few rows that are known make no difference; all of them would double the buckets.
        if 16 * added > self._record.rows:
            added = int(np.count_nonzero(~self._found(tags)[1]))
        self._grow(self._record.rows + added)
        for numbers, places in self._grouped(tags):
            self._rewrite(numbers, tags[places], values[places])

    def rows(self) -> tuple[Tags, Values]:
        """All rows and their values."""
        parts = [*self._all()]
        tags, values = (np.concatenate([part[at] for part in parts]) for at in (0, 1))
        return tags, values

    def distinct_values(self) -> dict[int, int]:
        """Every value with the number of rows that have it."""
        counts: dict[int, int] = {}
        for _, values in self._all():
            distinct, numbers = np.unique(values, return_counts=True)
            for value, number in zip(distinct.tolist(), numbers.tolist(), strict=True):
                counts[value] = counts.get(value, 0) + number
        return counts

    def verify(self) -> None:
        """Read all entries and rows; FileError where one is damaged."""
        self._entries()
        for _ in self._all():
            pass

    def _all(self) -> Iterator[tuple[Tags, Values]]:
        """All rows, some buckets at a time; the last thing compared is the sum over all."""
        record, rows, total = self._record, 0, 0
        yield np.empty(0, np.int64), np.empty(0, np.int64)
        for start in range(0, record.buckets, _GROUP):
            tags, values, part = self._read(np.arange(start, min(start + _GROUP, record.buckets)))
            rows, total = rows + len(tags), total + part
            yield tags, values
        if (rows, total) != (record.rows, record.bucket_sum):
            raise damaged(self._database.path)

    def _grouped(self, tags: Tags) -> Iterator[tuple[Numbers, Numbers]]:
        """Some buckets at a time, and the places of the tags that belong in them."""
        if not self._record.buckets or not len(tags):
            return
        buckets = _bucket_of(tags, self._record.buckets)
        order = np.argsort(buckets)
        numbers, starts = np.unique(buckets[order], return_index=True)
        ends = np.append(starts[_GROUP::_GROUP], len(order))
        for first, end in zip(range(0, len(numbers), _GROUP), ends, strict=True):
            yield numbers[first : first + _GROUP], order[starts[first] : end]

    def _grow(self, rows: int) -> None:
        """Split buckets until there are enough for ``rows``."""
        former, none = self._record.buckets, np.empty(0, np.int64)
        added = np.arange(former, -(-rows // _BUCKET_ROWS))
        if not len(added):
            return
        self._record.buckets += len(added)
        if not former:
            self._rewrite(none, none, none, added)
            return
        # The buckets that the rows of the new ones are in so far.
        origins = _bucket_of(added, former)
        split = np.unique(origins)
        for start in range(0, len(split), _GROUP):
            numbers = split[start : start + _GROUP]
            self._rewrite(numbers, none, none, added[np.isin(origins, numbers)])

    def _rewrite(
        self, numbers: Numbers, tags: Tags, values: Values, added: Numbers | None = None
    ) -> None:
        """Replace values in buckets; rows that belong in ``added`` ones move there."""
        record = self._record
        stored, of_stored, former_sum = self._read(numbers)
        # Of a row that is there twice the first one counts, which is the new one.
        tags, first = np.unique(np.concatenate([tags, stored]), return_index=True)
        values = np.concatenate([values, of_stored])[first]
        buckets = _bucket_of(tags, record.buckets)
        order = np.argsort(buckets)
        content = np.stack([tags, values], axis=1)[order].astype("<i8").tobytes()
        written = numbers if added is None else np.concatenate([numbers, added])
        edges = (16 * np.searchsorted(buckets[order], (written, written + 1))).T.tolist()
        lines = []
        for number, (start, end) in zip(self._ids(written), edges, strict=True):
            chunk = content[start:end]
            lines.append((number, chunk, _bucket_checksum(number, chunk)))
        self._database.write("insert or replace into buckets values (?, ?, ?)", lines)
        record.rows += len(tags) - len(stored)
        record.bucket_sum += sum(line[2] for line in lines) - former_sum

    def _read(self, numbers: Numbers) -> tuple[Tags, Values, int]:
        """The rows of buckets and their values, and the sum of the buckets' checksums."""
        # A cross join keeps this order: a lookup for each bucket. Neighbours are near in the file.
        query = (
            "select buckets.id, content, sum from json_each(?) asked "
            "cross join buckets on buckets.id = asked.value"
        )
        lines = self._database.ask(query, (str(self._ids(numbers)),))
        if len(lines) != len(numbers) or any(
            total != _bucket_checksum(number, content) for number, content, total in lines
        ):
            raise damaged(self._database.path)
        content = b"".join(line[1] for line in lines)
        tags, values = np.frombuffer(content, "<i8").astype(np.int64).reshape(-1, 2).T
        return tags, values, sum(line[2] for line in lines)

    def _ids(self, numbers: Numbers) -> list[int]:
        ids: list[int] = ((self._record.id << _ACCOUNT_SHIFT) + numbers).tolist()
        return ids

    def _created(self) -> _AccountRecord:
        """The record of the account, which is created where there is none."""
        if not self._record.id:
            self._record.id = self._records.next_id()
        return self._record


def empty_database() -> sqlite3.Connection:
    """Database in memory with no account, and with a fresh salt."""
    database = connection(":memory:")
    database.executescript(_SCHEMA)
    meta = (SystemEntropy().token(_SALT_BYTES), 0, 0)
    database.execute("insert into meta values (?, ?, ?, ?)", (*meta, _checksum(*meta)))
    return database


def _bucket_of(tags: Tags, buckets: int) -> Numbers:
    """The bucket of each tag, by its lowest bits.

    >>> _bucket_of(np.arange(8), 6).tolist()
    [0, 1, 2, 3, 4, 5, 2, 3]
    """
    power = 1 << (buckets.bit_length() - 1)
    numbers = tags & (2 * power - 1)
    return np.where(numbers < buckets, numbers, numbers & (power - 1))


def _checksum(*record: object) -> int:
    return zlib.crc32(repr(record).encode())


def _bucket_checksum(number: int, content: object) -> int:
    """The checksum of a bucket; -1, which none has, where damage has left no bytes."""
    if not isinstance(content, bytes):
        return -1
    return zlib.crc32(content, zlib.crc32(number.to_bytes(8, "little")))
