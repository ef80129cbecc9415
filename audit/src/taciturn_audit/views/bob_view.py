"""``BobView``: his columns, labels, randomness and transcript; the input of column attacks.

His observations come from running his own program again over the recording, so they are by
construction what an honest Bob could compute. Alice's code is not imported here, and of a
transcript only the frames are kept. Of several Alices he sees the sum of their scores: to his
attacks they are one Alice who has all their columns, in the agreement's order.

**Assumes.** The scheme computes exactly, so that a recording without encryption shows him the same
scores as one with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar, cast

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.registry import scheme
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.engine.transcript import Transcript, replay
from taciturn.errors import TranscriptError
from taciturn.parallel import one_thread
from taciturn.privacy.base import Mechanism
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.registry import mechanism
from taciturn.protocol.bob.inputs import BobInputs, released_labels
from taciturn.protocol.bob.observations import (
    BatchScored,
    BobObservation,
    BobSignal,
    DirectionScored,
)
from taciturn.protocol.bob.party import bob_program
from taciturn.protocol.codec import decode, kind_of
from taciturn.protocol.events import Event
from taciturn.protocol.messages import Hello, KeyOffer
from taciturn.protocol.outcome import HeldOut
from taciturn.protocol.party import PartyResult
from taciturn.protocol.steps import ONLY
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from taciturn.settings.agreement import Agreement
from taciturn_audit.views.answers import NotingScheme, scores_answered
from taciturn_audit.views.header import own_header

Seen = TypeVar("Seen", bound=BobObservation)


@dataclass(frozen=True, eq=False)
class BobView:
    """Complete knowledge of a semi-honest Bob.

    His randomness is part of a view by definition. The conversation has neither header nor footer.
    ``budget`` is the limit of his ledger, which may have ended the training. ``persisted`` is what
    his program saved: keys that his randomness does not determine. ``predictions`` are Alice's
    part of the scores in a joint prediction of the same rows with the finished model, and hold his
    part too where ``predicts_whole``, since he does not know his weights. ``passes`` leaves only
    what he saw in this many passes or epochs; None is all. ``used`` are the labels that the
    training used, where his randomness does not determine them.
    """

    agreement: Agreement
    features: FeatureTable
    labels: LabelTable = field(repr=False)
    entropy: KeyedEntropy = field(repr=False)
    conversation: Transcript = field(repr=False)
    budget: float | None = None
    persisted: tuple[bytes, ...] = field(default=(), repr=False)
    predictions: FloatArray | None = field(default=None, repr=False)
    predicts_whole: bool = False
    passes: int | None = None
    used: LabelTable | None = field(default=None, repr=False)
    held_out: HeldOut | None = field(default=None, repr=False)

    @classmethod
    def from_session(
        cls,
        transcript: Transcript,
        features: FeatureTable,
        labels: LabelTable,
        *,
        held_out: HeldOut | None = None,
        budget: float | None = None,
    ) -> BobView:
        """The view of a session between machines that he recorded."""
        agreement, entropy = own_header(transcript, "bob", features)
        if not transcript.persisted and KeyOffer in map(kind_of, transcript.frames("bob")):
            raise TranscriptError(
                "the transcript does not hold Bob's keys: an earlier version recorded it",
                hint="record a session again",
            )
        return cls(
            agreement,
            features,
            labels,
            entropy,
            Transcript({}, transcript.records, further=transcript.further),
            budget,
            transcript.persisted,
            held_out=held_out,
        )

    def with_scores(self) -> BobView:
        """The same with Alice's part of the training rows' scores, where the session opened it."""
        result, _ = self._session
        if result.train_scores is None:
            return self
        with np.errstate(over="ignore", invalid="ignore"), one_thread():
            bob_scores = self.features.values @ result.trained.weights
            return self.predicting(result.train_scores - bob_scores)

    @property
    def partners(self) -> tuple[str, ...]:
        """Names of the Alices in Bob's program."""
        return tuple(self.agreement.parties or (ONLY,))

    @property
    def columns(self) -> int:
        """Number of columns of one Alice or of all together, as they announced."""
        return sum(self.widths)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of each Alice."""
        links = self.conversation.links
        if links != len(self.partners):
            raise TranscriptError(
                f"the transcript has links with {links} Alices, and {len(self.partners)} are "
                "agreed on"
            )
        return tuple(self._width(number) for number in range(links))

    def _width(self, number: int) -> int:
        for frame in self.conversation.link(number).frames("alice"):
            if kind_of(frame) is Hello:
                return cast(Hello, decode(frame)).columns
        raise TranscriptError("the transcript does not begin with a handshake")

    @cached_property
    def observations(self) -> tuple[BobObservation, ...]:
        """Bob's observations of Alice's columns, by replaying his program."""
        return self._session[1]

    @cached_property
    def _session(self) -> tuple[PartyResult, tuple[BobObservation, ...]]:
        return self._replayed(self._inputs)

    @cached_property
    def answers(self) -> tuple[dict[int, IntArray], ...]:
        """The numbers that each Alice told her scores in, before he added them up.

        By iteration or pass of the training.
        """
        noting = NotingScheme(scheme(self.agreement.scheme))
        inputs = replace(self._inputs, terms=Terms(self.agreement, noting.as_scheme))
        self._replayed(inputs)
        return tuple(
            scores_answered(self.conversation.link(number), inputs.terms, noting.numbers)
            for number in range(self.conversation.links)
        )

    @property
    def _inputs(self) -> BobInputs[Mechanism]:
        terms = Terms(self.agreement, scheme(self.agreement.scheme))
        method = mechanism(self.agreement)
        ledger = Ledger(self.labels.rows, method.assumption, self.budget)
        given = self.used
        responder = None if given is None else lambda _labels, _entropy: given
        labels = released_labels(self.labels, method, ledger, self.entropy, responder)
        return BobInputs(
            self.features,
            labels,
            terms,
            method,
            ledger,
            self.entropy,
            held_out=self.held_out,
            partners=self.partners,
        )

    def _replayed(
        self, inputs: BobInputs[Mechanism]
    ) -> tuple[PartyResult, tuple[BobObservation, ...]]:
        """Result of Bob's program, and his observations on the way."""
        seen: list[BobObservation] = []

        def note(event: Event) -> None:
            if isinstance(event, BobObservation):
                seen.append(event)

        remembered = iter(self.persisted)
        # On one thread, as the session was: the same numbers.
        with np.errstate(over="ignore", invalid="ignore"), one_thread():
            result = replay(
                bob_program(inputs),
                self.conversation,
                role="bob",
                verify=False,
                observe=note,
                keep=lambda data: next(remembered, data),
                peers=self.partners,
            )
        return result, tuple(seen)

    def predicting(self, scores: FloatArray, *, whole: bool = False) -> BobView:
        """The same with Alice's part of joint scores of these rows, or both sides' if ``whole``."""
        view = replace(self, predictions=scores, predicts_whole=whole)
        # The replay is not run again: what came before does not change by it.
        view.__dict__["observations"] = self.observations
        return view

    @cached_property
    def signals(self) -> frozenset[BobSignal]:
        """Kinds of signals that Bob received about Alice's columns."""
        predicted = set() if self.predictions is None else {BobSignal.PREDICTIONS}
        return frozenset({event.signal for event in self.observations} | predicted)

    def of_kind(self, kind: type[Seen]) -> tuple[Seen, ...]:
        """The observations of one kind, in order."""
        return tuple(event for event in self.observations if isinstance(event, kind))

    def until(self, passes: int) -> BobView:
        """View after this many passes or epochs, with no joint prediction yet."""
        view = replace(self, passes=passes, predictions=None)
        # The replay is not run again: what he saw first does not change by what came later.
        view.__dict__["observations"] = tuple(self._first(passes))
        return view

    def _first(self, passes: int) -> Iterator[BobObservation]:
        terms = Terms(self.agreement, scheme(self.agreement.scheme))
        last = passes * terms.per_epoch(self.features.rows)
        return (event for event in self.observations if event.iteration < last)

    @property
    def batches(self) -> tuple[BatchScored, ...]:
        """The scores of each batch, and what followed of them."""
        return self.of_kind(BatchScored)

    @property
    def directions(self) -> tuple[DirectionScored, ...]:
        """The scores of each pass over all rows."""
        return self.of_kind(DirectionScored)
