"""A party's own table: which rows train, which are held out, prepared how.

Where there is a list of aligned rows, only these are taken, under their common ids.
Rows are taken in the order of their ids, whatever the order of the file, and each row's id alone
decides whether it is held out: both sides come to the same rows without a word. The preparation is
fitted on this side's training rows.

The list of rows that both sides have: what an alignment leaves, and a training goes by.

A file with the table's id column: this side's own spelling of each common id, in the order of the
common ones. Where ids were normalised a second column has the common ones, by which both sides then
name their rows.

``PreparedCache``: a party's large tables, kept as they were prepared until it has trained.

Preparing ten million rows takes minutes. A party that is started again takes the prepared rows from
its state folder, if nothing has changed since: the table's files (by name, size and time of
change), which rows are taken, what is done to their columns, and the program.

The folder has a manifest (JSON) and, in a folder with a name of chance, a file of float64 for each
table, row by row. They are the party's own columns in plain numbers, not encrypted: only their
owner may read them. Small tables are in memory alone.

**Guarantee.** What is recalled has the digest that it had when it was kept; else it is prepared
again.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
import polars as pl

from taciturn.arrays import IndexArray
from taciturn.data.addresses import is_select
from taciturn.data.csv_files import Dialect
from taciturn.data.frames import require_column
from taciturn.data.ids import RowIds, held_out_rows
from taciturn.data.lazy_table import Columns
from taciturn.data.prepare import ChosenRows, Preparation, fit_and_prepare
from taciturn.data.prepare_settings import PrepareSettings
from taciturn.data.source import read_frame
from taciturn.data.table_files import Fingerprint
from taciturn.data.tables import FeatureTable, SideTables
from taciturn.data.target_leakage import label_name_notes, leakage_notes, width_notes
from taciturn.data.user_table import UserRows, UserTable, user_rows
from taciturn.errors import (
    ConfigError,
    FileError,
    RowIdError,
    ShapeError,
    TaciturnError,
    rendering_errors_as,
)
from taciturn.files import (
    canonical_json,
    exclusive_lock,
    private_file,
    reporting_write_errors,
    write_private,
)
from taciturn.memmap import LEAST_MAPPED_BYTES, Scratch, opened
from taciturn.party.config import PartyConfig
from taciturn.party.state_store import LOCK
from taciturn.rng import SystemEntropy
from taciturn.setting_syntax import Hint
from taciturn.version import __version__

COMMON = "common_id"
SUFFIXES = (".csv", ".parquet")
# Rows that are text in memory at a time.
_PART_ROWS = 1 << 18


@dataclass(frozen=True, slots=True)
class AlignedRows:
    """The common rows of one side's table.

    ``own_ids`` are as the table spells them, ``common`` as both sides know them, in the same
    order.
    """

    own_ids: RowIds
    common: RowIds
    where: str = ""

    @classmethod
    def read(cls, path: Path, id_column: str, named_by: str = "[data] aligned") -> AlignedRows:
        """Reads a list."""
        if not path.exists():
            raise FileError(
                "there is no such list of aligned rows",
                where=f"{path}, named by {named_by}",
                hint="taciturn align writes it, on both sides; or leave it out",
            )
        second = _second(id_column)
        # An id may be spelled NA: nothing stands for a missing value here.
        frame = read_frame(path, text=(id_column, second), dialect=Dialect(na_values=()))
        require_column(frame.columns, id_column, "id", where=str(path))
        own_ids = _ids(frame[id_column], path)
        return cls(
            own_ids, _ids(frame[second], path) if second in frame.columns else own_ids, str(path)
        )

    def write(self, path: Path, id_column: str) -> None:
        """Writes the list, whole or not at all, for its owner's eyes."""
        columns = {id_column: self.own_ids.series}
        if self.common != self.own_ids:
            columns[_second(id_column)] = self.common.series
        with private_file(path) as stream:
            for part in _written(pl.DataFrame(columns), path.suffix):
                stream.write(part)

    def rows_of(self, table: RowIds) -> IndexArray:
        """Positions of these rows in a table, in the list's order."""
        hint = "restore the table, or align again on both sides: taciturn align"
        return table.rows_of(self.own_ids, where=self.where, hint=hint)


def beside_rows(config: PartyConfig, rows: Path | str, kind: str) -> Path:
    """Default name of a CSV file about some rows: beside their file, or the party's for a query."""
    if isinstance(rows, str) and is_select(rows):
        return config.path(f"{Path(config.where).stem}.new.{kind}.csv")
    path = Path(rows)
    return path.with_name(f"{Path(path.name.removesuffix('.gz')).stem}.{kind}.csv")


