"""Audit with Bob as the adversary: his view, the column attacks, and their judge.

**Guarantee.** An attack gets Bob's view and the rows that are handed to it here, and nothing else
of Alice's; the truth meets its estimate afterwards, in ``columns``. Every attack is scored or
listed with what it lacks.

**Assumes.** The schemes compute exactly, so that a training without encryption, with the same
coins, opens the same scores to him. Known rows are drawn at random.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from taciturn.engine.callbacks import SILENT, Announce, Callbacks, noop
from taciturn.errors import TranscriptError, counted
from taciturn.jobs.train.simulation import Outcome, simulate_training
from taciturn.numerics.whitening import centring_offset, training_means
from taciturn.protocol.outcome import HeldOut
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, Source
from taciturn_audit.column_attacks.base import ColumnAttack, KnownRows
from taciturn_audit.column_attacks.registry import COLUMN_ATTACKS
from taciturn_audit.columns import Truth, controls, judge_columns
from taciturn_audit.results.columns import (
    BobSeat,
    ColumnFindings,
    ColumnScore,
    Separation,
    Skipped,
    conclude_columns,
)
from taciturn_audit.separation import separate
from taciturn_audit.views.bob_view import BobView

FEW_KNOWN = 10
"""How many rows Bob knows, beside as many as she has columns, where nothing else is asked for."""


@dataclass(frozen=True, slots=True)
class BobAudit:
    """Audit of one table with Bob as the adversary.

    ``known_rows`` is how many rows Bob knows; None tries ``FEW_KNOWN`` and as many as Alice's
    columns.
    """

    raw: Source
    known_rows: int | None = None
    canary: bool = True
    callbacks: Callbacks = SILENT

    def audit(
        self, settings: Settings, entropy: RunEntropy, outcome: Outcome | None = None
    ) -> BobSeat:
        """Run the column attacks on a training and on its canary.

        The training is run, unless ``outcome`` has a transcript and no encryption.
        """
        plain = settings.model_copy(update={"scheme": "clear", "key_bits": None})
        if outcome is None or outcome.terms.scheme.protects or outcome.transcript is None:
            outcome = self._simulate(plain, entropy)
        findings, separation = self._examine(outcome, entropy), self._separate(outcome, entropy)
        if not self.canary:
            return BobSeat(findings, None, separation)
        if settings.permute_rows:
            return BobSeat(findings, findings, separation)
        return BobSeat(findings, self.permuted(settings, entropy), separation)

    def _separate(self, outcome: Outcome, entropy: RunEntropy) -> Separation | None:
        tables = outcome.data.alice_train_parts
        if not tables:
            return None
        self.callbacks.announce("telling Alices apart")
        return separate(bob_view(outcome, entropy), [*tables.values()])

    def permuted(self, settings: Settings, entropy: RunEntropy) -> ColumnFindings:
        """Findings of an unencrypted training with Alice's rows permuted against Bob's."""
        self.callbacks.announce("canary run of Bob's seat")
        changes = {"scheme": "clear", "key_bits": None, "permute_rows": True}
        return self._examine(self._simulate(settings.model_copy(update=changes), entropy), entropy)

    def _simulate(self, settings: Settings, entropy: RunEntropy) -> Outcome:
        observe = self.callbacks.observe
        return simulate_training(settings, self.raw, keep=True, entropy=entropy, observe=observe)

    def _examine(self, outcome: Outcome, entropy: RunEntropy) -> ColumnFindings:
        return examine_columns(
            bob_view(outcome, entropy),
            Truth.from_table(outcome.data.alice_train),
            entropy.data.permute.fork("known rows"),
            known_rows=self.known_rows,
            announce=self.callbacks.announce,
        )


def bob_view(outcome: Outcome, entropy: RunEntropy, *, predict: bool = False) -> BobView:
    """Bob's view of a simulated training, and of one joint prediction of its training rows.

    Sessions whose weights stay shared open no such prediction, and a later one may: it is added
    where the training opened scores, or where ``predict`` asks for it. A prediction opens whole
    scores to him, of which he takes his own part off: all but ``mutual`` let him know his weights,
    and that too where Alice reveals her share of them.
    """
    if outcome.transcript is None:
        raise TranscriptError("the run kept no transcript")
    data, agreed = outcome.data, outcome.terms.agreement
    view = BobView(
        agreement=agreed,
        features=data.bob_train,
        labels=data.labels_train,
        entropy=entropy.bob,
        conversation=replace(outcome.transcript, header={}, footer={}),
        budget=outcome.result.budget,
        held_out=HeldOut(data.bob_test, data.labels_test) if data.held_out else None,
    ).with_scores()
    if view.predictions is not None or not (view.signals or predict):
        return view
    if outcome.terms.shares_scores and not agreed.reveal_bob:
        return view.predicting(outcome.train_scores, whole=True)
    with np.errstate(over="ignore", invalid="ignore"):
        bob_scores = data.bob_train.values @ outcome.bob_weights
    if outcome.terms.centred:
        # The intercept that he trained lacks her means, which the joined model's has.
        bob_scores -= centring_offset(
            outcome.alice_weights, training_means(data.alice_train.values)
        )
    return view.predicting(outcome.train_scores - bob_scores)


def examine_columns(
    view: BobView,
    truth: Truth,
    entropy: KeyedEntropy,
    *,
    known_rows: int | None = None,
    attacks: Sequence[ColumnAttack] = COLUMN_ATTACKS,
    announce: Announce = noop,
) -> ColumnFindings:
    """Let each attack estimate from the view and the rows it is handed, then judge it.

    No attack sees ``truth``. ``known_rows`` is as in ``BobAudit``.
    """
    scores: list[ColumnScore] = []
    skipped: list[Skipped] = []
    for attack in attacks:
        if reason := attack.lacks(view):
            skipped.append(Skipped(attack.name, reason))
            continue
        for count in _counts(attack, view, known_rows):
            announce(f"{attack.name}, {counted(count, 'known row')}")
            known = known_rows_of(truth, entropy, count)
            start = time.perf_counter()
            estimate = attack.estimate(view, known)
            seconds = time.perf_counter() - start
            scores.append(judge_columns(attack.name, estimate, truth, known, seconds))
    known_without = controls(truth, view.features, view.labels)
    leaks, verdict = conclude_columns(known_without, scores)
    return ColumnFindings(known_without, tuple(scores), tuple(skipped), leaks, verdict)


def known_rows_of(truth: Truth, entropy: KeyedEntropy, count: int) -> KnownRows:
    """The first ``count`` rows of one random order: a larger sample holds the smaller ones."""
    rows = entropy.fork("order").permutation(len(truth.values))[:count]
    return KnownRows(rows, truth.values[rows])


def _counts(attack: ColumnAttack, view: BobView, known_rows: int | None) -> list[int]:
    asked = {FEW_KNOWN, view.columns} if known_rows is None else {known_rows}
    counts = {min(count, view.features.rows // 2) for count in asked if attack.uses_known_rows}
    return sorted(({0} if attack.works_without else set()) | (counts - {0}))
