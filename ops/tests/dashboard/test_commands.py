"""``--watch`` and ``--watch-port``, as commands take them."""

from __future__ import annotations

import re
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from ops.tests.dashboard.clients import Reader

from taciturn.__main__ import run
from taciturn.cli.dashboard import watched_bar, watched_side
from taciturn.errors import StateError
from taciturn.party.config import PartyConfig
from taciturn.protocol.events import Progress
from taciturn.results.parties import GrowingTable
from taciturn_ops.dashboard.server import Address, new_token
from tests.party.sides import write_config
from tests.test_two_machines import free_port
from tests.waiting import wait_until

COMMANDS = ("train", "party", "align", "study", "reproduce")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.sampled(2)
def test_the_commands_that_take_long_can_be_watched(command, capsys):
    assert run([command, "--help-all"]) == 0
    shown = capsys.readouterr().out
    assert "--watch " in shown
    assert "--watch-port" in shown


def readers_of(address: Address) -> tuple[list[Reader], threading.Thread]:
    """A reader that calls until somebody answers."""
    readers: list[Reader] = []

    def call() -> None:
        def called() -> bool:
            with suppress(ConnectionRefusedError):
                readers.append(Reader(address))
            return bool(readers)

        wait_until(called)

    thread = threading.Thread(target=call)
    thread.start()
    return readers, thread


def test_a_simulated_training_is_served_where_it_was_served_before(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "taciturn" / f"watch-{(port := free_port())}.json"
    file.parent.mkdir()
    address = Address(port, new_token())
    address.keep(file)
    readers, calling = readers_of(address)
    words = "--dataset breast-cancer --mechanism none --scheme clear --epochs 30 --seed 1"
    assert run(["train", *words.split(), "--watch-port", str(port), "--json"]) == 0
    calling.join()
    (reader,) = readers
    wait_until(reader.over.is_set)
    shown = reader.sections
    assert shown["end"]["state"] == "done"
    assert shown["about"]["side"] == "both"
    assert ["epochs", "30"] in shown["about"]["facts"]
    assert shown["crossed"]["bytes_sent"] > 1000
    assert len(shown["curve"]) == 30
    assert shown["curve"][-1]["train_loss"] < shown["curve"][0]["train_loss"]
    # The session ends with the scores of held-out rows.
    assert shown["work"]["bars"][-1]["name"] == "row"
    assert dict(shown["account"]["entries"])["label epsilon"] == "infinite"
    # Standard error is no terminal here.
    assert address.url in capsys.readouterr().err


def test_whatever_runs_many_trainings_fills_a_table_and_says_how_it_ended(capsys):
    """What a study needs: one line around its work, and a table that grows."""
    with suppress(StateError), watched_bar("study", True, None, {"models": 48}) as meter:
        (url,) = re.findall(r"http://127\.0\.0\.1:(\d+)/([\w-]+)/", capsys.readouterr().err)
        reader = Reader(Address(int(url[0]), url[1]))
        meter.announce("model 1 of 48")
        meter.observe(Progress(1, 4))
        meter.publish(GrowingTable("Models so far", ("l2", "AUC"), ((0.1, 0.91),)))
        meter.say("one is done")
        wait_until(lambda: reader.sections.get("table"))
        raise StateError("something in a secret file")
    wait_until(reader.over.is_set)
    assert reader.sections["table"]["rows"] == [[0.1, 0.91]]
    # exact: the test's own value
    assert reader.sections["lines"][-1]["text"] == "one is done"
    end = reader.sections["end"]
    assert (end["state"], end["kind"], end["code"]) == ("failed", "StateError", 71)
    assert "secret" not in str(reader.events)


def test_the_address_is_said_with_and_without_a_terminal(monkeypatch, tmp_path, capsys):
    """A party's, which is kept in its state folder; with it the address of the next start."""
    config = PartyConfig.read(write_config(tmp_path, "alice"))
    file = tmp_path / "alice-state" / "watch.json"
    urls = []
    for _ in range(2):
        with watched_side("party", True, None, config) as meter:
            assert meter.watched
            kept = Address.kept(file)
            assert kept is not None
            urls.append(kept.url)
    assert urls[0] == urls[1]
    assert urls[0] in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with watched_side("align", True, None, config):
        pass
    assert urls[0] in capsys.readouterr().err


def test_without_the_option_there_is_no_page(tmp_path):
    config = PartyConfig.read(write_config(tmp_path, "bob"))
    with (
        watched_bar("train", False, None) as one,
        watched_side("party", False, None, config) as two,
    ):
        assert not one.watched
        assert not two.watched
    assert not Path(tmp_path / "bob-state").exists()
