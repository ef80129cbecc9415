"""``StudyPlan``: every training of a study, each with its rows and terms, known before the first.

For each combination of values there is a training for each fold, without its rows, which are scored
then, and one on all training rows. A side's table is prepared once, on all its training rows, for
all combinations of the same ``columns`` and ``bins``: the preparation knows no label, and new rows
are prepared as it says.

**Guarantee.** What a study gives away is known here, in total, before anything leaves: scores of
each row at Alice's, releases of each label at Bob's. It depends on no label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from taciturn.arrays import IndexArray
from taciturn.crypto.engines import on_engine
from taciturn.data.folds import filled_folds
from taciturn.data.ids import RowIds
from taciturn.data.prepare import Preparation
from taciturn.data.tables import FeatureTable, LabelTable
from taciturn.deploy.config import PartyConfig
from taciturn.deploy.score_book import Charge, Opening
from taciturn.deploy.side import (
    Side,
    require_agreed_columns,
    require_agreed_rows,
    terms_for,
    terms_of,
)
from taciturn.deploy.tables import PartyTables
from taciturn.engine.disclosure import disclosure
from taciturn.engine.exposure import OpenedScores
from taciturn.engine.study import StudyModel, opened_of_fold, opened_scores
from taciturn.errors import counted, shown_by
from taciturn.mapped import MEMORY, Scratch, row_blocks
from taciturn.protocol.terms import Terms
from taciturn.results.estimate import Estimate
from taciturn.results.outlook import Outlook
from taciturn.settings.study import Point, Study, left_out, named, require_some

if TYPE_CHECKING:
    from taciturn.crypto.bfv.crew import Engine
    from taciturn.deploy.ledger_book import Spending
    from taciturn.privacy.ledger import Ledger

# Tables of folds are made again for each model where they take more than this together.
_MOST_KEPT_BYTES = 256 << 20
_Variant: TypeAlias = tuple[object, object]
Load: TypeAlias = Callable[[PartyConfig, int], PartyTables]
"""Reads and prepares a side's table; the number tells tables of one study apart."""


@dataclass(slots=True, repr=False)
class StudyPlan:
    """All trainings of one side's study.

    Args:
        config: Its settings, the study included.
        study: What is to be tried.
        variants: Its tables, for each choice of columns and bins.
        models: The trainings.
        folds: Of each training row, in which fold it is; all in one where there are no folds.
    """

    config: PartyConfig
    study: Study
    variants: dict[_Variant, PartyTables]
    models: tuple[StudyModel, ...]
    folds: IndexArray
    _made: dict[tuple[_Variant, int], PartyTables] = field(default_factory=dict)

    @classmethod
    def of(cls, config: PartyConfig, study: Study, load: Load) -> StudyPlan:
        """Reads this side's table, as often as the study prepares it, and plans the trainings.

        Raises:
            ConfigError: Settings of a model do not go together, or a column is not there.
            DataError: The table is not fit for use.
        """
        variants = _variants(config, study, load)
        rows = next(iter(variants.values())).train.ids
        with shown_by(config.face):
            require_agreed_rows(config, len(rows))
        folds = filled_folds(rows, study.folds, config.agreed["split_salt"])
        plan = cls(config, study, variants, (), folds)
        plan.models = tuple(plan._models())
        return plan

    def _models(self) -> list[StudyModel]:
        models: list[StudyModel] = []
        for point in self.study.points:
            tables, settings = self.variants[_variant(point)], self.config.at(point)
            with named(point):
                whole = terms_of(settings, tables)
            held_out = 0 if tables.held_out is None else tables.held_out.rows
            for fold in range(self.study.folds):
                inside = int(np.count_nonzero(self.folds == fold))
                rows = tables.train.rows - inside
                terms = _of_fold(whole, terms_for(settings, self._columns(tables, settings), rows))
                models.append(StudyModel(len(models), point, fold, terms, rows, inside))
            models.append(StudyModel(len(models), point, None, whole, tables.train.rows, held_out))
        return models

    def _columns(self, tables: PartyTables, settings: PartyConfig) -> int:
        """What sizes a mechanism that is sized by Alice's columns."""
        return settings.alice_columns or len(tables.train.columns)

    @property
    def tables(self) -> PartyTables:
        """The tables of the first combination: all rows, folds included."""
        return self.variants[_variant(self.study.points[0])]

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
    ) -> Side:
        """This side of one training.

        Args:
            model: Which.
            engine: What computes; None for the scheme's own way.
            scratch: Where a fold's rows lie, where they are many.
        """
        terms = model.terms
        if engine is not None:
            terms = replace(terms, scheme=on_engine(terms.scheme, engine))
        return Side(self.config.at(model.point), self._tables_of(model, scratch), terms)

    def labels_of(self, model: StudyModel) -> LabelTable | None:
        """Bob's labels of the rows that judge a model; None where there are none."""
        tables = self.variants[_variant(model.point)]
        if model.fold is None or tables.labels is None:
            return tables.held_out_labels
        return tables.labels.take(np.flatnonzero(self.folds == model.fold))

    def tables_of(self, model: StudyModel) -> PartyTables:
        """All rows of a combination's tables, folds included."""
        return self.variants[_variant(model.point)]

    def _tables_of(self, model: StudyModel, scratch: Scratch) -> PartyTables:
        variant = _variant(model.point)
        tables = self.variants[variant]
        if model.fold is None:
            return tables
        place = variant, model.fold
        if place not in self._made:
            size = tables.train.values.nbytes
            if (len(self._made) + 1) * size > _MOST_KEPT_BYTES:
                self._made.clear()
            self._made[place] = _without(tables, self.folds == model.fold, scratch)
        return self._made[place]

    def facts(self) -> dict[str, str]:
        """What must be the same when the session is resumed."""
        tables = sha256()
        for one in self.variants.values():
            for part in (one.train, one.held_out):
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
        from taciturn.deploy.outlook import alices_outlook, bobs_outlook

        if self.config.role == "alice":
            return alices_outlook(self.config, terms, learns)
        statement = self.ledger().statement()
        return bobs_outlook(self.config, terms, learns, statement, self.spending())

    def charge(self, session: str) -> Charge:
        """Alice's scores of each row, in total.

        Args:
            session: The session's name, which is charged once.
        """
        tables = self.tables
        rows = [(ids, opened_of_fold(self.models, fold)) for fold, ids in self._fold_ids()]
        if tables.held_out is not None:
            rows.append((tables.held_out.ids, self.scores.per_held_out_row))
        return Charge(tuple(rows), session, Opening.of(self.first.terms, self.scores))

    def ledger(self) -> Ledger:
        """Bob's ledger after all trainings, of one row that stands for each fold."""
        # Only who pays for releases loads what counts them.
        from taciturn.protocol.bob.forecast import Planned, forecast_all

        planned = [Planned(model.terms, model.rows, model.fold) for model in self.models]
        columns = max(len(tables.train.columns) for tables in self.variants.values())
        delta = self.config.privacy.delta
        return forecast_all(planned, self.study.folds, columns, delta=delta)

    def spending(self, session: str = "") -> Spending:
        """What all trainings release of each row, for Bob's book.

        Args:
            session: The session's name, charged once; empty in a forecast.
        """
        from taciturn.deploy.ledger_book import Spending, releases_of

        planned, terms = self.ledger(), self.first.terms
        config = self.config.at(self.study.points[0])
        rows = tuple(
            (ids, releases_of(config, terms, planned, fold)) for fold, ids in self._fold_ids()
        )
        return Spending(rows, session)

    @property
    def _fold_range(self) -> range:
        return range(max(self.study.folds, 1))

    def _fold_ids(self) -> list[tuple[int, RowIds]]:
        ids = self.tables.train.ids
        return [(fold, ids.take(np.flatnonzero(self.folds == fold))) for fold in self._fold_range]


