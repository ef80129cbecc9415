"""Two endpoints in one process on a wire that can be cut at any frame; endpoints with hooks."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

from taciturn.errors import ConnectionLost, PeerAbsent, PeerSilent

# private: wires count and cut frames by their kinds
from taciturn.party.link import _DATA, _HEAD
from taciturn.transport.channel import Channel, Endpoint

_CLOSED = object()


class LoopChannel:
    """One end of a link in memory; where it breaks, it may lose what is under way."""

    def __init__(
        self,
        wire: Wire,
        inbox: queue.Queue[object],
        outbox: queue.Queue[object],
        *,
        loses: bool = True,
    ) -> None:
        self._wire, self._inbox, self._outbox, self._loses = wire, inbox, outbox, loses
        self._closed = False

    def send(self, frame: bytes, *, wait: bool = True) -> None:
        if self._closed:
            raise ConnectionLost("the wire was cut")
        self._wire.passing(frame)
        self._outbox.put(frame)

    def receive(self, timeout: float) -> bytes:
        try:
            received = self._inbox.get(timeout=timeout)
        except queue.Empty:
            raise PeerSilent("nothing came") from None
        if received is _CLOSED or (self._closed and self._loses):
            self._closed = True
            self._inbox.put(_CLOSED)
            raise ConnectionLost("the wire was cut")
        assert isinstance(received, bytes)
        return received

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._outbox.put(_CLOSED)
            self._inbox.put(_CLOSED)


class Wire:
    """Where two endpoints meet; ``cut`` says before each frame whether the link breaks there."""

    def __init__(self, cut: Callable[[int], bool] = lambda number: False) -> None:
        self._cut = cut
        self._met: queue.Queue[LoopChannel] = queue.Queue()
        self._lock = threading.Lock()
        self._frames = 0
        self._live: tuple[LoopChannel, LoopChannel] | None = None
        self._ended = False
        self.links = 0

    def passing(self, frame: bytes) -> None:
        with self._lock:
            self._frames += 1
            if self._cut(self._frames) and self._live:
                for channel in self._live:
                    channel.close()
                raise ConnectionLost("the wire was cut")

    def endpoint(self, *, serves: bool) -> Endpoint:
        return LoopEndpoint(self, serves)

    def end(self) -> None:
        """One side has ended: whoever waits for it learns that it is not there."""
        self._ended = True
        for channel in self._live or ():
            channel.close()
        nobody = LoopChannel(self, queue.Queue(), queue.Queue())
        nobody.close()
        self._met.put(nobody)

    def meet(self, serves: bool, timeout: float) -> LoopChannel:
        if self._ended:
            raise PeerAbsent("the other side has ended")
        if serves:
            try:
                return self._met.get(timeout=timeout)
            except queue.Empty:
                raise PeerAbsent("nobody came") from None
        here: queue.Queue[object] = queue.Queue()
        there: queue.Queue[object] = queue.Queue()
        self.links += 1
        # Were every link to lose what is under way, one that breaks every few frames might carry
        # the same ones forever: both sides send again all that is not confirmed, then listen.
        loses = self.links % 2 == 1
        own = LoopChannel(self, here, there, loses=loses)
        theirs = LoopChannel(self, there, here, loses=loses)
        self._live = own, theirs
        while not self._met.empty():  # the newest call wins
            self._met.get_nowait().close()
        self._met.put(theirs)
        return own


class LoopEndpoint:
    """One side's way to the other."""

    def __init__(self, wire: Wire, serves: bool) -> None:
        self._wire, self._serves = wire, serves

    def connect(self, timeout: float) -> LoopChannel:
        return self._wire.meet(self._serves, timeout)

    def close(self) -> None:
        """Nothing: the wire is the test's."""


def _same(envelope: bytes) -> bytes:
    return envelope


def _nothing() -> None:
    """Whatever happens."""


@dataclass(frozen=True)
class Hooks:
    """What is done to what a side sends and receives, beneath its journal.

    Args:
        sending: What leaves in place of what the side sends.
        sent: Called when it has left.
        received: What the side gets in place of what came.
    """

    sending: Callable[[bytes], bytes] = _same
    sent: Callable[[], None] = _nothing
    received: Callable[[bytes], bytes] = _same


def changing(change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Changes the protocol's frames, and leaves alone what carries them."""

    def changed(envelope: bytes) -> bytes:
        if envelope[0] != _DATA:
            return envelope
        return envelope[: _HEAD.size] + change(envelope[_HEAD.size :])

    return changed


@dataclass
class MutatingPeer:
    """A hostile peer: of the frames that a side sends one is mutated, once it is armed.

    Args:
        mutate: Makes another one of a frame, which comes first and most often, and of earlier ones.
        within: The part of a frame that may be changed.
    """

    mutate: Callable[[list[bytes]], bytes]
    within: Callable[[bytes], slice] = lambda frame: slice(None)
    done: bool = True

    def __post_init__(self) -> None:
        self._seen: list[bytes] = []
        self._left = -1

    def arm(self, frames: int) -> MutatingPeer:
        """Mutates the frame after so many."""
        self._left, self.done = frames, False
        return self

    def changed(self, frame: bytes) -> bytes:
        earlier, self._seen = self._seen, [*self._seen[-8:], frame]
        self._left -= 1
        if self.done or self._left >= 0:
            return frame
        start, end, _ = self.within(frame).indices(len(frame))
        changed = frame
        while changed == frame or not changed:
            part = self.mutate([frame[start:end]] * 8 + [other[start:] for other in earlier])
            changed = frame[:start] + part + frame[end:]
        self.done = True
        return changed


@dataclass(frozen=True)
class HookedChannel:
    channel: Channel
    hooks: Hooks

    def send(self, frame: bytes, *, wait: bool = True) -> None:
        self.channel.send(self.hooks.sending(frame), wait=wait)
        self.hooks.sent()

    def receive(self, timeout: float) -> bytes:
        return self.hooks.received(self.channel.receive(timeout))

    def close(self) -> None:
        self.channel.close()


@dataclass(frozen=True)
class HookedEndpoint:
    endpoint: Endpoint
    hooks: Hooks

    def connect(self, timeout: float) -> Channel:
        return HookedChannel(self.endpoint.connect(timeout), self.hooks)

    def close(self) -> None:
        self.endpoint.close()


class HookedWire(Wire):
    """A wire one side of which has hooks.

    Args:
        serves: Whether that is the side that serves.
        hooks: What they do.
    """

    def __init__(self, serves: bool, hooks: Hooks) -> None:
        super().__init__()
        self._hooked, self._hooks = serves, hooks

    def endpoint(self, *, serves: bool) -> Endpoint:
        endpoint = super().endpoint(serves=serves)
        return HookedEndpoint(endpoint, self._hooks) if serves == self._hooked else endpoint
