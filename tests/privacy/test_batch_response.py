"""``hybrid``: the sizes of a hidden batch, what is refused, and the exact law of a draw."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.errors import ConfigError
from taciturn.privacy.batch_response import (
    BatchDesign,
    HiddenBatch,
    acceptance,
    conditioning,
    design,
    draw_batch,
)
from taciturn.privacy.noise import response_flips
from taciturn.rng import KeyedEntropy
from tests.expected import refused
from tests.modules import module_of
from tests.privacy.odds import fits, happens

# [Tan22, Table III]: batch size, d_A, L_RR; and the training rows of an 80/20 split.
PAPER = {
    "breast-cancer": (16, 30, 40, 455),
    "sklearn-digits": (32, 64, 70, 1437),
    "census-income": (32, 81, 90, 39_073),
    "give-me-some-credit": (8, 10, 15, 120_000),
}


def stream(purpose: str) -> KeyedEntropy:
    return KeyedEntropy.from_seed(2024).fork(purpose)


# --- the solver --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dataset", "subset", "marked", "true", "asked", "accepted"),
    [
        ("breast-cancer", 111, 22, 16.08, 40.02, 0.981),
        ("sklearn-digits", 185, 44, 32.17, 70.09, 0.823),
        ("census-income", 260, 44, 32.17, 90.26, 0.891),
        ("give-me-some-credit", 37, 11, 8.04, 15.03, 0.957),
    ],
)
def test_the_papers_sizes_at_epsilon_one(dataset, subset, marked, true, asked, accepted):
    batch_size, columns, l_rr, rows = PAPER[dataset]
    sizes = design(batch_size, 1.0, columns, rows, l_rr=l_rr)
    assert sizes == BatchDesign(subset, marked, 1.0)
    assert sizes.true_rows == pytest.approx(true, abs=0.005)
    assert sizes.asked_rows == pytest.approx(asked, abs=0.005)
    # Between two draws and eighteen in a hundred are too short, although the average is not.
    assert acceptance(sizes, columns) == pytest.approx(accepted, abs=0.0006)


def meets_the_requirement(sizes: BatchDesign, columns: int, rows: int) -> bool:
    """[Tan22, the requirement], word by word."""
    s, q = sizes.subset, sizes.marked / sizes.subset
    p = math.exp(sizes.epsilon) / (1 + math.exp(sizes.epsilon))
    l_rr = q * s * p + (1 - q) * s * (1 - p)
    return columns < l_rr < s <= rows and 0 < q < 0.5 and 0.5 < p < 1


@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("dataset", sorted(PAPER))
def test_the_papers_sizes_at_other_epsilons_are_the_smallest_that_reach_l_rr(dataset, epsilon):
    batch_size, columns, l_rr, rows = PAPER[dataset]
    sizes = design(batch_size, epsilon, columns, rows, l_rr=l_rr)
    assert meets_the_requirement(sizes, columns, rows)
    assert sizes.marked == round(batch_size * (1 + math.exp(-epsilon)))
    assert abs(sizes.true_rows - batch_size) <= 0.5
    smaller = BatchDesign(sizes.subset - 1, sizes.marked, epsilon)
    assert smaller.asked_rows < l_rr <= sizes.asked_rows + 1e-9


@given(
    st.integers(1, 200),
    st.floats(0.01, 6),
    st.integers(1, 200),
    st.sampled_from([100, 5000, 10**7]),
)
def test_without_a_size_it_finds_one_wherever_there_are_rows(batch_size, epsilon, columns, rows):
    """Also with either size given: what is not refused meets the paper's requirement."""
    for sizes in ({}, {"l_rr": 60}, {"subset_size": 150}):
        try:
            chosen = design(batch_size, epsilon, columns, rows, **sizes)
        except ConfigError as error:
            # Nothing but too few rows stands in the way of the solver's own choice.
            assert sizes or error.setting == "subset_size"  # noqa: PT017
            continue
        assert meets_the_requirement(chosen, columns, rows)
        if "subset_size" in sizes:
            assert chosen.subset == 150


