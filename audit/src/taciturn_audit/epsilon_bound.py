"""A lower bound on the epsilon of any mechanism, from samples of it alone.

A mechanism that is (epsilon, delta)-differentially private gives every event E, on two secrets that
it must hide from each other, probabilities p and q with ``p <= e^epsilon q + delta``. Hence any one
event that is seen often enough under one secret and seldom enough under the other refutes a small
epsilon::

    epsilon >= ln((p_low - delta) / q_high)

with exact (Clopper-Pearson) bounds ``p_low <= p`` and ``q_high >= q`` [JagielskiUO20]. The
event is looked for on one half of the samples and judged on the other, fresh half, so that the
looking costs nothing [DingWWZK18]. What is looked at, in both directions:

- the half lines ``output <= t`` and ``output >= t``,
- the bands ``|output| <= t`` and ``|output| >= t``, for noise that multiplies,
- the atoms ``output = t``, for outputs on a grid and for the ends where outputs are clipped.

The ``_CANDIDATES`` most promising of them go to the fresh half, and the failure is divided by their
number, by the two bounds that each needs, and by the number of pairs of secrets.

**Guarantee.** Whatever the mechanism, the bound exceeds its true epsilon (at that delta) with
probability at most ``failure``, over the randomness of the samples. It says nothing from above: a
bound of 0 means that no event was found, not that the mechanism is private. ``ceiling`` is the
largest bound that this number of samples could have shown.

**Assumes.** A sampler's draws are independent, and identically distributed from call to call; the
two secrets are ones that the claimed epsilon is about. A number computed from a larger output is a
fair subject too: computing cannot raise the epsilon.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import ndtri

from taciturn.arrays import BoolArray, FloatArray, IntArray
from taciturn.errors import ConfigError, DataError, ShapeError
from taciturn.rng import Entropy
from taciturn_audit.exact_intervals import clopper_pearson

# Draws n outputs of the mechanism on one fixed secret, with the entropy that it is handed.
Sampler: TypeAlias = Callable[[int, Entropy], FloatArray | IntArray]

FIRST_OVER_SECOND = "first over second"
SECOND_OVER_FIRST = "second over first"

# More would find a better event now and then, and weaken the bounds of every event always.
_CANDIDATES = 4

_RELATIONS = {"<=": operator.le, ">=": operator.ge, "=": operator.eq}


@dataclass(frozen=True, slots=True)
class EpsilonBound:
    """Lower bound on epsilon from samples, and the event that gives it.

    ``epsilon`` is the lower bound, at ``delta``. ``event`` says it in words, with its ``threshold``
    rounded; ``direction`` says under which secret it is the likelier. ``first_hits`` and
    ``second_hits`` count it among the ``judged`` fresh outputs of each secret, which are half of
    the ``samples``. ``pair`` names the two secrets where several pairs were compared. Where the
    bound is 0 the event is one that was tried, and shows nothing.
    """

    epsilon: float
    event: str
    threshold: float
    direction: str
    first_hits: int
    second_hits: int
    judged: int
    samples: int
    failure: float
    delta: float
    ceiling: float
    pair: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The bound for JSON."""
        return asdict(self)


