"""Several Alices and one Bob: scores that only add up, and an Alice who does not fit.

What every conversation promises is in ``test_conversations.py``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from taciturn.arrays import FloatArray, IntArray
from taciturn.engine.driver import Driver
from taciturn.engine.pair import run_star
from taciturn.errors import AgreementError, LocalProtocolError
from taciturn.protocol.alice.party import dry_run as alice_dry_run
from taciturn.protocol.bob.observations import DirectionScored
from taciturn.protocol.bob.party import dry_run as bob_dry_run
from taciturn.protocol.handshake import ANY_TABLE, PeerTable
from taciturn.protocol.masks import ZeroSum
from taciturn.protocol.messages import NoisyResidues
from taciturn.protocol.steps import Program
from taciturn.rng import KeyedEntropy
from tests.expected import refused
from tests.protocol.parties import BOB, Tables, agreement
from tests.protocol.stars import Star, StarTalk, converse, whole_session
from tests.protocol.test_conversations import ADD

TABLES = Tables.make(rows=40, alice=9, bob=2, intercept=True)
L2 = 0.02
NEWTON = {"solver": "newton", "epochs": 12, "l2": L2, "batch_size": 40, "learning_rate": 1.0}
SEALED = {"mechanism": "sealed", **NEWTON}


def test_residues_reach_all_alices_alike():
    talk = converse(Star.of(TABLES, agreement(**ADD), 3))
    first, *others = (
        [m.residues.value.tolist() for m in talk.said(link, "bob") if isinstance(m, NoisyResidues)]
        for link in talk.alices
    )
    assert first
    assert others == [first, first]


def test_a_state_of_one_of_several_alices_shows_no_secret():
    talk = converse(Star.of(TABLES, agreement(mechanism="none", epochs=1), 2))
    state = talk.boundaries[0]["alice-1"]
    assert state.pairwise_masks is not None
    assert state.pairwise_masks.pair_keys[1].hex() not in repr(state)
    assert state.pairwise_masks.pair_keys[1].hex() in state.to_bytes().decode()


# --- an Alice who does not fit --------------------------------------------------------------------


def opening_words(program: Program[Any]) -> list[bytes]:
    said: list[bytes] = []
    Driver("alice", program, said.append).start()
    return said


def test_a_dry_run_of_all_passes():
    star = Star.of(TABLES, agreement(**SEALED), 3)
    alices, bob = run_star(
        {name: alice_dry_run(star.alice_inputs(name)) for name in star.parties},
        bob_dry_run(star.terms, TABLES.bob, None, ANY_TABLE, star.parties, BOB),
    )
    assert bob.widths == (3, 3, 3)
    assert {state.seed for state in alices.values()} == {bob.seed}
    alices_again = {name: alice_dry_run(star.alice_inputs(name)) for name in star.parties}
    with refused(AgreementError, names=(8, 9)):
        run_star(
            alices_again,
            bob_dry_run(star.terms, TABLES.bob, None, PeerTable(8), star.parties, BOB),
        )


# --- what Bob sees --------------------------------------------------------------------------------


def test_what_bob_sees_is_the_same_for_any_rotation_of_all_columns():
    """So it does not tell how columns are divided: a rotation mixes those of all Alices.

    To the rounding of columns: sums of nine products, each of which is off by 2^-9 at most.
    """
    turn = np.linalg.qr(KeyedEntropy.from_seed(12).uniform((9, 9)) - 0.5)[0]
    turned = replace(TABLES, alice=replace(TABLES.alice, values=TABLES.alice.values @ turn))
    views = [
        sums_seen(converse(Star.of(tables, agreement(**SEALED), 3))) for tables in (TABLES, turned)
    ]
    # Directions follow from sums before them, so that roundings add up over passes.
    for one, other in zip(*views, strict=True):
        assert np.abs(one - other).max() < 0.05


def sums_seen(talk: StarTalk) -> list[FloatArray]:
    return [event.scores for event in talk.seen(DirectionScored)][:4]


SESSIONS: dict[str, dict[str, Any]] = {
    "none": {"mechanism": "none"},
    "add": ADD,
    "none newton": {"mechanism": "none", **NEWTON, "epochs": 3},
    "sealed newton": {**SEALED, "epochs": 3},
}


@pytest.mark.parametrize("case", SESSIONS)
def test_no_mask_is_used_twice_in_a_whole_session(case, monkeypatch):
    drawn: Counter[tuple[bytes, ...]] = Counter()
    over = ZeroSum.over

    def noting(self: ZeroSum, values: IntArray) -> IntArray:
        drawn[tuple(stream.key for stream in (*self.added, *self.subtracted))] += 1
        return over(self, values)

    monkeypatch.setattr(ZeroSum, "over", noting)
    held_out = Tables.make(rows=15, alice=9, bob=2, intercept=True, seed=8)
    agreed = agreement(**{"held_out": 0.2, "evaluate": "epoch", **SESSIONS[case]})
    whole_session(Star.of(TABLES, agreed, 3), held_out)
    assert len(drawn) > 10
    assert set(drawn.values()) == {1}


def test_one_of_several_alices_says_nothing_without_masks():
    star = Star.of(TABLES, agreement(mechanism="none", epochs=1), 3)
    forgetful = replace(converse(star).boundaries[0]["alice-2"], pairwise_masks=None)
    with refused(LocalProtocolError):
        opening_words(star.alice_program("alice-2", resume=forgetful))