def test_both_sizes_at_once_are_refused():
    with refused(ConfigError):
        design(16, 1.0, 30, 455, subset_size=111, l_rr=40)


# --- refusals and their hints ------------------------------------------------------------------


def suggestions(hint: str) -> list[tuple[str, int]]:
    return [
        (name, int(number))
        for name, number in re.findall(r"\b(l_rr|subset_size|batch_size)=(\d+)", hint)
    ]


def applied(asked: dict[str, Any], name: str, number: int) -> BatchDesign:
    """The design after one change that a hint suggests, all else as it was."""
    if name in ("l_rr", "subset_size"):
        asked = {**asked, "l_rr": None, "subset_size": None}
    return design(**{**asked, name: number})


def test_every_number_in_every_hint_works():
    """Whatever was asked for: what a hint says is then accepted."""
    failed, tried = [], 0
    for batch_size, epsilon, columns, rows, size in itertools.product(
        (1, 8, 32, 60),
        (0.1, 1.0, 3.0, 8.0),
        (1, 10, 64),
        (60, 455, 40_000),
        ({}, {"l_rr": 5}, {"l_rr": 70}, {"subset_size": 20}, {"subset_size": 300}),
    ):
        asked: dict[str, Any] = {
            "batch_size": batch_size,
            "epsilon": epsilon,
            "columns": columns,
            "rows": rows,
            **size,
        }
        try:
            design(**asked)
        except ConfigError as error:
            for name, number in suggestions(error.hint):
                tried += 1
                try:
                    applied(asked, name, number)
                except ConfigError as again:
                    failed.append((asked, error.hint, again.message))
    assert not failed, f"{len(failed)} hints, the first: {failed[0]}"
    assert tried > 300


@pytest.mark.parametrize("epsilon", [40.0, 1000.0, 1e-18])
def test_a_response_that_keeps_all_or_nothing_is_refused(epsilon):
    with refused(ConfigError, setting="epsilon"):
        design(16, epsilon, 30, 455, l_rr=40)


# --- the exact law, on tiny designs ------------------------------------------------------------


def chance(response: tuple[int, ...], marks: tuple[int, ...], keep: float) -> float:
    same = sum(a == b for a, b in zip(response, marks, strict=True))
    return float(keep**same * (1 - keep) ** (len(marks) - same))


def indicators(subset: int, marked: int) -> list[tuple[int, ...]]:
    return [bits for bits in itertools.product((0, 1), repeat=subset) if sum(bits) == marked]


def conditional(made: BatchDesign, columns: int, marks: tuple[int, ...]) -> dict[Any, float]:
    """P(RR(m) | m) with redraws: every response that is long enough, over their sum."""
    accepted = {
        response: chance(response, marks, made.keep)
        for response in itertools.product((0, 1), repeat=made.subset)
        if sum(response) > columns
    }
    total = sum(accepted.values())
    return {response: mass / total for response, mass in accepted.items()}


def largest_loss(left: dict[Any, float], right: dict[Any, float]) -> float:
    return max(abs(math.log(left[response] / right[response])) for response in left)


TINY = [
    (BatchDesign(3, 1, 0.7), 1),
    (BatchDesign(4, 1, 1.0), 1),
    (BatchDesign(4, 1, 1.0), 2),
    (BatchDesign(4, 2, 1.5), 2),
    (BatchDesign(6, 2, 0.3), 3),
]


@pytest.mark.parametrize(("made", "columns"), TINY)
def test_the_number_of_ones_is_that_of_an_enumeration(made, columns):
    for marks in indicators(made.subset, made.marked):
        ones = np.zeros(made.subset + 1)
        for response in itertools.product((0, 1), repeat=made.subset):
            ones[sum(response)] += chance(response, marks, made.keep)
        np.testing.assert_allclose(module_of(BatchDesign)._ones(made), ones, atol=1e-12)
        assert acceptance(made, columns) == pytest.approx(ones[columns + 1 :].sum())


