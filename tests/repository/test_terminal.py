"""Blocks on a terminal: no wider than it, no markup and no colour where there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from audit.tests.report.samples import AUDITS, hybrid, leaking
from audit.tests.test_terminal import CHECK

from taciturn.jobs.train.report import party_blocks
from taciturn.report.blocks import (
    Block,
)
from taciturn.report.training import training_blocks
from taciturn.results.runs import Runs
from taciturn_audit.report.audit import audit_blocks
from taciturn_audit.report.demo import demo_blocks
from taciturn_audit.report.page import audit_page
from taciturn_audit.results.runs import DemoResult
from taciturn_ops.doctor.result import DoctorResult, Finding
from tests.report.samples import TRAINING
from tests.report.test_terminal import ALIGNMENT, PARTY, PREDICTION, shown

# Made when a test asks for them: pages are drawn, which takes seconds.
MADE: list[Callable[[], list[Block]]] = [
    *(lambda make=make: audit_blocks(make()) for make in AUDITS.values()),
    *(lambda make=make: list(audit_page(make()).blocks) for make in AUDITS.values()),
    lambda: training_blocks(Runs((TRAINING, replace(TRAINING, seed=8)))),
    lambda: demo_blocks(DemoResult((leaking(), hybrid()), "a.html")),
    lambda: CHECK.blocks(),
    lambda: party_blocks(PARTY),
    lambda: ALIGNMENT.blocks(),
    lambda: PREDICTION.blocks(),
]


def test_a_doctors_visit_ends_in_a_count():
    well = DoctorResult.from_findings([Finding.ok("a", "b")], "1", None)
    ill = DoctorResult.from_findings(
        [Finding.problem("a", "b", "c"), Finding.warning("d", "e", "f")], "1", None
    )
    assert "1 problem, 1 warning" in shown(ill.blocks())
    assert "problem" not in shown(well.blocks())
    assert "try: c" in shown(ill.blocks())


@pytest.mark.sampled(12)
@pytest.mark.parametrize("made", MADE)
def test_nothing_is_wider_than_a_hundred_columns_or_cut_off(made):
    text = shown(made())
    assert max(map(len, text.splitlines())) <= 100
    assert "…" not in text
