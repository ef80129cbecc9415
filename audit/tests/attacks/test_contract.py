"""What every attack on labels keeps to. A new attack joins by one line in ``CASES``."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from audit.tests.attacks.evidence import applies, known_run, rare_run, sits_at_chance

from taciturn.data.label_table import LabelTable
from taciturn_audit.attacks.base import Attack, LabelGuess, ModelOnlyControl
from taciturn_audit.attacks.registry import ATTACKS, rehearsal_attacks
from taciturn_audit.judge import judge
from taciturn_audit.views.alice_view import AliceView
from tests.seldom import seldom

ADD: dict[str, Any] = {"mechanism": "add", "epsilon": 10.0, "epochs": 10}
KINDS: dict[str, dict[str, Any]] = {
    "gradients": {"epochs": 3},
    "hidden": {"mechanism": "hybrid", "epochs": 1},
    "residues": ADD,
    "sums": {"solver": "newton", "passes": 4},
    "sealed": {"mechanism": "sealed", "solver": "newton", "passes": 2},
}
BATCHES = frozenset({"gradients", "hidden"})


@dataclass(frozen=True)
class Case:
    """A registered attack, a run that gives labels away to it, and what it reaches there.

    Args:
        name: Of the attack.
        options: Of the run.
        auc: The least AUC; 1 stands for every label right.
        shuffled: The same where labels are shuffled before training; None where it reaches nothing.
        certain: The least share of rows that it proves; 0 where it proves none.
        beside: The least AUC where Bob has half of the columns; None where other tests have it.
        reads: The kinds of runs that it applies to.
        made: Makes the run.
    """

    name: str
    options: dict[str, Any]
    auc: float
    shuffled: float | None
    certain: float
    beside: float | None
    reads: frozenset[str] = BATCHES
    made: Callable[..., tuple[AliceView, LabelTable]] = known_run

    @property
    def attack(self) -> Attack:
        (attack,) = (one for one in ATTACKS if one.name == self.name)
        assert isinstance(attack, Attack)
        return attack


EPOCH, EPOCHS = {"epochs": 1}, KINDS["gradients"]
CASES = (
    Case("exact-solve", EPOCHS, 1.0, 1.0, 1.0, 0.5),
    Case("least-squares", EPOCHS, 1.0, 1.0, 0.0, 0.95),
    Case("sparse", EPOCH, 1.0, 1.0, 0.95, None),
    Case("known-scores", EPOCH, 1.0, 1.0, 0.95, None),
    Case("stacking", EPOCHS, 1.0, 1.0, 1.0, 0.95, frozenset({"gradients"})),
    Case("moments", KINDS["sums"], 0.9, None, 0.0, 0.7, frozenset({"sums"})),
    Case("likelihood", ADD, 1.0, 1.0, 0.99, 0.9, frozenset({"residues"})),
    Case("sign", ADD, 0.75, 0.99, 0.0, 0.7, frozenset({"residues"})),
    Case("gradient-norm", {}, 0.9, 0.9, 0.0, None, BATCHES | {"residues"}, rare_run),
    Case("gradient-direction", {"epochs": 10}, 0.93, 0.93, 0.0, 0.85),
    Case("label-enumeration", EPOCH, 0.9, None, 0.0, 0.8),
)
EVERY = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@cache
def attacked(name: str, **extra: Any) -> tuple[LabelGuess, LabelTable]:
    """An attack's guess at the labels of its run, and the truth."""
    case = next(case for case in CASES if case.name == name)
    view, truth = case.made(**{**case.options, **extra})
    return case.attack.infer(view), truth


def require_success(case: Case, least: float, **extra: Any) -> None:
    guess, truth = attacked(case.name, **extra)
    score = judge(case.name, guess, truth)
    assert score.auc >= least
    assert score.accuracy == 1.0 or least < 1.0
    assert score.decided >= case.certain
    assert case.certain or score.decided == 0.0
    assert score.decided_correct in (None, 1.0)


def test_every_attack_is_registered_once_and_has_a_case():
    # What guesses values of other families has its cases in audit/tests/test_families.py.
    classes = [attack.name for attack in ATTACKS if "binomial" in attack.families]
    assert [case.name for case in CASES] == classes
    assert all(attack.reference and attack.needs for attack in ATTACKS)
    assert [attack.name for attack in rehearsal_attacks()] == [attack.name for attack in ATTACKS]


def test_no_attack_has_a_way_in_of_its_own():
    """``Attack.infer`` sees to one thread of linear algebra."""
    for attack in (*ATTACKS, *rehearsal_attacks(), ModelOnlyControl()):
        assert isinstance(attack, Attack)
        assert "infer" not in type(attack).__dict__


@EVERY
def test_tells_labels_of_an_unprotected_run(case):
    require_success(case, case.auc)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.shuffled], ids=lambda case: case.name
)
def test_tells_labels_that_were_shuffled_before_training(case):
    require_success(case, case.shuffled, permute_labels=True)


@EVERY
def test_sits_at_chance_against_labels_shuffled_after_the_run(case):
    """False alarm: about 2e-5 for each."""
    assert sits_at_chance(*attacked(case.name))


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.beside], ids=lambda case: case.name
)
def test_with_columns_at_bob_it_is_weaker_and_claims_nothing_wrong(case):
    guess, truth = attacked(case.name, alice_columns="half", intercept=True)
    score = judge(case.name, guess, truth)
    assert guess.covers(truth.rows)
    assert score.auc > case.beside
    assert score.decided_correct in (None, 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_applies_to_what_it_can_read_and_to_nothing_else(kind):
    view, _ = known_run(**KINDS[kind])
    applying = {attack.name for attack in ATTACKS if not attack.lacks(view)}
    assert applying == {case.name for case in CASES if kind in case.reads}


@pytest.mark.parametrize("case", seldom(CASES, always=CASES[3:]), ids=lambda case: case.name)
def test_a_clock_that_leaps_changes_no_guess(case, monkeypatch):
    """The same view gives the same guess, also where an hour passes between any two looks."""
    calm, _ = attacked(case.name)
    view, _ = case.made(**case.options)
    hours = itertools.count(step=3600.0)
    for clock in ("perf_counter", "monotonic", "time", "process_time", "thread_time"):
        monkeypatch.setattr(time, clock, lambda: next(hours))
    hasty = case.attack.infer(view)
    assert calm.signal.any()
    assert np.array_equal(hasty.scores, calm.scores)
    assert np.array_equal(hasty.certain, calm.certain)
    assert (hasty.remark, hasty.work, hasty.limited) == (calm.remark, calm.work, calm.limited)


@EVERY
def test_progress_grows_to_everything(case):
    reports: list[tuple[int, int]] = []
    view, _ = case.made(**case.options)
    case.attack.infer(view, lambda done, total: reports.append((done, total)))
    assert reports == sorted(reports)
    assert len({total for _, total in reports}) <= 1
    assert all(done == total for done, total in reports[-1:])


@EVERY
def test_a_run_that_has_not_begun_says_nothing(case):
    view, truth = case.made(**case.options)
    nothing = view.until(0)
    assert not applies(case.attack, nothing) or not case.attack.infer(nothing).signal.any()
    assert truth.rows == view.features.rows
