"""One Bob and several Alices with toy programs: whatever happens to one, all end alike or know why.

Each may be killed and started again at any record of its journal, and cut off at any frame.
"""

from __future__ import annotations

import struct
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from taciturn.engine.callbacks import Callbacks
from taciturn.engine.pair import run_star
from taciturn.errors import (
    AgreementError,
    ConnectionLost,
    LocalProtocolError,
    MalformedFrame,
    OutputError,
    PeerSilent,
    PeerStopped,
    RemoteProtocolError,
    StateError,
    TaciturnError,
)
from taciturn.jobs.align.declaration import ALIGNMENT
from taciturn.party.config import PartyConfig
from taciturn.party.journal import NONCE_BYTES, Checkpoint, Journal, Meta, Past
from taciturn.party.link import Patience
from taciturn.party.resume import CheckpointPolicy, RunHooks, run_program
from taciturn.party.session import Meeting, PeerSession
from taciturn.protocol.codec import encode, kind_of
from taciturn.protocol.messages import EncryptedResidues, PartialScores
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, Receive, receive, send, with_peer
from taciturn.protocol.steps import gather as together
from taciturn.rng import Entropy, KeyedEntropy, SystemEntropy
from taciturn.transport.channel import Endpoints
from tests.expected import refused
from tests.modules import module_of
from tests.party.openings import opening as opening_of
from tests.party.openings import training_link
from tests.party.sides import TWO_ALICES, role_of, write_config
from tests.party.talks import TURNS, centre, residues, scores, spoke
from tests.party.wires import Wire
from tests.waiting import HANG, wait_until

KEY = bytes(32)
NAMES = TWO_ALICES
# Every boundary is a checkpoint, or none is.
OFTEN, NEVER = CheckpointPolicy(iterations=1), CheckpointPolicy(10**6, 1e6, 1 << 60)


class Killed(BaseException):
    """The process ends here, without a word to anybody."""


class FrailJournal(Journal):
    """A journal whose process is killed before or after one of the records it notes."""

    at, after, appended = -1, False, 0

    def _append(self, kind: bytes, body: bytes, link: int = 0) -> None:
        self.appended += 1
        if self.appended == self.at and not self.after:
            raise Killed
        super()._append(kind, body, link)
        if self.appended == self.at:
            raise Killed


class WatchedWire(Wire):
    """Keeps every version of every frame that crosses."""

    def __init__(self, cut: Callable[[int], bool] = lambda number: False) -> None:
        super().__init__(cut)
        self.versions: dict[tuple[str, int], set[bytes]] = defaultdict(set)

    def passing(self, frame: bytes) -> None:
        if frame[:1] == b"\x02":
            number, message = struct.unpack_from("<Q", frame, 1)[0], frame[17:]
            sender = "alice" if kind_of(message) is PartialScores else "bob"
            self.versions[sender, number].add(message)
        super().passing(frame)


def configs(folder: Path, names: Sequence[str] = NAMES, **link: Any) -> dict[str, PartyConfig]:
    """A folder and a file for each party, with keys that nobody has."""
    pins = {"agreement.parties": {name: f"{at:064x}" for at, name in enumerate(names)}}
    made = {}
    for name in ("bob", *names):
        (folder / name).mkdir(parents=True, exist_ok=True)
        peer = {"peer": None if name == "bob" else "bob"}
        path = write_config(folder / name, role_of(name), link={**peer, **link}, **pins)
        made[name] = PartyConfig.read(path)
    return made


