"""``StudyPlan``: every training of a study, each with its rows and terms, known before the first.

For each combination of values there is a training for each fold, without its rows, which are scored
then, and one on all training rows. A side's table is prepared once for all of them, on all its
training rows: the preparation knows no label, and new rows are prepared as it says.

**Guarantee.** What a study gives away is known here, in total, before anything leaves: scores of
each row at Alice's, releases of each label at Bob's. It depends on no label.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from taciturn.arrays import IndexArray
from taciturn.data.ids import RowIds, filled_folds
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.errors import BudgetExceeded, counted, rendering_errors_as
from taciturn.files import canonical_json, private_folder, reporting_write_errors
from taciturn.jobs.train.disclosure_text import disclosure_text
from taciturn.jobs.train.plan import ModelEntry, PlannedModel, PlannedTraining, TrainingPlan
from taciturn.memmap import MEMORY, Scratch, row_blocks
from taciturn.numerics.subspace import MOST_RATIO
from taciturn.party.config import PartyConfig
from taciturn.party.consent.budget import Charge
from taciturn.party.consent.score_budget import ScoreCharge, opening_facts
from taciturn.party.consent.scored_rows import RowOpening
from taciturn.party.tables import PartyTables
from taciturn.party.training_inputs import (
    TrainingInputs,
    party_terms,
    require_agreed_columns,
    require_agreed_rows,
    terms_for,
)
from taciturn.privacy.events import Statement
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.opened_scores import OpenedScores
from taciturn.protocol.row_sums import RowSumPlan
from taciturn.protocol.steps import ONLY, Program, gather
from taciturn.protocol.terms import SummedLosses, Terms
from taciturn.results.cost_preview import Disclosure, Estimate
from taciturn.rng import KeyedEntropy
from taciturn.settings.study import Point, Study, named

if TYPE_CHECKING:
    from taciturn.party.consent.label_budget import LabelCharge
    from taciturn.privacy.ledger import Ledger

# Tables of folds are made again for each model where they take more than this together.
_MOST_KEPT_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class StudyModel(PlannedModel):
    """One model of a study; numbers count combination by combination.

    ``fold`` is the fold that it leaves out; None where it has all training rows. ``scored`` counts
    the rows scored at its end: its fold's, or the held-out ones.
    """

    point: Point
    fold: int | None
    scored: int


@dataclass(frozen=True, slots=True)
class StudyTraining(PlannedTraining):
    """One training of a study: its models have the same fold, and differ in their penalty alone."""

    models: tuple[StudyModel, ...]

    @property
    def fold(self) -> int | None:
        """Fold that is held out; None for all training rows."""
        return self.models[0].fold

    @property
    def scored(self) -> int:
        """The number of rows that each model scores at the end."""
        return self.models[0].scored

    @property
    def opened(self) -> OpenedScores:
        """The scores that it opens to Bob."""
        return OpenedScores.from_terms(self.terms, self.rows, self.scored)


def study_models(
    study: Study, folds: IndexArray, held_out: int, terms: Callable[[Point, int], Terms]
) -> tuple[StudyModel, ...]:
    """All models; ``terms`` are those of a combination that is trained alone on this many rows."""
    models: list[StudyModel] = []
    for point in study.points:
        for fold in (*range(study.folds), None):
            inside = 0 if fold is None else int(np.count_nonzero(folds == fold))
            rows = len(folds) - inside
            with named(point):
                agreed = terms(point, rows)
            if study.sums_losses(agreed.agreement.mechanism):
                judged = len(folds) if study.folds else held_out
                agreed = agreed.with_sum(SummedLosses(judged, *_judging(study, fold)))
            scored = held_out if fold is None else inside
            models.append(StudyModel(len(models), agreed, rows, point, fold, scored))
    return tuple(models)


def _judging(study: Study, fold: int | None) -> tuple[bool, bool]:
    """Whether a training's held-out rows judge its setting, and whether it leaves out a fold."""
    return fold is not None or not study.folds, fold is not None


def study_trainings(models: Sequence[StudyModel]) -> tuple[StudyTraining, ...]:
    """All trainings, in their order: models that differ in their penalty alone share one.

    Penalties that are far apart (``MOST_RATIO``) do not share one. Which do follows from the study.
    """
    alike: dict[tuple[object, ...], list[StudyModel]] = {}
    for model in models:
        agreed = model.terms.agreement
        alone = None if model.terms.shares_search else model.number
        key = model.fold, alone, agreed.model_copy(update={"l2": 1.0}).canonical()
        alike.setdefault(key, []).append(model)
    groups: list[list[StudyModel]] = []
    for same in alike.values():
        ascending = sorted(same, key=_penalty)
        groups.append(ascending[:1])
        for model in ascending[1:]:
            if _penalty(model) <= MOST_RATIO * _penalty(groups[-1][0]):
                groups[-1].append(model)
            else:
                groups.append([model])
    groups.sort(key=lambda group: min(model.number for model in group))
    return tuple(
        StudyTraining(number, tuple(group), _terms_of(group)) for number, group in enumerate(groups)
    )


