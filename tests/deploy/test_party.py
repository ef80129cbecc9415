"""Two parties over a wire in memory: they train as one process would, whatever stops them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.deploy import KEY_BYTES, Party, PartyConfig, Vault, key_place

# private: where a key would be if the file did not name a place
from taciturn.deploy.keep import _usual_place
from taciturn.engine import Callbacks, Transcript
from taciturn.errors import AgreementError, PeerStopped, StateError, TaciturnError
from taciturn.model import ModelShare, listed_models, whole_model
from taciturn.numerics import auc, log_loss
from taciturn.protocol import (
    Boundary,
    EpochScores,
    Event,
    PartialScores,
    PeerTable,
    Progress,
    decode,
    kind_of,
)
from taciturn.report import party_blocks
from tests.deploy.sides import (
    MECHANISMS,
    in_one_process,
    model_numbers,
    numbers_in_one_process,
    run_both,
    weights,
    write_config,
    write_tables,
)
from tests.deploy.wires import Wire
from tests.modules import module_of
from tests.report.test_terminal import shown
from tests.seldom import seldom
from tests.waiting import HANG

# Of an epoch: 120 rows less those that are held out, by eights.
BATCHES = 11


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tables(tmp_path)
    return tmp_path


def set_up(folder: Path, **agreement: Any) -> None:
    for role in ("alice", "bob"):
        write_config(folder, role, agreement=agreement)


def party_alone(folder: Path, role: str) -> Party:
    config = PartyConfig.read(folder / f"{role}.toml")
    return Party(config, Wire().endpoint(serves=True), Callbacks())


def bob_alone(folder: Path) -> Party:
    return party_alone(folder, "bob")


def record(folder: Path) -> Callable[[Party], Any]:
    return lambda party: party.run(record=folder / f"{party.config.role}.transcript")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_weights_are_those_of_one_process_fed_the_same_coins(folder, name):
    set_up(folder, **MECHANISMS[name])
    alice, bob = run_both(folder, act=record(folder)).records
    assert alice["peer_confirmed"]
    assert bob["peer_confirmed"]
    numbers, ledger = numbers_in_one_process(folder)
    assert model_numbers(folder) == numbers
    assert bob["ledger"] == ledger
    assert alice["ledger"] == {}
    assert alice["metrics"] == {}
    require_held_out_auc(folder, bob["metrics"]["held_out"]["auc"])
    if name == "none":  # fresh noise may make any model of so few rows
        assert bob["metrics"]["held_out"]["auc"] > 0.5
    shares = [ModelShare.load(folder / f"{role}.model.json") for role in ("alice", "bob")]
    assert shares[0].session == shares[1].session


def require_held_out_auc(folder: Path, reported: float) -> None:
    """The figure is that of the whole model on the rows that were held out.

    Sealed scores are rounded, so that two rows of nearly the same score may change places.
    """
    shares = [ModelShare.load(folder / f"{role}.model.json") for role in ("alice", "bob")]
    model = whole_model(*shares)
    his = party_alone(folder, "bob").tables
    hers = party_alone(folder, "alice").tables
    assert his.held_out is not None
    assert hers.held_out is not None
    assert his.held_out_labels is not None
    scores = (
        hers.held_out.values @ model.alices[0].weights + his.held_out.values @ model.bob.weights
    )
    labels = his.held_out_labels.values
    ones = int(labels.sum())
    assert abs(reported - auc(scores, labels)) < 1.5 / (ones * (len(labels) - ones))


@pytest.mark.slow  # some seconds
@pytest.mark.parametrize("name", seldom(["none", "sealed"], always=["sealed"]))
def test_class_weights_are_agreed_on_and_used(folder, name):
    agreed = {**MECHANISMS[name], "class-weight": [1.0, 0.125]}
    set_up(folder, **agreed)
    run_both(folder, act=record(folder)).records  # noqa: B018 - raises where a side failed
    assert weights(folder, "bob").tolist() == in_one_process(folder)[1]
    # Next to nothing speaks for label 1, so that the intercept, Bob's last weight, falls.
    assert weights(folder, "bob")[-1] < -0.1
    write_config(folder, "alice", agreement={**agreed, "class-weight": [1.0, 0.25]})
    ends = run_both(folder, act=lambda party: party.run(fresh=True))
    assert any("class_weight" in str(end) for end in (ends.alice, ends.bob))


def test_both_transcripts_hold_the_same_frames(folder):
    set_up(folder, **MECHANISMS["add"])
    run_both(folder, act=record(folder)).records  # noqa: B018 - raises where a side failed
    one, two = (Transcript.load(folder / f"{role}.transcript") for role in ("alice", "bob"))
    assert sorted(one.records) == sorted(two.records)
    assert list(one.header["coins"]) == ["alice"]
    assert list(two.header["coins"]) == ["bob"]


@pytest.mark.parametrize("every", [7, 11, 26])
@pytest.mark.sampled(1)
def test_a_wire_that_keeps_breaking_changes_nothing(folder, every, monkeypatch):
    """Where the last word is cut off, the side that misses it waits for a while, and gives up."""
    monkeypatch.setattr(module_of(Party), "LINGER_SECONDS", 3.0)
    set_up(folder, **MECHANISMS["mult"])
    wire = Wire(lambda number: number % every == 0)
    run_both(folder, wire, act=record(folder)).records  # noqa: B018
    assert wire.links > 2
    assert weights(folder, "alice").tolist() == in_one_process(folder)[0]


class Pulled(BaseException):
    """The plug is pulled: nothing on this side catches it."""


def pulled_at(role: str, count: int) -> dict[str, Callbacks]:
    """Stops a side inside its count-th event."""
    seen = {"events": 0}

    def observe(event: Event) -> None:
        seen["events"] += 1
        if seen["events"] == count:
            raise Pulled

    return {role: Callbacks(observe=observe)}


# At the first event, between two checkpoints and late; each with either side.
STOPS = [(1, "alice"), (3, "bob"), (14, "alice"), (23, "bob")]
MORE_STOPS = [(1, "bob"), (3, "alice"), (14, "bob"), (23, "alice"), (40, "alice"), (40, "bob")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", seldom(["none", "add", "hybrid"], always=["hybrid"]))
@pytest.mark.parametrize(
    ("event", "role"),
    [*STOPS, *(pytest.param(*stop, marks=pytest.mark.slow) for stop in MORE_STOPS)],
)
def test_a_side_that_is_stopped_goes_on_to_the_same_weights(folder, name, role, event):
    set_up(folder, **MECHANISMS[name])
    ends = run_both(folder, act=record(folder), watch=pulled_at(role, event))
    stopped, other = (ends.alice, ends.bob) if role == "alice" else (ends.bob, ends.alice)
    assert isinstance(stopped, Pulled)
    assert isinstance(other, PeerStopped)
    assert "interrupted" in other.message
    _, bob = run_both(folder, act=record(folder)).records
    numbers, ledger = numbers_in_one_process(folder)
    assert model_numbers(folder) == numbers
    assert bob["ledger"] == ledger


def test_checkpoints_bound_what_is_played_back(folder):
    """With one every five iterations no more than five are run again after a stop."""
    set_up(folder, **MECHANISMS["add"])
    # Three events an iteration.
    run_both(folder, watch=pulled_at("bob", 67))
    done: list[int] = []

    def observe(event: Event) -> None:
        if isinstance(event, Progress):
            done.append(event.done)

    run_both(folder, watch={"bob": Callbacks(observe=observe)}).records  # noqa: B018
    assert done[0] > 22 - 5
    assert done[-1] == 2 * BATCHES


def test_a_finished_party_only_confirms_when_it_is_run_again(folder):
    set_up(folder, **MECHANISMS["add"])
    first = run_both(folder).records
    written = (folder / "bob.model.json").read_bytes()
    again = run_both(folder).records
    assert again[1]["metrics"] == first[1]["metrics"]
    assert (folder / "bob.model.json").read_bytes() == written


def test_fresh_begins_anew_with_other_coins(folder):
    set_up(folder, **MECHANISMS["add"])
    run_both(folder).records  # noqa: B018
    before = weights(folder, "alice").tolist()
    earlier = {role: (folder / f"{role}.model.json").read_bytes() for role in ("alice", "bob")}
    run_both(folder, act=lambda party: party.run(fresh=True)).records  # noqa: B018
    assert weights(folder, "alice").tolist() != before
    for role, content in earlier.items():
        newest, kept = listed_models(folder / f"{role}.model.json").models
        assert newest.session != kept.session
        assert Path(kept.file).read_bytes() == content
        assert '"event": "earlier model kept"' in (folder / f"{role}.log").read_text()


@pytest.mark.slow  # seconds, and others show most of it on less
def test_flipped_labels_outlive_a_training(folder):
    """A second training asks the book: nothing is drawn, and nothing is spent again."""
    set_up(folder, **MECHANISMS["label-rr"])
    _, first = run_both(folder).records
    book = (folder / "bob.flips.json").read_bytes()
    _, second = run_both(folder, act=lambda party: party.run(fresh=True)).records
    assert (folder / "bob.flips.json").read_bytes() == book
    assert first["ledger"] == second["ledger"]
    assert first["ledger"]["label_epsilon_total"] == 2.0


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_fresh_on_one_side_alone_is_refused_on_both(folder, who):
    set_up(folder, **MECHANISMS["add"])
    run_both(folder, watch=pulled_at("bob", 30))
    ends = run_both(folder, act=lambda party: party.run(fresh=party.config.role == who))
    for end in (ends.alice, ends.bob):
        assert isinstance(end, StateError | PeerStopped)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"agreement": {"mechanism": "add", "epsilon": 2.0, "epochs": 3}}, "terms"),
        ({"data": {"clip": 2.0}}, "table"),
        ({"privacy": {"budget": 50.0}}, "limits"),
    ],
)
def test_what_changed_since_the_session_began_is_named(folder, change, named):
    set_up(folder, **MECHANISMS["add"])
    run_both(folder, watch=pulled_at("bob", 30))
    write_config(folder, "bob", **{"agreement": MECHANISMS["add"], **change})
    with pytest.raises(StateError, match=named):
        bob_alone(folder).run()


def test_one_state_folder_serves_one_process(folder):
    set_up(folder, **MECHANISMS["add"])
    config = PartyConfig.read(folder / "bob.toml")
    started, release = threading.Event(), threading.Event()
    written: list[str] = []

    def hold(event: Event) -> None:
        started.set()
        release.wait(HANG)

    def second() -> None:
        started.wait(HANG)
        party = Party(config, Wire().endpoint(serves=True), Callbacks())
        try:
            with pytest.raises(StateError, match="another process is using"):
                party.run()
            written.append((folder / "bob.metrics.prom").read_text())
        finally:
            release.set()

    thread = threading.Thread(target=second)
    thread.start()
    run_both(folder, watch={"bob": Callbacks(observe=hold)}).records  # noqa: B018
    thread.join(HANG)
    # The files that tell how it goes are the first one's, which runs.
    assert "taciturn_exit_code" not in written[0]


# --- two sides that do not fit -------------------------------------------------------------------


@pytest.mark.parametrize("act", [lambda party: party.run(), lambda party: party.dry_run()])
def test_settings_that_differ_are_named_key_by_key_on_both_sides(folder, act):
    write_config(folder, "alice", agreement={**MECHANISMS["add"], "epochs": 3})
    write_config(folder, "bob", agreement={**MECHANISMS["add"], "learning-rate": 0.5})
    ends = run_both(folder, act=act)
    for end in (ends.alice, ends.bob):
        assert isinstance(end, AgreementError)
        assert "epochs: " in end.message
        assert "learning_rate: " in end.message


def test_rows_that_differ_are_said_before_any_work(folder):
    set_up(folder)
    lines = (folder / "bob.csv").read_text().splitlines()
    (folder / "bob.csv").write_text("\n".join(lines[:-7]) + "\n")
    ends = run_both(folder)
    for end in (ends.alice, ends.bob):
        assert isinstance(end, AgreementError)
        assert "align" in end.hint


def test_a_dry_run_says_what_would_happen_and_leaves_nothing(folder):
    set_up(folder, **MECHANISMS["none"])
    alice, bob = run_both(folder, act=lambda party: party.dry_run()).records
    assert alice["estimate"]["iterations"] == 2 * BATCHES
    assert bob["estimate"] is None
    assert (alice["peer_columns"], bob["peer_columns"]) == (4, 6)
    assert alice["agreement"] == bob["agreement"] == {"alice-columns": 6, "rows": bob["rows"]}
    assert not (folder / "bob-state").exists()
    assert not (folder / "bob.model.json").exists()


def test_the_lines_of_a_dry_run_hold_both_sides_to_their_sizes(folder):
    set_up(folder, **MECHANISMS["sealed"])
    _, bob = run_both(folder, act=lambda party: party.dry_run()).records
    set_up(folder, **{**MECHANISMS["sealed"], **bob["agreement"]})
    _, again = run_both(folder).records
    assert again["rows"] == bob["rows"]


@pytest.mark.parametrize("act", [lambda party: party.run(), lambda party: party.dry_run()])
def test_bob_refuses_other_columns_than_were_agreed_on(folder, act):
    write_config(folder, "alice", agreement=MECHANISMS["sealed"])
    write_config(folder, "bob", agreement={**MECHANISMS["sealed"], "alice-columns": 5})
    ends = run_both(folder, act=act)
    assert isinstance(ends.bob, AgreementError)
    assert ends.bob.message == "alice-columns is 5, and the peer's table has 6"


def test_without_an_agreement_bob_accepts_a_thousand_columns_and_says_so(folder):
    set_up(folder, **MECHANISMS["sealed"])
    said: list[str] = []
    config = PartyConfig.read(folder / "bob.toml")
    party = Party(config, Wire().endpoint(serves=True), Callbacks(announce=said.append))
    assert any("up to 1,000 columns are accepted" in note for note in said)
    assert party.peer_table == PeerTable(None, 1000)


def test_answers_leave_at_their_steps(folder):
    """Every one of Bob's frames but the first waits for a whole step at least."""
    write_config(folder, "alice", agreement=MECHANISMS["sealed"])
    pace = {"answer-milliseconds": 20}
    write_config(folder, "bob", agreement=MECHANISMS["sealed"], privacy=pace)
    start = time.monotonic()
    _, bob = run_both(folder).records
    assert time.monotonic() - start > bob["run"]["iterations"] * 0.020


