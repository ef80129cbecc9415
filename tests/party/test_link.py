"""Each frame once and in order, whatever happens to the wire; and what is refused."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from taciturn.errors import (
    AgreementError,
    MalformedFrame,
    PeerSilent,
    PeerStopped,
    RemoteProtocolError,
    StateError,
)
from taciturn.jobs.train.declaration import DRY_RUN
from taciturn.party.encrypted_log import EncryptedLog
from taciturn.party.journal import UNKNOWN, Checkpoint, Journal, Meta, Past
from taciturn.party.link import VERSION, Link, Pace, Patience, SpokenJob
from tests.expected import refused
from tests.modules import module_of
from tests.party.openings import opening as opening_of
from tests.party.openings import training_link
from tests.party.sides import in_threads
from tests.party.wires import HookedEndpoint, Hooks, Wire
from tests.waiting import HANG

KEY = bytes(32)
PATIENT = Patience(connect=HANG, answer=HANG, opening=HANG)
A, B = b"a" * 16, b"b" * 16


def link(wire: Wire, *, serves: bool, nonce: bytes, past: Past | None = None, **more: Any) -> Link:
    start = past or Past(Meta({}, b"", nonce))
    patience = more.pop("patience", PATIENT)
    return training_link(wire.endpoint(serves=serves), None, start, patience=patience, **more)


def both(alice: Callable[[], Any], bob: Callable[[], Any]) -> list[Any]:
    ends = in_threads({"alice": alice, "bob": bob})
    return [ends["alice"], ends["bob"]]


def talk(link: Link, first: bool, rounds: int) -> list[bytes]:
    """A strict to and fro; returns what was heard."""
    heard = []
    for number in range(rounds):
        if first:
            link.send(b"a%d" % number)
            heard.append(link.receive())
        else:
            heard.append(link.receive())
            link.send(b"b%d" % number)
    # Where the last word itself was cut off, nobody can know that it was heard. Whoever gives up
    # before a busy machine has made the link anew leaves the other waiting.
    link.finish(3.0)
    link.close()
    return heard


ROUNDS = 6


@pytest.mark.parametrize(
    "cut",
    [
        *((lambda number, at=at: number == at) for at in range(1, 2 * ROUNDS + 8)),
        lambda number: number % 5 == 0,
    ],
)
def test_a_wire_cut_at_any_frame_loses_and_doubles_nothing(cut):
    wire = Wire(cut)
    alice, bob = link(wire, serves=False, nonce=A), link(wire, serves=True, nonce=B)
    heard = both(lambda: talk(alice, True, ROUNDS), lambda: talk(bob, False, ROUNDS))
    assert heard == [[b"b%d" % n for n in range(ROUNDS)], [b"a%d" % n for n in range(ROUNDS)]]
    assert wire.links > 1 or not any(map(cut, range(1, 2 * ROUNDS)))


def test_a_restarted_side_sends_again_what_was_not_confirmed_as_it_was(tmp_path):
    """Alice stops after she noted a frame, before it left; the journal is all she has."""
    journal = Journal(tmp_path / "journal", KEY, sync=False)
    journal.begin(Meta({}, b"", A))
    journal.met(B, B)
    journal.sent(b"the mask was used")
    journal.close()
    again = Journal(tmp_path / "journal", KEY, sync=False)
    past = again.resume()
    assert past is not None
    wire = Wire()
    bob_past = Past(Meta({}, b"", B), peer=A)
    alice = training_link(wire.endpoint(serves=False), again, past, patience=PATIENT)
    bob = link(wire, serves=True, nonce=B, past=bob_past)
    assert both(alice.connect, bob.receive)[1] == b"the mask was used"
    assert alice.counts == (1, 0)
    again.close()


def test_a_journal_that_lost_its_last_frame_is_an_old_copy():
    """The peer has frame 1; this side makes it anew before it knows, and it is another one."""
    wire = Wire()
    alice = link(wire, serves=False, nonce=A, past=Past(Meta({}, b"", A), peer=B))
    bob = link(wire, serves=True, nonce=B, past=Past(Meta({}, b"", B), peer=A, received=[b"one"]))
    ends = both(lambda: alice.send(b"one, encrypted anew"), bob.connect)
    assert isinstance(ends[0], StateError)


def test_what_is_noted_is_on_the_disk_before_anything_leaves(tmp_path, monkeypatch):
    """A frame's own record, and those of the frames that it confirms; an opening confirms too."""
    order: list[str] = []
    append = EncryptedLog.append

    def noted(self: EncryptedLog, record: bytes) -> None:
        order.append("noted")
        append(self, record)

    def leaves(frame: bytes) -> bytes:
        order.append("leaves")
        return frame

    monkeypatch.setattr(EncryptedLog, "append", noted)
    monkeypatch.setattr(os, "fsync", lambda _: order.append("on disk"))
    journal = Journal(tmp_path / "journal", KEY)
    past = journal.begin(Meta({}, b"", A))
    # Cut between the first two frames that Alice receives: she opens again before she sends any.
    wire = Wire(lambda number: number == 4)
    endpoint = HookedEndpoint(wire.endpoint(serves=False), Hooks(sending=leaves))
    alice = training_link(endpoint, journal, past, patience=PATIENT)
    bob = link(wire, serves=True, nonce=B)

    first = threading.Event()

    def hers() -> bool:
        alice.receive()
        first.set()
        alice.receive()
        alice.send(b"mine")
        alice.receive()
        return alice.finish(HANG)

    def his() -> bool:
        bob.send(b"one")
        first.wait(HANG)
        bob.send(b"two")
        bob.receive()
        bob.send(b"three")
        return bob.finish(HANG)

    assert both(hers, his) == [True, True]
    journal.close()
    assert (wire.links, order.count("noted")) == (2, 5)
    assert all(pair != ("noted", "leaves") for pair in pairwise(order))


