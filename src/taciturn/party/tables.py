"""A party's own table: which rows train, which are held out, prepared how.

Where there is a list of aligned rows, only these are taken, under their common ids.
Rows are taken in the order of their ids, whatever the order of the file, and each row's id alone
decides whether it is held out: both sides come to the same rows without a word. The preparation is
fitted on this side's training rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir

import numpy as np

from taciturn.data.fitting import PrepareSettings
from taciturn.data.ids import RowIds, held_out_rows
from taciturn.data.parquet import Columns, Fingerprint
from taciturn.data.prepare import ChosenRows, Preparation, fit_and_prepare
from taciturn.data.tables import FeatureTable, LabelTable, label_name_notes, leakage_notes
from taciturn.data.user_table import UserRows, UserTable, user_rows
from taciturn.errors import ShapeError, rendering_errors_as
from taciturn.files import canonical_json
from taciturn.memmap import Scratch
from taciturn.party.aligned import AlignedRows
from taciturn.party.config import PartyConfig
from taciturn.party.prepared_cache import PreparedCache
from taciturn.rng import SystemEntropy
from taciturn.version import __version__


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


def load_tables(config: PartyConfig, kept: PreparedCache | None = None) -> PartyTables:
    """Reads and prepares a party's table.

    ``kept`` is where a large table is kept as it was prepared, and taken from if nothing changed;
    where absent its files last for as long as it is in use.
    """
    with rendering_errors_as(config.syntax):
        return _load(config, kept)


def _load(config: PartyConfig, kept: PreparedCache | None) -> PartyTables:
    passing = _passing(config)
    converted = passing if kept is None else Scratch(kept.path.with_name("converted"))
    try:
        return _loaded(config, kept, passing, converted.folder)
    finally:
        # What lies there is gigabytes that nobody would look for; what is in use has no name.
        passing.clear()
        converted.clear()


def _loaded(
    config: PartyConfig, kept: PreparedCache | None, passing: Scratch, converted: Path | None
) -> PartyTables:
    raw = raw_table(config, converted)
    train, rest, held_out_ids = chosen_rows(config, raw.ids)
    labels = _labels(raw.labels, train)
    if labels is not None:
        labels.require_both_classes()
    held_out_labels = _labels(raw.labels, rest) if len(rest.rows) else None
    columns, settings, sources = raw.columns, raw.settings, raw.sources
    # Ten million ids are not needed twice.
    del raw
    chosen = [train, rest] if len(rest.rows) else [train]
    key = _key(config, sources, chosen)
    recalled = None if kept is None else kept.recall(key, [rows.ids for rows in chosen])
    plan, tables = recalled or _prepared(config, columns, settings, chosen, key, kept, passing)
    like = label_name_notes(columns) if labels is None else leakage_notes(tables[0], labels)
    return PartyTables(
        train=tables[0],
        labels=labels,
        held_out=tables[1] if len(tables) > 1 else None,
        held_out_labels=held_out_labels,
        preparation=plan,
        held_out_ids=held_out_ids,
        remarks=like,
    )


def raw_table(config: PartyConfig, folder: Path | None = None) -> UserRows[Columns]:
    """A party's table before preparation; ``folder`` is as in ``TableSource.open``."""
    section = config.data
    return user_rows(
        config.table(),
        label_column=section.label,
        id_column=section.id,
        table=UserTable.from_settings(section),
        folder=folder,
    )


def _prepared(
    config: PartyConfig,
    columns: Columns,
    settings: PrepareSettings,
    chosen: list[ChosenRows],
    key: str,
    kept: PreparedCache | None,
    passing: Scratch,
) -> tuple[Preparation, list[FeatureTable]]:
    room = None if kept is None else kept.room()
    if kept is None or room is None:
        # Files without a name, which last for as long as they are in use.
        chosen, room = [replace(rows, name="") for rows in chosen], passing
    intercept = config.side.intercept(config)
    try:
        plan, tables = fit_and_prepare(columns, settings, chosen, intercept=intercept, scratch=room)
        if kept is not None and room is not passing:
            names = (rows.name for rows in chosen)
            kept.keep(key, room, plan, dict(zip(names, tables, strict=True)))
    except BaseException:
        room.clear()
        raise
    return plan, tables


def _key(config: PartyConfig, sources: tuple[Fingerprint, ...], chosen: list[ChosenRows]) -> str:
    """A digest of all that prepared tables depend on."""
    facts = {
        "version of taciturn": __version__,
        "role": config.role,
        "files": sources,
        "data": config.data.model_dump(mode="json"),
        "intercept": config.agreed["intercept"],
        "rows": [rows.ids.digest() for rows in chosen],
    }
    return sha256(canonical_json(facts).encode()).hexdigest()


def _passing(config: PartyConfig) -> Scratch:
    """Room for a large table that is not kept: beside the state, or where the system has it."""
    state = config.path(config.state.folder)
    name = f"taciturn-{SystemEntropy().token(8).hex()}"
    return Scratch((state if state.is_dir() else Path(gettempdir())) / name)


def chosen_rows(config: PartyConfig, ids: RowIds) -> tuple[ChosenRows, ChosenRows, RowIds]:
    """The training rows and the others, under the names that both sides have for them.

    The third are the table's own names of the others.
    """
    own, common, places = ids, ids, None
    if config.data.aligned is not None:
        listed = AlignedRows.read(config.path(config.data.aligned), config.data.id)
        own, common, places = listed.own, listed.common, listed.rows_of(ids)
    # By id on both sides: files may list the rows in any order.
    order = common.series.arg_sort().to_numpy().astype(np.int64)
    held = held_out_rows(common, config.agreed["held_out"], config.agreed["split_seed"])[order]
    train, rest = order[~held], order[held]
    if not len(train):
        raise ShapeError("no row is left for training", where=config.table().where)
    chosen = (
        ChosenRows(common.take(rows), rows if places is None else places[rows], name)
        for name, rows in (("train", train), ("held-out", rest))
    )
    return next(chosen), next(chosen), own.take(rest)


def _labels(labels: LabelTable | None, chosen: ChosenRows) -> LabelTable | None:
    return None if labels is None else LabelTable(chosen.ids, labels.values[chosen.rows])
