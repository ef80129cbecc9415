"""Recordings of real sessions: attacked at Alice, judged at Bob, shown to whoever decides."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import taciturn
from taciturn.engine.pair import run_pair
from taciturn.engine.transcript import Recorder, Transcript
from taciturn.errors import FileError, RowOrderError, TranscriptError
from taciturn.jobs.train.job import TrainJob
from taciturn.model.share import ModelShare
from taciturn.party.config import PartyConfig
from taciturn.report.html import render as render_html
from taciturn.report.markdown import render as render_markdown
from taciturn.results.folder import from_record
from taciturn.rng import KeyedEntropy
from taciturn_audit.guesses import GuessesFile
from taciturn_audit.recorded import audit_guesses, audit_recording
from taciturn_audit.recording import OtherSide, RecordedSession
from taciturn_audit.report.session import session_blocks, session_page
from taciturn_audit.results.audit import Findings
from taciturn_audit.results.session import SessionAudit
from taciturn_audit.runner import examine
from taciturn_audit.verdict import Status, before_judgement, conclude_session
from taciturn_audit.views.alice_view import AliceView
from tests.expected import refused
from tests.modules import module_of
from tests.party.sides import MECHANISMS, run_both, write_config, write_tables
from tests.report.test_terminal import shown


def recorded(folder: Path, **agreement: Any) -> Path:
    """A folder with two parties' files, and their recordings of a session."""
    write_tables(folder)
    for role in ("alice", "bob"):
        write_config(folder, role, agreement=agreement)
    act = lambda side: side.run(record=folder / f"{side.config.role}.transcript")  # noqa: E731
    assert run_both(folder, act=act).records
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("session"), mechanism="none")


@pytest.fixture(scope="module")
def session(folder: Path) -> RecordedSession:
    return RecordedSession.read(folder / "alice.transcript", folder / "alice.toml")


@pytest.fixture(scope="module")
def judged(folder: Path, session: RecordedSession) -> SessionAudit:
    return audit_recording(
        session, folder / "bob.toml", write_guesses=folder / "guesses.json", canary=False
    )


def timeless(findings: Findings | None) -> Findings:
    assert findings is not None
    attacks = tuple(replace(score, seconds=0.0) for score in findings.attacks)
    return replace(findings, attacks=attacks)


def simulated(folder: Path) -> Findings:
    """The same training, both programs in one process with the coins that were recorded."""
    sides = {}
    for role in ("alice", "bob"):
        config = PartyConfig.read(folder / f"{role}.toml")
        party = TrainJob().prepare(config).plan
        header = Transcript.load(folder / f"{role}.transcript").header
        sides[role] = party, KeyedEntropy(bytes.fromhex(header["coins"][role]))
    (alice, hers), (bob, his) = sides["alice"], sides["bob"]
    recorder = Recorder()
    run_pair(alice.program(hers, None), bob.program(his, bob.bob_side(his)), tap=recorder)
    transcript = recorder.finish(Transcript.load(folder / "alice.transcript").header)
    view = AliceView.from_transcript(transcript, alice.tables.train, alice.tables.held_out)
    assert bob.tables.labels is not None
    return examine(view, bob.tables.labels).findings


@pytest.mark.slow  # some seconds
def test_a_session_is_audited_as_the_same_training_in_one_process_is(folder, judged):
    assert timeless(judged.findings) == timeless(simulated(folder))
    assert max(score.accuracy for score in timeless(judged.findings).attacks) == 1.0
    conclusion = conclude_session(judged)
    assert conclusion is not None
    assert conclusion.status is Status.LEAK


def test_the_session_is_named_by_what_both_sides_have(folder, session, judged):
    facts = session.recording
    models = [ModelShare.load(folder / f"{role}.model.json") for role in ("alice", "bob")]
    assert {facts.session} == {model.session for model in models}
    assert {facts.agreement_digest} == {model.agreement_digest for model in models}
    assert facts.table_digest == models[0].data_digest
    assert judged.judgement is not None
    assert judged.judgement.table_digest == models[1].data_digest
    assert judged.judgement.same_session
    assert judged.judgement.ledger is not None
    assert (facts.recorder, facts.peer, facts.columns, facts.peer_columns) == ("alice", "bob", 6, 4)
    assert facts.started is not None
    assert facts.started.endswith("+00:00")


