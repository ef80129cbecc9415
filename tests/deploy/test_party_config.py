"""A party's file: what it may say, and how everything else is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taciturn.deploy import Party, PartyConfig
from taciturn.engine import Callbacks
from taciturn.errors import BudgetExceeded, ConfigError
from tests.deploy.sides import write_config, write_tables
from tests.deploy.wires import Wire
from tests.waiting import HANG


def read(folder: Path, role: str = "bob", **changes: dict[str, Any]) -> PartyConfig:
    return PartyConfig.read(write_config(folder, role, **changes))


def refusal(folder: Path, role: str = "bob", **changes: dict[str, Any]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read(folder, role, **changes)
    assert str(folder / f"{role}.toml") in caught.value.where
    return caught.value


def refused_text(folder: Path, text: str) -> ConfigError:
    path = folder / "bob.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        PartyConfig.read(path)
    assert str(path) in caught.value.where
    return caught.value


def without(folder: Path, line: str) -> ConfigError:
    """What is said to Bob's file once a line is taken out of it."""
    path = write_config(folder, "bob")
    lines = path.read_text().splitlines()
    kept = [written for written in lines if not written.startswith(line)]
    assert len(kept) < len(lines)
    return refused_text(folder, "\n".join(kept))


@pytest.mark.parametrize("role", ["alice", "bob"])
def test_a_good_file_is_read_with_its_defaults(tmp_path, role):
    config = read(tmp_path, role)
    assert config.role == role
    assert config.agreed["held_out"] == 0.2
    assert config.agreed["minimum_batch"] == 8
    assert config.link.connect_seconds == HANG
    assert config.settings().scheme == "bfv"


def test_paths_are_relative_to_the_file_and_not_to_where_one_stands(tmp_path, monkeypatch):
    folder = tmp_path / "deep" / "inside"
    folder.mkdir(parents=True)
    write_config(folder, "bob")
    monkeypatch.chdir(tmp_path)
    config = PartyConfig.read(Path("deep/inside/bob.toml"))
    assert config.path(config.data.file).resolve() == folder.resolve() / "bob.csv"
    assert config.path("/elsewhere/table.csv") == Path("/elsewhere/table.csv")


def test_hyphens_and_underscores_are_the_same(tmp_path):
    assert read(tmp_path, agreement={"minimum_batch": 4}).agreed["minimum_batch"] == 4
    assert read(tmp_path, state={"every_seconds": 7}).state.every_seconds == 7


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
    error = refusal(tmp_path, "bob", **{section: {key: 1}})
    assert error.message == f"unknown setting {key}"
    assert f"[{section}]" in error.where
    assert meant in error.hint


def test_an_unknown_section_is_named_with_the_nearest(tmp_path):
    error = refusal(tmp_path, agrement={"epochs": 3})
    assert "agrement" in error.message
    assert "agreement" in error.hint


def test_a_setting_outside_of_every_section_is_refused(tmp_path):
    assert "epochs" in refused_text(tmp_path, 'role = "bob"\nepochs = 3\n').message


def test_a_section_that_is_a_value_is_refused(tmp_path):
    assert "data" in refused_text(tmp_path, 'role = "bob"\ndata = "bob.csv"\n').message


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("agreement", "epochs", "three"),
        ("agreement", "epochs", 0),
        ("agreement", "epochs", 2.5),
        ("agreement", "batch-size", True),
        ("agreement", "learning-rate", "fast"),
        ("agreement", "learning-rate", -1.0),
        ("agreement", "held-out", "some"),
        ("agreement", "held-out", 1),
        ("agreement", "held-out", -0.2),
        ("agreement", "held-out", False),
        ("agreement", "split-salt", 5),
        ("agreement", "evaluate", "often"),
        ("agreement", "minimum-batch", 0),
        ("agreement", "alice-columns", "half"),
        ("agreement", "alice-columns", 0),
        ("agreement", "alice-columns", True),
        ("agreement", "rows", 0),
        ("agreement", "rows", "many"),
        ("privacy", "answer-milliseconds", 0),
        ("agreement", "epsilon", 0),
        ("agreement", "variant", "two-sided"),
        ("agreement", "schedule", "cosine"),
        ("data", "file", 7),
        ("data", "intercept", "yes"),
        ("data", "impute", "mode"),
        ("data", "clip", -3),
        ("link", "connect-seconds", 0),
        ("link", "answer-seconds", "long"),
        ("state", "every-iterations", 0),
        ("state", "sync", 1),
        ("output", "model", 3),
        ("privacy", "budget", 0),
        ("privacy", "delta", 1),
    ],
)
def test_a_value_of_the_wrong_kind_or_range_is_refused_by_name(tmp_path, section, key, value):
    error = refusal(tmp_path, "bob", **{section: {key: value}})
    assert key in error.message
    assert f"[{section}]" in error.where


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("file", "file"),
        ("id ", "id"),
        ("peer", "peer"),
        ("ca ", "ca"),
        ("certificate", "certificate"),
        ("key ", "key"),
        ("folder", "folder"),
        ("model", "model"),
    ],
)
def test_what_is_missing_is_named(tmp_path, line, named):
    assert named in without(tmp_path, line).message


