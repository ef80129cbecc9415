"""The life of a model that mutual trained between two parties: killed, cut off, resumed, used.

What both sides have at the end is, number by number, what one process has that is fed their coins.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from taciturn.deploy import Trainer
from taciturn.deploy.transport import make_certificates
from taciturn.errors import PeerStopped, StateError
from taciturn.model import whole_model
from taciturn.rng import KeyedEntropy
from tests.deploy.hosts import Side, both_finish
from tests.deploy.sides import (
    MECHANISMS,
    ends_in_one_process,
    model_numbers,
    numbers_of,
    run_both,
    write_config,
    write_tables,
)
from tests.deploy.test_newton import OneHost
from tests.deploy.test_party import Pulled, party_alone, pulled_at, record
from tests.deploy.test_predict import ended, expected, shares, start, write_new
from tests.deploy.test_two_hosts import BROKEN
from tests.deploy.transport.relay import Relay
from tests.deploy.wires import Wire
from tests.modules import module_of
from tests.test_two_machines import free_port
from tests.waiting import HANG, wait_until

ROLES = ("alice", "bob")
# Five batches, the last of them shorter; a checkpoint at every second.
SMALL: dict[str, Any] = {**MECHANISMS["mutual"], "epochs": 1, "batch-size": 20}


def set_up(folder: Path, link: dict[str, dict[str, Any]] | None = None, **agreed: Any) -> None:
    for role in ROLES:
        write_config(
            folder,
            role,
            agreement={**SMALL, **agreed},
            link=(link or {}).get(role, {}),
            state={"every-iterations": 2},
            output={"held-out-scores": "held-out.csv"} if role == "bob" else {},
        )


def scores(path: Path) -> list[float]:
    return list(pl.read_csv(path)["score"])


def require_the_same(folder: Path) -> None:
    """Both shares of both sides' weights, and the held-out rows' scores, to the last bit."""
    ends, ledger = ends_in_one_process(folder)
    numbers = numbers_of(ends)
    assert model_numbers(folder) == numbers
    assert [len(numbers[0][1]), len(numbers[1][2])] == [6, 4]
    assert ends[1].held_out_scores is not None
    assert scores(folder / "held-out.csv") == ends[1].held_out_scores.tolist()
    assert shares(folder)[1].ledger == ledger


# --- stops ----------------------------------------------------------------------------------------

# Before the first batch, between two checkpoints, at one, and amid the last batch.
STOPS = [(role, event) for event in (1, 4, 6, 10) for role in ROLES]


@pytest.mark.slow  # seconds each; a real process is killed by default
@pytest.mark.parametrize(("role", "event"), STOPS)
def test_a_side_that_is_stopped_goes_on_to_the_same_shares(tmp_path, role, event):
    write_tables(tmp_path)
    set_up(tmp_path)
    first = run_both(tmp_path, act=record(tmp_path), watch=pulled_at(role, event))
    stopped, other = (first.alice, first.bob) if role == "alice" else (first.bob, first.alice)
    assert isinstance(stopped, Pulled)
    assert isinstance(other, PeerStopped)
    run_both(tmp_path, act=record(tmp_path)).records  # noqa: B018 - raises where a side failed
    require_the_same(tmp_path)


@pytest.mark.slow  # seconds each
@pytest.mark.parametrize("every", [5, 8, 13])
def test_a_wire_that_keeps_breaking_changes_nothing(tmp_path, every, monkeypatch):
    monkeypatch.setattr(module_of(Trainer), "LINGER_SECONDS", 3.0)
    write_tables(tmp_path)
    set_up(tmp_path)
    wire = Wire(lambda number: number % every == 0)
    run_both(tmp_path, wire, act=record(tmp_path)).records  # noqa: B018
    assert wire.links > 3
    require_the_same(tmp_path)


@pytest.mark.slow  # a stopped training each
@pytest.mark.parametrize("role", ROLES)
def test_a_damaged_journal_is_refused_by_name(tmp_path, role):
    write_tables(tmp_path)
    set_up(tmp_path)
    run_both(tmp_path, act=record(tmp_path), watch=pulled_at(role, 5))
    journal = tmp_path / f"{role}-state" / "journal"
    data = bytearray(journal.read_bytes())
    data[len(data) // 3] ^= 1
    journal.write_bytes(data)
    with pytest.raises(StateError, match="of the journal was altered"):
        party_alone(tmp_path, role).run()
    assert not (tmp_path / f"{role}.model.json").exists()


# --- real processes, gRPC and mutual TLS ----------------------------------------------------------


@pytest.fixture
def relays() -> Iterator[list[Relay]]:
    """Where a test puts its relays, to be closed."""
    made: list[Relay] = []
    yield made
    for relay in made:
        relay.close()


def furnish(
    folder: Path, relays: list[Relay], room: int | None = None, dead: float = HANG, **agreed: Any
) -> Relay:
    """Tables, new rows, certificates and settings.

    Returns:
        What Alice's calls go through; it tears the link after so many bytes.
    """
    write_tables(folder)
    write_new(folder)
    make_certificates(folder / "certs", [*ROLES])
    port = free_port()
    relay = Relay(port, room)
    relays.append(relay)
    ways = {"alice": {"connect": f"127.0.0.1:{relay.port}"}, "bob": {"listen": f"127.0.0.1:{port}"}}
    set_up(folder, {role: {**way, "dead-seconds": dead} for role, way in ways.items()}, **agreed)
    return relay


def started(folder: Path) -> dict[str, Side]:
    sides = {role: Side(OneHost({}), folder, role) for role in ROLES}
    for side in sides.values():
        side.start()
    return sides


def require_scores(folder: Path) -> None:
    """``taciturn predict`` in a process on each side: Bob has the whole model's scores."""
    running = [start(folder, "alice", "--json"), start(folder, "bob", "--out", "scores.csv")]
    alice, bob = (ended(process) for process in running)
    assert (alice.code, bob.code) == (0, 0), alice.err + bob.err
    answer = json.loads(alice.out)
    assert answer["learnt"].startswith("no score")
    assert "scores" not in answer
    frame = pl.read_csv(folder / "scores.csv")
    given, (wanted, slack) = dict(frame.select("id", "score").iter_rows()), expected(folder)
    assert given.keys() == wanted.keys()
    assert max(abs(given[name] - wanted[name]) for name in wanted) <= slack


