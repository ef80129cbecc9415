"""``AliceView``: her columns, her coins and the conversation. An attack gets this and nothing else.

Her observations come from running her own program again over the recording, so they are by
construction what an honest Alice could compute. Bob's code is not imported here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from tacit.arrays import FloatArray, IndexArray, IntArray
from tacit.config import Agreement
from tacit.crypto.registry import scheme
from tacit.data.tables import FeatureTable
from tacit.errors import ConfigError, TranscriptError
from tacit.numerics.fixedpoint import FixedPoint, magnitude_bits
from tacit.protocol.alice import train_revealed
from tacit.protocol.events import Event, GradientSeen
from tacit.rng import KeyedEntropy
from tacit.runtime.replay import replay
from tacit.runtime.transcript import Transcript
from tacit.view.recall import RecallScheme
from tacit.view.signals import Signal


@dataclass(frozen=True, slots=True)
class Observations:
    """What Alice has at the end: her weights, and the gradient of every batch."""

    weights: FloatArray = field(repr=False)
    gradients: tuple[GradientSeen, ...] = field(repr=False)


@dataclass(frozen=True)
class AliceView:
    """Everything the curious party knows.

    Args:
        agreement: The public settings.
        features: Her training table.
        coins: Her randomness: part of a view by definition.
        transcript: What was said.
    """

    agreement: Agreement
    features: FeatureTable
    coins: KeyedEntropy
    transcript: Transcript

    @classmethod
    def of(cls, transcript: Transcript, features: FeatureTable) -> AliceView:
        """The view of a recorded run.

        Raises:
            TranscriptError: The recording lacks the agreement or her coins, or belongs to another
                table.
        """
        header = transcript.header
        try:
            agreement = Agreement.of(header["agreement"])
            coins = KeyedEntropy(bytes.fromhex(header["coins"]["alice"]))
            digest = header["features_digest"]
        except (KeyError, TypeError, ValueError, AttributeError, ConfigError):
            raise TranscriptError("the transcript's header is not that of a recorded run") from None
        if digest != features.digest():
            raise TranscriptError(
                "the transcript was recorded with another table of features",
                hint="give the dataset or the file that was used then, unchanged",
            )
        return cls(agreement, features, coins, transcript)

    @cached_property
    def signals(self) -> frozenset[Signal]:
        """What kinds of things Alice received."""
        found = {Signal.FEATURES, Signal.WEIGHTS}
        if self.observations.gradients:
            found.add(Signal.GRADIENTS)
        return frozenset(found)

    @cached_property
    def observations(self) -> Observations:
        """What she saw, by replaying her own program."""
        seen: list[GradientSeen] = []

        def keep(event: Event) -> None:
            if isinstance(event, GradientSeen):
                seen.append(event)

        program = train_revealed.train(
            self.features,
            self.agreement,
            RecallScheme(scheme(self.agreement.scheme)),
            self.coins,
        )
        weights = replay(program, self.transcript, verify=False, observe=keep)
        return Observations(weights, tuple(seen))

    def encoded(self, rows: IndexArray) -> IntArray:
        """The integers with which she multiplied: her features at their public scale."""
        grid = FixedPoint(self.agreement.feature_bits)
        return grid.encode(self.features.values[rows], self._magnitude_bits)

    @cached_property
    def _magnitude_bits(self) -> int:
        return magnitude_bits(self.features.largest)
