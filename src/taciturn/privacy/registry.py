"""The mechanisms by name: one line each, and those that other packages add.

A mechanism's file is loaded when its name is used.

**Guarantee.** An unknown name is refused, and so is a mechanism without a setting that it needs.

**Assumes.** Each mechanism checks the values of the settings that it takes. One of another package
tells the truth about its events and their prices: nothing here can check a proof.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from types import MappingProxyType

from taciturn import extensions
from taciturn.errors import ConfigError, PrivacyError, nearest
from taciturn.extensions import Extension
from taciturn.faces import Hint
from taciturn.privacy.base import (
    EncryptedMechanism,
    GradientMechanism,
    Mechanism,
    ResidueMechanism,
)
from taciturn.privacy.prices import admit
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import Protection, Settings

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


# The conversations that a mechanism of another package can be trained in, and what each asks of it.
_OPEN: Mapping[str, type] = MappingProxyType(
    {
        "residues": ResidueMechanism,
        "revealed": GradientMechanism,
        "sealed": EncryptedMechanism,
    }
)
_SAID = ("name", "summary", "conversation")


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
    added = extensions.extension(extensions.MECHANISMS, name, OURS)
    if added is not None:
        return _checked(added)
    ours: type[Mechanism] = EntryPoint(name, OURS[name], extensions.MECHANISMS).load()
    return ours


def _checked(added: Extension) -> type[Mechanism]:
    """A mechanism of another package, whose events and prices are known from here on."""
    loaded = added.load()
    if not (isinstance(loaded, type) and issubclass(loaded, Mechanism)):
        added.refuse("is not a class that extends taciturn.privacy.base.Mechanism")
    if missing := sorted(loaded.__abstractmethods__):
        added.refuse(f"lacks {', '.join(missing)}")
    if absent := [fact for fact in _SAID if not _says(loaded, fact)]:
        added.refuse(f"does not say its {', '.join(absent)}")
    if not issubclass(loaded, _OPEN.get(loaded.conversation, ())):
        added.refuse(f"does not extend the class of a conversation: {_open_classes()}")
    if loaded.name != added.name:
        added.refuse(f"calls itself {loaded.name}")
    if strange := sorted({*loaded.takes} - Settings.model_fields.keys()):
        added.refuse(f"takes {', '.join(strange)}, which is no setting")
    try:
        admit(loaded.prices)
    except PrivacyError as problem:
        added.refuse(problem.message, problem)
    return loaded


def _says(loaded: type[Mechanism], fact: str) -> bool:
    # One that follows from what was agreed on is a property, or is set when it is made.
    return isinstance(inspect.getattr_static(loaded, fact, None), str)


def _open_classes() -> str:
    return ", ".join(f"{kind.__name__} ({name})" for name, kind in _OPEN.items())


def mechanism_class(name: str) -> type[Mechanism]:
    """The mechanism of that name, to ask what is known of it before anything is agreed on.

    >>> mechanism_class("add").takes
    ('epsilon', 'noise', 'bob_update')
    """
    try:
        return MECHANISMS[name]
    except KeyError:
        raise ConfigError(
            f"unknown mechanism {name}",
            setting="mechanism",
            hint=f"{nearest(name, MECHANISMS)}; or install the package that adds it",
        ) from None


@dataclass(frozen=True, slots=True)
class Taken:
    """The settings of the protection that are in use, and values for those that are not given."""

    names: tuple[str, ...]
    defaults: Mapping[str, object]


def taken(asked: Protection) -> Taken:
    """The settings that a mechanism takes; one that runs over another takes that one's too.

    >>> taken(Protection(mechanism="label-rr", over="sealed")).names
    ('epsilon', 'over', 'reveal', 'reveal_epsilon', 'reveal_delta', 'fresh_keys')
    """
    chosen = mechanism_class(asked.mechanism)
    beneath = chosen.beneath(asked.over)
    if beneath is None:
        return Taken(chosen.takes, chosen.defaults)
    return Taken((*chosen.takes, *beneath.takes), {**beneath.defaults, **chosen.defaults})


def require_weighable(name: str) -> None:
    """Refuse class weights for a mechanism that does not support them."""
    if not mechanism_class(name).weighable:
        others = tuple(known for known in OURS if MECHANISMS[known].weighable)
        raise ConfigError(
            f"{name} has no class weights: its guarantee and its attacks are those of residues "
            "that all count alike",
            setting="class_weight",
            hint=Hint("leave it out, or use {mechanism}", mechanism=others),
        )


def mechanism(agreement: Agreement) -> Mechanism:
    """The mechanism that an agreement names."""
    chosen = mechanism_class(agreement.mechanism)
    if agreement.class_weight is not None:
        require_weighable(agreement.mechanism)
    added = extensions.extension(extensions.MECHANISMS, agreement.mechanism, OURS)
    if added is None:
        return chosen.of(agreement)
    with added.blamed("cannot be made from these settings"):
        return chosen.of(agreement)
