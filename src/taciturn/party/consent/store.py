"""The consent store: a SQLite file that counts everything a party has given to its partners.

``records`` describes what it holds. The file has no ids: a row is a hash of its id, of 64 bits,
under a key of the party or under the salt of the file.

**Guarantee.** A transaction is on the disk as a whole when it ends, or not at all, and one program
at a time writes. Opening the file takes no longer with more rows in it; a charge reads the columns
of its account, which a service does once. A record that was changed or lost is refused when it is
read, and never counts as zero; ``verify`` reads everything. A file that is emptied, removed or of
another version is refused, and so is an older copy: the number of the last transaction is also
noted in a file beside the store. Where a program was killed, or a service runs, SQLite's log is
there, and opening reads everything. The store is for its owner alone. A file of the format of
release 0.3 is converted when it is opened, in one transaction.

**Assumes.** The owner means well, and may forget. Checksums without a key notice accidents, and do
not stop somebody who can write the file. The note beside the store is not removed, and not restored
with it; the store is not used beside another one.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from taciturn.engine.callbacks import Announce, noop
from taciturn.errors import FileError, StateError
from taciturn.files import reporting_write_errors, sync_folder, write_private
from taciturn.party.config import PartyConfig
from taciturn.party.consent.database import KIND, connect, damaged, error_code, explained, reached
from taciturn.party.consent.records import Cache, Records, empty_database
from taciturn.rng import SystemEntropy
from taciturn.version import CONSENT_VERSION

# In the file's header: other SQLite files have another number there.
_APPLICATION = 0x54434E53
_FORMER_FORMAT = 2
_FORMER_FILES = {
    "alice": ("alice.scores.json", "alice.woe.json", "alice.usage.sqlite"),
    "bob": ("bob.ledger.json", "bob.flips.json", "bob.usage.sqlite"),
}
# A shorter wait for another program is not announced.
_UNANNOUNCED_SECONDS = 1.0
_NOTED = re.compile(rb"[0-9a-f]{16} [0-9]{20}\n")


@dataclass(frozen=True, slots=True)
class ConsentStore:
    """A consent store by its path; the file is created when something is first written.

    ``wait_seconds`` is how long another program's transaction is waited for; ``announce`` is called
    before a long wait.
    """

    path: Path
    # A charge of ten million rows holds the lock for some ten seconds.
    wait_seconds: float = 60.0
    announce: Announce = noop

    @classmethod
    def from_config(cls, config: PartyConfig, announce: Announce = noop) -> ConsentStore:
        """The store of a party; StateError where files of earlier versions are in its place."""
        path = config.consent_file
        for former in map(config.path, _FORMER_FILES[config.role]):
            if former.exists() and not path.exists():
                raise _former(former)
        return cls(path, announce=announce)

    @contextmanager
    def reading(self) -> Iterator[Records]:
        """One state of the records; an absent file has none, and is not created."""
        if self._is_absent():
            with closing(empty_database()) as empty:
                yield Records(empty, self.path)
        else:
            with closing(OpenStore(self)) as opened, opened.transaction(write=False) as records:
                yield records

    @contextmanager
    def writing(self) -> Iterator[Records]:
        """Transaction: on disk when the block ends, undone where it raises."""
        with closing(self.open()) as opened, opened.transaction() as records:
            yield records

    def open(self) -> OpenStore:
        """The file, created where there is none, for many transactions."""
        if self._is_absent():
            # Linked into place when whole: a file that is there and empty has been damaged.
            fresh = self.path.with_name(f"{self.path.name}.{SystemEntropy().token(4).hex()}.new")
            with closing(empty_database()) as database:
                database.execute(f"pragma application_id = {_APPLICATION}")
                database.execute(f"pragma user_version = {CONSENT_VERSION}")
                content = bytearray(database.serialize())
            # SQLite's versions for a write-ahead log: nobody who reads waits for a writer.
            content[18:20] = b"\2\2"
            write_private(fresh, bytes(content), KIND)
            with reporting_write_errors(self.path, KIND):
                # Another program may have been faster.
                with suppress(FileExistsError):
                    os.link(fresh, self.path)
                fresh.unlink()
                sync_folder(self.path.parent)
        return OpenStore(self)

    def verify(self) -> int | None:
        """Check every page and record of the file (FileError), in time proportional to its size.

        Returns how many rows there are; None where there is no file.
        """
        if self._is_absent():
            return None
        with self.reading() as records:
            return records.verify()

    @property
    def log_file(self) -> Path:
        """SQLite's log of the last transactions."""
        return self.path.with_name(f"{self.path.name}-wal")

    @property
    def generation_file(self) -> Path:
        """The file with the number of the last transaction."""
        return self.path.with_name(f"{self.path.name}-generation")

    def _is_absent(self) -> bool:
        """Whether there is no file yet; FileError where one was removed."""
        # Looked for first: another program may be creating the file, which is there before these.
        left = [file for file in (self.log_file, self.generation_file) if file.exists()]
        if left and not self.path.exists():
            raise _refused(
                self.path,
                f"the {KIND} was removed, and {left[0].name} is still there",
                "restore the newest copy; without one lower your limits by what was given away, "
                f"and remove {left[0].name} too: counting then starts from zero",
            )
        return not self.path.exists()


