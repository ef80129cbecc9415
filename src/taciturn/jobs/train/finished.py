"""``FinishedTraining``: a session after its last message, for its journal and its result."""

from __future__ import annotations

from dataclasses import dataclass, field

from taciturn.jobs.train.plan import TrainingPlan
from taciturn.jobs.train.result import ColumnImportance, PartyMetrics, PartyRun
from taciturn.numerics.symmetry import Symmetry
from taciturn.privacy.events import Statement
from taciturn.privacy.quality_release import ToldQuality
from taciturn.results.parties import PartyFigures
from taciturn.results.training import FeatureParty


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedModel:
    """Record of a trained model until the end of its session.

    ``session`` is the name in its file; empty where none is kept. Scores are as an array store
    keeps them; None at Alice, and where there are none. ``losses`` are mean training losses by
    pass, ``row_changes`` and ``objectives`` likewise; of several penalties that share a search
    there are losses alone. ``symmetry`` is the test of the scores of all passes: it takes as long
    whatever the labels are, and the passes of all trainings would fill the disk until the end.
    ``peer_columns`` counts Alice's columns whose weights are shared, and ``loss_share`` is this
    side's share of the sum of the held-out rows' losses.
    """

    number: int
    session: str = ""
    train_scores: object = field(default=None, repr=False)
    held_out_scores: object = field(default=None, repr=False)
    losses: tuple[float, ...] = field(default=(), repr=False)
    row_changes: tuple[float, ...] = field(default=(), repr=False)
    objectives: tuple[float, ...] = field(default=(), repr=False)
    stopped: str | None = None
    suspected_wraps: int | None = None
    opened_change: float | None = None
    scores_beyond_range: int | None = None
    symmetry: Symmetry | None = None
    peer_columns: int = 0
    loss_share: int | None = field(default=None, repr=False)
    told_quality: ToldQuality | None = None
    parties: tuple[FeatureParty, ...] | None = None
    importance: tuple[ColumnImportance, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedTraining:
    """A session after its last message, for the journal: a stop must lose nothing.

    ``result`` (``PartyRun`` or ``StudyRun``) is None until nothing is left to do. ``unscored`` says
    why no score of the held-out rows was opened. ``sums`` are those that a study opened to Bob, one
    for each setting in units of one row's loss, and ``noise_rows`` is the scale of their noise.
    """

    trained: tuple[TrainedModel, ...]
    figures: PartyFigures
    ledger: Statement | None = None
    unscored: str | None = None
    sums: tuple[float, ...] = field(default=(), repr=False)
    noise_rows: float = 0.0
    result: object = None

    @property
    def assessed(self) -> bool:
        """Whether nothing is left to compute."""
        return self.result is not None


def training_run(plan: TrainingPlan, finished: FinishedTraining) -> PartyRun:
    """One side's result of one training, as far as it does not depend on labels."""
    (trained,), config = finished.trained, plan.config
    return PartyRun(
        identity=plan.identity(),
        model=str(config.path(config.output.model)),
        parties=trained.parties,
        stopped=trained.stopped,
        metrics=PartyMetrics(curve=finished.figures.curve or None),
        suspected_wraps=trained.suspected_wraps,
        opened_change=trained.opened_change,
        scores_beyond_range=trained.scores_beyond_range,
        symmetry=trained.symmetry,
        told_quality=trained.told_quality,
        held_out_unscored=finished.unscored,
        importance=trained.importance,
        ledger=finished.ledger,
        run=finished.figures,
    )
