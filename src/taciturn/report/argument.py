"""Security argument of a report, and the lines to sign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from taciturn.report.blocks import Block, Bullets, Facts, Paragraph, Section

SIGNED = ("Decision", "Conditions", "Name", "Date", "Signature")

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
    """The security argument of ``sealed`` or ``mutual``; empty for other mechanisms."""
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
