"""``FeatureConsent``: Alice's consent to a training, and the charge to her budget of scores.

An agreement that opens training scores to Bob, from which he can reconstruct Alice's columns,
begins only where Alice's own file says so: ``[privacy] accept-column-exposure``. Which agreements
these are follows from the terms (``shares_scores``).

**Guarantee.** Between two parties no training score leaves Alice without this line.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from taciturn.engine.callbacks import Announce, Publish, noop
from taciturn.errors import BudgetExceeded, ConfigError, counted
from taciturn.jobs.resumable import BudgetCheck
from taciturn.jobs.train.consent import exposes_columns, exposure_refusal
from taciturn.jobs.train.exposure import column_exposure
from taciturn.jobs.train.few_columns import few_columns_text
from taciturn.jobs.train.plan import TrainingPlan, refusal_in_words
from taciturn.party.consent.score_budget import ScoreBudget
from taciturn.results.cost_preview import ColumnExposure, Outlook
from taciturn.results.parties import ScoresOpened
from taciturn.settings.agreement import ACCEPTED_EXPOSURE

if TYPE_CHECKING:
    from taciturn.results.cost_preview import Estimate


class FeatureConsent:
    """Alice's consent: scores of her training rows are opened to Bob.

    ``line`` is the line of her file that accepts it.
    """

    line = "accept-column-exposure"

    def __init__(self, plan: TrainingPlan) -> None:
        self.plan, self.config, self.terms = plan, plan.config, plan.terms

    @property
    def superfluous(self) -> bool:
        """Whether no training score is opened, and the line is there."""
        line = self.config.privacy.accept_column_exposure
        return bool(line) and not self._exposes

    @property
    def _exposes(self) -> bool:
        return exposes_columns(self.terms, self.plan.scores)

    def refusal(self) -> ConfigError | None:
        """Reason why Alice refuses; None if no training score is sent, or she accepts it."""
        accepted = self.config.privacy.accept_column_exposure == ACCEPTED_EXPOSURE
        if accepted or not self._exposes:
            return None
        return exposure_refusal(self.terms, self.config.peer)

    def outlook(self) -> Outlook:
        """Alice has no ledger."""
        refused = refusal_in_words(self.refusal(), self.config)
        return Outlook(ledger=None, learns=self.plan.disclosure(), refused=refused)

    def budget(self, session: str, announce: Announce) -> BudgetCheck:
        """Alice's budget of scores; ``announce`` says when another program holds the store."""
        scores, plan = self._budget(announce), self.plan

        def require() -> bool:
            opened = self._opens_held_out(scores, session)
            scores.require(plan.score_charge(session, held_out_opened=opened))
            return opened

        def charge(model: str, opened: bool) -> None:
            scores.charge(plan.score_charge(session, model, held_out_opened=opened))

        return BudgetCheck(require, charge)

    def over_limit(self) -> BudgetExceeded | None:
        """Why Alice's limits do not allow this training; None where they do."""
        opened = self._opens_held_out(self.scores, "")
        try:
            self.scores.require(self.plan.score_charge(held_out_opened=opened))
        except BudgetExceeded as problem:
            return problem
        return None

    def unscored_text(self) -> str:
        """Why no score of the held-out rows is opened, and the line that would change it."""
        charge = self.plan.held_out_charge()
        needed = 0 if charge is None else self.scores.models_after(charge)
        return (
            f"no score of the held-out rows is opened: {self.config.peer} was given their scores "
            f"by as many models as the limit allows; scores-per-row = {needed} in [privacy] opens "
            "them"
        )

    def _opens_held_out(self, scores: ScoreBudget, session: str) -> bool:
        charge = self.plan.held_out_charge(session)
        if charge is None or scores.limit is None:
            return True
        return scores.models_after(charge) <= scores.limit

    def publish(self, publish: Publish) -> None:
        """Publish how many scores are opened, now and before."""
        # Reading the store takes time that nobody who listens to nothing should wait.
        if publish is not noop:
            counts, scores = self.plan.scores, self.scores
            given = scores.most_given()
            publish(ScoresOpened(counts.per_row, counts.in_all, given, scores.limit))

    def notes(self) -> tuple[str, ...]:
        """Notes where nothing limits what Bob may learn of Alice's columns, or a limit is vain."""
        few, peer = few_columns_text(self.plan.tables.train), self.config.peer
        notes = (few,) if few else ()
        if self.scores.limit is not None:
            return notes
        return (*notes, f"scores-per-row is not set: scores for {peer} are counted, not limited")

    def exposure(self) -> ColumnExposure | None:
        """Exposure of Alice's columns, earlier trainings included."""
        exposed, given, limit = self.columns_exposed(), self.scores.largest(), self.scores.limit
        bound = "no limit is set (scores-per-row)" if limit is None else f"the limit is {limit:,}"
        if self.over_limit() is not None:
            bound += ", and a new training of these rows is refused"
        elif not self._opens_held_out(self.scores, ""):
            bound += f", and {self.unscored_text()}"
        so_far = (
            f"{self.config.peer} has received scores of a row by up to "
            f"{counted(given.models, 'model')} so far ({bound}), up to "
            f"{counted(given.repetitions, 'repeated score')} of a row, and "
            f"{counted(given.trainings, 'training')} on it"
        )
        return replace(exposed, warning=f"{exposed.warning}. {so_far}")

    def columns_exposed(self) -> ColumnExposure:
        """Exposure of Alice's columns by this agreement alone."""
        train = self.plan.tables.train
        return column_exposure(self.terms, train.rows, train, opened=self.plan.scores)

    def alice_columns(self, peer_columns: int) -> int:
        """Number of the only Alice's columns: this side's."""
        return len(self.plan.tables.train.columns)

    def estimate(
        self, peer_columns: int, widths: tuple[int, ...], announce: Announce
    ) -> Estimate | None:
        """Duration and traffic; ``widths`` are the columns of several Alices, empty with one."""
        # Loaded here: a training measures no sample, and loads its own side only.
        from taciturn.jobs.train.estimate import estimate_cost

        announce("measuring time and traffic")
        train, compute = self.plan.tables.train, self.config.compute
        # Several Alices know each other's number of columns, and not Bob's.
        alices, bob = (widths, 1) if widths else ([train], peer_columns)
        single = estimate_cost(
            self.terms,
            train.rows,
            alices,
            bob,
            held_out=self.plan.held_out_rows,
            table_memory=compute.table_memory << 20,
            cores=compute.cores,
        )
        return self.plan.of_all(single)

    @cached_property
    def scores(self) -> ScoreBudget:
        """Alice's count of the scores that the peer was given."""
        return self._budget(noop)

    def _budget(self, announce: Announce) -> ScoreBudget:
        columns = len(self.plan.tables.train.columns)
        return ScoreBudget.from_terms(self.config, self.terms, columns, announce)
