"""Runs one side of a study: several trainings over one link, with one journal, as one session.

Running the same command again resumes in the middle of whichever model was being trained. A model
that is trained is on the disk before the journal forgets how it was made. Alice learns how many
models there are, which the agreement says, and nothing of how good one is: Bob looks at that when
the way to her is closed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event as Flag
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.engine.callbacks import SILENT, Callbacks
from taciturn.engine.channel import Endpoints
from taciturn.engine.exposure import OpenedScores
from taciturn.engine.study import StudyModel
from taciturn.errors import (
    BudgetExceeded,
    ConfigError,
    LocalProtocolError,
    TaciturnError,
)
from taciturn.faces import Hint
from taciturn.files import (
    private_folder,
    reporting_write_errors,
    require_writable,
    to_json,
    write_private,
)
from taciturn.parallel import one_thread
from taciturn.party.compute import engine_of
from taciturn.party.config import PartyConfig
from taciturn.party.consent.score_budget import ScoreBudget
from taciturn.party.journal import Past
from taciturn.party.keep import Kept
from taciturn.party.log import Figures
from taciturn.party.model_file import model_share, save_model, suspected_wraps
from taciturn.party.playback import Rhythm
from taciturn.party.session import Meeting
from taciturn.party.side import Side
from taciturn.party.study_assess import Assessment
from taciturn.party.study_ended import StudyEnded, Trained
from taciturn.party.study_plan import StudyPlan
from taciturn.party.study_use import set_aside_models
from taciturn.party.tables import PartyTables
from taciturn.party.train import Account, Met, Trainer, Work
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
    from taciturn.crypto.bfv.crew import Engine
    from taciturn.party.bob import BobSide
    from taciturn.party.shelf import SealedShelf

TABLE_FILE = "study.json"


class StudyParty(Trainer):
    """One side of a study, ready to meet the other."""

    def __init__(
        self, config: PartyConfig, endpoint: Endpoints, callbacks: Callbacks = SILENT
    ) -> None:
        study = config.study
        if study is None:
            raise ConfigError("there is no [study] in the file", where=config.where)
        self.study: Study = study
        self._whole = config
        self._engine: Engine | None = None
        self._scores: dict[int, LoadArray] = {}
        super().__init__(config.at(study.points[0]), endpoint, callbacks)
        self.log(
            "note",
            about=f"a study: {len(study.points)} combinations, {study.models} models in all",
        )

    def _load_tables(self, config: PartyConfig) -> PartyTables:
        tables = super()._load_tables(config)
        self.plan = StudyPlan.of(self._whole, self.study, tables)
        return tables

    def run(self, *, record: Path | None = None, fresh: bool = False) -> StudyRun:
        """Trains all models, or resumes; ``fresh`` discards an unfinished session."""
        if record is not None:
            raise ConfigError(
                "a transcript holds one training, and a study has many",
                setting="record",
                hint=Hint("leave {record} out; train the chosen model alone to record it"),
            )
        # Before hours of work, and not after the first model.
        with reporting_write_errors(self.models_folder, "folder of models"):
            private_folder(self.models_folder)
        require_writable(self.models_folder / TABLE_FILE)
        result: StudyRun = self._conduct(None, fresh)
        self._write_table(result)
        return result

    def _write_table(self, result: StudyRun) -> None:
        write_private(self.models_folder / TABLE_FILE, to_json(result.to_dict()) + "\n")
        self.log("study written", file=f"{self.config.output.models_folder}/{TABLE_FILE}")

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

    def _dry_opening(self) -> Program[None]:
        return self.opening()

    def opening(self) -> Program[None]:
        """The first words of a study."""
        peers = tuple(self.config.parties) if self.config.role == "bob" else ()
        rows = self.plan.tables.train
        return compare_studies(self.config.role, self.study.canonical(), rows, peers or (ONLY,))

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        with engine_of(self.config, self.log) as self._engine:
            try:
                yield
            finally:
                self._engine = None

    def side(self, model: StudyModel, kept: Kept) -> Side:
        """This side of one training."""
        return self.plan.side(model, self._engine, kept.scratch)

    def _outlook(self) -> Outlook:
        return self.plan.outlook()

    def _opened(self) -> OpenedScores:
        return self.plan.scores

    def _estimate(self, met: Met) -> Estimate | None:
        """That of one training, times what all of them take of passes over rows."""
        single = super()._estimate(met)
        return None if single is None else self.plan.of_all(single)

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), **self.plan.facts()}

    @property
    def iterations(self) -> int:
        """How many all trainings take."""
        return self.plan.passes

    def _planned(self) -> Statement:
        return self.plan.ledger().statement()

    def _ledger_refusal(self, ledger: Statement) -> TaciturnError | None:
        problem, budget = super()._ledger_refusal(ledger), self.config.privacy.budget
        if problem is None and budget is not None and ledger.label_epsilon_total > budget:
            return BudgetExceeded(
                f"all models of the study together cost a label's epsilon of "
                f"{ledger.label_epsilon_total:g}, and the budget is {budget:g}",
                setting="budget",
                hint="try fewer values, or raise the budget; nothing was sent",
            )
        return problem

    def account(self, past: Past) -> Account:
        """Where this side counts what all models give away, once and in total."""
        session, scores = past.meta.charge_name, ScoreBudget.from_config(self.config)
        if scores is not None:
            charge = self.plan.score_charge(session)
            self.tell_scores(scores)
            return Account(lambda: scores.require(charge), lambda: scores.charge(charge))
        # Only who pays for releases loads what counts them.
        from taciturn.party.consent.label_budget import LabelBudget

        labels = LabelBudget.from_config(self.config)
        return Account(
            lambda: labels.require(self.plan.label_charge(session)),
            lambda: labels.charge(self.plan.label_charge(session)),
        )

    def _work(self, meeting: Meeting, kept: Kept, record: Path | None, account: Account) -> Work:
        return _Models.of(self, meeting, kept, account)

    def _ended(self, record: bytes, kept: Kept) -> StudyEnded:
        ended = StudyEnded.of_bytes(record)
        self._recall(ended.trained, kept.results)
        return ended

    def _record(self, ended: StudyEnded, kept: Kept) -> bytes:
        self._recall(ended.trained, kept.results)
        return ended.to_bytes()

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

    def _assessed(self, ended: StudyEnded, past: Past, session: str) -> StudyEnded:
        with np.errstate(over="ignore", invalid="ignore"), one_thread():
            run = Assessment(self, ended).run()
        self.callbacks.publish(study_rows(run.study))
        return StudyEnded(run)


@dataclass(slots=True, repr=False)
class _Models:
    """All trainings of a study, from the checkpoint to the last model's file.

    ``spent`` is Bob's ledger of the model under way at the checkpoint; ``begun`` is set once the
    sides have found that they fit.
    """

    party: StudyParty
    meeting: Meeting
    kept: Kept
    coins: KeyedEntropy
    account: Account
    figures: Figures
    resume: Resumption | None
    spent: dict[str, Any] | None
    trained: list[Trained]
    begun: Flag = field(default_factory=Flag)
    _side: Side | None = None
    _bob: BobSide | None = None
    _losses: Figures | None = None
    _kept_losses: dict[str, Any] | None = None
    _number: int = 0

    @classmethod
    def of(cls, party: StudyParty, meeting: Meeting, kept: Kept, account: Account) -> _Models:
        past, figures = meeting.past, Figures(None, party.iterations, party.log)
        party.bulletin.follow(lambda: figures.so_far(meeting.traffic))
        coins = KeyedEntropy(past.meta.coins)
        body = json.loads(past.checkpoint.body) if past.checkpoint.body else None
        if body is None:
            return cls(party, meeting, kept, coins, account, figures, None, None, [])
        trained = [Trained.of_json(values) for values in body["trained"]]
        for one in trained:
            if one.scores is not None:
                # Now, rather than when the last model is trained.
                kept.results.get(one.scores)
        state = TrainingState.of_bytes(body["state"].encode(), kept.shelf)
        resume = Resumption(int(body["number"]), state)
        models = cls(party, meeting, kept, coins, account, figures, resume, body["ledger"], trained)
        models._kept_losses = body["losses"]
        return models

    def run(self) -> StudyEnded:
        """Trains every model and writes its file; what depends on labels is left for later."""
        party, state = self.party, self.party.config.state
        if self.resume is not None:
            # Into a store that was not there when it began.
            self.account.charge()
        set_aside_models(party.models_folder, self.meeting.name)
        with reporting_write_errors(party.models_folder, "folder of models"):
            private_folder(party.models_folder)
        models = [self._program_of(model) for model in party.plan.models]
        program = study_program(party.opening(), models, self.resume)
        # A diverging training overflows; the programs refuse what comes of it, in words.
        quiet = np.errstate(over="ignore", invalid="ignore")
        # On one thread the same numbers come out on every machine and in every run.
        with quiet, one_thread():
            self.meeting.run(
                program,
                observe=self._observe,
                freeze=self._freeze,
                rhythm=Rhythm(state.every_iterations, state.every_seconds),
            )
        party.log("all models of the study are trained", models=len(models))
        bobs = party.config.role == "bob"
        run = StudyRun(
            identity=party.identity(),
            study=party.table(),
            scores_per_row=party.plan.scores.per_row,
            ledger=party.plan.ledger().statement() if bobs else None,
            run=self.figures.so_far(self.meeting.traffic),
        )
        # The farewell is no part of the training.
        party.bulletin.follow(lambda: run.run)
        return StudyEnded(run, tuple(self.trained), self.meeting.name, assessed=not bobs)

    def _program_of(
        self, model: StudyModel
    ) -> Callable[[TrainingState | None], Program[PartyResult]]:
        """What trains one model once it is due: until then nothing of it is made."""

        def begin(state: TrainingState | None) -> Program[PartyResult]:
            coins = self.coins.fork(f"model {model.number}")
            self._begin(model, state, coins)
            return self._current().program(coins, self._bob, state, self.kept.scratch)

        return begin

    def _begin(self, model: StudyModel, state: TrainingState | None, coins: Entropy) -> None:
        self._number, self._side = model.number, self.party.side(model, self.kept)
        self._bob = self._side.bob_side(coins, None if state is None else self.spent)
        labels = self._side.tables.labels
        per_epoch, weights = model.terms.per_epoch(model.rows), model.terms.agreement.class_weight
        self._losses = Figures(labels, per_epoch, self.party.log, weights)
        if state is not None and self._kept_losses is not None:
            self._losses.restore(self._kept_losses)

    def _current(self) -> Side:
        if self._side is None:
            raise LocalProtocolError("no model of the study is being trained")
        return self._side

    def _observe(self, event: Event) -> None:
        if isinstance(event, ModelTrained):
            self._keep(event)
        elif isinstance(event, ModelBegun):
            self._tell_stage(event.number)
            self.party.callbacks.observe(event)
        elif isinstance(event, Progress | PartDone):
            self._advance(event)
        elif isinstance(event, Boundary):
            self._pass(event)
        else:
            self.party.callbacks.observe(event)

    def _tell_stage(self, done: int) -> None:
        """Publishes how many models are trained; no figure of one, which depends on labels."""
        stage = Stage("model", done, len(self.party.plan.models))
        self.party.callbacks.publish(Stages((stage,)))

    def _pass(self, event: Boundary) -> None:
        self.begun.set()
        if not event.state.iteration and not self._number:
            # Before the first score or release leaves; a session is charged once.
            self.account.charge()
        if self.party.config.role == "alice":
            # Her program says where she stands, and not out of how many.
            model = self.party.plan.models[self._number]
            self._advance(Progress(event.state.iteration, model.passes))

    def _advance(self, event: Progress | PartDone) -> None:
        """How far the whole study is; losses are the model's own."""
        before = sum(model.passes for model in self.party.plan.models[: self._number])
        done, total = before + event.done, self.party.iterations
        if isinstance(event, PartDone):
            self.party.callbacks.observe(replace(event, done=done, total=total))
            return
        if self._losses is not None:
            self._losses.observe(event)
        whole = Progress(done, total)
        self.figures.observe(whole)
        self.party.bulletin.require_written()
        self.party.callbacks.observe(whole)

    def _keep(self, event: ModelTrained) -> None:
        """A model is trained: its file is written, and what is to be assessed is put away."""
        party, side = self.party, self._current()
        model, result = party.plan.models[event.number], event.result
        if model.fold is None:
            name = f"{self.meeting.name} model {model.point.number}"
            session = hashlib.sha256(name.encode()).hexdigest()[:32]
            study = {
                "model": model.point.number,
                "models": len(party.study.points),
                "session": self.meeting.name,
                "values": json.loads(json.dumps(dict(model.point.values))),
                "used": False,
            }
            share = model_share(side, self._bob, result, session, study)
            save_model(share, party.model_path(model), party.log)
        self._advance(Progress(result.trained.iterations, model.passes))
        scores = result.held_out_scores
        kept = None if scores is None else self.kept.results.put(f"scores-{event.number}", scores)
        losses = () if self._losses is None else _losses_of(self._losses)
        wraps = suspected_wraps(model.terms, result.trained)
        self.trained.append(Trained(event.number, kept, losses, wraps))
        fold = "all rows" if model.fold is None else f"fold {model.fold + 1}"
        party.log("model trained", model=model.point.number, on=fold, number=event.number + 1)
        self._kept_losses = None
        self._tell_stage(event.number + 1)
        party.callbacks.observe(event)

    def _freeze(self, at: TrainingState) -> bytes:
        """What a checkpoint holds; long arrays are on the disk before it is."""
        # By now the checkpoint before this one is, and what it does not name is of no use.
        self.kept.shelf.sweep()
        shelf = _Prefixed(self.kept.shelf, f"model-{self._number}-")
        values = {
            "number": self._number,
            "state": at.to_bytes(shelf).decode("ascii"),
            "ledger": None if self._bob is None else self._bob.ledger.to_json(),
            "losses": None if self._losses is None else self._losses.to_json(),
            "trained": [one.to_json() for one in self.trained],
        }
        self.party.bulletin.checkpointed()
        return json.dumps(values).encode()


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
