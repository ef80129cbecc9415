"""The life of a party: begun, stopped, resumed, run anew, refused; what it writes, and where."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from taciturn.engine.callbacks import Callbacks
from taciturn.engine.transcript import Transcript
from taciturn.errors import (
    AgreementError,
    BudgetExceeded,
    ConnectionLost,
    DivergenceError,
    FileError,
    OutputError,
    PeerAbsent,
    PeerStopped,
    StateError,
    TaciturnError,
)
from taciturn.jobs.train.job import TrainJob, TrainSide
from taciturn.jobs.train.report import party_blocks
from taciturn.model.archive import listed_models
from taciturn.model.share import ModelShare
from taciturn.numerics.logistic import log_loss
from taciturn.party.config import PartyConfig
from taciturn.party.consent.label_budget import LabelBudget
from taciturn.party.consent.score_budget import ScoreBudget
from taciturn.party.encrypted_log import KEY_BYTES, records
from taciturn.party.link import VERSION
from taciturn.party.log import Log
from taciturn.party.session import tellable
from taciturn.party.state_store import key_place
from taciturn.party.used_paths import default_key_file
from taciturn.protocol.events import Event, Progress
from taciturn.protocol.handshake import PeerTable
from taciturn.transport.limits import VERSION as WIRE_VERSION
from taciturn.version import (
    CONSENT_VERSION,
    JOURNAL_VERSION,
    MODEL_VERSION,
    PROTOCOL_VERSION,
    TRANSCRIPT_VERSION,
)
from tests.expected import refused
from tests.modules import module_of
from tests.party.sides import (
    MECHANISMS,
    NEWTON,
    ROLES,
    Party,
    alone,
    in_one_process,
    pulled_at,
    record,
    run_both,
    set_up,
    weights,
    write_config,
    write_tables,
)
from tests.party.wires import Wire
from tests.report.test_terminal import shown

# Of an epoch: 120 rows less those that are held out, by eights.
BATCHES = 11
SEALED: dict[str, Any] = {**NEWTON, "mechanism": "sealed"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Both parties' tables, and files that agree on noise added to the residues."""
    write_tables(tmp_path)
    set_up(tmp_path, **MECHANISMS["add"])
    return tmp_path


def stopped_midway(folder: Path, event: int = 30) -> None:
    run_both(folder, watch=pulled_at("bob", event))


def anew(party: Party) -> Any:
    return party.run(fresh=True)


def dry_run(party: Party) -> Any:
    return party.dry_run()


# --- run again ------------------------------------------------------------------------------------


def test_a_finished_party_only_confirms_when_it_is_run_again(folder):
    first = run_both(folder).records
    written = (folder / "bob.model.json").read_bytes()
    again = run_both(folder).records
    assert again[1]["metrics"] == first[1]["metrics"]
    assert (folder / "bob.model.json").read_bytes() == written


def test_fresh_begins_anew_with_other_coins(folder):
    run_both(folder).records  # noqa: B018
    before = weights(folder, "alice").tolist()
    earlier = {role: (folder / f"{role}.model.json").read_bytes() for role in ROLES}
    run_both(folder, act=anew).records  # noqa: B018
    assert weights(folder, "alice").tolist() != before
    for role, content in earlier.items():
        newest, kept = listed_models(folder / f"{role}.model.json").models
        assert newest.session != kept.session
        assert Path(kept.file).read_bytes() == content


@pytest.mark.parametrize("role", ROLES)
def test_a_lost_state_folder_is_noticed_and_mended_by_beginning_anew_on_both_sides(folder, role):
    stopped_midway(folder)
    shutil.rmtree(folder / f"{role}-state")
    ends = run_both(folder)
    codes = {getattr(end, "exit_code", 0) for end in (ends.alice, ends.bob)}
    assert {StateError.exit_code} <= codes <= {StateError.exit_code, PeerStopped.exit_code}
    run_both(folder, act=anew).records  # noqa: B018 - raises where a side failed
    shares = [ModelShare.load(folder / f"{side}.model.json") for side in ROLES]
    assert shares[0].session == shares[1].session


