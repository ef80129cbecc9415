"""What taciturn init writes can be read back, whatever it was asked for."""

from __future__ import annotations

import tomllib

import pytest

from taciturn.errors import ConfigError, OutputError
from taciturn.party.config import PartyConfig
from taciturn.party.templates import Trial, template, write_templates
from taciturn.privacy.registry import MECHANISMS
from taciturn.protocol.messages import Role
from taciturn.settings.agreement import ACCEPTED_EXPOSURE, ACCEPTED_LEAK
from tests.expected import refused

ROLES: tuple[Role, Role] = ("alice", "bob")


@pytest.mark.parametrize("serves", ROLES)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_file_parses_and_the_two_agree(tmp_path, mechanism, serves):
    trial = Trial(mechanism, serves, "bob.example:7443", "some salt")
    alice, bob = (PartyConfig.read(path) for path in write_templates(tmp_path, trial))
    assert alice.agreed == bob.agreed
    assert alice.agreed["mechanism"] == mechanism
    # exact: the test's own value
    assert alice.agreed["split_seed"] == "some salt"
    assert (alice.role, bob.role) == ROLES
    for config in (alice, bob):
        assert config.link.peer == ("bob" if config.role == "alice" else "alice")
        if config.role == serves:
            assert config.link.listen == "0.0.0.0:7443"
        else:
            assert config.link.connect == "bob.example:7443"
        config.settings()


def test_tables_and_columns_stand_where_they_are_read(tmp_path):
    tables = {"alice": 'telco "new".csv', "bob": "bank.csv"}
    trial = Trial(
        "sealed",
        tables=tables,
        ids={"alice": "msisdn", "bob": "customer"},
        label="defaulted",
        positive=("yes", "late"),
    )
    alice, bob = (PartyConfig.read(path) for path in write_templates(tmp_path, trial))
    assert (alice.data.file, bob.data.file) == (tables["alice"], "bank.csv")
    assert (alice.data.id, bob.data.id) == ("msisdn", "customer")
    assert (alice.data.positive, bob.data.positive) == (None, ("yes", "late"))
    assert (alice.data.label, bob.data.label) == (None, "defaulted")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("role", ROLES)
def test_what_stands_behind_a_comment_sign_parses_too(tmp_path, mechanism, role):
    """Each commented-out setting is one that a person may switch on as it stands."""
    text = template(role, Trial(mechanism))
    lines = text.splitlines()
    offered = [n for n, line in enumerate(lines) if line.startswith("# ") and " = " in line]
    assert len(offered) >= 5
    for number in offered:
        changed = [*lines[:number], lines[number][2:], *lines[number + 1 :]]
        if "patience" in lines[number]:
            changed = [line.replace('"end" ', '"epoch" ') for line in changed]
        path = tmp_path / "party.toml"
        path.write_text("\n".join(changed))
        PartyConfig.read(path)


@pytest.mark.parametrize(("mechanism", "passes"), [("mutual", 28), ("sealed", 12)])
def test_the_passes_of_a_file_are_those_that_apply_without_the_line(mechanism, passes):
    text = template("bob", Trial(mechanism))
    assert f"# passes = {passes} " in text


ACCEPTED = {"accept-leak": ACCEPTED_LEAK, "accept-column-exposure": ACCEPTED_EXPOSURE}


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("role", ROLES)
def test_each_is_shown_the_line_that_accepts_a_leak_and_it_is_off(mechanism, role):
    text = template(role, Trial(mechanism))
    shown = {name for name, words in ACCEPTED.items() if f'# {name} = "{words}"' in text}
    if role == "bob":
        assert shown == ({"accept-leak"} if mechanism in ("none", "hybrid") else set())
    else:
        assert shown == (set() if mechanism == "mutual" else {"accept-column-exposure"})
    assert not ACCEPTED.keys() & tomllib.loads(text)["privacy"].keys()


@pytest.mark.parametrize("role", ROLES)
def test_nothing_is_overwritten(tmp_path, role):
    path = tmp_path / f"{role}.toml"
    path.write_text("precious")
    with refused(OutputError) as caught:
        write_templates(tmp_path, Trial("add"))
    assert caught.value.where == str(path)
    assert path.read_text() == "precious"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


PINS = {"alice-1": "0" * 64, "alice-2": "1" * 64}


def test_several_alices_have_a_file_each_and_all_agree(tmp_path):
    tables = {"alice-1": "telco.csv", "alice-2": "insurer.csv", "bob": "bank.csv"}
    trial = Trial("sealed", tables=tables, parties=PINS)
    paths = write_templates(tmp_path, trial)
    assert [path.name for path in paths] == ["alice-1.toml", "alice-2.toml", "bob.toml"]
    first, second, bob = (PartyConfig.read(path) for path in paths)
    assert first.agreed == second.agreed == bob.agreed
    assert bob.parties == PINS
    assert bob.peers == ("alice-1", "alice-2")
    assert second.peers == ("bob",)
    assert second.data.file == "insurer.csv"
    assert second.link.certificate == "certs/alice-2.pem"
    assert second.state.folder == "alice-2-state"
    assert bob.link.listen is not None


def test_a_fingerprint_that_is_not_known_yet_is_asked_for(tmp_path):
    trial = Trial("sealed", parties={"alice-1": "", "alice-2": "1" * 64})
    *_, bob = write_templates(tmp_path, trial)
    assert "certs/alice-1.pem" in bob.read_text()
    with refused(ConfigError, names="alice-1"):
        PartyConfig.read(bob)
