"""Results as JSON records and back: nothing is lost, made up or ignored."""

from __future__ import annotations

import math

import pytest
from audit.tests.report.samples import AUDITS, leaking_run, several

from taciturn.errors import DataError
from taciturn.files import to_json
from taciturn.results.folder import from_record, load
from taciturn.results.reading import read
from taciturn.results.runs import Runs
from taciturn.results.serialise import record_of
from taciturn.results.training import TrainingRun
from taciturn_audit.results.audit import AttackScore, Control, Evidence
from taciturn_audit.results.runs import AuditResult
from tests.report.samples import TRAINING
from tests.results.test_serialise import again


@pytest.mark.parametrize("name", [name for name in AUDITS if name != "bare"])
def test_an_audit_reads_back_as_it_was(name):
    audit = AUDITS[name]()
    assert again(audit) == audit


def test_what_is_not_a_number_reads_back_as_that():
    result = again(AUDITS["bare"]())
    assert isinstance(result, AuditResult)
    assert math.isnan(result.findings.attacks[0].auc)
    assert result.to_dict() == AUDITS["bare"]().to_dict()


def test_a_file_reads_back_or_says_why_not(tmp_path):
    path = tmp_path / "result.json"
    path.write_text(to_json(several().to_dict()))
    assert load(path) == several()
    path.write_text("{")
    with pytest.raises(DataError) as raised:
        load(path)
    assert raised.value.where == str(path)
    with pytest.raises(DataError, match="nowhere"):
        load(tmp_path / "nowhere")
    path.write_text("{}")
    with pytest.raises(DataError) as raised:
        load(path)
    assert raised.value.where == str(path)


def test_a_training_is_not_taken_for_an_audit_and_a_summary_needs_its_runs():
    record = leaking_run().to_dict()
    del record["messages"]
    with pytest.raises(DataError, match="messages"):
        from_record(record)
    summary = several().to_dict()
    summary["seeds"] = 4
    with pytest.raises(DataError, match="seeds"):
        from_record(summary)
    summary = several().to_dict()
    summary["runs"][1]["ledger"]["delta"] = "small"
    with pytest.raises(DataError, match=r"runs\[1\].ledger.delta"):
        from_record(summary)


def test_values_keep_their_redacted_words():
    scored = AttackScore("a", 1, 1, 1, 1, 1, 1, 1, 0, None, 0, "")
    assert repr(Runs((TRAINING,))) == "Runs(version=None, command=None)"
    assert "preparation" not in repr(TRAINING)
    assert "calibration" not in repr(TRAINING)
    assert repr(Control("prior", 0.5, 0.5)) == "Control(name='prior', accuracy=0.5, auc=0.5)"
    assert record_of(scored)["decided_correct"] is None
    assert record_of(Evidence(math.inf, 0, "a", 1, 1, 1, 0.05, False))["claim"] == "inf"
    assert isinstance(read(TrainingRun, record_of(TRAINING)), TrainingRun)
