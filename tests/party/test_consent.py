"""Alice's side begins a training that opens scores only with her line, whoever trains and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taciturn.errors import AgreementError, ConfigError, PeerStopped
from taciturn.party import ACCEPTED_EXPOSURE
from tests.party.hosts import OneHost, Side, furnish
from tests.party.sides import NEWTON, Company, run_both, write_config, write_tables
from tests.party.studies import run_study, write_study
from tests.system import free_port
from tests.waiting import wait_until

LINE = "accept-column-exposure"
WITHOUT: dict[str, Any] = {LINE: None}
SEALED: dict[str, Any] = {**NEWTON, "mechanism": "sealed"}


def require_refused(alice: Any, bob: Any) -> None:
    assert isinstance(alice, ConfigError)
    assert alice.setting == "accept_column_exposure"
    # Bob learns the kind of it: not her line, not her file, no figure.
    assert isinstance(bob, PeerStopped)
    assert bob.code == AgreementError.exit_code
    assert LINE not in str(bob)
    assert ACCEPTED_EXPOSURE not in str(bob)


def test_a_training_needs_it(tmp_path):
    write_tables(tmp_path, rows=60)
    write_config(tmp_path, "bob", agreement=SEALED)
    write_config(tmp_path, "alice", agreement=SEALED, privacy=WITHOUT)
    ends = run_both(tmp_path)
    require_refused(ends.alice, ends.bob)
    assert not (tmp_path / "alice-state" / "journal").exists()
    assert not list(tmp_path.glob("*.model.json"))


def test_where_no_score_is_opened_it_is_not_needed(tmp_path):
    agreed = {**SEALED, "mechanism": "mutual", "passes": 1}
    write_tables(tmp_path, rows=60)
    write_config(tmp_path, "bob", agreement=agreed)
    write_config(tmp_path, "alice", agreement=agreed, privacy=WITHOUT)
    run_both(tmp_path).records  # noqa: B018 - raises where a side failed


def test_a_study_needs_it_too(tmp_path):
    write_study(tmp_path, rows=60, privacy={"alice": WITHOUT})
    ends = run_study(tmp_path)
    require_refused(ends.alice, ends.bob)
    assert not (tmp_path / "alice-state" / "journal").exists()


def test_each_of_several_alices_has_her_own_line(tmp_path):
    company = Company(tmp_path, sections={"link": {"connect-seconds": 5.0}})
    company.write_tables(rows=60)
    company.write("alice-2", privacy=WITHOUT)
    ends = company.run()
    require_refused(ends["alice-2"], ends["bob"])
    # The other Alice has said yes, and opens nothing all the same.
    assert isinstance(ends["alice-1"], PeerStopped)
    assert not company.file("alice-1", "consent.sqlite").exists()


@pytest.mark.slow  # two processes; in threads it is tried always
def test_her_process_names_the_line_that_she_may_write(tmp_path: Path) -> None:
    furnish(tmp_path, address=f"127.0.0.1:{free_port()}", **SEALED)
    path = tmp_path / "alice.toml"
    lines = [line for line in path.read_text().splitlines() if not line.startswith(LINE)]
    path.write_text("\n".join(lines) + "\n")
    sides = {role: Side(OneHost({}), tmp_path, role) for role in ("alice", "bob")}
    for side in sides.values():
        side.start()
    wait_until(lambda: all(side.code is not None for side in sides.values()))
    assert sides["alice"].code == ConfigError.exit_code
    assert f'{LINE} = "{ACCEPTED_EXPOSURE}"' in " ".join(sides["alice"].said().split())
    assert sides["bob"].code == PeerStopped.exit_code
    assert LINE not in sides["bob"].said()
