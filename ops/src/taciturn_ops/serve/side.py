"""``ServeSide``: one side of scores on demand.

A side stays connected: it meets its peer again whenever the link is lost, either side is restarted
or a round fails, until it is to stop. Entropy and keys are drawn anew at each meeting, and no state
is kept except the budgets. SIGHUP reloads the settings in ``_RELOADED``, between two requests.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Generic, TypeVar

from taciturn.errors import (
    ConfigError,
    OutputError,
    PeerAbsent,
    TaciturnError,
    rendering_errors_as,
)
from taciturn.jobs.base import RunContext
from taciturn.party.agreement_check import require_begun_in_time
from taciturn.party.applied_model import AppliedModel
from taciturn.party.config import SECTIONS, PartyConfig
from taciturn.party.session import Meeting, PeerSession
from taciturn.protocol.messages import Hello
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.steps import Program
from taciturn.rng import Entropy, KeyedEntropy
from taciturn.setting_syntax import hyphenated
from taciturn.version import PROTOCOL_VERSION
from taciturn_ops.serve.declaration import SERVING
from taciturn_ops.serve.rounds import serving_terms
from taciturn_ops.serve.section import ServeSection
from taciturn_ops.serve.sources import ReplaceableRows, ServedRows, common_ids, open_source

# How long a side looks for the other before it looks whether it is to stop.
LOOK_SECONDS, LOOK_FOR_SEVERAL_SECONDS = 1.0, 5.0
# How long a side that was refused waits before it tries again, and the longest it does.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.2, 5.0
# A side that hears nothing for so long takes the other to be gone; Bob asks more often than that.
SILENT_SECONDS, OPENING_SECONDS = 30.0, 5.0
# Reason sent to the peer at a normal end.
STOPPED = 0
# After how long the same trouble is logged again.
REPEAT_SECONDS = 60.0

# What holds from the next request on where a file is reloaded; all else, from the next start.
_RELOADED = {
    "data": {"file", "query", "connection"},
    "privacy": {"scores_per_row", "repetitions_per_row"},
    "serve": {
        *("source", "query", "connection", "aligned", "tokens", "tls_certificate", "tls_key"),
        *("rows_per_day", "requests_per_row_per_day", "max_rows_per_request"),
        *("request_seconds", "max_queued_requests"),
    },
}
# Of these only the files may change, not whether there are any.
_KEPT_PRESENT = ("tokens", "tls_certificate")

C = TypeVar("C")


class ServeSide(ABC, Generic[C]):
    """A side that stays connected until ``stop`` is set; C is its conversation with the peer.

    ``resources`` are closed at the end.
    """

    resources: ExitStack
    session: PeerSession

    def __init__(
        self, config: PartyConfig, used: AppliedModel, share: WeightShare | None, opened: ExitStack
    ) -> None:
        self.config, self.used, self.stop = config, used, threading.Event()
        self.rows = ServedRows(share, common_ids(config))
        scales = used.scales if used.model.sealed else None
        self.terms = serving_terms(used.name, str(config.normalisation), used.terms, scales)
        source = ReplaceableRows(open_source(config, used.model))
        self.source = opened.enter_context(closing(source))
        self._reloading = threading.Lock()
        self._pause, self._logged, self._quiet_until = FIRST_PAUSE_SECONDS, "", 0.0

    @abstractmethod
    def open(self, entropy: Entropy) -> Program[C]:
        """The first messages of a meeting."""

    @abstractmethod
    def stay(self, meeting: Meeting, conversation: C) -> None:
        """Run rounds with the peer; returns to meet it anew."""

    @abstractmethod
    def serve(self, context: RunContext) -> None:
        """Serve until this side is to stop."""

    def away(self, reason: str) -> None:
        """Called with the reason when the peer is not there."""

    def run_session(self, context: RunContext) -> None:
        """Serve, and close what was opened."""
        self.session = session = context.session()
        session.notes_absence = False
        look = LOOK_FOR_SEVERAL_SECONDS if len(self.config.peers) > 1 else LOOK_SECONDS
        session.patience = replace(
            session.patience, connect=look, answer=SILENT_SECONDS, opening=OPENING_SECONDS
        )
        with self.resources, _on_hangup(self.reload):
            self.serve(context)

    def reload(self) -> None:
        """Take new settings from this side's file; without a change where it cannot be used."""
        with self._reloading:
            try:
                config = _reloaded(self.config)
                with rendering_errors_as(config.syntax):
                    take_over, common = self.reloaded(config), common_ids(config)
                    source = open_source(config, self.used.model)
            except TaciturnError as problem:
                self.log("settings not reloaded", reason=problem.message, where=problem.where)
                return
            self.config = config
            self.rows.restrict(common)
            self.source.replace(source)
            take_over()
            self.log("settings reloaded")

    @abstractmethod
    def reloaded(self, config: PartyConfig) -> Callable[[], None]:
        """Check this side's part of new settings; what is returned puts them in force."""

    @property
    def hello(self) -> Hello:
        """The greeting of a meeting: no rows are named yet."""
        return Hello(
            version=PROTOCOL_VERSION,
            role=self.used.role,
            terms=self.terms,
            rows=0,
            ids_digest="",
            magnitude_bits=self.rows.size,
            columns=len(self.used.model.columns),
        )

    def stay_connected(self) -> None:
        """Meet the peer, stay with it, and meet it again when it was lost."""
        while not self.stop.is_set():
            try:
                self.require_in_time()
                with self.session.meet(SERVING, declines=False) as meeting:
                    meeting.connect()
                    conversation = meeting.run(self.open(KeyedEntropy.from_system()))
                    # The two have understood each other: what failed before is over.
                    self._pause = FIRST_PAUSE_SECONDS
                    self.log("serving")
                    self.stay(meeting, conversation)
                    if self.stop.is_set():
                        for link in meeting.links.values():
                            link.fail(STOPPED, "it is being stopped")
            except PeerAbsent as problem:
                self.away(problem.message)
            except TaciturnError as problem:
                self.away(problem.message)
                self._log_end(problem.message)
                self.stop.wait(self._pause)
                self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)

    def require_in_time(self) -> None:
        """Require that the agreement has not ended; checked before each round of a long meeting."""
        require_begun_in_time(self.config)

    def log(self, event: str, **facts: object) -> None:
        """Log an event; a log that cannot be written must not end the service."""
        with suppress(OutputError):
            self.session.log(event, **facts)

    def _log_end(self, reason: str) -> None:
        """Log why a meeting has ended; the same reason again after a while only."""
        now = time.monotonic()
        if reason != self._logged or now >= self._quiet_until:
            self._logged, self._quiet_until = reason, now + REPEAT_SECONDS
            self.log("the meeting has ended", reason=reason)


