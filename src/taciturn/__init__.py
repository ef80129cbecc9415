"""Taciturn trains a logistic regression with a partner without telling them your labels.

And it shows you whether they could tell anyway.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taciturn.api import (
        AuditResult,
        CheckResult,
        RunList,
        TrainResult,
        align,
        audit,
        audit_session,
        audit_woe,
        check,
        compare,
        estimate,
        runs,
        study,
        train,
        woe,
    )
    from taciturn.audit.epsilon_bound import epsilon_lower_bound
    from taciturn.data.tables import FeatureTable, LabelTable
    from taciturn.errors import TaciturnError
    from taciturn.estimator import VerticalLogisticRegression
    from taciturn.results.compare import Comparison
    from taciturn.results.session import SessionAudit
    from taciturn.results.study import SimulatedStudy
    from taciturn.results.woe import WoeResult
    from taciturn.results.woe_audit import WoeAudit
    from taciturn.version import __version__

__all__ = [
    "AuditResult",
    "CheckResult",
    "Comparison",
    "FeatureTable",
    "LabelTable",
    "RunList",
    "SessionAudit",
    "SimulatedStudy",
    "TaciturnError",
    "TrainResult",
    "VerticalLogisticRegression",
    "WoeAudit",
    "WoeResult",
    "__version__",
    "align",
    "audit",
    "audit_session",
    "audit_woe",
    "check",
    "compare",
    "epsilon_lower_bound",
    "estimate",
    "runs",
    "study",
    "train",
    "woe",
]

# Where each public name is defined. All are loaded on first use: a party's process must not load
# attacks, and scikit-learn alone takes a second.
_HOMES = {
    "AuditResult": "api",
    "CheckResult": "api",
    "Comparison": "results.compare",
    "FeatureTable": "data.tables",
    "LabelTable": "data.tables",
    "RunList": "api",
    "SessionAudit": "results.session",
    "SimulatedStudy": "results.study",
    "TaciturnError": "errors",
    "TrainResult": "api",
    "VerticalLogisticRegression": "estimator",
    "WoeAudit": "results.woe_audit",
    "WoeResult": "results.woe",
    "__version__": "version",
    "align": "api",
    "audit": "api",
    "audit_session": "api",
    "audit_woe": "api",
    "check": "api",
    "compare": "api",
    "epsilon_lower_bound": "audit.epsilon_bound",
    "estimate": "api",
    "runs": "api",
    "study": "api",
    "train": "api",
    "woe": "api",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from taciturn.extras import explained

    with explained():
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _FrontDoor(ModuleType):
    """Keeps ``taciturn.audit`` the function, whoever imports the package of that name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _FrontDoor
