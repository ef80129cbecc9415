"""A training's result: the agreement in its record, and what each side would be asked to accept."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from taciturn import train
from taciturn.errors import DataError
from taciturn.files import to_json
from taciturn.results.reading import read
from taciturn.results.serialise import AGREED, record_of
from taciturn.results.training import TrainingRun
from taciturn.settings.agreement import ACCEPTED_EXPOSURE, ACCEPTED_LEAK
from taciturn.settings.schema import Newton
from tests.report.samples import TRAINING

PARTIES = {"alice-1": "0" * 64, "alice-2": "1" * 64}
EARLIER = (
    *("subset_size", "reveal", "reveal_epsilon", "reveal_delta", "fresh_keys", "reveal_bob"),
    *("score_range", "sigmoid_error", "minimum_batch", "schedule", "decay", "l1"),
    *("feature_bits", "residue_bits"),
)
SMALL: dict[str, Any] = {
    "dataset": "breast-cancer",
    "scheme": "clear",
    "seed": 1,
    "alice_columns": 4,
}


def again(run: TrainingRun) -> TrainingRun:
    return read(TrainingRun, json.loads(to_json(run.to_dict())))


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"solver": Newton(passes=7), "score_range": 32.0, "class_weight": (0.25, 1.0)},
        {"family": "poisson", "parties": PARTIES},
        {"mechanism_settings": {"of_a_package": 3}},
    ],
)
def test_an_agreement_reads_back_as_it_was(changed):
    run = replace(TRAINING, agreement=TRAINING.agreement.model_copy(update=changed))
    assert again(run) == run
    assert {*AGREED} - {"family", "mechanism_settings"} <= run.to_dict().keys()


def test_a_record_of_an_earlier_version_lacks_some_of_it():
    record = {name: value for name, value in TRAINING.to_dict().items() if name not in EARLIER}
    agreement = read(TrainingRun, record).agreement
    assert (agreement.solver, agreement.l2) == (TRAINING.agreement.solver, 0.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("epochs", "ten"), ("l2", -1.0), ("solver", "none"), ("passes", 3), ("key_bits", None)],
)
def test_an_agreement_that_is_none_is_refused_by_its_place(name, value):
    with pytest.raises(DataError, match=name):
        read(TrainingRun, {**TRAINING.to_dict(), name: value})


def test_a_solver_is_not_made_up():
    record = {name: value for name, value in TRAINING.to_dict().items() if name != "solver"}
    with pytest.raises(DataError, match="solver"):
        read(TrainingRun, record)


@pytest.mark.parametrize(
    ("mechanism", "alice", "bob"),
    [
        ("none", f'accept-column-exposure = "{ACCEPTED_EXPOSURE}"', "accept-leak"),
        ("sealed", f'accept-column-exposure = "{ACCEPTED_EXPOSURE}"', None),
        ("mutual", None, None),
    ],
)
def test_a_simulated_training_says_what_each_side_would_be_asked(mechanism, alice, bob):
    run = train(mechanism=mechanism, **SMALL).runs.first
    assert run.asked is not None
    assert run.learns is not None
    lines = [None if asked is None else asked.line for asked in (run.asked.alice, run.asked.bob)]
    assert lines == [alice, bob and f'{bob} = "{ACCEPTED_LEAK}"']
    assert run.asked.both is None
    assert (run.learns.columns is None) == (alice is None)
    assert record_of(again(run)) == record_of(run)


def test_too_few_labels_are_what_both_sides_would_have_to_agree_on():
    columns = np.random.default_rng(1).normal(size=(208, 2))
    labels = np.arange(208) < 8
    run = train(columns, labels, mechanism="mutual", scheme="clear", seed=1, alice_columns=1)
    asked = run.runs.first.asked
    assert asked is not None
    assert asked.both is not None
    assert asked.both.line == 'few-labels = "accepted"'
