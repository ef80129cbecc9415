"""Newton with shared scores on many rows: steps over blocks, in both parties' programs."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pytest

from taciturn.crypto.base import Scheme
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.clear import ClearScheme
from taciturn.numerics.likelihood import label_likelihood, weighted_likelihood
from taciturn.numerics.optimum import optimum, penalised_loss
from taciturn.numerics.table_schedule import TableSchedule
from taciturn.numerics.whole_table import fit_on_schedule
from taciturn.protocol.events import Progress
from taciturn.protocol.joint_seed import block_order, seed_of
from taciturn.protocol.messages import SharedVector
from tests.protocol.parties import BOB, Tables
from tests.protocol.stars import Star, StarTalk, converse, entropy_of
from tests.protocol.test_conversations import BLOCKS, agreed

CLEAR, BFV = ClearScheme(), BfvScheme()
ROWS, L2 = BLOCKS.labels.rows, 0.05
TABLES = {
    "halves": BLOCKS,
    "all at alice": Tables.make(rows=ROWS, alice=3),
}
SEED = seed_of(entropy_of("alice-1"), BOB)


def star(tables: Tables, scheme: Scheme = CLEAR, **changes: Any) -> Star:
    return Star.of(tables, agreed("mutual-table", scheme, l2=L2, **changes), 1, scheme)


def schedule(tables: Tables, passes: int) -> TableSchedule:
    return TableSchedule(ROWS, tables.joined.shape[1], passes)


def lengths(talk: StarTalk) -> list[int]:
    """Entries of each vector that Bob sends."""
    sent = talk.said_by("bob")
    return [message.vector.length for message in sent if isinstance(message, SharedVector)]


@pytest.mark.parametrize("weights", [None, (0.4, 1.0)], ids=["alike", "weighted"])
@pytest.mark.parametrize("split", TABLES)
def test_it_is_the_fit_in_clear_over_the_same_blocks_and_near_the_optimum(split, weights):
    tables = TABLES[split]
    talk = converse(star(tables, epochs=28, class_weight=weights, sigmoid_error=1e-5))
    likelihoods = partial(weighted_likelihood, class_weight=weights)
    blocks = schedule(tables, 28).blocks
    order = block_order(SEED, blocks)
    fit = fit_on_schedule(
        tables.alice.values[order],
        tables.bob.values[order],
        label_likelihood(tables.labels.values[order], likelihoods),
        L2,
        tables.free,
        28,
        max(weights or (1.0,)),
    )
    assert len(blocks) == 8
    assert talk.weights == pytest.approx(np.concatenate([fit.alice, fit.own]), abs=1e-3)
    likelihood = label_likelihood(tables.labels.values, likelihoods)
    best = optimum(tables.joined, likelihood, L2, tables.free)
    scores = tables.joined @ talk.weights
    loss = penalised_loss(scores, likelihood, talk.weights, L2, tables.free)
    assert 0 <= loss - best.loss < 1e-6
    assert talk.bob.opened_change is None
    assert talk.bob.scores_beyond_range is None


def test_every_message_follows_from_the_sizes_alone():
    tables = TABLES["halves"]
    talk = converse(star(tables, epochs=7))
    plan, hers = schedule(tables, 7), len(tables.alice.columns)
    assert plan.steps == 19
    rows = [len(range(ROWS)[plan.rows_of(number)]) for number in range(plan.steps)]
    # Her points before all steps but the first, and residues with points in each.
    expected = [[hers] * (number > 0) + [count + hers] for number, count in enumerate(rows)]
    assert lengths(talk) == list(chain(*expected))
    assert [event.done for event in talk.seen(Progress)] == list(range(1, 8))
    flipped = Tables(
        tables.alice,
        tables.bob,
        type(tables.labels).from_data(1 - tables.labels.values),
        tables.free,
    )
    other = converse(star(flipped, epochs=7))
    assert [len(frame) for *_, frame in other.frames] == [len(frame) for *_, frame in talk.frames]


def test_it_resumes_bit_by_bit_with_a_round():
    tables = TABLES["halves"]
    whole = converse(star(tables, epochs=15))
    assert [states["bob"].iteration for states in whole.boundaries] == [0, 7]
    resumed = converse(star(tables, epochs=15), states=whole.boundaries[1])
    assert np.array_equal(resumed.weights, whole.weights)
    assert resumed.bob.iterations == whole.bob.iterations == 15
    assert [event.done for event in resumed.seen(Progress)] == list(range(8, 16))


def test_encrypted_products_make_the_same_model():
    tables = TABLES["halves"]
    clear, encrypted = (converse(star(tables, scheme, epochs=7)) for scheme in (CLEAR, BFV))
    assert encrypted.weights == pytest.approx(clear.weights, abs=2e-3)


def test_blocks_are_drawn_from_the_joint_seed():
    blocks = schedule(TABLES["halves"], 28).blocks
    order = block_order(SEED, blocks)
    assert np.array_equal(np.sort(order), np.arange(ROWS))
    assert all(np.all(np.diff(order[place]) > 0) for place in blocks)
    assert not np.array_equal(order, block_order(bytes(32), blocks))
