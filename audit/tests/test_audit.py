"""The judge's arithmetic, the runner's bookkeeping, and the verdict."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from audit.tests.attacks.evidence import known_run
from hypothesis import given
from hypothesis import strategies as st

from taciturn.data.label_table import LabelTable
from taciturn.engine.callbacks import ReportProgress
from taciturn.errors import RowOrderError, ShapeError
from taciturn.numerics.intervals import auc_interval
from taciturn.privacy.unprotected import Unprotected
from taciturn.protocol.observations import Signal
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.attacks.membership import MembershipGuess
from taciturn_audit.attacks.registry import ATTACKS
from taciturn_audit.exact_intervals import clopper_pearson
from taciturn_audit.judge import commoner_label, judge, judge_membership, prior
from taciturn_audit.results.audit import AttackScore, Control
from taciturn_audit.runner import examine
from taciturn_audit.verdict import Status, Verdict, weigh
from taciturn_audit.views.alice_view import AliceView
from tests.expected import refused


def guess(scores: list[float], certain: list[bool] | None = None) -> LabelGuess:
    sure = np.zeros(len(scores), bool) if certain is None else np.array(certain)
    return LabelGuess(np.array(scores), np.ones(len(scores), bool), sure)


def test_judge_counts_by_hand():
    truth = LabelTable.from_data(np.array([1, 0, 1, 1]))
    score = judge("a", guess([0.3, -2.0, -0.1, 4.0], [True, True, True, False]), truth, 1.5)
    assert score.accuracy == 0.75
    assert (score.accuracy_low, score.accuracy_high) == clopper_pearson(3, 4)
    assert score.auc == pytest.approx(1.0)
    assert (score.auc_low, score.auc_high) == auc_interval(score.auc, 3, 1)
    assert score.decided == 0.75
    assert score.decided_correct == pytest.approx(2 / 3)
    assert score.seconds == 1.5


def test_judge_at_its_edges():
    truth = LabelTable.from_data(np.array([1, 0]))
    # A score of zero guesses label zero; nothing decided has no share right.
    score = judge("a", guess([0.0, 0.0]), truth)
    assert (score.accuracy, score.decided_correct) == (0.5, None)
    one_class = judge("a", guess([1.0, -1.0]), LabelTable.from_data(np.array([1, 1])))
    assert np.isnan([one_class.auc, one_class.auc_low, one_class.auc_high]).all()
    with refused(ShapeError, names=(3, 2)):
        judge("a", guess([1.0, 1.0, 1.0]), truth)
    assert prior(LabelTable.from_data(np.array([1, 0, 0, 0]))).accuracy == 0.75
    assert prior(LabelTable.from_data(np.array([1, 1, 1, 0]))).auc == 0.5


def test_the_commoner_label_ranks_between_what_an_attack_calls_one_and_zero():
    truth = LabelTable.from_data(np.array([1, 1, 0, 0, 0]))
    ranking = guess([1.0, 9.0, 9.0, 9.0, -1e-9])
    partial = LabelGuess(
        ranking.scores, np.array([True, False, False, False, True]), ranking.certain
    )
    whole = partial.completed(commoner_label(truth))
    assert judge("a", whole, truth).accuracy == 0.8
    assert np.argsort(whole.scores)[[0, -1]].tolist() == [4, 0]


@pytest.fixture(scope="module")
def seen():
    return known_run(epochs=1)


def test_every_attack_is_run_or_skipped(seen):
    view, truth = seen
    announced: list[str] = []
    examination = examine(view, truth, announce=announced.append)
    findings = examination.findings
    assert [score.name for score in findings.attacks] == announced
    assert [control.name for control in findings.controls] == ["prior", "model-only"]
    named = {score.name for score in findings.attacks} | {
        attack.name for attack in findings.skipped
    }
    assert named == {attack.name for attack in ATTACKS}
    assert {attack.name for attack in findings.skipped} == {
        "likelihood",
        "moments",
        "sign",
        "values",
    }
    assert set(examination.guesses) == set(announced)


def blind(truth: LabelTable, *signals: Signal) -> AliceView:
    """A view of these rows that holds nothing but the named signals."""
    view = SimpleNamespace(
        agreement=SimpleNamespace(family="binomial"),
        features=SimpleNamespace(ids=truth.ids),
        signals=frozenset(signals),
        mechanism=Unprotected(),
    )
    return cast(AliceView, view)


class FirstRow(Attack):
    """Tells the first row's label, and has nothing to say about the others."""

    name = "first-row"
    reference = "a test's"
    needs = frozenset({Signal.FEATURES})

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        first = np.array([True, False, False, False])
        return LabelGuess(first * 1.0, first, first)


