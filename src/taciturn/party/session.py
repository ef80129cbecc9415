"""Parties meet: what a training, a dry run, an alignment and a prediction have in common.

A session has a log and patience; a meeting has a link to each peer, which is closed at its end.
What is said, and what is kept of it, is the business of each.

**Guarantee.** Where this side aborts, a peer is told what it could compute from messages that it
holds: differences of the agreement, the version, the rows; or the name of another peer that failed.
Every other cause (this side's table, labels, files, budgets, disk) is one message, the same bytes,
and in place of the opening of the link where this side has not opened it (``withheld``).

**Assumes.** When the message comes is not hidden: reading a table takes as long as it takes.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from taciturn.engine.callbacks import SILENT, Announce, Callbacks, Observer
from taciturn.errors import (
    AgreementError,
    CryptoError,
    OutputError,
    PeerAbsent,
    PeerSilent,
    PeerStopped,
    RemoteProtocolError,
    StateError,
    TaciturnError,
    TransportError,
)
from taciturn.party.config import PartyConfig
from taciturn.party.journal import NONCE_BYTES, Journal, Meta, Past
from taciturn.party.link import BROKEN, CONNECTED, WITHHELD, Link, Pace, Patience, Traffic
from taciturn.party.log import Log
from taciturn.party.resume import RunHooks, run_program
from taciturn.protocol.messages import Role
from taciturn.protocol.steps import ONLY, Program
from taciturn.results.parties import LinkChanged, LinkState
from taciturn.rng import SystemEntropy
from taciturn.transport.channel import Endpoints

R = TypeVar("R")
# How long a new link may be without a word.
OPENING_SECONDS = 30.0
# How long a side that cannot begin tries to tell the peer so.
TELLING_SECONDS = 3.0
# How long one of several links is waited for at the end before the next.
FAREWELL_TURN_SECONDS = 1.0
# What a link's words say of its state.
_STATES: Mapping[str, LinkState] = {CONNECTED: "connected", BROKEN: "broken"}


@dataclass(slots=True)
class Meeting:
    """One side while it is with the peer, or with several.

    ``links`` are by the names under which a program knows the peers; with one peer that is
    ``ONLY``. A link connects when it is first used, or while another one is waited for. ``journal``
    is None where none is kept. ``begun`` becomes true with this side's first answer, as far as its
    job says so.
    """

    role: Role
    links: Mapping[str, Link]
    past: Past
    journal: Journal | None
    observe: Observer
    begun: bool = False

    @property
    def traffic(self) -> Traffic:
        """Traffic so far, on all links."""
        return Traffic.sum(link.traffic for link in self.links.values())

    @property
    def name(self) -> str:
        """One name of the session for both sides; with several peers, Bob's own."""
        names = [self.name_with(peer) for peer in self.links]
        return names[0] if len(names) == 1 else _digest("".join(names).encode())

    def name_with(self, peer: str) -> str:
        """One name of the session for this side and one of its peers.

        It takes in what both drew for this session, so that no two have one name: not even where
        both sides were restored to before they met.
        """
        own_name, peer_name = self.links[peer].names
        first, second = (own_name, peer_name) if self.role == "alice" else (peer_name, own_name)
        return _digest(first + second)

    def connect(self) -> None:
        """Waits for all peers; afterwards all know what the others have."""
        for link in self.links.values():
            link.connect()

    def run(self, program: Program[R], hooks: RunHooks | None = None) -> R:
        """Runs this side's program to its end; what the journal holds is played back first.

        Without ``hooks`` the session's observer is called with events.
        """
        hooks = hooks or RunHooks(self.observe)
        return run_program(self.role, program, self.links, self.past, self.journal, hooks)

    def finish(self, seconds: float) -> bool:
        """Confirms what was received; whether the peers have confirmed all that was sent."""
        links, deadline = list(self.links.values()), time.monotonic() + seconds
        if len(links) == 1:
            return links[0].finish(seconds)
        # In turns, so that one that is away does not use up the time of the others.
        while links and (left := deadline - time.monotonic()) > 0:
            turn = min(left, FAREWELL_TURN_SECONDS)
            links = [link for link in links if not link.finish(turn)]
        return not links


def _digest(names: bytes) -> str:
    return hashlib.sha256(names).hexdigest()[:32]


