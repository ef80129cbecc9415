"""Newton with shared scores: near the optimum, uniform shares, predictions, and what is refused.

What every conversation promises is in ``test_conversations.py``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from taciturn.crypto import cluster
from taciturn.crypto.base import Scheme, TableSize
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.bfv.tables import TileRows
from taciturn.crypto.bfv.workers import LocalEngine
from taciturn.crypto.clear import ClearScheme
from taciturn.engine.pair import run_pair
from taciturn.errors import ConfigError, CryptoError, RemoteProtocolError
from taciturn.numerics.likelihood import label_likelihood, weighted_likelihood
from taciturn.numerics.optimum import optimum, penalised_loss
from taciturn.numerics.whitening import centring_offset
from taciturn.numerics.whole_table import fit_on_schedule
from taciturn.protocol.bob.train_table_mutual import SigmoidRequester
from taciturn.protocol.events import PartDone
from taciturn.protocol.messages import (
    GivenShare,
    Hello,
    KeyOffer,
    RevealedShare,
    SharedProduct,
    SharedVector,
)
from taciturn.protocol.mutual import Columns
from taciturn.protocol.mutual_table import TablePlan
from taciturn.protocol.observations import Observation, ShareRevealed
from taciturn.protocol.outcome import Trained, WeightShare
from taciturn.protocol.scales import Scales
from taciturn.protocol.terms import Terms
from taciturn.settings.agreement import Agreement
from tests.expected import refused
from tests.modules import module_of
from tests.protocol.hostile import altered, only
from tests.protocol.parties import ALICE, Tables
from tests.protocol.stars import Star, StarTalk, converse, shared
from tests.protocol.test_conversations import SPLITS, agreed
from tests.waiting import wait_until

CLEAR, BFV = ClearScheme(), BfvScheme()


def newton(scheme: Scheme = CLEAR, **changes: Any) -> Agreement:
    return agreed("mutual-table", scheme, **changes)


def talk(tables: Tables, terms: Agreement, scheme: Scheme = CLEAR) -> StarTalk:
    return converse(Star.of(tables, terms, 1, scheme))


def pair(end: Trained) -> tuple[WeightShare, WeightShare]:
    assert end.bob_share is not None
    return shared(end), end.bob_share


@pytest.mark.parametrize("split", ["all-at-alice", "halves-and-intercept"])
@pytest.mark.sampled(1)
def test_rounding_aside_it_is_the_fit_in_clear_and_near_scikit_learn_s_optimum(split):
    from sklearn.linear_model import LogisticRegression

    tables = SPLITS[split]
    ours = talk(tables, newton(sigmoid_error=1e-6, epochs=120)).weights
    likelihood = label_likelihood(
        tables.labels.values, partial(weighted_likelihood, class_weight=None)
    )
    fit = fit_on_schedule(
        tables.alice.values, tables.bob.values, likelihood, 0.05, tables.free, 120
    )
    assert np.abs(ours - np.concatenate([fit.alice, fit.own])).max() < 1e-3
    best = optimum(tables.joined, likelihood, 0.05, tables.free)
    loss = penalised_loss(tables.joined @ ours, likelihood, ours, 0.05, tables.free)
    assert 0 <= loss - best.loss < 1e-6
    own = tables.joined[:, : tables.joined.shape[1] - tables.free]
    scikit = LogisticRegression(
        C=1 / (0.05 * tables.labels.rows), fit_intercept=bool(tables.free), tol=1e-10
    ).fit(own, tables.labels.values)
    found_by_scikit = np.append(scikit.coef_, scikit.intercept_[: tables.free])
    assert np.abs(ours - found_by_scikit).max() < 5e-3


def test_what_bob_ends_with_is_uniform():
    """His shares, over many coins of Alice's, fill the ring evenly."""
    tables = Tables.make(alice=8, bob=8)
    star, shares = Star.of(tables, newton(epochs=1), 1), list[np.ndarray]()
    for seed in range(15):
        alice = star.alice_program(entropy=ALICE.fork(str(seed)))
        _, bob = run_pair(alice, star.bob_program())
        shares += [part.values for part in pair(bob)]
    counts = np.bincount((np.concatenate(shares) >> np.int64(59 - 3)) + 4, minlength=8)
    expected = counts.sum() / 8
    # Chi-squared with 7 degrees of freedom: above 30 once in 10,000 times.
    assert ((counts - expected) ** 2 / expected).sum() < 30


