"""Alice counts the scores that a partner is given, over sessions, and refuses beyond her limit."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.__main__ import run
from taciturn.data import RowIds
from taciturn.deploy import Charge, Opening, PartyConfig, ScoreBook
from taciturn.errors import BudgetExceeded, ConfigError, PeerStopped
from taciturn.results import ExposedSession, of_record
from tests.deploy.sides import MECHANISMS, run_both, write_config, write_tables
from tests.expected import refused
from tests.jobs.predict.test_sides import in_threads, question, write_new
from tests.results.test_schema import problems

IDS = RowIds.of(np.array(["ann", "bess", "cleo", "dora"]))
SOME = IDS.take(np.array([1, 2]))


def charge(scores: int, session: str = "", ids: RowIds = IDS) -> Charge:
    return Charge(((ids, scores),), session)


@pytest.fixture
def book(tmp_path: Path) -> ScoreBook:
    return ScoreBook(tmp_path / "alice.scores.json", "bob", limit=10)


def test_counts_add_up_over_sessions_and_a_session_counts_once(book):
    book.charge(charge(4, "first"))
    book.charge(charge(4, "first"))
    assert book.most_given() == 4
    book.charge(charge(6, "second"))
    assert book.most_given() == 10
    # A resumed session is not charged again, also where nothing more would be allowed.
    book.require(charge(6, "second"))
    book.charge(charge(6, "second"))


def test_beyond_the_limit_it_refuses_by_name_and_counts_nothing(book):
    book.charge(charge(3, "first"))
    book.charge(charge(5, ids=SOME))
    before = book.path.read_bytes()
    for attempt in (book.require, book.charge):
        with refused(BudgetExceeded, setting="scores_per_row", names=("2 of 4", 10)):
            attempt(charge(3, "second"))
    assert book.path.read_bytes() == before
    book.charge(charge(2, "second"))


def test_each_partner_has_its_own_count(book):
    book.charge(charge(10))
    other = ScoreBook(book.path, "carol", limit=10)
    other.charge(charge(10))
    with pytest.raises(BudgetExceeded):
        book.charge(charge(1))


def test_without_a_limit_it_counts_all_the_same(book):
    free = ScoreBook(book.path, "bob")
    for _ in range(3):
        free.charge(charge(10))
    assert free.most_given() == 30
    with refused(BudgetExceeded, names=30):
        book.require(charge(1))


def test_the_file_names_no_row(book):
    book.charge(charge(1))
    assert not any(name in book.path.read_text() for name in IDS.series.to_list())


def test_the_limit_is_alices(tmp_path):
    write_config(tmp_path, "bob", privacy={"scores-per-row": 5})
    with refused(ConfigError, setting="scores_per_row"):
        PartyConfig.read(tmp_path / "bob.toml")


# --- Two parties ---------------------------------------------------------------------------------


def furnish(folder: Path, limit: int | None, **agreement: Any) -> Path:
    """Two parties of two epochs; Alice with a limit."""
    write_tables(folder)
    privacy = {} if limit is None else {"scores-per-row": limit}
    write_config(folder, "alice", agreement=agreement, privacy=privacy)
    write_config(folder, "bob", agreement=agreement)
    return folder


def given(folder: Path) -> int:
    return ScoreBook(folder / "alice.scores.json", "bob").most_given()


@pytest.mark.slow  # some seconds
def test_predictions_of_the_same_rows_count_with_the_training(tmp_path):
    furnish(tmp_path, 4, **MECHANISMS["sealed"])
    write_new(tmp_path)
    run_both(tmp_path).records  # noqa: B018 - raises where a side failed
    book = ScoreBook(tmp_path / "alice.scores.json", "bob")
    for number in (1, 2, 3, 4):
        ends = in_threads(tmp_path, {role: question(tmp_path, role) for role in ("alice", "bob")})
        assert not isinstance(ends.alice, BaseException), ends.alice
        assert book.most_given() == max(2, number)
    ends = in_threads(tmp_path, {role: question(tmp_path, role) for role in ("alice", "bob")})
    assert isinstance(ends.alice, BudgetExceeded)
    assert isinstance(ends.bob, PeerStopped)
    # Rows of the training, two of whose scores it took.
    for role in ("alice", "bob"):
        shutil.copy(tmp_path / f"{role}.csv", tmp_path / f"new-{role}.csv")
    for _ in range(2):
        ends = in_threads(tmp_path, {role: question(tmp_path, role) for role in ("alice", "bob")})
        assert not isinstance(ends.alice, BaseException), ends.alice
    ends = in_threads(tmp_path, {role: question(tmp_path, role) for role in ("alice", "bob")})
    assert isinstance(ends.alice, BudgetExceeded)


def test_held_out_rows_are_counted_at_every_look(tmp_path):
    """Two passes and the end: three scores of a held-out row, two of a training row."""
    agreed = {**MECHANISMS["sealed"], "held-out": 0.2, "evaluate": "epoch"}
    furnish(tmp_path, 2, **agreed)
    assert isinstance(run_both(tmp_path).alice, BudgetExceeded)
    furnish(tmp_path, 3, **agreed)
    run_both(tmp_path).records  # noqa: B018 - raises where a side failed
    assert given(tmp_path) == 3


def test_a_dry_run_tells_alice_what_bob_was_given_and_charges_nothing(tmp_path):
    furnish(tmp_path, 3, **MECHANISMS["sealed"])
    run_both(tmp_path).records  # noqa: B018 - raises where a side failed
    alice, bob = run_both(tmp_path, act=lambda party: party.dry_run()).records
    exposed = alice["columns_exposed"]
    assert exposed["scores_per_row"] == 2
    assert exposed["opened_values"] > 0
    assert exposed["warning"]
    assert "columns_exposed" not in bob
    assert given(tmp_path) == 2


def test_without_a_limit_alice_is_told(tmp_path):
    furnish(tmp_path, None, **MECHANISMS["sealed"])
    alice, _ = run_both(tmp_path, act=lambda party: party.dry_run()).records
    assert "scores-per-row" in alice["columns_exposed"]["warning"]
    assert "scores-per-row" in (tmp_path / "alice.log").read_text()
    assert "scores-per-row" not in (tmp_path / "bob.log").read_text()


# --- Past sessions that exposed her columns ------------------------------------------------------


def test_sessions_that_opened_training_scores_are_listed(book):
    book.charge(Charge(((IDS, 3),), "first", Opening("sealed", 3)))
    book.charge(Charge(((IDS, 1),), "second", Opening("mutual", 0)))
    book.charge(Charge(((IDS, 1),)))
    ScoreBook(book.path, "carol").charge(charge(4, "third"))
    one, other = book.exposed_sessions()
    assert (one.partner, one.session) == ("bob", "first")
    assert (one.mechanism, one.scores_per_row) == ("sealed", 3)
    assert one.when is not None
    # A session that says nothing of itself may have opened some.
    assert other == ExposedSession(partner="carol", session="third")


def test_a_book_of_an_earlier_version_lists_its_sessions(book):
    book.charge(Charge(((IDS, 3),), "first", Opening("sealed", 3)))
    with book._file.reading() as record:
        assert record is not None
        del record["partners"]["bob"]["trainings"]
    book._file.write({name: record[name] for name in ("salt", "partners")})
    assert book.exposed_sessions() == (ExposedSession(partner="bob", session="first"),)


@pytest.mark.parametrize(("mechanism", "exposes"), [("sealed", True), ("mutual", False)])
def test_ledger_and_doctor_list_past_sessions_at_alice(tmp_path, capsys, mechanism, exposes):
    furnish(tmp_path, None, **{**MECHANISMS[mechanism], "passes": 1})
    alice = str(tmp_path / "alice.toml")
    assert run(["ledger", alice, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exposed_sessions"] == []
    run_both(tmp_path).records  # noqa: B018 - raises where a side failed
    assert run(["ledger", alice, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert problems(record, "ledger-alice") == []
    assert of_record(record).to_dict() == record
    sessions = [(one["partner"], one["mechanism"]) for one in record["exposed_sessions"]]
    assert sessions == ([("bob", mechanism)] if exposes else [])
    assert [one["scores_per_row"] for one in record["exposed_sessions"]] == [1] * exposes
    models = [Path(one["file"]).name for one in record["exposed_models"]]
    assert models == ["alice.model.json"] * exposes
    assert [one["scores_per_row"] for one in record["exposed_models"]] == [1] * exposes
    # Its certificates are not there, which is another problem.
    assert run(["doctor", alice, "--json"]) == 80
    seen = json.loads(capsys.readouterr().out)
    assert problems(seen, "doctor") == []
    past = {name: record[name] for name in ("exposed_sessions", "exposed_models")}
    assert seen.get("exposed") == (past if exposes else None)
    assert run(["ledger", alice]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100


# --- Two processes -------------------------------------------------------------------------------


def processes(folder: Path, *words: str) -> dict[str, tuple[int, str]]:
    """The command on both sides: exit codes and what was said."""
    running = {
        role: subprocess.Popen(
            [sys.executable, "-m", "taciturn", "party", f"{role}.toml", *words],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for role in ("bob", "alice")
    }
    said = {role: process.communicate(timeout=120)[0] for role, process in running.items()}
    return {role: (process.returncode, said[role]) for role, process in running.items()}
