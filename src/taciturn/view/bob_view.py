"""``BobView``: his columns, labels and coins, and the conversation. A column attack gets this.

His observations come from running his own program again over the recording, so they are by
construction what an honest Bob could compute. Alice's code is not imported here, and of a
transcript only the frames are kept.

**Assumes.** The scheme computes exactly, so that a recording without encryption shows him the same
scores as one with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar, cast

from taciturn.arrays import FloatArray
from taciturn.crypto.registry import scheme
from taciturn.data.tables import FeatureTable, LabelTable
from taciturn.engine.replay import replay
from taciturn.engine.transcript import Transcript
from taciturn.errors import TranscriptError
from taciturn.numerics.batches import batch_count
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.registry import mechanism
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.labels import released_labels
from taciturn.protocol.bob.observations import (
    BatchScored,
    BobObservation,
    BobSignal,
    DirectionScored,
)
from taciturn.protocol.bob.registry import TRAININGS
from taciturn.protocol.codec import decode, kind_of
from taciturn.protocol.events import Event
from taciturn.protocol.messages import Hello
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from taciturn.settings.agreement import Agreement

Seen = TypeVar("Seen", bound=BobObservation)


@dataclass(frozen=True, eq=False)
class BobView:
    """Everything that Bob knows.

    Args:
        agreement: The public settings.
        features: His training table; it may have no column.
        labels: His labels of the same rows.
        coins: His randomness: part of a view by definition.
        conversation: The frames that were exchanged, without header and footer.
        budget: The limit of his ledger, which may have ended the training.
        kept: What his program had remembered: keys that no coins give again.
        predictions: Alice's part of the scores in a joint prediction of the same rows with the
            finished model; None where there was none.
        passes: Only what he saw in so many passes or epochs; None for all.
    """

    agreement: Agreement
    features: FeatureTable
    labels: LabelTable = field(repr=False)
    coins: KeyedEntropy = field(repr=False)
    conversation: Transcript = field(repr=False)
    budget: float | None = None
    kept: tuple[bytes, ...] = field(default=(), repr=False)
    predictions: FloatArray | None = field(default=None, repr=False)
    passes: int | None = None

    @cached_property
    def columns(self) -> int:
        """How many columns Alice has, as she said.

        Raises:
            TranscriptError: She said nothing.
        """
        for frame in self.conversation.frames("alice"):
            if kind_of(frame) is Hello:
                return cast(Hello, decode(frame)).columns
        raise TranscriptError("the transcript does not begin with a handshake")

    @cached_property
    def observations(self) -> tuple[BobObservation, ...]:
        """What he saw of Alice's columns, by replaying his own program."""
        seen: list[BobObservation] = []

        def note(event: Event) -> None:
            if isinstance(event, BobObservation):
                seen.append(event)

        remembered = iter(self.kept)
        terms = Terms(self.agreement, scheme(self.agreement.scheme))
        method = mechanism(self.agreement)
        ledger = Ledger(self.labels.rows, method.assumption, self.budget)
        labels = released_labels(self.labels, method, ledger, self.coins)
        inputs = BobInputs(self.features, labels, terms, method, ledger, self.coins)
        replay(
            TRAININGS[terms.conversation](inputs),
            self.conversation,
            role="bob",
            verify=False,
            observe=note,
            keep=lambda data: next(remembered, data),
        )
        return tuple(seen)

    @cached_property
    def signals(self) -> frozenset[BobSignal]:
        """What kinds of things he received of her columns."""
        predicted = set() if self.predictions is None else {BobSignal.PREDICTIONS}
        return frozenset({event.signal for event in self.observations} | predicted)

    def of(self, kind: type[Seen]) -> tuple[Seen, ...]:
        """The observations of one kind, in order."""
        return tuple(event for event in self.observations if isinstance(event, kind))

    def until(self, passes: int) -> BobView:
        """What he knew after so many passes or epochs, with no joint prediction yet."""
        view = replace(self, passes=passes, predictions=None)
        # The replay is not run again: what he saw first does not change by what came later.
        view.__dict__["observations"] = tuple(self._first(passes))
        return view

    def _first(self, passes: int) -> Iterator[BobObservation]:
        agreed, rows = self.agreement, self.features.rows
        per_pass = batch_count(rows, agreed.batch_size, agreed.minimum_batch)
        for event in self.observations:
            whole = isinstance(event, DirectionScored)
            if event.iteration < (passes if whole else passes * per_pass):
                yield event

    @property
    def batches(self) -> tuple[BatchScored, ...]:
        """The scores of each batch, and what followed of them."""
        return self.of(BatchScored)

    @property
    def directions(self) -> tuple[DirectionScored, ...]:
        """The scores of each pass over all rows."""
        return self.of(DirectionScored)
