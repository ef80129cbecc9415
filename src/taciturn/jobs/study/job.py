"""``StudyJob``: one side of a study: several trainings over one link, with one journal.

::

    Alice                                            Bob
      Hello (the study)                         <->  Hello
      each model, or models that share a search:
        the training, from its first word to its last (taciturn.protocol.party)
      in mutual, unless the study opens scores:
      OpenedSums (taciturn.protocol.row_sums)    ->   one noisy sum for each setting

Which models there are, and in which order, both sides know before: nothing that Bob says depends on
how good one of them is. With several Alices Bob greets all of them. Bob evaluates the models after
the connection is closed.

Running the job again resumes in the middle of whichever model was being trained. A model that is
trained is on the disk before the journal forgets how it was made.

What Bob makes of a study that has ended: how good each model is, and which is best.

All of it depends on labels. So it is computed when the last word has been said and the connection
is closed, as after a single training (``taciturn.jobs.train.evaluation``).
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.engine.callbacks import Callbacks
from taciturn.errors import ConfigError, FileError
from taciturn.files import (
    canonical_json,
    private_folder,
    reporting_write_errors,
    require_writable,
    to_json,
    write_private,
)
from taciturn.jobs.base import Job
from taciturn.jobs.resumable import JournaledSession
from taciturn.jobs.study.plan import StudyModel, StudyPlan, StudyTraining, model_name
from taciturn.jobs.study.result import FoldFigures, StudiedSetting, StudyRun, StudyTable, study_rows
from taciturn.jobs.study.sums import added_shares, judged_by_sum
from taciturn.jobs.study.use import set_aside_models
from taciturn.jobs.train.declaration import TRAINING
from taciturn.jobs.train.job import LINGER_SECONDS, JournaledTraining, require_mechanism
from taciturn.model.share import ModelShare
from taciturn.numerics.convergence import MOST_LOSS, Opened, assess_convergence
from taciturn.numerics.regression_metrics import (
    ModelMetrics,
    added_by_partner,
    evaluate_labels,
    most_loss,
)
from taciturn.parallel import one_thread
from taciturn.party.config import PartyConfig
from taciturn.party.log import Figures, Log
from taciturn.party.model_file import keep_scores, model_share, save_model, suspected_wraps
from taciturn.party.state_store import SessionState
from taciturn.party.training_inputs import TrainingInputs
from taciturn.protocol.events import Boundary, Event, PartDone, Progress
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.outcome import BobTrained
from taciturn.protocol.party import PartyResult
from taciturn.protocol.row_sums import OpenedLoss
from taciturn.protocol.state import Load as LoadArray
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import ONLY, Program, gather
from taciturn.results.parties import Stage, Stages
from taciturn.results.reading import read
from taciturn.results.serialise import record_of
from taciturn.rng import KeyedEntropy

if TYPE_CHECKING:
    from taciturn.party.array_store import EncryptedArrayStore
    from taciturn.party.bob_inputs import BobTrainingInputs

TABLE_FILE = "study.json"


@dataclass(frozen=True, slots=True)
class StudyJob(Job[StudyRun]):
    """Train all models of a study, or resume; ``fresh`` discards an unfinished session."""

    fresh: bool = False
    purpose = TRAINING
    reads_labels = True
    opens_first = True
    farewell_seconds = LINGER_SECONDS

    def check_files(self, config: PartyConfig) -> None:
        """Raise where an output cannot be written."""
        require_writable(*map(config.path, config.output.files))

    def prepare(self, config: PartyConfig) -> StudySide:
        """Read this side's table and plan the trainings."""
        require_mechanism(config)
        side = StudySide(config, fresh=self.fresh)
        # Before hours of work, and not after the first model.
        side.make_models_folder()
        require_writable(side.models_folder / TABLE_FILE)
        return side


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """Record of a trained model until the end of the study.

    ``scores`` are those of the rows that judge it, as an array store keeps them; None at Alice.
    ``losses`` has the training loss of each pass and ``row_changes`` the largest change of a row's
    probability, unless penalties share the passes; ``wraps`` how many scores may have wrapped.
    ``opened_change`` is the decrease of the loss in the last pass where that alone is opened.
    ``loss_share`` is this side's share of the sum of its held-out rows' losses, where that judges.
    """

    number: int
    scores: object = field(default=None, repr=False)
    losses: tuple[float, ...] = field(default=(), repr=False)
    row_changes: tuple[float, ...] = field(default=(), repr=False)
    wraps: int | None = None
    opened_change: float | None = None
    loss_share: int | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class FinishedStudy:
    """A study after its last message, for the journal; ``trained`` is yet to be assessed.

    ``sums`` are those that were opened to Bob, one for each setting in units of one row's loss, and
    ``noise_rows`` is the scale of their noise.
    """

    run: StudyRun
    trained: tuple[TrainedModel, ...] = ()
    session: str = ""
    assessed: bool = True
    sums: tuple[float, ...] = field(default=(), repr=False)
    noise_rows: float = 0.0