def epsilon_lower_bound(
    first: Sampler,
    second: Sampler,
    *,
    samples: int = 200_000,
    failure: float = 0.05,
    delta: float = 0.0,
    entropy: Entropy,
) -> EpsilonBound:
    """The epsilon that a mechanism has at least, from its outputs on two secrets.

    Args:
        first: Draws outputs on one secret.
        second: Draws outputs on the other.
        samples: How many outputs to draw on each secret, 2 or more.
        failure: The largest chance of a bound above the true epsilon, between 0 and 1.
        delta: The delta of the claim, 0 for pure differential privacy, below 1.
        entropy: The same entropy gives the same bound.

    Returns:
        The bound, 0 or more, and the event that shows it.

    Raises:
        ConfigError: If an argument is out of its range.
        ShapeError: If a sampler returns anything but an array of that many numbers.
        DataError: If an output is not a number.

    A response that tells the truth 3 times in 4 has an epsilon of ln 3, or 1.0986:

    >>> from taciturn.rng import KeyedEntropy
    >>> def response(secret):
    ...     return lambda count, draws: np.where(draws.uniform((count,)) < 0.75, secret, 1 - secret)
    >>> bound = epsilon_lower_bound(response(0), response(1), entropy=KeyedEntropy.from_seed(1))
    >>> round(bound.epsilon, 2), bound.event, bound.direction
    (1.08, 'output >= 1', 'second over first')
    """
    return epsilon_lower_bound_over(
        {"": (first, second)}, samples=samples, failure=failure, delta=delta, entropy=entropy
    )


