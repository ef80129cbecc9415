"""The whole visit: the machine, and a party's file where one is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from taciturn.doctor.datasets import look_at_datasets
from taciturn.doctor.extensions import look_at_extensions
from taciturn.doctor.machine import look_at_machine
from taciturn.doctor.packages import look_at_extras, look_at_packages, look_at_python
from taciturn.doctor.schemes import look_at_schemes
from taciturn.results.doctor import Finding
from taciturn.results.ledger import PastExposure
from taciturn.results.outlook import Outlook


def visit(
    config: Path | None,
    announce: Callable[[str], None],
    report: Callable[[Outlook | PastExposure], None] = lambda part: None,
) -> list[Finding]:
    """All findings, in the order in which they are shown; without a file, the machine's alone.

    ``report`` receives the cost of a party's training, and past sessions that exposed Alice's
    columns, where they can be known.
    """
    announce("packages")
    findings = [look_at_python(), *look_at_packages(), *look_at_extras(), *look_at_extensions()]
    announce("machine")
    findings += look_at_machine()
    announce("schemes")
    findings += look_at_schemes()
    announce("datasets")
    findings += look_at_datasets()
    if config is not None:
        announce(str(config))
        findings += _party(config, report)
    return findings


def _party(config: Path, report: Callable[[Outlook | PastExposure], None]) -> list[Finding]:
    try:
        # Imported here: where gRPC or file locks are missing, the rest is still told.
        from taciturn.doctor.party import look_at_party
    except ImportError as problem:
        return [
            Finding.problem(
                "config",
                f"a party cannot run here: {type(problem).__name__} of {problem.name}",
                "see the findings on packages and the platform",
            )
        ]
    return look_at_party(config, report)
