"""The audit of weights of evidence: the usual way leaks, ours tells Alice nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import taciturn
from taciturn.__main__ import run
from taciturn.privacy.solvers import resolved
from taciturn.report.html import render as render_html
from taciturn.report.markdown import render as to_markdown
from taciturn.results.figures import parts_of
from taciturn.results.folder import ResultFolder, from_record, run_folders
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, load_raw
from taciturn_audit.judge import judge as judge_guess
from taciturn_audit.report.woe import woe_audit_page
from taciturn_audit.results.woe_audit import WoeAudit
from taciturn_audit.woe import audit_woe
from taciturn_risk.woe.result import WoeResult
from taciturn_risk.woe.simulation import TrainingRows, converse
from taciturn_risk.woe.weights import information_value, weights_of_evidence
from tests.modules import module_of

COMMON = "--dataset breast-cancer --scheme clear --seed 1 --alice-columns 5"


@pytest.fixture(scope="module")
def audit() -> WoeAudit:
    return taciturn.audit_woe(dataset="breast-cancer", seed=1, alice_columns=5)


@pytest.fixture(scope="module")
def weighed() -> WoeResult:
    return taciturn.woe(dataset="breast-cancer", scheme="clear", seed=1, alice_columns=5)


def test_the_simulation_gives_what_the_joined_table_gives():
    """Own data with a category, a gap and a spike, against polars on the same rows."""
    rng = np.random.default_rng(4)
    rows = 900
    income = np.where(rng.random(rows) < 0.6, 0.0, rng.gamma(2, 500, rows))
    region = rng.choice(["north", "south", "east"], rows, p=[0.5, 0.4, 0.1])
    age = [
        None if gap else float(value)
        for gap, value in zip(rng.random(rows) < 0.15, rng.integers(18, 80, rows), strict=True)
    ]
    labels = (rng.random(rows) < 0.2 + 0.4 * (region == "south")).astype(int)
    frame = pl.DataFrame({"income": income, "region": region, "age": age, "y": labels})
    result = taciturn.woe(frame, label="y", scheme="clear", seed=3, test_fraction=0.2)
    assert result.rows == 720
    by_name = {column.name: column for column in result.columns}
    assert set(by_name) == {"income", "region", "age"}
    assert by_name["income"].bins[0].rows > 0.5 * result.rows
    assert by_name["age"].bins[-1].label == "(missing)"
    assert [one.label for one in by_name["region"].bins] == ["east", "north", "south"]
    # The same seed trains on the same rows: their labels and regions are those of the result.
    settings = resolved(Settings.from_mapping({"label": "y", "data": "frame", "seed": 3}))
    raw = load_raw(settings.model_copy(update={"data": None}), frame)
    chosen = TrainingRows.from_settings(settings, raw, RunEntropy.for_seed(3)).rows
    joined = frame[chosen].group_by("region").agg(pl.col("y").sum(), pl.len()).sort("region")
    ones = joined["y"].to_numpy().astype(np.int64)
    sizes = joined["len"].to_numpy().astype(np.int64)
    region_told = by_name["region"]
    assert [one.ones for one in region_told.bins] == ones.tolist()
    assert [one.woe for one in region_told.bins] == pytest.approx(weights_of_evidence(ones, sizes))
    assert region_told.iv == pytest.approx(information_value(ones, sizes))


def test_four_decimals_give_every_count_and_the_counts_give_the_labels(audit):
    by_digits = {(one.statistic, one.digits): one for one in audit.roundings}
    assert by_digits["woe", 4].exact == by_digits["woe", None].exact == 1
    assert by_digits["woe", 4].off == 0
    assert by_digits["woe", 1].exact < 1
    assert by_digits["rate", 1].exact < 1
    for one in audit.fineness:
        assert one.exact == 1
        for score in (*one.attacks, *one.shuffled):
            assert score.decided_correct in (None, 1.0)
        assert one.best.auc > 0.95
    finest = audit.fineness[-1]
    assert finest.best.decided > 0.9
    # On shuffled labels a few bins tell little, and a bin of each value everything.
    assert audit.fineness[0].shuffled[-1].accuracy < 0.75
    assert finest.shuffled[-1].auc > 0.99


def test_against_labels_shuffled_after_the_counts_the_attack_is_at_chance(monkeypatch):
    judged = judge_guess

    def misjudged(name: str, guess: Any, truth: Any, seconds: float = 0.0) -> Any:
        return judged(name, guess, truth.permuted(KeyedEntropy.from_seed(8)), seconds)

    monkeypatch.setattr(module_of(audit_woe), "judge", misjudged)
    result = taciturn.audit_woe(dataset="breast-cancer", scheme="clear", seed=1, alice_columns=5)
    assert all(0.4 < one.best.auc < 0.6 for one in result.fineness)
    assert result.fineness[0].best.accuracy_low < result.control.accuracy


def test_our_way_tells_alice_ciphertexts_and_nothing_else(audit):
    assert audit.alike
    sealed = [one.message for one in audit.messages if one.encrypted]
    assert sealed == ["SealedLabels"]
    assert {one.message for one in audit.messages} == {
        "Hello",
        "BatchCommitment",
        "BatchShare",
        "KeyOffer",
        "SealedLabels",
    }


def test_without_encryption_the_audit_says_that_labels_are_readable(weighed):
    result = taciturn.audit_woe(dataset="breast-cancer", scheme="clear", seed=1, alice_columns=2)
    (labels,) = [one for one in result.messages if one.message == "SealedLabels"]
    assert not labels.encrypted
    assert labels.allows
    assert labels.allows in to_markdown(woe_audit_page(result))


def test_a_fault_that_lets_more_than_ciphertexts_differ_is_noticed(monkeypatch):
    """The positive control: a Bob whose key depends on a label."""
    original = converse
    seen: list[int] = []

    def faulty(cut: Any, labels: Any, terms: Any, entropy: Any, **options: Any) -> Any:
        seen.append(1)
        other = replace(entropy, bob=entropy.bob.fork(str(len(seen))))
        return original(cut, labels, terms, other, **options)

    monkeypatch.setattr(module_of(audit_woe), "converse", faulty)
    result = taciturn.audit_woe(dataset="breast-cancer", seed=1, alice_columns=2)
    assert not result.alike


def test_what_bob_learns_is_ordered_and_within_bounds(audit):
    bits = [one.bits for one in audit.bob]
    assert bits == sorted(bits, reverse=True)
    for one in audit.bob:
        assert one.prior <= one.posterior <= 1
        assert 0 <= one.bits <= 1


def test_the_command_prints_the_contract_and_no_line_is_too_long(capsys):
    assert run(["woe", *COMMON.split(), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    for column in record["columns"]:
        assert {"name", "iv", "bins"} <= column.keys()
        for one in column["bins"]:
            assert {"label", "rows", "woe"} <= one.keys()
    assert from_record(record).to_dict() == record
    for command in ("woe", "audit --woe"):
        assert run([*command.split(), *COMMON.split()]) == 0
        assert max(map(len, capsys.readouterr().out.splitlines())) <= 100
    assert run(["woe", *COMMON.split(), "--no-share-names"]) == 0
    out = capsys.readouterr().out
    assert "alice.1" in out
    assert "radius" not in out


def test_result_folders_are_listed_and_read_back(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["woe", *COMMON.split(), "--out", "runs/"]) == 0
    assert run(["audit", "--woe", *COMMON.split(), "--out", "runs/"]) == 0
    folders = [ResultFolder.read(folder) for folder in run_folders(Path("runs"))]
    kinds = {folder.result.kind for folder in folders}
    assert kinds == {"woe", "audit-woe"}
    entries = {part.entry.kind: part.entry for folder in folders for part in parts_of(folder)}
    assert entries["woe"].verdict
    assert entries["audit-woe"].leakage is not None
    assert all("sealed" not in folder.path.name for folder in folders)
    capsys.readouterr()
    assert run(["runs", "list"]) == 0
    assert "audit-woe" in capsys.readouterr().out
    assert all((folder.path / "report.html").is_file() for folder in folders)


def test_the_pages_are_whole_and_ask_for_nothing(audit, weighed):
    for page, tables in ((weighed.page(), 2), (woe_audit_page(audit), 4)):
        text = render_html(page)
        assert text.count("<table") >= tables
        assert "<script" not in text
        assert "://" not in text.replace("http://www.w3.org/", "")