def epsilon_lower_bound_over(
    pairs: Mapping[str, tuple[Sampler, Sampler]],
    *,
    samples: int = 200_000,
    failure: float = 0.05,
    delta: float = 0.0,
    entropy: Entropy,
) -> EpsilonBound:
    """The epsilon that a mechanism has at least, from the pair of secrets that shows most.

    Arguments and errors are those of ``epsilon_lower_bound``; ``failure`` covers all pairs
    together.

    >>> from taciturn.rng import KeyedEntropy
    >>> def shifted(secret):
    ...     return lambda count, draws: draws.uniform((count,)) + secret
    >>> pairs = {"near": (shifted(0), shifted(0.1)), "far": (shifted(0), shifted(1))}
    >>> bound = epsilon_lower_bound_over(pairs, samples=2000, entropy=KeyedEntropy.from_seed(1))
    >>> bound.pair, round(bound.epsilon, 2), round(bound.ceiling, 2)
    ('far', 5.15, 5.15)
    """
    samples = operator.index(samples)
    if not pairs:
        raise ConfigError("no pair of secrets to compare", where="pairs")
    if samples < 2:
        raise ConfigError(f"samples is {samples}", where="samples", hint="use 2 or more")
    if not 0 < failure < 1:
        raise ConfigError(f"failure is {failure}", where="failure", hint="use 0.05, for example")
    if not 0 <= delta < 1:
        raise ConfigError(f"delta is {delta}", where="delta", hint="use 0, or a little more")
    tail = failure / (2 * _CANDIDATES * len(pairs))
    judged = samples - samples // 2

    bounds: list[EpsilonBound] = []
    for name, (first, second) in pairs.items():
        sampler_entropy = entropy.fork(f"epsilon bound {name}")
        candidates = _choose(
            _draw(first, samples // 2, sampler_entropy.fork("first, to choose")),
            _draw(second, samples // 2, sampler_entropy.fork("second, to choose")),
            tail=tail,
            delta=delta,
        )
        fresh_first = _draw(first, judged, sampler_entropy.fork("first, to judge"))
        fresh_second = _draw(second, judged, sampler_entropy.fork("second, to judge"))
        for event, direction in candidates:
            first_hits = int(np.count_nonzero(event.holds(fresh_first)))
            second_hits = int(np.count_nonzero(event.holds(fresh_second)))
            likelier, rarer = first_hits, second_hits
            if direction == SECOND_OVER_FIRST:
                likelier, rarer = rarer, likelier
            bounds.append(
                EpsilonBound(
                    epsilon=_refuted(likelier, rarer, judged, tail=tail, delta=delta),
                    event=str(event),
                    threshold=event.threshold,
                    direction=direction,
                    first_hits=first_hits,
                    second_hits=second_hits,
                    judged=judged,
                    samples=samples,
                    failure=failure,
                    delta=delta,
                    ceiling=_refuted(judged, 0, judged, tail=tail, delta=delta),
                    pair=name,
                )
            )
    return max(bounds, key=lambda bound: bound.epsilon)


class _Event(NamedTuple):
    relation: str
    threshold: float
    of_size: bool

    def holds(self, outputs: FloatArray) -> BoolArray:
        values = np.abs(outputs) if self.of_size else outputs
        return np.asarray(_RELATIONS[self.relation](values, self.threshold), dtype=np.bool_)

    def __str__(self) -> str:
        subject = "|output|" if self.of_size else "output"
        whole = self.threshold.is_integer() and abs(self.threshold) < 2**53
        amount = str(int(self.threshold)) if whole else f"{self.threshold:.4g}"
        return f"{subject} {self.relation} {amount}"


def _draw(sampler: Sampler, count: int, entropy: Entropy) -> FloatArray:
    """Integers beyond 2^53 lose their last digits here, which can only lower a bound."""
    outputs = np.asarray(sampler(count, entropy)).astype(np.float64)
    if outputs.shape != (count,):
        raise ShapeError(f"a sampler returned shape {outputs.shape} where ({count},) was asked for")
    if np.isnan(outputs).any():
        raise DataError("a sampler returned a NaN")
    return outputs


def _refuted(likelier: int, rarer: int, trials: int, *, tail: float, delta: float) -> float:
    p_low, _ = clopper_pearson(likelier, trials, 1 - 2 * tail)
    _, q_high = clopper_pearson(rarer, trials, 1 - 2 * tail)
    return max(0.0, math.log((p_low - delta) / q_high)) if p_low > delta else 0.0


def _choose(
    first: FloatArray, second: FloatArray, *, tail: float, delta: float
) -> list[tuple[_Event, str]]:
    ranked: list[tuple[float, _Event, str]] = []
    for of_size in (False, True):
        one, other = (np.sort(np.abs(x) if of_size else x) for x in (first, second))
        values = _distinct(np.concatenate((one, other)))
        below_1, upto_1 = _counts(one, values)
        below_2, upto_2 = _counts(other, values)
        kinds = [
            ("<=", upto_1, upto_2),
            (">=", len(one) - below_1, len(other) - below_2),
        ]
        if not of_size:
            kinds.append(("=", upto_1 - below_1, upto_2 - below_2))
        for relation, hits_1, hits_2 in kinds:
            low_1, high_1 = _rough_interval(hits_1, len(one), tail)
            low_2, high_2 = _rough_interval(hits_2, len(other), tail)
            for direction, low, high in (
                (FIRST_OVER_SECOND, low_1, high_2),
                (SECOND_OVER_FIRST, low_2, high_1),
            ):
                ratio = (low - delta) / high
                best = int(np.argmax(ratio))
                event = _Event(relation, float(values[best]), of_size)
                ranked.append((float(ratio[best]), event, direction))
    # Sorting is stable: of events that promise the same, the one listed first is kept.
    ranked.sort(key=lambda entry: -entry[0])
    return [(event, direction) for _, event, direction in ranked[:_CANDIDATES]]


def _distinct(values: FloatArray) -> FloatArray:
    """``np.unique`` for two sorted runs, which a stable sort merges quickly."""
    values = np.sort(values, kind="stable")
    return values[np.concatenate(([True], values[1:] != values[:-1]))]


def _counts(ordered: FloatArray, values: FloatArray) -> tuple[IntArray, IntArray]:
    below = np.searchsorted(ordered, values, side="left").astype(np.int64)
    upto = np.searchsorted(ordered, values, side="right").astype(np.int64)
    return below, upto


def _rough_interval(hits: IntArray, trials: int, tail: float) -> tuple[FloatArray, FloatArray]:
    """The Wilson interval, for choosing only: close to the exact one, and fast for every threshold.

    It knows how little a few hits say, so that no rare event is chosen for its luck.
    """
    z = float(ndtri(1 - tail))
    share = hits / trials
    middle = share + z**2 / (2 * trials)
    spread = z * np.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    scale = 1 + z**2 / trials
    return (middle - spread) / scale, (middle + spread) / scale
