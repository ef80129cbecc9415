"""What tests of attacks share: a small run's view, and whether a guess is better than luck."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray, IntArray
from taciturn.data.label_table import LabelTable
from taciturn.jobs.train.simulation import simulate_training
from taciturn.privacy.solvers import resolved
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation import load_raw
from taciturn_audit.adversaries import alice_view
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.judge import judge
from taciturn_audit.views.alice_view import AliceView

DATASETS = ("breast-cancer", "sklearn-digits")
# Normal deviates beyond this come once in 90,000 times.
ALARM = 4.4


def run(table: object = None, **options: Any) -> tuple[AliceView, LabelTable]:
    """Alice's view of a small simulated run, or all Alices' together, and the truth."""
    base = {"dataset": "breast-cancer", "mechanism": "none", "scheme": "clear", "seed": 5}
    settings = resolved(Settings.from_mapping({**base, **options}))
    outcome = simulate_training(settings, load_raw(settings, table), keep=True)
    assert outcome.transcript is not None
    return alice_view(outcome.transcript, outcome.data), outcome.data.labels_train


def known_run(**options: Any) -> tuple[AliceView, LabelTable]:
    """``run`` of a dataset, made once for all tests that ask for the same."""
    return _made_once(tuple(sorted({"dataset": "breast-cancer", **options}.items())))


def run_of(
    values: FloatArray | IntArray, labels: Iterable[int], **options: Any
) -> tuple[AliceView, LabelTable]:
    """``run`` of a table of Alice's columns and labels, without an intercept."""
    frame = pl.DataFrame({f"x{at}": values[:, at] for at in range(values.shape[1])})
    usual = {"dataset": None, "label": "y", "intercept": False}
    return run(frame.with_columns(y=pl.Series(labels)), **{**usual, **options})


@cache
def rare_run(rare: int = 1, **options: Any) -> tuple[AliceView, LabelTable]:
    """A class of 8 % in 600 rows, with an intercept at Bob; ``rare`` is its label."""
    draw = np.random.default_rng(3)
    values = draw.normal(size=(600, 6))
    leaning = values @ draw.normal(size=6) + draw.logistic(size=600)
    labels = (leaning > np.quantile(leaning, 0.92)).astype(int)
    usual = {"intercept": True, "batch_size": 4, "epochs": 6, "learning_rate": 0.1}
    return run_of(values, labels if rare else 1 - labels, **{**usual, **options})


@cache
def _made_once(options: tuple[tuple[str, Any], ...]) -> tuple[AliceView, LabelTable]:
    return run(**dict(options))


def numbers(remark: str) -> list[int]:
    """The whole numbers that a remark gives, in their order; its words are not tested."""
    return [int(number) for number in re.findall(r"\d+", remark)]


def applies(attack: Attack, view: AliceView) -> bool:
    """Whether the audit would run it."""
    return attack.needs <= view.signals and not attack.obstacle(view)


def sits_at_chance(guess: LabelGuess, truth: LabelTable) -> bool:
    """Whether a guess says nothing about labels shuffled after the run.

    Given the guess, the number of ones among the rows called 1 is hypergeometric, and the AUC has
    the standard error of two equal distributions (less with ties). False alarm: about 1e-5 for
    each of the two, by the normal approximation.
    """
    shuffled = truth.permuted(KeyedEntropy.from_seed(99))
    score = judge("", guess, shuffled)
    rows, ones = truth.rows, int(truth.values.sum())
    called, zeros = int((guess.scores > 0).sum()), rows - ones
    chance = (called * ones + (rows - called) * zeros) / rows**2
    spread = called * ones * (rows - called) * zeros / (rows**2 * (rows - 1))
    accuracy_error = 2 * np.sqrt(spread) / rows
    auc_error = np.sqrt((rows + 1) / (12 * ones * zeros))
    return bool(
        abs(score.accuracy - chance) <= ALARM * accuracy_error + 1e-12
        and abs(score.auc - 0.5) <= ALARM * auc_error
    )
