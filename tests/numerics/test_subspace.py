"""Bob's search: never worse, the same work for all values, and resumed as if never stopped."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.arrays import EVERY_ROW, FloatArray, LabelArray
from taciturn.errors import OutputError
from taciturn.families.base import RowLikelihood
from taciturn.families.registry import FAMILIES
from taciturn.memmap import BLOCK_ROWS, MEMORY, Scratch
from taciturn.numerics.descent import DescentSolver
from taciturn.numerics.label_noise import corrected_likelihood
from taciturn.numerics.likelihood import Likelihood, label_likelihood, weighted_likelihood
from taciturn.numerics.optimum import optimum, penalised_loss
from taciturn.numerics.subspace import ITERATIONS, OUTER_ITERATIONS, SAFE_STEPS, SubspaceSolver
from taciturn.numerics.whitening import Whitening
from taciturn.parallel import one_thread
from tests.expected import refused

ROWS, L2 = 300, 1 / 300
RNG = np.random.default_rng(7)
THEIRS = RNG.normal(size=(ROWS, 9)) @ RNG.normal(size=(9, 9))
OWN = np.column_stack([RNG.normal(size=(ROWS, 2)), np.ones(ROWS)])
LABELS = (THEIRS[:, 0] + OWN[:, 1] + RNG.logistic(size=ROWS) * 2 > 0.5).astype(np.int8)
# Rounded, as in a training: the penalty's matrix is not quite definite.
WHITENED = np.rint(Whitening.fit(THEIRS, L2).apply(THEIRS) * 2.0**8) / 2.0**8


def plain(labels: LabelArray = LABELS) -> Likelihood:
    return label_likelihood(labels, partial(weighted_likelihood, class_weight=None))


def solver_of(likelihood: Likelihood) -> SubspaceSolver:
    return SubspaceSolver(likelihood, OWN, L2, free=1, passes=20)


def rounded(direction: FloatArray) -> FloatArray:
    """As it would be sent: on a coarse grid."""
    return np.rint(direction * 2.0**18) / 2.0**18


def scores_of(direction: FloatArray) -> FloatArray:
    return WHITENED @ (direction @ WHITENED)


def losses(solver: SubspaceSolver, passes: int) -> list[float]:
    values = []
    for number in range(1, passes + 1):
        direction = rounded(solver.direction())
        values.append(solver.loss())
        solver.add(direction, scores_of(direction), last=number == passes)
    return [*values, solver.loss()]


@pytest.mark.parametrize("epsilon", [None, 0.2, 1.0, 5.0])
def test_no_pass_makes_the_loss_larger_whether_it_is_convex_or_not(epsilon):
    flipped = LABELS ^ (RNG.random(ROWS) < 0.2)
    likelihood = (
        plain()
        if epsilon is None
        else label_likelihood(flipped, partial(corrected_likelihood, epsilon=epsilon))
    )
    # More passes than Alice has columns: the last directions add nothing.
    values = losses(solver_of(likelihood), 14)
    assert np.all(np.diff(values) <= 1e-12)
    assert values[0] - values[-1] > 1e-3


def test_a_curvature_next_to_none_does_not_stop_the_search():
    """As flipped labels can leave it: every length of Newton's step is far too long."""

    def flat(scores: FloatArray, place: slice = EVERY_ROW) -> RowLikelihood:
        rows = plain()(scores, place)
        return RowLikelihood(rows.value, rows.slope, 1e-9 * rows.curvature)

    values = losses(solver_of(flat), 4)
    assert np.all(np.diff(values) < -1e-4)


def test_more_passes_than_columns_reach_a_point_without_slope():
    solver = solver_of(plain())
    losses(solver, 12)
    rows = plain()(solver.scores())
    weights = solver.combination() @ WHITENED
    theirs = weights - (rows.slope + WHITENED @ weights / 4) @ WHITENED / ROWS
    own = L2 * solver.weights * [1, 1, 0] - rows.slope @ OWN / ROWS
    assert np.abs(theirs).max() < 1e-6
    assert np.abs(own).max() < 1e-10


def test_a_direction_has_a_public_length_and_new_weights():
    solver = solver_of(plain())
    sent = []
    for _ in range(5):
        direction = solver.direction()
        assert np.linalg.norm(direction) == pytest.approx(1 / np.sqrt(ROWS), rel=1e-12)
        sent.append(direction)
        solver.add(direction, scores_of(direction))
    weights = np.array(sent) @ WHITENED
    assert np.linalg.norm(weights, axis=1).max() <= 2.001
    assert np.linalg.svd(weights, compute_uv=False).min() > 1e-3


class Counting:
    """A likelihood that counts how often it is asked."""

    def __init__(self, likelihood: Likelihood) -> None:
        self._likelihood, self.count = likelihood, 0

    def __call__(self, scores: FloatArray, place: slice = EVERY_ROW) -> RowLikelihood:
        self.count += 1
        assert np.isfinite(scores).all()
        return self._likelihood(scores, place)


