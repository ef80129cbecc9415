"""Blocks on a terminal: no wider than it, no markup and no colour where there is none."""

from __future__ import annotations

from taciturn_audit.results.check import AttackVerdict, CheckFacts, CheckResult
from tests.report.test_terminal import LONG, words

FACTS = CheckFacts(
    rows=400,
    rehearsed_rows=300,
    alice_columns=30,
    batch_size=16,
    last_batch=7,
    epochs=10,
    claimed_epsilon_per_release=float("inf"),
    label_epsilon_per_release=float("inf"),
    label_epsilon_total=float("inf"),
    attack_ceiling=1.0,
    full_rank_share=1.0,
    median_condition=float("inf"),
    stacked_equations_per_row=18.75,
)


CHECK = CheckResult(
    verdict="leaks",
    verdicts=(
        AttackVerdict("exact-solve", "leaks", LONG, LONG),
        AttackVerdict("least-squares", "leaks", LONG, LONG),
        AttackVerdict("sign", "no attack of ours applies", "Alice has none", ""),
    ),
    facts=FACTS,
    warnings=(LONG,),
    notes=("none does not use epsilon",),
    recommendations=(),
    prediction=None,
)


def test_a_check_names_attacks_alike_together():
    text = words(CHECK.blocks())
    # One row for both, so that what they share is said once.
    assert text.count("exact-solve,") == text.count("least-squares") == 1
    assert "∞" in text
