"""The contract of everything that a party counts: one store, its namespaces, and their limits."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.engine.callbacks import Callbacks
from taciturn.errors import (
    BudgetExceeded,
    FileError,
    OutputError,
    PeerStopped,
    StateError,
    TaciturnError,
)
from taciturn.party.config import PartyConfig
from taciturn.party.consent.budget import Charge
from taciturn.party.consent.label_budget import LabelBudget
from taciturn.party.consent.label_flips import LabelFlipStore
from taciturn.party.consent.records import Records
from taciturn.party.consent.score_budget import ScoreBudget, ScoreCharge
from taciturn.party.consent.scored_rows import LargestCounts, RowOpening, ScoredRows
from taciturn.party.consent.store import ConsentStore
from taciturn.privacy.events import AdditiveNoise, LabelResponse
from taciturn.privacy.label_response import FlippedLabels
from taciturn.privacy.unprotected import Unprotected
from taciturn.protocol.events import Boundary, Event
from taciturn.rng import KeyedEntropy
from tests.expected import all_refused, refused
from tests.faults.damage import DAMAGES, damage
from tests.modules import module_of
from tests.party.sides import MECHANISMS, NEWTON, run_both, write_config, write_tables

IDS = RowIds.from_values(["ann", "bess"])
LIMIT = 3


@dataclass(frozen=True)
class Member:
    """A namespace of the store.

    Args:
        charge: Charges one unit to a partner, of whom at most ``LIMIT`` are allowed.
        given: How many units the store has counted for a partner.
        refuses: The error beyond the limit; None where ``charge`` returns.
        setting: The setting that the error names.
    """

    charge: Callable[[ConsentStore, str], object]
    given: Callable[[ConsentStore, str], float]
    refuses: type[TaciturnError] | None = BudgetExceeded
    setting: str = ""


def largest(namespace: str) -> Callable[[ConsentStore, str], float]:
    """The largest number of a row in an account."""

    def given(store: ConsentStore, partner: str) -> float:
        with store.reading() as records:
            return max(records.account(namespace, partner).distinct_values(), default=0)

    return given


def admitted(store: ConsentStore, partner: str) -> float:
    with store.reading() as records:
        return sum(map(int, records.account("asked-rows", partner).entries("day").values()))


def label_budget(store: ConsentStore, partner: str) -> LabelBudget:
    return LabelBudget(store, partner, LIMIT, "sick", bytes(32))


def charge_label(store: ConsentStore, partner: str) -> None:
    budget = label_budget(store, partner)
    session = f"{len(budget.sessions())}"
    budget.charge(Charge(((IDS, {(AdditiveNoise(2.0), ""): 1}),), session))


def epsilon(store: ConsentStore, partner: str) -> float:
    so_far, _ = label_budget(store, partner).statements(Charge(((IDS, {}),)))
    return so_far.label_epsilon_total


def flip_store(store: ConsentStore, partner: str) -> LabelFlipStore:
    method = FlippedLabels(LabelResponse(1.0), Unprotected())
    return LabelFlipStore(store, method, "sick", bytes(32), partner)


def flip(store: ConsentStore, partner: str) -> None:
    flips = flip_store(store, partner)
    ids = [f"{flips.rows()}", "ann"]
    flips.release(LabelTable.from_data(np.array([0, 1]), ids=ids), KeyedEntropy(b"1" * 32))


def flipped(store: ConsentStore, partner: str) -> float:
    return max(flip_store(store, partner).rows() - 1, 0)


@pytest.fixture
def store(tmp_path: Path) -> ConsentStore:
    return ConsentStore(tmp_path / "consent.sqlite")


# --- files that are damaged, or of earlier versions ----------------------------------------------


def execute(store: ConsentStore, statement: str) -> None:
    with closing(sqlite3.connect(store.path)) as database, database:
        database.execute(statement)


MANY = [f"p{number}" for number in range(3000)]


def many(first: int = 0, last: int = len(MANY)) -> ScoreCharge:
    """A charge of many rows, which are written in columns."""
    return Charge(((RowIds.from_values(MANY[first:last]), RowOpening(unnamed=1)),))


@pytest.mark.parametrize(
    "change",
    [
        "update columns set content = x''",
        "update columns set content = null, digest = null",
        "update columns set digest = x'00'",
        "update columns set type = '<u2' where name <> ''",
        "update columns set account = account + 1",
        "update columns set name = name || 'x'",
        "update columns set content = (select content from columns where name = '')",
        "update columns set single = 2 + single",
        "delete from columns where name <> ''",
        "delete from columns where name = ''",
        "update columns set content = zeroblob(32) where single = 1",
        "update columns set name = 'trainings' where single = 1",
        "delete from columns where single = 1",
        "update entries set value = '{\"scores_per_row\":0}'",
        "update entries set account = account + 1",
        "delete from entries",
        "update accounts set name = name || 'x'",
        "update accounts set sum = sum + 1",
        "delete from accounts",
        "update meta set generation = generation + 1",
        "update meta set salt = x'00'",
        "delete from meta",
        "drop table columns",
    ],
)
def test_a_record_that_was_changed_or_lost_is_refused(store, change):
    budget = ScoreBudget(store, "bob", 2 * LIMIT)
    budget.charge(many())
    budget.charge(Charge(((IDS, RowOpening(unnamed=1)),), "first"))
    execute(store, change)
    for attempt in (budget.charge, budget.require):
        with refused(FileError, names=store.path):
            attempt(Charge(((IDS, RowOpening(unnamed=1)),), "second"))
    with refused(FileError, names=store.path):
        store.verify()


def test_damage_is_noticed_by_a_charge_of_any_row_of_its_account_and_by_a_whole_check(store):
    """To open the store reads no rows, and to charge a partner none of another's."""
    budget, other = (ScoreBudget(store, partner, LIMIT) for partner in ("bob", "carol"))
    for one in (budget, other):
        one.charge(many())
    assert store.verify() == 2 * len(MANY)
    execute(
        store,
        "update columns set content = x'00' where account = 1 and name = 'value' and single = 0",
    )
    other.charge(many(0, 1))
    for attempt in (store.verify, budget.most_given, lambda: budget.charge(many(7, 8))):
        with refused(FileError, names=store.path):
            attempt()


