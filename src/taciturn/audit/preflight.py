"""Before any training: what Alice will be able to do with this configuration, and what to change.

A *rehearsal* answers it. A few hundred of Alice's rows (or random ones of as many columns) are
trained on with coin labels, which are nobody's, by the real programs without encryption; the
attacks then run on what she saw, each on a sample of batches. What an attack gets right of the rows
that it speaks about, beyond one half, is what the protocol tells. Beside it stand the figures that
explain it: ranks of sampled batches, equations of stacked epochs, the phase transition of sparse
recovery, the true epsilon.

**Guarantee.** A verdict ``leaks`` or ``at risk`` was seen to happen in the rehearsal. An attack
that guesses at random is said to leak with probability ``FALSE_ALARM`` at most, and to be a risk
with ``RISK_ALARM``; one that calls rows certain leaks where nine of ten of those are right. ``no
attack of ours applies`` says that none of ours did it there; it proves nothing about others.

**Assumes.** The rows are like those that will be trained on. No label is looked at.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import numpy as np
from scipy.special import expit

from taciturn.attacks.base import LabelAttack, LabelGuess
from taciturn.attacks.flipped import about_labels
from taciturn.attacks.registry import rehearsal_attacks
from taciturn.audit import advice
from taciturn.audit.prediction import PredictionNotes, prediction_notes
from taciturn.audit.rehearsal import MOST_EPOCHS, Rehearsal
from taciturn.audit.transition import largest_sparsity
from taciturn.data.raw import RawData
from taciturn.data.tables import LabelTable
from taciturn.engine.callbacks import Announce, silent
from taciturn.numerics.intervals import clopper_pearson
from taciturn.parallel import one_thread
from taciturn.privacy.batch_response import Hybrid
from taciturn.privacy.composition import label_epsilon
from taciturn.privacy.label_response import FlippedLabels
from taciturn.privacy.prices import price
from taciturn.protocol.agree import unused
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings

FALSE_ALARM, RISK_ALARM = 1e-4, 0.05
LEAKS: Final = "leaks"
AT_RISK: Final = "at risk"
CLEAR: Final = "no attack of ours applies"
Verdict = Literal["leaks", "at risk", "no attack of ours applies"]

# Of the rows an attack speaks about it must get this share right, for sure, to be called a leak.
_LEAK_SHARE = 0.75
# A smaller share right is not called a risk, unless it is as far beyond chance as a leak must be.
_RISK_SHARE = 0.55
# Rows called certain count where they are this share of all, and nine of ten of them right.
_CERTAIN_SHARE = 0.02
_SAMPLED_BATCHES = 200
_SEED = 20


@dataclass(frozen=True, slots=True)
class AttackVerdict:
    """What one attack will be able to do."""

    attack: str
    verdict: Verdict
    why: str
    change: str

    def to_dict(self) -> dict[str, str]:
        """The verdict for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Preflight:
    """All verdicts, with the figures behind them.

    ``warnings`` say what else there is to know; ``notes`` which settings the mechanism ignores;
    ``prediction`` what scoring new rows with the model will tell each side.
    """

    verdicts: tuple[AttackVerdict, ...]
    facts: dict[str, Any]
    warnings: tuple[str, ...]
    notes: tuple[str, ...] = ()
    recommendations: tuple[advice.Recommendation, ...] = ()
    prediction: PredictionNotes | None = None

    @property
    def worst(self) -> Verdict:
        """The worst of the verdicts."""
        found = {each.verdict for each in self.verdicts}
        if LEAKS in found:
            return LEAKS
        return AT_RISK if AT_RISK in found else CLEAR

    def to_dict(self) -> dict[str, Any]:
        """The record of ``taciturn check --json``."""
        return {
            "verdict": self.worst,
            "verdicts": [each.to_dict() for each in self.verdicts],
            "facts": self.facts,
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "recommendations": [each.to_dict() for each in self.recommendations],
            "prediction": None if self.prediction is None else self.prediction.to_dict(),
        }


def preflight(
    settings: Settings,
    raw: RawData,
    *,
    announce: Announce = silent,
) -> Preflight:
    """Rehearses a configuration.

    Args:
        settings: Resolved settings of the training.
        raw: The rows; their labels are not looked at.
        announce: Called with what runs now.

    Raises:
        ConfigError: The settings do not fit each other or the table.
        ShapeError: The table has too few rows.
    """
    announce("rehearsal")
    rehearsal = Rehearsal.of(settings, raw)
    verdicts = []
    for attack in rehearsal_attacks():
        announce(attack.name)
        verdicts.append(_verdict(attack, rehearsal))
    return Preflight(
        tuple(verdicts),
        _facts(rehearsal),
        _warnings(rehearsal),
        unused(settings),
        advice.recommendations(rehearsal.terms.agreement),
        prediction_notes(rehearsal.terms.agreement, rehearsal.columns),
    )


def _verdict(attack: LabelAttack, rehearsal: Rehearsal) -> AttackVerdict:
    view = rehearsal.view
    missing = ", ".join(sorted(signal.value for signal in attack.needs - view.signals))
    reason = f"Alice does not have {missing}" if missing else attack.obstacle(view)
    if reason:
        return AttackVerdict(attack.name, CLEAR, reason, "")
    guess = about_labels(attack.infer(view), view)
    level, why = _judged(guess, rehearsal.labels)
    change = "" if level == CLEAR else advice.change(attack.name, rehearsal)
    return AttackVerdict(attack.name, level, why, change)


