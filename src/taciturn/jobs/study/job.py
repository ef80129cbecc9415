"""``StudySide``: one side of a study: several trainings over one link, with one journal."""

from __future__ import annotations

from functools import partial
from typing import cast

from taciturn.files import require_writable, to_json, write_private
from taciturn.jobs.base import SessionFacts, Task
from taciturn.jobs.resumable import JournaledSession
from taciturn.jobs.study.evaluation import assessed_study, study_run
from taciturn.jobs.study.plan import StudyPlan
from taciturn.jobs.study.result import StudyRun, study_rows
from taciturn.jobs.study.task import StudyTask
from taciturn.jobs.study.use import set_aside_models
from taciturn.jobs.train.finished import FinishedTraining
from taciturn.jobs.train.job import TrainSide, scores_of
from taciturn.party.state_store import SessionState
from taciturn.rng import KeyedEntropy

TABLE_FILE = "study.json"


class StudySide(TrainSide):
    """One side of a study."""

    plan: StudyPlan
    kind = StudyRun

    def require_outputs(self) -> None:
        """Make the folder of the models, and raise where its table could not be written."""
        self.plan.make_models_folder()
        require_writable(self.plan.models_folder / TABLE_FILE)

    def task(self, session: JournaledSession) -> Task[None, FinishedTraining]:
        """The trainings of the study; models of an earlier one are moved out of their way."""
        set_aside_models(self.plan.models_folder, session.meeting.name)
        self.plan.make_models_folder()
        return StudyTask(self.plan, session, self.log, self.callbacks, self.engine).task()

    def result(self, outcome: FinishedTraining) -> StudyRun:
        """The result without what depends on labels."""
        return study_run(self.plan, outcome)

    def assessed(
        self, outcome: FinishedTraining, state: SessionState, entropy: KeyedEntropy
    ) -> StudyRun:
        """Bob's result; its table is published."""
        # The model of his columns alone is fitted with randomness of its own.
        entropy = KeyedEntropy.from_system()
        load = partial(scores_of, state)
        run = assessed_study(self.plan, outcome, load, entropy, self.log)
        self.callbacks.publish(study_rows(run.study))
        return run

    def conclude(self, outcome: FinishedTraining, session: SessionFacts) -> StudyRun:
        """The result, which is written beside the models."""
        result = cast(StudyRun, super().conclude(outcome, session))
        write_private(self.plan.models_folder / TABLE_FILE, to_json(result.to_dict()) + "\n")
        self.log("study written", file=f"{self.config.output.models_folder}/{TABLE_FILE}")
        return result