def _penalty(model: StudyModel) -> float:
    return model.terms.agreement.l2


def _terms_of(group: Sequence[StudyModel]) -> Terms:
    terms = group[0].terms
    return terms if len(group) == 1 else terms.over([_penalty(model) for model in group])


def sums_of(models: Sequence[StudyModel]) -> RowSumPlan | None:
    """Scales of the sums that judge the settings of a study; None where scores do.

    Settings may have other ranges of scores, and so other waves; units are the same for all.
    """
    terms = models[0].terms
    return None if terms.summed is None else RowSumPlan.from_terms(terms, terms.summed.rows)


def model_name(session: str, point: int) -> str:
    """The name of a study's model of all training rows, for a combination of values."""
    return hashlib.sha256(f"{session} model {point}".encode()).hexdigest()[:32]


def opened_rows_of(
    trainings: Sequence[StudyTraining], fold: int | None, session: str = ""
) -> RowOpening:
    """What a study opens of a training row of a fold, or of a held-out row (None); 0 without folds.

    A model of a fold scores nothing later, and has no name. Nor has any without a ``session``.
    """
    trained = unnamed = 0
    named: list[str] = []
    for training in trainings:
        opened, whole = training.opened, training.fold is None
        held_out = training.fold == fold
        scores = opened.per_held_out_row if held_out else opened.per_row
        trained += not held_out and fold is not None
        if fold is None and not whole:
            continue
        if session and whole and scores and (held_out or opened.by_trained):
            names = [model_name(session, model.point.number) for model in training.models]
            named += names
            scores -= len(names)
        unnamed += scores
    return RowOpening(trained, unnamed, tuple(named))


def opened_scores(trainings: Sequence[StudyTraining], folds: int) -> OpenedScores:
    """The scores that all trainings open to Bob: the most of one row, and those of all rows."""
    whole, numbers = [training for training in trainings if training.fold is None], max(folds, 1)
    return OpenedScores(
        per_row=max(opened_rows_of(trainings, fold).unnamed for fold in range(numbers)),
        per_held_out_row=sum(
            training.opened.per_held_out_row for training in whole if training.scored
        ),
        in_all=sum(training.opened.in_all for training in trainings),
        by_trained=sum(training.opened.by_trained for training in whole),
        sums=sum(training.opened.sums for training in trainings),
        study_sums=sum(training.opened.study_sums for training in trainings),
    )


def planned_ledger(
    trainings: Sequence[StudyTraining], folds: int, bob_columns: int, delta: float
) -> Ledger:
    """Bob's ledger after all trainings, of one representative row for each fold."""
    # Only who pays for releases loads what counts them.
    from taciturn.protocol.bob.forecast import Planned, forecast_all

    planned = [Planned(training.terms, training.rows, training.fold) for training in trainings]
    return forecast_all(planned, folds, bob_columns, delta=delta)


