"""``TrainingPlan``: what a training will cost and disclose, and whether this side accepts it.

An agreement under which Alice can compute labels (its ledger will say infinity) begins only where
Bob's own file says so in words: ``[privacy] accept-leak``. Which agreements these are follows from
the prices of what they release, also where another package's mechanism releases it.

An agreement that opens training scores to Bob, from which he can reconstruct Alice's columns,
begins only where Alice's own file says so: ``[privacy] accept-column-exposure``. Which agreements
these are follows from the terms (``shares_scores``).

**Guarantee.** Between two parties nothing of an infinite price leaves Bob, and no training score
leaves Alice, without these lines.

**Assumes.** What the forecast assumes (``taciturn.protocol.bob.forecast``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from taciturn.data.tables import FeatureTable, LabelTable
from taciturn.engine.callbacks import Announce, Publish, noop
from taciturn.errors import (
    BudgetExceeded,
    ColumnError,
    ConfigError,
    LabelValueError,
    TaciturnError,
    counted,
)
from taciturn.jobs.resumable import BudgetCheck
from taciturn.jobs.train.disclosure_text import disclosure_text
from taciturn.jobs.train.exposure import column_exposure
from taciturn.jobs.train.few_columns import few_columns_text
from taciturn.party.config import ACCEPTED_EXPOSURE, ACCEPTED_LEAK, PartyConfig
from taciturn.party.consent.budget import Charge, ScoreBudget, ScoreCharge, opening_facts
from taciturn.party.consent.scored_rows import RowOpening
from taciturn.party.roles import MOST_COLUMNS
from taciturn.party.tables import PartyTables, load_tables
from taciturn.party.training_inputs import TrainingInputs, party_terms
from taciturn.privacy.events import NonPrivate, Statement
from taciturn.privacy.quality_release import TOLD, release_event
from taciturn.protocol.opened_scores import OpenedScores
from taciturn.results.cost_preview import (
    ColumnExposure,
    Disclosure,
    Estimate,
    LedgerSum,
    Outlook,
    Refusal,
)
from taciturn.results.parties import LedgerPlanned, ScoresOpened
from taciturn.setting_syntax import Hint
from taciturn.settings.agreement import ACCEPTED_FEW, LEAST_LABELS, Agreement

if TYPE_CHECKING:
    from taciturn.party.consent.label_budget import LabelCharge, Release
    from taciturn.privacy.ledger import Ledger


@dataclass(frozen=True, slots=True)
class TrainingPlan(TrainingInputs):
    """One side of a training before it begins.

    For a study the figures are those of all its trainings together; the settings and terms are
    those of its first combination.
    """

    @classmethod
    def from_config(cls, config: PartyConfig, tables: PartyTables | None = None) -> TrainingPlan:
        """The plan of a party's file; its table is read where ``tables`` is None."""
        tables = tables or load_tables(config.first)
        if config.study is not None:
            # Loaded here: most files train one model.
            from taciturn.jobs.study.plan import StudyPlan

            return StudyPlan.from_study(config, config.study, tables)
        return cls(config, tables, party_terms(config, tables))

    @property
    def held_out_rows(self) -> int:
        """The number of held-out rows."""
        return 0 if self.tables.held_out is None else self.tables.held_out.rows

    @property
    def scores(self) -> OpenedScores:
        """The scores that are opened to Bob."""
        return OpenedScores.from_terms(self.terms, self.tables.train.rows, self.held_out_rows)

    @property
    def consent(self) -> FeatureConsent | LabelConsent:
        """Consent that this side's file must give, and the charge to its budget."""
        return FeatureConsent(self) if self.config.role == "alice" else LabelConsent(self)

    def require_labels(self) -> None:
        """Raise LabelValueError where Bob has fewer labels of a class than agreed on."""
        for labels in self.training_labels():
            require_labels(labels, self.terms.agreement)

    def training_labels(self) -> Iterator[LabelTable]:
        """Bob's labels of each set of rows that is trained on; nothing at Alice."""
        if self.tables.labels is not None:
            yield self.tables.labels

    def require_rarest_value(self) -> None:
        """Raise ColumnError where a column of Alice's points at fewer rows than agreed on."""
        least = self.terms.agreement.rarest_value
        if least is not None and self.config.role == "alice":
            require_rarest_value(self.tables.train, least)

    def facts(self) -> dict[str, str]:
        """Facts that must not change while a session is unfinished, besides tables and terms."""
        return {}

    def disclosure(self) -> Disclosure:
        """Disclosure to each side."""
        return disclosure_text(self.terms, self.tables.train.rows, self.held_out_rows)

    def outlook(self) -> Outlook:
        """Cost and disclosure; BudgetExceeded where the training would end with it on its way."""
        return self.consent.outlook()

    def of_all(self, single: Estimate) -> Estimate:
        """Time and traffic of everything, from those of the training with these terms."""
        return single

    def ledger(self) -> Ledger:
        """Bob's ledger at the end, for a representative row."""
        # Each side loads its own programs only.
        from taciturn.protocol.bob.forecast import forecast

        train, limits = self.tables.train, self.config.privacy
        columns = len(train.columns)
        return forecast(self.terms, train.rows, columns, budget=limits.budget, delta=limits.delta)

    def unaffordable(self, ledger: Statement) -> BudgetExceeded | None:
        """Why Bob's budget does not pay for all trainings; one ends where the budget does."""
        return None

    def score_charge(
        self, session: str = "", model: str = "", *, held_out_opened: bool = True
    ) -> ScoreCharge:
        """What is opened of each row to Bob.

        ``session`` is empty in a forecast; ``model`` names the model, and is empty until the two
        sides have met: one that is new is one that has no name. ``held_out_opened`` is whether
        held-out rows are scored, where Alice may withhold their scores.
        """
        opened, held_out = self.scores, self.tables.held_out if held_out_opened else None
        models = (model,) if model else ()
        train, scored = opened_rows(opened, models)
        rows = [(self.tables.train.ids, train)]
        if held_out is not None:
            rows.append((held_out.ids, scored))
        trainings = ((self.terms, self.tables.train.rows),)
        facts = opening_facts(self.terms.agreement.mechanism, opened, trainings)
        return Charge(tuple(rows), session, facts)

    def held_out_charge(self, session: str = "") -> ScoreCharge | None:
        """The part of the charge that Alice may withhold; None where there is none."""
        held_out = self.tables.held_out
        if held_out is None or not self.terms.may_withhold_scores:
            return None
        return Charge(((held_out.ids, opened_rows(self.scores, ())[1]),), session)

    def label_charge(self, session: str = "") -> LabelCharge:
        """The releases of each label; ``session`` is empty in a forecast."""
        from taciturn.party.consent.label_budget import releases_of

        agreed, held_out = self.terms.agreement, self.tables.held_out
        releases: Mapping[Release, int] = releases_of(self.config, self.terms, self.ledger())
        rows = [(self.tables.train.ids, releases)]
        if held_out is not None and agreed.patience is not None:
            # When Bob stops depends on these labels too.
            rows.append((held_out.ids, {(NonPrivate(), ""): agreed.rounds}))
        elif held_out is not None and agreed.share_metrics == "quality":
            rows.append((held_out.ids, {(release_event(agreed.metrics_epsilon), ""): 1}))
        return Charge(tuple(rows), session)