def test_an_older_copy_beside_the_log_of_a_killed_program_is_refused(store):
    """SQLite takes the log in, and with it the newest counts and numbers, but not the rows."""
    budget = ScoreBudget(store, "bob", 100)
    budget.charge(many())
    earlier = store.path.read_bytes()
    # A connection that stays open keeps the log from being removed.
    with closing(store.open()):
        budget.charge(many())
        # As after 64 pages: the log is copied into the file, and begins anew.
        execute(store, "pragma wal_checkpoint(restart)")
        budget.charge(many(0, 1))
        log = store.log_file.read_bytes()
    assert log
    store.path.write_bytes(earlier)
    store.log_file.write_bytes(log)
    for attempt in (budget.most_given, lambda: budget.charge(many(0, 1))):
        with refused(FileError, names=store.path):
            attempt()


def test_an_earlier_version_of_some_rows_is_noticed_by_a_whole_check(store):
    budget = ScoreBudget(store, "bob", LIMIT)
    budget.charge(many())
    earlier = store.path.with_name("earlier")
    shutil.copy(store.path, earlier)
    budget.charge(many())
    with closing(sqlite3.connect(store.path)) as database, database:
        database.execute(f"attach '{earlier}' as earlier")
        database.execute("replace into columns select * from earlier.columns where name = 'value'")
    for attempt in (store.verify, budget.most_given):
        with refused(FileError, names=store.path):
            attempt()


@pytest.mark.parametrize("kind", [kind for kind in DAMAGES if kind != "emptied"])
def test_no_row_of_a_damaged_file_counts_less(store, kind):
    draw, budget = np.random.default_rng(36), ScoreBudget(store, "bob")
    budget.charge(many())
    budget.charge(many(0, 500))
    whole = store.path.read_bytes()
    for _ in range(20):
        store.path.write_bytes(whole)
        damage(store.path, kind, draw)
        for first in range(0, len(MANY), 100):
            with suppress(FileError, StateError, OutputError), store.reading() as records:
                account = records.account("scores", "bob")
                values = account.values(account.tags(MANY[first : first + 100]))
                assert values.tolist() == [2 if first < 500 else 1] * 100


