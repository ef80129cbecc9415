"""Measurements beside the paper's: several Alices, one score, large tables, the wire."""

from __future__ import annotations

import socket
import threading
import time

import numpy as np
import polars as pl
import pytest

from taciturn.families.binomial import sigmoid
from taciturn_paper import consortium, mutual_cost, scale, sides, wire
from taciturn_paper.one_score import Target, by_lattice, by_mean, recovered, smallest
from taciturn_paper.scale import Task


def test_bytes_grow_with_the_number_of_alices(monkeypatch):
    monkeypatch.setattr(consortium, "COLUMNS", 3)
    options = {**consortium.SGD, "scheme": "clear"}
    one, two = (consortium.cost(alices, 64, options, 2) for alices in (1, 2))
    assert 1.5 < two.kib / one.kib < 4
    assert one.bob > 0
    assert one.alice > 0


def test_the_shortest_solution_is_found():
    pytest.importorskip("flint")
    weights, row = [68_719_476_731, -50_331_653_111, 31_234_567_891], [70_001, -32_767, 5]
    score = sum(weight * value for weight, value in zip(weights, row, strict=True))
    assert smallest(weights, score) == row
    assert smallest([6, 10], 7) == [0, 0]


@pytest.mark.parametrize(("columns", "least", "most"), [(1, 1.0, 1.0), (2, 0.0, 0.3)])
def test_noise_hides_two_columns_and_not_one(columns, least, most):
    pytest.importorskip("flint")
    target = Target.train(columns, 1, integers=False)
    assert np.abs(target.noisy - target.exact).max() * target.unit <= 2.0**-12
    assert recovered(target, by_lattice(target, target.exact)) > 0.99
    assert least <= recovered(target, by_mean(target, target.noisy)) <= most


@pytest.mark.slow  # some seconds: two processes from Parquet folders to models
def test_both_sides_tell_what_a_pass_costs(tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "PART_ROWS", 700)
    report = scale.measure(Task(rows=2000, passes=2, alice=5, bob=2), tmp_path / "run")
    assert len(list((tmp_path / "run" / "alice-parts").iterdir())) == 3
    alice, bob = report["alice"], report["bob"]
    assert len(bob["passes"]) == 2
    assert 0.0 < scale.per_pass(report) < bob["end"]
    for side in (alice, bob):
        assert 0 < side["preparation_peak"] <= side["peaks"][0]
        assert side["bytes_sent"] > 100_000
    assert (tmp_path / "run" / "bob.model.json").exists()


def test_the_sides_have_their_rows_in_other_orders(tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "PART_ROWS", 40)
    scale.make_tables(tmp_path, Task(rows=100, passes=1, alice=2, bob=1))
    alice, bob = (
        pl.concat(pl.read_parquet(part) for part in sorted(tmp_path.glob(f"{role}-parts/*")))
        for role in ("alice", "bob")
    )
    assert sorted(alice["id"]) == sorted(bob["id"])
    assert alice["id"].to_list() != bob["id"].to_list()
    assert set(bob["label"]) == {0, 1}


def echo(listener: socket.socket) -> None:
    peer, _ = listener.accept()
    with peer:
        while data := peer.recv(1 << 16):
            peer.sendall(data)


def test_the_relay_holds_bytes_back_and_loses_none():
    sent = bytes(range(256)) * 400
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=echo, args=(listener,), daemon=True).start()
        with sides.slow_link(listener.getsockname()[1], 0.1, 50.0) as port:
            start = time.monotonic()
            with socket.create_connection(("127.0.0.1", port)) as link:
                link.sendall(sent)
                link.shutdown(socket.SHUT_WR)
                got = b""
                while part := link.recv(1 << 16):
                    got += part
            took = time.monotonic() - start
    assert got == sent
    # A round trip, and 102,400 bytes at 50 Mbit/s there and back, partly at the same time.
    assert took > 0.1 + 0.016


@pytest.mark.slow  # a measurement, of some seconds
def test_a_training_is_measured_by_every_way():
    inside, across = wire.measure("add", slow=False)
    assert (inside.way, across.way) == ("one process", "loopback")
    assert inside.iterations == across.iterations == 70
    assert inside.ms > 0
    assert across.ms > 0
    assert across.bytes_to_alice > 0
    assert across.bytes_to_bob > across.bytes_to_alice


@pytest.mark.slow  # Four processes with real keys.
def test_mutual_is_measured_beside_sealed():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(60, 4))
    own = np.hstack([values[:, 2:], np.ones((60, 1))])
    labels = (rng.random(60) < sigmoid(values[:, 0])).astype(np.int8)
    problem = mutual_cost.Problem(sides.Tables(values[:, :2], own, labels, True))
    cost = mutual_cost.compare(mutual_cost.contenders(problem), turns=1)
    assert {name: passes for name, (passes, *_) in cost.items()} == {"sealed": 12, "mutual": 56}
    assert cost["mutual"].traffic > cost["sealed"].traffic > 0
    assert all(abs(figures.gap) < mutual_cost.TARGET for figures in cost.values())


def test_every_contender_reaches_the_target_with_its_fewest_passes():
    problem = mutual_cost.Problem(mutual_cost.made(600, 2, 2))
    for name in (*mutual_cost.MECHANISMS, "cheetah"):
        passes = problem.fewest_passes(name)
        assert problem.gap(problem.fit(name, passes)) < mutual_cost.TARGET
        assert passes == 1 or problem.gap(problem.fit(name, passes - 1)) >= mutual_cost.TARGET
