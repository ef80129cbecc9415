"""Two or three possible residues: labels come back beyond where equations alone give them."""

from __future__ import annotations

import pytest

from tacit.attacks.exact_solve import ExactSolveAttack
from tacit.attacks.known_scores import KnownScoresAttack
from tacit.audit.judge import judge
from tests.attacks.evidence import DATASETS, applies, known_run, sits_at_chance


def quick() -> KnownScoresAttack:
    return KnownScoresAttack(seconds=0.5, budget=6.0)


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("permute_labels", [False, True])
def test_recovers_the_labels_of_the_papers_hybrid(dataset, permute_labels):
    view, truth = known_run(
        dataset=dataset, mechanism="hybrid", epochs=3, permute_labels=permute_labels
    )
    found = judge("", quick().infer(view), truth)
    assert found.accuracy > 0.95
    if found.decided_correct is not None:
        assert found.decided_correct == 1.0


@pytest.mark.parametrize("batch_size", [40, 55])
def test_one_epoch_suffices_where_rows_are_fewer_than_twice_the_columns(batch_size):
    """Thirty columns: the equations alone leave 10 and 25 of a batch's rows open."""
    view, truth = known_run(batch_size=batch_size, epochs=1, permute_labels=True)
    assert judge("", ExactSolveAttack().infer(view), truth).decided < 0.5
    found = judge("", quick().infer(view), truth)
    assert found.accuracy > 0.95
    assert found.decided > 0.3
    assert found.decided_correct == 1.0


@pytest.mark.parametrize("dataset", DATASETS)
def test_sits_at_chance_against_labels_shuffled_after_the_run(dataset):
    view, truth = known_run(dataset=dataset, mechanism="hybrid", epochs=3)
    assert sits_at_chance(quick().infer(view), truth)


def test_where_bob_has_columns_scores_are_estimated_and_it_says_so():
    view, truth = known_run(alice_columns="half", intercept=True, epochs=3, permute_labels=True)
    guess = quick().infer(view)
    assert "scores are estimated" in guess.remark
    found = judge("", guess, truth)
    assert found.accuracy > 0.8
    # The first iteration, all weights zero, is exact: what it proves is right.
    if found.decided_correct is not None:
        assert found.decided_correct == 1.0


def test_its_budget_is_kept():
    view, _ = known_run(mechanism="hybrid", epochs=3)
    guess = KnownScoresAttack(most_batches=20, seconds=0.1, budget=0.0).infer(view)
    assert "heard 20 of" in guess.remark
    assert guess.signal.any()


def test_it_needs_gradients():
    assert not applies(quick(), known_run(mechanism="add", epsilon=1.0, epochs=1)[0])
