"""The stability index: its formula, and the law that it has where nothing has changed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from taciturn.errors import ShapeError
from taciturn_risk.scorecard.bands import Bands
from taciturn_risk.scorecard.stability import stability


@given(st.lists(st.tuples(st.integers(1, 400), st.integers(1, 400)), min_size=2, max_size=12))
def test_index_and_test_are_those_of_their_formulas(pairs):
    reference, new = np.array(pairs).T
    result = stability(reference, new)
    before, after = reference / reference.sum(), new / new.sum()
    assert result.psi == pytest.approx(float(((after - before) * np.log(after / before)).sum()))
    known = chi2_contingency(np.stack([reference, new]), correction=False)
    assert result.chi_square == pytest.approx(known.statistic)
    assert result.degrees == known.dof
    assert result.p_value == pytest.approx(known.pvalue)
    assert stability(new, reference).psi == pytest.approx(result.psi)
    assert sum(band.summand for band in result.bands) == pytest.approx(result.psi)


def test_chance_alone_gives_what_is_said():
    """Few new rows inflate the index: on average (B-1)(1/n + 1/m), beyond critical once in 20."""
    entropy = np.random.default_rng(5)
    reference = entropy.normal(size=2000)
    bands = Bands.from_quantiles(reference, 10)
    held = bands.counts(reference)
    results = [stability(held, bands.counts(entropy.normal(size=150))) for _ in range(600)]
    mean = np.mean([one.psi for one in results])
    assert mean == pytest.approx(results[0].expected, rel=0.15)
    assert 12 <= sum(one.psi > one.critical for one in results) <= 65
    assert 12 <= sum(one.p_value < 0.05 for one in results) <= 55


@pytest.mark.parametrize(("moved", "rule"), [(0.0, "stable"), (0.4, "moved"), (1.0, "shifted")])
def test_the_rule_of_thumb(moved, rule):
    entropy = np.random.default_rng(2)
    reference, new = entropy.normal(size=20_000), entropy.normal(moved, size=20_000)
    bands = Bands.from_quantiles(reference, 10)
    result = stability(bands.counts(reference), bands.counts(new))
    assert result.rule == rule
    assert (result.p_value < 0.001) == (moved > 0)


def test_an_empty_band_counts_half_a_row():
    result = stability(np.array([10, 10]), np.array([20, 0]))
    after = np.array([20, 0.5]) / 20.5
    assert result.psi == pytest.approx(float(((after - 0.5) * np.log(after / 0.5)).sum()))
    assert stability(np.array([5, 0]), np.array([7, 0])).degrees == 0


@pytest.mark.parametrize("pair", [([1, 2], [1]), ([0, 0], [1, 1]), ([1, 1], [0, 0])])
def test_what_cannot_be_compared_is_refused(pair):
    with pytest.raises(ShapeError):
        stability(*(np.array(one) for one in pair))
