"""A budget and a ledger that says infinite do not go together."""

from __future__ import annotations

import math
from typing import Any

import pytest

import taciturn

OPTIONS: dict[str, Any] = {
    "dataset": "breast-cancer",
    "mechanism": "add",
    "epsilon": 1.0,
    "epochs": 2,
    "seed": 1,
    "budget": 1.0,
}


@pytest.mark.parametrize(
    ("columns", "update"),
    [
        ("all", "released"),
        ("half", "released"),
        ("all", "true"),
        ("half", "true"),
    ],
)
def test_with_a_budget_the_total_never_exceeds_it(columns, update):
    try:
        record = taciturn.train(**OPTIONS, alice_columns=columns, bob_update=update).to_dict()
    except taciturn.errors.BudgetExceeded:
        assert (columns, update) == ("half", "true")
        return
    total = record["ledger"]["label_epsilon_total"]
    assert (math.inf if total == "inf" else total) <= OPTIONS["budget"]
