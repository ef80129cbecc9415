"""``StudyJob``: one side of a study: several trainings over one link, with one journal.

Running the job again resumes in the middle of whichever model was being trained. A model that is
trained is on the disk before the journal forgets how it was made. Alice learns how many models
there are, which the agreement says, and nothing of how good one is: Bob evaluates them after the
connection to her is closed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.engine.callbacks import Callbacks
from taciturn.engine.exposure import OpenedScores
from taciturn.engine.study import StudyModel
from taciturn.errors import BudgetExceeded, ConfigError, LocalProtocolError, TaciturnError
from taciturn.files import (
    private_folder,
    reporting_write_errors,
    require_writable,
    to_json,
    write_private,
)
from taciturn.jobs.base import Job
from taciturn.jobs.resumable import JournaledSession
from taciturn.jobs.study.ending import StudyEnded, Trained
from taciturn.jobs.study.evaluation import Assessment
from taciturn.jobs.study.use import set_aside_models
from taciturn.jobs.train import LINGER_SECONDS, TrainingSide, require_mechanism
from taciturn.parallel import one_thread
from taciturn.party.compute import engine_of
from taciturn.party.config import PartyConfig
from taciturn.party.consent.score_budget import ScoreCharge
from taciturn.party.keep import Kept
from taciturn.party.link import TRAINING
from taciturn.party.log import Figures, Log
from taciturn.party.model_file import model_share, save_model, suspected_wraps
from taciturn.party.side import TrainingInputs
from taciturn.party.study_plan import StudyPlan
from taciturn.party.tables import PartyTables
from taciturn.privacy.statement import Statement
from taciturn.protocol.events import Boundary, Event, PartDone, Progress
from taciturn.protocol.party import PartyResult
from taciturn.protocol.state import Load as LoadArray
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import ONLY, Program
from taciturn.protocol.study import (
    ModelBegun,
    ModelTrained,
    Resumption,
    compare_studies,
    study_program,
)
from taciturn.results.estimate import Estimate
from taciturn.results.live import Stage, Stages
from taciturn.results.outlook import Outlook
from taciturn.results.study import (
    StudiedSetting,
    StudyRun,
    StudyTable,
    choice_bits,
    study_rows,
)
from taciturn.rng import Entropy, KeyedEntropy
from taciturn.settings.study import Study

if TYPE_CHECKING:
    from taciturn.crypto.bfv.workers import Engine
    from taciturn.party.bob import BobSide
    from taciturn.party.consent.label_budget import LabelCharge
    from taciturn.party.shelf import SealedShelf

TABLE_FILE = "study.json"


@dataclass(frozen=True, slots=True)
class StudyJob(Job[StudyRun]):
    """Train all models of a study, or resume; ``fresh`` discards an unfinished session."""

    fresh: bool = False
    purpose = TRAINING
    farewell_seconds = LINGER_SECONDS

    def prepare(self, config: PartyConfig) -> StudySide:
        """Read this side's table and plan the trainings."""
        require_mechanism(config)
        side = StudySide(config, fresh=self.fresh)
        # Before hours of work, and not after the first model.
        with reporting_write_errors(side.models_folder, "folder of models"):
            private_folder(side.models_folder)
        require_writable(side.models_folder / TABLE_FILE)
        return side


