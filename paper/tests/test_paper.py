"""The paper's tables and figures: made, kept, judged and written."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import taciturn
from taciturn.__main__ import run
from taciturn.errors import OutputError
from taciturn.report.blocks import Block
from taciturn.report.html import render as render_html
from taciturn.report.markdown import render as render_markdown
from taciturn.report.terminal import render as render_terminal
from taciturn.setting_syntax import COMMAND_LINE
from taciturn_paper import curves, mult, paper, table3
from taciturn_paper.report import tables
from taciturn_paper.report.document import reproduction_page
from taciturn_paper.statements import run_all, statements
from taciturn_paper.tasks import Request, ResultCache, Task, results
from taciturn_paper.utility import Cell, Rows, judge, search
from tests.expected import refused

BREAST = ["breast-cancer"]


@pytest.fixture(scope="module")
def array_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shelf")


# Everything on one dataset takes a quarter of a minute; single tables have tests of their own.
REPRODUCES = pytest.mark.slow


@pytest.fixture(scope="module")
def record(array_store: Path) -> dict[str, Any]:
    """Everything on one dataset, with two iterations of the quicker trainings on the clock."""
    quicker = [contender for contender in table3.CONTENDERS if contender.scheme != "paillier"]
    few = tuple(replace(contender, iterations=2) for contender in quicker)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table3, "CONTENDERS", few)
        patch.setattr(table3, "QUICK_TURNS", 2)
        # Starting processes takes longer than the tasks; another test has several.
        patch.setattr("taciturn_paper.tasks.os.cpu_count", lambda: 1)
        return run_all(Request(quick=True, seeds=2, datasets=BREAST, folder=array_store))


def shown(blocks: list[Block]) -> str:
    stream = io.StringIO()
    Console(file=stream, width=100).print(render_terminal(blocks))
    return stream.getvalue()


@REPRODUCES
def test_table_two_has_every_cell_with_the_papers_beside_it(record):
    rows = record["table2"]["rows"]
    keys = [(row["mechanism"], row["variant"], row["epsilon"]) for row in rows]
    assert len(set(keys)) == len(keys) == 1 + 4 + 3 * 4
    baseline = rows[0]
    assert (baseline["paper_accuracy"], baseline["paper_auc"]) == (0.9737, 0.9987)
    assert baseline["accuracy"] > 0.9
    for row in rows:
        assert row["accuracy_low"] <= row["accuracy"] <= row["accuracy_high"]
        assert row["accuracy_run_low"] <= row["accuracy_low"]
        assert len(row["runs"]) == 2
        assert (row["candidates"] == 9) is (row["mechanism"] == "mult")
    good = {key: row["auc"] for key, row in zip(keys, rows, strict=True)}
    assert good["add", None, 10.0] > good["add", None, 0.01]


def test_bounds_are_chosen_on_rows_that_are_neither_trained_on_nor_judged_on():
    rows = Rows.load("breast-cancer", 2)
    assert len(rows.fit.labels) + len(rows.choose.labels) == len(rows.train.labels)
    parts = [
        {row.tobytes() for row in part.features} for part in (rows.fit, rows.choose, rows.test)
    ]
    assert not parts[0] & parts[1]
    assert not parts[0] & parts[2]
    assert not parts[1] & parts[2]


def test_candidates_that_the_sampler_cannot_resolve_are_left_out_and_counted(monkeypatch):
    monkeypatch.setattr("taciturn_paper.utility.QUICK_GRID", ((2.0**-6, 1.0), (1.0, 1000.0)))
    rows = Rows.load("breast-cancer", 2)
    choices = {
        (choice.cell.variant, choice.cell.epsilon): choice for choice in search(rows, quick=True)
    }
    assert choices["mean-one", 0.01].left_out == 1
    assert choices["mean-one", 0.01].candidates == 3
    assert choices["mean-one", 10.0].left_out == 0


def test_what_is_kept_is_not_made_again_and_what_is_damaged_is(tmp_path):
    made = []

    def make() -> dict[str, int]:
        made.append(1)
        return {"n": len(made)}

    array_store = ResultCache(tmp_path / "new" / "folder")
    asked = {"work": "w", "seed": 1}
    assert array_store.result(asked, make) == array_store.result(asked, make) == {"n": 1}
    assert array_store.result({**asked, "seed": 2}, make) == {"n": 2}
    for path in (tmp_path / "new" / "folder").iterdir():
        path.write_text(path.read_text()[:-9])
    assert array_store.result(asked, make) == {"n": 3}
    assert ResultCache(None).result(asked, make) == {"n": 4}
    # A result of something else is not taken.
    for path in (tmp_path / "new" / "folder").iterdir():
        path.write_text(json.dumps({"asked": {"a": 2}, "result": "two"}))
    assert array_store.result(asked, make) == {"n": 5}


def test_a_folder_that_cannot_be_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with refused(OutputError) as caught:
        ResultCache(tmp_path / "file" / "folder").result({}, lambda: 1)
    assert "--cache" in caught.value.diagnostics(COMMAND_LINE)


@pytest.mark.slow  # starts processes, each of which loads everything
def test_pieces_come_back_in_order_from_several_processes(tmp_path):
    tasks = [Task(curves.one_seed, "breast-cancer", seed, False) for seed in (7, 6)]
    seen: list[tuple[int, int]] = []
    computed = results(tasks, tmp_path, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (2, 2)
    assert computed == [task.result(tmp_path) for task in tasks]
    assert computed[0] != computed[1]


def test_a_figures_cells_are_the_papers_ranges():
    assert {cell.b1 for cell in curves.cells("fig-b1")} - {None} == set(paper.B1_RANGE)
    assert {(cell.b1, cell.b2) for cell in curves.cells("fig-eps")} == {(0.1, 10.0), (None, None)}
    assert Cell("mult", 10.0, "printed", 0.1, 1000.0) in curves.cells("fig-b2")


@REPRODUCES
def test_a_figure_says_the_shape_of_each_curve(record):
    figure = record["fig-b2"]
    assert {row["curve"] for row in figure["rows"]} == {
        "none",
        *(f"mult {variant}" for variant in ("printed", "one-sided", "mean-one")),
    }
    assert len(figure["shapes"]) == 3 * 2
    assert shown(tables.figure(figure))


def test_flat_curves_have_no_shape():
    flat: curves.Curve = {place: {"auc": [0.5, 0.6, 0.4]} for place in (1.0, 2.0, 3.0)}
    trend = curves.shape(flat, "auc")
    assert (trend["rises"], trend["falls"]) == (False, False)


@REPRODUCES
def test_the_leaks_are_what_the_statements_say(record):
    (row,) = record["leaks"]["rows"]
    assert row["none"]["attacks"][0]["accuracy"] == 1.0
    assert max(attack["accuracy"] for attack in row["hybrid"]["attacks"]) > 0.99
    assert row["hybrid_trained"]["max_weight_difference"] < 1e-4
    assert [run["ledger"]["label_epsilon_total"] for run in row["add"]] == [5.0, 50.0]


@REPRODUCES
def test_mult_is_attacked_and_its_auc_without_an_intercept_is_that_of_table_two(record):
    (row,) = record["mult"]["rows"]
    shares = {run["epsilon"]: run["attacks"][0]["accuracy"] for run in row["attacks"]}
    assert shares[1.0] > 0.8
    assert shares[10.0] > 0.98
    assert all(run["ledger"]["label_epsilon_total"] > 20 for run in row["attacks"])
    without = [
        trained["runs"]
        for trained in record["mult"]["intercept"]
        if trained["intercept"] == mult.WITHOUT
    ]
    printed = [cell for cell in record["table2"]["rows"] if cell["variant"] == "printed"]
    assert without == [[run["auc"] for run in cell["runs"]] for cell in printed]


def test_an_intercept_of_the_search_is_the_protocols_that_learns_from_what_is_released():
    rows = Rows.load("breast-cancer", 3).with_intercept()
    (score,) = judge(rows, [Cell("mult", 1.0, "printed", 0.1, 1.0)])
    joint = taciturn.train(
        dataset="breast-cancer",
        mechanism="mult",
        variant="printed",
        epsilon=1.0,
        b1=0.1,
        b2=1.0,
        intercept=True,
        bob_update="released",
        scheme="clear",
        seed=3,
    ).to_dict()
    assert (score.auc, score.accuracy) == (joint["test"]["auc"], joint["test"]["accuracy"])


@REPRODUCES
def test_the_claims_of_mult_are_refuted_where_epsilon_is_below_ln_10_and_no_true_one_is(
    record,
):
    """Failure 0.05 for each of 16 subjects with a finite truth; at this seed none exceeds it."""
    rows = record["claims"]["rows"]
    assert len(rows) == 16
    for row in rows:
        truth = float("inf") if row["residue"] == "inf" else row["residue"]
        assert row["residue_at_least"] <= truth
        assert row["label_at_least"] <= (float("inf") if row["label"] == "inf" else row["label"])
        finite = row["numerical"] != "inf"
        assert not finite or row["numerical"] <= truth * (1 + 1e-6)
        expected = row["mechanism"] == "mult" and (
            row["variant"] == "one-sided" or row["claimed"] < 2.3
        )
        # So many samples cannot show more than their ceiling.
        assert row["refuted"] is (expected and row["claimed"] < row["ceiling"])


@REPRODUCES
def test_every_statement_has_a_verdict_its_evidence_and_a_command(record):
    by_name = {statement["name"]: statement for statement in record["statements"]}
    assert len(by_name) == len(record["statements"]) == 20
    # exact: a name and a verdict in JSON
    assert by_name["hybrid protects the labels"]["verdict"] == "does not hold"
    # exact: a name and a verdict in JSON
    assert by_name["Epsilon protects the labels"]["verdict"] == "does not hold"
    # exact: a name and a verdict in JSON
    assert by_name["The proof of epsilon for mult"]["verdict"] == "does not hold"
    # exact: a name and a verdict in JSON
    assert by_name["mult learns with an intercept"]["verdict"] == "does not hold"
    assert by_name["The attack on the baseline succeeds"]["verdict"] == "holds"
    assert by_name["hybrid is lossless"]["verdict"] == "holds"
    text = by_name["The losses in the text match Table II"]["finding"]
    assert all(figure in text for figure in ("give-me-some-credit", "0.0003", "0.0007"))
    for statement in by_name.values():
        assert statement["command"].startswith("taciturn ")
        figures = statement["evidence"]
        assert "nan" not in json.dumps([statement["finding"], figures])
        if figures is not None:
            assert {len(row) for row in figures["rows"]} == {len(figures["headings"])}
    # Statements without their records are left out.
    judged = statements({"claims": record["claims"]})
    assert [statement["name"] for statement in judged] == ["The proof of epsilon for mult"]


@REPRODUCES
def test_table_three_sets_ratios_beside_the_papers(record):
    table = record["table3"]
    names = {(row["mechanism"], row["scheme"]) for row in table["rows"]}
    ours = {(name, "bfv") for name in ("none", "hybrid")}
    assert {*ours, ("add", None), ("mult", None)} <= names
    ratio = next(
        entry
        for entry in table["ratios"]
        if (entry["mechanism"], entry["scheme"]) == ("hybrid", "bfv")
    )
    assert ratio["paper_ratio"] == 1.73
    assert ratio["ratio"] > 0.5
    for row in table["rows"]:
        assert row["training_seconds"] >= row["ms_per_iteration"] / 1e3 * row["iterations"]


@REPRODUCES
def test_the_page_is_one_file_and_escapes_its_words(record):
    page = reproduction_page(record, "taciturn reproduce all --quick <script>")
    assert [figure.name for figure in page.figures] == ["fig-b1", "fig-b2", "fig-eps"]
    text = render_html(page)
    assert "&lt;script&gt;</code>" in text
    assert "http://" not in text.replace("http://www.w3.org/", "")
    assert "<script" not in text
    assert len(text) < 2_000_000
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    text = render_markdown(page, "reproduction")
    assert text.count("\n![") == len(page.figures)
    for line in text.splitlines():
        assert not line.startswith("|") or line.endswith("|")


@pytest.mark.slow  # draws the page anew: five seconds
def test_the_page_of_the_documents_is_that_of_its_data():
    docs = Path(__file__).resolve().parents[1] / "docs"
    parts = {path.stem: json.loads(path.read_text()) for path in docs.glob("reproduction/*.json")}
    whole = {**parts, "statements": parts["statements"]["statements"]}
    page = reproduction_page(whole, "taciturn reproduce all --report paper/docs")
    assert render_markdown(page, "reproduction") == (docs / "reproduction.md").read_text("utf-8")


@REPRODUCES
def test_the_command_writes_the_report(record, array_store, monkeypatch, capsys):
    monkeypatch.setattr("taciturn_paper.tasks.os.cpu_count", lambda: 1)
    arguments = ["reproduce", "table2", "--quick", "--seeds", "2", "--dataset", "breast-cancer"]
    assert run([*arguments, "--cache", str(array_store), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert rows == json.loads(json.dumps(record["table2"]["rows"]))


@REPRODUCES
def test_tables_fit_the_screen(record):
    for part in (
        tables.table2(record["table2"]),
        tables.everything(record),
        tables.figure(record["fig-eps"]),
        tables.table3(record["table3"]),
        tables.leaks(record["leaks"]),
        tables.mult(record["mult"]),
    ):
        assert max(map(len, shown(part).splitlines())) <= 100


@pytest.mark.slow
def test_all_of_it_quickly_on_every_dataset_that_is_here(tmp_path):
    written = ["--cache", str(tmp_path / "cache"), "--report", str(tmp_path)]
    assert run(["reproduce", "all", "--quick", *written]) == 0
    assert (tmp_path / "reproduction.html").stat().st_size < 2_000_000
    data = json.loads((tmp_path / "reproduction" / "table2.json").read_text())
    assert len(data["rows"]) == 17 * len(data["settings"])