def test_a_budget_ends_the_training_on_both_sides(folder):
    write_config(folder, "alice", agreement=MECHANISMS["add"])
    write_config(folder, "bob", agreement=MECHANISMS["add"], privacy={"budget": 1.0})
    alice, bob = run_both(folder).records
    assert bob["stopped"] == "the privacy budget is spent"
    assert alice["stopped"] == "the peer ended the training"
    assert bob["ledger"]["label_epsilon_total"] == 1.0
    # The iteration whose release was not paid for is no one's.
    assert alice["run"]["iterations"] == bob["run"]["iterations"] == BATCHES


def test_early_stopping_is_bobs_and_the_ledger_says_what_it_costs(folder):
    set_up(folder, **MECHANISMS["add"], evaluate="epoch", patience=1, epochs=30)
    alice, bob = run_both(folder).records
    assert bob["stopped"] == "the held-out loss has stopped falling"
    assert alice["stopped"] == "the peer ended the training"
    assert alice["run"]["iterations"] == bob["run"]["iterations"]
    assert bob["ledger"]["label_epsilon_total"] == "inf"
    assert len(bob["metrics"]["curve"]) < 30


def test_the_curve_over_epochs_is_whole_after_a_stop(folder):
    set_up(folder, **MECHANISMS["add"], evaluate="epoch")
    run_both(folder, watch=pulled_at("bob", 48))
    _, bob = run_both(folder).records
    assert [point["iteration"] for point in bob["metrics"]["curve"]] == [BATCHES, 2 * BATCHES]
    for point in bob["metrics"]["curve"]:
        assert {"train_loss", "held_out_loss", "held_out_auc"} < point.keys()


