"""The contract of everything that a party counts: one store, its namespaces, and their limits."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.errors import (
    FileError,
    OutputError,
    StateError,
)
from taciturn.party.config import PartyConfig
from taciturn.party.consent.budget import Charge
from taciturn.party.consent.score_budget import ScoreBudget
from taciturn.party.consent.scored_rows import RowOpening
from taciturn.party.consent.store import ConsentStore
from taciturn_ops.serve.budget import RowCounter, ServiceBudget
from taciturn_ops.serve.declaration import ANSWERS, DAILY
from taciturn_risk.woe.job import GivenTable, WoeBudget
from tests.expected import refused
from tests.faults.damage import DAMAGES, damage
from tests.modules import module_of
from tests.party.consent.test_contract import (
    IDS,
    LIMIT,
    Member,
    admitted,
    charge_label,
    epsilon,
    flip,
    flipped,
    json_file,
    largest,
    usage_file,
)
from tests.party.sides import write_config
from tests.system import small_disk

PROGRAM = """
import sys
from pathlib import Path
from taciturn.party.consent.store import ConsentStore
from taciturn.errors import BudgetExceeded
from tests.repository.test_contract import MEMBERS
member, store = MEMBERS[sys.argv[1]], ConsentStore(Path(sys.argv[2]), wait_seconds=60)
for _ in range(3):
    try:
        member.charge(store, "bob")
    except BudgetExceeded:
        pass
