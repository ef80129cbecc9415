"""``check`` and ``audit`` agree: what the rehearsal clears, no attack of ours breaks."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import taciturn
from taciturn.data.label_table import LabelTable
from taciturn.errors import ConfigError, ShapeError
from taciturn.privacy.solvers import resolved
from taciturn.report.blocks import Paragraph
from taciturn.settings.schema import Settings
from taciturn_audit.attacks.base import LabelGuess
from taciturn_audit.rehearsal import Rehearsal, random_table
from taciturn_audit.results.check import AT_RISK, CLEAR, LEAKS, CheckResult
from taciturn_audit.results.runs import AuditResult
from taciturn_audit.verdict import Status, conclude, foresee
from tests.expected import refused

# Of the rows that an attack speaks about: more, for sure, is called a leak.
LEAK_SHARE = 0.75


def configurations() -> list[dict[str, Any]]:
    """Over sixty, from hopeless to harmless, on two datasets."""
    listed: list[dict[str, Any]] = []
    for dataset in ("breast-cancer", "sklearn-digits"):
        listed += [
            {"dataset": dataset, "mechanism": "none", "batch_size": size, "epochs": epochs}
            for size, epochs in product((16, 64, 200), (1, 3))
        ]
        listed += [
            {"dataset": dataset, "mechanism": "add", "epsilon": epsilon, "epochs": epochs}
            for epsilon, epochs in product((0.01, 0.1, 1.0, 10.0), (1, 10))
        ]
        listed += [
            {"dataset": dataset, "mechanism": "mult", "variant": variant, "epsilon": epsilon, **b}
            for variant, epsilon, b in product(
                ("printed", "one-sided", "mean-one"),
                (0.1, 10.0),
                ({"b1": 0.1, "b2": 1.0}, {"b1": 0.9, "b2": 10.0}),
            )
        ]
        listed += [
            {"dataset": dataset, "mechanism": "hybrid", "epsilon": epsilon, "epochs": epochs}
            for epsilon, epochs in product((0.2, 1.0), (1, 3))
        ]
        listed += [
            {"dataset": dataset, "mechanism": "label-rr", "epsilon": epsilon}
            for epsilon in (0.1, 1.0, 10.0)
        ]
        for columns in ("all", "half", 2):
            whole = {"dataset": dataset, "solver": "newton", "alice_columns": columns}
            listed.append({**whole, "mechanism": "none"})
            listed.append({**whole, "mechanism": "label-rr", "epsilon": 1.0})
    assert len(listed) >= 60
    return listed


def shuffled(options: dict[str, Any]) -> AuditResult:
    """The audit of a run on shuffled labels."""
    return taciturn.audit(
        **options, scheme="clear", seed=3, permute_labels=True, canary=False, seat="alice"
    )


def audited(options: dict[str, Any]) -> dict[str, Any]:
    return shuffled(options).to_dict()


def best_beyond_chance(options: dict[str, Any]) -> float:
    """By how much the best attack beats the prior on shuffled labels, for sure."""
    record = audited(options)
    known = record["controls"][0]["accuracy"]
    return max((attack["accuracy_low"] - known for attack in record["attacks"]), default=-1.0)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("verdict", "options"),
    [
        (LEAKS, {"dataset": "breast-cancer", "mechanism": "none", "epochs": 1}),
        (LEAKS, {"dataset": "breast-cancer", "mechanism": "none", "solver": "newton"}),
        (CLEAR, {"dataset": "breast-cancer", "mechanism": "add", "epsilon": 0.01, "epochs": 2}),
        (AT_RISK, {"dataset": "breast-cancer", "mechanism": "add", "epsilon": 1.0, "epochs": 1}),
        (LEAKS, {"dataset": "breast-cancer", "mechanism": "add", "epsilon": 10.0}),
        (
            CLEAR,
            {
                "dataset": "sklearn-digits",
                "mechanism": "mult",
                "epsilon": 0.1,
                "b1": 0.9,
                "epochs": 2,
            },
        ),
    ],
)
def test_a_few_of_them_agree(verdict, options):
    assert agrees(options) == verdict


@pytest.mark.slow
@pytest.mark.parametrize("options", configurations(), ids=str)
def test_what_check_clears_audit_does_not_break(options):
    """Broken is ten points beyond the prior; cleared means by every attack."""
    agrees(options)


def agrees(options: dict[str, Any]) -> str:
    """Holds a check's verdict against the audit of the same configuration, and returns it."""
    verdict = taciturn.check(**options).worst
    if verdict == CLEAR:
        assert best_beyond_chance(options) < 0.1
    elif verdict == LEAKS:
        # And the alarm is no false one: something is told that the prior does not know.
        assert conclude(shuffled(options)).status is Status.LEAK
    else:
        assert verdict == AT_RISK
        attacks = audited(options)["attacks"]
        # Something is told of the order of the labels, and less than is called a leak.
        assert max(attack["auc"] for attack in attacks) > 0.5
        assert max(attack["accuracy_low"] for attack in attacks) < LEAK_SHARE
    return verdict


