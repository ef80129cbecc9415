"""The labels that a training may use: flipped and paid for, where the mechanism flips them.

It comes before the program, which is then handed flipped labels and never sees a true one, so that
nothing it sends can depend on one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from taciturn.arrays import EVERY_ROW
from taciturn.data.tables import LabelTable
from taciturn.privacy.base import Mechanism
from taciturn.privacy.ledger import Ledger
from taciturn.rng import Entropy

Responder: TypeAlias = Callable[[LabelTable, Entropy], LabelTable]
"""Turns labels into released ones: with fresh coins, or by the answers that a file keeps."""


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
