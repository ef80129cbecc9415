"""No output of a party's file or of a command overwrites an input: every pair is tried."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from functools import cache
from itertools import permutations, product
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.main import get_command

from taciturn.__main__ import run
from taciturn.cli.app import whole_app
from taciturn.cli.help import Command, path_options
from taciturn.errors import ConfigError
from taciturn.output_paths import PathUse
from taciturn.party.config import PartyConfig, section_settings
from taciturn.party.used_paths import used_paths
from tests.expected import refused
from tests.party.sides import NEWTON, write_config, write_tables
from tests.settings_page import ALL_SECTIONS

ROLES = ("alice", "bob")
# What a setting must have beside it to be a setting at all.
NEEDED: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    ("serve", "tls-certificate"): {"serve": {"tls-key": "s.key", "tls-certificate": "s.pem"}},
    ("serve", "tls-key"): {"serve": {"tls-key": "s.key", "tls-certificate": "s.pem"}},
    ("serve", "callers-ca"): {"serve": {"tls-key": "s.key", "tls-certificate": "s.pem"}},
    ("data", "connection"): {"data": {"file": None, "query": "select * from t"}},
    ("serve", "connection"): {"serve": {"query": "select * from t"}},
}
CLUSTER = {
    "engine": "dask",
    "scheduler": "tls://h:1",
    "ca": "w.pem",
    "certificate": "x.pem",
    "key": "y.key",
}
WHOLE = {"mechanism": "sealed", **NEWTON}
NEEDED |= {
    ("compute", name): {"compute": CLUSTER, "agreement": WHOLE}
    for name in ("ca", "certificate", "key")
}
OUTPUTS = (PathUse.WRITTEN, PathUse.RESULT)


def settings(*uses: PathUse) -> Iterator[tuple[str, str, str]]:
    """The settings of a party's file that name a path, with their section and owner."""
    for section in ALL_SECTIONS:
        for name, setting in section_settings(section).items():
            if setting.path in uses:
                yield section, name.replace("_", "-"), setting.owner


SPELLED = ("same", "./sub/../same", "linked", "second")
# Each pair by one of the names that one file has.
PAIRS = [
    (out, other, SPELLED[number % len(SPELLED)])
    for number, (out, other) in enumerate(product(settings(*OUTPUTS), settings(*PathUse)))
    if out[:2] != other[:2] and other[0] != "agreement"
]


def value(setting: str, file: str) -> str:
    return f"sqlite:{file}" if setting == "connection" else file


def changes(*settings: tuple[str, str, str], **values: str) -> dict[str, dict[str, Any]]:
    """Changes to a party's file so that these settings have these values, in their order."""
    made: dict[str, dict[str, Any]] = {}
    for section, name, _ in settings:
        for place, needed in NEEDED.get((section, name), {}).items():
            made.setdefault(place, {}).update(needed)
    for (section, name, _), file in zip(settings, values.values(), strict=True):
        made.setdefault(section, {})[name] = value(name, file)
    return made


@pytest.mark.parametrize(("out", "other", "name"), PAIRS, ids=str)
def test_no_output_of_a_partys_file_is_another_path_of_it(out, other, name, tmp_path):
    role = next((each[2] for each in (out, other) if each[2]), "bob")
    (tmp_path / "same").write_text("content")
    (tmp_path / "linked").symlink_to("same")
    os.link(tmp_path / "same", tmp_path / "second")
    path = write_config(tmp_path, role, **changes(out, other, a=name, b="same"))
    with refused(ConfigError, names=[f"[{out[0]}] {out[1]}", f"[{other[0]}] {other[1]}"]):
        PartyConfig.read(path)
    assert (tmp_path / "same").read_text() == "content"