def test_without_weights_an_attack_falls_back_to_the_commoner_label():
    truth = LabelTable.from_data(np.array([1, 1, 1, 0]))
    findings = examine(blind(truth, Signal.FEATURES), truth, attacks=(FirstRow(),)).findings
    assert findings.controls == (prior(truth),)
    assert findings.attacks[0].accuracy == 0.75


def test_labels_of_other_rows_are_refused(seen):
    view, truth = seen
    turned = truth.take(np.arange(truth.rows)[::-1])
    with pytest.raises(RowOrderError):
        examine(view, turned)


CONTROLS = (Control("prior", 0.6, 0.5), Control("model-only", 0.9, 0.95))


def score(
    accuracy: float = 0.91,
    low: float = 0.88,
    *,
    auc: tuple[float, float] = (0.9, 0.8),
    sure: tuple[float, float | None] = (0.0, None),
) -> AttackScore:
    return AttackScore("x", 100, accuracy, low, 0.98, auc[0], auc[1], 0.99, *sure, 0.0, "")


def percentages(sentence: str) -> list[float]:
    """The percentages of a sentence, in their order; its words are not tested."""
    return [float(share) for share in re.findall(r"\d+\.\d+", sentence)]


@pytest.mark.parametrize(
    ("scores", "status", "figure", "figures", "printed"),
    [
        (
            [score(), score(0.95, 0.91)],
            Status.LEAK,
            "accuracy",
            (0.95, 0.9, (0.91, 0.98)),
            [95, 91, 98, 90],
        ),
        (
            [score(), score(auc=(0.98, 0.96))],
            Status.LEAK,
            "AUC",
            (0.98, 0.95, (0.96, 0.99)),
            [98, 96, 99, 95],
        ),
        # Certain rows are not hidden behind a mean.
        (
            [score(sure=(0.1, 1.0))],
            Status.CERTAIN,
            "accuracy",
            (0.91, 0.9, (0.88, 0.98)),
            [90, 95, 100],
        ),
        ([score()], Status.NOT_SHOWN, "accuracy", (0.91, 0.9, (0.88, 0.98)), [91, 90, 90, 95]),
    ],
    ids=["accuracy", "AUC", "certain", "nothing"],
)
def test_the_verdict_has_the_figures_of_the_best_attack_and_control(
    scores, status, figure, figures, printed
):
    verdict = weigh(CONTROLS, scores)
    assert (verdict.status, verdict.figure, verdict.control) == (status, figure, CONTROLS[1])
    assert (verdict.value, verdict.known, verdict.interval) == figures
    assert verdict.above == ({"x": figure} if status is Status.LEAK else {})
    assert set(printed) <= set(percentages(verdict.sentence))


def test_a_perfect_ranking_of_rare_labels_tells_though_few_guesses_are_right():
    """7 % positives: the accuracy lies below the prior's, the order of the rows is perfect."""
    truth = LabelTable.from_data(np.array([1] * 32 + [0] * 423))
    score = judge("x", guess([2.0] * 32 + [1.0] * 75 + [-1.0] * 348), truth)
    controls = (prior(truth), Control("model-only", 0.929, 0.57))
    assert score.accuracy < controls[0].accuracy
    verdict = weigh(controls, [score])
    assert (verdict.status, verdict.figure, verdict.value) == (Status.LEAK, "AUC", 1.0)


