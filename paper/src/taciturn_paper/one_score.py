"""Disclosure by one score of a new row under ``mutual``, with and without Alice's noise.

The attacker is a Bob who knows Alice's weights, as integers, and how her rows are whitened and
rounded. A held-out score and a predicted one are the same number. Continuous columns: before the
noise the smallest integer solution of the exact equation, by lattice reduction; after it the
conditional mean given the score. Integer columns: the likeliest of all rows that fit the score.

Run it with ``python -m taciturn_paper.one_score``.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.clear import ClearScheme
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.engine.pair import run_pair
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.registry import mechanism
from taciturn.privacy.row_noise import SCORE_NOISE_BITS
from taciturn.privacy.solvers import resolved
from taciturn.protocol.agree import agree
from taciturn.protocol.alice import train_table_mutual as alice
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.score_noise import ScoreNoise, noise_key
from taciturn.protocol.bob import train_table_mutual as bob
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.prediction import whitened_rows
from taciturn.rng import Entropy, KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy

TRAINED, NEW, MODELS = 2000, 200, 5
NEAR = 0.1
# Largest value of each integer column: years, visits in a year, children.
LEVELS = (72, 20, 6)


@dataclass(frozen=True, slots=True)
class Target:
    """A trained model and new rows.

    ``standard`` has the new rows in standard deviations of the training rows. ``share`` is Alice's
    share of her weights, with scales and whitening. ``weights`` are the integers that rows are
    multiplied with; ``exact`` and ``noisy`` the scores of her part, without and with noise.
    """

    raw: FloatArray
    standard: FloatArray
    share: WeightShare
    weights: IntArray
    exact: IntArray
    noisy: IntArray

    @classmethod
    def train(cls, columns: int, seed: int, *, integers: bool) -> Target:
        """Trains ``mutual`` with newton on drawn rows, and scores others."""
        draw = KeyedEntropy.from_seed(seed).fork(f"{columns} {integers}")
        raw = _normal(draw.fork("alice"), (TRAINED + NEW, columns))
        if integers:
            spread = np.array(LEVELS[:columns]) / 6
            raw = np.clip(np.rint((raw + 3) * spread), 0, LEVELS[:columns])
        mean, deviation = raw[:TRAINED].mean(axis=0), raw[:TRAINED].std(axis=0)
        standard = (raw - mean) / deviation
        truth = standard @ np.array([1.0, -0.7, 0.5])[:columns]
        labels = (draw.uniform((TRAINED,)) < 1 / (1 + np.exp(-truth[:TRAINED]))).astype(np.int8)
        chosen = {"mechanism": "mutual", "scheme": "clear", "solver": "newton", "intercept": False}
        settings = resolved(Settings.from_mapping(chosen))
        terms, entropy = (
            agree(settings, columns, TRAINED, ClearScheme()),
            RunEntropy.for_seed(seed),
        )
        method = mechanism(terms.agreement)
        hers = FeatureTable.from_data(standard[:TRAINED])
        his = FeatureTable.from_data(_normal(draw.fork("bob"), (TRAINED, 2)))
        ledger, key = Ledger(TRAINED, method.assumption), noise_key(entropy.alice)
        trained, other = run_pair(
            alice.train(AliceInputs(hers, terms, entropy.alice)),
            bob.train(
                BobInputs(
                    his,
                    LabelTable.from_data(labels),
                    terms,
                    method,  # type: ignore[arg-type]
                    ledger,
                    entropy.bob,
                )
            ),
        )
        own, bobs, share = trained.share, trained.bob_share, other.share
        if own is None or bobs is None or share is None:
            raise TypeError("mutual shares its weights")
        scales = own.scales
        weights = scales.ring(4, columns).centred(own.values + share.values)
        new = FeatureTable.from_data(standard[TRAINED:])
        encoded = encode(own, new)
        exact = encoded @ weights
        drawn = ScoreNoise(key, own.values, bobs.values).draw(new.ids, encoded, scales.score_unit)
        return cls(raw[TRAINED:], new.values, own, weights, exact, exact + drawn)

    @property
    def unit(self) -> float:
        """The step of a score, in log-odds."""
        return self.share.scales.score_unit


def _normal(entropy: Entropy, shape: tuple[int, int]) -> FloatArray:
    """Normal draws, by Box and Muller."""
    first, second = entropy.fork("first").uniform(shape), entropy.fork("second").uniform(shape)
    drawn: FloatArray = np.sqrt(-2 * np.log1p(-first)) * np.cos(2 * np.pi * second)
    return drawn


def encode(share: WeightShare, rows: FeatureTable) -> IntArray:
    """Rows as the integers that are multiplied."""
    return share.scales.feature_grid.rounded(whitened_rows(rows, share.whitening).values)


def standardised(target: Target, encoded: FloatArray) -> FloatArray:
    """The columns of encoded rows, in standard deviations."""
    whitening = target.share.whitening
    values = encoded * 2.0**-target.share.scales.feature_bits
    return values if whitening is None else values @ whitening.factor.T


def smallest(weights: list[int], score: int) -> list[int]:
    """The shortest integer vector whose product with the weights is the score.

    Zeros where there is none. Every solution is one of them plus a vector of the lattice of
    solutions for 0; its basis and the first solution come from one LLL.
    """
    # Only here: the package belongs to the extra "audit".
    from flint import fmpz_mat

    count, large = len(weights), 1 << 200
    reduced = fmpz_mat(
        [[int(i == j) for j in range(count)] + [large * weights[i]] for i in range(count)]
    ).lll()
    table = [[int(entry) for entry in row] for row in reduced.tolist()]
    basis = [row[:-1] for row in table if not row[-1]]
    ((*first, step),) = (row for row in table if row[-1])
    times, rest = divmod(score, step // large)
    if rest:
        return [0] * count
    start = _less(basis, [times * entry for entry in first])
    near = itertools.product(range(-2, 3), repeat=len(basis))
    moved = (
        [s + sum(c * b[i] for c, b in zip(by, basis, strict=True)) for i, s in enumerate(start)]
        for by in near
    )
    return min(moved, key=lambda one: sum(entry * entry for entry in one))


def _less(basis: list[list[int]], vector: list[int]) -> list[int]:
    """A vector less the lattice vectors in it, direction by direction (Babai's nearest plane)."""
    planes: list[list[Fraction]] = []
    for row in basis:
        plane = [Fraction(entry) for entry in row]
        for before in planes:
            share = _dot(plane, before) / _dot(before, before)
            plane = [p - share * b for p, b in zip(plane, before, strict=True)]
        planes.append(plane)
    for row, plane in zip(reversed(basis), reversed(planes), strict=True):
        times = round(_dot([Fraction(entry) for entry in vector], plane) / _dot(plane, plane))
        vector = [v - times * entry for v, entry in zip(vector, row, strict=True)]
    return vector


def _dot(left: list[Fraction], other: list[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(left, other, strict=True)), Fraction(0))


def by_lattice(target: Target, scores: IntArray) -> FloatArray:
    """The shortest row that has exactly each score."""
    weights = target.weights.tolist()
    rows = [smallest(weights, score) for score in scores.tolist()]
    return standardised(target, np.array(rows, dtype=np.float64))


def by_mean(target: Target, scores: IntArray) -> FloatArray:
    """The mean of rows with each score: whitened columns are uncorrelated, of one size."""
    weights = target.weights.astype(np.float64)
    return standardised(target, np.outer(scores, weights / (weights @ weights)))


def by_level(target: Target, scores: IntArray, slack: float) -> tuple[FloatArray, float]:
    """The likeliest row of integers within the slack of each score, and how many fit on average."""
    columns = target.raw.shape[1]
    levels = np.array(list(itertools.product(*(range(top + 1) for top in LEVELS[:columns]))))
    offset, scale = _line(target)
    standard = (levels - offset) / scale
    products = encode(target.share, FeatureTable.from_data(standard)) @ target.weights
    likely = np.square(standard).sum(axis=1)
    rows, fitting = np.zeros((len(scores), columns)), 0
    for at, score in enumerate(scores.tolist()):
        fits = np.flatnonzero(np.abs(products - score) * target.unit <= slack)
        fitting += len(fits)
        if len(fits):
            rows[at] = standard[fits[likely[fits].argmin()]]
    return rows, fitting / len(scores)


def _line(target: Target) -> tuple[FloatArray, FloatArray]:
    """Mean and deviation of the training columns, from any two different rows."""
    offset, scale = np.empty(target.raw.shape[1]), np.empty(target.raw.shape[1])
    for column, (raw, standard) in enumerate(zip(target.raw.T, target.standard.T, strict=True)):
        slope, mean = np.polyfit(standard, raw, 1)
        offset[column], scale[column] = mean, slope
    return offset, scale


def recovered(target: Target, estimate: FloatArray) -> float:
    """The share of values within a tenth of a standard deviation."""
    return float(np.mean(np.abs(estimate - target.standard) <= NEAR))


def figures(target: Target, *, integers: bool) -> tuple[float, ...]:
    """Shares recovered without a score, from an exact and a noisy one.

    With ``integers`` a fourth figure: how many rows fit a noisy score on average.
    """
    nothing = recovered(target, np.zeros_like(target.standard))
    if not integers:
        estimates = by_lattice(target, target.exact), by_mean(target, target.noisy)
        return nothing, *(recovered(target, estimate) for estimate in estimates)
    exact, _ = by_level(target, target.exact, 0.0)
    noisy, fitting = by_level(target, target.noisy, 2.0**-SCORE_NOISE_BITS)
    return nothing, recovered(target, exact), recovered(target, noisy), fitting


def main() -> None:
    """Prints the table of ``docs/how-to/score.md``: means over ``MODELS`` models."""
    print("| columns at Alice | no score | exact score | with noise |")
    print("|---|---|---|---|")
    for integers, columns in itertools.product((False, True), (1, 2, 3)):
        models = [
            figures(Target.train(columns, seed, integers=integers), integers=integers)
            for seed in range(MODELS)
        ]
        means = np.mean(models, axis=0)
        cells = " | ".join(f"{share:.1%}" for share in means[:3])
        fitting = f" ({means[3]:.2f} rows fit)" if integers else ""
        print(f"| {columns} {'integer' if integers else 'continuous'} | {cells}{fitting} |")


if __name__ == "__main__":
    main()