def waited_in_vain(folder: Path, role: str, agreement: dict[str, Any]) -> None:
    """One side alone: it leaves a journal that has met nobody."""
    path = write_config(folder, role, agreement=agreement, link={"connect-seconds": 0.1})
    with pytest.raises(PeerAbsent):
        Party(PartyConfig.read(path), Wire().endpoint(serves=True), Callbacks()).run()
    write_config(folder, role, agreement=agreement)


def charged_sessions(folder: Path, role: str) -> list[str]:
    """The trainings that a side's budget has counted with its peer."""
    config = PartyConfig.read(folder / f"{role}.toml")
    kind = ScoreBudget if role == "alice" else LabelBudget
    return list(kind.from_config(config).sessions())


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    "agreed",
    [
        {**MECHANISMS["add"], "epochs": 1},
        {**SEALED, "passes": 2},
        pytest.param({**SEALED, "mechanism": "mutual", "passes": 2}, marks=pytest.mark.slow),
    ],
    ids=["add", "sealed", "mutual"],
)
def test_a_copy_from_before_the_first_meeting_draws_anew_and_is_charged_again(folder, agreed, role):
    """Put back after a training, while the peer begins anew, it fits: it has met nobody."""
    for side in ROLES:
        waited_in_vain(folder, side, agreed)
    shutil.copytree(folder / f"{role}-state", folder / "old")
    entropy = []
    for fresh in (False, True):

        def act(party: Party, fresh: bool = fresh) -> Any:
            side = party.config.role
            return party.run(record=folder / f"{side}.transcript", fresh=fresh and side != role)

        run_both(folder, act=act).records  # noqa: B018
        entropy.append(Transcript.load(folder / f"{role}.transcript").header["coins"][role])
        shutil.rmtree(folder / f"{role}-state")
        shutil.copytree(folder / "old", folder / f"{role}-state")
    assert entropy[0] != entropy[1]
    for side in ROLES:
        assert len(set(charged_sessions(folder, side))) == 2, side


@pytest.mark.parametrize("role", ROLES)
def test_what_may_change_between_two_starts_may(folder, role):
    stopped_midway(folder)
    changes: dict[str, dict[str, Any]] = {
        "output": {"model": "elsewhere.json", "log": f"{role}.second.log"},
        "link": {"answer-seconds": 33.0},
        "state": {"checkpoint-iterations": 9},
    }
    write_config(folder, role, agreement=MECHANISMS["add"], **changes)
    run_both(folder).records  # noqa: B018
    assert (folder / "elsewhere.json").exists()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"agreement": {"mechanism": "add", "epsilon": 2.0, "epochs": 3}}, ("epochs", 3)),
        ({"agreement": {"mechanism": "none"}}, ("mechanism", "add", "none")),
        ({"data": {"clip": 2.0}}, "table"),
        ({"privacy": {"budget": 50.0}}, "limits"),
    ],
)
def test_what_changed_since_the_session_began_is_named(folder, change, named):
    stopped_midway(folder)
    write_config(folder, "bob", **{"agreement": MECHANISMS["add"], **change})
    with refused(StateError, names=named):
        alone(folder, "bob").run()


@pytest.mark.parametrize(("change", "named"), [("labels", "labels"), ("boot", "machine")])
def test_a_session_does_not_resume_on_other_labels_or_after_the_machine(
    folder, change, named, monkeypatch
):
    """The same noise on other labels would tell them; without sync a stop loses what was sent."""
    stopped_midway(folder)
    if change == "labels":
        table = pl.read_csv(folder / "bob.csv")
        table.with_columns(sick=1 - table["sick"]).write_csv(folder / "bob.csv")
    else:
        monkeypatch.setattr(module_of(TrainSide), "boot", lambda: "another start")
    write_config(folder, "bob", agreement=MECHANISMS["add"], link={"connect-seconds": 0.1})
    with refused(StateError, names=named):
        alone(folder, "bob").run()


# --- two sides that do not fit --------------------------------------------------------------------


