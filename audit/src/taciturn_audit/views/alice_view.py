"""``AliceView``: her columns, her randomness and the transcript; the only input of an attack.

Her observations come from running her own program again over the recording, so they are by
construction what an honest Alice could compute. Bob's code is not imported here, and of a
transcript only the frames are kept: its header and footer tell how the run was made and what it
gave, which she does not know.

One of several Alices is known by the key that she introduced herself with. What several of them
have together is in ``taciturn_audit.views.coalition``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar, cast

import numpy as np

from taciturn.arrays import FloatArray, IndexArray, IntArray
from taciturn.crypto.registry import scheme
from taciturn.crypto.signatures import fingerprint
from taciturn.data.tables import FeatureTable
from taciturn.engine.transcript import Transcript, replay
from taciturn.errors import TranscriptError
from taciturn.families.binomial import sigmoid
from taciturn.privacy.base import EncryptedMechanism, Mechanism
from taciturn.privacy.registry import mechanism
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.party import alice_program
from taciturn.protocol.codec import decode, kind_of
from taciturn.protocol.events import Event
from taciturn.protocol.messages import HeldOutScoring, Hello, Introduction
from taciturn.protocol.observations import Observation, Signal
from taciturn.protocol.scores import at_scale
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from taciturn.settings.agreement import Agreement
from taciturn_audit.views.header import own_header
from taciturn_audit.views.recall import RecallScheme

Seen = TypeVar("Seen", bound=Observation)


@dataclass(frozen=True, slots=True)
class Observations:
    """Alice's weights at the end, and her observations."""

    weights: FloatArray = field(repr=False)
    events: tuple[Observation, ...] = field(repr=False)

    def of_kind(self, kind: type[Seen]) -> tuple[Seen, ...]:
        """The observations of one kind, in order."""
        return tuple(event for event in self.events if isinstance(event, kind))


@dataclass(frozen=True, slots=True)
class RecordedIdentity:
    """One of several Alices in a replay: her signatures are on record, and none is made again."""

    name: str
    public_key: bytes = field(repr=False)

    def sign(self, data: bytes) -> bytes:
        """Return an empty signature, whatever the data."""
        return b""


