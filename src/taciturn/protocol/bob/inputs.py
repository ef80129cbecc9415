"""What Bob's training is run with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from taciturn.crypto.base import DEFAULT_TABLE_MEMORY
from taciturn.data.tables import FeatureTable, LabelTable
from taciturn.errors import ConfigError
from taciturn.memmap import MEMORY, Scratch
from taciturn.privacy.base import Mechanism
from taciturn.privacy.ledger import Ledger
from taciturn.protocol.bob.labels import released_labels
from taciturn.protocol.handshake import ANY_TABLE, PeerTable
from taciturn.protocol.held_out import HeldOut
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import ONLY
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy

M_co = TypeVar("M_co", bound=Mechanism, covariant=True)


@dataclass(frozen=True, slots=True, repr=False)
class BobInputs(Generic[M_co]):
    """Everything that a program of Bob's training needs; each names the mechanism it can use.

    Rows are in the agreed order, and an intercept is the last of his columns and is not penalised.
    ``labels`` are those that the training may use: true or flipped. ``ledger`` is charged before
    every release. ``entropy`` gives the key, his share of the batches' seed, encryption and noise.
    ``table_memory`` is in bytes, for a whole table in the scheme's encoding. ``scratch`` holds long
    arrays. ``partners`` are in the agreement's order. Raises ``RowOrderError`` where labels and
    features have other rows, and ``ConfigError`` where newton's columns have no intercept that is
    agreed on, or one that is not.
    """

    features: FeatureTable
    labels: LabelTable
    terms: Terms
    mechanism: M_co
    ledger: Ledger
    entropy: Entropy
    resume: TrainingState | None = None
    held_out: HeldOut | None = None
    peer: PeerTable = ANY_TABLE
    table_memory: int = DEFAULT_TABLE_MEMORY
    scratch: Scratch = MEMORY
    partners: tuple[str, ...] = (ONLY,)

    def __post_init__(self) -> None:
        self.labels.ids.require_same(self.features.ids, names=("the labels", "bob's columns"))
        if self.terms.whole_table and self.terms.agreement.intercept != bool(self.features.free):
            # Alice centres her columns by it.
            raise ConfigError(
                "whether Bob's columns have an intercept is not as agreed", setting="intercept"
            )

    @classmethod
    def without_budget(
        cls,
        features: FeatureTable,
        labels: LabelTable,
        terms: Terms,
        entropy: Entropy,
        table_memory: int = DEFAULT_TABLE_MEMORY,
        partners: tuple[str, ...] = (ONLY,),
    ) -> BobInputs[Mechanism]:
        """Inputs with a ledger of their own, for a run whose messages reach nobody."""
        method = terms.mechanism
        ledger = Ledger(labels.rows, method.assumption)
        return BobInputs(
            features,
            released_labels(labels, method, ledger, entropy),
            terms,
            method,
            ledger,
            entropy,
            table_memory=table_memory,
            partners=partners,
        )

    @property
    def scored_each_epoch(self) -> HeldOut | None:
        """The held-out rows, where it is agreed to look at them after each epoch."""
        return self.held_out if self.terms.agreement.evaluate == "epoch" else None
