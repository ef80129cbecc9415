"""State of release 0.3: consent stores count on, and models score.

``tests/samples/0.3`` is what two parties of that release left after two trainings with ``mutual``
and a prediction of all 160 rows after each, with ``scores-per-row = 5``.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from taciturn.data.ids import RowIds
from taciturn.errors import BudgetExceeded
from taciturn.jobs.predict.job import PredictJob
from taciturn.party.config import PartyConfig
from taciturn.party.consent.budget import Charge, ScoreBudget
from taciturn.party.consent.label_budget import LabelBudget
from taciturn.party.consent.scored_rows import RowOpening
from taciturn.party.consent.store import ConsentStore
from tests.party.sides import ROLES, run_jobs

SAMPLES = Path(__file__).resolve().parents[1] / "samples" / "0.3"


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A copy of the parties' files, private as they were."""
    folder = tmp_path / "parties"
    shutil.copytree(SAMPLES, folder)
    for file in folder.iterdir():
        file.chmod(0o600)
    return folder


def score_budget(folder: Path) -> ScoreBudget:
    return ScoreBudget.from_config(PartyConfig.read(folder / "alice.toml"))


def test_every_record_of_both_stores_is_sound(left):
    for role in ROLES:
        store = ConsentStore.from_config(PartyConfig.read(left / f"{role}.toml"))
        assert store.verify() in (120, 160)


def test_opened_scores_count_on(left):
    ids = RowIds.from_values([f"p{number:03d}" for number in range(160)])
    # Two trainings and two predictions, each of which counted as a score of every row.
    assert score_budget(left).most_given() == 4
    score_budget(left).charge(Charge(((ids, RowOpening(unnamed=1)),)))
    assert score_budget(left).most_given() == 5
    with pytest.raises(BudgetExceeded):
        score_budget(left).charge(Charge(((ids, RowOpening(unnamed=1)),)))


def test_label_charges_are_listed(left):
    config = PartyConfig.read(left / "bob.toml")
    store = ConsentStore.from_config(config)
    with store.reading() as records:
        (account,) = records.accounts(LabelBudget.namespace.name)
        assert account.row_count == 120


def test_its_models_give_its_scores(left):
    former = pl.read_csv(left / "bob.scores.csv")
    jobs = {role: PredictJob(left / f"{role}.model.json", left / f"{role}.csv") for role in ROLES}
    ends = run_jobs(left, jobs)
    assert not isinstance(ends.alice, BaseException), ends.alice
    assert not isinstance(ends.bob, BaseException), ends.bob
    assert ends.bob.ids == tuple(former["id"])
    np.testing.assert_allclose(ends.bob.scores, former["score"], atol=1e-6)
