"""Frames that arrive once each and in order, over links that break and parties that stop.

::

    open = 0x01 version:u8 purpose:u8 mine:16 theirs:16 received:u64 drawn:16 messages:16 job
    data = 0x02 number:u64 confirmed:u64 frame
    note = 0x03 confirmed:u64                     without a frame, at the end
    fail = 0x04 code:u16 text                     the sender aborts; why, as far as may be disclosed

Frames are numbered from 1 on each side. Both open every new channel with their own name for the
session, the peer's as they know it, and the number of the last frame that they have in their
journal; each then sends again what the other lacks, byte for byte as it was. A frame is in the
receiver's journal before its program sees it, and in the sender's before it leaves. ``drawn`` is
drawn with the sender's randomness: anew by a side that starts again before it has met the peer.
Both names and both drawn values make the one name of the session.

``job`` is the name of the job that the session is for, and ``messages`` the digest of all messages
that it may send (``protocol.codec.messages_digest``). Every conversation begins with them, whatever
its first message is: where two jobs of other packages have one number, or two versions of one job
meet, the first message that both decode might have another meaning.

Bob has a link to each of several Alices, and waits for one at a time. Meanwhile he tends the other
links: takes the call of one that broke, and sends a note now and then, so that nobody who waits for
him gives up before he does.
"""

from __future__ import annotations

import contextlib
import math
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from taciturn.engine.callbacks import Announce, noop
from taciturn.errors import (
    AgreementError,
    ConnectionLost,
    MalformedFrame,
    PeerAbsent,
    PeerSilent,
    PeerStopped,
    RemoteProtocolError,
    StateError,
    TaciturnError,
    TransportError,
)
from taciturn.job_registry import JOB_NAME, registry
from taciturn.party.journal import NONCE_BYTES, UNKNOWN, Journal, Past, with_pending
from taciturn.protocol.codec import DIGEST_BYTES, messages_digest
from taciturn.results.parties import TrafficSeen
from taciturn.setting_syntax import Hint
from taciturn.transport.channel import Channel, Endpoint

VERSION = 2
WITHHELD = 0
"""Code of an abort whose reason is not told."""
LAST_WORDS_SECONDS = 0.2
# How long one of several links is waited for before the others are tended.
TENDING_SECONDS = 1.0
# How long a link that is tended may be silent, and how long it may take to open.
NOTE_SECONDS = 5.0
CONNECTED, BROKEN = "connected", "the connection broke; reconnecting"
_OPEN, _DATA, _NOTE, _FAIL = 1, 2, 3, 4
_OPENING = struct.Struct(f"<BBB{NONCE_BYTES}s{NONCE_BYTES}sQ{NONCE_BYTES}s{DIGEST_BYTES}s")
# Kind and version: all that openings of every version have in common.
_LEAST_OPENING = 2
_HEAD = struct.Struct("<BQQ")
_CONFIRM = struct.Struct("<BQ")
_REASON = struct.Struct("<BH")
_MOST_REASON = 600


@dataclass(frozen=True, slots=True)
class Patience:
    """Time-outs, in seconds.

    ``connect`` is for the peer to be there, at the start and after every break; ``opening`` for its
    first message on a new link. ``answer`` is for its next message while the link stands, anew
    after each note. A Bob who waits for another Alice sends such notes, so that his patience
    counts, and not hers.
    """

    connect: float = 600.0
    answer: float = 600.0
    opening: float = 30.0


