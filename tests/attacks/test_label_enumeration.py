"""Every labelling of a few clusters."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from taciturn.attacks import CLUSTERS, LabelEnumerationAttack, clusters

# private: its ties are broken in a way that no public result shows
from taciturn.attacks.label_enumeration import _preferences
from taciturn.audit import judge_guess as judge
from taciturn.rng import KeyedEntropy
from tests.attacks.evidence import DATASETS, applies, known_run, sits_at_chance
from tests.seldom import seldom


@pytest.mark.parametrize("batch_size", [16, 128])
def test_tells_labels_that_go_with_clusters_also_of_large_batches(batch_size):
    view, truth = known_run(batch_size=batch_size, epochs=1)
    score = judge("", LabelEnumerationAttack().infer(view), truth)
    assert score.accuracy > 0.85
    assert score.auc > 0.9
    assert score.decided == 0.0


def test_says_little_where_labels_have_nothing_to_do_with_the_rows():
    view, truth = known_run(permute_labels=True, epochs=1)
    assert 0.4 < judge("", LabelEnumerationAttack().infer(view), truth).auc < 0.7


@pytest.mark.parametrize("dataset", seldom(DATASETS, always=DATASETS[:1]))
def test_sits_at_chance_against_labels_shuffled_after_the_run(dataset):
    """False alarm: about 2e-5 for each."""
    view, truth = known_run(dataset=dataset, epochs=10)
    assert sits_at_chance(LabelEnumerationAttack().infer(view), truth)


def test_runs_with_columns_at_bob():
    view, truth = known_run(epochs=1, alice_columns="half", intercept=True)
    assert judge("", LabelEnumerationAttack().infer(view), truth).auc > 0.8


def test_applies_to_gradients_and_not_to_residues():
    attack = LabelEnumerationAttack()
    assert applies(attack, known_run(mechanism="hybrid", epochs=1)[0])
    assert not applies(attack, known_run(mechanism="add", epsilon=1.0, epochs=1)[0])


def test_the_preferences_are_those_of_trying_every_mapping():
    coins = np.random.default_rng(1)
    vectors = coins.normal(size=(CLUSTERS + 2, 40))
    cosines = {
        mapping: _cosine(vectors[0] + np.array(mapping) @ vectors[1:-1], vectors[-1])
        for mapping in itertools.product((0, 1), repeat=CLUSTERS)
    }
    # The length of what was seen is the same for all mappings.
    length = np.linalg.norm(vectors[-1])
    expected = [
        max(c for m, c in cosines.items() if m[at])
        - max(c for m, c in cosines.items() if not m[at])
        for at in range(CLUSTERS)
    ]
    np.testing.assert_allclose(_preferences(vectors @ vectors.T) / length, expected, atol=1e-12)


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_fewer_rows_than_clusters_have_a_cluster_each():
    rows = np.array([[0.0], [5.0], [9.0]])
    assert len(set(clusters(rows, CLUSTERS, KeyedEntropy.from_seed(1)).tolist())) == 3
