"""Mechanisms side by side: the same rows, split and seeds, one training and one canary run each.

**Guarantee.** Every mechanism trains on the same rows and is held against the same held-out rows.
No figure depends on the encryption: trainings run without it, and time and traffic are estimated
with the scheme that was asked for.

Several Alices are looked at together, as if they pooled what they have.

**Assumes.** As ``audit.session``: the schemes compute exactly, so that an unencrypted run shows the
same view. Ciphertexts are not looked at here; an audit of one mechanism does that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from taciturn.data.prepare import RawData
from taciturn.engine.callbacks import Callbacks
from taciturn.errors import ConfigError
from taciturn.jobs.train.exposure import reconstruction
from taciturn.jobs.train.simulation import estimate, raise_if_diverged, simulate_training
from taciturn.numerics.label_metrics import ModelMetrics
from taciturn.numerics.metrics import Metrics
from taciturn.protocol.agree import agree
from taciturn.results.runs import Runs
from taciturn.results.training import TrainingRun
from taciturn.settings.schema import Settings
from taciturn_audit.adversaries import outcome_view
from taciturn_audit.results.audit import Findings
from taciturn_audit.results.compare import (
    BestAttack,
    ComparedMechanism,
    Comparison,
    RefusedMechanism,
)
from taciturn_audit.runner import examine
from taciturn_audit.verdict import (
    Measure,
    Status,
    Weighed,
    interval_of,
    ranking_figure,
    value_of,
    weigh_runs,
)


@dataclass(frozen=True, slots=True)
class _Audited:
    settings: Settings
    runs: Runs[TrainingRun] = field(repr=False)
    real: Weighed
    shuffled: Weighed


def compare(
    wanted: Sequence[tuple[str, Callable[[], Sequence[Settings]]]],
    raw: RawData,
    callbacks: Callbacks,
) -> Comparison:
    """Train, attack and estimate each of the mechanisms.

    ``wanted`` has a name for each mechanism and a function for its settings of each seed, which
    raises ``ConfigError`` where the mechanism cannot be used. If all raise, the first error is
    raised.
    """
    audits: list[_Audited] = []
    refused: list[RefusedMechanism] = []
    first: ConfigError | None = None
    for name, settings in wanted:
        callbacks.announce(name)
        try:
            audits.append(_audited(settings(), raw, callbacks))
        except ConfigError as problem:
            # What one mechanism cannot do is a line of the comparison, and not its end.
            first = first or problem
            mechanism, _, epsilon = name.partition(":")
            reason = problem.message
            refused.append(RefusedMechanism(mechanism, float(epsilon) if epsilon else None, reason))
    if not audits:
        raise first or ConfigError("no mechanism is named", setting="mechanisms")
    return _comparison(audits, tuple(refused), raw, callbacks)


def _audited(settings: Sequence[Settings], raw: RawData, callbacks: Callbacks) -> _Audited:
    trainings: list[TrainingRun] = []
    real: list[Findings] = []
    permuted: list[Findings] = []
    for setting in settings:
        training, findings = _run(setting, raw, callbacks)
        raise_if_diverged(training)
        trainings.append(training)
        real.append(findings)
        shuffled = setting.model_copy(update={"permute_labels": True})
        permuted.append(_run(shuffled, raw, callbacks)[1])
    runs = Runs(tuple(trainings))
    return _Audited(settings[0], runs, weigh_runs(real), weigh_runs(permuted, shuffled=True))


def _run(settings: Settings, raw: RawData, callbacks: Callbacks) -> tuple[TrainingRun, Findings]:
    plain = settings.model_copy(update={"scheme": "clear", "key_bits": None})
    outcome = simulate_training(plain, raw, keep=True, observe=callbacks.observe)
    labels = outcome.data.labels_train
    return outcome.result, examine(
        outcome_view(outcome),
        labels,
        shuffled=settings.permute_labels,
        progress=callbacks.progress,
    ).findings


def _comparison(
    audits: Sequence[_Audited],
    refused: tuple[RefusedMechanism, ...],
    raw: RawData,
    callbacks: Callbacks,
) -> Comparison:
    lead = audits[0]
    training = lead.runs.first
    agreed = agree(lead.settings, training.data.alice_columns, training.data.rows)
    by = ranking_figure(lead.shuffled.findings.controls)
    compared = []
    for audit in audits:
        callbacks.announce(f"what {audit.settings.mechanism} will cost")
        compared.append(_compared(audit, by, raw))
    return Comparison(
        data=training.data,
        seed=training.seed or 0,
        seeds=len(lead.runs.runs),
        scheme=lead.settings.scheme,
        key_bits=agreed.agreement.key_bits,
        ranked_by=by,
        centralised_auc=lead.runs.means.centralised.get("auc"),
        bob_alone_auc=_mean_auc([run.metrics.bob_alone for run in lead.runs.trainings]),
        compared=tuple(compared),
        refused=refused,
    )


def _compared(audit: _Audited, by: Measure, raw: RawData) -> ComparedMechanism:
    training, means = audit.runs.first, audit.runs.means
    dearest = max(
        (run.ledger for run in audit.runs.trainings), key=lambda ledger: ledger.label_epsilon_total
    )
    terms = agree(audit.settings, training.data.alice_columns, training.data.rows)
    return ComparedMechanism(
        mechanism=training.agreement.mechanism,
        epsilon=training.agreement.epsilon,
        solver=training.agreement.solver.name,
        accuracy=means.test.get("accuracy"),
        auc=means.test.get("auc"),
        label_epsilon_total=dearest.label_epsilon_total,
        assumption=dearest.assumption,
        shuffled=_best(audit.shuffled, by),
        real=_best(audit.real, by),
        verdict=audit.shuffled.sentence,
        estimate=estimate(audit.settings, raw),
        bob_reconstructs=reconstruction(terms) is not None,
    )


def _best(weighed: Weighed, by: Measure) -> BestAttack:
    findings = weighed.findings
    known = max(weighed.verdict.controls, key=lambda control: value_of(control, by))
    best = max(findings.attacks, key=lambda attack: value_of(attack, by), default=None)
    low, high = (None, None) if best is None else interval_of(best, by)
    return BestAttack(
        attack=None if best is None else best.name,
        value=None if best is None else value_of(best, by),
        low=low,
        high=high,
        control=known.name,
        known=value_of(known, by),
        leak=weighed.status is Status.LEAK,
    )


def _mean_auc(parts: Sequence[ModelMetrics | None]) -> float | None:
    known = [part.auc for part in parts if isinstance(part, Metrics)]
    return sum(known) / len(known) if len(known) == len(parts) else None
