"""A side that does not begin: its peer receives the same bytes, whatever the reason."""

from __future__ import annotations

import shutil
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from taciturn.engine.callbacks import Callbacks
from taciturn.errors import (
    AgreementError,
    BudgetExceeded,
    ColumnError,
    ConfigError,
    DataError,
    FileError,
    LabelValueError,
    OutputError,
    PeerStopped,
    StateError,
    TaciturnError,
    TransportError,
)
from taciturn.jobs.base import run_job
from taciturn.jobs.predict.declaration import PREDICTION
from taciturn.jobs.predict.job import PredictJob
from taciturn.jobs.train.command import forget_label_stops
from taciturn.jobs.train.declaration import DRY_RUN, TRAINING
from taciturn.party.config import PartyConfig
from taciturn.party.consent.label_stops import MOST_STOPS, LabelStops
from tests.expected import refused
from tests.party.openings import opening
from tests.party.sides import (
    MECHANISMS,
    ROLES,
    Party,
    run_both,
    write_certificates,
    write_config,
    write_tables,
)
from tests.party.studies import write_study
from tests.party.wires import Wire
from tests.waiting import HANG

# Only where a side tells nothing, which is a failure.
LONG_ENOUGH = 5.0
Change = Callable[[Path], object]


def training(party: Party) -> Any:
    return party.run()


def dry_run(party: Party) -> Any:
    return party.dry_run()


def prediction(party: Party) -> Any:
    config = party.config
    job = PredictJob(config.path(config.output.model), config.path(f"{config.role}.csv"))
    return run_job(job, config, party.callbacks, party.endpoint)


PURPOSES: Mapping[Any, int] = {training: TRAINING, dry_run: DRY_RUN, prediction: PREDICTION}


def ended(
    folder: Path, role: str, act: Callable[[Party], Any] = training
) -> tuple[BaseException | None, list[bytes]]:
    """How a side ends, and what a peer receives that opens a link and then only listens."""
    wire, frames = Wire(), list[bytes]()
    first = opening(PURPOSES[act], b"p" * 16, drawn=b"d" * 16)

    def listen() -> None:
        try:
            channel = wire.endpoint(serves=role == "alice").connect(HANG)
            channel.send(first)
            while True:
                frames.append(channel.receive(HANG))
        except TransportError:
            return

    peer = threading.Thread(target=listen)
    peer.start()
    config = PartyConfig.read(folder / f"{role}.toml")
    end = None
    try:
        act(Party(config, wire.endpoint(serves=role == "bob"), Callbacks()))
    except TaciturnError as problem:
        end = problem
    # A side that has told its peer closes the link, and the peer reads until then.
    peer.join(LONG_ENOUGH)
    wire.end()
    peer.join(HANG)
    return end, frames


def labels(folder: Path, ones: int) -> None:
    table = pl.read_csv(folder / "bob.csv")
    values = [1] * ones + [0] * (len(table) - ones)
    table.with_columns(sick=pl.Series(values)).write_csv(folder / "bob.csv")


def both_agreed(folder: Path, **settings: Any) -> None:
    agreement = {**MECHANISMS["sealed"], "few-labels": None, "held-out": 0.0, **settings}
    for role in ROLES:
        write_config(folder, role, agreement=agreement)


def bobs(folder: Path) -> PartyConfig:
    return PartyConfig.read(folder / "bob.toml")


def few_labels(folder: Path) -> None:
    both_agreed(folder)
    labels(folder, 19)


def stopped_before(folder: Path) -> None:
    for _ in range(MOST_STOPS):
        LabelStops.from_config(bobs(folder)).charge()


def rare_value(folder: Path) -> None:
    both_agreed(folder, **{"rarest-value": 20})
    indicator(folder, 19)


def indicator(folder: Path, ones: int) -> None:
    """A column of Alice's that is 1 in so many rows that are trained on."""
    path = folder / "alice.csv"
    table = pl.read_csv(path)
    values = [1.0] * ones + [0.0] * (len(table) - ones)
    table.with_columns(rare=pl.Series(values)).write_csv(path)


def drop(role: str, column: str) -> Change:
    def act(folder: Path) -> None:
        path = folder / f"{role}.csv"
        pl.read_csv(path).drop(column).write_csv(path)

    return act


def remove(role: str) -> Change:
    return lambda folder: (folder / f"{role}.csv").unlink()


def charged(role: str, **privacy: Any) -> Change:
    """One training was charged already, and the limit allows no other."""

    def act(folder: Path) -> None:
        before = run_both(folder)
        before.records  # noqa: B018 - raises where a side failed
        shutil.rmtree(folder / f"{role}-state")
        limits(role, **privacy)(folder)

    return act


