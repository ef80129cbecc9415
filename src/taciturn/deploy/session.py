"""Two parties meet: what a training, a dry run, an alignment and a prediction have in common.

A session has a log and patience; a meeting has a link, which is closed at its end. Where this side
aborts, the peer is told as much of the reason as it may know. What is said, and what is kept of it,
is the business of each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from taciturn.deploy.config import PartyConfig
from taciturn.deploy.journal import NONCE_BYTES, Journal, Meta, Past
from taciturn.deploy.link import Link, Pace, Patience, Traffic
from taciturn.deploy.log import Log
from taciturn.deploy.playback import USUAL, Freeze, Rhythm, run_party, unheard, unnoted
from taciturn.engine.callbacks import SILENT, Callbacks, Observer
from taciturn.engine.channel import Endpoint
from taciturn.engine.driver import Tap
from taciturn.errors import (
    AgreementError,
    OutputError,
    PeerStopped,
    RemoteProtocolError,
    StateError,
    TaciturnError,
)
from taciturn.protocol.messages import Role
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program
from taciturn.rng import SystemEntropy

R = TypeVar("R")
# How long a new link may be without a word.
OPENING_SECONDS = 30.0
# How long a side that cannot begin tries to tell the peer so.
TELLING_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Meeting:
    """One side while it is with the peer.

    Args:
        role: Which side this is.
        link: To the peer; it connects when it is first used.
        past: What the journal says so far; nothing where none is kept.
        journal: Where frames and checkpoints go; None where none is kept.
        observe: Told each event.
    """

    role: Role
    link: Link
    past: Past
    journal: Journal | None
    observe: Observer

    @property
    def traffic(self) -> Traffic:
        """What crossed so far."""
        return self.link.traffic

    @property
    def name(self) -> str:
        """One name of the session for both sides."""
        own, peer = self.link.names
        first, second = (own, peer) if self.role == "alice" else (peer, own)
        return hashlib.sha256(first + second).hexdigest()[:32]

    def run(
        self,
        program: Program[R],
        *,
        observe: Observer | None = None,
        freeze: Freeze = TrainingState.to_bytes,
        rhythm: Rhythm = USUAL,
        tap: Tap = unheard,
        note: Callable[[bytes], None] = unnoted,
    ) -> R:
        """Runs this side's program to its end; what the journal holds is played back first.

        Args:
            program: Started from the past's checkpoint.
            observe: Told each event since the checkpoint, in place of the session's observer.
            freeze: Turns a state into what a checkpoint holds.
            rhythm: How often a checkpoint is written.
            tap: Called with the sender and the bytes of each frame since the checkpoint.
            note: Called with what the program has kept since the checkpoint.

        Raises:
            TaciturnError: This side or the peer cannot continue; says why.
        """
        return run_party(
            self.role,
            program,
            self.link,
            self.past,
            journal=self.journal,
            freeze=freeze,
            rhythm=rhythm,
            tap=tap,
            note=note,
            observe=observe or self.observe,
        )

    def finish(self, seconds: float) -> bool:
        """Confirms what was received; whether the peer has confirmed all that was sent."""
        return self.link.finish(seconds)


class PeerSession:
    """One side, ready to meet the other.

    Args:
        config: Its settings.
        endpoint: Its way to the peer.
        callbacks: Who is told what happens.
    """

    def __init__(
        self, config: PartyConfig, endpoint: Endpoint, callbacks: Callbacks = SILENT
    ) -> None:
        self._role, self._endpoint, self._callbacks = config.role, endpoint, callbacks
        self._answer_milliseconds = config.privacy.answer_milliseconds
        way = config.link
        self.log = Log.of(config, callbacks.announce)
        self.patience = Patience(
            way.connect_seconds, way.answer_seconds, min(OPENING_SECONDS, way.answer_seconds)
        )

    @contextmanager
    def meet(
        self,
        purpose: int,
        past: Past | None = None,
        journal: Journal | None = None,
        *,
        rejoins: bool = True,
    ) -> Iterator[Meeting]:
        """Meets the peer; the link is closed at the end.

        Args:
            purpose: What the two meet for; the peer must say the same.
            past: What the journal says so far; None where none is kept.
            journal: Where frames are noted; None where none is kept.
            rejoins: Whether the meeting resumes over another link when one breaks.
        """
        past = past or Past(Meta({}, b"", SystemEntropy().token(NONCE_BYTES)))
        link = Link(
            self._endpoint,
            journal,
            past,
            purpose=purpose,
            rejoins=rejoins,
            patience=self.patience,
            announce=self.log,
            pace=Pace(self._answer_milliseconds, self.log),
        )
        try:
            yield Meeting(self._role, link, past, journal, self._callbacks.observe)
        except BaseException as problem:
            self._abort(link, problem)
            raise
        finally:
            link.close()

    def refuse(self, purpose: int, problem: TaciturnError) -> None:
        """Tells the peer, where it is there, that this side cannot begin."""
        with self.meet(purpose) as meeting:
            meeting.link.decline(*tellable(problem), TELLING_SECONDS)

    def _abort(self, link: Link, problem: BaseException) -> None:
        """Notes why, and tells the peer; one that aborted itself need not be told."""
        # A log that cannot be written must not keep the reason from the peer.
        with suppress(OutputError):
            self.log("aborting", reason=getattr(problem, "message", "interrupted"))
        if not isinstance(problem, PeerStopped):
            link.fail(*tellable(problem))


def tellable(problem: object) -> tuple[int, str]:
    """What the peer may know: its own mistakes in full, of ours only the kind.

    >>> tellable(OutputError("no room", where="a secret place"))
    (74, 'it had an error of its own (OutputError)')
    """
    if isinstance(problem, AgreementError | RemoteProtocolError):
        return problem.exit_code, problem.message
    if isinstance(problem, StateError):
        return problem.exit_code, "its state does not fit the session"
    if isinstance(problem, TaciturnError):
        return problem.exit_code, f"it had an error of its own ({type(problem).__name__})"
    return 1, "it was interrupted"
