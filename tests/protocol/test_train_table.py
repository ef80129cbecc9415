"""Newton on whole tables, in clear and sealed: parts of rows, told models, held-out rows.

What every conversation promises is in ``test_conversations.py``. What separates weights from those
of the same search in clear is fixed point: a whitened table of ``feature_bits`` digits, and rows'
numbers that move a score by less than 2^-10 (``Scales.for_table``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.crypto.base import Scheme, TableSize
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.bfv.workers import LocalEngine
from taciturn.crypto.clear import ClearScheme
from taciturn.data.label_table import LabelTable
from taciturn.engine.pair import run_pair
from taciturn.engine.progress import ProgressEstimate
from taciturn.errors import AgreementError, ConfigError, CryptoError
from taciturn.numerics.descent import BoundedTable, DescentSolver
from taciturn.numerics.label_metrics import class_metrics
from taciturn.numerics.metrics import evaluate
from taciturn.numerics.optimum import optimum, penalised_loss
from taciturn.numerics.subspace import SubspaceSolver
from taciturn.numerics.whitening import Whitening, centring_offset
from taciturn.privacy.events import NoisyModel
from taciturn.privacy.model_release import ModelRelease
from taciturn.protocol.alice.scoring import answer_rows
from taciturn.protocol.alice.scoring_sealed import SealedResponder
from taciturn.protocol.bob.scoring import ask_rows, score_requester
from taciturn.protocol.events import Advance, HeldOutSeen, PartDone
from taciturn.protocol.messages import (
    EncryptedResidues,
    Hello,
    KeyOffer,
    MaskedGradient,
    PartialScores,
    RevealedGradient,
    RevealedShare,
    SealedGradient,
    SealedResidues,
    SealedScores,
)
from taciturn.protocol.observations import MomentsSeen, Observation, ShareRevealed
from taciturn.protocol.outcome import BobTrained
from taciturn.protocol.table_shape import model_release_of
from taciturn.protocol.terms import Terms
from taciturn.settings.agreement import Agreement
from tests.expected import refused
from tests.protocol.parties import ALICE, BOB, NOISE_KEY, Tables, agreement
from tests.protocol.stars import Star, StarTalk, converse, shared
from tests.protocol.test_conversations import complement, likelihood_of, readable

CLEAR, BFV = ClearScheme(), BfvScheme()
ROWS, PASSES, L2 = 40, 6, 0.05
MECHANISMS: dict[str, dict[str, Any]] = {
    "none": {"mechanism": "none"},
    "sealed": {"mechanism": "sealed"},
    "label-rr over none": {"mechanism": "label-rr", "epsilon": 1.0, "base_mechanism": "none"},
    "label-rr over sealed": {"mechanism": "label-rr", "epsilon": 1.0, "base_mechanism": "sealed"},
}
SHARED = ("sealed", "label-rr over sealed")
SPLITS = {
    "bob has columns": Tables.make(rows=ROWS, alice=3, bob=2, intercept=True),
    "bob has an intercept": Tables.make(rows=ROWS, alice=4, intercept=True),
    "bob has nothing": Tables.make(rows=ROWS, alice=4),
}
USUAL = SPLITS["bob has columns"]
NEW = Tables.make(rows=15, alice=3, bob=2, intercept=True, seed=8)


def newton(mechanism: str = "sealed", scheme: Scheme = CLEAR, **changes: Any) -> Agreement:
    base = {
        "solver": "newton",
        "epochs": PASSES,
        "batch_size": ROWS,
        "learning_rate": 1.0,
        "l2": L2,
        "scheme": scheme.name,
        "key_bits": scheme.key_bits[0],
    }
    return agreement(**{**base, **MECHANISMS[mechanism], **changes})


def session(
    agreed: Agreement, tables: Tables = USUAL, scheme: Scheme = CLEAR, **changes: Any
) -> StarTalk:
    return converse(Star.of(tables, agreed, 1, scheme), **changes)


# --- the model ----------------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(
    rows=st.integers(1, 30),
    alice=st.integers(1, 5),
    bob=st.integers(0, 3),
    intercept=st.booleans(),
    l2=st.sampled_from([1e-3, 0.1, 3.0]),
    mechanism=st.sampled_from(["none", "sealed"]),
    seed=st.integers(0, 2**32),
)
def test_any_small_table_is_trained_to_its_optimum(
    rows, alice, bob, intercept, l2, mechanism, seed
):
    tables = Tables.make(rows=rows, alice=alice, bob=bob, intercept=intercept, seed=seed)
    run = session(newton(mechanism, epochs=alice + 3, batch_size=rows, l2=l2), tables)
    likelihood, scores = likelihood_of(run), tables.joined @ run.weights
    best = optimum(tables.joined, likelihood, l2, tables.free)
    assert np.isfinite(run.weights).all()
    assert penalised_loss(scores, likelihood, run.weights, l2, tables.free) - best.loss < 1e-4


# --- parts of rows ------------------------------------------------------------------------------

# Three tiles of rows, so that there are three parts of one tile.
MANY = Tables.make(rows=2 * 8192 + 100, alice=3, bob=2, intercept=True)
OTHERS = Tables.make(rows=8192 + 50, alice=3, bob=2, intercept=True, seed=9)


class TwoProcesses(LocalEngine):
    """A helper for whatever has two tiles."""

    def shares(self, work: int, least: int) -> int:
        return 2


def by_parts(scheme: Scheme, mechanism: str) -> StarTalk:
    agreed = newton(mechanism, scheme, epochs=2, evaluate="epoch")
    return session(agreed, MANY, scheme, held_out=OTHERS)


@cache
def whole_table(mechanism: str) -> StarTalk:
    """The same training with tables of one part."""
    return by_parts(CLEAR, mechanism)


@cache
def in_parts(mechanism: str) -> StarTalk:
    return by_parts(PARTED["clear"], mechanism)


PARTED: dict[str, Scheme] = {
    "clear": ClearScheme(part_tiles=1),
    "one": BfvScheme(LocalEngine(cores=1), part_tiles=1),
    "two": BfvScheme(TwoProcesses(), part_tiles=2),
}


@pytest.mark.parametrize(
    ("mechanism", "scheme"),
    [
        *((mechanism, "clear") for mechanism in MECHANISMS),
        ("sealed", "one"),
        *(pytest.param(name, "two", marks=pytest.mark.slow) for name in ("sealed", "none")),
    ],
)
def test_parts_of_rows_and_processes_change_no_weight(mechanism, scheme):
    run = in_parts(mechanism) if scheme == "clear" else by_parts(PARTED[scheme], mechanism)
    whole = whole_table(mechanism)
    assert run.weights.tolist() == whole.weights.tolist()
    losses = [[event.metrics.loss for event in one.seen(HeldOutSeen)] for one in (run, whole)]
    assert losses[0] == losses[1]
    size = TableSize(MANY.labels.rows, 3)
    parts, held_out = (
        len(PARTED[scheme].row_parts(TableSize(tables.labels.rows, 3))) for tables in (MANY, OTHERS)
    )
    assert (parts, held_out) == ((2, 1) if scheme == "two" else (3, 2))
    kinds = [type(message) for who in ("alice", "bob") for message in run.said_by(who)]
    expected = (
        {SealedResidues: 3 * parts, SealedScores: 2 * (parts + held_out), SealedGradient: 3}
        if mechanism in SHARED
        else {
            EncryptedResidues: 3 * parts,
            PartialScores: 2 * (parts + held_out),
            MaskedGradient: 3,
        }
    )
    assert {kind: kinds.count(kind) for kind in expected} == expected
    assert whole.seen(PartDone) == []
    assert PARTED[scheme].row_parts(size)[-1].stop == size.rows


@pytest.mark.parametrize("mechanism", ["sealed", "none"])
def test_a_pass_of_several_parts_tells_how_far_it_is(mechanism):
    run = in_parts(mechanism)
    assert all(0 < event.reach <= 2 for event in run.seen(PartDone))
    # One bar for both sides: what is behind is not shown.
    estimate, shown = ProgressEstimate(), []
    for event in run.events:
        if isinstance(event, Advance) and estimate.observe(event):
            shown.append(estimate.reach[0])
    assert shown == sorted(shown)
    assert len(set(shown)) >= 6
    assert shown[-1] == 2


# --- revealed weights -----------------------------------------------------------------------------


def test_revealed_weights_are_those_of_the_two_shares_in_her_own_columns():
    run, hidden = session(newton(reveal=True)), session(newton())
    assert run.alice.weights.tolist() == run.alice_weights.tolist()
    assert run.alice_weights.tolist() == hidden.alice_weights.tolist()
    assert [event.weights.tolist() for event in run.seen(ShareRevealed)] == [
        run.alice_weights.tolist()
    ]
    assert isinstance(run.said_by("bob")[-1], RevealedShare)
    assert hidden.alice.weights.tolist() == []


# --- a model that is told with noise --------------------------------------------------------------

TOLD: dict[str, Any] = {"reveal": True, "reveal_epsilon": 1.0, "reveal_delta": 1e-6}
# So large an epsilon that the noise is small beside what is compared.
LOUD: dict[str, Any] = {**TOLD, "reveal_epsilon": 1e8}


def release_of(run: StarTalk, agreed: Agreement) -> ModelRelease:
    release = model_release_of(agreed, shared(run.bob).scales, 3, USUAL.bob)
    assert release is not None
    return release


def test_alice_is_told_the_sum_of_the_shares_and_pays_epsilon():
    run = session(newton(**TOLD), budget=1.0)
    assert run.alice.weights.tolist() == run.alice_weights.tolist()
    released = run.said_by("bob")[-1]
    assert isinstance(released, RevealedShare)
    assert released.share.event == NoisyModel(1.0, 1e-6)
    assert released.share.value.tolist() == shared(run.bob).values.tolist()
    statement = run.ledger.statement()
    assert (statement.label_epsilon_total, statement.label_delta_total) == (1.0, 1e-6)


@pytest.mark.parametrize("split", SPLITS)
def test_the_told_model_is_that_of_the_descent_in_clear_and_the_noise(split):
    tables = SPLITS[split]
    run, hers = session(newton(**LOUD), tables), BoundedTable.from_table(tables.alice.values, L2)
    solver = DescentSolver(likelihood_of(run), tables.bob.values, L2, tables.free, PASSES)
    for _ in range(PASSES):
        direction = solver.direction()
        solver.add(direction, hers.values @ (direction @ hers.values))
    combination, own = solver.conclude()
    expected = hers.whitening.weights(combination @ hers.values)
    assert np.allclose(run.alice.weights, expected, atol=5e-3)
    assert np.allclose(run.bob.weights, own, atol=5e-3)


def test_the_noise_is_what_was_promised():
    """The same coins but for the noise: what was added is of the stated size, and not less."""
    loud, released = newton(**LOUD), newton(**TOLD)
    quiet, noisy = session(loud), session(released)
    whitened = shared(noisy.alice).whitening
    assert whitened is not None
    added = whitened.whitened(noisy.alice.weights - quiet.alice.weights)
    sigmas = [
        release_of(run, agreed).sigma * 2.0 ** -shared(run.bob).scales.weight_bits
        for run, agreed in ((noisy, released), (quiet, loud))
    ]
    # Three draws: below a fiftieth of sigma all of them once in 250,000 times, beyond six never.
    assert sigmas[0] / 50 < np.abs(added).max() < 6 * sigmas[0]
    assert sigmas[1] < sigmas[0] / 1000


def test_no_score_comes_near_the_end_of_its_range():
    """Whatever the labels are: a score that wrapped would move by more than the noise is for."""
    far = replace(USUAL, labels=LabelTable.from_data(np.ones(ROWS, dtype=np.int8)))
    for tables in (USUAL, far, complement(USUAL)):
        assert session(newton(**TOLD, l2=1e-6, epochs=30), tables).bob.suspected_wraps == 0


def test_until_it_is_told_labels_change_nothing_that_alice_can_read():
    one, other = (session(newton(**TOLD), tables) for tables in (USUAL, complement(USUAL)))
    first, second = ([readable(m) for m in run.said_by("bob")] for run in (one, other))
    assert first[:-1] == second[:-1]
    assert first[-1] != second[-1]


# --- held-out rows --------------------------------------------------------------------------------


def in_clear(run: StarTalk) -> Iterator[np.ndarray]:
    """The weights of both after each pass of the same search, without fixed point."""
    values = USUAL.alice.values
    means = values.mean(axis=0)
    whitening = Whitening.fit(values, L2, means=means)
    whitened = whitening.apply(values)
    solver = SubspaceSolver(likelihood_of(run), USUAL.bob.values, L2, USUAL.free, PASSES)
    for number in range(PASSES):
        direction = solver.direction()
        scores = whitened @ (direction @ whitened)
        solver.add(direction, scores, last=number == PASSES - 1)
        hers = whitening.weights(solver.combination() @ whitened)
        his = solver.weights.copy()
        his[-1] += centring_offset(hers, means)
        yield np.concatenate([hers, his])


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_after_each_pass_bob_sees_how_good_the_model_of_that_pass_is(mechanism):
    run = session(newton(mechanism, evaluate="epoch"), held_out=NEW)
    seen = run.seen(HeldOutSeen)
    assert [event.iteration for event in seen] == list(range(PASSES))
    for event, weights in zip(seen, in_clear(run), strict=True):
        expected = evaluate(NEW.joined @ weights, NEW.labels.values)
        assert event.metrics.loss == pytest.approx(expected.loss, abs=2.0**-8)
        assert class_metrics(event.metrics).auc == pytest.approx(expected.auc, abs=0.05)
    # The last one is of the model itself.
    final = evaluate(NEW.joined @ run.weights, NEW.labels.values)
    assert seen[-1].metrics.loss == pytest.approx(final.loss, abs=2.0**-9)


def test_a_prediction_with_other_scales_is_refused():
    run, terms = session(newton(epochs=1)), Terms(newton(epochs=1), CLEAR)
    hers, his = shared(run.alice), shared(run.bob)
    scales = replace(his.scales, feature_bits=his.scales.feature_bits - 1)
    other = replace(his, scales=scales)
    with refused(AgreementError, names="feature-bits"):
        run_pair(
            answer_rows(SealedResponder(hers, NOISE_KEY, terms, ALICE), USUAL.alice),
            ask_rows(score_requester(run.bob.weights, other, None, terms, BOB), USUAL.bob),
        )


# --- what each side receives ----------------------------------------------------------------------


def test_bobs_share_alone_looks_uniform():
    """Over many coins: the mean of the top byte, 6 sigma, false alarm below 1e-8."""
    star, top = Star.of(Tables.make(rows=15, alice=12), newton(epochs=1), 1), list[int]()
    for seed in range(25):
        alice = star.alice_program(entropy=ALICE.fork(str(seed)))
        share = shared(run_pair(alice, star.bob_program())[1])
        top += (share.values >> (share.scales.modulus_bits - 8)).tolist()
    assert abs(np.mean(top) + 0.5) < 6 * (256 / np.sqrt(12)) / np.sqrt(len(top))
    assert np.std(top) > 60


def test_with_fresh_keys_every_vector_has_a_key_of_its_own():
    said = session(newton(scheme=BFV, epochs=1, fresh_keys=True), scheme=BFV).said_by("bob")
    offers = [message.public_key for message in said if isinstance(message, KeyOffer)]
    assert len(set(offers)) == len(offers) == 3


def test_in_clear_alice_sees_one_exact_sum_a_pass_and_that_is_all_that_is_released():
    run = session(newton("none"))
    kinds = {type(message) for message in run.said_by("bob")}
    assert kinds == {Hello, KeyOffer, EncryptedResidues, RevealedGradient}
    seen = run.seen(MomentsSeen)
    assert [(event.iteration, event.final) for event in seen] == [
        (number, number == PASSES) for number in range(PASSES + 1)
    ]
    assert run.seen(Observation) == seen


def test_a_state_of_a_search_shows_no_number_of_it():
    state = session(newton(epochs=2)).boundaries[-1]["bob"]
    assert state.search is not None
    assert "search" not in repr(state)
    for number in (*state.search.directions[0][:3], *state.search.scores[0][:3]):
        assert str(number) not in repr(state)


# --- what is refused ------------------------------------------------------------------------------


def test_a_value_far_beyond_its_column_is_refused_with_a_way_out():
    """One value of 1e9 among small ones, with a penalty so small that whitening cannot help."""
    values = USUAL.alice.values.copy()
    values[0, 0] = 1e9
    tables = replace(USUAL, alice=replace(USUAL.alice, values=values))
    session(newton(), tables)
    values[:, 1] = values[:, 0]
    with refused(ConfigError) as raised:
        session(newton(l2=1e-9), tables)
    assert raised.value.hint


# --- several penalties in one search --------------------------------------------------------------

PENALTIES = (0.01, 0.05, 0.2)


def of_models(run: StarTalk) -> list[StarTalk]:
    """The talk with each of its models in turn."""
    bobs = [model for model in (run.bob, *run.bob.further) if isinstance(model, BobTrained)]
    hers = {name: (alice, *alice.further) for name, alice in run.alices.items()}
    return [
        replace(run, alices={name: models[number] for name, models in hers.items()}, bob=bob)
        for number, bob in enumerate(bobs)
    ]


def over_penalties(mechanism: str, alices: int, scheme: Scheme = CLEAR) -> Star:
    star = Star.of(USUAL, newton(mechanism, scheme), alices, scheme)
    return replace(star, terms=star.terms.over(PENALTIES))


@pytest.mark.parametrize("alices", [1, 2])
@pytest.mark.parametrize("mechanism", SHARED)
def test_models_of_one_search_are_the_optima_of_their_penalties(mechanism, alices):
    run = converse(over_penalties(mechanism, alices))
    models = of_models(run)
    assert len(models) == len(PENALTIES)
    for model, l2 in zip(models, PENALTIES, strict=True):
        best = optimum(USUAL.joined, likelihood_of(run), l2, USUAL.free)
        scores = USUAL.joined @ model.weights
        loss = penalised_loss(scores, likelihood_of(run), model.weights, l2, USUAL.free)
        assert loss - best.loss < 1e-3
        assert len(model.bob.losses) > 1
    # Several Alices' files name the session: models must not be taken for one another.
    assert len({model.bob.group_shape.session for model in models}) == (3 if alices > 1 else 1)


def test_one_search_asks_for_one_more_product_per_model_and_opens_scores_once():
    star = over_penalties("sealed", 1)
    said = converse(star).said_by("alice")
    passes = star.terms.rounds
    assert passes == PASSES + 2 * len(PENALTIES)
    assert sum(isinstance(message, SealedGradient) for message in said) == passes + len(PENALTIES)
    assert sum(isinstance(message, SealedScores) for message in said) == passes


@pytest.mark.parametrize("at", [0, 1, 5, -1])
def test_one_search_resumes_bit_by_bit(at):
    star = over_penalties("sealed", 1)
    run = converse(star)
    again = converse(star, states=run.boundaries[at])
    for one, two in zip(of_models(run), of_models(again), strict=True):
        assert one.weights.tolist() == two.weights.tolist()
        assert one.bob.losses == two.bob.losses


def test_labels_do_not_decide_what_one_search_says():
    star = over_penalties("sealed", 1, BFV)
    other = replace(star, tables=complement(USUAL))
    kinds = [
        [(link, role, len(frame)) for link, role, frame in converse(one).frames]
        for one in (star, other)
    ]
    assert kinds[0] == kinds[1]


def test_held_out_answers_of_all_models_of_one_search_add_up():
    star = over_penalties("sealed", 1, BFV)
    share = shared(converse(star).alice)
    for terms, most in ((star.terms, 2**50), (star.terms.of_model(0), len(PENALTIES) * 2**50)):
        responder = SealedResponder(share, NOISE_KEY, terms, ALICE)
        with refused(CryptoError, names=len(PENALTIES) * 2**50):
            responder.require_hidden(8, 100, most)
