"""``TrainingTask``: all trainings of a session, from its checkpoint to the last model's file."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.engine.callbacks import Callbacks, noop
from taciturn.errors import StateError
from taciturn.jobs.base import Task
from taciturn.jobs.resumable import JournaledSession
from taciturn.jobs.train.finished import FinishedTraining, TrainedModel
from taciturn.jobs.train.plan import ModelEntry, PlannedModel, PlannedTraining, TrainingPlan
from taciturn.jobs.train.result import ColumnImportance
from taciturn.numerics.symmetry import Symmetry
from taciturn.party.log import Figures, Log
from taciturn.party.model_file import model_share, save_model, suspected_wraps
from taciturn.party.resume import RunHooks
from taciturn.party.training_inputs import TrainingInputs
from taciturn.privacy.events import Statement
from taciturn.protocol.array_store import ArrayStore
from taciturn.protocol.events import Boundary, Event, PartDone, Progress
from taciturn.protocol.outcome import BobTrained
from taciturn.protocol.party import PartyResult
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program
from taciturn.results.parties import QUALITY_LEARNT
from taciturn.results.reading import read
from taciturn.results.serialise import record_of
from taciturn.setting_syntax import Hint
from taciturn.version import __version__

if TYPE_CHECKING:
    from taciturn.crypto.bfv.workers import Engine
    from taciturn.engine.transcript import TranscriptFile
    from taciturn.party.bob_inputs import BobTrainingInputs


class TrainingTask:
    """All trainings of one side's session; ``record`` is the file of its transcript.

    The attributes of a training are set when it begins: until then nothing of it is made.
    """

    _training: PlannedTraining
    _inputs: TrainingInputs
    _bob: BobTrainingInputs | None
    _losses: Figures

    def __init__(
        self,
        plan: TrainingPlan,
        session: JournaledSession,
        log: Log,
        callbacks: Callbacks,
        engine: Engine | None,
        record: Path | None = None,
    ) -> None:
        self._plan, self._session, self._log, self._callbacks = plan, session, log, callbacks
        self._engine, body = engine, session.checkpoint
        self._figures = Figures(None, plan.passes, log)
        session.follow(self._figures)
        self._trained: list[TrainedModel] = []
        for kept in [] if body is None else body["trained"]:
            model = read(TrainedModel, kept)
            # Now, rather than when the last model is trained.
            for scores in filter(None, (model.train_scores, model.held_out_scores)):
                session.state.results.get(scores)
            self._trained.append(model)
        self._recording = None if record is None else _recording(plan, record, session)

    def task(self) -> Task[None, FinishedTraining]:
        """What the session runs and calls."""
        hooks, recording = RunHooks(self._observe, self._freeze), self._recording
        if recording is not None:
            # A replay of what Alice saw does not need her key: it stays out of the file.
            note = noop if self._plan.tables.labels is None else recording.persisted
            hooks = replace(hooks, tap=recording, note=note)
        return Task(self._program(), self._finish, hooks)

    def _program(self) -> Program[None]:
        """This side's part in the session, from its first message or from the checkpoint."""
        body = self._session.checkpoint
        if body is None:
            return self._trainings(0, None)
        number = int(body["number"])
        return self._trainings(number, self._begin(self._plan.trainings[number], body))

    def _trainings(self, first: int, resumed: Program[PartyResult] | None) -> Program[None]:
        with self._recording or nullcontext():
            if resumed is None:
                yield from self._plan.opening()
            for training in self._plan.trainings[first:]:
                result = yield from resumed or self._begin(training, None)
                resumed = None
                self._losses.finish(result.trained)
                self._keep(result)
            if self._recording is not None:
                self._recording.conclude({"session": self._trained[0].session})

    def _begin(
        self, training: PlannedTraining, body: dict[str, Any] | None
    ) -> Program[PartyResult]:
        """The program of a training, from its checkpoint where it has one."""
        session, plan, terms = self._session, self._plan, training.terms
        entropy, scratch = plan.entropy_of(training, session.entropy), session.state.scratch
        self._training, self._inputs = training, plan.inputs_of(training, scratch).on(self._engine)
        self._bob = self._inputs.bob_side(entropy, None if body is None else body["ledger"])
        labels, weights = self._inputs.tables.labels, terms.agreement.class_weight
        self._losses = Figures(labels, terms.per_epoch(training.rows), self._log, weights)
        state = None
        if body is not None:
            self._losses.restore(body["losses"])
            state = TrainingState.from_bytes(body["state"].encode(), session.state.array_store)
        self._follow()
        opens = session.opens_held_out
        return self._inputs.program(entropy, self._bob, state, scratch, opens_held_out=opens)

    def _follow(self) -> None:
        """Publish the figures of the only training, which are the session's."""
        self._figures = self._losses
        self._session.follow(self._losses)

    def _observe(self, event: Event) -> None:
        if isinstance(event, Progress | PartDone):
            self._advance(event)
            return
        self._losses.observe(event)
        self._callbacks.observe(event)
        if isinstance(event, Boundary) and self._bob is None:
            # Alice's program says where she stands, and not out of how many.
            self._advance(Progress(event.state.iteration, self._training.passes))

    def _advance(self, event: Progress | PartDone) -> None:
        """Report how far the session is."""
        self._losses.observe(event)
        self._callbacks.observe(event)

    def _keep(self, result: PartyResult) -> None:
        """Write the files of a training's models, and put away what is to be assessed."""
        trained = result.trained
        opened = trained.opened if isinstance(trained, BobTrained) else None
        symmetry = None if opened is None else opened.symmetry()
        for place, model in enumerate(self._training.models):
            of_model = result.models[place]
            entry = self._plan.model_entry(model, self._session.meeting.name)
            name = "" if entry is None else self._save(entry, place, of_model)
            self._trained.append(self._record(model, of_model, name, symmetry))
            self._log_kept(model, of_model)

    def _save(self, entry: ModelEntry, place: int, result: PartyResult) -> str:
        """Write the file of a model; the name of its session there."""
        inputs = replace(self._inputs, terms=self._inputs.terms.of_model(place))
        share = model_share(inputs, self._bob, result, entry.session, entry.study)
        save_model(share, entry.path, self._log)
        return share.session

    def _record(
        self, model: PlannedModel, result: PartyResult, name: str, symmetry: Symmetry | None
    ) -> TrainedModel:
        trained, results = result.trained, self._session.state.results
        train = result.train_scores if self._plan.keeps_training_scores else None
        scores: dict[str, Any] = {
            field: None if values is None else results.put(f"{kind}-{model.number}", values)
            for field, kind, values in (
                ("train_scores", "train", train),
                ("held_out_scores", "scores", result.held_out_scores),
            )
        }
        if isinstance(trained, BobTrained):
            of_side: dict[str, Any] = {
                **self._curves(trained),
                "opened_change": trained.opened_change,
                "scores_beyond_range": trained.scores_beyond_range,
                "symmetry": symmetry,
                "peer_columns": 0 if trained.share is None else len(trained.share.values),
            }
        else:
            of_side = {"importance": self._importance(trained.weights)}
        return TrainedModel(
            number=model.number,
            session=name,
            stopped=None if trained.stopped is None else trained.stopped.value,
            suspected_wraps=suspected_wraps(model.terms, trained),
            loss_share=result.loss_share,
            told_quality=result.quality,
            parties=self._inputs.feature_parties(trained.group_shape.widths),
            **scores,
            **of_side,
        )

    def _curves(self, trained: BobTrained) -> dict[str, tuple[float, ...]]:
        if trained.losses:
            # The curve of a search is that of all its penalties.
            return {"losses": trained.losses}
        names = {"losses": "train_loss", "row_changes": "row_change", "objectives": "objective"}
        return {
            field: tuple(float(point[name]) for point in self._losses.curve if name in point)
            for field, name in names.items()
        }

    def _log_kept(self, model: PlannedModel, result: PartyResult) -> None:
        self._log("model written", file=self._plan.config.output.model)
        if result.quality is not None:
            quality = record_of(result.quality)
            figures = {name: value for name, value in quality.items() if value is not None}
            self._log("quality told" if self._bob else QUALITY_LEARNT, **figures)
        for note in () if self._bob is None else self._bob.ledger.notes():
            self._log("note", about=note)

    def _importance(self, weights: FloatArray) -> tuple[ColumnImportance, ...] | None:
        """Alice's columns, the most important first; None where she has no weights of them.

        Bob's weights depend on labels, and how long they take to sort too: his file has them.
        """
        if not len(weights):
            return None
        table = self._inputs.tables.train
        sizes = (np.abs(weights) * table.deviations()).tolist()
        named = zip(table.columns, weights.tolist(), sizes, strict=True)
        columns = (ColumnImportance(name, weight, size) for name, weight, size in named)
        return tuple(sorted(columns, key=lambda column: -column.importance))

    def _finish(self, ended: None) -> FinishedTraining:
        """The session's outcome; what depends on labels is left for later."""
        unscored = None
        if not self._session.opens_held_out:
            unscored = self._plan.consent.unscored_text()
            self._log("warning", about=unscored)
        return FinishedTraining(
            trained=tuple(self._trained),
            figures=self._session.figures(self._figures),
            ledger=None if self._bob is None else self._ledger(self._bob),
            unscored=unscored,
        )

    def _ledger(self, bob: BobTrainingInputs) -> Statement:
        return bob.ledger.statement()

    def _arrays(self) -> ArrayStore:
        """Where a checkpoint's long arrays are kept."""
        return self._session.state.array_store

    def _freeze(self, at: TrainingState) -> bytes:
        """Content of a checkpoint; long arrays are on disk before it is."""
        body = {
            "number": self._training.number,
            "state": at.to_bytes(self._arrays()).decode("ascii"),
            "ledger": None if self._bob is None else self._bob.ledger.to_json(),
            "recorded": None if self._recording is None else self._recording.position(),
            "losses": self._losses.to_json(),
            "trained": [record_of(model) for model in self._trained],
            "opens_held_out": self._session.opens_held_out,
        }
        return json.dumps(body).encode()


def _recording(inputs: TrainingInputs, record: Path, session: JournaledSession) -> TranscriptFile:
    """The transcript of this side, new or continued at the checkpoint."""
    # Loaded here: few trainings are recorded.
    from taciturn.engine.transcript import TranscriptFile

    body = session.checkpoint
    if body is not None and body["recorded"] is None:
        raise StateError(
            "the session started without a transcript, and a partial one is of little use",
            setting="record",
            hint=Hint("leave {record} out, or start over on both sides with {fresh}", fresh=True),
        )
    held_out = inputs.tables.held_out
    header = {
        "kind": "party",
        "role": inputs.config.role,
        "peer": inputs.config.peer,
        "version": __version__,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "agreement": inputs.terms.agreement.model_dump(),
        "coins": {inputs.config.role: session.entropy.key.hex()},
        "features_digest": inputs.tables.train.digest(),
        "held_out_digest": "" if held_out is None else held_out.digest(),
    }
    at = None if body is None else body["recorded"]
    return TranscriptFile(record, header, at=at, keep=True)