@dataclass(frozen=True)
class AliceView:
    """Complete knowledge of a semi-honest Alice.

    Her randomness is part of a view by definition. The conversation has neither header nor footer.
    ``epochs`` leaves only what she saw in this many; None for all.
    """

    agreement: Agreement
    features: FeatureTable
    entropy: KeyedEntropy
    conversation: Transcript = field(repr=False)
    epochs: int | None = None
    held_out: FeatureTable | None = None

    @classmethod
    def from_transcript(
        cls,
        transcript: Transcript,
        features: FeatureTable,
        held_out: FeatureTable | None = None,
        name: str = "alice",
    ) -> AliceView:
        """The view of a recorded run.

        ``name`` is the one under which the recording has her key: her own, where one has several
        Alices'.
        """
        agreement, entropy = own_header(transcript, name, features)
        return cls(
            agreement,
            features,
            entropy,
            Transcript({}, transcript.records),
            held_out=held_out,
        )

    @cached_property
    def identity(self) -> RecordedIdentity | None:
        """Identity among several Alices, by the key she sent; None if she is the only one."""
        if self.agreement.parties is None:
            return None
        for frame in self.conversation.frames("alice"):
            if kind_of(frame) is Introduction:
                key = cast(Introduction, decode(frame)).public_key
                for name, pin in self.agreement.parties.items():
                    if pin == fingerprint(key):
                        return RecordedIdentity(name, key)
        raise TranscriptError("the transcript has no introduction by a party of the agreement")

    @property
    def names(self) -> tuple[str, ...]:
        """Whose view it is."""
        return ("alice" if self.identity is None else self.identity.name,)

    @property
    def complete(self) -> bool:
        """Whether no other Alice has columns that this view lacks."""
        return len(self.names) == self.agreement.alices

    @cached_property
    def signals(self) -> frozenset[Signal]:
        """Kinds of signals that Alice has or received."""
        seen = {event.signal for event in self.observations.events}
        # Where her weights are shared she returns none.
        weight_signals = {Signal.WEIGHTS} if len(self.observations.weights) else set()
        return frozenset({Signal.FEATURES} | weight_signals | seen)

    @cached_property
    def observations(self) -> Observations:
        """Alice's observations, by replaying her program."""
        seen: list[Observation] = []

        def keep(event: Event) -> None:
            if isinstance(event, Observation):
                seen.append(event)

        terms = Terms(self.agreement, RecallScheme(scheme(self.agreement.scheme)))
        inputs = AliceInputs(
            self.features,
            terms,
            self.entropy,
            held_out=self.held_out,
            identity=self.identity,
            opens_held_out=self._opens_held_out,
        )
        session = alice_program(inputs)
        result = replay(session, self.conversation, verify=False, observe=keep)
        return Observations(result.trained.weights, tuple(seen))

    @property
    def _opens_held_out(self) -> bool:
        """Whether her limits allowed scores of the held-out rows, as she told Bob."""
        if self.held_out is not None and self._terms.may_withhold_scores:
            for frame in self.conversation.frames("alice"):
                if kind_of(frame) is HeldOutScoring:
                    return bool(cast(HeldOutScoring, decode(frame)).opened)
        return True

    def until(self, epochs: int) -> AliceView:
        """View after this many epochs, with the weights of that time."""
        whole = self.observations
        events = tuple(event for event in whole.events if self._epoch(event) < epochs)
        later = (event for event in whole.events if self._epoch(event) >= epochs)
        then = next((seen.weights for seen in later if hasattr(seen, "weights")), whole.weights)
        view = replace(self, epochs=epochs)
        # The replay is not run again: what she saw first does not change by what came later.
        view.__dict__["observations"] = Observations(then, events)
        return view

    def _epoch(self, event: Observation) -> int:
        return event.iteration // self._terms.per_epoch(self.features.rows)

    @property
    def received(self) -> Iterator[bytes]:
        """All frames that Bob sent."""
        numbers = range(self.conversation.links)
        return (
            frame for number in numbers for frame in self.conversation.link(number).frames("bob")
        )

    @cached_property
    def peer(self) -> Hello:
        """Bob's ``Hello``, with his number of columns."""
        for frame in self.received:
            if kind_of(frame) is Hello:
                return cast(Hello, decode(frame))
        raise TranscriptError("the transcript does not begin with a handshake")

    @property
    def scores_known(self) -> bool:
        """Whether her own scores are the model's: nobody else has a column, nor an intercept."""
        return self.peer.columns == 0 and self.complete

    def probabilities(self, rows: IndexArray, weights: FloatArray) -> FloatArray:
        """The model's probabilities as Alice estimates them: exact where scores are known."""
        return sigmoid(self.own_scores(rows, weights))

    def residues(self, rows: IndexArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The residues that these rows have with a label of 1, and those with a label of 0.

        As far as Alice can tell them, like ``probabilities``. Where labels were flipped, it is the
        flipped label of which she speaks here.
        """
        method = cast(EncryptedMechanism, self.mechanism)
        scores = self.own_scores(rows, weights)
        ones = np.ones(len(scores), dtype=np.int8)
        return method.residue(scores, ones), method.residue(scores, 1 - ones)

    def own_scores(self, rows: IndexArray, weights: FloatArray) -> FloatArray:
        """Alice's partial scores, rounded as sent; if there are other Alices, without her masks."""
        scores = self.features.values.take(rows, axis=0) @ weights
        return at_scale(scores, self._terms.score_grid)

    @cached_property
    def _terms(self) -> Terms:
        return Terms(self.agreement, scheme(self.agreement.scheme))

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism that was agreed on: its law is public."""
        return mechanism(self.agreement)

    def encoded(self, rows: IndexArray) -> IntArray:
        """The integers with which she multiplied: her features at their public scale."""
        return self._terms.feature_grid.rounded(self.features.values.take(rows, axis=0))