# --- what is written -----------------------------------------------------------------------------


def test_logs_and_figures_hold_no_secret(folder):
    set_up(folder, **MECHANISMS["add"])
    run_both(folder, act=record(folder)).records  # noqa: B018
    coins = [
        Transcript.load(folder / f"{role}.transcript").header["coins"][role]
        for role in ("alice", "bob")
    ]
    shown = "".join(
        (folder / name).read_text()
        for name in ("alice.log", "bob.log", "alice.metrics.json", "bob.metrics.json")
    )
    assert "session started" in shown
    for secret in (*coins, "p0001", str(weights(folder, "alice")[0])):
        assert secret not in shown
    for role in ("alice", "bob"):
        figures = json.loads((folder / f"{role}.metrics.json").read_text())
        assert figures["iterations"] == figures["iterations_total"] == 2 * BATCHES
    assert figures["loss_recent"] > 0
    assert figures["bytes_sent"] > 0
    assert figures["waiting_seconds"] >= 0
    assert "loss_recent" not in json.loads((folder / "alice.metrics.json").read_text())


@pytest.mark.parametrize("event", [20, 45])
def test_the_training_loss_of_each_epoch_is_kept_through_a_stop(folder, event):
    set_up(folder, **MECHANISMS["add"])
    run_both(folder, act=record(folder), watch=pulled_at("bob", event))
    _, bob = run_both(folder, act=record(folder)).records
    assert bob["metrics"]["curve"][0].keys() == {"iteration", "train_loss"}
    party = bob_alone(folder)
    assert party.tables.labels is not None
    labels = party.tables.labels.values
    losses: list[float] = []

    def note(event: Event) -> None:
        if isinstance(event, Progress):
            losses.append(log_loss(event.scores, labels[event.rows]))

    in_one_process(folder, note)
    reported = [point["train_loss"] for point in bob["metrics"]["curve"]]
    assert reported == [float(np.mean(losses[:BATCHES])), float(np.mean(losses[BATCHES:]))]


