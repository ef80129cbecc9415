"""Mechanisms that other packages add."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import MappingProxyType

from taciturn.errors import PrivacyError
from taciturn.extensions import Extension
from taciturn.privacy.base import (
    EncryptedMechanism,
    GradientMechanism,
    Mechanism,
    ResidueMechanism,
)
from taciturn.privacy.prices import admit
from taciturn.settings.schema import Settings

# The conversations that a mechanism of another package can be trained in, and what each asks of it.
_OPEN: Mapping[str, type] = MappingProxyType(
    {
        "residues": ResidueMechanism,
        "revealed": GradientMechanism,
        "sealed": EncryptedMechanism,
    }
)

_REQUIRED_FACTS = ("name", "summary", "conversation")


def checked(added: Extension) -> type[Mechanism]:
    """A mechanism of another package, whose events and prices are known from here on."""
    loaded = added.load()
    if not (isinstance(loaded, type) and issubclass(loaded, Mechanism)):
        added.refuse("is not a class that extends taciturn.privacy.base.Mechanism")
    if missing := sorted(loaded.__abstractmethods__):
        added.refuse(f"lacks {', '.join(missing)}")
    # Static: a fact that follows from what was agreed on is a property.
    stated = {fact: inspect.getattr_static(loaded, fact, None) for fact in _REQUIRED_FACTS}
    if absent := [fact for fact, value in stated.items() if not isinstance(value, str)]:
        added.refuse(f"does not say its {', '.join(absent)}")
    if not issubclass(loaded, _OPEN.get(loaded.conversation, ())):
        classes = ", ".join(f"{kind.__name__} ({name})" for name, kind in _OPEN.items())
        added.refuse(f"does not extend the class of a conversation: {classes}")
    if loaded.name != added.name:
        added.refuse(f"calls itself {loaded.name}")
    if strange := sorted({*loaded.takes} - Settings.model_fields.keys()):
        added.refuse(f"takes {', '.join(strange)}, which is no setting")
    try:
        admit(loaded.prices)
    except PrivacyError as problem:
        added.refuse(problem.message, problem)
    return loaded