@pytest.mark.parametrize(("made", "columns"), TINY)
def test_redrawing_changes_no_ratio_between_indicators_with_as_many_marks(made, columns):
    """A swap of a marked and an unmarked row costs 2 eps, attained where both bits can differ."""
    laws = {
        marks: conditional(made, columns, marks) for marks in indicators(made.subset, made.marked)
    }
    for left, right in itertools.combinations(laws, 2):
        differ = sum(a != b for a, b in zip(left, right, strict=True))
        for response in laws[left]:
            ratio = laws[left][response] / laws[right][response]
            plain = chance(response, left, made.keep) / chance(response, right, made.keep)
            assert ratio == pytest.approx(plain)
        assert largest_loss(laws[left], laws[right]) <= differ * made.epsilon + 1e-12
        if differ == 2:
            # One bit 1 and the other 0 is possible whenever a response need not be all ones.
            attained = columns + 1 <= made.subset - 1
            expected = 2 * made.epsilon if attained else 0.0
            assert largest_loss(laws[left], laws[right]) == pytest.approx(expected)


@pytest.mark.parametrize("more", [1, -1])
@pytest.mark.parametrize(("made", "columns"), TINY)
def test_conditioning_is_what_redrawing_adds_between_so_many_marks_and_one_more_or_less(
    made, columns, more
):
    other = BatchDesign(made.subset, made.marked + more, made.epsilon)
    worst = max(
        largest_loss(conditional(made, columns, left), conditional(other, columns, right))
        for left in indicators(made.subset, made.marked)
        for right in indicators(made.subset, made.marked + more)
        if sum(a != b for a, b in zip(left, right, strict=True)) == 1
    )
    assert worst <= made.epsilon + conditioning(made, columns) + 1e-12
    apart = abs(math.log(acceptance(other, columns) / acceptance(made, columns)))
    assert worst == pytest.approx(made.epsilon + apart)
    if more < 0:
        # The dearer neighbour of the two: no smaller number would do.
        assert worst == pytest.approx(made.epsilon + conditioning(made, columns))


@pytest.mark.slow  # a second, and others show the same on less
def test_draws_of_a_tiny_design_fit_its_exact_law_with_false_alarm_rate_1e_minus_6():
    """Marks are uniform, and the response has the conditional law: all pairs of them."""
    made, columns, size = BatchDesign(4, 1, 1.0), 1, 2000
    entropy = stream("tiny")
    counts: Counter[Any] = Counter()
    for _ in range(size):
        batch = draw_batch(made, columns, 4, entropy)
        assert batch.subset.tolist() == [0, 1, 2, 3]
        counts[tuple(batch.marks.astype(int)), tuple(batch.response.astype(int))] += 1
    expected = {
        (marks, response): mass / 4
        for marks in indicators(4, 1)
        for response, mass in conditional(made, columns, marks).items()
    }
    assert set(counts) <= set(expected)
    assert fits([counts[cell] for cell in expected], list(expected.values()))


