"""An audit for whoever decides by it: findings in plain words, and the decision to fill in.

A hundred people stand for a share, so that no reader needs to know what an accuracy is.
"""

from __future__ import annotations

from taciturn.report.argument import SIGNED
from taciturn.report.blocks import Blanks, Paragraph, Section
from taciturn.report.words import printed_date
from taciturn_audit.results.audit import Control
from taciturn_audit.verdict import Measure, Weighed, value_of

_KNOWN = {
    "prior": "always guessing the commoner label",
    "model-only": "asking the model that Alice ends up with",
}


def in_plain_words(weighed: Weighed, *, shuffled: bool = False) -> str:
    """Findings of a run, or of the mean of several, as a number of a hundred people."""
    verdict = weighed.verdict
    by = verdict.figure
    known = _controls(verdict.controls, by)
    lead = "Of"
    if shuffled:
        lead = "With labels shuffled before training, which only the protocol can tell: of"
    if verdict.attack is None:
        return (
            f"{lead} 100 people, no attack of ours can name any from what Alice received; without "
            f"any message, {known}."
        )
    right, name = _of_hundred(value_of(verdict.attack, by)), verdict.attack.name
    attack = _KNOWN.get(name, f"the attack {name}")
    if by == "AUC":
        return (
            f"{lead} 100 pairs of a person labelled 1 and one labelled 0, {attack} "
            f"puts {right} in the right order; {known}."
        )
    return (
        f"{lead} 100 people, {attack} names the labels of {right} rightly; "
        f"without any message, {known}."
    )


def _controls(controls: tuple[Control, ...], by: Measure) -> str:
    verb = "puts" if by == "AUC" else "names"
    parts = [
        f"{'a coin' if by == 'AUC' and one.name == 'prior' else _KNOWN.get(one.name, one.name)} "
        f"{verb} {_of_hundred(value_of(one, by))}"
        for one in controls
    ]
    return " and ".join(parts)


def _of_hundred(value: float) -> str:
    """A share as a number of a hundred people; all of them only where it is all.

    >>> _of_hundred(1.0), _of_hundred(0.998), _of_hundred(0.004), _of_hundred(float("nan"))
    ('all', '99', 'fewer than 1', 'an unknown number')
    """
    if not value >= 0:
        return "an unknown number"
    if value >= 1:
        return "all"
    if 0 < value < 0.005:
        return "fewer than 1"
    return str(min(99, round(100 * value)))


def decision(audited: str | None) -> Section:
    """Empty lines, to be filled in on paper."""
    made = f" made on {printed_date(audited)}" if audited else ""
    words = f"This report{made} is what was decided on. It is no proof of safety."
    blocks = (Paragraph(words, "muted"), Blanks(SIGNED))
    return Section("Decision", "decision", blocks, "Decision")