def limits(role: str, **privacy: Any) -> Change:
    agreement = MECHANISMS["sealed"]
    return lambda folder: write_config(folder, role, agreement=agreement, privacy=privacy)


def leaking(**privacy: Any) -> Change:
    def act(folder: Path) -> None:
        for role in ROLES:
            more = privacy if role == "bob" else {}
            write_config(folder, role, agreement=MECHANISMS["none"], privacy=more)

    return act


def output(role: str, **files: Any) -> Change:
    agreement = MECHANISMS["sealed"]
    return lambda folder: write_config(folder, role, agreement=agreement, output=files)


def state(role: str, **values: Any) -> Change:
    agreement = MECHANISMS["sealed"]
    return lambda folder: write_config(folder, role, agreement=agreement, state=values)


def no_key(folder: Path) -> None:
    (folder / "state.key").write_text("no digits")
    state("bob", key="state.key")(folder)


def agreed(role: str, **settings: Any) -> Change:
    agreement = {**MECHANISMS["sealed"], **settings}
    return lambda folder: write_config(folder, role, agreement=agreement)


@dataclass(frozen=True)
class Way:
    """A way in which a side ends before its first answer."""

    role: str
    change: Change
    error: type[TaciturnError]
    acts: tuple[Callable[[Party], Any], ...] = field(default=(training, dry_run))


# Where root too cannot write, as on a full disk: a file where a folder has to be.
NO_FOLDER = "certs/ca.pem/state"
WAYS: Mapping[str, Way] = {
    "19 labels of a class": Way("bob", few_labels, LabelValueError),
    "a third stop for labels": Way("bob", stopped_before, BudgetExceeded),
    "a column of few rows": Way("alice", rare_value, ColumnError),
    "all labels are one": Way("bob", lambda folder: labels(folder, 0), LabelValueError),
    "no label column": Way("bob", drop("bob", "sick"), ColumnError),
    "no id column, Alice": Way("alice", drop("alice", "id"), ColumnError),
    "no table, Bob": Way("bob", remove("bob"), FileError),
    "no table, Alice": Way("alice", remove("alice"), FileError),
    "no accept-leak": Way("bob", leaking(**{"accept-leak": None}), ConfigError, (training,)),
    "budget exceeded, Bob": Way(
        "bob",
        lambda folder: write_config(
            folder,
            "bob",
            agreement=MECHANISMS["add"],
            privacy={"accept-leak": None, "budget-total": 0.5},
        ),
        BudgetExceeded,
        (training,),
    ),
    "budget exceeded, Alice": Way(
        "alice", charged("alice", **{"scores-per-row": 2}), BudgetExceeded, (training,)
    ),
    "no accept-column-exposure": Way(
        "alice", limits("alice", **{"accept-column-exposure": None}), ConfigError, (training,)
    ),
    "no room for the state, Bob": Way(
        "bob", state("bob", folder="/proc/none"), OutputError, (training,)
    ),
    "no room for the state, Alice": Way(
        "alice", state("alice", folder="/proc/none"), OutputError, (training,)
    ),
    "no state key": Way("bob", no_key, StateError, (training,)),
    "no room for the log": Way("bob", output("bob", log=NO_FOLDER), OutputError),
    "no room for the metrics": Way(
        "alice", output("alice", metrics=NO_FOLDER), OutputError, (training,)
    ),
    "no room for the model, Bob": Way("bob", output("bob", model=NO_FOLDER), OutputError),
    "no room for the model, Alice": Way("alice", output("alice", model=NO_FOLDER), OutputError),
    "other rows than agreed": Way("bob", agreed("bob", rows=7), AgreementError),
    "other columns than agreed": Way(
        "alice", agreed("alice", **{"alice-columns": 7}), AgreementError
    ),
}
SAME = {
    role: struct.pack("<BH", 4, 0) + f"{role.title()}'s side does not begin".encode()
    for role in ROLES
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_certificates(tmp_path / "certs")
    write_tables(tmp_path)
    for role in ROLES:
        write_config(tmp_path, role, agreement=MECHANISMS["sealed"])
    return tmp_path


@pytest.mark.parametrize(
    ("name", "act"), [(name, act) for name, way in WAYS.items() for act in way.acts]
)
def test_a_side_that_does_not_begin_tells_its_peer_nothing_but_that(folder, name, act):
    way = WAYS[name]
    way.change(folder)
    end, frames = ended(folder, way.role, act)
    assert type(end) is way.error, end
    assert frames == [SAME[way.role]]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda role: remove(role), FileError),
        (lambda role: lambda folder: (folder / f"{role}.model.json").unlink(), FileError),
        (lambda role: output(role, log=NO_FOLDER), OutputError),
    ],
    ids=["no table", "no model", "no room for the log"],
)
def test_a_prediction_that_does_not_begin_tells_no_more(folder, role, change, error):
    run_both(folder).records  # noqa: B018 - raises where a side failed
    change(role)(folder)
    end, frames = ended(folder, role, prediction)
    assert type(end) is error, end
    assert frames == [SAME[role]]


