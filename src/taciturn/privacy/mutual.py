"""``mutual``: weights of both sides are shared, and so are scores and residues.

Each party receives ciphertexts under the other's key, and decrypts numbers that the other's masks
make uniform: in the training Alice learns nothing of labels, and Bob of her columns what three sums
over all rows tell, which are opened to him after the last pass (``protocol.mutual_sums``). The
sigmoid of a shared score is a sum of waves (``numerics.periodic_sigmoid``).

**Guarantee.** What a party that keeps to the protocol sees can be simulated from its own table and
entropy, and at Bob's from the labels and these sums: ``docs/mutual.md`` has both arguments. The
model is that of training on the joined table with another sigmoid, off by at most ``sigmoid_error``
for scores within ``score_range``, up to fixed-point rounding.

**Assumes.** IND-CPA of the scheme for both keys, and that both keep to the protocol. Of a party
that does not: funcCPA. Of Alice's columns also what the flood of an answer leaves, 2^-40 over a
whole training (``protocol.mutual_table``). With ``reveal`` Bob's share of her weights goes to her
after the last pass: a release without protection, priced at infinity. What joint prediction opens
is not the mechanism's.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from taciturn.errors import ConfigError
from taciturn.families.registry import BINOMIAL
from taciturn.privacy.base import REVEALED, ClassWeighted, Sharing, require_sealable
from taciturn.privacy.events import CiphertextsOnly, NonPrivate, PrivacyEvent
from taciturn.privacy.row_noise import OPENING_ROWS
from taciturn.setting_syntax import Hint
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import (
    DEFAULT_FEW_ROWS_PASSES,
    DEFAULT_FEW_ROWS_RANGE,
    DEFAULT_SCORE_RANGE,
    DEFAULT_SHARED_PASSES,
    Settings,
)

ASSUMPTION = "IND-CPA encryption under both keys, semi-honest parties"
_DEFAULTS: Mapping[str, object] = MappingProxyType(
    {
        "reveal": False,
        "reveal_bob": False,
        # It follows from the number of rows.
        "score_range": None,
        "sigmoid_error": 3e-3,
    }
)


class Mutual(ClassWeighted):
    """Nobody sees residues or scores; ``reveal`` releases Bob's share of Alice's weights."""

    name = "mutual"
    summary = "nobody sees a training score: weights, scores and residues of both sides stay shared"
    takes = tuple(_DEFAULTS)
    defaults = _DEFAULTS
    # Of the others the residue has no bound on its curvature, and no step is known to be safe.
    families = (BINOMIAL, "gaussian")
    unprotected = frozenset()
    conversation = "mutual"
    lossless = True
    solvers = ("newton",)
    # Scores are shared between two parties.
    most_alices = 1
    sharing = Sharing.SCORES

    def __init__(
        self, *, reveal: bool = False, class_weight: tuple[float, float] | None = None
    ) -> None:
        self.class_weight = class_weight
        self.event: PrivacyEvent = NonPrivate() if reveal else CiphertextsOnly()
        self.assumption = REVEALED if reveal else ASSUMPTION

    @classmethod
    def from_agreement(cls, agreed: Agreement) -> Mutual:
        """The mechanism of an agreement."""
        require_sealable(agreed, cls.name)
        if agreed.evaluate == "epoch":
            raise ConfigError(
                "mutual evaluates at the end only: a look on the way would open scores to Bob",
                setting="evaluate",
                hint=Hint("use {evaluate}", evaluate="end"),
            )
        return cls(reveal=bool(agreed.reveal), class_weight=agreed.class_weight)

    @classmethod
    def row_defaults(cls, settings: Settings, rows: int) -> Mapping[str, object]:
        """Passes and score range: more of both where no sum is opened that shows convergence."""
        if rows < OPENING_ROWS:
            return {"passes": DEFAULT_FEW_ROWS_PASSES, "score_range": DEFAULT_FEW_ROWS_RANGE}
        return {"passes": DEFAULT_SHARED_PASSES, "score_range": DEFAULT_SCORE_RANGE}

    def receives(self) -> str:
        """Ciphertexts and uniform numbers; her weights where they are revealed."""
        shares = "ciphertexts under Bob's key, and random-looking numbers"
        if isinstance(self.event, NonPrivate):
            return f"{shares}; at the end, her weights as they are, which depend on labels"
        return shares
