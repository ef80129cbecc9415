"""The ledger: sums per row, a budget that holds, and infinity written as such."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.arrays import EVERY_ROW
from taciturn.errors import BudgetExceeded, ConfigError, PrivacyError
from taciturn.privacy.composition import label_epsilon
from taciturn.privacy.events import (
    AdditiveNoise,
    BatchResponse,
    HiddenBatchGradient,
    MeanOneFactor,
    NonPrivate,
    OneSidedFactor,
    PrintedFactor,
    PrivacyEvent,
    Statement,
)
from taciturn.privacy.ledger import DEFAULT_DELTA, Ledger
from taciturn.privacy.prices import Price, price
from taciturn.results.serialise import record_of
from tests.expected import refused

# the record's contract: scripts read these keys.
KEYS = [
    "claimed_epsilon_per_release",
    "residue_epsilon_per_release",
    "label_epsilon_per_release",
    "releases_per_row",
    "residue_epsilon_total",
    "label_epsilon_total",
    "label_epsilon_total_delta",
    "delta",
    "assumption",
    "label_delta_total",
]


@dataclass(frozen=True, slots=True)
class Unheard(PrivacyEvent):
    name = "unheard"


def rows(*places: int) -> np.ndarray:
    return np.array(places, dtype=np.int64)


@given(st.lists(st.sampled_from(["all", "some", "none", "kept"]), max_size=6))
def test_all_rows_are_charged_at_once_as_one_by_one(kinds):
    """A table of many rows has one count, until some of them are charged alone."""
    places: dict[str, Any] = {"all": EVERY_ROW, "some": rows(0, 2), "none": rows()}
    at_once, one_by_one = Ledger(4, "", budget=3.0), Ledger(4, "", budget=3.0)
    for kind in kinds:
        if kind == "kept":
            kept = at_once.to_json()
            at_once = Ledger(4, "", budget=3.0)
            at_once.restore(json.loads(json.dumps(kept)))
            continue
        event = AdditiveNoise(1.0 if kind == "all" else 0.5)
        fits = at_once.affords(event, places[kind])
        assert fits == one_by_one.affords(event, np.arange(4)[places[kind]])
        if fits:
            at_once.charge(event, places[kind])
            one_by_one.charge(event, np.arange(4)[places[kind]])
    assert at_once.statement() == one_by_one.statement()
    assert at_once.notes() == one_by_one.notes()
    for row in range(4):
        paid = {event: count for event, count in at_once.history(row).items() if count}
        assert paid == {event: n for event, n in one_by_one.history(row).items() if n}


@pytest.mark.parametrize("budget", [None, 1.0])
def test_an_event_without_a_price_is_refused_and_not_counted(budget):
    ledger = Ledger(3, "none", budget=budget)
    for event in (Unheard(), PrivacyEvent()):
        with refused(PrivacyError, names=type(event).__name__):
            ledger.charge(event, rows(0, 1))
    assert ledger.statement().releases_per_row == 0
    assert ledger.statement().label_epsilon_per_release == 0


def test_infinity_is_a_text_in_json_and_the_keys_are_the_contract():
    ledger = Ledger(2, "no protection")
    ledger.charge(NonPrivate(), rows(0, 1))
    ledger.charge(NonPrivate(), rows(0))
    record = record_of(ledger.statement())
    assert list(record) == KEYS
    assert record == {
        **dict.fromkeys(KEYS, "inf"),
        "releases_per_row": 2,
        "delta": 1e-6,
        "assumption": "no protection",
        "label_delta_total": 0.0,
    }
    text = json.dumps(record, allow_nan=False)
    assert json.loads(text) == record
    # Finite figures stay numbers.
    figures = [1.0, 2.0, 0.5, 3, 6.0, 1.5, 1.5, 0.0, "test", 0.0]
    assert list(record_of(Statement(*figures)).values()) == figures  # type: ignore[arg-type]


# --- sums --------------------------------------------------------------------------------------


def test_the_paper_claims_one_epsilon_and_a_row_pays_for_every_epoch():
    ledger = Ledger(2, "test", delta=0.0)
    for _ in range(10):
        ledger.charge(PrintedFactor(0.1, 0.1, 10.0), rows(0, 1))
    statement = ledger.statement()
    assert statement.claimed_epsilon_per_release == 0.1
    assert statement.label_epsilon_per_release == pytest.approx(math.log(10))
    assert statement.residue_epsilon_total == pytest.approx(10 * math.log(10))
    assert statement.label_epsilon_total == pytest.approx(10 * math.log(10))


EVENTS = [
    AdditiveNoise(0.5),
    AdditiveNoise(3.0),
    PrintedFactor(1.0, 0.5, 2.0),
    MeanOneFactor(1.0, 0.5, 2.0),
    BatchResponse(1.0),
    NonPrivate(),
]


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.sets(st.integers(0, 5))), max_size=10))
def test_sums_of_mixed_events_are_those_of_a_naive_sum(releases):
    ledger = Ledger(6, "test", delta=0.0)
    label, residue, times = [0.0] * 6, [0.0] * 6, [0] * 6
    for event, batch in releases:
        ledger.charge(event, rows(*batch))
        for row in batch:
            label[row] += price(event).label
            residue[row] += price(event).residue
            times[row] += price(event).label > 0
    statement = ledger.statement()
    assert statement.label_epsilon_total == pytest.approx(max(label))
    assert statement.residue_epsilon_total == pytest.approx(max(residue))
    assert statement.releases_per_row == max(times)
    prices = [price(event) for event, _ in releases] or [Price(0.0, 0.0, 0.0)]
    assert statement.claimed_epsilon_per_release == max(cost.claimed for cost in prices)
    assert statement.label_epsilon_per_release == max(cost.label for cost in prices)


def test_hybrids_response_costs_no_label_and_its_gradient_everything():
    ledger = Ledger(3, "test")
    ledger.charge(BatchResponse(1.0), rows(0, 1, 2))
    before = ledger.statement()
    assert before.label_epsilon_total == before.residue_epsilon_total == 0.0
    assert before.releases_per_row == 0
    assert before.claimed_epsilon_per_release == 1.0
    ledger.charge(HiddenBatchGradient(1.0), rows(1))
    after = ledger.statement()
    assert after.label_epsilon_total == after.label_epsilon_total_delta == math.inf
    assert after.claimed_epsilon_per_release == 1.0
    assert after.releases_per_row == 1


# --- delta -------------------------------------------------------------------------------------


def test_the_tighter_total_covers_every_row():
    """A hundred small releases sum to more than a large one, and compose to less."""
    ledger = Ledger(2, "test")
    for _ in range(100):
        ledger.charge(AdditiveNoise(0.06), rows(0))
    ledger.charge(AdditiveNoise(5.8), rows(1))
    statement = ledger.statement()
    assert statement.label_epsilon_total == pytest.approx(3.0)
    one = label_epsilon({AdditiveNoise(5.8): 1}, DEFAULT_DELTA)
    assert statement.label_epsilon_total_delta >= one


@pytest.mark.parametrize("delta", [-0.1, 1.0, math.nan])
def test_a_delta_that_is_no_probability_below_one_is_refused(delta):
    with pytest.raises(ConfigError) as caught:
        Ledger(1, "test", delta=delta)
    assert caught.value.setting == "delta"


# --- budget ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "budget", "count"),
    [(1.0, 5.0, 10), (0.2, 1.0, 10), (0.2, 0.3, 3), (1.0, 0.49, 0), (0.6, 2.1, 7)],
)
def test_a_budget_pays_for_so_many_releases_and_no_more(epsilon, budget, count):
    """Also where the last bit of a sum lies above the budget: three times 0.1 are 0.3."""
    ledger = Ledger(2, "test", budget=budget)
    event = AdditiveNoise(epsilon)
    for _ in range(count):
        assert ledger.affords(event, rows(0, 1))
        ledger.charge(event, rows(0, 1))
    assert not ledger.affords(event, rows(0, 1))
    with pytest.raises(BudgetExceeded) as caught:
        ledger.charge(event, rows(0, 1))
    assert caught.value.setting == "budget"
    assert caught.value.exit_code == 61
    statement = ledger.statement()
    assert statement.releases_per_row == count
    assert statement.label_epsilon_total <= budget * (1 + 1e-9)


def test_one_row_without_means_stops_the_batch_and_nothing_is_charged():
    ledger = Ledger(3, "test", budget=1.0, delta=0.0)
    event = AdditiveNoise(1.0)
    ledger.charge(event, rows(1))
    ledger.charge(event, rows(1))
    before = ledger.statement()
    with pytest.raises(BudgetExceeded):
        ledger.charge(event, rows(0, 1, 2))
    assert ledger.statement() == before
    # The others can still pay, twice.
    ledger.charge(event, rows(0, 2))
    ledger.charge(event, rows(0, 2))
    assert ledger.statement().label_epsilon_total == 1.0
    assert not ledger.affords(event, rows(0))


@pytest.mark.parametrize(
    "event", [NonPrivate(), OneSidedFactor(1.0, 0.5, 1.0), HiddenBatchGradient(1.0)]
)
def test_no_budget_pays_for_infinity(event):
    ledger = Ledger(1, "test", budget=1e300)
    assert not ledger.affords(event, rows(0))
    with pytest.raises(BudgetExceeded):
        ledger.charge(event, rows(0))
    assert Ledger(1, "test").affords(event, rows(0))


def test_what_costs_no_label_or_speaks_of_no_row_is_free():
    ledger = Ledger(1, "test", budget=0.5)
    ledger.charge(AdditiveNoise(1.0), rows(0))
    assert ledger.affords(BatchResponse(9.0), rows(0))
    assert ledger.affords(NonPrivate(), rows())
    ledger.charge(BatchResponse(9.0), rows(0))


@pytest.mark.parametrize("budget", [0.0, -1.0, math.nan])
def test_a_budget_that_is_none_is_refused(budget):
    with pytest.raises(ConfigError) as caught:
        Ledger(1, "test", budget=budget)
    assert caught.value.setting == "budget"


# --- taint -------------------------------------------------------------------------------------


def test_a_tainted_ledger_states_infinity_and_why_and_pays_for_nothing():
    ledger = Ledger(2, "test", budget=5.0)
    ledger.charge(AdditiveNoise(1.0), rows(0))
    ledger.taint("tainted")
    statement = ledger.statement()
    assert statement.residue_epsilon_total == math.inf
    assert statement.label_epsilon_total == math.inf
    assert statement.label_epsilon_total_delta == math.inf
    assert statement.assumption == "tainted"
    # One release alone still has its price.
    assert statement.label_epsilon_per_release == 0.5
    assert statement.releases_per_row == 1
    assert record_of(statement)["label_epsilon_total"] == "inf"
    assert not ledger.affords(AdditiveNoise(1.0), rows(0))
    with pytest.raises(BudgetExceeded):
        ledger.charge(AdditiveNoise(1.0), rows(0))
    again = Ledger(2, "test", budget=5.0)
    again.restore(json.loads(json.dumps(ledger.to_json())))
    assert again.tainted
    assert again.statement() == statement
    # Nothing released is nothing told even so.
    unused = Ledger(2, "test")
    unused.taint("tainted")
    assert unused.statement().label_epsilon_total == 0.0
