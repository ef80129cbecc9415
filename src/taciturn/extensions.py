"""What other packages add: mechanisms and attacks, found by their entry points.

Names are read from the metadata of the installed packages; nothing of a package is imported before
its name is used. What is imported then runs as part of this program and can do all that it can:
whoever installs an extension trusts its code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Never

from taciturn.errors import ExtensionError, TaciturnError

MECHANISMS, ATTACKS = "taciturn.mechanisms", "taciturn.attacks"
_KINDS = {MECHANISMS: "mechanism", ATTACKS: "attack"}


@dataclass(frozen=True, slots=True)
class Extension:
    """What one package adds under one name.

    Args:
        name: The name in settings and tables.
        kind: What it is: a mechanism or an attack.
        distribution: The package that brings it, as installers call it, with its version.
        entry: Where it is.
    """

    name: str
    kind: str
    distribution: str
    entry: EntryPoint

    def load(self) -> object:
        """Imports it.

        Raises:
            ExtensionError: It cannot be imported, or is not there.
        """
        with self.blamed("does not load"):
            loaded: object = self.entry.load()
        return loaded

    @contextmanager
    def blamed(self, failure: str) -> Iterator[None]:
        """Names the package where its code fails; an error of ours that it raises is passed on.

        Args:
            failure: What it failed to do, in words that follow its name.

        Raises:
            ExtensionError: It failed.
        """
        try:
            yield
        except TaciturnError:
            raise
        except Exception as problem:  # what a package raises is its own affair
            reason = " ".join(f"{type(problem).__name__}: {problem}".split())
            self.refuse(f"{failure}: {reason}", problem)

    def refuse(self, reason: str, cause: BaseException | None = None) -> Never:
        """Says what is wrong with it.

        Raises:
            ExtensionError: Always.
        """
        raise ExtensionError(
            f"the {self.kind} {self.name} of {self.distribution} {reason}",
            where=self.entry.value,
            hint="mend or remove that package: it is not part of taciturn",
        ) from cause


@cache
def installed(group: str) -> tuple[Extension, ...]:
    """All that packages add of one kind, by name; nothing is imported."""
    entries = sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value))
    return tuple(
        Extension(entry.name, _KINDS[group], _distribution(entry), entry) for entry in entries
    )


def _distribution(entry: EntryPoint) -> str:
    if entry.dist is None:
        return "a package without a name"
    return f"{entry.dist.name} {entry.dist.version}"


def names(group: str, ours: Collection[str] = ()) -> tuple[str, ...]:
    """The names that other packages add, in order; nothing is imported.

    Args:
        group: ``MECHANISMS`` or ``ATTACKS``.
        ours: The names that there are without them.
    """
    return tuple(dict.fromkeys(added.name for added in installed(group) if added.name not in ours))


def listed(group: str) -> str:
    """The same for a person: each name with the package that adds it; empty where none does."""
    return ", ".join(f"{added.name} ({added.distribution})" for added in installed(group))


def extension(group: str, name: str, ours: Collection[str]) -> Extension | None:
    """What a name stands for beside ours; None where nobody adds it.

    Args:
        group: ``MECHANISMS`` or ``ATTACKS``.
        name: The name.
        ours: The names that no other package may take.

    Raises:
        ExtensionError: A package takes a name of ours, or two take the same.
    """
    several = [added for added in installed(group) if added.name == name]
    if not several:
        return None
    first, *others = several
    if name in ours:
        first.refuse(f"takes the name of a built-in {first.kind}")
    if others:
        rivals = ", ".join(other.distribution for other in others)
        first.refuse(f"has the name of another one, of {rivals}")
    return first
