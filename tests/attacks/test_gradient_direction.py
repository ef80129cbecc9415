"""The matched filter."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.attacks import GradientDirectionAttack, gradients
from taciturn.audit import judge_guess as judge
from tests.attacks.evidence import DATASETS, applies, known_run, sits_at_chance
from tests.seldom import seldom


@pytest.mark.parametrize("dataset", seldom(DATASETS, always=DATASETS[:1]))
@pytest.mark.parametrize("permute_labels", [False, True])
def test_tells_most_labels_of_an_unprotected_run(dataset, permute_labels):
    view, truth = known_run(dataset=dataset, permute_labels=permute_labels, epochs=10)
    score = judge("", GradientDirectionAttack().infer(view), truth)
    assert score.accuracy > 0.85
    assert score.auc > 0.93
    assert score.decided == 0.0


@pytest.mark.parametrize("dataset", seldom(DATASETS, always=DATASETS[:1]))
def test_sits_at_chance_against_labels_shuffled_after_the_run(dataset):
    """False alarm: about 2e-5 for each."""
    view, truth = known_run(dataset=dataset, epochs=10)
    assert sits_at_chance(GradientDirectionAttack().infer(view), truth)


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


@pytest.mark.parametrize("dataset", seldom(DATASETS, always=DATASETS[:1]))
def test_runs_with_columns_at_bob(dataset):
    view, truth = known_run(dataset=dataset, epochs=10, alice_columns="half", intercept=True)
    assert judge("", GradientDirectionAttack().infer(view), truth).auc > 0.85


@pytest.mark.slow  # a second, and others show the same on less
def test_applies_to_hidden_batches_and_not_to_residues():
    attack = GradientDirectionAttack()
    view, truth = known_run(mechanism="hybrid", epochs=10)
    assert applies(attack, view)
    assert judge("", attack.infer(view), truth).auc > 0.85
    assert not applies(attack, known_run(mechanism="add", epsilon=1.0, epochs=1)[0])


def test_progress_runs_from_nothing_to_everything():
    reports: list[tuple[int, int]] = []
    view, _ = known_run(dataset="breast-cancer", epochs=10)
    GradientDirectionAttack().infer(view, lambda done, total: reports.append((done, total)))
    assert reports[0] == (0, 290)
    assert reports[-1] == (290, 290)
