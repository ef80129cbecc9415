"""Audit of weight of evidence: clear statistics at Alice, and ``taciturn woe`` at both.

In the usual way Alice is handed the weights of evidence, or the shares of ones, of her own bins.
Here they are computed from the true labels, rounded, and attacked with nothing else than her bins
(``attacks.bin_statistics``); the judge holds the truth. The same attacks on
labels that were shuffled before they were counted show what the counts alone tell of single labels:
there the columns say nothing.

From the counts of his own labels in her bins, Bob knows of a row of label y the exact distribution
of its bin among the rows of that label, and nothing that tells two rows of one label apart.

**Guarantee.** An attack sees sizes, bins and the statistics, and no label. What it calls certain
follows from them.

**Assumes.** Alice knows the formula, the smoothing and to how many decimals it is rounded.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.registry import scheme
from taciturn.data.label_table import LabelTable
from taciturn.data.prepare import RawData
from taciturn.engine.callbacks import SILENT, Callbacks
from taciturn.protocol.codec import kind_of
from taciturn.protocol.messages import BatchCommitment, BatchShare, Message, Role
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy
from taciturn_audit.attacks.bin_statistics import (
    PublishedStatistics,
    Recovered,
    likeliest_labels,
    majority_labels,
    recover_counts,
)
from taciturn_audit.judge import judge, prior
from taciturn_audit.messages import frames_to_alice
from taciturn_audit.results.audit import AttackScore, MessageSeen
from taciturn_audit.results.woe_audit import BinsTold, WoeAudit, WoeFineness, WoeRounding
from taciturn_audit.verdict import Status, weigh
from taciturn_risk.woe.bins import Bins, CutTable
from taciturn_risk.woe.job import WoeOptions
from taciturn_risk.woe.messages import SealedLabels
from taciturn_risk.woe.simulation import TrainingRows, converse
from taciturn_risk.woe.terms import WoeTerms
from taciturn_risk.woe.weights import mutual_bits, weights_of_evidence


def bin_knowledge(ones: IntArray, rows: IntArray, column: str = "") -> BinsTold:
    """Facts that Bob learns about one column, from the ones and rows in each bin.

    >>> known = bin_knowledge(np.array([0, 10]), np.array([60, 40]))
    >>> known.prior, known.posterior, known.located
    (0.6, 0.7, 10)
    """
    table = np.stack([rows - ones, ones])
    total = int(rows.sum())
    spread = np.count_nonzero(table, axis=1)
    located = int(table[spread == 1].sum())
    per_label = table.sum(axis=1)
    ruled_out = float(((len(rows) - spread) * per_label).sum() / total)
    return BinsTold(
        column=column,
        bins=len(rows),
        prior=float(rows.max() / total),
        posterior=float(table.max(axis=1).sum() / total),
        bits=mutual_bits(ones, rows),
        located=located,
        excluded=ruled_out,
    )


# To how many decimals weights are usually handed over.
DIGITS = 4
_ROUNDED: tuple[int | None, ...] = (1, 2, 3, 4, 6, None)
# Into how many bins numbers are cut where small ones are kept; 0 for a bin of each value.
_FINER = (10, 20, 100, 0)


@dataclass(frozen=True, slots=True)
class _Table:
    columns: tuple[Bins, ...]
    labels: LabelTable

    @property
    def codes(self) -> list[IntArray]:
        return [column.codes for column in self.columns]

    @property
    def ones(self) -> list[IntArray]:
        marked = self.labels.values == 1
        return [
            np.bincount(column.codes[marked], minlength=len(column.labels)).astype(np.int64)
            for column in self.columns
        ]

    def handed(
        self, digits: int | None, smoothing: float, *, rates: bool
    ) -> list[PublishedStatistics]:
        handed = []
        for column, ones in zip(self.columns, self.ones, strict=True):
            rows = column.rows
            exact = ones / rows if rates else weights_of_evidence(ones, rows, smoothing)
            extra = 0.0 if rates else smoothing
            handed.append(PublishedStatistics(rows, _rounded(exact, digits), extra, digits, rates))
        return handed


def audit_woe(
    settings: Settings,
    raw: RawData,
    choice: WoeOptions,
    callbacks: Callbacks = SILENT,
    digits: int = DIGITS,
) -> WoeAudit:
    """Attack clear bin statistics, and report what ``taciturn woe`` tells either side.

    Statistics are handed over with ``digits`` decimals.
    """
    start, entropy = time.perf_counter(), RunEntropy.for_seed(settings.seed)
    rows = TrainingRows.from_settings(settings, raw, entropy)
    truth = rows.labels
    shuffled = truth.permuted(entropy.data.permute.fork("labels"))
    least, smoothing = choice.least(truth.rows), choice.effective_smoothing
    cut = rows.cut(least)
    callbacks.announce("counts from rounded statistics")
    roundings = _roundings(_Table(cut.columns, truth), smoothing)
    finer = [(f"{count} bins" if count else "each value", count) for count in _FINER]
    fineness = []
    variants = [("as taciturn woe cuts", cut), *((name, rows.cut(1, n)) for name, n in finer)]
    for number, (name, table) in enumerate(variants):
        callbacks.announce(f"labels from counts: {name}")
        fineness.append(_fineness(name, table, (truth, shuffled), smoothing, digits))
        callbacks.progress(number + 1, len(variants))
    callbacks.announce("taciturn woe itself")
    frames, alike = _our_way(settings, cut, (truth, shuffled), entropy)
    terms = WoeTerms.for_scheme(scheme(settings.scheme), settings.key_bits)
    return WoeAudit(
        dataset=raw.name,
        rows=truth.rows,
        ones=int(np.count_nonzero(truth.values)),
        columns=len(cut.columns),
        seed=settings.seed,
        smoothing=smoothing,
        digits=digits,
        min_rows=least,
        control=prior(truth),
        verdict=fineness[0].verdict,
        roundings=tuple(roundings),
        fineness=tuple(fineness),
        messages=_messages(frames, terms),
        alike=alike,
        bob=_bins_told(_Table(cut.columns, truth)),
        notes=cut.notes,
        seconds=time.perf_counter() - start,
    )


def _rounded(values: FloatArray, digits: int | None) -> FloatArray:
    return values if digits is None else np.round(values, digits)


def _roundings(table: _Table, smoothing: float) -> list[WoeRounding]:
    result = []
    for rates in (False, True):
        for digits in _ROUNDED:
            recovered = recover_counts(table.handed(digits, smoothing, rates=rates))
            errors = _errors(recovered, table.ones)
            result.append(
                WoeRounding(
                    statistic="rate" if rates else "woe",
                    digits=digits,
                    totals=recovered.totals,
                    exact=_exact(recovered),
                    right=float((errors == 0).mean()),
                    off=int(errors.max()),
                )
            )
    return result


def _exact(recovered: Recovered) -> float:
    return float(np.concatenate([column.exact for column in recovered.columns]).mean())


def _errors(recovered: Recovered, ones: Sequence[IntArray]) -> IntArray:
    pairs = zip(recovered.columns, ones, strict=True)
    errors: IntArray = np.concatenate([np.abs(column.ones - true) for column, true in pairs])
    return errors


def _fineness(
    name: str,
    cut: CutTable,
    labels: tuple[LabelTable, LabelTable],
    smoothing: float,
    digits: int,
) -> WoeFineness:
    (true, exact), (shuffled, _) = (
        _attacked(_Table(cut.columns, label), smoothing, digits) for label in labels
    )
    sizes = np.concatenate([column.rows for column in cut.columns])
    return WoeFineness(
        cut=name,
        columns=len(cut.columns),
        bins=len(sizes),
        smallest=int(sizes.min()),
        exact=exact,
        attacks=true,
        shuffled=shuffled,
        verdict=_verdict(labels[0], true),
        shuffled_verdict=_verdict(labels[1], shuffled),
    )


def _verdict(truth: LabelTable, attacks: Sequence[AttackScore]) -> str:
    known = prior(truth)
    verdict = weigh([known], attacks)
    if verdict.status is not Status.LEAK or verdict.figure == "AUC" or verdict.attack is None:
        return verdict.sentence
    ranks = f"It ranks the rows with AUC {100 * verdict.attack.auc:.2f} %"
    return f"{verdict.sentence} {ranks}, where the control has {100 * known.auc:.2f} %."


def _attacked(
    table: _Table, smoothing: float, digits: int
) -> tuple[tuple[AttackScore, ...], float]:
    recovered = recover_counts(table.handed(digits, smoothing, rates=False))
    ones = [column.ones for column in recovered.columns]
    scores = []
    for name, attack in (("bin-majority", majority_labels), ("bin-system", likeliest_labels)):
        start = time.perf_counter()
        guess = attack(table.codes, ones)
        if recovered.totals != 1 or not _exact(recovered) == 1:
            # What rests on counts that are not exact proves nothing.
            guess = replace(guess, certain=np.zeros_like(guess.certain))
        scores.append(judge(name, guess, table.labels, time.perf_counter() - start))
    return tuple(scores), _exact(recovered)


def _our_way(
    settings: Settings,
    cut: CutTable,
    labels: tuple[LabelTable, LabelTable],
    entropy: RunEntropy,
) -> tuple[list[bytes], bool]:
    """Frames that reach Alice in ``taciturn woe``, and whether shuffled labels give the same."""
    terms = WoeTerms.for_scheme(scheme(settings.scheme), settings.key_bits)
    seen: list[list[bytes]] = []
    for label in labels:
        frames: list[bytes] = []

        def listen(sender: Role, frame: bytes, frames: list[bytes] = frames) -> None:
            if sender == "bob":
                frames.append(frame)

        converse(cut, label, terms, entropy, names=False, tap=listen)
        seen.append(frames)
    return seen[0], _alike(*seen)


def _messages(frames: list[bytes], terms: WoeTerms) -> tuple[MessageSeen, ...]:
    """The joint seed decides no batch here, so its messages allow something else."""
    sealed: dict[type[Message], str] = {SealedLabels: "every label"}
    seen = frames_to_alice(frames, terms.scheme.name, terms.key_bits, encrypted=sealed)
    half = "check that Bob has not chosen the uniform half of his key; no label went into it"
    seeds = (BatchCommitment.__name__, BatchShare.__name__)
    return tuple(
        replace(observed, allows=half) if observed.message in seeds else observed
        for observed in seen
    )


def _alike(ours: list[bytes], others: list[bytes]) -> bool:
    """Whether two conversations differ in the bytes of ciphertexts alone."""

    def shown(frame: bytes) -> tuple[str, object]:
        kind = kind_of(frame)
        return kind.__name__, len(frame) if kind is SealedLabels else frame

    return list(map(shown, ours)) == list(map(shown, others))


def _bins_told(table: _Table) -> tuple[BinsTold, ...]:
    columns = zip(table.columns, table.ones, strict=True)
    known = [bin_knowledge(ones, column.rows, column.name) for column, ones in columns]
    return tuple(sorted(known, key=lambda knowledge: -knowledge.bits))