def test_a_file_that_does_not_say_whose_it_is(tmp_path):
    assert 'role = "alice"' in without(tmp_path, "role").hint
    assert "whose" in refused_text(tmp_path, 'role = "carol"\n').message
    assert "whose" in refused_text(tmp_path, "role = 3\n").message


def test_what_is_not_toml_is_told_with_its_line(tmp_path):
    assert "line 2" in refused_text(tmp_path, 'role = "bob"\n[data\n').message
    path = tmp_path / "bob.toml"
    path.write_bytes(b'role = "\xff"\n')
    with pytest.raises(ConfigError, match="not TOML"):
        PartyConfig.read(path)


def test_a_file_that_is_not_there_and_one_that_is_a_folder(tmp_path):
    with pytest.raises(ConfigError, match="No such file") as caught:
        PartyConfig.read(tmp_path / "nowhere.toml")
    assert "taciturn init" in caught.value.hint
    with pytest.raises(ConfigError, match="cannot be read"):
        PartyConfig.read(tmp_path)


# --- what does not go together -------------------------------------------------------------------


def test_one_side_listens_and_one_dials(tmp_path):
    both = refusal(tmp_path, link={"connect": "127.0.0.1:1"})
    assert "either listen or connect" in both.message
    assert "either listen or connect" in without(tmp_path, "listen").message


def test_labels_are_bobs(tmp_path):
    assert "label column" in without(tmp_path, "label").message
    assert "Bob's file" in refusal(tmp_path, "alice", data={"label": "sick"}).hint


def test_the_budget_is_bobs(tmp_path):
    assert read(tmp_path, privacy={"budget": 2.0}).privacy.budget == 2.0
    assert "Bob's" in refusal(tmp_path, "alice", privacy={"budget": 2.0}).message


@pytest.mark.parametrize(
    "key", ["seed", "seeds", "permute-labels", "permute_labels", "permute-rows"]
)
def test_what_is_for_simulations_is_refused_with_the_reason(tmp_path, key):
    error = refusal(tmp_path, agreement={key: 1})
    assert "refused in a real training" in error.message


@pytest.mark.parametrize("key", ["budget", "delta"])
def test_bobs_limits_do_not_stand_in_the_agreement(tmp_path, key):
    assert "[privacy]" in refusal(tmp_path, agreement={key: 1.0}).message


def test_clear_and_continuous_are_for_simulations(tmp_path):
    assert "bfv or paillier" in refusal(tmp_path, agreement={"scheme": "clear"}).hint
    noisy = {"mechanism": "add", "epsilon": 1.0, "noise": "continuous"}
    assert "discrete" in refusal(tmp_path, agreement=noisy).hint


def test_hybrid_must_say_how_many_columns_alice_has(tmp_path):
    assert "alice-columns = 30" in refusal(tmp_path, agreement={"mechanism": "hybrid"}).hint


def test_patience_needs_a_look_after_every_epoch(tmp_path):
    assert 'evaluate = "epoch"' in refusal(tmp_path, agreement={"patience": 2}).hint
    assert read(tmp_path, agreement={"patience": 2, "evaluate": "epoch"}).agreed["patience"] == 2


def test_no_held_out_rows_are_written_as_zero(tmp_path):
    assert read(tmp_path, agreement={"held-out": 0}).agreed["held_out"] is None
    assert read(tmp_path, agreement={"held-out": 0.0}).agreed["held_out"] is None
    error = refusal(tmp_path, agreement={"held-out": 0, "evaluate": "epoch"})
    assert "there are none" in error.message


# --- what only the table can tell ----------------------------------------------------------------


def party(folder: Path, role: str = "bob", **changes: dict[str, Any]) -> Party:
    write_tables(folder)
    return Party(read(folder, role, **changes), Wire().endpoint(serves=True), Callbacks())


