"""Alice's side begins a training that opens scores only with her line, whoever trains and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taciturn.deploy import ACCEPTED_EXPOSURE
from taciturn.deploy.transport import make_certificates
from taciturn.errors import AgreementError, ConfigError, PeerStopped
from tests.deploy.several import Company
from tests.deploy.sides import MECHANISMS, write_config, write_tables
from tests.deploy.studies import run_study, write_study
from tests.deploy.test_score_book import processes
from tests.test_two_machines import free_port

LINE = "accept-column-exposure"
WITHOUT: dict[str, Any] = {LINE: None}


def furnish(folder: Path, mechanism: str, **privacy: Any) -> None:
    """Both sides' files as two processes use them; Bob accepts whatever it costs."""
    write_tables(folder, rows=60)
    make_certificates(folder / "certs", ["alice", "bob"])
    address = f"127.0.0.1:{free_port()}"
    agreed = MECHANISMS[mechanism]
    write_config(folder, "bob", agreement=agreed, link={"listen": address})
    write_config(folder, "alice", agreement=agreed, link={"connect": address}, privacy=privacy)


def test_two_processes_without_the_line_are_refused_at_alice_by_name(tmp_path):
    furnish(tmp_path, "sealed", **WITHOUT)
    ended = processes(tmp_path)
    code, said = ended["alice"]
    assert code == ConfigError.exit_code
    assert f'{LINE} = "{ACCEPTED_EXPOSURE}"' in " ".join(said.split())
    assert "mutual" in said
    # Bob learns the kind of it: not her line, not her file, no figure.
    code, said = ended["bob"]
    assert code == PeerStopped.exit_code
    assert LINE not in said
    assert ACCEPTED_EXPOSURE not in said
    assert not (tmp_path / "alice-state" / "journal").exists()
    assert not list(tmp_path.glob("*.model.json"))


@pytest.mark.parametrize(
    ("mechanism", "privacy"), [("sealed", {LINE: ACCEPTED_EXPOSURE}), ("mutual", WITHOUT)]
)
def test_two_processes_train_with_it_or_where_no_score_is_opened(tmp_path, mechanism, privacy):
    furnish(tmp_path, mechanism, **privacy)
    ended = processes(tmp_path)
    assert [code for code, _ in ended.values()] == [0, 0], ended
    assert len(list(tmp_path.glob("*.model.json"))) == 2


def test_a_study_needs_it_too(tmp_path):
    write_study(tmp_path, rows=60, privacy={"alice": WITHOUT})
    ends = run_study(tmp_path)
    assert isinstance(ends.alice, ConfigError)
    assert ends.alice.setting == "accept_column_exposure"
    assert isinstance(ends.bob, PeerStopped)
    assert ends.bob.code == AgreementError.exit_code
    assert not (tmp_path / "alice-state" / "journal").exists()


def test_each_of_several_alices_has_her_own_line(tmp_path):
    company = Company(tmp_path, sections={"link": {"connect-seconds": 5.0}})
    company.write_tables(rows=60)
    company.write("alice-2", privacy=WITHOUT)
    ends = company.run()
    assert isinstance(ends["alice-2"], ConfigError)
    assert ends["alice-2"].setting == "accept_column_exposure"
    assert isinstance(ends["bob"], PeerStopped)
    assert ends["bob"].code == AgreementError.exit_code
    # The other Alice has said yes, and opens nothing all the same.
    assert isinstance(ends["alice-1"], PeerStopped)
    assert not (company.place("alice-1") / "alice.scores.json").exists()