class StudySide(JournaledTraining[FinishedStudy, StudyRun]):
    """One side of a study."""

    plan: StudyPlan

    def __init__(self, config: PartyConfig, *, fresh: bool = False) -> None:
        if config.study is None:
            raise ConfigError("there is no [study] in the file", where=config.where)
        self._scores: dict[int, LoadArray] = {}
        super().__init__(config, fresh=fresh)

    def begin(self, log: Log, callbacks: Callbacks) -> None:
        """Log what the preparation found, and how many models there are."""
        super().begin(log, callbacks)
        study = self.plan.study
        about = f"a study: {len(study.points)} combinations, {study.models} models in all"
        log("note", about=about)

    @property
    def models_folder(self) -> Path:
        """Folder of the models."""
        return self.config.path(self.config.output.models_folder)

    def make_models_folder(self) -> None:
        """Make the folder of the models, if there is none."""
        with reporting_write_errors(self.models_folder, "folder of models"):
            private_folder(self.models_folder)

    def model_path(self, number: int) -> Path:
        """The file of a combination's model."""
        digits = max(2, len(str(len(self.plan.study.points))))
        return self.models_folder / f"model-{number:0{digits}d}.json"

    def opening(self) -> Program[None]:
        """Compare the study, the training rows and the folds with the peer."""
        config, study = self.config, json.loads(self.plan.study.canonical())
        peers = config.parties if config.link.peer is None else (ONLY,)
        # What decides which rows are trained on: where it differs, their number does too.
        by_id = {name: config.agreed.get(name) for name in ("held_out", "split_seed")}
        hello = greeting(config.role, canonical_json({**study, **by_id}), self.tables.train)
        yield from gather({peer: shake_hands(hello) for peer in peers})

    def run_task(self, session: JournaledSession) -> FinishedStudy:
        """Train all models, and write them."""
        return _Models(self, session).train()

    def to_record(self, outcome: FinishedStudy, state: SessionState) -> bytes:
        """The outcome for the journal."""
        self._recall(outcome.trained, state.results)
        return json.dumps(record_of(outcome)).encode()

    def from_record(self, record: bytes, state: SessionState) -> FinishedStudy:
        """The outcome from the journal."""
        finished = read(FinishedStudy, json.loads(record))
        self._recall(finished.trained, state.results)
        return finished

    def _recall(self, trained: tuple[TrainedModel, ...], array_store: EncryptedArrayStore) -> None:
        self._scores = {
            model.number: array_store.get(model.scores)
            for model in trained
            if model.scores is not None
        }

    def scores_of(self, model: StudyModel) -> FloatArray | None:
        """Bob's scores of the rows that judge a model; None where there are none."""
        load = self._scores.get(model.number)
        return None if load is None else load()

    def assess(self, outcome: FinishedStudy, entropy: KeyedEntropy) -> FinishedStudy:
        """Bob's figures of every model, and which is best."""
        with np.errstate(over="ignore", invalid="ignore"), one_thread():
            run = evaluated(self, outcome)
        self.callbacks.publish(study_rows(run.study))
        return FinishedStudy(run)

    def conclude(self, outcome: FinishedStudy, *, confirmed: bool) -> StudyRun:
        """The result, which is written beside the models."""
        self.clear_prepared()
        result = replace(outcome.run, peer_confirmed=confirmed)
        write_private(self.models_folder / TABLE_FILE, to_json(result.to_dict()) + "\n")
        self.log("study written", file=f"{self.config.output.models_folder}/{TABLE_FILE}")
        return result