@pytest.mark.parametrize("out", [*settings(*OUTPUTS)], ids=lambda each: ".".join(each[:2]))
def test_no_output_lies_in_a_folder_that_is_read(out, tmp_path):
    role = out[2] or "alice"
    (tmp_path / "parts").mkdir()
    (tmp_path / "way").symlink_to("parts")
    for table in ("parts", "parts/*", "./**/*.parquet"):
        for name in ("parts/new.parquet", "way/new.parquet"):
            data = {"data": {"file": table}}
            path = write_config(tmp_path, role, **{**data, **changes(out, a=name)})
            with refused(ConfigError, names=[f"[{out[0]}] {out[1]}", "[data] file"]):
                PartyConfig.read(path)
    state = {"state": {"folder": "here"}}
    path = write_config(tmp_path, role, **{**state, **changes(out, a="here/journal")})
    with refused(ConfigError, names=[f"[{out[0]}] {out[1]}", "[state] folder"]):
        PartyConfig.read(path)


def test_no_output_is_the_partys_file_its_agreement_or_what_follows_from_a_setting(tmp_path):
    write_config(tmp_path, "bob", output={"report": None})
    whole = (tmp_path / "bob.toml").read_text()
    (tmp_path / "bob.model.scores").touch()
    os.link(tmp_path / "bob.model.scores", tmp_path / "scores")
    taken = ("bob.toml", "bob.consent.sqlite", "bob.state.key", "bob.metrics.prom", "scores")
    for name in (*taken, "bob.model.html"):
        write_config(
            tmp_path,
            "bob",
            output={"report": None, "held-out-scores": name},
            agreement={"held-out": 0.2},
        )
        with refused(ConfigError):
            PartyConfig.read(tmp_path / "bob.toml")
    (tmp_path / "bob.toml").write_text(whole)
    PartyConfig.read(tmp_path / "bob.toml")


def test_a_state_folder_may_exist_and_hold_the_key_and_the_consent_store(tmp_path):
    state, privacy = {"key": "bob-state/key"}, {"consent": "bob-state/consent.sqlite"}
    for name in ("lock", "journal", "arrays/values"):
        (tmp_path / "bob-state" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "bob-state" / name).touch()
    PartyConfig.read(write_config(tmp_path, "bob", state=state, privacy=privacy))


def test_a_file_may_be_read_twice_and_an_output_be_a_stream(tmp_path):
    same = {"source": "bob.csv", "aligned": "list.csv"}
    streams = {"log": "/dev/null", "metrics": "/dev/null"}
    data = {"aligned": "list.csv"}
    PartyConfig.read(write_config(tmp_path, "bob", data=data, serve=same, output=streams))


def test_every_setting_that_names_a_file_says_what_happens_to_it():
    declared = {(section, name) for section, name, _ in settings(*PathUse)}
    for section in ALL_SECTIONS:
        for name, setting in section_settings(section).items():
            ending = Path(str(setting.example)).suffix.strip(".")
            if ending in ("csv", "json", "pem", "key", "log", "sqlite", "toml", "html", "parquet"):
                assert (section, name.replace("_", "-")) in declared


# --- the options of commands ---------------------------------------------------------------------


