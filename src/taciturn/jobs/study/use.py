"""Takes one model of a study into use: it becomes the side's model, and Bob's choice is charged.

Which model Bob uses depends on labels. As soon as he scores rows with Alice, or asks for her file,
she knows which it is. So a model of a study scores nothing and is not exported until it was taken
into use, which names it: a release about all labels together, of at most ``log2(models)`` bits.

**What it costs.** The choice has no finite price, and Bob's ledger says so.

**Guarantee.** The choice is charged to Bob's labels before the file that allows its use is written.

**Assumes.** Alice learns of the choice only by the model that is named: how long Bob took to choose
he keeps to himself.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from taciturn.engine.callbacks import Announce
from taciturn.errors import FileError
from taciturn.files import reporting_write_errors
from taciturn.model.scores_file import StoredScores, scores_path
from taciturn.model.share import ModelShare
from taciturn.party.config import PartyConfig
from taciturn.party.log import Log
from taciturn.party.model_file import save_model
from taciturn.party.state_store import state_key
from taciturn.party.tables import load_tables
from taciturn.results.model import UsedModel


def studied_model(config: PartyConfig, number: int) -> ModelShare:
    """A model of the side's study, from its file."""
    folder = config.path(config.output.models_folder)
    names = _numbered(folder)
    path = names.get(number)
    if path is None:
        known = sorted(names)
        raise FileError(
            f"there is no model {number} of a study",
            where=str(folder),
            hint=f"there are {known[0]} to {known[-1]}"
            if known
            else "taciturn party trains a study where both files have a [study]",
        )
    share = ModelShare.load(path)
    if share.role != config.role or not share.study:
        raise FileError(
            f"this is not {config.role}'s model of a study",
            where=str(path),
            hint="name the file of the side that trained it",
        )
    return share


def _numbered(folder: Path) -> dict[int, Path]:
    paths = {path.stem.removeprefix("model-"): path for path in folder.glob("model-*.json")}
    return {int(digits): path for digits, path in paths.items() if digits.isdigit()}


def set_aside_models(folder: Path, session: str) -> None:
    """Give the models of an earlier study another folder: numbers of two studies must not mix.

    A study of the same session is being resumed.
    """
    for path in _numbered(folder).values():
        try:
            earlier = str(ModelShare.load(path).study.get("session", ""))
        except FileError:
            continue
        if earlier != session:
            target, number = folder.with_name(f"{folder.name}.{earlier[:8]}"), 1
            while target.exists():
                number += 1
                target = folder.with_name(f"{folder.name}.{earlier[:8]}-{number}")
            with reporting_write_errors(folder, "folder of an earlier study"):
                folder.rename(target)
        return


def use_model(config: PartyConfig, number: int, announce: Announce) -> UsedModel:
    """Make a model of the study the side's own; at Bob its choice is charged first.

    Nothing is written where the choice would exceed Bob's limit (BudgetExceeded).
    """
    share, bob = studied_model(config, number), config.role == "bob"
    models, target = int(share.study["models"]), config.path(config.output.model)
    if bob and models > 1:
        _charge(config, f"choice {number} of {share.study['session']}")
    used = replace(share, study={**share.study, "used": True})
    save_model(used, target, Log.from_config(config, announce))
    source = _numbered(config.path(config.output.models_folder))[number]
    # Where there are no scores the model has no page.
    with suppress(FileError):
        StoredScores.load(scores_path(source)).save(scores_path(target))
    return UsedModel(
        role=config.role,
        model=number,
        models=models,
        values=share.study["values"],
        session=share.session,
        file=str(target),
        choice_bits=math.log2(models) if bob else None,
        epsilon=math.inf if bob else None,
    )


def _charge(config: PartyConfig, session: str) -> None:
    """Charge Bob's labels for his choice, once for each session of that name."""
    # Only who pays for releases loads what counts them.
    from taciturn.party.consent.budget import Charge
    from taciturn.party.consent.label_budget import LabelBudget, Release
    from taciturn.privacy.events import NonPrivate

    tables = load_tables(config.first)
    release: dict[Release, int] = {(NonPrivate(), ""): 1}
    # The figures of held-out rows may have decided, too.
    chosen_by = [tables.train, *([] if tables.held_out is None else [tables.held_out])]
    rows = tuple((table.ids, release) for table in chosen_by)
    # Made where there is none: without a key the store would have plain hashes of ids.
    state_key(config)
    LabelBudget.from_config(config).charge(Charge(rows, session))
