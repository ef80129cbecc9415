"""A recorded training of which Alice opened no score of held-out rows is replayed without them."""

from __future__ import annotations

from taciturn.engine.transcript import Transcript
from taciturn.party.config import PartyConfig
from taciturn.party.tables import load_tables
from taciturn_audit.views.alice_view import AliceView
from tests.party.consent.test_score_budget import HELD_OUT, furnish
from tests.party.sides import record, run_both


def test_a_training_without_scores_of_held_out_rows_is_replayed(tmp_path):
    furnish(tmp_path, 1, **HELD_OUT)
    run_both(tmp_path).records  # noqa: B018 - raises where a side failed
    alice, _ = run_both(tmp_path, act=record(tmp_path, fresh=True)).records
    assert "held_out_unscored" in alice
    tables = load_tables(PartyConfig.read(tmp_path / "alice.toml"))
    transcript = Transcript.load(tmp_path / "alice.transcript")
    # Without what she told Bob the replay would wait for his requests of these rows.
    view = AliceView.from_transcript(transcript, tables.train, tables.held_out)
    assert len(view.observations.weights) == 0
