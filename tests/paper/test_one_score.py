"""One exact score determines two columns; the noise leaves one column open."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn_paper.one_score import Target, by_lattice, by_mean, recovered, smallest


def test_the_shortest_solution_is_found():
    pytest.importorskip("flint")
    weights, row = [68_719_476_731, -50_331_653_111, 31_234_567_891], [70_001, -32_767, 5]
    score = sum(weight * value for weight, value in zip(weights, row, strict=True))
    assert smallest(weights, score) == row
    assert smallest([6, 10], 7) == [0, 0]


@pytest.mark.parametrize(("columns", "least", "most"), [(1, 1.0, 1.0), (2, 0.0, 0.3)])
def test_noise_hides_two_columns_and_not_one(columns, least, most):
    pytest.importorskip("flint")
    target = Target.of(columns, 1, integers=False)
    assert np.abs(target.noisy - target.exact).max() * target.unit <= 2.0**-12
    assert recovered(target, by_lattice(target, target.exact)) > 0.99
    assert least <= recovered(target, by_mean(target, target.noisy)) <= most
