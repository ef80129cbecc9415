"""The front door: what comes in, what comes out, and that the protocol equals centralised SGD."""

from __future__ import annotations

import polars as pl
import pytest

import taciturn
from taciturn.engine.transcript import Transcript, TranscriptFile
from taciturn.errors import ConfigError, TranscriptError
from tests.expected import refused
from tests.seldom import seldom
from tests.test_api import OWN, PROTECTED, SMALL, people, without_clock


@pytest.fixture(scope="module")
def audited() -> taciturn.AuditResult:
    """One audit for all who only read it."""
    return taciturn.audit(**SMALL)


def test_a_canary_transcript_is_judged_by_the_shuffled_labels(tmp_path):
    path = tmp_path / "run.transcript"
    taciturn.train(**SMALL, permute_labels=True, record=path)
    record = taciturn.audit(transcript=path).to_dict()
    assert record["permute_labels"] is True
    accuracies = {one["name"]: one["accuracy"] for one in record["attacks"]}
    assert accuracies["exact-solve"] == 1.0
    assert record["controls"][1]["auc"] < 0.7


def test_a_transcript_of_another_table_is_refused(tmp_path):
    path = tmp_path / "run.transcript"
    taciturn.train(people(), **OWN, record=path, seed=1)
    other = people().with_columns(pl.col("age") + pl.col("balance"))
    with refused(TranscriptError):
        taciturn.audit(other, transcript=path)


def test_shuffled_truth_puts_every_attack_at_chance_and_is_marked(audited):
    """False alarm below 1e-3: four standard errors of an AUC of one half over 455 rows."""
    record = taciturn.audit(**SMALL, shuffle_truth=True).to_dict()
    assert all(abs(attack["auc"] - 0.5) < 0.115 for attack in record["attacks"])
    assert record["shuffle_truth"] is True
    assert audited.to_dict()["shuffle_truth"] is False


def test_record_takes_one_run_only(tmp_path):
    for call in (taciturn.train, taciturn.audit):
        with refused(ConfigError, setting="record"):
            call(**{**SMALL, "seeds": 2}, record=tmp_path / "x")
    with refused(ConfigError, setting="record"):
        taciturn.audit(transcript=tmp_path / "x", record=tmp_path / "y")


@pytest.mark.parametrize(
    "options",
    [
        {"permute_labels": True},
        {"epochs": 50},
        {"mechanism": "bogus"},
        {"label": "x"},
        {"seeds": 2},
    ],
    ids=str,
)
def test_a_recorded_run_keeps_its_own_settings(tmp_path, options):
    path = tmp_path / "run.transcript"
    taciturn.train(**SMALL, record=path)
    with refused(ConfigError, setting=next(iter(options))):
        taciturn.audit(transcript=path, **options)


def test_other_labels_than_the_recorded_ones_are_refused(tmp_path):
    """The features alone would not tell: judging by other labels would say nothing."""
    path = tmp_path / "run.transcript"
    taciturn.train(people(), **OWN, record=path, seed=1, batch_size=2, epochs=1)
    assert taciturn.audit(people(), transcript=path).to_dict()["attacks"]
    turned = people().with_columns(default=1 - pl.col("default"))
    with refused(TranscriptError):
        taciturn.audit(turned, transcript=path)


@pytest.mark.parametrize("damage", [{"settings": 5}, {"settings": "x"}, {"coins": []}, {}, None])
def test_a_header_that_makes_no_sense_or_no_footer_is_a_transcript_error(tmp_path, damage):
    path = tmp_path / "run.transcript"
    taciturn.train(**SMALL, record=path)
    whole = Transcript.load(path)
    header = {} if damage == {} else {**whole.header, **(damage or {})}
    with TranscriptFile(path, header) as file:
        for sender, frame in whole.records:
            file(sender, frame)
        if damage is not None:
            file.conclude(whole.footer)
    with pytest.raises(TranscriptError):
        taciturn.audit(transcript=path)


@pytest.mark.parametrize("name", seldom(PROTECTED, always=["add"]))
def test_a_transcript_of_a_protected_run_audits_like_the_run(tmp_path, name):
    path = tmp_path / "run.transcript"
    live = taciturn.audit(
        **{**SMALL, **PROTECTED[name], "epochs": 1}, record=path, seat="alice"
    ).to_dict()
    later = taciturn.audit(transcript=path).to_dict()
    # Who was in a hidden batch only Bob knows: a recording of the conversation cannot be judged.
    hidden = name == "hybrid"
    assert (live.pop("membership") is not None, later.pop("membership")) == (hidden, None)
    assert without_clock(later) == without_clock(live)
