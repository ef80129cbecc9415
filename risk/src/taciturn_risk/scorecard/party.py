"""Report of one side on its model, from its own files.

Bob has scores: those that the end of the training left beside his model, and those of new rows,
which ``taciturn predict`` wrote. Alice has none. Coefficients are shown where the side has them;
their standard errors are a bound from below at Bob alone, and exact for anyone who holds all sides'
models and rows (``taciturn_risk.scorecard.card``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray, LabelArray
from taciturn.data.frames import require_column
from taciturn.data.ids import RowIds
from taciturn.data.source import read_frame
from taciturn.data.tables import FeatureTable
from taciturn.data.user_table import UserTable
from taciturn.errors import ColumnError, ConfigError, DataError, FileError
from taciturn.model.scores_file import ScoredRows, StoredScores, scores_path
from taciturn.model.share import ModelShare
from taciturn.model.whole import ModelPart, WholeModel, whole_model
from taciturn.party.applied_model import model_terms
from taciturn.party.config import PartyConfig
from taciturn.party.new_rows import new_rows
from taciturn.party.tables import PartyTables, load_tables
from taciturn.protocol.terms import Terms
from taciturn_risk.scorecard.build import (
    HELD_OUT,
    L1_PENALTY,
    NEW,
    NOT_CONVERGED,
    TRAINING,
    Coefficients,
    ReportRequest,
    fit_of,
    joint_coefficients,
    model_report,
    penalty_reason,
)
from taciturn_risk.scorecard.card import SideWeights, bound_errors
from taciturn_risk.scorecard.result import ErrorKind, ModelReport

_WRITTEN = "name the file of scores that taciturn predict wrote"


def party_report(config: PartyConfig, request: ReportRequest) -> ModelReport:
    """Report of one side on its model."""
    path = request.model or config.path(config.output.model)
    share = ModelShare.load(path)
    if share.role != config.role:
        raise ConfigError(
            f"this is {share.role}'s model, and these are {config.role}'s settings",
            where=str(path),
            hint="name one side's settings and its own model",
        )
    terms = model_terms(share, path)
    if not share.is_bob:
        return _alice_report(share, path, terms, request)
    config = _at_study(config, share)
    return _LabelSide(
        config, share, path, terms, request, *_training_tables(config, share)
    ).report()


def _alice_report(
    share: ModelShare, path: Path, terms: Terms, request: ReportRequest
) -> ModelReport:
    if request.scores or request.labels or request.alice_models:
        raise ConfigError(
            "Alice learns no scores, so there is nothing to evaluate here",
            where=str(path),
            hint="name no scores, labels or other models here; Bob has the model's figures",
        )
    if not len(share.weights):
        raise ConfigError(
            "Alice has no scores, and of the weights a random share only: there is nothing to show",
            where=str(path),
            hint="run it with Bob's file, on his side",
        )
    if not terms.agreement.kind.has_classes:
        from taciturn_risk.scorecard.means import means_report

        own = (SideWeights(ModelPart(share, share.weights)),)
        scaled = "Her weights are in the coordinates of scores, whose scale only Bob knows."
        return means_report(terms, own, share, str(path), sets={}, notes=(scaled,))
    reason = "Standard errors need the rows' probabilities, which Bob alone has."
    note = (
        "Alice has no scores: only Bob learns them. What she may see of the model is what her "
        "columns are worth."
    )
    return model_report(
        terms,
        request,
        Coefficients("none", reason, (SideWeights(ModelPart(share, share.weights)),)),
        share,
        str(path),
        sets={},
        notes=(note,),
    )


def _at_study(config: PartyConfig, share: ModelShare) -> PartyConfig:
    number = share.study.get("model")
    if config.study is None or not isinstance(number, int):
        return config
    points = {point.number: point for point in config.study.points}
    return config.at(points[number]) if number in points else config


def _training_tables(config: PartyConfig, share: ModelShare) -> tuple[PartyTables | None, str]:
    """Bob's own table, or why it is not the one that the model was trained on."""
    try:
        tables = load_tables(config.first)
    except DataError as problem:
        return None, f"Bob's table cannot be read: {problem.message}"
    if tables.train.digest() != share.data_digest:
        return None, "Bob's table is not the one that the model was trained on"
    return tables, ""


