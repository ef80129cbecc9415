"""The consent store: a SQLite file that counts everything a party has given to its partners.

A namespace is one thing that is counted; it has an account for each partner. An account holds
entries, such as a session that was charged, and a number for each row. The file has no ids: a row
is a hash of its id, of 64 bits, under a key of the party or under the salt of the file.

**Guarantee.** A transaction is on the disk as a whole when it ends, or not at all, and one program
at a time writes. A file that is cut, damaged, emptied or of another version is refused when it is
opened, and so are files of earlier versions in its place. The file is for its owner alone.

**Assumes.** The file is not deleted, restored from an older copy or used beside another one.
Whoever can write the file means well: checksums without a key stop accidents.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import FileError, OutputError, StateError
from taciturn.files import reporting_write_errors, sync_folder, write_private
from taciturn.memmap import BLOCK_ROWS
from taciturn.party.config import PartyConfig
from taciturn.rng import SystemEntropy

_KIND = "consent store"
_VERSION = 1
# In the file's header: other SQLite files have another number there.
_APPLICATION = 0x54434E53
_SALT_BYTES = 16
_SCHEMA = f"""
pragma application_id = {_APPLICATION};
pragma user_version = {_VERSION};
create table meta (salt blob, sum integer);
create table accounts (id integer primary key, namespace text, name text, sum integer,
    unique (namespace, name));
create table entries (id integer primary key, account integer, kind text, name text, value text,
    sum integer, unique (account, kind, name));
create table rows (account integer, tag integer, value integer, sum integer,
    primary key (account, tag)) without rowid;
