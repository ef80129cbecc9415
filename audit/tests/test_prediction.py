"""What check says of predictions is so: shown by running them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taciturn
from taciturn.data.tables import FeatureTable
from taciturn.engine.pair import run_pair
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.privacy.solvers import resolved
from taciturn.protocol.agree import agree
from taciturn.protocol.alice.scoring import RevealedResponder, answer_rows
from taciturn.protocol.alice.scoring_sealed import SealedResponder
from taciturn.protocol.bob.scoring import RevealedRequester, ask_rows, score_requester
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.table_scales import table_scales
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from tests.protocol.parties import NOISE, NOISE_KEY

COLUMNS = 5


@pytest.mark.parametrize("mechanism", ["none", "add", "sealed"])
def test_check_says_what_predictions_tell_each_side(mechanism):
    options: dict[str, Any] = {"epsilon": 1.0} if mechanism == "add" else {}
    options |= {"passes": 1} if mechanism == "sealed" else {"epochs": 1}
    record = taciturn.check(columns=7, rows=200, mechanism=mechanism, **options).to_dict()
    notes = record["prediction"]
    assert set(notes) == {"bob", "alice", "repeated"}
    assert all(notes.values())
    # As many models as columns; of shared weights one more vector, which Bob may not send.
    assert ("7" in notes["repeated"], "8" in notes["repeated"]) == (True, mechanism == "sealed")


def tables(rows: int = 4) -> tuple[FeatureTable, FeatureTable]:
    entropy = KeyedEntropy.from_seed(5)
    hers = FeatureTable.from_data(entropy.uniform((rows, COLUMNS)) * 4 - 2)
    return hers, FeatureTable.from_data(entropy.fork("bob").uniform((rows, 2)))


def test_as_many_models_as_columns_give_bob_the_rows_where_he_knows_their_weights():
    hers, his = tables()
    entropy = KeyedEntropy.from_seed(6)
    weights = entropy.uniform((COLUMNS, COLUMNS)) - 0.5
    bob_weights = np.array([0.3, -0.2])
    numbers = []
    for alice_weights in weights:
        _, scored = run_pair(
            answer_rows(RevealedResponder(alice_weights, NOISE_KEY, FixedPoint(bits=20)), hers),
            ask_rows(RevealedRequester(bob_weights), his),
        )
        numbers.append(scored.scores - his.values @ bob_weights)
    # One model gives w_A x_A to its scale; as many as there are columns give x_A.
    assert np.allclose(numbers[0], hers.values @ weights[0], atol=NOISE + 2.0**-20)
    error = NOISE * np.abs(np.linalg.inv(weights)).sum(axis=1).max() + 1e-4
    assert np.allclose(np.linalg.solve(weights, np.array(numbers)).T, hers.values, atol=error)
    assert error < 0.02


def sealed_scores(seed: int, entry: int | None = None) -> tuple[Any, Any]:
    """Scores from shares; with ``entry`` Bob adds one to that weight, which he may not do."""
    hers, his = tables()
    settings = resolved(Settings(mechanism="sealed", scheme="clear"))
    terms: Terms = agree(settings, COLUMNS, 100)
    scales = table_scales(terms.agreement, 100, COLUMNS, 2)
    stream = KeyedEntropy.from_seed(9)
    ring = scales.ring(2, COLUMNS)
    wanted = np.rint((stream.uniform((COLUMNS,)) - 0.5) * 2.0**scales.weight_bits).astype(np.int64)
    v = ring.draw(COLUMNS, stream.fork("v"))
    u = ring.centred(wanted - v)
    bob_weights, entropy = np.zeros(2), KeyedEntropy.from_seed(seed)
    if entry is not None:
        v = ring.centred(v + (np.arange(COLUMNS) == entry) * (1 << scales.weight_bits))
    _, scored = run_pair(
        answer_rows(
            SealedResponder(WeightShare(u, scales), NOISE_KEY, terms, entropy.fork("alice")), hers
        ),
        ask_rows(
            score_requester(bob_weights, WeightShare(v, scales), None, terms, entropy.fork("bob")),
            his,
        ),
    )
    return scored.scores, hers.values @ scales.weights(u + v)


def test_a_bob_who_sends_other_vectors_has_the_columns_from_one_sealed_model():
    """To the grid of the features, 2^-9 or finer here; Alice sees ciphertexts and cannot tell.

    Her noise is the same in all answers for a row: it is none in their differences.
    """
    base, _ = sealed_scores(seed=1)
    differences = [sealed_scores(seed=2 + entry, entry=entry)[0] - base for entry in range(COLUMNS)]
    assert np.allclose(np.array(differences).T, tables()[0].values, atol=2.0**-9)
