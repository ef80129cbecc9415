"""The contract of every file in which a party counts what it has given away, and of its limits."""

from __future__ import annotations

import hashlib
import json
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.data import LabelTable, RowIds
from taciturn.deploy import (
    BookFile,
    Charge,
    FlipBook,
    GivenTable,
    LabelBinding,
    LedgerBook,
    PartyConfig,
    ScoreBook,
    Spending,
    WoeBook,
)
from taciturn.deploy import open_ledger_book as ledger_book
from taciturn.engine import Callbacks
from taciturn.errors import BudgetExceeded, FileError, OutputError, PeerStopped
from taciturn.files import exclusive_lock
from taciturn.privacy import AdditiveNoise, FlippedLabels, LabelResponse, Unprotected
from taciturn.protocol import Boundary, Event
from taciturn.rng import KeyedEntropy
from tests.deploy.sides import MECHANISMS, NEWTON, run_both, write_config, write_tables
from tests.expected import all_refused, refused

IDS = RowIds.of(["ann", "bess"])


def charge_scores(path: Path) -> None:
    ScoreBook(path, "bob").charge(Charge(((IDS, 1),)))


def charge_table(path: Path) -> None:
    WoeBook(path, "bob", 99).charge(GivenTable(100, 3, 12))


def charge_labels(path: Path) -> None:
    book = LedgerBook(BookFile(path, "ledger book", ""), bytes(32), "alice", "sick", None, 1e-6)
    book.charge(Spending(((IDS, {(AdditiveNoise(2.0), ""): 1}),), "one"))


def flip_labels(path: Path) -> None:
    method = FlippedLabels(LabelResponse(1.0), Unprotected())
    labels = LabelTable.of(np.array([0, 1]), ids=list(IDS.series))
    FlipBook(path, method, LabelBinding("sick", bytes(32))).release(labels, KeyedEntropy(b"1" * 32))


# Each adds to the file, which it makes when there is none.
BOOKS: list[Callable[[Path], None]] = [charge_scores, charge_table, charge_labels, flip_labels]


