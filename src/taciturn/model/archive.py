"""Models of earlier sessions: moved aside before a new one takes their place, never overwritten.

``bob.model.json`` is the newest model; the one before it becomes
``bob.model.2026-11-16.1a2b3c4d.json``: the day on which it was written, and the beginning of its
session's name. Both sides' files of one session have the same beginning, so that fitting models
are found by their names.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from taciturn.errors import FileError
from taciturn.file_kinds import file_kind
from taciturn.files import reporting_write_errors, sync_folder, write_private
from taciturn.model.scores_file import scores_path
from taciturn.model.share import ModelShare, not_a_model
from taciturn.results.model import ListedModel, ModelList

_SESSION_DIGITS = 8
_ASIDE = r"\.\d{4}-\d\d-\d\d\.[0-9a-f]{8}(-\d+)?"


def archive_model(path: Path, session: str) -> Path | None:
    """Give an earlier model a second name, which it keeps when the first is written over.

    Whatever happens meanwhile, the file has one of the two names, whole. Returns the second name;
    None where there is nothing to keep: a model of the same ``session`` needs none.
    """
    try:
        content = path.read_bytes()
    except OSError:
        # What cannot be read is told when the model is written.
        return None
    try:
        earlier = ModelShare.load(path).session
    except FileError:
        earlier = ""
    if not content or earlier == session:
        return None
    # A file that is no model is kept as well: somebody has put it there.
    mark = (earlier or hashlib.sha256(content).hexdigest())[:_SESSION_DIGITS]
    day = datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%d")
    archived = _free_name(path, f"{day}.{mark}", content)
    with reporting_write_errors(archived, "earlier model"):
        if not archived.exists():
            _second_name(path, archived, content)
            sync_folder(archived.parent)
    # Its scores go with it: the page of an earlier model is still worth a look.
    with suppress(OSError):
        scores_path(path).rename(scores_path(archived))
    return archived


def study_folder(model: str) -> str:
    """Default folder of a study's models, by the name of the model file."""
    return f"{model.removesuffix('.json').removesuffix('.model')}.models"


def listed_models(path: Path) -> ModelList:
    """The model of a file and those of earlier sessions, the newest first; then a study's."""
    if (kind := file_kind(path)) not in ("", "a model file", "a JSON file"):
        raise not_a_model(path, kind)
    pattern = re.compile(re.escape(path.stem) + _ASIDE + re.escape(path.suffix))
    with suppress(OSError):
        aside = [other for other in path.parent.iterdir() if pattern.fullmatch(other.name)]
        aside.sort(key=lambda other: (-other.stat().st_mtime, other.name))
        studied = sorted(path.with_name(study_folder(path.name)).glob("model-*.json"))
        files = [*([path] if path.exists() else []), *aside, *studied]
        if files:
            return ModelList(tuple(_listed(file, file == path) for file in files))
    raise FileError(
        "no current or earlier model has that name",
        where=str(path),
        hint="name the file that [output] model names; taciturn party writes it",
    )


def _listed(path: Path, newest: bool) -> ListedModel:
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        share = ModelShare.load(path)
    except FileError as problem:
        return ListedModel(file=str(path), newest=newest, written=written, problem=problem.message)
    return ListedModel(
        file=str(path),
        newest=newest,
        written=written,
        role=share.role,
        session=share.session,
        mechanism=str(share.agreement.get("mechanism", "")),
        rows=share.rows,
    )


def _free_name(path: Path, mark: str, content: bytes) -> Path:
    free, number = path.with_name(f"{path.stem}.{mark}{path.suffix}"), 1
    while free.exists() and free.read_bytes() != content:
        number += 1
        free = path.with_name(f"{path.stem}.{mark}-{number}{path.suffix}")
    return free


def _second_name(path: Path, backup: Path, content: bytes) -> None:
    try:
        os.link(path, backup)
    except FileExistsError:
        raise
    except OSError:
        # Not every file system has second names: then a copy, which is as private.
        write_private(backup, content)
    else:
        backup.chmod(0o600)