def test_guesses_are_handed_over_and_judged_elsewhere(folder, judged):
    path = folder / "guesses.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "p0003" not in path.read_text(encoding="utf-8")
    later = taciturn.audit_session(guesses=path, truth=folder / "bob.toml")
    assert later == judged


def test_without_labels_there_are_guesses_and_no_findings(folder):
    audit = taciturn.audit_session(folder / "alice.transcript", folder / "alice.toml")
    assert audit.findings is None
    assert audit.judgement is None
    assert {one.name for one in audit.guesses} >= {"known-scores", "stacking"}
    verdict = before_judgement(audit)
    assert verdict.status in (Status.CERTAIN, Status.UNJUDGED)
    assert "accuracy" not in shown(session_blocks(audit))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "agreement",
    [
        MECHANISMS["sealed"],
        {"mechanism": "none", "evaluate": "epoch", "patience": 1},
        {"mechanism": "none", "held-out": 0},
    ],
    ids=["sealed", "patience", "nothing held out"],
)
def test_every_conversation_of_a_session_replays(tmp_path, agreement):
    folder = recorded(tmp_path, **agreement)
    session = RecordedSession.read(folder / "alice.transcript", folder / "alice.toml")
    audit = audit_recording(session, folder / "bob.toml", canary=False)
    applies = agreement["mechanism"] == "none"
    assert bool(audit.guesses) is applies
    assert all(message.allows for message in audit.messages)
    assert session_page(audit).blocks


def test_where_both_sides_files_lie_in_one_place_there_is_a_canary_too(tmp_path):
    folder = recorded(tmp_path, **MECHANISMS["add"])
    audit = taciturn.audit_session(
        folder / "alice.transcript", folder / "alice.toml", truth=folder / "bob.toml"
    )
    assert audit.canary is not None
    assert {control.name for control in audit.canary.controls} == {"prior", "model-only"}
    assert [row.epochs for row in audit.over_epochs] == [1, 2]
    assert audit.evidence is not None
    assert audit.judgement is not None
    assert audit.judgement.ledger is not None
    assert audit.evidence.claim == audit.judgement.ledger.label_epsilon_total == 2.0


# --- what does not fit -------------------------------------------------------------------------


def test_the_report_has_what_an_officer_asks_for(judged):
    page = session_page(replace(judged, audited="2026-11-16T21:04:05+00:00"))
    assert from_record(json.loads(json.dumps(judged.to_dict()))) == judged
    facts = judged.recording
    for text in (render_html(page), render_markdown(page)):
        assert "2026-11-16 21:04 UTC" in text
        for digest in (facts.agreement_digest, facts.table_digest, facts.file_digest):
            assert digest in text
        for name in ("Decision", "Name", "Date", "Signature"):
            assert name in text
    assert facts.session in shown(session_blocks(judged))


def test_a_recording_of_another_session_is_not_judged(folder, session, tmp_path):
    other = recorded(tmp_path, mechanism="none")
    with refused(TranscriptError, names=session.recording.session[:12]):
        audit_recording(session, other / "bob.toml", canary=False)
    (other / "bob.model.json").unlink()
    audit = audit_recording(session, other / "bob.toml", canary=False)
    assert audit.judgement is not None
    assert not audit.judgement.same_session


def test_labels_of_other_rows_are_refused(folder, judged):
    file = GuessesFile.load(folder / "guesses.json")
    truth = OtherSide.read(folder / "bob.toml", file.recording)
    other = replace(file, recording=replace(file.recording, ids_digest="another"))
    with refused(RowOrderError):
        audit_guesses(other, truth)


@pytest.mark.parametrize(
    "damage",
    [
        lambda values: values.update(version=2),
        lambda values: values["attacks"][0].update(scores="AAAA"),
        lambda values: values["attacks"][0].update(signal="not base64!"),
        lambda values: values["recording"].update(rows=7),
        lambda values: values.update(attacks=None),
        lambda values: values.pop("messages"),
    ],
    ids=["version", "length", "base64", "rows", "list", "part"],
)
def test_guesses_that_do_not_fit_are_refused(folder, judged, tmp_path, damage):
    values = json.loads((folder / "guesses.json").read_text(encoding="utf-8"))
    values.pop("digest")
    damage(values)
    values["digest"] = module_of(GuessesFile)._digest(values)
    path = tmp_path / "guesses.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(FileError):
        GuessesFile.load(path)
