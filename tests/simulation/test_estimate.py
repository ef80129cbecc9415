"""The forecast against the run it forecasts."""

from __future__ import annotations

import pytest

import tacit


@pytest.mark.parametrize("scheme", ["bfv", "clear"])
def test_the_forecast_of_bytes_is_near_the_truth(scheme):
    options = {"dataset": "breast-cancer", "mechanism": "none", "scheme": scheme, "epochs": 1}
    forecast = tacit.estimate(**options)
    record = tacit.train(**options, seed=1).to_dict()
    assert forecast.iterations == record["iterations"]
    assert forecast.bytes_to_alice == pytest.approx(record["bytes_to_alice"], rel=0.1)
    assert forecast.bytes_to_bob == pytest.approx(record["bytes_to_bob"], rel=0.1)


def test_the_forecast_of_seconds_grows_with_the_epochs():
    one, ten = (
        tacit.estimate(dataset="breast-cancer", mechanism="none", scheme="bfv", epochs=epochs)
        for epochs in (1, 10)
    )
    assert ten.iterations == 10 * one.iterations
    # A stopwatch on a busy machine: only the order is asserted.
    assert ten.seconds > 2 * one.seconds > 0
