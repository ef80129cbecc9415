"""Several Alices and one Bob: the model of the joined table, and scores that only add up."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from taciturn.crypto.registry import scheme
from taciturn.numerics.likelihood import of_labels, weighted_likelihood
from taciturn.numerics.whole_table import optimum
from taciturn.protocol.messages import EpochScores, MaskedScores, NoisyResidues, PartialScores
from taciturn.protocol.outcome import BobTrained
from tests.protocol.parties import Tables, agreement, centralised
from tests.protocol.stars import Star, StarTalk, converse, whole_session

TABLES = Tables.make(rows=40, alice=9, bob=2, intercept=True)
L2 = 0.02
NEWTON = {"solver": "newton", "epochs": 12, "l2": L2, "batch_size": 40, "learning_rate": 1.0}
ALICES = [1, 2, 4, 8]
# Of the digits of features, sums of which make the weights; one Alice's are no better.
SEALED, REVEALED, WHOLE = 1e-3, 1e-5, 2e-3


@pytest.mark.parametrize("alices", ALICES)
@pytest.mark.parametrize(("mechanism", "tolerance"), [("none", REVEALED), ("sealed", SEALED)])
def test_the_model_of_batches_is_that_of_centralised_training(mechanism, tolerance, alices):
    star = Star.of(TABLES, agreement(mechanism=mechanism, epochs=3, l2=0.01), alices)
    talk = converse(star)
    oracle = centralised(TABLES, star.terms.agreement, talk.batches)
    assert np.abs(talk.weights - oracle).max() < tolerance


@pytest.mark.parametrize("alices", ALICES)
@pytest.mark.parametrize("mechanism", ["none", "sealed"])
def test_the_model_of_whole_tables_is_the_optimum(mechanism, alices):
    talk = converse(Star.of(TABLES, agreement(mechanism=mechanism, **NEWTON), alices))
    likelihood = of_labels(TABLES.labels.values, partial(weighted_likelihood, class_weight=None))
    best = optimum(TABLES.joined, likelihood, L2, TABLES.free).weights
    assert np.abs(talk.weights - best).max() < WHOLE


@pytest.mark.parametrize("settings", [{}, NEWTON], ids=["sgd", "newton"])
@pytest.mark.parametrize("name", ["bfv", "paillier"])
def test_with_real_encryption_it_is_the_same_model(name, settings):
    if name == "paillier" and settings:
        pytest.skip("paillier has no newton")
    stars = [
        Star.of(
            TABLES,
            agreement(**{"mechanism": "sealed", "scheme": used, "key_bits": bits, **settings}),
            3,
            scheme(used),
        )
        for used, bits in ((name, scheme(name).key_bits[-1]), ("clear", 0))
    ]
    one, other = (converse(star) for star in stars)
    assert one.weights.tobytes() == other.weights.tobytes()


def test_residues_reach_all_alices_alike():
    settings = {"mechanism": "add", "epsilon": 1.0, "noise": "discrete"}
    talk = converse(Star.of(TABLES, agreement(**settings), 3))
    first, *others = (
        [m.residues.value.tolist() for m in talk.said(link, "bob") if isinstance(m, NoisyResidues)]
        for link in talk.alices
    )
    assert first
    assert others == [first, first]


@pytest.mark.parametrize("mechanism", ["none", "sealed"])
@pytest.mark.parametrize("settings", [{}, NEWTON], ids=["sgd", "newton"])
@pytest.mark.parametrize("evaluate", ["end", "epoch"])
def test_a_whole_session_scores_held_out_rows_as_the_joined_model_does(
    mechanism, settings, evaluate
):
    held_out = Tables.make(rows=15, alice=9, bob=2, intercept=True, seed=8)
    agreed = agreement(
        **{"mechanism": mechanism, "held_out": 0.2, "evaluate": evaluate, **settings}
    )
    alices, bob = whole_session(Star.of(TABLES, agreed, 3), held_out)
    trained = {name: result.trained for name, result in alices.items()}
    assert isinstance(bob.trained, BobTrained)
    weights = StarTalk(trained, bob.trained, (), ()).weights
    assert bob.held_out_scores is not None
    # Of nine products of rounded columns, each with weights of size 1.
    assert np.abs(bob.held_out_scores - held_out.joined @ weights).max() < 9 * 2.0**-8


@pytest.mark.parametrize("settings", [{}, NEWTON], ids=["sgd", "newton"])
def test_no_score_of_one_of_several_alices_leaves_without_a_mask(settings):
    agreed = agreement(**{"mechanism": "none", "held_out": 0.2, "evaluate": "epoch", **settings})
    talk = converse(Star.of(TABLES, agreed, 3))
    for link in talk.alices:
        kinds = {type(message) for message in talk.said(link, "alice")}
        assert MaskedScores in kinds
        assert not kinds & {PartialScores, EpochScores}