@pytest.mark.parametrize("act", [Party.run, dry_run])
def test_settings_that_differ_are_named_key_by_key_on_both_sides(folder, act):
    write_config(folder, "alice", agreement={"mechanism": "none", "epochs": 3})
    differs = {"learning-rate": 0.5, "class-weight": [1.0, 0.25]}
    write_config(folder, "bob", agreement={"mechanism": "none", **differs})
    ends = run_both(folder, act=act)
    for end in (ends.alice, ends.bob):
        assert isinstance(end, AgreementError)
        for name in ("epochs", "learning-rate", "class-weight"):
            assert f"{name}: " in end.message


@pytest.mark.parametrize("act", [Party.run, dry_run])
@pytest.mark.parametrize(
    ("setting", "value"), [("held-out", 0.5), ("held-out", 0.0), ("split-seed", "another")]
)
def test_a_setting_that_decides_the_rows_is_named_and_not_their_number(folder, act, setting, value):
    for role, more in (("alice", {setting: value}), ("bob", {})):
        write_config(folder, role, agreement={"mechanism": "sealed", **more})
    ends = run_both(folder, act=act)
    for end in (ends.alice, ends.bob):
        assert isinstance(end, AgreementError)
        assert f"{setting}: " in end.message
        assert "rows" not in end.message


@pytest.mark.parametrize("act", [Party.run, dry_run])
def test_a_side_whose_table_cannot_be_read_tells_the_peer(folder, act):
    (folder / "bob.csv").unlink()
    ends = run_both(folder, act=act)
    assert isinstance(ends.bob, FileError)
    assert isinstance(ends.alice, PeerStopped)
    assert ends.alice.code == 0
    # Nothing was begun that a later run would resume.
    assert not (folder / "bob-state" / "journal").exists()


def test_a_dry_run_says_what_would_happen_and_its_lines_hold_both_sides_to_their_sizes(folder):
    set_up(folder, **MECHANISMS["none"])
    alice, bob = run_both(folder, act=dry_run).records
    assert alice["estimate"]["iterations"] == 2 * BATCHES
    assert bob["estimate"] is None
    assert (alice["peer_columns"], bob["peer_columns"]) == (4, 6)
    assert alice["agreement"] == bob["agreement"] == {"alice-columns": 6, "rows": bob["rows"]}
    assert not (folder / "bob-state").exists()
    assert not (folder / "bob.model.json").exists()
    set_up(folder, **MECHANISMS["none"], **bob["agreement"])
    _, again = run_both(folder).records
    assert again["rows"] == bob["rows"]


@pytest.mark.parametrize("act", [Party.run, dry_run])
def test_bob_refuses_other_columns_than_were_agreed_on(folder, act):
    write_config(folder, "alice", agreement=SEALED)
    write_config(folder, "bob", agreement={**SEALED, "alice-columns": 5})
    ends = run_both(folder, act=act)
    assert isinstance(ends.bob, AgreementError)
    assert {"alice-columns", "5", "6"} <= set(ends.bob.message.replace(",", "").split())


def test_without_an_agreement_bob_accepts_a_thousand_columns_and_says_so(folder):
    set_up(folder, **SEALED)
    said: list[str] = []
    config = PartyConfig.read(folder / "bob.toml")
    side = TrainJob().prepare(config)
    side.begin(Log.from_config(config, said.append), Callbacks())
    assert any("1,000" in note for note in said)
    assert side.plan.peer_table == PeerTable(None, 1000)


# --- how a training ends --------------------------------------------------------------------------


@pytest.mark.parametrize("event", [20, 45])
def test_the_training_loss_of_each_epoch_is_kept_through_a_stop(folder, event):
    run_both(folder, act=record(folder), watch=pulled_at("bob", event))
    _, bob = run_both(folder, act=record(folder)).records
    assert bob["metrics"]["curve"][0].keys() == {"iteration", "train_loss"}
    party = alone(folder, "bob").prepared()
    assert party.tables.labels is not None
    labels = party.tables.labels.values
    losses: list[float] = []

    def note(event: Event) -> None:
        if isinstance(event, Progress):
            losses.append(log_loss(event.scores, labels[event.rows]))

    in_one_process(folder, note)
    reported = [point["train_loss"] for point in bob["metrics"]["curve"]]
    assert reported == [float(np.mean(losses[:BATCHES])), float(np.mean(losses[BATCHES:]))]


