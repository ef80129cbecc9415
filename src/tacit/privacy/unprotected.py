"""``none``: the paper's baseline. The gradient of every batch goes to Alice as it is.

Guarantee: none. Where a batch has no more rows than Alice has independent columns she solves
``X^T r = g`` for the residues, and their signs are the labels [Tan22, Sec. III-C].
Assumes: nothing helps; the ledger's epsilon is infinite.
"""

from __future__ import annotations

from typing import TypeVar

from tacit.privacy.base import Released
from tacit.privacy.events import NonPrivate
from tacit.rng import Entropy

T = TypeVar("T")


class Unprotected:
    """Lets the masked gradient out unprotected; only the mask's owner, Alice, can read it."""

    name = "none"
    conversation = "revealed"
    assumption = "no protection: Alice sees the gradient of every batch"
    event = NonPrivate()

    def release(self, secret: T, entropy: Entropy) -> Released[T]:
        """The value as it is."""
        return Released.unprotected(secret)
