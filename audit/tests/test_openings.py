"""Attacks on what is opened after training: each finds it, and nothing on its control."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

import taciturn
from taciturn.jobs.train.simulation import simulate_training
from taciturn.privacy.solvers import resolved
from taciturn.results.folder import from_record
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.settings.study import Study
from taciturn.simulation import RunEntropy, load_raw
from taciturn_audit.column_attacks.opened_scores import SeveralModelsAttack
from taciturn_audit.columns import Truth
from taciturn_audit.further_trainings import FurtherTrainings
from taciturn_audit.openings_audit import OpeningsAudit, audit_study, held_out_view, judge_opened
from taciturn_audit.results.openings import OpeningFindings

OPTIONS: dict[str, Any] = {
    "label": "label",
    "mechanism": "mutual",
    "alice_columns": ",".join(f"hers{number}" for number in range(4)),
    "passes": 28,
    "scheme": "clear",
    "seed": 1,
}


@cache
def people(rows: int = 700) -> pl.DataFrame:
    """Numbers at both sides that have something in common, and labels as often 0 as 1."""
    entropy = KeyedEntropy.from_seed(4)
    mixed = entropy.fork("x").uniform((rows, 6)) + 0.4 * entropy.fork("all").uniform((rows, 1))
    columns = {f"hers{number}": mixed[:, number] for number in range(4)}
    columns |= {f"his{number}": mixed[:, 4 + number] for number in range(2)}
    labels = entropy.fork("label").uniform((rows,)) < 0.5 + 0.5 * (mixed[:, 0] - mixed[:, 4])
    return pl.DataFrame(columns).with_columns(pl.Series("label", labels.astype(int)))


@dataclass(frozen=True)
class Run:
    """A training of ``people``."""

    settings: Settings
    entropy: RunEntropy
    outcome: Any

    def audit(self, *adversaries: str, further: bool = True) -> OpeningFindings:
        findings = OpeningsAudit(
            self.settings, self.outcome, self.entropy, adversaries, further
        ).audit()
        assert findings is not None
        return findings


@cache
def run(rows: int = 700, **options: Any) -> Run:
    settings = resolved(Settings.from_mapping({**OPTIONS, **options}))
    entropy = RunEntropy.for_seed(1)
    outcome = simulate_training(settings, load_raw(settings, people(rows)), entropy=entropy)
    return Run(settings, entropy, outcome)


@pytest.fixture(scope="module")
def findings() -> OpeningFindings:
    return run().audit("bob")


def named(findings: OpeningFindings, name: str) -> list[Any]:
    return [attack for attack in findings.attacks if attack.name == name]


def test_one_models_scores_give_alices_part_up_to_scale(findings):
    first = named(findings, "prediction")[0]
    assert first.result > 0.9
    assert abs(first.control) < 0.2
    assert first.above


def test_two_scorings_with_other_columns_of_his_give_alices_part(findings):
    (attack,) = named(findings, "what-if")
    assert attack.result > 0.9999
    assert abs(attack.control) < 0.2
    assert attack.above


def test_several_models_give_alices_columns_from_few_known_rows(findings):
    attacks = [attack for attack in named(findings, "several-models") if attack.known_rows]
    figures = [(attack.models, attack.known_rows) for attack in attacks]
    assert figures == [(2, 5), (2, 20), (12, 7), (12, 20)]
    assert all(attack.above and attack.control < 0.3 for attack in attacks if attack.models == 12)
    limited, every = attacks[1].result, attacks[3].result
    assert every > 0.5
    # Two models of four columns leave most of a row unknown.
    assert limited < 0.3


def test_scores_of_other_rows_give_nothing_of_her_columns():
    one = run()
    trainings = FurtherTrainings(one.settings, one.outcome, one.entropy).several_models()
    opened = (trained.held_out_scores for trained in trainings)
    scores = np.column_stack([one for one in opened if one is not None])
    view = held_out_view(one.outcome, scores, own_weights=False)
    order = KeyedEntropy.from_seed(2).permutation(len(scores))
    truth = Truth.from_table(one.outcome.data.alice_test)
    hidden = replace(view, scores=scores[order])
    known = KeyedEntropy.from_seed(3)
    judged = list(judge_opened(SeveralModelsAttack(), hidden, truth, known, ""))
    assert judged
    assert not any(attack.above for attack in judged)


def test_a_column_that_is_the_label_but_for_one_row_turns_alices_weights_to_that_row(findings):
    column, positive = named(findings, "chosen-input")
    assert column.result > 0.8
    assert column.above
    assert positive.result > 0.9
    assert column.control < 0.8


def test_indicator_columns_give_alice_labels_where_her_weights_are_revealed():
    (attack,) = run(reveal=True).audit("alice").attacks
    assert attack.adversary == "alice"
    assert attack.result == 1.0
    assert attack.control < 0.7
    assert attack.above
    hidden = run().audit("alice")
    assert hidden.attacks == ()
    assert not hidden.leaks


def test_all_other_rows_and_scores_give_bob_the_one_row(findings):
    (attack,) = named(findings, "known-others")
    assert attack.result > 0.8
    assert abs(attack.control) < 0.6
    assert attack.above


def test_without_held_out_rows_there_is_nothing_to_attack():
    one = run()
    closed = replace(one, outcome=replace(one.outcome, held_out_scores=None))
    findings = closed.audit("bob", further=False)
    assert findings.attacks == ()
    assert not findings.leaks
    assert {skip.name for skip in findings.skipped} == {"prediction", "what-if"}


STUDY: dict[str, Any] = {"folds": 2, "passes": [2, 28], "l2": [0.001, 0.1, 1.0]}


@pytest.mark.parametrize("open_scores", [False, True])
def test_a_study_leaves_nothing_to_regress_unless_it_opens_scores(open_scores):
    study = Study.from_mapping({**STUDY, "open_scores": open_scores})
    settings = resolved(Settings.from_mapping(OPTIONS))
    findings = audit_study(settings, study, load_raw(settings, people()))
    assert findings.leaks is open_scores
    several = named(findings, "several-models")
    assert bool(several) is open_scores
    assert all(attack.above and attack.models == 6 for attack in several)
    assert [skip.name for skip in findings.skipped] == (
        [] if open_scores else ["prediction", "several-models"]
    )


def test_an_audit_reports_openings_and_means_over_seeds():
    options = {**OPTIONS, "alice_columns": "hers0", "passes": 2, "canary": False, "seat": "bob"}
    result = taciturn.audit(people(300), **options, seeds=2)
    record = result.to_dict()
    runs = [one["openings"]["attacks"][0]["result"] for one in record["runs"]]
    assert record["openings"]["attacks"][0]["result"] == pytest.approx(np.mean(runs))
    assert record["openings"]["further"] is False
    assert from_record(record).to_dict() == record