@pytest.mark.sampled(2)
@pytest.mark.parametrize("alice_columns", ["all", "half", 7])
@pytest.mark.parametrize("intercept", [False, True])
def test_any_split_of_the_columns_is_checked(alice_columns, intercept):
    checked = taciturn.check(
        dataset="breast-cancer",
        mechanism="add",
        epsilon=10.0,
        alice_columns=alice_columns,
        intercept=intercept,
        epochs=2,
    )
    assert {verdict.attack for verdict in checked.verdicts} >= {"likelihood", "exact-solve"}
    assert checked.worst == "leaks"


def test_columns_alone_are_enough_and_a_table_without_labels_too(tmp_path):
    assert taciturn.check(columns=30, mechanism="none", batch_size=16, epochs=1).worst == "leaks"
    path = tmp_path / "alice.csv"
    lines = ["who,age,income", *(f"{n},{20 + n % 50},{(n * 37) % 101}" for n in range(400))]
    path.write_text("\n".join(lines))
    checked = taciturn.check(path, id="who", mechanism="add", epsilon=0.01, epochs=1, batch_size=50)
    assert checked.worst == CLEAR
    assert checked.facts.alice_columns == 2


@pytest.mark.parametrize(
    ("options", "setting"),
    [
        ({"columns": 3, "dataset": "breast-cancer"}, "columns"),
        ({"columns": 0}, "columns"),
        ({"rows": 10}, "rows"),
    ],
)
def test_what_does_not_go_together_is_refused(options, setting):
    with refused(ConfigError, setting=setting):
        taciturn.check(mechanism="none", **options)


@pytest.mark.parametrize(("rows", "fraction"), [(2, None), (17, None), (27, 0.5)])
def test_too_few_rows_are_refused_by_their_number(rows, fraction):
    with refused(ShapeError, names=(rows, 14, 18 if fraction is None else 28)):
        taciturn.check(columns=3, rows=rows, test_fraction=fraction, mechanism="none")


@pytest.mark.parametrize("rows", range(18, 40))
@pytest.mark.sampled(6)
def test_enough_rows_have_coins_of_both_kinds(rows):
    settings = resolved(Settings.from_mapping({"mechanism": "none", "epochs": 1, "batch_size": 8}))
    rehearsal = Rehearsal.run(settings, random_table(rows, 2))
    assert set(rehearsal.labels.values.tolist()) == {0, 1}
    assert rehearsal.rows == rehearsal.labels.rows == rows - math.ceil(0.2 * rows)


def test_true_updates_have_no_finite_total_before_training_either():
    options: dict[str, Any] = {"columns": 4, "mechanism": "add", "epsilon": 1.0, "epochs": 1}
    released, true = (
        taciturn.check(**options, bob_update=update, alice_columns="half")
        for update in ("released", "true")
    )
    assert released.facts.label_epsilon_total == 0.5
    assert true.facts.label_epsilon_total == math.inf
    assert true.to_dict()["facts"]["label_epsilon_total"] == "inf"


@pytest.mark.parametrize(
    ("correct", "spoken", "verdict"),
    [
        (2, 3, CLEAR),
        (9, 14, CLEAR),
        (14, 14, AT_RISK),
        (60, 60, LEAKS),
        (166, 300, AT_RISK),
        (164, 300, CLEAR),
    ],
)
def test_a_risk_is_more_than_chance_shows(correct, spoken, verdict):
    labels = LabelTable.from_data(np.arange(spoken) % 2)
    scores = np.where(labels.values == 1, 1.0, -1.0) * np.where(np.arange(spoken) < correct, 1, -1)
    everywhere = np.ones(spoken, dtype=bool)
    assert foresee(LabelGuess(scores, everywhere, ~everywhere), labels)[0] == verdict


def test_a_check_of_no_protection_says_one_thing_of_each_attack():
    """One that was run is not said not to apply; without protection nothing is cleared."""
    tables = Path(__file__).resolve().parents[2] / "examples" / "two-tables"
    made = taciturn.check(
        tables / "bank.csv",
        alice_data=str(tables / "telco.csv"),
        id="customer",
        label="defaulted",
        mechanism="none",
    )
    clear = [verdict for verdict in made.verdicts if verdict.verdict == CLEAR]
    words = {verdict.outcome: verdict.ran for verdict in clear}
    assert len(words) == len({(verdict.outcome, verdict.ran) for verdict in clear}) == 2
    cleared = replace(made, verdict=CLEAR, verdicts=tuple(clear))
    protected = replace(cleared, facts=replace(made.facts, label_epsilon_total=1.0))
    assert cleared.unprotected
    assert closing(cleared) not in (closing(protected), closing(replace(protected, verdicts=())))


def closing(result: CheckResult) -> str:
    """The last line in bold, which the report ends with."""
    strong = [one for one in result.blocks() if isinstance(one, Paragraph) and one.tone == "strong"]
    return str(strong[-1].words)
