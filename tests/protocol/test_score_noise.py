"""The noise on scores that Bob sees after training: what it depends on, its law, and its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import Scheme
from taciturn.crypto.bfv.keys import BfvScheme, BfvSecretKey
from taciturn.crypto.clear import ClearSecretKey
from taciturn.data.ids import RowIds
from taciturn.data.tables import FeatureTable
from taciturn.engine.pair import run_pair
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.whitening import centring_offset
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.registry import mechanism as mechanism_of
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.party import alice_program
from taciturn.protocol.alice.score_noise import ScoreNoise, noise_key
from taciturn.protocol.alice.scoring import RevealedResponder, answer_rows, score_responder
from taciturn.protocol.alice.scoring_mutual import MutualResponder
from taciturn.protocol.alice.scoring_sealed import SealedResponder
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.party import bob_program
from taciturn.protocol.bob.scoring import ask_rows, score_requester
from taciturn.protocol.bob.scoring_mutual import MutualRequester
from taciturn.protocol.outcome import HeldOut
from taciturn.protocol.party import PartyResult
from taciturn.protocol.prediction import whitened_rows
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from taciturn.settings.agreement import Agreement
from tests.protocol.parties import ALICE, BOB, CLEAR, NOISE, NOISE_KEY, Tables, agreement
from tests.protocol.stars import shared, talk
from tests.protocol.test_train_table import newton as sealed
from tests.protocol.test_train_table import session
from tests.protocol.test_train_table_mutual import newton as mutual
from tests.protocol.test_train_table_mutual import pair

UNIT = 2.0**-40
WEIGHTS = np.array([0.5, -2.0])
ROWS = np.array([[3, -4], [5, 6]])
IDS = ["ann", "bea"]


def drawn(
    key: bytes = NOISE_KEY, weights: Any = WEIGHTS, ids: Any = IDS, rows: Any = ROWS
) -> list[int]:
    return list(ScoreNoise(key, weights).draw(ids, rows, UNIT))


# --- what it depends on --------------------------------------------------------------------------


def test_the_same_question_has_the_same_noise_alone_and_among_others():
    both = drawn()
    assert both == drawn(ids=RowIds.from_values(IDS))
    assert both[::-1] == drawn(ids=IDS[::-1], rows=ROWS[::-1])
    assert both[1:] == drawn(ids=IDS[1:], rows=ROWS[1:])
    # However the integers lie in memory.
    assert both == drawn(rows=np.asfortranarray(ROWS.astype(np.int32)))


@pytest.mark.parametrize(
    "changes",
    [
        {"key": bytes(32)},
        {"weights": np.array([0.5, -2.5])},
        {"ids": ["ann ", "be"]},
        {"rows": ROWS + np.array([[0, 1], [-1, 0]])},
    ],
    ids=str,
)
def test_another_key_model_id_or_value_has_another_noise(changes):
    assert all(one != other for one, other in zip(drawn(), drawn(**changes), strict=True))


def test_noise_of_a_pass_is_neither_that_of_another_nor_of_the_model():
    kinds = [ScoreNoise(NOISE_KEY), *(ScoreNoise.for_pass(NOISE_KEY, at) for at in range(3))]
    assert len({kind.draw(IDS, ROWS, UNIT)[0] for kind in kinds}) == 4


def test_a_zero_has_no_sign():
    plus, minus = np.array([[0.0, 1.0]]), np.array([[-0.0, 1.0]])
    assert drawn(ids=["a"], rows=plus) == drawn(ids=["a"], rows=minus)


# --- its law -------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [2.0**-12, 2.0**-14, 2.0**-15 * 1.1])
def test_noise_is_uniform_on_the_grid_within_its_bounds(unit):
    """Chi-square of 20,000 rows; the bound is five deviations above its mean."""
    count = 20_000
    noise = ScoreNoise(NOISE_KEY).draw(RowIds.numbered(count), np.ones((count, 1), np.int64), unit)
    steps = int(NOISE / unit)
    assert (noise.min(), noise.max()) == (-steps, steps)
    assert steps * unit <= NOISE
    cells, expected = Counter(noise.tolist()), count / (2 * steps + 1)
    chi = sum((cells[value] - expected) ** 2 / expected for value in range(-steps, steps + 1))
    assert chi < 2 * steps + 5 * np.sqrt(4 * steps)


def test_a_coarser_grid_has_none():
    assert not ScoreNoise(NOISE_KEY).draw(IDS, ROWS, 2.0**-11).any()
    assert not ScoreNoise(NOISE_KEY).reals(IDS, ROWS, FixedPoint(8)).any()


def test_neither_key_nor_noise_is_shown():
    assert NOISE_KEY.hex() not in repr(RevealedResponder(WEIGHTS, NOISE_KEY, FixedPoint(20)))
    assert repr(ScoreNoise(NOISE_KEY)) == "ScoreNoise(<hidden>)"


# --- what Bob decrypts ---------------------------------------------------------------------------

SCHEMES: dict[str, Scheme] = {"clear": CLEAR, "bfv": BfvScheme()}


@pytest.fixture
def decrypted(monkeypatch: pytest.MonkeyPatch) -> list[IntArray]:
    """Every array of scores that a secret key opens, of either side."""
    seen: list[IntArray] = []

    def noted(method: Callable[..., IntArray]) -> Callable[..., IntArray]:
        def opens(*given: Any, **also: Any) -> IntArray:
            seen.append(method(*given, **also))
            return seen[-1]

        return opens

    for kind in (ClearSecretKey, BfvSecretKey):
        for name in ("decrypt", "decrypt_shares", "decrypt_rows", "decrypt_columns"):
            monkeypatch.setattr(kind, name, noted(getattr(kind, name)))
    return seen


@pytest.mark.parametrize("name", SCHEMES)
def test_in_sealed_he_decrypts_the_score_plus_noise_and_nothing_else(name, decrypted):
    scheme, tables = SCHEMES[name], Tables.make(rows=18, alice=4)
    agreed = sealed(scheme=scheme, epochs=1, batch_size=18)
    run, terms = session(agreed, tables, scheme), Terms(agreed, scheme)
    share, his = shared(run.alice), shared(run.bob).values
    hers, scales = share.values, share.scales
    rows = whitened_rows(tables.alice, share.whitening)
    decrypted.clear()
    run_pair(
        answer_rows(SealedResponder(share, NOISE_KEY, terms, ALICE), tables.alice),
        ask_rows(score_requester(run.bob.weights, shared(run.bob), None, terms, BOB), tables.bob),
    )
    whole = scales.feature_grid.rounded(rows.values)
    exact = scales.ring(4, 4).centred(whole @ (hers + his))
    unit = scales.score_unit
    noise = ScoreNoise(NOISE_KEY, hers).draw(tables.alice.ids, whole, unit)
    assert decrypted
    for opened in decrypted:
        assert (opened - exact).tolist() == noise.tolist()
    assert np.abs(noise).max() * unit <= NOISE
    assert np.abs(noise).mean() * unit > NOISE / 4


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("bob", [0, 2])
def test_in_mutual_he_decrypts_the_score_plus_noise_and_nothing_else(name, bob, decrypted):
    scheme, tables = SCHEMES[name], Tables.make(rows=18, alice=3, bob=bob)
    agreed = mutual(scheme, epochs=1)
    session, terms = talk(tables, agreed, scheme), Terms(agreed, scheme)
    (own, bobs), his = pair(session.alice), pair(session.bob)
    decrypted.clear()
    _, scored = run_pair(
        answer_rows(MutualResponder(own, bobs, NOISE_KEY, terms, ALICE.fork("new")), tables.alice),
        ask_rows(MutualRequester(*his, terms, BOB.fork("new")), tables.bob),
    )
    scales, unit = own.scales, own.scales.score_unit
    ring = scales.ring(4, 4)
    hers, theirs = (
        scales.feature_grid.rounded(whitened_rows(side, share.whitening).values)
        for side, share in ((tables.alice, own), (tables.bob, his[1]))
    )
    part = hers @ (own.values + his[0].values)
    exact = ring.centred(part + theirs @ (bobs.values + his[1].values))
    noise = ScoreNoise(NOISE_KEY, own.values, bobs.values).draw(tables.alice.ids, hers, unit)
    assert scored.scores.tolist() == scales.scores(ring.centred(exact + noise)).tolist()
    assert np.abs(noise).mean() * unit > NOISE / 4
    # He opens the last array; with his own share and his masks taken off it is her part, her share
    # of his weights, and noise.
    assert len(decrypted) == (2 if bob else 1)
    masks = ring.draw(18, BOB.fork("new").fork("scores 0").fork("masks")) if bob else 0
    left = ring.centred(decrypted[-1] - masks - part - theirs @ bobs.values)
    assert left.tolist() == noise.tolist()


# --- one model, one noise ------------------------------------------------------------------------

AGREED: dict[str, Callable[..., Agreement]] = {
    "none": agreement,
    "sealed": sealed,
    "mutual": mutual,
}


@pytest.mark.parametrize(
    ("name", "solver"),
    [("none", "sgd"), ("none", "newton"), ("sealed", "newton"), ("mutual", "newton")],
)
def test_a_held_out_score_is_that_of_a_later_prediction(name, solver):
    newton = {"solver": "newton", "epochs": 3, "batch_size": 40, "l2": 0.05}
    agreed = AGREED[name](**(newton if solver == "newton" else {"epochs": 1}))
    tables = Tables.make(rows=40, alice=3, bob=2, intercept=True)
    new = Tables.make(rows=9, alice=3, bob=2, intercept=True, seed=8)
    terms, method = Terms(tables.agreed(agreed), CLEAR), mechanism_of(agreed)
    ledger, held_out = Ledger(40, method.assumption), HeldOut(new.bob, new.labels)
    hers, his = run_pair(
        alice_program(AliceInputs(tables.alice, terms, ALICE, held_out=new.alice)),
        bob_program(
            BobInputs(tables.bob, tables.labels, terms, method, ledger, BOB, held_out=held_out)
        ),
    )
    assert hers.noise_key == noise_key(ALICE)
    assert his.held_out_scores is not None
    # In another order and alone, with other keys.
    for rows in (np.arange(9)[::-1], np.array([4])):
        scores = predicted(hers, his, terms, new.alice.take(rows), new.bob.take(rows))
        assert scores.tolist() == his.held_out_scores[rows].tolist()


def predicted(
    hers: PartyResult, his: PartyResult, terms: Terms, alice: FeatureTable, bob: FeatureTable
) -> FloatArray:
    key, entropy = hers.noise_key, KeyedEntropy.from_seed(5)
    theirs, own = hers.trained, his.trained
    offset = centring_offset(theirs.weights, theirs.means) if theirs.share is None else 0.0
    return run_pair(
        answer_rows(
            score_responder(
                theirs.weights, theirs.share, theirs.bob_share, key, terms, entropy, offset
            ),
            alice,
        ),
        ask_rows(
            score_requester(own.weights, own.share, own.bob_share, terms, entropy.fork("bob")), bob
        ),
    )[1].scores
