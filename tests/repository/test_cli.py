"""The commands as a person or a script meets them."""

from __future__ import annotations

import json
import resource
import shlex
from functools import partial
from pathlib import Path

import pytest

import taciturn
from taciturn.__main__ import run
from taciturn.errors import ConfigError
from taciturn_audit.cli import demo
from taciturn_paper import encryption
from tests.modules import module_of
from tests.test_cli import QUICK, command, require_demo


def test_audit_prints_one_json_object_and_nothing_else(capfd):
    assert run(shlex.split(f"audit {QUICK} --json")) == 0
    out, err = capfd.readouterr()
    assert err == ""
    first, *_ = json.loads(out)["attacks"]
    assert first["name"] == "exact-solve"
    assert first["accuracy"] == 1.0


def test_files_to_begin_with_are_named_in_json_and_nothing_else(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split("init --folder trial --mechanism add --json")) == 0
    assert run(shlex.split("certs --out trial/certs --json")) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    written, made = (json.loads(part) for part in captured.out.replace("}\n{", "}\0{").split("\0"))
    assert written == {"files": ["trial/alice.toml", "trial/bob.toml"]}
    assert [party["name"] for party in made["parties"]] == ["alice", "bob"]
    for path in (*written["files"], made["authority"], *(p["key"] for p in made["parties"])):
        assert Path(path).is_file()


@pytest.mark.parametrize("mechanism", ["none", "add", "mult", "hybrid"])
def test_init_says_what_comes_next_and_what_protects_nothing(
    mechanism, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert run(["init", "--mechanism", mechanism]) == 0
    text = capsys.readouterr().out
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "--dry-run" in text
    # exact: the statement that safety rests on
    assert ("no protection" in text) == (mechanism in ("none", "hybrid"))


def test_demo_with_one_epoch(tmp_path, monkeypatch, capsys):
    """The same work on a fifth of the batches: of hybrid's hidden ones that is too little."""
    short = tuple(
        {**chosen, **({"epochs": 1} if "epochs" in chosen else {"passes": 2})}
        for chosen in module_of(demo).DEMO
    )
    monkeypatch.setattr(module_of(demo), "DEMO", short)
    monkeypatch.setattr("taciturn_audit.api.audit", partial(taciturn.audit, scheme="clear"))
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    require_demo(runs, "clear")
    assert max(attack["accuracy"] for attack in runs[0]["attacks"]) > 0.98
    assert max(control["accuracy"] for control in runs[2]["controls"]) < 1.0
    assert [path.name for path in tmp_path.iterdir()] == ["taciturn-demo.html"]


@pytest.mark.slow  # a minute: five epochs of four mechanisms, with a canary run for each
def test_demo_recovers_every_label_with_real_keys(tmp_path):
    done = command("demo --json", cwd=tmp_path)
    assert done.returncode == 0
    runs = json.loads(done.stdout)["runs"]
    require_demo(runs)
    for result in runs:
        accuracies = [attack["accuracy"] for attack in result["canary"]["attacks"]]
        assert (max(accuracies, default=0.0) > 0.9) == (result["mechanism"] in ("none", "hybrid"))
    columns = [attack["recovered"] for attack in runs[2]["bob_seat"]["attacks"]]
    assert max(columns) > 0.99


def test_bench_writes_its_plot_and_says_what_the_star_means(monkeypatch, tmp_path, capsys):
    row = encryption.Row("breast", 16, 30, "bfv", 128, 9.5, 12.0, 127.0, 100, 50, 0, 1)
    monkeypatch.setattr("taciturn_paper.encryption.run", lambda *given, **named: [row])
    plot = tmp_path / "bench.svg"
    assert run(["bench", "--quick", "--against", "phe", "--plot", str(plot)]) == 0
    assert "127x" in plot.read_text()
    assert "*" in capsys.readouterr().out


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "line",
    [
        f"audit {QUICK} --html",
        f"audit {QUICK} --markdown",
        "demo --html",
        "bench --against phe --quick --plot",
        "reproduce attacks --quick --plot",
    ],
)
def test_a_result_that_cannot_be_written_is_refused_before_any_work(monkeypatch, tmp_path, line):
    def work(*given: object, **named: object) -> None:
        raise AssertionError("work began")

    for name in (
        "taciturn_audit.api.audit",
        "taciturn_paper.encryption.run",
        "taciturn_paper.matrix.run",
    ):
        monkeypatch.setattr(name, work)
    for place in (tmp_path / "no" / "where", tmp_path, tmp_path / ("x" * 300)):
        assert run([*shlex.split(line), str(place)]) == 74
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_may_open_too_few_files_says_so():
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))

    done = command("runs list", preexec_fn=limited)
    assert done.returncode == ConfigError.exit_code
    assert "12 files" in done.stderr
    assert "ulimit -n" in done.stderr
