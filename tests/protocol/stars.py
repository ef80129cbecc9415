"""One table among several Alices and Bob, and all their programs on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import Scheme
from taciturn.crypto.clear import ClearScheme
from taciturn.crypto.signatures import KeyIdentity, fingerprint
from taciturn.data.tables import FeatureTable
from taciturn.engine.callbacks import noop
from taciturn.engine.pair import StarTap, run_star
from taciturn.engine.transcript import Recorder, Transcript
from taciturn.numerics.whitening import centring_offset
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.registry import mechanism as mechanism_of
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.party import TRAININGS as ALICES
from taciturn.protocol.alice.party import alice_program
from taciturn.protocol.bob.inputs import BobInputs, released_labels
from taciturn.protocol.bob.party import TRAININGS as BOBS
from taciturn.protocol.bob.party import bob_program
from taciturn.protocol.codec import decode
from taciturn.protocol.events import Boundary, Event, Progress
from taciturn.protocol.messages import Message, Role
from taciturn.protocol.outcome import BobTrained, HeldOut, Trained, WeightShare
from taciturn.protocol.party import PartyResult
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import ONLY, Emit, Persist, Program
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from taciturn.settings.agreement import Agreement
from tests.protocol.hostile import stepped
from tests.protocol.parties import BOB, Tables

R = TypeVar("R")
E = TypeVar("E", bound=Event)
CLEAR = ClearScheme()


def names(count: int) -> tuple[str, ...]:
    return tuple(f"alice-{number}" for number in range(1, count + 1))


def entropy_of(name: str) -> KeyedEntropy:
    return KeyedEntropy.from_seed(100 + int(name.rpartition("-")[2]))


def identity_of(name: str) -> KeyIdentity:
    return KeyIdentity.simulated(name, entropy_of(name))


def pins(parties: tuple[str, ...]) -> dict[str, str]:
    return {name: fingerprint(identity_of(name).public_key) for name in parties}


def split(features: FeatureTable, parties: tuple[str, ...]) -> dict[str, FeatureTable]:
    """Her columns, dealt out in order, as evenly as they can be."""
    places = np.array_split(np.arange(len(features.columns)), len(parties))
    return {
        name: FeatureTable(
            features.ids,
            tuple(features.columns[at] for at in place),
            np.ascontiguousarray(features.values[:, place]),
        )
        for name, place in zip(parties, places, strict=True)
    }


@dataclass(frozen=True)
class Star:
    """A training of several Alices, before it is run."""

    tables: Tables
    terms: Terms
    parties: tuple[str, ...]

    @classmethod
    def of(cls, tables: Tables, agreed: Agreement, alices: int, scheme: Scheme = CLEAR) -> Star:
        parties, agreed = names(alices), tables.agreed(agreed)
        if alices > 1:
            agreed = agreed.model_copy(update={"parties": pins(parties)})
        return cls(tables, Terms(agreed, scheme), parties if alices > 1 else (ONLY,))

    @property
    def shares(self) -> Mapping[str, FeatureTable]:
        if self.parties == (ONLY,):
            return {ONLY: self.tables.alice}
        return split(self.tables.alice, self.parties)

    def alice_inputs(self, name: str, **changes: Any) -> AliceInputs:
        known = name if name != ONLY else "alice-1"
        inputs = AliceInputs(
            self.shares[name],
            self.terms,
            entropy_of(known),
            identity=None if name == ONLY else identity_of(name),
        )
        return replace(inputs, **changes)

    def bob_inputs(self, *, budget: float | None = None, **changes: Any) -> BobInputs[Any]:
        """What Bob trains with: labels that the mechanism has flipped, where it does."""
        method = mechanism_of(self.terms.agreement)
        ledger = changes.get("ledger") or Ledger(self.rows, method.assumption, budget)
        inputs = BobInputs(
            self.tables.bob,
            released_labels(self.tables.labels, method, ledger, BOB),
            self.terms,
            method,
            ledger,
            BOB,
            partners=self.parties,
        )
        return replace(inputs, **changes)

    @property
    def rows(self) -> int:
        return self.tables.labels.rows

    def alice_program(self, name: str = ONLY, **changes: Any) -> Program[Trained]:
        return ALICES[self.terms.conversation](self.alice_inputs(name, **changes))

    def alice_programs(self) -> dict[str, Program[Trained]]:
        return {name: self.alice_program(name) for name in self.parties}

    def bob_program(self, **changes: Any) -> Program[BobTrained]:
        return BOBS[self.terms.conversation](self.bob_inputs(**changes))


States = Mapping[str, TrainingState]
"""What each side kept at a boundary, by its name; Bob's under ``bob``."""