class StudySide(TrainingSide[StudyEnded, StudyRun]):
    """One side of a study."""

    def __init__(self, config: PartyConfig, *, fresh: bool = False) -> None:
        study = config.study
        if study is None:
            raise ConfigError("there is no [study] in the file", where=config.where)
        self.study: Study = study
        self._whole = config
        self._engine: Engine | None = None
        self._scores: dict[int, LoadArray] = {}
        super().__init__(config.at(study.points[0]), fresh=fresh)

    def _read_tables(self, config: PartyConfig) -> PartyTables:
        tables = super()._read_tables(config)
        self.plan = StudyPlan.of(self._whole, self.study, tables)
        return tables

    def begin(self, log: Log, callbacks: Callbacks) -> None:
        """Log what the preparation found, and how many models there are."""
        super().begin(log, callbacks)
        combinations, models = len(self.study.points), self.study.models
        log("note", about=f"a study: {combinations} combinations, {models} models in all")

    @property
    def models_folder(self) -> Path:
        """Where the models go."""
        return self.config.path(self.config.output.models_folder)

    def model_path(self, model: StudyModel) -> Path:
        """The file of a combination's model."""
        return self.models_folder / f"model-{model.point.number:0{self._digits}d}.json"

    @property
    def _digits(self) -> int:
        return max(2, len(str(len(self.study.points))))

    def opening(self) -> Program[None]:
        """The first words of a study."""
        peers = tuple(self.config.parties) if self.config.role == "bob" else ()
        rows = self.plan.tables.train
        return compare_studies(self.config.role, self.study.canonical(), rows, peers or (ONLY,))

    @contextmanager
    def at_work(self, config: PartyConfig, log: Log) -> Iterator[None]:
        """With this side's engine, for every model."""
        with engine_of(self.config, log) as self._engine:
            try:
                yield
            finally:
                self._engine = None

    def inputs_of(self, model: StudyModel, kept: Kept) -> TrainingInputs:
        """What this side brings to one training."""
        return self.plan.side(model, self._engine, kept.scratch)

    @property
    def opened(self) -> OpenedScores:
        """The scores that all trainings open to Bob."""
        return self.plan.scores

    def outlook(self) -> Outlook:
        """What all trainings will cost, and disclose."""
        return self.plan.outlook()

    def estimate(self, peer_columns: int, widths: tuple[int, ...]) -> Estimate | None:
        """That of one training, times the passes over rows that all of them take."""
        single = super().estimate(peer_columns, widths)
        return None if single is None else self.plan.of_all(single)

    def facts(self) -> dict[str, Any]:
        """Those of a training, and the study."""
        return {**super().facts(), **self.plan.facts()}

    def planned_ledger(self) -> Statement:
        """What labels will pay for all models together."""
        return self.plan.ledger().statement()

    def ledger_refusal(self, ledger: Statement) -> TaciturnError | None:
        """Why Bob's file does not accept these releases; None where it does."""
        problem, budget = super().ledger_refusal(ledger), self.config.privacy.budget
        if problem is None and budget is not None and ledger.label_epsilon_total > budget:
            return BudgetExceeded(
                f"all models of the study together cost a label's epsilon of "
                f"{ledger.label_epsilon_total:g}, and the budget is {budget:g}",
                setting="budget",
                hint="try fewer values, or raise the budget; nothing was sent",
            )
        return problem

    def score_charge(self, session: str) -> ScoreCharge:
        """The scores that all models open to Bob, of each row."""
        return self.plan.score_charge(session)

    def label_charge(self, session: str) -> LabelCharge:
        """What all models release of each label."""
        return self.plan.label_charge(session)

    def execute(self, session: JournaledSession) -> StudyEnded:
        """Train all models, and write them."""
        return _Models.of(self, session).run()

    def to_record(self, outcome: StudyEnded, kept: Kept) -> bytes:
        """The outcome for the journal."""
        self._recall(outcome.trained, kept.results)
        return outcome.to_bytes()

    def from_record(self, record: bytes, kept: Kept) -> StudyEnded:
        """The outcome from the journal."""
        ended = StudyEnded.of_bytes(record)
        self._recall(ended.trained, kept.results)
        return ended

    def _recall(self, trained: tuple[Trained, ...], shelf: SealedShelf) -> None:
        self._scores = {
            one.number: shelf.get(one.scores) for one in trained if one.scores is not None
        }

    def scores_of(self, model: StudyModel) -> FloatArray | None:
        """Bob's scores of the rows that judge a model; None where there are none."""
        load = self._scores.get(model.number)
        return None if load is None else load()

    def table(self) -> StudyTable:
        """The combinations with their models, and no figure."""
        study = self.study
        settings = tuple(
            StudiedSetting(
                number=model.point.number,
                values=model.point.values,
                model=str(self.model_path(model)),
                columns=len(self.tables.train.columns),
            )
            for model in self.plan.models
            if model.fold is None
        )
        return StudyTable(
            folds=study.folds,
            rank_by=study.rank_by,
            models=study.models,
            choice_bits=choice_bits(len(study.points)),
            settings=settings,
        )

    def assess(self, outcome: StudyEnded, entropy: KeyedEntropy) -> StudyEnded:
        """Bob's figures of every model, and which is best."""
        with np.errstate(over="ignore", invalid="ignore"), one_thread():
            run = Assessment(self, outcome).run()
        self.callbacks.publish(study_rows(run.study))
        return StudyEnded(run)

    def conclude(self, outcome: StudyEnded, *, confirmed: bool) -> StudyRun:
        """The result, which is written beside the models."""
        self.clear_prepared()
        result = replace(outcome.run, peer_confirmed=confirmed)
        write_private(self.models_folder / TABLE_FILE, to_json(result.to_dict()) + "\n")
        self.log("study written", file=f"{self.config.output.models_folder}/{TABLE_FILE}")
        return result


