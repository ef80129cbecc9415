"""A study in ``mutual``: one noisy sum judges each setting, and nothing else is opened."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import taciturn
from taciturn.engine.callbacks import Callbacks
from taciturn.engine.pair import run_pair
from taciturn.errors import AgreementError, ConfigError
from taciturn.jobs.study.plan import StudyTraining
from taciturn.jobs.study.result import StudiedSetting, StudyTable
from taciturn.numerics.bounded_waves import capped_loss
from taciturn.parallel import one_thread
from taciturn.party.config import PartyConfig
from taciturn.privacy.solvers import resolved
from taciturn.protocol.codec import decode
from taciturn.protocol.messages import Message, OpenedSums
from taciturn.protocol.row_sums import noisy_shares
from taciturn.settings.study import Point, Study
from tests.expected import all_refused, refused
from tests.party.studies import ROLES, entropy_of, run_study, study_of, write_study
from tests.party.test_study import Killed, Killer

MUTUAL: dict[str, Any] = {"mechanism": "mutual", "passes": 2}
GRID = "folds = 2\nl2 = [0.01, 0.1]\n"
OPEN = f"open-scores = true\n{GRID}"
ACCEPTS = {"alice": {"accept-column-exposure": "my columns can be reconstructed"}}


def conversation(folder: Path) -> dict[int, tuple[int, int]]:
    """Both sides' shares of each fold's sum, in one process; nothing is opened there."""
    sides = {role: study_of(folder, role) for role in ROLES}
    entropy = {role: entropy_of(folder, role) for role in ROLES}
    said, shares = list[tuple[str, Message]](), dict[int, tuple[int, int]]()
    for training in sides["alice"].plan.trainings:
        own = {role: entropy[role].fork(f"model {training.number}") for role in ROLES}
        parts = {role: side.plan.inputs_of(training) for role, side in sides.items()}
        bob = parts["bob"].bob_side(own["bob"])
        with one_thread():
            hers, his = run_pair(
                parts["alice"].program(own["alice"], None),
                parts["bob"].program(own["bob"], bob),
                tap=lambda who, frame: said.append((who, decode(frame))),
            )
        assert hers.held_out_scores is his.held_out_scores is None
        if training.fold is None:
            assert hers.loss_share is his.loss_share is None
        else:
            assert hers.loss_share is not None
            assert his.loss_share is not None
            shares[training.number] = hers.loss_share, his.loss_share
    assert not any(isinstance(message, OpenedSums) for _, message in said)
    return shares


def expected(folder: Path) -> tuple[list[float], list[float]]:
    """Each setting's mean as Alice's coins open it, and without noise."""
    plan, noise = study_of(folder, "bob").plan, entropy_of(folder, "alice")
    sums = plan.sums
    assert sums is not None
    modulus, unit = sums.slots.modulus, sums.numbers.unit
    shares = conversation(folder)
    by_setting = [
        [shares[one.number] for one in plan.trainings if one.number in shares and _is(one, point)]
        for point in plan.study.points
    ]
    hers = [sum(own for own, _ in folds) % modulus for folds in by_setting]
    noisy = noisy_shares(sums, hers, noise.fork("sums of the study")).tolist()
    means = [list[float](), list[float]()]
    for folds, *given in zip(by_setting, noisy, hers, strict=True):
        for into, one in zip(means, given, strict=True):
            total = (one + sum(his for _, his in folds)) % modulus
            total -= modulus if total > modulus // 2 else 0
            into.append(total / unit / len(plan.folds))
    return means[0], means[1]


def _is(training: StudyTraining, point: Point) -> bool:
    return training.models[0].point.number == point.number


@pytest.fixture(scope="module")
def studied(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """Two penalties with two folds, real encryption."""
    folder = tmp_path_factory.mktemp("study")
    write_study(folder, GRID, rows=60, agreement=MUTUAL)
    return folder, *run_study(folder).records


def test_one_number_is_opened_per_setting_and_none_by_a_fold(studied):
    """The opened number is the sum over all folds with the noise of Alice's coins."""
    folder, alice, bob = studied
    opened, exact = expected(folder)
    assert [one["summed_loss"] for one in bob["study"]["settings"]] == pytest.approx(opened)
    # Two passes from zero: every model is better than none.
    assert all(0 < mean < 0.7 for mean in exact)
    assert alice["scores_per_row"] == 0


def test_the_record_has_the_sum_and_its_noise_and_no_figure_of_a_fold(studied):
    *_, alice, bob = studied
    for setting in bob["study"]["settings"]:
        assert setting["noise_rows"] == 16
        assert setting["diverged"] is False
        assert not {"folds", "loss", "auc", "accuracy", "held_out"} & setting.keys()
    for setting in alice["study"]["settings"]:
        assert set(setting) == {"number", "values", "model", "columns"}