def test_what_a_mechanism_lacks_is_said_in_the_words_of_the_file(tmp_path):
    with pytest.raises(ConfigError, match="add needs epsilon") as caught:
        party(tmp_path, agreement={"mechanism": "add"})
    assert caught.value.where.endswith("bob.toml, [agreement] epsilon")
    assert caught.value.hint == "use epsilon = 1, for example"


def test_a_budget_that_pays_for_nothing_is_said_in_the_words_of_the_file(tmp_path):
    with pytest.raises(BudgetExceeded) as caught:
        party(tmp_path, privacy={"budget": 2.0})
    assert caught.value.where.endswith("bob.toml, [privacy] budget")
    assert 'variant = "printed"' in caught.value.hint
    assert "--" not in caught.value.hint


def test_an_unknown_mechanism_or_scheme_is_named_with_the_nearest(tmp_path):
    with pytest.raises(ConfigError, match="unknown mechanism nne") as caught:
        party(tmp_path, agreement={"mechanism": "nne"})
    assert caught.value.where.endswith("bob.toml, [agreement] mechanism")
    with pytest.raises(ConfigError, match="pailier"):
        party(tmp_path, agreement={"scheme": "pailier"})


def test_a_setting_that_the_mechanism_does_not_take_is_noted(tmp_path):
    said: list[str] = []
    write_tables(tmp_path)
    config = read(tmp_path, agreement={"mechanism": "none", "epsilon": 1.0})
    Party(config, Wire().endpoint(serves=True), Callbacks(announce=said.append))
    assert "note: none does not use epsilon" in said


def test_alice_says_so_where_she_has_another_number_of_columns(tmp_path):
    from taciturn.errors import AgreementError

    with pytest.raises(AgreementError, match="her prepared table has 6"):
        party(tmp_path, "alice", agreement={"mechanism": "hybrid", "alice-columns": 7, "l-rr": 16})


@pytest.mark.parametrize("role", ["alice", "bob"])
def test_a_side_says_so_where_it_has_another_number_of_rows(tmp_path, role):
    from taciturn.errors import AgreementError

    with pytest.raises(AgreementError, match="rows is 7, and this side's table has"):
        party(tmp_path, role, agreement={"mechanism": "sealed", "rows": 7})


def test_the_times_of_answers_are_bobs(tmp_path):
    error = refusal(tmp_path, role="alice", privacy={"answer-milliseconds": 20.0})
    assert "Bob's to hide" in error.message


def test_class_weights_are_agreed_on(tmp_path):
    config = read(tmp_path, agreement={"mechanism": "sealed", "class-weight": [0.25, 1.0]})
    assert config.settings().class_weight == (0.25, 1.0)
    assert "class-weight" in refusal(tmp_path, agreement={"class-weight": [0.25]}).message
    assert "class-weight" in refusal(tmp_path, agreement={"class-weight": [0.25, 3]}).message


# --- several Alices ------------------------------------------------------------------------------

STAR = {"alice-1": "1" * 64, "alice-2": "2" * 64, "alice": "3" * 64}


def starry(folder: Path, role: str, **link: Any) -> PartyConfig:
    return read(folder, role, link=link, **{"agreement.parties": STAR})


def test_bob_has_several_peers_and_each_alice_has_him(tmp_path):
    his, hers = starry(tmp_path, "bob", peer=None), starry(tmp_path, "alice")
    assert his.peers == tuple(STAR)
    assert his.peer == "alice-1, alice-2, alice"
    assert his.parties == hers.parties == STAR
    assert (hers.peers, hers.peer) == (("bob",), "bob")


def test_with_one_alice_there_is_one_peer(tmp_path):
    config = read(tmp_path)
    assert (config.peers, config.peer, config.parties) == (("alice",), "alice", {})


@pytest.mark.parametrize(
    ("role", "link", "setting", "said"),
    [
        ("bob", {}, "peer", "no single one"),
        (
            "bob",
            {"peer": None, "listen": None, "connect": "alice.example:9443"},
            "connect",
            "Bob listens",
        ),
        ("alice", {"listen": "127.0.0.1:0", "connect": None}, "listen", "connects to him"),
        ("alice", {"peer": "alice-2"}, "peer", "alice-2 is one of the Alices"),
        ("alice", {"peer": None}, "peer", "field required"),
    ],
)
def test_a_link_that_does_not_fit_several_alices_is_refused(tmp_path, role, link, setting, said):
    with pytest.raises(ConfigError, match=said) as caught:
        starry(tmp_path, role, **link)
    assert f"[link] {setting}" in caught.value.where
