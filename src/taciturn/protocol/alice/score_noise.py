"""The noise that Alice adds to every score that Bob sees after training.

A score from shares is an exact integer of up to 57 bits: with the weights known, it determines one
or two columns of a new row. The noise covers the digits below ``2^-12`` of a log-odd. It is
uniform on the score grid in ``[-2^-12, 2^-12]``, and a pseudo-random function of Alice's key, the
model, the row's id and its encoded values: the same question has the same answer, so that repeats
average nothing away, and a served score equals a predicted one bit for bit.

A grid coarser than that has no noise: rounding to the nearest point of it covers as many digits
already.

**Guarantee.** The integers are within ``2^-81`` of uniform. Noise of two models, rows, values or
passes is independent.

**Assumes.** Keyed BLAKE2b [RFC7693] and HMAC-SHA256 are pseudo-random functions; Alice alone has
the key. This is not differential privacy, and no protection against a Bob who sends other vectors
than his share: the difference of two answers for one row has no noise.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Sequence

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.data.ids import RowIds
from taciturn.memmap import row_blocks
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.privacy.row_noise import SCORE_NOISE_BITS
from taciturn.rng import KEY_BYTES, Entropy

_PERSON = b"taciturn scores"
_DIGEST_BYTES = 16


def noise_key(entropy: Entropy) -> bytes:
    """The key that Alice keeps with her model, from the entropy of its training."""
    return entropy.fork("score noise").token(KEY_BYTES)


class ScoreNoise:
    """The noise of one model's scores.

    ``model`` is the model's identity: what rows are multiplied with, her weights or shares.

    >>> noise = ScoreNoise(bytes(32), np.array([0.5]))
    >>> drawn = noise.draw(["a", "b"], np.array([[3], [3]]), 2.0**-20)
    >>> bool(drawn[0] != drawn[1]), bool(np.abs(drawn).max() <= 2**8)
    (True, True)
    >>> noise
    ScoreNoise(<hidden>)
    """

    def __init__(self, key: bytes, *model: IntArray | FloatArray, purpose: str = "a model") -> None:
        # Digests of one length each: no text or array can run into the next.
        parts = (purpose.encode(), *map(_little, model))
        about = b"".join(hashlib.sha256(part).digest() for part in parts)
        self._key = hmac.digest(key, _PERSON + about, "sha256")

    @classmethod
    def for_pass(cls, key: bytes, number: int) -> ScoreNoise:
        """The noise of held-out scores after one pass or epoch, whose model nobody keeps."""
        return cls(key, purpose=f"pass {number}")

    def draw(
        self, ids: RowIds | Sequence[str], encoded: IntArray | FloatArray, unit: float
    ) -> IntArray:
        """The noise of some rows' scores, in units of their grid.

        ``encoded`` is what the weights multiply, rows by columns: integers on the features' grid,
        or reals where weights are not shared. ``unit`` is the step of the score grid, in log-odds.
        """
        steps = math.floor(2.0**-SCORE_NOISE_BITS / unit)
        drawn = np.zeros(len(encoded), dtype=np.int64)
        if not steps:
            return drawn
        bound, start = 2 * steps + 1, self._start()
        for place, block in row_blocks(encoded):
            taken = ids[place] if not isinstance(ids, RowIds) else ids.series[place].to_list()
            values, width = _little(block), 8 * encoded.shape[1]
            for at, name in enumerate(taken):
                state = start.copy()
                # No id holds a zero byte: an id cannot run into the values.
                state.update(name.encode() + b"\0" + values[at * width : (at + 1) * width])
                drawn[place.start + at] = int.from_bytes(state.digest(), "little") % bound
        return drawn - steps

    def reals(
        self, ids: RowIds | Sequence[str], encoded: IntArray | FloatArray, grid: FixedPoint
    ) -> FloatArray:
        """The noise of scores that travel in clear, as multiples of their grid's step."""
        return grid.decode(self.draw(ids, encoded, 2.0**-grid.bits))

    def _start(self) -> hashlib.blake2b:
        return hashlib.blake2b(key=self._key, digest_size=_DIGEST_BYTES, person=_PERSON)

    def __repr__(self) -> str:
        return "ScoreNoise(<hidden>)"


def _little(values: IntArray | FloatArray) -> bytes:
    """The values as little-endian 64-bit integers, or reals; a zero has no sign."""
    real = values.dtype.kind == "f"
    return (values + 0.0).astype("<f8").tobytes() if real else values.astype("<i8").tobytes()
