"""The commands as a person or a script meets them."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import math
import os
import re
import resource
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import taciturn
from taciturn.__main__ import run
from taciturn.cli.app import whole_app
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


def test_train_prints_one_json_object_and_nothing_else():
    done = command(f"train {QUICK} --json")
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["rows_train"] == 455


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
    assert "infinite" in text


def test_settings_come_from_a_file_and_options_lie_over_it(tmp_path, capsys):
    path = tmp_path / "run.toml"
    path.write_text(
        'dataset = "breast-cancer"\nmechanism = "none"\nscheme = "clear"\n'
        "epochs = 3\nbatch-size = 100\nseed = 1\n"
    )
    assert run(["train", "--config", str(path), "--epochs", "1", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["epochs"], record["batch_size"]) == (1, 100)


@pytest.mark.parametrize(
    ("option", "meant"),
    [("--epsilonn", "--epsilon"), ("--alice-columsn", "--alice-columns"), ("--recrod", "--record")],
)
def test_a_mistyped_option_gets_the_nearest(option, meant, capsys):
    assert run(["train", option, "1"]) == 2
    assert re.search(rf"{option}\b.*{meant}\b", capsys.readouterr().err, flags=re.DOTALL)


def test_an_error_says_whether_an_option_or_the_file_is_wrong(tmp_path, capsys):
    path = tmp_path / "run.toml"
    path.write_text('dataset = "breast-cancer"\nmechanism = "add"\nepsilon = 1e-12\n')
    assert run(["train", "--config", str(path), "--json"]) == 10
    assert f"where: {path}, epsilon" in " ".join(capsys.readouterr().err.split())
    assert run(["train", "--config", str(path), "--json", "--epsilon", "1e-13"]) == 10
    assert "where: --epsilon\n" in capsys.readouterr().err


def commands() -> list[tuple[str, Any]]:
    """Every command that does something, by its name; a group is replaced by its commands."""

    def below(command: Any, name: str) -> list[tuple[str, Any]]:
        children = getattr(command, "commands", None)
        if children is None:
            # A command of an absent distribution is hidden, and says only where it is.
            return [] if command.hidden else [(name, command)]
        return [pair for child in children for pair in below(children[child], f"{name} {child}")]

    return below(get_command(whole_app()), "")


@pytest.mark.parametrize(("name", "parsed"), commands())
def test_help_lists_a_dozen_options_in_a_hundred_columns(name, parsed, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    assert run([*name.split(), "--help"]) == 0
    text = capsys.readouterr().out
    assert text.split()[:2] == ["Usage:", "taciturn"]
    assert max(map(len, text.splitlines())) <= 100
    assert len(re.findall(r"^  -", text, re.M)) <= 15
    assert run([*name.split(), "--help-all"]) == 0
    listed = set(re.findall(r"--[a-z0-9-]+", capsys.readouterr().out))
    options = [parameter for parameter in parsed.params if parameter.param_type_name == "option"]
    assert {option for parameter in options for option in parameter.opts[:1]} <= listed


def test_help_alone_lists_every_command(capsys):
    assert run(["--help"]) == 0
    text = capsys.readouterr().out
    assert {name.split()[0] for name, _ in commands()} <= set(
        re.findall(r"^  ([a-z]+) ", text, re.M)
    )


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
        ("label-rr --epsilon 3 --base-mechanism none", (3.0, 3.0, 3.0), (3.0, 3.0)),
    ],
)
def test_the_ledger_of_each_mechanism_is_in_the_json(options, per_release, total, capsys):
    """The figures are DESIGN's closed forms by hand; b1 is rounded to the grid, a part in 1e5."""
    ledger = printed(f"{PROTECTED} {options}", capsys)["ledger"]
    names = ("claimed", "residue", "label")
    assert [ledger[f"{name}_epsilon_per_release"] for name in names] == [
        epsilon if epsilon == "inf" else pytest.approx(epsilon, rel=1e-5) for epsilon in per_release
    ]
    assert [ledger[f"{name}_epsilon_total"] for name in names[1:]] == [
        epsilon if epsilon == "inf" else pytest.approx(epsilon, rel=1e-5) for epsilon in total
    ]
    assert ledger["delta"] == 1e-6
    if ledger["label_epsilon_total"] == "inf":
        assert ledger["label_epsilon_total_delta"] == "inf"
    else:
        assert 0 < ledger["label_epsilon_total_delta"] <= ledger["label_epsilon_total"]
        assert ledger["releases_per_row"] == (1 if options.startswith("label-rr") else 2)


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
    assert os.strerror(errno.ENOSPC) in done.stderr
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
    assert "ZeroDivisionError: oops" in said
    assert "Traceback" not in said
    monkeypatch.setenv("TACITURN_DEBUG", "1")
    assert run(shlex.split(f"train {QUICK}")) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupted_command_prints_one_line(monkeypatch, capsys):
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("taciturn.api.train", interrupted)
    assert run(shlex.split(f"train {QUICK}")) == 130
    assert "Traceback" not in capsys.readouterr().err


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
    # How often a bar is drawn depends on the clock: its last state is always drawn.
    assert b"114/114" in b"".join(shown)  # held-out rows, the last thing that is scored


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
    assert all(result["bob_seat"]["attacks"] for result in runs[:3])
    # In mutual he has no score to attack.
    assert not runs[3]["bob_seat"]["attacks"]
    assert not runs[3]["bob_seat"]["leaks"]
    assert runs[2]["attacks"] == runs[3]["attacks"] == []
    assert len(runs[2]["skipped"]) == len(runs[0]["skipped"]) + len(runs[0]["attacks"]) + 1


def test_a_low_soft_limit_of_open_files_is_raised():
    def limited() -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (12, hard))

    assert command("--version", preexec_fn=limited).returncode == 0
