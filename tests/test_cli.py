"""The commands as a person or a script meets them."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import shlex
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import taciturn
from taciturn.__main__ import run
from taciturn.cli import train
from taciturn_paper import encryption
from tests.bad_input import CASES, Case, outcome, section
from tests.modules import module_of
from tests.seldom import seldom
from tests.waiting import HANG

QUICK = "--dataset breast-cancer --mechanism none --scheme clear --seed 1 --epochs 1"


def command(line: str, **options: object) -> subprocess.CompletedProcess[str]:
    """The real program in a process of its own."""
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-m", "taciturn", *shlex.split(line)],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
        **options,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
@pytest.mark.sampled(70)
def test_wrong_input_gets_a_clear_error_which_its_page_shows(case: Case):
    code, out, err = outcome(case)
    page = Path(__file__).parents[1] / "docs" / "errors.md"
    remake = "remake it: python -m tests.bad_input > docs/errors.md"
    assert section(case) in page.read_text(encoding="utf-8"), remake
    assert code in (2, *range(10, 80))
    assert err.startswith("error: ")
    assert "Traceback" not in err
    assert "bug in taciturn" not in err
    assert max(len(line) for line in err.splitlines()) <= 107  # "error: " stands before the text
    assert out == ""


def test_train_prints_one_json_object_and_nothing_else():
    done = command(f"train {QUICK} --json")
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["rows_train"] == 455


def test_one_party_is_the_default_byte_for_byte(capfd):
    texts = []
    for option in ("", "--parties 1"):
        assert run(shlex.split(f"train {QUICK} --json {option}")) == 0
        out, _ = capfd.readouterr()
        texts.append(re.sub(r'"seconds": [0-9.e-]+', "", out))
    assert texts[0] == texts[1]


def test_several_parties_are_told_in_the_report(capfd):
    assert run(shlex.split(f"train {QUICK} --parties 3 --alice-columns equal")) == 0
    out, _ = capfd.readouterr()
    words = " ".join(out.split())
    assert "23 columns at 3 Alices, 7 at Bob" in words
    assert "alice-1 8 columns, alice-2 8 columns, alice-3 7 columns" in words
    assert "the sum of 3 Alices' scores" in words


def test_audit_prints_one_json_object_and_nothing_else(capfd):
    assert run(shlex.split(f"audit {QUICK} --json")) == 0
    out, err = capfd.readouterr()
    assert err == ""
    first, *_ = json.loads(out)["attacks"]
    assert first["name"] == "exact-solve"
    assert first["accuracy"] == 1.0


def test_json_says_what_the_python_api_says(capsys):
    assert run(shlex.split(f"train {QUICK} --json")) == 0
    printed = json.loads(capsys.readouterr().out)
    record = taciturn.train(
        dataset="breast-cancer", mechanism="none", scheme="clear", seed=1, epochs=1
    ).to_dict()
    for result in (printed, record):
        result.pop("seconds")
    assert printed == record


@pytest.mark.parametrize("name", ["train", "audit"])
@pytest.mark.sampled(1)
def test_tables_fit_a_hundred_columns_and_have_no_colours_off_a_terminal(name, capsys):
    assert run(shlex.split(f"{name} {QUICK}")) == 0
    text = capsys.readouterr().out
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "\x1b" not in text
    assert "epsilon is infinite" in text


def test_settings_come_from_a_file_and_options_lie_over_it(tmp_path, capsys):
    path = tmp_path / "run.toml"
    path.write_text(
        'dataset = "breast-cancer"\nmechanism = "none"\nscheme = "clear"\n'
        "epochs = 3\nbatch-size = 100\nseed = 1\n"
    )
    assert run(["train", "--config", str(path), "--epochs", "1", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["epochs"], record["batch_size"]) == (1, 100)


def test_class_weights_on_the_command_line_change_the_model(capsys):
    runs = []
    for extra in ("", "--class-weight 1,0.1"):
        assert run(shlex.split(f"train {QUICK} --json {extra}")) == 0
        runs.append(json.loads(capsys.readouterr().out))
    assert [record["class_weight"] for record in runs] == [None, [1.0, 0.1]]
    assert runs[1]["max_weight_difference"] < runs[1]["weight_bound"]
    assert runs[0]["train"]["loss"] < runs[1]["train"]["loss"]


@pytest.mark.parametrize(
    ("option", "meant"),
    [("--epsilonn", "--epsilon"), ("--alice-columsn", "--alice-columns"), ("--recrod", "--record")],
)
def test_a_mistyped_option_gets_the_nearest(option, meant, capsys):
    assert run(["train", option, "1"]) == 2
    said = capsys.readouterr().err
    assert f"No such option: {option}\n" in said
    assert f"did you mean {meant}?" in said


def test_an_error_says_whether_an_option_or_the_file_is_wrong(tmp_path, capsys):
    path = tmp_path / "run.toml"
    path.write_text('dataset = "breast-cancer"\nmechanism = "add"\nepsilon = 1e-12\n')
    assert run(["train", "--config", str(path), "--json"]) == 10
    assert f"where: {path}, epsilon" in " ".join(capsys.readouterr().err.split())
    assert run(["train", "--config", str(path), "--json", "--epsilon", "1e-13"]) == 10
    assert "where: --epsilon\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name",
    [
        "",
        "train",
        "audit",
        "demo",
        "init",
        "certs",
        "party",
        "align",
        "predict",
        "model show",
        "model export",
        "reproduce",
        "doctor",
    ],
)
def test_help_shows_examples_and_exits_well(name, capsys):
    assert run([*name.split(), "--help"]) == 0
    text = capsys.readouterr().out
    assert "Usage: taciturn" in text
    if name not in ("", "demo"):
        assert "Example" in text
    if name == "party":
        assert all(option in text for option in ("--dry-run", "--fresh", "--record", "--json"))
    if name == "align":
        assert all(option in text for option in ("--out", "--normalise", "--json"))
    if name == "predict":
        assert all(option in text for option in ("--rows", "--model", "--out", "--id", "--json"))
    if name == "":
        shown = ("init", "certs", "align", "party", "predict", "model", "reproduce", "doctor")
        assert all(f" {command} " in text for command in shown)


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
    assert "taciturn party FILE --dry-run" in text
    assert ("no protection" in text) == (mechanism in ("none", "hybrid"))


@pytest.mark.slow  # some seconds
def test_a_party_whose_peer_does_not_come_says_so_and_keeps_its_json_clean(tmp_path):
    from tests.deploy.sides import write_config, write_tables

    assert run(["certs", "--out", str(tmp_path / "certs"), "--json"]) == 0
    write_tables(tmp_path)
    write_config(tmp_path, "bob", link={"connect-seconds": 0.2})
    done = command(f"party {tmp_path / 'bob.toml'} --dry-run --json")
    assert done.returncode == 43
    assert done.stdout == ""
    assert "alice has not connected within 0." in " ".join(done.stderr.split())
    assert "listening on port" in done.stderr


@pytest.mark.parametrize("name", ["train", "audit"])
def test_help_shows_every_option_of_the_protection(name, monkeypatch, capsys):
    """In a terminal as wide as need be, so that no name is cut."""
    monkeypatch.setenv("COLUMNS", "200")
    assert run([name, "--help"]) == 0
    text = capsys.readouterr().out
    for option in (
        "--mechanism",
        "--epsilon",
        "--noise",
        "--variant",
        "--b1",
        "--b2",
        "--subset-size",
        "--l-rr",
        "--bob-update",
        "--reveal",
        "--fresh-keys",
        "--budget",
        "--delta",
    ):
        assert f"{option} " in text
    for word in ("(default: sealed)", "printed, one-sided or mean-one"):
        assert word in " ".join(text.split())


LEDGER = {
    "claimed_epsilon_per_release",
    "residue_epsilon_per_release",
    "label_epsilon_per_release",
    "releases_per_row",
    "residue_epsilon_total",
    "label_epsilon_total",
    "label_epsilon_total_delta",
    "delta",
    "assumption",
    "label_delta_total",
    "columns",
}
PROTECTED = "train --dataset breast-cancer --scheme clear --seed 1 --epochs 2 --json --mechanism"


def printed(line: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run(shlex.split(line)) == 0
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    return record


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("options", "per_release", "total"),
    [
        ("none", ("inf", "inf", "inf"), ("inf", "inf")),
        ("add --epsilon 1", (1.0, 1.0, 0.5), (2.0, 1.0)),
        ("add --epsilon 1 --noise continuous", (1.0, 1.0, 0.5), (2.0, 1.0)),
        (
            "add --epsilon 1 --bob-update true --alice-columns half",
            (1.0, 1.0, 0.5),
            ("inf", "inf"),
        ),
        ("mult --epsilon 0.01", (0.01, math.log(10), math.log(10)), (math.log(100),) * 2),
        ("mult --epsilon 100", (100.0, 45.0, 45.0), (90.0, 90.0)),
        ("mult --epsilon 1 --variant one-sided", (1.0, "inf", "inf"), ("inf", "inf")),
        (
            "mult --epsilon 1 --variant mean-one",
            (1.0, math.log(10) + 1.1 * 0.1 / 20, math.log(10) + 1.1 * 0.1 / 20),
            (2 * (math.log(10) + 0.0055),) * 2,
        ),
        ("hybrid", (1.0, "inf", "inf"), ("inf", "inf")),
        ("label-rr --epsilon 1", (1.0, 1.0, 1.0), (1.0, 1.0)),
        ("label-rr --epsilon 3 --over none", (3.0, 3.0, 3.0), (3.0, 3.0)),
    ],
)
def test_the_ledger_of_each_mechanism_is_in_the_json(options, per_release, total, capsys):
    """The figures are DESIGN's closed forms by hand; b1 is rounded to the grid, a part in 1e5."""
    ledger = printed(f"{PROTECTED} {options}", capsys)["ledger"]
    assert set(ledger) == LEDGER
    names = ("claimed", "residue", "label")
    assert [ledger[f"{name}_epsilon_per_release"] for name in names] == [
        epsilon if epsilon == "inf" else pytest.approx(epsilon, rel=1e-5) for epsilon in per_release
    ]
    assert [ledger[f"{name}_epsilon_total"] for name in names[1:]] == [
        epsilon if epsilon == "inf" else pytest.approx(epsilon, rel=1e-5) for epsilon in total
    ]
    assert ledger["delta"] == 1e-6
    infinite = ledger["label_epsilon_total"] == "inf"
    assert infinite == ledger["assumption"].startswith("no protection")
    if infinite:
        assert ledger["label_epsilon_total_delta"] == "inf"
    else:
        assert 0 < ledger["label_epsilon_total_delta"] <= ledger["label_epsilon_total"]
        assert ledger["releases_per_row"] == (1 if options.startswith("label-rr") else 2)


