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
from taciturn.jobs.woe.result import WoeResult
from taciturn.results.compare import Comparison
from taciturn.results.session import SessionAudit
from taciturn.results.study import SimulatedStudy
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
