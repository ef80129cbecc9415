"""The forecast against the run it forecasts."""

from __future__ import annotations

from typing import Any

import pytest

import taciturn

RUNS: dict[str, dict[str, Any]] = {
    "none-bfv": {"mechanism": "none", "scheme": "bfv"},
    "none-clear": {"mechanism": "none", "scheme": "clear"},
    "add": {"mechanism": "add", "epsilon": 1.0},
    "add-continuous": {"mechanism": "add", "epsilon": 1.0, "noise": "continuous"},
    "mult": {"mechanism": "mult", "epsilon": 1.0},
    "hybrid-bfv": {"mechanism": "hybrid", "scheme": "bfv"},
}


@pytest.mark.parametrize("name", RUNS)
def test_the_forecast_of_bytes_is_near_the_truth(name):
    options = {"dataset": "breast-cancer", "epochs": 1, **RUNS[name]}
    forecast = taciturn.estimate(**options)
    record = taciturn.train(**options, seed=1).to_dict()
    # Short frames have more head than body: the forecast is coarser there.
    near = 0.1 if RUNS[name]["mechanism"] == "none" else 0.35
    assert forecast.iterations == record["iterations"]
    assert forecast.bytes_to_alice == pytest.approx(record["bytes_to_alice"], rel=near)
    assert forecast.bytes_to_bob == pytest.approx(record["bytes_to_bob"], rel=near)


def test_the_forecast_of_seconds_grows_with_the_epochs():
    one, ten = (
        taciturn.estimate(dataset="breast-cancer", mechanism="none", scheme="bfv", epochs=epochs)
        for epochs in (1, 10)
    )
    assert ten.iterations == 10 * one.iterations
    # A stopwatch on a busy machine: only the order is asserted.
    assert ten.seconds > 2 * one.seconds > 0