@pytest.mark.parametrize(
    "name", seldom(["none", "add", "mult", "label-rr", "hybrid"], always=["none", "label-rr"])
)
@pytest.mark.sampled(1)
def test_scores_in_clear_are_at_their_public_scale(folder, name):
    """In training, at the end of an epoch and of the training: never a float in full."""
    set_up(folder, **MECHANISMS[name] | {"residue-bits": 14, "evaluate": "epoch"})
    run_both(folder, act=record(folder)).records  # noqa: B018
    frames = Transcript.load(folder / "bob.transcript").frames("alice")
    sent = [decode(frame) for frame in frames if kind_of(frame) in (PartialScores, EpochScores)]
    assert {type(message) for message in sent} == {PartialScores, EpochScores}
    scores = np.concatenate([getattr(message, "scores") for message in sent])  # noqa: B009
    assert len(scores) > 200
    units = scores * 2.0**14
    assert np.array_equal(units, np.rint(units))
    assert not np.signbit(scores[scores == 0]).any()
    assert len(np.unique(scores)) > 50


def test_what_lies_in_the_state_folder_is_not_readable(folder):
    set_up(folder, **MECHANISMS["none"])
    run_both(folder, watch=pulled_at("bob", 30))
    journal = (folder / "bob-state" / "journal").read_bytes()
    assert b"weights" not in journal
    assert b"TACT" not in journal
    assert bobs_key(folder).stat().st_mode & 0o777 == 0o600


