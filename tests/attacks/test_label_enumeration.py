"""Every labelling of a few clusters."""

from __future__ import annotations

import itertools

import numpy as np

from taciturn.attacks import CLUSTERS, LabelEnumerationAttack, clusters

# private: its ties are broken in a way that no public result shows
from taciturn.attacks.label_enumeration import _preferences
from taciturn.audit import judge_guess as judge
from taciturn.rng import KeyedEntropy
from tests.attacks.evidence import known_run


def test_tells_labels_that_go_with_clusters_also_of_large_batches():
    view, truth = known_run(batch_size=128, epochs=1)
    assert judge("", LabelEnumerationAttack().infer(view), truth).auc > 0.9


def test_says_little_where_labels_have_nothing_to_do_with_the_rows():
    view, truth = known_run(permute_labels=True, epochs=1)
    assert 0.4 < judge("", LabelEnumerationAttack().infer(view), truth).auc < 0.7


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