@pytest.mark.parametrize("name", ["add", "mult", "label-rr"])
def test_an_epsilon_is_asked_for(name, capfd):
    assert run(shlex.split(f"{PROTECTED} {name}")) == 10
    out, err = capfd.readouterr()
    assert out == ""
    assert err == (
        f"error: {name} needs epsilon\n  where: --epsilon\n  try:   use --epsilon 1, for example\n"
    )


def test_a_budget_ends_the_training_and_says_so(capsys):
    record = printed(
        "train --dataset breast-cancer --mechanism add --epsilon 1 --budget 1.6 --seed 1 --json",
        capsys,
    )
    assert (record["epochs"], record["iterations"], record["budget"]) == (10, 3 * 29, 1.6)
    assert record["stopped"] == "the privacy budget is spent"
    assert record["ledger"]["label_epsilon_total"] == pytest.approx(1.5)
    assert record["ledger"]["releases_per_row"] == 3


def test_a_budget_that_pays_for_no_release_has_an_exit_code_of_its_own(capsys):
    assert run(shlex.split(f"{PROTECTED} add --epsilon 4 --budget 1")) == 61
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "costs a label epsilon of 2, and the budget is 1" in captured.err


@pytest.mark.parametrize(
    "options",
    seldom(["add --epsilon 1", "mult --epsilon 1", "hybrid"], always=["add --epsilon 1"]),
)
@pytest.mark.parametrize("name", ["train", "audit"])
@pytest.mark.sampled(1)
def test_tables_of_every_mechanism_fit_a_hundred_columns(name, options, capsys):
    line = (
        f"{name} --dataset breast-cancer --scheme clear --seed 1 --epochs 1 --mechanism {options}"
    )
    assert run(shlex.split(line)) == 0
    text = capsys.readouterr().out
    assert max(len(line) for line in text.splitlines()) <= 100
    assert options.split()[0] in text