def bobs_key(folder: Path) -> Path:
    path, warnings = key_place(PartyConfig.read(folder / "bob.toml"))
    assert not warnings
    return path


def test_a_new_state_key_is_not_made_beside_the_state_folder(folder):
    set_up(folder, **MECHANISMS["none"])
    run_both(folder).records  # noqa: B018
    keys = {
        role: key_place(PartyConfig.read(folder / f"{role}.toml"))[0] for role in ("alice", "bob")
    }
    assert keys["alice"] != keys["bob"]
    for path in keys.values():
        assert path.is_file()
        assert folder not in path.parents
        assert path.parent.name == "taciturn"
    assert not list(folder.rglob("*.state.key"))


def test_a_state_key_at_its_former_place_is_used_with_a_warning(folder):
    set_up(folder, **MECHANISMS["none"])
    key = "5e" * KEY_BYTES
    (folder / "bob.state.key").write_text(key)
    (folder / "bob.state.key").chmod(0o600)
    said: list[str] = []
    run_both(folder, watch={"bob": Callbacks(said.append)}).records  # noqa: B018
    assert [line for line in said if "beside the state folder" in line]
    assert not _usual_place(PartyConfig.read(folder / "bob.toml")).exists()
    # The journal is that key's.
    Vault.open(folder / "bob-state" / "journal", bytes.fromhex(key))[0].close()


