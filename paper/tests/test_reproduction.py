"""What ``taciturn reproduce`` says, and the fast trainer on which its searches rest."""

from __future__ import annotations

import io
from typing import Any, cast

import pytest
from rich.console import Console

import taciturn
from taciturn.privacy.base import GradientMechanism, ResidueMechanism
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.registry import mechanism
from taciturn.privacy.solvers import resolved
from taciturn.protocol.agree import agree
from taciturn.protocol.bob.inputs import released_labels
from taciturn.protocol.joint_seed import seed_of
from taciturn.report.blocks import Block
from taciturn.report.terminal import render
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, arrange, load_raw
from taciturn_paper import labels, leaks, learning, matrix
from taciturn_paper.cleartext import train_with_gradients, train_with_noise
from taciturn_paper.report import tables
from taciturn_paper.report.plots import frontier_svg
from taciturn_paper.tasks import Request
from tests.seldom import seldom

CELLS: list[dict[str, Any]] = [
    {"dataset": "breast-cancer", "mechanism": "add", "epsilon": 1.0},
    {"dataset": "sklearn-digits", "mechanism": "mult", "variant": "mean-one", "epsilon": 10.0},
    {"dataset": "census-income", "mechanism": "add", "epsilon": 10.0, "epochs": 1},
    {"dataset": "give-me-some-credit", "mechanism": "mult", "epsilon": 1.0, "epochs": 1},
    {"dataset": "breast-cancer", "mechanism": "label-rr", "epsilon": 1.0},
    {"dataset": "sklearn-digits", "mechanism": "none", "epochs": 3},
    {"dataset": "sklearn-digits", "mechanism": "label-rr", "epsilon": 0.1, "epochs": 3},
]


@pytest.mark.parametrize(
    "options",
    seldom(CELLS, always=[CELLS[0], CELLS[4]]),
    ids=lambda cell: f"{cell['dataset']}-{cell['mechanism']}",
)
def test_the_fast_trainer_gives_the_protocols_weights_to_the_last_bit(options, dataset_dir):
    if options["dataset"] in ("census-income", "give-me-some-credit"):
        options = {**options, "data_dir": str(dataset_dir(options["dataset"]))}
    options = {**options, "seed": 4, "l2": 0.01, "scheme": "clear"}
    settings, entropy = resolved(Settings.from_mapping(options)), RunEntropy.for_seed(4)
    data = arrange(settings, load_raw(settings), entropy.data)
    labels_train, features = data.labels_train, data.alice_train
    terms = agree(settings, len(features.columns), labels_train.rows)
    plan = terms.plan(seed_of(entropy.alice, entropy.bob), labels_train.rows)
    method = mechanism(terms.agreement)
    if isinstance(method, GradientMechanism):
        ledger = Ledger(labels_train.rows, "")
        released = released_labels(labels_train, method, ledger, entropy.bob)
        weights = train_with_gradients(features.values, released.values, plan, terms, method)
    else:
        noisy = cast(ResidueMechanism[Any], method)
        weights = train_with_noise(
            features.values, labels_train.values, plan, terms, noisy, entropy.bob
        )
    joint = taciturn.train(**options).weights["alice"]
    assert weights.tobytes() == joint.tobytes()


@pytest.mark.slow  # some seconds
@pytest.mark.parametrize("quick", [True, False])
def test_mult_as_printed_does_not_learn_and_its_readings_do(quick):
    record = learning.run(Request(quick=quick))
    by_variant = {row["variant"]: row for row in record["rows"]}
    assert not by_variant["printed"]["learns"]
    for variant in ("one-sided", "mean-one"):
        assert by_variant[variant]["learns"]
        assert quick or by_variant[variant]["auc_low"] > 0.9
    assert record["centralised"]["auc"] > 0.95


