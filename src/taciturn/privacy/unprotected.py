"""``none``: the paper's baseline. The gradient of every batch goes to Alice in clear.

**Guarantee.** None. Where a batch has no more rows than Alice has independent columns she solves
``X^T r = g`` for the residues, and their signs are the labels [Tan22, Sec. III-C]. With ``newton``
all rows are one batch: she sees sums over all of them, which tell fewer labels, and still tell some
(``taciturn_audit.attacks.moments``).

**Assumes.** Nothing helps; the ledger's epsilon is infinite.
"""

from __future__ import annotations

from taciturn.families.registry import FAMILIES
from taciturn.privacy.base import ClassWeighted, GradientMechanism, MaskedProduct, Released
from taciturn.privacy.events import NonPrivate
from taciturn.rng import Entropy
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import SolverName


class Unprotected(ClassWeighted, GradientMechanism):
    """Release of the masked gradient unprotected; only the mask's owner, Alice, can read it."""

    name = "none"
    summary = "the gradient of every batch goes to Alice without noise: no protection"
    unprotected = frozenset({"alice", "bob"})
    families = tuple(FAMILIES)
    lossless = True
    solvers = ("sgd", "newton")
    event = NonPrivate()

    def __init__(
        self, class_weight: tuple[float, float] | None = None, solver: SolverName = "sgd"
    ) -> None:
        self.class_weight = class_weight
        self._seen = (
            "the gradient of every batch" if solver == "sgd" else "a sum over all rows each pass"
        )
        self.assumption = f"no protection: Alice sees {self._seen}"

    @classmethod
    def from_agreement(cls, agreed: Agreement) -> Unprotected:
        """The mechanism of an agreement."""
        return cls(agreed.class_weight, agreed.solver.name)

    def receives(self) -> str:
        """Gradients, which give labels away."""
        return f"{self._seen}, without noise: labels can be computed from it"

    def release(self, secret: MaskedProduct, entropy: Entropy) -> Released[MaskedProduct]:
        """The value unchanged."""
        return Released.unprotected(secret)