class _Models:
    """All trainings of a study, from the checkpoint to the last model's file.

    The attributes of the model that is being trained are set when its training begins: until then
    nothing of it is made.
    """

    _training: StudyTraining
    _inputs: TrainingInputs
    _bob: BobTrainingInputs | None
    _losses: Figures

    def __init__(self, side: StudySide, session: JournaledSession) -> None:
        self._side, self._session = side, session
        self._figures = Figures(None, side.plan.passes, side.log)
        session.follow(self._figures)
        self._checkpoint, state = session.checkpoint, session.state
        self._state: TrainingState | None = None
        self._trained: list[TrainedModel] = []
        self._sums: tuple[OpenedLoss, ...] = ()
        if self._checkpoint is not None:
            self._trained = [read(TrainedModel, record) for record in self._checkpoint["trained"]]
            for model in self._trained:
                if model.scores is not None:
                    # Now, rather than when the last model is trained.
                    state.results.get(model.scores)
            self._state = TrainingState.from_bytes(
                self._checkpoint["state"].encode(), state.array_store
            )

    def train(self) -> FinishedStudy:
        """Train every model and write its file; what depends on labels is left for later."""
        side, session, plan = self._side, self._session, self._side.plan
        set_aside_models(side.models_folder, session.meeting.name)
        side.make_models_folder()
        session.run_from_checkpoint(self._program(), self._observe, self._freeze)
        side.log("all models of the study are trained", models=len(plan.models))
        settings = tuple(
            StudiedSetting(
                number=point.number,
                values=point.values,
                model=str(side.model_path(point.number)),
                columns=len(side.tables.train.columns),
            )
            for point in plan.study.points
        )
        bobs = side.tables.labels is not None
        run = StudyRun(
            identity=plan.identity(),
            study=StudyTable.from_settings(plan.study, settings),
            settings=self._side.config.where,
            scores_per_row=plan.scores.per_row,
            ledger=plan.ledger().statement() if bobs else None,
            run=session.figures(self._figures),
        )
        return FinishedStudy(
            run,
            tuple(self._trained),
            session.meeting.name,
            assessed=not bobs,
            sums=tuple(opened.total for opened in self._sums),
            noise_rows=max((opened.noise_rows for opened in self._sums), default=0.0),
        )

    def _program(self) -> Program[None]:
        """This side's part in the study, from its first word or from the checkpoint."""
        at = 0
        if self._checkpoint is None:
            yield from self._side.opening()
        else:
            at = int(self._checkpoint["number"])
        for training in self._side.plan.trainings[at:]:
            self._publish_stage()
            result = yield from self._begin(training)
            for number, model in enumerate(training.models):
                self._keep(model, number, result.models[number])
            self._advance(Progress(result.trained.iterations, training.passes))
        yield from self._open_sums()

    def _open_sums(self) -> Program[None]:
        """Open the sums that judge the settings to Bob, where sums do.

        After a stop the noise is the same: it is drawn from the session's entropy, and from nothing
        else.
        """
        plan = self._side.plan
        sums = plan.sums
        if sums is None:
            return
        shares: dict[int, list[int]] = defaultdict(list)
        for trained in self._trained:
            if trained.loss_share is not None:
                shares[plan.models[trained.number].point.number].append(trained.loss_share)
        own = added_shares(sums, plan.study.points, shares)
        if self._side.tables.labels is None:
            # Each side loads its own programs only.
            from taciturn.protocol.alice.row_sums import open_sums

            yield from open_sums(sums, own, self._session.entropy.fork("sums of the study"))
            return
        from taciturn.protocol.bob.row_sums import read_sums

        self._sums = yield from read_sums(sums, own)

    def _begin(self, training: StudyTraining) -> Program[PartyResult]:
        """The program of one training."""
        side, session, scratch = self._side, self._session, self._session.state.scratch
        body, self._checkpoint = self._checkpoint, None
        state, self._state = self._state, None
        entropy = session.entropy.fork(f"model {training.number}")
        self._training, terms = training, training.terms
        self._inputs = side.plan.inputs_of(training, scratch).on(side.engine)
        self._bob = self._inputs.bob_side(entropy, None if body is None else body["ledger"])
        per_epoch, weights = terms.per_epoch(training.rows), terms.agreement.class_weight
        self._losses = Figures(self._inputs.tables.labels, per_epoch, side.log, weights)
        if body is not None:
            self._losses.restore(body["losses"])
        return self._inputs.program(entropy, self._bob, state, scratch)

    def _observe(self, event: Event) -> None:
        if isinstance(event, Progress | PartDone):
            self._advance(event)
        elif not isinstance(event, Boundary):
            self._side.callbacks.observe(event)
        elif self._bob is None:
            # Alice's program says where she stands, and not out of how many.
            self._advance(Progress(event.state.iteration, self._training.passes))

    def _publish_stage(self) -> None:
        """Publish how many models are trained; no figure of one, which depends on labels."""
        stage = Stage("model", len(self._trained), len(self._side.plan.models))
        self._side.callbacks.publish(Stages((stage,)))

    def _advance(self, event: Progress | PartDone) -> None:
        """Report how far the whole study is; losses are the model's own."""
        plan, observe = self._side.plan, self._side.callbacks.observe
        done = event.done + sum(
            training.passes for training in plan.trainings[: self._training.number]
        )
        if isinstance(event, PartDone):
            observe(replace(event, done=done, total=plan.passes))
            return
        self._losses.observe(event)
        whole = Progress(done, plan.passes)
        self._figures.observe(whole)
        observe(whole)

    def _keep(self, model: StudyModel, place: int, result: PartyResult) -> None:
        """Write the file of a trained model, and put away what is to be assessed.

        ``place`` is its place among the models of its training.
        """
        side, session, trained = self._side, self._session.meeting.name, result.trained
        if model.fold is None:
            point = model.point
            name = model_name(session, point.number)
            study = {
                "model": point.number,
                "models": len(side.plan.study.points),
                "session": session,
                "values": json.loads(json.dumps(dict(point.values))),
                "used": False,
            }
            inputs = replace(self._inputs, terms=self._inputs.terms.of_model(place))
            share = model_share(inputs, self._bob, result, name, study)
            save_model(share, side.model_path(point.number), side.log)
        scores: object = result.held_out_scores
        if result.held_out_scores is not None:
            array_store = self._session.state.results
            scores = array_store.put(f"scores-{model.number}", result.held_out_scores)
        losses, changes = (
            tuple(float(point[name]) for point in self._losses.curve if name in point)
            for name in ("train_loss", "row_change")
        )
        opened_change = None
        if isinstance(trained, BobTrained):
            opened_change = trained.opened_change
            if trained.losses:
                # The curve of a search is that of all its penalties.
                losses, changes = trained.losses, ()
        wraps = suspected_wraps(model.terms, trained)
        self._trained.append(
            TrainedModel(
                model.number, scores, losses, changes, wraps, opened_change, result.loss_share
            )
        )
        fold = "all rows" if model.fold is None else f"fold {model.fold + 1}"
        side.log("model trained", model=model.point.number, on=fold, number=model.number + 1)
        self._publish_stage()

    def _freeze(self, at: TrainingState) -> dict[str, Any]:
        """Content of a checkpoint; long arrays are on disk before it is."""
        array_store = _Prefixed(self._session.state.array_store, f"model-{self._training.number}-")
        return {
            "number": self._training.number,
            "state": at.to_bytes(array_store).decode("ascii"),
            "ledger": None if self._bob is None else self._bob.ledger.to_json(),
            "losses": self._losses.to_json(),
            "trained": [record_of(model) for model in self._trained],
        }


