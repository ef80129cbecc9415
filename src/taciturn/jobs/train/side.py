"""``TrainingSide``: what one side of a training and one side of a study have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from taciturn.arrays import FloatArray
from taciturn.crypto.registry import on_engine
from taciturn.data.tables import LabelTable
from taciturn.engine.callbacks import SILENT, Callbacks, unpublished
from taciturn.engine.exposure import OpenedScores, column_exposure
from taciturn.errors import AgreementError, TaciturnError
from taciturn.jobs.resumable import BudgetCheck, ResumableSide, SessionOutcome
from taciturn.numerics.sorted_scores import Threshold, chosen, even_odds, threshold_at
from taciturn.party.agreed import require_fit, require_signed
from taciturn.party.compute import engine_of
from taciturn.party.config import MOST_COLUMNS, PartyConfig
from taciturn.party.consent.budget import Charge
from taciturn.party.consent.score_budget import ScoreBudget, ScoreCharge, opening_facts
from taciturn.party.keep import boot
from taciturn.party.log import Log
from taciturn.party.outlook import exposure_refusal, leak_refusal, outlook, planned_ledger
from taciturn.party.prepared import PreparedFolder
from taciturn.party.side import TrainingInputs, terms_of
from taciturn.party.tables import PartyTables, load_tables
from taciturn.privacy.statement import Statement
from taciturn.protocol.agree import unused
from taciturn.protocol.handshake import PROTOCOL_VERSION
from taciturn.protocol.steps import Program
from taciturn.protocol.terms import Terms
from taciturn.results.check import ColumnExposure
from taciturn.results.estimate import Estimate
from taciturn.results.live import LedgerPlanned, ScoresOpened, Setup
from taciturn.results.outlook import Outlook
from taciturn.version import __version__

if TYPE_CHECKING:
    from taciturn.party.consent.label_budget import LabelCharge

R = TypeVar("R")
O = TypeVar("O", bound=SessionOutcome)  # noqa: E741 - the outcome
# What the peer is told where a side's file lacks its consent, by the role of that side.
_UNACCEPTED = {
    "alice": "its own settings do not accept that columns can be reconstructed with this agreement",
    "bob": "its own settings do not accept that labels can be computed with this agreement",
}
# Limits that do not change what a session says.
_FREE_LIMITS = {
    "answer_milliseconds",
    "scores_per_row",
    "accept_leak",
    "accept_flips_key",
    "accept_column_exposure",
    "budget_total",
}


class TrainingSide(ResumableSide[O, R]):
    """One side of a session that trains, prepared; O is what the session ends with."""

    def __init__(self, config: PartyConfig, *, fresh: bool = False) -> None:
        self.fresh = fresh
        self.log, self.callbacks = Log.of(config, SILENT.announce), SILENT
        self._signers = require_signed(config)
        self._prepared = PreparedFolder(config.path(config.state.folder) / "prepared")
        tables = self._read_tables(config)
        require_fit(config, tables)
        self.inputs = TrainingInputs(config, tables, terms_of(config, tables))

    def _read_tables(self, config: PartyConfig) -> PartyTables:
        return load_tables(config, self._prepared)

    @property
    def config(self) -> PartyConfig:
        """The settings; those of a study's first combination."""
        return self.inputs.config

    @property
    def tables(self) -> PartyTables:
        """This side's rows."""
        return self.inputs.tables

    @property
    def terms(self) -> Terms:
        """The terms; those of a study's first combination."""
        return self.inputs.terms

    @property
    def setup(self) -> Setup:
        """Who trains, with which solver."""
        return Setup(self.inputs.identity(), self.terms.agreement.solver)

    @property
    def opened(self) -> OpenedScores:
        """The scores that are opened to Bob."""
        held_out = self.tables.held_out
        rows = 0 if held_out is None else held_out.rows
        return OpenedScores.of(self.terms, self.tables.train.rows, rows)

    def begin(self, log: Log, callbacks: Callbacks) -> None:
        """Log what the preparation found."""
        self.log, self.callbacks, config = log, callbacks, self.config
        if self._signers:
            log("agreement verified", file=config.agreement_file_name, signed_by=[*self._signers])
        for note in (
            *self.tables.notes,
            *unused(config.settings()),
            *_unpinned(config),
            *_unlimited(config),
        ):
            log("note", about=note)

    @contextmanager
    def at_work(self, config: PartyConfig, log: Log) -> Iterator[None]:
        """With this side's engine; after a stop it may be another one."""
        inputs, terms = self.inputs, self.terms
        with engine_of(self.config, log) as engine:
            working = replace(terms, scheme=on_engine(terms.scheme, engine))
            self.inputs = replace(inputs, terms=working)
            try:
                yield
            finally:
                self.inputs = inputs

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
        }

    def require_accepted(self) -> None:
        """Raise where this side's file does not accept the exposure of its columns or labels."""
        problem = self._unaccepted()
        if problem is not None:
            raise problem.telling_peer(AgreementError(_UNACCEPTED[self.config.role]))

    def _unaccepted(self) -> TaciturnError | None:
        limits = self.config.privacy
        if self.config.role == "alice":
            problem: TaciturnError | None = exposure_refusal(self.config, self.terms)
            line, unneeded = limits.accept_column_exposure, self.terms.mechanism.shares_scores
            name = "accept-column-exposure"
        else:
            ledger = self.planned_ledger()
            self.callbacks.publish(LedgerPlanned(ledger, limits.budget))
            problem = self.ledger_refusal(ledger)
            line, unneeded = limits.accept_leak, math.isfinite(ledger.label_epsilon_total)
            name = "accept-leak"
        if problem is None and line and unneeded:
            # Left there it would accept the next agreement, which may be another one.
            self.log("note", about=f"{name} is not needed for this agreement: remove it")
        return problem

    def planned_ledger(self) -> Statement:
        """What labels will pay, all releases together."""
        return planned_ledger(self.config, self.tables, self.terms).statement()

    def ledger_refusal(self, ledger: Statement) -> TaciturnError | None:
        """Why Bob's file does not accept these releases; None where it does."""
        return leak_refusal(self.config, self.terms, ledger)

    def budget(self, session: str) -> BudgetCheck:
        """Alice's budget of scores, or Bob's of labels."""
        scores = ScoreBudget.from_config(self.config)
        if scores is not None:
            charge = self.score_charge(session)
            self._publish_opened(scores)
            return BudgetCheck(partial(scores.require, charge), partial(scores.charge, charge))
        # Only who pays for releases loads what counts them.
        from taciturn.party.consent.label_budget import LabelBudget

        labels = LabelBudget.from_config(self.config)
        # The charge anew each time: by then labels may have been flipped.
        return BudgetCheck(
            lambda: labels.require(self.label_charge(session)),
            lambda: labels.charge(self.label_charge(session)),
        )

    def _publish_opened(self, budget: ScoreBudget) -> None:
        if self.callbacks.publish is unpublished:
            return
        counts = self.opened
        opened = ScoresOpened(counts.per_row, counts.in_all, budget.most_given(), budget.limit)
        self.callbacks.publish(opened)

    def score_charge(self, session: str) -> ScoreCharge:
        """The scores that the whole session opens to Bob, of each row."""
        train, held_out = self.tables.train, self.tables.held_out
        counts = OpenedScores.of(self.terms, train.rows)
        rows = [(train.ids, counts.per_row)]
        if held_out is not None:
            rows.append((held_out.ids, counts.per_held_out_row))
        return Charge(tuple(rows), session, opening_facts(self.terms, counts))

    def label_charge(self, session: str) -> LabelCharge:
        """What the whole session releases of each label."""
        from taciturn.party.consent.label_budget import training_charge

        return training_charge(self.config, self.tables, self.terms, session)

    def threshold_of(
        self, held_out: LabelTable | None, scores: FloatArray | None, terms: Terms
    ) -> Threshold:
        """Above which score Bob calls a new row a one: as he says, or as the held-out rows say."""
        output, shift = self.config.output, terms.log_odds_shift
        if output.threshold is not None:
            return threshold_at(output.threshold, shift)
        if held_out is None or scores is None:
            return even_odds(shift)
        return chosen(scores, held_out.values, output.miss_cost, shift)

    def opening(self) -> Program[None]:
        """What the sides compare before the first message of a training."""
        yield from ()

    def outlook(self) -> Outlook:
        """What the session will cost, and disclose."""
        return outlook(self.config, self.tables, self.terms)

    def exposure(self) -> ColumnExposure | None:
        """What Bob can learn of her columns: for Alice to know before she begins."""
        if self.config.role == "bob":
            return None
        train = self.tables.train
        exposed = column_exposure(self.terms, train.rows, train, opened=self.opened)
        return replace(
            exposed, warning=f"{exposed.warning}. {self._counted(exposed.scores_per_row)}"
        )

    def _counted(self, opens: int) -> str:
        """What Bob was given before, and may be given, in this training too."""
        budget = ScoreBudget.from_config(self.config)
        given = 0 if budget is None else budget.most_given()
        limit = self.config.privacy.scores_per_row
        bound = "no limit is set (scores-per-row)"
        if limit is not None:
            refused = given + opens > limit
            bound = f"the limit is {limit:,}"
            bound += " and a new training of these rows is refused" if refused else ""
        return f"So far {self.config.peer} was given up to {given:,} of a row; {bound}"

    def estimate(self, peer_columns: int, widths: tuple[int, ...]) -> Estimate | None:
        """Duration and traffic; None at Bob, who lacks the columns that decide them.

        ``widths`` are the columns of each of several Alices, empty with one.
        """
        if self.config.role == "bob":
            return None
        # Loaded here: a training measures no sample, and loads its own side only.
        from taciturn.engine.estimate import estimate_cost

        self.log("measuring time and traffic")
        train, compute = self.tables.train, self.config.compute
        # Several Alices know each other's number of columns, and not Bob's.
        alices, bob = (widths, 1) if widths else ([train], peer_columns)
        memory = compute.table_memory << 20
        return estimate_cost(
            self.terms, train.rows, alices, bob, table_memory=memory, cores=compute.cores
        )

    def clear_prepared(self) -> None:
        """Remove the prepared tables: the session is over."""
        self._prepared.clear()


def _unlimited(config: PartyConfig) -> tuple[str, ...]:
    """A note where Alice sets no limit to what Bob may learn of her columns."""
    if config.role == "bob" or config.privacy.scores_per_row is not None:
        return ()
    return (f"scores-per-row is not set: scores for {config.peer} are counted, not limited",)


def _unpinned(config: PartyConfig) -> tuple[str, ...]:
    """A note where Bob does not know how many columns to expect."""
    if config.role == "alice" or config.alice_columns is not None:
        return ()
    return (f"alice-columns is not agreed on: up to {MOST_COLUMNS:,} columns are accepted",)
