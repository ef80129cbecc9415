"""Products number by number: N numbers in a ciphertext, each in a slot of its own.

Modulo a prime t that is 1 modulo 2N a polynomial is the N numbers that it takes at the roots of
``x^N + 1``, and a product of polynomials is the products of these (SEAL's ``BatchEncoder``). The
owner encrypts with its secret key, as in ``keys``; the other multiplies by a polynomial of its
own numbers, adds an encryption of its masks and a flood on *every* coefficient, and switches the
dropped primes away. ``parameters`` has the bounds on failures and on what an answer tells.

**Guarantee.** As in ``keys``: exact but for a probability below 2^-100; of a table no more than
``parameters.slot_leak_bits`` is told.

**Assumes.** As in ``keys``. Both sides do the same work for all numbers: what SEAL encodes, decodes
and compresses are numbers that a uniform one was added to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import tenseal.sealapi as sealapi

from taciturn.arrays import IntArray, WordArray
from taciturn.crypto.base import EncryptedAnswer, EncryptedVector, check_slots
from taciturn.crypto.bfv.answering import Answering
from taciturn.crypto.bfv.modular import Grid, lowered, reduced
from taciturn.crypto.bfv.parameters import (
    DEGREE,
    SECURITY_BITS,
    SLOT_MODULUS,
    SLOTS,
    slot_leak_bits,
)
from taciturn.crypto.bfv.seal import Seal
from taciturn.crypto.bfv.seeds import KeySeeds, PublicHalf
from taciturn.crypto.bfv.wire import bytes_of, exactly, width, widths
from taciturn.errors import CryptoError
from taciturn.rng import Entropy, KeyedEntropy

_T = np.uint64(SLOT_MODULUS)
_ALL = slice(None)


class _Coder:
    """Numbers in slots, as polynomials and back."""

    def __init__(self, seal: Seal) -> None:
        self._seal = seal
        self._encoder = sealapi.BatchEncoder(seal.context)

    def plain(self, values: WordArray) -> Any:  # noqa: ANN401 - SEAL's objects have no types
        """The plaintext of N numbers below t."""
        plain = sealapi.Plaintext()
        self._encoder.encode(values.tolist(), plain)
        return plain

    def polynomial(self, values: WordArray) -> WordArray:
        """Its coefficients."""
        return self._seal.coefficients(self.plain(values))

    def slots(self, plain: Any) -> WordArray:  # noqa: ANN401
        """The numbers of a plaintext."""
        return np.array(self._encoder.decode_uint64(plain), dtype=np.uint64)


def _filled(values: WordArray) -> WordArray:
    """The numbers, with zeros in the slots that are left."""
    whole = np.zeros(DEGREE, dtype=np.uint64)
    whole[: len(values)] = values
    return whole


def _uniform(count: int, entropy: Entropy) -> WordArray:
    return entropy.integers(SLOT_MODULUS, count)


class BfvSlotPublicKey:
    """What multiplies; see the file's guarantee."""

    def __init__(self, seal: Seal, half: PublicHalf) -> None:
        self.modulus = seal.plain_modulus
        self._seal = seal
        self._half = half
        self._answering = Answering(seal, half.polynomials(seal.primes))
        self._coder = _Coder(seal)

    def to_bytes(self) -> bytes:
        """A polynomial modulo all primes, and the seed of the other."""
        return self._half.to_bytes(self._seal.primes)

    def product(
        self, table: IntArray, vector: EncryptedVector, masks: IntArray, entropy: Entropy
    ) -> EncryptedAnswer:
        """The masked product, re-randomised, flooded and switched to the kept primes.

        Raises:
            CryptoError: The vector's bytes are not of this key's form, or sizes do not fit.
        """
        check_slots(table, DEGREE, "a table")
        if vector.length != len(table) or masks.shape != table.shape:
            raise CryptoError(
                f"a table of {len(table)} times a vector of {vector.length}, with masks of shape "
                f"{masks.shape}"
            )
        parts = exactly(vector.data, self._answering.piece_bytes, "an encrypted vector")
        (piece,) = self._answering.pieces(parts, 1)
        # Slots that are left get a mask as well: what is in them is nobody's business.
        whole = _uniform(DEGREE, entropy.fork("slots"))
        whole[: len(masks)] = masks.astype(np.uint64)
        covered = self._coder.polynomial(whole).view(np.int64)
        cover = self._answering.cover(covered, _ALL, entropy.fork("flood"))
        # SEAL refuses a product with nothing but zeros; then the cover alone is the answer.
        if table.any():
            self._seal.evaluator.add_inplace(cover, self._times(piece, table))
        return EncryptedAnswer(self._answering.written(cover, _ALL), len(table))

    def _times(self, piece: Any, table: IntArray) -> Any:  # noqa: ANN401
        """The bare product of a ciphertext in NTT form with a table."""
        plain = self._coder.plain(_filled(reduced(table, SLOT_MODULUS)))
        evaluator = self._seal.evaluator
        evaluator.transform_to_ntt_inplace(plain, self._seal.first_id)
        evaluator.multiply_plain_inplace(piece, plain)
        evaluator.transform_from_ntt_inplace(piece)
        return piece