@dataclass(slots=True)
class Traffic:
    """Frames and bytes sent and received, and waiting times.

    ``waits_since`` is when the wait of this moment began; None where nothing is waited for.
    """

    sent: int = 0
    received: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    waiting: float = 0.0
    links: int = 0
    since: float | None = None
    waits_since: float | None = None

    @property
    def total_bytes(self) -> int:
        """Bytes of all frames, in both directions."""
        return self.bytes_sent + self.bytes_received

    def waited(self, now: float) -> float:
        """Seconds waited so far, the present wait included.

        >>> Traffic(waiting=2.0, since=0.0, waits_since=7.0).waited(10.0)
        5.0
        """
        begun = self.waits_since
        if begun is None or self.since is None:
            return self.waiting
        # What was waited before the first connection is not part of the session.
        return self.waiting + max(0.0, now - max(begun, self.since))

    def seen(self) -> TrafficSeen:
        """Traffic figures for the dashboard."""
        now = time.monotonic()
        waited = self.waited(now)
        return TrafficSeen(
            bytes_sent=self.bytes_sent,
            bytes_received=self.bytes_received,
            frames_sent=self.sent,
            frames_received=self.received,
            waiting_seconds=waited,
            computing_seconds=0.0 if self.since is None else now - self.since - waited,
        )

    @classmethod
    def sum(cls, parts: Iterable[Traffic]) -> Traffic:
        """That of several links, since the first of them; waits count as far as they are."""
        total, now = cls(), time.monotonic()
        for part in parts:
            for name in ("sent", "received", "bytes_sent", "bytes_received", "links"):
                setattr(total, name, getattr(total, name) + getattr(part, name))
            total.waiting += part.waited(now)
            if part.since is not None:
                total.since = min(part.since, total.since or part.since)
        return total


class Pace:
    """Send times of this side's frames: fixed, however long they took to compute.

    Times are counted in steps from the last frame that left. At which step an answer leaves follows
    from when the peer's frame came, which the peer knows: a whole step lies between the two. Work
    that takes less than a step is not seen in it, neither what is done after sending nor what is
    done before. ``announce`` is called when an answer first takes longer than a step.
    """

    def __init__(self, milliseconds: float | None = None, announce: Announce = noop) -> None:
        self._step = None if milliseconds is None else milliseconds / 1000
        self._announce: Announce | None = announce
        self._left: float | None = None
        self._due: float | None = None

    def arrived(self) -> None:
        """The peer's frame is here."""
        if self._step is not None and self._left is not None:
            waited = time.monotonic() - self._left
            # The step under way is not enough: less than a whole one might be left of it.
            self._due = self._left + self._step * (math.floor(waited / self._step) + 2)

    def wait(self) -> None:
        """Wait until the next frame may be sent; the first one may be at once."""
        if self._step is None:
            return
        now = time.monotonic()
        if self._left is None:
            self._left = now
            return
        # A frame that answers nothing follows the one before it by a step.
        due = self._left + self._step if self._due is None else self._due
        if now > due:
            # Late by whole steps: the peer must not see how long the work took.
            due += self._step * math.ceil((now - due) / self._step)
            if self._announce is not None:
                self._announce("an answer took longer than answer-interval-milliseconds: raise it")
                self._announce = None
        # A sleep may end a little early, and a frame must not leave early.
        while (left := due - time.monotonic()) > 0:
            time.sleep(left)
        self._left, self._due = due, None


@dataclass(frozen=True, slots=True)
class SpokenJob:
    """Job of a session: its purpose, and its name and digest as openings state them."""

    purpose: int
    name: str
    messages: bytes

    @classmethod
    def of(cls, purpose: int) -> SpokenJob:
        """The installed job of a purpose."""
        job = registry().job_of(purpose)
        return cls(purpose, job.name, messages_digest(job.declaration.messages))

    def require_same(self, peer: SpokenJob) -> None:
        """Require that the peer runs the same job (AgreementError)."""
        if peer.purpose != self.purpose:
            raise AgreementError(
                f"the peer runs {peer.title}, this side {self.title}",
                hint=Hint(
                    "run the same command on both sides; give {dry_run} or {aligned} on both, or "
                    "on neither",
                    dry_run=True,
                ),
            )
        if peer.name != self.name:
            raise AgreementError(
                f"the peer runs the job {peer.name}, and this side {self.name}: both have the "
                f"purpose {self.purpose}",
                hint="run the same command on both sides; two jobs that both are to use need "
                "purposes of their own",
            )
        if peer.messages != self.messages:
            raise AgreementError(
                f"the peer's job {self.name} has other messages than this side's",
                hint="install the same version of "
                f"{registry().job_of(self.purpose).extension.package} on both sides",
            )

    @property
    def title(self) -> str:
        """What is run, in words; of a job that is not installed here, its name."""
        _, title = registry().purposes.get(self.purpose, (None, f"the job {self.name}"))
        return title


