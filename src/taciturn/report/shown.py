"""Any result that a folder can hold, as the page that its command writes."""

from __future__ import annotations

from taciturn.jobs.woe.result import WoeResult
from taciturn.report.blocks import Page
from taciturn.results.compare import Comparison
from taciturn.results.runs import AuditResult
from taciturn.results.saved import DemoResult
from taciturn.results.serialise import Result
from taciturn.results.session import SessionAudit
from taciturn.results.woe_audit import WoeAudit


def result_page(result: Result) -> Page | None:
    """The HTML report on a result; None where its kind has none."""
    match result:
        case AuditResult():
            from taciturn.report.page import audit_page

            return audit_page(result)
        case DemoResult():
            return result_page(result.runs[-1])
        case SessionAudit():
            from taciturn.report.session import session_page

            return session_page(result)
        case Comparison():
            from taciturn.report.compare import compare_page

            return compare_page(result)
        case WoeResult():
            return result.page()
        case WoeAudit():
            from taciturn.report.woe import woe_audit_page

            return woe_audit_page(result)
    return None
