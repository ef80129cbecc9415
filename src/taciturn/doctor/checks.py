"""All checks: the machine, and a party's file where one is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from taciturn.doctor.machine import (
    check_datasets,
    check_extensions,
    check_extras,
    check_machine,
    check_packages,
    check_python,
    check_schemes,
)
from taciturn.results.doctor import Finding
from taciturn.results.ledger import PastExposure
from taciturn.results.outlook import Outlook


def run_checks(
    config: Path | None,
    announce: Callable[[str], None],
    report: Callable[[Outlook | PastExposure], None] = lambda part: None,
) -> list[Finding]:
    """All findings, in the order in which they are shown; without a file, the machine's alone.

    ``report`` receives the cost of a party's training, and past sessions that exposed Alice's
    columns, where they can be known.
    """
    announce("packages")
    findings = [check_python(), *check_packages(), *check_extras(), *check_extensions()]
    announce("machine")
    findings += check_machine()
    announce("schemes")
    findings += check_schemes()
    announce("datasets")
    findings += check_datasets()
    if config is not None:
        announce(str(config))
        findings += _party(config, report)
    return findings


def _party(config: Path, report: Callable[[Outlook | PastExposure], None]) -> list[Finding]:
    try:
        # Imported here: where gRPC or file locks are missing, the rest is still told.
        from taciturn.doctor.party import check_party
    except ImportError as problem:
        return [
            Finding.problem(
                "config",
                f"a party cannot run here: {type(problem).__name__} of {problem.name}",
                "see the findings on packages and the platform",
            )
        ]
    return check_party(config, report)
