"""``StudyPlan``: every training of a study, each with its rows and terms, known before the first.

For each combination of values there is a training for each fold, without its rows, which are scored
then, and one on all training rows. A side's table is prepared once for all of them, on all its
training rows: the preparation knows no label, and new rows are prepared as it says.

**Guarantee.** What a study gives away is known here, in total, before anything leaves: scores of
each row at Alice's, releases of each label at Bob's. It depends on no label.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from taciturn.arrays import IndexArray
from taciturn.crypto.registry import on_engine
from taciturn.data.ids import RowIds, filled_folds
from taciturn.data.tables import FeatureTable, LabelTable
from taciturn.engine.disclosure import disclosure
from taciturn.engine.exposure import OpenedScores
from taciturn.engine.study import StudyModel, opened_of_fold, opened_scores
from taciturn.errors import counted, shown_by
from taciturn.memmap import MEMORY, Scratch, row_blocks
from taciturn.party.config import PartyConfig
from taciturn.party.consent.budget import Charge
from taciturn.party.consent.score_budget import ScoreCharge, opening_facts
from taciturn.party.side import (
    TrainingInputs,
    require_agreed_columns,
    require_agreed_rows,
    terms_for,
    terms_of,
)
from taciturn.party.tables import PartyTables
from taciturn.protocol.terms import Terms
from taciturn.results.estimate import Estimate
from taciturn.results.outlook import Outlook
from taciturn.settings.study import Study, named

if TYPE_CHECKING:
    from taciturn.crypto.bfv.workers import Engine
    from taciturn.party.consent.label_budget import LabelCharge
    from taciturn.privacy.ledger import Ledger

# Tables of folds are made again for each model where they take more than this together.
_MOST_KEPT_BYTES = 256 << 20


@dataclass(slots=True, repr=False)
class StudyPlan:
    """All trainings of one side's study; ``folds`` has the fold of each training row."""

    config: PartyConfig
    study: Study
    tables: PartyTables
    models: tuple[StudyModel, ...]
    folds: IndexArray
    _made: dict[int, PartyTables] = field(default_factory=dict)

    @classmethod
    def of(cls, config: PartyConfig, study: Study, tables: PartyTables) -> StudyPlan:
        """Plans the trainings on this side's table."""
        with shown_by(config.face):
            require_agreed_columns(config, len(tables.train.columns))
            require_agreed_rows(config, tables.train.rows)
        folds = filled_folds(tables.train.ids, study.folds, config.agreed["split_salt"])
        plan = cls(config, study, tables, (), folds)
        plan.models = tuple(plan._models())
        return plan

    def _models(self) -> list[StudyModel]:
        models: list[StudyModel] = []
        tables = self.tables
        held_out = 0 if tables.held_out is None else tables.held_out.rows
        # What sizes a mechanism that is sized by Alice's columns.
        columns = self.config.alice_columns or len(tables.train.columns)
        for point in self.study.points:
            settings = self.config.at(point)
            with named(point):
                whole = terms_of(settings, tables)
            for fold in range(self.study.folds):
                inside = int(np.count_nonzero(self.folds == fold))
                rows = tables.train.rows - inside
                terms = _of_fold(whole, terms_for(settings, columns, rows))
                models.append(StudyModel(len(models), point, fold, terms, rows, inside))
            models.append(StudyModel(len(models), point, None, whole, tables.train.rows, held_out))
        return models

    @property
    def first(self) -> StudyModel:
        """The first combination's model of all training rows."""
        return self.models[self.study.folds]

    @property
    def passes(self) -> int:
        """How many iterations all trainings take."""
        return sum(model.passes for model in self.models)

    def side(
        self, model: StudyModel, engine: Engine | None = None, scratch: Scratch = MEMORY
    ) -> TrainingInputs:
        """This side of one training; many rows of a fold lie in ``scratch``."""
        terms = model.terms
        if engine is not None:
            terms = replace(terms, scheme=on_engine(terms.scheme, engine))
        tables = self._tables_of(model.fold, scratch)
        return TrainingInputs(self.config.at(model.point), tables, terms)

    def labels_of(self, model: StudyModel) -> LabelTable | None:
        """Bob's labels of the rows that judge a model; None where there are none."""
        labels = self.tables.labels
        if model.fold is None or labels is None:
            return self.tables.held_out_labels
        return labels.take(np.flatnonzero(self.folds == model.fold))

    def _tables_of(self, fold: int | None, scratch: Scratch) -> PartyTables:
        if fold is None:
            return self.tables
        if fold not in self._made:
            size = self.tables.train.values.nbytes
            if (len(self._made) + 1) * size > _MOST_KEPT_BYTES:
                self._made.clear()
            self._made[fold] = _without(self.tables, self.folds == fold, scratch)
        return self._made[fold]

    def facts(self) -> dict[str, str]:
        """What must be the same when the session is resumed."""
        tables = sha256()
        for part in (self.tables.train, self.tables.held_out):
            tables.update(b"" if part is None else part.digest().encode())
        agreed = sha256(
            "".join(model.terms.agreement.canonical() for model in self.models).encode()
        )
        return {
            "study": self.study.canonical(),
            "terms of the study's models": agreed.hexdigest(),
            "tables of the study": tables.hexdigest(),
        }

    @property
    def scores(self) -> OpenedScores:
        """The scores that all trainings open to Bob."""
        return opened_scores(self.models, self.study.folds)

    def of_all(self, single: Estimate) -> Estimate:
        """What all trainings take, from what the first combination's takes on all rows."""
        first = self.first
        share = sum(model.passes * model.rows for model in self.models)
        times = share / (first.passes * first.rows)
        return Estimate(
            iterations=self.passes,
            seconds=single.seconds * times,
            bytes_to_alice=round(single.bytes_to_alice * times),
            bytes_to_bob=round(single.bytes_to_bob * times),
        )

    def outlook(self) -> Outlook:
        """What the study will cost, and tell."""
        tables, terms = self.tables, self.first.terms
        held_out = 0 if tables.held_out is None else tables.held_out.rows
        study = (
            f"All this is of {counted(self.study.models, 'training')}, for "
            f"{counted(len(self.study.points), 'combination')} of settings, together; which of "
            "their models Bob takes into use later he tells Alice by using it, and is charged for."
        )
        learns = disclosure(terms, tables.train.rows, held_out, self.scores, study)
        # Loaded here: a training of one model plans no study.
        from taciturn.party.outlook import alices_outlook, bobs_outlook

        if self.config.role == "alice":
            return alices_outlook(self.config, terms, learns)
        statement = self.ledger().statement()
        return bobs_outlook(self.config, terms, learns, statement, self.label_charge())

    def score_charge(self, session: str) -> ScoreCharge:
        """Alice's scores of each row, in total; the session is charged once."""
        tables = self.tables
        rows = [(ids, opened_of_fold(self.models, fold)) for fold, ids in self._fold_ids()]
        if tables.held_out is not None:
            rows.append((tables.held_out.ids, self.scores.per_held_out_row))
        return Charge(tuple(rows), session, opening_facts(self.first.terms, self.scores))

    def ledger(self) -> Ledger:
        """Bob's ledger after all trainings, of one row that stands for each fold."""
        # Only who pays for releases loads what counts them.
        from taciturn.protocol.bob.forecast import Planned, forecast_all

        planned = [Planned(model.terms, model.rows, model.fold) for model in self.models]
        columns, delta = len(self.tables.train.columns), self.config.privacy.delta
        return forecast_all(planned, self.study.folds, columns, delta=delta)

    def label_charge(self, session: str = "") -> LabelCharge:
        """What all trainings release of each row; ``session`` is empty in a forecast."""
        from taciturn.party.consent.label_budget import releases_of

        planned, terms = self.ledger(), self.first.terms
        config = self.config.at(self.study.points[0])
        rows = tuple(
            (ids, releases_of(config, terms, planned, fold)) for fold, ids in self._fold_ids()
        )
        return Charge(rows, session)

    @property
    def _fold_range(self) -> range:
        return range(max(self.study.folds, 1))

    def _fold_ids(self) -> list[tuple[int, RowIds]]:
        ids = self.tables.train.ids
        return [(fold, ids.take(np.flatnonzero(self.folds == fold))) for fold in self._fold_range]


def _without(tables: PartyTables, inside: IndexArray, scratch: Scratch) -> PartyTables:
    """The tables of a fold: trained without its rows, which are held out instead."""
    train, judged = np.flatnonzero(~inside.astype(bool)), np.flatnonzero(inside)
    labels = tables.labels
    return replace(
        tables,
        train=_rows_of(tables.train, train, scratch),
        labels=None if labels is None else labels.take(train),
        held_out=_rows_of(tables.train, judged, scratch),
        held_out_labels=None if labels is None else labels.take(judged),
        held_out_ids=tables.train.ids.take(judged),
    )


def _rows_of(table: FeatureTable, rows: IndexArray, scratch: Scratch) -> FeatureTable:
    """Some rows of a table, by blocks: it may be larger than memory."""
    values = scratch.unnamed((len(rows), len(table.columns)), np.float64)
    for place, block in row_blocks(values):
        block[:] = table.values[rows[place]]
    return FeatureTable(table.ids.take(rows), table.columns, values)


def _of_fold(whole: Terms, fold: Terms) -> Terms:
    """The terms of a fold: the penalty is that of all training rows, also where it is a default."""
    agreed = fold.agreement.model_copy(update={"l2": whole.agreement.l2})
    return replace(fold, agreement=agreed)