class Star:
    """The parties of a folder, each with a journal.

    Args:
        folder: Where their files are.
        names: Of the Alices.
        cut: Where the wire of each breaks, by name.
        fresh: Draw anew in each process, so that a frame that is made twice differs.
        rhythm: How often checkpoints are written.
        link: Of [link].
    """

    def __init__(
        self,
        folder: Path,
        names: Sequence[str] = NAMES,
        *,
        cut: Mapping[str, Callable[[int], bool]] | None = None,
        fresh: bool = True,
        policy: CheckpointPolicy = NEVER,
        link: Mapping[str, Any] | None = None,
    ) -> None:
        self.names, self.fresh, self.policy = tuple(names), fresh, policy
        self.configs = configs(folder, names, **(link or {}))
        self.wires = {name: WatchedWire((cut or {}).get(name, lambda n: False)) for name in names}
        self.kills: dict[str, tuple[int, bool]] = {}
        self.ends: dict[str, Any] = {}
        self.starts: dict[str, int] = defaultdict(int)
        self.said: dict[str, list[str]] = defaultdict(list)
        self.pasts: list[Past] = []
        self.programs: dict[str, Callable[[Entropy, TrainingState | None], Program[Any]]] = {
            "bob": lambda entropy, resume: centre(entropy, self.names, resume),
            **dict.fromkeys(names, spoke),
        }
        self._threads: dict[str, threading.Thread] = {}

    def endpoints(self, name: str) -> Endpoints:
        if name == "bob":
            return {other: wire.endpoint(serves=True) for other, wire in self.wires.items()}
        return self.wires[name].endpoint(serves=False)

    def start(self, *names: str) -> None:
        """Starts parties, all by default, each in a thread."""
        for name in names or ("bob", *self.names):
            self._threads[name] = threading.Thread(target=self._live, args=(name,))
            self._threads[name].start()

    def join(self) -> dict[str, Any]:
        """How they ended."""
        for thread in self._threads.values():
            thread.join(HANG)
        assert not any(thread.is_alive() for thread in self._threads.values())
        return self.ends

    def run(self) -> dict[str, Any]:
        self.start()
        return self.join()

    def _live(self, name: str) -> None:
        while True:
            self.starts[name] += 1
            try:
                self.ends[name] = self._process(name)
            except Killed:
                continue
            except BaseException as problem:
                self.ends[name] = problem
            return

    def _process(self, name: str) -> Any:
        """One life of a party: from its journal on, to the end or until it is killed."""
        config = self.configs[name]
        journal = FrailJournal(config.path("journal"), KEY, sync=False)
        journal.at, journal.after = self.kills.pop(name, (-1, False))
        past = journal.resume() or journal.begin(Meta({}, b"", SystemEntropy().token(NONCE_BYTES)))
        if name == "bob":
            self.pasts.append(past)
        seed = {other: place for place, other in enumerate(("bob", *self.names))}[name]
        entropy = SystemEntropy() if self.fresh else KeyedEntropy.from_seed(seed)
        body = past.checkpoint.body
        program = self.programs[name](entropy, TrainingState.from_bytes(body) if body else None)
        side = PeerSession(config, self.endpoints(name), Callbacks(announce=self.said[name].append))
        try:
            with side.meet(ALIGNMENT, past, journal) as meeting:
                return self._talk(meeting, program)
        finally:
            journal.close()

    def _talk(self, meeting: Meeting, program: Program[Any]) -> Any:
        result = meeting.run(program, RunHooks(policy=self.policy))
        # Where the last word itself was cut off, nobody can know that it was heard. Whoever gives
        # up before a busy machine has made the link anew leaves the others waiting.
        meeting.finish(3.0)
        return result

    def assert_consistent(self) -> None:
        """Everybody heard the same sums, of numbers that left once, and nothing left twice."""
        ends = [self.ends[name] for name in ("bob", *self.names)]
        assert all(end == ends[0] for end in ends), ends
        for wire in self.wires.values():
            assert {len(versions) for versions in wire.versions.values()} == {1}


A, B, C = b"a" * 16, b"b" * 16, b"c" * 16
PATIENT = Patience(connect=HANG, answer=HANG, opening=HANG)


