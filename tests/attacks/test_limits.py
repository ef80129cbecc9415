"""A guess never depends on how fast the machine is: limits are counted, not timed."""

from __future__ import annotations

import ast
import itertools
import time
from pathlib import Path

import numpy as np
import pytest

from taciturn import attacks
from taciturn.attacks import KnownScoresAttack, LabelGuess, SparseAttack
from taciturn.audit import foresee, weigh
from taciturn.data import LabelTable
from taciturn.results import AT_RISK, CLEAR, AttackScore, Control
from tests.attacks.evidence import known_run

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
    looks = {path.name: clocks(path.read_text(encoding="utf-8")) for path in MODULES}
    assert {name: seen for name, seen in looks.items() if seen} == {}


@pytest.mark.parametrize(
    "text", ["import time", "from time import monotonic", 'linprog(options={"time_limit": 1})']
)
def test_a_clock_would_be_seen(text):
    assert clocks(text)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("attack", [SparseAttack(), KnownScoresAttack()], ids=["sparse", "known"])
def test_a_clock_that_leaps_changes_no_guess(attack, monkeypatch):
    """As on a machine so busy that an hour passes between any two looks at it."""
    view, _ = known_run(mechanism="hybrid", epochs=1)
    calm = attack.infer(view)
    hours = itertools.count(step=3600.0)
    for clock in ("perf_counter", "monotonic", "time", "process_time", "thread_time"):
        monkeypatch.setattr(time, clock, lambda: next(hours))
    hasty = attack.infer(view)
    assert calm.signal.any()
    assert np.array_equal(hasty.scores, calm.scores)
    assert np.array_equal(hasty.certain, calm.certain)
    assert (hasty.remark, hasty.work, hasty.limited) == (calm.remark, calm.work, calm.limited)


@pytest.mark.parametrize("spoken", [False, True])
def test_a_rehearsed_attack_that_a_limit_ended_is_a_risk(spoken):
    """It guesses half of the labels right, and a limit kept it from saying more."""
    labels = LabelTable.of([0, 1] * 50)
    signal, none = np.full(100, spoken), np.zeros(100, dtype=bool)
    for limited, level in ((False, CLEAR), (True, AT_RISK)):
        verdict, words = foresee(LabelGuess(np.ones(100), signal, none, "", limited), labels)
        assert verdict == level
        assert ("limit on its work" in words) == limited


def test_a_verdict_names_the_attacks_that_a_limit_ended():
    figures = (0.84, 0.80, 0.87, 0.52, 0.43, 0.61, 0.0, None, 0.1, "")
    scores = [AttackScore("x", 455, *figures), AttackScore("y", 455, *figures, limited=True)]
    sentence = weigh([Control("prior", 0.93, 0.5)], scores).sentence
    assert "A limit on work ended y: more may be possible." in sentence
    assert "limit" not in weigh([Control("prior", 0.93, 0.5)], scores[:1]).sentence
