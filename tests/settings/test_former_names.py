"""A name of an earlier version is refused wherever it stood, with what to use instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from taciturn.__main__ import USAGE, run
from taciturn.errors import ConfigError, DataError
from taciturn.numerics.threshold import Threshold
from taciturn.party.config import PartyConfig, section_settings
from taciturn.results.folder import load
from taciturn.results.reading import read
from taciturn.results.runs import Runs
from taciturn.setting_syntax import Hint
from taciturn.settings import removed
from taciturn.settings.agreement import Agreement
from taciturn.settings.removed import (
    FORMER_NAMES,
    FormerName,
    Kind,
    file_places,
    simulated_places,
)
from taciturn.settings.schema import Settings
from tests.expected import refused
from tests.party.sides import write_config
from tests.report.samples import TRAINING

# Made-up names, one of each kind: the project's own list may be empty.
SAMPLES = (
    FormerName(
        "below",
        "base-mechanism",
        (*simulated_places("agreement"), (Kind.RECORD, "")),
        "it names a mechanism",
    ),
    FormerName("seed-text", "split-seed", file_places("agreement"), "it is a seed"),
    FormerName("tell-names", "share-names", ((Kind.OPTION, "train"),), "it is a switch"),
    FormerName("retrain", None, ((Kind.COMMAND, ""),), "a party resumes", Hint("use {data}")),
    FormerName("merge", None, ((Kind.COMMAND, "model"),), "it is gone", Hint("use {data}")),
    FormerName("guess", None, simulated_places("data"), "it is gone", Hint("leave {guess} out")),
    FormerName("book", None, file_places("privacy"), "it is gone", Hint("leave {book} out")),
)
PLACES = [(entry, kind, within) for entry in SAMPLES for kind, within in entry.places]


@pytest.fixture(autouse=True)
def samples(monkeypatch):
    monkeypatch.setattr(removed, "FORMER_NAMES", SAMPLES)


def of_kind(wanted: Kind) -> Any:
    """Every old name of a kind with where it stood."""
    chosen = [(entry, within) for entry, kind, within in PLACES if kind is wanted]
    ids = [f"{within or 'any'} {entry.old}" for entry, within in chosen]
    return pytest.mark.parametrize(("entry", "within"), chosen, ids=ids)


def underscored(name: str) -> str:
    return name.replace("-", "_")


def spelled(entry: FormerName, spell: Callable[[str], str]) -> tuple[str, ...]:
    """The old name and the new one, if any."""
    return tuple(spell(name) for name in (entry.old, entry.new) if name is not None)


def test_no_name_is_old_twice_in_one_place_and_every_new_one_exists():
    listed = [(entry, kind, within) for entry in FORMER_NAMES for kind, within in entry.places]
    places = [(entry.old, kind, within) for entry, kind, within in listed]
    assert len(set(places)) == len(places)
    for entry, kind, within in (*PLACES, *listed):
        if kind is Kind.KEY and within not in ("", "study"):
            keys = section_settings(within)
            assert underscored(entry.old) not in keys
            assert entry.new is None or underscored(entry.new) in keys


def test_a_name_without_a_new_one_has_a_way_out():
    for entry in (*SAMPLES, *FORMER_NAMES):
        assert (entry.new is None) == (entry.instead is not None)


@of_kind(Kind.OPTION)
def test_an_old_option_is_wrong_usage(entry, within, capsys):
    assert run([*(within or "train").split(), f"--{entry.old}", "7"]) == USAGE
    said = " ".join(capsys.readouterr().err.split())
    assert f"--{entry.old}" in said
    assert "try:" in said
    if entry.new is not None:
        assert f"--{entry.new}" in said


@of_kind(Kind.COMMAND)
def test_an_old_command_is_wrong_usage(entry, within, capsys):
    assert run([*within.split(), entry.old, "7"]) == USAGE
    said = capsys.readouterr().err
    assert f"{within} {entry.old}" in said
    assert "try:" in said


@of_kind(Kind.KEY)
def test_an_old_key_of_a_file_is_refused(entry, within, tmp_path):
    if within:
        path = write_config(tmp_path, "alice", **{within: {entry.old: [7]}})
    else:
        path = tmp_path / "run.toml"
        path.write_text(f"{entry.old} = [7]\n")
    with refused(ConfigError, names=spelled(entry, str)) as raised:
        if within:
            PartyConfig.read(path)
        Settings.read_toml(path)
    assert raised.value.where == (f"{path}, [{within}]" if within else str(path))
    assert raised.value.hint


@of_kind(Kind.KEY)
def test_an_old_key_of_an_agreements_text_is_refused(entry, within):
    if within == "agreement":
        with refused(ConfigError, names=spelled(entry, underscored)) as raised:
            Agreement.parse(json.dumps({underscored(entry.old): 7}))
        assert raised.value.hint


@of_kind(Kind.RECORD)
def test_an_old_key_of_a_result_is_refused(entry, within):
    assert within == ""
    with refused(DataError, names=spelled(entry, underscored)):
        read(Threshold, {underscored(entry.old): 7})


def test_a_saved_result_with_an_old_key_is_refused(tmp_path):
    record = Runs((TRAINING,)).to_dict()
    record["below"] = record.pop("base_mechanism")
    path = tmp_path / "result.json"
    path.write_text(json.dumps(record))
    with refused(DataError, names=("below", "base_mechanism", path)):
        load(path)
