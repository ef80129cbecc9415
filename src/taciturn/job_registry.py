"""``JobDeclaration``: all that a job adds to the program; and the registry of installed jobs.

A job is one folder, of this distribution or of another. Its declaration is named by an entry point
of the group ``taciturn.jobs``. From the declarations follow the sections of a party's file, the
messages that can be decoded, the purposes of sessions, the namespaces of the consent store, the
commands, the kinds of results, and the settings that a template shows.

A declaration names classes and functions by their import path (``"package.module:Name"``), and
imports none of them: all declarations are loaded to find one job, and nothing else of the others.

**Guarantee.** No two jobs share a name, a purpose, a message code, a section, a namespace, a
command or a kind of result: the registry is not built then, and the error names both jobs. Jobs of
this project have purposes and message codes from 1 to 99, those of other packages from 128 to 255.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any, TypeVar

from taciturn import extensions
from taciturn.errors import BudgetExceeded
from taciturn.extensions import Extension
from taciturn.setting_syntax import Hint

OWN_NUMBERS, OUTSIDE_NUMBERS = range(1, 100), range(128, 256)
"""Purposes and message codes of this project's jobs, and of those from other packages."""
OWN_DISTRIBUTIONS = frozenset(
    ("taciturn", "taciturn-audit", "taciturn-ops", "taciturn-paper", "taciturn-risk")
)
JOB_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
"""A job's name, which is sent to the peer."""

K = TypeVar("K", int, str)


@dataclass(frozen=True, slots=True)
class Namespace:
    """One thing that a party counts in its consent store.

    ``unit`` is what is charged, in the plural; ``setting`` limits it for each partner, and is empty
    where no setting does.
    """

    name: str
    unit: str
    setting: str = ""

    def exceeded(
        self, partner: str, before: float, after: float, limit: float, rows: str = ""
    ) -> BudgetExceeded:
        """The error of a charge that would exceed the limit; ``rows`` says of how many rows."""
        return BudgetExceeded(
            f"{partner} was given {before:g} {self.unit}; with this it would be {after:g}{rows}, "
            f"and the limit is {limit:g}",
            setting=self.setting,
            hint=Hint(
                f"give less, or raise {{{self.setting}}} if this partner may learn more; nothing "
                "was sent"
            ),
        )


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a party's file.

    ``model`` is the import path of its ``settings.checked.Checked``. ``template`` has the settings
    that each role's template shows; a leading # is one that is switched off. ``one_alice``: the job
    is between Bob and one Alice, and templates for several do not show the section.
    """

    name: str
    model: str
    template: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    one_alice: bool = False


@dataclass(frozen=True, slots=True)
class JobCommand:
    """A command: its import path, and its line in the overview of all commands.

    The line is in the ``group``, below the command that it comes ``after``: first where that is
    empty, last where it is not installed.
    """

    name: str
    function: str
    group: str = "Other packages"
    summary: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDeclaration:
    """Declaration of a job.

    ``purposes`` are the numbers by which both sides name what they run, each with its words in an
    error. ``messages`` are all that the job's programs send: the import path of each, by its code.
    A message of the project may be declared by several jobs. ``results`` has the import path of
    each kind of result.
    """

    name: str
    purposes: Mapping[int, str]
    messages: Mapping[int, str]
    section: Section | None = None
    namespaces: tuple[Namespace, ...] = ()
    commands: tuple[JobCommand, ...] = ()
    results: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InstalledJob:
    """A declaration, and the package that brings it."""

    declaration: JobDeclaration
    extension: Extension

    @property
    def name(self) -> str:
        """The job's name."""
        return self.declaration.name

    @property
    def numbers(self) -> range:
        """Range of the purposes and message codes that the job may declare."""
        dist = self.extension.entry.dist
        own = dist is not None and dist.name in OWN_DISTRIBUTIONS
        return OWN_NUMBERS if own else OUTSIDE_NUMBERS

    @property
    def distribution(self) -> str:
        """The distribution that has it, with its version."""
        return self.extension.distribution

    def load(self, path: str) -> Any:  # noqa: ANN401 - a class or a function
        """What the job names by its import path."""
        with self.extension.blamed(f"declares {path}, which does not load"):
            return EntryPoint(self.name, path, extensions.JOBS).load()


