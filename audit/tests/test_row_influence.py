"""What the opened sums tell of a row to a Bob who knows all others, as the ledger states it."""

from __future__ import annotations

import pytest

from taciturn.privacy.row_noise import OPENING_ROWS
from taciturn_audit.row_influence import RowInfluence, measure_influence
from taciturn_paper.known_others import CHOSEN, HONEST, candidates, stated_bits


@pytest.mark.parametrize("kind", [*HONEST, *CHOSEN])
def test_a_row_moves_the_change_by_no_more_than_the_ledger_states(kind):
    influence = measure_influence(candidates(kind, OPENING_ROWS, 2, 28))
    assert 0 < influence.bits() <= stated_bits(kind, OPENING_ROWS, 28) < 0.35
    assert influence.bits(12) == pytest.approx(12 * influence.bits())
    assert influence.bits(12) <= stated_bits(kind, OPENING_ROWS, 28, trainings=12)


def test_with_few_passes_a_row_moves_it_further():
    kind = "plain"
    early, late = (
        measure_influence(candidates(kind, OPENING_ROWS, 2, passes)) for passes in (3, 28)
    )
    assert 100 * late.change < early.change
    assert early.bits() <= stated_bits("plain", OPENING_ROWS, 3)


def test_one_row_of_the_change_tells_a_bit_and_one_of_the_count_a_tenth():
    assert RowInfluence(OPENING_ROWS, 1.0, 0.0).bits() == 1.0
    assert RowInfluence(OPENING_ROWS, 0.0, 1.0).bits() == pytest.approx(0.087, abs=1e-3)
