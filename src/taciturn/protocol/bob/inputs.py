"""What Bob's training is run with.

The labels that a training may use: flipped and paid for, where the mechanism flips them.

It comes before the program, which is then handed flipped labels and never sees a true one, so that
nothing it sends can depend on one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from taciturn.arrays import EVERY_ROW
from taciturn.crypto.base import DEFAULT_TABLE_MEMORY
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.errors import ConfigError
from taciturn.memmap import MEMORY, Scratch
from taciturn.privacy.base import Mechanism, Sharing
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.registry import choice_of
from taciturn.protocol.handshake import ANY_TABLE, PeerTable
from taciturn.protocol.outcome import HeldOut
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import ONLY
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint

Responder: TypeAlias = Callable[[LabelTable, Entropy], LabelTable]
"""Turns labels into released ones: with fresh randomness, or by the answers in a file."""


def released_labels(
    labels: LabelTable,
    mechanism: Mechanism,
    ledger: Ledger,
    entropy: Entropy,
    responder: Responder | None = None,
) -> LabelTable:
    """Charges every row and flips; labels as they are where the mechanism does not flip them.

    ``responder`` is ``LabelFlipStore.release`` where answers must outlive the training; without it
    fresh entropy is drawn, and every call spends anew. Raises ``BudgetExceeded`` before anything
    is drawn.
    """
    flips = mechanism.label_flips
    if flips is None:
        return labels
    ledger.charge(flips.event, EVERY_ROW)
    return (responder or flips.respond)(labels, entropy.fork("label response"))


M_co = TypeVar("M_co", bound=Mechanism, covariant=True)


@dataclass(frozen=True, slots=True, repr=False)
class BobInputs(Generic[M_co]):
    """Everything that a program of Bob's training needs; each names the mechanism it can use.

    Rows are in the agreed order, and an intercept is the last of his columns and is not penalised.
    ``labels`` are those that the training may use: true or flipped. ``ledger`` is charged before
    every release. ``entropy`` gives the key, his share of the batches' seed, encryption and noise.
    ``table_memory`` is in bytes, for a whole table in the scheme's encoding. ``scratch`` holds long
    arrays. ``partners`` are in the agreement's order. ``opens_held_out`` is False in a training
    that is resumed, where Alice opens no scores of the held-out rows. Raises ``RowOrderError``
    where labels and features have other rows, and ``ConfigError`` where newton's columns have no
    intercept that is agreed on, or one that is not.
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
    opens_held_out: bool = True

    def __post_init__(self) -> None:
        self.labels.ids.require_same(self.features.ids, names=("the labels", "bob's columns"))
        if self.labels.family != self.terms.agreement.family:
            raise ConfigError(
                f"the labels are of {self.labels.family}, and {self.terms.agreement.family} is "
                "agreed on",
                setting="family",
            )
        if self.labels.weights is not None and self.terms.shares_scores:
            raise ConfigError(
                f"{self.mechanism.name} has no weights of rows: a step that is safe for both sides "
                "would tell the largest",
                setting="weights",
                hint=Hint(
                    "leave {weights} out, or {0}",
                    choice_of(
                        self.labels.family,
                        lambda other: "newton" in other.solvers and other.sharing < Sharing.SCORES,
                    ),
                ),
            )
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
        """Inputs with a separate ledger, for a run whose messages reach nobody."""
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
