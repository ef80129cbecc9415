"""Several models in one session: what they are, what they cost, and that a stop changes nothing."""

from __future__ import annotations

import io
import json
import math
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.__main__ import run
from taciturn.arrays import BoolArray, FloatArray, IntArray
from taciturn.data.ids import RowIds, fold_numbers
from taciturn.engine.callbacks import Callbacks, noop
from taciturn.errors import (
    AgreementError,
    BudgetExceeded,
    ConfigError,
    FileError,
    OutputError,
    PeerStopped,
    ShapeError,
    TaciturnError,
)
from taciturn.jobs.base import run_job
from taciturn.jobs.predict.job import PredictJob
from taciturn.jobs.study.job import StudySide
from taciturn.jobs.study.result import StudyRun
from taciturn.jobs.study.use import studied_model, use_model
from taciturn.jobs.train.job import TrainJob
from taciturn.jobs.train.plan import TrainingPlan
from taciturn.model.share import ModelShare
from taciturn.model.whole import whole_model
from taciturn.numerics.symmetry import OpenedPasses, Symmetry
from taciturn.party.config import PartyConfig
from taciturn.party.consent.budget import Charge
from taciturn.party.consent.label_budget import LabelBudget
from taciturn.party.consent.score_budget import ScoreBudget
from taciturn.party.tables import load_tables
from taciturn.protocol.events import Event
from taciturn.results.folder import from_record
from taciturn.rng import KeyedEntropy
from taciturn.settings.study import Study
from taciturn.transport.channel import Endpoints
from tests.expected import all_refused, refused
from tests.party.sides import MECHANISMS, Company, alone, role_of
from tests.party.studies import (
    ROLES,
    SMALL,
    in_one_process,
    numbers,
    run_study,
    study_of,
    write_study,
    written,
)