def test_suspected_wraps_reach_bob_and_nobody_else(folder):
    set_up(folder, **MECHANISMS["sealed"])
    ends = run_both(folder)
    alice, bob = ends.records
    assert bob["suspected_wraps"] == 0
    assert "suspected_wraps" not in alice
    some = replace(ends.bob, suspected_wraps=4321)
    assert "4,321" in shown(party_blocks(some))
    assert "4,321" not in shown(party_blocks(ends.bob))


def test_a_diverging_training_ends_in_words_on_both_sides(folder):
    set_up(folder, **{**MECHANISMS["add"], "learning-rate": 1.7e308})
    ends = run_both(folder)
    for end in (ends.alice, ends.bob):
        assert isinstance(end, TaciturnError)
    assert DivergenceError in {type(ends.alice), type(ends.bob)}


PLACE = "of an inner-machine"


@pytest.mark.parametrize(
    "problem",
    [
        OutputError(f"the disk {PLACE}"),
        StateError(f"the key {PLACE}"),
        ConnectionLost(f"the address {PLACE}"),
        ZeroDivisionError(PLACE),
        BudgetExceeded(PLACE),
    ],
)
@pytest.mark.parametrize("begun", [False, True])
def test_the_peer_is_told_neither_the_reason_nor_its_kind(problem, begun):
    same = tellable(ValueError(), "bob", begun=begun)
    assert tellable(problem, "bob", begun=begun) == same


def test_the_peer_is_told_of_an_interrupt_and_of_what_its_own_messages_show():
    assert tellable(KeyboardInterrupt(PLACE), "bob")[0] == 1
    assert tellable(AgreementError("l2 differs"), "bob") == (AgreementError.exit_code, "l2 differs")


# --- what is written ------------------------------------------------------------------------------


def test_a_new_state_key_is_not_made_beside_the_state_folder_which_only_it_opens(folder):
    stopped_midway(folder)
    keys = {role: key_place(PartyConfig.read(folder / f"{role}.toml"))[0] for role in ROLES}
    assert keys["alice"] != keys["bob"]
    for path in keys.values():
        assert path.is_file()
        assert folder not in path.parents
        assert path.parent.name == "taciturn"
    assert not list(folder.rglob("*.state.key"))
    journal = (folder / "bob-state" / "journal").read_bytes()
    assert b"weights" not in journal
    assert b"TACT" not in journal


def test_a_state_key_at_its_former_place_is_used_with_a_warning(folder):
    key = "5e" * KEY_BYTES
    (folder / "bob.state.key").write_text(key)
    (folder / "bob.state.key").chmod(0o600)
    said: list[str] = []
    run_both(folder, watch={"bob": Callbacks(said.append)}).records  # noqa: B018
    assert [line for line in said if str(folder / "bob.state.key") in line]
    assert not default_key_file(PartyConfig.read(folder / "bob.toml")).exists()
    # The journal is that key's.
    assert list(records(folder / "bob-state" / "journal", bytes.fromhex(key)))


@pytest.mark.parametrize("key", ["00" * KEY_BYTES, "no hex"])
def test_a_lost_or_wrong_state_key_is_named(folder, key):
    stopped_midway(folder)
    path, warnings = key_place(PartyConfig.read(folder / "bob.toml"))
    assert not warnings
    path.write_text(key)
    with refused(StateError) as caught:
        alone(folder, "bob").run()
    assert caught.value.where in (str(path), str(folder / "bob-state" / "journal"))


PAGES = Path(__file__).resolve().parents[2] / "docs" / "how-to"
TWO_MACHINES = (PAGES / "two-machines.md").read_text("utf-8")


def test_the_page_has_the_versions_of_today():
    for name, version in (
        ("wire", WIRE_VERSION),
        ("session", VERSION),
        ("protocol", PROTOCOL_VERSION),
        ("journal", JOURNAL_VERSION),
        ("model file", MODEL_VERSION),
        ("consent store", CONSENT_VERSION),
        ("transcript", TRANSCRIPT_VERSION),
    ):
        # A version, and in words when it is looked at: the other tables count.
        pattern = rf"\| {name}( \([^)]*\))? \| \d+ \| [a-z]"
        (row,) = [line for line in TWO_MACHINES.splitlines() if re.match(pattern, line)]
        assert f"| {version} |" in row
