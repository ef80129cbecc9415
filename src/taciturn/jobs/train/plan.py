"""``TrainingPlan``: what a training will cost and disclose, and whether this side accepts it.

A plan has the trainings of one session with their models: one, or those of a study. What this
side's own file must say before they begin is in ``feature_consent`` (Alice) and ``label_consent``
(Bob).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.errors import BudgetExceeded, ColumnError, TaciturnError
from taciturn.jobs.train.consent import require_labels
from taciturn.jobs.train.disclosure_text import disclosure_text
from taciturn.memmap import MEMORY, Scratch
from taciturn.party.config import PartyConfig
from taciturn.party.consent.budget import Charge
from taciturn.party.consent.score_budget import ScoreCharge, opening_facts
from taciturn.party.consent.scored_rows import RowOpening
from taciturn.party.tables import PartyTables, load_tables
from taciturn.party.training_inputs import TrainingInputs, party_terms
from taciturn.privacy.events import NonPrivate, Statement
from taciturn.privacy.quality_release import release_event
from taciturn.protocol.opened_scores import OpenedScores
from taciturn.protocol.steps import Program
from taciturn.protocol.terms import Terms
from taciturn.results.cost_preview import Disclosure, Estimate, Outlook, Refusal
from taciturn.rng import KeyedEntropy

if TYPE_CHECKING:
    from taciturn.jobs.train.feature_consent import FeatureConsent
    from taciturn.jobs.train.label_consent import LabelConsent
    from taciturn.party.consent.label_budget import LabelCharge, Release
    from taciturn.privacy.ledger import Ledger
    from taciturn.settings.study import Study


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """One model: ``rows`` training rows under these ``terms``; ``number`` counts from 0."""

    number: int
    terms: Terms
    rows: int


@dataclass(frozen=True, slots=True)
class PlannedTraining:
    """One conversation of a session: the training of a model, or of several that share a search.

    ``number`` counts from 0 in the order of training. ``terms`` are those of all its models.
    """

    number: int
    models: tuple[PlannedModel, ...]
    terms: Terms

    @property
    def rows(self) -> int:
        """The number of training rows."""
        return self.models[0].rows

    @property
    def passes(self) -> int:
        """The number of iterations."""
        return self.terms.iterations(self.rows)


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model's file, its session's name in it, and what it says of a study."""

    path: Path
    session: str
    study: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TrainingPlan(TrainingInputs):
    """One side of a session before it begins: one training, or all those of a study.

    For a study the figures are those of all its trainings together; the settings and terms are
    those of its first combination. ``study`` is None for one training.
    """

    trainings: tuple[PlannedTraining, ...]
    study: Study | None = None

    # Whether scores of the training rows are kept for the metrics of the model.
    keeps_training_scores: ClassVar[bool] = True

    @classmethod
    def from_config(cls, config: PartyConfig, tables: PartyTables | None = None) -> TrainingPlan:
        """The plan of a party's file; its table is read where ``tables`` is None."""
        tables = tables or load_tables(config.first)
        if config.study is not None:
            # Loaded here: most files train one model.
            from taciturn.jobs.study.plan import StudyPlan

            return StudyPlan.from_study(config, config.study, tables)
        return cls.of_one(config, tables, party_terms(config, tables))

    @classmethod
    def of_one(cls, config: PartyConfig, tables: PartyTables, terms: Terms) -> TrainingPlan:
        """The plan of one training."""
        model = PlannedModel(0, terms, tables.train.rows)
        return cls(config, tables, terms, (PlannedTraining(0, (model,), terms),))

    @property
    def passes(self) -> int:
        """The number of iterations of all trainings."""
        return sum(training.passes for training in self.trainings)

    def inputs_of(self, training: PlannedTraining, scratch: Scratch = MEMORY) -> TrainingInputs:
        """This side's inputs of one training."""
        return self

    def entropy_of(self, training: PlannedTraining, entropy: KeyedEntropy) -> KeyedEntropy:
        """A training's part of the session's randomness."""
        return entropy

    def opening(self) -> Program[None]:
        """Comparison of both sides before the first message of a training."""
        yield from ()

    def model_entry(self, model: PlannedModel, session: str) -> ModelEntry | None:
        """File of a model in the session of this name; None where it is not kept."""
        return ModelEntry(self.config.path(self.config.output.model), session)

    def notes(self) -> tuple[str, ...]:
        """Remarks about this side's tables and limits, for its log."""
        return (*self.tables.notes, *self.consent.notes())

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
        # Each side loads its own.
        if self.config.role == "alice":
            from taciturn.jobs.train.feature_consent import FeatureConsent

            return FeatureConsent(self)
        from taciturn.jobs.train.label_consent import LabelConsent

        return LabelConsent(self)

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


def refusal_in_words(problem: TaciturnError | None, config: PartyConfig) -> Refusal | None:
    """The problem with the hint in the syntax of this side's file."""
    if problem is None:
        return None
    problem.syntax = config.syntax
    return Refusal(problem.message, problem.hint)
