"""What the ledger claims, and what guesses at coin labels say against it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from taciturn.report.record import Record
from taciturn.report.runs import part, scope_of
from taciturn.report.words import clean, epsilon, most_sure, number, share


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One kind of epsilon: of a release, of all of a row's, and of all at delta."""

    name: str
    release: float | None
    total: float | None
    total_delta: float | None


@dataclass(frozen=True, slots=True)
class Ledger:
    """What is claimed."""

    lines: tuple[LedgerLine, ...]
    label_total: float | None
    releases: int
    delta: float | None
    assumption: str
    meaning: str
    scope: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """The claim against guesses at coin labels; ``violated`` is None where nothing was tested."""

    violated: bool | None
    headline: str
    sentences: tuple[str, ...]


def dearest(record: Record) -> tuple[Record, str]:
    """The ledger, or where runs differ that of the run that paid most."""
    if record.get("ledger") is not None:
        return record["ledger"], ""
    having = [run for run in record.get("runs", []) if run.get("ledger")]
    if not having:
        return {}, ""
    dearest = max(having, key=lambda run: number(run["ledger"]["label_epsilon_total"]) or 0.0)
    return dearest["ledger"], scope_of(record, dearest)


def ledger_of(known: Record, scope: str) -> Ledger:
    """The ledger's figures, and what its total permits."""
    figures = {key: number(value) for key, value in known.items() if key != "assumption"}
    total = figures.get("label_epsilon_total")
    assumption = clean(known.get("assumption", ""))
    return Ledger(
        lines=(
            LedgerLine("claimed", figures.get("claimed_epsilon_per_release"), None, None),
            LedgerLine(
                "residue",
                figures.get("residue_epsilon_per_release"),
                figures.get("residue_epsilon_total"),
                None,
            ),
            LedgerLine(
                "label",
                figures.get("label_epsilon_per_release"),
                total,
                figures.get("label_epsilon_total_delta"),
            ),
        ),
        label_total=total,
        releases=int(figures.get("releases_per_row") or 0),
        delta=figures.get("delta"),
        assumption=assumption,
        meaning=_permits(total),
        scope=scope,
    )


def evidence_of(record: Record, ledger: Ledger) -> Evidence:
    """The evidence in words, or why there is none."""
    found, scope = part(record, "evidence")
    for run in record.get("runs", []):
        # One run that refutes the claim refutes it.
        if run.get("evidence") and run["evidence"]["violated"]:
            # But one of many may do so by chance: the summary's failure is that of all together.
            failure = (found or run["evidence"])["failure"]
            found, scope = {**run["evidence"], "failure": failure}, scope_of(record, run)
            break
    if found is None:
        why = (
            "The ledger claims no bound, so there is no claim to test."
            if ledger.label_total is None or math.isinf(ledger.label_total)
            else "The claim was not set against evidence: no attack had a signal to guess from, or "
            "the audit was asked to make no further run."
        )
        return Evidence(None, "Not tested", (why,))
    bound, claim = number(found["lower_bound"]), number(found["claim"])
    shown = (
        f"Labels were replaced by fair coins and {clean(found['attack'])} guessed "
        f"{found['guesses']:,} of {found['rows']:,}: {found['correct']:,} were right"
        f"{f' ({scope})' if scope else ''}.",
        f"That shows an epsilon of at least {epsilon(bound)}, where {epsilon(claim)} is claimed; "
        f"the bound is too high with probability {share(number(found['failure']), 0)} at most.",
    )
    if found["violated"]:
        return Evidence(
            True,
            "Violated",
            (*shown, "The claim is refuted: Alice learns more than the ledger says."),
        )
    return Evidence(
        False,
        "Not violated",
        (*shown, "The guesses do not contradict the claim. They do not prove it either."),
    )


def _permits(total: float | None) -> str:
    if total is None:
        return "The ledger makes no statement."
    if math.isinf(total):
        return "The ledger guarantees nothing: a label's epsilon is infinite."
    if total == 0:
        return "By the ledger nothing about a label is released, under the assumption it states."
    return (
        f"By the ledger a label's epsilon is {epsilon(total)} in all: someone at even odds before "
        f"could be {most_sure(total)} afterwards."
    )
