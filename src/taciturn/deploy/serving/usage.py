"""``Usage``: how many rows were scored for whom, today and ever, in a file that restarts keep.

A SQLite file of mode 0600. Rows stand in it as salted hashes of their ids, of 64 bits each, as in a
score book (``taciturn.deploy.score_book``), which adds what stands here to its own count.

**Guarantee.** What a limit allows is never exceeded, also by two programs at the same time. A count
is on disk before an answer leaves.

**Assumes.** The file is not deleted or restored from an older copy, and the clock's date is right.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from taciturn.deploy.tagged import TAG_BYTES, TaggedRows
from taciturn.errors import FileError, OutputError
from taciturn.rng import SystemEntropy

SALT_BYTES = 16
# How long another program's count is waited for.
_BUSY_SECONDS = 15.0
_CHUNK = 500
_KNOWN = "select tag, day, today, ever from counts where who = ? and tag in"
_SCHEMA = """
create table if not exists meta (name text primary key, value blob not null);
create table if not exists days (day text, who text, rows integer not null,
    primary key (day, who)) without rowid;
create table if not exists counts (who text, tag integer, day text not null,
    today integer not null, ever integer not null, primary key (who, tag)) without rowid;
"""


@dataclass(frozen=True, slots=True)
class RowLimits:
    """How often one row may be scored; None for any number.

    ``per_day`` is on one day (UTC), ``ever`` counts other ways too, ``answers`` only what is
    counted here.
    """

    per_day: int | None = None
    ever: int | None = None
    answers: int | None = None

    def allow(self, today: int, answers: int, ever: int) -> bool:
        """Whether once more is allowed.

        >>> RowLimits(per_day=2).allow(today=2, answers=2, ever=9)
        False
        """
        counted = ((self.per_day, today), (self.answers, answers), (self.ever, ever))
        return all(limit is None or count < limit for limit, count in counted)


class Usage:
    """The counts, in a file; ids in a new file are hashed with ``salt``, drawn where None."""

    def __init__(self, path: Path, salt: bytes | None = None) -> None:
        self._path, self._lock = path, threading.Lock()
        with self._explained():
            # Made by hand first: SQLite would leave it to the umask who may read it.
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            os.fchmod(descriptor, 0o600)
            os.close(descriptor)
            self._base = sqlite3.connect(
                path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._base.execute("pragma journal_mode = wal")
            self._base.execute("pragma synchronous = full")
            self._base.executescript(_SCHEMA)
            drawn = SystemEntropy().token(SALT_BYTES) if salt is None else salt
            self._base.execute("insert or ignore into meta values ('salt', ?)", (drawn,))
            (self._salt,) = self._base.execute(
                "select value from meta where name = 'salt'"
            ).fetchone()
        if salt is not None and self._salt != salt:
            raise FileError(
                "this file counts the rows of another score book",
                where=str(path),
                hint="restore the two files that belong together",
            )

    def admit(self, who: str, rows: int, limit: int, *, whole: bool = False) -> int:
        """Counts rows that someone asks for today (UTC), up to the limit; returns how many.

        With ``whole`` all of them are counted, or none.
        """
        day = _today()
        with self._transaction() as base:
            left = max(0, limit - _asked(base, day, who))
            admitted = 0 if whole and left < rows else min(rows, left)
            base.execute(
                "insert into days values (?, ?, ?) on conflict do update set "
                "rows = rows + excluded.rows",
                (day, who, admitted),
            )
        return admitted

    def spend(
        self,
        who: str,
        ids: Sequence[str],
        limits: RowLimits,
        given: Callable[[], Sequence[int]] = tuple,
        *,
        count: bool = True,
    ) -> list[bool]:
        """Counts the rows that may be scored once more, and returns which may; or only looks.

        ``ids`` has each row once. ``given`` returns how often each was scored by other ways, which
        counts too; it is asked while nobody else can count.
        """
        day, tags = _today(), self.tags(ids)
        with self._transaction() as base:
            known, before = self._known(base, who, tags), given()
            allowed, counted = [], []
            for place, tag in enumerate(tags):
                last, today, ever = known.get(tag, (day, 0, 0))
                today = today if last == day else 0
                allowed.append(limits.allow(today, ever, ever + (before[place] if before else 0)))
                if allowed[-1]:
                    counted.append((who, tag, day, today + 1, ever + 1))
            if count:
                base.executemany("insert or replace into counts values (?, ?, ?, ?, ?)", counted)
        return allowed

    def today(self, who: str) -> int:
        """How many rows someone has asked for today."""
        with self._lock, self._explained():
            return _asked(self._base, _today(), who)

    def tags(self, ids: Sequence[str]) -> list[int]:
        """The hashes under which rows are counted, as SQLite holds them."""
        keyed = hashlib.blake2b(digest_size=TAG_BYTES, key=self._salt)
        digests = []
        for name in ids:
            hasher = keyed.copy()
            hasher.update(name.encode())
            digests.append(hasher.digest())
        return [int(tag) for tag in np.frombuffer(b"".join(digests), ">u8").astype("<i8")]

    def close(self) -> None:
        """Lets go of the file."""
        self._base.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._explained():
            self._base.execute("begin immediate")
            try:
                yield self._base
            except BaseException:
                self._base.execute("rollback")
                raise
            self._base.execute("commit")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        with explained_usage(self._path):
            yield

    @staticmethod
    def _known(
        base: sqlite3.Connection, who: str, tags: Sequence[int]
    ) -> dict[int, tuple[str, int, int]]:
        known: dict[int, tuple[str, int, int]] = {}
        for start in range(0, len(tags), _CHUNK):
            part = tags[start : start + _CHUNK]
            marks = ", ".join("?" * len(part))
            question = (
                "select tag, day, today, ever from counts where who = ? and tag in (",
                marks,
            )
            rows = base.execute("".join((*question, ")")), (who, *part))
            known.update({tag: (day, today, ever) for tag, day, today, ever in rows})
        return known


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _asked(base: sqlite3.Connection, day: str, who: str) -> int:
    row = base.execute("select rows from days where day = ? and who = ?", (day, who)).fetchone()
    return 0 if row is None else int(row[0])


@contextmanager
def rows_ever(path: Path, who: str) -> Iterator[TaggedRows]:
    """How often each row was scored for someone; nobody counts there meanwhile."""
    if not path.exists():
        yield TaggedRows()
        return
    with ExitStack() as held:
        with explained_usage(path):
            base = held.enter_context(
                closing(sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None))
            )
            base.execute("begin immediate")
            held.callback(base.execute, "rollback")
            rows = base.execute("select tag, ever from counts where who = ?", (who,)).fetchall()
        yield _tagged(rows)


def _tagged(rows: Sequence[tuple[int, int]]) -> TaggedRows:
    tags = np.array([tag for tag, _ in rows], dtype=np.int64).view(np.uint64)
    order = np.argsort(tags)
    return TaggedRows(tags[order], np.array([ever for _, ever in rows], dtype=np.int64)[order])


@contextmanager
def explained_usage(path: Path) -> Iterator[None]:
    """Turns what SQLite says into errors that name the file."""
    try:
        yield
    except sqlite3.DatabaseError as problem:
        if isinstance(problem, sqlite3.OperationalError):
            raise OutputError(
                f"the file that counts scores cannot be used: {problem}",
                where=str(path),
                hint="free some space, or wait for the program that has it; nothing was counted",
            ) from None
        raise FileError(
            "this is not a file that counts scores, or it is damaged",
            where=str(path),
            hint="restore the newest copy: without it what was served is not counted",
        ) from None
    except OSError as problem:
        raise OutputError(
            f"the file that counts scores cannot be made: {problem.strerror}", where=str(path)
        ) from None