def test_protection_comes_from_a_file_too(tmp_path, capsys):
    path = tmp_path / "run.toml"
    path.write_text(
        'dataset = "breast-cancer"\nmechanism = "mult"\nepsilon = 3.0\nvariant = "mean-one"\n'
        'b1 = 0.25\nb2 = 2.0\nbob-update = "true"\nepochs = 1\nseed = 1\n'
    )
    record = printed(f"train --config {path} --b1 0.5 --json", capsys)
    assert (record["variant"], record["b1"], record["b2"]) == ("mean-one", 0.5, 2.0)
    assert (record["epsilon"], record["bob_update"]) == (3.0, "true")


def test_the_command_alone_shows_its_help(capsys):
    assert run([]) == 2
    assert "Commands" in capsys.readouterr().out


def test_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"taciturn {taciturn.__version__}\n"


def test_a_full_disk_is_named():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "taciturn", "train", *shlex.split(QUICK)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=HANG,
            check=False,
        )
    assert done.returncode == 74
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow  # some seconds
def test_a_reader_that_goes_away_is_no_error():
    program = f"{shlex.quote(sys.executable)} -m taciturn train {QUICK} --json"
    line = f"{program} | head -c 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 0
    assert done.stderr == ""


def test_a_bug_is_told_without_a_traceback_unless_asked_for(monkeypatch, capsys):
    def broken(**_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("taciturn.api.train", broken)
    monkeypatch.delenv("TACITURN_DEBUG", raising=False)
    assert run(shlex.split(f"train {QUICK}")) == 1
    said = capsys.readouterr().err
    assert "a bug in taciturn: ZeroDivisionError: oops" in said
    assert "Traceback" not in said
    monkeypatch.setenv("TACITURN_DEBUG", "1")
    assert run(shlex.split(f"train {QUICK}")) == 1
    assert "Traceback" in capsys.readouterr().err


def test_interrupting_is_told_in_a_word(monkeypatch, capsys):
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("taciturn.api.train", interrupted)
    assert run(shlex.split(f"train {QUICK}")) == 130
    assert capsys.readouterr().err.endswith("\nerror: interrupted\n")


@pytest.mark.slow  # some seconds
def test_progress_with_time_left_is_shown_on_a_terminal_only():
    """A real pseudo-terminal on standard error; the JSON on standard output stays clean."""
    import pty

    ours, theirs = pty.openpty()
    shown: list[bytes] = []
    with os.fdopen(ours, "rb", buffering=0) as screen:
        done = subprocess.Popen(
            [sys.executable, "-m", "taciturn", *shlex.split(f"train {QUICK} --json --epochs 5")],
            stdout=subprocess.PIPE,
            stderr=theirs,
        )
        os.close(theirs)
        # Read while it runs: a screen that nobody reads fills up, and whoever writes to it waits.
        reader = threading.Thread(target=_read_all, args=(screen, shown))
        reader.start()
        out, _ = done.communicate(timeout=HANG)
        reader.join(HANG)
    assert done.returncode == 0
    assert json.loads(out)["epochs"] == 5
    assert b"training" in b"".join(shown)
    assert b"elapsed," in b"".join(shown)
    assert b"remaining" in b"".join(shown)


def _read_all(screen: io.FileIO, shown: list[bytes]) -> None:
    """Until the terminal closes, which it does when the last writer has gone."""
    with contextlib.suppress(OSError):
        while part := screen.read(65536):
            shown.append(part)


def require_demo(runs: list[dict[str, Any]], scheme: str = "bfv") -> None:
    assert [result["mechanism"] for result in runs] == ["none", "hybrid", "sealed", "mutual"]
    for result in runs:
        assert (result["scheme"], result["encrypted"]) == (scheme, scheme == "bfv")
        assert result["key_bits"] == (128 if scheme == "bfv" else 0)
        assert result["test"]["accuracy"] == result["centralised"]["accuracy"]
    assert "bob_seat" not in runs[0]
    assert runs[2]["bob_seat"]["attacks"]
    assert runs[2]["bob_seat"]["leaks"]
    # In mutual he has no score to attack.
    assert not runs[3]["bob_seat"]["attacks"]
    assert not runs[3]["bob_seat"]["leaks"]
    assert runs[2]["attacks"] == runs[3]["attacks"] == []
    assert len(runs[2]["skipped"]) == len(runs[0]["skipped"]) + len(runs[0]["attacks"]) + 1


@pytest.mark.parametrize("scheme", seldom(["clear", "bfv"], always=["clear"]))
def test_demo_with_one_epoch(scheme, tmp_path, monkeypatch, capsys):
    """The same work on a fifth of the batches: of hybrid's hidden ones that is too little."""
    short = tuple(
        (seat, {**chosen, **({"epochs": 1} if "epochs" in chosen else {"passes": 2})})
        for seat, chosen in module_of(train).DEMO
    )
    monkeypatch.setattr(module_of(train), "DEMO", short)
    monkeypatch.setattr("taciturn.api.audit", partial(taciturn.audit, scheme=scheme))
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    require_demo(runs, scheme)
    assert max(attack["accuracy"] for attack in runs[0]["attacks"]) == 1.0
    assert max(control["accuracy"] for control in runs[2]["controls"]) < 1.0
    assert [path.name for path in tmp_path.iterdir()] == ["taciturn-demo.html"]


@pytest.mark.slow  # a minute: five epochs of four mechanisms, with a canary run for each
def test_demo_recovers_every_label_with_real_keys(tmp_path):
    done = command("demo --json", cwd=tmp_path)
    assert done.returncode == 0
    runs = json.loads(done.stdout)["runs"]
    require_demo(runs)
    for result in runs:
        accuracies = [attack["accuracy"] for attack in (*result["attacks"], *result["controls"])]
        assert (max(accuracies) == 1.0) == (result["mechanism"] in ("none", "hybrid"))


def test_train_says_beforehand_what_it_will_take(capsys):
    assert run(shlex.split(f"train {QUICK}")) == 0
    said = capsys.readouterr().err
    assert said.startswith("29 iterations, about ")
    assert "to Alice" in said


@pytest.mark.slow  # a second, and others show the same on less
def test_bench_prints_its_rows_as_json(monkeypatch, capsys):
    monkeypatch.setattr(encryption, "QUICK_SHAPES", (encryption.Shape("tiny", 4, 3),))
    assert run(["bench", "--quick", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert {row["scheme"] for row in record["rows"]} == {"bfv", "paillier"}
    assert all(row["max_error"] == 0 for row in record["rows"])


def test_bench_writes_its_plot_and_says_what_the_star_means(monkeypatch, tmp_path, capsys):
    row = encryption.Row("breast", 16, 30, "bfv", 128, 9.5, 12.0, 127.0, 100, 50, 0, 1)
    monkeypatch.setattr("taciturn_paper.encryption.run", lambda *given, **named: [row])
    plot = tmp_path / "bench.svg"
    assert run(["bench", "--quick", "--against", "phe", "--plot", str(plot)]) == 0
    assert "breast, bfv 128" in plot.read_text()
    assert "127x" in plot.read_text()
    assert "* measured once" in capsys.readouterr().out


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
def test_a_result_that_cannot_be_written_is_refused_before_any_work(
    monkeypatch, tmp_path, capsys, line
):
    def work(*given: object, **named: object) -> None:
        raise AssertionError("work began")

    for name in (
        "taciturn.api.audit",
        "taciturn_paper.encryption.run",
        "taciturn_paper.matrix.run",
    ):
        monkeypatch.setattr(name, work)
    for place in (tmp_path / "no" / "where", tmp_path, tmp_path / ("x" * 300)):
        assert run([*shlex.split(line), str(place)]) == 74
        assert "the file cannot be written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
