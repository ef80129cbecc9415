"""Which rows of the table of openings a training opens, and their noise as a reader sees it."""

from __future__ import annotations

from typing import Any

import pytest

from taciturn.crypto.clear import ClearScheme
from taciturn.jobs.train.disclosure_text import disclosure_text as disclosure_of
from taciturn.privacy.row_noise import OPENING_ROWS
from taciturn.protocol.opened_scores import OpenedScores
from taciturn.protocol.terms import Terms
from tests.protocol.test_conversations import agreed

SCHEME = ClearScheme()


def opened(name: str, rows: int, held_out: int = 0, **changes: Any) -> dict[str, str]:
    """Kinds of numbers that one side receives, with the text on their noise."""
    terms = Terms(agreed(name, **changes), SCHEME)
    openings = disclosure_of(terms, rows, held_out).openings
    both = {one.kind for one in openings if one.receiver == "alice"} & {
        one.kind for one in openings if one.receiver == "bob"
    }
    assert both == {"shared ids", "sizes", "largest value"}
    return {one.kind: one.noise for one in openings if one.kind not in both}


SUMS = {"change of the loss", "count of scores"}


@pytest.mark.parametrize(
    ("name", "changes", "kinds"),
    [
        ("mutual-table", {}, set()),
        ("mutual-table", {"reveal_bob": True, "reveal": True}, {"weights of Bob"}),
        ("sealed-table", {}, {"training score", "weights of Bob"}),
        ("revealed-table", {}, {"training score", "weights of Bob", "label release"}),
        ("residues", {}, {"training score", "weights of Bob", "label release"}),
    ],
)
def test_what_is_opened_follows_from_the_agreement(name, changes, kinds):
    sums = SUMS if name == "mutual-table" else set()
    hers = {"weights of Alice"} if "label release" in kinds or "reveal" in changes else set()
    assert opened(name, OPENING_ROWS - 1, **changes).keys() == kinds | hers
    assert opened(name, OPENING_ROWS, 9, **changes).keys() == (
        kinds | hers | sums | {"held-out score"}
    )


def test_the_counts_agree_with_those_of_the_disclosure():
    for rows, sums in ((OPENING_ROWS - 1, 0), (OPENING_ROWS, 2)):
        terms = Terms(agreed("mutual-table"), SCHEME)
        counts = OpenedScores.from_terms(terms, rows, 100)
        openings = disclosure_of(terms, rows, 100).openings
        widths = [one.noise_rows for one in openings if one.noise_rows is not None]
        assert counts.sums == sums == len(widths)
        assert widths == [1.0, 16.0][:sums]


def test_noise_is_told_in_rows_and_bits_add_up_over_trainings():
    texts = opened("mutual-table", 120_000)
    assert "7.32 rows" in texts["change of the loss"]
    assert "16 rows" in texts["count of scores"]