def opened_rows(opened: OpenedScores, models: tuple[str, ...]) -> tuple[RowOpening, RowOpening]:
    """What a training opens of a training row and of a held-out row; ``models`` are its models."""
    final = models if opened.by_trained else ()
    return (
        RowOpening(trainings=1, unnamed=opened.per_row - len(final), models=final),
        RowOpening(unnamed=opened.per_held_out_row - len(models), models=models),
    )


def require_labels(labels: LabelTable, agreed: Agreement) -> None:
    """Raise LabelValueError where a class has fewer labels than agreed on."""
    if agreed.few_labels == ACCEPTED_FEW or labels.rarest_class() >= LEAST_LABELS:
        return
    raise LabelValueError(
        f"of {labels.rows:,} training labels {labels.rarest_class()} are of the rarer class, and "
        f"fewer than {LEAST_LABELS} point at single rows: the other side's weights would show "
        "these rows",
        setting="few_labels",
        hint=Hint(
            "train on more rows; or, if both sides want that, agree on {few_labels}",
            few_labels=ACCEPTED_FEW,
        ),
    )


def require_rarest_value(table: FeatureTable, least: int) -> None:
    """Raise ColumnError where a column has fewer rows off its commonest value."""
    for name, values in zip(table.columns, table.values.T, strict=True):
        _, counts = np.unique(values, return_counts=True)
        others = table.rows - int(counts.max())
        if others < least:
            raise ColumnError(
                f"column {name} has {others:,} of {table.rows:,} rows off its commonest value, and "
                f"at least {least:,} are agreed on",
                setting="rarest_value",
                hint="leave the column out, merge its rare values, or agree on a smaller number",
            )


