"""The table of openings: noise in rows, and bounds on what it leaves of one row."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.privacy.openings import OPENINGS, ScoreNoise, noise_of
from taciturn.privacy.row_noise import OPENING_ROWS as ROWS
from taciturn.privacy.row_noise import row_noise


@pytest.mark.parametrize(("rows", "width"), [(ROWS, 1.0), (16_384, 1.0), (60_000, 60_000 / 2**14)])
def test_noise_on_the_change_is_one_row_at_least(rows, width):
    noise = row_noise("change of the loss", rows)
    assert (noise.shape, noise.width) == ("uniform", width)


@pytest.mark.parametrize("kind", ["count of scores", "study sum"])
@pytest.mark.parametrize("rows", [1, ROWS, 1_000_000])
def test_counts_and_sums_have_noise_of_sixteen_rows(kind, rows):
    assert row_noise(kind, rows).width == 16


def information(shape: str, moved: float, width: float) -> float:
    """Bits about a uniform X in [0, moved], by sums over a fine grid."""
    step = 0.01 * min(moved, width)
    shifts = np.arange(step / 2, moved, step)
    seen = np.arange(-12 * width, moved + 12 * width, step)
    away = seen[:, None] - shifts
    if shape == "uniform":
        density = ((away >= 0) & (away < width)) / width
    else:
        density = np.exp(-np.abs(away) / width) / (2 * width)
    ratios = density / np.maximum(density.mean(axis=1), 1e-300)[:, None]
    bits = np.log2(ratios, where=density > 0, out=np.zeros_like(away))
    return float((density * bits).mean(axis=1).sum() * step)


@pytest.mark.parametrize("kind", ["change of the loss", "study sum"])
@pytest.mark.parametrize("moved", [0.5, 2.0, 8.0])
def test_bits_bound_what_a_sum_tells(kind, moved):
    noise = row_noise(kind, ROWS)
    bits = information(noise.shape, moved, noise.width)
    assert 0 < bits <= noise.bits(moved)
    assert noise.bits(moved, openings=3) == pytest.approx(3 * noise.bits(moved))


def test_distances_of_scores_add_up():
    noise = noise_of("held-out score", ROWS)
    assert isinstance(noise, ScoreNoise)
    assert noise.summed_distance(30_000) == pytest.approx(30_000 * noise.distance)
    assert noise.summed_distance(2**30) == 1


def test_only_bob_receives_what_depends_on_alice_s_columns():
    assert {opening.receiver for opening in OPENINGS.values() if opening.on_columns} == {"bob"}
