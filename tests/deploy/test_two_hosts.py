"""Real processes on two hosts: they train as one process would, through kills and pulled cables."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from taciturn.rng import KeyedEntropy
from tests.deploy.hosts import (
    Hosts,
    Side,
    both_finish,
    furnish,
    two_hosts,
)
from tests.deploy.sides import MECHANISMS, model_numbers, numbers_in_one_process
from tests.system import needs_namespaces
from tests.waiting import wait_until

pytestmark = needs_namespaces


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with two_hosts() as made:
        yield made


def sides(hosts: Hosts, folder: Path) -> tuple[Side, Side]:
    return Side(hosts, folder, "alice"), Side(hosts, folder, "bob")


def require_the_same(folder: Path, bob: Side) -> None:
    numbers, ledger = numbers_in_one_process(folder)
    assert model_numbers(folder) == numbers
    assert bob.record["ledger"] == ledger


# In one process each mechanism has its own test.
ALWAYS = ("sealed",)
SELDOM = [name for name in MECHANISMS if name not in ALWAYS]


@pytest.mark.parametrize(
    "name", [*ALWAYS, *(pytest.param(name, marks=pytest.mark.slow) for name in SELDOM)]
)
def test_two_hosts_train_to_the_weights_of_one_process(hosts, tmp_path, name):
    """Alice serves in half of the cases: either side may open the port."""
    serves = "alice" if name in ("add", "hybrid") else "bob"
    furnish(tmp_path, serves=serves, **MECHANISMS[name])
    alice, bob = sides(hosts, tmp_path)
    bob.start()
    alice.start()
    both_finish(alice, bob)
    assert alice.record["peer_confirmed"]
    assert bob.record["peer_confirmed"]
    require_the_same(tmp_path, bob)


BROKEN = "the connection broke; reconnecting"
FAULTS = ("kill alice", "kill bob", "kill both", "pull the cable")


def break_things(
    hosts: Hosts, folder: Path, faults: int, seed: int, within: tuple[float, float]
) -> list[str]:
    """Faults at random times until there were enough; then lets both finish.

    A killed side is started again at once. Returns what was done while the training ran.
    """
    coins = KeyedEntropy.from_seed(seed)
    alice, bob = sides(hosts, folder)
    alice.start()
    bob.start()
    done: list[str] = []
    while len(done) < faults:
        time.sleep(within[0] + (within[1] - within[0]) * float(coins.uniform((1,))[0]))
        if alice.code is not None and bob.code is not None:
            break
        fault = FAULTS[coins.below(len(FAULTS))]
        done.append(fault)
        if fault == "pull the cable":
            hosts.cable("down")
            time.sleep(3.0)  # longer than a link may be dead
            hosts.cable("up")
            continue
        killed = [side for side in (alice, bob) if side.role in fault or "both" in fault]
        for side in killed:
            if side.code is None:
                side.kill()
        for side in killed:
            side.start()
    for side in (alice, bob):
        if side.code not in (None, 0):
            side.start()
    both_finish(alice, bob)
    require_the_same(folder, bob)
    return done


@pytest.mark.slow  # ten seconds; each fault has its own test on one host
def test_a_pulled_cable_and_a_killed_side_change_nothing(hosts, tmp_path):
    furnish(tmp_path, rows=200, **{**MECHANISMS["none"], "epochs": 6})
    alice, bob = sides(hosts, tmp_path)
    bob.start()
    alice.start()
    wait_until(lambda: bob.kept() > 50_000, "the training never began")
    # Nothing goes on while the cable is being pulled, so that it is pulled amid the training.
    alice.signal(signal.SIGSTOP)
    hosts.cable("down")
    alice.signal(signal.SIGCONT)
    wait_until(lambda: alice.noted(BROKEN) and bob.noted(BROKEN), "nobody noticed the cable")
    hosts.cable("up")
    wait_until(lambda: bob.noted("connected") == 2, "they did not find each other again")
    alice.kill()
    alice.start()
    both_finish(alice, bob)
    assert not (tmp_path / "alice.err").read_text().count("error")
    require_the_same(tmp_path, bob)


SIX_SCORE: list[tuple[str, int]] = [
    ("none", 20),
    ("add", 20),
    ("mult", 20),
    ("hybrid", 20),
    ("sealed", 20),
    ("mutual", 20),
]


@pytest.mark.slow
def test_six_score_faults_change_nothing(hosts, tmp_path):
    """Over six trainings: SIGKILL of either side or both, and pulled cables."""
    total = 0
    for name, faults in SIX_SCORE:
        folder = tmp_path / name
        folder.mkdir()
        settings: dict[str, Any] = {**MECHANISMS[name], "epochs": 300}
        if name in ("none", "hybrid", "sealed", "mutual"):
            settings["epochs"] = 25
        furnish(folder, rows=500, **settings)
        done = break_things(hosts, folder, faults, seed=total, within=(1.0, 4.0))
        total += len(done)
    assert total == 120
