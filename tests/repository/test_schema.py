"""The published schema: made from the types, and kept by what the commands really print."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from audit.tests.report.samples import AUDITS
from jsonschema import Draft202012Validator

from taciturn.__main__ import run
from taciturn.results.folder import from_record, json_schema
from tests.seldom import seldom

FILE = Path(__file__).resolve().parents[2] / "docs" / "results.schema.json"
REMAKE = "python -c 'from tests.repository.test_schema import write; write()'"
SCHEMA = json_schema()
SMALL = "--dataset breast-cancer --scheme clear --seed 1 --epochs 1"


def text() -> str:
    return json.dumps(SCHEMA, indent=1, ensure_ascii=False) + "\n"


def write() -> None:
    FILE.write_text(text(), encoding="utf-8")


def test_the_published_schema_is_that_of_the_types():
    assert FILE.read_text(encoding="utf-8") == text(), f"remake it: {REMAKE}"


def test_it_is_a_schema():
    Draft202012Validator.check_schema(SCHEMA)


def problems(record: Any, name: str) -> list[str]:
    """What keeps a record from being one of that name, and of no other."""
    only = {**SCHEMA, "oneOf": [{"$ref": f"#/$defs/{name}"}]}
    errors = [error.message[:200] for error in Draft202012Validator(only).iter_errors(record)]
    return errors or [
        error.message[:200] for error in Draft202012Validator(SCHEMA).iter_errors(record)
    ]


COMMANDS = {
    "train": f"train {SMALL} --mechanism none",
    "train-seeds": f"train {SMALL} --mechanism hybrid --seeds 2",
    "audit": f"audit {SMALL} --mechanism add --epsilon 1",
    "audit-seeds": f"audit {SMALL} --mechanism hybrid --seeds 2 --seat alice",
    "check": f"check {SMALL} --mechanism hybrid",
    "doctor": "doctor",
    "woe": "woe --dataset breast-cancer --scheme clear --seed 1 --alice-columns 3",
    "audit-woe": "audit --woe --dataset breast-cancer --scheme clear --seed 1 --alice-columns 3",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name", seldom(COMMANDS, always=["train", "audit", "check", "doctor", "woe", "audit-woe"])
)
def test_what_a_command_prints_keeps_to_it_and_reads_back(name, capsys):
    assert run(shlex.split(f"{COMMANDS[name]} --json")) == 0
    record = json.loads(capsys.readouterr().out)
    assert problems(record, name) == []
    result = from_record(record)
    assert result.to_dict() == record
    assert list(result.to_dict()) == list(record)


@pytest.mark.parametrize("name", ["train", "train-seeds", "check"])
@pytest.mark.sampled(1)
def test_what_is_printed_of_several_alices_keeps_to_it_too(name, capsys):
    seeds = "--seeds 2" if name == "train-seeds" else ""
    command = f"{name.partition('-')[0]} {SMALL} {seeds} --mechanism none --parties 2 --json"
    assert run(shlex.split(command)) == 0
    record = json.loads(capsys.readouterr().out)
    assert problems(record, name) == []
    assert from_record(record).to_dict() == record
    parties = record["facts" if name == "check" else "parties"]
    assert "parties" in parties if name == "check" else len(parties) == 2


@pytest.mark.parametrize("name", AUDITS)
def test_every_sample_keeps_to_it(name):
    kind = "audit-seeds" if name == "several" else "audit"
    assert problems(AUDITS[name]().to_dict(), kind) == []


def test_what_is_no_result_does_not():
    record = AUDITS["leaking"]().to_dict()
    assert problems({**record, "new": 1}, "audit")
    assert problems({**record, "epochs": "ten"}, "audit")
    assert problems({**record, "attacks": [{"name": "x"}]}, "audit")
    record.pop("ledger")
    assert problems(record, "audit")
