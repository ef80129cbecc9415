"""What a side may say of how its model works, from its own files.

Bob has scores: those that the end of the training left beside his model, and those of new rows,
which ``taciturn predict`` wrote. Alice has none. Coefficients are shown where the side has them;
their standard errors are a bound from below at Bob alone, and exact for whoever holds all sides'
models and rows (``taciturn.model.coefficient_tests``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.ids import RowIds
from taciturn.data.tables import FeatureTable
from taciturn.errors import ConfigError, DataError, FileError
from taciturn.model.coefficient_tests import (
    SideRows,
    bound_errors,
    coefficient_tests,
    column_effects,
    constant_points,
    exact_errors,
)
from taciturn.model.report import (
    HELD_OUT,
    NEW,
    SET_TO_ZERO,
    TRAINING,
    UNARRIVED,
    bound_reason,
    fit_of,
    joined_reason,
    judged_rows,
    meaning_of,
    score_scale,
)
from taciturn.model.scores_file import ScoredRows, StoredScores, scores_path
from taciturn.model.share import ModelShare
from taciturn.model.whole import Part, WholeModel, whole_model
from taciturn.numerics.bands import Bands, stability
from taciturn.numerics.scorecard import Scale
from taciturn.numerics.sorted_scores import Costs
from taciturn.party.config import PartyConfig
from taciturn.party.new_rows import new_rows
from taciturn.party.new_scores import NewScores
from taciturn.party.tables import PartyTables, load_tables
from taciturn.privacy.base import Mechanism
from taciturn.privacy.registry import mechanism
from taciturn.results.model_report import (
    CoefficientTest,
    ColumnEffect,
    ComparedScores,
    ErrorKind,
    ModelReport,
)
from taciturn.settings.agreement import Agreement
from taciturn.version import __version__

_NO_ALICE = (
    "Alice has no scores: only Bob learns them. What she may see of the model is what her columns "
    "are worth."
)


@dataclass(frozen=True, slots=True)
class Question:
    """What a report is asked for.

    ``scores`` are those of new rows, as ``taciturn predict`` writes them, ``labels`` a table with
    their labels. ``bands`` is the number of score bands, or the probabilities at which they begin.
    Exact errors need all Alices' models and their raw tables in the same order.
    """

    model: Path | None = None
    scores: Path | None = None
    labels: Path | None = None
    costs: Costs | None = None
    bands: int | tuple[float, ...] = 10
    scale: Scale = field(default_factory=Scale)
    alice_models: tuple[Path, ...] = ()
    alice_rows: tuple[Path, ...] = ()
    alice_id: str | None = None


def model_report(config: PartyConfig, question: Question) -> ModelReport:
    """What the side may say of its model."""
    path = question.model or config.path(config.output.model)
    share = ModelShare.load(path)
    if share.role != config.role:
        raise ConfigError(
            f"this is {share.role}'s model, and these are {config.role}'s settings",
            where=str(path),
            hint="name one side's settings and its own model",
        )
    if share.role == "alice":
        return _alices(share, path, question)
    return _Bobs(config, share, path, question).report()


def _alices(share: ModelShare, path: Path, question: Question) -> ModelReport:
    if question.scores or question.labels or question.alice_models:
        raise ConfigError(
            "Alice learns no scores, so that there is nothing to judge here",
            where=str(path),
            hint="name no scores, labels or other models here; Bob has the model's figures",
        )
    if not len(share.weights):
        raise ConfigError(
            "Alice has no scores, and of the weights a random share only: there is nothing to show",
            where=str(path),
            hint="run it with Bob's file, on his side",
        )
    part = Part(share, share.weights)
    agreed = _agreement(share, path)
    return ModelReport(
        role="alice",
        model=str(path),
        session=share.session,
        mechanism=agreed.mechanism,
        meaning=None,
        log_odds_shift=share.log_odds_shift,
        rows=share.rows,
        threshold=None,
        judged=(),
        compared=(),
        scale=score_scale(question.scale),
        errors="none",
        errors_reason="Standard errors need the rows' probabilities, which Bob alone has.",
        coefficients=coefficient_tests(part, None, question.scale),
        effects=column_effects(part, None, question.scale, None),
        notes=(_NO_ALICE,),
        version=__version__,
    )


class _Bobs:
    def __init__(
        self, config: PartyConfig, share: ModelShare, path: Path, question: Question
    ) -> None:
        self._share, self._path, self._question = share, path, question
        self._config = _at_study(config, share)
        self._agreed = _agreement(share, path)
        self._mechanism: Mechanism = mechanism(self._agreed)
        self._notes: list[str] = []
        self._tables: PartyTables | None = None
        self._no_tables = ""

    def report(self) -> ModelReport:
        share, question = self._share, self._question
        shift = share.log_odds_shift
        self._load_tables()
        whole, hers = self._whole()
        sets = self._sets(whole, hers)
        new = self._new_rows()
        if new is not None and new.labels is not None:
            sets[NEW] = ScoredRows(new.scores, new.labels)
        reference = next((name for name in (TRAINING, HELD_OUT) if name in sets), None)
        first = sets[reference] if reference else new
        bands = self._bands(None if first is None else first.scores, shift)
        judged = tuple(
            judged_rows(name, rows, bands, shift, question.costs) for name, rows in sets.items()
        )
        kind, reason, parts, errors = self._tested(whole, hers, sets)
        coefficients, effects = self._shown(parts, errors, hers)
        own = next((part for part in parts if part.model.role == "bob"), None)
        return ModelReport(
            role="bob",
            model=str(self._path),
            session=share.session,
            mechanism=self._agreed.mechanism,
            meaning=meaning_of(self._mechanism, self._agreed.class_weight),
            log_odds_shift=shift,
            rows=share.rows,
            threshold=share.threshold,
            judged=judged,
            compared=self._compared(sets, reference, new, bands),
            scale=score_scale(
                question.scale,
                None if own is None else constant_points(own, question.scale, shift),
            ),
            errors=kind,
            errors_reason=reason,
            coefficients=coefficients,
            effects=effects,
            notes=(*self._notes, *self._training_notes()),
            version=__version__,
        )

    # --- rows -------------------------------------------------------------------------------

    def _load_tables(self) -> None:
        """Bob's own table, where it is still the one that the model was trained on."""
        try:
            tables = load_tables(self._config.first)
        except DataError as problem:
            self._no_tables = f"Bob's table cannot be read: {problem.message}"
            return
        if tables.train.digest() != self._share.data_digest:
            self._no_tables = "Bob's table is not the one that the model was trained on"
            return
        self._tables = tables

    def _whole(self) -> tuple[WholeModel | None, tuple[FeatureTable, ...]]:
        """The joined model and her training rows, where all of it is named."""
        question = self._question
        if len(question.alice_models) != len(question.alice_rows):
            raise ConfigError(
                "exact standard errors need each Alice's model and her rows",
                setting="alice_model",
                hint="name a model and a table for each Alice, in one order",
            )
        if not question.alice_models:
            return None, ()
        if self._tables is None:
            raise FileError(f"{self._no_tables}: there is nothing to join", where=str(self._path))
        ids = self._tables.train.ids
        shares = [ModelShare.load(path) for path in question.alice_models]
        whole = whole_model(*shares, self._share)
        rows = dict(zip((share.name for share in shares), question.alice_rows, strict=True))
        tables = tuple(self._hers(part.model, rows[part.model.name], ids) for part in whole.alices)
        return whole, tables

    def _hers(self, alice: ModelShare, path: Path, ids: RowIds) -> FeatureTable:
        """An Alice's prepared training rows, in the order of Bob's."""
        config, column = self._config, self._question.alice_id or self._config.data.id
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
        self, whole: WholeModel | None, hers: tuple[FeatureTable, ...]
    ) -> dict[str, ScoredRows]:
        """The rows that were kept with scores; training rows anew, where everything is at hand."""
        sets: dict[str, ScoredRows] = {}
        needed = self._question.scores is None and whole is None
        if needed or scores_path(self._path).exists():
            kept = StoredScores.load(scores_path(self._path))
        else:
            kept = StoredScores(self._share.session)
            self._notes.append("There are no kept scores of this model's training beside it.")
        if kept.session != self._share.session:
            raise FileError(
                "these are the scores of another training",
                where=str(scores_path(self._path)),
                hint="keep a model's file and its scores together",
            )
        if kept.train is not None:
            sets[TRAINING] = kept.train
        elif whole is not None and self._tables is not None and self._tables.labels is not None:
            values = (*(table.values for table in hers), self._tables.train.values)
            parts = zip(whole.parts, values, strict=True)
            scores = np.sum([columns @ part.weights for part, columns in parts], axis=0)
            sets[TRAINING] = ScoredRows(scores, self._tables.labels.values)
        else:
            self._notes.append(
                "Bob has no scores of the training rows: where weights are shared, only held-out "
                "rows are scored."
                if self._share.sealed
                else "Bob has no scores of the training rows."
            )
        if kept.held_out is not None:
            sets[HELD_OUT] = kept.held_out
        return sets

    def _new_rows(self) -> NewScores | None:
        question = self._question
        if question.scores is not None:
            return NewScores.read(question.scores, question.labels, self._config)
        if question.labels is not None:
            raise ConfigError(
                "labels without scores say nothing of the model",
                where=str(question.labels),
                hint="name the scores of the same rows too, as taciturn predict wrote them",
            )
        return None

    def _bands(self, scores: FloatArray | None, shift: float) -> Bands:
        chosen = self._question.bands
        if isinstance(chosen, tuple):
            if not all(0 < edge < 1 for edge in chosen):
                raise ConfigError(
                    "score bands begin at probabilities between 0 and 1",
                    hint="use 10 bands, or edges such as 0.02,0.05,0.1",
                )
            edges = np.log(np.array(chosen) / (1 - np.array(chosen))) + shift
            return Bands(tuple(edges.tolist()))
        if scores is None:
            return Bands(())
        return Bands.of_quantiles(scores, chosen)

    def _compared(
        self,
        sets: dict[str, ScoredRows],
        reference: str | None,
        new: NewScores | None,
        bands: Bands,
    ) -> tuple[ComparedScores, ...]:
        if reference is None:
            return ()
        others = {name: rows.scores for name, rows in sets.items() if name != reference}
        if new is not None:
            others[NEW] = new.scores
        base = bands.counts(sets[reference].scores)
        return tuple(
            ComparedScores(
                reference=reference,
                new=name,
                edges=bands.edges,
                stability=stability(base, bands.counts(scores)),
            )
            for name, scores in others.items()
        )

    # --- coefficients -------------------------------------------------------------------------

    def _tested(
        self,
        whole: WholeModel | None,
        hers: tuple[FeatureTable, ...],
        sets: dict[str, ScoredRows],
    ) -> tuple[ErrorKind, str, tuple[Part, ...], list[FloatArray | None]]:
        """Of which parts coefficients are shown, with what errors, and what these are."""
        share, fit = self._share, fit_of(self._mechanism, self._agreed)
        if whole is not None and self._tables is not None and self._tables.labels is not None:
            values = [*(table.values for table in hers), self._tables.train.values]
            train = sets[TRAINING]
            errors = exact_errors(values, train.scores, self._tables.labels.values, fit)
            ends = np.cumsum([columns.shape[1] for columns in values])
            exact = self._mechanism.lossless or fit.flip_epsilon is not None
            return (
                "exact" if exact else "at-least",
                joined_reason(self._agreed, exact=exact),
                whole.parts,
                [*np.split(errors, ends[:-1])],
            )
        if not len(share.weights):
            words = "Bob has no column of his own in this model."
            if share.columns:
                words = "The weights of Bob's columns are shared too: neither side has them."
            return "none", words, (), []
        part = Part(share, share.weights)
        rows, table = self._rows_to_test(sets)
        if rows is None or table is None:
            why = self._no_tables or "there are no scores of the table's rows"
            return "none", f"No standard errors: {why}.", (part,), [None]
        bound = bound_errors(table.values, share.weights, rows.scores, fit, share.rows)
        on_held_out = rows is sets.get(HELD_OUT)
        kind: ErrorKind = "estimated" if on_held_out else "at-least"
        return kind, bound_reason(self._agreed, held_out=on_held_out), (part,), [bound]

    def _rows_to_test(
        self, sets: dict[str, ScoredRows]
    ) -> tuple[ScoredRows | None, FeatureTable | None]:
        if self._tables is None:
            return None, None
        for name, table, labels in (
            (TRAINING, self._tables.train, self._tables.labels),
            (HELD_OUT, self._tables.held_out, self._tables.held_out_labels),
        ):
            rows = sets.get(name)
            # The digest is of the training rows: others may have changed since.
            same = rows and labels and np.array_equal(rows.labels, labels.values)
            if rows is not None and table is not None and same:
                return rows, table
        return None, None

    def _shown(
        self,
        parts: Sequence[Part],
        errors: Sequence[FloatArray | None],
        hers: tuple[FeatureTable, ...],
    ) -> tuple[tuple[CoefficientTest, ...], tuple[ColumnEffect, ...]]:
        scale = self._question.scale
        tables: dict[str, FeatureTable] = {}
        labels = None
        if self._tables is not None:
            tables["bob"] = self._tables.train
            labels = None if self._tables.labels is None else self._tables.labels.values
        alices = [part for part in parts if part.model.role == "alice"]
        tables |= {part.model.title: table for part, table in zip(alices, hers, strict=False)}
        coefficients: list[CoefficientTest] = []
        effects: list[ColumnEffect] = []
        # Bob's own first: they are there in every report of his.
        for part, part_errors in sorted(
            zip(parts, errors, strict=True), key=lambda pair: pair[0].model.role != "bob"
        ):
            table = tables.get(part.model.title)
            rows = None if table is None else SideRows(table.values, labels)
            coefficients += coefficient_tests(part, part_errors, scale)
            effects += column_effects(part, part_errors, scale, rows)
        return tuple(coefficients), tuple(effects)

    def _training_notes(self) -> list[str]:
        metrics, notes = self._share.metrics, []
        if metrics.get("diverged"):
            notes.append("The training diverged: the model is worthless.")
        elif metrics.get("converged") is False:
            notes.append(UNARRIVED)
        if self._agreed.l1:
            notes.append(SET_TO_ZERO)
        if self._no_tables:
            notes.append(f"{self._no_tables}; bins are shown without their rows.")
        return notes


def _at_study(config: PartyConfig, share: ModelShare) -> PartyConfig:
    number = share.study.get("model")
    if config.study is None or not isinstance(number, int):
        return config
    points = {point.number: point for point in config.study.points}
    return config.at(points[number]) if number in points else config


def _agreement(share: ModelShare, path: Path) -> Agreement:
    try:
        return Agreement.of(share.agreement)
    except ConfigError as problem:
        raise FileError(
            f"the model's agreement is not one that this program knows: {problem.message}",
            where=str(path),
            hint="read it with the version of taciturn that wrote it",
        ) from None