PATIENT = Patience()
AT_ONCE = Pace()
ASK_PEER = (
    "this side is not told why, since the reason may depend on the other side's data: its own "
    "screen and log show it. Ask there, then run both sides again"
)
ANEW = "start over on both sides with {fresh}, which releases the labels a second time"


class Link:
    """One party's end of a session.

    ``journal`` is None for a session that is not kept, such as a dry run, and ``place`` says which
    of its links this is. ``rejoins`` says whether the session resumes over another link when one
    breaks. ``name`` is the peer's where there are several. ``meanwhile`` is called now and then
    while the peer is waited for.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        journal: Journal | None,
        past: Past,
        *,
        purpose: int,
        rejoins: bool = True,
        patience: Patience = PATIENT,
        announce: Announce = noop,
        pace: Pace = AT_ONCE,
        place: int = 0,
        name: str = "",
        meanwhile: Callable[[], None] | None = None,
    ) -> None:
        self._pace, self._place, self._name, self._meanwhile = pace, place, name, meanwhile
        self._spoke, self._refusal = 0.0, ""
        self._endpoint, self._journal, self._job = endpoint, journal, SpokenJob.of(purpose)
        self._patience, self._announce, self._rejoins = patience, announce, rejoins
        self._mine, self._peer = past.meta.nonce, past.peer
        self._drawn, self._peer_drawn = past.meta.drawn, past.peer_drawn
        self._channel: Channel | None = None
        self._unconfirmed = with_pending(past)
        self._sent, self._received = past.counts
        # What a program makes before the peer is there has a number and has not left.
        self._left = self._sent
        self.traffic = Traffic()

    @property
    def counts(self) -> tuple[int, int]:
        """Number of frames sent and received by this side."""
        return self._sent, self._received

    @property
    def names(self) -> tuple[bytes, bytes]:
        """This side's and the peer's name for the session, each with what it drew for it."""
        return self._mine + self._drawn, self._peer + self._peer_drawn

    @property
    def pending(self) -> dict[int, bytes]:
        """The frames that the peer has not confirmed."""
        return dict(self._unconfirmed)

    @property
    def connected(self) -> bool:
        """Whether a channel was opened, or refused, in this process."""
        return self._channel is not None or self.traffic.links > 0

    def connect(self) -> None:
        """Waits for the peer; afterwards both know what the other has."""
        with self._by_name():
            self._live()

    def tend(self) -> None:
        """Looks after the link while another peer is waited for; does not wait for this one."""
        with self._by_name():
            try:
                channel = self._endpoint.connect(0.0)
            except PeerAbsent:
                self._note()
                return
            if self._channel is not None:
                # It calls anew where its link broke, which was not noticed here.
                self._broken()
            self._adopt(channel, min(self._patience.opening, NOTE_SECONDS))

    def _note(self) -> None:
        """Tells a peer that may be waiting that this side is there."""
        now = time.monotonic()
        if self._channel is None or now - self._spoke < NOTE_SECONDS:
            return
        self._spoke = now
        if self._journal is not None:
            self._journal.settle()
        # A link that broke may hold frames to read: that it did is noticed when it is used.
        with contextlib.suppress(ConnectionLost):
            self._channel.send(_CONFIRM.pack(_NOTE, self._received), wait=False)

    @contextlib.contextmanager
    def _by_name(self) -> Iterator[None]:
        """Name the peer in its errors, where there are several."""
        try:
            yield
        except (TransportError, RemoteProtocolError, PeerStopped, StateError) as problem:
            # While this peer is waited for, another that is tended may fail.
            if not self._name or problem.peer:
                raise
            raise problem.by(self._name) from None

    def decline(self, code: int, reason: str, timeout: float) -> None:
        """Tells a peer that is there within the time why this side does not begin.

        It is sent in place of an opening: the peer has met nobody then, and what it keeps of the
        session fits any peer that opens one later.
        """
        with contextlib.suppress(TaciturnError):
            self._channel = self._endpoint.connect(timeout)
            # Who has sent an opening listens.
            self._channel.receive(timeout)
        self.fail(code, reason)

    def send(self, frame: bytes) -> None:
        """Record a frame, then send it, now or once the link is open again."""
        with self._by_name():
            self._send(frame)

    def _send(self, frame: bytes) -> None:
        number = self._sent + 1
        if self._journal is not None:
            # Before it leaves: after a crash the same bytes are sent again, never other ones.
            self._journal.sent(frame, self._place)
        self._sent = number
        self._unconfirmed[number] = frame
        self.traffic.sent += 1
        self.traffic.bytes_sent += len(frame)
        self._pace.wait()
        self._spoke = time.monotonic()
        if self._channel is None:
            self._live()  # opening a link sends what the peer lacks, this frame included
            return
        try:
            self._say(self._channel, number, frame)
        except ConnectionLost:
            # A peer that aborts closes its end; its reason may have arrived before that.
            self._hear_last_words(self._channel)
            self._broken()
            self._live()

    def _hear_last_words(self, channel: Channel) -> None:
        # Frames that are found are left: the peer sends them again, since they are not confirmed.
        try:
            while True:
                envelope = channel.receive(LAST_WORDS_SECONDS)
                if envelope[:1] == bytes([_FAIL]):
                    raise _stopped(envelope)
        except TransportError:
            return

    def receive(self) -> bytes:
        """The peer's next frame; PeerStopped where the peer has aborted."""
        with self._by_name():
            return self._next()

    def _next(self) -> bytes:
        while True:
            with self._waiting():
                channel = self._live()
                try:
                    frame = self._data(self._envelope(channel))
                except ConnectionLost as problem:
                    if problem.peer:
                        # Another's, whose link was tended meanwhile.
                        raise
                    self._broken()
                    continue
            if frame is not None:
                self._pace.arrived()
                self.traffic.received += 1
                self.traffic.bytes_received += len(frame)
                return frame

    @contextlib.contextmanager
    def _waiting(self) -> Iterator[None]:
        self.traffic.waits_since = time.monotonic()
        try:
            yield
        finally:
            self.traffic.waiting = self.traffic.waited(time.monotonic())
            self.traffic.waits_since = None

    def _envelope(self, channel: Channel) -> bytes:
        patience = self._patience.answer
        if self._meanwhile is None:
            return channel.receive(patience)
        deadline = time.monotonic() + patience
        while (left := deadline - time.monotonic()) > 0:
            try:
                return channel.receive(min(left, TENDING_SECONDS))
            except PeerSilent:
                self._meanwhile()
        raise PeerSilent(
            f"the peer has sent nothing for {patience:g} s",
            hint="look whether it still runs, or allow more time",
        )

    def finish(self, timeout: float) -> bool:
        """Confirms everything received and waits until the peer has confirmed all that was sent.

        False where the peer did not within the time.
        """
        deadline = time.monotonic() + timeout
        try:
            self._confirm(timeout)
            while self._unconfirmed and (left := deadline - time.monotonic()) > 0:
                try:
                    # Only what it confirms is of interest here.
                    self._data(self._live(left).receive(left))
                except ConnectionLost:
                    self._broken()
        except TaciturnError:
            pass  # whatever it is, this side has what it needs
        return not self._unconfirmed

    def _confirm(self, timeout: float) -> None:
        if self._journal is not None:
            self._journal.settle()
        channel = self._live(timeout)
        # A peer that has everything may be gone already; what it said last can still be read.
        with contextlib.suppress(ConnectionLost):
            channel.send(_CONFIRM.pack(_NOTE, self._received))

    def fail(self, code: int, reason: str) -> None:
        """Tells the peer that this side aborts, where it can be reached."""
        if self._channel is None:
            return
        text = reason.encode()[:_MOST_REASON]
        try:
            # It must not wait behind a peer that does not read: others still have to be notified.
            self._channel.send(_REASON.pack(_FAIL, code) + text, wait=False)
        except TaciturnError:
            # The link broke meanwhile: nobody is left to notify.
            self._channel = None

    def close(self) -> None:
        """Ends the link."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _broken(self) -> None:
        """Drops the link, and aborts the session where it has only one."""
        if not self._rejoins:
            self.close()
            raise _over()
        self._announce(BROKEN)
        self.close()

    def _live(self, timeout: float | None = None) -> Channel:
        """The channel; a new one where there is none."""
        timeout = self._patience.connect if timeout is None else timeout
        deadline = time.monotonic() + timeout
        while self._channel is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise PeerAbsent(
                    f"no connection to the peer within {timeout:g} seconds{self._refusal}",
                    hint="start the peer; run this side again to resume where it stopped",
                )
            channel = self._called(left)
            if channel is not None:
                self._adopt(channel, min(left, self._patience.opening))
        return self._channel

    def _called(self, timeout: float) -> Channel | None:
        """A new channel; None after a while without one, in which other links are tended."""
        if self._meanwhile is None:
            return self._endpoint.connect(timeout)
        try:
            return self._endpoint.connect(min(timeout, TENDING_SECONDS))
        except PeerAbsent as problem:
            # It says how long was waited, which was not all; and perhaps that a call was refused.
            _, mark, reason = problem.message.partition("; ")
            self._refusal = mark + reason
            self._meanwhile()
            return None

    def _adopt(self, channel: Channel, timeout: float) -> None:
        """Makes a channel the link's, if the peer opens it; otherwise there will be another."""
        try:
            self._open(channel, timeout)
        except (ConnectionLost, PeerSilent) as problem:
            channel.close()
            if isinstance(problem, PeerSilent):
                self._announce("the peer is connected and has not begun; waiting")
            # Before the two have met, a session of one link has not used it up.
            if not self._rejoins and self._peer != UNKNOWN:
                raise _over() from None
            # A peer that is itself starting up may drop a link; it is not asked in a rush.
            time.sleep(0.1)
        except BaseException:
            self._channel = channel  # so that the reason can be sent
            raise
        else:
            self._channel, self._refusal = channel, ""
            self.traffic.links += 1
            self.traffic.since = self.traffic.since or time.monotonic()
            self._announce(CONNECTED)

    def _open(self, channel: Channel, timeout: float) -> None:
        """Exchange openings on a new channel, and send again what the peer lacks.

        The peer's first bytes must be an opening, or a failure (PeerStopped).
        """
        if self._journal is not None:
            # The opening confirms what was received, and the peer then forgets it: it must be on
            # the disk first.
            self._journal.settle()
        job, names = self._job, (self._mine, self._peer)
        channel.send(
            _OPENING.pack(
                *(_OPEN, VERSION, job.purpose, *names, self._received, self._drawn, job.messages)
            )
            + job.name.encode()
        )
        opening = channel.receive(timeout)
        if opening[:1] == bytes([_FAIL]):
            raise _stopped(opening)
        self._accept(opening)
        for number, frame in list(self._unconfirmed.items()):
            self._say(channel, number, frame)

    def _say(self, channel: Channel, number: int, frame: bytes) -> None:
        self._left = max(self._left, number)
        channel.send(_HEAD.pack(_DATA, number, self._received) + frame)

    def _accept(self, opening: bytes) -> None:
        """Check the peer's opening: its kind, version, job, messages and session, in this order."""
        if len(opening) < _LEAST_OPENING or opening[0] != _OPEN:
            raise MalformedFrame("the peer does not open a session of taciturn")
        # The version first: what the other fields mean, and how many there are, depends on it.
        if opening[1] != VERSION:
            raise AgreementError(
                f"the peer's sessions are of version {opening[1]}, this side's of {VERSION}",
                hint="install the same version of taciturn on both sides",
            )
        name = opening[_OPENING.size :].decode("ascii", "replace")
        if not JOB_NAME.fullmatch(name):
            raise MalformedFrame("the peer does not open a session of taciturn")
        _, _, purpose, peer, known, received, drawn, messages = _OPENING.unpack_from(opening)
        self._job.require_same(SpokenJob(purpose, name, messages))
        self._same_session(peer, known, drawn)
        self._peer_has(received)

    def _same_session(self, peer: bytes, known: bytes, drawn: bytes) -> None:
        """Require that both openings name one session: a new one, or the one that both know.

        ``peer`` is the peer's name of the session, ``known`` this side's as the peer knows it, and
        ``drawn`` what the peer drew for it.
        """
        # A peer that stopped before it stored this side's name does not know it.
        if known not in (UNKNOWN, self._mine):
            raise _unfit_state(
                "the peer is in the middle of a session that this side does not know",
                f"restore this side's state folder, or {ANEW}",
            )
        started_again = peer == self._peer and drawn != self._peer_drawn and not self._received
        if self._peer == UNKNOWN or started_again:
            # The first meeting: from here on only this peer's session is resumed. Until a frame of
            # the peer is here, it may not have noted the meeting, and draw anew.
            self._peer, self._peer_drawn = peer, drawn
            if self._journal is not None:
                self._journal.met(peer, drawn, self._place)
        elif (peer, drawn) != (self._peer, self._peer_drawn):
            raise _unfit_state(
                "this side is in the middle of a session that the peer does not know",
                f"restore the peer's state folder, or {ANEW}",
            )

    def _peer_has(self, received: int) -> None:
        # A frame is in the journal before it leaves: one that was not there when this process
        # began, and has not left since, is another than the peer has.
        if received > self._left:
            raise _unfit_state(
                f"the peer has received {received} frames, and this side's state knows of "
                f"{self._left}: the state is an old copy",
            )
        self._confirmed(received)
        # Confirmed frames are forgotten, so a peer that went back in time cannot be served.
        if min(self._unconfirmed, default=self._sent + 1) != received + 1:
            raise _unfit_state(
                f"the peer lacks frame {received + 1}, which this side no longer has: "
                "the peer's state is an old copy",
            )

    def _confirmed(self, number: int) -> None:
        for known in [known for known in self._unconfirmed if known <= number]:
            del self._unconfirmed[known]

    def _data(self, envelope: bytes) -> bytes | None:
        """A frame that is due; None for what only confirms, or was received before."""
        kind = envelope[0] if envelope else 0
        if kind == _FAIL:
            raise _stopped(envelope)
        if kind == _NOTE and len(envelope) == _CONFIRM.size:
            self._confirmed(self._plausible(_CONFIRM.unpack(envelope)[1]))
            return None
        if kind != _DATA or len(envelope) < _HEAD.size:
            raise MalformedFrame("the peer sent something that is not a session frame")
        _, number, confirmed = _HEAD.unpack_from(envelope)
        # Also a frame that was received before confirms some of ours.
        self._confirmed(self._plausible(confirmed))
        if number <= self._received:
            # Sent again after a break, because our confirmation was lost.
            return None
        if number != self._received + 1:
            raise RemoteProtocolError(
                f"the peer's frame {number} arrived where {self._received + 1} was expected"
            )
        frame = envelope[_HEAD.size :]
        if self._journal is not None:
            self._journal.received(frame, self._place)
        self._received = number
        return frame

    def _plausible(self, confirmed: int) -> int:
        if confirmed > self._sent:
            raise RemoteProtocolError(
                f"the peer confirms frame {confirmed} where {self._sent} were sent"
            )
        return confirmed


def _unfit_state(message: str, way_out: str = ANEW) -> StateError:
    """Error of two states that do not belong together, as both openings show."""
    problem = StateError(message, hint=Hint(way_out, fresh=True))
    return problem.telling_peer("its state does not fit the session")


def _over() -> ConnectionLost:
    return ConnectionLost("the connection to the peer broke", hint="run both sides again")


def _stopped(envelope: bytes) -> PeerStopped:
    """Error for the peer's abort message, whose text is cleaned for the screen."""
    if len(envelope) < _REASON.size:
        return PeerStopped("the peer aborted")
    text = envelope[_REASON.size :][:_MOST_REASON].decode(errors="replace")
    shown = "".join(letter if letter.isprintable() else " " for letter in text).strip()
    code = _REASON.unpack_from(envelope)[1]
    problem = PeerStopped(
        f"the peer aborted: {shown or 'no reason given'}",
        hint=ASK_PEER if code == WITHHELD else "",
    )
    problem.code = code
    return problem