def require_kind(path: Path, setting: str = "aligned") -> None:
    """Insists that a file is of a kind that can hold a list."""
    if path.suffix not in SUFFIXES:
        raise ConfigError(
            f"a list of aligned rows cannot be a {path.suffix or 'file without a suffix'}",
            setting=setting,
            value=str(path),
            hint="name a .csv or a .parquet file",
        )


def require_room(path: Path, ids: RowIds) -> None:
    """Insists that ids come back from such a file as they are, before any work is done for it."""
    if path.suffix == ".csv":
        padded = ids.series != ids.series.str.strip_chars()
        if padded.any():
            raise RowIdError(
                f"{padded.sum()} of {len(ids)} ids have spaces at their ends, which CSV loses",
                where=f"first in row {int(padded.arg_max() or 0) + 1}",
                hint=Hint("name a .parquet file with {out}"),
            )


def _written(frame: pl.DataFrame, suffix: str) -> Iterator[bytes]:
    if suffix == ".parquet":
        content = io.BytesIO()
        frame.write_parquet(content)
        yield content.getvalue()
        return
    for number, part in enumerate(frame.iter_slices(_PART_ROWS)):
        yield part.write_csv(include_header=number == 0).encode()


def _second(id_column: str) -> str:
    return COMMON if id_column != COMMON else COMMON + "_"


def _ids(series: pl.Series, path: Path) -> RowIds:
    try:
        return RowIds.from_values(series)
    except RowIdError as problem:
        raise problem.at(f"{path}, {problem.where}") from None


_VERSION = 1
_MANIFEST = "manifest.json"
_NAME_BYTES = 8


@dataclass(frozen=True, slots=True)
class PreparedCache:
    """Folder of a party's prepared tables; those below ``least`` bytes are in memory alone."""

    path: Path
    least: int = LEAST_MAPPED_BYTES

    def room(self) -> Scratch | None:
        """Room for new tables; former ones, and what an interrupted preparation left, are removed.

        None where another process is at work in the state folder, whose tables they may be.
        """
        state = self.path.parent
        if state.is_dir():
            with (
                reporting_write_errors(state, "state folder"),
                exclusive_lock(state / LOCK) as alone,
            ):
                if not alone:
                    return None
        self.clear()
        return Scratch(self.path / SystemEntropy().token(_NAME_BYTES).hex(), self.least)

    def keep(
        self,
        key: str,
        scratch: Scratch,
        plan: Preparation,
        tables: Mapping[str, FeatureTable],
    ) -> None:
        """Notes what lies in the folder, so that it can be recalled; nothing where nothing does.

        ``key`` covers all that the tables depend on; ``tables`` has them by the names of their
        files.
        """
        folder = scratch.folder
        if folder is None or not all((folder / name).is_file() for name in tables):
            return
        manifest = {
            "version": _VERSION,
            "key": key,
            "folder": folder.name,
            "preparation": plan.to_json(),
            "tables": [
                {"file": name, "columns": table.columns, "digest": table.digest()}
                for name, table in tables.items()
            ],
        }
        write_private(self.path / _MANIFEST, canonical_json(manifest), "list of prepared tables")

    def recall(
        self, key: str, ids: Sequence[RowIds]
    ) -> tuple[Preparation, list[FeatureTable]] | None:
        """The preparation and the tables that were kept under this key; None if there are none."""
        # Whatever is wrong with them, they can be prepared again.
        with suppress(OSError, ValueError, KeyError, TypeError, TaciturnError):
            manifest: dict[str, Any] = json.loads((self.path / _MANIFEST).read_bytes())
            if (manifest["version"], manifest["key"]) != (_VERSION, key):
                return None
            folder = self.path / manifest["folder"]
            tables = []
            for rows, entry in zip(ids, manifest["tables"], strict=True):
                columns = tuple(entry["columns"])
                values = opened(folder / entry["file"], (len(rows), len(columns)), np.float64)
                table = FeatureTable(rows, columns, values)
                if table.digest() != entry["digest"]:
                    return None
                tables.append(table)
            return Preparation.from_json(manifest["preparation"]), tables
        return None

    def clear(self) -> None:
        """Removes the files; tables that are in use keep their numbers."""
        with (
            reporting_write_errors(self.path, "folder of prepared tables"),
            suppress(FileNotFoundError),
        ):
            shutil.rmtree(self.path)


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
        return _load(config, cache)


def _load(config: PartyConfig, cache: PreparedCache | None) -> PartyTables:
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
    section = config.data
    return user_rows(
        config.table(),
        label_column=section.label,
        id_column=section.id,
        table=UserTable.from_settings(section, config.agreed["family"]),
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
