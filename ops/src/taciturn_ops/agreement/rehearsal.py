"""The audit's check in a review of an agreement, where the audit is installed.

Without the audit a review runs no attack: ``CheckResult`` is then the type of None.
"""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any

from taciturn.extras import is_installed

__all__ = [
    "AT_RISK",
    "CLEAR",
    "LEAKS",
    "VERDICT_HEADINGS",
    "AttackVerdict",
    "CheckResult",
    "Level",
    "advice_facts",
    "prediction_facts",
    "rehearsal_blocks",
    "verdict_rows",
]

if TYPE_CHECKING or is_installed("taciturn_audit"):
    from taciturn_audit.results.check import (
        AT_RISK,
        CLEAR,
        LEAKS,
        VERDICT_HEADINGS,
        AttackVerdict,
        CheckResult,
        Level,
        advice_facts,
        prediction_facts,
        verdict_rows,
    )
    from taciturn_audit.results.columns import rehearsal_blocks
else:
    CheckResult, AttackVerdict, Level = NoneType, Any, str
    LEAKS, AT_RISK, CLEAR = "leaks", "at risk", "no attack of ours applies"
    VERDICT_HEADINGS = ()
    # Called only with a check, of which there is none.
    advice_facts = prediction_facts = verdict_rows = rehearsal_blocks = None
