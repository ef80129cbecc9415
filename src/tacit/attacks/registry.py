"""The attacks, one line each."""

from __future__ import annotations

from tacit.attacks.base import LabelAttack
from tacit.attacks.exact_solve import ExactSolveAttack
from tacit.attacks.gradient_direction import GradientDirectionAttack
from tacit.attacks.gradient_norm import GradientNormAttack
from tacit.attacks.known_scores import KnownScoresAttack
from tacit.attacks.least_squares import LeastSquaresAttack
from tacit.attacks.likelihood import LikelihoodAttack
from tacit.attacks.sign import SignAttack
from tacit.attacks.sparse import SparseAttack
from tacit.attacks.stacking import StackingAttack

ATTACKS: tuple[LabelAttack, ...] = (
    ExactSolveAttack(),
    LeastSquaresAttack(),
    SparseAttack(),
    KnownScoresAttack(),
    StackingAttack(),
    LikelihoodAttack(),
    SignAttack(),
    GradientNormAttack(),
    GradientDirectionAttack(),
)


def rehearsal_attacks() -> tuple[LabelAttack, ...]:
    """The same attacks, some content with fewer batches: for a check that takes seconds."""
    fewer: dict[str, LabelAttack] = {
        SparseAttack.name: SparseAttack(most_batches=60, seconds=0.3),
        KnownScoresAttack.name: KnownScoresAttack(most_batches=300, seconds=0.3, budget=2.0),
    }
    return tuple(fewer.get(attack.name, attack) for attack in ATTACKS)
