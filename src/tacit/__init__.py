"""Tacit trains a logistic regression with a partner without telling them your labels.

And it shows you whether they could tell anyway.
"""

from __future__ import annotations

from tacit.api import AuditResult, TrainResult, audit, estimate, train
from tacit.data.tables import FeatureTable, LabelTable
from tacit.errors import TacitError
from tacit.version import __version__

__all__ = [
    "AuditResult",
    "FeatureTable",
    "LabelTable",
    "TacitError",
    "TrainResult",
    "__version__",
    "audit",
    "estimate",
    "train",
]
