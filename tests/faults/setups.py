"""Small tables and files of parties that the fault suite disturbs, and what undisturbed ones give.

Certificates, ports and checkpoints are real, and so is the encryption; tables are small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taciturn.engine.callbacks import Callbacks
from taciturn.party.config import PartyConfig
from taciturn.party.consent.label_budget import LabelBudget
from taciturn.party.consent.score_budget import ScoreBudget
from tests.faults.processes import Work, study, training
from tests.party import studies
from tests.party.sides import (
    MECHANISMS,
    NEWTON,
    ROLES,
    TWO_ALICES,
    Company,
    Party,
    model_numbers,
    numbers_in_one_process,
    record,
    result_numbers,
    run_both,
    same_numbers,
    write_certificates,
    write_config,
    write_tables,
    write_wide_tables,
)
from tests.party.wires import Wire
from tests.system import free_port

LINK: dict[str, Any] = {"connect-seconds": 60.0, "answer-seconds": 60.0, "keepalive-seconds": 5.0}
STATE: dict[str, Any] = {"checkpoint-iterations": 1, "key": "state.key"}


def link_of(role: str, port: int) -> dict[str, Any]:
    """The way between two on this machine."""
    address = f"127.0.0.1:{port}"
    return {**LINK, **({"listen": address} if role == "bob" else {"connect": address})}


def state_of(role: str) -> dict[str, Any]:
    """A checkpoint after each pass; the key lies beside it, so that other processes find it."""
    return {**STATE, "key": f"{role}.state.key"}


def two_parties(
    folder: Path, mechanism: str, port: int = 0, rows: int = 40, **changes: Any
) -> dict[str, Path]:
    """Two parties about to train; their files. ``changes`` are those of the agreement."""
    if rows == 40:
        write_tables(folder, rows=rows, alice=3, bob=2)
    else:
        write_wide_tables(folder, rows)
    write_certificates(folder / "certs")
    port = port or free_port()
    agreed = {**NEWTON, "passes": 2, **MECHANISMS[mechanism], **changes}
    return {
        role: write_config(
            folder, role, agreement=agreed, link=link_of(role, port), state=state_of(role)
        )
        for role in ROLES
    }


def train_on(wire: Wire, folder: Path, watch: dict[str, Callbacks] | None = None) -> dict[str, Any]:
    """Both sides in threads, and recorded; nobody waits for one that has ended with an error."""

    def act(party: Party) -> Any:
        try:
            return record(folder)(party)
        except BaseException:
            wire.end()
            raise

    ends = run_both(folder, wire, act=act, watch=watch)
    return {"alice": ends.alice, "bob": ends.bob}


def charged_once(alice: Path, bob: Path | None, scores: int) -> bool:
    """Whether the budgets count one training: the scores of a row, and what labels pay."""
    given = ScoreBudget.from_config(PartyConfig.read(alice))
    paid = None if bob is None else LabelBudget.from_config(PartyConfig.read(bob))
    assert given is not None
    return given.most_given() == scores and (paid is None or len(paid.sessions()) == 1)


def pair_is_same(folder: Path, scores: int) -> bool:
    """What one process makes of the randomness of both, charged once."""
    once = charged_once(folder / "alice.toml", folder / "bob.toml", scores)
    models = zip(model_numbers(folder), numbers_in_one_process(folder)[0], strict=True)
    return once and all(same_numbers(*pair) for pair in models)


@dataclass(frozen=True)
class Setup:
    """A kind of session, to be disturbed.

    Args:
        files: Writes the files of all sides into a folder.
        work: What the sides do.
        same: Whether the folder holds what an undisturbed session leaves.
    """

    files: Callable[[Path], dict[str, Path]]
    work: Work
    same: Callable[[Path], bool]


def _three_parties(folder: Path) -> dict[str, Path]:
    star = Company(folder, agreement={"passes": 2}, sections={"link": LINK, "state": STATE})
    star.write_tables(40, columns=3)
    star.write("bob", link={"listen": f"127.0.0.1:{star.port}"})
    return {name: star.file(name, "toml") for name in star.all}


def _three_are_same(folder: Path) -> bool:
    star = Company(folder, TWO_ALICES, written=True)
    once = [charged_once(star.file(name, "toml"), None, 2) for name in star.names]
    alone, _ = star.ends_in_one_process()
    same = star.model_numbers() == {name: result_numbers(alone[name]) for name in star.all}
    return all(once) and same


def _study(folder: Path) -> dict[str, Path]:
    port = free_port()
    write_certificates(folder / "certs")
    links = {role: link_of(role, port) for role in ROLES}
    states = {role: state_of(role) for role in ROLES}
    text = "folds = 2\nl2 = [0.001]\n"
    studies.write_study(folder, text, rows=40, agreement={"passes": 2}, link=links, state=states)
    return {role: folder / f"{role}.toml" for role in ROLES}


def _study_is_same(folder: Path) -> bool:
    models = studies.in_one_process(folder)
    return len(models) > 0 and all(
        studies.numbers(studies.written(folder, role, number)) == model
        for (role, number), model in models.items()
    )


SETUPS: dict[str, Setup] = {
    "sealed": Setup(
        lambda folder: two_parties(folder, "sealed"),
        training,
        lambda folder: pair_is_same(folder, 2),
    ),
    "mutual": Setup(
        lambda folder: two_parties(folder, "mutual"),
        training,
        lambda folder: pair_is_same(folder, 1),
    ),
    "mutual, blocks": Setup(
        # Two rounds: 36 steps, and a checkpoint before the first and the 18th.
        lambda folder: two_parties(folder, "mutual", rows=8_000, passes=14),
        training,
        lambda folder: pair_is_same(folder, 1),
    ),
    "three parties": Setup(_three_parties, training, _three_are_same),
    "a study": Setup(_study, study, _study_is_same),
}