@pytest.mark.parametrize(("victim", "after"), [("alice", 5), ("bob", 9)])
def test_a_study_that_is_killed_opens_the_same_number_with_the_same_noise(tmp_path, victim, after):
    every = {"checkpoint-iterations": 1}
    state = {role: every for role in ROLES}
    write_study(tmp_path, "folds = 2\nl2 = [0.01]\n", rows=60, agreement=MUTUAL, state=state)
    ends = run_study(tmp_path, watch={victim: Callbacks(observe=Killer(after))})
    assert isinstance(getattr(ends, victim), Killed)
    key = entropy_of(tmp_path, "alice").key
    _, bob = run_study(tmp_path).records
    assert entropy_of(tmp_path, "alice").key == key
    opened, _ = expected(tmp_path)
    assert [one["summed_loss"] for one in bob["study"]["settings"]] == pytest.approx(opened)
    # A run after the end only confirms.
    _, again = run_study(tmp_path).records
    assert again["study"] == bob["study"]


# --- consent and what is refused ------------------------------------------------------------------


def test_scores_are_opened_only_where_the_study_and_alice_s_file_say_so(tmp_path):
    refuses = {"alice": {"accept-column-exposure": None}}
    write_study(tmp_path, OPEN, agreement=MUTUAL, privacy=refuses)
    plan = study_of(tmp_path, "alice").plan
    assert plan.scores.per_row == 2
    refusal = plan.consent.refusal()
    assert isinstance(refusal, ConfigError)
    assert refusal.setting == "accept_column_exposure"
    assert plan.disclosure().columns is not None
    exposed = plan.consent.columns_exposed()
    assert exposed is not None
    assert (exposed.scores_per_row, exposed.scores_for_all) == (2, 6)
    write_study(tmp_path, OPEN, agreement=MUTUAL, privacy=ACCEPTS)
    plan = study_of(tmp_path, "alice").plan
    assert plan.consent.refusal() is None
    assert not plan.consent.superfluous


def test_without_them_nothing_has_to_be_accepted_and_nothing_is_charged(tmp_path):
    write_study(tmp_path, GRID, agreement=MUTUAL, privacy=ACCEPTS)
    plan = study_of(tmp_path, "alice").plan
    assert (plan.scores.per_row, plan.scores.per_held_out_row) == (0, 0)
    # Tables below the least rows of an opening: nothing but the sums of the two settings.
    assert (plan.scores.in_all, plan.scores.study_sums) == (2, 2)
    assert plan.consent.refusal() is None
    assert plan.consent.superfluous
    assert plan.disclosure().columns is None
    exposed = plan.consent.columns_exposed()
    assert exposed is not None
    assert exposed.scores_per_row == 0
    # Alice's store records the sums, and no sum of a training that opens none.
    (recorded,) = plan.score_charge().facts["sums"]
    assert (recorded["kind"], recorded["numbers"]) == ("study sum", 2)


@pytest.mark.slow  # six trainings of mutual
def test_a_study_that_opens_scores_has_the_figures_of_folds(tmp_path):
    write_study(tmp_path, OPEN, rows=60, agreement=MUTUAL, privacy=ACCEPTS)
    alice, bob = run_study(tmp_path).records
    assert alice["scores_per_row"] == 2
    setting = bob["study"]["settings"][0]
    assert len(setting["folds"]) == 2
    assert "summed_loss" not in setting


def test_two_studies_of_which_one_opens_scores_are_told_apart(tmp_path):
    write_study(tmp_path, GRID, agreement=MUTUAL)
    path = tmp_path / "bob.toml"
    path.write_text(path.read_text().replace("folds = 2", "folds = 2\nopen-scores = true"))
    all_refused(AgreementError, run_study(tmp_path).alice, names="open-scores")


@pytest.mark.parametrize(
    ("study", "changes", "names"),
    [
        (f'rank-by = "auc"\n{GRID}', {}, ("AUC", "open-scores")),
        ("folds = 2\nl2 = [0.01, 0.015, 0.1]\n", {}, ("0.01", "0.015")),
        ("folds = 2\nl2 = [0.1, 0.06]\n", {}, ("0.06", "0.1")),
        # Of nearly one model too: their sums would average the noise.
        ("folds = 2\npasses = [28, 29, 30]\n", {}, ("28", "29", "passes")),
        ("folds = 2\nscore-range = [64, 65]\n", {}, ("64", "65", "score-range")),
        ("folds = 2\nsigmoid-error = [0.001, 0.0011]\n", {}, ("0.0011", "sigmoid-error")),
        (OPEN, {"mechanism": "sealed"}, "open-scores"),
    ],
)
def test_what_a_mutual_study_cannot_judge_is_refused_by_name(tmp_path, study, changes, names):
    write_study(tmp_path, study, agreement={**MUTUAL, **changes})
    with refused(ConfigError, names=names) as raised:
        PartyConfig.read(tmp_path / "bob.toml")
    assert "bob.toml" in raised.value.where


