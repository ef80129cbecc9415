"""Scores on demand with several Alices: Bob has their sum, of rows that all of them have."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from ops.tests.serve.sides import Stand, alice_side, run_side

from taciturn.engine.callbacks import Callbacks
from taciturn.party.config import PartyConfig
from taciturn.party.consent.store import ConsentStore
from taciturn.transport.channel import Endpoints
from taciturn_ops.serve.alice import FeatureSide
from taciturn_ops.serve.declaration import ANSWERS
from taciturn_ops.serve.rounds import Verdict, list_name
from tests.party.sides import Company, scoring
from tests.seldom import seldom
from tests.waiting import wait_until


def serving(star: Company, asks: list[list[str]]) -> tuple[list[Any], dict[str, Any]]:
    """All sides of a company serve; Bob asks for these rows, one list after the other."""
    sides: list[FeatureSide] = []

    def alice(config: PartyConfig, way: Endpoints, calls: Callbacks) -> None:
        side = alice_side(config)
        sides.append(side)
        run_side(side, way)

    def bob(config: PartyConfig, way: Endpoints, calls: Callbacks) -> list[Any]:
        stand = Stand(config, way)
        stand.start()
        try:
            return [stand.ask(ids) for ids in asks]
        finally:
            for side in sides:
                side.stop.set()
            # They hear of it in the next round.
            wait_until(lambda: not stand.batcher.stats.connected)
            stand.close()

    ends = star.run(alice, bob=bob)
    assert isinstance(ends["bob"], list), ends
    return ends["bob"], ends


@pytest.mark.parametrize("mechanism", seldom(["sealed", "none"], always=["sealed"]))
def test_scores_are_those_of_a_prediction_and_a_row_that_one_alice_lacks_has_none(
    tmp_path, mechanism
):
    star = Company(tmp_path, agreement={"mechanism": mechanism})
    star.write_tables()
    star.run()
    for name in star.all:
        star.write_new(name, 120, 30)
    his = star.run(scoring)["bob"]
    wanted = dict(zip(his.ids, his.scores.tolist(), strict=True))
    lacking = star.place("alice-2") / "new.csv"
    pl.read_csv(lacking).filter(pl.col("id") != "p0130").write_csv(lacking)
    for name in star.all:
        star.write(name, serve={"source": "new.csv"})
    (first, second), _ = serving(star, [["p0121", "p0130", "p0122"], ["p0123"]])
    assert first.verdicts == (Verdict.HELD, Verdict.UNKNOWN, Verdict.HELD)
    assert first.scores[[0, 2]].tolist() == [wanted["p0121"], wanted["p0122"]]
    # Of the row that one lacks Bob has no part at all.
    assert np.isnan(first.scores[1])
    assert second.scores.tolist() == [wanted["p0123"]]
    for name in star.names:
        config = star.config(name)
        with ConsentStore.from_config(config).reading() as records:
            # Each counts what Bob was given, and not the row that one of them lacks.
            assert records.account(ANSWERS.name, config.peer).distinct_values() == {1: 3}


def test_masks_are_bound_to_the_list_of_rows():
    """Alices who were given different lists draw different masks, which do not cancel."""
    assert list_name(3, ["a", "b"]) != list_name(3, ["a", "c"])
    assert list_name(3, ["a", "b"]) != list_name(4, ["a", "b"])
    assert list_name(3, ["ab"]) != list_name(3, ["a", "b"])
