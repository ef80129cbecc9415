"""What ``run_job`` does for every job, whatever its sides say to each other."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taciturn.data.ids import RowIds
from taciturn.errors import BudgetExceeded, ConfigError, OutputError, PeerStopped, TaciturnError
from taciturn.jobs.align.declaration import ALIGNMENT
from taciturn.jobs.align.job import AlignJob
from taciturn.jobs.align.messages import AlignmentHello
from taciturn.jobs.base import Consent, Job, SessionFacts, Side, simulate_job
from taciturn.jobs.predict.job import PredictJob
from taciturn.jobs.train.job import TrainJob
from taciturn.party.config import PartyConfig
from taciturn.protocol.events import ScoresDue
from taciturn.protocol.messages import PublicBytes
from taciturn.protocol.steps import ONLY, Program, emit, receive, send
from taciturn.rng import Entropy, KeyedEntropy
from tests.party.sides import run_jobs, write_config, write_tables

IDS = RowIds.from_values(["a", "b"])
GREETING = AlignmentHello(1, "alice", "{}", len(IDS), PublicBytes(bytes(32)))


def passes(*_: object) -> None:
    """Raises nothing."""


@dataclass
class Greeter(Job[SessionFacts], Side[str, SessionFacts]):
    """Alice sends one message, which costs something, and Bob sends it back."""

    role: str
    charge: Callable[[ScoresDue], None] = passes
    read: Callable[[], None] = passes
    write: Callable[[], None] = passes
    done: list[str] = field(default_factory=list)
    frames: list[str] = field(default_factory=list)
    purpose = ALIGNMENT

    def prepare(self, config: PartyConfig) -> Greeter:
        self.read()
        return self

    @property
    def consent(self) -> Consent[ScoresDue]:
        return Consent(ScoresDue, self.charge)

    def program(self, entropy: Entropy) -> Program[str]:
        if self.role == "alice":
            yield from emit(ScoresDue(IDS))
            yield from send(GREETING)
        yield from receive(AlignmentHello)
        self.frames += [frame.name for frame in traceback.extract_stack()]
        if self.role == "bob":
            yield from send(GREETING)
        self.done.append("program")
        return self.role

    def deliver(self, outcome: str) -> None:
        self.write()
        self.done.append("deliver")

    def conclude(self, outcome: str, session: SessionFacts) -> SessionFacts:
        self.done.append("conclude")
        return session


def raises(problem: TaciturnError) -> Callable[..., None]:
    def act(*_: object) -> None:
        raise problem

    return act


def run(folder: Any, **alices: Any) -> tuple[Any, Any, Greeter, Greeter]:
    write_tables(folder)
    for role in ("alice", "bob"):
        write_config(folder, role)
    alice, bob = Greeter("alice", **alices), Greeter("bob")
    ends = run_jobs(folder, {"alice": alice, "bob": bob})
    return ends.alice, ends.bob, alice, bob


def test_both_sides_end_with_the_facts_of_the_session(tmp_path):
    charged: list[RowIds] = []
    alice, bob, *sides = run(tmp_path, charge=lambda event: charged.append(event.ids))
    assert charged == [IDS]
    assert (alice.role, alice.peer, bob.role, bob.peer) == ("alice", "bob", "bob", "alice")
    assert alice.confirmed
    assert bob.confirmed
    assert alice.traffic.bytes_sent == bob.traffic.bytes_received > 0
    assert [side.done for side in sides] == [["program", "deliver", "conclude"]] * 2


def test_five_frames_lead_from_a_command_to_a_step_of_the_program(tmp_path):
    *_, alice, bob = run(tmp_path)
    for side in (alice, bob):
        ring = side.frames[side.frames.index("run_job") : side.frames.index("_advance")]
        assert ring == ["run_job", "run_session", "run", "run_program", "feed"]


def test_a_charge_that_is_refused_keeps_the_message_from_leaving(tmp_path):
    problem = BudgetExceeded("no more", setting="scores_per_row")
    alice, bob, _, his = run(tmp_path, charge=raises(problem))
    assert alice is problem
    assert isinstance(bob, PeerStopped)
    assert bob.code == 0
    assert his.done == []


def test_a_side_that_cannot_begin_tells_the_peer(tmp_path):
    problem = ConfigError("not readable", setting="file")
    alice, bob, hers, his = run(tmp_path, read=raises(problem))
    assert alice is problem
    assert isinstance(bob, PeerStopped)
    assert bob.code == 0
    assert hers.done == his.done == []


def test_each_job_has_a_purpose_of_its_own():
    """Sides with different purposes refuse each other: tests/party/test_link.py."""
    path = Path("rows.csv")
    jobs = (
        AlignJob(),
        TrainJob(),
        PredictJob(path, path),
        PredictJob(path, path, common=path),
    )
    assert len({job.purpose for job in jobs}) == len(jobs)


def test_what_cannot_be_written_is_not_confirmed(tmp_path):
    """Bob must not take the last message for one that Alice has made use of."""
    alice, bob, hers, _ = run(tmp_path, write=raises(OutputError("no room")))
    assert isinstance(alice, OutputError)
    assert hers.done == ["program"]
    assert isinstance(bob, PeerStopped) or not bob.confirmed


def test_a_simulation_runs_the_same_programs_and_counts_bytes():
    entropy, frames = KeyedEntropy.from_seed(1), list[tuple[str, str]]()
    end = simulate_job(
        {ONLY: Greeter("alice").program(entropy)},
        Greeter("bob").program(entropy),
        tap=lambda link, sender, frame: frames.append((link, sender)),
    )
    assert (end.alices, end.bob) == ({ONLY: "alice"}, "bob")
    assert frames == [(ONLY, "alice"), (ONLY, "bob")]
    assert end.bytes_to_bob == end.bytes_to_alice > 0
