"""Inputs of Alice's training."""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.crypto.base import DEFAULT_TABLE_MEMORY
from taciturn.crypto.signatures import SigningIdentity
from taciturn.data.tables import FeatureTable
from taciturn.memmap import MEMORY, Scratch
from taciturn.protocol.alice.score_noise import noise_key
from taciturn.protocol.state import TrainingState
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


@dataclass(frozen=True, slots=True, repr=False)
class AliceInputs:
    """Everything that a program of Alice's training needs.

    The rows of ``features`` are in the agreed order. ``entropy`` gives her share of the batches'
    seed, masks and obfuscators. ``table_memory`` is in bytes, for a whole table in the scheme's
    encoding. ``scratch`` holds long arrays. ``identity`` signs where there are several Alices.
    ``opens_held_out`` is whether her limits allow scores of the held-out rows.
    """

    features: FeatureTable
    terms: Terms
    entropy: Entropy
    resume: TrainingState | None = None
    held_out: FeatureTable | None = None
    table_memory: int = DEFAULT_TABLE_MEMORY
    scratch: Scratch = MEMORY
    identity: SigningIdentity | None = None
    opens_held_out: bool = True

    @property
    def noise_key(self) -> bytes:
        """The key of the noise on scores that Bob sees beside those that he trains with."""
        return noise_key(self.entropy)

    @property
    def scored_each_epoch(self) -> FeatureTable | None:
        """The held-out rows, where it is agreed to score them after each epoch."""
        return self.held_out if self.terms.agreement.evaluate == "epoch" else None
