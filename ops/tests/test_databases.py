"""PostgreSQL at Alice, SQLite at Bob: from alignment to serving, and no table is ever a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ops.tests.serve.services import furnish, started

from taciturn.model.share import ModelShare
from taciturn.party.config import PartyConfig
from taciturn.party.tables import load_tables
from tests.party.sides import write_config, write_tables
from tests.postgres import postgres
from tests.test_databases import SECRET, both, fill_postgres, fill_sqlite, frames


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder for the tables as files, which no party sees."""
    folder = tmp_path / "files"
    folder.mkdir()
    write_tables(folder, rows=150)
    return folder


def test_no_file_stands_between_a_database_and_a_score(written, tmp_path, monkeypatch):
    folder = tmp_path / "parties"
    folder.mkdir()
    select = "select * from customers"
    kept = folder / "bob.address"
    with postgres() as server:
        fill_sqlite(folder / "bob.db", frames(written, "bob"))
        fill_postgres(server.address, frames(written, "alice"))
        reader = server.address.replace("postgres@", f"reader:{SECRET}@")
        monkeypatch.setenv("ALICE_DATABASE", reader)
        kept.write_text("sqlite:bob.db\n", encoding="utf-8")
        kept.chmod(0o600)
        connections = {"alice": "env:ALICE_DATABASE", "bob": "file:bob.address"}
        for role, connection in connections.items():
            data = {"file": None, "query": select, "connection": connection}
            write_config(folder, role, data=data)
        of_all = {"query": "select * from applicants"}
        service = furnish(folder, alice=of_all, bob=of_all)

        assert both(folder, "align", "--json")["common"] == 118
        record = both(folder, "party", "--json")
        chosen = ("--rows", "select * from applicants where id < 'p0140'")
        predicted = both(folder, "predict", "--json", *chosen)["scores"]
        with started(service) as running:
            served = running.score("p0125").json
            assert running.score("p0122").code == "unknown-id"
    assert len(predicted) == 19
    assert served["score"] == next(row["score"] for row in predicted if row["id"] == "p0125")
    # As the same rows train from files.
    for role in connections:
        frames(written, role)["customers"].write_csv(folder / f"{role}.csv")
        data = {"aligned": f"{role}.aligned.csv"}
        config = PartyConfig.read(write_config(folder, role, data=data))
        model = ModelShare.load(folder / f"{role}.model.json")
        assert load_tables(config).train.digest() == model.data_digest
    texts = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in text for text in texts)
    assert SECRET not in json.dumps(record)
