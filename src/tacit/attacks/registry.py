"""The attacks, one line each."""

from __future__ import annotations

from tacit.attacks.base import LabelAttack
from tacit.attacks.exact_solve import ExactSolveAttack
from tacit.attacks.least_squares import LeastSquaresAttack

ATTACKS: tuple[LabelAttack, ...] = (ExactSolveAttack(), LeastSquaresAttack())
