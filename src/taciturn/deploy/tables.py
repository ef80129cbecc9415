"""A party's own table: which rows train, which are held out, prepared how.

Where there is a list of aligned rows, only these are taken, under their common ids.
Rows are taken in the order of their ids, whatever the order of the file, and each row's id alone
decides whether it is held out: both sides come to the same rows without a word. The preparation is
fitted on this side's training rows.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from taciturn.data.ids import RowIds
from taciturn.data.label_like import named_like_labels, near_the_label
from taciturn.data.own import NO_COLUMN, OwnTable, columns_alone, own_data
from taciturn.data.prepare import Preparation, fit, prepared_table
from taciturn.data.raw import RawData
from taciturn.data.tables import FeatureTable, LabelTable
from taciturn.deploy.aligned import AlignedRows
from taciturn.deploy.config import DataSection, PartyConfig
from taciturn.errors import ShapeError, shown_by


@dataclass(frozen=True, slots=True)
class PartyTables:
    """One side's rows; Alice's have no labels, and nothing may be held out.

    ``held_out_ids`` are the table's own spelling of the held-out rows' ids.
    """

    train: FeatureTable
    labels: LabelTable | None
    held_out: FeatureTable | None
    held_out_labels: LabelTable | None
    preparation: Preparation
    held_out_ids: RowIds
    remarks: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth knowing about the preparation, and about columns like labels."""
        return (*self.preparation.notes, *self.remarks)


def load_tables(config: PartyConfig) -> PartyTables:
    """Reads and prepares a party's table.

    Raises:
        DataError: The file, a column, an id or a value is not fit for use.
    """
    with shown_by(config.face):
        return _load(config)


def _load(config: PartyConfig) -> PartyTables:
    raw, has_features = _read(config.path(config.data.file), config.data)
    own = raw.ids
    if config.data.aligned is not None:
        listed = AlignedRows.read(config.path(config.data.aligned), config.data.id)
        raw, own = _only(raw, listed), listed.own
    # By id on both sides: files may list the rows in any order.
    order = raw.ids.series.arg_sort().to_numpy().astype(np.int64)
    held = _held_out(raw.ids, config.agreed["held_out"], config.agreed["split_salt"])[order]
    train, rest = order[~held], order[held]
    if not len(train):
        raise ShapeError("no row is left for training", where=config.data.file)
    frame, chosen = raw.frame, raw.settings
    plan = Preparation(())
    if has_features:
        plan = fit(frame, chosen, ids=raw.ids.take(train), rows=train)
    bob = config.role == "bob"
    intercept = bob and config.data.intercept
    labels = raw.labels.take(train) if bob else None
    if labels is not None:
        labels.require_both_classes()
    table = prepared_table(plan, frame, raw.ids.take(train), rows=train, intercept=intercept)
    like = named_like_labels(frame) if labels is None else near_the_label(table, labels)
    return PartyTables(
        train=table,
        labels=labels,
        held_out=prepared_table(plan, frame, raw.ids.take(rest), rows=rest, intercept=intercept)
        if len(rest)
        else None,
        held_out_labels=raw.labels.take(rest) if bob and len(rest) else None,
        preparation=plan,
        held_out_ids=own.take(rest),
        remarks=like,
    )


def _read(path: Path, section: DataSection) -> tuple[RawData, bool]:
    """The rows, and whether there are columns beside id and label: Bob may have none."""
    table = OwnTable.of(section)
    if section.label is None:
        return columns_alone(path, id_column=section.id, table=table), True
    raw = own_data(
        path,
        label_column=section.label,
        id_column=section.id,
        table=table,
        columns_needed=False,
    )
    return raw, raw.frame.columns != [NO_COLUMN]


def _only(raw: RawData, listed: AlignedRows) -> RawData:
    """The aligned rows, under the names that both sides have for them."""
    rows = listed.rows_of(raw.ids)
    labels = LabelTable(listed.common, raw.labels.values[rows])
    return RawData(raw.name, raw.frame[rows], listed.common, labels, raw.settings)


def _held_out(
    ids: RowIds, share: float | None, salt: str
) -> np.ndarray[tuple[int], np.dtype[np.bool]]:
    """Which rows are held out: those whose hashed id falls below the share.

    The hash says nothing about a label, and the salt lets two trainings hold out other rows.
    """
    if share is None:
        return np.zeros(len(ids), dtype=np.bool)
    limit, prefix = int(share * 2**64), f"taciturn held out\0{salt}\0".encode()
    return np.array(
        [
            int.from_bytes(hashlib.sha256(prefix + row_id.encode()).digest()[:8], "big") < limit
            for row_id in ids.series.to_list()
        ],
        dtype=np.bool,
    )
