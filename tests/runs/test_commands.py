"""``taciturn runs`` as a person or a script meets it."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from taciturn.__main__ import run
from taciturn.results import of_record
from tests.results.test_schema import problems
from tests.runs.folders import RESULTS, place_all


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
    assert "compare, add:5" in text
    assert "▲ +37.6" in text
    assert "no attack" in text
    assert "~2 s" in text


def test_filters_and_sorting_are_options(here, capsys):
    text = printed("list --kind audit --sort auc", capsys)
    assert re.findall(r"^  ([A-Z])  (\w+)", text, flags=re.MULTILINE) == [
        ("A", "audit"),
        ("B", "quiet"),
    ]
    assert "No run in runs" in printed("list --mechanism mutual", capsys)


def test_json_is_one_object_of_the_schema(here, capsys):
    record = json.loads(printed("list --json", capsys))
    assert problems(record, "runs-list") == []
    assert of_record(record).to_dict() == record


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("list nowhere", 20, "there is no folder of runs here"),
        ("export nobody --mlflow http://127.0.0.1:5000", 20, "there is no run nobody"),
        ("list --sort acu", 10, "did you mean auc?"),
    ],
)
def test_wrong_uses_say_the_way_out(line, code, said, here, capsys):
    assert run(["runs", *shlex.split(line)]) == code
    assert said in capsys.readouterr().err
