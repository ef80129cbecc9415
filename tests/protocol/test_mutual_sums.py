"""What newton with shared scores opens in the end: a change of the loss and a count, or nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from taciturn.crypto.base import Scheme
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.clear import ClearScheme
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.engine.pair import run_pair
from taciturn.numerics.likelihood import label_likelihood, weighted_likelihood
from taciturn.numerics.periodic_sigmoid import half_range
from taciturn.numerics.shared_fraction import SharedFraction
from taciturn.numerics.shared_range import RangeCount
from taciturn.numerics.whole_table import fit_on_schedule
from taciturn.privacy.row_noise import OPENING_ROWS, row_noise
from taciturn.protocol.codec import decode
from taciturn.protocol.messages import (
    CarryShares,
    LossShares,
    OpenedSums,
    ResidueShares,
    Role,
    Segments,
)
from taciturn.protocol.mutual import Columns
from taciturn.protocol.mutual_sums import OpenedFigures, SharedSums, SumsPlan
from taciturn.protocol.mutual_table import TablePlan
from taciturn.protocol.outcome import BobTrained
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from tests.protocol.parties import ALICE, Tables
from tests.protocol.stars import Star, StarTalk, converse
from tests.protocol.test_conversations import agreed, complement

CLEAR, BFV = ClearScheme(), BfvScheme()
# Alice's numbers of a row are rounded at random: a few standard deviations of a change.
ROUNDING = 1e-4
OPENED = {
    "all-at-alice": Tables.make(rows=OPENING_ROWS, alice=2),
    "halves-and-intercept": Tables.make(rows=OPENING_ROWS, alice=2, bob=1, intercept=True),
}
"""Tables of the fewest rows whose sums are opened."""


def noise(rows: int) -> float:
    """Largest noise on the change of the mean loss."""
    return row_noise("change of the loss", rows).width / rows / 2


def cancer(columns: int = 15) -> Tables:
    """A real table fifteen times over, half of its columns at Bob with an intercept."""
    from sklearn.datasets import load_breast_cancer

    values, labels = (np.concatenate([part] * 15) for part in load_breast_cancer(return_X_y=True))
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


def change_in_clear(tables: Tables, passes: int, l2: float, weights: Any = None) -> float:
    """Decrease of the mean loss between the points from which the last two passes start."""
    before, last = losses_in_clear(tables, passes, l2, weights)
    return before - last


def opened_messages(talk: StarTalk) -> list[OpenedSums]:
    return [message for message in talk.said_by("alice") if isinstance(message, OpenedSums)]


@pytest.mark.parametrize("weights", [None, (0.3, 1.0)], ids=["alike", "weighted"])
@pytest.mark.parametrize(
    "scheme", [CLEAR, pytest.param(BFV, marks=pytest.mark.slow)], ids=["clear", "bfv"]
)
def test_the_opened_change_is_that_of_a_real_table(scheme, weights):
    tables = cancer()
    passes = 3 if scheme is BFV else 6
    opened = bob(train(tables, scheme, epochs=passes, l2=0.01, class_weight=weights))
    clear = change_in_clear(tables, passes, 0.01, weights)
    assert clear > 3e-3
    assert opened.opened_change == pytest.approx(clear, abs=1e-3 + noise(tables.labels.rows))
    assert opened.scores_beyond_range == 0


@pytest.mark.parametrize("split", OPENED)
def test_with_a_small_sigmoid_error_it_is_exact_but_for_noise(split):
    tables = OPENED[split]
    opened = bob(train(tables, epochs=5, sigmoid_error=1e-6))
    clear = change_in_clear(tables, 5, 0.05)
    assert opened.opened_change == pytest.approx(clear, abs=noise(OPENING_ROWS) + ROUNDING)


@pytest.mark.parametrize(
    ("rows", "passes", "changes", "sums"),
    [
        (OPENING_ROWS - 1, 2, {}, []),
        (OPENING_ROWS, 3, {}, [2]),
        (OPENING_ROWS, 2, {}, [2]),
        (OPENING_ROWS, 1, {}, [1]),
        (OPENING_ROWS - 1, 2, {"family": "gaussian"}, []),
        (OPENING_ROWS, 2, {"family": "gaussian"}, [1]),
    ],
)
def test_a_change_and_a_count_are_opened_once_and_only_with_enough_rows(
    rows, passes, changes, sums
):
    tables = Tables.make(rows=rows, alice=1, bob=1, intercept=True)
    if changes:
        numbers = LabelTable.from_data(tables.labels.values + 0.5, family="gaussian")
        tables = replace(tables, labels=numbers)
    talk = train(tables, epochs=passes, **changes)
    assert [len(message.shares) for message in opened_messages(talk)] == sums
    losses = {m.iteration for m in talk.said_by("alice") if isinstance(m, LossShares)}
    with_change = sums == [2]
    assert losses == ({passes - 2, passes - 1} if with_change else set())
    # Nor are sums computed that nobody opens: each step has carries of weights alone.
    carries = [m.iteration for m in talk.said_by("bob") if isinstance(m, Segments)]
    sized = {m.marks.length for m in talk.said_by("bob") if isinstance(m, Segments)}
    assert not sums or 2 * passes in carries
    assert sums or (max(carries) < passes and (changes or sized <= {6, rows}))
    opened = bob(talk)
    assert (opened.opened_change is not None) == with_change
    assert (opened.scores_beyond_range is not None) == bool(sums)


def sums_of(role: Role, plan: SumsPlan) -> SharedSums:
    fraction = SharedFraction(plan.scales.modulus_bits, plan.point_shift, raises=role == "alice")
    return SharedSums(plan, fraction, not_called)


def not_called(*_: Any) -> Any:
    raise AssertionError("opening needs no exchange")


def evenly(counts: Any) -> bool:
    """Chi-squared test of equal probabilities; false once in 100,000 times by chance."""
    expected = counts.sum() / len(counts)
    statistic = ((counts - expected) ** 2 / expected).sum()
    return bool(chi2.sf(statistic, len(counts) - 1) > 1e-5)


@pytest.mark.parametrize("rows", [OPENING_ROWS, 60_000])
def test_opened_sums_differ_from_the_true_ones_by_uniform_noise_of_the_stated_width(rows):
    """Against an oracle in clear: shares of known sums, opened by both sides' own code."""
    draws, plan = 4000, sums_plan(rows)
    width = row_noise("change of the loss", rows).width
    entropy = KeyedEntropy.from_seed(5)
    shares = entropy.fork("shares").integers(plan.modulus, 3 * draws).reshape(draws, 3)
    losses, count = np.array([plan.loss_unit * 0.4, plan.loss_unit * 0.3]).astype(np.int64), 40
    true = np.array([*losses.tolist(), count * plan.count_unit])
    errors, counted = np.empty(draws), np.empty(draws, dtype=np.int64)
    alice, his = sums_of("alice", plan), sums_of("bob", plan)
    for number, hers in enumerate(shares.view(np.int64)):
        own = (true - hers) % plan.modulus
        opening = alice.open_sums(hers, entropy.fork(f"{number}"))
        figures = run_pair(opening, his.read_sums(own))[1]
        errors[number] = (figures.change - (losses[0] - losses[1]) / plan.loss_unit) * rows
        counted[number] = (figures.count or 0) - count
    # In rows: uniform over the whole width, and nowhere else.
    assert -width / 2 <= errors.min() < -0.49 * width
    assert 0.49 * width < errors.max() <= width / 2
    places = np.minimum((errors / width + 0.5) * 16, 15).astype(int)
    assert evenly(np.bincount(places, minlength=16))
    assert plan.change_noise == pytest.approx(width * plan.loss_unit / rows, abs=1)
    assert set(counted.tolist()) == set(range(-8, 8))
    assert evenly(np.bincount(counted + 8))


