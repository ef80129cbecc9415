"""Run every attack that applies to a view, and collect the reasons why others do not.

**Guarantee.** An attack gets the view and nothing else; the truth meets its guess afterwards, in
``judge``. Every attack and every control is either scored or listed with what it lacks. Where an
attack has no signal, what is known without it stands in: the model's guess, or where Alice has no
weights the commoner label.

**Assumes.** The labels are those of the run that was viewed: row ids are compared, nothing else is.
Nothing here keeps an attack, of ours or of another package, from looking for labels elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from taciturn.data.label_table import LabelTable
from taciturn.engine.callbacks import Announce, ReportProgress, noop
from taciturn_audit.attacks import registry
from taciturn_audit.attacks.base import Attack, LabelGuess, ModelOnlyControl, about_labels
from taciturn_audit.judge import commoner_label, control, judge, prior
from taciturn_audit.results.audit import Findings
from taciturn_audit.results.columns import Skipped
from taciturn_audit.verdict import weigh
from taciturn_audit.views.alice_view import AliceView


@dataclass(frozen=True, slots=True)
class Guesses:
    """The attacks' guesses from a view, before they are judged.

    ``model_only`` is None where Alice has no weights.
    """

    model_only: LabelGuess | None = field(repr=False)
    attacks: Mapping[str, LabelGuess] = field(repr=False)
    seconds: Mapping[str, float]
    skipped: tuple[Skipped, ...]

    def judged(self, truth: LabelTable, *, shuffled: bool = False) -> Findings:
        """The findings by the labels of the same rows, in the same order.

        ``shuffled``: labels were shuffled before training. The model was then fitted to labels that
        no column knows, so that its guess is judged as an attack besides.
        """
        controls = [prior(truth)]
        if self.model_only is not None:
            controls.append(control(ModelOnlyControl.name, self.model_only, truth))
        fallback = commoner_label(truth) if self.model_only is None else self.model_only
        scores = [
            judge(name, guess.completed(fallback), truth, self.seconds[name])
            for name, guess in self.attacks.items()
        ]
        if shuffled and self.model_only is not None:
            # First: an attack without a signal has the model's guess, and ties go to the first.
            scores.insert(0, judge(ModelOnlyControl.name, self.model_only, truth))
        sentence = weigh(controls, scores, shuffled=shuffled).sentence
        return Findings(tuple(controls), tuple(scores), self.skipped, sentence)


@dataclass(frozen=True, slots=True)
class Examination:
    """The findings, each attack's guess at every row, and the model's."""

    findings: Findings
    guesses: Mapping[str, LabelGuess] = field(repr=False)
    model_only: LabelGuess | None = field(default=None, repr=False)


def guess_labels(
    view: AliceView,
    *,
    attacks: tuple[Attack, ...] | None = None,
    announce: Announce = noop,
    progress: ReportProgress = noop,
) -> Guesses:
    """The guesses of each attack that applies, from the view alone."""
    skipped: list[Skipped] = []
    model_only, known = ModelOnlyControl(), None
    if reason := model_only.lacks(view):
        skipped.append(Skipped(model_only.name, reason))
    else:
        known = model_only.infer(view)
    guesses: dict[str, LabelGuess] = {}
    seconds: dict[str, float] = {}
    for attack in registry.attacks() if attacks is None else attacks:
        if reason := attack.lacks(view):
            skipped.append(Skipped(attack.name, reason))
            continue
        announce(attack.name)
        start = time.perf_counter()
        guesses[attack.name] = about_labels(attack.infer(view, progress), view)
        seconds[attack.name] = time.perf_counter() - start
    return Guesses(known, guesses, seconds, tuple(skipped))


def examine(
    view: AliceView,
    truth: LabelTable,
    *,
    attacks: tuple[Attack, ...] | None = None,
    shuffled: bool = False,
    announce: Announce = noop,
    progress: ReportProgress = noop,
) -> Examination:
    """The attacks' guesses from the view, and their findings by labels that no attack sees.

    Raises ``RowOrderError`` where the labels are not those of the view's rows, in their order.
    """
    truth.ids.require_same(view.features.ids, names=("the labels", "alice"))
    guesses = guess_labels(view, attacks=attacks, announce=announce, progress=progress)
    findings = guesses.judged(truth, shuffled=shuffled)
    return Examination(findings, guesses.attacks, guesses.model_only)
