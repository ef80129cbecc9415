"""One run, or several seeds of it: the mean of what has a mean, the largest of what is a largest.

Which figures are averaged is listed here; everything else that the runs do not share is left out of
the record's head, and ``runs`` holds it. Over several seeds an attack's ``accuracy_low`` and
``accuracy_high`` are the 95 % interval of the *mean* accuracy over the runs (Student's t), not of
one run's rows. The ends of a model's intervals, and of what the partner adds, are the means of the
runs' ends: wider than an interval of the mean, as the runs share rows. It has ``converged`` if
every run has, and ``diverged`` if any has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from statistics import fmean
from typing import Any, Generic, Protocol, TypeVar

from taciturn.numerics.metrics import AddedAuc, Metrics
from taciturn.results.audit import AttackScore, AuditRun, Control, Evidence, Findings, Membership
from taciturn.results.columns import BobSeat, mean_seat
from taciturn.results.serialise import Result, record_of
from taciturn.results.training import TrainingRun


class Trained(Protocol):
    """A run in which a model was trained."""

    @property
    def training(self) -> TrainingRun:
        """What the training gave."""

    def to_dict(self) -> dict[str, Any]:
        """The run as a JSON record."""


R = TypeVar("R", bound=Trained)
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMeans:
    """What several trainings come to: means, and of the weights' distance and bound the largest.

    Of the model's figures those have a mean that every run has.
    """

    seconds: float
    bytes_to_alice: float
    bytes_to_bob: float
    max_weight_difference: float
    weight_bound: float | None
    train: Mapping[str, float]
    test: Mapping[str, float]
    centralised: Mapping[str, float]
    bob_alone: Mapping[str, float] | None
    partner_adds: AddedAuc | None
    converged: bool | None
    diverged: bool


@dataclass(frozen=True, slots=True)
class Runs(Result, Generic[R]):
    """One run, or several seeds of it; ``version``, ``command`` and ``audited`` say what made them.

    ``audited`` is when, in UTC.
    """

    runs: tuple[R, ...] = field(repr=False)
    version: str | None = None
    command: str | None = None
    audited: str | None = field(default=None, repr=False)

    @property
    def trainings(self) -> tuple[TrainingRun, ...]:
        """The training of each run."""
        return tuple(run.training for run in self.runs)

    @property
    def first(self) -> TrainingRun:
        """The first training; settings are the same in all but for the seed."""
        return self.trainings[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """What is noted of one run, or of any of several."""
        if len(self.runs) == 1:
            return self.first.notes
        return tuple(sorted({note for training in self.trainings for note in training.notes}))

    @property
    def means(self) -> TrainingMeans:
        """What the trainings come to."""
        runs = self.trainings
        bounds = [run.weight_bound for run in runs if run.weight_bound is not None]
        alone = [run.bob_alone for run in runs]
        return TrainingMeans(
            seconds=fmean(run.seconds for run in runs),
            bytes_to_alice=fmean(run.bytes_to_alice for run in runs),
            bytes_to_bob=fmean(run.bytes_to_bob for run in runs),
            max_weight_difference=max(run.max_weight_difference for run in runs),
            weight_bound=max(bounds) if len(bounds) == len(runs) else None,
            train=_means([run.train for run in runs]),
            test=_means([run.test for run in runs]),
            centralised=_means([run.centralised for run in runs]),
            bob_alone=None if None in alone else _means([one for one in alone if one is not None]),
            partner_adds=_mean_added([run.partner_adds for run in runs]),
            converged=_all([run.converged for run in runs]),
            diverged=any(run.diverged for run in runs),
        )

    def shared(self, part: Callable[[R], V]) -> tuple[V, str]:
        """A part of the runs and whose it is: nobody's where all agree, else the first run's."""
        parts = [part(run) for run in self.runs]
        return parts[0], "" if all(one == parts[0] for one in parts) else self.scope(0)

    def scope(self, number: int) -> str:
        """Which of several runs it is, in words."""
        several = f"seed {self.trainings[number].seed}, one of {len(self.runs)} runs"
        return several if len(self.runs) > 1 else ""

    def to_dict(self) -> dict[str, Any]:
        """The record: that run's, or a summary of several with ``runs`` beside it."""
        records = [run.to_dict() for run in self.runs]
        made = {"version": self.version, "command": self.command, "audited": self.audited}
        written = {name: value for name, value in made.items() if value is not None}
        if len(records) == 1:
            return {**records[0], **written}
        alike = {
            name: value
            for name, value in records[0].items()
            if name != "verdict" and all(record[name] == value for record in records)
        }
        last = {"notes": list(self.notes), "seed": self.first.seed, "seeds": len(records)}
        return {**alike, **self._summary(), **last, "runs": records, **written}

    def _summary(self) -> dict[str, Any]:
        return record_of(self.means)


