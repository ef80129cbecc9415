"""``taciturn runs`` as a person or a script meets it."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from risk.tests.runs.folders import RESULTS, place_all

from taciturn.__main__ import run
from taciturn.errors import ConfigError, DataError
from taciturn.results.folder import from_record
from tests.repository.test_schema import problems


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return place_all(tmp_path_factory.mktemp("all") / "runs")


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    return folder.parent


def printed(line: str, capsys) -> str:
    assert run(["runs", *shlex.split(line)]) == 0, capsys.readouterr().err
    out, err = capsys.readouterr()
    assert err == ""
    return str(out)


def test_the_list_fits_a_hundred_columns_and_names_every_run(here, capsys):
    text = printed("list", capsys)
    assert max(map(len, text.splitlines())) <= 100
    for name in RESULTS:
        assert re.search(rf"^  [A-Z]  {name}\b", text, flags=re.MULTILINE), name
    assert "add:5" in text
    assert "+37.6" in text


def test_json_is_one_object_of_the_schema(here, capsys):
    record = json.loads(printed("list --json", capsys))
    assert problems(record, "runs-list") == []
    assert from_record(record).to_dict() == record


@pytest.mark.parametrize(
    ("line", "kind", "named"),
    [
        ("list nowhere", DataError, "nowhere"),
        ("export nobody --mlflow http://127.0.0.1:5000", DataError, "nobody"),
        ("list --sort acu", ConfigError, "auc"),
    ],
)
def test_wrong_uses_are_refused_by_name(line, kind, named, here, capsys):
    assert run(["runs", *shlex.split(line)]) == kind.exit_code
    assert named in capsys.readouterr().err