@dataclass(frozen=True, slots=True)
class _Prefixed:
    # Trainings of a study have arrays of the same names.
    array_store: EncryptedArrayStore
    prefix: str

    def put(self, name: str, values: FloatArray) -> Any:  # noqa: ANN401 - JSON
        return self.array_store.put(f"{self.prefix}{name}", values)

    def get(self, reference: Any) -> LoadArray:  # noqa: ANN401 - JSON
        return self.array_store.get(reference)


def evaluated(side: StudySide, finished: FinishedStudy) -> StudyRun:
    """The result with all figures, which go into the models' files too."""
    settings = [_evaluate(side, finished, setting) for setting in finished.run.study.settings]
    run = replace(finished.run, study=StudyTable.from_settings(side.plan.study, settings))
    return run if run.study.best is None else _compared(side, run, run.study.best)


def _evaluate(side: StudySide, finished: FinishedStudy, setting: StudiedSetting) -> StudiedSetting:
    *folds, whole = (model for model in side.plan.models if model.point.number == setting.number)
    trained = next(model for model in finished.trained if model.number == whole.number)
    labels = side.tables.labels
    bound = MOST_LOSS if labels is None else most_loss(labels)
    arrived = assess_convergence(
        trained.losses,
        row_changes=trained.row_changes,
        most_loss=bound,
        opened=Opened(trained.opened_change) if whole.terms.shares_scores else None,
    )
    judging = side.plan.judging_labels
    if finished.sums and judging is not None:
        opened = OpenedLoss(finished.sums[setting.number - 1], finished.noise_rows)
        judged = judged_by_sum(setting, opened, judging)
    else:
        figures = (_metrics(side, model) for model in folds)
        judged = setting.judged(
            tuple(
                FoldFigures(model.scored, math.nan, math.nan, math.nan)
                if metrics is None
                else FoldFigures.from_metrics(metrics)
                for model, metrics in zip(folds, figures, strict=True)
            ),
            _metrics(side, whole),
        )
    judged = replace(judged, converged=arrived.converged, suspected_wraps=trained.wraps)
    _write(side, whole, judged, arrived.diverged or judged.diverged)
    return judged


