"""State of release 0.3: consent stores count on, and models score.

``tests/samples/0.3`` is what two parties of that release left after two trainings with ``mutual``
and a prediction of all 160 rows after each, with ``scores-per-row = 5``.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from taciturn.data.ids import RowIds
from taciturn.errors import BudgetExceeded, FileError, OutputError, StateError
from taciturn.jobs.predict.job import PredictJob
from taciturn.party.config import PartyConfig
from taciturn.party.consent.budget import Charge
from taciturn.party.consent.label_budget import LabelBudget
from taciturn.party.consent.records import checksum
from taciturn.party.consent.score_budget import ScoreBudget
from taciturn.party.consent.scored_rows import RowOpening
from taciturn.party.consent.store import ConsentStore
from tests.faults.damage import DAMAGES, damage
from tests.party.sides import ROLES, run_jobs

SAMPLES = Path(__file__).resolve().parents[1] / "samples" / "0.3"


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A copy of the parties' files, private as they were."""
    folder = tmp_path / "parties"
    shutil.copytree(SAMPLES, folder)
    for file in folder.iterdir():
        file.chmod(0o600)
    return folder


def score_budget(folder: Path) -> ScoreBudget:
    return ScoreBudget.from_config(PartyConfig.read(folder / "alice.toml"))


def test_every_record_of_both_stores_is_sound(left):
    for role in ROLES:
        store = ConsentStore.from_config(PartyConfig.read(left / f"{role}.toml"))
        assert store.verify() in (120, 160)


def test_opened_scores_count_on(left):
    ids = RowIds.from_values([f"p{number:03d}" for number in range(160)])
    # Two trainings and two predictions, each of which counted as a score of every row.
    assert score_budget(left).most_given() == 4
    score_budget(left).charge(Charge(((ids, RowOpening(unnamed=1)),)))
    assert score_budget(left).most_given() == 5
    with pytest.raises(BudgetExceeded):
        score_budget(left).charge(Charge(((ids, RowOpening(unnamed=1)),)))


def test_label_charges_are_listed(left):
    config = PartyConfig.read(left / "bob.toml")
    store = ConsentStore.from_config(config)
    with store.reading() as records:
        (account,) = records.accounts(LabelBudget.namespace.name)
        assert account.row_count == 120


def test_its_models_give_its_scores(left):
    former = pl.read_csv(left / "bob.scores.csv")
    jobs = {role: PredictJob(left / f"{role}.model.json", left / f"{role}.csv") for role in ROLES}
    ends = run_jobs(left, jobs)
    assert not isinstance(ends.alice, BaseException), ends.alice
    assert not isinstance(ends.bob, BaseException), ends.bob
    assert ends.bob.ids == tuple(former["id"])
    np.testing.assert_allclose(ends.bob.scores, former["score"], atol=1e-6)


def test_a_store_is_converted_once_and_says_so(left):
    config = PartyConfig.read(left / "alice.toml")
    said: list[str] = []
    store = ConsentStore.from_config(config, said.append)
    before = score_budget_rows(store)
    assert before == score_budget_rows(store)
    assert len(said) == 1
    # An older copy is refused in either format.
    converted = store.path.read_bytes()
    with store.writing() as records:
        records.account("scores", "bob").write_entry("session", "another", "{}")
    for older in (converted, (SAMPLES / "alice.consent.sqlite").read_bytes()):
        store.path.write_bytes(older)
        with pytest.raises(FileError):
            store.verify()
    assert len(said) <= 2


def test_a_model_that_was_given_no_score_is_converted(left):
    """A service's 17th model, whose rows were all at their limit: an entry, and no account."""
    path = left / "alice.consent.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        entries = database.execute("select * from entries").fetchall()
        for number in range(17):
            entry = 1, len(entries), "model", f"model {number}", str(number)
            database.execute("insert into entries values (?, ?, ?, ?, ?)", entry)
            entries.append(entry)
        database.execute("update accounts set entry_sum = ?", (checksum(entries),))
        accounts = database.execute("select * from accounts").fetchall()
        meta = *database.execute("select salt, generation from meta").fetchone(), checksum(accounts)
        database.execute("update meta set account_sum = ?, sum = ?", (meta[2], checksum([meta])))
    budget = score_budget(left)
    assert budget.store.verify() == 160
    ids = RowIds.from_values([f"p{number:03d}" for number in range(160)])
    budget.charge(Charge(((ids, RowOpening(models=("model 16",))),)))
    counts = budget.largest()
    assert (counts.models, counts.repetitions) == (5, 0)


def test_a_store_beside_the_log_of_another_state_is_refused_as_it_was(left):
    """To write it would copy the log into the file."""
    store = ConsentStore(left / "alice.consent.sqlite")
    whole = store.path.read_bytes()
    with closing(sqlite3.connect(store.path)) as database:
        with database:
            database.execute("update buckets set sum = sum + 1")
        log = store.log_file.read_bytes()
    assert log
    store.path.write_bytes(whole)
    store.log_file.write_bytes(log)
    for attempt in (store.verify, score_budget(left).most_given):
        with pytest.raises(FileError):
            attempt()
        assert (store.path.read_bytes(), store.log_file.read_bytes()) == (whole, log)


def score_budget_rows(store: ConsentStore) -> dict[int, int]:
    with store.reading() as records:
        account = records.account("scores", "bob")
        assert account.entries("session")
        return account.distinct_values() | account.distinct_values("trainings")


@pytest.mark.parametrize("kind", [kind for kind in DAMAGES if kind != "emptied"])
def test_a_damaged_store_is_refused_or_converted_as_it_was(left, kind):
    store, draw = ConsentStore(left / "alice.consent.sqlite"), np.random.default_rng(51)
    whole = store.path.read_bytes()
    wanted = score_budget_rows(ConsentStore(Path(shutil.copy(store.path, left / "copy"))))
    for _ in range(20):
        store.path.write_bytes(whole)
        store.generation_file.unlink(missing_ok=True)
        damage(store.path, kind, draw)
        damaged = store.path.read_bytes()
        with suppress(FileError, StateError, OutputError):
            assert score_budget_rows(store) == wanted
            continue
        assert store.path.read_bytes() == damaged
