"""Tacit trains a logistic regression with a partner without telling them your labels.

And it shows you whether they could tell anyway.
"""

from __future__ import annotations

from tacit.api import AuditResult, TrainResult, align, audit, check, estimate, train
from tacit.audit.epsilon_bound import epsilon_lower_bound
from tacit.audit.preflight import Preflight
from tacit.data.tables import FeatureTable, LabelTable
from tacit.errors import TacitError
from tacit.version import __version__

__all__ = [
    "AuditResult",
    "FeatureTable",
    "LabelTable",
    "Preflight",
    "TacitError",
    "TrainResult",
    "__version__",
    "align",
    "audit",
    "check",
    "epsilon_lower_bound",
    "estimate",
    "train",
]
