"""Attacks on labels by several Alices who pool what they have, and by one of them alone."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from audit.tests.attacks.evidence import applies, known_run, sits_at_chance
from audit.tests.views.several import NEWTON, Several, several

from taciturn.data.label_table import LabelTable
from taciturn_audit.attacks.linear import ExactSolveAttack
from taciturn_audit.attacks.registry import ATTACKS
from taciturn_audit.results.audit import AttackScore, Findings
from taciturn_audit.runner import examine
from taciturn_audit.views.alice_view import AliceView

PASSES = {**NEWTON, "batch_size": 40, "epochs": 4}
# Rare labels are what the size of a gradient tells, and these are about even.
SILENT = {"gradient-norm"}
UNPROTECTED: dict[str, tuple[dict[str, Any], float]] = {
    "gradients": ({"epochs": 3}, 0.85),
    "sums over all rows": ({"solver": "newton", "passes": 4}, 0.85),
    "residues": ({"mechanism": "add", "epsilon": 30.0, "epochs": 2}, 0.85),
}


def scored(view: AliceView, truth: LabelTable) -> dict[str, AttackScore]:
    findings: Findings = examine(view, truth, attacks=ATTACKS).findings
    return {score.name: score for score in findings.attacks}


def exact(made: Several, *places: int) -> AttackScore:
    view = made.coalition(*places)
    return scored(view, made.star.tables.labels)[ExactSolveAttack.name]


@pytest.mark.parametrize("alices", [2, 3])
@pytest.mark.sampled(1)
def test_together_they_solve_what_none_can_alone(alices):
    """Batches of four rows: three columns leave them open, six do not."""
    made = several(alices, columns=3 * alices, batch_size=4)
    for place in range(alices):
        alone = exact(made, place)
        assert alone.decided == 0.0
    for pair in combinations(range(alices), 2):
        together = exact(made, *pair)
        assert (together.accuracy, together.decided) == (1.0, 1.0)


@pytest.mark.parametrize("alices", [2, 3])
@pytest.mark.parametrize(("options", "least"), UNPROTECTED.values(), ids=list(UNPROTECTED))
@pytest.mark.sampled(3)
def test_every_attack_that_applies_succeeds_together_and_is_at_chance_against_other_labels(
    options, least, alices
):
    view, truth = known_run(parties=alices, **options)
    assert len(view.names) == alices
    examined = examine(view, truth, attacks=ATTACKS)
    scores = {score.name: score for score in examined.findings.attacks}
    assert scores
    assert {name for name, one in scores.items() if one.accuracy < least} <= SILENT
    for score in scores.values():
        assert score.decided_correct in (None, 1.0)
    for guess in examined.guesses.values():
        assert sits_at_chance(guess, truth)


@pytest.mark.parametrize("alices", [2, 3])
def test_sealed_gives_no_attack_anything_whoever_pools(alices):
    made = several(alices, mechanism="sealed", **PASSES)
    for size in range(1, alices + 1):
        for places in combinations(range(alices), size):
            view = made.coalition(*places)
            assert not [attack for attack in ATTACKS if applies(attack, view)]


def test_an_alice_alone_calls_nothing_certain_that_others_columns_could_change():
    made = several(3)
    truth = made.star.tables.labels
    for place in range(3):
        for score in scored(made.alices[place], truth).values():
            assert score.decided_correct in (None, 1.0)
