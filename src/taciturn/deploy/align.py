"""Runs one side of an alignment: reads its ids, meets the peer, writes the list of common rows.

Nothing is kept on the way: an alignment that was interrupted is begun anew, under new scalars.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from taciturn.crypto.group import library
from taciturn.data.files import Dialect
from taciturn.data.normalisation import Normalisation
from taciturn.data.own import ids_alone
from taciturn.deploy.aligned import AlignedRows, require_kind, require_room
from taciturn.deploy.config import PartyConfig
from taciturn.deploy.link import ALIGNMENT
from taciturn.deploy.log import Log
from taciturn.deploy.session import Meeting, PeerSession
from taciturn.engine.callbacks import Callbacks
from taciturn.engine.channel import Endpoint
from taciturn.errors import RowOrderError, shown_by
from taciturn.faces import Hint
from taciturn.parallel import usable_cores
from taciturn.protocol.align import Alignment, align
from taciturn.protocol.events import Aligning, Event
from taciturn.results.parties import AlignmentResult
from taciturn.rng import SystemEntropy
from taciturn.version import __version__

FAREWELL_SECONDS = 10.0
NOTE_SECONDS = 15.0


def list_file(config: PartyConfig, out: Path | None = None) -> Path:
    """Where the list goes: as asked for, as the party's file says, or beside that.

    Raises:
        ConfigError: The file cannot be a list.
    """
    named = config.data.aligned or f"{config.role}.aligned.csv"
    path = config.path(named) if out is None else out
    with shown_by(config.face):
        require_kind(path, "aligned" if out is None else "out")
    return path


class AligningParty:
    """One side, ready to meet the other.

    Args:
        config: Its settings.
        endpoint: Its way to the peer.
        callbacks: Who is told what happens.
        normalisation: What is done to each id before it is compared.
        out: Where the list goes; None for where the settings say.

    Raises:
        ConfigError: The list cannot be of that kind.
        DataError: Its ids are not fit for use.
        CryptoError: The group's library cannot be loaded.
    """

    def __init__(
        self,
        config: PartyConfig,
        endpoint: Endpoint,
        callbacks: Callbacks,
        normalisation: Normalisation,
        out: Path | None = None,
    ) -> None:
        library()  # now, rather than when the peer waits
        self.config, self._callbacks = config, callbacks
        self._session = PeerSession(config, endpoint, callbacks)
        self._log = self._session.log
        self._normalisation, self._file = normalisation, list_file(config, out)
        self._own = ids_alone(
            config.path(config.data.file),
            id_column=config.data.id,
            dialect=Dialect.of(config.data),
        )
        require_room(self._file, self._own)
        self._common = normalisation.apply(self._own)
        self._pace = _Pace(self._log)

    def run(self) -> AlignmentResult:
        """Aligns, and writes the list.

        Raises:
            RowOrderError: The two sides have no id in common.
            TaciturnError: This side or the peer cannot continue; says why, and what to do.
        """
        self._log("alignment started", ids=len(self._own))
        with self._session.meet(ALIGNMENT, rejoins=False) as meeting:
            traffic = meeting.traffic
            alignment = self._align(meeting)
            # Before confirming: the peer takes a confirmation for a list that is written.
            self._write(alignment)
            confirmed = meeting.finish(FAREWELL_SECONDS)
            seconds = time.monotonic() - (traffic.since or time.monotonic())
        self._log("aligned", rows=len(alignment.rows), file=str(self._file))
        return AlignmentResult(
            role=self.config.role,
            peer=self.config.link.peer,
            normalise=str(self._normalisation),
            ids=len(self._own),
            peer_ids=alignment.peer_ids,
            common=len(alignment.rows),
            file=str(self._file),
            configured=self.config.data.aligned is not None
            and self.config.path(self.config.data.aligned).resolve() == self._file.resolve(),
            peer_confirmed=confirmed,
            seconds=seconds,
            waiting_seconds=traffic.waiting,
            bytes_sent=traffic.bytes_sent,
            bytes_received=traffic.bytes_received,
            version=__version__,
        )

    def _align(self, meeting: Meeting) -> Alignment:
        role, terms = self.config.role, self._normalisation.canonical()
        # The group's library computes with the interpreter's lock released: threads do help, and a
        # secret scalar need not leave the process.
        with ThreadPoolExecutor(usable_cores(), thread_name_prefix="taciturn-align") as pool:
            program = align(role, self._common, terms, SystemEntropy(), pool.map)
            return meeting.run(program, observe=self._observe)

    def _observe(self, event: Event) -> None:
        self._callbacks.observe(event)
        if isinstance(event, Aligning):
            self._pace.passed(event)

    def _write(self, alignment: Alignment) -> None:
        if not len(alignment.rows):
            raise RowOrderError(
                f"the two sides have no id in common: {len(self._own)} here, "
                f"{alignment.peer_ids} there",
                where=f"column {self.config.data.id!r} of {self.config.data.file}",
                hint=Hint(
                    "name the same kind of id on both sides; a different spelling may need "
                    "{normalise}"
                ),
            )
        own, common = self._own.take(alignment.rows), self._common.take(alignment.rows)
        AlignedRows(own, common).write(self._file, self.config.data.id)


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
        elif now - self._noted >= NOTE_SECONDS and event.done < event.total:
            began, then = self._first
            left = (now - began) * (event.total - event.done) / (event.done - then)
            self._log("aligning", done=event.done, total=event.total, seconds_left=round(left))
            self._noted = now
