"""The benchmarks run, measure what they say, and never with a wrong product."""

from __future__ import annotations

import importlib.util
from dataclasses import asdict

import pytest

from taciturn.errors import ConfigError
from taciturn_paper import encryption, profile, throughput
from tests.expected import refused

TINY = encryption.Shape("tiny", 4, 3)


@pytest.mark.slow  # a second, and others show the same on less
def test_a_shape_is_measured_for_each_of_our_schemes():
    messages: list[str] = []
    rows = encryption.measure(TINY, encryption.contenders(()), 2, messages.append)
    assert [(row.scheme, row.bits) for row in rows] == list(encryption.OURS)
    assert all(row.max_error == 0 for row in rows)
    assert all(row.ms > 0 and row.repeats == 2 for row in rows)
    assert all(row.times_phe is None for row in rows)
    assert len(messages) == 3 * len(rows)


def test_the_rows_have_the_keys_of_the_contract():
    (row, *_) = encryption.measure(TINY, encryption.contenders(())[:1], 1, lambda message: None)
    keys = "shape rows columns scheme bits ms ms_ahead times_phe bytes_up bytes_down max_error"
    assert asdict(row).keys() >= set(keys.split())


@pytest.mark.parametrize("rival", ["phe", "heu"])
def test_rivals_compute_the_same_products(rival):
    if importlib.util.find_spec(rival) is None:
        pytest.skip(f"{rival} is not installed: make bench installs it")
    entrants = [*encryption.contenders(())[:1], *encryption.contenders((rival,))[3:]]
    rows = encryption.measure(TINY, entrants, 1, lambda message: None)
    assert all(row.max_error == 0 for row in rows)
    if rival == "phe":
        assert rows[0].times_phe == pytest.approx(rows[1].ms / rows[0].ms)


def test_an_unknown_rival_is_refused():
    with refused(ConfigError, names="fhe"):
        encryption.contenders(("fhe",))


def test_the_profile_names_seals_share_and_ours():
    shares = profile.profile(rows=4, columns=3, laps=3)
    assert shares[-1].name == "ours"
    assert {"load", "decrypt", "multiply_plain"} <= {share.name for share in shares}
    assert all(share.ms >= 0 for share in shares)


def test_throughput_computes_the_centralised_weights():
    measured = throughput.measure(rows=2000, columns=3, batch_size=100, repeats=1)
    assert measured.max_weight_difference < 1e-5
    assert measured.times_numpy > 0


def test_a_training_is_measured_with_its_share_of_encryption():
    measured = encryption.measure_training("breast-cancer")
    assert measured.iterations_measured == measured.iterations_per_epoch == 29
    assert 0.5 < measured.encryption_share < 1
    assert measured.training_seconds == pytest.approx(measured.epoch_seconds * 10)
