from taciturn.api import TrainResult, align, estimate, study, train
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.errors import TaciturnError
from taciturn.estimator import VerticalLogisticRegression
from taciturn.jobs.study.result import SimulatedStudy
from taciturn.regressors import VerticalGammaRegressor, VerticalPoissonRegressor, VerticalRidge
from taciturn.version import __version__
from taciturn_audit.api import audit, audit_session, audit_woe, check, compare
from taciturn_audit.epsilon_bound import epsilon_lower_bound
from taciturn_audit.results.check import CheckResult
from taciturn_audit.results.compare import Comparison
from taciturn_audit.results.runs import AuditResult
from taciturn_audit.results.session import SessionAudit
from taciturn_audit.results.woe_audit import WoeAudit
from taciturn_risk.api import runs, woe
from taciturn_risk.runs.result import RunList
from taciturn_risk.woe.result import WoeResult

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
    "VerticalGammaRegressor",
    "VerticalLogisticRegression",
    "VerticalPoissonRegressor",
    "VerticalRidge",
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
