"""Results of a study: a model for each combination of settings, and at Bob how good each is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, ClassVar

from taciturn.numerics.label_metrics import Added, ModelMetrics
from taciturn.numerics.symmetry import Symmetry
from taciturn.privacy.events import Statement
from taciturn.results.parties import GrowingTable, Identity, PartyFigures
from taciturn.results.serialise import EMPTY, INLINE, OMITTED, Result, Subject
from taciturn.results.training import DataFacts
from taciturn.settings.study import Study

if TYPE_CHECKING:
    from taciturn.report.blocks import Block, Page
    from taciturn.results.figures import Part


COARSE_ROWS = 2000
"""Below, the noise on the sums of a study often chooses another setting than the best."""


@dataclass(frozen=True, slots=True)
class FoldFigures:
    """Metrics of a model on the fold that it was trained without."""

    rows: int
    loss: float
    auc: float
    accuracy: float

    @classmethod
    def from_metrics(cls, metrics: ModelMetrics) -> FoldFigures:
        """The figures that are compared over folds."""
        others = (getattr(metrics, name, math.nan) for name in ("auc", "accuracy"))
        return cls(metrics.rows, metrics.loss, *others)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudiedSetting:
    """One combination of a study's values.

    ``loss``, ``auc`` and ``accuracy`` are means over the folds, weighted by their rows; without
    folds those of the held-out rows. ``behind`` is by how much its mean is worse than the best
    combination's, and ``behind_error`` the standard error of that, paired by folds. ``held_out`` is
    of the model trained on all training rows, whose file is ``model``. All figures are Bob's.

    Where no score is opened (``mutual``) there are no figures of folds. ``summed_loss`` is the mean
    over the ``judged_rows`` of a capped loss, of which the sum was opened with Laplace noise of
    scale ``noise_rows``, in units of one row's loss; ``behind_error`` is that of the noise alone.
    ``diverged`` marks a sum that no model has: it ranks last.
    """

    number: int
    values: Mapping[str, object]
    model: str | None = field(default=None, metadata=OMITTED)
    columns: int
    loss: float | None = field(default=None, metadata=OMITTED)
    auc: float | None = field(default=None, metadata=OMITTED)
    accuracy: float | None = field(default=None, metadata=OMITTED)
    behind: float | None = field(default=None, metadata=OMITTED)
    behind_error: float | None = field(default=None, metadata=OMITTED)
    folds: tuple[FoldFigures, ...] | None = field(default=None, metadata=OMITTED)
    held_out: ModelMetrics | None = field(default=None, metadata=OMITTED)
    converged: bool | None = field(default=None, metadata=OMITTED)
    suspected_wraps: int | None = field(default=None, metadata=OMITTED)
    summed_loss: float | None = field(default=None, metadata=OMITTED)
    judged_rows: int | None = field(default=None, metadata=OMITTED)
    noise_rows: float | None = field(default=None, metadata=OMITTED)
    diverged: bool | None = field(default=None, metadata=OMITTED)

    def judged_by_sum(
        self, mean: float, rows: int, noise_rows: float, *, diverged: bool
    ) -> StudiedSetting:
        """The combination with the mean of its summed loss over the rows that judge it."""
        return replace(
            self, summed_loss=mean, judged_rows=rows, noise_rows=noise_rows, diverged=diverged
        )

    @property
    def noise_error(self) -> float | None:
        """Standard deviation of the noise on ``summed_loss``; None where there is none."""
        if self.noise_rows is None or not self.judged_rows:
            return None
        return math.sqrt(2.0) * self.noise_rows / self.judged_rows

    def judged(
        self, folds: tuple[FoldFigures, ...], held_out: ModelMetrics | None
    ) -> StudiedSetting:
        """The combination with its figures: the folds', or without folds the held-out rows'."""
        judging = folds or (() if held_out is None else (FoldFigures.from_metrics(held_out),))
        return replace(
            self,
            folds=folds or None,
            held_out=held_out,
            loss=mean_of(judging, "loss"),
            auc=mean_of(judging, "auc"),
            accuracy=mean_of(judging, "accuracy"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyTable:
    """All combinations; ``best`` is the number of the one that ranks first, at Bob.

    ``models`` counts the trainings: one for each fold and one on all training rows, of every
    combination. ``choice_bits`` is what naming one of them can tell, in bits.
    """

    folds: int
    rank_by: str
    models: int
    choice_bits: float
    settings: tuple[StudiedSetting, ...]
    best: int | None = field(default=None, metadata=OMITTED)

    @classmethod
    def from_settings(cls, study: Study, settings: Sequence[StudiedSetting]) -> StudyTable:
        """The combinations in their order, with how far each is behind the best.

        The first of equals is the best; none where there are no figures.
        """
        rank_by = study.rank_by
        known = [
            setting
            for setting in settings
            if math.isfinite(_worse(setting, rank_by)) and not setting.diverged
        ]
        best = min(known, key=lambda setting: _worse(setting, rank_by), default=None)
        return cls(
            folds=study.folds,
            rank_by=rank_by,
            models=study.models,
            choice_bits=math.log2(len(study.points)),
            settings=tuple(
                setting if best is None else _behind(setting, best, rank_by) for setting in settings
            ),
            best=None if best is None else best.number,
        )

    @property
    def best_setting(self) -> StudiedSetting | None:
        """The combination that ranks first."""
        return next((setting for setting in self.settings if setting.number == self.best), None)

    @property
    def by_rank(self) -> list[StudiedSetting]:
        """The combinations, the best first."""

        def rank(setting: StudiedSetting) -> tuple[bool, float]:
            return bool(setting.diverged), math.inf if setting.behind is None else setting.behind

        return sorted(self.settings, key=rank)

    @property
    def summed(self) -> bool:
        """Whether one noisy sum judges each combination."""
        return any(setting.summed_loss is not None for setting in self.settings)

    @property
    def coarse(self) -> bool:
        """Whether so few rows judge that the noise often chooses another than the best."""
        return any(
            setting.judged_rows is not None and setting.judged_rows < COARSE_ROWS
            for setting in self.settings
        )


class _StudyResult(Result):
    __slots__ = ()

    study: StudyTable
    scores_per_row: int
    ledger: Statement | None

    def blocks(self) -> list[Block]:
        from taciturn.jobs.study.report import study_blocks

        return study_blocks(self)  # type: ignore[arg-type]  # one of the two below

    def page(self, made: str = "") -> Page:
        from taciturn.jobs.study.report import study_page

        return study_page(self, made or None)  # type: ignore[arg-type]

    def parts(self, bare: Part) -> tuple[Part, ...]:
        """One run: the best combination."""
        from taciturn.results.figures import (
            HELD_OUT,
            auc_values,
            cost_values,
            ledger_values,
            metric_values,
        )

        table, ledger, best = self.study, self.ledger, self.study.best_setting
        held_out = None if best is None else best.held_out
        seconds, crossed = self._cost()
        verdict = f"{len(table.settings)} combinations"
        entry = replace(
            bare.entry,
            **auc_values(held_out),
            label_epsilon=None if ledger is None else ledger.label_epsilon_total,
            verdict=verdict if best is None else f"{verdict}, the best is {best.number}",
            bytes=float(crossed) if crossed else None,
        )
        values = {
            **metric_values(held_out, HELD_OUT),
            **ledger_values(ledger),
            "ledger/scores of a row that Bob gets": float(self.scores_per_row),
            **cost_values(seconds),
        }
        if best is None:
            return (replace(bare, entry=entry, values=values),)
        means = {"log loss": best.loss, "AUC": best.auc}
        if best.summed_loss is not None:
            values["model/capped loss, noisy mean over rows"] = best.summed_loss
        values |= {
            f"model/{name}, mean over folds": mean
            for name, mean in means.items()
            if mean is not None
        }
        return (
            replace(bare, entry=entry, values=values, settings={**bare.settings, **best.values}),
        )

    def _cost(self) -> tuple[float, int]:
        """Seconds, and bytes that crossed."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRun(_StudyResult):
    """One side's part in a study between machines; figures and ledger are Bob's.

    ``settings`` is this side's file. ``scores_per_row`` is how many scores of a training row all
    models opened to Bob. ``symmetry`` is the worst of Bob's tests of the scores of all passes, one
    for each training, where they are exact. ``bob_alone`` and ``partner_adds`` are about the best
    combination's model on held-out rows.
    """

    kind: ClassVar[str] = "party-study"
    known_by: ClassVar[str] = "study"

    identity: Identity = field(metadata=INLINE)
    study: StudyTable
    settings: str
    scores_per_row: int
    ledger: Statement | None = field(metadata=EMPTY)
    symmetry: Symmetry | None = field(default=None, metadata=OMITTED)
    run: PartyFigures
    bob_alone: ModelMetrics | None = field(default=None, metadata=OMITTED)
    partner_adds: Added | None = field(default=None, metadata=OMITTED)
    peer_confirmed: bool | None = field(default=None, metadata=OMITTED)

    @classmethod
    def recognises(cls, record: Mapping[str, Any]) -> bool:
        """Whether a record is of this kind; a simulated study has no run."""
        return "run" in record and "study" in record

    def subject(self) -> Subject:
        """This side's rows, columns and mechanism."""
        return self.identity.subject()

    def _cost(self) -> tuple[float, int]:
        return self.run.seconds, self.run.bytes_sent + self.run.bytes_received


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedStudy(_StudyResult):
    """A study with all parties on one machine."""

    kind: ClassVar[str] = "study"
    known_by: ClassVar[str] = "workers"

    data: DataFacts = field(metadata=INLINE)
    mechanism: str
    solver: str
    scheme: str
    seed: int | None
    study: StudyTable
    scores_per_row: int
    ledger: Statement
    seconds: float
    workers: int
    notes: tuple[str, ...] = ()

    def subject(self) -> Subject:
        """The rows, both sides' columns, and the mechanism."""
        return self.data.subject(self.mechanism)

    def _cost(self) -> tuple[float, int]:
        return self.seconds, 0


