"""Blocks on a terminal: no wider than it, no markup and no colour where there is none."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from taciturn.data.spellings import Spelling
from taciturn.jobs.align.result import AlignmentResult, SharedIds
from taciturn.jobs.predict.result import PredictionResult
from taciturn.jobs.train.report import party_blocks
from taciturn.jobs.train.result import DryRun, PartyMetrics, PartyRun, Sizes
from taciturn.numerics.symmetry import Symmetry
from taciturn.numerics.threshold import Threshold
from taciturn.report.blocks import (
    Badge,
    Block,
    Bullets,
    Card,
    Cards,
    Command,
    Details,
    Facts,
    Figure,
    Figures,
    Heading,
    Page,
    Paragraph,
    Section,
    Span,
    coded,
    table,
)
from taciturn.report.html import render as render_html
from taciturn.report.markdown import render as render_markdown
from taciturn.report.terminal import WIDTH, render
from taciturn.report.training import training_blocks
from taciturn.results.cost_preview import Disclosure, Estimate, Outlook, Refusal
from taciturn.results.parties import ScoredRow
from taciturn.results.runs import Runs
from tests.report.samples import FIGURES, IDENTITY, TRAINING, metrics

EVIL = "[bold]<b>\x1b[31m\u202e"


def shown(blocks: list[Block], **options: object) -> str:
    stream = io.StringIO()
    Console(file=stream, width=WIDTH, **options).print(render(blocks))  # type: ignore[arg-type]
    return stream.getvalue()


EVERY_KIND: list[Block] = [
    Heading(EVIL),
    Paragraph(coded(f"say `{EVIL}`"), "warning"),
    Paragraph(EVIL, "strong"),
    Bullets((EVIL, "plain")),
    Command(EVIL),
    Facts({EVIL: (Span(EVIL, "bad"), " and more")}),
    table((EVIL, "n"), [(EVIL, "1"), ("b", "2")], caption=EVIL, grouped=True),
    Figures((Figure("f", EVIL, EVIL, "<svg></svg>"),), EVIL, (Paragraph("in its place"),)),
    Cards((Card(EVIL, "1", (EVIL,), {EVIL: "2"}, EVIL),)),
    Details(EVIL, (Paragraph("unfolded"),)),
    Section(EVIL, "ident", (Paragraph("inside"),), badge=Badge("leak", "▲", EVIL)),
]


@pytest.mark.parametrize("block", EVERY_KIND, ids=lambda block: type(block).__name__)
def test_every_block_can_be_shown_everywhere(block):
    text = shown([block])
    assert isinstance(block, Figures) or "[bold]<b>" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    page = Page(EVIL, EVIL, EVIL, (block,), EVIL)
    marked, written = render_html(page), render_markdown(page)
    assert "<b>" not in marked
    assert "[bold]&lt;b&gt;" in marked
    assert "\x1b" not in marked + written
    assert "\u202e" not in marked + written


def test_figures_are_what_stands_in_for_them_and_nothing_is_folded():
    text = shown(EVERY_KIND)
    for shown_text in ("in its place", "unfolded", "inside", "▲"):
        assert shown_text in text


def test_colours_are_for_a_terminal_that_has_them():
    assert "\x1b[" in shown([Paragraph("x", "warning")], force_terminal=True)
    assert "\x1b[" not in shown([Paragraph("x", "warning")])


def test_long_headings_leave_room_for_the_cells():
    headings = ("mechanism", *("labels recovered (real run)",) * 6)
    text = shown([table(headings, [("label-rr", *("100.00 %",) * 6)])])
    assert "mechanism" in text
    assert "label-rr" in text
    assert text.count("100.00 %") == 6
    assert max(map(len, text.splitlines())) <= 100


LONG = "long words " * 30
PARTY = PartyRun(
    identity=IDENTITY,
    model="a/" * 80,
    stopped="the budget is spent",
    metrics=PartyMetrics(metrics(0.9, 0.95), metrics(0.8, float("nan"))),
    ledger=TRAINING.ledger,
    run=FIGURES,
    peer_confirmed=False,
)
ALIGNMENT = AlignmentResult(
    role="bob",
    peer="alice",
    normalise_ids="none",
    ids=10,
    peer_ids=12,
    common=8,
    match=0.8,
    spellings=(Spelling("case", 3, 1, mixed=True), Spelling("zeros", 10, 0, mixed=False)),
    file="bob.aligned.csv",
    configured=False,
    settings="bob.toml",
    added=(),
    to_add=('aligned = "bob.aligned.csv"',),
    peer_confirmed=False,
    seconds=1.0,
    waiting_seconds=0.5,
    bytes_sent=10,
    bytes_received=10,
    version="1",
)
PREDICTION = PredictionResult(
    role="bob",
    peer="alice",
    mechanism="sealed",
    shared_weights=True,
    session="ab" * 16,
    rows=12,
    ids=20,
    peer_ids=30,
    normalise_ids="case",
    columns=3,
    seconds=0.5,
    bytes_sent=10,
    bytes_received=10,
    peer_confirmed=True,
    suspected_wraps=2,
    meaning="of a label 1",
    threshold=Threshold(0.0531, -2.88, "youden", 100, 0.8, 0.75),
    model="bob.json",
    out="scores.csv",
    scores=tuple(ScoredRow(f"c{number}", 0.5, 0.6, 1) for number in range(12)),
)


def words(blocks: list[Block]) -> str:
    """What is shown, on one line."""
    return " ".join(shown(blocks).replace("\xa0", " ").split())


def tones(blocks: list[Block]) -> list[str]:
    return [block.tone for block in blocks if isinstance(block, Paragraph)]


def test_a_party_shows_figures_only_where_it_has_them():
    both = shown(party_blocks(PARTY))
    alice = replace(PARTY, metrics=PartyMetrics(), ledger=None, peer_confirmed=True, stopped=None)
    hers = shown(party_blocks(alice))
    for figure in ("80.00", "epsilon", "accuracy"):
        assert figure in both
        assert figure not in hers
    # The peer's confirmation is missing.
    assert tones(party_blocks(PARTY)).count("warning") > tones(party_blocks(alice)).count("warning")


def test_a_dry_run_shows_what_each_side_learns_and_why_it_will_not_begin():
    dry = DryRun(
        identity=IDENTITY,
        outlook=Outlook(
            ledger=PARTY.ledger,
            learns=Disclosure(alice="Alice receives gradients.", bob="Bob receives scores."),
            refused=Refusal("labels would be readable", "write so"),
        ),
        peer_columns=4,
        agreement=Sizes(4, 455),
        estimate=Estimate(10, 0.05, 1 << 20, 1 << 20),
    )
    text = words(party_blocks(dry))
    assert dry.outlook.learns is not None
    assert dry.outlook.refused is not None
    for given in (dry.outlook.learns.alice, dry.outlook.learns.bob, dry.outlook.refused.why):
        assert given in text
    for figure in ("10 iterations", "0.1 s", "2.0 MiB"):
        assert figure in text


def test_a_prediction_shows_counts_threshold_and_file():
    text = words(PREDICTION.blocks())
    for figure in ("12", "20", "30", "5.31 %", "100", "scores.csv", "(case)"):
        assert figure in text
    # Ten of the twelve rows are listed.
    assert [f"c{row}" in text.split() for row in (9, 10)] == [True, False]
    assert tones(PREDICTION.blocks()).count("warning") == 1  # two scores near the end
    listed = replace(PREDICTION, peer_ids=None, normalise_ids=None, suspected_wraps=0)
    assert "30" not in words(listed.blocks()).split()
    assert "warning" not in tones(listed.blocks())
    alice = replace(PREDICTION, scores=None, meaning=None, suspected_wraps=None, learnt="no-score")
    assert "no-score" in words(alice.blocks())


def test_an_alignment_shows_how_many_of_how_many_what_may_hinder_and_the_line_to_add():
    text = words(ALIGNMENT.blocks())
    for figure in ("80.0 % of 10", "66.7 % of 12", "3 of 10", *ALIGNMENT.to_add):
        assert figure in text
    # zeros is spelled in one way here, and the match is not low.
    assert "zeros" not in text
    low = replace(ALIGNMENT, match=0.7, to_add=(), added=('aligned = "x.csv"',))
    text = words(low.blocks())
    assert "zeros" in text
    assert low.added[0] in text


def test_an_alignment_of_several_shows_what_all_have_and_what_each_shares():
    several = replace(
        ALIGNMENT,
        peer="alice-1, alice-2",
        common=3,
        parties=(SharedIds("alice-1", 12, 8), SharedIds("alice-2", 5, 4)),
    )
    text = words(several.blocks())
    for figure in (
        "3: 30.0 % of 10",
        "alice-1 8: 80.0 % of 10 here, 66.7 % of 12",
        "alice-2 4: 40.0 % of 10 here, 80.0 % of 5",
    ):
        assert figure in text


@pytest.mark.parametrize(
    "blocks",
    [
        lambda symmetry: party_blocks(replace(PARTY, symmetry=symmetry)),
        lambda symmetry: training_blocks(Runs((replace(TRAINING, symmetry=symmetry),))),
    ],
)
def test_a_symmetry_check_has_one_line_and_warns_where_it_fails(blocks):
    none, passed, failed = (
        blocks(symmetry) for symmetry in (None, Symmetry(0, passed=True), Symmetry(7, passed=False))
    )
    (line,), (warning,) = ([one for one in more if one not in none] for more in (passed, failed))
    assert (line.tone, warning.tone) == ("muted", "warning")
