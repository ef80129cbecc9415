"""Settings, commands and options of earlier versions: why each is gone, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from taciturn.errors import ConfigError
from taciturn.faces import Face, Hint

Removed: TypeAlias = Mapping[str, tuple[str, Hint]]

REMOVED: Removed = MappingProxyType(
    {
        "dither": (
            "noise on training scores costs the optimum and does not hide Alice's columns",
            Hint(
                "leave it out, or use {mechanism}, which opens no training score",
                mechanism="mutual",
            ),
        ),
        "monotone": (
            "it cut Bob's columns by his labels, which no ledger counts",
            Hint("leave it out, or give edges: {bins}", bins={"age": [25, 35, 50]}),
        ),
    }
)
# Elsewhere bins and columns are still settings.
REMOVED_FROM_STUDY: Removed = MappingProxyType(
    {
        **REMOVED,
        "bins": (
            "a study no longer varies it, since all its models train on one table",
            Hint("prepare it with {bins}, and run a study for each number of bins", bins=8),
        ),
        "columns": (
            "a study no longer varies it, since all its models train on one table",
            Hint(
                "choose its columns with {keep} or {drop}, and run a study for each choice",
                keep=["age", "income"],
                drop=["note"],
            ),
        ),
    }
)
# It is a setting of the agreement.
REMOVED_FROM_DATA: Removed = MappingProxyType(
    {
        **REMOVED,
        "intercept": (
            "both sides agree on it, since both centre their columns where there is one",
            Hint("write {intercept} on both sides", intercept=True),
        ),
    }
)
_ONE_FILE = (
    "one file counts everything that the peer was given",
    Hint(
        "leave it out, or name that file with {consent}; the counts of the former file are not "
        "carried over",
        consent="consent.sqlite",
    ),
)
# Elsewhere these are words of their own.
REMOVED_FILES: Removed = MappingProxyType(
    {**REMOVED, **dict.fromkeys(("flips", "ledger", "scores", "book", "usage"), _ONE_FILE)}
)


def removed_batches(mechanism: str, over: str | None = None) -> ConfigError:
    """The error of ``sgd`` with a mechanism that trains on whole tables only, or over one."""
    name = mechanism if over is None else f"{mechanism} over {over}"
    return ConfigError(
        f"{name} with sgd was removed: newton trains on all rows in each of a few passes, "
        "and reaches the optimum",
        setting="solver",
        value="sgd",
        hint=Hint(
            "use {solver}, or {mechanism} with sgd for the paper's baseline",
            solver="newton",
            mechanism="none",
        ),
    )


_CERTIFICATES = (
    "certificates are requested, signed and renewed with openssl",
    Hint("use the commands in docs/how-to/certificates.md"),
)
_RUNS = (
    "a result folder holds the record and the report, and taciturn.runs() makes a table of runs",
    Hint(
        "use taciturn runs list, open result.json or report.html in the folder, or compare runs "
        "in MLflow with taciturn runs export"
    ),
)
REMOVED_USAGE: Mapping[str, tuple[str, Hint]] = MappingProxyType(
    {
        "certs --request": _CERTIFICATES,
        "certs --sign": _CERTIFICATES,
        "certs --renew": _CERTIFICATES,
        "model use --epsilon": (
            "a randomised response often names another model than the wanted one",
            Hint("leave it out: the choice then has no finite price, and the ledger counts it"),
        ),
        "runs show": _RUNS,
        "runs compare": _RUNS,
        "runs report": _RUNS,
    }
)
"""Commands, and options after their command."""


def refuse_removed(key: str, face: Face | None = None, removed: Removed = REMOVED) -> None:
    """Refuses the name of a removed setting; returns for any other name."""
    name = key.lstrip("-").replace("-", "_")
    known = removed.get(name)
    if known is not None:
        reason, hint = known
        where = "" if face is None else face.source
        raise ConfigError(
            f"setting {key} was removed: {reason}", where=where, setting=name, hint=hint
        )


def refuse_removed_usage(arguments: Sequence[str]) -> None:
    """Refuses a removed command, or an option that its command no longer has."""
    words = [argument.partition("=")[0] for argument in arguments]
    for usage, (reason, hint) in REMOVED_USAGE.items():
        *command, last = usage.split()
        if words[: len(command)] != command:
            continue
        rest = words[len(command) :]
        if last in (rest if last.startswith("-") else rest[:1]):
            place = " ".join(["taciturn", *command])
            raise ConfigError(f"taciturn {usage} was removed: {reason}", where=place, hint=hint)