def test_the_peers_error_says_that_it_is_not_told_why_and_whom_to_ask(folder):
    WAYS["all labels are one"].change(folder)
    ends = run_both(folder)
    assert isinstance(ends.bob, LabelValueError)
    assert isinstance(ends.alice, PeerStopped)
    # exact: it is said that there is a reason, and that it is not told
    assert "Bob's side does not begin" in ends.alice.message
    # exact: the same
    assert "not told why" in ends.alice.hint
    assert "label" not in str(ends.alice)
    # Nothing was begun that a later run would resume.
    assert not (folder / "bob-state" / "journal").exists()


def test_what_the_peers_messages_show_is_named(folder):
    agreed("bob", **{"feature-bits": 11})(folder)
    ends = run_both(folder)
    for end in (ends.alice, ends.bob):
        assert isinstance(end, AgreementError)
        assert "feature-bits" in end.message


def test_stops_for_labels_are_counted_and_the_third_needs_bobs_command(folder):
    both_agreed(folder)
    labels(folder, 19)
    stops = LabelStops.from_config(bobs(folder))
    for count in range(1, MOST_STOPS + 1):
        end, _ = ended(folder, "bob", dry_run if count == 2 else training)
        assert isinstance(end, LabelValueError)
        assert stops.count() == count
    # With other labels, which would do, it does not begin either.
    labels(folder, 60)
    assert isinstance(ended(folder, "bob")[0], BudgetExceeded)
    assert stops.count() == MOST_STOPS
    forget_label_stops(bobs(folder))
    run_both(folder).records  # noqa: B018 - raises where a side failed
    (account,) = stops.accounts()
    assert (account.partner, account.stops, account.in_all) == ("alice", 0, MOST_STOPS)


def test_a_missing_label_is_a_stop_for_labels_too(folder):
    both_agreed(folder)
    table = pl.read_csv(folder / "bob.csv")
    first = pl.int_range(len(table)) == 0
    table.with_columns(sick=pl.when(first).then(None).otherwise(pl.col("sick"))).write_csv(
        folder / "bob.csv"
    )
    end, _ = ended(folder, "bob")
    assert isinstance(end, DataError)
    assert LabelStops.from_config(bobs(folder)).count() == 1


def test_only_bob_can_begin_anyway(folder):
    with refused(ConfigError):
        forget_label_stops(PartyConfig.read(folder / "alice.toml"))


def test_bobs_file_alone_cannot_accept_few_labels(folder):
    both_agreed(folder)
    labels(folder, 19)
    agreed("bob", **{"few-labels": "accepted"})(folder)
    ends = run_both(folder)
    for end in (ends.alice, ends.bob):
        assert isinstance(end, AgreementError)
        assert "few-labels" in end.message


def test_what_both_agree_on_begins(folder):
    both_agreed(folder, **{"few-labels": "accepted", "rarest-value": 19})
    labels(folder, 19)
    indicator(folder, 19)
    run_both(folder).records  # noqa: B018 - raises where a side failed
    assert LabelStops.from_config(bobs(folder)).count() == 0


def test_a_column_of_few_rows_is_named_on_alices_side(folder):
    both_agreed(folder, **{"rarest-value": 20})
    indicator(folder, 19)
    end, _ = ended(folder, "alice")
    assert isinstance(end, ColumnError)
    assert end.setting == "rarest_value"
    assert "rare" in end.message
    assert "19" in end.message


def test_a_study_counts_the_labels_that_each_fold_is_trained_on(tmp_path):
    few = {"few-labels": None, "mechanism": "sealed"}
    write_study(tmp_path, "folds = 4\nl2 = [0.001, 0.01]\n", rows=120, agreement=few)
    labels(tmp_path, 24)
    end, frames = ended(tmp_path, "bob")
    assert isinstance(end, LabelValueError)
    assert frames == [SAME["bob"]]
