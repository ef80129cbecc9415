"""What newton with shared scores opens in the end: two losses and a count, and nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from taciturn.crypto import ClearScheme, Scheme
from taciturn.crypto.bfv import BfvScheme
from taciturn.data import FeatureTable, LabelTable
from taciturn.engine import run_pair
from taciturn.numerics import (
    RangeCount,
    fit_on_schedule,
    half_range,
    label_likelihood,
    weighted_likelihood,
)
from taciturn.protocol import (
    BobTrained,
    CarryShares,
    Columns,
    LossShares,
    OpenedSums,
    ResidueShares,
    TablePlan,
    Terms,
    decode,
)
from tests.protocol.parties import ALICE, Tables
from tests.protocol.stars import Star, StarTalk, converse
from tests.protocol.test_conversations import SPLITS, agreed, complement

CLEAR, BFV = ClearScheme(), BfvScheme()
NOISE = 2.0**-16
# Alice's numbers of a row are rounded at random: a few standard deviations of a mean of few rows.
ROUNDING = 2e-4


def cancer(columns: int = 15) -> Tables:
    """A real table, half of its columns at Bob with an intercept."""
    from sklearn.datasets import load_breast_cancer

    values, labels = load_breast_cancer(return_X_y=True)
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    his = FeatureTable.from_data(
        values[:, columns:], columns=[f"b{at}" for at in range(30 - columns)]
    )
    hers = FeatureTable.from_data(values[:, :columns])
    return Tables(hers, his.with_intercept(), LabelTable.from_data(labels.astype(np.int8)), 1)


def reordered(tables: Tables) -> Tables:
    """The rows in another order: each has other shares."""
    order = np.random.default_rng(3).permutation(tables.labels.rows)
    return replace(
        tables,
        alice=replace(tables.alice, values=tables.alice.values[order]),
        bob=replace(tables.bob, values=tables.bob.values[order]),
        labels=LabelTable.from_data(tables.labels.values[order]),
    )


def train(tables: Tables, scheme: Scheme = CLEAR, **changes: Any) -> StarTalk:
    return converse(Star.of(tables, agreed("mutual-table", scheme, **changes), 1, scheme))


def bob(talk: StarTalk) -> BobTrained:
    assert isinstance(talk.bob, BobTrained)
    return talk.bob


def scores_in_clear(tables: Tables, passes: int, l2: float, weights: Any = None) -> list[Any]:
    """The scores from which each pass starts, of a training in one place."""
    seen = list[Any]()
    likelihood = label_likelihood(
        tables.labels.values, partial(weighted_likelihood, class_weight=weights)
    )

    def noting(scores: Any) -> Any:
        seen.append(scores)
        return likelihood(scores)

    heaviest = max(weights or (1.0,))
    alice, own = tables.alice.values, tables.bob.values
    fit_on_schedule(alice, own, noting, l2, tables.free, passes, heaviest)  # type: ignore[arg-type]
    return seen


def losses_in_clear(tables: Tables, passes: int, l2: float, weights: Any = None) -> list[float]:
    likelihood = label_likelihood(
        tables.labels.values, partial(weighted_likelihood, class_weight=weights)
    )
    scores = scores_in_clear(tables, passes, l2, weights)[-2:]
    return [-float(np.mean(likelihood(one).value)) for one in scores]


@pytest.mark.parametrize("scheme", [CLEAR, BFV], ids=["clear", "bfv"])
@pytest.mark.parametrize("weights", [None, (0.3, 1.0)], ids=["alike", "weighted"])
@pytest.mark.sampled(2)
def test_the_opened_losses_are_those_of_a_real_table_within_the_stated_bound(scheme, weights):
    tables = cancer()
    opened = bob(train(tables, scheme, epochs=8, l2=0.01, class_weight=weights))
    clear = losses_in_clear(tables, 8, 0.01, weights)
    plan = TablePlan.from_terms(
        Terms(agreed("mutual-table", epochs=8), CLEAR),
        tables.labels.rows,
        Columns(15, 4),
        Columns(16, 4),
    )
    bound = plan.sigmoid.sigmoid.loss_bound(64.0) + NOISE + ROUNDING
    assert np.abs(np.subtract(opened.losses, clear)).max() < bound < 2.5e-3
    # A change of the loss is off by less: errors of both passes are nearly the same.
    assert abs(np.diff(opened.losses)[0] - np.diff(clear)[0]) < 1e-3
    assert opened.scores_beyond_range == 0


@pytest.mark.parametrize("split", ["all-at-alice", "halves-and-intercept"])
def test_with_a_small_sigmoid_error_they_are_exact_but_for_noise(split):
    tables = SPLITS[split]
    opened = bob(train(tables, epochs=5, sigmoid_error=1e-6))
    clear = losses_in_clear(tables, 5, 0.05)
    assert opened.losses == pytest.approx(clear, abs=NOISE + ROUNDING)


@pytest.mark.parametrize("passes", [1, 2, 3])
def test_as_many_losses_are_opened_as_there_are_passes_and_two_at_most(passes):
    opened = bob(train(SPLITS["all-at-alice"], epochs=passes))
    assert len(opened.losses) == min(passes, 2)
    if passes < 3:
        # Before the first pass all scores are zero.
        assert opened.losses[0] == pytest.approx(np.log(2.0), abs=2e-3)


def test_complementary_labels_have_the_same_losses_and_her_message_is_the_same():
    """With the same coins: what she opens is minus her masks, whatever the labels are."""
    tables = SPLITS["halves-and-intercept"]
    one, other = (train(changed, epochs=4) for changed in (tables, complement(tables)))
    said = [
        [m for m in talk.said_by("alice") if isinstance(m, OpenedSums)] for talk in (one, other)
    ]
    assert [len(messages) for messages in said] == [1, 1]
    assert said[0][0].shares.tolist() == said[1][0].shares.tolist()
    assert bob(one).losses == pytest.approx(bob(other).losses, abs=2 * (NOISE + ROUNDING))


def test_rows_in_another_order_on_both_sides_have_the_same_sums():
    tables = SPLITS["halves-and-intercept"]
    one, other = (bob(train(changed, epochs=4)) for changed in (tables, reordered(tables)))
    assert one.losses == pytest.approx(other.losses, abs=2 * (NOISE + ROUNDING))
    assert one.scores_beyond_range == other.scores_beyond_range


def test_scores_beyond_the_range_are_counted():
    tables, passes, l2 = SPLITS["halves-and-intercept"], 12, 1e-4
    talk = train(tables, CLEAR, epochs=passes, l2=l2, score_range=8.0, sigmoid_error=1e-3)
    counted = bob(talk).scores_beyond_range
    sizes = np.abs(scores_in_clear(tables, passes, l2)[-1])
    half = half_range(8.0, 1e-3)
    assert sizes.max() < half
    least = RangeCount(59, half, 8.0).counted_from
    surely, possibly = (int(np.sum(sizes > edge)) for edge in (8.2, least - 0.2))
    assert counted is not None
    assert 0 < surely <= counted <= possibly < len(sizes)


def test_every_answer_number_by_number_is_counted_in_what_is_told():
    tables = Tables.make(rows=700, alice=4, bob=3, intercept=True)
    terms = agreed("mutual-table", BFV, epochs=3, batch_size=700)
    talk = converse(Star.of(tables, terms, 1, BFV))
    kinds = Counter(type(message) for message in talk.said_by("alice"))
    plan = TablePlan.from_terms(Terms(terms, BFV), 700, Columns(4, 4), Columns(4, 4))
    answers = [kinds[kind] for kind in (ResidueShares, LossShares, CarryShares)]
    assert len(plan.slot_answers) == sum(answers)
    # The first pass has no sigmoid, and the other two open their loss.
    assert answers[0] == answers[1]


@pytest.mark.parametrize("rows", [1, 20, 455, 39_073, 120_000, 1_000_000])
@pytest.mark.parametrize(("score_range", "error"), [(64.0, 3e-3), (4.0, 1e-6), (256.0, 1e-2)])
def test_sums_fit_the_modulus_and_numbers_their_slots(rows, score_range, error):
    terms = agreed("mutual-table", score_range=score_range, sigmoid_error=error)
    sums = TablePlan.from_terms(Terms(terms, CLEAR), rows, Columns(4, 4), Columns(4, 4)).sums
    half, waves = sums.sigmoid.sigmoid.half_range, sums.sigmoid.sigmoid
    assert sums.loss_unit * half < sums.modulus / 2
    assert (rows + 1) * sums.count_unit < sums.modulus
    largest = sums.loss_unit / rows * waves.loss_coefficients[0] * 2.0**-sums.sigmoid.bits
    assert largest < 2.0**31
    assert sums.mark < 2**31
    # Roundings of a weight and of a slope are below the noise.
    assert sums.loss_unit > 2.0**32
    # And little is told, whatever Bob sends.
    assert sums.bits < 2 * 34 + 24


def test_what_bob_decrypts_of_losses_digits_and_segments_is_uniform():
    """Over many coins of Alice's, in the clear scheme: every slot fills the modulus evenly."""
    tables = Tables.make(alice=8, bob=8)
    star, slots = Star.of(tables, agreed("mutual-table", epochs=1), 1), list[np.ndarray]()
    for seed in range(4):
        sent = list[Any]()

        def noting(_: Any, frame: bytes, sent: list[Any] = sent) -> None:
            sent.append(decode(frame))

        alice = star.alice_program(entropy=ALICE.fork(str(seed)))
        run_pair(alice, star.bob_program(), tap=noting)
        answers = [one.answer for one in sent if isinstance(one, LossShares | CarryShares)]
        assert len(answers) == 4
        slots += [np.frombuffer(one.data, dtype="<u8") for one in answers]
    counts = np.bincount((np.concatenate(slots) >> np.uint64(56)).astype(np.int64), minlength=8)
    expected = counts.sum() / 8
    # Chi-squared with 7 degrees of freedom: above 30 once in 10,000 times.
    assert ((counts - expected) ** 2 / expected).sum() < 30


@pytest.mark.slow
def test_two_trainings_with_one_label_changed_tell_about_that_row_s_score():
    """A limit, not a promise: what is opened is protected within one training alone."""
    tables = cancer()
    rows = tables.labels.rows
    whole = train(tables, epochs=28, l2=1 / rows)
    scores = np.hstack([tables.alice.values, tables.bob.values]) @ whole.weights
    for row in (6, 36, 48):
        labels = tables.labels.values.copy()
        labels[row] = 1 - labels[row]
        changed = reordered(replace(tables, labels=LabelTable.from_data(labels)))
        rise = bob(train(changed, epochs=28, l2=1 / rows)).losses[-1] - bob(whole).losses[-1]
        read = rows * rise * (1 if tables.labels.values[row] else -1)
        assert read == pytest.approx(scores[row], rel=0.1)