def evaluations(labels: LabelArray, answers: list[FloatArray]) -> list[int]:
    likelihood = Counting(plain(labels))
    solver = solver_of(likelihood)
    counts = []
    for number, answer in enumerate(answers, start=1):
        direction = solver.direction()
        assert np.isfinite(direction).all()
        counts.append(likelihood.count)
        solver.add(direction, answer, last=number == len(answers))
        counts.append(likelihood.count)
    assert np.isfinite(solver.combination()).all()
    assert np.isfinite(solver.coefficients).all()
    return counts


@pytest.mark.parametrize("kind", ["true", "shuffled", "ones", "zeros", "separable"])
def test_labels_do_not_decide_how_much_is_computed(kind):
    labels = {
        "true": LABELS,
        "shuffled": RNG.permutation(LABELS),
        "ones": np.ones(ROWS),
        "zeros": np.zeros(ROWS),
        "separable": (THEIRS[:, 0] > 0).astype(np.int8),
    }[kind]
    answers = [WHITENED @ weights for weights in RNG.normal(size=(4, 9))]
    each_iteration = 1 + len(FAMILIES["binomial"].step_lengths) + len(SAFE_STEPS)
    first = OUTER_ITERATIONS * each_iteration + 1
    middle = ITERATIONS * each_iteration
    assert evaluations(labels, answers) == [
        first,
        first + middle,
        first + middle + 1,
        first + 2 * middle + 1,
        first + 2 * middle + 2,
        first + 3 * middle + 2,
        first + 3 * middle + 3,
        first + 3 * middle + 3 + OUTER_ITERATIONS * each_iteration,
    ]


@settings(max_examples=25)
@given(st.lists(st.sampled_from(["noise", "huge", "nan", "inf", "zero", "same"]), max_size=6))
@pytest.mark.slow  # a second, and others show the same on less
def test_answers_that_are_no_scores_change_neither_the_work_nor_its_end(kinds):
    rng = np.random.default_rng(1)
    noise = rng.normal(size=ROWS)
    garbage = {
        "noise": noise,
        "huge": 1e300 * rng.normal(size=ROWS),
        "nan": np.where(noise > 1, np.nan, noise),
        "inf": np.where(noise > 1, np.inf, -np.inf),
        "zero": np.zeros(ROWS),
        "same": np.ones(ROWS),
    }
    honest = [np.zeros(ROWS)] * len(kinds)
    assert evaluations(LABELS, [garbage[kind] for kind in kinds]) == evaluations(LABELS, honest)


@pytest.mark.parametrize("stop", [0, 1, 3, 5])
def test_a_rebuilt_solver_continues_bit_by_bit(stop):
    whole, first = solver_of(plain()), solver_of(plain())
    answered = np.empty((stop, ROWS))
    for number in range(stop):
        direction = rounded(first.direction())
        answered[number] = scores_of(direction)
        first.add(direction, answered[number])
    resumed = solver_of(plain())
    resumed.resume(*first.arrays, first.position)
    # What a mixture is for: the same of other rows' scores.
    scores = resumed.mixture @ answered + OWN @ resumed.weights
    np.testing.assert_allclose(scores, resumed.scores(), rtol=0, atol=1e-8)
    for number in range(6):
        direction = rounded(whole.direction())
        whole.add(direction, scores_of(direction))
        if number >= stop:
            np.testing.assert_array_equal(rounded(resumed.direction()), direction)
            resumed.add(direction, scores_of(direction))
    np.testing.assert_array_equal(resumed.coefficients, whole.coefficients)
    np.testing.assert_array_equal(resumed.combination(), whole.combination())
    assert len(resumed.mixture) == len(whole.mixture) == 6


# --- by blocks of rows ----------------------------------------------------------------------------


def searched(scratch: Scratch) -> list[bytes]:
    """All that a search of several blocks of rows says, its last block a short one."""
    rows, rng = 2 * BLOCK_ROWS + 5, np.random.default_rng(4)
    theirs, own = (
        rng.normal(size=(rows, 2)),
        np.column_stack([rng.normal(size=rows), np.ones(rows)]),
    )
    labels = (theirs[:, 0] + own[:, 0] + rng.logistic(size=rows) > 0).astype(np.int8)
    likelihood = plain(labels)
    whitened = Whitening.fit(theirs, L2).apply(theirs)
    said = []
    for solver in (
        SubspaceSolver(likelihood, own, L2, 1, 3, scratch),
        DescentSolver(likelihood, own, L2, 1, 3, scratch),
    ):
        for number in range(3):
            direction = rounded(solver.direction())
            solver.add(direction, whitened @ (direction @ whitened), last=number == 2)
            said += [direction.tobytes(), solver.scores().tobytes()]
        said += [part.tobytes() for part in (*solver.conclude(), solver.weights)]
    best = optimum(np.hstack([theirs, own]), likelihood, L2, 1)
    said += [best.weights.tobytes()]
    return said


@pytest.mark.slow  # a second or two, and others show the same on less
def test_neither_files_nor_cores_change_a_bit(tmp_path, monkeypatch):
    with one_thread():
        once = searched(MEMORY)
        folder = tmp_path / "scratch"
        assert searched(Scratch(folder, least=0)) == once
        # Nothing of what depends on labels is left under a name.
        assert list(folder.iterdir()) == []
        monkeypatch.setattr("taciturn.memmap.on_all_cores", lambda work, items: map(work, items))
        monkeypatch.setattr("taciturn.memmap.threads", lambda: 5)
        assert searched(MEMORY) == once


