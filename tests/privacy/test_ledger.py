"""The ledger: counts per row, and an infinite price is written as such."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import PrivacyError
from tacit.privacy.events import NonPrivate, PrivacyEvent
from tacit.privacy.ledger import Ledger, Price, Statement, price

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
]


@dataclass(frozen=True, slots=True)
class Unheard(PrivacyEvent):
    name = "unheard"


def rows(*places: int) -> np.ndarray:
    return np.array(places, dtype=np.int64)


def test_a_non_private_release_costs_infinity():
    assert price(NonPrivate()) == Price(math.inf, math.inf, math.inf)


def test_an_event_without_a_price_is_refused_and_not_counted():
    ledger = Ledger(3, "none")
    with pytest.raises(PrivacyError, match="Unheard"):
        ledger.charge(Unheard(), rows(0, 1))
    with pytest.raises(PrivacyError):
        ledger.charge(PrivacyEvent(), rows(0))
    assert ledger.statement().releases_per_row == 0
    assert ledger.statement().label_epsilon_per_release == 0


def test_without_a_release_everything_is_zero():
    statement = Ledger(5, "nothing left").statement()
    assert statement == Statement(0.0, 0.0, 0.0, 0, 0.0, 0.0, 0.0, 0.0, "nothing left")
    assert "inf" not in statement.to_dict().values()


def test_the_row_released_most_often_counts():
    ledger = Ledger(4, "test")
    for batch in (rows(0, 1), rows(1, 2), rows(1)):
        ledger.charge(NonPrivate(), batch)
    assert ledger.statement().releases_per_row == 3


@settings(deadline=None, derandomize=True)
@given(st.lists(st.sets(st.integers(0, 9), max_size=10), max_size=12))
def test_counts_are_those_of_a_naive_count(batches):
    ledger = Ledger(10, "test")
    naive: Counter[int] = Counter()
    for batch in batches:
        ledger.charge(NonPrivate(), rows(*batch))
        naive.update(batch)
    assert ledger.statement().releases_per_row == max(naive.values(), default=0)


def test_a_statement_is_a_snapshot():
    ledger = Ledger(2, "test")
    before = ledger.statement()
    ledger.charge(NonPrivate(), rows(0))
    assert before.releases_per_row == 0


def test_infinity_is_a_text_in_json_and_the_keys_are_the_contract():
    ledger = Ledger(2, "no protection")
    ledger.charge(NonPrivate(), rows(0, 1))
    ledger.charge(NonPrivate(), rows(0))
    record = ledger.statement().to_dict()
    assert list(record) == KEYS
    assert record == {
        **dict.fromkeys(KEYS, "inf"),
        "releases_per_row": 2,
        "delta": 0.0,
        "assumption": "no protection",
    }
    text = json.dumps(record, allow_nan=False)
    assert json.loads(text) == record


def test_finite_figures_stay_numbers():
    statement = Statement(1.0, 2.0, 0.5, 3, 6.0, 1.5, 1.5, 0.0, "test")
    assert list(statement.to_dict().values()) == [1.0, 2.0, 0.5, 3, 6.0, 1.5, 1.5, 0.0, "test"]
