"""``taciturn runs`` as a person or a script meets it, and the page in a real browser."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from taciturn.__main__ import run
from taciturn.files import to_json
from taciturn.report import runs_page as pages
from taciturn.report.html import render
from taciturn.report.runs_page import runs_page
from taciturn.results.manifest import Manifest
from taciturn.results.runs import Runs
from taciturn.results.saved import of_record
from taciturn.results.serialise import read
from taciturn.runs.collection import chosen, collect
from tests.report.samples import TRAINING, hostile
from tests.report.test_browser import Seen
from tests.results.test_schema import problems
from tests.runs.folders import RESULTS, place, place_all
from tests.watch.browsers import chromium


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


def words(text: str) -> str:
    return " ".join(text.split())


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


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("list --json", "runs-list"),
        ("show train --json", "runs-show"),
        ("compare train audit --json", "runs-compare"),
    ],
)
def test_json_is_one_object_of_the_schema(line, kind, here, capsys):
    record = json.loads(printed(line, capsys))
    assert problems(record, kind) == []
    assert of_record(record).to_dict() == record


def test_show_prints_what_made_it_and_what_the_command_printed(here, capsys):
    text = printed("show audit", capsys)
    assert "taciturn train" in text
    assert "Alice can tell every label" in text
    assert max(map(len, text.splitlines())) <= 100
    record = json.loads(printed("show audit --json", capsys))
    assert record["result"] == json.loads(to_json(RESULTS["audit"].to_dict()))
    assert read(Manifest, record["manifest"]).kind == "audit"


@pytest.mark.parametrize("name", RESULTS)
def test_every_kind_of_run_is_shown(name, here, capsys):
    text = printed(f"show {name}", capsys)
    assert max(map(len, text.splitlines())) <= 100
    private = "its figures may depend on labels" in words(text)
    assert private == (name in ("alice", "bob", "dry-run"))


def test_a_comparison_says_what_differs_and_whether_it_is_fair(here, capsys):
    text = printed("compare train quiet bob", capsys)
    assert max(map(len, text.splitlines())) <= 100
    said = words(text)
    assert "Not a fair comparison: Some are simulations" in said
    assert re.search(r"│ mechanism +│ none +│ add +│ add", text)
    assert "★ 99.00 %" in said
    assert "(−7.17)" in said  # 91.83 % after 99.00 %
    # What is the same in all is not shown.
    assert "permute-labels" not in text


def test_more_runs_than_fit_stand_in_several_tables(here, capsys):
    text = printed("compare", capsys)
    assert max(map(len, text.splitlines())) <= 100
    assert len(re.findall("How good the model is", text)) == 3


def test_a_report_is_one_file(here, capsys, tmp_path):
    page = tmp_path / "page.html"
    listed = json.loads(printed(f"report --kind audit --html {page} --json", capsys))
    assert len(listed["listed"]) == 2
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 5
    assert "http" not in re.sub(r"http-equiv|http://www.w3.org/[^\"]*", "", text)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("list nowhere", 20, "there is no folder of runs here"),
        ("show nobody", 20, "there is no run nobody"),
        ("compare train", 10, "a comparison needs two runs"),
        ("list --sort acu", 10, "did you mean auc?"),
        ("report --mechanism mutual --html x.html", 10, "there is no run to report on"),
        ("report --html no/where.html", 74, "cannot be written"),
    ],
)
def test_wrong_uses_say_the_way_out(line, code, said, here, capsys):
    assert run(["runs", *shlex.split(line)]) == code
    assert said in capsys.readouterr().err


# --- the page ---------------------------------------------------------------------------------


def test_one_run_and_runs_without_a_model_have_a_page(folder):
    assert "One run" in render(runs_page(chosen(["train"], folder)))
    assert "<svg" not in render(runs_page(chosen(["alice", "dry-run"], folder)))


@pytest.mark.slow  # a second or two, and others show the same on less
def test_the_page_asks_for_nothing_by_day_and_by_night(folder, tmp_path):
    evil = place(tmp_path, "evil", hostile())
    page = tmp_path / "page.html"
    parts = chosen([str(folder), str(evil)], folder)
    page.write_text(render(runs_page(parts)), encoding="utf-8")
    with chromium() as browser:
        colours: set[str] = set()
        for scheme in ("light", "dark"):
            seen = Seen(browser, page, color_scheme=scheme)
            assert [url for url in seen.requests if url != "data:,"] == [page.as_uri()]
            assert seen.complaints == []
            body = seen.page
            assert body.locator("script, img, iframe").count() == 0
            assert body.title() == "12 runs – Taciturn"
            # Nothing is wider than its place: pictures shrink, tables scroll.
            wide = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length"
            assert body.eval_on_selector_all("main > section, .pair > div", wide) == 0
            assert body.locator("#worth svg").count() == 2
            assert body.locator("#bars svg").count() == 2
            colours.add(body.eval_on_selector("body", "one => getComputedStyle(one).color"))
            colours.add(
                body.eval_on_selector("#worth svg text", "one => getComputedStyle(one).fill")
            )
            body.close()
    # Words of the page and of its pictures change with the light.
    assert len(colours) == 4


def test_a_page_of_many_runs_leaves_the_comparison_out(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "MOST", 2)
    for number in range(3):
        place(tmp_path, f"run-{number:02d}", Runs((TRAINING,)))
    text = render(runs_page(collect(tmp_path)))
    assert "Settings that differ" not in text
    assert "too many to set side by side" in text


@pytest.mark.slow  # draws twice what others draw
def test_the_same_runs_give_the_same_page(folder):
    pages = {render(runs_page(chosen(["train", "audit"], folder))) for _ in range(2)}
    assert len(pages) == 1
