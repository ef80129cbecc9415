"""``StudyTask``: the trainings of a study in one session, and the sums that judge its settings.

::

    Alice                                            Bob
      Hello (the study)                         <->  Hello
      each model, or models that share a search:
        the training, from its first word to its last (taciturn.protocol.party)
      in mutual, unless the study opens scores:
      OpenedSums (taciturn.protocol.row_sums)    ->   one noisy sum for each setting

Which models there are, and in which order, both sides know before: nothing that Bob says depends on
how good one of them is. With several Alices Bob greets all of them. Bob evaluates the models after
the connection is closed (``taciturn.jobs.study.evaluation``).

A model that is trained is on the disk before the journal forgets how it was made.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from taciturn.jobs.study.plan import StudyPlan
from taciturn.jobs.study.sums import added_shares
from taciturn.jobs.train.finished import FinishedTraining
from taciturn.jobs.train.plan import PlannedModel, PlannedTraining
from taciturn.jobs.train.task import TrainingTask
from taciturn.privacy.events import Statement
from taciturn.protocol.array_store import ArrayStore, Load
from taciturn.protocol.events import PartDone, Progress
from taciturn.protocol.party import PartyResult
from taciturn.protocol.row_sums import OpenedLoss
from taciturn.protocol.steps import Program
from taciturn.results.parties import Stage, Stages

if TYPE_CHECKING:
    from taciturn.arrays import FloatArray
    from taciturn.party.bob_inputs import BobTrainingInputs


class StudyTask(TrainingTask):
    """All trainings of one side's study."""

    _plan: StudyPlan
    _sums: tuple[OpenedLoss, ...] = ()

    def _trainings(self, first: int, resumed: Program[PartyResult] | None) -> Program[None]:
        yield from super()._trainings(first, resumed)
        yield from self._open_sums()

    def _open_sums(self) -> Program[None]:
        """Open the sums that judge the settings to Bob, where sums do.

        After a stop the noise is the same: it is drawn from the session's entropy, and from nothing
        else.
        """
        plan = self._plan
        sums = plan.sums
        if sums is None:
            return
        shares: dict[int, list[int]] = defaultdict(list)
        for trained in self._trained:
            if trained.loss_share is not None:
                shares[plan.models[trained.number].point.number].append(trained.loss_share)
        own = added_shares(sums, plan.study.points, shares)
        # Each side loads its own programs only.
        if plan.tables.labels is None:
            from taciturn.protocol.alice.row_sums import open_sums

            yield from open_sums(sums, own, self._session.entropy.fork("sums of the study"))
            return
        from taciturn.protocol.bob.row_sums import read_sums

        self._sums = yield from read_sums(sums, own)

    def _begin(
        self, training: PlannedTraining, body: dict[str, Any] | None
    ) -> Program[PartyResult]:
        self._publish_stage()
        return super()._begin(training, body)

    def _follow(self) -> None:
        """The figures are the whole study's, and the losses a training's."""

    def _publish_stage(self) -> None:
        """Publish how many models are trained; no figure of one, which depends on labels."""
        stage = Stage("model", len(self._trained), len(self._plan.models))
        self._callbacks.publish(Stages((stage,)))

    def _advance(self, event: Progress | PartDone) -> None:
        """Report how far the whole study is; losses are the model's own."""
        plan, observe = self._plan, self._callbacks.observe
        before = plan.trainings[: self._training.number]
        done = event.done + sum(training.passes for training in before)
        if isinstance(event, PartDone):
            observe(replace(event, done=done, total=plan.passes))
            return
        self._losses.observe(event)
        whole = Progress(done, plan.passes)
        self._figures.observe(whole)
        observe(whole)

    def _keep(self, result: PartyResult) -> None:
        super()._keep(result)
        self._advance(Progress(result.trained.iterations, self._training.passes))

    def _log_kept(self, model: PlannedModel, result: PartyResult) -> None:
        studied = self._plan.models[model.number]
        on = "all rows" if studied.fold is None else f"fold {studied.fold + 1}"
        self._log("model trained", model=studied.point.number, on=on, number=model.number + 1)
        self._publish_stage()

    def _finish(self, ended: None) -> FinishedTraining:
        self._log("all models of the study are trained", models=len(self._plan.models))
        return replace(
            super()._finish(ended),
            sums=tuple(opened.total for opened in self._sums),
            noise_rows=max((opened.noise_rows for opened in self._sums), default=0.0),
        )

    def _ledger(self, bob: BobTrainingInputs) -> Statement:
        """The price of all trainings."""
        return self._plan.ledger().statement()

    def _arrays(self) -> ArrayStore:
        return _Prefixed(self._session.state.array_store, f"model-{self._training.number}-")


@dataclass(frozen=True, slots=True)
class _Prefixed:
    # Trainings of a study have arrays of the same names.
    array_store: ArrayStore
    prefix: str

    def put(self, name: str, values: FloatArray) -> Any:  # noqa: ANN401 - JSON
        return self.array_store.put(f"{self.prefix}{name}", values)

    def get(self, reference: Any) -> Load:  # noqa: ANN401 - JSON
        return self.array_store.get(reference)
