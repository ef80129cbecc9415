"""What somebody who decides about privacy asks of a report: plain words, reasons, a place to sign.

A hundred people stand for a share, so that no reader needs to know what an accuracy is.
"""

from __future__ import annotations

from taciturn.audit.verdict import Measure, Weighed, value_of
from taciturn.report.blocks import Blanks, Block, Bullets, Facts, Paragraph, Section
from taciturn.report.words import printed_date
from taciturn.results.audit import Control

SIGNED = ("Decision", "Conditions", "Name", "Date", "Signature")
_KNOWN = {
    "prior": "always guessing the commoner label",
    "model-only": "asking the model that Alice ends up with",
}


def in_plain_words(weighed: Weighed, *, shuffled: bool = False) -> str:
    """What a run, or the mean of several, comes to, of a hundred people.

    Args:
        weighed: What was found.
        shuffled: Whether its labels were shuffled before training.
    """
    verdict = weighed.verdict
    by = verdict.figure
    known = _controls(weighed.findings.controls, by)
    lead = "Of"
    if shuffled:
        lead = "With labels shuffled before training, which only messages can tell: of"
    if verdict.attack is None:
        return (
            f"{lead} 100 people, no attack of ours can name any from what Alice received; without "
            f"any message, {known}."
        )
    right = _of_hundred(value_of(verdict.attack, by))
    if by == "AUC":
        return (
            f"{lead} 100 pairs of a person labelled 1 and one labelled 0, the attack "
            f"{verdict.attack.name} puts {right} in the right order; {known}."
        )
    return (
        f"{lead} 100 people, the attack {verdict.attack.name} names the labels of {right} rightly; "
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


_ARGUMENT = (
    "Everything that depends on a label leaves Bob encrypted under his key, which never leaves his "
    "process.",
    "Alice computes with these numbers without reading them, adds random numbers of her own, and "
    "sends the result back; Bob alone can open it.",
    "Her part of the model is split into two shares, of which hers is the sum of those random "
    "numbers: no label enters it.",
    "When, how often and how long Bob speaks is fixed before he begins; nothing that Alice can see "
    "of him depends on what he opens.",
    "So all that she sees could have been made, as far as she can tell, by somebody who knows no "
    "label: with zeros encrypted in place of every number.",
)


def sealed_argument(scheme: str, key_bits: int) -> Section:
    """Why ``sealed`` tells Alice nothing, in five lines, and what that rests on."""
    strength = (
        f"{key_bits} bits: the best attack known takes about 2^{key_bits} steps"
        if scheme == "bfv"
        else f"keys of {key_bits} bits"
    )
    rests: dict[str, str] = {
        "the encryption": f"{scheme}, {strength}. That nobody without the key can tell an "
        "encryption of one number from one of another (IND-CPA) is an assumption about mathematics "
        "that is studied in public; it is not proven, and no audit can test it.",
        "Alice keeps to the protocol": "She sends what the program sends, and looks at everything "
        "as long as she likes. One who sends other answers gets ciphertexts all the same; that "
        "these tell her nothing either is a stronger assumption, or fresh keys.",
        "Bob keeps silent": "What he tells by other means, such as a figure of the model or a "
        "decision made with it, is no part of this.",
        "not covered": "Alice's columns: Bob sees a score of every row, and they show in it.",
    }
    blocks: tuple[Block, ...] = (
        Bullets(_ARGUMENT),
        Paragraph("What it rests on:", "strong"),
        Facts(rests),
    )
    return Section("Why Alice cannot read the labels", "argument", blocks, "The argument")


def decision(audited: str | None) -> Section:
    """Empty lines, to be filled in on paper."""
    made = f" made on {printed_date(audited)}" if audited else ""
    words = f"This report{made} is what was decided on. It is no proof of safety."
    blocks = (Paragraph(words, "muted"), Blanks(SIGNED))
    return Section("Decision", "decision", blocks, "Decision")