@dataclass(frozen=True)
class StarTalk:
    """What all sides returned, said and reported."""

    alices: dict[str, Trained]
    bob: BobTrained
    frames: tuple[tuple[str, Role, bytes], ...]
    events: tuple[Event, ...]
    kept: tuple[bytes, ...] = ()
    boundaries: tuple[States, ...] = ()
    inputs: BobInputs[Any] | None = None

    @property
    def alice(self) -> Trained:
        """The only one."""
        (trained,) = self.alices.values()
        return trained

    @property
    def ledger(self) -> Ledger:
        assert self.inputs is not None
        return self.inputs.ledger

    @property
    def alice_weights(self) -> FloatArray:
        """Those of all Alices, from both shares where they are shared."""
        if self.bob.share is None:
            return np.concatenate([trained.weights for trained in self.alices.values()])
        stops = np.cumsum([len(shared(trained).values) for trained in self.alices.values()])
        parts = np.split(self.bob.share.values, stops[:-1])
        pairs = zip(self.alices.values(), parts, strict=True)
        return np.concatenate([_joined(shared(trained), part) for trained, part in pairs])

    @property
    def weights(self) -> FloatArray:
        """Of all columns, in their own coordinates, whoever has them: those of the joined table."""
        his, hers = self.bob.weights.copy(), self.alice_weights
        if self.bob.bob_share is not None and len(self.bob.bob_share.values):
            assert self.alice.bob_share is not None
            his = _joined(self.bob.bob_share, self.alice.bob_share.values)
        means = [trained.means for trained in self.alices.values() if trained.means is not None]
        if means:
            his[-1] += centring_offset(hers, np.concatenate(means))
        return np.concatenate([hers, his])

    def sent(self, role: Role, link: str = ONLY) -> list[bytes]:
        return [frame for name, who, frame in self.frames if (name, who) == (link, role)]

    def said(self, link: str, role: Role) -> list[Message]:
        return [decode(frame) for frame in self.sent(role, link)]

    def said_by(self, role: Role) -> list[Message]:
        """To or by the only Alice."""
        return self.said(ONLY, role)

    def seen(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def transcript(self) -> Transcript:
        """The recording of all links, without header."""
        recorder = Recorder(len(self.alices))
        places = {name: place for place, name in enumerate(self.alices)}
        for name, sender, frame in self.frames:
            recorder(sender, frame, places[name])
        return recorder.finish({})

    @property
    def batches(self) -> list[Any]:
        """The true batch of each iteration, as Bob reports it."""
        return [event.rows for event in self.seen(Progress)]


def shared(trained: Trained) -> WeightShare:
    """The side's share of Alice's weights."""
    assert trained.share is not None
    return trained.share


def _joined(own: WeightShare, other: IntArray) -> FloatArray:
    """The weights of two shares, in the coordinates of the columns' owner."""
    weights = own.scales.weights(own.values + other)
    return weights if own.whitening is None else own.whitening.weights(weights)


def _dealt(held_out: Tables, parties: tuple[str, ...]) -> Mapping[str, FeatureTable]:
    return {ONLY: held_out.alice} if parties == (ONLY,) else split(held_out.alice, parties)


def converse(
    star: Star,
    *,
    held_out: Tables | None = None,
    states: States | None = None,
    tap: StarTap = noop,
    whole: bool = False,
    **changes: Any,
) -> StarTalk:
    """Runs all programs against each other, from a boundary where there is one; keeps everything.

    Args:
        star: Who trains.
        held_out: Rows that Bob looks at on the way.
        states: Where all sides resume.
        tap: Called with each frame.
        whole: Not the training alone, but the session from its first message to its last.
        changes: Of Bob's inputs.
    """
    frames: list[tuple[str, Role, bytes]] = []
    kept: list[bytes] = []
    events: list[Event] = []
    boundaries: dict[str, list[TrainingState]] = {name: [] for name in (*star.parties, "bob")}
    at = states or {}

    def noting(name: str, program: Program[R]) -> Program[R]:
        def note(step: Any) -> Any:
            if isinstance(step, Persist) and name == "bob":
                kept.append(step.data)
            if isinstance(step, Emit) and isinstance(step.event, Boundary):
                boundaries[name].append(step.event.state)
            return step

        return stepped(program, note)

    def listen(link: str, sender: Role, frame: bytes) -> None:
        frames.append((link, sender, frame))
        tap(link, sender, frame)

    theirs = None if held_out is None else _dealt(held_out, star.parties)
    ours = None if held_out is None else HeldOut(held_out.bob, held_out.labels)
    inputs = star.bob_inputs(resume=at.get("bob"), held_out=ours, **changes)
    alices = {
        name: star.alice_inputs(
            name, resume=at.get(name), held_out=None if theirs is None else theirs[name]
        )
        for name in star.parties
    }
    alice, bob = ALICES[star.terms.conversation], BOBS[star.terms.conversation]
    if whole:
        alice, bob = _trained(alice_program), _trained(bob_program)
    trained, bob_trained = run_star(
        {name: noting(name, alice(one)) for name, one in alices.items()},
        noting("bob", bob(inputs)),
        tap=listen,
        observe=events.append,
    )
    rounds = [
        dict(zip(boundaries, at, strict=True)) for at in zip(*boundaries.values(), strict=True)
    ]
    said = tuple(frames), tuple(events), tuple(kept), tuple(rounds)
    return StarTalk(trained, bob_trained, *said, inputs)


def talk(tables: Tables, agreed: Agreement, scheme: Scheme = CLEAR, **changes: Any) -> StarTalk:
    """The training of one Alice; ``changes`` are those of Bob's inputs."""
    return converse(Star.of(tables, agreed, 1, scheme), **changes)


def _trained(program: Callable[[Any], Program[PartyResult]]) -> Callable[[Any], Program[Any]]:
    def train(inputs: Any) -> Program[Any]:
        return (yield from program(inputs)).trained

    return train


def whole_session(
    star: Star, held_out: Tables, tap: StarTap = noop
) -> tuple[dict[str, PartyResult], PartyResult]:
    """From the first message to the last, held-out rows included."""
    tables = _dealt(held_out, star.parties)
    alices = {
        name: alice_program(star.alice_inputs(name, held_out=tables[name])) for name in star.parties
    }
    his = HeldOut(held_out.bob, held_out.labels)
    return run_star(alices, bob_program(star.bob_inputs(held_out=his)), tap=tap)
