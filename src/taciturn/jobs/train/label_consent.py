"""``LabelConsent``: Bob's consent to a training, and the charge to his budget of labels.

An agreement under which Alice can compute labels (its ledger will say infinity) begins only where
Bob's own file says so in words: ``[privacy] accept-leak``. Which agreements these are follows from
the prices of what they release, also where another package's mechanism releases it.

**Guarantee.** Between two parties nothing of an infinite price leaves Bob without this line.

**Assumes.** What the forecast assumes (``taciturn.protocol.bob.forecast``).
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

from taciturn.engine.callbacks import Announce, Publish
from taciturn.errors import BudgetExceeded, TaciturnError
from taciturn.jobs.resumable import BudgetCheck
from taciturn.jobs.train.consent import leak_refusal
from taciturn.jobs.train.plan import TrainingPlan, refusal_in_words
from taciturn.party.consent.label_budget import LabelBudget
from taciturn.party.roles import MOST_COLUMNS
from taciturn.privacy.events import Statement
from taciturn.results.cost_preview import LedgerSum, Outlook
from taciturn.results.parties import LedgerPlanned
from taciturn.settings.agreement import ACCEPTED_LEAK

if TYPE_CHECKING:
    from taciturn.results.cost_preview import ColumnExposure, Estimate


class LabelConsent:
    """Bob's consent: his labels pay for what is released about them.

    ``line`` is the line of his file that accepts a leak.
    """

    line = "accept-leak"

    def __init__(self, plan: TrainingPlan) -> None:
        self.plan, self.config, self.terms = plan, plan.config, plan.terms

    @cached_property
    def ledger(self) -> Statement:
        """Privacy cost of all releases to the labels."""
        return self.plan.ledger().statement()

    @property
    def superfluous(self) -> bool:
        """Whether labels are protected, and the line is there."""
        return bool(self.config.privacy.accept_leak) and self._protected

    @property
    def _protected(self) -> bool:
        return math.isfinite(self.ledger.label_epsilon_total)

    def refusal(self) -> TaciturnError | None:
        """Why Bob does not begin; None where labels are protected, or he accepts the leak."""
        if self._protected or self.config.privacy.accept_leak == ACCEPTED_LEAK:
            return self.plan.unaffordable(self.ledger)
        return leak_refusal(self.terms, self.ledger, self.config.peer)

    def outlook(self) -> Outlook:
        """With what Bob's labels will pay, and have paid."""
        budget, charge = LabelBudget.from_config(self.config), self.plan.label_charge()
        so_far, then = budget.statements(charge)
        problem = self.refusal()
        try:
            budget.require(charge)
        except BudgetExceeded as exceeded:
            problem = problem or exceeded
        return Outlook(
            ledger=self.ledger,
            learns=self.plan.disclosure(),
            ledger_book=LedgerSum(
                trainings=len(budget.sessions()), so_far=so_far, then=then, limit=budget.limit
            ),
            refused=refusal_in_words(problem, self.config),
        )

    def budget(self, session: str, announce: Announce) -> BudgetCheck:
        """Bob's budget of labels; ``announce`` says when another program holds the store."""
        labels = LabelBudget.from_config(self.config, announce)
        # The charge anew each time: by then labels may have been flipped.

        def require() -> bool:
            labels.require(self.plan.label_charge(session))
            return True

        return BudgetCheck(
            require, lambda model, opened: labels.charge(self.plan.label_charge(session))
        )

    def unscored_text(self) -> str:
        """Why Alice opens no score of the held-out rows, and the line that would change it."""
        return (
            f"no score of the held-out rows is opened: {self.config.peer} has given them by "
            "as many models as its limit allows; a larger scores-per-row in [privacy] of its file "
            "opens them"
        )

    def publish(self, publish: Publish) -> None:
        """Publish what labels will pay."""
        publish(LedgerPlanned(self.ledger, self.config.privacy.budget))

    def notes(self) -> tuple[str, ...]:
        """A note where Bob does not know how many columns to expect."""
        if self.config.alice_columns is not None:
            return ()
        return (f"alice-columns is not agreed on: up to {MOST_COLUMNS:,} columns are accepted",)

    def exposure(self) -> ColumnExposure | None:
        """None: Bob's file does not limit the exposure of Alice's columns."""
        return None

    def over_limit(self) -> None:
        """None: Bob's limits are in his outlook."""

    columns_exposed = exposure
    scores = None

    def alice_columns(self, peer_columns: int) -> int:
        """Number of the only Alice's columns, as she states it."""
        return peer_columns

    def estimate(
        self, peer_columns: int, widths: tuple[int, ...], announce: Announce
    ) -> Estimate | None:
        """None: Bob lacks the columns that decide duration and traffic."""
        return None