@dataclass(slots=True, repr=False)
class _Models:
    """All trainings of a study, from the checkpoint to the last model's file.

    ``spent`` is Bob's ledger of the model under way at the checkpoint.
    """

    side: StudySide
    session: JournaledSession
    figures: Figures
    resume: Resumption | None = None
    spent: dict[str, Any] | None = None
    trained: list[Trained] = field(default_factory=list)
    _inputs: TrainingInputs | None = None
    _bob: BobSide | None = None
    _losses: Figures | None = None
    _kept_losses: dict[str, Any] | None = None
    _number: int = 0

    @classmethod
    def of(cls, side: StudySide, session: JournaledSession) -> _Models:
        figures, kept, body = (
            Figures(None, side.plan.passes, side.log),
            session.kept,
            session.checkpoint,
        )
        session.follow(figures)
        if body is None:
            return cls(side, session, figures)
        trained = [Trained.of_json(values) for values in body["trained"]]
        for one in trained:
            if one.scores is not None:
                # Now, rather than when the last model is trained.
                kept.results.get(one.scores)
        state = TrainingState.of_bytes(body["state"].encode(), kept.shelf)
        resume = Resumption(int(body["number"]), state)
        models = cls(side, session, figures, resume, body["ledger"], trained)
        models._kept_losses = body["losses"]
        return models

    def run(self) -> StudyEnded:
        """Train every model and write its file; what depends on labels is left for later."""
        side, meeting = self.side, self.session.meeting
        set_aside_models(side.models_folder, meeting.name)
        with reporting_write_errors(side.models_folder, "folder of models"):
            private_folder(side.models_folder)
        models = [self._program_of(model) for model in side.plan.models]
        program = study_program(side.opening(), models, self.resume)
        self.session.execute(program, self._observe, self._freeze)
        side.log("all models of the study are trained", models=len(models))
        bobs = side.config.role == "bob"
        run = StudyRun(
            identity=side.inputs.identity(),
            study=side.table(),
            scores_per_row=side.plan.scores.per_row,
            ledger=side.planned_ledger() if bobs else None,
            run=self.session.figures(self.figures),
        )
        return StudyEnded(run, tuple(self.trained), meeting.name, assessed=not bobs)

    def _program_of(
        self, model: StudyModel
    ) -> Callable[[TrainingState | None], Program[PartyResult]]:
        """What trains one model once it is due: until then nothing of it is made."""

        def begin(state: TrainingState | None) -> Program[PartyResult]:
            entropy = self.session.entropy.fork(f"model {model.number}")
            self._begin(model, state, entropy)
            return self._current().program(entropy, self._bob, state, self.session.kept.scratch)

        return begin

    def _begin(self, model: StudyModel, state: TrainingState | None, entropy: Entropy) -> None:
        self._number = model.number
        self._inputs = inputs = self.side.inputs_of(model, self.session.kept)
        self._bob = inputs.bob_side(entropy, None if state is None else self.spent)
        labels = inputs.tables.labels
        per_epoch, weights = model.terms.per_epoch(model.rows), model.terms.agreement.class_weight
        self._losses = Figures(labels, per_epoch, self.side.log, weights)
        if state is not None and self._kept_losses is not None:
            self._losses.restore(self._kept_losses)

    def _current(self) -> TrainingInputs:
        if self._inputs is None:
            raise LocalProtocolError("no model of the study is being trained")
        return self._inputs

    def _observe(self, event: Event) -> None:
        if isinstance(event, ModelTrained):
            self._keep(event)
        elif isinstance(event, ModelBegun):
            self._tell_stage(event.number)
            self.side.callbacks.observe(event)
        elif isinstance(event, Progress | PartDone):
            self._advance(event)
        elif isinstance(event, Boundary):
            self._pass(event)
        else:
            self.side.callbacks.observe(event)

    def _tell_stage(self, done: int) -> None:
        """Publishes how many models are trained; no figure of one, which depends on labels."""
        stage = Stage("model", done, len(self.side.plan.models))
        self.side.callbacks.publish(Stages((stage,)))

    def _pass(self, event: Boundary) -> None:
        if self.side.config.role == "alice":
            # Her program says where she stands, and not out of how many.
            model = self.side.plan.models[self._number]
            self._advance(Progress(event.state.iteration, model.passes))

    def _advance(self, event: Progress | PartDone) -> None:
        """How far the whole study is; losses are the model's own."""
        before = sum(model.passes for model in self.side.plan.models[: self._number])
        done, total = before + event.done, self.side.plan.passes
        if isinstance(event, PartDone):
            self.side.callbacks.observe(replace(event, done=done, total=total))
            return
        if self._losses is not None:
            self._losses.observe(event)
        whole = Progress(done, total)
        self.figures.observe(whole)
        self.side.callbacks.observe(whole)

    def _keep(self, event: ModelTrained) -> None:
        """A model is trained: its file is written, and what is to be assessed is put away."""
        side, inputs = self.side, self._current()
        model, result = side.plan.models[event.number], event.result
        if model.fold is None:
            name = f"{self.session.meeting.name} model {model.point.number}"
            session = hashlib.sha256(name.encode()).hexdigest()[:32]
            study = {
                "model": model.point.number,
                "models": len(side.study.points),
                "session": self.session.meeting.name,
                "values": json.loads(json.dumps(dict(model.point.values))),
                "used": False,
            }
            share = model_share(inputs, self._bob, result, session, study)
            save_model(share, side.model_path(model), side.log)
        self._advance(Progress(result.trained.iterations, model.passes))
        scores = result.held_out_scores
        kept = (
            None
            if scores is None
            else self.session.kept.results.put(f"scores-{event.number}", scores)
        )
        losses = () if self._losses is None else _losses_of(self._losses)
        wraps = suspected_wraps(model.terms, result.trained)
        self.trained.append(Trained(event.number, kept, losses, wraps))
        fold = "all rows" if model.fold is None else f"fold {model.fold + 1}"
        side.log("model trained", model=model.point.number, on=fold, number=event.number + 1)
        self._kept_losses = None
        self._tell_stage(event.number + 1)
        side.callbacks.observe(event)

    def _freeze(self, at: TrainingState) -> dict[str, Any]:
        """What a checkpoint holds; long arrays are on the disk before it is."""
        shelf = _Prefixed(self.session.kept.shelf, f"model-{self._number}-")
        return {
            "number": self._number,
            "state": at.to_bytes(shelf).decode("ascii"),
            "ledger": None if self._bob is None else self._bob.ledger.to_json(),
            "losses": None if self._losses is None else self._losses.to_json(),
            "trained": [one.to_json() for one in self.trained],
        }


@dataclass(frozen=True, slots=True)
class _Prefixed:
    # Models of a study have arrays of the same names.
    shelf: SealedShelf
    prefix: str

    def put(self, name: str, values: FloatArray) -> Any:  # noqa: ANN401 - JSON
        return self.shelf.put(f"{self.prefix}{name}", values)

    def get(self, kept: Any) -> LoadArray:  # noqa: ANN401 - JSON
        return self.shelf.get(kept)


def _losses_of(figures: Figures) -> tuple[float, ...]:
    points = (point.get("train_loss") for point in figures.curve)
    return tuple(float(loss) for loss in points if loss is not None)
