"""Mechanisms and attacks of other packages: what is installed, and whether it loads."""

from __future__ import annotations

from collections.abc import Callable

from taciturn import extensions
from taciturn.errors import ConfigError, ExtensionError
from taciturn.extensions import Extension
from taciturn.extras import explained
from taciturn.privacy.registry import mechanism_class
from taciturn.results.doctor import Finding

_AREA = "extensions"


def look_at_extensions() -> list[Finding]:
    """One line for each; none where no package adds any."""
    return [
        *_look_at(extensions.MECHANISMS, mechanism_class),
        *_look_at(extensions.ATTACKS, _attack),
    ]


def _look_at(group: str, load: Callable[[str], object]) -> list[Finding]:
    return [_finding(added, load) for added in extensions.installed(group)]


def _finding(added: Extension, load: Callable[[str], object]) -> Finding:
    words = f"the {added.kind} {added.name} of {added.distribution}"
    try:
        with explained():
            load(added.name)
    except ExtensionError as problem:
        return Finding.of_error(_AREA, problem)
    except ConfigError as problem:
        return Finding.warning(_AREA, f"{words} cannot be loaded: {problem.message}", problem.hint)
    return Finding.ok(_AREA, f"{words} loads")


def _attack(name: str) -> object:
    # A machine without the audit is no fault.
    return extensions.function("added_attack")(name)
