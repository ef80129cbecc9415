"""Is the model worth it, and did the training arrive: the sentences beside its figures."""

from __future__ import annotations

import math
from collections.abc import Mapping

from taciturn.errors import counted
from taciturn.numerics.convergence import SEEN_ONCE
from taciturn.numerics.metrics import AddedAuc
from taciturn.numerics.symmetry import Symmetry
from taciturn.report.blocks import NO_BREAK, Block, Paragraph
from taciturn.report.words import figure, interval, percent, share

DIVERGED = (
    "The training diverged: its loss is beyond that of no model at all, and the model is "
    "worthless. Scale or clip the columns, lower the learning rate, or use newton."
)
_SYMMETRIC = "Symmetry check passed: no sign that Alice changed her table between passes."
_ASYMMETRIC = (
    "The symmetry check failed: the scores of the passes do not come from one table (largest "
    "difference: {largest:,} units). Alice answered differently for some rows or in some passes, "
    "or a computation on her side was wrong. Do not use this model. Keep the outcome from Alice: "
    "it depends on labels, so to tell her is a release. docs/deviating.md says what you may do."
)
_SHARES = ("accuracy", "auc", "pr_auc", "ks")


def symmetry_blocks(symmetry: Symmetry | None) -> list[Block]:
    """What Bob's test of the scores came to, in one paragraph; nothing where he has none."""
    if symmetry is None:
        return []
    if symmetry.passed:
        return [Paragraph(_SYMMETRIC, "muted")]
    return [Paragraph(_ASYMMETRIC.format(largest=symmetry.largest), "warning")]


def ends(part: Mapping[str, float | None], key: str) -> str:
    r"""The 95 % interval of a figure; nothing where it has none.

    >>> ends({"auc_low": 0.7, "auc_high": 0.75}, "auc"), ends({}, "brier")
    ('70.00\xa0– 75.00\xa0%', '')
    """
    low, high = part.get(f"{key}_low"), part.get(f"{key}_high")
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    return interval(low, high) if key in _SHARES else f"{figure(low)}{NO_BREAK}– {figure(high)}"


def base_rate(rate: float | None, rows: str) -> str:
    """How many ones there are, and what saying nothing would be right about.

    >>> base_rate(0.05, "held-out rows").replace(NO_BREAK, " ")
    '5.00 % of the held-out rows are 1: calling none of them 1 would be right for 95.00 %'
    """
    if rate is None or math.isnan(rate):
        return ""
    common, word = max(rate, 1 - rate), "none" if rate <= 0.5 else "all"
    return (
        f"{share(rate)} of the {rows} are 1: calling {word} of them 1 would be right for "
        f"{share(common)}"
    )


def partner_adds(added: AddedAuc | None) -> str:
    """What the partner's columns are worth, in points of AUC.

    >>> partner_adds(AddedAuc(0.04, 0.03, 0.05)).replace(NO_BREAK, " ")
    '+4.00 points of AUC (95 % interval +3.00 to +5.00)'
    >>> partner_adds(AddedAuc(0.001, -0.01, 0.012)).replace(NO_BREAK, " ")
    '+0.10 points of AUC (95 % interval -1.00 to +1.20): nothing that these rows can show'
    """
    if added is None or math.isnan(added.auc):
        return ""
    words = f"{_points(added.auc)} points of AUC"
    if not math.isnan(added.low):
        words += f" (95{NO_BREAK}% interval {_points(added.low)} to {_points(added.high)})"
    if added.high < 0:
        return f"{words}: the joint model is worse than Bob's columns alone"
    return words if added.low > 0 else f"{words}: nothing that these rows can show"


def arrived(
    converged: bool | None, last_change: float | None, steps: str, reason: str | None = None
) -> str:
    """The verdict on convergence.

    ``converged`` is None where it is not known, and ``reason`` says why. ``last_change`` is by how
    much the last pass lowered the training loss; None where the distance to the optimum decided.

    >>> arrived(True, 2e-6, "pass")
    'yes; the last pass moved the training loss by 2.0e-06'
    >>> arrived(True, None, "pass"), arrived(None, None, "epoch", "nobody saw it")
    ('yes, by the distance to the optimum', 'not known: nobody saw it')
    """
    if converged is None:
        return f"not known: {reason or SEEN_ONCE}"
    moved = ", by the distance to the optimum"
    if last_change is not None:
        moved = f"; the last {steps} moved the training loss by {abs(last_change):.1e}"
    if converged:
        return f"yes{moved}"
    more = "passes" if steps == "pass" else "epochs, or another learning rate,"
    return f"no{moved}: more {more} would change the model"


def beyond_blocks(scores: int | None) -> list[Block]:
    """Says so where scores of ``mutual`` may not have fitted."""
    if not scores:
        return []
    words = (
        f"{counted(scores, 'score')} may lie beyond the range, and may have wrapped: the model may "
        "be worthless. Clip the columns, raise l2, or raise score-range."
    )
    return [Paragraph(words, "warning")]


def divergence(diverged: bool) -> list[Block]:
    """Says so where the model is worthless."""
    return [Paragraph(DIVERGED, "warning")] if diverged else []


def _points(value: float) -> str:
    return f"{'+' if value >= 0 else '-'}{percent(abs(value))}"
