"""Alice's budget of opened scores, over trainings, predictions and services.

It counts by how many models each of her rows was scored for a partner, how often one of them scored
it again, and in how many trainings it was a training row (``scored_rows``). Enough scores by
different models determine a row (``taciturn.jobs.train.exposure``). A training is charged as a
whole, for the most scores that it can open.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, TypeAlias

import numpy as np

from taciturn.engine.callbacks import Announce, noop
from taciturn.job_registry import Namespace
from taciturn.party.config import PartyConfig
from taciturn.party.consent.budget import SESSION, Charge, RowBudget
from taciturn.party.consent.records import VALUE, Account, Flags, Records, Tags, Values
from taciturn.party.consent.scored_rows import (
    REPETITIONS,
    SCORES,
    TRAININGS,
    LargestCounts,
    RowChange,
    RowOpening,
    ScoredRows,
)
from taciturn.party.consent.store import ConsentStore
from taciturn.protocol.opened_scores import OpenedScores, counted_sums
from taciturn.protocol.terms import Terms
from taciturn.results.cost_preview import ExposedSession, OpenedSums, ScoreAccount

ScoreCharge: TypeAlias = Charge[RowOpening]
"""What is about to be opened of each row."""

_LEAST_MODELS = 2
_COLUMNS_PER_MODEL = 4


def score_limit(config: PartyConfig, terms: Terms, columns: int) -> int | None:
    """Limit on the models that score a row; ``columns`` are Alice's. None for no limit.

    Where training opens no scores, Alice's columns are at stake only through what is opened later:
    a quarter as many functions of a row as it has columns leave most of it unknown.
    """
    limit = config.privacy.scores_per_row
    if limit is not None or not terms.shares_scores:
        return limit
    return default_models(columns)


def default_models(columns: int) -> int:
    """Default limit on the models that score a row of so many columns of Alice's.

    >>> default_models(3), default_models(20)
    (2, 5)
    """
    return max(_LEAST_MODELS, columns // _COLUMNS_PER_MODEL)


_SUMS = "sums"


def opening_facts(
    mechanism: str, opened: OpenedScores, trainings: Iterable[tuple[Terms, int]]
) -> dict[str, Any]:
    """Record of a training or study: the most scores of one training row, and the opened sums.

    ``trainings`` are given by their terms and rows.
    """
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "mechanism": mechanism,
        "scores_per_row": opened.per_row,
        _SUMS: [asdict(sums) for sums in _opened_sums(counted_sums(trainings))],
    }


@dataclass(frozen=True, slots=True)
class ScoreBudget(RowBudget[RowOpening]):
    """The scores of each row that a partner was given; ``limit`` is on the models of a row.

    ``repetitions`` limits how often models score a row again, and ``trainings`` how many have it as
    a training row.
    """

    namespace: ClassVar[Namespace] = Namespace(SCORES, "models' scores of a row", "scores_per_row")

    limit: int | None = None
    repetitions: int | None = None
    trainings: int | None = None

    @classmethod
    def from_config(cls, config: PartyConfig, announce: Announce = noop) -> ScoreBudget:
        """Alice's budget for this peer, with the limits that her file sets."""
        store, limits = ConsentStore.from_config(config, announce), config.privacy
        return cls(
            store,
            config.peer,
            limits.scores_per_row,
            limits.repetitions_per_row,
            limits.trainings_per_row,
        )

    @classmethod
    def from_terms(
        cls, config: PartyConfig, terms: Terms, columns: int, announce: Announce = noop
    ) -> ScoreBudget:
        """Alice's budget for a model of these terms, with its default limit."""
        limit = score_limit(config, terms, columns)
        return replace(cls.from_config(config, announce), limit=limit)

    @property
    def limited(self) -> bool:
        """Whether a charge can be refused."""
        return (self.limit, self.repetitions, self.trainings) != (None, None, None)

    def most_given(self) -> int:
        """The most models that have scored one row for the partner."""
        return self.largest().models

    def models_after(self, charge: ScoreCharge) -> int:
        """The most models that have scored one of these rows after a charge, or are charged."""
        with self.store.reading() as records:
            account = self.account(records)
            if self._is_charged(account, charge.session):
                return 0
            rows = ScoredRows(records, self.partner)
            changes = (
                rows.change(tags, opening)
                for tags, (_, opening) in zip(self._tags(account, charge), charge.rows, strict=True)
            )
            models = (one.before[VALUE] + one.added[VALUE] for one in changes)
            return max((int(of_rows.max(initial=0)) for of_rows in models), default=0)

    def largest(self) -> LargestCounts:
        """The largest counts of one row."""
        with self.store.reading() as records:
            return ScoredRows(records, self.partner).largest()

    def exposed_sessions(self) -> tuple[ExposedSession, ...]:
        """The sessions, with any partner, that opened scores of training rows, the oldest first."""
        with self.store.reading() as records:
            listed = [
                (account.name, session, facts)
                for account in records.accounts(self.namespace.name)
                for session, facts in _facts_of(account).items()
            ]
        exposed = (
            ExposedSession(
                partner=partner,
                session=session,
                **{name: value for name, value in facts.items() if name != _SUMS},
            )
            for partner, session, facts in listed
        )
        return tuple(session for session in exposed if session.scores_per_row != 0)

    def accounts(self) -> tuple[ScoreAccount, ...]:
        """What was opened to each partner."""
        with self.store.reading() as records:
            return tuple(
                _score_account(account, ScoredRows(records, account.name).largest())
                for account in records.accounts(self.namespace.name)
            )

    def allowed(self, change: RowChange) -> Flags:
        """The rows of a change that are within every limit."""
        allowed = np.ones(len(change.tags), bool)
        for _, before, added, limit in self._limited(change):
            allowed &= (added == 0) | (before + added <= limit)
        return allowed

    def _apply(
        self, records: Records, charge: ScoreCharge, tags: Sequence[Tags], *, write: bool
    ) -> None:
        rows = ScoredRows(records, self.partner)
        for of_rows, (_, opening) in zip(tags, charge.rows, strict=True):
            change = rows.change(of_rows, opening)
            for namespace, before, added, limit in self._limited(change):
                self._require_within(namespace, before, added, limit)
            if write:
                rows.write(change)

    def _limited(self, change: RowChange) -> Iterator[tuple[Namespace, Values, Values, int]]:
        """Every limit with the counts of the rows before, and what is added to each."""
        for namespace, column, limit in (
            (self.namespace, VALUE, self.limit),
            (_REPETITIONS, REPETITIONS, self.repetitions),
            (_TRAININGS, TRAININGS, self.trainings),
        ):
            if limit is not None:
                yield namespace, change.before[column], change.added[column], limit

    def _require_within(
        self, namespace: Namespace, before: Values, added: Values, limit: int
    ) -> None:
        after = before + added
        # A row that is beyond a limit that was lowered may stay there.
        beyond = (added > 0) & (after > limit)
        over = int(np.count_nonzero(beyond))
        if over:
            rows = f" for {over:,} of {len(before):,} rows"
            most, then = int(before[beyond].max()), int(after[beyond].max())
            raise namespace.exceeded(self.partner, most, then, limit, rows)


