"""Neither side steers the batches: bound first, told last."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.engine.pair import run_pair
from taciturn.errors import RemoteProtocolError
from taciturn.protocol.joint_seed import (
    agree_as_alice,
    agree_as_bob,
    commitment,
    draw_share,
    joint_seed,
    seed_of,
)
from taciturn.protocol.messages import BatchCommitment, BatchShare, PublicBytes
from taciturn.rng import KeyedEntropy
from tests.expected import refused
from tests.protocol.parties import ALICE, BOB, ByHand, Tables, agreement, alice_program


def test_both_get_the_seed_of_both_shares():
    alice, bob = run_pair(agree_as_alice(ALICE), agree_as_bob(BOB))
    assert alice == bob == seed_of(ALICE, BOB) == joint_seed(draw_share(ALICE), draw_share(BOB))


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_each_share_moves_the_seed(who):
    other = KeyedEntropy.from_seed(9)
    assert seed_of(ALICE, BOB) != (seed_of(other, BOB) if who == "alice" else seed_of(ALICE, other))


def test_bob_tells_his_share_only_after_hers():
    side = ByHand("bob", agree_as_bob(BOB))
    assert [type(message) for message in side.said] == [BatchCommitment]
    assert side.said[0] == BatchCommitment(commitment(draw_share(BOB)))
    side.feed(BatchShare(PublicBytes(bytes(32))))
    assert side.said[1] == BatchShare(draw_share(BOB))
    assert side.driver.result == joint_seed(bytes(32), draw_share(BOB))


def test_alice_waits_for_the_commitment_before_she_tells_hers():
    side = ByHand("alice", agree_as_alice(ALICE))
    assert side.said == []
    assert side.driver.expects == "BatchCommitment"


def test_a_bob_who_changes_his_mind_is_caught():
    side = ByHand("alice", agree_as_alice(ALICE))
    side.feed(BatchCommitment(commitment(bytes(32))))
    with refused(RemoteProtocolError):
        side.feed(BatchShare(PublicBytes(b"\x01" + bytes(31))))


@pytest.mark.parametrize("length", [0, 31, 33])
@pytest.mark.parametrize("who", ["alice", "bob"])
def test_a_share_of_another_length_is_refused(who, length):
    if who == "alice":
        side = ByHand("alice", agree_as_alice(ALICE))
        side.feed(BatchCommitment(commitment(bytes(length))))
    else:
        side = ByHand("bob", agree_as_bob(BOB))
    with refused(RemoteProtocolError, names=length):
        side.feed(BatchShare(PublicBytes(bytes(length))))


def test_alice_does_not_train_on_batches_she_had_no_part_in():
    """Her program goes through the exchange: there is no way around it."""
    tables = Tables.make(rows=6, alice=2)
    side = ByHand("alice", alice_program(tables, agreement(mechanism="none")))
    assert np.array_equal([type(message).__name__ for message in side.said], ["Hello"])