def test_suspected_wraps_reach_bob_and_nobody_else(folder):
    set_up(folder, **MECHANISMS["sealed"])
    ends = run_both(folder)
    alice, bob = ends.records
    assert bob["suspected_wraps"] == 0
    assert "suspected_wraps" not in alice
    some = replace(ends.bob, suspected_wraps=4321)
    assert "4,321" in shown(party_blocks(some))
    assert "4,321" not in shown(party_blocks(ends.bob))


def test_a_lost_or_wrong_state_key_is_named(folder):
    set_up(folder, **MECHANISMS["none"])
    run_both(folder, watch=pulled_at("bob", 30))
    bobs_key(folder).write_text("00" * 32)
    with pytest.raises(StateError, match="key"):
        bob_alone(folder).run()
    bobs_key(folder).write_text("no hex")
    with pytest.raises(StateError, match="64 hexadecimal digits"):
        bob_alone(folder).run()


def test_bob_may_have_no_columns_of_his_own(folder):
    lines = (folder / "bob.csv").read_text().splitlines()
    kept = [f"{line.split(',')[0]},{line.split(',')[-1]}" for line in lines]
    (folder / "bob.csv").write_text("\n".join(kept) + "\n")
    write_config(folder, "alice", agreement=MECHANISMS["none"])
    write_config(folder, "bob", agreement=MECHANISMS["none"], data={"intercept": False})
    _, bob = run_both(folder, act=record(folder)).records
    assert bob["columns"] == 0
    assert weights(folder, "alice").tolist() == in_one_process(folder)[0]


def test_a_diverging_training_ends_in_words_on_both_sides(folder):
    set_up(folder, **{**MECHANISMS["add"], "learning-rate": 1.7e308})
    ends = run_both(folder)
    for end in (ends.alice, ends.bob):
        assert isinstance(end, TaciturnError)
    assert any("diverged" in end.message for end in (ends.alice, ends.bob))


def test_boundaries_hold_what_each_side_needs(folder):
    set_up(folder, **MECHANISMS["add"])
    seen: list[Boundary] = []

    def observe(event: Event) -> None:
        if isinstance(event, Boundary):
            seen.append(event)

    run_both(folder, watch={"alice": Callbacks(observe=observe)}).records  # noqa: B018
    assert [boundary.state.iteration for boundary in seen] == list(range(2 * BATCHES))
    assert np.array_equal(seen[0].state.weights, np.zeros(6))
