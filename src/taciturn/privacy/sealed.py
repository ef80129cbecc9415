"""``sealed``: Alice's weights are shared, and all that she receives is under Bob's key.

``w_A = u + v`` modulo the plaintext modulus; Alice holds u and Bob v. Bob decrypts scores and
masked steps and keeps both: nothing that depends on a label is ever returned in clear.

**Guarantee.** What an Alice who keeps to the protocol sees can be simulated without the labels:
ciphertexts under Bob's key are, to her, as good as encryptions of zero. ``docs/sealed.md`` has the
argument. The model is that of centralised training up to fixed-point rounding.

**Assumes.** IND-CPA of the scheme, and that she keeps to the protocol. Of an Alice who does not:
funcCPA, or IND-CPA with ``fresh_keys``. With ``reveal`` Bob's share goes to her after the last
iteration: a release without protection, priced at infinity.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from taciturn.arrays import FloatArray, LabelArray
from taciturn.errors import ConfigError
from taciturn.faces import Hint
from taciturn.numerics.likelihood import RowLikelihood, weighted_likelihood
from taciturn.numerics.logistic import weighted_residue
from taciturn.privacy.base import EncryptedMechanism
from taciturn.privacy.events import CiphertextsOnly, NonPrivate, PrivacyEvent
from taciturn.settings.agreement import Agreement

ASSUMPTION = "IND-CPA, honest-but-curious"
REVEALED = (
    "no protection: Bob's share of the weights is released at the end, and a malicious Alice may "
    "have had any label put into it; until then IND-CPA, honest-but-curious"
)
_DEFAULTS: Mapping[str, object] = MappingProxyType(
    {"reveal": False, "dither": 0.0, "fresh_keys": False}
)


class Sealed(EncryptedMechanism):
    """Residues leave Bob under his key only.

    Args:
        reveal: Whether his share of the weights is released at the end.
        class_weight: What a row of label 0 and one of label 1 counts; None where all count alike.

    >>> Sealed().event.name
    'ciphertexts-only'
    """

    name = "sealed"
    summary = "Alice receives nothing but ciphertexts under Bob's key; her weights stay shared"
    takes = tuple(_DEFAULTS)
    defaults = _DEFAULTS
    weighable = True
    conversation = "sealed"
    lossless = True
    whole_table = True
    shares_weights = True

    def __init__(
        self, *, reveal: bool = False, class_weight: tuple[float, float] | None = None
    ) -> None:
        self._class_weight = class_weight
        self.event: PrivacyEvent = NonPrivate() if reveal else CiphertextsOnly()
        self.assumption = REVEALED if reveal else ASSUMPTION

    @classmethod
    def of(cls, agreed: Agreement) -> Sealed:
        """The mechanism of an agreement.

        Raises:
            ConfigError: The agreement asks for what shared weights, or silence, cannot give.
        """
        require_sealable(agreed)
        return cls(reveal=bool(agreed.reveal), class_weight=agreed.class_weight)

    def residue(self, scores: FloatArray, labels: LabelArray) -> FloatArray:
        """``y - sigma(z)`` times the weight of its class, exactly."""
        return weighted_residue(scores, labels, self._class_weight)

    def likelihood(self, scores: FloatArray, labels: LabelArray) -> RowLikelihood:
        """That of the labels, times the weight of their class."""
        return weighted_likelihood(scores, labels, self._class_weight)


def require_sealable(agreed: Agreement) -> None:
    """Refuses what shared weights, or a Bob whose behaviour tells nothing, cannot give.

    Raises:
        ConfigError: An L1 penalty, patience, or a step that turns the sign of a weight.
    """
    if agreed.l1 > 0:
        raise ConfigError(
            "sealed has no L1 penalty: on Alice's columns it needs the sign of a weight, "
            "which neither party knows",
            setting="l1",
            hint=Hint("use {l2}, or another mechanism"),
        )
    if agreed.patience is not None:
        raise ConfigError(
            "sealed does not stop early: when Bob stops depends on labels, and Alice sees it",
            setting="patience",
            hint=Hint("leave {patience} out; the number of epochs is fixed"),
        )
    if agreed.solver == "sgd" and agreed.learning_rate * agreed.l2 >= 1:
        raise ConfigError(
            f"a learning rate of {agreed.learning_rate:g} times an L2 penalty of {agreed.l2:g} is "
            "not below 1",
            setting="l2",
            hint=Hint(
                "lower {l2} or {learning_rate}: each step would turn the sign of every weight"
            ),
        )