# --- what is refused -----------------------------------------------------------------------------


def refusals(alices: Past, bobs: Past, **more: Any) -> list[Any]:
    wire = Wire()
    alice = link(wire, serves=False, nonce=A, past=alices)
    bob = link(wire, serves=True, nonce=B, past=bobs, **more)
    return both(alice.connect, bob.connect)


@pytest.mark.parametrize(
    ("received", "bobs"),
    [
        # Alice has had three frames of Bob, who only knows of one: he would release again.
        (3, {"checkpoint": Checkpoint(1, 0)}),
        # Alice went back in time.
        (1, {"checkpoint": Checkpoint(5, 0), "pending": {5: b"five"}}),
    ],
)
def test_an_old_copy_of_the_state_is_refused(received, bobs):
    alices = Past(Meta({}, b"", A), peer=B, checkpoint=Checkpoint(0, received))
    _, bob = refusals(alices, Past(Meta({}, b"", B), peer=A, **bobs))
    assert isinstance(bob, StateError)


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_a_session_that_one_side_does_not_know_is_refused(who):
    known = Past(Meta({}, b"", A if who == "alice" else B), peer=b"x" * 16)
    fresh = Past(Meta({}, b"", B if who == "alice" else A))
    ends = refusals(known, fresh) if who == "alice" else refusals(fresh, known)
    assert all(isinstance(end, StateError) for end in ends)


@pytest.mark.parametrize(
    ("theirs", "named"),
    [
        (SpokenJob(1, "elsewhere", bytes(16)), ("elsewhere", "train", "purpose 1")),
        (replace(SpokenJob.of(1), messages=bytes(16)), ("train", "other messages", "version")),
        (SpokenJob(200, "elsewhere", bytes(16)), ("the job elsewhere", "a training")),
    ],
    ids=["another job", "another version", "a purpose that is not known"],
)
def test_another_job_is_refused_before_a_frame_is_sent(theirs, named):
    wire = Wire()
    there = raw(wire, opening_of(theirs.purpose, A, job=theirs))
    bob = link(wire, serves=True, nonce=B)
    with refused(AgreementError, names=named):
        bob.receive()
    assert there.receive(1.0)[:1] == b"\x01"
    with pytest.raises(PeerSilent):
        there.receive(0.05)


@pytest.mark.parametrize("name", [b"", b"Train", b"a" * 41, b"\xff", b"train\x1b[31m"])
def test_the_name_of_a_job_is_a_short_word(name):
    wire = Wire()
    raw(wire, opening()[: -len("train")] + name)
    with refused(MalformedFrame):
        link(wire, serves=True, nonce=B).receive()


def test_a_dry_run_does_not_meet_a_training():
    ends = refusals(Past(Meta({}, b"", A)), Past(Meta({}, b"", B)), purpose=DRY_RUN)
    assert all(isinstance(end, AgreementError) for end in ends)


def raw(wire: Wire, *frames: bytes) -> Any:
    channel = wire.endpoint(serves=False).connect(5.0)
    for frame in frames:
        channel.send(frame)
    return channel


