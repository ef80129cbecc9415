"""Takes one model of a study into use: it becomes the side's model, and Bob's choice is charged.

Which model Bob uses depends on labels. As soon as he scores rows with Alice, or asks for her file,
she knows which it is. So a model of a study scores nothing and is not exported until it was taken
into use, which names it: a release about all labels together, of at most ``log2(models)`` bits.

**What it costs.** A choice without noise has no finite price. With an epsilon Bob names the model
that he wants with probability ``e^eps / (e^eps + models - 1)`` and each other one alike: whatever
the labels are, no model's probability changes by more than the factor ``e^eps`` (the k-ary
randomised response), so that each label, and all of them together, pay that epsilon.

**Guarantee.** The choice is in Bob's book before the file that allows its use is written.

**Assumes.** Alice learns of the choice only by the model that is named: how long Bob took to choose
he keeps to himself.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from taciturn.deploy.config import PartyConfig
from taciturn.deploy.log import Log
from taciturn.deploy.model_file import save_model
from taciturn.deploy.tables import load_tables
from taciturn.engine.callbacks import Announce
from taciturn.errors import ConfigError, FileError
from taciturn.faces import Hint
from taciturn.model.share import ModelShare
from taciturn.results.model import UsedModel
from taciturn.results.study import choice_bits
from taciturn.rng import SystemEntropy


def studied_model(config: PartyConfig, number: int) -> ModelShare:
    """A model of the side's study, from its file.

    Raises:
        FileError: There is no such model.
    """
    folder = config.path(config.output.models_folder)
    names = {_number(path): path for path in sorted(folder.glob("model-*.json"))}
    path = names.get(number)
    if path is None:
        known = sorted(name for name in names if name is not None)
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


def _number(path: Path) -> int | None:
    digits = path.stem.removeprefix("model-")
    return int(digits) if digits.isdigit() else None


def drawn(wanted: int, models: int, epsilon: float) -> int:
    """The model that a randomised response names, in place of the one that is wanted.

    Args:
        wanted: Its number, from 1 on.
        models: How many there are.
        epsilon: The price.
    """
    # Loaded here: only who pays draws.
    from taciturn.privacy.choice import named_choice
    from taciturn.privacy.events import ModelChoice

    # What is no price is refused before anything is drawn.
    ModelChoice(epsilon)
    return named_choice(wanted, models, epsilon, SystemEntropy())


def use_model(
    config: PartyConfig, number: int, announce: Announce, epsilon: float | None = None
) -> UsedModel:
    """Makes a model of the study the side's own; at Bob its choice is charged first.

    Args:
        config: The side's settings.
        number: Which of the models.
        announce: Told what happens.
        epsilon: The price of the response that named it; None where Bob chose it outright.

    Raises:
        BudgetExceeded: The choice would exceed Bob's limit; nothing was written.
        FileError: There is no such model, or Bob's book cannot be read.
        OutputError: A file cannot be written.
    """
    share = studied_model(config, number)
    models = int(share.study["models"])
    if epsilon is not None and config.role == "alice":
        raise ConfigError(
            "the choice is Bob's, and so is its price",
            setting="epsilon",
            hint=Hint("leave {epsilon} out: take the model that Bob named"),
        )
    if config.role == "bob":
        _charge(config, share, number, epsilon)
    target = config.path(config.output.model)
    save_model(
        replace(share, study={**share.study, "used": True}), target, Log.of(config, announce)
    )
    return UsedModel(
        role=config.role,
        model=number,
        models=models,
        values=share.study["values"],
        session=share.session,
        file=str(target),
        choice_bits=choice_bits(models) if config.role == "bob" else None,
        epsilon=None if config.role == "alice" else (epsilon or float("inf")),
    )


def _charge(config: PartyConfig, share: ModelShare, number: int, epsilon: float | None) -> None:
    """Adds the choice to Bob's book, once for each model that he names."""
    from taciturn.deploy.ledger_book import Release, Spending, ledger_book
    from taciturn.privacy.events import ModelChoice, NonPrivate

    if int(share.study["models"]) == 1:
        # There is nothing to choose.
        return
    release: Release = (NonPrivate() if epsilon is None else ModelChoice(epsilon), "")
    tables = load_tables(config.at(config.study.points[0]) if config.study else config)
    held_out = tables.held_out
    rows = [(tables.train.ids, {release: 1})]
    if held_out is not None:
        # Their figures may have decided, too.
        rows.append((held_out.ids, {release: 1}))
    session = f"choice {number} of {share.study['session']}"
    if epsilon is not None:
        # A further draw is a further release, also where it names the same.
        session = f"{session}, drawn {SystemEntropy().token(8).hex()}"
    ledger_book(config).charge(Spending(tuple(rows), session))


def require_used(share: ModelShare, where: str) -> None:
    """Refuses a model of a study that was not taken into use.

    Raises:
        ConfigError: It was not.
    """
    if not share.study or share.study.get("used"):
        return
    number, models = share.study.get("model"), share.study.get("models")
    raise ConfigError(
        f"this is model {number} of {models} of a study: to use it tells the other side which one "
        "was chosen",
        where=where,
        hint=f"taciturn model use FILE {number} takes it into use, on both sides, and counts what "
        "that tells",
    )