"""
_IS_DAMAGED = """
select 1 where (select count(*) from meta) is not 1
union all select 1 from meta where sum is not checksum(salt)
union all select 1 from accounts where sum is not checksum(id, namespace, name)
union all select 1 from entries where sum is not checksum(account, kind, name, value)
union all select 1 from rows where sum is not checksum(account, tag, value)
"""
_FORMER_FILES = {
    "alice": ("alice.scores.json", "alice.woe.json", "alice.usage.sqlite"),
    "bob": ("bob.ledger.json", "bob.flips.json", "bob.usage.sqlite"),
}
# Of these the surroundings are the cause, and not what the file holds.
_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
}

Tags: TypeAlias = NDArray[np.int64]
Values: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ConsentStore:
    """A consent store by its path; the file is created when something is first written.

    ``wait_seconds`` is how long another program's transaction is waited for.
    """

    path: Path
    wait_seconds: float = 15.0

    @classmethod
    def from_config(cls, config: PartyConfig) -> ConsentStore:
        """The store of a party; StateError where files of earlier versions are in its place."""
        path = config.consent_file
        for former in map(config.path, _FORMER_FILES[config.role]):
            if former.exists() and not path.exists():
                raise _former(former)
        return cls(path)

    @contextmanager
    def reading(self) -> Iterator[Records]:
        """One state of the records; an absent file has none, and is not created."""
        opened = OpenStore(self, _empty()) if self._is_absent() else OpenStore(self)
        with closing(opened), opened.transaction(write=False) as records:
            yield records

    @contextmanager
    def writing(self) -> Iterator[Records]:
        """What is written in the block is on the disk when it ends; undone where it raises."""
        with closing(self.open()) as opened, opened.transaction() as records:
            yield records

    def open(self) -> OpenStore:
        """The file, created where there is none, for many transactions."""
        if self._is_absent():
            # Linked into place when whole: a file that is there and empty has been damaged.
            fresh = self.path.with_name(f"{self.path.name}.{SystemEntropy().token(4).hex()}.new")
            with closing(_empty()) as database:
                content = bytearray(database.serialize())
            # SQLite's versions for a write-ahead log: one flush to the disk a transaction.
            content[18:20] = b"\2\2"
            write_private(fresh, bytes(content), _KIND)
            with reporting_write_errors(self.path, _KIND):
                # Another program may have been faster.
                with suppress(FileExistsError):
                    os.link(fresh, self.path)
                fresh.unlink()
                sync_folder(self.path.parent)
        return OpenStore(self)

    def _is_absent(self) -> bool:
        """Whether there is no file yet; FileError where it was removed and its log was not."""
        # Asked first: another program may be creating the file, which is there before its log.
        has_log = self.path.with_name(f"{self.path.name}-wal").exists()
        if self.path.exists():
            return False
        if has_log:
            raise _damaged(self.path)
        return True


class OpenStore:
    """A consent store that is open; threads may share it."""

    def __init__(self, store: ConsentStore, database: sqlite3.Connection | None = None) -> None:
        self._path, self._lock = store.path, threading.Lock()
        with self._explained():
            self._database = database or self._connected(store)
            try:
                self._database.execute("pragma synchronous = full")
                self._require_sound()
            except BaseException:
                self._database.close()
                raise

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[Records]:
        """What is written in the block is on the disk when it ends; undone where it raises."""
        with self._lock, self._explained():
            self._database.execute("begin immediate" if write else "begin")
            try:
                yield Records(self._database, self._path)
                self._database.execute("commit")
            except BaseException:
                # Where the disk was full SQLite itself has undone it.
                if self._database.in_transaction:
                    self._database.execute("rollback")
                raise

    def close(self) -> None:
        """Releases the file."""
        self._database.close()

    def _connected(self, store: ConsentStore) -> sqlite3.Connection:
        with self._path.open("rb") as stream:
            head = stream.read(1)
            if os.fstat(stream.fileno()).st_mode & 0o077:
                # Such as one restored from a copy; SQLite's log has the mode of the file.
                os.fchmod(stream.fileno(), 0o600)
        if head == b"{":
            raise _former(self._path)
        if not head:
            # SQLite would take it for a new one.
            raise _damaged(self._path)
        # Not created where another program has just removed it.
        name = f"{self._path.absolute().as_uri()}?mode=rw"
        return _database(name, uri=True, timeout=store.wait_seconds, check_same_thread=False)

    def _require_sound(self) -> None:
        ask = self._database.execute
        if ask("pragma application_id").fetchone() != (_APPLICATION,):
            raise _former(self._path)
        (version,) = ask("pragma user_version").fetchone()
        if version != _VERSION:
            raise FileError(
                f"a {_KIND} of version {version}; this program reads {_VERSION}",
                where=str(self._path),
            )
        if ask(_IS_DAMAGED).fetchone() or ask("pragma integrity_check(1)").fetchone() != ("ok",):
            raise _damaged(self._path)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns errors of SQLite and of the system into errors that name the file."""
        try:
            yield
        except (sqlite3.Error, OSError) as problem:
            code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
            if isinstance(problem, sqlite3.Error) and code not in _UNAVAILABLE:
                raise _damaged(self._path) from None
            raise OutputError(
                f"the {_KIND} cannot be used: {getattr(problem, 'strerror', problem)}",
                where=str(self._path),
                hint="free some space, or wait for the program that uses it; nothing was counted",
            ) from None


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a store within one transaction."""

    database: sqlite3.Connection
    path: Path

    def account(self, namespace: str, name: str, key: bytes | None = None) -> Account:
        """An account, which is empty where it was never written.

        Its rows are hashed with ``key``, or with the salt of the file.
        """
        if key is None:
            (key,) = self.database.execute("select salt from meta").fetchone()
        return Account(self.database, namespace, name, key)

    def accounts(self, namespace: str) -> list[Account]:
        """All accounts of a namespace, by name."""
        query = "select name from accounts where namespace = ? order by name"
        names = self.database.execute(query, (namespace,)).fetchall()
        return [self.account(namespace, name) for (name,) in names]


class Account:
    """One account of a store within a transaction."""

    def __init__(self, database: sqlite3.Connection, namespace: str, name: str, key: bytes) -> None:
        self._database, self.namespace, self.name, self._key = database, namespace, name, key
        query = "select id from accounts where namespace = ? and name = ?"
        number = database.execute(query, (namespace, name)).fetchone()
        # No account has the number 0.
        self._id: int = number[0] if number else 0

    def entry(self, kind: str, name: str) -> str | None:
        """The value of an entry; None where there is none."""
        return self.entries(kind).get(name)

    def entries(self, kind: str) -> dict[str, str]:
        """Names and values of all entries of a kind, the oldest first."""
        query = "select name, value from entries where account = ? and kind = ? order by id"
        return dict(self._database.execute(query, (self._id, kind)).fetchall())

    def write_entry(self, kind: str, name: str, value: str) -> None:
        """Adds an entry, or replaces its value."""
        self._database.execute(
            "insert into entries (account, kind, name, value, sum) "
            "values (?1, ?2, ?3, ?4, checksum(?1, ?2, ?3, ?4)) "
            "on conflict do update set value = excluded.value, sum = excluded.sum",
            (self._created(), kind, name, value),
        )

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

    def values(self, tags: Tags) -> Values:
        """The value of each row; 0 where it has none."""
        values, order = np.zeros(len(tags), np.int64), np.argsort(tags)
        # A cross join keeps this order: a lookup for each row that is asked for. Neighbours are on
        # the same page of the file.
        query = (
            "select asked.key, rows.value from json_each(?) asked "
            "cross join rows on rows.account = ? and rows.tag = asked.value"
        )
        for start in range(0, len(tags), BLOCK_ROWS):
            block = order[start : start + BLOCK_ROWS]
            asked = str(tags[block].tolist())
            for place, value in self._database.execute(query, (asked, self._id)):
                values[block[place]] = value
        return values

    def write_values(self, tags: Tags, values: Values) -> None:
        """Replaces the values of rows."""
        account, order = self._created(), np.argsort(tags)
        for start in range(0, len(tags), BLOCK_ROWS):
            block = order[start : start + BLOCK_ROWS]
            self._database.executemany(
                "insert or replace into rows values (?1, ?2, ?3, checksum(?1, ?2, ?3))",
                zip(repeat(account), tags[block].tolist(), values[block].tolist()),
            )

    def rows(self) -> tuple[Tags, Values]:
        """All rows and their values."""
        query = "select tag, value from rows where account = ?"
        pairs = self._database.execute(query, (self._id,)).fetchall()
        tags, values = np.array(pairs, np.int64).reshape(-1, 2).T
        return tags, values

    def distinct_values(self) -> dict[int, int]:
        """Every value with the number of rows that have it."""
        query = "select value, count(*) from rows where account = ? group by value"
        return dict(self._database.execute(query, (self._id,)).fetchall())

    def _created(self) -> int:
        """The number of the account, which is created where there is none."""
        if not self._id:
            (self._id,) = self._database.execute("select count(*) + 1 from accounts").fetchone()
            self._database.execute(
                "insert into accounts values (?1, ?2, ?3, checksum(?1, ?2, ?3))",
                (self._id, self.namespace, self.name),
            )
        return self._id


def _empty() -> sqlite3.Connection:
    database = _database(":memory:")
    database.executescript(_SCHEMA)
    salt = SystemEntropy().token(_SALT_BYTES)
    database.execute("insert into meta values (?1, checksum(?1))", (salt,))
    return database


def _database(name: str, **options: Any) -> sqlite3.Connection:  # noqa: ANN401 - of sqlite3
    database: sqlite3.Connection = sqlite3.connect(name, isolation_level=None, **options)
    database.create_function("checksum", -1, _checksum, deterministic=True)
    return database


def _checksum(*record: object) -> int:
    return zlib.crc32(repr(record).encode())


def _damaged(path: Path) -> FileError:
    return FileError(
        f"this is not a {_KIND}, or it is damaged",
        where=str(path),
        hint="restore the newest copy: without it what was given away is not counted",
    )


def _former(path: Path) -> StateError:
    return StateError(
        f"this file is no {_KIND}, perhaps one of an earlier version, which cannot be read",
        where=str(path),
        hint="its counts are not carried over: lower your limits by what it holds and move it to "
        "another folder; counting then starts from zero",
    )