class BfvSlotSecretKey:
    """The owner's key. Its ``repr`` shows nothing."""

    def __init__(self, seal: Seal, seeds: KeySeeds) -> None:
        values = seeds.secret_values(seal)
        secret = seal.load_secret(values)
        self._seal, self._seeds = seal, seeds
        self._encryptor = sealapi.Encryptor(seal.context, secret)
        self._decryptor = sealapi.Decryptor(seal.context, secret)
        self._coder = _Coder(seal)
        self._grid = Grid(seal.primes[:-1], SLOT_MODULUS)
        self._blinds = Grid(seal.primes[: len(SLOTS.kept)], SLOT_MODULUS)
        # For blinds and roundings; like SEAL's own draws they change no result.
        self._coins = KeyedEntropy.from_system()
        self.public = BfvSlotPublicKey(seal, seeds.public_half(seal, values))

    def to_bytes(self) -> bytes:
        """The seeds of both halves."""
        return self._seeds.to_bytes()

    def encrypt(self, values: IntArray, entropy: Entropy) -> EncryptedVector:
        """A fresh encryption of zero, plus the numbers' polynomial on the grid of q/t.

        Raises:
            CryptoError: There are too many, or one is too large.
        """
        check_slots(values, DEGREE, "a vector")
        points = self._grid.at_random(
            self._blinded(_filled(reduced(values, SLOT_MODULUS))), _uniform(DEGREE, self._coins)
        )
        first, seed = self._seal.seeded(self._encryptor.encrypt_zero_symmetric())
        parts = []
        for at, prime in enumerate(self._seal.primes[:-1]):
            words = lowered(first[at] + points[at], np.uint64(prime))
            parts.append(bytes_of(words)[:, : width(prime)].tobytes())
        return EncryptedVector(b"".join([*parts, seed]), len(values))

    def _blinded(self, values: WordArray) -> WordArray:
        """The polynomial of numbers, of which SEAL sees uniform ones only."""
        blinds = _uniform(DEGREE, self._coins)
        summed = self._coder.polynomial(lowered(values + blinds, _T))
        return lowered(summed + _T - self._coder.polynomial(blinds), _T)

    def decrypt(self, answer: EncryptedAnswer) -> WordArray:
        """The masked products modulo t; the same work for all of them.

        Raises:
            CryptoError: The answer's bytes are not of this key's form.
        """
        if not 1 <= answer.length <= DEGREE:
            raise CryptoError(f"an answer of {answer.length} entries where 1 to {DEGREE} fit")
        primes = self._blinds.primes
        parts = exactly(answer.data, 2 * DEGREE * widths(primes), "an answer")
        blinds = _uniform(DEGREE, self._coins)
        shifts = self._blinds(self._coder.polynomial(blinds).view(np.int64))
        polynomials = np.empty((2, len(primes), DEGREE), dtype=np.uint64)
        for at, prime in enumerate(primes):
            words = parts.words(DEGREE, prime)
            # A peer's number beyond its prime stays beyond it, for SEAL to refuse.
            summed = lowered(words + shifts[at], np.uint64(prime))
            polynomials[0, at] = np.where(words < np.uint64(prime), summed, words)
            polynomials[1, at] = parts.words(DEGREE, prime)
        plain = sealapi.Plaintext()
        self._decryptor.decrypt(self._seal.load_cipher(polynomials, self._seal.kept_id), plain)
        return lowered(self._coder.slots(plain) + _T - blinds, _T)[: answer.length]

    def __repr__(self) -> str:
        return "BfvSlotSecretKey(<hidden>)"


@dataclass(frozen=True, slots=True)
class BfvSlots:
    """Slots under BFV, with keys of 128-bit security.

    >>> BfvSlots().slots
    8192
    """

    slots: ClassVar[int] = DEGREE
    modulus: ClassVar[int] = SLOT_MODULUS

    def leak_bits(self, answers: int) -> float:
        """The bound of ``parameters``."""
        return slot_leak_bits(answers)

    def generate(self, bits: int, entropy: Entropy, seed: bytes | None = None) -> BfvSlotSecretKey:
        """A fresh key pair.

        Raises:
            CryptoError: The security level is not offered.
        """
        return BfvSlotSecretKey(self._seal(bits), KeySeeds.draw(entropy, seed))

    def read_public(self, data: bytes, bits: int, seed: bytes | None = None) -> BfvSlotPublicKey:
        """A public key received from the peer, checked.

        Raises:
            CryptoError: The bytes are not a public key of these parameters, or its uniform half is
                not that of the seed.
        """
        seal = self._seal(bits)
        return BfvSlotPublicKey(seal, PublicHalf.of_bytes(data, seal, seed))

    def read_secret(self, data: bytes, bits: int) -> BfvSlotSecretKey:
        """A secret key that its owner kept.

        Raises:
            CryptoError: The bytes are not a secret key of these parameters.
        """
        return BfvSlotSecretKey(self._seal(bits), KeySeeds.of_bytes(data))

    def _seal(self, bits: int) -> Seal:
        if bits != SECURITY_BITS:
            raise CryptoError(
                f"{bits}-bit keys are not offered", hint="bfv has 128: its security level"
            )
        # One for each key, as it has a file of its own: parties may be threads of one process.
        return Seal(SLOTS, SLOT_MODULUS)