# --- draws -------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.integers(3, 40), st.data())
def test_a_draw_has_the_sizes_it_should_have(subset, data):
    marked = data.draw(st.integers(1, (subset - 1) // 2))
    # Near the edge between the two ways of choosing rows, and far from it.
    rows = data.draw(st.integers(subset, 6 * subset) | st.just(100_000))
    made = BatchDesign(subset, marked, data.draw(st.floats(0.05, 3.0)))
    columns = int(made.asked_rows) - 1
    batch = draw_batch(made, columns, rows, KeyedEntropy.from_seed(data.draw(st.integers(0, 99))))
    assert batch.subset.dtype == np.int64
    assert batch.subset.shape == batch.marks.shape == batch.response.shape == (subset,)
    assert (np.diff(batch.subset) > 0).all()
    assert 0 <= batch.subset[0]
    assert batch.subset[-1] < rows
    assert int(batch.marks.sum()) == marked
    assert int(batch.response.sum()) == len(batch.asked) > columns
    # The true batch: marked, and asked for. A marked row that was flipped to 0 is in neither.
    true = set(batch.asked[batch.true].tolist())
    assert true == set(batch.subset[batch.marks & batch.response].tolist())
    lost = set(batch.subset[batch.marks & ~batch.response].tolist())
    assert not lost & set(batch.asked.tolist())


MADE, COLUMNS, ROWS = BatchDesign(37, 11, 1.0), 12, 100


@pytest.fixture(scope="module")
def batches() -> list[HiddenBatch]:
    entropy = stream("batches")
    return [draw_batch(MADE, COLUMNS, ROWS, entropy) for _ in range(1500)]


def test_ones_have_the_stated_distribution_with_false_alarm_rate_1e_minus_6(batches):
    ones = np.bincount([len(batch.asked) for batch in batches], minlength=MADE.subset + 1)
    cells = module_of(BatchDesign)._ones(MADE).copy()
    cells[: COLUMNS + 1] = 0.0
    assert fits(ones, cells / cells.sum())
    assert min(len(batch.asked) for batch in batches) == COLUMNS + 1


def test_rows_are_chosen_and_marked_evenly_with_false_alarm_rate_1e_minus_6(batches):
    """Counts over rows without replacement vary less than the test assumes: it is safe.

    A quarter of the rows or less are chosen in another way.
    """
    few, entropy = BatchDesign(5, 2, 1.0), stream("sparse")
    sparse = [draw_batch(few, 0, 40, entropy) for _ in range(1200)]
    for drawn, rows in ((batches, ROWS), (sparse, 40)):
        shown = np.concatenate([batch.subset for batch in drawn])
        marked = np.concatenate([batch.subset[batch.marks] for batch in drawn])
        for places in (shown, marked):
            assert fits(np.bincount(places, minlength=rows), np.full(rows, 1 / rows))
    # The place in the subset tells nothing of the marks.
    places = np.sum([batch.marks for batch in batches], axis=0)
    assert fits(places, np.full(MADE.subset, 1 / MADE.subset))


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 3.0])
def test_flips_have_the_stated_probability_with_false_alarm_rate_1e_minus_6(epsilon):
    """Enough of them to tell an epsilon that is off by a twentieth, at 1 and 3."""
    size = 200_000
    flips = response_flips(epsilon, size, stream(f"flips {epsilon}"))
    assert happens(int(flips.sum()), size, 1 / (1 + math.exp(epsilon)))
    for off in (0.95, 1.05):
        accepted = happens(int(flips.sum()), size, 1 / (1 + math.exp(off * epsilon)))
        assert accepted == (epsilon < 1)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_bits_are_kept_and_flipped_as_stated_with_false_alarm_rate_1e_minus_6(epsilon):
    """Without a condition on the length (no columns) every bit is an honest response."""
    made, entropy = BatchDesign(200, 90, epsilon), stream(f"bits {epsilon}")
    drawn = [draw_batch(made, 0, 300, entropy) for _ in range(100)]
    marks = np.concatenate([batch.marks for batch in drawn])
    response = np.concatenate([batch.response for batch in drawn])
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert happens(int(response[marks].sum()), int(marks.sum()), keep)
    assert happens(int((~response[~marks]).sum()), int((~marks).sum()), keep)


def test_a_design_that_is_never_long_enough_ends_with_an_error(monkeypatch):
    monkeypatch.setattr(module_of(BatchDesign), "_MOST_REDRAWS", 20)
    with refused(ConfigError, setting="l_rr", names=(20, 9)):
        draw_batch(BatchDesign(10, 1, 5.0), 9, 50, stream("never"))
