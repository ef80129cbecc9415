"""What a training costs and discloses, as blocks."""

from __future__ import annotations

from taciturn.errors import counted
from taciturn.numerics.sorted_scores import COST, GIVEN, YOUDEN, Threshold
from taciturn.privacy.statement import Statement
from taciturn.report.blocks import (
    Block,
    Facts,
    Heading,
    Paragraph,
    Span,
    Words,
)
from taciturn.report.training import label_epsilon
from taciturn.report.words import share
from taciturn.results.check import ColumnExposure
from taciturn.results.outlook import Disclosure, Outlook

_EXPOSED = Span("Columns are exposed.", "bad")


def outlook_blocks(price: Outlook) -> list[Block]:
    """What a training will cost Bob's labels, and what each side will receive."""
    blocks: list[Block] = []
    if price.ledger is not None:
        figures = _statement(price.ledger) | _over_time(price)
        blocks += [Heading("What it will cost Bob's labels:"), Facts(figures)]
    blocks += [Heading("What each side will receive:"), Facts(learns_facts(price.learns))]
    if price.refused is not None:
        refused = f"As it stands this side will not begin: {price.refused.why}."
        blocks += [Paragraph(refused, "bad"), Paragraph(f"Way out: {price.refused.way_out}.")]
    return blocks


def learns_facts(learns: Disclosure) -> dict[str, Words]:
    """What each side receives, and what becomes of Alice's columns."""
    facts: dict[str, Words] = {"Alice": learns.alice, "Bob": learns.bob}
    if learns.columns is not None:
        facts["Alice's columns"] = (_EXPOSED, f" {learns.columns}.")
    return facts


def _over_time(price: Outlook) -> dict[str, Words]:
    total = price.ledger_book
    if total is None or price.ledger is None:
        return {}
    so_far, this, then = (
        label_epsilon(ledger.label_epsilon_total)
        for ledger in (total.so_far, price.ledger, total.then)
    )
    limit = "" if total.limit is None else f"; the limit is {total.limit:g}"
    words = f"so far {so_far} in {counted(total.trainings, 'training')}, this training {this}"
    return {"over time": f"{words}, then {then}{limit}"}


def _statement(ledger: Statement) -> dict[str, Words]:
    releases = counted(ledger.releases_per_row, "release")
    return {
        "a release": f"of a label, {label_epsilon(ledger.label_epsilon_per_release)}",
        "a row": f"at most {releases}" if ledger.releases_per_row else "no release in clear",
        "in all": f"of a label, {label_epsilon(ledger.label_epsilon_total)}"
        + (f", with delta {ledger.label_delta_total:g}" if ledger.label_delta_total else ""),
        "this rests on": ledger.assumption,
    }


def exposure_facts(exposed: ColumnExposure) -> Facts:
    """The counts of opened scores, and what they mean for Alice."""
    deviating = {
        "if Bob deviates": f"up to {exposed.columns_per_score:,} of her columns from one "
        f"score, all from {exposed.scores_for_all:,}"
    }
    opens = exposed.scores_per_row > 0
    warning: Words = (_EXPOSED, f" {exposed.warning}") if opens else exposed.warning
    return Facts(
        {
            "scores of a row": f"up to {exposed.scores_per_row:,}; {exposed.opened_values:,} "
            "values in all",
            **(deviating if opens else {}),
            "for Alice": warning,
        }
    )


def threshold_words(threshold: Threshold) -> str:
    """Where class 1 begins, and how that was chosen."""
    where = f"above {share(threshold.probability)}"
    rules = {
        GIVEN: "as given",
        YOUDEN: f"by Youden's index on {threshold.rows:,} held-out rows",
        COST: f"at which {threshold.rows:,} held-out rows cost least, a missed 1 costing "
        f"{threshold.false_negative_cost or 0:g} false alarms",
    }
    how = rules.get(threshold.rule, "even odds, for there were no held-out rows to choose on")
    if threshold.sensitivity is None:
        return f"{where}, {how}"
    reached = (
        f"{share(threshold.sensitivity, 1)} of their ones lie above it, "
        f"{share(threshold.specificity, 1)} of their zeros do not"
    )
    return f"{where}, {how}: {reached}"