@pytest.mark.sampled(1)
def test_alice_has_a_new_key_for_each_vector():
    """A crafted answer reads coefficients of one vector's key: test_tables_rounded.py."""
    tables, passes = SPLITS["halves-and-intercept"], 3
    spoken = talk(tables, newton(BFV, epochs=passes), BFV)
    sent = [
        message
        for message in spoken.said_by("alice")
        if isinstance(message, KeyOffer | SharedVector)
    ]
    # The first step has no scores; each other has a vector for scores, and one for weights.
    vectors = 1 + 2 * (passes - 1)
    assert [type(message) for message in sent] == [KeyOffer, SharedVector] * vectors
    keys = {message.public_key for message in sent if isinstance(message, KeyOffer)}
    assert len(keys) == vectors


def test_a_bob_who_chooses_the_residues_makes_alice_s_weights_one_training_row(monkeypatch):
    """Every score that is opened afterwards is that row's inner product with the scored one."""
    tables, chosen = Tables.make(rows=140, alice=8, bob=2, intercept=True), 77
    honest = SigmoidRequester.residues

    def residues(self: Any, number: int, scores: Any, halves: Any) -> Any:
        """Shares of zeros: phases times zero, and no labels; in the last step one row's is not."""
        shares, losses = yield from honest(self, number, scores, np.zeros_like(halves))
        if number == self.plan.steps - 1:
            shares[chosen] += int(70 * self.plan.sigmoid.step)
        return self.ring.centred(shares), losses

    monkeypatch.setattr(SigmoidRequester, "residues", residues)
    ends = talk(tables, newton(epochs=3))
    hers, his = shared(ends.alice), shared(ends.bob)
    assert hers.whitening is not None
    weights = hers.scales.weights(hers.values + his.values)
    row = hers.whitening.apply(tables.alice.values[[chosen]])[0]
    assert np.corrcoef(weights, row)[0, 1] > 0.9999


def test_each_side_s_weights_can_be_revealed_to_it():
    tables = SPLITS["halves-and-intercept"]
    quiet = talk(tables, newton())
    revealed = talk(tables, newton(reveal=True, reveal_bob=True))
    both = np.concatenate([revealed.alice.weights, revealed.bob.weights])
    scales = shared(quiet.alice).scales
    # To Bob's intercept Alice's means are missing, which stay hers.
    both[-1] += centring_offset(revealed.alice.weights, tables.alice.values.mean(axis=0))
    # Shares are rounded before they are revealed.
    assert both == pytest.approx(quiet.weights, abs=1e-5)
    assert not np.array_equal(both, quiet.weights)
    bits = scales.weight_bits - np.log2(scales.factor) - 20
    his, hers = revealed.said_by("bob")[-1], revealed.said_by("alice")[-1]
    assert isinstance(his, RevealedShare)
    assert isinstance(hers, GivenShare)
    for said in (his.share.value, hers.share):
        assert not np.any(said % (1 << int(bits)))
    assert len(revealed.seen(ShareRevealed)) == 1
    assert not talk(tables, newton(reveal_bob=True)).seen(Observation)


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"l2": 0.0}, "l2"),
        ({"feature_bits": 8}, None),
        ({"evaluate": "epoch"}, "evaluate"),
        ({"score_range": 256.0, "sigmoid_error": 1e-6}, "score_range"),
    ],
)
def test_what_shares_cannot_give_is_refused_by_name(changes, setting):
    with refused(ConfigError, setting=setting):
        talk(SPLITS["all-at-alice"], newton(**changes))


def test_a_training_that_would_tell_too_much_or_be_too_far_off_is_refused():
    terms = Terms(newton(BFV, epochs=40), BFV)
    with refused(ConfigError, names=("4,000", "8,000,000")):
        many = Terms(newton(BFV, epochs=4_000), BFV)
        TablePlan.from_terms(many, 8_000_000, Columns(4, 4), Columns(0, 0))
    with refused(CryptoError):
        TablePlan.from_terms(terms, 1_000_000, Columns(50, 16), Columns(2, 2))
    plan = TablePlan.from_terms(terms, 40_000, Columns(41, 9), Columns(40, 9))
    assert plan.alice_leak < 2.0**-40


