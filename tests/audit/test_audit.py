"""The judge's arithmetic, the runner's bookkeeping, and the words of the verdict."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.attacks.base import LabelGuess
from tacit.attacks.exact_solve import ExactSolveAttack
from tacit.audit.judge import AttackScore, ControlScore, judge, prior
from tacit.audit.runner import examine
from tacit.audit.verdict import verdict
from tacit.data.tables import LabelTable
from tacit.errors import RowOrderError, ShapeError
from tacit.numerics.intervals import clopper_pearson
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
    assert score.decided == 0.75
    assert score.decided_correct == pytest.approx(2 / 3)
    assert score.seconds == 1.5


def test_a_score_of_zero_guesses_label_zero():
    truth = LabelTable.of(np.array([1, 0]))
    assert judge("a", guess([0.0, 0.0]), truth).accuracy == 0.5


def test_nothing_decided_has_no_share_right():
    truth = LabelTable.of(np.array([1, 0]))
    assert judge("a", guess([1.0, -1.0]), truth).decided_correct is None


def test_judge_refuses_a_guess_at_other_rows():
    with pytest.raises(ShapeError, match="3 rows where there are 2"):
        judge("a", guess([1.0, 1.0, 1.0]), LabelTable.of(np.array([1, 0])))


def test_prior_is_the_commoner_label():
    assert prior(LabelTable.of(np.array([1, 0, 0, 0]))).accuracy == 0.75
    assert prior(LabelTable.of(np.array([1, 1, 1, 0]))).auc == 0.5


@pytest.fixture(scope="module")
def seen():
    return run(epochs=1)


def test_every_attack_is_run_or_skipped(seen):
    view, truth = seen
    told: list[str] = []
    found = examine(view, truth, announce=told.append)
    assert [score.name for score in found.attacks] == told == ["exact-solve", "least-squares"]
    assert [control.name for control in found.controls] == ["prior", "model-only"]
    assert found.skipped == ()


def test_an_attack_that_lacks_its_signal_is_skipped_with_the_reason(seen):
    view, truth = seen

    class Deaf(ExactSolveAttack):
        @property
        def needs(self):  # type: ignore[override]
            from tacit.view.signals import Signal

            return frozenset({Signal.GRADIENTS})

    blind = type(view)(view.agreement, view.features, view.coins, view.transcript)
    blind.__dict__["signals"] = frozenset()
    found = examine(blind, truth, attacks=(Deaf(),))
    assert found.attacks == ()
    assert found.skipped[0].to_dict() == {
        "name": "exact-solve",
        "reason": "Alice does not have the gradient of each batch in clear",
    }


def test_labels_of_other_rows_are_refused(seen):
    view, truth = seen
    turned = truth.take(np.arange(truth.rows)[::-1])
    with pytest.raises(RowOrderError):
        examine(view, turned)


def score(accuracy: float, low: float, decided: float, right: float | None) -> AttackScore:
    return AttackScore("x", 100, accuracy, low, 1.0, 0.5, decided, right, 0.0, "")


CONTROLS = (ControlScore("prior", 0.6, 0.5), ControlScore("model-only", 0.9, 0.95))


def test_verdict_names_what_tells_more_than_the_controls():
    text = verdict(CONTROLS, [score(0.95, 0.91, 0.0, None)])
    assert text == "x tells Alice 95.00% of the labels; the controls tell 90.00%."


def test_verdict_does_not_hide_certain_rows_behind_a_mean():
    text = verdict(CONTROLS, [score(0.91, 0.88, 0.1, 1.0)])
    assert "calls 10.00% of the labels certain and is right on 100.00%" in text


def test_verdict_never_says_safe():
    for attacks in ([], [score(0.91, 0.88, 0.0, None)]):
        text = verdict(CONTROLS, attacks)
        assert text.startswith("No attack of ours told more")
        assert "not a proof of safety" in text