def _judged(guess: LabelGuess, labels: LabelTable) -> tuple[Verdict, str]:
    """The verdict on a guess at coin labels, of the rows that it speaks about."""
    spoken = int(np.count_nonzero(guess.signal))
    if not spoken:
        return CLEAR, "it has nothing to say of any row"
    right = (guess.scores > 0) == (labels.values == 1)
    correct = int(np.count_nonzero(right & guess.signal))
    low, _ = clopper_pearson(correct, spoken, confidence=1 - 2 * FALSE_ALARM)
    likely_low, _ = clopper_pearson(correct, spoken, confidence=1 - 2 * RISK_ALARM)
    sure = int(np.count_nonzero(guess.certain))
    sure_right = int(np.count_nonzero(right & guess.certain))
    words = f"rehearsed: {100 * correct / spoken:.0f} % of {spoken} coin labels right"
    if sure:
        words += f", {sure} called certain and {sure_right} of those right"
    certain = sure >= _CERTAIN_SHARE * labels.rows and sure_right > 0.9 * sure
    if certain or low > _LEAK_SHARE:
        return LEAKS, words
    if low > 0.5 or (likely_low > 0.5 and correct > _RISK_SHARE * spoken):
        return AT_RISK, words
    return CLEAR, words


def _facts(rehearsal: Rehearsal) -> dict[str, Any]:
    agreed, method = rehearsal.terms.agreement, rehearsal.method
    cost = price(method.event)
    with one_thread():
        ranks = _ranks(rehearsal)
    # Flipped labels are one release, however often they are used.
    releases = 1 if isinstance(method, FlippedLabels) else agreed.epochs
    total = label_epsilon({method.event: releases}, 0.0)
    if agreed.bob_update == "true" and rehearsal.bob_columns:
        # As the ledger has it: labels reach other rows' releases through his weights.
        total = math.inf
    facts: dict[str, Any] = {
        "rows": rehearsal.rows,
        "rehearsed_rows": rehearsal.labels.rows,
        "alice_columns": rehearsal.columns,
        "batch_size": rehearsal.batch,
        "last_batch": (rehearsal.rows - 1) % rehearsal.batch + 1,
        "epochs": agreed.epochs,
        "claimed_epsilon_per_release": cost.claimed,
        "label_epsilon_per_release": cost.label,
        "label_epsilon_total": total,
        "attack_ceiling": float(expit(total)),
        **ranks,
        "stacked_equations_per_row": agreed.epochs * rehearsal.columns / rehearsal.batch,
    }
    if isinstance(method, Hybrid):
        design = method.design
        facts["l_rr"] = design.asked_rows
        facts["true_rows"] = design.true_rows
        facts["sparsity"] = design.true_rows / rehearsal.columns
        facts["recoverable_sparsity"] = largest_sparsity(
            min(1.0, rehearsal.columns / design.asked_rows)
        )
    return {
        key: "inf" if isinstance(value, float) and math.isinf(value) else value
        for key, value in facts.items()
    }


def _ranks(rehearsal: Rehearsal) -> dict[str, float]:
    """Rank and conditioning of sampled batches of Alice's rows."""
    coins = KeyedEntropy.from_seed(_SEED).fork("batches")
    size = min(rehearsal.batch, len(rehearsal.table))
    full, conditions = 0, []
    for _ in range(_SAMPLED_BATCHES):
        rows = rehearsal.table[coins.permutation(len(rehearsal.table))[:size]]
        s = np.linalg.svd(rows, compute_uv=False)
        rank = int(np.count_nonzero(s > s.max() * max(rows.shape) * np.finfo(float).eps))
        full += rank == size
        if rank:
            conditions.append(s[0] / s[rank - 1])
    return {
        "full_rank_share": full / _SAMPLED_BATCHES,
        "median_condition": float(np.median(conditions)) if conditions else math.inf,
    }


def _warnings(rehearsal: Rehearsal) -> tuple[str, ...]:
    """What the *other* side should know, and what the verdicts leave out."""
    agreed = rehearsal.terms.agreement
    found = []
    if agreed.epochs >= rehearsal.columns:
        found.append(
            f"for Alice: with {agreed.epochs} epochs and {rehearsal.columns} columns the scores "
            "that Bob sees determine her columns up to a rotation"
        )
    if agreed.epochs > MOST_EPOCHS:
        found.append(f"only {MOST_EPOCHS} of {agreed.epochs} epochs were rehearsed")
    if rehearsal.method.conversation == "sealed":
        found += _sealed_warnings(rehearsal)
    elif rehearsal.method.encrypts and not isinstance(rehearsal.method, FlippedLabels):
        found.append(
            "for Bob: an Alice who does not keep to the protocol can have any value decrypted that "
            "she likes; the verdicts assume that she does"
        )
    if agreed.noise == "continuous":
        found.append("floating-point noise can give labels away by its last bits: use discrete")
    return tuple(found)


def _sealed_warnings(rehearsal: Rehearsal) -> list[str]:
    """What the guarantee of sealed training rests on, and what voids it."""
    agreed = rehearsal.terms.agreement
    found = []
    if not agreed.fresh_keys:
        found.append(
            "for Bob: against an Alice who does not keep to the protocol the encryption must be "
            "funcCPA, which does not follow from IND-CPA; --fresh-keys does without"
        )
    if agreed.reveal:
        found.append(
            "for Bob: --reveal hands Alice's weights out at the end, which depend on labels; "
            "an Alice who does not keep to the protocol may have had any label put into them"
        )
    return found