def test_a_bob_without_the_agreed_intercept_is_refused():
    star = Star.of(SPLITS["halves-and-intercept"], newton(), 1)
    bob = altered(star.bob_program(), only(Hello, lambda hello: replace(hello, columns=0)))
    with refused(RemoteProtocolError):
        run_pair(star.alice_program(), bob)


MANY = Tables.make(rows=2 * 4096 + 100, alice=3, bob=2, intercept=True)


@pytest.mark.parametrize(
    ("whole", "parted"),
    [(CLEAR, ClearScheme(part_tiles=1)), (BFV, BfvScheme(part_tiles=1))],
    ids=["clear", "bfv"],
)
def test_many_parts_give_the_model_of_one_to_the_last_places(whole, parted):
    terms = newton(whole, epochs=3)
    run, other = (talk(MANY, terms, scheme) for scheme in (whole, parted))
    assert other.weights == pytest.approx(run.weights, abs=1e-8)
    plan = [parted.for_shares.row_parts(TableSize(MANY.labels.rows + 3, 3)) for _ in range(2)]
    parts = sum(map(len, plan))
    assert parts == 6
    # On both sides: scores in two passes, steps in three.
    assert (len(run.seen(PartDone)), len(other.seen(PartDone))) == (0, 2 * 5 * 3)
    for talked, count in ((run, 2), (other, parts)):
        kinds = [type(message) for who in ("alice", "bob") for message in talked.said_by(who)]
        # Scores in two of three passes, with an answer for each part; steps in all, with a vector.
        assert kinds.count(SharedProduct) == 2 * count + 3 * 2
        assert kinds.count(SharedVector) == 2 * 2 + 3 * count


@pytest.mark.slow  # worker processes, and a cluster of which one is lost
def test_processes_and_a_killed_worker_of_a_cluster_give_the_same_model(tmp_path, monkeypatch):
    """To the last places, by parts."""
    terms = newton(BFV, epochs=3)
    expected = talk(MANY, terms, BFV).weights
    monkeypatch.setattr(module_of(TileRows), "LEAST_SHARED_TILES", 1)
    monkeypatch.setattr(module_of(BfvScheme), "LEAST_SHARED_PIECES", 2)
    run = talk(MANY, terms, BfvScheme(LocalEngine(cores=2), part_tiles=2))
    assert run.weights == pytest.approx(expected, abs=1e-8)
    from tests.crypto.cluster_plugins import Recorder

    with cluster.on_this_machine(2) as engine:
        workers = set(engine.workers)
        engine.client.register_plugin(Recorder(tmp_path))
        run = talk(MANY, terms, BfvScheme(engine, part_tiles=2))
        assert (tmp_path / "killed").exists()
        wait_until(lambda: workers != set(engine.workers))
    assert run.weights == pytest.approx(expected, abs=1e-8)
    answers: dict[bytes, set[bytes]] = {}
    for path in tmp_path.glob("*.npz"):
        with np.load(path) as reply:
            answers.setdefault(bytes(reply["mask"]), set()).add(bytes(reply["covered"]))
    # At least the reply that was lost was made twice.
    assert any(len(made) > 1 for mask, made in answers.items() if mask)


@pytest.mark.parametrize("rows", [1, 455, 39_073, 120_000, 1_000_000])
def test_scales_use_the_whole_ring_for_the_agreed_range(rows):
    scales = Scales.for_shared_table(newton(), rows)
    assert scales.score_bound == pytest.approx(64.0 + np.log(4000.0))
    assert 10 <= scales.feature_bits <= 16
    # A product is four times as far from its quarter of the ring as a score from its end.
    unit = scales.weight_bits + scales.shared_shift
    assert 2.0 ** (59 - 2 - unit) * scales.factor == pytest.approx(2 * scales.score_bound)
    assert scales.shared_unit / rows >= 2.0**16