def test_scores_beyond_the_range_are_reported_only_where_noise_alone_cannot_make_them():
    for count in range(-8, 24):
        beyond = OpenedFigures(count=count).beyond
        # The largest noise is 7.
        assert beyond == max(0, count - 7)


def test_complementary_labels_have_the_same_change_and_her_message_is_the_same():
    """With the same coins: what she opens is minus her masks, whatever the labels are."""
    tables = OPENED["halves-and-intercept"]
    one, other = (train(changed, epochs=4) for changed in (tables, complement(tables)))
    said = [opened_messages(talk) for talk in (one, other)]
    assert [len(messages) for messages in said] == [1, 1]
    assert said[0][0].shares.tolist() == said[1][0].shares.tolist()
    close = 2 * (noise(OPENING_ROWS) + ROUNDING)
    assert bob(one).opened_change == pytest.approx(bob(other).opened_change, abs=close)


def test_rows_in_another_order_on_both_sides_have_the_same_sums():
    tables = OPENED["halves-and-intercept"]
    one, other = (bob(train(changed, epochs=4)) for changed in (tables, reordered(tables)))
    close = 2 * (noise(OPENING_ROWS) + ROUNDING)
    assert one.opened_change == pytest.approx(other.opened_change, abs=close)
    assert one.scores_beyond_range == other.scores_beyond_range == 0


