"""What a result folder has to say of each run in it: a line of the list, and every figure.

A folder has one part, or one for each mechanism that its command set side by side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from taciturn.jobs.woe.result import WoeResult
from taciturn.numerics.metrics import AddedAuc
from taciturn.results.check import CheckResult
from taciturn.results.compare import BestAttack, ComparedMechanism, Comparison
from taciturn.results.folder import ResultFolder
from taciturn.results.manifest import Manifest
from taciturn.results.parties import DryRun, PartyRun
from taciturn.results.run_list import Leakage, RunEntry
from taciturn.results.runs import AuditResult, Runs
from taciturn.results.saved import DemoResult
from taciturn.results.serialise import Result, record_of
from taciturn.results.session import SessionAudit
from taciturn.results.study import SimulatedStudy, StudyRun
from taciturn.results.training import TrainingRun
from taciturn.results.woe_audit import WoeAudit
from taciturn.runs.figures import (
    HELD_OUT,
    TRAINING,
    Values,
    cost_values,
    leakage_values,
    ledger_values,
    metric_values,
    seat_values,
)

if TYPE_CHECKING:
    from taciturn.audit.verdict import Weighed


@dataclass(frozen=True, slots=True)
class Part:
    """One run: its line, its figures by name, its settings, the result, and what made that."""

    entry: RunEntry
    values: Values = field(repr=False)
    settings: Mapping[str, object] = field(repr=False)
    result: Result = field(repr=False)
    manifest: Manifest = field(repr=False)


def parts_of(folder: ResultFolder) -> tuple[Part, ...]:
    """The runs of a result folder."""
    result = folder.result
    made = folder.manifest
    bare = Part(_bare(folder), {}, made.settings, result, made)
    match result:
        case DemoResult():
            audits = [_of_audit(bare, audit) for audit in result.runs]
            return tuple(_named(part, part.entry.mechanism or "") for part in audits)
        case Comparison():
            return tuple(_of_compared(bare, one, result) for one in result.compared)
        case AuditResult():
            return (_of_audit(bare, result),)
        case Runs():
            return (_of_training(bare, result),)
        case SessionAudit():
            return (_of_session(bare, result),)
        case PartyRun():
            return (_of_party(bare, result),)
        case DryRun():
            return (_of_dry_run(bare, result),)
        case StudyRun() | SimulatedStudy():
            return (_of_study(bare, result),)
        case CheckResult():
            return (_of_check(bare, result),)
        case WoeResult():
            return (_of_woe(bare, result),)
        case WoeAudit():
            return (_of_woe_audit(bare, result),)
        case _:
            return (bare,)


def _bare(folder: ResultFolder) -> RunEntry:
    made = folder.manifest
    return RunEntry(
        name=folder.name,
        path=str(folder.path),
        part="",
        started=made.started,
        kind=made.kind,
        private=made.private,
        version=made.version,
        dataset=made.data.name,
        mechanism=_text(made.settings.get("mechanism")),
        epsilon=_number(made.settings.get("epsilon")),
        solver=_text(made.settings.get("solver")),
        scheme=_text(made.settings.get("scheme")),
        seed=_whole(made.settings.get("seed")),
        seeds=_whole(made.settings.get("seeds")) or 1,
        rows=made.data.rows,
        held_out_rows=made.data.held_out_rows,
        auc=None,
        auc_low=None,
        auc_high=None,
        label_epsilon=None,
        leakage=None,
        verdict=None,
        seconds=made.seconds,
        bytes=None,
        forecast=False,
    )


def _of_training(bare: Part, runs: Runs[Any]) -> Part:
    first, means = runs.first, runs.means
    ledger = max(
        (run.ledger for run in runs.trainings), key=lambda ledger: ledger.label_epsilon_total
    )
    entry = replace(
        bare.entry,
        mechanism=first.mechanism,
        epsilon=first.epsilon,
        solver=first.solver,
        scheme=first.scheme,
        seed=first.seed,
        seeds=len(runs.runs),
        auc=means.test.get("auc"),
        auc_low=means.test.get("auc_low"),
        auc_high=means.test.get("auc_high"),
        label_epsilon=ledger.label_epsilon_total,
        seconds=means.seconds,
        bytes=means.bytes_to_alice + means.bytes_to_bob,
    )
    values = {
        **metric_values(means.test, HELD_OUT),
        **metric_values(means.train, TRAINING),
        **_beside(means.bob_alone, means.partner_adds, means.centralised),
        **ledger_values(ledger),
        **cost_values(
            means.seconds, _iterations(runs.trainings), means.bytes_to_alice, means.bytes_to_bob
        ),
    }
    settings = {**bare.settings, **_own_settings(first)}
    return replace(bare, entry=entry, values=values, settings=settings, result=runs)


def _of_study(bare: Part, study: StudyRun | SimulatedStudy) -> Part:
    table, ledger = study.study, study.ledger
    best = table.best_setting
    held_out = None if best is None else best.held_out
    seconds, crossed = _took(study)
    figures = {} if held_out is None else metric_values(record_of(held_out), HELD_OUT)
    entry = replace(
        bare.entry,
        auc=None if held_out is None else held_out.auc,
        auc_low=None if held_out is None else held_out.auc_low,
        auc_high=None if held_out is None else held_out.auc_high,
        label_epsilon=None if ledger is None else ledger.label_epsilon_total,
        verdict=f"{len(table.settings)} combinations"
        + ("" if best is None else f", the best is {best.number}"),
        bytes=float(crossed) if crossed else None,
    )
    over = {
        "log loss, mean over folds": None if best is None else best.loss,
        "AUC, mean over folds": None if best is None else best.auc,
    }
    known = {f"model/{name}": value for name, value in over.items() if value is not None}
    opened = {"ledger/scores of a row that Bob gets": float(study.scores_per_row)}
    values = {**figures, **known, **ledger_values(ledger), **opened, **cost_values(seconds)}
    settings = {**bare.settings, **({} if best is None else best.values)}
    return replace(bare, entry=entry, values=values, settings=settings)


def _took(study: StudyRun | SimulatedStudy) -> tuple[float, int]:
    """Seconds, and the bytes that crossed between machines."""
    if isinstance(study, SimulatedStudy):
        return study.seconds, 0
    return study.run.seconds, study.run.bytes_sent + study.run.bytes_received


def _iterations(runs: tuple[TrainingRun, ...]) -> float:
    return sum(run.iterations for run in runs) / len(runs)


def _own_settings(run: TrainingRun) -> dict[str, object]:
    return {"mechanism": run.mechanism, "epsilon": run.epsilon, "solver": run.solver}


def _beside(
    alone: Mapping[str, float] | None, adds: AddedAuc | None, centralised: Mapping[str, float]
) -> Values:
    parts = {
        "AUC, Bob alone": (alone or {}).get("auc"),
        "the partner adds to the AUC": None if adds is None else adds.auc,
        "AUC, in one place": centralised.get("auc"),
    }
    known = {name: value for name, value in parts.items() if value is not None}
    return {f"model/{name}": value for name, value in known.items() if not math.isnan(value)}


def _of_audit(bare: Part, audit: AuditResult) -> Part:
    # Loaded here: a verdict needs what an audit needs, and a list of trainings does without.
    from taciturn.audit.verdict import conclude

    part, conclusion = _of_training(bare, audit), conclude(audit)
    true = _leakage(conclusion.run, shuffled=audit.first.permute_labels)
    shuffled = None if conclusion.canary is None else _leakage(conclusion.canary, shuffled=True)
    proof = {} if conclusion.evidence is None else _proof(conclusion.evidence.lower_bound)
    entry = replace(part.entry, leakage=shuffled or true, verdict=conclusion.headline)
    values = {
        **part.values,
        **leakage_values(true),
        **leakage_values(shuffled),
        **proof,
        **seat_values(audit.bob_seat),
    }
    return replace(part, entry=entry, values=values)


def _proof(bound: float) -> Values:
    return {"leakage/epsilon that guesses prove": bound}


def _leakage(weighed: Weighed, *, shuffled: bool) -> Leakage:
    from taciturn.audit.verdict import Status

    verdict = weighed.verdict
    value = None if verdict.attack is None else verdict.value
    low, high = verdict.interval
    return Leakage(
        labels="shuffled" if shuffled else "true",
        figure=verdict.figure,
        attack=None if verdict.attack is None else verdict.attack.name,
        value=value,
        low=None if value is None else low,
        high=None if value is None else high,
        control=verdict.control.name,
        known=verdict.known,
        beyond=None if value is None else value - verdict.known,
        shown=weighed.status in (Status.LEAK, Status.REFUTED),
    )


def _of_session(bare: Part, audit: SessionAudit) -> Part:
    from taciturn.audit.verdict import before_judgement, conclude_columns_of, conclude_session

    recording = audit.recording
    ledger = None if audit.judgement is None else audit.judgement.ledger
    entry = replace(
        bare.entry,
        mechanism=recording.mechanism,
        label_epsilon=None if ledger is None else ledger.label_epsilon_total,
    )
    values = {**ledger_values(ledger), **seat_values(audit.bob_seat)}
    conclusion = None if audit.seat == "bob" else conclude_session(audit)
    if conclusion is None:
        summary = conclude_columns_of(audit) if audit.seat == "bob" else before_judgement(audit)
        entry = replace(entry, verdict=summary.headline)
        return replace(bare, entry=entry, values=values)
    true = _leakage(conclusion.run, shuffled=False)
    shuffled = None if conclusion.canary is None else _leakage(conclusion.canary, shuffled=True)
    entry = replace(entry, leakage=shuffled or true, verdict=conclusion.headline)
    values = {**values, **leakage_values(true), **leakage_values(shuffled)}
    return replace(bare, entry=entry, values=values)


def _of_compared(bare: Part, one: ComparedMechanism, whole: Comparison) -> Part:
    cost = one.estimate
    entry = replace(
        bare.entry,
        part=_spelled(one),
        mechanism=one.mechanism,
        epsilon=one.epsilon,
        solver=one.solver,
        scheme=whole.scheme,
        seed=whole.seed,
        seeds=whole.seeds,
        auc=one.auc,
        label_epsilon=one.label_epsilon_total,
        leakage=_best(one.shuffled, whole, shuffled=True),
        verdict=None,
        seconds=cost.seconds,
        bytes=float(cost.bytes_to_alice + cost.bytes_to_bob),
        forecast=True,
    )
    model = {
        f"AUC, {HELD_OUT}": one.auc,
        f"accuracy, {HELD_OUT}": one.accuracy,
        "AUC, Bob alone": whole.bob_alone_auc,
        "AUC, in one place": whole.centralised_auc,
    }
    values = {
        **{f"model/{name}": value for name, value in model.items() if value is not None},
        "ledger/label epsilon, total": one.label_epsilon_total,
        **leakage_values(entry.leakage),
        **leakage_values(_best(one.real, whole, shuffled=False)),
        **cost_values(cost.seconds, cost.iterations, cost.bytes_to_alice, cost.bytes_to_bob),
    }
    own = {"mechanism": one.mechanism, "epsilon": one.epsilon, "solver": one.solver}
    return replace(bare, entry=entry, values=values, settings={**bare.settings, **own})


def _spelled(one: ComparedMechanism) -> str:
    return one.mechanism if one.epsilon is None else f"{one.mechanism}:{one.epsilon:g}"


def _best(best: BestAttack, whole: Comparison, *, shuffled: bool) -> Leakage:
    return Leakage(
        labels="shuffled" if shuffled else "true",
        figure=whole.ranked_by,
        attack=best.attack,
        value=best.value,
        low=best.low,
        high=best.high,
        control=best.control,
        known=best.known,
        beyond=None if best.value is None else best.value - best.known,
        shown=best.leak,
    )


def _of_party(bare: Part, run: PartyRun) -> Part:
    who, figures, held_out = run.identity, run.run, run.metrics.held_out
    ledger = run.ledger
    entry = replace(
        bare.entry,
        mechanism=who.mechanism,
        scheme=who.scheme,
        auc=None if held_out is None else _or_none(held_out.auc),
        auc_low=None if held_out is None else _or_none(held_out.auc_low),
        auc_high=None if held_out is None else _or_none(held_out.auc_high),
        label_epsilon=None if ledger is None else ledger.label_epsilon_total,
        seconds=figures.seconds,
        bytes=float(figures.bytes_sent + figures.bytes_received),
    )
    sent, received = figures.bytes_sent, figures.bytes_received
    to_alice, to_bob = (received, sent) if who.role == "alice" else (sent, received)
    alone = None if run.bob_alone is None else {"auc": run.bob_alone.auc}
    values = {
        **metric_values(held_out, HELD_OUT),
        **metric_values(run.metrics.train, TRAINING),
        **_beside(alone, run.partner_adds, {}),
        **ledger_values(ledger),
        **cost_values(figures.seconds, figures.iterations, to_alice, to_bob),
    }
    return replace(bare, entry=entry, values=values)


def _of_dry_run(bare: Part, run: DryRun) -> Part:
    ledger, cost = run.outlook.ledger, run.estimate
    entry = replace(
        bare.entry,
        mechanism=run.identity.mechanism,
        scheme=run.identity.scheme,
        label_epsilon=None if ledger is None else ledger.label_epsilon_total,
        seconds=None if cost is None else cost.seconds,
        bytes=None if cost is None else float(cost.bytes_to_alice + cost.bytes_to_bob),
        forecast=True,
    )
    values = ledger_values(ledger)
    if cost is not None:
        crossed = (cost.bytes_to_alice, cost.bytes_to_bob)
        values |= cost_values(cost.seconds, cost.iterations, *crossed)
    return replace(bare, entry=entry, values=values)


def _of_check(bare: Part, check: CheckResult) -> Part:
    facts = check.facts
    entry = replace(
        bare.entry,
        label_epsilon=facts.label_epsilon_total,
        verdict=check.verdict,
        rows=facts.rows,
    )
    values = {
        "ledger/label epsilon, total": facts.label_epsilon_total,
        "ledger/label epsilon, one release": facts.label_epsilon_per_release,
        "ledger/claimed epsilon, one release": facts.claimed_epsilon_per_release,
    }
    return replace(bare, entry=entry, values=values)


def _of_woe(bare: Part, woe: WoeResult) -> Part:
    known = {column.name: column.iv for column in woe.columns if column.iv is not None}
    best = max(known, key=known.__getitem__, default="")
    entry = replace(
        bare.entry,
        mechanism=None,
        solver=None,
        scheme=woe.scheme,
        label_epsilon=woe.label_epsilon,
        verdict=f"{best} tells most, IV {known[best]:.3f}" if known else "sums under Bob's key",
        bytes=float(woe.bytes_to_alice + woe.bytes_to_bob),
    )
    values = {f"model/information value, {name}": value for name, value in known.items()}
    values |= {"ledger/counts that Bob gets": float(woe.counts_told)}
    values |= cost_values(woe.seconds, None, woe.bytes_to_alice, woe.bytes_to_bob)
    return replace(bare, entry=entry, values=values)


def _of_woe_audit(bare: Part, audit: WoeAudit) -> Part:
    cut = audit.fineness[0]
    attack = cut.shuffled[-1]
    leakage = Leakage(
        labels="shuffled",
        figure="AUC",
        attack=attack.name,
        value=attack.auc,
        low=attack.auc_low,
        high=attack.auc_high,
        control=audit.control.name,
        known=audit.control.auc,
        beyond=attack.auc - audit.control.auc,
        shown=attack.auc_low > audit.control.auc,
    )
    entry = replace(bare.entry, mechanism=None, solver=None, leakage=leakage, verdict=audit.verdict)
    return replace(bare, entry=entry, values=leakage_values(leakage))


def _named(part: Part, name: str) -> Part:
    return replace(part, entry=replace(part.entry, part=name))


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> float | None:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain else None  # type: ignore[arg-type]


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
