"""Runs one side of an alignment: reads its ids, meets the peer, writes the list of common rows.

Nothing is kept on the way: an alignment that was interrupted is begun anew, under new scalars. The
elements of many ids are in files of the party's state folder while it lasts; see
``taciturn.protocol.element_buckets``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from taciturn.arrays import IndexArray
from taciturn.crypto.group import library
from taciturn.data.normalisation import Normalisation
from taciturn.deploy.aligned import AlignedRows, require_kind, require_room
from taciturn.deploy.common_ids import Common, Enough, Search, fraction_of_shortest
from taciturn.deploy.config import PartyConfig
from taciturn.deploy.link import ALIGNMENT
from taciturn.deploy.log import Log
from taciturn.deploy.session import Meeting, PeerSession
from taciturn.deploy.settings_file import add_settings
from taciturn.engine.callbacks import Callbacks
from taciturn.engine.channel import Endpoints
from taciturn.errors import shown_by
from taciturn.faces import toml_value
from taciturn.files import reporting_write_errors
from taciturn.mapped import Scratch
from taciturn.parallel import usable_cores
from taciturn.protocol.align import Spread
from taciturn.protocol.align_several import terms_among
from taciturn.protocol.events import Aligning, Event
from taciturn.results.parties import AlignmentResult, SharedIds
from taciturn.rng import SystemEntropy
from taciturn.version import __version__

FAREWELL_SECONDS = 10.0
SCRATCH = "align"
NOTE_SECONDS = 15.0


def list_file(config: PartyConfig, out: Path | None = None, rows: Path | None = None) -> Path:
    """Where the list goes: as asked for, beside new rows, or where the party's file says."""
    # Several Alices may try it out in one folder.
    stem = Path(config.where).stem if config.parties else config.role
    path = config.path(config.data.aligned or f"{stem}.aligned.csv") if out is None else out
    if out is None and rows is not None:
        path = rows.with_name(f"{rows.name.partition('.')[0]}.aligned.csv")
    with shown_by(config.face):
        require_kind(path, "aligned" if out is None else "out")
    return path


class AligningParty:
    """One side of an alignment, ready to meet the other, or the others.

    ``rows`` are new rows to align in place of the settings' table. Any number of them may be
    common, and the list is for a prediction: the party's file stays as it is.
    """

    def __init__(
        self,
        config: PartyConfig,
        endpoint: Endpoints,
        callbacks: Callbacks,
        normalisation: Normalisation,
        out: Path | None = None,
        rows: Path | None = None,
    ) -> None:
        library()  # now, rather than when the peer waits
        self.config, self._callbacks = config, callbacks
        self._session = PeerSession(config, endpoint, callbacks)
        self._log = self._session.log
        self._normalisation, self._file = normalisation, list_file(config, out, rows)
        self._asked_for, self._new = out, rows is not None
        table = config.table(rows)
        self._own = table.ids(config.data.id)
        require_room(self._file, self._own)
        self._common = normalisation.apply(self._own)
        self._enough = Enough(
            self._common,
            normalisation,
            0.0 if self._new else config.data.minimum_match,
            f"column {config.data.id!r} of {table.where}",
        )
        self._pace = _Pace(self._log)

    def run(self) -> AlignmentResult:
        """Aligns, writes the list, and names it in the party's file where that can be done."""
        self._log("alignment started", ids=len(self._own))
        with self._session.meet(ALIGNMENT, rejoins=False) as meeting:
            common = self._align(meeting)
            # Before confirming: the peer takes a confirmation for a list that is written.
            self._write(common.rows)
            confirmed, traffic = meeting.finish(FAREWELL_SECONDS), meeting.traffic
            seconds = time.monotonic() - (traffic.since or time.monotonic())
        self._log("aligned", rows=len(common.rows), file=str(self._file))
        lines = self._lacking()
        added = self._asked_for is None and self._add(lines)
        return AlignmentResult(
            role=self.config.role,
            peer=self.config.peer,
            normalise=str(self._normalisation),
            ids=len(self._own),
            peer_ids=common.shortest,
            common=len(common.rows),
            match=fraction_of_shortest(len(common.rows), len(self._own), common.shortest),
            parties=self._parties(common),
            spellings=self._enough.spellings(len(common.rows)),
            file=str(self._file),
            configured=added or not (self._new or "aligned" in lines),
            settings=self.config.where,
            added=_toml_lines(lines) if added else (),
            to_add=() if added else _toml_lines(lines),
            peer_confirmed=confirmed,
            seconds=seconds,
            waiting_seconds=traffic.waiting,
            bytes_sent=traffic.bytes_sent,
            bytes_received=traffic.bytes_received,
            version=__version__,
        )

    def _parties(self, common: Common) -> tuple[SharedIds, ...] | None:
        if not self.config.parties:
            return None
        return tuple(replace(one, name=one.name or self.config.peer) for one in common.shared)

    def _lacking(self) -> dict[str, str]:
        """What the party's file does not say yet, so that a training takes these rows."""
        data, lines = self.config.data, dict[str, str]()
        if self._new:
            return lines
        named = None if data.aligned is None else self.config.path(data.aligned).resolve()
        if named != self._file.resolve():
            lines["aligned"] = _relative(self._file, self.config.folder)
        if self._normalisation != self.config.normalisation:
            lines["normalise"] = str(self._normalisation)
        return lines

    def _add(self, lines: dict[str, str]) -> bool:
        if not lines or not add_settings(Path(self.config.where), "data", lines):
            return False
        self._log("settings added", file=self.config.where, lines=list(_toml_lines(lines)))
        return True

    def _align(self, meeting: Meeting) -> Common:
        parties, normalisation = self.config.parties, self._normalisation
        terms = terms_among(normalisation, parties) if parties else normalisation.canonical()
        with on_threads() as spread, _scratch(self.config) as scratch:
            search = Search(self.config.role, [*parties], self._enough, terms, spread, scratch)
            observe = partial(self._observe, meeting)
            return meeting.run(search.program(SystemEntropy()), observe=observe)

    def _observe(self, meeting: Meeting, event: Event) -> None:
        self._callbacks.observe(event)
        if isinstance(event, Aligning):
            self._pace.passed(event)
            self._callbacks.publish(meeting.traffic.seen())

    def _write(self, rows: IndexArray) -> None:
        own = self._own.take(rows)
        alike = self._common is self._own
        common = own if alike else self._common.take(rows)
        AlignedRows(own, common).write(self._file, self.config.data.id)


