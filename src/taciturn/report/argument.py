"""Security argument of a report, and the lines to sign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from taciturn.report.blocks import Block, Bullets, Facts, Paragraph, Section

SIGNED = ("Decision", "Conditions", "Name", "Date", "Signature")

_ARGUMENT = (
    "Everything that depends on a label leaves Bob encrypted under his key, which never leaves his "
    "process.",
    "Alice computes on the ciphertexts, adds random masks, and sends the result back; only Bob can "
    "decrypt it.",
    "Her weights are split into two shares. Her share is the sum of her own masks: it does not "
    "depend on a label.",
    "The time, number and length of Bob's messages are fixed before he begins; nothing that Alice "
    "can observe depends on what he decrypts.",
    "So she cannot distinguish what she receives from encryptions of zeros, made without any "
    "label.",
)

_SILENT = (
    "What he discloses in other ways, such as a metric of the model or a decision based on it, is "
    "not covered."
)

_MUTUAL_ARGUMENT = (
    "Except for the sums over all training rows and the scores of held-out and new rows, which Bob "
    "receives (with reveal-bob also his weights), no number that depends on the other side's data "
    "is opened.",
    "Every weight, score and residue is split into two shares, one for each side; either share "
    "alone is a random number.",
    "Each side computes on the other's share under the other's key, adds random masks, and sends "
    "the result back. A key never leaves its owner's process.",
    "So each side decrypts only random-looking numbers. No score of a training row is decrypted.",
    "The time, number and length of both sides' messages are fixed before they begin; nothing that "
    "one can observe of the other depends on what is decrypted.",
    "So neither side can distinguish what else it receives from messages made without any label "
    "and without the other's columns.",
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
        f"{scheme}, {known}. That nobody without the key can distinguish encryptions of two "
        "numbers (IND-CPA) is a publicly studied mathematical assumption; it is not proven, and no "
        "audit can test it."
    )


def _mutual_argument(scheme: str, key_bits: int) -> Section:
    rests: dict[str, str] = {
        "the encryption": f"A key on each side: {_strength(scheme, key_bits)}",
        "both follow the protocol": "They send what the program sends, and may analyse everything "
        "they receive. Against a side that sends other answers, a stronger assumption is needed.",
        "Bob's other disclosures": _SILENT,
        "not covered": "Those sums and scores. Many scores together disclose Alice's columns.",
    }
    return _section(
        "Why neither side should be able to read the other's data", _MUTUAL_ARGUMENT, rests
    )


def _sealed_argument(scheme: str, key_bits: int) -> Section:
    rests: dict[str, str] = {
        "the encryption": _strength(scheme, key_bits),
        "Alice follows the protocol": "She sends what the program sends, and may analyse "
        "everything she receives. If she sends other answers she still receives only ciphertexts "
        "about labels; that these reveal nothing needs a stronger assumption, or fresh keys.",
        "Bob's other disclosures": _SILENT,
        "not covered": "Alice's columns: Bob can reconstruct them from the scores that he "
        "receives. In mutual he receives no score of a training row.",
    }
    return _section("Why Alice should not be able to read the labels", _ARGUMENT, rests)


def _section(title: str, lines: Sequence[str], rests: Mapping[str, str]) -> Section:
    blocks: tuple[Block, ...] = (
        Bullets(tuple(lines)),
        Paragraph("What this relies on:", "strong"),
        Facts(dict(rests)),
    )
    return Section(title, "argument", blocks, "The argument")
