"""Parties that do not keep to the protocol get what the check tells the other side, and no less.

``tests/deviating.py`` plays them against the other side's own program.
"""

from __future__ import annotations

from typing import Any

import pytest

from taciturn import check


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mechanism", ["none", "sealed", "label-rr", "add"])
def test_a_check_tells_alice_in_numbers(mechanism):
    options: dict[str, Any] = {"epsilon": 1.0} if mechanism in ("add", "label-rr") else {}
    options |= {"passes": 6} if mechanism == "sealed" else {"epochs": 6}
    result = check(
        dataset="breast-cancer", alice_columns="half", mechanism=mechanism, **options
    ).to_dict()
    columns = result["columns"]
    assert columns["scores_per_row"] == (6 if mechanism == "sealed" else 7)
    assert columns["opened_values"] > 6 * 400
    assert (columns["columns_per_score"] > 1) == (mechanism == "sealed")
    assert str(columns["scores_per_row"]) in columns["warning"]
