"""What every attack on Alice's columns keeps to. A new attack joins by one line in ``CASES``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from audit.tests.column_attacks.runs import Run, newton, of_people, sgd

from taciturn.rng import KeyedEntropy
from taciturn_audit.column_attacks.base import Ambiguity, ColumnAttack
from taciturn_audit.column_attacks.registry import COLUMN_ATTACKS
from taciturn_audit.columns import controls, judge_columns
from taciturn_audit.results.columns import ColumnScore, is_above
from taciturn_audit.views.bob_view import BobView

PASSES, BATCHES = frozenset({"passes"}), frozenset({"passes", "batches"})
# Of one category alone equal scores are equal rows, whatever the solver.
KINDS: dict[str, Callable[[], Run]] = {
    "passes": newton,
    "batches": lambda: sgd("none"),
    "mutual": lambda: newton("mutual", passes=2),
}


@dataclass(frozen=True)
class Case:
    """A registered attack, a run that gives columns away to it, and what it reaches there.

    Args:
        name: Of the attack.
        made: Makes the run, with a mechanism.
        options: Of the run.
        known: How many rows Bob knows.
        least: The share of the values that it recovers at least.
        reads: The kinds of runs on amounts that it applies to.
    """

    name: str
    made: Callable[..., Run]
    options: dict[str, Any]
    known: int
    least: float
    reads: frozenset[str]

    @property
    def attack(self) -> ColumnAttack:
        (attack,) = (one for one in COLUMN_ATTACKS if one.name == self.name)
        return attack

    def run(self, mechanism: str = "sealed") -> Run:
        return self.made(mechanism=mechanism, **self.options)

    def score(self, view: BobView | None = None) -> ColumnScore:
        return self.run().score(self.attack, self.known, view)


CASES = (
    Case("anchored", newton, {}, 4, 0.99, BATCHES),
    Case("gram", newton, {}, 0, 0.98, BATCHES),
    Case("discrete", of_people, {"columns": "place", "passes": 3}, 0, 0.97, PASSES),
    Case("lattice", newton, {}, 0, 0.99, PASSES),
    Case("integer-columns", of_people, {"columns": "owner,children", "passes": 4}, 0, 0.95, PASSES),
    Case("prediction", of_people, {"columns": "income", "passes": 2}, 1, 0.99, BATCHES),
)
EVERY = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def above(run: Run, score: ColumnScore) -> bool:
    return is_above(score, controls(run.truth, run.view.features, run.view.labels))


def applies(attack: ColumnAttack, view: BobView) -> bool:
    return bool(attack.needs & view.signals) and not attack.obstacle(view)


def test_every_attack_is_registered_once_and_has_a_case():
    assert [case.name for case in CASES] == [attack.name for attack in COLUMN_ATTACKS]
    for attack in COLUMN_ATTACKS:
        assert attack.reference
        assert attack.needs
        # ``ColumnAttack.estimate`` sees to one thread of linear algebra.
        assert "estimate" not in type(attack).__dict__


@EVERY
@pytest.mark.parametrize("mechanism", ["none", "sealed"])
def test_recovers_columns_where_scores_are_opened(case, mechanism):
    run = case.run(mechanism)
    score = run.score(case.attack, case.known)
    assert score.known_rows == case.known
    assert score.recovered >= case.least
    assert above(run, score)


@EVERY
def test_scores_of_other_rows_tell_nothing(case):
    run = case.run()
    score = case.score(run.hidden)
    assert not above(run, score)
    assert score.r2 is None or score.r2 < 0.1


@EVERY
def test_it_is_at_the_control_against_the_columns_of_others(case):
    """Judged by rows permuted after the run, with the same freedom."""
    run = case.run()
    order = KeyedEntropy.from_seed(4).permutation(len(run.hers))
    truth, known = replace(run.truth, values=run.hers[order]), run.known(case.known)
    estimate = case.attack.estimate(run.view, known)
    judged = judge_columns(case.name, estimate, truth, known)
    assert not is_above(judged, controls(truth, run.view.features, run.view.labels))


@EVERY
def test_the_same_view_gives_the_same_estimate_and_known_rows_keep_their_values(case):
    run, known = case.run(), case.run().known(case.known)
    first, second = (case.attack.estimate(run.view, known) for _ in range(2))
    assert np.array_equal(first.values, second.values)
    assert (first.remark, first.limited) == (second.remark, second.limited)
    if first.ambiguity is Ambiguity.NONE:
        assert np.allclose(first.values[known.rows], known.values, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "options", "known", "least"),
    [
        pytest.param("anchored", {}, 10, 0.95, marks=pytest.mark.slow),  # some seconds
        ("gram", {}, 0, 0.8),
        ("prediction", {"alice_columns": 1, "epochs": 2}, 1, 0.99),
    ],
)
def test_batches_tell_columns_too_and_nothing_of_other_rows(name, options, known, least):
    (attack,) = (one for one in COLUMN_ATTACKS if one.name == name)
    run = sgd("none", **options)
    score, blind = run.score(attack, known), run.score(attack, known, run.hidden)
    assert score.r2 is not None
    assert score.r2 > least
    assert not above(run, blind)


@pytest.mark.parametrize("kind", KINDS)
def test_applies_to_what_it_can_read_and_to_nothing_else(kind):
    view = KINDS[kind]().view
    applying = {attack.name for attack in COLUMN_ATTACKS if applies(attack, view)}
    assert applying == {case.name for case in CASES if kind in case.reads}
