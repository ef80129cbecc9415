"""The judge's arithmetic, the runner's bookkeeping, and the words of the verdict."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from taciturn.attacks.base import Attack, LabelGuess
from taciturn.attacks.exact_solve import ExactSolveAttack
from taciturn.attacks.registry import ATTACKS
from taciturn.audit.judge import AttackScore, ControlScore, commoner_label, judge, prior
from taciturn.audit.runner import examine
from taciturn.audit.verdict import verdict
from taciturn.data.tables import LabelTable
from taciturn.engine.callbacks import ReportProgress
from taciturn.errors import RowOrderError, ShapeError
from taciturn.numerics.intervals import auc_interval, clopper_pearson
from taciturn.privacy.unprotected import Unprotected
from taciturn.protocol.observations import Signal
from taciturn.view.alice_view import AliceView
from tests.attacks.test_attacks import run


def guess(scores: list[float], certain: list[bool] | None = None) -> LabelGuess:
    sure = np.zeros(len(scores), bool) if certain is None else np.array(certain)
    return LabelGuess(np.array(scores), np.ones(len(scores), bool), sure)


def test_judge_counts_by_hand():
    truth = LabelTable.of(np.array([1, 0, 1, 1]))
    score = judge("a", guess([0.3, -2.0, -0.1, 4.0], [True, True, True, False]), truth, 1.5)
    assert score.accuracy == 0.75
    assert (score.accuracy_low, score.accuracy_high) == clopper_pearson(3, 4)
    assert score.auc == pytest.approx(1.0)
    assert (score.auc_low, score.auc_high) == auc_interval(score.auc, 3, 1)
    assert score.to_dict()["auc_low"] == score.auc_low
    assert score.decided == 0.75
    assert score.decided_correct == pytest.approx(2 / 3)
    assert score.seconds == 1.5


def test_a_score_of_zero_guesses_label_zero():
    truth = LabelTable.of(np.array([1, 0]))
    assert judge("a", guess([0.0, 0.0]), truth).accuracy == 0.5


def test_nothing_decided_has_no_share_right():
    truth = LabelTable.of(np.array([1, 0]))
    assert judge("a", guess([1.0, -1.0]), truth).decided_correct is None


def test_labels_of_one_class_have_no_auc_and_no_interval():
    score = judge("a", guess([1.0, -1.0]), LabelTable.of(np.array([1, 1])))
    assert np.isnan([score.auc, score.auc_low, score.auc_high]).all()


def test_judge_refuses_a_guess_at_other_rows():
    with pytest.raises(ShapeError, match="3 rows where there are 2"):
        judge("a", guess([1.0, 1.0, 1.0]), LabelTable.of(np.array([1, 0])))


def test_prior_is_the_commoner_label():
    assert prior(LabelTable.of(np.array([1, 0, 0, 0]))).accuracy == 0.75
    assert prior(LabelTable.of(np.array([1, 1, 1, 0]))).auc == 0.5


def test_the_commoner_label_ranks_between_what_an_attack_calls_one_and_zero():
    truth = LabelTable.of(np.array([1, 1, 0, 0, 0]))
    mine = guess([1.0, 9.0, 9.0, 9.0, -1e-9])
    told = LabelGuess(mine.scores, np.array([True, False, False, False, True]), mine.certain)
    whole = told.completed(commoner_label(truth))
    assert judge("a", whole, truth).accuracy == 0.8
    assert np.argsort(whole.scores)[[0, -1]].tolist() == [4, 0]


@pytest.fixture(scope="module")
def seen():
    return run(epochs=1)


def test_every_attack_is_run_or_skipped(seen):
    view, truth = seen
    told: list[str] = []
    found = examine(view, truth, announce=told.append)
    assert [score.name for score in found.attacks] == told
    assert [control.name for control in found.controls] == ["prior", "model-only"]
    named = {score.name for score in found.attacks} | {each.name for each in found.skipped}
    assert named == {attack.name for attack in ATTACKS}
    assert {each.name for each in found.skipped} == {"likelihood", "sign"}
    assert set(found.guesses) == set(told)


def blind(truth: LabelTable, *signals: Signal) -> AliceView:
    """A view of these rows that holds nothing but the named signals."""
    view = SimpleNamespace(
        features=SimpleNamespace(ids=truth.ids),
        signals=frozenset(signals),
        mechanism=Unprotected(),
    )
    return cast(AliceView, view)


def test_what_lacks_its_signal_is_skipped_with_the_reason():
    truth = LabelTable.of(np.array([1, 0, 0]))
    found = examine(blind(truth, Signal.FEATURES), truth, attacks=(ExactSolveAttack(),))
    assert found.attacks == ()
    assert [each.to_dict() for each in found.skipped] == [
        {"name": "model-only", "reason": "Alice does not have her own weights in clear"},
        {
            "name": "exact-solve",
            "reason": "Alice does not have the gradient of each batch in clear",
        },
    ]


class FirstRow(Attack):
    """Tells the first row's label, and has nothing to say about the others."""

    name = "first-row"
    reference = "a test's"
    needs = frozenset({Signal.FEATURES})

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        first = np.array([True, False, False, False])
        return LabelGuess(first * 1.0, first, first)


