"""Any result that a folder can hold, as the blocks and the page that its command shows."""

from __future__ import annotations

from taciturn.report.blocks import Block, Facts, Page
from taciturn.results.check import CheckResult
from taciturn.results.compare import Comparison
from taciturn.results.parties import AlignmentResult, DryRun, PartyRun
from taciturn.results.runs import AuditResult, Runs
from taciturn.results.saved import DemoResult
from taciturn.results.serialise import Result
from taciturn.results.session import SessionAudit
from taciturn.results.woe import WoeResult
from taciturn.results.woe_audit import WoeAudit


def result_blocks(result: Result) -> list[Block]:
    """What the command printed, as blocks; of a kind that has none, its record's plain values."""
    # Each is loaded where it is shown: a verdict needs what an audit needs.
    match result:
        case PartyRun() | DryRun():
            from taciturn.report.parties import party_blocks

            return party_blocks(result)
        case AlignmentResult():
            from taciturn.report.parties import alignment_blocks

            return alignment_blocks(result)
        case CheckResult():
            from taciturn.report.check import check_blocks

            return check_blocks(result)
        case Comparison():
            from taciturn.report.compare import compare_blocks

            return compare_blocks(result)
        case SessionAudit():
            from taciturn.report.session import session_blocks

            return session_blocks(result)
        case DemoResult():
            from taciturn.report.audit import demo_blocks

            return demo_blocks(result)
        case AuditResult():
            from taciturn.report.audit import audit_blocks

            return audit_blocks(result)
        case WoeResult():
            from taciturn.report.woe import woe_blocks

            return woe_blocks(result)
        case WoeAudit():
            from taciturn.report.woe import woe_audit_blocks

            return woe_audit_blocks(result)
        case Runs():
            from taciturn.report.training import training_blocks

            return training_blocks(result)
    plain = {
        name: str(value)
        for name, value in result.to_dict().items()
        if isinstance(value, str | int | float)
    }
    return [Facts(plain)]


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
            from taciturn.report.woe import woe_page

            return woe_page(result)
        case WoeAudit():
            from taciturn.report.woe import woe_audit_page

            return woe_audit_page(result)
    return None
