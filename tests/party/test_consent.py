"""Alice's side begins a training that opens scores only with her line, whoever trains and how."""

from __future__ import annotations

from typing import Any

from taciturn.errors import ConfigError, PeerStopped
from taciturn.settings.agreement import ACCEPTED_EXPOSURE
from tests.party.sides import Company
from tests.party.studies import run_study, write_study

LINE = "accept-column-exposure"
WITHOUT: dict[str, Any] = {LINE: None}


def require_refused(alice: Any, bob: Any) -> None:
    assert isinstance(alice, ConfigError)
    assert alice.setting == "accept_column_exposure"
    # Bob learns nothing of the kind: not her line, not her file, no figure.
    assert isinstance(bob, PeerStopped)
    assert bob.code == 0
    assert LINE not in str(bob)
    assert ACCEPTED_EXPOSURE not in str(bob)


def test_a_study_needs_it_too(tmp_path):
    write_study(tmp_path, rows=60, privacy={"alice": WITHOUT})
    ends = run_study(tmp_path)
    require_refused(ends.alice, ends.bob)
    assert not (tmp_path / "alice-state" / "journal").exists()


def test_each_of_several_alices_has_her_own_line(tmp_path):
    group_shape = Company(tmp_path, sections={"link": {"connect-seconds": 5.0}})
    group_shape.write_tables(rows=60)
    group_shape.write("alice-2", privacy=WITHOUT)
    ends = group_shape.run()
    require_refused(ends["alice-2"], ends["bob"])
    # The other Alice has said yes, and opens nothing all the same.
    assert isinstance(ends["alice-1"], PeerStopped)
    assert not group_shape.file("alice-1", "consent.sqlite").exists()
