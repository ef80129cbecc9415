"""The bank and the phone company, from messy tables to scored customers, by the page's commands."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

from tests.system import free_port
from tests.test_two_machines import ROLES, Terminal, both, steps

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "bank-and-telco"
PAGE = (EXAMPLE / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow  # twenty seconds; the runbook has the same commands on small tables
def test_the_pages_commands_lead_to_scored_customers(tmp_path):
    """With fewer rows than the page; everything else is as it is written there."""
    for script in EXAMPLE.glob("*.py"):
        shutil.copy(script, tmp_path)
    terminals = [Terminal(role, tmp_path) for role in ROLES]
    page = PAGE.replace("make_tables.py", "make_tables.py --rows 2000")
    page = page.replace("127.0.0.1:9443", f"127.0.0.1:{free_port()}")
    try:
        for number, (chapter, lines) in enumerate(steps(page)):
            ended = both(terminals, lines)
            assert [code for code, _ in ended] == [0] * len(ended), (chapter, ended)
            if number == 0:
                edit(tmp_path)
    finally:
        for terminal in terminals:
            terminal.leave()
    scores = pl.read_csv(tmp_path / "scores.csv")
    assert scores.height == 70
    assert scores["probability"].is_between(0, 1).all()
    held_out = pl.read_csv(tmp_path / "bob.held-out.csv")
    assert held_out.height > 200
    assert {"id", "score", "probability", "label"} <= set(held_out.columns)


def edit(folder: Path) -> None:
    """What the page says to change."""
    for role in ROLES:
        path = folder / f"{role}.toml"
        text = path.read_text()
        assert text.count('# normalise-ids = "trim,case"') == 1
        text = text.replace('# normalise-ids = "trim,case"', 'normalise-ids = "trim,case"')
        path.write_text(text.replace("# held-out-scores", "held-out-scores"))
