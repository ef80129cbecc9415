"""The reduction keeps the lattice, and makes its vectors short."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.arrays import IntArray
from taciturn_audit.lattice import kernel, nearest_residues, reduce_basis


def knapsack(rows: int, columns: int, seed: int) -> IntArray:
    """The basis that the attack reduces: an identity beside a table."""
    table = np.random.default_rng(seed).integers(-5000, 5000, (rows, columns))
    return np.hstack([16 * np.eye(rows, dtype=np.int64), table])


@pytest.mark.parametrize("shape", [(2, 1), (10, 3), (24, 5)])
def test_it_stays_the_same_lattice(shape):
    basis = knapsack(shape[0], shape[1], seed=1)
    reduced = reduce_basis(basis)
    # The identity beside the table shows by which whole numbers rows were combined.
    change = reduced.basis[:, : shape[0]] // 16
    assert (change @ basis == reduced.basis).all()
    assert round(np.linalg.slogdet(change.astype(float))[1], 6) == 0.0


def test_rows_are_reduced_in_the_sense_of_lenstra_lenstra_and_lovasz():
    reduced = reduce_basis(knapsack(24, 5, seed=2))
    q, r = np.linalg.qr(reduced.basis.astype(float).T)
    shares = (r / np.diag(r)[:, None]).T
    assert np.abs(np.tril(shares, -1)).max() < 0.5 + 1e-5
    norms = np.diag(r) ** 2
    for row in range(1, len(norms)):
        assert norms[row] >= (0.99 - shares[row, row - 1] ** 2) * norms[row - 1] * (1 - 1e-9)
    assert np.allclose(np.abs(reduced.orthogonal), np.abs((q * np.diag(r)).T))


def test_a_shortest_vector_that_was_hidden_is_found():
    entropy = np.random.default_rng(3)
    basis = knapsack(12, 4, seed=3)
    short = np.zeros(16, dtype=np.int64)
    short[:12] = 16 * entropy.integers(-1, 2, 12)
    # A row replaced so that the others and it span the short vector.
    basis[0] = short + (entropy.integers(-3, 4, 11) @ basis[1:])
    reduced = reduce_basis(basis)
    assert np.linalg.norm(reduced.basis[0]) <= np.linalg.norm(short)


def test_a_kernel_has_every_relation_and_no_other():
    table = np.random.default_rng(4).integers(-5000, 5000, (9, 4))
    relations = kernel(table)
    assert relations.shape == (5, 9)
    assert not (relations @ table.astype(object)).any()
    # A basis of all relations: no multiple of an integer vector stands in for the vector.
    minors = np.linalg.svd(relations.astype(float), compute_uv=False)
    volume = np.sqrt(np.linalg.det(table.T.astype(float) @ table))
    assert np.prod(minors) == pytest.approx(volume, rel=1e-6)


def test_residues_are_exact_for_targets_far_away():
    entropy = np.random.default_rng(6)
    basis = reduce_basis(knapsack(20, 5, seed=6)).basis
    moved = entropy.integers(-2, 3, (50, 25))
    targets = entropy.integers(-(2**40), 2**40, (50, 20)) @ basis + moved
    assert (nearest_residues(basis, targets) == moved).all()


def test_the_nearest_vector_is_the_one_that_was_moved_a_little():
    entropy = np.random.default_rng(5)
    basis = knapsack(20, 5, seed=5)
    point = entropy.integers(-9, 10, 20) @ basis
    near = reduce_basis(basis).nearest(point + entropy.normal(size=25), width=50)
    assert near[0].tolist() == point.tolist()
    assert len(near) == 50
    assert len({tuple(one) for one in near.tolist()}) == 50