@pytest.fixture(scope="module")
def studied(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """A study of two combinations with two folds."""
    folder = tmp_path_factory.mktemp("study")
    write_study(folder, agreement={"passes": 8})
    return folder, *run_study(folder).records


# --- what the models are --------------------------------------------------------------------------


def test_every_model_is_what_its_programs_give_in_one_process(studied):
    folder, _, _ = studied
    expected = in_one_process(folder)
    assert len(expected) == 4
    for (role, number), model in expected.items():
        assert numbers(written(folder, role, number)) == model


def optimum(plans: list[Any], l2: float, rows: BoolArray | None = None) -> Any:
    """scikit-learn on the joined table, or on some of its rows; Bob's plan comes last."""
    from sklearn.linear_model import LogisticRegression

    table, labels = joined(plans)
    chosen = slice(None) if rows is None else rows
    penalty = 1 / (l2 * len(labels[chosen]))
    best = LogisticRegression(C=penalty, tol=1e-10, max_iter=5000)
    return best.fit(table[chosen], labels[chosen])


def joined(plans: list[Any]) -> tuple[FloatArray, IntArray]:
    """All columns but the one of the intercept, and the labels."""
    *hers, bob = (plan.tables for plan in plans)
    assert bob.labels is not None
    table = np.hstack([*(one.train.values for one in hers), bob.train.values[:, :-1]])
    return table, bob.labels.values


def distance(shares: list[ModelShare], best: Any) -> float:
    """The largest difference of a weight, relative to the largest weight."""
    weights = np.concatenate([part.weights for part in whole_model(*shares).parts])
    expected = np.append(best.coef_.ravel(), best.intercept_)
    return float(np.abs(weights - expected).max() / np.abs(expected).max())


def test_each_is_the_optimum_of_its_own_rows(studied):
    """Both shares put together against scikit-learn on the joined table, model by model."""
    folder, _, _ = studied
    plans = [study_of(folder, role).plan for role in ROLES]
    for model in plans[-1].models:
        if model.fold is None:
            shares = [written(folder, role, model.point.number) for role in ROLES]
            assert distance(shares, optimum(plans, model.terms.agreement.l2)) < 0.02


def test_figures_of_folds_are_those_of_models_trained_without_their_rows(studied):
    from sklearn.metrics import log_loss, roc_auc_score

    folder, _, bob = studied
    plans = [study_of(folder, role).plan for role in ROLES]
    table, labels = joined(plans)
    for setting in bob["study"]["settings"]:
        models = [m for m in plans[-1].models if m.point.number == setting["number"]]
        for model, said in zip(models[:2], setting["folds"], strict=True):
            inside = plans[-1].folds == model.fold
            best = optimum(plans, model.terms.agreement.l2, ~inside)
            scores = best.decision_function(table[inside])
            assert said["rows"] == inside.sum()
            assert said["auc"] == pytest.approx(roc_auc_score(labels[inside], scores), abs=0.01)
            expected = log_loss(labels[inside], best.predict_proba(table[inside])[:, 1])
            assert said["loss"] == pytest.approx(expected, rel=0.05)


def test_the_best_has_the_least_mean_loss_and_the_others_say_how_far_behind(studied):
    *_, bob = studied
    settings = bob["study"]["settings"]
    best = min(settings, key=lambda one: one["loss"])
    assert bob["study"]["best"] == best["number"]
    for one in settings:
        gaps = [
            own["loss"] - other["loss"]
            for own, other in zip(one["folds"], best["folds"], strict=True)
        ]
        assert one["behind"] == pytest.approx(one["loss"] - best["loss"])
        assert one["behind_error"] == pytest.approx(abs(gaps[0] - gaps[1]) / 2)


def test_alice_learns_how_many_models_there_are_and_no_figure(studied):
    _, alice, bob = studied
    assert alice["study"]["models"] == bob["study"]["models"] == 6
    known = {"number", "values", "model", "columns"}
    assert all(set(one) == known for one in alice["study"]["settings"])
    assert set(alice) - {"study", "run", "ledger", "peer_confirmed", "scores_per_row"} <= {
        *("role", "peer", "mechanism", "scheme", "key_bits", "columns", "rows"),
        *("held_out_rows", "version", "settings"),
    }
    assert alice["ledger"] == {}


def test_bob_tests_the_scores_of_every_training_for_one_table(studied):
    folder, alice, bob = studied
    assert bob["symmetry"] == {"largest": 0, "passed": True}
    assert "symmetry" not in alice
    for setting in bob["study"]["settings"]:
        metrics = written(folder, "bob", setting["number"]).metrics
        assert metrics["symmetry"] == {"largest": 0, "passed": True}
        assert "symmetry" not in written(folder, "alice", setting["number"]).metrics


def test_one_training_that_fails_the_test_is_bobs_warning_and_not_alices(tmp_path, monkeypatch):
    write_study(tmp_path)
    tests = iter([Symmetry(0, passed=True), Symmetry(5, passed=False)])
    monkeypatch.setattr(OpenedPasses, "symmetry", lambda self: next(tests, Symmetry(0, True)))
    alice, bob = run_study(tmp_path).records
    assert bob["symmetry"] == {"largest": 5, "passed": False}
    assert "symmetry" not in alice
    logs = {role: (tmp_path / f"{role}.log").read_text() for role in ROLES}
    assert ["warning" in logs[role] for role in ROLES] == [False, True]


def test_both_records_are_read_back(studied):
    folder, alice, bob = studied
    for role, record in zip(ROLES, (alice, bob), strict=True):
        again = from_record(record)
        assert isinstance(again, StudyRun)
        assert again.to_dict() == record
        kept = json.loads((folder / f"{role}.models" / "study.json").read_text())
        assert from_record(kept) == again


@pytest.mark.parametrize(
    ("study", "changes", "groups"),
    [
        ("l2 = [0.1, 0.001, 0.01]\n", {}, [(2, 3, 1)]),
        # All but the penalty is the same.
        ("l2 = [0.1, 0.01]\npasses = [3, 4]\n", {}, [(3, 1), (4, 2)]),
        ("passes = [3, 4]\n", {}, [(1,), (2,)]),
        # No coordinates serve both ends.
        ("l2 = [1e-6, 1e-4, 0.01, 1.0]\n", {}, [(1, 2, 3), (4,)]),
        ("l2 = [0.1, 0.01]\n", {"reveal": True}, [(1,), (2,)]),
        ("l2 = [0.1, 0.01]\n", {"mechanism": "none"}, [(1,), (2,)]),
        ("l2 = [0.1, 0.01]\n", {"mechanism": "mutual"}, [(1,), (2,)]),
    ],
)
def test_models_that_differ_in_their_penalty_alone_share_a_search(tmp_path, study, changes, groups):
    write_study(tmp_path, f"folds = 2\n{study}", agreement=changes)
    plans = [study_of(tmp_path, role).plan for role in ROLES]
    for plan in plans:
        whole = [one for one in plan.trainings if one.fold is None]
        assert [tuple(m.point.number for m in one.models) for one in whole] == groups
        assert len(plan.trainings) == 3 * len(groups)
        for one in plan.trainings:
            assert len({model.fold for model in one.models}) == 1
            assert one.terms.agreement.models == len(one.models)
    assert plans[0].facts() == plans[1].facts()


# --- what it costs --------------------------------------------------------------------------------


def test_scores_are_charged_once_and_in_total(studied):
    folder, alice, bob = studied
    budget = ScoreBudget.from_config(PartyConfig.read(folder / "alice.toml"))
    assert budget is not None
    # Two penalties share a search, of two passes more for each: in one fold and in all. A row is
    # scored once by each of them.
    total = 2 * (8 + 4) + 2
    assert budget.most_given() == total
    assert study_of(folder, "alice").plan.scores.per_row == total
    assert alice["scores_per_row"] == bob["scores_per_row"] == total


def test_a_study_beyond_her_limit_is_refused_before_a_score_leaves(tmp_path):
    write_study(tmp_path, privacy={"alice": {"scores-per-row": 13}})
    ends = run_study(tmp_path)
    all_refused(BudgetExceeded, ends.alice, setting="scores_per_row", names=14)
    all_refused(PeerStopped, ends.bob)
    assert not (tmp_path / "alice.consent.sqlite").exists()


SGD = {"solver": "sgd", "epochs": 2, "batch-size": 16, "learning-rate": 0.1, "passes": None}
PRICED = "folds = 2\nepsilon = [1.0, 2.0]\n"


def test_all_models_of_a_priced_mechanism_are_paid_for(tmp_path):
    """add: epsilon/2 of a label an epoch; a row is trained on in one fold of two, and in all."""
    write_study(tmp_path, PRICED, agreement={**SGD, "mechanism": "add"})
    _, bob = run_study(tmp_path).records
    once = (1.0 + 2.0) / 2 * 2
    assert bob["ledger"]["label_epsilon_total"] == pytest.approx(2 * once)
    (account,) = LabelBudget.from_config(PartyConfig.read(tmp_path / "bob.toml")).accounts()
    assert account.ledger.label_epsilon_total == pytest.approx(2 * once)
    assert account.trainings == 1


def test_a_budget_that_all_models_exceed_together_refuses_them(tmp_path):
    agreed = {**SGD, "mechanism": "add"}
    write_study(tmp_path, PRICED, agreement=agreed, privacy={"bob": {"budget": 5.9}})
    assert (
        TrainingPlan.from_config(PartyConfig.read(tmp_path / "bob.toml")).outlook().refused
        is not None
    )
    ends = run_study(tmp_path)
    all_refused(BudgetExceeded, ends.bob, names=6)
    assert isinstance(ends.alice, AgreementError | PeerStopped)


def test_flipped_labels_are_paid_for_once(tmp_path):
    agreed = {**SGD, "epochs": 1, "learning-rate": None, "mechanism": "label-rr", "epsilon": 2.0}
    write_study(tmp_path, "folds = 2\nlearning-rate = [0.1, 0.01]\n", agreement=agreed)
    _, bob = run_study(tmp_path).records
    assert bob["ledger"]["label_epsilon_total"] == pytest.approx(2.0)


def test_a_dry_run_tells_what_all_models_cost_together(tmp_path):
    write_study(tmp_path)
    ends = run_study(tmp_path, act=lambda party: party.dry_run())
    alice, bob = ends.records
    assert alice["columns_exposed"]["scores_per_row"] == 2 * (3 + 3 + 1)
    assert alice["estimate"]["iterations"] == 6 * 3
    assert alice["learns"] == bob["learns"]
    assert not (tmp_path / "alice.consent.sqlite").exists()


# --- stops ----------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here."""


class Killer:
    """Ends a side when it has seen so many events."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, event: Event) -> None:
        self.left -= 1
        if not self.left:
            raise Killed


@pytest.mark.sampled(1)
@pytest.mark.parametrize("victim", ROLES)
@pytest.mark.parametrize("after", [1, 9, 17, 26])
def test_a_side_that_is_killed_anywhere_resumes_to_the_same_models(tmp_path, victim, after):
    """Also in the middle of a fold, and between two models."""
    every = {"checkpoint-iterations": 2}
    write_study(tmp_path, state={"alice": every, "bob": every})
    watch = {victim: Callbacks(observe=Killer(after))}
    ends = run_study(tmp_path, watch=watch)
    assert isinstance(getattr(ends, victim), Killed)
    alice, bob = run_study(tmp_path).records
    assert len(alice["study"]["settings"]) == len(bob["study"]["settings"]) == 2
    for (role, number), model in in_one_process(tmp_path).items():
        assert numbers(written(tmp_path, role, number)) == model
    budget = ScoreBudget.from_config(PartyConfig.read(tmp_path / "alice.toml"))
    assert budget is not None
    assert budget.most_given() == 2 * (3 + 3 + 1)


def test_after_the_end_it_only_confirms(studied):
    folder, alice, bob = studied
    again = run_study(folder).records
    for before, after in zip((alice, bob), again, strict=True):
        assert after["study"] == before["study"]


def test_another_study_does_not_resume_this_one(tmp_path):
    write_study(tmp_path)
    ends = run_study(tmp_path, watch={"bob": Callbacks(observe=Killer(12))})
    assert isinstance(ends.bob, Killed)
    for role in ROLES:
        path = tmp_path / f"{role}.toml"
        path.write_text(path.read_text().replace("[0.001, 0.1]", "[0.001, 0.2]"))
    with pytest.raises(TaciturnError) as raised:
        alone(tmp_path, "bob").run()
    assert "study" in raised.value.message


# --- what does not fit ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("study", "names"),
    [
        ("folds = 3\nl2 = [0.001, 0.1]\n", ("folds", 3, 2)),
        ("folds = 2\nl2 = [0.001, 0.2]\n", ("l2", "[0.001, 0.2]", "[0.001, 0.1]")),
        ('folds = 2\nrank-by = "auc"\nl2 = [0.001, 0.1]\n', ("rank-by", "auc")),
    ],
)
def test_two_studies_that_differ_are_told_apart_by_name(tmp_path, study, names):
    write_study(tmp_path)
    path = tmp_path / "alice.toml"
    path.write_text(path.read_text().replace(SMALL, study))
    all_refused(AgreementError, run_study(tmp_path).alice, names=names)


@pytest.mark.parametrize(
    ("study", "changes", "names"),
    [
        ("folds = 1\nl2 = [0.1]\n", {}, "folds"),
        ("folds = 2\n", {}, ()),
        ("folds = 2\nl3 = [1]\n", {}, "l3"),
        ("folds = 2\nl2 = [0.1, 0.1]\n", {}, "l2"),
        ("folds = 2\nl2 = 0.1\n", {}, ("l2", 0.1)),
        ("folds = 2\nl2 = [-1.0]\n", {}, "l2"),
        ("folds = 0\nl2 = [0.1]\n", {"held-out": 0}, "held-out"),
        ("l2 = [0.1]\n", {"share-metrics": "quality"}, "share-metrics"),
        ("l2 = [0.1]\n", {"evaluate": "epoch"}, "evaluate"),
        (f"folds = 20\npasses = [1]\nl2 = {list(range(1, 200))}\n", {}, "2,000"),
        # What would make other tables was removed.
        (f"{SMALL}bins = [0, 3]\n", {}, "bins"),
        (f'{SMALL}columns = ["all"]\n', {}, "columns"),
    ],
)
def test_a_study_that_cannot_be_is_refused_by_name(tmp_path, study, changes, names):
    write_study(tmp_path, study, agreement=changes)
    with refused(ConfigError, names=names) as raised:
        PartyConfig.read(tmp_path / "bob.toml")
    assert "bob.toml" in raised.value.where


def test_a_model_that_cannot_be_is_refused_with_its_number(tmp_path):
    write_study(tmp_path, "epochs = [1, 2]\n")
    with refused(ConfigError, names=("model 1", "epochs")):
        study_of(tmp_path, "bob")


def test_more_folds_than_rows_can_fill_are_refused(tmp_path):
    write_study(tmp_path, "folds = 20\nl2 = [0.1]\n", rows=24)
    with refused(ShapeError, names=20):
        study_of(tmp_path, "bob")


def test_a_folder_that_cannot_be_made_is_named_before_anything_is_trained(tmp_path):
    (tmp_path / "taken").write_text("a file")
    write_study(tmp_path, output={"bob": {"models": "taken"}})
    with refused(OutputError, names="taken"):
        study_of(tmp_path, "bob")


def test_a_transcript_of_a_study_is_refused(tmp_path):
    write_study(tmp_path)
    with refused(ConfigError):
        alone(tmp_path, "bob").run(record=tmp_path / "t")


# --- one of them is used --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    # Its key goes with it, so that a copy can be used.
    keys = {role: {"key": f"{role}.key"} for role in ROLES}
    write_study(folder, "l2 = [0.001, 0.1]\n", agreement={"passes": 2}, rows=80, state=keys)
    run_study(folder).records  # noqa: B018 - raises what went wrong
    return folder


@pytest.fixture
def finished(once: Path, tmp_path: Path) -> Path:
    """A folder of one's own with a study that was run once."""
    return Path(shutil.copytree(once, tmp_path / "finished"))


def test_a_model_scores_nothing_until_it_is_used(finished, monkeypatch, capsys):
    """Each refusal has the command that takes it into use, as it can be typed."""
    config = PartyConfig.read(finished / "bob.toml")
    path = finished / "bob.models" / "model-02.json"
    with refused(ConfigError, names=2) as caught:
        PredictJob(path, finished / "bob.csv").prepare(config)
    hint = caught.value.hint
    for options, code in (([], ConfigError.exit_code), (["--yes"], 0)):
        (line,) = re.findall(r"taciturn (model use \S+ 2(?: --yes)?)", hint)
        assert shlex.split(line)[3:] == ["2", *options]
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        assert run(shlex.split(line)) == code
        hint = " ".join(capsys.readouterr().err.split())
    share = ModelShare.load(finished / "bob.model.json")
    assert share.study["used"] is True
    assert PredictJob(finished / "bob.model.json", finished / "bob.csv").prepare(config)


def test_a_choice_without_noise_is_charged_infinity_once(finished):
    config = PartyConfig.read(finished / "bob.toml")
    for number in (2, 2):
        used = use_model(config, number, noop)
        assert (used.epsilon, used.choice_bits) == (math.inf, 1.0)
    (account,) = LabelBudget.from_config(config).accounts()
    assert account.ledger.label_epsilon_total == math.inf
    assert account.ledger.releases_per_row == 1
    # Another model is another choice.
    use_model(config, 1, noop)
    (account,) = LabelBudget.from_config(config).accounts()
    assert account.ledger.releases_per_row == 2


def test_a_choice_is_charged_under_a_state_key(finished):
    for name in ("bob.key", "bob.consent.sqlite", "bob.consent.sqlite-generation"):
        (finished / name).unlink()
    config = PartyConfig.read(finished / "bob.toml")
    use_model(config, 2, noop)
    budget, ids = LabelBudget.from_config(config), load_tables(config.first).train.ids
    assert len(budget.key) == 32
    assert budget.statements(Charge(((ids, {}),)))[0].label_epsilon_total == math.inf


def test_models_of_an_earlier_study_keep_a_folder_of_their_own(finished):
    session = str(written(finished, "bob", 1).study["session"])
    run_study(finished, act=lambda party: party.run(fresh=True)).records  # noqa: B018
    assert written(finished, "bob", 1).study["session"] != session
    (kept,) = finished.glob("bob.models.*")
    assert kept.name == f"bob.models.{session[:8]}"
    assert ModelShare.load(kept / "model-01.json").study["session"] == session


def test_a_store_that_was_not_there_at_the_beginning_is_charged_when_it_resumes(tmp_path):
    every = {"checkpoint-iterations": 2}
    write_study(tmp_path, state={"alice": every, "bob": every})
    ends = run_study(tmp_path, watch={"alice": Callbacks(observe=Killer(20))})
    assert isinstance(ends.alice, Killed)
    for store in tmp_path.glob("alice.consent.sqlite*"):
        store.unlink()
    run_study(tmp_path).records  # noqa: B018 - raises what went wrong
    budget = ScoreBudget.from_config(PartyConfig.read(tmp_path / "alice.toml"))
    assert budget is not None
    assert budget.most_given() == 2 * (3 + 3 + 1)


@pytest.mark.parametrize(
    ("agreed", "role", "names"),
    [({"rows": 50}, "bob", ("rows", 50)), ({"alice-columns": 7}, "alice", ("alice-columns", 7, 6))],
)
def test_sizes_that_are_agreed_on_hold_for_a_study_too(tmp_path, agreed, role, names):
    write_study(tmp_path, agreement=agreed)
    with refused(AgreementError, names=names):
        study_of(tmp_path, role)


def test_a_choice_beyond_the_limit_leaves_the_model_as_it_was(finished):
    path = finished / "bob.toml"
    path.write_text(path.read_text().replace("[privacy]\n", "[privacy]\nbudget-total = 2.0\n"))
    with pytest.raises(BudgetExceeded):
        use_model(PartyConfig.read(path), 2, noop)
    assert not (finished / "bob.model.json").exists()


def test_alice_uses_the_model_that_is_named_and_pays_nothing(finished):
    config = PartyConfig.read(finished / "alice.toml")
    used = use_model(config, 2, noop)
    assert (used.epsilon, used.choice_bits) == (None, None)
    use_model(PartyConfig.read(finished / "bob.toml"), 2, noop)
    shares = [ModelShare.load(finished / f"{role}.model.json") for role in ROLES]
    assert whole_model(*shares).bob.weights.shape == (4,)


def test_a_model_that_is_not_there_is_refused_by_number(finished):
    config = PartyConfig.read(finished / "bob.toml")
    with refused(FileError, names=(3, 2)):
        studied_model(config, 3)


# --- folds and combinations -----------------------------------------------------------------------


def test_folds_depend_on_the_id_alone_and_are_about_equal():
    """39,073 rows in three folds: 5.3 standard deviations, once in ten million."""
    ids = RowIds.numbered(39_073)
    folds = fold_numbers(ids, 3, "salt")
    order = KeyedEntropy.from_seed(1).permutation(len(ids))
    assert np.array_equal(fold_numbers(ids.take(order), 3, "salt"), folds[order])
    assert not np.array_equal(fold_numbers(ids, 3, "other"), folds)
    sizes = np.bincount(folds)
    assert len(sizes) == 3
    assert np.abs(sizes - len(ids) / 3).max() < 5.3 * math.sqrt(len(ids) * 2 / 9)


def test_combinations_are_numbered_with_the_last_setting_varying_fastest():
    study = Study.from_mapping({"folds": 2, "l2": [0.1, 0.2], "passes": [2, 3]})
    assert study.models == 12
    assert [dict(point.values) for point in study.points] == [
        {"l2": l2, "passes": passes} for l2 in (0.1, 0.2) for passes in (2, 3)
    ]


def test_it_is_a_study_that_a_file_with_one_is_run_as(tmp_path):
    write_study(tmp_path)
    assert isinstance(study_of(tmp_path, "bob"), StudySide)


# --- several Alices, and other mechanisms ---------------------------------------------------------


@pytest.mark.slow  # three parties over real connections, twice
def test_two_alices_study_together_and_resume_after_a_kill(tmp_path):
    """Whole models of all three sides against scikit-learn on the joined table."""
    group_shape = Company(tmp_path, agreement={"passes": 12})
    group_shape.write_tables(150)
    study = "folds = 2\nl2 = [0.01, 0.1]\npasses = [12, 14]\n"
    for name in group_shape.all:
        path = group_shape.place(name) / f"{role_of(name)}.toml"
        path.write_text(f"{path.read_text()}\n[study]\n{study}", encoding="utf-8")

    def act(config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
        return run_job(TrainJob(), config, calls, way)

    killed = group_shape.run(act, watch={"alice-2": Callbacks(observe=Killer(40))})
    assert isinstance(killed["alice-2"], Killed)
    ends = group_shape.run(act)
    bob = ends["bob"].to_dict()
    assert bob["study"]["models"] == 12
    sides = [TrainJob().prepare(group_shape.config(name)) for name in (*group_shape.names, "bob")]
    plans: list[Any] = [side.plan for side in sides]
    for model in plans[-1].models:
        if model.fold is None:
            file = f"models/model-{model.point.number:02d}.json"
            shares = [
                ModelShare.load(group_shape.place(name) / f"{role_of(name)}.{file}")
                for name in group_shape.all
            ]
            assert distance(shares, optimum(plans, model.terms.agreement.l2)) < 0.05


@pytest.mark.slow  # forty passes of mutual, twice
def test_mutual_studies_and_opens_no_score_of_a_training_row(tmp_path):
    write_study(
        tmp_path, "folds = 2\nl2 = [0.01]\n", agreement={"mechanism": "mutual", "passes": 40}
    )
    alice, bob = run_study(tmp_path).records
    assert alice["scores_per_row"] == 0
    (setting,) = bob["study"]["settings"]
    assert setting["judged_rows"] > 0
    assert not setting.get("folds")


@pytest.mark.slow  # two trainings by batches
@pytest.mark.parametrize("mechanism", ["none", "mult", "hybrid"])
def test_other_mechanisms_study_too(tmp_path, mechanism):
    agreed = {**SGD, "epochs": 1, "batch-size": 8, "learning-rate": None, **MECHANISMS[mechanism]}
    write_study(tmp_path, "learning-rate = [0.1, 0.01]\n", agreement=agreed)
    alice, bob = run_study(tmp_path).records
    assert len(alice["study"]["settings"]) == 2
    assert bob["study"]["settings"][0]["held_out"]["rows"] > 0
