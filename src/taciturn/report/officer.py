"""What somebody who decides about privacy asks of a report: plain words, reasons, a place to sign.

A hundred people stand for a share, so that no reader needs to know what an accuracy is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


_SILENT = (
    "What he tells by other means, such as a figure of the model or a decision made with it, is no "
    "part of this."
)
_MUTUAL_ARGUMENT = (
    "Every weight, score and residue is split into two shares, one for each side, and either share "
    "alone is a random number.",
    "What a side needs of the other's share it computes under the other's key, which never leaves "
    "the other's process, adds random numbers of its own, and sends the result back.",
    "So either side opens only numbers that the other's random numbers hide; no score of a "
    "training row is opened at all.",
    "When, how often and how long both speak is fixed before they begin; nothing that one can see "
    "of the other depends on what is opened.",
    "So all that either sees could have been made, as far as it can tell, by somebody who knows no "
    "label, and none of the other's columns.",
)


def argument(mechanism: str, scheme: str, key_bits: int) -> list[Section]:
    """Why what a side receives tells it nothing, where it does; nothing elsewhere."""
    if mechanism == "sealed":
        return [_sealed_argument(scheme, key_bits)]
    return [_mutual_argument(scheme, key_bits)] if mechanism == "mutual" else []


def _strength(scheme: str, key_bits: int) -> str:
    known = (
        f"{key_bits} bits: the best attack known takes about 2^{key_bits} steps"
        if scheme == "bfv"
        else f"keys of {key_bits} bits"
    )
    return (
        f"{scheme}, {known}. That nobody without the key can tell an encryption of one number from "
        "one of another (IND-CPA) is an assumption about mathematics that is studied in public; it "
        "is not proven, and no audit can test it."
    )


def _mutual_argument(scheme: str, key_bits: int) -> Section:
    rests: dict[str, str] = {
        "the encryption": f"A key on each side: {_strength(scheme, key_bits)}",
        "both keep to the protocol": "They send what the program sends, and look at everything as "
        "long as they like. Against one who sends other answers the assumption is a stronger one.",
        "Bob keeps silent": _SILENT,
        "not covered": "The scores of held-out and of new rows, which are opened to Bob with a "
        "little noise: they are what these rows are scored for, and her columns show in many of "
        "them.",
    }
    return _section("Why neither side can read what is the other's", _MUTUAL_ARGUMENT, rests)


def _sealed_argument(scheme: str, key_bits: int) -> Section:
    rests: dict[str, str] = {
        "the encryption": _strength(scheme, key_bits),
        "Alice keeps to the protocol": "She sends what the program sends, and looks at everything "
        "as long as she likes. One who sends other answers gets ciphertexts all the same; that "
        "these tell her nothing either is a stronger assumption, or fresh keys.",
        "Bob keeps silent": _SILENT,
        "not covered": "Alice's columns: Bob can reconstruct them from the scores that he sees. In "
        "mutual he sees none of a training row.",
    }
    return _section("Why Alice cannot read the labels", _ARGUMENT, rests)


def _section(title: str, lines: Sequence[str], rests: Mapping[str, str]) -> Section:
    blocks: tuple[Block, ...] = (
        Bullets(tuple(lines)),
        Paragraph("What it rests on:", "strong"),
        Facts(dict(rests)),
    )
    return Section(title, "argument", blocks, "The argument")


def decision(audited: str | None) -> Section:
    """Empty lines, to be filled in on paper."""
    made = f" made on {printed_date(audited)}" if audited else ""
    words = f"This report{made} is what was decided on. It is no proof of safety."
    blocks = (Paragraph(words, "muted"), Blanks(SIGNED))
    return Section("Decision", "decision", blocks, "Decision")
