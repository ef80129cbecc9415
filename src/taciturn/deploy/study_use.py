"""Takes one model of a study into use: it becomes the side's model, and Bob's choice is charged.

Which model Bob uses depends on labels. As soon as he scores rows with Alice, or asks for her file,
she knows which it is. So a model of a study scores nothing and is not exported until it was taken
into use, which names it: a release about all labels together, of at most ``log2(models)`` bits.

**What it costs.** A choice without noise has no finite price. With an epsilon Bob names the model
that he wants with probability ``e^eps / (e^eps + models - 1)`` and each other one alike: whatever
the labels are, no model's probability changes by more than the factor ``e^eps`` (the k-ary
randomised response), so that each label, and all of them together, pay that epsilon.

**One draw a study.** To draw again until the answer is the wanted one would tell the wanted one.
So the first answer is kept beside the models, and is the answer to every later question; where it
is lost, only a choice without noise is left.

**Guarantee.** The choice is in Bob's book before it is drawn, and before the file that allows its
use is written.

**Assumes.** Alice learns of the choice only by the model that is named: how long Bob took to choose
he keeps to himself. Bob does not restore an older copy of his folder or his book to draw again.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taciturn.deploy.config import PartyConfig
from taciturn.deploy.log import Log
from taciturn.deploy.model_file import save_model
from taciturn.deploy.tables import load_tables
from taciturn.engine.callbacks import Announce
from taciturn.errors import ConfigError, FileError, StateError
from taciturn.faces import Hint
from taciturn.files import reporting_write_errors, write_private
from taciturn.model.scores_file import KeptScores, scores_path
from taciturn.model.share import ModelShare
from taciturn.results.model import UsedModel
from taciturn.results.study import choice_bits
from taciturn.rng import SystemEntropy

if TYPE_CHECKING:
    from taciturn.deploy.ledger_book import Release

ANSWER_FILE = "choice.json"


def studied_model(config: PartyConfig, number: int) -> ModelShare:
    """A model of the side's study, from its file.

    Raises:
        FileError: There is no such model.
    """
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
    """The models of a folder by their numbers."""
    paths = {path.stem.removeprefix("model-"): path for path in folder.glob("model-*.json")}
    return {int(digits): path for digits, path in paths.items() if digits.isdigit()}


def set_aside_models(folder: Path, session: str) -> None:
    """Gives the models of an earlier study another folder: numbers of two studies must not mix.

    Args:
        folder: Where the next study's models go.
        session: Its session; one of the same session is being resumed.

    Raises:
        OutputError: The folder cannot be renamed.
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


def use_model(
    config: PartyConfig, number: int, announce: Announce, epsilon: float | None = None
) -> UsedModel:
    """Makes a model of the study the side's own; at Bob its choice is charged first.

    Args:
        config: The side's settings.
        number: The model that is wanted.
        announce: Told what happens.
        epsilon: The price at which a randomised response names a model, which may be another one;
            None where Bob chooses it outright.

    Raises:
        BudgetExceeded: The choice would exceed Bob's limit; nothing was written.
        ConfigError: The epsilon is none, or Alice's.
        FileError: There is no such model, or Bob's book cannot be read.
        StateError: The answer that was drawn for this study is lost.
        OutputError: A file cannot be written.
    """
    share = studied_model(config, number)
    if epsilon is not None and config.role == "alice":
        raise ConfigError(
            "the choice is Bob's, and so is its price",
            setting="epsilon",
            hint=Hint("leave {epsilon} out: take the model that Bob named"),
        )
    if config.role == "bob":
        choice = _Choice(config, share)
        if epsilon is not None:
            number = choice.drawn(number, epsilon)
            share = studied_model(config, number)
        else:
            choice.outright(number)
    models = int(share.study["models"])
    target = config.path(config.output.model)
    save_model(
        replace(share, study={**share.study, "used": True}), target, Log.of(config, announce)
    )
    _take_scores(config, number, target)
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


def _take_scores(config: PartyConfig, number: int, target: Path) -> None:
    """Puts the model's scores beside it, where there are any: without them it has no page."""
    source = _numbered(config.path(config.output.models_folder))[number]
    with suppress(FileError):
        KeptScores.load(scores_path(source)).save(scores_path(target))


class _Choice:
    """Bob's choice among the models of one study.

    Args:
        config: His settings.
        share: One of the models.
    """

    def __init__(self, config: PartyConfig, share: ModelShare) -> None:
        # Only who pays for releases loads what counts them.
        from taciturn.deploy.ledger_book import ledger_book

        self._config = config
        self._session, self._models = str(share.study["session"]), int(share.study["models"])
        self._book = ledger_book(config)
        self._answer = config.path(config.output.models_folder) / ANSWER_FILE

    def outright(self, number: int) -> None:
        """Charges a model that is chosen without noise; what a response has named is paid for."""
        from taciturn.privacy.events import NonPrivate

        kept = self._kept()
        if self._models == 1 or (kept is not None and kept == number):
            return
        self._charge((NonPrivate(), ""), f"choice {number} of {self._session}")

    def drawn(self, wanted: int, epsilon: float) -> int:
        """The model that the study's one response names."""
        from taciturn.privacy.choice import named_choice, require_epsilon
        from taciturn.privacy.events import ModelChoice

        # What is no price is refused before anything is charged.
        require_epsilon(epsilon)
        if self._models == 1:
            return wanted
        kept, session = self._kept(), f"choice by response of {self._session}"
        if kept is not None:
            return kept
        if self._book.charged(session):
            raise StateError(
                "a model of this study was named before, and the answer of then is not there",
                where=str(self._answer),
                hint="restore the file; to draw again would tell which model was wanted",
            )
        self._require_all()
        self._charge((ModelChoice(epsilon), ""), session)
        number = named_choice(wanted, self._models, epsilon, SystemEntropy())
        answer: dict[str, Any] = {"session": self._session, "model": number, "epsilon": epsilon}
        write_private(self._answer, json.dumps(answer) + "\n")
        return number

    def _kept(self) -> int | None:
        """The answer that was drawn before; None where there is none of this study."""
        try:
            answer = json.loads(self._answer.read_text(encoding="utf-8"))
            return int(answer["model"]) if answer["session"] == self._session else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            raise StateError(
                "the answer that was drawn for this study cannot be read",
                where=str(self._answer),
                hint="restore the file; or choose without an epsilon",
            ) from None

    def _require_all(self) -> None:
        """Insists that every model is there: one that is not could not be named."""
        for number in range(1, self._models + 1):
            if studied_model(self._config, number).study["session"] != self._session:
                raise FileError(
                    f"model {number} is of another study",
                    where=str(self._answer.parent),
                    hint="restore the folder as the study left it",
                )

    def _charge(self, release: Release, session: str) -> None:
        """Adds the choice to Bob's book, once for each session of that name."""
        from taciturn.deploy.ledger_book import Spending

        tables = load_tables(self._config.first)
        rows = [(tables.train.ids, {release: 1})]
        if tables.held_out is not None:
            # Their figures may have decided, too.
            rows.append((tables.held_out.ids, {release: 1}))
        self._book.charge(Spending(tuple(rows), session))


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
