"""``AlignJob``: one side of an alignment: its ids, and the list of common rows.

Nothing is kept on the way: an alignment that was interrupted is begun anew, under new scalars. The
elements of many ids are in files of the party's state folder while it lasts; see
``taciturn.jobs.align.pairwise``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from taciturn.crypto.group import library
from taciturn.data.ids import Normalisation, RowIds
from taciturn.errors import ConfigError, rendering_errors_as
from taciturn.files import reporting_write_errors
from taciturn.jobs.align.declaration import ALIGNMENT
from taciturn.jobs.align.intersection import (
    Intersection,
    IntersectionTask,
    MatchRequirement,
    fraction_of_shortest,
    terms_among,
)
from taciturn.jobs.align.pairwise import Spread
from taciturn.jobs.align.result import AlignmentResult
from taciturn.jobs.base import Job, SessionFacts, Side
from taciturn.memmap import Scratch
from taciturn.parallel import usable_cores
from taciturn.party.aligned_rows import AlignedRows, beside_rows, require_kind, require_room
from taciturn.party.config import PartyConfig
from taciturn.party.log import Log
from taciturn.party.settings_file import add_settings
from taciturn.protocol.events import Aligning, Event
from taciturn.protocol.steps import Program
from taciturn.rng import Entropy
from taciturn.setting_syntax import toml_value
from taciturn.version import __version__

SCRATCH = "align"
NOTE_SECONDS = 15.0


def list_file(config: PartyConfig, out: Path | None = None, rows: Path | str | None = None) -> Path:
    """Path of the list: as requested, next to new rows, or from the party's file."""
    # Several Alices may try it out in one folder.
    stem = Path(config.where).stem if config.parties else config.role
    of_training = config.path(config.data.aligned or f"{stem}.aligned.csv")
    usual = of_training if rows is None else beside_rows(config, rows, "aligned")
    path = out or usual
    with rendering_errors_as(config.syntax):
        if rows is not None and path.resolve() == of_training.resolve():
            raise ConfigError(
                "the list of new rows would replace the list that a training uses",
                setting="out",
                value=str(path),
                hint="name another file",
            )
        require_kind(path, "aligned" if out is None else "out")
    return path


@dataclass(frozen=True, slots=True)
class AlignJob(Job[AlignmentResult]):
    """Find the rows that all sides have, and write the list of them.

    ``normalisation`` is that of the party's file where None. ``rows`` are new rows to align in
    place of the settings' table. Any number of them may be common, and the list is for a
    prediction: the party's file stays as it is.
    """

    normalisation: Normalisation | None = None
    out: Path | None = None
    rows: Path | str | None = None
    purpose = ALIGNMENT
    # An element is blinded once: a session that breaks begins anew.
    rejoins = False
    # Rows are aligned before there is an agreement on them.
    needs_signatures = False

    def prepare(self, config: PartyConfig) -> AlignSide:
        """Read this side's ids."""
        library()  # now, rather than when the peer waits
        chosen = self.normalisation or config.normalisation
        file = list_file(config, self.out, self.rows)
        table = config.table(self.rows)
        ids = table.ids(config.data.id, chosen)
        require_room(file, ids.own_ids)
        requirement = MatchRequirement(
            ids.common,
            chosen,
            config.data.min_overlap if self.rows is None else 0.0,
            f"column {config.data.id!r} of {table.where}",
        )
        parties = config.parties
        terms = terms_among(chosen, parties) if parties else chosen.canonical()
        task = IntersectionTask(config.role, [*parties], requirement, terms)
        return AlignSide(self, config, ids.own_ids, file, task)


@dataclass(slots=True)
class AlignSide(Side[Intersection, AlignmentResult]):
    """One side of an alignment: its ids, and the file of the list."""

    job: AlignJob
    config: PartyConfig
    ids: RowIds = field(repr=False)
    file: Path
    task: IntersectionTask
    _progress: _ProgressLog | None = None

    @contextmanager
    def at_work(self, config: PartyConfig, log: Log) -> Iterator[None]:
        """Context with a thread pool, and with files for the elements of many ids."""
        log("alignment started", ids=len(self.ids))
        self._progress = _ProgressLog(log)
        with thread_pool() as spread, _scratch(config) as scratch:
            self.task = replace(self.task, spread=spread, scratch=scratch)
            yield

    def program(self, entropy: Entropy) -> Program[Intersection]:
        """The private set intersection with every peer."""
        return self.task.program(entropy)

    def observe(self, event: Event) -> None:
        """Log the progress now and then."""
        if isinstance(event, Aligning) and self._progress is not None:
            self._progress.passed(event)

    def deliver(self, outcome: Intersection) -> None:
        """Write the list: the peer takes a confirmation for a list that is written."""
        own_ids = self.ids.take(outcome.rows)
        normalised = self.task.requirement.ids
        common = own_ids if normalised is self.ids else normalised.take(outcome.rows)
        AlignedRows(own_ids, common).write(self.file, self.config.data.id)

    def conclude(self, outcome: Intersection, session: SessionFacts) -> AlignmentResult:
        """Name the list in the party's file where that can be done."""
        traffic, common, config = session.traffic, len(outcome.rows), self.config
        session.log("aligned", rows=common, file=str(self.file))
        lines = self._lacking()
        added = self.job.out is None and self._add(lines, session.log)
        parties = tuple(replace(party, name=party.name or session.peer) for party in outcome.shared)
        return AlignmentResult(
            role=session.role,
            peer=session.peer,
            normalise_ids=str(self._normalisation),
            ids=len(self.ids),
            peer_ids=outcome.shortest,
            common=common,
            match=fraction_of_shortest(common, len(self.ids), outcome.shortest),
            parties=parties if config.parties else None,
            spellings=self.task.requirement.spellings(common),
            file=str(self.file),
            configured=added or not (self.job.rows is not None or "aligned" in lines),
            settings=config.where,
            added=_toml_lines(lines) if added else (),
            to_add=() if added else _toml_lines(lines),
            peer_confirmed=session.confirmed,
            seconds=session.connected_seconds,
            waiting_seconds=traffic.waiting,
            bytes_sent=traffic.bytes_sent,
            bytes_received=traffic.bytes_received,
            version=__version__,
        )

    @property
    def _normalisation(self) -> Normalisation:
        return self.task.requirement.normalisation

    def _lacking(self) -> dict[str, str]:
        """Lines missing from the party's file for a training on these rows."""
        data, lines = self.config.data, dict[str, str]()
        if self.job.rows is not None:
            return lines
        named = None if data.aligned is None else self.config.path(data.aligned).resolve()
        if named != self.file.resolve():
            lines["aligned"] = _relative(self.file, self.config.folder)
        if self._normalisation != self.config.normalisation:
            lines["normalise-ids"] = str(self._normalisation)
        return lines

    def _add(self, lines: dict[str, str], log: Log) -> bool:
        if not lines or not add_settings(Path(self.config.where), "data", lines):
            return False
        log("settings added", file=self.config.where, lines=list(_toml_lines(lines)))
        return True


@contextmanager
def thread_pool() -> Iterator[Spread]:
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


class _ProgressLog:
    """Log now and then how many ids are done, and how long the rest will take at this pace."""

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