def test_a_search_that_finds_no_room_says_so_before_it_begins(tmp_path):
    scratch = Scratch(tmp_path / "scratch", least=0)
    with refused(OutputError):
        SubspaceSolver(plain(), OWN, L2, free=1, passes=2**45, scratch=scratch)


def test_a_column_of_his_own_that_repeats_or_is_empty_does_no_harm():
    own = np.column_stack([OWN[:, 0], OWN[:, 0], np.zeros(ROWS), 1e9 * OWN[:, 1], np.ones(ROWS)])
    odd, even = SubspaceSolver(plain(), own, L2, 1, 20), solver_of(plain())
    for solver in (odd, even):
        losses(solver, 10)
    assert odd.loss() == pytest.approx(even.loss(), abs=1e-3)
    assert odd.loss() <= even.loss()


KINDS = ["usual", "repeated", "of any scale", "fewer rows than columns"]


def many_columns(kind: str) -> tuple[FloatArray, LabelArray]:
    rows = 90 if kind == "fewer rows than columns" else ROWS
    own = np.random.default_rng(3).normal(size=(rows, 120))
    if kind == "repeated":
        own[:, 60:] = own[:, :60]
    elif kind == "of any scale":
        own *= np.logspace(-6, 6, 120)
    return own, LABELS[:rows]


def loss_alone(likelihood: Likelihood, own: FloatArray, l2: float) -> float:
    """Of a search in which Alice's columns are empty: his own are left."""
    solver = SubspaceSolver(likelihood, own, l2, 0, 3)
    for number in range(3):
        solver.add(solver.direction(), np.zeros(len(own)), last=number == 2)
    return solver.loss()


@pytest.mark.parametrize("kind", KINDS)
def test_many_columns_of_his_own_end_at_the_optimum(kind):
    own, labels = many_columns(kind)
    best = optimum(own, plain(labels), 0.1, 0)
    assert loss_alone(plain(labels), own, 0.1) == pytest.approx(best.loss, abs=1e-9)


@pytest.mark.parametrize("kind", ["usual", "repeated", "fewer rows than columns"])
def test_many_columns_of_his_own_and_flipped_labels_end_near_a_minimum(kind):
    own, labels = many_columns(kind)
    likelihood = label_likelihood(labels, partial(corrected_likelihood, epsilon=1.0))
    best = optimum(own, likelihood, 0.01, 0)
    assert loss_alone(likelihood, own, 0.01) == pytest.approx(best.loss, abs=1e-3)


# --- several penalties in one search --------------------------------------------------------------

PENALTIES = (1e-4, 1e-3, 1e-2)


def shared_search(likelihood: Likelihood, passes: int) -> SubspaceSolver:
    """In the coordinates of ``L2``, which is none of the penalties."""
    return SubspaceSolver(likelihood, OWN, L2, 1, passes, penalties=PENALTIES)


def weights_of(solver: SubspaceSolver, penalty: int) -> FloatArray:
    combination, own = solver.conclude(penalty)
    theirs = Whitening.fit(THEIRS, L2).weights(combination @ WHITENED)
    return np.concatenate([theirs, own])


def test_each_penalty_ends_at_its_own_optimum():
    solver, joined = shared_search(plain(), 14), np.hstack([THEIRS, OWN])
    losses(solver, 14)
    for number, l2 in enumerate(PENALTIES):
        weights = weights_of(solver, number)
        loss = penalised_loss(joined @ weights, plain(), weights, l2, 1)
        assert loss - optimum(joined, plain(), l2, 1).loss < 1e-5


@pytest.mark.parametrize("stop", [0, 1, 2, 5, 8])
def test_a_rebuilt_search_of_several_penalties_continues_bit_by_bit(stop):
    whole, passes = shared_search(plain(), 8), 8
    rebuilt = whole
    for number in range(passes):
        if number == stop:
            rebuilt = shared_search(plain(), passes)
            rebuilt.resume(*whole.arrays, whole.position)
        direction = rounded(whole.direction())
        np.testing.assert_array_equal(rounded(rebuilt.direction()), direction)
        for solver in {id(whole): whole, id(rebuilt): rebuilt}.values():
            solver.add(direction, scores_of(direction), last=number == passes - 1)
    if stop == passes:
        rebuilt = shared_search(plain(), passes)
        rebuilt.resume(*whole.arrays, whole.position)
    assert rebuilt is not whole
    for penalty in range(len(PENALTIES)):
        np.testing.assert_array_equal(weights_of(rebuilt, penalty), weights_of(whole, penalty))


def test_labels_do_not_decide_how_much_several_penalties_compute():
    counts = set()
    for labels in (LABELS, np.ones(ROWS), (THEIRS[:, 0] > 0).astype(np.int8)):
        likelihood = Counting(plain(labels))
        losses(shared_search(likelihood, 7), 7)
        counts.add(likelihood.count)
    assert len(counts) == 1
