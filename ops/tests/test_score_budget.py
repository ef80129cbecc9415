"""Alice counts the scores that a partner is given, over sessions, and refuses beyond her limit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from taciturn.__main__ import run
from taciturn.results.folder import from_record
from tests.party.consent.test_score_budget import furnish
from tests.party.sides import (
    MECHANISMS,
    run_both,
)
from tests.repository.test_schema import problems


@pytest.mark.parametrize(("mechanism", "exposes"), [("sealed", True), ("mutual", False)])
def test_ledger_and_doctor_list_past_sessions_at_alice(tmp_path, capsys, mechanism, exposes):
    furnish(tmp_path, None, **{**MECHANISMS[mechanism], "passes": 1})
    alice = str(tmp_path / "alice.toml")
    assert run(["ledger", alice, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exposed_sessions"] == []
    run_both(tmp_path).records  # noqa: B018 - raises where a side failed
    assert run(["ledger", alice, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert problems(record, "ledger-alice") == []
    assert from_record(record).to_dict() == record
    sessions = [(one["partner"], one["mechanism"]) for one in record["exposed_sessions"]]
    assert sessions == ([("bob", mechanism)] if exposes else [])
    assert [one["scores_per_row"] for one in record["exposed_sessions"]] == [1] * exposes
    models = [Path(one["file"]).name for one in record["exposed_models"]]
    assert models == ["alice.model.json"] * exposes
    assert [one["scores_per_row"] for one in record["exposed_models"]] == [1] * exposes
    # Its certificates are not there, which is another problem.
    assert run(["doctor", alice, "--json"]) == 80
    seen = json.loads(capsys.readouterr().out)
    assert problems(seen, "doctor") == []
    past = {name: record[name] for name in ("exposed_sessions", "exposed_models")}
    assert seen.get("exposed") == (past if exposes else None)
    assert run(["ledger", alice]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100