def _reloaded(config: PartyConfig) -> PartyConfig:
    """The settings that the file has now; ConfigError where one needs another start."""
    fresh = PartyConfig.read(Path(config.where))
    for job_section in (*config.job_sections.values(), *fresh.job_sections.values()):
        # One that is absent in one of them has its defaults there.
        config.section(type(job_section)), fresh.section(type(job_section))
    before, after = _fixed(config), _fixed(fresh)
    for place in {**before, **after}:
        if before.get(place) != after.get(place):
            raise ConfigError(
                f"{place} was changed, which holds from the next start only",
                where=config.where,
                hint="start the service again, or take the change back",
            )
    return fresh


def _fixed(config: PartyConfig) -> dict[str, object]:
    """The settings that a running service keeps, by their places in the file."""
    values: dict[str, object] = {
        f"[agreement] {hyphenated(name)}": value for name, value in config.agreed.items()
    }
    values["[agreement] file"] = config.agreement_file
    own = {name: getattr(config, name) for name in SECTIONS if name != "agreement"}
    for section, model in {**own, **config.job_sections}.items():
        for name, value in model.model_dump().items():
            if name not in _RELOADED.get(section, ()):
                values[f"[{section}] {hyphenated(name)}"] = value
    for name in _KEPT_PRESENT:
        present = getattr(config.section(ServeSection), name) is None
        values[f"[serve] {hyphenated(name)}"] = present
    return values


@contextmanager
def _on_hangup(act: Callable[[], None]) -> Iterator[None]:
    """Call ``act`` in a thread when the process gets SIGHUP (not on Windows)."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(
        signal.SIGHUP,
        lambda number, frame: threading.Thread(target=act, name="taciturn-reload").start(),
    )
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