@cache
def commands() -> dict[tuple[str, ...], Any]:
    """Every command by its words."""

    def below(group: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from below(command, *words, name)
            else:
                yield (*words, name), command

    return dict(below(get_command(whole_app())))


def named(annotation: Any) -> bool:
    """Whether a parameter's type is a path."""
    return annotation is Path or any(map(named, get_args(annotation)))


OPTIONS = {
    words: {name: use for name, (use, _) in path_options(command.callback).items()}
    for words, command in commands().items()
    if isinstance(command, Command)
}
BETWEEN = [
    (words, out, other)
    for words, uses in OPTIONS.items()
    for out, other in permutations(uses, 2)
    if uses[out] is PathUse.WRITTEN and (uses[other] is PathUse.READ or out < other)
]
WITH_PARTY = [
    (words, out)
    for words in (
        ("predict",), ("align",), ("party",), ("woe",),
        ("agreement", "propose"), ("model", "report"),
    )
    for out, use in OPTIONS[words].items()
    if use is PathUse.WRITTEN and (words, out) not in ((("woe",), "out"), (("party",), "out"))
]  # fmt: skip


def line(words: tuple[str, ...], **given: str) -> list[str]:
    """A command's line with these options, and something for each that it cannot do without."""
    options = []
    for each in commands()[words].params:
        if each.name not in given and not each.required:
            continue
        text = given.get(each.name, "all" if each.name == "target" else f"some-{each.name}")
        if each.param_type_name == "argument":
            words = (*words, text)
        else:
            options += [max(each.opts, key=len), text]
    return [*words, *options]


def test_every_option_that_is_a_path_says_what_happens_to_it():
    for words, command in commands().items():
        callback = command.callback
        for name, parameter in inspect.signature(callback, eval_str=True).parameters.items():
            assert not named(parameter.annotation) or name in OPTIONS[words], (words, name)


@pytest.mark.parametrize(("words", "out", "other"), BETWEEN, ids=str)
def test_no_output_of_a_command_is_another_of_its_paths(
    words, out, other, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for name in ("same", "./same", "linked"):
        (tmp_path / "same").write_text("content")
        if not (tmp_path / "linked").exists():
            (tmp_path / "linked").symlink_to("same")
        assert run(line(words, **{out: name, other: "same"})) == ConfigError.exit_code
        assert (tmp_path / "same").read_text() == "content"
    said = capsys.readouterr().err
    for option in (out, other):
        assert option.replace("_", "-") in said or option.upper() in said


@pytest.mark.parametrize(("words", "out"), WITH_PARTY, ids=str)
def test_no_output_of_a_command_is_a_path_of_the_partys_file(
    words, out, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    files: dict[str, dict[str, Any]] = {
        "data": {"aligned": "list.csv"},
        "serve": {"source": "new.parquet", "tokens": "callers.toml"},
        "output": {"held-out-scores": "held-out.csv"},
        "agreement": {"held-out": 0.2},
    }
    write_tables(tmp_path)
    config = PartyConfig.read(write_config(tmp_path, "bob", **files))
    replaced = path_options(commands()[words].callback)[out][1]
    paths = {used.path for used in used_paths(config) if not used.setting == replaced != ""}
    for path in paths:
        path.parent.mkdir(exist_ok=True, parents=True)
        if not path.exists() and not path.name.endswith("-state"):
            path.write_text("content")
    given = {"config": "bob.toml", "party": "bob.toml", "rows": "new.csv", out: ""}
    for path in paths:
        before = path.read_bytes() if path.is_file() else b""
        assert run(line(words, **given | {out: str(path)})) == ConfigError.exit_code, path
        assert (path.read_bytes() if path.is_file() else b"") == before
    capsys.readouterr()


def test_no_file_of_settings_names_an_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_tables(tmp_path)
    before = (tmp_path / "bob.csv").read_bytes()
    (tmp_path / "all.toml").write_text('data = "bob.csv"\nid = "id"\nlabel = "sick"\n')
    for option in ("--record", "--model-report", "--out"):
        assert run(["train", "--config", "all.toml", option, "bob.csv"]) == ConfigError.exit_code
        assert "all.toml" in capsys.readouterr().err
    assert (tmp_path / "bob.csv").read_bytes() == before


def test_an_output_by_default_is_no_input(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_tables(tmp_path)
    (tmp_path / "bob.csv").rename(tmp_path / "b.scores.csv")
    (tmp_path / "b.csv").write_text("id\n")
    write_config(tmp_path, "bob", data={"file": "b.scores.csv"})
    assert run(["predict", "bob.toml", "--rows", "b.csv"]) == ConfigError.exit_code
    write_config(tmp_path, "bob", data={"file": "bob.aligned.csv"})
    assert run(["align", "bob.toml"]) == ConfigError.exit_code
    capsys.readouterr()