@pytest.fixture
def silent_kills(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is killed tells nobody."""
    abort = PeerSession._abort

    def unless_killed(
        self: PeerSession, meeting: Meeting, problem: BaseException, *, declines: bool
    ) -> None:
        if not isinstance(problem, Killed):
            abort(self, meeting, problem, declines=declines)

    monkeypatch.setattr(PeerSession, "_abort", unless_killed)


def reference(names: tuple[str, ...] = NAMES) -> list[float]:
    """What comes out of it in one process, with the coins of a star that is not fresh."""
    alices = {
        name: spoke(KeyedEntropy.from_seed(place)) for place, name in enumerate(names, start=1)
    }
    _, sums = run_star(alices, centre(KeyedEntropy.from_seed(0), names))
    return sums


@pytest.mark.parametrize("count", [2, 5])
def test_a_star_ends_as_it_does_in_one_process(tmp_path, count):
    names = tuple(f"alice-{number}" for number in range(1, count + 1))
    star = Star(tmp_path, names, fresh=False)
    assert star.run()["bob"] == reference(names)
    star.assert_consistent()


@pytest.mark.parametrize("late", NAMES)
def test_an_alice_who_comes_late_is_waited_for_and_the_other_is_let_in(tmp_path, late):
    (punctual,) = set(NAMES) - {late}
    star = Star(tmp_path)
    star.start("bob", punctual)
    wait_until(lambda: f"{punctual}: connected" in star.said["bob"])
    star.start(late)
    star.join()
    star.assert_consistent()


@pytest.mark.parametrize("cut", range(1, 2 * TURNS + 6))
@pytest.mark.parametrize("names", [("alice-1",), ("alice-2",), NAMES])
@pytest.mark.sampled(10)
def test_links_may_break_at_any_frame(tmp_path, names, cut):
    """Of one at one frame; of all again and again."""
    again = len(names) > 1
    star = Star(
        tmp_path,
        cut={name: lambda at: at % (cut + 4) == 0 if again else at == cut for name in names},
    )
    star.run()
    star.assert_consistent()


@pytest.mark.parametrize("policy", [OFTEN, NEVER], ids=["checkpoints", "none"])
@pytest.mark.parametrize("after", [True, False], ids=["after", "before"])
@pytest.mark.parametrize(
    ("name", "at"),
    [
        *(("alice-2", at) for at in range(1, 2 * TURNS + 2)),
        *(("bob", at) for at in range(1, 4 * TURNS + 3)),
    ],
)
@pytest.mark.usefixtures("silent_kills")
@pytest.mark.sampled(24)
def test_each_may_be_killed_at_any_record(tmp_path, name, at, after, policy):
    star = Star(tmp_path, policy=policy)
    star.kills[name] = at, after
    star.run()
    assert star.starts[name] == 2
    star.assert_consistent()


# --- the journal ---------------------------------------------------------------------------------


def test_a_checkpoint_holds_what_two_links_have_not_confirmed(tmp_path):
    journal = Journal(tmp_path / "journal", KEY, sync=False)
    past = journal.begin(Meta({}, b"c", B))
    drawn = Meta({}, b"", A).drawn
    journal.met(A, drawn)
    journal.met(C, drawn, 1)
    for place, frames in enumerate(([b"one", b"two"], [b"eins"])):
        for frame in frames:
            journal.sent(frame, place)
    journal.received(b"uno", 1)
    journal.checkpoint(Checkpoint(2, 0, b"state"), {2: b"two"}, [(Checkpoint(1, 1), {1: b"eins"})])
    journal.sent(b"zwei", 1)
    journal.persisted(b"kept")
    journal.close()
    again = Journal(tmp_path / "journal", KEY)
    resumed = again.resume()
    again.close()
    assert resumed == Past(
        past.meta,
        A,
        Checkpoint(2, 0, b"state"),
        {2: b"two"},
        persisted=[b"kept"],
        further=[
            Past(past.meta, C, Checkpoint(1, 1), {1: b"eins"}, sent=[b"zwei"], peer_drawn=drawn)
        ],
        peer_drawn=drawn,
    )
    wires = [Wire(), Wire()]
    hers = [
        Past(Meta({}, b"", A), B, Checkpoint(0, 1), peer_drawn=past.meta.drawn),
        Past(Meta({}, b"", C), B, Checkpoint(1), peer_drawn=past.meta.drawn),
    ]
    ends: list[list[bytes]] = [[], []]

    def alice(place: int) -> None:
        link = training_link(
            wires[place].endpoint(serves=False),
            None,
            hers[place],
            patience=PATIENT,
        )
        ends[place].append(link.receive())
        if place:
            ends[place].append(link.receive())

    threads = [threading.Thread(target=alice, args=(place,)) for place in (0, 1)]
    for place, thread in enumerate(threads):
        thread.start()
        endpoint = wires[place].endpoint(serves=True)
        training_link(endpoint, None, resumed.link(place), patience=PATIENT, place=place).connect()
        thread.join(HANG)
    assert ends == [[b"two"], [b"eins", b"zwei"]]


def test_a_journal_of_another_order_is_refused_before_a_word_is_sent():
    """Nothing more was said to the first peer, and yet something to the second."""
    past = Past(Meta({}, b"", B))
    past.link(1).sent = [encode(residues(0))]
    links = {
        name: training_link(Wire().endpoint(serves=True), None, past.link(place), place=place)
        for place, name in enumerate(NAMES)
    }
    with refused(StateError):
        run_program("bob", with_peer("alice-1", send(residues(0))), links, past)


# --- who is named --------------------------------------------------------------------------------


def failing(problem: TaciturnError) -> Program[Any]:
    yield from send(scores(0, 0.5))
    raise problem


def test_an_alice_who_aborts_is_named_to_all_and_all_resume(tmp_path):
    star = Star(tmp_path)
    usual = star.programs["alice-2"]
    star.programs["alice-2"] = lambda entropy, resume: failing(OutputError("no room", where="here"))
    ends = star.run()
    assert isinstance(ends["alice-2"], OutputError)
    for name in ("bob", "alice-1"):
        assert isinstance(ends[name], PeerStopped)
        assert "alice-2" in ends[name].message
    # Nobody knows the kind of it.
    assert ends["bob"].code == 0
    assert OutputError.__name__ not in ends["bob"].message + ends["alice-1"].message
    star.programs["alice-2"] = usual
    star.run()
    star.assert_consistent()


def test_what_is_wrong_with_one_is_told_to_her_and_only_that_it_is_she_to_the_others(tmp_path):
    star = Star(tmp_path)

    def refusing() -> Program[None]:
        yield from receive(PartialScores)
        raise AgreementError("the settings of the peer differ: a secret")

    def unconcerned() -> Program[None]:
        yield from receive(PartialScores)
        yield from receive(PartialScores)

    star.programs["bob"] = lambda entropy, resume: together(
        {"alice-1": unconcerned(), "alice-2": refusing()}
    )
    ends = star.run()
    assert ["secret" in ends[name].message for name in star.configs] == [True, False, True]
    assert all("alice-2" in end.message for end in ends.values())


def test_a_problem_of_bobs_own_ends_all_and_is_told_to_nobody(tmp_path):
    star = Star(tmp_path)
    star.programs["bob"] = lambda entropy, resume: with_peer("alice-1", failing_bob())
    ends = star.run()
    for name in NAMES:
        assert isinstance(ends[name], PeerStopped)
        assert ends[name].code == 0
        assert OutputError.__name__ not in ends[name].message


def failing_bob() -> Program[None]:
    yield from receive(PartialScores)
    yield Receive(PartialScores, "alice-2")
    raise OutputError("no room")


def bob_with(wires: dict[str, Wire], tmp_path: Path, **link: Any) -> PeerSession:
    config = configs(tmp_path, tuple(wires), **link)["bob"]
    return PeerSession(config, {name: wire.endpoint(serves=True) for name, wire in wires.items()})


def opening(nonce: bytes = A, purpose: int = ALIGNMENT, known: bytes = bytes(16)) -> bytes:
    return opening_of(purpose, nonce, known)


def data(number: int, frame: bytes) -> bytes:
    return struct.pack("<BQQ", 2, number, 0) + frame


@pytest.mark.parametrize(
    ("frames", "error", "named"),
    [
        ([b"garbage" * 20], MalformedFrame, ""),
        ([opening(purpose=1)], AgreementError, ""),
        ([opening(known=C)], StateError, ""),
        ([opening(), data(2, b"")], RemoteProtocolError, "2"),
        ([opening(), data(1, b"nonsense")], MalformedFrame, ""),
        ([opening(), struct.pack("<BH", 4, 32) + b"why"], PeerStopped, "why"),
        ([opening()], PeerSilent, "0.3"),
    ],
)
def test_one_who_does_not_keep_to_it_is_named(tmp_path, frames, error, named):
    wires = {name: Wire() for name in NAMES}
    channel = wires["alice-2"].endpoint(serves=False).connect(HANG)
    for frame in frames:
        channel.send(frame)
    side = bob_with(wires, tmp_path, **{"answer-seconds": 0.3, "connect-seconds": 0.3})
    with refused(error, names=("alice-2", named)) as caught, side.meet(ALIGNMENT) as meeting:
        meeting.run(with_peer("alice-2", receive(PartialScores)))
    assert caught.value.peer == "alice-2"


def test_one_who_misbehaves_is_named_also_while_another_is_waited_for(tmp_path):
    wires = {name: Wire() for name in NAMES}
    wires["alice-2"].endpoint(serves=False).connect(HANG).send(b"garbage")
    side = bob_with(wires, tmp_path)
    with refused(MalformedFrame, names="alice-2"), side.meet(1) as meeting:
        meeting.links["alice-1"].receive()


def test_a_program_that_waits_for_nobody_is_a_bug_of_ours(tmp_path):
    side = bob_with({name: Wire() for name in NAMES}, tmp_path)
    with refused(LocalProtocolError), side.meet(1) as met:
        met.run(receive(PartialScores))


# --- waiting -------------------------------------------------------------------------------------


def test_the_waits_for_several_overlap(tmp_path):
    """Each answers when she is let to, the last one first; all were asked before any answered."""
    names = tuple(f"alice-{number}" for number in range(1, 5))
    star = Star(tmp_path, names)
    asked = {name: threading.Event() for name in names}
    go_on = {name: threading.Event() for name in names}

    def slow(name: str) -> Program[None]:
        yield from receive(EncryptedResidues)
        asked[name].set()
        assert go_on[name].wait(HANG)
        yield from send(scores(0, 1.0))

    def ask() -> Program[None]:
        yield from send(residues(0))
        yield from receive(PartialScores)

    star.programs = {
        "bob": lambda entropy, resume: together({name: ask() for name in names}),
        **{name: partial(lambda name, entropy, resume: slow(name), name) for name in names},
    }
    star.start()
    for name in names:
        assert asked[name].wait(HANG)
    for name in reversed(names):
        go_on[name].set()
    assert star.join() == {"bob": dict.fromkeys(names), **dict.fromkeys(names)}


def test_who_waits_for_bob_gets_signs_of_life_while_he_waits_for_another(tmp_path, monkeypatch):
    monkeypatch.setattr(module_of(Patience), "NOTE_SECONDS", 0.0)
    monkeypatch.setattr(module_of(Patience), "TENDING_SECONDS", 0.01)
    wires = {name: Wire() for name in NAMES}
    side, ended = bob_with(wires, tmp_path), threading.Event()

    def bob() -> None:
        with side.meet(ALIGNMENT) as meeting:
            meeting.links["alice-1"].receive()
        ended.set()

    thread = threading.Thread(target=bob)
    thread.start()
    waiting = wires["alice-2"].endpoint(serves=False).connect(HANG)
    waiting.send(opening(C))
    assert waiting.receive(HANG)[:1] == b"\x01"
    for _ in range(3):
        assert waiting.receive(HANG) == struct.pack("<BQ", 3, 0)
    assert not ended.is_set()
    other = wires["alice-1"].endpoint(serves=False).connect(HANG)
    other.send(opening(A))
    other.send(data(1, b"frame"))
    thread.join(HANG)
    assert ended.is_set()


class Scripted:
    """A channel that says what it is told to, and notes how long it was waited for."""

    def __init__(self, *envelopes: bytes) -> None:
        self.envelopes, self.waits = list(envelopes), list[float]()

    def send(self, frame: bytes, *, wait: bool = True) -> None:
        """Nobody hears it."""

    def receive(self, timeout: float) -> bytes:
        self.waits.append(timeout)
        if not self.envelopes:
            raise PeerSilent("nothing more")
        return self.envelopes.pop(0)

    def close(self) -> None:
        """Nothing is open."""

    def connect(self, timeout: float) -> Scripted:
        return self


def test_a_sign_of_life_begins_the_wait_anew():
    note = struct.pack("<BQ", 3, 0)
    channel = Scripted(opening(A, 1), note, note, data(1, b"frame"))
    link = training_link(channel, None, Past(Meta({}, b"", B)), patience=Patience(answer=77.0))
    assert link.receive() == b"frame"
    assert channel.waits[1:] == [77.0, 77.0, 77.0]


def test_a_link_that_broke_while_another_is_waited_for_keeps_what_had_arrived(monkeypatch):
    """Who has finished and gone does not come back to send her last frame again."""
    monkeypatch.setattr(module_of(Patience), "NOTE_SECONDS", 0.0)
    wire = Wire()
    gone = wire.endpoint(serves=False).connect(HANG)
    gone.send(opening(A, 1))
    gone.send(data(1, b"last words"))
    link = training_link(
        wire.endpoint(serves=True),
        None,
        Past(Meta({}, b"", B)),
        patience=PATIENT,
    )
    link.tend()
    monkeypatch.setattr(type(gone), "send", broken)
    link.tend()
    assert link.receive() == b"last words"


def broken(self: object, frame: bytes, *, wait: bool = True) -> None:
    raise ConnectionLost("the wire was cut")


def test_a_meeting_that_ends_with_its_link_is_over_for_all_when_one_calls_again(tmp_path):
    wires = {name: Wire() for name in NAMES}
    side = bob_with(wires, tmp_path)
    for name, nonce in zip(NAMES, (A, C), strict=True):
        wires[name].endpoint(serves=False).connect(HANG).send(opening(nonce))

    def talk() -> None:
        with side.meet(ALIGNMENT, rejoins=False) as meeting:
            meeting.connect()
            wires["alice-2"].endpoint(serves=False).connect(HANG).send(opening(C))
            meeting.links["alice-1"].receive()

    with refused(ConnectionLost, names="alice-2"):
        talk()


# --- the meeting as a whole ----------------------------------------------------------------------


def test_each_alice_knows_the_session_by_a_name_that_bob_knows_too(tmp_path):
    star, meetings = Star(tmp_path), list[Meeting]()

    def talk(meeting: Meeting, program: Program[Any]) -> Any:
        meetings.append(meeting)
        return meeting.run(program), meeting.finish(HANG), meeting.traffic

    star._talk = talk  # type: ignore[method-assign]
    ends = star.run()
    assert [end[1] for end in ends.values()] == [True] * 3
    (bob,) = [meeting for meeting in meetings if meeting.role == "bob"]
    hers = [meeting.name for meeting in meetings if meeting.role == "alice"]
    assert {bob.name_with(name) for name in NAMES} == set(hers)
    assert bob.name not in hers
    assert ends["bob"][2].received == 2 * TURNS
    assert ends["bob"][2].links == 2
    assert ends["bob"][2].bytes_sent == sum(ends[name][2].bytes_received for name in NAMES)


def test_a_bob_who_cannot_begin_tells_all_who_are_there(tmp_path):
    star = Star(tmp_path)
    star.start(*NAMES)
    wait_until(lambda: all(wire.links for wire in star.wires.values()))
    side = PeerSession(star.configs["bob"], star.endpoints("bob"), Callbacks())
    side.refuse(ALIGNMENT)
    ends = star.join()
    for name in NAMES:
        assert isinstance(ends[name], PeerStopped)
        # exact: no reason is given
        assert "does not begin" in ends[name].message
