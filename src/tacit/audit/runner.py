"""Runs every attack that applies to a view, and says why the others do not."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tacit.attacks.base import LabelAttack
from tacit.attacks.controls import ModelOnlyControl
from tacit.attacks.registry import ATTACKS
from tacit.audit.judge import AttackScore, ControlScore, judge, prior
from tacit.audit.verdict import verdict
from tacit.data.tables import LabelTable
from tacit.view.alice_view import AliceView


@dataclass(frozen=True, slots=True)
class Skipped:
    """An attack that did not apply."""

    name: str
    reason: str

    def to_dict(self) -> dict[str, str]:
        """The entry for JSON."""
        return {"name": self.name, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Findings:
    """What the attacks found, beside what is known without them."""

    controls: tuple[ControlScore, ...]
    attacks: tuple[AttackScore, ...]
    skipped: tuple[Skipped, ...]
    verdict: str


def examine(
    view: AliceView,
    truth: LabelTable,
    *,
    attacks: tuple[LabelAttack, ...] = ATTACKS,
    announce: Callable[[str], None] = lambda name: None,
) -> Findings:
    """Lets each attack guess from the view, then judges it.

    Args:
        view: What Alice knows.
        truth: The labels of her rows, in the same order; no attack sees them.
        attacks: Which to run.
        announce: Called with each attack's name before it starts.
    """
    truth.ids.require_same(view.features.ids, names=("the labels", "alice"))
    model_only = ModelOnlyControl()
    fallback = model_only.infer(view)
    control = judge(model_only.name, fallback, truth)
    scores: list[AttackScore] = []
    skipped: list[Skipped] = []
    for attack in attacks:
        missing = attack.needs - view.signals
        if missing:
            lacks = ", ".join(sorted(signal.value for signal in missing))
            skipped.append(Skipped(attack.name, f"Alice does not have {lacks}"))
            continue
        announce(attack.name)
        start = time.perf_counter()
        guess = attack.infer(view).completed(fallback)
        scores.append(judge(attack.name, guess, truth, time.perf_counter() - start))
    controls = (prior(truth), ControlScore(control.name, control.accuracy, control.auc))
    return Findings(controls, tuple(scores), tuple(skipped), verdict(controls, scores))
