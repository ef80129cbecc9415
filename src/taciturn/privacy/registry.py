"""The mechanisms by name: one line each, and those that other packages add.

A mechanism's file is loaded when its name is used.

**Guarantee.** An unknown name is refused, and so is a mechanism without a setting that it needs.

**Assumes.** Each mechanism checks the values of the settings that it takes. One of another package
tells the truth about its events and their prices: nothing here can check a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from types import MappingProxyType

from taciturn import extensions
from taciturn.errors import ConfigError, nearest
from taciturn.families.registry import BINOMIAL, FAMILIES
from taciturn.privacy.base import (
    ClassWeighted,
    Mechanism,
)
from taciturn.setting_syntax import Hint
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import DEFAULT_MECHANISM, Newton, Protection

# Where each is, in the manner of an entry point.
OURS: Mapping[str, str] = MappingProxyType(
    {
        "none": "taciturn.privacy.unprotected:Unprotected",
        "add": "taciturn.privacy.additive:Additive",
        "mult": "taciturn.privacy.multiplicative:Multiplicative",
        "hybrid": "taciturn.privacy.batch_response:Hybrid",
        "sealed": "taciturn.privacy.sealed:Sealed",
        "mutual": "taciturn.privacy.mutual:Mutual",
        "label-rr": "taciturn.privacy.label_response:FlippedLabels",
    }
)


class _Mechanisms(Mapping[str, type[Mechanism]]):
    def __getitem__(self, name: str) -> type[Mechanism]:
        return _loaded(name)

    def __contains__(self, name: object) -> bool:
        # A mapping's own way would load it.
        return name in _names()

    def __iter__(self) -> Iterator[str]:
        return iter(_names())

    def __len__(self) -> int:
        return len(_names())


def _names() -> tuple[str, ...]:
    return (*OURS, *extensions.names(extensions.MECHANISMS, OURS))


MECHANISMS: Mapping[str, type[Mechanism]] = _Mechanisms()
"""Every mechanism that settings can name."""


@cache
def _loaded(name: str) -> type[Mechanism]:
    """The class of a mechanism by its name, of this package or of another."""
    added = extensions.extension(extensions.MECHANISMS, name, OURS)
    if added is not None:
        # Imported here: a training with one of ours needs nothing of it.
        from taciturn.privacy.added_mechanism import checked

        return checked(added)
    ours: type[Mechanism] = EntryPoint(name, OURS[name], extensions.MECHANISMS).load()
    return ours


def mechanism_class(name: str) -> type[Mechanism]:
    """The mechanism of that name, before anything is agreed on."""
    try:
        return MECHANISMS[name]
    except KeyError:
        raise ConfigError(
            f"unknown mechanism {name}",
            setting="mechanism",
            hint=f"{nearest(name, MECHANISMS)}; or install the package that adds it",
        ) from None


def called(name: str) -> str:
    """Name of a mechanism in an error; of the default, which nobody may have chosen, that too."""
    return f"{name}, the default," if name == DEFAULT_MECHANISM else name


def choice_of(family: str, fits: Callable[[type[Mechanism]], bool] = lambda chosen: True) -> Hint:
    """Mechanisms of a family of labels, among which a person has to choose: a line for each.

    Each line has what the mechanism exposes to either side, so that none is chosen unseen.
    """
    known = {name: MECHANISMS[name] for name in OURS}
    fitting = [chosen for chosen in known.values() if family in chosen.families and fits(chosen)]
    lines = [
        Hint("{mechanism}  # {0}", chosen.exposes(), mechanism=chosen.name) for chosen in fitting
    ]
    places = "".join(f"\n         {{{number}}}" for number in range(len(lines)))
    return Hint(f"choose one of:{places}", *lines)


@dataclass(frozen=True, slots=True)
class AcceptedSettings:
    """Settings of the protection in use, with defaults."""

    names: tuple[str, ...]
    defaults: Mapping[str, object]


def accepted_settings(asked: Protection) -> AcceptedSettings:
    """The settings that a mechanism takes, with those of its underlying one."""
    chosen = mechanism_class(asked.mechanism)
    underlying = chosen.underlying(asked.base_mechanism)
    if underlying is None:
        return AcceptedSettings(chosen.takes, chosen.defaults)
    return AcceptedSettings(
        (*chosen.takes, *underlying.takes), {**underlying.defaults, **chosen.defaults}
    )


def require_class_weight_support(name: str) -> None:
    """Refuse class weights for a mechanism that does not support them."""
    if not issubclass(mechanism_class(name), ClassWeighted):
        others = tuple(known for known in OURS if issubclass(MECHANISMS[known], ClassWeighted))
        raise ConfigError(
            f"{name} has no class weights: its guarantee and its attacks are those of residues "
            "that all have the same weight",
            setting="class_weight",
            hint=Hint("leave it out, or use {mechanism}", mechanism=others),
        )


def require_family_support(name: str, family: str) -> None:
    """Refuse a family of labels for a mechanism that does not train it."""
    families = mechanism_class(name).families
    if family not in families:
        raise ConfigError(
            f"{called(name)} has no {family}: what it releases, and what is proven of it, is about "
            f"labels of {' and '.join(families)}",
            setting="family",
            hint=Hint("use {family}, or {0}", choice_of(family), family=BINOMIAL),
        )


def require_family(agreement: Agreement) -> None:
    """Refuse a family that the mechanism, the solver or another setting does not have."""
    family = agreement.family
    if FAMILIES[family].has_classes:
        return
    require_family_support(agreement.mechanism, family)
    if agreement.solver.name != Newton.name:
        raise ConfigError(
            f"{family} has no sgd: residues of its labels have no bound",
            setting="solver",
            hint=Hint("use {solver}", solver=Newton.name),
        )
    classes_only = {
        "class_weight": "weighs two classes",
        "reveal_epsilon": "is proven for residues below 1, those of two classes",
    }
    for setting, reason in classes_only.items():
        if getattr(agreement, setting) is not None:
            raise ConfigError(
                f"{setting.replace('_', '-')} {reason}, and the labels are of {family}",
                setting=setting,
                hint=Hint(f"leave {{{setting}}} out, or use {{family}}", family=BINOMIAL),
            )
    if agreement.share_metrics == "quality":
        raise ConfigError(
            f"share-metrics sends accuracy and AUC, which {family} does not have",
            setting="share_metrics",
            hint=Hint("leave {share_metrics} out"),
        )


def mechanism(agreement: Agreement) -> Mechanism:
    """The mechanism that an agreement names."""
    chosen = mechanism_class(agreement.mechanism)
    require_family(agreement)
    if agreement.class_weight is not None:
        require_class_weight_support(agreement.mechanism)
    added = extensions.extension(extensions.MECHANISMS, agreement.mechanism, OURS)
    if added is None:
        return chosen.from_agreement(agreement)
    with added.blamed("cannot be made from these settings"):
        return chosen.from_agreement(agreement)