# Bytes after which the link is torn, of five million: amid the keys, in the first batch, halfway,
# near the last batch, and amid what is sent for the held-out rows.
KEYS, FIRST, MIDDLE, LAST, HELD_OUT = 300_000, 900_000, 2_200_000, 3_400_000, 4_200_000


def torn(relay: Relay, sides: dict[str, Side]) -> None:
    """Waits until the link is torn."""
    wait_until(lambda: relay.torn.is_set() or all(side.code == 0 for side in sides.values()))
    assert relay.torn.is_set(), "the training sends fewer bytes than it did: tear the link earlier"


@pytest.mark.parametrize(
    ("role", "room"),
    [
        ("bob", MIDDLE),
        # A second training each.
        *(
            pytest.param(role, room, marks=pytest.mark.slow)
            for role in ROLES
            for room in (KEYS, FIRST, MIDDLE, LAST, HELD_OUT)
            if (role, room) != ("bob", MIDDLE)
        ),
    ],
)
@pytest.mark.slow  # newton's and none's processes are killed in `make test`
def test_a_killed_process_goes_on_to_the_same_shares(tmp_path, relays, role, room):
    """The link is torn, and kill -9; then the link is mended, and the process started again."""
    relay = furnish(tmp_path, relays, room)
    sides = started(tmp_path)
    torn(relay, sides)
    sides[role].kill()
    relay.mend()
    sides[role].start()
    both_finish(*sides.values())
    assert sides[role].noted("session resumed") == 1
    for side in sides.values():
        require_no_claim(side.record)
    require_the_same(tmp_path)