def _variant(point: Point) -> _Variant:
    return point.values.get("columns"), point.values.get("bins")


def _variants(config: PartyConfig, study: Study, load: Load) -> dict[_Variant, PartyTables]:
    """The tables of each choice of columns and bins; what only leaves columns out is a part."""
    loaded: dict[object, PartyTables] = {}
    variants: dict[_Variant, PartyTables] = {}
    for point in study.points:
        key, bins = _variant(point), point.values.get("bins")
        if key in variants:
            continue
        if bins not in loaded:
            loaded[bins] = load(config.at(point), len(loaded))
        if bins is None:
            # Before a set leaves any out.
            with shown_by(config.face):
                require_agreed_columns(config, len(loaded[bins].train.columns))
        variants[key] = _with_columns(config, loaded[bins], point)
    return variants


def _with_columns(config: PartyConfig, tables: PartyTables, point: Point) -> PartyTables:
    """The tables with those columns that a combination has."""
    wanted = point.values.get("columns")
    if not isinstance(wanted, tuple):
        return tables
    words = tuple(str(word) for word in wanted)
    rules = tables.preparation.rules
    sources = list(dict.fromkeys(rule.column for rule in rules))
    with shown_by(config.face.within("study")):
        gone = left_out(words, _owner(config), sources)
        require_some(point, _owner(config), len(sources) - len(gone))
    if not gone:
        return tables
    kept = Preparation(
        tuple(rule for rule in rules if rule.column not in gone), tables.preparation.notes
    )
    free = tables.train.columns[len(tables.train.columns) - tables.train.free :]
    names = (*kept.columns, *free)
    held_out = tables.held_out
    return replace(
        tables,
        train=tables.train.select(names),
        held_out=None if held_out is None else held_out.select(names),
        preparation=kept,
    )


def _owner(config: PartyConfig) -> str:
    """What a study calls this side's columns."""
    if config.role == "bob" or not config.parties:
        return config.role
    # Loaded here: it reads her certificate.
    from taciturn.deploy.identity import identity_of

    identity = identity_of(config)
    return config.role if identity is None else identity.name


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
