"""The list of messages that Alice received: what each was, how it was protected, what it allows.

**Guarantee.** Every frame of the conversation that Bob sent is counted, by its kind.

**Assumes.** The words say what an honest-but-curious Alice can do with each; what a malicious one
can is the threat model's business (``docs/threat_model.md``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from taciturn.crypto.registry import scheme
from taciturn.protocol.codec import kind_of
from taciturn.protocol.messages import (
    BatchCommitment,
    BatchShare,
    BudgetSpent,
    EncryptedResidues,
    Endorsements,
    EpochVerdict,
    HeldOutQuality,
    Hello,
    HiddenBatchOffer,
    KeyOffer,
    Message,
    NoisyResidues,
    Phases,
    RealResidues,
    RevealedGradient,
    RevealedShare,
    Roster,
    SealedResidues,
    SealedWeights,
    Segments,
    SharedProduct,
    SharedVector,
)
from taciturn_audit.results.audit import READABLE, MessageSeen
from taciturn_audit.views.alice_view import AliceView

_PLAIN: dict[type[Message], str] = {
    Hello: "Bob's settings, number of rows and columns, and a digest of the row ids: no label",
    KeyOffer: "compute with values under Bob's key; decrypt nothing",
    Roster: "know the other feature parties' keys, how many columns they have and how large their "
    "values are; no label went into it",
    Endorsements: "check the others' signatures, have a key in common with each of them, and know "
    "which rows are in which batch; no label went into it",
    BatchCommitment: "know that Bob's share of the batch seed is fixed; no label went into it",
    BatchShare: "know which rows are in which batch; no label went into it",
    EpochVerdict: "know from when on the held-out loss did not fall: it depends on labels",
    HeldOutQuality: "know how good the model is on held-out rows, in whole per cent: it depends "
    "on labels",
    RevealedGradient: "take her mask off and have the batch's gradient exactly: for each of her "
    "columns, the sum over the batch's rows of value times residue",
    NoisyResidues: "have each row's residue with noise, whose law she knows",
    RealResidues: "have each row's residue with noise; its last bits may tell more than its law",
    BudgetSpent: "know that the privacy budget is spent; it depends on counts alone",
    RevealedShare: "add her own share and have her weights in clear: they depend on labels",
    SharedProduct: "decrypt random-looking numbers: no label, no score",
    HiddenBatchOffer: "know which rows may be in the batch; their residues are zero off the batch",
}

_ENCRYPTED: dict[type[Message], str] = {
    EncryptedResidues: "every residue",
    SealedWeights: "Bob's share of her weights, and with hers the weights",
    SealedResidues: "every residue, and Bob's share of her weights",
    Phases: "Bob's share of every score",
    Segments: "a bit of Bob's share of every weight and residue",
    SharedVector: "Bob's share of every residue and of her weights",
}


def messages_to_alice(view: AliceView) -> list[MessageSeen]:
    """Messages from Bob by kind, in the order of first appearance."""
    agreed = view.agreement
    flipped = view.mechanism.label_flips is not None
    return frames_to_alice(view.received, agreed.scheme, agreed.key_bits, flipped=flipped)


def frames_to_alice(
    frames: Iterable[bytes],
    scheme_name: str,
    key_bits: int,
    *,
    flipped: bool = False,
    encrypted: Mapping[type[Message], str] = _ENCRYPTED,
) -> list[MessageSeen]:
    """Frames that Bob sent, by kind, in the order of their first appearance.

    ``flipped``: the labels that went into them were flipped. ``encrypted`` says what each encrypted
    message holds.
    """
    counts: dict[type[Message], tuple[int, int]] = {}
    for frame in frames:
        kind = kind_of(frame)
        count, size = counts.get(kind, (0, 0))
        counts[kind] = count + 1, size + len(frame)
    hidden = scheme(scheme_name).protects
    return [
        MessageSeen(
            message=kind.__name__,
            count=count,
            bytes=size,
            encrypted=hidden and kind in encrypted,
            scheme=scheme_name if hidden and kind in encrypted else None,
            key_bits=key_bits if hidden and kind in encrypted else None,
            allows=_allows(kind, encrypted.get(kind), hidden, flipped),
        )
        for kind, (count, size) in counts.items()
    ]


def _allows(kind: type[Message], content: str | None, hidden: bool, flipped: bool) -> str:
    if content is not None:
        text = "multiply it by her columns; read nothing without Bob's key"
        return text if hidden else f"{text} ({READABLE}: {content})"
    labels = "; its labels are flipped ones" if kind is RevealedGradient and flipped else ""
    return _PLAIN.get(kind, "") + labels