@dataclass(frozen=True, slots=True, repr=False)
class StudyPlan(TrainingPlan):
    """All trainings of one side's study.

    ``settings`` are those of each combination, by its number; ``folds`` has the fold of each
    training row.
    """

    trainings: tuple[StudyTraining, ...]
    study: Study
    settings: Mapping[int, PartyConfig]
    models: tuple[StudyModel, ...]
    folds: IndexArray
    _made: dict[int, PartyTables] = field(default_factory=dict)

    # Scores of each model's training rows would fill the disk, and judge nothing.
    keeps_training_scores: ClassVar[bool] = False

    @classmethod
    def from_study(cls, config: PartyConfig, study: Study, tables: PartyTables) -> StudyPlan:
        """Plan the trainings on this side's table."""
        train, held_out = tables.train, tables.held_out
        with rendering_errors_as(config.syntax):
            require_agreed_columns(config, len(train.columns))
            require_agreed_rows(config, train.rows)
            study.require_family(config.agreed["family"])
        folds = filled_folds(train.ids, study.folds, config.agreed["split_seed"])
        # What sizes a mechanism that is sized by Alice's columns.
        columns = config.alice_columns or len(train.columns)
        settings = {point.number: config.at(point) for point in study.points}

        @cache
        def of_all_rows(number: int) -> Terms:
            return party_terms(settings[number], tables)

        def terms(point: Point, rows: int) -> Terms:
            whole = of_all_rows(point.number)
            if rows == train.rows:
                return whole
            # Penalty, passes and range of a fold are those of all training rows.
            return terms_for(settings[point.number], columns, rows, train.rows)

        models = study_models(study, folds, 0 if held_out is None else held_out.rows, terms)
        trainings = study_trainings(models)
        first = _of_all_rows(trainings)
        base = settings[first.models[0].point.number]
        return cls(base, tables, first.terms, trainings, study, settings, models, folds)

    @property
    def models_folder(self) -> Path:
        """Folder of the models."""
        return self.config.path(self.config.output.models_folder)

    def make_models_folder(self) -> None:
        """Make the folder of the models, if there is none."""
        with reporting_write_errors(self.models_folder, "folder of models"):
            private_folder(self.models_folder)

    def model_path(self, number: int) -> Path:
        """The file of a combination's model."""
        digits = max(2, len(str(len(self.study.points))))
        return self.models_folder / f"model-{number:0{digits}d}.json"

    def model_entry(self, model: PlannedModel, session: str) -> ModelEntry | None:
        """File of a model of all training rows; None for a fold's."""
        studied = self.models[model.number]
        if studied.fold is not None:
            return None
        number, values = studied.point.number, studied.point.values
        about = {
            "model": number,
            "models": len(self.study.points),
            "session": session,
            "values": json.loads(json.dumps(dict(values))),
            "used": False,
        }
        return ModelEntry(self.model_path(number), model_name(session, number), about)

    def notes(self) -> tuple[str, ...]:
        """Remarks about this side's tables and limits, and how many models there are."""
        study = self.study
        about = f"a study: {len(study.points)} combinations, {study.models} models in all"
        # Without arguments super() fails in a dataclass with slots.
        return (*TrainingPlan.notes(self), about)

    def opening(self) -> Program[None]:
        """Compare the study, the training rows and the folds with the peer."""
        config, study = self.config, json.loads(self.study.canonical())
        peers = config.parties if config.link.peer is None else (ONLY,)
        # What decides which rows are trained on: where it differs, their number does too.
        by_id = {name: config.agreed.get(name) for name in ("held_out", "split_seed")}
        hello = greeting(config.role, canonical_json({**study, **by_id}), self.tables.train)
        yield from gather({peer: shake_hands(hello) for peer in peers})

    def entropy_of(self, training: PlannedTraining, entropy: KeyedEntropy) -> KeyedEntropy:
        """A training's part of the session's randomness."""
        return entropy.fork(f"model {training.number}")

    def inputs_of(self, training: PlannedTraining, scratch: Scratch = MEMORY) -> TrainingInputs:
        """This side's inputs of one training; large folds are stored in ``scratch``."""
        training = self.trainings[training.number]
        tables = self._tables_of(training.fold, scratch)
        settings = self.settings[training.models[0].point.number]
        return TrainingInputs(settings, tables, training.terms)

    @property
    def sums(self) -> RowSumPlan | None:
        """Scales of the sums that judge the settings; None where scores do."""
        return sums_of(self.models)

    @property
    def judging_labels(self) -> LabelTable | None:
        """Bob's labels of all rows that judge a setting."""
        return self.tables.labels if self.study.folds else self.tables.held_out_labels

    def training_labels(self) -> Iterator[LabelTable]:
        """Bob's labels of all rows, and of those that each fold's models are trained on."""
        if self.tables.labels is None:
            return
        yield self.tables.labels
        for fold in range(self.study.folds):
            yield self.tables.labels.take(np.flatnonzero(self.folds != fold))

    def labels_of(self, model: StudyModel) -> LabelTable | None:
        """Bob's labels of the rows that judge a model; None where there are none."""
        labels = self.tables.labels
        if model.fold is None or labels is None:
            return self.tables.held_out_labels
        return labels.take(np.flatnonzero(self.folds == model.fold))

    def _tables_of(self, fold: int | None, scratch: Scratch) -> PartyTables:
        """The tables of a fold: trained without its rows, which are held out instead."""
        if fold is None:
            return self.tables
        if fold not in self._made:
            tables, labels = self.tables, self.tables.labels
            if (len(self._made) + 1) * tables.train.values.nbytes > _MOST_KEPT_BYTES:
                self._made.clear()
            rest, inside = np.flatnonzero(self.folds != fold), np.flatnonzero(self.folds == fold)
            self._made[fold] = replace(
                tables,
                train=_rows_of(tables.train, rest, scratch),
                labels=None if labels is None else labels.take(rest),
                held_out=_rows_of(tables.train, inside, scratch),
                held_out_labels=None if labels is None else labels.take(inside),
                held_out_ids=tables.train.ids.take(inside),
            )
        return self._made[fold]

    def facts(self) -> dict[str, str]:
        """The study, and the terms of its models."""
        agreed = "".join(training.terms.agreement.canonical() for training in self.trainings)
        return {
            "study": self.study.canonical(),
            "terms of the study's models": hashlib.sha256(agreed.encode()).hexdigest(),
        }

    @property
    def scores(self) -> OpenedScores:
        """The scores that all trainings open to Bob."""
        return opened_scores(self.trainings, self.study.folds)

    def of_all(self, single: Estimate) -> Estimate:
        """Time and traffic of all trainings, by their passes over rows."""
        first = _of_all_rows(self.trainings)
        share = sum(training.passes * training.rows for training in self.trainings)
        times = share / (first.passes * first.rows)
        return Estimate(
            iterations=self.passes,
            seconds=single.seconds * times,
            bytes_to_alice=round(single.bytes_to_alice * times),
            bytes_to_bob=round(single.bytes_to_bob * times),
        )

    def disclosure(self) -> Disclosure:
        """Disclosure to each side in all trainings together."""
        study = (
            f"All this is of {counted(self.study.models, 'model')}, for "
            f"{counted(len(self.study.points), 'combination')} of settings, together; which of "
            "their models Bob takes into use later he tells Alice by using it, and is charged for."
        )
        rows = self.tables.train.rows
        return disclosure_text(self.terms, rows, self.held_out_rows, self.scores, study)

    def held_out_charge(self, session: str = "") -> None:
        """None: without scores a study has nothing to choose by."""

    def score_charge(
        self, session: str = "", model: str = "", *, held_out_opened: bool = True
    ) -> ScoreCharge:
        """What all trainings open of each row; ``model`` is the name of the study."""
        held_out = self.tables.held_out
        rows = [
            (ids, opened_rows_of(self.trainings, fold, model)) for fold, ids in self._fold_ids()
        ]
        if held_out is not None:
            rows.append((held_out.ids, opened_rows_of(self.trainings, None, model)))
        trainings = ((model.terms, model.rows) for model in self.models)
        facts = opening_facts(self.terms.agreement.mechanism, self.scores, trainings)
        return Charge(tuple(rows), session, facts)

    def ledger(self) -> Ledger:
        """Bob's ledger after all trainings, of one representative row for each fold."""
        columns, delta = len(self.tables.train.columns), self.config.privacy.delta
        return planned_ledger(self.trainings, self.study.folds, columns, delta)

    def unaffordable(self, ledger: Statement) -> BudgetExceeded | None:
        """Why Bob's budget does not pay for all trainings."""
        total, budget = ledger.label_epsilon_total, self.config.privacy.budget
        if budget is None or total <= budget:
            return None
        return BudgetExceeded(
            f"all models of the study together cost a label's epsilon of {total:g}, and the "
            f"budget is {budget:g}",
            setting="budget",
            hint="try fewer values, or raise the budget; nothing was sent",
        )

    def label_charge(self, session: str = "") -> LabelCharge:
        """Charge for what all trainings release of each row; ``session`` is empty in a forecast."""
        from taciturn.party.consent.label_budget import releases_of

        planned = self.ledger()
        rows = (
            (ids, releases_of(self.config, self.terms, planned, fold))
            for fold, ids in self._fold_ids()
        )
        return Charge(tuple(rows), session)

    def _fold_ids(self) -> list[tuple[int, RowIds]]:
        ids, folds = self.tables.train.ids, range(max(self.study.folds, 1))
        return [(fold, ids.take(np.flatnonzero(self.folds == fold))) for fold in folds]


def _of_all_rows(trainings: Sequence[StudyTraining]) -> StudyTraining:
    """The first on all training rows."""
    return next(training for training in trainings if training.fold is None)


def _rows_of(table: FeatureTable, rows: IndexArray, scratch: Scratch) -> FeatureTable:
    """Some rows of a table, by blocks: it may be larger than memory."""
    values = scratch.unnamed((len(rows), len(table.columns)), np.float64)
    for place, block in row_blocks(values):
        block[:] = table.values[rows[place]]
    return FeatureTable(table.ids.take(rows), table.columns, values)
