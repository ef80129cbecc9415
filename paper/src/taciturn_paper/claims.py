"""Claimed and true epsilon of each noise mechanism, with bounds from samples.

Three figures stand beside the paper's claim: the closed form (``taciturn.privacy.prices``), the
largest log-ratio of exact probabilities found by trying every output of a coarse grid on many pairs
of residues, and a lower bound from samples of the mechanism as it runs
(``taciturn_audit.epsilon_bound``). A lower bound above the claim refutes it, but for the stated
failure rate.
"""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np

from taciturn.engine.callbacks import Announce, noop
from taciturn.privacy.additive import Additive
from taciturn.privacy.base import ResidueMechanism
from taciturn.privacy.events import AdditiveNoise
from taciturn.privacy.multiplicative import VARIANTS
from taciturn.privacy.noise import LaplaceDraws, draw
from taciturn.privacy.prices import price
from taciturn.rng import Entropy, KeyedEntropy
from taciturn.settings.schema import Variant
from taciturn_audit.epsilon_bound import EpsilonBound, Sampler, epsilon_lower_bound_over
from taciturn_paper.tasks import Record

EPSILONS = (0.01, 0.1, 1.0, 10.0)
SAMPLES, QUICK_SAMPLES = 400_000, 50_000
B1, B2 = 0.1, 10.0
RESIDUE_BITS, COARSE_BITS = 20, 10
FAILURE = 0.05
# Predicted probabilities of the rows whose two possible residues are told apart.
_SCORES = (0.5, 0.9, 0.999)
_OUTPUTS_BEYOND = 40.0


def run(
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    b1: float = B1,
    b2: float = B2,
    announce: Announce = noop,
) -> dict[str, Any]:
    """Audit every claim of ``add`` and ``mult``, with this many samples per secret."""
    rows = []
    for variant in (None, *VARIANTS):
        for epsilon in EPSILONS:
            name = "add" if variant is None else f"mult {variant}"
            announce(f"{name}, claimed epsilon {epsilon:g}")
            entropy = KeyedEntropy.from_seed(seed).fork(f"{name} {epsilon}")
            rows.append(_claim(variant, epsilon, b1, b2, samples, entropy))
    return {"samples": samples, "seed": seed, "failure": FAILURE, "rows": rows}


def _make(variant: Variant | None, epsilon: float, b1: float, b2: float, bits: int) -> Any:  # noqa: ANN401 - a ResidueMechanism with its event
    if variant is None:
        return Additive(AdditiveNoise(epsilon), bits)
    return VARIANTS[variant](epsilon, b1, b2, bits)


def _claim(
    variant: Variant | None, epsilon: float, b1: float, b2: float, samples: int, entropy: Entropy
) -> Record:
    subject = _make(variant, epsilon, b1, b2, RESIDUE_BITS)
    true = price(subject.event)
    residue = _bound(subject, _residue_pairs(), samples, entropy.fork("residue"))
    label = _bound(subject, _label_pairs(), samples, entropy.fork("label"))
    claim = {
        "mechanism": subject.name,
        "variant": variant,
        "b1": None if variant is None else b1,
        "b2": None if variant is None else b2,
        "claimed": true.claimed,
        "residue": true.residue,
        "label": true.label,
        "numerical": _numerical(_make(variant, epsilon, b1, b2, COARSE_BITS), b2),
        "residue_at_least": residue.epsilon,
        "label_at_least": label.epsilon,
        "shown_by": f"{residue.pair}: {residue.event}",
        "ceiling": residue.ceiling,
        "refuted": residue.epsilon > true.claimed,
    }
    # JSON has no infinity.
    return {key: "inf" if value == math.inf else value for key, value in claim.items()}


def _residue_pairs() -> dict[str, tuple[float, float]]:
    return {"residues 0 and 1": (0.0, 1.0), "residues -1 and 1": (-1.0, 1.0)}


def _label_pairs() -> dict[str, tuple[float, float]]:
    return {f"labels at score {score:g}": (1 - score, -score) for score in _SCORES}


def _bound(
    subject: ResidueMechanism[LaplaceDraws],
    pairs: dict[str, tuple[float, float]],
    samples: int,
    entropy: Entropy,
) -> EpsilonBound:
    return epsilon_lower_bound_over(
        {name: (_sampler(subject, a), _sampler(subject, b)) for name, (a, b) in pairs.items()},
        samples=samples,
        failure=FAILURE,
        entropy=entropy,
    )


def _sampler(subject: ResidueMechanism[LaplaceDraws], residue: float) -> Sampler:
    def sample(count: int, entropy: Entropy) -> Any:  # noqa: ANN401 - reals
        secret = np.full(count, round(residue * 2**RESIDUE_BITS), dtype=np.int64)
        return subject.release(secret, draw(count, entropy)).value * 2.0**-RESIDUE_BITS

    return sample


def _numerical(subject: ResidueMechanism[LaplaceDraws], b2: float) -> float:
    """The largest log-ratio over all outputs of a coarse grid and many pairs of residues."""
    unit = 1 << COARSE_BITS
    reach = round(min(max(b2, 2.0), _OUTPUTS_BEYOND) * unit)
    outputs = np.arange(-reach, reach + 1)
    residues = np.unique(np.linspace(-unit, unit, 33).round().astype(np.int64))
    logs = [
        subject.log_probability(outputs, np.full_like(outputs, residue)) for residue in residues
    ]
    with np.errstate(invalid="ignore"):
        return max(float(np.nanmax(one - other)) for one, other in permutations(logs, 2))