class JobRegistry:
    """The installed jobs, by all that they declare; ExtensionError where two collide."""

    def __init__(self, installed: Iterable[Extension]) -> None:
        self.jobs = tuple(map(_declared, installed))
        self._names = self._table("name", lambda job: {job.name: job.name})
        self.purposes = self._table("purpose", lambda job: job.declaration.purposes)
        self._codes = self._messages()
        self.sections = self._table("section", lambda job: _by_name(job.declaration.section))
        self.namespaces = self._table(
            "namespace", lambda job: _by_name(*job.declaration.namespaces)
        )
        self.commands = self._table("command", lambda job: _by_name(*job.declaration.commands))
        self.results = self._table("kind of result", lambda job: job.declaration.results)
        for number, (job, _) in self.purposes.items():
            _require_range(job, number, "purpose")

    def job_of(self, purpose: int) -> InstalledJob:
        """The job of a session with this purpose."""
        return self.purposes[purpose][0]

    def message(self, code: int) -> Any | None:  # noqa: ANN401 - a class of a package above
        """The class of the message with a code; None where no installed job declares it."""
        if code not in self._codes:
            return None
        job, path = self._codes[code]
        kind = job.load(path)
        if getattr(kind, "code", None) != code:
            job.extension.refuse(f"declares {path} as message {code}, which has another code")
        return kind

    def codes(self) -> tuple[int, ...]:
        """The codes of all messages."""
        return tuple(sorted(self._codes))

    def _messages(self) -> dict[int, tuple[InstalledJob, str]]:
        """The import path of each message by its code, with the first job that declares it."""
        known: dict[int, tuple[InstalledJob, str]] = {}
        for job in sorted(self.jobs, key=lambda job: job.numbers.start):
            for code, path in job.declaration.messages.items():
                if code not in known:
                    _require_range(job, code, "message code")
                    known[code] = (job, path)
                elif known[code][1] != path:
                    _refuse_both(job, known[code][0], f"message code {code}")
        return known

    def _table(self, kind: str, declared: Any) -> dict[Any, tuple[InstalledJob, Any]]:  # noqa: ANN401
        """What the jobs declare of one kind, each with its job."""
        known: dict[Any, tuple[InstalledJob, Any]] = {}
        for job in self.jobs:
            for key, value in declared(job).items():
                if key in known:
                    _refuse_both(job, known[key][0], f"{kind} {key}")
                known[key] = (job, value)
        return known


def _by_name(*declared: Section | Namespace | JobCommand | None) -> dict[str, Any]:
    return {one.name: one for one in declared if one is not None}


def _declared(added: Extension) -> InstalledJob:
    declaration = added.load()
    if not isinstance(declaration, JobDeclaration):
        added.refuse("is no JobDeclaration")
    if not (isinstance(declaration.name, str) and JOB_NAME.fullmatch(declaration.name)):
        added.refuse(f"has the name {declaration.name!r}: lower-case letters, digits and hyphens")
    _require_shape(declaration, added)
    return InstalledJob(declaration, added)


def _require_shape(declaration: JobDeclaration, added: Extension) -> None:
    """Refuse fields of another type than declared, such as a tuple without its comma."""
    for name in ("purposes", "messages", "results"):
        if not isinstance(getattr(declaration, name), Mapping):
            added.refuse(f"declares {name} that are no mapping")
    for name, kind in {"namespaces": Namespace, "commands": JobCommand}.items():
        several = getattr(declaration, name)
        if not (isinstance(several, tuple) and all(isinstance(one, kind) for one in several)):
            added.refuse(f"declares {name} that are no tuple of {kind.__name__}")
    if not isinstance(declaration.section, Section | None):
        added.refuse("declares a section that is no Section")


def _require_range(job: InstalledJob, number: int, kind: str) -> None:
    numbers = job.numbers
    if number not in numbers:
        job.extension.refuse(
            f"has the {kind} {number}: it must be from {numbers.start} to {numbers.stop - 1}"
        )


def _refuse_both(job: InstalledJob, other: InstalledJob, shared: str) -> None:
    # A package from outside is the one to mend or remove, whichever of the two was read first.
    if job.numbers == OWN_NUMBERS and other.numbers == OUTSIDE_NUMBERS:
        job, other = other, job
    job.extension.refuse(f"and the job {other.name} of {other.distribution} both have the {shared}")


@cache
def registry() -> JobRegistry:
    """The jobs of all installed packages."""
    return JobRegistry(extensions.installed(extensions.JOBS))


def installed_sections() -> Iterator[tuple[Section, InstalledJob]]:
    """The sections of all installed jobs, by name."""
    for _, (job, section) in sorted(registry().sections.items()):
        yield section, job
