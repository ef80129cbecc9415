"""A metric is told to Alice in one message only: with ``share-metrics``, in whole per cent."""

from __future__ import annotations

from dataclasses import fields

import pytest

from taciturn.jobs.align.messages import AlignmentEnd, AlignmentHello, CommonToAll
from taciturn.protocol.codec import messages
from taciturn.protocol.messages import Message

# private: the two tables together name every message
from taciturn_audit.messages import _ENCRYPTED, _PLAIN
from taciturn_ops.serve.messages import RowsAsked, RowsDue

# Every field of every message that Bob may send in a training, or for weights of evidence. A new
# one has to be judged: if it holds a metric of labels, an attack on it belongs into the audit
# (audit/docs/audit.md).
BOBS = {
    "Hello": ("version", "role", "terms", "rows", "ids_digest", "magnitude_bits", "columns"),
    "KeyOffer": ("public_key",),
    "Roster": ("text",),
    "Endorsements": ("text",),
    "EncryptedResidues": ("iteration", "residues"),
    "RevealedGradient": ("iteration", "gradient"),
    "NoisyResidues": ("iteration", "residues"),
    "RealResidues": ("iteration", "residues"),
    "BudgetSpent": ("iteration",),
    "HiddenBatchOffer": ("iteration", "subset", "response"),
    "BatchCommitment": ("digest",),
    "BatchShare": ("share",),
    "EpochVerdict": ("iteration", "stop"),
    "HeldOutQuality": ("quality",),
    "SealedLabels": ("part", "labels"),
    "SealedWeights": ("iteration", "weights"),
    "SealedResidues": ("iteration", "residues"),
    "RevealedShare": ("share",),
    "Phases": ("iteration", "phases"),
    "Segments": ("iteration", "marks"),
    "SharedVector": ("iteration", "vector"),
    "SharedProduct": ("iteration", "answer"),
}


def bobs() -> list[type[Message]]:
    """The messages of a training, and of weights of evidence, that Bob may send."""
    others = {*range(AlignmentHello.code, AlignmentEnd.code + 1), CommonToAll.code}
    # Ids that callers ask for, and which of them all Alices have: no label is looked at.
    others |= {RowsAsked.code, RowsDue.code}
    return [kind for kind in messages() if "bob" in kind.senders and kind.code not in others]


def test_bob_sends_nothing_that_was_not_judged():
    sent = {kind.__name__: tuple(one.name for one in fields(kind)) for kind in bobs()}
    assert sent == BOBS


def test_the_audit_has_words_for_each():
    # The audit of weights of evidence has words for its own.
    assert {kind.__name__ for kind in (*_PLAIN, *_ENCRYPTED)} == set(BOBS) - {"SealedLabels"}


@pytest.mark.parametrize("word", ["loss", "auc", "accuracy", "metric", "score"])
def test_no_other_field_is_a_metric(word):
    assert not any(word in name for names in BOBS.values() for name in names)
