"""Two parties' files with a study, and both parties run in threads over a wire in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taciturn.engine.pair import run_pair
from taciturn.jobs.study.job import StudySide
from taciturn.jobs.train.job import TrainJob
from taciturn.model.share import ModelShare
from taciturn.parallel import one_thread
from taciturn.party.config import PartyConfig
from taciturn.party.journal import Journal
from taciturn.party.model_file import model_share
from taciturn.party.state_store import state_key
from taciturn.rng import KeyedEntropy
from tests.party.sides import NEWTON, Ends, run_both, write_config, write_tables
from tests.party.wires import Wire

ROLES = ("alice", "bob")
SMALL = "folds = 2\nl2 = [0.001, 0.1]\n"


def write_study(folder: Path, study: str = SMALL, rows: int = 120, **changes: Any) -> None:
    """Tables and files of both sides; ``changes`` lie over their sections."""
    write_tables(folder, rows=rows)
    agreed = {**NEWTON, "passes": 3, "mechanism": "sealed", **changes.pop("agreement", {})}
    for role in ROLES:
        sections = {name: values.get(role, {}) for name, values in changes.items()}
        path = write_config(folder, role, agreement=agreed, **sections)
        path.write_text(f"{path.read_text()}\n[study]\n{study}", encoding="utf-8")


def study_of(folder: Path, role: str) -> StudySide:
    """One side, prepared."""
    side = TrainJob().prepare(PartyConfig.read(folder / f"{role}.toml"))
    assert isinstance(side, StudySide)
    return side


def run_study(folder: Path, wire: Wire | None = None, **options: Any) -> Ends:
    """Both sides."""
    return run_both(folder, wire, **options)


def entropy_of(folder: Path, role: str) -> KeyedEntropy:
    """The coins of a side's last session."""
    config = PartyConfig.read(folder / f"{role}.toml")
    journal = Journal(config.path(config.state.folder) / "journal", state_key(config)[0])
    past = journal.resume()
    journal.close()
    assert past is not None
    return KeyedEntropy(past.meta.entropy)


def numbers(share: ModelShare) -> list[Any]:
    """What a model's file has: weights, and shares."""
    return [share.weights.tolist(), list(share.share), list(share.bob_share)]


def written(folder: Path, role: str, number: int) -> ModelShare:
    """A model of the study, from its file."""
    return ModelShare.load(folder / f"{role}.models" / f"model-{number:02d}.json")


def in_one_process(folder: Path) -> dict[tuple[str, int], list[Any]]:
    """Every combination's model, both programs in one thread, fed the session's coins."""
    sides = {role: study_of(folder, role) for role in ROLES}
    entropy = {role: entropy_of(folder, role) for role in ROLES}
    models: dict[tuple[str, int], list[Any]] = {}
    for training in sides["alice"].plan.trainings:
        if training.fold is not None:
            continue
        own = {role: entropy[role].fork(f"model {training.number}") for role in ROLES}
        parts = {role: side.plan.inputs_of(training) for role, side in sides.items()}
        bob = parts["bob"].bob_side(own["bob"])
        assert bob is not None
        with one_thread():
            ends = run_pair(
                parts["alice"].program(own["alice"], None), parts["bob"].program(own["bob"], bob)
            )
        for role, end in zip(ROLES, ends, strict=True):
            for model, result in zip(training.models, end.models, strict=True):
                share = model_share(parts[role], bob if role == "bob" else None, result, "")
                models[role, model.point.number] = numbers(share)
    return models
