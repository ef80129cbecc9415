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
        place = config.syntax.within("agreement").place("file")
        yield UsedPath(place, Path(config.agreement_file.path), PathUse.READ, "file")
    sections = (config.data, config.link, config.state, config.output)
    for section in (*sections, config.privacy, config.compute, *config.job_sections.values()):
        yield from _of_section(config, section)
    yield from _implied(config)


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
    syntax = config.syntax.within(section.section)
    for name, setting in declared(type(section)).items():
        value = getattr(section, name)
        if setting.path is None or not value:
            continue
        place = syntax.place(name)
        if "\0" in value:
            raise ConfigError(
                "no file's name has a null character",
                setting=name,
                where=place,
                hint="leave it out",
            )
        if name == "connection":
            for file in Connection(value, config.folder).files():
                yield UsedPath(place, file, setting.path, name)
            continue
        yield UsedPath(place, config.path(value), setting.path, name)


def _implied(config: PartyConfig) -> Iterator[UsedPath]:
    """Files that are named by default, or beside another one."""
    output = config.syntax.within("output")
    model = config.path(config.output.model)
    if config.role == "bob":
        yield UsedPath(output.place("model"), scores_path(model), PathUse.RESULT)
        if config.output.report is None:
            page = config.path(config.output.report_file)
            yield UsedPath(output.place("report"), page, PathUse.RESULT, "report")
    if config.study is not None and config.output.models is None:
        folder = config.path(config.output.models_folder)
        yield UsedPath(output.place("models"), folder, PathUse.RESULT, "models")
    if config.output.prometheus is not None:
        file = config.path(config.output.prometheus)
        yield UsedPath(output.place("metrics"), file, PathUse.WRITTEN)
    if config.privacy.consent is None:
        place = config.syntax.within("privacy").place("consent")
        yield UsedPath(place, config.consent_file, PathUse.KEPT, "consent")
    yield from _state(config)


def _state(config: PartyConfig) -> Iterator[UsedPath]:
    syntax = config.syntax.within("state")
    folder = config.path(config.state.folder)
    for name in STATE_FILES:
        yield UsedPath(syntax.place("folder"), folder / name, PathUse.KEPT)
    if config.state.key is None:
        files = [former_key_file(config)]
        # Without a home folder, the command that needs the key reports it.
        with suppress(StateError):
            files.append(default_key_file(config))
        for file in files:
            yield UsedPath(syntax.place("key"), file, PathUse.KEPT, "key")