def require_no_claim(result: dict[str, Any]) -> None:
    """Nobody saw a training loss: no side says whether the training arrived."""
    assert result["peer_confirmed"]
    assert not {"converged", "diverged", "last_change", "suspected_wraps"} & result.keys()
    assert result["converged_reason"].startswith("nobody saw a score")
    assert "train" not in result["metrics"]
    assert result["run"]["curve"] == []


@pytest.mark.slow  # a training each
@pytest.mark.parametrize("room", [KEYS, FIRST, MIDDLE, LAST, HELD_OUT])
def test_a_torn_link_is_made_anew_and_changes_nothing(tmp_path, relays, room):
    relay = furnish(tmp_path, relays, room)
    sides = started(tmp_path)
    torn(relay, sides)
    relay.mend()
    both_finish(*sides.values())
    assert sides["alice"].noted(BROKEN) == sides["bob"].noted(BROKEN) == 1
    require_the_same(tmp_path)


@pytest.mark.slow  # until both have noticed
def test_a_link_that_goes_dead_is_made_anew_and_changes_nothing(tmp_path, relays):
    relay = furnish(tmp_path, relays, dead=2.0, epochs=20)
    sides = started(tmp_path)
    wait_until(lambda: sides["bob"].kept() > 1_500_000, "no batch was trained")
    relay.cut()
    wait_until(lambda: all(side.noted(BROKEN) for side in sides.values()), "nobody noticed")
    relay.mend()
    both_finish(*sides.values())
    require_the_same(tmp_path)


@pytest.mark.slow  # half a minute
def test_processes_that_are_killed_at_work_time_and_again_change_nothing(tmp_path, relays):
    """Whatever they do at the moment: encrypt, write a checkpoint, wait, start."""
    furnish(tmp_path, relays, epochs=60)
    sides, coins = started(tmp_path), KeyedEntropy.from_seed(1)
    kills = 0
    while kills < 12:
        side = sides[ROLES[coins.below(2)]]
        # Its journal grows by each frame, and starts anew at a checkpoint.
        before, apart = side.kept(), 100_000 + coins.below(400_000)
        wait_until(lambda: abs(side.kept() - before) > apart or side.code is not None)  # noqa: B023
        assert side.code is None, "it had ended before it was killed"
        side.kill()
        side.start()
        kills += 1
    both_finish(*sides.values())
    require_the_same(tmp_path)


# --- weights that are told ------------------------------------------------------------------------


@pytest.mark.slow  # a training each
@pytest.mark.parametrize("revealed", [(), ("reveal",), ("reveal-bob",), ("reveal", "reveal-bob")])
def test_a_model_scores_new_rows_and_tells_each_side_its_weights_where_that_is_agreed(
    tmp_path, relays, revealed
):
    """Through a kill of Bob after the last batch: what he tells he tells once."""
    relay = furnish(tmp_path, relays, HELD_OUT, **dict.fromkeys(revealed, True))
    sides = started(tmp_path)
    torn(relay, sides)
    sides["bob"].kill()
    relay.mend()
    sides["bob"].start()
    both_finish(*sides.values())
    require_the_same(tmp_path)
    hers, his = shares(tmp_path)
    whole = whole_model(hers, his)
    assert hers.weights.tolist() == (
        whole.alices[0].weights.tolist() if "reveal" in revealed else []
    )
    assert his.weights.tolist() == (whole.bob.weights.tolist() if "reveal-bob" in revealed else [])
    # Her weights tell of labels, and Bob pays; his tell of her columns.
    total = sides["bob"].record["ledger"]["label_epsilon_total"]
    assert total == ("inf" if "reveal" in revealed else 0.0)
    require_scores(tmp_path)