def _metrics(side: StudySide, model: StudyModel) -> ModelMetrics | None:
    scores, labels = side.scores_of(model), side.plan.labels_of(model)
    if scores is None or labels is None:
        return None
    return evaluate_labels(np.nan_to_num(scores), labels, model.terms.log_odds_shift)


def _write(
    side: StudySide, model: StudyModel, setting: StudiedSetting, diverged: bool | None
) -> None:
    """Add the figures to the model's file, and write Bob's scores next to it."""
    scores: FloatArray | None = side.scores_of(model)
    threshold = side.threshold_of(side.plan.labels_of(model), scores, model.terms)
    metrics: dict[str, Any] = {} if threshold is None else {"threshold": record_of(threshold)}
    if setting.held_out is not None:
        metrics["held_out"] = record_of(setting.held_out)
    metrics |= {"converged": setting.converged, "diverged": diverged}
    path = side.model_path(setting.number)
    # A file that was moved meanwhile is not touched.
    with suppress(FileError):
        share = ModelShare.load(path)
        replace(share, metrics=share.metrics | metrics).save(path)
        keep_scores(path, share.session, side.tables, None, scores, side.log)


def _compared(side: StudySide, run: StudyRun, best: int) -> StudyRun:
    """Metrics of Bob's columns alone, and the partner's added value."""
    # Bob alone has labels, and only he loads his programs.
    from taciturn.protocol.bob.baseline import LabelPartyBaseline

    models = side.plan.models
    model = next(
        candidate
        for candidate in models
        if candidate.point.number == best and candidate.fold is None
    )
    tables, scores = side.tables, side.scores_of(model)
    labels, truth = tables.labels, tables.held_out_labels
    if tables.held_out is None or labels is None or truth is None or scores is None:
        return run
    entropy, shift = KeyedEntropy.from_system(), model.terms.log_odds_shift
    alone = LabelPartyBaseline.fit(tables.train, labels, model.terms, entropy).scores(
        tables.held_out
    )
    return replace(
        run,
        bob_alone=evaluate_labels(np.nan_to_num(alone), truth, shift),
        partner_adds=added_by_partner(np.nan_to_num(scores), alone, truth),
    )
