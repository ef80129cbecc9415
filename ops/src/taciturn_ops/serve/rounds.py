"""Rounds of scores on demand: the messages of a meeting, and their limits.

::

    Alice                                            Bob
      Hello (which model)                      <->   Hello
      the introductions of several Alices
      the joint seed, of keys' uniform halves        (where weights are shared)
      round by round, as long as both stay:
                                                <-   RowsAsked           ids
      RowsHeld             a verdict for each   ->
                                                <-   RowsDue             (several Alices)
                                                <-   SealedWeights       (``sealed``, once)
      the scores of the rows that are due       ->

Scores are made by the lines that ``taciturn predict`` runs. In ``sealed`` Bob's share of the
weights is encrypted once for each size of a round, and its ciphertext used again: he sends nothing
that depends on what he has decrypted.

**Guarantee.** Alice learns which ids Bob asks for, and when. Bob learns of each whether she has it
and may tell its score, and the score. Of several Alices he learns the sum alone: their masks are
bound to the list of ids that are due, so that Alices who were given different lists give noise.

**Assumes.** What the prediction with this mechanism assumes; and of several Alices that Bob does
not ask for one row under two ids.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from enum import IntEnum

from taciturn.errors import RemoteProtocolError
from taciturn.files import canonical_json
from taciturn.protocol.messages import PublicBytes
from taciturn.protocol.model_name import ModelName
from taciturn.protocol.prediction import shared_terms
from taciturn.protocol.scales import Scales
from taciturn.protocol.terms import Terms

MOST_ASKED = 1 << 12
"""Rows of a round."""
MOST_ID_LETTERS = 256
ROUNDS = 1 << 16
"""Number of rounds after which the parties reconnect with new keys."""
ROW_ANSWERS = 1 << 12
"""What answers tell of a row beyond its scores adds up over those that it is in: checked for so
many."""
HEADROOM_BITS = 4
"""A value may be sixteen times the largest of the training."""
TABLE_BLOCKS = (32, 256, 1024, MOST_ASKED)
"""The sizes to which a round is filled up, where a vector is encrypted for a size of tables."""


class Verdict(IntEnum):
    """Alice's answer about a requested row."""

    HELD = 0
    UNKNOWN = 1
    ROW_SPENT = 2
    DAY_SPENT = 3
    UNFIT = 4
    SOURCE_AWAY = 5


def block_of(rows: int) -> int:
    """Size to which a round of ``rows`` rows is padded.

    >>> [block_of(rows) for rows in (1, 32, 33, 1000, 4096)]
    [32, 32, 256, 1024, 4096]
    """
    return next(size for size in TABLE_BLOCKS if rows <= size)


def write_ids(ids: Sequence[str]) -> PublicBytes:
    """Encode ids for a message."""
    return PublicBytes(json.dumps([*ids], ensure_ascii=False).encode())


def read_ids(data: bytes) -> tuple[str, ...]:
    """Parse ids that ``write_ids`` encoded; RemoteProtocolError if they are malformed.

    >>> read_ids(write_ids(["c1", "c2"]))
    ('c1', 'c2')
    """
    unfit = RemoteProtocolError("the peer's list of ids is malformed")
    try:
        ids = json.loads(data.decode())
    except (ValueError, RecursionError):
        raise unfit from None
    if not isinstance(ids, list) or not all(isinstance(row_id, str) for row_id in ids):
        raise unfit
    if len(ids) > MOST_ASKED or any(not 0 < len(row_id) <= MOST_ID_LETTERS for row_id in ids):
        raise RemoteProtocolError(
            f"the peer asks for more than {MOST_ASKED} rows at once, or for an id that is too long"
        )
    # As ``RowIds`` has them; lone surrogates are not printable either.
    if len({*ids}) != len(ids) or not all(row_id.isprintable() for row_id in ids):
        raise RemoteProtocolError("the peer asks for an invalid id, or for one row twice")
    return tuple(ids)


def list_name(number: int, ids: Sequence[str]) -> str:
    """One name for one list of one round, to which masks are bound."""
    return f"{number} {hashlib.sha256(write_ids(ids)).hexdigest()}"


def serving_terms(model: ModelName, normalise_ids: str, terms: Terms, scales: Scales | None) -> str:
    """Terms that both sides must share, in canonical form.

    ``normalise_ids`` says how ids are read; ``scales`` is None where Alice has weights in clear.
    """
    shared = "" if scales is None else shared_terms(terms, scales, "serve")
    stated = {"purpose": "serve", "normalise_ids": normalise_ids, "scales": shared}
    return canonical_json({**model.to_json(), **stated})