@dataclass(frozen=True, slots=True)
class _LabelSide:
    config: PartyConfig
    share: ModelShare
    path: Path
    terms: Terms
    request: ReportRequest
    tables: PartyTables | None
    no_tables: str
    notes: list[str] = field(default_factory=list)

    def report(self) -> ModelReport:
        if not self.terms.agreement.kind.has_classes:
            return self._means_report()
        whole, alice_tables = self._joined()
        sets = self._sets(whole, alice_tables)
        coefficients = self._coefficients(whole, alice_tables, sets)
        new_scores = None
        if self.request.scores is not None:
            new_scores, labels = self._new_rows(self.request.scores)
            if labels is not None:
                sets[NEW] = ScoredRows(new_scores, labels)
        elif self.request.labels is not None:
            raise ConfigError(
                "labels without scores say nothing of the model",
                where=str(self.request.labels),
                hint="name the scores of the same rows too, as taciturn predict wrote them",
            )
        return model_report(
            self.terms,
            self.request,
            coefficients,
            self.share,
            str(self.path),
            sets=sets,
            new_scores=new_scores,
            threshold=self.share.threshold,
            notes=(*self.notes, *self._training_notes()),
        )

    def _means_report(self) -> ModelReport:
        from taciturn_risk.scorecard.means import means_report

        request, share = self.request, self.share
        if request.scores or request.labels or request.alice_models or request.costs:
            raise ConfigError(
                f"new scores, costs and exact standard errors are for labels of two classes, not "
                f"of {self.terms.agreement.family}",
                where=str(self.path),
                hint="leave them out; the rows of the training are evaluated",
            )
        notes = (*self.notes, *self._training_notes())
        sides = self._scaled_weights()
        sets = self._sets(None, ())
        return means_report(self.terms, sides, share, str(self.path), sets=sets, notes=notes)

    def _scaled_weights(self) -> tuple[SideWeights, ...]:
        """Bob's own weights in units of the linear predictor; none where they are shared."""
        share, response = self.share, self.share.coordinates_of_scores
        if not len(share.weights):
            return ()
        weights = response.scale * share.weights
        if share.intercept:
            weights[-1] += response.location
        return (SideWeights(ModelPart(share, weights)),)

    # --- rows -------------------------------------------------------------------------------

    def _joined(self) -> tuple[WholeModel | None, tuple[FeatureTable, ...]]:
        """The joined model and the Alices' training rows, where all of it is named."""
        request = self.request
        if len(request.alice_models) != len(request.alice_rows):
            raise ConfigError(
                "exact standard errors need each Alice's model and her rows",
                setting="alice_model",
                hint="name a model and a table for each Alice, in the same order",
            )
        if not request.alice_models:
            return None, ()
        if self.tables is None:
            raise FileError(f"{self.no_tables}: there is nothing to join", where=str(self.path))
        ids = self.tables.train.ids
        shares = [ModelShare.load(path) for path in request.alice_models]
        whole = whole_model(*shares, self.share)
        rows = dict(zip((share.name for share in shares), request.alice_rows, strict=True))
        tables = (
            self._alice_table(part.model, rows[part.model.name], ids) for part in whole.alices
        )
        return whole, tuple(tables)

    def _alice_table(self, alice: ModelShare, path: Path, ids: RowIds) -> FeatureTable:
        """An Alice's prepared training rows, in the order of Bob's."""
        config, column = self.config, self.request.alice_id or self.config.data.id
        read = new_rows(config.table(path), column, alice, normalisation=config.normalisation)
        table = read.table.take(read.table.ids.rows_of(ids, where=str(path)))
        if table.digest() != alice.data_digest:
            raise FileError(
                f"these are not the rows that {alice.title}'s model was trained on",
                where=str(path),
                hint="name the table of the training, as it was",
            )
        return table

    def _sets(
        self, whole: WholeModel | None, alice_tables: tuple[FeatureTable, ...]
    ) -> dict[str, ScoredRows]:
        """The rows that were kept with scores; training rows anew, where everything is at hand."""
        sets: dict[str, ScoredRows] = {}
        place, needed = scores_path(self.path), self.request.scores is None and whole is None
        if needed or place.exists():
            stored = StoredScores.load(place)
        else:
            stored = StoredScores(self.share.session)
            self.notes.append("There are no kept scores of this model's training beside it.")
        if stored.session != self.share.session:
            raise FileError(
                "these are the scores of another training",
                where=str(place),
                hint="keep a model's file and its scores together",
            )
        if stored.train is not None:
            sets[TRAINING] = stored.train
        elif whole is not None and self.tables is not None and self.tables.labels is not None:
            parts = zip(whole.parts, (*alice_tables, self.tables.train), strict=True)
            scores = np.sum([table.values @ part.weights for part, table in parts], axis=0)
            sets[TRAINING] = ScoredRows.from_labels(scores, self.tables.labels)
        else:
            self.notes.append(
                "Bob has no scores of the training rows: where weights are shared, only held-out "
                "rows are scored."
                if self.share.sealed
                else "Bob has no scores of the training rows."
            )
        if stored.held_out is not None:
            sets[HELD_OUT] = stored.held_out
        return sets

    def _new_rows(self, path: Path) -> tuple[FloatArray, LabelArray | None]:
        """Scores of new rows, as ``taciturn predict`` wrote them, and their labels where known."""
        frame = read_frame(path, text=["id"])
        for name in ("id", "score"):
            if name not in frame.columns:
                raise ColumnError(f"there is no column {name!r}", where=str(path), hint=_WRITTEN)
        scores = frame["score"].cast(pl.Float64, strict=False).to_numpy()
        if not len(scores) or not np.isfinite(scores).all():
            raise DataError("a score is missing or not finite", where=str(path), hint=_WRITTEN)
        if self.request.labels is None:
            return scores, None
        try:
            ids = RowIds.from_values(frame["id"])
        except DataError as problem:
            raise problem.at(str(path)) from None
        return scores, self._labels(ids, self.request.labels)

    def _labels(self, ids: RowIds, path: Path) -> LabelArray:
        section, label = self.config.data, self.config.data.label or ""
        table = self.config.table(path)
        frame = table.frame(text=[section.id])
        for name in (section.id, label):
            require_column(frame.columns, name, where=str(path))
        try:
            distinct = table.distinct(frame, section.id)
            frame, known = distinct.taken_from(frame), distinct.own_ids
            values = UserTable.from_settings(section).labels.values(frame[label], known).to_numpy()
        except DataError as problem:
            raise problem.at(str(path)) from None
        labels: LabelArray = values[known.rows_of(ids, where=str(path))]
        return labels

    # --- coefficients -------------------------------------------------------------------------

    def _coefficients(
        self,
        whole: WholeModel | None,
        alice_tables: tuple[FeatureTable, ...],
        sets: dict[str, ScoredRows],
    ) -> Coefficients:
        share, terms, tables = self.share, self.terms, self.tables
        own_rows = None if tables is None else tables.train
        labels = None if tables is None or tables.labels is None else tables.labels.values
        if whole is not None and own_rows is not None and labels is not None:
            scores = sets[TRAINING].scores
            return joint_coefficients(terms, whole.parts, (*alice_tables, own_rows), scores, labels)
        if not len(share.weights):
            reason = "Bob has no column of his own in this model."
            if share.columns:
                reason = "The weights of Bob's columns are shared too: neither side has them."
            return Coefficients("none", reason)
        part = ModelPart(share, share.weights)
        known = self._rows_to_test(sets)
        if known is None:
            why = self.no_tables or "there are no scores of the table's rows"
            sides = (SideWeights(part, None, own_rows),)
            return Coefficients("none", f"No standard errors: {why}.", sides, labels)
        name, table = known
        bound = bound_errors(
            table.values, share.weights, sets[name].scores, fit_of(terms), share.rows
        )
        kind: ErrorKind = "at-least"
        reason = (
            "At least this: Bob alone does not have Alice's columns, only her part of each score. "
            "Her columns one by one can make errors larger, never smaller: these p values are "
            "optimistic."
        )
        if name == HELD_OUT:
            kind = "estimated"
            reason += (
                " The bound is estimated on the held-out rows and scaled to the training rows, of "
                "which Bob has no scores."
            )
        sides = (SideWeights(part, bound, own_rows),)
        return Coefficients(kind, reason + penalty_reason(terms), sides, labels)

    def _rows_to_test(self, sets: dict[str, ScoredRows]) -> tuple[str, FeatureTable] | None:
        if self.tables is None:
            return None
        for name, table, labels in (
            (TRAINING, self.tables.train, self.tables.labels),
            (HELD_OUT, self.tables.held_out, self.tables.held_out_labels),
        ):
            rows = sets.get(name)
            # The digest is of the training rows: others may have changed since.
            same = rows and labels and np.array_equal(rows.labels, labels.values)
            if table is not None and same:
                return name, table
        return None

    def _training_notes(self) -> list[str]:
        metrics, notes = self.share.metrics, []
        if metrics.get("diverged"):
            notes.append("The training diverged: the model is worthless.")
        elif metrics.get("converged") is False:
            notes.append(NOT_CONVERGED)
        if self.terms.penalty.l1:
            notes.append(L1_PENALTY)
        if self.no_tables:
            notes.append(f"{self.no_tables}; bins are shown without their rows.")
        return notes
