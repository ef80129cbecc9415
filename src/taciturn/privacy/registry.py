"""The mechanisms by name: one entry each, made from the settings both parties share.

**Guarantee.** An unknown name is refused, and so is a mechanism without a setting that it needs.

**Assumes.** Each mechanism checks the values of the settings that it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from taciturn.errors import ConfigError, nearest
from taciturn.faces import Hint, hyphenated
from taciturn.privacy.additive import Additive
from taciturn.privacy.base import Mechanism
from taciturn.privacy.batch_response import BatchDesign, Hybrid
from taciturn.privacy.events import AdditiveNoise, LabelResponse
from taciturn.privacy.label_response import FlippedLabels
from taciturn.privacy.multiplicative import VARIANTS
from taciturn.privacy.sealed import SEALED_DEFAULTS, Sealed
from taciturn.privacy.unprotected import Unprotected
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import Protection
from taciturn.settings.setting import declared


@dataclass(frozen=True, slots=True)
class Entry:
    """How a mechanism is made.

    Args:
        make: Makes it from an agreement that has a value for all that it takes.
        takes: Which settings of the agreement it takes.
        defaults: Values for those that need not be given.
    """

    make: Callable[[Agreement], Mechanism]
    takes: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)


_NOISY = {"noise": "discrete", "bob_update": "released"}
_FACTOR = {"variant": "printed", "b1": 0.1, "b2": 10.0}
_DECLARED = declared(Protection)


def _make_add(agreed: Agreement) -> Mechanism:
    return Additive(AdditiveNoise(_given(agreed, "epsilon")), agreed.residue_bits)


def _make_mult(agreed: Agreement) -> Mechanism:
    epsilon, b1, b2 = (_given(agreed, name) for name in ("epsilon", "b1", "b2"))
    return VARIANTS[_given(agreed, "variant")](epsilon, b1, b2, agreed.residue_bits)


def _make_hybrid(agreed: Agreement) -> Mechanism:
    epsilon, subset = _given(agreed, "epsilon"), _given(agreed, "subset_size")
    return Hybrid(BatchDesign.of(agreed.batch_size, epsilon, subset), agreed.class_weight)


def _make_label_rr(agreed: Agreement) -> Mechanism:
    epsilon, over = _given(agreed, "epsilon"), _given(agreed, "over")
    if over not in MECHANISMS:
        raise ConfigError(
            f"label-rr cannot run over {over}: there is no such mechanism",
            setting="over",
            hint=Hint("use {over}", over="none"),
        )
    return FlippedLabels(LabelResponse(epsilon), MECHANISMS[over].make(agreed))


MECHANISMS: Mapping[str, Entry] = MappingProxyType(
    {
        "none": Entry(lambda agreed: Unprotected(agreed.class_weight)),
        "add": Entry(_make_add, ("epsilon", *_NOISY), _NOISY),
        "mult": Entry(_make_mult, ("epsilon", *_FACTOR, *_NOISY), {**_FACTOR, **_NOISY}),
        "hybrid": Entry(_make_hybrid, ("epsilon", "subset_size"), {"epsilon": 1.0}),
        "sealed": Entry(Sealed.of, tuple(SEALED_DEFAULTS), SEALED_DEFAULTS),
        "label-rr": Entry(_make_label_rr, ("epsilon", "over"), {"over": "none"}),
    }
)


# Where residues may be weighted: their size has no part in what these three promise. The noise, the
# prices and the attacks of ``add`` and ``mult`` are those of ``1 - f`` and ``-f``, and ``label-rr``
# would weigh a row by its flipped label.
WEIGHTED = ("none", "hybrid", "sealed")


def require_weighable(name: str) -> None:
    """Refuses class weights where a mechanism has none.

    Raises:
        ConfigError: It is not one of those that have.
    """
    if name not in WEIGHTED:
        raise ConfigError(
            f"{name} has no class weights: its guarantee and its attacks are those of residues "
            "that all count alike",
            setting="class_weight",
            hint=Hint("leave it out, or use {mechanism}", mechanism=WEIGHTED),
        )


def _given(agreed: Agreement, name: str) -> Any:  # noqa: ANN401 - the setting's own type
    value = getattr(agreed, name)
    if value is None:
        # A subset is several batches; how many it must be, the number of columns says.
        example = _DECLARED[name].example or 8 * agreed.batch_size
        raise ConfigError(
            f"{agreed.mechanism} needs {hyphenated(name)}",
            setting=name,
            hint=Hint(f"use {{{name}}}, for example", **{name: example}),
        )
    return value


def entry(name: str, over: str | None = None) -> Entry:
    """How a mechanism is made; one that runs over another takes that one's settings too.

    >>> entry("add").takes
    ('epsilon', 'noise', 'bob_update')

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in MECHANISMS:
        raise ConfigError(
            f"unknown mechanism {name}", setting="mechanism", hint=nearest(name, MECHANISMS)
        )
    found = MECHANISMS[name]
    beneath = MECHANISMS.get(over or "") if "over" in found.takes else None
    if beneath is None:
        return found
    defaults = {**beneath.defaults, **found.defaults}
    return Entry(found.make, (*found.takes, *beneath.takes), defaults)


def mechanism(agreement: Agreement) -> Mechanism:
    """The mechanism that an agreement names.

    Raises:
        ConfigError: There is none of that name, or a setting is missing or does not suit it.
    """
    found = entry(agreement.mechanism)
    if agreement.class_weight is not None:
        require_weighable(agreement.mechanism)
    return found.make(agreement)
