"""Paths of a party's file: inputs, outputs and state, to be compared before anything is opened."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from taciturn.data.database import Connection
from taciturn.errors import ConfigError, StateError
from taciturn.files import settings_home
from taciturn.model.scores_file import scores_path
from taciturn.output_paths import PathUse, UsedPath
from taciturn.settings.checked import Checked, declared

if TYPE_CHECKING:
    from taciturn.party.config import PartyConfig

STATE_FILES = ("lock", "journal", "arrays", "results", "scratch", "prepared")
"""Files and folders that a party makes in its state folder; they are cleared at the end."""


def used_paths(config: PartyConfig) -> Iterator[UsedPath]:
    """Every path of a party's file, those that follow from another setting too."""
    yield UsedPath(config.where, Path(config.where), PathUse.READ)
    if config.agreement_file is not None:
        path = Path(config.agreement_file.path)
        yield UsedPath(_place(config, "agreement", "file"), path, PathUse.READ, "file")
    sections = (config.data, config.link, config.state, config.output)
    for section in (*sections, config.privacy, config.compute, *config.job_sections.values()):
        yield from _of_section(config, section)
    yield from _implied(config)


def _place(config: PartyConfig, section: str, name: str) -> str:
    return f"{config.where}, [{section}] {name.replace('_', '-')}"


def default_key_file(config: PartyConfig) -> Path:
    """Path of the state key where the file names none: one for each state folder."""
    folder = config.path(config.state.folder).resolve()
    try:
        home = settings_home()
    except RuntimeError:
        raise StateError(
            "this account has no home folder for the state key",
            setting="key",
            hint="name a place for it as [state] key",
        ) from None
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    return home / "taciturn" / f"{config.role}-{digest}.state.key"


def former_key_file(config: PartyConfig) -> Path:
    """Path of the state key up to version 0.1, beside the party's file."""
    return config.path(f"{config.role}.state.key")


def _of_section(config: PartyConfig, section: Checked) -> Iterator[UsedPath]:
    for name, declaration in declared(type(section)).items():
        value = getattr(section, name)
        if declaration.path is None or not value:
            continue
        place = _place(config, section.section, name)
        if "\0" in value:
            raise ConfigError(
                "no file's name has a null character",
                setting=name,
                where=place,
                hint="leave it out",
            )
        files: tuple[Path, ...] = (config.path(value),)
        if name == "connection":
            files = Connection(value, config.folder).files()
        yield from (UsedPath(place, file, declaration.path, name) for file in files)


def _implied(config: PartyConfig) -> Iterator[UsedPath]:
    """Files that are named by default, or beside another one."""
    output, model = config.output, config.path(config.output.model)

    def used(
        section: str, name: str, path: Path, use: PathUse, *, setting: bool = True
    ) -> UsedPath:
        return UsedPath(_place(config, section, name), path, use, name if setting else "")

    if config.role == "bob":
        yield used("output", "model", scores_path(model), PathUse.RESULT, setting=False)
        if output.report is None:
            yield used("output", "report", config.path(output.report_file), PathUse.RESULT)
    if config.study is not None and output.models is None:
        yield used("output", "models", config.path(output.models_folder), PathUse.RESULT)
    if output.prometheus is not None:
        prometheus = config.path(output.prometheus)
        yield used("output", "metrics", prometheus, PathUse.WRITTEN, setting=False)
    if config.privacy.consent is None:
        yield used("privacy", "consent", config.consent_file, PathUse.KEPT)
    for file in STATE_FILES:
        path = config.path(config.state.folder) / file
        yield used("state", "folder", path, PathUse.KEPT, setting=False)
    if config.state.key is None:
        yield used("state", "key", former_key_file(config), PathUse.KEPT)
        # Without a home folder, the command that needs the key reports it.
        with suppress(StateError):
            yield used("state", "key", default_key_file(config), PathUse.KEPT)