"""


def spend(namespace: Any) -> Callable[[ConsentStore, str], object]:
    def charge(store: ConsentStore, partner: str) -> object:
        with closing(store.open()) as opened:
            counter = RowCounter(namespace, partner, LIMIT)
            return ServiceBudget(opened).spend([counter], ["ann", "bess"])

    return charge


def admit(store: ConsentStore, partner: str) -> object:
    with closing(store.open()) as opened:
        return ServiceBudget(opened).admit(partner, 1, LIMIT)


def tables(store: ConsentStore, partner: str) -> float:
    with store.reading() as records:
        return len(records.account(WoeBudget.namespace.name, partner).entries("table"))


# A new namespace joins by one line.
MEMBERS = {
    "scores": Member(
        lambda store, who: ScoreBudget(store, who, LIMIT).charge(
            Charge(((IDS, RowOpening(unnamed=1)),))
        ),
        lambda store, who: ScoreBudget(store, who).most_given(),
        setting="scores_per_row",
    ),
    "tables": Member(
        lambda store, who: WoeBudget(store, who, LIMIT).charge(GivenTable(100, 3, 12)),
        tables,
        setting="tables",
    ),
    "labels": Member(charge_label, epsilon, setting="budget_total"),
    # Labels have no limit of their own: their price is the label budget's.
    "flips": Member(flip, flipped, refuses=None),
    "answers": Member(spend(ANSWERS), largest("answers"), refuses=None),
    "daily rows": Member(spend(DAILY), largest("daily-rows"), refuses=None),
    "asked rows": Member(admit, admitted, refuses=None),
}


LIMITED = [name for name in MEMBERS if name != "flips"]


@pytest.fixture(params=MEMBERS.values(), ids=list(MEMBERS))
def member(request: pytest.FixtureRequest) -> Member:
    made: Member = request.param
    return made


@pytest.fixture
def store(tmp_path: Path) -> ConsentStore:
    return ConsentStore(tmp_path / "consent.sqlite")


@pytest.mark.parametrize("name", LIMITED)
def test_the_limit_is_never_exceeded_and_each_partner_has_one(store, name):
    member = MEMBERS[name]
    assert member.given(store, "bob") == 0
    assert not store.path.exists()
    for number in range(LIMIT):
        member.charge(store, "bob")
        assert member.given(store, "bob") == number + 1
    for _ in range(2):
        if member.refuses is None:
            member.charge(store, "bob")
        else:
            with refused(member.refuses, setting=member.setting):
                member.charge(store, "bob")
        assert member.given(store, "bob") == LIMIT
    assert member.given(store, "carol") == 0
    member.charge(store, "carol")
    assert (member.given(store, "carol"), member.given(store, "bob")) == (1, LIMIT)


@pytest.mark.parametrize("name", ["scores", "tables"])
def test_programs_at_the_same_time_never_exceed_a_limit(store, name):
    command = [sys.executable, "-c", PROGRAM, name, str(store.path)]
    running = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait() for process in running] == [0] * 3
    assert MEMBERS[name].given(store, "bob") == LIMIT


def test_a_program_that_is_killed_within_a_transaction_has_written_nothing(store):
    program = (
        "import os, sys\nfrom pathlib import Path\n"
        "from taciturn.party.consent.store import ConsentStore\n"
        "with ConsentStore(Path(sys.argv[1])).writing() as records:\n"
        "    records.account('scores', 'bob').write_entry('session', 'lost', '{}')\n"
        "    os._exit(9)\n"
    )
    MEMBERS["scores"].charge(store, "bob")
    assert subprocess.call([sys.executable, "-c", program, str(store.path)]) == 9
    assert ScoreBudget(store, "bob").sessions() == ()
    assert MEMBERS["scores"].given(store, "bob") == 1


def test_what_a_block_that_raises_has_written_is_undone(store, member):
    member.charge(store, "bob")
    with suppress(KeyboardInterrupt), store.writing() as records:
        records.account("scores", "bob").write_entry("session", "lost", "{}")
        raise KeyboardInterrupt
    assert ScoreBudget(store, "bob").sessions() == ()
    assert member.given(store, "bob") == 1


def test_who_waits_for_another_program_says_so(store, monkeypatch):
    monkeypatch.setattr(module_of(ConsentStore), "_UNANNOUNCED_SECONDS", 0)
    MEMBERS["scores"].charge(store, "bob")
    with closing(store.open()) as other, ExitStack() as busy:
        busy.enter_context(other.transaction())
        announced = list[str]()

        def announce(text: str) -> None:
            announced.append(text)
            busy.close()

        MEMBERS["scores"].charge(replace(store, announce=announce), "bob")
    assert len(announced) == 1
    assert MEMBERS["scores"].given(store, "bob") == 2


def test_a_lock_a_full_disk_and_a_read_only_one_are_told_apart(tmp_path):
    member, hints = MEMBERS["scores"], []
    with small_disk(tmp_path, 512 << 10) as disk:
        store = ConsentStore(disk / "consent.sqlite", wait_seconds=0)
        member.charge(store, "bob")

        def charge() -> None:
            with refused(OutputError, names=store.path) as raised:
                member.charge(store, "bob")
            hints.append(raised.value.hint)

        with store.writing():
            charge()
        (disk / "rest").write_bytes(bytes(shutil.disk_usage(disk).free))
        charge()
        (disk / "rest").unlink()
        remount = ["mount", "-o", "remount,ro", str(disk)]
        subprocess.run(remount, check=True)
        charge()
        subprocess.run([*remount[:2], "remount,rw", str(disk)], check=True)
        assert member.given(store, "bob") == 1
    assert len({*hints}) == 3


def test_the_file_is_for_its_owner_alone_and_names_no_row(store, member):
    member.charge(store, "bob")
    files = {*store.path.parent.iterdir()}
    assert files == {store.path, store.generation_file}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    content = b"".join(file.read_bytes() for file in files)
    assert not any(name.encode() in content for name in IDS.series.to_list())


def test_a_file_that_others_may_read_is_closed_to_them(store):
    MEMBERS["scores"].charge(store, "bob")
    store.path.chmod(0o644)
    with store.writing():
        modes = {stat.S_IMODE(file.stat().st_mode) for file in store.path.parent.iterdir()}
    assert modes == {0o600}


def test_what_cannot_be_written_is_an_error(tmp_path, member):
    with refused(OutputError):
        member.charge(ConsentStore(tmp_path / "absent" / "consent.sqlite"), "bob")


@pytest.mark.parametrize("kind", [kind for kind in DAMAGES if kind != "emptied"])
def test_a_damaged_file_is_refused_or_counts_the_same(store, member, kind):
    draw = np.random.default_rng(35)
    member.charge(store, "bob")
    whole = store.path.read_bytes()
    for _ in range(12):
        store.path.write_bytes(whole)
        damage(store.path, kind, draw)
        damaged = store.path.read_bytes()
        with suppress(FileError, StateError, OutputError):
            assert member.given(store, "bob") == 1
            # What SQLite does not read may be anything.
            continue
        assert store.path.read_bytes() == damaged


def test_an_emptied_file_is_no_new_one(store, member):
    member.charge(store, "bob")
    store.path.write_bytes(b"")
    for attempt in (member.given, member.charge):
        with refused(FileError, names=store.path):
            attempt(store, "bob")
    assert store.path.read_bytes() == b""


def test_a_file_that_was_removed_from_its_log_is_no_new_one(store):
    # A service that is killed leaves what it counted last in the log.
    program = PROGRAM.replace("\nfor ", "\nopened = store.open()\nfor ")
    program += "import os\nos._exit(9)\n"
    command = [sys.executable, "-c", program, "scores", str(store.path)]
    assert subprocess.call(command) == 9
    assert MEMBERS["scores"].given(store, "bob") == LIMIT
    assert subprocess.call(command) == 9
    store.path.unlink()
    for attempt in (MEMBERS["scores"].given, MEMBERS["scores"].charge):
        with refused(FileError, names=store.path):
            attempt(store, "bob")
    assert not store.path.exists()


def test_an_older_copy_is_refused(store, member):
    member.charge(store, "bob")
    older = store.path.read_bytes()
    member.charge(store, "bob")
    newest = store.path.read_bytes()
    store.path.write_bytes(older)
    for attempt in (member.given, member.charge):
        with refused(FileError, names=store.path):
            attempt(store, "bob")
    assert store.path.read_bytes() == older
    store.path.write_bytes(newest)
    assert member.given(store, "bob") == 2
    # The way out where there is no newer one.
    store.path.write_bytes(older)
    store.generation_file.unlink()
    member.charge(store, "bob")
    assert member.given(store, "bob") == 2


def test_another_store_in_its_place_is_refused(store):
    other = ConsentStore(store.path.with_name("other"))
    for one, times in ((store, 1), (other, 3)):
        for _ in range(times):
            MEMBERS["scores"].charge(one, "bob")
    shutil.copy(other.path, store.path)
    with refused(FileError, names=store.path):
        MEMBERS["scores"].given(store, "bob")


def test_a_store_that_was_removed_is_no_new_one_until_its_note_is_removed_too(store, member):
    member.charge(store, "bob")
    store.path.unlink()
    for attempt in (member.given, member.charge):
        with refused(FileError, names=store.path):
            attempt(store, "bob")
    store.generation_file.unlink()
    assert store.verify() is None
    assert member.given(store, "bob") == 0


@pytest.mark.parametrize("note", [b"", b"\xff", b"0 1\n"])
def test_a_damaged_note_is_written_anew(store, note):
    MEMBERS["scores"].charge(store, "bob")
    store.generation_file.write_bytes(note)
    older = store.path.read_bytes()
    MEMBERS["scores"].charge(store, "bob")
    store.path.write_bytes(older)
    with refused(FileError, names=store.path):
        MEMBERS["scores"].given(store, "bob")


def test_a_service_whose_store_is_replaced_counts_nothing_more(store):
    with closing(store.open()) as opened:
        counter = RowCounter(ANSWERS, "bob", LIMIT)
        assert ServiceBudget(opened).spend([counter], ["ann"]) == [True]
        copy = Path(shutil.copy(store.path, store.path.with_name("copy")))
        for act in (lambda: copy.replace(store.path), store.path.unlink):
            act()
            with refused(FileError, names=store.path):
                ServiceBudget(opened).spend([counter], ["ann"])


def test_a_running_service_has_few_charges_in_the_log_alone(store, tmp_path):
    with closing(store.open()) as opened:
        for _ in range(40):
            ServiceBudget(opened).spend([RowCounter(ANSWERS, "bob")], ["ann"])
        copy = ConsentStore(Path(shutil.copy(store.path, tmp_path / "copy")))
        assert 10 < largest("answers")(copy, "bob") <= 40
    assert largest("answers")(store, "bob") == 40


def test_another_version_is_refused_by_its_number(store, member):
    member.charge(store, "bob")
    with closing(sqlite3.connect(store.path)) as database:
        database.execute("pragma user_version = 99")
    with refused(FileError, names=(store.path, 99)):
        member.charge(store, "bob")


@pytest.mark.parametrize("write", [usage_file, json_file])
def test_a_file_of_an_earlier_version_in_its_place_is_refused(store, member, write):
    write(store.path)
    before = store.path.read_bytes()
    for attempt in (member.given, member.charge):
        with refused(StateError, names=store.path):
            attempt(store, "bob")
    assert store.path.read_bytes() == before


@pytest.mark.parametrize(
    ("role", "name"),
    [
        *(("alice", name) for name in ("alice.scores.json", "alice.woe.json")),
        *(("bob", name) for name in ("bob.ledger.json", "bob.flips.json")),
        *((role, f"{role}.usage.sqlite") for role in ("alice", "bob")),
    ],
)
def test_counting_does_not_start_from_zero_beside_a_file_of_an_earlier_version(
    tmp_path, role, name
):
    config = PartyConfig.read(write_config(tmp_path, role))
    assert ConsentStore.from_config(config).path == tmp_path / f"{role}.consent.sqlite"
    (tmp_path / name).write_text("")
    with refused(StateError, names=tmp_path / name):
        ConsentStore.from_config(config)
    # The way out.
    (tmp_path / name).rename(tmp_path / "former")
    ConsentStore.from_config(config)