def test_scores_beyond_the_range_are_counted():
    tables, passes, l2 = OPENED["halves-and-intercept"], 6, 1e-4
    talk = train(tables, CLEAR, epochs=passes, l2=l2, score_range=4.0, sigmoid_error=1e-3)
    counted = bob(talk).scores_beyond_range
    sizes = np.abs(scores_in_clear(tables, passes, l2)[-1])
    half = half_range(4.0, 1e-3)
    assert sizes.max() < half
    least = RangeCount(59, half, 4.0).counted_from
    surely, possibly = (int(np.sum(sizes > edge)) for edge in (4.1, least - 0.1))
    assert counted is not None
    assert 16 < surely - 15 <= counted <= possibly < len(sizes)


def test_every_answer_number_by_number_is_counted_in_what_is_told():
    terms = agreed("mutual-table", epochs=3)
    talk = converse(Star.of(OPENED["halves-and-intercept"], terms, 1))
    kinds = Counter(type(message) for message in talk.said_by("alice"))
    sizes = Columns(2, 4), Columns(2, 4)
    plan = TablePlan.from_terms(Terms(terms, CLEAR), OPENING_ROWS, *sizes)
    answers = [kinds[kind] for kind in (ResidueShares, LossShares, CarryShares)]
    assert len(plan.slot_answers) == sum(answers)
    # The first pass has no sigmoid, and the other two sum their loss.
    assert answers[0] == answers[1]


def sums_plan(rows: int, **changes: Any) -> SumsPlan:
    terms = Terms(agreed("mutual-table", **changes), CLEAR)
    return TablePlan.from_terms(terms, rows, Columns(4, 4), Columns(4, 4)).sums


@pytest.mark.parametrize("rows", [OPENING_ROWS, 39_073, 120_000, 1_000_000])
@pytest.mark.parametrize(("score_range", "error"), [(64.0, 3e-3), (4.0, 1e-6), (256.0, 1e-2)])
def test_sums_fit_the_modulus_and_numbers_their_slots(rows, score_range, error):
    sums = sums_plan(rows, score_range=score_range, sigmoid_error=error)
    half, waves = sums.sigmoid.sigmoid.half_range, sums.sigmoid.sigmoid
    assert sums.loss_unit * half < sums.modulus / 2
    assert (rows + 1) * sums.count_unit + sums.count_noise < sums.modulus / 2
    largest = sums.loss_unit / rows * waves.loss_coefficients[0] * 2.0**-sums.sigmoid.bits
    assert largest < 2.0**31
    assert sums.mark < 2**31
    # Roundings of a weight and of a slope are below the noise.
    assert sums.loss_unit > 2.0**32
    # And little is told, whatever Bob sends.
    assert sums.bits < 34 + 20


def test_what_bob_decrypts_of_losses_digits_and_segments_is_uniform():
    """Over many coins of Alice's, in the clear scheme: every slot fills the modulus evenly."""
    tables = Tables.make(rows=OPENING_ROWS, alice=8, bob=8)
    star, slots = Star.of(tables, agreed("mutual-table", epochs=2), 1), list[np.ndarray]()
    for seed in range(2):
        sent = list[Any]()

        def noting(_: Any, frame: bytes, sent: list[Any] = sent) -> None:
            sent.append(decode(frame))

        alice = star.alice_program(entropy=ALICE.fork(str(seed)))
        run_pair(alice, star.bob_program(), tap=noting)
        answers = [one.answer for one in sent if isinstance(one, LossShares | CarryShares)]
        # One of the losses and one of digits in each pass, one of carries, and one of the count.
        assert len(answers) == 7
        slots += [np.frombuffer(one.data, dtype="<u8") for one in answers]
    counts = np.bincount((np.concatenate(slots) >> np.uint64(56)).astype(np.int64), minlength=8)
    expected = counts.sum() / 8
    # Chi-squared with 7 degrees of freedom: above 30 once in 10,000 times.
    assert ((counts - expected) ** 2 / expected).sum() < 30


def test_two_trainings_with_one_label_changed_differ_by_less_than_the_noise():
    """With two losses of a mean opened, the difference was that row's score."""
    tables = cancer()
    rows, width = tables.labels.rows, row_noise("change of the loss", tables.labels.rows).width
    for row in (6, 36):
        labels = tables.labels.values.copy()
        labels[row] = 1 - labels[row]
        changed = replace(tables, labels=LabelTable.from_data(labels))
        before, after = (change_in_clear(one, 28, 1 / rows) for one in (tables, changed))
        assert abs(after - before) * rows < 0.2 * width
