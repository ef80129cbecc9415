"""One audit: a training as asked for, its attacks, and what makes their figures mean something.

Beside the run itself stand a *canary run*, whose labels are shuffled before training, so that what
an attack recovers is the protocol's leak alone; the attacks after fewer epochs of it; the list of
messages; and, where the ledger claims a finite epsilon, a run on coin labels whose guesses are set
against the claim. Those runs use no encryption: what Alice sees is the same to the last bit.

**Guarantee.** As the parts: ``runner``, ``judge``, ``evidence``.

**Assumes.** The schemes compute exactly, so that an unencrypted run shows the same view.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from taciturn.attacks.membership import guess_membership
from taciturn.attacks.registry import ATTACKS
from taciturn.audit.evidence import Evidence, evidence
from taciturn.audit.membership import judge_membership
from taciturn.audit.messages import messages_to_alice
from taciturn.audit.runner import Findings, examine
from taciturn.data.raw import RawData
from taciturn.data.tables import LabelTable
from taciturn.engine.callbacks import SILENT, Callbacks
from taciturn.errors import TranscriptError
from taciturn.protocol.observations import Signal
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation.outcome import Outcome
from taciturn.simulation.run import simulate
from taciturn.view.alice_view import AliceView

# Attacks that took longer on the whole run are not repeated for the picture over epochs.
_QUICK_SECONDS = 5.0
_EPOCHS_SHOWN = (1, 2, 3, 5, 10, 20, 50, 100)

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Session:
    """Audits runs of one table.

    Args:
        raw: The rows.
        callbacks: Who is told.
        canary: Whether to run a canary beside each run.
        shuffle_truth: Judge against labels shuffled after the run.
    """

    raw: RawData
    callbacks: Callbacks = SILENT
    canary: bool = True
    shuffle_truth: bool = False

    def audit(self, settings: Settings, record: Path | None = None) -> Record:
        """Trains, attacks, and gathers what belongs beside it."""
        outcome = simulate(
            settings, self.raw, keep=True, record=record, observe=self.callbacks.observe
        )
        view = _view(outcome)
        findings = self.examine(view, outcome.data.labels_train, settings.seed)
        return {
            **outcome.to_dict(),
            **self.findings(findings),
            **self.around(settings, view, findings, outcome.ledger.label_epsilon_total),
            "membership": self._membership(view, outcome),
        }

    def examine(self, view: AliceView, labels: LabelTable, seed: int | None) -> Findings:
        """Runs the attacks on a view."""
        truth = labels
        if self.shuffle_truth:
            truth = labels.permuted(_coins(seed, "shuffled truth"))
        return examine(
            view, truth, announce=self.callbacks.announce, progress=self.callbacks.progress
        )

    def findings(self, findings: Findings) -> Record:
        """The findings, with a word where they were judged against other labels."""
        note = "Judged against labels shuffled after the run. " if self.shuffle_truth else ""
        return {
            "shuffle_truth": self.shuffle_truth,
            **findings.to_dict(),
            "verdict": note + findings.verdict,
        }

    def around(
        self, settings: Settings, view: AliceView, findings: Findings, claim: float
    ) -> Record:
        """What belongs beside a run's findings: canary, epochs, evidence and messages."""
        canary, epochs = self._canary(settings, findings)
        found = self._evidence(settings, claim)
        return {
            "canary": canary,
            "over_epochs": epochs,
            "evidence": None if found is None else found.to_dict(),
            "messages": [entry.to_dict() for entry in messages_to_alice(view)],
        }

    def _canary(self, settings: Settings, findings: Findings) -> tuple[Record | None, list[Record]]:
        if not self.canary or self.shuffle_truth:
            return None, []
        if settings.permute_labels:
            return findings.to_dict(), []
        self.callbacks.announce("canary run")
        outcome = simulate(_shuffled(settings), self.raw, keep=True, observe=self.callbacks.observe)
        other = _view(outcome)
        labels = outcome.data.labels_train
        found = examine(
            other, labels, announce=self.callbacks.announce, progress=self.callbacks.progress
        )
        return found.to_dict(), self._over_epochs(other, labels, found)

    def _over_epochs(self, view: AliceView, labels: LabelTable, whole: Findings) -> list[Record]:
        quick = {score.name for score in whole.attacks if score.seconds < _QUICK_SECONDS}
        chosen = tuple(attack for attack in ATTACKS if attack.name in quick)
        last = view.agreement.epochs
        rows = []
        for epochs in sorted({*(each for each in _EPOCHS_SHOWN if each < last), last}):
            self.callbacks.announce(f"after {epochs} epochs")
            found = whole if epochs == last else examine(view.until(epochs), labels, attacks=chosen)
            rows.append({"epochs": epochs, "attacks": _accuracies(found, quick)})
        return rows

    def _evidence(self, settings: Settings, claim: float) -> Evidence | None:
        """Coin labels against the ledger, where it claims anything."""
        if not math.isfinite(claim) or self.shuffle_truth or not self.canary:
            return None
        self.callbacks.announce("coin labels")
        fair = replace(self.raw, labels=self.raw.labels.coins(_coins(settings.seed, "coin labels")))
        plain = settings.model_copy(
            update={"permute_labels": False, "scheme": "clear", "key_bits": None}
        )
        outcome = simulate(plain, fair, keep=True, observe=self.callbacks.observe)
        labels = outcome.data.labels_train
        found = examine(_view(outcome), labels, progress=self.callbacks.progress)
        return evidence(found.guesses, labels, outcome.ledger)

    def _membership(self, view: AliceView, outcome: Outcome) -> Record | None:
        if Signal.RESPONSE not in view.signals:
            return None
        self.callbacks.announce("who is in the batch")
        guesses = guess_membership(view, progress=self.callbacks.progress)
        return judge_membership(guesses, dict(enumerate(outcome.batches))).to_dict()


def _coins(seed: int | None, purpose: str) -> KeyedEntropy:
    root = KeyedEntropy.from_system() if seed is None else KeyedEntropy.from_seed(seed)
    return root.fork(purpose)


def _view(outcome: Outcome) -> AliceView:
    if outcome.transcript is None:
        raise TranscriptError("the run kept no transcript")
    return AliceView.of(outcome.transcript, outcome.data.alice_train)


def _shuffled(settings: Settings) -> Settings:
    """The same training on shuffled labels, without encryption."""
    changes = {"permute_labels": True, "scheme": "clear", "key_bits": None}
    return settings.model_copy(update=changes)


def _accuracies(findings: Findings, names: set[str]) -> list[Record]:
    return [
        {
            "name": score.name,
            "accuracy": score.accuracy,
            "accuracy_low": score.accuracy_low,
            "accuracy_high": score.accuracy_high,
        }
        for score in findings.attacks
        if score.name in names
    ]
