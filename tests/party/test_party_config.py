"""A party's file: what it may say, and how everything else is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taciturn.errors import AgreementError, BudgetExceeded, ConfigError
from taciturn.jobs.train.job import TrainJob, TrainSide
from taciturn.party.config import PartyConfig
from taciturn.party.training_inputs import terms_for
from taciturn.privacy.row_noise import OPENING_ROWS
from taciturn.settings.schema import DEFAULT_MECHANISM
from tests.expected import refused
from tests.party.sides import write_config, write_tables


def read(folder: Path, role: str = "bob", **changes: dict[str, Any]) -> PartyConfig:
    return PartyConfig.read(write_config(folder, role, **changes))


def refusal(folder: Path, role: str, changes: dict[str, Any], *names: object) -> ConfigError:
    """What is said to a side's file with these changes; it names all of ``names``."""
    path = write_config(folder, role, **changes)
    return refused_text(path, path.read_text(encoding="utf-8"), *names)


def refused_text(path: Path, text: str, *names: object) -> ConfigError:
    path.write_text(text, encoding="utf-8")
    with refused(ConfigError, names=names) as caught:
        PartyConfig.read(path)
    assert str(path) in caught.value.where
    return caught.value


def test_paths_are_relative_to_the_file_and_not_to_where_one_stands(tmp_path, monkeypatch):
    folder = tmp_path / "deep" / "inside"
    folder.mkdir(parents=True)
    write_config(folder, "bob")
    monkeypatch.chdir(tmp_path)
    config = PartyConfig.read(Path("deep/inside/bob.toml"))
    assert config.path(config.data.file or "").resolve() == folder.resolve() / "bob.csv"
    assert config.path("/elsewhere/table.csv") == Path("/elsewhere/table.csv")


def test_hyphens_and_underscores_are_the_same(tmp_path):
    assert read(tmp_path, agreement={"minimum_batch": 4}).agreed["minimum_batch"] == 4
    assert read(tmp_path, state={"checkpoint_seconds": 7}).state.checkpoint_seconds == 7


# --- unknown, missing, of the wrong kind ---------------------------------------------------------


@pytest.mark.parametrize(
    ("section", "key", "meant"),
    [
        ("agreement", "epoch", "epochs"),
        ("agreement", "learning-rte", "learning-rate"),
        ("data", "labl", "label"),
        ("link", "pear", "peer"),
        ("state", "foldr", "folder"),
        ("output", "modl", "model"),
        ("privacy", "bugdet", "budget"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest(tmp_path, section, key, meant):
    error = refusal(tmp_path, "bob", {section: {key: 1}}, key, f"[{section}]")
    assert meant in error.hint


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("agreement", "epochs", 0),
        ("agreement", "held-out", "some"),
        ("agreement", "held-out", 1),
        ("agreement", "held-out", -0.2),
        ("agreement", "held-out", False),
        ("agreement", "split-seed", 5),
        ("agreement", "evaluate", "often"),
        ("agreement", "minimum-batch", 0),
        ("agreement", "alice-columns", "half"),
        ("agreement", "alice-columns", 0),
        ("agreement", "alice-columns", True),
        ("agreement", "rows", 0),
        ("agreement", "rows", "many"),
        ("privacy", "answer-interval-milliseconds", 0),
        ("data", "file", 7),
        ("agreement", "intercept", "yes"),
        ("data", "intercept", True),
        ("data", "impute", "mode"),
        ("data", "clip", -3),
        ("link", "connect-seconds", 0),
        ("link", "answer-seconds", "long"),
        ("state", "checkpoint-iterations", 0),
        ("state", "sync", 1),
        ("output", "model", 3),
        ("privacy", "budget", 0),
        ("privacy", "delta", 1),
    ],
)
def test_a_value_of_the_wrong_kind_or_range_is_refused_by_name(tmp_path, section, key, value):
    error = refusal(tmp_path, "bob", {section: {key: value}}, f"[{section}]")
    assert key in error.message


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", 'role = "alice"'),
        ('role = "carol"\n', "role"),
        ("role = 3\n", "role"),
        ('role = "bob"\nepochs = 3\n', "epochs"),
        ('role = "bob"\ndata = "bob.csv"\n', "data"),
        ('role = "bob"\n[data\n', "line 2"),
    ],
)
def test_a_text_that_is_no_partys_file_is_refused(tmp_path, text, named):
    refused_text(tmp_path / "bob.toml", text, named)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    path = tmp_path / "bob.toml"
    path.write_bytes(b'role = "\xff"\n')
    for place in (path, tmp_path / "nowhere.toml", tmp_path):
        with refused(ConfigError, names=place):
            PartyConfig.read(place)


# --- what does not go together -------------------------------------------------------------------


NOISE = {"mechanism": "add", "epsilon": 1.0, "noise": "continuous"}