def test_verdict_claims_nothing_from_a_handful_of_rows():
    """Ranked right by luck once in twenty: no more than a guess may be."""
    truth = LabelTable.from_data(np.array([1, 1, 1, 0, 0, 0]))
    score = judge("x", guess([3.0, 2.0, 1.0, 0.9, 0.8, 0.7]), truth)
    controls = (prior(truth), Control("model-only", 0.5, 0.6))
    verdict = weigh(controls, [score])
    assert (verdict.status, verdict.above) == (Status.NOT_SHOWN, {})


def test_verdict_without_attacks_is_no_proof_either():
    verdict = weigh(CONTROLS, [])
    assert (verdict.status, verdict.attack) == (Status.NOT_TESTED, None)
    assert np.isnan([verdict.value, *verdict.interval]).all()
    assert percentages(verdict.sentence) == [90.0]


shares = st.floats(0, 1)


@st.composite
def attack_scores(draw: st.DrawFn) -> AttackScore:
    low, middle, high = sorted(draw(st.tuples(shares, shares, shares)))
    auc = sorted(draw(st.tuples(shares, shares, shares)))
    certain = draw(st.none() | shares)
    name = draw(st.sampled_from(("one", "two", "three")))
    decided = 0.0 if certain is None else 0.5
    return AttackScore(name, 9, middle, low, high, auc[1], auc[0], auc[2], decided, certain, 0, "")


def by_hand(known: list[Control], attacks: list[AttackScore]) -> Status:
    """The rule once more, in one expression for each outcome."""
    if any(one.accuracy_low > max(control.accuracy for control in known) for one in attacks):
        return Status.LEAK
    if any(one.auc_low > max(control.auc for control in known) for one in attacks):
        return Status.LEAK
    if any(one.decided > 0 for one in attacks):
        return Status.CERTAIN
    return Status.NOT_SHOWN if attacks else Status.NOT_TESTED


@given(
    st.lists(st.builds(Control, st.just("control"), shares, shares), min_size=1, max_size=3),
    st.lists(attack_scores(), max_size=4, unique_by=lambda one: one.name),
)
def test_the_value_and_its_sentence_say_the_same(known, attacks):
    verdict: Verdict = weigh(known, attacks)
    assert verdict.status is by_hand(known, attacks)
    assert bool(verdict.above) == (verdict.status is Status.LEAK)
    if verdict.attack is not None and verdict.status is Status.LEAK:
        assert verdict.interval[0] > verdict.known
        assert verdict.above[verdict.attack.name] == verdict.figure
        assert verdict.attack.name in verdict.sentence
        for figure in (verdict.value, verdict.known):
            assert round(100 * figure, 2) in percentages(verdict.sentence)


# --- guesses at hidden batches --------------------------------------------------------------------


def members(iteration: int, members: list[int], size: int, certified: bool = False):
    return MembershipGuess(iteration, np.arange(10), np.array(members), size, certified)


def test_counts_over_all_iterations_together():
    guesses = [members(0, [0, 1, 2], 3), members(4, [7], 2, certified=True)]
    score = judge_membership(guesses, {0: np.array([1, 2, 3]), 4: np.array([7, 8])})
    assert score.precision == 3 / 4
    assert score.recall == 3 / 5
    assert score.k_exact == 1.0
    assert score.iterations == 2
    assert score.base_rate == 5 / 20
    assert score.certified == 0.5


@pytest.mark.parametrize("batches", [{}, {0: np.array([12])}], ids=["absent", "not asked"])
def test_refuses_the_batches_of_another_run(batches):
    with refused(ShapeError):
        judge_membership([members(0, [1], 1)], batches)
