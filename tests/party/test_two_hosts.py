"""Real processes on hosts of their own: they train as one process would, whatever breaks."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from taciturn.party.link import BROKEN
from tests.party.hosts import Hosts, Side, all_end, all_run, processes, two_hosts
from tests.party.sides import TWO_ALICES, Company
from tests.party.test_training import AGREEMENTS, ONE, require_auc_of_scikit_learn, seldom
from tests.system import needs_namespaces
from tests.waiting import wait_until

pytestmark = needs_namespaces
# Either side of two may open the port.
ALICE_SERVES = ("add", "hybrid")
THREE_ALICES = (*TWO_ALICES, "alice-3")


@contextmanager
def on_hosts(
    folder: Path, name: str, alices: tuple[str, ...], rows: int = 120, **agreed: Any
) -> Iterator[tuple[Company, Hosts, dict[str, Side]]]:
    """Parties about to be started, each on its host."""
    star = Company(folder, alices, agreement={**AGREEMENTS[name], **agreed})
    star.write_tables(rows)
    for place, alice in enumerate(alices):
        star.write(alice, link={"connect": f"10.77.{place}.2:{star.port}"})
    if name in ALICE_SERVES:
        star.write("alice", link={"connect": None, "listen": f"0.0.0.0:{star.port}"})
        star.write("bob", link={"listen": None, "connect": f"10.77.0.1:{star.port}"})
    with two_hosts(*alices) as hosts, processes(star, hosts) as sides:
        yield star, hosts, sides


CASES = [(name, ONE) for name in ("sealed", "mutual", "add", "mult", "hybrid", "none, sgd")]
CASES += [("sealed", THREE_ALICES), ("none", THREE_ALICES)]


@pytest.mark.parametrize(("name", "alices"), seldom(CASES, [("sealed", ONE)]))
def test_hosts_train_to_the_weights_of_one_process(tmp_path, name, alices):
    with on_hosts(tmp_path, name, alices) as (star, _, sides):
        ends = all_run(sides)
    assert all(end["peer_confirmed"] for end in ends.values())
    star.require_the_same(ends)
    if len(alices) > 1:
        require_auc_of_scikit_learn(star, ends["bob"]["metrics"]["held_out"]["auc"], slack=0.02)


@pytest.mark.slow  # ten seconds: a pulled cable is noticed after a while
@pytest.mark.parametrize("alices", [ONE, THREE_ALICES])
def test_a_pulled_cable_and_a_killed_side_change_nothing(tmp_path, alices):
    with on_hosts(tmp_path, "sealed", alices, rows=300, passes=40) as (star, hosts, sides):
        for side in sides.values():
            side.start()
        wait_until(lambda: sides["bob"].kept() > 20_000, "the training never began")
        log, cut = star.file("bob", "log"), alices[-1]
        # Nothing goes on while the cable is being pulled, so that it is pulled amid the training.
        sides[cut].signal(signal.SIGSTOP)
        hosts.cable("down", cut)
        sides[cut].signal(signal.SIGCONT)
        wait_until(lambda: BROKEN in log.read_text(), "nobody noticed the cable")
        hosts.cable("up", cut)
        wait_until(lambda: log.read_text().count("connected") > len(alices))
        sides[alices[0]].kill()
        sides[alices[0]].start()
        ends = all_end(sides)
    star.require_the_same(ends)
