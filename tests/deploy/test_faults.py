"""What docs/two_machines.md says of faults: how each side ends, and what it is told."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import stat
import struct
from pathlib import Path
from typing import Any

import pytest

from taciturn.deploy import VERSION, Party, PartyConfig, Vault, key_place, tellable
from taciturn.engine import VERSION as transcript_VERSION
from taciturn.engine import Callbacks, Transcript
from taciturn.errors import (
    ConnectionLost,
    OutputError,
    PeerAbsent,
    PeerSilent,
    PeerStopped,
    StateError,
    TaciturnError,
)
from taciturn.model import VERSION as share_VERSION
from taciturn.model import ModelShare
from tests.deploy.sides import MECHANISMS, run_both, write_config, write_tables
from tests.deploy.test_party import pulled_at, record
from tests.deploy.wires import Wire


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tables(tmp_path)
    for role in ("alice", "bob"):
        write_config(tmp_path, role, agreement=MECHANISMS["add"])
    return tmp_path


def stopped_midway(folder: Path, event: int = 30) -> None:
    run_both(folder, watch=pulled_at("bob", event))


def state(folder: Path, role: str) -> Path:
    return folder / f"{role}-state"


@pytest.mark.parametrize("role", ["alice", "bob"])
def test_a_lost_state_folder_is_noticed_by_both(folder, role):
    stopped_midway(folder)
    shutil.rmtree(state(folder, role))
    ends = run_both(folder)
    codes = {getattr(end, "exit_code", 0) for end in (ends.alice, ends.bob)}
    assert codes <= {71, 34}
    assert 71 in codes


@pytest.mark.parametrize("role", ["alice", "bob"])
def test_fresh_on_both_sides_mends_a_lost_state_folder(folder, role):
    stopped_midway(folder)
    shutil.rmtree(state(folder, role))
    run_both(folder, act=lambda party: party.run(fresh=True)).records  # noqa: B018
    shares = [ModelShare.load(folder / f"{side}.model.json") for side in ("alice", "bob")]
    assert shares[0].session == shares[1].session


@pytest.mark.parametrize("role", ["alice", "bob"])
def test_an_old_copy_of_the_state_is_refused(folder, role):
    stopped_midway(folder, 12)
    shutil.copytree(state(folder, role), folder / "old")
    stopped_midway(folder, 30)
    shutil.rmtree(state(folder, role))
    shutil.move(folder / "old", state(folder, role))
    ends = run_both(folder)
    refusals = [end for end in (ends.alice, ends.bob) if isinstance(end, StateError)]
    assert refusals
    assert any("old copy" in end.message for end in refusals)
    for end in (ends.alice, ends.bob):
        assert isinstance(end, StateError | PeerStopped)


def waited_in_vain(folder: Path, role: str, agreement: dict[str, Any]) -> None:
    """One side alone: it leaves a journal that has met nobody."""
    path = write_config(folder, role, agreement=agreement, link={"connect-seconds": 0.1})
    with pytest.raises(PeerAbsent):
        Party(PartyConfig.read(path), Wire().endpoint(serves=True), Callbacks()).run()
    write_config(folder, role, agreement=agreement)


def charged_sessions(folder: Path, role: str) -> list[str]:
    """The trainings that a side's budget has counted with its peer."""
    config = PartyConfig.read(folder / f"{role}.toml")
    if role == "bob":
        (account,) = json.loads(config.path(config.privacy.ledger).read_text())["accounts"]
        return list(account["sessions"])
    partners = json.loads(config.path(config.privacy.scores).read_text())["partners"]
    return list(partners["bob"]["sessions"])


@pytest.mark.parametrize("role", ["alice", "bob"])
@pytest.mark.parametrize("name", ["add", "sealed", "mutual"])
def test_a_copy_from_before_the_first_meeting_draws_anew_and_is_charged_again(folder, name, role):
    """Put back after a training, while the peer begins anew, it fits: it has met nobody."""
    for side in ("alice", "bob"):
        waited_in_vain(folder, side, MECHANISMS[name])
    shutil.copytree(state(folder, role), folder / "old")
    coins = []
    for fresh in (False, True):

        def act(party: Party, fresh: bool = fresh) -> Any:
            side = party.config.role
            return party.run(record=folder / f"{side}.transcript", fresh=fresh and side != role)

        run_both(folder, act=act).records  # noqa: B018
        coins.append(Transcript.load(folder / f"{role}.transcript").header["coins"][role])
        shutil.rmtree(state(folder, role))
        shutil.copytree(folder / "old", state(folder, role))
    assert coins[0] != coins[1]
    for side in ("alice", "bob"):
        assert len(set(charged_sessions(folder, side))) == 2, side


@pytest.mark.parametrize("role", ["alice", "bob"])
def test_what_may_change_between_two_starts_may(folder, role):
    stopped_midway(folder)
    changes: dict[str, dict[str, Any]] = {
        "output": {"model": "elsewhere.json", "log": f"{role}.second.log"},
        "link": {"answer-seconds": 33.0},
        "state": {"every-iterations": 9},
    }
    write_config(folder, role, agreement=MECHANISMS["add"], **changes)
    run_both(folder).records  # noqa: B018
    assert (folder / "elsewhere.json").exists()


