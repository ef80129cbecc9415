"""A guess never depends on how fast the machine is: limits are counted, not timed."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from taciturn.data.label_table import LabelTable
from taciturn_audit import attacks
from taciturn_audit.attacks.base import LabelGuess
from taciturn_audit.results.audit import AttackScore, Control
from taciturn_audit.results.check import AT_RISK, CLEAR
from taciturn_audit.verdict import foresee, weigh

MODULES = sorted(Path(attacks.__path__[0]).glob("*.py"))


def clocks(text: str) -> set[str]:
    """What of a module could look at a clock: an import of one, or a solver's time limit."""
    nodes = list(ast.walk(ast.parse(text)))
    imported = {
        name.name.partition(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    } | {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    texts = {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
    return (imported & {"time", "datetime", "signal"}) | (texts & {"time_limit"})


def test_no_attack_looks_at_a_clock():
    assert len(MODULES) > 10
    seen = ("import time", "from time import monotonic", 'linprog(options={"time_limit": 1})')
    assert all(clocks(text) for text in seen)
    looks = {path.name: clocks(path.read_text(encoding="utf-8")) for path in MODULES}
    assert {name: seen for name, seen in looks.items() if seen} == {}


@pytest.mark.parametrize("spoken", [False, True])
def test_a_rehearsed_attack_that_a_limit_ended_is_a_risk(spoken):
    """It guesses half of the labels right, and a limit kept it from saying more."""
    labels = LabelTable.from_data([0, 1] * 50)
    signal, none = np.full(100, spoken), np.zeros(100, dtype=bool)
    for limited, level in ((False, CLEAR), (True, AT_RISK)):
        verdict, _ = foresee(LabelGuess(np.ones(100), signal, none, "", limited), labels)
        assert verdict == level


def test_a_verdict_names_the_attacks_that_a_limit_ended():
    figures = (0.84, 0.80, 0.87, 0.52, 0.43, 0.61, 0.0, None, 0.1, "")
    scores = [AttackScore("unhurried", 455, *figures)]
    scores.append(AttackScore("curtailed", 455, *figures, limited=True))
    unlimited, limited = (
        weigh([Control("prior", 0.93, 0.5)], listed).sentence for listed in (scores[:1], scores)
    )
    assert "curtailed" in limited
    assert "curtailed" not in unlimited
    assert "unhurried" not in limited