@dataclass(frozen=True, slots=True)
class AuditResult(Runs[AuditRun]):
    """What the attacks found in one run, or in several seeds of it.

    Of evidence the strongest stands for all: the best of several bounds, which fails as often as
    any of them does.
    """

    def attack(self, name: str) -> dict[str, Any]:
        """One attack's figures; KeyError if it was not run."""
        for score in self.findings.attacks:
            if score.name == name:
                return record_of(score)
        raise KeyError(name)

    @property
    def findings(self) -> Findings:
        """What was found in the run, or in the mean of several."""
        return mean_findings([run.findings for run in self.runs])

    @property
    def canary(self) -> Findings | None:
        """What was found on labels shuffled before training, where every run has such findings."""
        canaries = [run.canary for run in self.runs if run.canary is not None]
        return mean_findings(canaries) if len(canaries) == len(self.runs) else None

    @property
    def bob_seat(self) -> BobSeat | None:
        """What Bob can tell of Alice's columns, where every run was audited from his seat."""
        seats = [run.bob_seat for run in self.runs if run.bob_seat is not None]
        return mean_seat(seats) if len(seats) == len(self.runs) else None

    @property
    def evidence(self) -> Evidence | None:
        """The strongest evidence of all runs."""
        proofs = [run.evidence for run in self.runs if run.evidence is not None]
        if not proofs:
            return None
        strongest = max(proofs, key=lambda proof: proof.lower_bound)
        return replace(strongest, failure=min(1.0, sum(proof.failure for proof in proofs)))

    @property
    def membership(self) -> Membership | None:
        """Means of the figures, None where a run has none."""
        parts = [run.membership for run in self.runs if run.membership is not None]
        if len(parts) < len(self.runs):
            return None
        names = [entry.name for entry in fields(Membership)]
        means: dict[str, Any] = {name: _mean(getattr(p, name) for p in parts) for name in names}
        return Membership(**means)

    def _summary(self) -> dict[str, Any]:
        # Not super(): a dataclass with slots is another class than the one it is written in.
        record = record_of(self.means) | _scores([run.findings for run in self.runs])
        canaries = [run.canary for run in self.runs if run.canary is not None]
        if len(canaries) == len(self.runs):
            first = record_of(canaries[0])
            head = {"skipped": first["skipped"], "verdict": first["verdict"]}
            record["canary"] = head | _scores(canaries)
        if self.bob_seat is not None:
            record["bob_seat"] = record_of(self.bob_seat)
        if self.evidence is not None:
            record["evidence"] = record_of(self.evidence)
        if self.membership is not None:
            means = record_of(self.membership).items()
            record["membership"] = {name: value for name, value in means if value is not None}
        return record


def mean_findings(parts: Sequence[Findings]) -> Findings:
    """Means over runs of the attacks that the first run has; the rest is the first run's.

    So is the verdict: ``taciturn.audit.verdict`` gives that of the means.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    controls = []
    for control in first.controls:
        same = [one for part in parts for one in part.controls if one.name == control.name]
        accuracy, auc = fmean(one.accuracy for one in same), fmean(one.auc for one in same)
        controls.append(Control(control.name, accuracy, auc))
    attacks = tuple(_mean_attack(_named(score.name, parts)) for score in first.attacks)
    return replace(first, controls=tuple(controls), attacks=attacks)


def _named(name: str, parts: Sequence[Findings]) -> list[AttackScore]:
    return [score for part in parts for score in part.attacks if score.name == name]


def _mean_attack(scores: Sequence[AttackScore]) -> AttackScore:
    # An attack that applied in one run alone keeps the interval of that run's rows.
    low, high = scores[0].accuracy_low, scores[0].accuracy_high
    if len(scores) > 1:
        # Loaded here: it needs scipy, which a training does without.
        from taciturn.numerics.intervals import t_interval

        low, high = t_interval([score.accuracy for score in scores])
    names = ("rows", "accuracy", "auc", "auc_low", "auc_high", "decided", "seconds")
    means: dict[str, Any] = {name: fmean(getattr(one, name) for one in scores) for name in names}
    decided = sum(score.decided * score.rows for score in scores)
    right = sum(
        score.decided * score.rows * score.decided_correct
        for score in scores
        if score.decided_correct is not None
    )
    return replace(
        scores[0],
        **means,
        accuracy_low=low,
        accuracy_high=high,
        decided_correct=right / decided if decided else None,
        remark=f"mean of {len(scores)} runs",
    )


def _scores(parts: Sequence[Findings]) -> dict[str, Any]:
    mean = mean_findings(parts)
    attacks = [record_of(score) for score in mean.attacks]
    for record in attacks:
        if None in [score.decided_correct for score in _named(record["name"], parts)]:
            # The key keeps the place that scripts know: after the plain means.
            for name in ("decided_correct", "remark"):
                record[name] = record.pop(name)
    return {"controls": [record_of(control) for control in mean.controls], "attacks": attacks}


def _means(parts: Sequence[Metrics]) -> dict[str, float]:
    names = [entry.name for entry in fields(Metrics) if entry.name != "calibration"]
    means = {name: _mean(getattr(part, name) for part in parts) for name in names}
    return {name: mean for name, mean in means.items() if mean is not None}


def _mean_added(parts: Sequence[AddedAuc | None]) -> AddedAuc | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return AddedAuc(
        fmean(part.auc for part in known),
        fmean(part.low for part in known),
        fmean(part.high for part in known),
    )


def _all(values: Sequence[bool | None]) -> bool | None:
    if False in values:
        return False
    return None if None in values else True


def _mean(values: Iterable[float | None]) -> float | None:
    known = list(values)
    if any(value is None or math.isnan(value) for value in known):
        return None
    return fmean(value for value in known if value is not None)
