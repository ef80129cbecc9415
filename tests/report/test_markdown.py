"""The audit for a pull request."""

from __future__ import annotations

import re

import pytest

from taciturn.report import markdown
from tests.report.samples import RECORDS, bare, hostile, hybrid, leaking, quiet, several


@pytest.mark.parametrize("name", RECORDS)
def test_every_table_is_whole(name):
    cells = re.compile(r"(?<!\\)\|")
    blocks = markdown.render(RECORDS[name]()).split("\n\n")
    tables = [block.splitlines() for block in blocks if block.startswith("|")]
    assert tables
    for lines in tables:
        assert re.fullmatch(r"\|( (:--|--:) \|)+", lines[1])
        assert len({len(cells.findall(line)) for line in lines}) == 1


def test_the_verdict_comes_first():
    lines = markdown.render(leaking()).splitlines()
    assert lines[0] == "# Alice can tell every label"
    assert lines[2].startswith("**▲ Leak shown** · breast-cancer · mechanism none")


def test_what_the_page_shows_is_there():
    text = markdown.render(leaking())
    for part in (
        "## Attacks beside the controls",
        "## Leakage over epochs",
        "## The ledger",
        "## Everything Alice received",
        "## How good the model is",
        "| label | infinite | infinite | infinite |",
        "Alice does not have noisy residues",
        "$ taciturn audit --dataset breast-cancer",
        "Taciturn 0.1.0",
    ):
        assert part in text
    assert "## Who is in the batch" in markdown.render(hybrid())
    assert "claim against evidence: not violated" in markdown.render(quiet()).lower()
    assert "Run by run" in markdown.render(several())


def test_what_is_not_there_is_said():
    text = markdown.render(bare())
    assert "This record lists no messages." in text
    assert "The command was not recorded." in text


def test_names_are_no_markup():
    text = markdown.render(hostile())
    outside = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert "<script" not in outside
    assert "<img" not in outside
    assert not re.search(r"(?<!\\)\]\(", outside)
    assert "http://" not in outside
    assert "\u202e" not in text
    # The command holds three backticks, so its fence has four.
    assert text.count("````") == 2


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a|b", "a\\|b"),
        ("@someone", "@<!-- -->someone"),
        ("#12", "#<!-- -->12"),
        ("x_y*", "x\\_y\\*"),
        ("a & b", "a &amp; b"),
        ("www.example", "www<!-- -->.example"),
    ],
)
def test_texts_call_nobody_and_link_nowhere(text, written):
    assert markdown.escape(text) == written
