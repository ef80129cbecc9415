"""One audit: a training as asked for, its attacks, and what makes their figures mean something.

In a *canary run* labels are shuffled before training, so that what an attack recovers is the
protocol's leak alone. A run on coin labels tests the ledger's claim. Both use no encryption: what
Alice sees is the same to the last bit.

**Guarantee.** As the parts: ``runner``, ``judge``, ``evidence``, ``distinguisher``.

**Assumes.** The schemes compute exactly, so that an unencrypted run shows the same view.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from taciturn.data.label_table import LabelTable
from taciturn.data.prepare import RawData
from taciturn.engine.callbacks import SILENT, Callbacks
from taciturn.errors import counted
from taciturn.jobs.train.simulation import Outcome, raise_if_diverged, simulate_training
from taciturn.protocol.observations import Signal
from taciturn.results.training import TrainingRun
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, Source, with_coin_labels
from taciturn_audit.adversaries import members, outcome_view
from taciturn_audit.advice import inapplicable
from taciturn_audit.attacks.base import Attack, ModelOnlyControl
from taciturn_audit.attacks.membership import guess_membership
from taciturn_audit.attacks.registry import attacks
from taciturn_audit.column_audit import BobAudit
from taciturn_audit.distinguishing_game import applies, distinguish
from taciturn_audit.evidence import evidence
from taciturn_audit.judge import judge_membership
from taciturn_audit.messages import messages_to_alice
from taciturn_audit.openings_audit import OpeningsAudit
from taciturn_audit.results.audit import (
    Accuracy,
    AfterEpochs,
    AuditRun,
    Distinguisher,
    Evidence,
    Findings,
    Membership,
)
from taciturn_audit.results.openings import OpeningFindings
from taciturn_audit.results.runs import AuditResult
from taciturn_audit.results.session import SessionAudit
from taciturn_audit.runner import Examination, examine
from taciturn_audit.views.alice_view import AliceView

# Attacks whose solvers did more on the whole run are not repeated for the picture over epochs.
# Work is counted, not timed: the same audit has the same picture on any machine.
_QUICK_WORK = 5_000.0
_EPOCHS_SHOWN = (1, 2, 3, 5, 10, 20, 50, 100)
Audited = TypeVar("Audited", AuditRun, SessionAudit)
SHUFFLED_TRUTH = "Judged against labels shuffled after the run."


@dataclass(frozen=True, slots=True)
class Session:
    """Audits of runs of one table, or of two parties' tables.

    ``shuffle_truth`` judges against labels shuffled after the run. ``attacks`` are loaded before
    anything is trained, in case one is broken. ``seat`` is as in ``taciturn_audit.adversaries``;
    ``known_rows`` as in ``BobAudit``, ``further_trainings`` as in ``OpeningsAudit``.
    """

    raw: Source
    callbacks: Callbacks = SILENT
    canary: bool = True
    shuffle_truth: bool = False
    attacks: tuple[Attack, ...] = field(default_factory=attacks)
    seat: str = "alice"
    known_rows: int | None = None
    further_trainings: bool = False

    def audit(self, settings: Settings, record: Path | None = None) -> AuditRun:
        """Train and attack, with all that an audit reports.

        Raises ``DivergenceError`` where the model is worse than none: nobody would use such a
        training.
        """
        entropy, observe = RunEntropy.for_seed(settings.seed), self.callbacks.observe
        outcome = simulate_training(
            settings, self.raw, keep=True, record=record, observe=observe, entropy=entropy
        )
        raise_if_diverged(outcome.result)
        view, labels = self._view(outcome), outcome.data.labels_train
        if self.seat == "bob":
            findings = examine(view, labels, attacks=()).findings
            unseen = replace(findings, verdict="Alice's seat was not audited.")
            run = self._bare_run(view, outcome.result, unseen)
        else:
            run = self.examine(settings, view, labels, outcome.result)
            run = replace(run, membership=self._membership(view, outcome))
        run = replace(run, openings=self._openings(settings, outcome, entropy))
        if self.seat not in ("bob", "both"):
            return run
        bob = BobAudit(self.raw, self.known_rows, self.canary, self.callbacks)
        return replace(run, bob_seat=bob.audit(settings, entropy, outcome))

    def _openings(
        self, settings: Settings, outcome: Outcome, entropy: RunEntropy
    ) -> OpeningFindings | None:
        bob = ("bob",) if self.seat in ("bob", "both") else ()
        alice = () if self.seat == "bob" else ("alice",)
        further = self.further_trainings
        return OpeningsAudit(
            settings, outcome, entropy, (*alice, *bob), further, self.callbacks
        ).audit()

    def _view(self, outcome: Outcome) -> AliceView:
        names = [name for name, _ in outcome.data.alices]
        return outcome_view(outcome, members(self.seat, names))

    def _bare_run(self, view: AliceView, training: TrainingRun, findings: Findings) -> AuditRun:
        return AuditRun(
            training=training,
            shuffle_truth=self.shuffle_truth,
            findings=findings,
            canary=None,
            over_epochs=(),
            evidence=None,
            messages=tuple(messages_to_alice(view)),
            membership=None,
            seat=self.seat,
            pooled=None if view.agreement.parties is None else view.names,
        )

    def examine(
        self, settings: Settings, view: AliceView, labels: LabelTable, training: TrainingRun
    ) -> AuditRun:
        """Run the attacks on a view of a training, but for membership of hidden batches."""
        truth = labels
        if self.shuffle_truth:
            truth = shuffled(labels, settings.seed)
        findings = self._examine(view, truth, settings.permute_labels).findings
        if self.shuffle_truth:
            findings = replace(findings, verdict=f"{SHUFFLED_TRUTH} {findings.verdict}")
        claim = training.ledger.label_epsilon_total
        wanted = self.canary and not self.shuffle_truth
        training = replace(training, notes=(*training.notes, *inapplicable(view)))
        look = look_at_ciphertexts(view, settings.seed, self.callbacks) if wanted else None
        run = replace(self._bare_run(view, training, findings), distinguisher=look)
        return self.with_further_trainings(run, settings, findings, claim)

    def with_further_trainings(
        self, audit: Audited, settings: Settings, findings: Findings, claim: float
    ) -> Audited:
        """The audit with its canary run, the attacks over epochs, and the evidence.

        They train on the same rows; ``claim`` is the label epsilon of the ledger.
        """
        canary, over_epochs = self._canary(settings, findings)
        evidence = self._evidence(settings, claim)
        return replace(audit, canary=canary, over_epochs=over_epochs, evidence=evidence)

    def _examine(self, view: AliceView, truth: LabelTable, shuffled: bool) -> Examination:
        callbacks = self.callbacks
        return examine(
            view,
            truth,
            attacks=self.attacks,
            shuffled=shuffled,
            announce=callbacks.announce,
            progress=callbacks.progress,
        )

    def _canary(
        self, settings: Settings, findings: Findings
    ) -> tuple[Findings | None, tuple[AfterEpochs, ...]]:
        if not self.canary or self.shuffle_truth:
            return None, ()
        if settings.permute_labels:
            return findings, ()
        self.callbacks.announce("canary run")
        changes = {"permute_labels": True, "scheme": "clear", "key_bits": None}
        shuffled = settings.model_copy(update=changes)
        outcome = simulate_training(shuffled, self.raw, keep=True, observe=self.callbacks.observe)
        view, labels = self._view(outcome), outcome.data.labels_train
        whole = self._examine(view, labels, shuffled=True)
        return whole.findings, tuple(self._over_epochs(view, labels, whole))

    def _over_epochs(
        self, view: AliceView, labels: LabelTable, whole: Examination
    ) -> Iterator[AfterEpochs]:
        quick = {name for name, guess in whole.guesses.items() if guess.work <= _QUICK_WORK}
        chosen = tuple(attack for attack in self.attacks if attack.name in quick)
        last = view.agreement.rounds
        for epochs in sorted({*(number for number in _EPOCHS_SHOWN if number < last), last}):
            self.callbacks.announce(f"after {counted(epochs, 'epoch')}")
            findings = whole.findings
            if epochs < last:
                findings = examine(view.until(epochs), labels, attacks=chosen).findings
            yield AfterEpochs(epochs, _accuracies(findings, quick))

    def _evidence(self, settings: Settings, claim: float) -> Evidence | None:
        if not math.isfinite(claim) or self.shuffle_truth or not self.canary:
            return None
        self.callbacks.announce("random labels")
        fair = with_coin_labels(self.raw, _entropy(settings.seed, "coin labels"))
        plain = settings.model_copy(
            update={"permute_labels": False, "scheme": "clear", "key_bits": None}
        )
        outcome = simulate_training(plain, fair, keep=True, observe=self.callbacks.observe)
        labels = outcome.data.labels_train
        examination = examine(
            self._view(outcome), labels, attacks=self.attacks, progress=self.callbacks.progress
        )
        # Columns know no coin: what the model says of one, it learnt through the protocol.
        model = examination.model_only
        guesses = {} if model is None else {ModelOnlyControl.name: model}
        return evidence({**guesses, **examination.guesses}, labels, outcome.result.ledger)

    def _membership(self, view: AliceView, outcome: Outcome) -> Membership | None:
        if Signal.RESPONSE not in view.signals:
            return None
        self.callbacks.announce("who is in the batch")
        guesses = guess_membership(view, progress=self.callbacks.progress)
        return judge_membership(guesses, dict(enumerate(outcome.batches)))


def look_at_ciphertexts(
    view: AliceView, seed: int | None = None, callbacks: Callbacks = SILENT
) -> Distinguisher | None:
    """The test of ciphertexts, where they are all that Alice receives; else None."""
    if not applies(view):
        return None
    callbacks.announce("distinguishing ciphertexts")
    return distinguish(view, _entropy(seed, "distinguisher"))


def shuffled(labels: LabelTable, seed: int | None = None) -> LabelTable:
    """The same labels in an order that has nothing to do with the rows."""
    return labels.permuted(_entropy(seed, "shuffled truth"))


def _entropy(seed: int | None, purpose: str) -> KeyedEntropy:
    root = KeyedEntropy.from_system() if seed is None else KeyedEntropy.from_seed(seed)
    return root.fork(purpose)


def audit_rows(raw: RawData, settings: Settings, *, canary: bool = True) -> AuditResult:
    """Train on rows, and attack from Alice's seat and from Bob's."""
    session = Session(raw, canary=canary, seat="both")
    return AuditResult((session.audit(settings),))


def _accuracies(findings: Findings, names: set[str]) -> tuple[Accuracy, ...]:
    return tuple(
        Accuracy(
            score.name,
            score.accuracy,
            score.accuracy_low,
            score.accuracy_high,
            score.auc,
            score.auc_low,
            score.auc_high,
        )
        for score in findings.attacks
        if score.name in names
    )