def _refusal(problem: TaciturnError | None, config: PartyConfig) -> Refusal | None:
    if problem is None:
        return None
    problem.syntax = config.syntax
    return Refusal(problem.message, problem.hint)


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
        """Whether scores of training rows are opened: in ``mutual`` by a study that says so."""
        return not self.terms.shares_scores or self.plan.scores.per_row > 0

    def refusal(self) -> ConfigError | None:
        """Reason why Alice refuses; None if no training score is sent, or she accepts it."""
        accepted = self.config.privacy.accept_column_exposure == ACCEPTED_EXPOSURE
        if accepted or not self._exposes:
            return None
        line = "write {accept_column_exposure} in [privacy]"
        if self.terms.shares_scores:
            return ConfigError(
                f"{self.config.peer} can reconstruct this side's columns: the study opens a score "
                "of every training row for each combination (open-scores)",
                setting="accept_column_exposure",
                hint=Hint(
                    f"leave open-scores out of [study]; or, if that is what you want, {line}",
                    accept_column_exposure=ACCEPTED_EXPOSURE,
                ),
            )
        return ConfigError(
            f"with this agreement {self.config.peer} can reconstruct this side's columns: "
            f"{self.terms.agreement.mechanism} opens scores of every training row",
            setting="accept_column_exposure",
            hint=Hint(
                f"agree on {{mechanism}}, which opens none; or, if that is what you want, {line}"
                if self.terms.agreement.alices == 1
                else f"if that is what you want, {line}; only {{mechanism}} opens none, for one "
                "Alice",
                mechanism="mutual",
                accept_column_exposure=ACCEPTED_EXPOSURE,
            ),
        )

    def outlook(self) -> Outlook:
        """Alice has no ledger."""
        refused = _refusal(self.refusal(), self.config)
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
        if self.ledger.assumption == TOLD and self._protected_but_for_telling():
            return ConfigError(
                f"with this agreement {self.config.peer} learns how good the model is, in whole "
                "per cent: a few bits about all labels together, which have no finite price",
                setting="accept_leak",
                hint=Hint(
                    "leave {share_metrics} out on both sides; or, if that is what you want, write "
                    "{accept_leak} in [privacy]",
                    accept_leak=ACCEPTED_LEAK,
                ),
            )
        return ConfigError(
            f"with this agreement {self.config.peer} can compute labels: "
            f"{self.terms.mechanism.receives()}; the ledger says: {self.ledger.assumption}",
            setting="accept_leak",
            hint=Hint(
                "agree on {mechanism} with its defaults, under which none can be computed; or, if "
                "that is what you want, write {accept_leak} in [privacy]",
                mechanism="sealed",
                accept_leak=ACCEPTED_LEAK,
            ),
        )

    def outlook(self) -> Outlook:
        """With what Bob's labels will pay, and have paid."""
        # Only who pays for releases loads what counts them.
        from taciturn.party.consent.label_budget import LabelBudget

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
            refused=_refusal(problem, self.config),
        )

    def budget(self, session: str, announce: Announce) -> BudgetCheck:
        """Bob's budget of labels; ``announce`` says when another program holds the store."""
        from taciturn.party.consent.label_budget import LabelBudget

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

    def _protected_but_for_telling(self) -> bool:
        """Whether the price would be finite if Alice learnt nothing of the model."""
        # Each side loads its own programs only.
        from taciturn.protocol.bob.forecast import forecast

        nothing = {"share_metrics": "nothing", "metrics_epsilon": None}
        agreement = self.terms.agreement.model_copy(update=nothing)
        ledger = forecast(replace(self.terms, agreement=agreement), rows=1, bob_columns=1)
        return math.isfinite(ledger.statement().label_epsilon_total)
