"""Where labels were shuffled before training, only the prior is a control."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import taciturn
from taciturn.data.label_table import LabelTable
from taciturn.numerics.intervals import auc_interval
from taciturn_audit.attacks.base import LabelGuess
from taciturn_audit.judge import judge, prior
from taciturn_audit.results.audit import AttackScore, Control
from taciturn_audit.results.check import LEAKS
from taciturn_audit.results.runs import AuditResult
from taciturn_audit.runner import Guesses
from taciturn_audit.verdict import Status, conclude, weigh
from tests.seldom import seldom

ROWS, COLUMNS, POSITIVES = 1200, 66, 26
OPTIONS: dict[str, Any] = {"label": "label", "mechanism": "none", "scheme": "clear"}


def wide_table() -> pl.DataFrame:
    """A wide, imbalanced table: weights fit 26 positives closely, whatever their columns say."""
    generator = np.random.default_rng(32)
    values = generator.normal(size=(ROWS, COLUMNS))
    scores = 0.6 * values[:, 0] - 0.5 * values[:, 1] + generator.normal(size=ROWS)
    labels = np.zeros(ROWS, dtype=int)
    labels[np.argsort(-scores)[:POSITIVES]] = 1
    columns = {f"x{number}": values[:, number] for number in range(COLUMNS)}
    return pl.DataFrame({**columns, "label": labels})


def audit(**options: Any) -> AuditResult:
    return taciturn.audit(wide_table(), **{**OPTIONS, "seat": "alice", "seed": 1, **options})


@pytest.fixture(scope="module")
def audited() -> AuditResult:
    return audit()


def test_a_model_that_ranks_shuffled_labels_is_a_leak(audited):
    conclusion = conclude(audited)
    assert audited.first.agreement.solver.name == "newton"
    assert conclusion.status is Status.LEAK
    canary, run = conclusion.canary, conclusion.run
    assert canary is not None
    assert canary.verdict.attack is not None
    assert canary.verdict.attack.name == "model-only"
    assert canary.verdict.above["model-only"] == "AUC"
    assert [one.name for one in canary.verdict.controls] == ["prior"]
    # On the labels themselves the model is a control, as it is for whoever has the model.
    assert run.status is Status.NOT_SHOWN
    assert [one.name for one in run.verdict.controls] == ["prior", "model-only"]


def test_check_says_the_same_and_both_name_the_solver_of_the_residue_attack(audited):
    checked = taciturn.check(wide_table(), **OPTIONS)
    assert checked.worst == LEAKS
    assert {one.attack for one in checked.verdicts if one.verdict == LEAKS} >= {"model-only"}
    for notes in (audited.to_dict()["notes"], checked.notes):
        assert len([note for note in notes if "sgd" in note]) == 1
    sgd = taciturn.check(wide_table(), **OPTIONS, solver="sgd", epochs=1)
    assert not [note for note in sgd.notes if "--solver" in note]


def test_a_run_on_shuffled_labels_is_its_own_canary():
    conclusion = conclude(audit(permute_labels=True))
    assert conclusion.canary is None
    assert conclusion.status is Status.LEAK


def test_a_model_that_is_handed_out_after_training_counts_too():
    """Nothing but the weights reaches Alice in clear; they were fitted to shuffled labels."""
    revealed = audit(mechanism="sealed", reveal=True)
    assert conclude(revealed).status is Status.LEAK
    checked = taciturn.check(wide_table(), **{**OPTIONS, "mechanism": "sealed"}, reveal=True)
    assert checked.worst == LEAKS


def test_where_alice_has_no_weights_there_is_no_model_to_ask():
    canary = audit(mechanism="sealed").canary
    assert canary is not None
    assert canary.attacks == ()
    assert [one.name for one in canary.controls] == ["prior"]


@pytest.mark.parametrize(
    ("rows", "positives", "methods"),
    seldom(
        [(960, 21, 12), (960, 21, 1), (60, 3, 5), (40, 20, 11), (300, 120, 3)],
        always=[(960, 21, 1), (60, 3, 5)],
    ),
)
def test_guesses_that_know_nothing_seldom_raise_an_alarm(rows, positives, methods):
    """Five of a hundred audits at most, for all methods together, within three standard errors."""
    generator = np.random.default_rng(rows + methods)
    everywhere, tried, alarms = np.ones(rows, dtype=bool), 1000, 0
    labels = np.arange(rows) < positives
    for _ in range(tried):
        truth = LabelTable.from_data(generator.permutation(labels).astype(int))
        scores = [
            judge(str(number), LabelGuess(guess, everywhere, ~everywhere), truth)
            for number, guess in enumerate(generator.normal(size=(methods, rows)))
        ]
        alarms += weigh([prior(truth)], scores, shuffled=True).status is Status.LEAK
    assert alarms <= tried * 0.05 + 3 * np.sqrt(tried * 0.05 * 0.95)


def test_many_methods_need_more_than_one():
    """An area that shows by itself does not show among twenty."""
    known, ends = Control("prior", 0.5, 0.5), auc_interval(0.6, 100, 100)
    one = AttackScore("one", 200, 0.5, 0.42, 0.58, 0.6, *ends, 0.0, None, 0.0, "")
    alone, among = (weigh([known], [one] * count, shuffled=True).status for count in (1, 20))
    assert (alone, among) == (Status.LEAK, Status.NOT_SHOWN)


def test_an_attack_without_a_signal_does_not_take_the_models_place():
    """Such an attack has the model's guess, and the verdict names the model."""
    truth = LabelTable.from_data(np.arange(400) % 2)
    nowhere = np.zeros(400, dtype=bool)
    model = LabelGuess(np.where(truth.values == 1, 0.5, -0.5), ~nowhere, nowhere)
    mute = LabelGuess(np.zeros(400), nowhere, nowhere)
    guesses = Guesses(model, {"mute": mute}, {"mute": 0.0}, ())
    findings = guesses.judged(truth, shuffled=True)
    verdict = weigh(findings.controls, findings.attacks, shuffled=True)
    assert verdict.attack is not None
    assert verdict.attack.name == "model-only"
