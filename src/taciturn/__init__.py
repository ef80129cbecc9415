"""Taciturn trains a logistic regression with a partner without telling them your labels.

And it shows you whether they could tell anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taciturn.api import AuditResult, TrainResult, align, audit, check, estimate, train
from taciturn.audit.epsilon_bound import epsilon_lower_bound
from taciturn.audit.preflight import Preflight
from taciturn.data.tables import FeatureTable, LabelTable
from taciturn.errors import TaciturnError
from taciturn.version import __version__

if TYPE_CHECKING:
    from taciturn.estimator import VerticalLogisticRegression

__all__ = [
    "AuditResult",
    "FeatureTable",
    "LabelTable",
    "Preflight",
    "TaciturnError",
    "TrainResult",
    "VerticalLogisticRegression",
    "__version__",
    "align",
    "audit",
    "check",
    "epsilon_lower_bound",
    "estimate",
    "train",
]


def __getattr__(name: str) -> object:
    # On first use: scikit-learn takes a second to load, and the commands do without it.
    if name == "VerticalLogisticRegression":
        from taciturn.estimator import VerticalLogisticRegression

        return VerticalLogisticRegression
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
