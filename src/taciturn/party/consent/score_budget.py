"""Alice's budget of opened scores: how many scores of each of her rows a partner was given.

A score is a linear function of a row, and enough of them determine the row
(``taciturn.engine.exposure``). Trainings, held-out rows, predictions and services charge the same
account. A training is charged as a whole, for the most scores that it can open; a prediction and a
service are charged one score a row.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, TypeAlias

import numpy as np

from taciturn.engine.callbacks import Announce, noop
from taciturn.engine.exposure import OpenedScores
from taciturn.party.config import PartyConfig
from taciturn.party.consent.budget import SESSION, Charge, Namespace, RowBudget
from taciturn.party.consent.records import Account, Values
from taciturn.party.consent.store import ConsentStore
from taciturn.protocol.terms import Terms
from taciturn.results.cost_preview import ExposedSession

ScoreCharge: TypeAlias = Charge[int]
"""The number of scores of each row that are about to be opened."""


def opening_facts(terms: Terms, opened: OpenedScores) -> dict[str, Any]:
    """What is recorded of a training: its mechanism, and the most scores of one training row."""
    # Rows of a fold are scored by a model that was not trained on them.
    exposes = not terms.mechanism.shares_scores
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "mechanism": terms.agreement.mechanism,
        "scores_per_row": opened.per_row if exposes else 0,
    }


@dataclass(frozen=True, slots=True)
class ScoreBudget(RowBudget[int]):
    """The scores of each row that a partner was given."""

    namespace: ClassVar[Namespace] = Namespace("scores", "scores of a row", "scores_per_row")

    limit: int | None = None

    @classmethod
    def from_config(cls, config: PartyConfig, announce: Announce = noop) -> ScoreBudget:
        """Alice's budget for this peer."""
        store = ConsentStore.from_config(config, announce)
        return cls(store, config.peer, config.privacy.scores_per_row)

    def most_given(self) -> int:
        """The most scores of one row that the partner was given so far."""
        with self.store.reading() as records:
            return max(self.account(records).distinct_values(), default=0)

    def exposed_sessions(self) -> tuple[ExposedSession, ...]:
        """The sessions, with any partner, that opened scores of training rows, the oldest first."""
        with self.store.reading() as records:
            listed = [
                ExposedSession(partner=account.name, session=session, **json.loads(facts))
                for account in records.accounts(self.namespace.name)
                for session, facts in account.entries(SESSION).items()
            ]
        return tuple(session for session in listed if session.scores_per_row != 0)

    def _added(self, account: Account, before: Values, amount: int, *, write: bool) -> Values:
        after = before + amount
        over = 0 if self.limit is None else int(np.count_nonzero(after > self.limit))
        if self.limit is not None and over:
            rows, most = f" for {over:,} of {len(before):,} rows", int(before.max())
            raise self.namespace.exceeded(self.partner, most, most + amount, self.limit, rows)
        return after