def opening(
    version: int = VERSION, purpose: int = 1, known: bytes = UNKNOWN, received: int = 0
) -> bytes:
    return opening_of(purpose, A, known, received, version=version)


@pytest.mark.parametrize(
    ("frames", "error", "named"),
    [
        ([b""], MalformedFrame, ""),
        ([b"\x01"], MalformedFrame, ""),
        ([b"garbage" * 20], MalformedFrame, ""),
        ([opening(version=99)], AgreementError, "99"),
        # Openings of another version may be shorter, and are still told apart by it.
        ([opening(version=1)[:-40]], AgreementError, "1"),
        ([opening(purpose=3)], AgreementError, ""),
        ([opening(received=1)], StateError, ""),
        ([opening(), b""], MalformedFrame, ""),
        ([opening(), b"\x09" * 30], MalformedFrame, ""),
        ([opening(), b"\x02\x01"], MalformedFrame, ""),
        ([opening(), struct.pack("<BQQ", 2, 2, 0)], RemoteProtocolError, "2"),
        ([opening(), struct.pack("<BQQ", 2, 1, 7)], RemoteProtocolError, "7"),
        ([opening(), struct.pack("<BQ", 3, 7)], RemoteProtocolError, "7"),
        ([struct.pack("<BH", 4, 32) + b"differ-so"], PeerStopped, "differ-so"),
        # What a terminal would obey does not arrive.
        ([opening(), struct.pack("<BH", 4, 32) + b"bad\x1b[31m"], PeerStopped, "bad [31m"),
        ([opening(), b"\x04"], PeerStopped, ""),
    ],
)
def test_a_peer_that_does_not_keep_to_it(frames, error, named):
    wire = Wire()
    raw(wire, *frames)
    bob = link(wire, serves=True, nonce=B)
    with refused(error, names=named):
        bob.receive()


def test_giving_up_reaches_the_other_side_with_its_reason():
    wire = Wire()
    alice, bob = link(wire, serves=False, nonce=A), link(wire, serves=True, nonce=B)

    def give_up() -> None:
        alice.connect()
        alice.fail(32, "epochs-differ")
        alice.close()

    _, end = both(give_up, bob.receive)
    assert isinstance(end, PeerStopped)
    assert end.code == 32
    assert "epochs-differ" in end.message


# --- when answers leave --------------------------------------------------------------------------


class Clock:
    """Time that passes only when somebody waits or works."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module_of(Patience), "time", clock)
    return clock


def leaving_times(
    clock: Clock, pace: Pace, peer: float, before: float, after: float
) -> list[float]:
    """When five answers leave, where the peer, and this side before and after, take so long."""
    pace.wait()
    times = [clock.now]
    for _ in range(5):
        left = clock.now
        clock.sleep(after)
        # It may have come while this side was at work.
        clock.now = max(clock.now, left + peer)
        pace.arrived()
        clock.sleep(before)
        pace.wait()
        times.append(clock.now)
    return [time - times[0] for time in times]


@pytest.mark.parametrize("peer", [0.0, 0.004, 0.017, 0.049, 0.051])
def test_when_answers_leave_does_not_depend_on_the_work(clock, peer):
    quick = leaving_times(clock, Pace(50.0), peer, before=0.0, after=0.0)
    slow = leaving_times(clock, Pace(50.0), peer, before=0.049, after=min(0.049, peer + 0.02))
    assert slow == pytest.approx(quick, abs=1e-9)
    assert all(time == pytest.approx(round(time / 0.05) * 0.05, abs=1e-9) for time in quick)
    unpaced = leaving_times(clock, Pace(), peer, before=0.003, after=0.0)
    assert unpaced[-1] == pytest.approx(5 * (peer + 0.003))


def test_an_answer_that_takes_too_long_leaves_at_a_later_step_and_is_said_once(clock):
    said: list[str] = []
    times = leaving_times(clock, Pace(50.0, said.append), 0.01, before=0.12, after=0.0)
    assert times[1] == pytest.approx(0.15)
    assert len(said) == 1
    assert "answer-interval-milliseconds" in said[0]


def test_frames_in_a_row_leave_a_step_apart(clock):
    pace, times = Pace(50.0), []
    for work in (0.0, 0.01, 0.03):
        clock.sleep(work)
        pace.wait()
        times.append(clock.now - 100.0)
    assert times == pytest.approx([0.0, 0.05, 0.10])