def test_a_full_disk_ends_one_side_in_words_and_the_other_is_told_the_kind(folder, monkeypatch):
    append, calls = Vault.append, []

    def full(self: Vault, record: bytes) -> None:
        calls.append(record)
        if len(calls) > 60:
            raise OutputError("the party's state cannot be written: No space left on device")
        append(self, record)

    monkeypatch.setattr(Vault, "append", full)
    ends = run_both(folder)
    assert sorted(end.exit_code for end in (ends.alice, ends.bob)) in ([34, 74], [74, 74])
    monkeypatch.setattr(Vault, "append", append)
    run_both(folder).records  # noqa: B018 - goes on once there is room


def test_a_real_full_disk_is_one_of_those(tmp_path):
    """The kernel's own words for it become an OutputError."""
    from taciturn.deploy import reporting_write_errors

    with (
        pytest.raises(OutputError, match="No space left") as caught,
        reporting_write_errors(tmp_path),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert "nothing that was not stored has been sent" in caught.value.hint


def test_a_peer_that_does_not_come_and_one_that_is_silent(folder):
    config = PartyConfig.read(
        write_config(
            folder,
            "bob",
            agreement=MECHANISMS["add"],
            link={"connect-seconds": 0.1, "answer-seconds": 0.1},
        )
    )
    with pytest.raises(PeerAbsent) as absent:
        Party(config, Wire().endpoint(serves=True), Callbacks()).run()
    assert absent.value.exit_code == 43
    wire = Wire()
    nonce, nobody = b"a" * 16, bytes(16)
    opening = struct.pack("<BBB16s16sQ", 1, 1, 1, nonce, nobody, 0)
    wire.endpoint(serves=False).connect(1).send(opening)
    with pytest.raises(PeerSilent) as silent:
        Party(config, wire.endpoint(serves=True), Callbacks()).run()
    assert silent.value.exit_code == 41


@pytest.mark.parametrize(
    ("problem", "disclosed"),
    [
        (OutputError("the disk of secret-machine is full"), "it had an error of its own"),
        (StateError("the key in some place is wrong"), "its state does not fit the session"),
        (KeyboardInterrupt(), "it was interrupted"),
        (ZeroDivisionError("label 1"), "it was interrupted"),
        (ConnectionLost("at an inner address"), "it had an error of its own"),
    ],
)
def test_the_peer_is_told_the_kind_and_nothing_more(problem, disclosed):
    code, reason = tellable(problem)
    assert reason.startswith(disclosed)
    assert code == (problem.exit_code if isinstance(problem, TaciturnError) else 1)
    for word in str(getattr(problem, "message", problem)).split():
        assert len(word) < 5 or word not in reason.split() or word in disclosed.split()


def test_what_is_written_is_for_its_owner(folder):
    run_both(folder, act=record(folder)).records  # noqa: B018
    for name in ("bob.model.json", "bob.metrics.json", "bob.log", "bob.transcript"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600, name
    key, _ = key_place(PartyConfig.read(folder / "bob.toml"))
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "bob-state").stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "bob-state" / "journal").stat().st_mode) == 0o600


def test_a_log_that_others_could_read_is_closed_to_them(folder):
    for role in ("alice", "bob"):
        (folder / f"{role}.log").write_text("of an earlier version\n")
        (folder / f"{role}.log").chmod(0o644)
    run_both(folder).records  # noqa: B018
    for role in ("alice", "bob"):
        assert stat.S_IMODE((folder / f"{role}.log").stat().st_mode) == 0o600
        assert (folder / f"{role}.log").read_text().startswith("of an earlier version\n{")


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "two_machines.md").read_text("utf-8")


def test_the_page_names_every_figure_and_every_event(folder):
    for role in ("alice", "bob"):
        write_config(folder, role, agreement={**MECHANISMS["add"], "evaluate": "epoch"})
    stopped_midway(folder)
    run_both(folder).records  # noqa: B018
    run_both(folder).records  # noqa: B018
    for role in ("alice", "bob"):
        figures = json.loads((folder / f"{role}.metrics.json").read_text())
        for key in figures:
            assert f"`{key}`" in PAGE, key
        for line in (folder / f"{role}.log").read_text().splitlines():
            entry = json.loads(line)
            assert f"`{entry.pop('event')}`" in PAGE, line
            for key in entry.keys() - {"time", "role"}:
                assert f"`{key}`" in PAGE, key
    source = "".join(
        (Path(__file__).resolve().parents[2] / "src" / "taciturn" / name).read_text("utf-8")
        for name in (
            *("deploy/train.py", "deploy/session.py", "deploy/predict.py", "deploy/log.py"),
            *("deploy/study.py", "deploy/model_file.py"),
        )
    )
    events = re.findall(r"\b_?log\(\s*\"(.+?)\"", source)
    assert {"aborting", "session started", "rows scored"} <= set(events)
    for event in events:
        assert f"`{event}`" in PAGE, event


def test_the_page_has_the_versions_of_today():
    from taciturn.deploy.transport import VERSION as WIRE
    from taciturn.protocol import PROTOCOL_VERSION

    for name, version in (
        ("wire", WIRE),
        ("session", VERSION),
        ("protocol", PROTOCOL_VERSION),
        ("journal", VERSION),
        ("model file", share_VERSION),
        ("transcript", transcript_VERSION),
    ):
        # A version, and in words when it is looked at: the other tables count.
        pattern = rf"\| {name}( \([^)]*\))? \| \d+ \| [a-z]"
        (row,) = [line for line in PAGE.splitlines() if re.match(pattern, line)]
        assert f"| {version} |" in row
