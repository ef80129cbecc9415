"""New rows for a trained model: read from a file, prepared as the model says.

Nothing is fitted: a missing value, an unknown category or a clip is treated as the stored
preparation does it. Which of the rows both sides have is found out with the peer, or taken from a
list that an alignment wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray, IndexArray
from taciturn.data.frames import require_column
from taciturn.data.ids import AS_THEY_ARE, Normalisation, RowIds
from taciturn.data.label_table import checked_factor
from taciturn.data.prepare import prepared_table
from taciturn.data.rules import CategoricalRule, Rule
from taciturn.data.source import TableSource
from taciturn.data.tables import FeatureTable
from taciturn.errors import (
    ColumnError,
    DataError,
    MissingValueError,
    nearest,
)
from taciturn.model.share import ModelShare
from taciturn.party.aligned_rows import AlignedRows

_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class NewRows:
    """Rows to score, in the order of the file.

    ``own_ids`` are as the file spells them; ``table`` those by which both sides know the
    rows. ``listed`` says which of them both sides have, in the order of the common ids; None where
    that is still to be found out.
    """

    own_ids: RowIds
    table: FeatureTable
    where: str
    listed: IndexArray | None = None
    exposure: FloatArray | None = field(default=None, repr=False)


def new_rows(
    source: TableSource,
    id_column: str,
    model: ModelShare,
    only: Sequence[str] = (),
    normalisation: Normalisation = AS_THEY_ARE,
    common: AlignedRows | None = None,
    exposure: str | None = None,
) -> NewRows:
    """Reads and prepares rows for a model, by the model's own preparation.

    ``only`` takes these ids alone, all where empty. ``common`` are the rows that both sides have,
    where that is known; their common ids are used. ``exposure`` is a column that the rows may have.
    """
    texts = {rule.column for rule in model.preparation.rules if is_text(rule)}
    # As text, as a whole column with a word in it would be: a level "1" of a few rows is no number.
    frame = source.frame(text=[id_column, *sorted(texts)])
    try:
        _require_columns(frame.columns, id_column, model)
        # A list names rows as the table spells them.
        compared = normalisation if common is None else AS_THEY_ARE
        distinct = source.distinct(frame, id_column, compared)
        frame, ids, names = distinct.taken_from(frame), distinct.own_ids, distinct.common
        if only:
            chosen = _chosen(ids, only, normalisation)
            frame, ids, names = frame[chosen], ids.take(chosen), names.take(chosen)
        known = _exposure(frame, ids, exposure)
        if common is None:
            return NewRows(ids, _prepared(frame, names, model), source.where, exposure=known)
        return _listed(frame, ids, model, common, source.where, known)
    except MissingValueError as problem:
        raise MissingValueError(
            problem.message,
            where=_place(source.where, problem),
            hint="the model's preparation fills no gaps: complete the rows, or leave them out",
        ) from None
    except DataError as problem:
        raise problem.at(_place(source.where, problem)) from None


def _exposure(frame: pl.DataFrame, ids: RowIds, column: str | None) -> FloatArray | None:
    """The rows' exposures, checked as in a training; None where the rows have no such column."""
    if column is None or column not in frame.columns:
        return None
    return checked_factor(frame[column], ids, "exposure")


def _place(where: str, problem: DataError) -> str:
    return f"{where}, {problem.where}" if problem.where else where


def is_text(rule: Rule) -> bool:
    """Whether a rule's column is read as text, whatever it looks like."""
    return isinstance(rule, CategoricalRule) or rule.reading.is_text


def _listed(
    frame: pl.DataFrame,
    ids: RowIds,
    model: ModelShare,
    common: AlignedRows,
    where: str,
    exposure: FloatArray | None,
) -> NewRows:
    places = common.rows_of(ids)
    in_file = np.argsort(places)
    names, places = common.common.take(in_file), places[in_file]
    table = _prepared(frame[places], names, model)
    # By id on both sides: lists may be in any order.
    order = names.series.arg_sort().to_numpy().astype(np.int64)
    taken = None if exposure is None else exposure[places]
    return NewRows(ids.take(places), table, where, order, taken)


def _prepared(frame: pl.DataFrame, ids: RowIds, model: ModelShare) -> FeatureTable:
    return prepared_table(model.preparation, frame, ids, intercept=model.intercept)


def _require_columns(columns: list[str], id_column: str, model: ModelShare) -> None:
    require_column(columns, id_column, "id")
    present = {*columns}
    # A date and its parts come from one column.
    wanted = dict.fromkeys(rule.column for rule in model.preparation.rules)
    lacking = [column for column in wanted if column not in present]
    if lacking:
        named = ", ".join(repr(column) for column in lacking[:_MOST_NAMED])
        more = f" and {len(lacking) - _MOST_NAMED} more" if len(lacking) > _MOST_NAMED else ""
        raise ColumnError(
            f"the rows lack {len(lacking)} of the {len(wanted)} columns that the "
            f"model was trained on: {named}{more}",
            hint=nearest(lacking[0], [column for column in columns if column != id_column]),
        )


def _chosen(ids: RowIds, only: Sequence[str], normalisation: Normalisation) -> IndexArray:
    """Positions of the named rows; names are normalised as ids are."""
    wanted = RowIds.from_values([*dict.fromkeys(map(normalisation.one, only))])
    return np.sort(normalisation.apply(ids).rows_of(wanted, hint="name an id of the table"))
