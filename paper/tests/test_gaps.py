"""The gaps to the optimum of tables for which nothing was tuned."""

from __future__ import annotations

import pytest

from taciturn_paper.gaps import AIM, MECHANISMS, Gap, cases, train


@pytest.mark.parametrize("name", ["one-hot, rare levels", "one column at Bob"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_model_ends_next_to_the_optimum(name, mechanism):
    ((_, alice, frame),) = cases([name])
    gap = Gap.from_outcome(train(frame, alice, mechanism))
    assert -1e-9 < gap.gap < AIM / 10
    assert gap.auc == pytest.approx(gap.best_auc, abs=1e-3)
    assert gap.probability < 0.01
