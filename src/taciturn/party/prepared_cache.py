"""``PreparedCache``: a party's large tables, kept as they were prepared until it has trained.

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

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.data.ids import RowIds
from taciturn.data.prepare import Preparation
from taciturn.data.tables import FeatureTable
from taciturn.errors import TaciturnError
from taciturn.files import canonical_json, exclusive_lock, reporting_write_errors, write_private
from taciturn.memmap import LEAST_MAPPED_BYTES, Scratch, opened
from taciturn.party.state_store import LOCK
from taciturn.rng import SystemEntropy

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
