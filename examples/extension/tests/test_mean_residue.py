"""The attack finds labels where there is hardly any noise, and is at chance on shuffled ones."""

from __future__ import annotations

import taciturn


def figure(name: str, **options: bool) -> float:
    """A figure of the attack on a training with hardly any noise."""
    run = taciturn.audit(
        dataset="breast-cancer", mechanism="add", epsilon=1000.0, seed=1, canary=False, **options
    )
    return float(run.attack("mean-residue")[name])


def test_it_finds_the_labels_where_there_is_hardly_any_noise():
    assert figure("accuracy") > 0.95


def test_it_is_at_chance_against_labels_that_are_shuffled_after_the_run():
    # Six standard errors of an AUC of one half with 455 rows.
    assert abs(figure("auc", shuffle_truth=True) - 0.5) < 0.17
