"""The matched filter."""

from __future__ import annotations

import numpy as np

from taciturn.attacks import GradientDirectionAttack, gradients
from taciturn.audit import judge_guess as judge
from tests.attacks.evidence import known_run


def test_alone_in_its_batch_a_row_is_told_for_sure():
    view, truth = known_run(batch_size=1, epochs=1, learning_rate=0.001)
    assert judge("", GradientDirectionAttack().infer(view), truth).accuracy == 1.0


def test_larger_batches_hide_more():
    areas = [
        judge("", GradientDirectionAttack().infer(view), truth).auc
        for view, truth in (
            known_run(batch_size=size, epochs=3, permute_labels=True) for size in (4, 16, 128)
        )
    ]
    assert areas[0] > areas[1] > areas[2]


def test_the_score_is_the_sum_of_products_over_the_length():
    view, _ = known_run(dataset="breast-cancer", epochs=10)
    values, row = view.features.values, 17
    bits = view.agreement.feature_bits + view.agreement.residue_bits
    parts = [
        values[row] @ (seen.gradient / 2.0**bits) for seen in gradients(view) if row in seen.rows
    ]
    assert len(parts) == 10
    score = GradientDirectionAttack().infer(view).scores[row]
    np.testing.assert_allclose(score, sum(parts) / np.linalg.norm(values[row]))