def _opened_sums(counts: Counter[tuple[str, int, int]]) -> tuple[OpenedSums, ...]:
    """The counts of sums, by kind, rows and passes."""
    return tuple(
        OpenedSums(kind=kind, numbers=numbers, rows=rows, passes=passes)
        for (kind, rows, passes), numbers in counts.items()
    )


def _facts_of(account: Account) -> dict[str, dict[str, Any]]:
    """The recorded facts of an account's sessions."""
    return {session: json.loads(facts) for session, facts in account.entries(SESSION).items()}


def _score_account(account: Account, largest: LargestCounts) -> ScoreAccount:
    sessions = _facts_of(account).values()
    counts: Counter[tuple[str, int, int]] = Counter()
    for sums in (OpenedSums(**one) for facts in sessions for one in facts.get(_SUMS, ())):
        counts[sums.kind, sums.rows, sums.passes] += sums.numbers
    return ScoreAccount(
        partner=account.name,
        **asdict(largest),
        sums=_opened_sums(counts),
        unrecorded=sum(
            facts.get("mechanism") == "mutual" and _SUMS not in facts for facts in sessions
        ),
    )


_REPETITIONS = Namespace(REPETITIONS, "repeated scores of a row", "repetitions_per_row")
_TRAININGS = Namespace(TRAININGS, "trainings of a row", "trainings_per_row")
