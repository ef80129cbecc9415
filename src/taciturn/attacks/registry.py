"""The attacks, one line each."""

from __future__ import annotations

from taciturn.attacks.base import LabelAttack
from taciturn.attacks.exact_solve import ExactSolveAttack
from taciturn.attacks.gradient_direction import GradientDirectionAttack
from taciturn.attacks.gradient_norm import GradientNormAttack
from taciturn.attacks.known_scores import KnownScoresAttack
from taciturn.attacks.least_squares import LeastSquaresAttack
from taciturn.attacks.likelihood import LikelihoodAttack
from taciturn.attacks.sign import SignAttack
from taciturn.attacks.sparse import SparseAttack
from taciturn.attacks.stacking import StackingAttack

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
        SparseAttack.name: SparseAttack(most_batches=60, program=300.0),
        KnownScoresAttack.name: KnownScoresAttack(most_batches=300, nodes=10, work=5_000.0),
    }
    return tuple(fewer.get(attack.name, attack) for attack in ATTACKS)