@given(
    writes=st.lists(
        st.dictionaries(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**40), max_size=40),
        max_size=6,
    )
)
def test_values_are_those_written_last_however_many_are_single(writes):
    expected = dict[int, int]()
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(module_of(Records), "_MOST_SINGLES", 12)
        store = ConsentStore(Path(folder) / "consent.sqlite")
        # What an open store holds in memory is what a fresh one reads.
        with ExitStack() as stack:
            kept = stack.enter_context(closing(store.open()))
            for number, write in enumerate(writes):
                expected |= write
                with kept.transaction() as records:
                    tags, values = (np.array([*side], np.int64) for side in (write, write.values()))
                    records.account("scores", "bob").write_values(tags, values)
                    records.account("scores", "bob").write_values(tags, values + number, "other")
                with suppress(KeyboardInterrupt), kept.transaction() as records:
                    records.account("scores", "bob").write_values(tags, values + 1)
                    raise KeyboardInterrupt
                asked = np.array([*expected, 5, 6], np.int64)
                for reading in (kept.transaction(write=False), store.reading()):
                    with reading as records:
                        account = records.account("scores", "bob")
                        stored, other = account.read(asked, "value", "other")
                        tags, values = account.rows()
                        assert dict(zip(tags.tolist(), values.tolist(), strict=True)) == expected
                        assert account.row_count == len(expected)
                    assert stored.tolist() == [
                        *expected.values(),
                        expected.get(5, 0),
                        expected.get(6, 0),
                    ]
                    assert 0 <= min(other - stored)
                    assert max(other - stored) <= number
                assert store.verify() == len(expected)


def test_rows_that_fill_the_last_byte_of_a_bitmap_are_in_what_an_open_store_holds(store):
    """The bytes of the first model's bitmap stay the same when seven rows are added at its end."""
    with closing(store.open()) as opened:
        with opened.transaction() as records:
            tags = np.sort(records.account("scores", "bob").tags(MANY[:400]))
        for rows, model in (
            (tags[:393], "first"),
            (tags[:300], "second"),
            (np.concatenate([tags[:300], tags[393:]]), "third"),
            (tags[393:], "first"),
        ):
            with opened.transaction() as records:
                scored = ScoredRows(records, "bob")
                scored.write(scored.change(rows, RowOpening(models=(model,))))
        with opened.transaction(write=False) as records:
            held = ScoredRows(records, "bob").largest()
    with store.reading() as records:
        assert held == ScoredRows(records, "bob").largest() == LargestCounts(400, 3, 0, 0)


@pytest.mark.parametrize("seconds", [0, 2])
def test_beside_another_program_that_writes_nothing_is_written(tmp_path, seconds):
    """Two waits of the same length."""
    store = ConsentStore(tmp_path / "consent.sqlite", wait_seconds=seconds)
    charge_asked = Charge(((IDS, RowOpening(unnamed=1)),))
    ScoreBudget(store, "bob", LIMIT).charge(charge_asked)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("begin immediate")
        with refused(OutputError, names=store.path), store.writing() as records:
            other.execute("rollback")
            records.account("scores", "bob").write_entry("session", "another", "{}")
    assert store.verify() == len(IDS)
    with store.reading() as records:
        assert "another" not in records.account("scores", "bob").entries("session")


def test_only_an_error_of_the_store_is_told_as_one(store, tmp_path):
    def write() -> None:
        with store.writing() as records:
            records.account("scores", "bob").write_entry("session", "one", "{}")
            (tmp_path / "absent").read_bytes()

    with pytest.raises(FileNotFoundError):
        write()
    assert store.verify() == 0
    store.generation_file.mkdir()
    with refused(OutputError, names=store.path):
        store.verify()


def test_what_was_noted_of_partners_is_kept_with_their_names(store):
    with store.writing() as records:
        records.write_partner_fact("bob", "table key", bytes(range(32)))
        records.write_partner_fact("bob", "root 1", b"one")
        records.write_partner_fact("carol", "root 1", b"")
        records.write_partner_fact("bob", "root 1", b"another")
    with store.reading() as records:
        facts = records.partner_facts("bob")
        assert [*facts.items()] == [("table key", bytes(range(32))), ("root 1", b"another")]
        assert records.partner_facts("carol") == {"root 1": b""}
        assert records.partner_facts("dora") == {}
    execute(store, "update entries set value = '6f6e65' where name = 'root 1'")
    with refused(FileError, names=store.path), store.reading() as records:
        records.partner_facts("bob")


def usage_file(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("create table counts (who text, tag integer)")


def json_file(path: Path) -> None:
    path.write_text(json.dumps({"format": "taciturn ledger book", "version": 1}))


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
    return ScoreBudget(ConsentStore(folder / "alice.consent.sqlite"), "bob").most_given()


def epsilon_paid(folder: Path) -> float:
    accounts = LabelBudget.from_config(PartyConfig.read(folder / "bob.toml")).accounts()
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
    write_config(tmp_path, "bob", agreement={**counted.agreed, "split-seed": "another"})
    assert isinstance(run_both(tmp_path).alice, BaseException)
    assert counted.so_far(tmp_path) == 0
