"""Counts that are kept: no limit is exceeded, by whomever it is asked, after however many stops."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from taciturn.data.ids import RowIds
from taciturn.errors import BudgetExceeded, FileError
from taciturn.party.consent.budget import Charge
from taciturn.party.consent.score_budget import ScoreBudget
from taciturn.party.consent.scored_rows import RowOpening
from taciturn.party.consent.store import ConsentStore
from taciturn_ops.serve.budget import PartnerBudget, RowCounter, ServiceBudget
from taciturn_ops.serve.declaration import ANSWERS, DAILY
from tests.expected import refused
from tests.modules import module_of
from tests.party.consent.test_contract import largest

IDS = st.lists(st.sampled_from("abcdef"), unique=True, max_size=6)


@contextlib.contextmanager
def service(folder: Path) -> Iterator[ServiceBudget]:
    with contextlib.closing(ConsentStore(folder / "consent.sqlite").open()) as store:
        yield ServiceBudget(store)


def at_most(limit: int) -> list[RowCounter]:
    return [RowCounter(ANSWERS, "bob", limit)]


@given(asks=st.lists(IDS, max_size=8), limit=st.integers(1, 4))
def test_a_row_is_counted_up_to_its_limit_and_not_once_more(asks, limit):
    with tempfile.TemporaryDirectory() as folder:
        counts: Counter[str] = Counter()
        for ids in asks:
            # Opened anew each time: nothing is in memory alone.
            with service(Path(folder)) as budget:
                allowed = budget.spend(at_most(limit), ids)
            assert allowed == [counts[name] < limit for name in ids]
            counts.update(name for name, may in zip(ids, allowed, strict=True) if may)
        assert all(count <= limit for count in counts.values())


@given(asks=st.lists(st.integers(0, 5), max_size=8), limit=st.integers(1, 9))
def test_a_day_is_counted_up_to_its_limit(asks, limit):
    with tempfile.TemporaryDirectory() as folder, service(Path(folder)) as budget:
        left = limit
        for rows in asks:
            assert budget.admit("crm", rows, limit) == min(rows, left)
            left -= min(rows, left)
        # All or none of a request; and another caller has a count of its own.
        assert budget.admit("crm", left + 1, limit, whole=True) == 0
        assert budget.admit("crm", left, limit, whole=True) == left
        assert budget.admit("erp", limit, limit) == limit


def test_another_day_begins_at_zero_and_what_ever_was_stays(tmp_path, monkeypatch):
    def on(day: int) -> None:
        monkeypatch.setattr(module_of(RowCounter), "_today", lambda: date(2026, 1, day))

    counters = [RowCounter(DAILY, limit=1, daily=True), RowCounter(ANSWERS, "bob", 2)]
    with service(tmp_path) as budget:
        for day, allowed in ((1, [True, False]), (2, [True, False]), (3, [False, False])):
            on(day)
            assert [budget.spend(counters, ["a"])[0] for _ in range(2)] == allowed
            assert budget.admit("crm", 5, 3) == 3


def test_looking_charges_nothing(tmp_path):
    with service(tmp_path) as budget:
        for write, may in ((False, True), (True, True), (False, False), (True, False)):
            assert budget.spend(at_most(1), ["a"], write=write) == [may]


def test_what_a_service_gives_counts_with_trainings_and_predictions(tmp_path):
    store = ConsentStore(tmp_path / "consent.sqlite")
    scores, rows = ScoreBudget(store, "bob", 3), RowIds.from_values(["a"])
    scores.charge(Charge(((rows, RowOpening(unnamed=1)),), "training"))
    with service(tmp_path) as budget:
        partner = PartnerBudget(budget, scores, "model", rows_per_day=4)
        assert [partner.admit(3), partner.admit(3)] == [3, 1]
        assert partner.spend(["a", "b"]) == [True, True]
        # A prediction meanwhile, by another model.
        scores.charge(Charge(((rows, RowOpening(unnamed=1)),)))
        assert scores.most_given() == 3
        # The served model has scored the row already; a new one may not.
        assert partner.spend(["a", "b"]) == [True, True]
        other = PartnerBudget(budget, scores, "other", rows_per_day=None)
        assert other.spend(["a", "b"]) == [False, True]
    assert (scores.largest().models, scores.largest().repetitions) == (3, 1)
    with refused(BudgetExceeded, setting="scores_per_row"):
        scores.charge(Charge(((rows, RowOpening(unnamed=1)),)))


def test_repeated_scores_of_a_service_end_at_their_own_limit(tmp_path):
    scores = ScoreBudget(ConsentStore(tmp_path / "consent.sqlite"), "bob", 1, repetitions=2)
    with service(tmp_path) as budget:
        partner = PartnerBudget(budget, scores, "model", rows_per_day=None)
        assert [partner.spend(["a"]) for _ in range(4)] == [[True]] * 3 + [[False]]
    assert (scores.largest().models, scores.largest().repetitions) == (1, 2)


def test_a_row_is_in_so_many_answers_of_a_service_and_no_more(tmp_path):
    scores = ScoreBudget(ConsentStore(tmp_path / "consent.sqlite"), "bob")
    scores.charge(Charge(((RowIds.from_values(["a"]), RowOpening(unnamed=5)),), "training"))
    with service(tmp_path) as budget:
        partner = PartnerBudget(budget, scores, "model", None, answers=3)
        assert partner.admit(9) == 9
        assert [partner.spend(["a"]) for _ in range(4)] == [[True]] * 3 + [[False]]


def test_threads_and_processes_together_never_exceed_a_limit(tmp_path):
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from taciturn_ops.serve.budget import RowCounter, ServiceBudget\n"
        "from taciturn_ops.serve.declaration import ANSWERS\n"
        "from taciturn.party.consent.store import ConsentStore\n"
        "budget = ServiceBudget(ConsentStore(Path(sys.argv[1])).open())\n"
        "counters = [RowCounter(ANSWERS, 'bob', 30)]\n"
        "print(sum(budget.spend(counters, ['a'])[0] for _ in range(25)))\n"
    )
    # Nobody has made the file yet.
    others = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "consent.sqlite")],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    given_here: list[bool] = []
    with service(tmp_path) as budget:

        def ask() -> None:
            for _ in range(10):
                given_here.extend(budget.spend(at_most(30), ["a"]))

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    elsewhere = sum(int(other.communicate()[0]) for other in others)
    assert sum(given_here) + elsewhere == 30


def test_a_service_whose_store_is_replaced_counts_nothing_more(tmp_path):
    store = ConsentStore(tmp_path / "consent.sqlite")
    with contextlib.closing(store.open()) as opened:
        counter = RowCounter(ANSWERS, "bob", 3)
        assert ServiceBudget(opened).spend([counter], ["ann"]) == [True]
        copy = Path(shutil.copy(store.path, store.path.with_name("copy")))
        for act in (lambda: copy.replace(store.path), store.path.unlink):
            act()
            with refused(FileError, names=store.path):
                ServiceBudget(opened).spend([counter], ["ann"])


def test_a_running_service_has_few_charges_in_the_log_alone(tmp_path):
    store = ConsentStore(tmp_path / "consent.sqlite")
    with contextlib.closing(store.open()) as opened:
        for _ in range(40):
            ServiceBudget(opened).spend([RowCounter(ANSWERS, "bob")], ["ann"])
        copy = ConsentStore(Path(shutil.copy(store.path, tmp_path / "copy")))
        assert 10 < largest("answers")(copy, "bob") <= 40
    assert largest("answers")(store, "bob") == 40