@pytest.mark.slow  # an experiment; the quick search is one that runs always
def test_the_quick_matrix_shows_utility_beside_leakage():
    record = matrix.run(Request(quick=True))
    rows = {(row["curve"], row["epsilon"]): row for row in record["rows"]}
    assert len(rows) == len(matrix.cells(quick=True))
    assert record["missing"] == []
    assert rows["none", None]["leakage"] == 1.0
    assert rows["add", 10.0]["leakage"] > 0.99
    assert rows["add", 0.1]["leakage"] < 0.75
    assert rows["hybrid", 1.0]["leakage"] == 1.0
    assert rows["hybrid", 1.0]["test_auc"] > 0.95
    assert rows["label-rr", 10.0]["leakage"] > 0.99
    assert rows["label-rr", 0.1]["leakage"] < 0.75
    assert rows["label-rr", 10.0]["label_epsilon_total"] == 10.0
    # Labels and columns are told to neither side by one alone; the model is as good as any.
    for (curve, _), row in rows.items():
        assert bool(row["columns_told"]) == (curve != "mutual")
        assert (row["best_attack"] is None) == (curve in ("sealed", "mutual"))
    assert rows["mutual", None]["test_auc"] == pytest.approx(
        rows["sealed", None]["test_auc"], abs=1e-3
    )
    picture = frontier_svg(record)
    assert picture == frontier_svg(record)
    assert "label-rr" in picture


@pytest.mark.slow
def test_sparse_recovery_fades_as_the_response_grows_and_check_foresees_it():
    """At the paper's 70 it recovers; far beyond the transition it does not."""
    record = leaks.run_recovery(Request(quick=True))
    first, _, last = record["rows"]
    assert first["recoverable"]
    assert not last["recoverable"]
    assert first["sparse"]["right"] > 0.85
    assert first["sparse"]["certain"] > 0.1
    assert first["check_sparse"] == "leaks"
    assert last["sparse"]["right"] < first["sparse"]["right"]
    assert last["sparse"]["certain"] < 0.05
    for row in record["rows"]:
        if row["check_sparse"] == "no attack of ours applies":
            assert row["sparse"]["right"] < 0.6


@pytest.mark.slow  # an experiment; the quick search is one that runs always
def test_the_quick_comparison_at_the_same_total_shows_utility_and_what_is_told():
    record = labels.run(Request(quick=True))
    chosen = [row for row in record["rows"] if row["epochs_chosen"]]
    rows = {(row["mechanism"], row["label_epsilon_total"]): row for row in chosen}
    assert set(rows) == {(name, total) for name in ("add", "label-rr") for total in labels.TOTALS}
    assert len(record["rows"]) == len(labels.CONTENDERS) * len(labels.TOTALS)
    for row in record["rows"]:
        name, total = row["mechanism"], row["label_epsilon_total"]
        assert row["epsilon"] == (total if name == "label-rr" else 2 * total / row["epochs"])
        # Nobody is above what the total allows, but for chance: four seeds of 455 rows.
        assert row["told"] <= row["ceiling"] + 4.5 * 0.5 / (4 * 455) ** 0.5
    assert rows["label-rr", 10.0]["told"] > 0.995
    assert rows["label-rr", 1.0]["auc"] > 0.97
    text = _printed(tables.labels(record))
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "…" not in text


@pytest.mark.slow  # an experiment, of some seconds
def test_the_debiased_loss_runs_away_at_a_small_epsilon_and_the_corrected_one_does_not():
    rows = labels.runaway()
    by_case = {(row["loss_name"], row["epsilon"], row["epochs"]): row for row in rows}
    for epsilon in labels.RUNAWAY_EPSILONS:
        first, last = (by_case["debiased", epsilon, epochs] for epochs in (10, 1000))
        # A hundred times the epochs, nearly a hundred times the weight: nothing holds it back.
        assert last["largest_weight"] > 50 * first["largest_weight"]
        assert last["loss"] < 30 * first["loss"] < 0
        first, last = (by_case["corrected", epsilon, epochs] for epochs in (10, 1000))
        assert last["largest_weight"] < 20 * first["largest_weight"]
        assert last["largest_weight"] < by_case["debiased", epsilon, 1000]["largest_weight"] / 10
        assert 0 < last["loss"] < first["loss"] < 0.7


def _printed(blocks: list[Block]) -> str:
    screen = Console(width=100, record=True, file=io.StringIO())
    screen.print(render(blocks))
    return screen.export_text()
