"""``sealed``: Alice's weights are shared, and all that she receives is under Bob's key.

``w_A = u + v`` modulo the plaintext modulus; Alice holds u and Bob v. Bob decrypts scores and
masked steps and keeps both: nothing that depends on a label is ever returned in clear.

**Guarantee.** What an Alice who keeps to the protocol sees can be simulated without the labels:
ciphertexts under Bob's key are, to her, as good as encryptions of zero. ``docs/sealed.md`` has the
argument. The model is that of training on the joined table up to fixed-point rounding. Alice's
columns are not protected: Bob can reconstruct them from the scores (``audit/docs/columns.md``).

**Assumes.** IND-CPA of the scheme, and that she keeps to the protocol. Of an Alice who does not:
funcCPA, or IND-CPA with ``fresh_keys``. With ``reveal`` Bob's share goes to her after the last
iteration: a release without protection, priced at infinity; with ``reveal_epsilon`` besides, one
with noise, which an Alice who keeps to the protocol pays that much for (``model_release``).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from taciturn.errors import ConfigError
from taciturn.families.registry import FAMILIES
from taciturn.privacy.base import REVEALED, ClassWeighted, Sharing, given, require_sealable
from taciturn.privacy.events import CiphertextsOnly, NoisyModel, NonPrivate, PrivacyEvent
from taciturn.setting_syntax import Hint
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import Settings

ASSUMPTION = "IND-CPA encryption, semi-honest parties"
TOLD = (
    "with delta {delta:g}; IND-CPA encryption, semi-honest parties: Alice computes with a table "
    "within the bounds that the noise is made for; the model is released once"
)
DEFAULT_REVEAL_DELTA = 1e-6
_DEFAULTS: Mapping[str, object] = MappingProxyType(
    {
        "reveal": False,
        "reveal_epsilon": None,
        "reveal_delta": None,
        "fresh_keys": False,
    }
)


class Sealed(ClassWeighted):
    """A mechanism that sends residues encrypted under Bob's key only.

    With ``reveal`` his share of the weights is released at the end; ``noisy`` is that release where
    it has noise.
    """

    name = "sealed"
    summary = "Alice receives nothing but ciphertexts under Bob's key; her weights stay shared"
    takes = tuple(_DEFAULTS)
    defaults = _DEFAULTS
    families = tuple(FAMILIES)
    conversation = "sealed"
    lossless = True
    solvers = ("newton",)
    sharing = Sharing.WEIGHTS

    def __init__(
        self,
        *,
        reveal: bool = False,
        noisy: NoisyModel | None = None,
        class_weight: tuple[float, float] | None = None,
    ) -> None:
        self.class_weight = class_weight
        self.event: PrivacyEvent = CiphertextsOnly()
        self.assumption = ASSUMPTION
        if noisy is not None:
            self.event, self.lossless = noisy, False
            self.assumption = TOLD.format(delta=noisy.delta)
        elif reveal:
            self.event, self.assumption = NonPrivate(), REVEALED

    @classmethod
    def from_agreement(cls, agreed: Agreement) -> Sealed:
        """The mechanism of an agreement."""
        require_sealable(agreed)
        return cls(
            reveal=bool(agreed.reveal),
            noisy=noisy_release(agreed),
            class_weight=agreed.class_weight,
        )

    @classmethod
    def derived(
        cls, settings: Settings, filled: Mapping[str, Any], columns: int, rows: int
    ) -> Mapping[str, object]:
        """Delta of a model that is released with noise, where it is not given."""
        if filled["reveal_epsilon"] is None or filled["reveal_delta"] is not None:
            return {}
        return {"reveal_delta": DEFAULT_REVEAL_DELTA}

    @property
    def share_event(self) -> PrivacyEvent:
        """Event of releasing Bob's share of Alice's weights, with noise where that is agreed."""
        return self.event if isinstance(self.event, NoisyModel) else super().share_event

    def receives(self) -> str:
        """Ciphertexts; her weights where they are revealed."""
        sealed = "ciphertexts under Bob's key, and nothing that he decrypted"
        if isinstance(self.event, NoisyModel):
            return f"{sealed} but, at the end, her weights with noise"
        if isinstance(self.event, NonPrivate):
            return f"{sealed} but, at the end, her weights as they are, which depend on labels"
        return sealed

    def notes(self) -> tuple[str, ...]:
        """Remark on the weights, where they were released with noise."""
        if not isinstance(self.event, NoisyModel):
            return ()
        return (
            "Alice received her weights with noise, after a fixed number of steps of plain descent "
            "on rows of bounded length: they are no optimum, and more passes cost more noise",
        )


def noisy_release(agreed: Agreement) -> NoisyModel | None:
    """The release of the model with noise; None where there is none."""
    if agreed.reveal_epsilon is None:
        if agreed.reveal_delta is not None:
            raise ConfigError(
                "reveal-delta belongs to reveal-epsilon, which is not given",
                setting="reveal_delta",
                hint=Hint("use {reveal_epsilon}, or leave {reveal_delta} out", reveal_epsilon=1.0),
            )
        return None
    if not agreed.reveal:
        raise ConfigError(
            "reveal-epsilon is the price of releasing the model, which is not released",
            setting="reveal_epsilon",
            hint=Hint("use {reveal} too, or leave {reveal_epsilon} out", reveal=True),
        )
    return NoisyModel(agreed.reveal_epsilon, given(agreed, "reveal_delta"))
