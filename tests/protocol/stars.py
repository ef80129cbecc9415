"""One table among several Alices and Bob, and all their programs on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.crypto import ClearScheme, KeyIdentity, Scheme, fingerprint
from taciturn.data import FeatureTable
from taciturn.engine import Recorder, StarTap, Transcript, run_star, unheard
from taciturn.privacy import Ledger
from taciturn.privacy import mechanism as mechanism_of
from taciturn.protocol import (
    ONLY,
    BobTrained,
    Event,
    HeldOut,
    Keep,
    Message,
    PartyResult,
    Program,
    Progress,
    Role,
    Terms,
    Trained,
    decode,
)
from taciturn.protocol.alice import TRAININGS as ALICES
from taciturn.protocol.alice import AliceInputs, alice_program
from taciturn.protocol.bob import TRAININGS as BOBS
from taciturn.protocol.bob import BobInputs, bob_program
from taciturn.rng import KeyedEntropy
from taciturn.settings import Agreement
from tests.protocol.parties import BOB, Tables

CLEAR = ClearScheme()


def names(count: int) -> tuple[str, ...]:
    return tuple(f"alice-{number}" for number in range(1, count + 1))


def coins_of(name: str) -> KeyedEntropy:
    return KeyedEntropy.from_seed(100 + int(name.rpartition("-")[2]))


def identity_of(name: str) -> KeyIdentity:
    return KeyIdentity.simulated(name, coins_of(name))


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
        parties = names(alices)
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
            coins_of(known),
            identity=None if name == ONLY else identity_of(name),
        )
        return replace(inputs, **changes)

    def bob_inputs(self, **changes: Any) -> BobInputs[Any]:
        method = mechanism_of(self.terms.agreement)
        ledger = Ledger(self.tables.labels.rows, method.assumption)
        inputs = BobInputs(
            self.tables.bob,
            self.tables.labels,
            self.terms,
            method,
            ledger,
            BOB,
            partners=self.parties,
        )
        return replace(inputs, **changes)

    def alice_programs(self) -> dict[str, Program[Trained]]:
        train = ALICES[self.terms.conversation]
        return {name: train(self.alice_inputs(name)) for name in self.parties}

    def bob_program(self) -> Program[BobTrained]:
        return BOBS[self.terms.conversation](self.bob_inputs())


@dataclass(frozen=True)
class StarTalk:
    """What all sides returned, said and reported."""

    alices: dict[str, Trained]
    bob: BobTrained
    frames: tuple[tuple[str, Role, bytes], ...]
    events: tuple[Event, ...]
    kept: tuple[bytes, ...] = ()

    @property
    def alice_weights(self) -> FloatArray:
        """Those of all Alices, from both shares where they are shared."""
        if self.bob.share is None:
            return np.concatenate([trained.weights for trained in self.alices.values()])
        stops = np.cumsum([len(_share(trained)) for trained in self.alices.values()])
        parts = np.split(self.bob.share.values, stops[:-1])
        pairs = zip(self.alices.values(), parts, strict=True)
        return np.concatenate([_joined(trained, part) for trained, part in pairs])

    @property
    def weights(self) -> FloatArray:
        return np.concatenate([self.alice_weights, self.bob.weights])

    def said(self, link: str, role: Role) -> list[Message]:
        return [decode(frame) for name, who, frame in self.frames if (name, who) == (link, role)]

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
        return [event.rows for event in self.events if isinstance(event, Progress)]


def _share(trained: Trained) -> Any:
    assert trained.share is not None
    return trained.share.values


def _joined(trained: Trained, part: Any) -> FloatArray:
    assert trained.share is not None
    weights = trained.share.scales.weights(trained.share.values + part)
    whitening = trained.share.whitening
    return weights if whitening is None else whitening.weights(weights)


def converse(star: Star) -> StarTalk:
    """Runs all programs against each other and keeps everything."""
    frames: list[tuple[str, Role, bytes]] = []
    events: list[Event] = []
    kept: list[bytes] = []
    alices, bob = run_star(
        star.alice_programs(),
        _noting(star.bob_program(), kept),
        tap=lambda link, sender, frame: frames.append((link, sender, frame)),
        observe=events.append,
    )
    return StarTalk(alices, bob, tuple(frames), tuple(events), tuple(kept))


def _noting(program: Program[BobTrained], kept: list[bytes]) -> Program[BobTrained]:
    """The same program; what it wants remembered is noted."""
    answer: Any = None
    try:
        while True:
            step = program.send(answer)
            if isinstance(step, Keep):
                kept.append(step.data)
            answer = yield step
    except StopIteration as end:
        return cast(BobTrained, end.value)


def whole_session(
    star: Star, held_out: Tables, tap: StarTap = unheard
) -> tuple[dict[str, PartyResult], PartyResult]:
    """From the first word to the last, held-out rows included."""
    tables = (
        split(held_out.alice, star.parties) if star.parties != (ONLY,) else {ONLY: held_out.alice}
    )
    alices = {
        name: alice_program(star.alice_inputs(name, held_out=tables[name])) for name in star.parties
    }
    his = HeldOut(held_out.bob, held_out.labels)
    return run_star(alices, bob_program(star.bob_inputs(held_out=his)), tap=tap)
