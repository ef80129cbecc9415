"""What both sides of a joint prediction must know alike."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tacit.protocol.scales import Scales
from tacit.protocol.terms import Terms

PREDICTION_TERMS = '{"purpose":"predict"}'
CHUNK_ROWS = 1 << 16


SEALED_CHUNK_ROWS = 1 << 12


def sealed_terms(terms: Terms, scales: Scales) -> str:
    """What both sides of a prediction from shared weights must have alike, in canonical form."""
    shared = {
        "purpose": "predict-sealed",
        "scheme": terms.agreement.scheme,
        "key_bits": terms.agreement.key_bits,
        "fresh_keys": terms.agreement.fresh_keys,
        "modulus_bits": scales.modulus_bits,
        "feature_bits": scales.feature_bits,
        "residue_bits": scales.residue_bits,
    }
    return json.dumps(shared, sort_keys=True, separators=(",", ":"))


def chunks(rows: int, size: int = CHUNK_ROWS) -> Iterator[tuple[int, slice]]:
    """Numbered slices that cover the rows, small enough for one frame each.

    >>> list(chunks(70_000))
    [(0, slice(0, 65536, None)), (1, slice(65536, 70000, None))]
    """
    for number, start in enumerate(range(0, rows, size)):
        yield number, slice(start, min(start + size, rows))