@pytest.mark.parametrize(
    ("section", "settings", "named"),
    [
        *(("data", {name: None}, name) for name in ("file", "id", "label")),
        *(("link", {name: None}, name) for name in ("peer", "ca", "certificate", "key", "listen")),
        ("state", {"folder": None}, "folder"),
        ("output", {"model": None}, "model"),
        ("agrement", {"epochs": 3}, "agreement"),
        # One side listens, and one dials.
        ("link", {"connect": "127.0.0.1:1"}, "connect"),
        # For simulations alone.
        *(("agreement", {name: 1}, name) for name in ("seed", "seeds", "permute-labels")),
        *(("agreement", {name: 1}, "permute") for name in ("permute_labels", "permute-rows")),
        ("agreement", {"scheme": "clear"}, "bfv"),
        ("agreement", NOISE, "discrete"),
        # Bob's own, which nobody agrees on.
        *(("agreement", {name: 1.0}, "[privacy]") for name in ("budget", "delta")),
        ("agreement", {"mechanism": "hybrid"}, "alice-columns"),
        ("agreement", {"patience": 2}, "evaluate"),
        ("agreement", {"held-out": 0, "evaluate": "epoch"}, "evaluate"),
        *(("agreement", {"class-weight": pair}, "class-weight") for pair in ([0.25], [0.25, 3])),
    ],
    ids=str,
)
def test_what_is_missing_or_does_not_go_together_is_refused_by_name(
    tmp_path, section, settings, named
):
    refusal(tmp_path, "bob", {section: settings}, named)


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("data", "label", "sick"),
        ("privacy", "budget", 2.0),
        ("privacy", "answer-interval-milliseconds", 20.0),
    ],
)
def test_what_is_bobs_is_refused_in_alices_file(tmp_path, section, name, value):
    assert read(tmp_path, "bob", **{section: {name: value}})
    refusal(tmp_path, "alice", {section: {name: value}}, name)


def test_no_held_out_rows_are_written_as_zero(tmp_path):
    assert read(tmp_path, agreement={"held-out": 0}).agreed["held_out"] is None
    assert read(tmp_path, agreement={"held-out": 0.0}).agreed["held_out"] is None


# --- what only the table can tell ----------------------------------------------------------------


def party(folder: Path, role: str = "bob", **changes: dict[str, Any]) -> TrainSide:
    write_tables(folder)
    return TrainJob().prepare(read(folder, role, **changes))


@pytest.mark.parametrize(
    ("agreed", "setting"),
    [
        ({"mechanism": "add"}, "epsilon"),
        ({"mechanism": "nne"}, "mechanism"),
        ({"scheme": "pailier"}, "scheme"),
    ],
)
def test_what_a_mechanism_lacks_is_said_in_the_words_of_the_file(tmp_path, agreed, setting):
    with refused(ConfigError) as caught:
        party(tmp_path, agreement=agreed)
    assert caught.value.where.endswith(f"bob.toml, [agreement] {setting}")
    assert "--" not in caught.value.hint


def test_a_budget_that_pays_for_nothing_is_said_in_the_words_of_the_file(tmp_path):
    with pytest.raises(BudgetExceeded) as caught:
        party(tmp_path, privacy={"budget": 2.0})
    assert caught.value.where.endswith("bob.toml, [privacy] budget")
    assert "--" not in caught.value.hint


def test_a_setting_that_the_mechanism_does_not_take_is_refused(tmp_path):
    with refused(ConfigError, setting="epsilon"):
        read(tmp_path, agreement={"mechanism": "none", "epsilon": 1.0})


@pytest.mark.parametrize(
    ("role", "agreed"),
    [
        ("alice", {"mechanism": "hybrid", "alice-columns": 7, "l-rr": 16}),
        ("alice", {"mechanism": "sealed", "rows": 7}),
        ("bob", {"mechanism": "sealed", "rows": 7}),
    ],
)
def test_a_side_says_so_where_it_has_another_number_of_columns_or_rows(tmp_path, role, agreed):
    with refused(AgreementError, names=7):
        party(tmp_path, role, agreement=agreed)


# --- several Alices ------------------------------------------------------------------------------

STAR = {"alice-1": "1" * 64, "alice-2": "2" * 64, "alice": "3" * 64}


def starry(folder: Path, role: str, **link: Any) -> PartyConfig:
    return read(folder, role, link=link, **{"agreement.parties": STAR})


@pytest.mark.parametrize(
    ("role", "link", "setting"),
    [
        ("bob", {}, "peer"),
        ("bob", {"peer": None, "listen": None, "connect": "alice.example:9443"}, "connect"),
        ("alice", {"listen": "127.0.0.1:0", "connect": None}, "listen"),
        ("alice", {"peer": "alice-2"}, "peer"),
        ("alice", {"peer": None}, "peer"),
    ],
)
def test_a_link_that_does_not_fit_several_alices_is_refused(tmp_path, role, link, setting):
    with refused(ConfigError, names=f"[link] {setting}"):
        starry(tmp_path, role, **link)


def test_a_file_without_a_mechanism_trains_with_the_default_one(tmp_path):
    """Which has its passes and its score range from the rows of the whole table, also in a fold."""
    nothing = {"mechanism": None, "epochs": None, "batch-size": None, "learning-rate": None}
    config = read(tmp_path, agreement=nothing)
    assert config.agreed["mechanism"] == config.settings().mechanism == DEFAULT_MECHANISM
    fold, table = OPENING_ROWS - 1, OPENING_ROWS
    agreed = [terms_for(config, 6, fold, of).agreement for of in (None, table)]
    assert [(one.rounds, one.score_range) for one in agreed] == [(56, 128.0), (28, 64.0)]
    assert agreed[1].l2 == 1 / table
