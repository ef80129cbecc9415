"""``JournaledTraining``: what one side of a training and one side of a study have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from taciturn.arrays import FloatArray
from taciturn.crypto.bfv.workers import Engine
from taciturn.data.tables import LabelTable
from taciturn.engine.callbacks import SILENT, Callbacks
from taciturn.errors import AgreementError
from taciturn.jobs.resumable import BudgetCheck, ResumableSide, SessionOutcome
from taciturn.jobs.train.plan import TrainingPlan
from taciturn.numerics.sorted_scores import Threshold, chosen, even_odds, threshold_at
from taciturn.party.agreement_check import require_fit, require_signed
from taciturn.party.compute import engine_of
from taciturn.party.config import PartyConfig
from taciturn.party.log import Log
from taciturn.party.prepared_cache import PreparedCache
from taciturn.party.state_store import boot
from taciturn.party.tables import PartyTables, load_tables
from taciturn.protocol.agree import unused
from taciturn.protocol.handshake import PROTOCOL_VERSION
from taciturn.protocol.steps import Program
from taciturn.protocol.terms import Terms
from taciturn.results.parties import Setup
from taciturn.version import __version__

R = TypeVar("R")
O = TypeVar("O", bound=SessionOutcome)  # noqa: E741 - the outcome
# Limits that do not change what a session says.
_FREE_LIMITS = {
    "answer_interval_milliseconds",
    "scores_per_row",
    "accept_leak",
    "accept_flips_key",
    "accept_column_exposure",
    "budget_total",
}


class JournaledTraining(ResumableSide[O, R]):
    """One side of a session that trains, prepared; O is what the session ends with."""

    def __init__(self, config: PartyConfig, *, fresh: bool = False) -> None:
        self.fresh = fresh
        self.engine: Engine | None = None
        self.log, self.callbacks = Log.from_config(config, SILENT.announce), SILENT
        self._signers = require_signed(config)
        self._prepared = PreparedCache(config.path(config.state.folder) / "prepared")
        tables = load_tables(config.first, self._prepared)
        require_fit(config, tables)
        self.plan = TrainingPlan.from_config(config, tables)

    @property
    def config(self) -> PartyConfig:
        """The settings; those of a study's first combination."""
        return self.plan.config

    @property
    def tables(self) -> PartyTables:
        """This side's rows."""
        return self.plan.tables

    @property
    def terms(self) -> Terms:
        """The terms; those of a study's first combination."""
        return self.plan.terms

    @property
    def setup(self) -> Setup:
        """Who trains, with which solver."""
        return Setup(self.plan.identity(), self.terms.agreement.solver.name)

    def begin(self, log: Log, callbacks: Callbacks) -> None:
        """Log what the preparation found."""
        self.log, self.callbacks, config = log, callbacks, self.config
        if self._signers:
            log("agreement verified", file=config.agreement_file_name, signed_by=[*self._signers])
        for note in (
            *self.tables.notes,
            *unused(config.settings()),
            *self.plan.consent.notes(),
        ):
            log("note", about=note)

    @contextmanager
    def at_work(self, config: PartyConfig, log: Log) -> Iterator[None]:
        """With this side's engine; after a stop it may be another one."""
        with engine_of(self.config, log) as self.engine:
            try:
                yield
            finally:
                self.engine = None

    def facts(self) -> dict[str, Any]:
        """Role, terms, versions, digests and limits."""
        labels = self.tables.labels
        return {
            "role": self.config.role,
            "terms": self.terms.agreement.canonical(),
            "protocol": PROTOCOL_VERSION,
            "version of taciturn": __version__,
            # Without sync a stop of the machine can lose what was sent already.
            "start of the machine (sync = false)": "" if self.config.state.sync else boot(),
            "table": self.tables.train.digest(),
            "held-out table": self.tables.held_out.digest() if self.tables.held_out else "",
            "labels": "" if labels is None else labels.digest(),
            # When answers leave may change at any time; what they say may not.
            # Nor what is counted elsewhere: the session was charged when it began.
            "limits": self.config.privacy.model_dump(exclude=_FREE_LIMITS),
            **self.plan.facts(),
        }

    def require_accepted(self) -> None:
        """Raise where this side's file does not accept the exposure of its columns or labels."""
        consent = self.plan.consent
        consent.publish(self.callbacks.publish)
        problem = consent.refusal()
        if problem is not None:
            raise problem.telling_peer(
                AgreementError(
                    f"its own settings do not accept that {consent.accepts} with this agreement"
                )
            )
        if consent.superfluous:
            # Left there it would accept the next agreement, which may be another one.
            self.log("note", about=f"{consent.line} is not needed for this agreement: remove it")

    def budget(self, session: str) -> BudgetCheck:
        """Alice's budget of scores, or Bob's of labels."""
        return self.plan.consent.budget(session, self.log)

    def threshold_of(
        self, held_out: LabelTable | None, scores: FloatArray | None, terms: Terms
    ) -> Threshold:
        """Above which score Bob calls a new row a one: as he says, or as the held-out rows say."""
        output, shift = self.config.output, terms.log_odds_shift
        if output.threshold is not None:
            return threshold_at(output.threshold, shift)
        if held_out is None or scores is None:
            return even_odds(shift)
        return chosen(scores, held_out.values, output.false_negative_cost, shift)

    def opening(self) -> Program[None]:
        """What the sides compare before the first message of a training."""
        yield from ()

    def clear_prepared(self) -> None:
        """Remove the prepared tables: the session is over."""
        self._prepared.clear()