def test_without_weights_an_attack_falls_back_to_the_commoner_label():
    truth = LabelTable.of(np.array([1, 1, 1, 0]))
    found = examine(blind(truth, Signal.FEATURES), truth, attacks=(FirstRow(),))
    assert found.controls == (prior(truth),)
    assert found.attacks[0].accuracy == 0.75


def test_labels_of_other_rows_are_refused(seen):
    view, truth = seen
    turned = truth.take(np.arange(truth.rows)[::-1])
    with pytest.raises(RowOrderError):
        examine(view, turned)


CONTROLS = (ControlScore("prior", 0.6, 0.5), ControlScore("model-only", 0.9, 0.95))


def score(
    accuracy: float = 0.91,
    low: float = 0.88,
    *,
    auc: tuple[float, float] = (0.9, 0.8),
    sure: tuple[float, float | None] = (0.0, None),
) -> AttackScore:
    return AttackScore("x", 100, accuracy, low, 0.98, auc[0], auc[1], 0.99, *sure, 0.0, "")


def test_verdict_names_what_tells_more_than_the_controls():
    assert verdict(CONTROLS, [score(), score(0.95, 0.91)]) == (
        "x tells Alice 95.00 % of 100 labels (95 % interval 91.00 – 98.00 %); "
        "the better control tells 90.00 %."
    )


def test_verdict_names_what_ranks_better_than_the_controls():
    assert verdict(CONTROLS, [score(), score(auc=(0.98, 0.96))]) == (
        "x ranks the labels with AUC 98.00 % (95 % interval 96.00 – 99.00 %, 100 rows); "
        "the better control's AUC is 95.00 %."
    )


def test_a_perfect_ranking_of_rare_labels_tells_though_few_guesses_are_right():
    """7 % positives: the accuracy lies below the prior's, the order of the rows is perfect."""
    truth = LabelTable.of(np.array([1] * 32 + [0] * 423))
    found = judge("x", guess([2.0] * 32 + [1.0] * 75 + [-1.0] * 348), truth)
    controls = (prior(truth), ControlScore("model-only", 0.929, 0.57))
    assert found.accuracy < controls[0].accuracy
    assert verdict(controls, [found]).startswith("x ranks the labels with AUC 100.00 % (95 %")


def test_verdict_claims_nothing_from_a_handful_of_rows():
    """Ranked right by luck once in twenty: no more than a guess may be."""
    truth = LabelTable.of(np.array([1, 1, 1, 0, 0, 0]))
    found = judge("x", guess([3.0, 2.0, 1.0, 0.9, 0.8, 0.7]), truth)
    controls = (prior(truth), ControlScore("model-only", 0.5, 0.6))
    assert verdict(controls, [found]).startswith("No attack of ours told more")


def test_verdict_does_not_hide_certain_rows_behind_a_mean():
    text = verdict(CONTROLS, [score(sure=(0.1, 1.0))])
    assert "(accuracy 90.00 %, AUC 95.00 %)" in text
    assert "calls 10.00 % of 100 labels certain and is right on 100.00 % of those" in text


def test_verdict_gives_both_figures_where_nothing_shows():
    assert verdict(CONTROLS, [score()]) == (
        "No attack of ours told more than the controls: best accuracy 91.00 % against 90.00 %, "
        "best AUC 90.00 % against 95.00 %. That is not a proof of safety."
    )


def test_verdict_without_attacks_is_no_proof_either():
    assert verdict(CONTROLS, []) == (
        "No attack of ours applies to what Alice has; the controls tell 90.00 % of the labels. "
        "That is not a proof of safety."
    )
