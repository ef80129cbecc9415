"""Extensions from other packages: commands, functions, results, mechanisms and attacks.

They are found by their entry points. Names are read from the metadata of the installed packages;
nothing of a package is imported before its name is used. What is imported then runs as part of this
program and can do all that it can: anyone who installs an extension trusts its code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Never

from taciturn.errors import ExtensionError, TaciturnError
from taciturn.extras import AUDIT, missing_package, not_installed

MECHANISMS, ATTACKS = "taciturn.mechanisms", "taciturn.attacks"
COMMANDS, FUNCTIONS, RESULTS = "taciturn.commands", "taciturn.functions", "taciturn.results"
OBSERVERS = "taciturn.observers"
JOBS = "taciturn.jobs"
DATASETS = "taciturn.datasets"
_KINDS = {
    MECHANISMS: "mechanism",
    ATTACKS: "attack",
    COMMANDS: "command",
    FUNCTIONS: "function",
    RESULTS: "result",
    OBSERVERS: "observer",
    JOBS: "job",
    DATASETS: "dataset",
}


@dataclass(frozen=True, slots=True)
class Extension:
    """An extension by one package under one name.

    ``distribution`` is the package that brings it, as installers call it, with its version.
    """

    name: str
    kind: str
    distribution: str
    entry: EntryPoint

    @property
    def package(self) -> str:
        """The package that brings it, without its version."""
        return self.distribution if self.entry.dist is None else self.entry.dist.name

    def load(self) -> object:
        """Imports it."""
        with self.blamed("does not load"):
            loaded: object = self.entry.load()
        return loaded

    @contextmanager
    def blamed(self, failure: str) -> Iterator[None]:
        """Name the package where its code fails; an error of ours that it raises is passed on.

        ``failure`` follows the package's name in the message.
        """
        try:
            yield
        except TaciturnError:
            raise
        except Exception as problem:  # what a package raises is its own affair
            if isinstance(problem, ModuleNotFoundError) and (absent := missing_package(problem)):
                raise absent from None
            reason = " ".join(f"{type(problem).__name__}: {problem}".split())
            self.refuse(f"{failure}: {reason}", problem)

    def refuse(self, reason: str, cause: BaseException | None = None) -> Never:
        """Raise an ExtensionError with the reason."""
        raise ExtensionError(
            f"the {self.kind} {self.name} of {self.distribution} {reason}",
            where=self.entry.value,
            hint="mend or remove that package: it is not part of taciturn",
        ) from cause


@cache
def installed(group: str) -> tuple[Extension, ...]:
    """Installed extensions of one kind, by name; imports nothing."""
    entries = sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value))
    return tuple(
        Extension(entry.name, _KINDS[group], _distribution(entry), entry) for entry in entries
    )


def _distribution(entry: EntryPoint) -> str:
    if entry.dist is None:
        return "a package without a name"
    return f"{entry.dist.name} {entry.dist.version}"


def names(group: str, ours: Collection[str] = ()) -> tuple[str, ...]:
    """The names that other packages add to ours, in order; nothing is imported."""
    return tuple(dict.fromkeys(added.name for added in installed(group) if added.name not in ours))


def listed(group: str) -> str:
    """The same for a person: each name with the package that adds it; empty where none does."""
    return ", ".join(f"{added.name} ({added.distribution})" for added in installed(group))


def extension(group: str, name: str, ours: Collection[str]) -> Extension | None:
    """The extension of this name, or None; ExtensionError if it is one of ours or not unique."""
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


def function(name: str, distribution: str = AUDIT, *, wanted: str = "") -> Callable[..., Any]:
    """A function of another distribution; a ConfigError names the one to install.

    ``wanted`` is what the user asked for, where that is not the function by its name.
    """
    for added in installed(FUNCTIONS):
        if added.name == name:
            loaded: Any = added.load()
            return loaded  # type: ignore[no-any-return]  # whatever the package calls a function
    raise not_installed(wanted or name, distribution)
