"""Bob's seat of an audit: the judge, the controls, the canary and the record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from audit.tests.column_attacks.runs import newton, run
from numpy.typing import ArrayLike

import taciturn
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.results.folder import from_record
from taciturn.rng import KeyedEntropy
from taciturn.simulation import RunEntropy
from taciturn_audit.column_attacks.base import Ambiguity, ColumnEstimate, KnownRows
from taciturn_audit.column_attacks.registry import COLUMN_ATTACKS
from taciturn_audit.column_attacks.regression import PredictionAttack
from taciturn_audit.column_audit import bob_view, examine_columns
from taciturn_audit.columns import Truth, controls, judge_columns
from taciturn_audit.exact_intervals import t_interval
from taciturn_audit.results.check import CLEAR

SMALL: dict[str, Any] = {
    "dataset": "breast-cancer",
    "solver": "newton",
    "passes": 5,
    "alice_columns": 4,
    "scheme": "clear",
    "seed": 1,
}


@pytest.fixture(scope="module")
def record():
    return taciturn.audit(**SMALL, mechanism="sealed", seat="bob").to_dict()


def table(values: ArrayLike, *columns: str) -> Truth:
    return Truth.from_table(FeatureTable.from_data(np.array(values, dtype=float), columns=columns))


LEVELS = np.array([[1.0, 0], [0, 1], [0, 0], [0, 0]])
STANDARDISED = (LEVELS - LEVELS.mean(axis=0)) / LEVELS.std(axis=0)
STEPS = np.arange(4.0)[:, None]


@pytest.mark.parametrize(
    ("values", "columns", "guess", "right"),
    [
        # A category counts once, and its reference has no column.
        (LEVELS, ("at=n", "at=s"), [[0.9, 0.2], [0.1, 0.6], [0.2, 0.1], [0.8, 0.0]], [1, 1, 1, 0]),
        (STANDARDISED, ("at=n", "at=s"), STANDARDISED, [1, 1, 1, 1]),
        # Two values are a category at their own scale.
        ([[-2.0], [5.0], [5.0]], ("x",), [[1.0], [2.0], [4.0]], [1, 1, 1]),
        # A number is recovered within a tenth of a deviation.
        (
            STEPS,
            ("x",),
            STEPS + STEPS.std() * np.array([[0.09], [0.11], [-0.09], [-0.11]]),
            [1, 0, 1, 0],
        ),
    ],
    ids=["category", "standardised", "two values", "number"],
)
def test_what_counts_as_recovered(values, columns, guess, right):
    truth = table(values, *columns)
    assert truth.per_row == 1
    rows = np.arange(len(right))
    assert truth.recovered(np.array(guess), rows).ravel().tolist() == [one == 1 for one in right]
    # Of categories alone there is no fit to speak of.
    assert (truth.r2(np.array(guess), rows) is None) == (len(np.unique(values)) < 4)


def test_columns_of_one_source_that_hold_together_are_values_of_their_own():
    assert table([[1, 1], [0, 1], [1, 0], [0, 0]], "flag=a", "flag=b").per_row == 2


def test_known_rows_are_not_judged():
    truth = table(np.arange(30.0).reshape(10, 3) ** 2, "a", "b", "c")
    guess = np.zeros((10, 3))
    rows = np.arange(6)
    guess[rows] = truth.values[rows]
    score = judge_columns("x", ColumnEstimate(guess), truth, KnownRows(rows, truth.values[rows]))
    assert score.recovered == 0.0
    assert score.values == 12
    assert score.known_rows == 6


def test_an_estimate_without_names_is_judged_up_to_a_linear_map_on_other_rows():
    entropy = KeyedEntropy.from_seed(1)
    truth = table(entropy.fork("x").uniform((60, 3)), "a", "b", "c")
    turned = truth.values @ entropy.fork("turn").uniform((3, 3)) + 2
    nothing = KnownRows.none(3)
    assert (
        judge_columns(
            "x", ColumnEstimate(turned, ambiguity=Ambiguity.LINEAR), truth, nothing
        ).recovered
        == 1
    )
    noise = entropy.fork("noise").uniform((60, 3))
    blind = judge_columns("x", ColumnEstimate(noise, ambiguity=Ambiguity.LINEAR), truth, nothing)
    assert blind.r2 is not None
    assert blind.r2 < 0.1


def test_an_estimate_that_is_no_number_is_judged_all_the_same():
    truth = table([[0.0], [1.0], [2.0]], "x")
    score = judge_columns("x", ColumnEstimate(np.full((3, 1), np.nan)), truth, KnownRows.none(1))
    assert score.r2 is not None
    assert np.isfinite([score.r2, score.recovered]).all()


def test_controls_are_the_best_constant_and_regression_on_what_bob_has():
    entropy = KeyedEntropy.from_seed(2)
    own = entropy.uniform((200, 2))
    hers = np.column_stack([own @ [1.0, 2.0], np.where(np.arange(200) % 10 < 7, 0.0, own[:, 0])])
    truth = table(hers, "sum", "mostly zero")
    mean, regression = controls(
        truth, FeatureTable.from_data(own), LabelTable.from_data(np.arange(200) % 2)
    )
    assert mean.r2 == pytest.approx(0.0)
    assert mean.recovered > 0.35
    assert regression.r2 is not None
    assert regression.r2 > 0.4


def test_known_rows_are_as_many_as_asked_for_and_never_more_than_half():
    one = newton()
    entropy = KeyedEntropy.from_seed(1)
    counts = [
        [attack.known_rows for attack in findings.attacks if attack.name == "anchored"]
        for findings in (
            examine_columns(one.view, one.truth, entropy, known_rows=known) for known in (7, 10_000)
        )
    ]
    assert counts == [[7], [len(one.hers) // 2]]


def test_a_run_with_permuted_rows_is_its_own_canary():
    record = taciturn.audit(
        **SMALL, mechanism="none", seat="bob", permute_rows=True, known_rows=4
    ).to_dict()
    assert record["permute_rows"]
    seat = record["bob_seat"]
    assert seat["attacks"] == seat["canary"]["attacks"]


# --- mutual, in which nothing is opened -------------------------------------------------------


def test_mutual_leaves_no_attack_anything_to_work_with():
    options = {**SMALL, "passes": 2}
    record = taciturn.audit(**options, mechanism="mutual", seat="bob").to_dict()
    seat = record["bob_seat"]
    for part in (seat, seat["canary"]):
        assert part["attacks"] == []
        assert not part["leaks"]
        assert [one["name"] for one in part["skipped"]] == [one.name for one in COLUMN_ATTACKS]
    assert record["ledger"]["columns"]["scores_per_row"] == 0


@pytest.mark.parametrize("reveal_bob", [False, True])
def test_mutual_opens_whole_scores_unless_bob_knows_his_weights(reveal_bob):
    """Her part alone would tell one column of hers from one known row."""
    one = run(mechanism="mutual", passes=2, alice_columns=1, reveal_bob=reveal_bob)
    view = bob_view(one.outcome, RunEntropy.for_seed(3), predict=True)
    assert view.predicts_whole is not reveal_bob
    assert (one.score(PredictionAttack(), 1, view).recovered == 1.0) is reveal_bob
    # As many known rows as both sides have columns give both sides' weights.
    assert one.score(PredictionAttack(), 60, view).recovered > 0.9


def test_several_seeds_are_averaged_with_an_interval_of_the_mean():
    options = {**SMALL, "passes": 3, "seat": "bob", "canary": False}
    result = taciturn.audit(**options, mechanism="none", seeds=3)
    record = result.to_dict()
    runs = [one["bob_seat"]["attacks"][0] for one in record["runs"]]
    mean = record["bob_seat"]["attacks"][0]
    shares = [one["recovered"] for one in runs]
    assert mean["recovered"] == pytest.approx(np.mean(shares))
    assert (mean["recovered_low"], mean["recovered_high"]) == pytest.approx(t_interval(shares))
    assert mean["r2"] == pytest.approx(np.mean([one["r2"] for one in runs]))
    assert record["bob_seat"]["canary"] is None
    assert from_record(record).to_dict() == record


# --- the ledger and the check -----------------------------------------------------------------


def test_a_check_advises_alice():
    options = {**SMALL, "passes": 6}
    record = taciturn.check(**options, mechanism="none", seat="bob").to_dict()
    seat = record["bob_seat"]
    assert seat["level"] == "leaks"
    assert seat["leaks"]
    assert seat["rehearsed_passes"] == 6
    assert "safe_passes" not in seat
    assert seat["exposed"][0]["r2"] >= seat["exposed"][-1]["r2"] > 0.5
    assert any("mutual" in words for words in seat["advice"])


def test_a_check_of_mutual_says_what_is_opened():
    seat = taciturn.check(**{**SMALL, "passes": 1}, mechanism="mutual", seat="bob").bob_seat
    assert seat is not None
    assert len(seat.advice) == 1
    assert seat.exposed == ()
    assert seat.level == CLEAR