@pytest.fixture(params=BOOKS, ids=lambda add: add.__name__)
def add(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    made: Callable[[Path], None] = request.param
    return made


@pytest.fixture
def path(tmp_path: Path, add: Callable[[Path], None]) -> Path:
    """A file with one entry."""
    made = tmp_path / "book.json"
    add(made)
    return made


def changed(text: bytes, **changes: object) -> bytes:
    return json.dumps({**json.loads(text), **changes}).encode()


def of_another_format(text: bytes) -> bytes:
    """All is right with it, its digest too, but for its format."""
    record = {**json.loads(text), "format": "taciturn model"}
    del record["digest"]
    canonical = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return json.dumps({**record, "digest": hashlib.sha256(canonical.encode()).hexdigest()}).encode()


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda text: text[:-9],
    "list": lambda text: b"[]",
    "empty": lambda text: b"{}",
    "no text": lambda text: b"\xff",
    "another format": of_another_format,
    "an entry more": lambda text: changed(text, more=1),
    "another digest": lambda text: changed(text, digest="0" * 64),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_spoilt_file_is_refused_and_left_as_it_is(path, add, spoil):
    spoilt = spoil(path.read_bytes())
    path.write_bytes(spoilt)
    with refused(FileError, names="book.json"):
        add(path)
    assert path.read_bytes() == spoilt


def test_another_version_is_refused_by_its_number(path, add):
    path.write_bytes(changed(path.read_bytes(), version=99))
    with refused(FileError, names=("book.json", "version 99")):
        add(path)


def test_one_program_at_a_time_writes(path, add):
    before = path.read_bytes()
    with exclusive_lock(path.with_name("book.json.lock")), refused(OutputError):
        add(path)
    assert path.read_bytes() == before


def test_the_file_is_for_its_owner_alone(path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(file.name for file in path.parent.iterdir()) == ["book.json", "book.json.lock"]


def test_what_cannot_be_written_is_an_error(tmp_path, add):
    with refused(OutputError):
        add(tmp_path / "absent" / "book.json")


def test_a_file_that_was_cut_off_while_it_was_written_is_written_anew(tmp_path, add):
    (tmp_path / "book.json.new").write_bytes(b"half a boo")
    add(tmp_path / "book.json")
    add(tmp_path / "book.json")


# --- trainings that are counted ------------------------------------------------------------------


@dataclass(frozen=True)
class Counted:
    """A number that a party counts over trainings, and limits.

    Args:
        owner: Who counts it.
        setting: Its limit, in [privacy].
        agreed: What is trained.
        price: What one training adds.
        so_far: The number, from the files of a folder.
    """

    owner: str
    setting: str
    agreed: dict[str, Any]
    price: int
    so_far: Callable[[Path], float]

    def set_up(self, folder: Path, limit: float) -> None:
        for role in ("alice", "bob"):
            own = {"privacy": {self.setting: limit}} if role == self.owner else {}
            write_config(folder, role, agreement=self.agreed, **own)


def scores_given(folder: Path) -> float:
    return ScoreBook(folder / "alice.scores.json", "bob").most_given()


def epsilon_paid(folder: Path) -> float:
    accounts = ledger_book(PartyConfig.read(folder / "bob.toml")).accounts()
    return max((one.ledger.label_epsilon_total for one in accounts), default=0.0)


SEALED = {"mechanism": "sealed", **NEWTON, "passes": 2}
COUNTED = {
    "scores": Counted("alice", "scores-per-row", SEALED, 2, scores_given),
    "labels": Counted("bob", "budget-total", MECHANISMS["add"], 2, epsilon_paid),
}


@pytest.fixture(params=COUNTED.values(), ids=list(COUNTED))
def counted(request: pytest.FixtureRequest, tmp_path: Path) -> Counted:
    write_tables(tmp_path, rows=60)
    made: Counted = request.param
    made.set_up(tmp_path, 3)
    return made


def test_a_training_beyond_the_limit_is_refused_fresh_or_not(counted, tmp_path):
    run_both(tmp_path).records  # noqa: B018 - raises where a side failed
    # A finished session only confirms.
    run_both(tmp_path).records  # noqa: B018
    assert counted.so_far(tmp_path) == counted.price
    ends = run_both(tmp_path, act=lambda party: party.run(fresh=True))
    owner, other = (ends.alice, ends.bob) if counted.owner == "alice" else (ends.bob, ends.alice)
    all_refused(BudgetExceeded, owner)
    all_refused(PeerStopped, other)
    # Another state folder does not help.
    for role in ("alice", "bob"):
        shutil.rmtree(tmp_path / f"{role}-state")
    assert isinstance(getattr(run_both(tmp_path), counted.owner), BudgetExceeded)
    assert counted.so_far(tmp_path) == counted.price
    # The way out.
    counted.set_up(tmp_path, 2 * counted.price)
    run_both(tmp_path).records  # noqa: B018
    assert counted.so_far(tmp_path) == 2 * counted.price


def test_a_stopped_training_is_charged_once(counted, tmp_path):
    def cut(event: Event) -> None:
        if isinstance(event, Boundary) and event.state.iteration == 1:
            raise KeyboardInterrupt

    ends = run_both(tmp_path, watch={counted.owner: Callbacks(observe=cut)})
    assert isinstance(getattr(ends, counted.owner), KeyboardInterrupt)
    assert counted.so_far(tmp_path) == counted.price
    run_both(tmp_path).records  # noqa: B018 - raises where a side failed
    assert counted.so_far(tmp_path) == counted.price


def test_nothing_is_charged_where_the_two_sides_do_not_fit(counted, tmp_path):
    write_config(tmp_path, "bob", agreement={**counted.agreed, "split-salt": "another"})
    assert isinstance(run_both(tmp_path).alice, BaseException)
    assert counted.so_far(tmp_path) == 0
