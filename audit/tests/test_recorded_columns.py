"""Bob's own recording of a real session: column attacks from his seat, judged where Alice is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import taciturn
from taciturn.engine.callbacks import Callbacks
from taciturn.engine.transcript import Transcript
from taciturn.errors import FileError, TranscriptError
from taciturn.protocol.bob.observations import BatchScored, BobObservation, DirectionScored
from taciturn.protocol.codec import encode
from taciturn.protocol.messages import KeyOffer, PublicBytes
from taciturn.report.html import render as render_html
from taciturn.results.folder import from_record
from taciturn_audit.columns import explained
from taciturn_audit.recording import RecordedSession
from taciturn_audit.report.session import session_blocks, session_page
from taciturn_audit.results.session import SessionAudit
from taciturn_audit.verdict import Status, conclude_columns_of
from taciturn_audit.views.bob_view import BobView
from tests.expected import refused
from tests.party.sides import (
    MECHANISMS,
    NEWTON,
    pulled_at,
    run_both,
    write_config,
    write_tables,
)
from tests.report.test_terminal import shown

KINDS: dict[str, dict[str, Any]] = {
    "none": {**MECHANISMS["none"], **NEWTON, "passes": 8},
    "sealed": MECHANISMS["sealed"],
    "label-rr": MECHANISMS["label-rr"],
    "fresh keys": {**MECHANISMS["sealed"], "fresh-keys": True, "passes": 2},
}


def record(folder: Path, watch: dict[str, Callbacks] | None = None) -> Any:
    act = lambda side: side.run(record=folder / f"{side.config.role}.transcript")  # noqa: E731
    return run_both(folder, act=act, watch=watch)


def prepared(folder: Path, **agreement: Any) -> Path:
    write_tables(folder)
    for role in ("alice", "bob"):
        write_config(folder, role, agreement=agreement)
    return folder


def noting(seen: list[BobObservation]) -> dict[str, Callbacks]:
    """What Bob sees while it happens."""

    def note(event: object) -> None:
        if isinstance(event, BobObservation):
            seen.append(event)

    return {"bob": Callbacks(observe=note)}


def view_of(folder: Path) -> BobView:
    view = RecordedSession.read(folder / "bob.transcript", folder / "bob.toml").view
    assert isinstance(view, BobView)
    return view


def audited(folder: Path, **options: Any) -> SessionAudit:
    return taciturn.audit_session(folder / "bob.transcript", folder / "bob.toml", **options)


def values(event: BobObservation) -> list[bytes]:
    assert isinstance(event, BatchScored | DirectionScored)
    his = event.step if isinstance(event, BatchScored) else event.direction
    return [event.scores.tobytes(), his.tobytes()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = prepared(tmp_path_factory.mktemp("session"), **KINDS["none"])
    assert record(folder).records
    return folder


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", [name for name in KINDS if name != "none"])
def test_a_recording_shows_what_bob_saw_in_the_session(tmp_path, name):
    prepared(tmp_path, **KINDS[name])
    live: list[BobObservation] = []
    assert record(tmp_path, noting(live)).records
    assert live
    view = view_of(tmp_path)
    assert [values(event) for event in view.observations] == [values(event) for event in live]
    # Sealed weights are no model of Bob's: its training rows are not predicted.
    assert (view.predictions is None) is ("label" not in name)


def test_a_recording_that_goes_on_after_a_stop_holds_his_keys(tmp_path):
    prepared(tmp_path, **{**KINDS["sealed"], "passes": 4})
    record(tmp_path, pulled_at("bob", 5))
    live: list[BobObservation] = []
    assert record(tmp_path, noting(live)).records
    # One for the training, one for the held-out rows.
    assert len(Transcript.load(tmp_path / "bob.transcript").persisted) == 2
    assert not Transcript.load(tmp_path / "alice.transcript").persisted
    seen = view_of(tmp_path).observations
    assert values(seen[-1]) == values(live[-1])
    assert [event.iteration for event in seen] == list(range(4))


def test_without_alices_table_estimates_are_made_and_not_judged(folder):
    audit = audited(folder)
    assert audit.seat == "bob"
    assert audit.bob_seat is None
    assert audit.estimates is not None
    gram = next(one for one in audit.estimates if one.name == "gram")
    assert gram.columns == 6
    assert gram.explains == pytest.approx(1.0, abs=1e-6)
    assert {one.name for one in audit.skipped} == {"anchored", "prediction"}
    verdict = conclude_columns_of(audit)
    assert verdict.status is Status.UNJUDGED
    assert "6" in verdict.sentence
    assert shown(session_blocks(audit))


def test_where_alices_table_is_here_it_judges(folder):
    audit = audited(folder, truth=folder / "alice.toml", known_rows=8)
    seat = audit.bob_seat
    assert seat is not None
    best = {one.name: one.recovered for one in seat.findings.attacks}
    assert best["anchored"] > 0.95
    assert best["prediction"] < 0.6
    assert seat.canary is not None
    assert seat.canary.leaks
    assert audit.judgement is not None
    assert audit.judgement.same_session
    assert conclude_columns_of(audit).status is Status.LEAK
    page = render_html(session_page(replace(audit, audited="2026-11-16T21:04:05+00:00")))
    for named in ("anchored", audit.judgement.table_digest):
        assert named in page
    assert from_record(json.loads(json.dumps(audit.to_dict()))) == audit


# --- what does not fit -------------------------------------------------------------------------


def test_a_recording_without_his_keys_is_refused(folder):
    tables = view_of(folder)
    header = Transcript.load(folder / "bob.transcript").header
    offered = Transcript(header, (("bob", encode(KeyOffer(PublicBytes(b"public")))),))
    with refused(TranscriptError):
        BobView.from_session(offered, tables.features, tables.labels)


def test_lost_flipped_labels_are_missed(tmp_path):
    prepared(tmp_path, **KINDS["label-rr"])
    assert record(tmp_path).records
    for store in tmp_path.rglob("bob.consent.sqlite*"):
        store.unlink()
    with refused(FileError, names=92):
        audited(tmp_path)
    assert not list(tmp_path.rglob("bob.consent.sqlite"))


def test_noise_explains_nothing_of_the_scores(folder):
    view = view_of(folder)
    alice = RecordedSession.read(folder / "alice.transcript", folder / "alice.toml")
    hers = alice.tables.train.values
    order = np.roll(np.arange(len(hers)), 17)
    assert explained(view, hers) > 0.999
    assert explained(view, hers[order]) < 0.2
