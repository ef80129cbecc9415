"""What a study gave: a model for each combination of settings, and at Bob how good each is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import TYPE_CHECKING, ClassVar

from taciturn.numerics.metrics import AddedAuc, Metrics
from taciturn.privacy.statement import Statement
from taciturn.results.live import GrowingTable
from taciturn.results.parties import Identity, PartyFigures
from taciturn.results.serialise import EMPTY, INLINE, OMITTED, Result, record_of
from taciturn.results.subject import Subject

if TYPE_CHECKING:
    from taciturn.report.blocks import Block, Page
    from taciturn.results.parts import Part


@dataclass(frozen=True, slots=True)
class FoldFigures:
    """How good a model is on the rows of one fold, which it was trained without."""

    rows: int
    loss: float
    auc: float
    accuracy: float

    @classmethod
    def of(cls, metrics: Metrics) -> FoldFigures:
        """Those of all figures that are compared over folds."""
        return cls(metrics.rows, metrics.loss, metrics.auc, metrics.accuracy)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudiedSetting:
    """One combination of a study's values.

    ``loss``, ``auc`` and ``accuracy`` are means over the folds, weighted by their rows; without
    folds those of the held-out rows. ``behind`` is by how much its mean is worse than the best
    combination's, and ``behind_error`` the standard error of that, paired by folds. ``held_out`` is
    of the model trained on all training rows, whose file is ``model``. All figures are Bob's.
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
    held_out: Metrics | None = field(default=None, metadata=OMITTED)
    converged: bool | None = field(default=None, metadata=OMITTED)
    suspected_wraps: int | None = field(default=None, metadata=OMITTED)


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

    @property
    def best_setting(self) -> StudiedSetting | None:
        """The combination that ranks first."""
        return next((one for one in self.settings if one.number == self.best), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRun(Result):
    """One side's part in a study between machines; figures and ledger are Bob's.

    ``scores_per_row`` is how many scores of a training row all models opened to Bob.
    ``bob_alone`` and ``partner_adds`` are about the best combination's model on held-out rows.
    """

    kind: ClassVar[str] = "party-study"
    known_by: ClassVar[str] = "study"

    identity: Identity = field(metadata=INLINE)
    study: StudyTable
    scores_per_row: int
    ledger: Statement | None = field(metadata=EMPTY)
    run: PartyFigures
    bob_alone: Metrics | None = field(default=None, metadata=OMITTED)
    partner_adds: AddedAuc | None = field(default=None, metadata=OMITTED)
    peer_confirmed: bool | None = field(default=None, metadata=OMITTED)

    def blocks(self) -> list[Block]:
        """The result as a terminal shows it."""
        from taciturn.report.study import study_blocks

        return study_blocks(self)

    def subject(self) -> Subject:
        """This side's rows, columns and mechanism."""
        return self.identity.subject()

    def parts(self, bare: Part) -> tuple[Part, ...]:
        """One run: the best combination."""
        seconds, crossed = self.run.seconds, self.run.bytes_sent + self.run.bytes_received
        return (_part(self, bare, seconds, crossed),)

    def page(self, made: str = "") -> Page:
        """The table as a page."""
        from taciturn.report.study import study_page

        return study_page(self, made or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedStudy(Result):
    """A study with all parties on one machine."""

    kind: ClassVar[str] = "study"
    known_by: ClassVar[str] = "workers"

    dataset: str | None
    mechanism: str
    solver: str
    scheme: str
    seed: int | None
    rows: int
    held_out_rows: int
    alice_columns: int
    bob_columns: int
    study: StudyTable
    scores_per_row: int
    ledger: Statement
    seconds: float
    workers: int
    notes: tuple[str, ...] = ()

    def blocks(self) -> list[Block]:
        """The result as a terminal shows it."""
        from taciturn.report.study import study_blocks

        return study_blocks(self)

    def subject(self) -> Subject:
        """The rows, both sides' columns, and the mechanism."""
        columns = {"alice": self.alice_columns, "bob": self.bob_columns}
        return Subject(self.dataset, self.mechanism, self.rows, self.held_out_rows, columns)

    def parts(self, bare: Part) -> tuple[Part, ...]:
        """One run: the best combination."""
        seconds, crossed = self.seconds, 0
        return (_part(self, bare, seconds, crossed),)

    def page(self, made: str = "") -> Page:
        """The table as a page."""
        from taciturn.report.study import study_page

        return study_page(self, made or None)


def study_rows(table: StudyTable) -> GrowingTable:
    """The table for whoever watches Bob's side; the best stands first."""
    names = tuple(table.settings[0].values)
    known = sorted(table.settings, key=lambda one: math.inf if one.behind is None else one.behind)
    rows = tuple(
        (
            one.number,
            *(str(one.values[name]) for name in names),
            one.loss,
            one.auc,
            None if one.held_out is None else one.held_out.auc,
        )
        for one in known
    )
    return GrowingTable(
        "All combinations, the best first",
        ("model", *names, "log loss", "AUC", "held-out AUC"),
        rows,
    )


def choice_bits(combinations: int) -> float:
    """The most bits that are told by naming one of so many models.

    >>> choice_bits(8)
    3.0
    """
    return math.log2(combinations)


def ranked(settings: Sequence[StudiedSetting], rank_by: str) -> tuple[StudiedSetting, ...]:
    """The combinations in their order, with how far each is behind the best.

    ``rank_by`` is ``loss``, of which less is better, or ``auc``.
    """
    best = best_of(settings, rank_by)
    if best is None:
        return tuple(settings)
    behind = (_behind(one, best, rank_by) for one in settings)
    return tuple(
        replace(one, behind=mean, behind_error=error)
        for one, (mean, error) in zip(settings, behind, strict=True)
    )


def best_of(settings: Sequence[StudiedSetting], rank_by: str) -> StudiedSetting | None:
    """The one that ranks first, and the first of those that rank alike; None where none ranks."""
    figures = {one.number: _worse(one, rank_by) for one in settings}
    known = [one for one in settings if math.isfinite(figures[one.number])]
    return min(known, key=lambda one: figures[one.number]) if known else None


def _worse(one: StudiedSetting | FoldFigures, rank_by: str) -> float:
    if rank_by == "auc":
        return math.inf if one.auc is None or math.isnan(one.auc) else -one.auc
    return math.inf if one.loss is None or math.isnan(one.loss) else one.loss


def _behind(
    one: StudiedSetting, best: StudiedSetting, rank_by: str
) -> tuple[float | None, float | None]:
    mean = _worse(one, rank_by) - _worse(best, rank_by)
    if not math.isfinite(mean):
        return None, None
    gaps = [
        _worse(own, rank_by) - _worse(other, rank_by)
        for own, other in zip(one.folds or (), best.folds or (), strict=True)
    ]
    if len(gaps) < 2 or not all(map(math.isfinite, gaps)):
        return mean, None
    return mean, stdev(gaps) / math.sqrt(len(gaps))


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


def _part(study: StudyRun | SimulatedStudy, bare: Part, seconds: float, crossed: int) -> Part:
    from taciturn.results.figures import HELD_OUT, cost_values, ledger_values, metric_values

    table, ledger = study.study, study.ledger
    best = table.best_setting
    held_out = None if best is None else best.held_out
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
