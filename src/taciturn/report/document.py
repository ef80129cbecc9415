"""An audit's record as a document: everything that the page shows, in the order it shows it.

A report renders. It takes every figure from the record, compares figures that stand there, and puts
them in words; it computes no statistic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from taciturn.errors import DataError
from taciturn.report.claim import Evidence, Ledger, dearest, evidence_of, ledger_of
from taciturn.report.findings import (
    Findings,
    OverEpochs,
    attacks_of,
    canary_findings,
    canary_source,
    controls_of,
    lead_of,
    over_epochs,
    run_findings,
)
from taciturn.report.headline import Verdict, verdict_of
from taciturn.report.record import Record
from taciturn.report.runs import part
from taciturn.report.tables import data_size
from taciturn.report.words import clean, number, plain, share

# More lines than this make a page that nobody reads; the record has them all.
MOST_LINES = 500

_NEEDED = ("attacks", "controls", "test", "centralised", "mechanism")


@dataclass(frozen=True, slots=True)
class Fact:
    """A name and what is said of it."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class MessageKind:
    """One kind of message that reached Alice."""

    name: str
    count: int
    size: str
    encrypted: bool
    protection: str
    allows: str


@dataclass(frozen=True, slots=True)
class UtilityLine:
    """One figure of the model, on held-out rows, of the centralised model, on training rows."""

    name: str
    held_out: str
    centralised: str
    training: str


