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
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

from taciturn.numerics.convergence import Convergence
from taciturn.numerics.label_metrics import Added, ModelMetrics
from taciturn.results.reading import read, refusal
from taciturn.results.record_schema import object_schema, properties
from taciturn.results.serialise import Result, Subject, record_of
from taciturn.results.training import TrainingRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from taciturn.report.blocks import Block
    from taciturn.results.figures import Part

_MADE = {name: {"type": "string"} for name in ("version", "command", "audited")}


class Trained(Protocol):
    """A run in which a model was trained."""

    @property
    def training(self) -> TrainingRun:
        """Result of the training."""

    def to_dict(self) -> dict[str, Any]:
        """The run as a JSON record."""


R = TypeVar("R", bound=Trained)

V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMeans:
    """Means over several trainings; the weights' distance and bound are maxima.

    Of the model's figures those have a mean that every run has.
    """

    seconds: float
    bytes_to_alice: float
    bytes_to_bob: float
    max_weight_difference: float | None
    weight_bound: float | None
    train: Mapping[str, float]
    test: Mapping[str, float]
    centralised: Mapping[str, float]
    bob_alone: Mapping[str, float] | None
    partner_adds: Added | None
    converged: bool | None
    diverged: bool


@dataclass(frozen=True, slots=True)
class Runs(Result, Generic[R]):
    """One run, or several seeds of it; ``version``, ``command`` and ``audited`` say what made them.

    ``audited`` is when, in UTC.
    """

    kind: ClassVar[str] = "train"
    known_by: ClassVar[str] = "centralised"
    run_kind: ClassVar[type[Any]] = TrainingRun

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
        """Notes of one run, or of any of several."""
        if len(self.runs) == 1:
            return self.first.notes
        return tuple(sorted({note for training in self.trainings for note in training.notes}))

    @property
    def means(self) -> TrainingMeans:
        """Means over the trainings."""
        runs = self.trainings
        compared = [run.comparison for run in runs]
        bounds = _known(comparison.weight_bound for comparison in compared)
        alone = [run.metrics.bob_alone for run in runs]
        return TrainingMeans(
            seconds=fmean(run.cost.seconds for run in runs),
            bytes_to_alice=fmean(run.cost.bytes_to_alice for run in runs),
            bytes_to_bob=fmean(run.cost.bytes_to_bob for run in runs),
            max_weight_difference=max(
                _known(comparison.max_weight_difference for comparison in compared), default=None
            ),
            weight_bound=max(bounds) if len(bounds) == len(runs) else None,
            train=_means([run.metrics.train for run in runs]),
            test=_means([run.metrics.test for run in runs]),
            centralised=_means(_known(comparison.centralised for comparison in compared)),
            bob_alone=None if None in alone else _means(_known(alone)),
            partner_adds=_mean_added([run.metrics.partner_adds for run in runs]),
            converged=self.convergence.converged,
            diverged=bool(self.convergence.diverged),
        )

    @property
    def convergence(self) -> Convergence:
        """Whether all runs have converged, or any has diverged; their largest last changes."""
        runs = [run.convergence for run in self.trainings]
        return Convergence(
            converged=_all([run.converged for run in runs]),
            diverged=any(run.diverged for run in runs),
            last_change=max(_known(run.last_change for run in runs), key=abs, default=None),
            reason=runs[0].reason,
            row_change=max(_known(run.row_change for run in runs), default=None),
        )

    def shared(self, getter: Callable[[R], V]) -> tuple[V, str]:
        """A value of the runs, and its scope: empty where all runs agree, else the first run."""
        parts = [getter(run) for run in self.runs]
        return parts[0], "" if all(part == parts[0] for part in parts) else self.scope(0)

    def scope(self, number: int) -> str:
        """Name of one of several runs."""
        several = f"seed {self.trainings[number].seed}, one of {len(self.runs)} runs"
        return several if len(self.runs) > 1 else ""

    def to_dict(self) -> dict[str, Any]:
        """Record of the run, or a summary of several with their list in ``runs``."""
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

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read one run, or several seeds of it, with means computed anew."""
        made = [record.get(name) for name in _MADE]
        if not all(value is None or isinstance(value, str) for value in made):
            raise refusal("version, command or audited", "is not a text")
        fields_given = {name: value for name, value in record.items() if name not in _MADE}
        listed = fields_given.get("runs")
        if not isinstance(listed, list):
            return cls((read(cls.run_kind, fields_given),), *made)
        if len(listed) < 2 or fields_given.get("seeds") != len(listed):
            raise refusal("runs", "does not hold as many as seeds says")
        runs = [read(cls.run_kind, run, f"runs[{number}]") for number, run in enumerate(listed)]
        return cls(tuple(runs), *made)

    @classmethod
    def schemas(cls, shared: dict[str, Any]) -> dict[str, Any]:
        """The schema of one run, and that of several seeds."""
        means, always = properties(TrainingMeans, shared)
        known = properties(cls.run_kind, shared)[0] | means | cls._mean_schemas(shared)
        several = {
            "seeds": {"type": "integer", "minimum": 2},
            "runs": {"type": "array", "items": {"$ref": f"#/$defs/{cls.kind}"}, "minItems": 2},
        }
        return {
            cls.kind: object_schema(cls.run_kind, shared, **_MADE),
            f"{cls.kind}-seeds": {
                "description": "Several seeds: what runs share, means, and the runs themselves.",
                "type": "object",
                "properties": {**known, **several, **_MADE},
                "required": [*always, "notes", "seed", *several],
                "additionalProperties": False,
            },
        }

    @classmethod
    def _mean_schemas(cls, shared: dict[str, Any]) -> dict[str, Any]:
        """Schemas of what has another form in a mean than in a run."""
        return {}

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        from taciturn.report.training import training_blocks

        return training_blocks(self)

    def table_rows(self) -> list[dict[str, Any]]:
        """One row for each set of rows that was scored."""
        return [
            {"seed": run.seed, "scored": scored, **_plain_figures(record_of(metrics))}
            for run in self.trainings
            for scored, metrics in (
                ("training rows", run.metrics.train),
                ("held-out rows", run.metrics.test),
                ("held-out rows, centralised training", run.comparison.centralised),
            )
            if metrics is not None
        ]

    def figure(self) -> Figure:
        """Predictions against what happened, on the held-out rows."""
        from taciturn.report.plots import calibration_figure

        return calibration_figure(self.first.metrics.test)

    def subject(self) -> Subject:
        """The rows, both sides' columns, and the mechanism."""
        return self.first.data.subject(self.first.agreement.mechanism)

    def parts(self, bare: Part) -> tuple[Part, ...]:
        """One run, with the means of several seeds."""
        from taciturn.results import figures as f

        first, means = self.first, self.means
        ledger = max(
            (run.ledger for run in self.trainings), key=lambda ledger: ledger.label_epsilon_total
        )
        entry = replace(
            bare.entry,
            mechanism=first.agreement.mechanism,
            epsilon=first.agreement.epsilon,
            solver=first.agreement.solver.name,
            scheme=first.agreement.scheme,
            seed=first.seed,
            seeds=len(self.runs),
            auc=means.test.get("auc"),
            auc_low=means.test.get("auc_low"),
            auc_high=means.test.get("auc_high"),
            label_epsilon=ledger.label_epsilon_total,
            seconds=means.seconds,
            bytes=means.bytes_to_alice + means.bytes_to_bob,
        )
        iterations = fmean(run.cost.iterations for run in self.trainings)
        values = {
            **f.metric_values(means.test, f.HELD_OUT),
            **f.metric_values(means.train, f.TRAINING),
            **f.reference_values(means.bob_alone, means.partner_adds, means.centralised),
            **f.ledger_values(ledger),
            **f.cost_values(means.seconds, iterations, means.bytes_to_alice, means.bytes_to_bob),
        }
        training = {
            "mechanism": first.agreement.mechanism,
            "epsilon": first.agreement.epsilon,
            "solver": first.agreement.solver.name,
        }
        settings = {**bare.settings, **training}
        return (replace(bare, entry=entry, values=values, settings=settings, result=self),)


def _plain_figures(metrics: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metrics.items() if not isinstance(value, list | dict)}


def _means(parts: Sequence[ModelMetrics]) -> dict[str, float]:
    if not parts:
        return {}
    names = [one.name for one in fields(parts[0]) if one.name not in ("calibration", "family")]
    means = {name: mean_or_none(getattr(part, name) for part in parts) for name in names}
    return {name: mean for name, mean in means.items() if mean is not None}


def _mean_added(parts: Sequence[Added | None]) -> Added | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    names = [entry.name for entry in fields(known[0])]
    return type(known[0])(*(fmean(getattr(part, name) for part in known) for name in names))


def _known(values: Iterable[V | None]) -> list[V]:
    return [value for value in values if value is not None]


def _all(values: Sequence[bool | None]) -> bool | None:
    if False in values:
        return False
    return None if None in values else True


def mean_or_none(values: Iterable[float | None]) -> float | None:
    """The mean; None where one of the values is missing or not a number."""
    known = list(values)
    if any(value is None or math.isnan(value) for value in known):
        return None
    return fmean(value for value in known if value is not None)