class OpenStore:
    """A consent store that is open; threads may share it."""

    def __init__(self, store: ConsentStore) -> None:
        self._store, self._path, self._lock = store, store.path, threading.Lock()
        self._cache: Cache = {}
        with reached(self._path), self._path.open("rb") as stream:
            head, self._file = stream.read(1), os.fstat(stream.fileno())
            if self._file.st_mode & 0o077:
                # Such as one restored from a copy; SQLite's log has the mode of the file.
                os.fchmod(stream.fileno(), 0o600)
        if head == b"{":
            raise _former(self._path)
        if not head:
            # SQLite would take it for a new one.
            raise damaged(self._path)
        with explained(self._path), reached(self._path):
            if store.log_file.exists() and store.log_file.stat().st_size > 0:
                # To read alone: who may write copies the log into the file at the end, and the
                # damage. Beside a log an older copy has the numbers of the newest one.
                with closing(connect(self._path, "ro")) as database:
                    self._begin(database, "begin")
                    if self._format(database) == CONSENT_VERSION:
                        Records(database, self._path).verify()
                    else:
                        # Loaded here: most files are of today.
                        from taciturn.party.consent.conversion import read_former

                        read_former(database, self._path)
            self._database = connect(self._path)
        try:
            with explained(self._path):
                # Charges are copied from the log into the file after 64 pages: a service keeps few
                # of them in the log alone, and does not wait for two more flushes at each request.
                for setting in ("synchronous = full", "wal_autocheckpoint = 64"):
                    self._database.execute(f"pragma {setting}")
                self._database.execute("pragma cell_size_check = on")
                former = self._format(self._database) == _FORMER_FORMAT
            with self.transaction(write=former):
                pass
        except BaseException:
            self._database.close()
            raise

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[Records]:
        """Transaction: on disk when the block ends, undone where it raises."""
        database = self._database
        # SQLite's errors come from the records, whoever calls them; those of the system in the
        # block are of the caller.
        with self._lock, explained(self._path):
            # Read before the transaction: another program may commit and note a later one then.
            noted = self._noted()
            self._begin(database, "begin immediate" if write else "begin")
            try:
                self._require_in_place()
                records = self._records(database)
                same, later = noted[:16] == records.generation[:16], noted <= records.generation
                if _NOTED.fullmatch(noted) and not (same and later):
                    raise _refused(
                        self._path,
                        f"this {KIND} is an older copy, or another one, than the one that was "
                        "charged last",
                        f"restore the newest copy, and remove {self._store.log_file.name}; without "
                        "one lower your limits by what was charged since, and remove "
                        f"{self._store.generation_file.name} too",
                    )
                yield records
                changed = write and records.save()
                database.execute("commit")
            except BaseException:
                # Where the disk was full SQLite itself has undone it.
                with suppress(sqlite3.Error):
                    database.rollback()
                raise
            if changed:
                self._note(records.generation)

    def close(self) -> None:
        """Releases the file."""
        self._database.close()

    def _begin(self, database: sqlite3.Connection, statement: str) -> None:
        """Begin a transaction; a long wait for another program's is announced."""
        short = min(_UNANNOUNCED_SECONDS, self._store.wait_seconds)
        for last, wait_seconds in ((False, short), (True, self._store.wait_seconds - short)):
            database.execute(f"pragma busy_timeout = {int(1000 * wait_seconds)}")
            try:
                database.execute(statement)
            except sqlite3.OperationalError as problem:
                if last or error_code(problem) != sqlite3.SQLITE_BUSY:
                    raise
                self._store.announce(f"waiting for another program that writes {self._path}")
            else:
                return

    def _records(self, database: sqlite3.Connection) -> Records:
        """The records of the file; those of a former format are converted."""
        if self._format(database) == CONSENT_VERSION:
            return Records(database, self._path, self._cache)
        # Loaded here: most files are of today.
        from taciturn.party.consent.conversion import converted

        self._store.announce(f"converting {self._path} to format {CONSENT_VERSION}")
        return converted(database, self._path)

    def _format(self, database: sqlite3.Connection) -> int:
        if database.execute("pragma application_id").fetchone() != (_APPLICATION,):
            raise _former(self._path)
        (found,) = database.execute("pragma user_version").fetchone()
        if found not in (_FORMER_FORMAT, CONSENT_VERSION):
            raise _refused(
                self._path,
                f"a {KIND} of version {found}; this program reads {CONSENT_VERSION}",
                "use the version of taciturn that wrote it",
            )
        return int(found)

    def _require_in_place(self) -> None:
        """Insists that the path names the file that is open: in another one nobody would look."""
        with suppress(OSError):
            if os.path.samestat(self._path.stat(), self._file):
                return
        raise _refused(
            self._path,
            f"the {KIND} was removed or replaced while this program had it open",
            "put it back, and start the program again; nothing was charged",
        )

    def _noted(self) -> bytes:
        """The last generation that was noted; empty where there is no note."""
        with reached(self._path), suppress(FileNotFoundError):
            return self._store.generation_file.read_bytes()
        return b""

    def _note(self, generation: bytes) -> None:
        # The charge is on the disk: an error must not deny it. Without a flush a note may be lost
        # with the power; then less is noticed, and nothing is refused wrongly.
        with suppress(OSError):
            file = os.open(self._store.generation_file, os.O_WRONLY | os.O_CREAT, 0o600)
            with os.fdopen(file, "wb") as stream:
                stream.write(generation)


def _refused(path: Path, problem: str, way_out: str) -> FileError:
    return FileError(problem, where=str(path), hint=way_out)


def _former(path: Path) -> StateError:
    return StateError(
        f"this file is no {KIND}, perhaps one of an earlier version, which cannot be read",
        where=str(path),
        hint="its counts are not carried over: lower your limits by what it holds and move it to "
        "another folder; counting then starts from zero",
    )