@dataclass(frozen=True, slots=True)
class RunLine:
    """One of several runs."""

    seed: str
    canary: str
    run: str
    held_out: str
    verdict: str


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Everything the page shows."""

    title: str
    subject: str
    several: str
    verdict: Verdict
    canary: Findings | None
    run: Findings
    epochs: OverEpochs | None
    ledger: Ledger
    evidence: Evidence
    messages: tuple[MessageKind, ...]
    messages_scope: str
    utility: tuple[UtilityLine, ...]
    distance: str
    membership: tuple[Fact, ...]
    skipped: tuple[Fact, ...]
    runs: tuple[RunLine, ...]
    configuration: tuple[Fact, ...]
    preparation: tuple[str, ...]
    notes: tuple[str, ...]
    command: str
    version: str

    @classmethod
    def of(cls, record: Record) -> AuditReport:
        """Reads a record of ``taciturn audit``.

        Args:
            record: As ``taciturn audit --json`` prints it, or as it was before it became JSON.

        Raises:
            DataError: The record is of something else.
        """
        if missing := [key for key in _NEEDED if key not in record]:
            raise DataError(
                f"the record is not of an audit: it has no {', '.join(missing)}",
                hint="taciturn audit --json prints one",
            )
        several = f"mean of {record['seeds']} runs" if "seeds" in record else ""
        run = run_findings(record, several)
        source, scope = canary_source(record, several)
        canary = canary_findings(source, scope, record.get("runs", []))
        ledger = ledger_of(*dearest(record))
        evidence = evidence_of(record, ledger)
        return cls(
            title="What Alice can tell of the labels",
            subject=_subject(record),
            several=several,
            verdict=verdict_of(record, run, canary, ledger, evidence),
            canary=canary,
            run=run,
            epochs=over_epochs(record, source, scope, canary),
            ledger=ledger,
            evidence=evidence,
            messages=_messages(record),
            messages_scope=part(record, "messages")[1],
            utility=_utility(record),
            distance=_distance(record),
            membership=_membership(record),
            skipped=_skipped(record),
            runs=_runs(record),
            configuration=_configuration(record),
            preparation=_lines(part(record, "preparation")[0] or []),
            notes=_lines(record.get("notes") or []),
            command=clean(record.get("command") or ""),
            version=clean(record.get("version") or ""),
        )


def _lines(texts: Sequence[object]) -> tuple[str, ...]:
    shown = [clean(text) for text in texts[:MOST_LINES]]
    if len(texts) > MOST_LINES:
        shown.append(f"and {len(texts) - MOST_LINES} more, which the JSON record lists")
    return tuple(shown)


def _messages(record: Record) -> tuple[MessageKind, ...]:
    found, _ = part(record, "messages")
    return tuple(_message(entry) for entry in found or [])


def _message(entry: Record) -> MessageKind:
    words = "in clear"
    if entry["encrypted"]:
        bits = f", {entry['key_bits']} bits" if entry.get("key_bits") else ""
        words = f"encrypted: {clean(entry.get('scheme') or 'unnamed scheme')}{bits}"
    return MessageKind(
        name=clean(entry["message"]),
        count=int(entry["count"]),
        size=data_size(entry["bytes"]).replace(" ", "\u00a0"),
        encrypted=bool(entry["encrypted"]),
        protection=words,
        allows=clean(entry["allows"]) or "not described",
    )


_SHARES = {
    "accuracy": "accuracy",
    "auc": "AUC",
    "pr_auc": "PR-AUC",
    "ks": "KS",
    "balanced_accuracy": "balanced accuracy",
}


_LOSSES = {"brier": "Brier score", "loss": "log loss", "calibration_error": "calibration error"}


def _utility(record: Record) -> tuple[UtilityLine, ...]:
    parts = [record["test"], record["centralised"], record.get("train", {})]

    def amount(value: float | None) -> str:
        return "–" if value is None else f"{value:.4f}"

    return tuple(
        UtilityLine(name, *(write(number(part.get(key))) for part in parts))
        for names, write in ((_SHARES, share), (_LOSSES, amount))
        for key, name in names.items()
        if key in record["test"]
    )


def _distance(record: Record) -> str:
    apart, bound = number(record.get("max_weight_difference")), number(record.get("weight_bound"))
    if apart is None:
        return ""
    most = f" (rounding bounds it by {bound:.2g})" if bound is not None else ""
    return (
        f"The weight that differs most from the centralised model's differs by {apart:.3g}{most}."
    )


_SHARE_WORDS = ("precision", "recall", "rate", "share", "accuracy")


def _membership(record: Record) -> tuple[Fact, ...]:
    """Every plain figure; those that are shares in per cent."""
    found, scope = part(record, "membership")

    def written(key: str, value: str | float) -> str:
        if isinstance(value, float) and any(word in key for word in _SHARE_WORDS):
            return share(number(value))
        return plain(value)

    facts = [
        Fact(clean(key.replace("_", " ")), written(key, value))
        for key, value in (found or {}).items()
        if isinstance(value, str | int | float)
    ]
    return (*facts, *([Fact("whose", scope)] if scope else []))


def _skipped(record: Record) -> tuple[Fact, ...]:
    found, scope = part(record, "skipped")
    note = f" ({scope})" if scope else ""
    return tuple(Fact(clean(each["name"]), clean(each["reason"]) + note) for each in found or [])


def _runs(record: Record) -> tuple[RunLine, ...]:
    def words(found: Record | None) -> str:
        if found is None:
            return "–"
        lead = lead_of(controls_of(found), attacks_of(found)[0])
        told = f"{lead.attack} {share(lead.value)}" if lead.attack else "no attack"
        figure = "AUC; " if lead.figure == "AUC" else ""
        return f"{told} ({figure}{lead.control} {share(lead.control_value)})"

    return tuple(
        RunLine(
            seed=plain(run.get("seed")),
            canary=words(run.get("canary")),
            run=words(run),
            held_out=share(number(run["test"]["accuracy"])),
            verdict=clean(run.get("verdict", "")),
        )
        for run in record.get("runs", [])[:MOST_LINES]
    )


def _subject(record: Record) -> str:
    rows = ""
    if "rows_train" in record:
        rows = f"{record['rows_train']:,} training and {record['rows_test']:,} held-out rows"
    columns = ""
    if "alice_columns" in record:
        columns = f"{record['alice_columns']} columns at Alice, {record['bob_columns']} at Bob"
    parts = (record.get("dataset", ""), f"mechanism {record['mechanism']}", rows, columns)
    return " · ".join(clean(part) for part in parts if part)


# Shown elsewhere, or no setting.
_NO_SETTING = {"verdict", "command", "version", "seed", "seeds", "max_weight_difference"}


_NO_SETTING |= {"weight_bound", "bytes_to_alice", "bytes_to_bob", "seconds", "shuffle_truth"}


def _configuration(record: Record) -> tuple[Fact, ...]:
    """Every plain value of the record, so that a setting of tomorrow is not left out."""
    facts = [
        Fact(key.replace("_", " "), plain(value))
        for key, value in record.items()
        if key not in _NO_SETTING and isinstance(value, str | int | float)
    ]
    hidden, _ = part(record, "hidden_batches")
    facts += [
        Fact(f"hidden batches: {key.replace('_', ' ')}", plain(value))
        for key, value in (hidden or {}).items()
    ]
    facts.append(Fact("randomness", _randomness(record)))
    if "bytes_to_alice" in record:
        up, down = data_size(record["bytes_to_alice"]), data_size(record["bytes_to_bob"])
        facts.append(Fact("traffic", f"{up} to Alice, {down} to Bob"))
    if "seconds" in record:
        facts.append(Fact("training time", f"{record['seconds']:.1f} s"))
    return tuple(facts)


def _randomness(record: Record) -> str:
    seed = record.get("seed")
    if "seeds" in record:
        return f"seeds {seed} to {seed + record['seeds'] - 1}: repeatable simulations"
    if seed is None:
        return "from the operating system"
    return f"seed {seed}: a repeatable simulation"
