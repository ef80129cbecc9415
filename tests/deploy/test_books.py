"""The contract of every file in which a party counts what it has given away."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

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
    ScoreBook,
    Spending,
    WoeBook,
)
from taciturn.errors import FileError, OutputError
from taciturn.files import exclusive_lock
from taciturn.privacy import AdditiveNoise, FlippedLabels, LabelResponse, Unprotected
from taciturn.rng import KeyedEntropy
from tests.expected import refused

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


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda text: text[:-9],
    "list": lambda text: b"[]",
    "empty": lambda text: b"{}",
    "no text": lambda text: b"\xff",
    "another format": lambda text: changed(text, format="taciturn model"),
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