@contextmanager
def on_threads() -> Iterator[Spread]:
    """Thread pool for the parts of an alignment.

    The group's library computes with the interpreter's lock released: threads do help, and a secret
    scalar need not leave the process.
    """
    pool = ThreadPoolExecutor(usable_cores(), thread_name_prefix="taciturn-align")
    try:
        yield pool.map
    finally:
        # Where the peer is gone, what was begun ahead is of no use.
        pool.shutdown(cancel_futures=True)


@contextmanager
def _scratch(config: PartyConfig) -> Iterator[Scratch]:
    # Of several peers, each has its part of what may be in memory.
    folder = config.path(config.state.folder) / SCRATCH
    scratch = Scratch(folder)
    scratch = replace(scratch, least=scratch.least // len(config.peers))
    with reporting_write_errors(folder, "folder for elements", "remove it"):
        scratch.clear()
    try:
        yield scratch
    finally:
        with suppress(OSError):  # the next alignment tries again
            scratch.clear()


def _toml_lines(values: dict[str, str]) -> tuple[str, ...]:
    return tuple(f"{name} = {toml_value(value)}" for name, value in values.items())


def _relative(path: Path, folder: Path) -> str:
    """A path as a party's file names it: relative to its folder where it lies below."""
    whole, base = path.resolve(), folder.resolve()
    return str(whole.relative_to(base)) if whole.is_relative_to(base) else str(whole)


class _Pace:
    """Notes now and then how far it is, and how long the rest will take at this pace."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._first: tuple[float, int] | None = None
        self._noted = 0.0

    def passed(self, event: Aligning) -> None:
        now = time.monotonic()
        if self._first is None:
            # The first turn is no measure of the pace: it includes the wait for the peer.
            self._first, self._noted = (now, event.done), now
            return
        began, then = self._first
        if event.done == event.total:
            if now - began >= NOTE_SECONDS:
                self._log("comparing elements", total=event.total)
        elif now - self._noted >= NOTE_SECONDS:
            left = (now - began) * (event.total - event.done) / (event.done - then)
            self._log("aligning", done=event.done, total=event.total, seconds_left=round(left))
            self._noted = now