def study_rows(table: StudyTable) -> GrowingTable:
    """Rows of the table for Bob's dashboard, the best first."""
    names = tuple(table.settings[0].values)
    rows = tuple(
        (
            setting.number,
            *(str(setting.values[name]) for name in names),
            setting.loss if setting.summed_loss is None else setting.summed_loss,
            setting.auc,
            getattr(setting.held_out, "auc", None),
        )
        for setting in table.by_rank
    )
    loss = "capped loss" if table.summed else "log loss"
    headings = ("model", *names, loss, "AUC", "held-out AUC")
    return GrowingTable("All combinations, the best first", headings, rows)


def _worse(figures: StudiedSetting | FoldFigures, rank_by: str) -> float:
    """The figure to rank by, of which less is better; infinity where there is none."""
    figure = figures.auc if rank_by == "auc" else figures.loss
    if isinstance(figures, StudiedSetting) and figures.summed_loss is not None:
        figure = figures.summed_loss
    if figure is None or math.isnan(figure):
        return math.inf
    return -figure if rank_by == "auc" else figure


def _behind(setting: StudiedSetting, best: StudiedSetting, rank_by: str) -> StudiedSetting:
    mean = _worse(setting, rank_by) - _worse(best, rank_by)
    if not math.isfinite(mean):
        return setting
    if setting.noise_error is not None and best.noise_error is not None:
        error = math.hypot(setting.noise_error, best.noise_error)
        return replace(setting, behind=mean, behind_error=error)
    gaps = [
        _worse(fold, rank_by) - _worse(best_fold, rank_by)
        for fold, best_fold in zip(setting.folds or (), best.folds or (), strict=True)
    ]
    if len(gaps) < 2 or not all(map(math.isfinite, gaps)):
        return replace(setting, behind=mean)
    return replace(setting, behind=mean, behind_error=stdev(gaps) / math.sqrt(len(gaps)))


def mean_of(folds: Sequence[FoldFigures], name: str) -> float:
    """The mean of a figure over folds, weighted by their rows.

    An AUC is that of the folds with rows of both classes; NaN where there are none.

    >>> mean_of([FoldFigures(1, 0.5, 0.8, 0.9), FoldFigures(3, 0.1, math.nan, 0.9)], "loss")
    0.2
    >>> mean_of([FoldFigures(1, 0.5, 0.8, 0.9), FoldFigures(3, 0.1, math.nan, 0.9)], "auc")
    0.8
    """
    known = [fold for fold in folds if not math.isnan(getattr(fold, name))]
    if not known:
        return math.nan
    rows = fmean(fold.rows for fold in known)
    return fmean(getattr(fold, name) * fold.rows / rows for fold in known)