class PeerSession:
    """One side, ready to meet the other, or the others."""

    def __init__(
        self, config: PartyConfig, endpoint: Endpoints, callbacks: Callbacks = SILENT
    ) -> None:
        self._role, self._peer, self._callbacks = config.role, config.peer, callbacks
        # In the order of the agreement, which is that of the links in a journal.
        self._endpoints = (
            {peer: endpoint[peer] for peer in config.peers}
            if isinstance(endpoint, Mapping)
            else {ONLY: endpoint}
        )
        self._answer_interval_milliseconds = config.privacy.answer_interval_milliseconds
        way = config.link
        self.log = Log.from_config(config, callbacks.announce)
        # Whether it is noted that nobody came; one that looks again and again logs it once.
        self.notes_absence = True
        # Whether links to the peers were set up: from then on these tell them why this side ends.
        self.met = False
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
        declines: bool = True,
    ) -> Iterator[Meeting]:
        """Meets the peer, or all of them; links are closed at the end.

        Each peer must name the same ``purpose``. ``rejoins`` says whether the meeting resumes over
        another link when one breaks, ``declines`` whether a peer to whom no link was opened is told
        that there will be none.
        """
        self.met = True
        past = past or Past(Meta({}, b"", SystemEntropy().token(NONCE_BYTES)))
        links: dict[str, Link] = {}
        for place, (peer, endpoint) in enumerate(self._endpoints.items()):
            announce = self._announce_of(peer)
            self._publish(peer, "waiting")
            links[peer] = Link(
                endpoint,
                journal,
                past.link(place),
                purpose=purpose,
                rejoins=rejoins,
                patience=self.patience,
                announce=announce,
                pace=Pace(self._answer_interval_milliseconds, announce),
                place=place,
                name=peer,
                meanwhile=None if peer == ONLY else partial(_tend, links, peer),
            )
        meeting = Meeting(self._role, links, past, journal, self._callbacks.observe)
        try:
            yield meeting
        except BaseException as problem:
            self._abort(meeting, problem, declines=declines)
            raise
        finally:
            _at_once(Link.close, links.values())
            for peer in links:
                self._publish(peer, "closed")

    def refuse(self, purpose: int) -> None:
        """Tells every peer that is there that this side does not begin, and not why."""
        with self.meet(purpose) as meeting:
            self._decline(meeting.links.values())

    def _decline(self, links: Iterable[Link]) -> None:
        code, reason = withheld(self._role)
        _at_once(lambda link: link.decline(code, reason, TELLING_SECONDS), links)

    def close(self) -> None:
        """Ends every way to a peer: from here on nobody can call."""
        for endpoint in self._endpoints.values():
            endpoint.close()

    def _announce_of(self, peer: str) -> Announce:
        def announce(text: str) -> None:
            if text in _STATES:
                self._publish(peer, _STATES[text])
            self.log(text if peer == ONLY else f"{peer}: {text}")

        return announce

    def _publish(self, peer: str, state: LinkState) -> None:
        self._callbacks.publish(LinkChanged(peer or self._peer, state))

    def _abort(self, meeting: Meeting, problem: BaseException, *, declines: bool) -> None:
        """Log the reason, and notify the peers except one that aborted itself."""
        # A log that cannot be written must not keep the reason from the peer.
        with suppress(OutputError):
            if self.notes_absence or not isinstance(problem, PeerAbsent):
                self.log("aborting", reason=getattr(problem, "message", "interrupted"))
        for peer, link in meeting.links.items():
            if isinstance(problem, TaciturnError) and problem.peer not in ("", peer):
                link.fail(*because_of(problem))
            elif not isinstance(problem, PeerStopped):
                link.fail(*tellable(problem, self._role, begun=meeting.begun))
        # A side that fails by itself ends as one that never set up a link does: an interrupt, or a
        # peer that cannot be reached, is no such failure.
        own = isinstance(problem, Exception) and not isinstance(problem, _OF_PEERS)
        if declines and own and not getattr(problem, "peer", ""):
            self._decline([link for link in meeting.links.values() if not link.connected])


def _tend(links: Mapping[str, Link], waited_for: str) -> None:
    for peer, link in links.items():
        if peer != waited_for:
            link.tend()


def _at_once(act: Callable[[Link], None], links: Iterable[Link]) -> None:
    """Does something with all links at a time: one that hangs must not hold the others up."""
    listed = list(links)
    if not listed:
        return
    first, *further = listed
    if not further:
        act(first)
        return
    with ThreadPoolExecutor(1 + len(further), thread_name_prefix="taciturn-links") as pool:
        list(pool.map(act, [first, *further]))


# Of these the peers know, or they cannot be told.
_OF_PEERS = (PeerStopped, TransportError)


def withheld(role: Role, *, begun: bool = False) -> tuple[int, str]:
    """Code and text for the peer, whatever the reason: they depend on the role alone.

    >>> withheld("bob"), withheld("alice", begun=True)
    ((0, "Bob's side does not begin"), (0, "Alice's side does not go on"))
    """
    return WITHHELD, f"{role.title()}'s side does not {'go on' if begun else 'begin'}"


def tellable(problem: object, role: Role, *, begun: bool = False) -> tuple[int, str]:
    """Exit code and text for the peer of an error after the link was opened.

    What follows from the peer's messages is named; of everything else nothing is told.

    >>> tellable(OutputError("no room", where="a secret place"), "bob")
    (0, "Bob's side does not begin")
    """
    if isinstance(problem, TaciturnError) and problem.for_peer:
        return problem.exit_code, problem.for_peer
    if isinstance(problem, RemoteProtocolError):
        return problem.exit_code, problem.message
    if isinstance(problem, Exception):
        return withheld(role, begun=begun)
    return 1, "it was interrupted"


# What is said of a peer to the others: no more than that it was this one, and how.
_FAILINGS = (
    (PeerStopped, "which aborted"),
    (AgreementError, "which has other settings"),
    (RemoteProtocolError, "which broke the protocol"),
    (CryptoError, "which broke the protocol"),
    (StateError, "whose state does not fit the session"),
    (PeerSilent, "which says nothing"),
    (TransportError, "which is not connected"),
)


def because_of(problem: TaciturnError) -> tuple[int, str]:
    """Exit code and text for a peer about a problem with another.

    >>> because_of(PeerStopped("the peer aborted: a secret").by("alice-2"))
    (34, 'it cannot go on without alice-2, which aborted')
    """
    failing = (words for kind, words in _FAILINGS if isinstance(problem, kind))
    # Why she ended decides what the others do with the session.
    code = problem.code if isinstance(problem, PeerStopped) else 0
    return (
        code or problem.exit_code,
        f"it cannot go on without {problem.peer}, {next(failing, 'which failed')}",
    )