def test_values_a_factor_of_two_apart_are_accepted(tmp_path):
    grid = "folds = 2\nl2 = [1e-4, 2e-4, 4e-4, 0.1]\npasses = [2, 4]\n"
    write_study(tmp_path, grid, agreement=MUTUAL)
    assert len(study_of(tmp_path, "bob").plan.study.points) == 8


def test_a_fold_s_model_is_revealed_to_nobody(tmp_path):
    write_study(tmp_path, GRID, agreement={**MUTUAL, "reveal": True, "reveal-bob": True})
    for training in study_of(tmp_path, "bob").plan.trainings:
        agreed = training.terms.agreement
        assert agreed.reveal is agreed.reveal_bob is (training.fold is None)


# --- ranking --------------------------------------------------------------------------------------


def table_of(*totals: tuple[float, bool], rows: int = 1000) -> StudyTable:
    study = Study.from_mapping({"folds": 2, "l2": [0.1**at for at in range(len(totals))]})
    settings = [
        StudiedSetting(number=at, values={}, columns=1).judged_by_sum(
            mean, rows, 16.0, diverged=diverged
        )
        for at, (mean, diverged) in enumerate(totals, start=1)
    ]
    return StudyTable.from_settings(study, settings)


def test_a_diverged_setting_ranks_last_whatever_its_sum_is():
    table = table_of((0.5, False), (-78.8, True), (0.4, False))
    assert table.best == 3
    assert [setting.number for setting in table.by_rank] == [3, 1, 2]


def test_where_all_have_diverged_none_is_best():
    assert table_of((-3.0, True), (2.0, True)).best is None


def test_few_rows_are_called_coarse():
    assert table_of((0.5, False), rows=1999).coarse
    assert not table_of((0.5, False), rows=2000).coarse


# --- on one machine -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulated() -> Any:
    return taciturn.study(
        dataset="breast-cancer",
        mechanism="mutual",
        scheme="clear",
        seed=3,
        alice_columns="half",
        vary={"l2": [1e-2, 100.0], "passes": [4]},
        folds=2,
    )


def test_a_simulated_study_ranks_by_the_same_sums(simulated):
    from sklearn.linear_model import LogisticRegression

    from taciturn.data.ids import fold_numbers
    from taciturn.settings.schema import Settings
    from taciturn.simulation import RunEntropy, arrange, load_raw

    first, last = simulated.study.settings
    assert (first.noise_rows, first.folds, first.loss, first.held_out) == (16, None, None, None)
    assert simulated.study.best == 1
    assert simulated.scores_per_row == 0
    given = {"dataset": "breast-cancer", "scheme": "clear", "seed": 3, "alice_columns": "half"}
    settings = resolved(Settings.from_mapping(given))
    data = arrange(settings, load_raw(settings), RunEntropy.for_seed(3).data)
    values = np.hstack([data.alice_train.values, data.bob_train.values])
    folds = fold_numbers(data.labels_train.ids, 2, "3")
    total = 0.0
    for fold in (0, 1):
        inside = folds == fold
        penalty = 1 / (1e-2 * np.count_nonzero(~inside))
        best = LogisticRegression(C=penalty, max_iter=5000)
        best.fit(values[~inside], data.labels_train.values[~inside])
        scores = best.decision_function(values[inside])
        total += capped_loss(scores, data.labels_train.take(np.flatnonzero(inside))).sum()
    # The noise of this seed, and models after four passes: within some scales of the noise.
    assert abs(first.summed_loss * first.judged_rows - total) < 8 * 16
    # A penalty that leaves no model has the base rate's loss, and is not called diverged.
    assert last.diverged is False


def test_the_same_seed_opens_the_same_sums(simulated):
    again = taciturn.study(
        dataset="breast-cancer",
        mechanism="mutual",
        scheme="clear",
        seed=3,
        alice_columns="half",
        vary={"l2": [1e-2, 100.0], "passes": [4]},
        folds=2,
        processes=1,
    )
    sums = [[one.summed_loss for one in run.study.settings] for run in (simulated, again)]
    assert sums[0] == sums[1]
    assert json.dumps(again.to_dict()["study"])
    assert Counter(one.diverged for one in again.study.settings) == {False: 2}
