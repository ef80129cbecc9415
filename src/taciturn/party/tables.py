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

from taciturn.data.ids import RowIds, held_out_rows
from taciturn.data.lazy_table import Columns
from taciturn.data.prepare import ChosenRows, Preparation, fit_and_prepare
from taciturn.data.prepare_settings import PrepareSettings
from taciturn.data.table_files import Fingerprint
from taciturn.data.tables import FeatureTable, SideTables
from taciturn.data.target_leakage import label_name_notes, leakage_notes, width_notes
from taciturn.data.user_table import UserRows, UserTable, user_rows
from taciturn.errors import ShapeError, rendering_errors_as
from taciturn.files import canonical_json
from taciturn.memmap import Scratch
from taciturn.party.aligned_rows import AlignedRows
from taciturn.party.config import PartyConfig
from taciturn.party.prepared_cache import PreparedCache
from taciturn.rng import SystemEntropy
from taciturn.version import __version__


@dataclass(frozen=True, slots=True)
class PartyTables(SideTables):
    """One side's rows, with what is kept for its files.

    ``held_out_ids`` are the table's own spelling of the held-out rows' ids.
    """

    preparation: Preparation
    held_out_ids: RowIds
    remarks: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the preparation, and about columns like labels."""
        return (*self.preparation.notes, *self.remarks)


def load_tables(config: PartyConfig, cache: PreparedCache | None = None) -> PartyTables:
    """Reads and prepares a party's table.

    ``cache`` holds large prepared tables between runs. Without one their files last as long as
    the tables are in use.
    """
    with rendering_errors_as(config.syntax):
        passing = _passing(config)
        converted = passing if cache is None else Scratch(cache.path.with_name("converted"))
        try:
            return _loaded(config, cache, passing, converted.folder)
        finally:
            # What lies there is gigabytes that nobody would look for; what is in use has no name.
            passing.clear()
            converted.clear()


def _loaded(
    config: PartyConfig, cache: PreparedCache | None, passing: Scratch, converted: Path | None
) -> PartyTables:
    raw = raw_table(config, converted)
    train, rest, held_out_ids = chosen_rows(config, raw.ids)
    labels = held_out_labels = None
    if raw.labels is not None:
        labels = raw.labels.take(train.rows, train.ids)
        labels = labels.standardised(intercept=config.side.intercept(config))
        labels.require_variation()
        if len(rest.rows):
            judged = raw.labels.take(rest.rows, rest.ids)
            held_out_labels = replace(judged, response=labels.response)
    columns, settings, sources, remarks = raw.columns, raw.settings, raw.sources, raw.remarks
    # Ten million ids are not needed twice.
    del raw
    chosen = [train, rest] if len(rest.rows) else [train]
    key = _key(config, sources, chosen)
    recalled = None if cache is None else cache.recall(key, [rows.ids for rows in chosen])
    plan, tables = recalled or _prepared(config, columns, settings, chosen, key, cache, passing)
    like = label_name_notes(columns) if labels is None else leakage_notes(tables[0], labels)
    return PartyTables(
        train=tables[0],
        labels=labels,
        held_out=tables[1] if len(tables) > 1 else None,
        held_out_labels=held_out_labels,
        preparation=plan,
        held_out_ids=held_out_ids,
        remarks=(*remarks, *like, *width_notes(len(tables[0].columns), tables[0].rows)),
    )


def raw_table(config: PartyConfig, folder: Path | None = None) -> UserRows:
    """A party's table before preparation; ``folder`` is as in ``TableSource.open``."""
    section, family = config.data, config.agreed["family"]
    return user_rows(
        config.table(),
        label_column=section.label,
        id_column=section.id,
        table=UserTable.from_settings(section, family, labelled=section.label is not None),
        folder=folder,
    )


def _prepared(
    config: PartyConfig,
    columns: Columns,
    settings: PrepareSettings,
    chosen: list[ChosenRows],
    key: str,
    cache: PreparedCache | None,
    passing: Scratch,
) -> tuple[Preparation, list[FeatureTable]]:
    room = None if cache is None else cache.room()
    if cache is None or room is None:
        # Files without a name, which last for as long as they are in use.
        chosen, room = [replace(rows, name="") for rows in chosen], passing
    intercept = config.side.intercept(config)
    try:
        plan, tables = fit_and_prepare(columns, settings, chosen, intercept=intercept, scratch=room)
        if cache is not None and room is not passing:
            names = (rows.name for rows in chosen)
            cache.keep(key, room, plan, dict(zip(names, tables, strict=True)))
    except BaseException:
        room.clear()
        raise
    return plan, tables


def _passing(config: PartyConfig) -> Scratch:
    """Room for a large table that is not kept: beside the state, or where the system has it."""
    state = config.path(config.state.folder)
    name = f"taciturn-{SystemEntropy().token(8).hex()}"
    return Scratch((state if state.is_dir() else Path(gettempdir())) / name)


def chosen_rows(config: PartyConfig, ids: RowIds) -> tuple[ChosenRows, ChosenRows, RowIds]:
    """The training rows and the others, under the names that both sides have for them.

    The third are the table's own names of the others.
    """
    own_ids, common, places = ids, ids, None
    if config.data.aligned is not None:
        listed = AlignedRows.read(config.path(config.data.aligned), config.data.id)
        own_ids, common, places = listed.own_ids, listed.common, listed.rows_of(ids)
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
    return next(chosen), next(chosen), own_ids.take(rest)


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
