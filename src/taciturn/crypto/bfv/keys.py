"""``bfv``: the default scheme. Exact integer products under ring learning with errors.

Bob encrypts with his secret key, so that half of a ciphertext is a seed. Alice multiplies by
plaintext polynomials (no rotations, no relinearisation), adds an encryption of her masks under
Bob's public key and a flood of noise, switches the dropped prime away, and sends the second
polynomial whole, but of the first only the coefficients that hold entries. What Bob does not get he
cannot decrypt: no other coefficient needs a mask.

Between what Bob receives and what he sends he does the same work for all values: messages are put
on their grid by array arithmetic without branches (``modular``), and he adds a uniform number to
each entry before he decrypts it, so that no integer that he reads depends on a label.

What does not depend on the peer's next message is made ahead by ``prepare`` and ``stock``:
encryptions of zero and of masks, and the matrix as polynomials in NTT form.

On the wire coefficients take 8 bytes modulo a 60-bit prime, 5 modulo the 40-bit one and 3 modulo
the special one. Lengths are checked by us, ranges by SEAL; nothing else
about a ciphertext can fail visibly.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import tenseal.sealapi as sealapi

from taciturn.arrays import ByteArray, FloatArray, IntArray, WordArray
from taciturn.crypto.base import (
    Capacity,
    EncryptedAnswer,
    EncryptedVector,
    Mask,
    PreparedMatrix,
    wrapping,
)
from taciturn.crypto.bfv.layout import Layout
from taciturn.crypto.bfv.modular import Flood, Grid, lowered
from taciturn.crypto.bfv.parameters import DEGREE, SECURITY_BITS, flood_half, require_fit
from taciturn.crypto.bfv.seal import SEED_BYTES, Seal
from taciturn.errors import CryptoError
from taciturn.rng import Entropy, KeyedEntropy


def _width(prime: int) -> int:
    return (prime.bit_length() + 7) // 8


def _bytes_of(values: WordArray) -> ByteArray:
    """Words as rows of eight bytes, the lowest first."""
    return np.ascontiguousarray(values, dtype="<u8").view(np.uint8).reshape(-1, 8)


def _trimmed(values: WordArray, prime: int) -> bytes:
    """The low bytes of each word: as many as its prime has."""
    return _bytes_of(values)[:, : _width(prime)].tobytes()


def _widened(data: memoryview, prime: int) -> WordArray:
    """The words of trimmed bytes."""
    width = _width(prime)
    if width == 8:
        return np.frombuffer(data, "<u8").astype(np.uint64, copy=False)
    whole = np.zeros((len(data) // width, 8), dtype=np.uint8)
    whole[:, :width] = np.frombuffer(data, np.uint8).reshape(-1, width)
    return whole.view("<u8").reshape(-1)


class _Parts:
    """Takes bytes apart from the front."""

    def __init__(self, data: bytes) -> None:
        self._rest = memoryview(data)

    def words(self, count: int, prime: int) -> WordArray:
        return _widened(self.bytes(count * _width(prime)), prime)

    def bytes(self, size: int) -> memoryview:
        part, self._rest = self._rest[:size], self._rest[size:]
        return part


def _exactly(data: bytes, size: int, kind: str) -> _Parts:
    if len(data) != size:
        raise CryptoError(f"{kind} of {len(data)} bytes where {size} were expected")
    return _Parts(data)


class BfvPublicKey:
    """What Alice needs to answer.

    **Guarantee.** Whoever has this key alone learns nothing from encrypted vectors (IND-CPA). Bob
    learns from an answer the masked products, and of the matrix no more than
    ``parameters.leak_bits`` states, as a statistical distance.

    **Assumes.** Ring learning with errors at the standard's 128-bit parameters, for both. For the
    second also a key and a vector made as prescribed, within capacity. Of a vector that was not
    masked entries still tell nothing (``parameters.cover_bits``), if the key was, its uniform half
    above all: ``docs/encryption.md``. How long she takes is not hidden.
    """

    def __init__(self, seal: Seal, capacity: Capacity, polynomials: WordArray) -> None:
        self.capacity = capacity
        self.modulus = seal.plain_modulus
        self._seal = seal
        self._polynomials = polynomials
        self._encryptor = sealapi.Encryptor(seal.context, seal.load_public(polynomials))
        self._grid = Grid(seal.primes[:-1], seal.plain_modulus)
        self._flood = Flood(seal.primes[:-1], flood_half(seal.primes[:-1], seal.plain_modulus))
        self._covers: tuple[Mask, Layout, list[Any]] | None = None

    def to_bytes(self) -> bytes:
        """Two polynomials modulo all primes."""
        return b"".join(
            _trimmed(part, prime)
            for polynomial in self._polynomials
            for part, prime in zip(polynomial, self._seal.primes, strict=True)
        )

    def draw_mask(self, length: int, entropy: Entropy) -> Mask:
        """Masks uniform modulo the plaintext modulus."""
        if length < 1:
            raise CryptoError(f"masks for {length} entries")
        return Mask(tuple(entropy.below(self.modulus) for _ in range(length)))

    def mask_of(self, values: IntArray, entropy: Entropy) -> Mask:
        """The values modulo the plaintext modulus."""
        return Mask(tuple(value % self.modulus for value in values.tolist()))

    def prepare(self, matrix: IntArray | FloatArray) -> PreparedMatrix:
        """The matrix as polynomials in NTT form, by answer and piece; None where all is zero.

        Raises:
            CryptoError: The matrix does not fit the capacity, or is so large that its answer would
                tell more of it than ``LEAST_LEAK_BITS`` allows.
        """
        self.capacity.check_matrix(matrix)
        layout, whole = Layout.of(*matrix.shape), matrix.astype(np.int64, copy=False)
        self._seal.parameters.check_leak(self.capacity, layout.rows, layout.pieces)
        polynomials = [
            [self._polynomial(layout, whole[rows, terms]) for terms in layout.slices()]
            for rows in layout.groups()
        ]
        return PreparedMatrix.of(matrix, polynomials)

    def _polynomial(self, layout: Layout, block: IntArray) -> Any:  # noqa: ANN401
        coefficients = layout.polynomial(block)
        if not coefficients.any():
            # SEAL refuses the product with a zero polynomial; the sum does without it.
            return None
        reduced = np.where(coefficients < 0, coefficients + self.modulus, coefficients)
        plain = self._seal.load_plain(reduced.astype(np.uint64))
        self._seal.evaluator.transform_to_ntt_inplace(plain, self._seal.first_id)
        return plain

    def stock(self, prepared: PreparedMatrix, mask: Mask, entropy: Entropy) -> None:
        """Encryptions of the masks for the next answer. SEAL draws their randomness itself."""
        self._check_mask(mask, prepared.rows)
        layout = Layout.of(prepared.rows, prepared.length)
        self._covers = mask, layout, self._cover_all(mask, layout, entropy)

    def _taken(self, mask: Mask, layout: Layout) -> list[Any] | None:
        """What was made ahead for these masks in this layout; it is used once."""
        stocked, self._covers = self._covers, None
        # Covers contain their masks: those of another answer would not come off again.
        if stocked is None or stocked[0] is not mask or stocked[1] != layout:
            return None
        return stocked[2]

    def _check_mask(self, mask: Mask, rows: int) -> None:
        if len(mask.values) != rows:
            raise CryptoError(f"{len(mask.values)} masks for {rows} entries")
        if rows and not (min(mask.values) >= 0 and max(mask.values) < self.modulus):
            raise CryptoError("a mask is not of this key's range")

    def _cover_all(self, mask: Mask, layout: Layout, entropy: Entropy) -> list[Any]:
        coins = entropy.fork("flood")
        return [
            self._cover(mask.values[rows], layout, coins.fork(str(rows.start)))
            for rows in layout.groups()
        ]

    def _cover(self, masks: tuple[int, ...], layout: Layout, entropy: Entropy) -> Any:  # noqa: ANN401
        """A fresh encryption of the masks of one answer, modulo all of q' P, and the flood.

        Both must be in before the switch: added after it, the rounding of the masks to the coarse
        grid of q'/t would stand beside the noise, and tell Bob a little about each mask.
        """
        primes, places = self._seal.primes[:-1], layout.places(len(masks))
        points = self._grid(np.array(masks, dtype=np.uint64).view(np.int64))
        floods = self._flood(len(masks), entropy)
        shifts = np.zeros((2, len(primes), DEGREE), dtype=np.uint64)
        for at, prime in enumerate(primes):
            shifts[0, at, places] = lowered(points[at] + floods[at], np.uint64(prime))
        cover = sealapi.Ciphertext()
        self._encryptor.encrypt_zero(cover)
        shift = self._seal.load_cipher(shifts, self._seal.first_id)
        try:
            self._seal.evaluator.add_inplace(cover, shift)
        except RuntimeError as problem:
            # SEAL's "transparent": the second polynomial is zero, and would hide no product.
            raise CryptoError("the peer's public key has no uniform half") from problem
        return cover

    def masked_product(
        self, prepared: PreparedMatrix, vector: EncryptedVector, mask: Mask, entropy: Entropy
    ) -> EncryptedAnswer:
        """``matrix @ vector + mask``, re-randomised and switched to the kept primes.

        Raises:
            CryptoError: The vector's bytes are not of this key's form, or sizes do not fit.
        """
        prepared.check(vector, mask)
        self._check_mask(mask, prepared.rows)
        layout = Layout.of(prepared.rows, prepared.length)
        pieces = self._pieces(vector, layout)
        # Once the vector is read: a refusal does not use up what was made ahead.
        covers = self._taken(mask, layout) or self._cover_all(mask, layout, entropy)
        parts = [
            self._answer(polynomials, pieces, cover, layout.places(rows.stop - rows.start))
            for polynomials, cover, rows in zip(
                prepared.content, covers, layout.groups(), strict=True
            )
        ]
        return EncryptedAnswer(b"".join(parts), layout.rows)

    def _pieces(self, vector: EncryptedVector, layout: Layout) -> list[Any]:
        primes = self._seal.primes[:-1]
        size = DEGREE * sum(_width(prime) for prime in primes) + SEED_BYTES
        parts = _exactly(vector.data, layout.pieces * size, "an encrypted vector")
        pieces = []
        for _ in range(layout.pieces):
            first = np.empty((len(primes), DEGREE), dtype=np.uint64)
            for at, prime in enumerate(primes):
                first[at] = parts.words(DEGREE, prime)
            piece = self._seal.load_seeded(first, bytes(parts.bytes(SEED_BYTES)))
            self._seal.evaluator.transform_to_ntt_inplace(piece)
            pieces.append(piece)
        return pieces

    def _answer(
        self,
        polynomials: list[Any],
        pieces: list[Any],
        cover: Any,  # noqa: ANN401
        places: IntArray,
    ) -> bytes:
        seal = self._seal
        product = self._sum_of_products(polynomials, pieces)
        # For rows of zeros the cover alone is the answer.
        if product is not None:
            seal.evaluator.add_inplace(cover, product)
        seal.evaluator.mod_switch_to_inplace(cover, seal.kept_id)
        primes = seal.primes[: len(seal.parameters.kept)]
        first, second = seal.polynomials(cover, len(primes))
        return b"".join(
            _trimmed(first[at, places], prime) + _trimmed(second[at], prime)
            for at, prime in enumerate(primes)
        )

    def _sum_of_products(self, polynomials: list[Any], pieces: list[Any]) -> Any:  # noqa: ANN401
        evaluator, total = self._seal.evaluator, None
        for polynomial, piece in zip(polynomials, pieces, strict=True):
            if polynomial is None:
                continue
            product = sealapi.Ciphertext()
            try:
                evaluator.multiply_plain(piece, polynomial, product)
            except ValueError as problem:
                raise CryptoError("the matrix was prepared for another key") from problem
            if total is None:
                total = product
            else:
                evaluator.add_inplace(total, product)
        if total is not None:
            evaluator.transform_from_ntt_inplace(total)
        return total

    def unmask(self, masked: tuple[int, ...], mask: Mask) -> IntArray:
        """The exact signed product.

        Raises:
            CryptoError: An entry lies outside [0, modulus).
        """
        if len(masked) != len(mask.values):
            raise CryptoError(f"{len(mask.values)} masks for {len(masked)} entries")
        if not all(0 <= entry < self.modulus for entry in masked):
            raise CryptoError("a masked product lies outside the plaintext modulus")
        half = self.modulus // 2
        # The modulus is 2^(bits+1) + 1: every value modulo it is a product within capacity.
        return np.array(
            [
                (entry - value + half) % self.modulus - half
                for entry, value in zip(masked, mask.values, strict=True)
            ],
            dtype=np.int64,
        )


@dataclass(frozen=True, slots=True)
class _Zero:
    """An encryption of zero that waits for its message; used once."""

    first: WordArray
    parts: list[ByteArray]
    seed: bytes


class BfvSecretKey:
    """The owner's key. Its ``repr`` shows nothing.

    **Guarantee.** ``decrypt`` gives the masked products exactly, except with a probability per
    entry below 2^-100 (``BfvParameters.failure_bits``, checked when a key is made), and never
    raises on a well-formed answer.

    **Assumes.** The answer was made as prescribed.
    """

    def __init__(self, seal: Seal, capacity: Capacity, kept: WordArray | None = None) -> None:
        generator = (
            sealapi.KeyGenerator(seal.context)
            if kept is None
            else sealapi.KeyGenerator(seal.context, seal.load_secret(kept))
        )
        secret, public = generator.secret_key(), sealapi.PublicKey()
        generator.create_public_key(public)
        self._seal = seal
        self._secret = secret
        self._encryptor = sealapi.Encryptor(seal.context, secret)
        self._decryptor = sealapi.Decryptor(seal.context, secret)
        self._grid = Grid(seal.primes[:-1], seal.plain_modulus)
        self._blinds = Grid(seal.primes[: len(seal.parameters.kept)], seal.plain_modulus)
        self._zeros: deque[_Zero] = deque()
        # For blinds; like SEAL's own draws they change no result.
        self._coins = KeyedEntropy.from_system()
        self.public = BfvPublicKey(seal, capacity, seal.public_polynomials(public))

    def to_bytes(self) -> bytes:
        """The secret polynomial modulo all primes; the public half is made anew from it."""
        words = self._seal.secret_words(self._secret).reshape(-1, DEGREE)
        return b"".join(
            _trimmed(part, prime) for part, prime in zip(words, self._seal.primes, strict=True)
        )

    def stock(self, rows: int, length: int, entropy: Entropy) -> None:
        """Encryptions of zero for the vectors to come. SEAL draws them itself."""
        while len(self._zeros) < Layout.of(rows, length).pieces:
            self._zeros.append(self._zero())

    def _zero(self) -> _Zero:
        """A fresh encryption of zero, as it goes to the wire but for the message."""
        first, seed = self._seal.seeded(self._encryptor.encrypt_zero_symmetric())
        primes = self._seal.primes[:-1]
        parts = [
            _bytes_of(part)[:, : _width(prime)].copy()
            for part, prime in zip(first, primes, strict=True)
        ]
        return _Zero(first, parts, seed)

    def encrypt(self, vector: IntArray, rows: int, entropy: Entropy) -> EncryptedVector:
        """A fresh encryption of zero for each piece, plus the piece on the grid of q/t.

        Raises:
            CryptoError: The vector does not fit the capacity.
        """
        self.public.capacity.check_vector(vector)
        layout = Layout.of(rows, len(vector))
        return EncryptedVector(
            b"".join(self._encrypt(vector[terms]) for terms in layout.slices()), len(vector)
        )

    def _encrypt(self, piece: IntArray) -> bytes:
        zero = self._zeros.popleft() if self._zeros else self._zero()
        shifts = self._grid(piece)
        for at, prime in enumerate(self._seal.primes[:-1]):
            # Only the coefficients that carry the message change.
            words = lowered(zero.first[at, : len(piece)] + shifts[at], np.uint64(prime))
            zero.parts[at][: len(piece)] = _bytes_of(words)[:, : _width(prime)]
        return b"".join([*(part.data for part in zero.parts), zero.seed])

    def decrypt(self, answer: EncryptedAnswer, length: int) -> tuple[int, ...]:
        """The masked products modulo the plaintext modulus.

        Raises:
            CryptoError: The answer's bytes are not of this key's form.
        """
        layout, parts = self._checked(answer, length)
        entries = self._entries(layout, parts, np.zeros(answer.length, dtype=np.int64))
        return tuple(entries.tolist())

    def decrypt_shares(self, answer: EncryptedAnswer, length: int) -> IntArray:
        """The products modulo ``2^modulus_bits``; the same work for all values.

        A number uniform modulo t is added to each entry before it is decrypted and taken off
        afterwards, and the coefficients that hold no entry are uniform too: SEAL decrypts, and
        compresses on its way out, numbers that are uniform whatever Alice sent.

        Raises:
            CryptoError: The answer's bytes are not of this key's form, or it wraps at no power of
                two.
        """
        ring = wrapping(self.public.capacity)
        layout, parts = self._checked(answer, length)
        blinds = ring.draw(answer.length, self._coins)
        return ring.centred(self._entries(layout, parts, blinds).view(np.int64) - blinds)

    def _checked(self, answer: EncryptedAnswer, length: int) -> tuple[Layout, _Parts]:
        if answer.length < 1 or length < 1:
            raise CryptoError(f"an answer of {answer.length} entries to a vector of {length}")
        layout = Layout.of(answer.length, length)
        width = sum(_width(prime) for prime in self._blinds.primes)
        size = width * (layout.answers * DEGREE + answer.length)
        return layout, _exactly(answer.data, size, "an answer")

    def _entries(self, layout: Layout, parts: _Parts, blinds: IntArray) -> WordArray:
        """The entries plus ``blinds``, modulo the plaintext modulus."""
        values = np.empty(len(blinds), dtype=np.uint64)
        for rows in layout.groups():
            places = layout.places(rows.stop - rows.start)
            values[rows] = self._decrypt(parts, places, self._blinds(blinds[rows]))
        return values

    def _decrypt(self, parts: _Parts, places: IntArray, shifts: WordArray) -> WordArray:
        primes = self._blinds.primes
        polynomials = np.empty((2, len(primes), DEGREE), dtype=np.uint64)
        noise = self._coins.words(len(primes) * DEGREE).reshape(len(primes), DEGREE)
        for at, prime in enumerate(primes):
            # Below a power of two that is at most twice the prime, as ``lowered`` needs it.
            beyond = noise[at] >> np.uint64(64 - prime.bit_length())
            polynomials[0, at] = lowered(beyond, np.uint64(prime))
            words = parts.words(len(places), prime)
            # A peer's number beyond its prime stays beyond it, for SEAL to refuse.
            summed = lowered(words + shifts[at], np.uint64(prime))
            polynomials[0, at, places] = np.where(words < np.uint64(prime), summed, words)
            polynomials[1, at] = parts.words(DEGREE, prime)
        plain = sealapi.Plaintext()
        self._decryptor.decrypt(self._seal.load_cipher(polynomials, self._seal.kept_id), plain)
        return self._seal.coefficients(plain)[places]

    def __repr__(self) -> str:
        return "BfvSecretKey(<hidden>)"


@dataclass(frozen=True, slots=True)
class BfvScheme:
    """BFV with keys of 128-bit security.

    >>> BfvScheme().key_bits
    (128,)
    """

    name: ClassVar[str] = "bfv"
    protects: ClassVar[bool] = True
    key_bits: ClassVar[tuple[int, ...]] = (SECURITY_BITS,)

    def effort(self, rows: int, length: int) -> int:
        """The ciphertexts in both directions: each takes about the same time."""
        layout = Layout.of(rows, length)
        return layout.pieces + layout.answers

    def generate(self, bits: int, capacity: Capacity, entropy: Entropy) -> BfvSecretKey:
        """A fresh key pair; SEAL draws it from the operating system.

        Raises:
            CryptoError: The security level is not offered, or the capacity fits no parameter set.
        """
        return BfvSecretKey(self._seal(bits, capacity), capacity)

    def read_public(self, data: bytes, bits: int, capacity: Capacity) -> BfvPublicKey:
        """A public key received from the peer, checked.

        Raises:
            CryptoError: The bytes are not a public key of these parameters.
        """
        seal = self._seal(bits, capacity)
        size = 2 * DEGREE * sum(_width(prime) for prime in seal.primes)
        parts = _exactly(data, size, "a public key")
        polynomials = np.stack(
            [np.stack([parts.words(DEGREE, prime) for prime in seal.primes]) for _ in range(2)]
        )
        return BfvPublicKey(seal, capacity, polynomials)

    def read_secret(self, data: bytes, bits: int, capacity: Capacity) -> BfvSecretKey:
        """A secret key that its owner kept.

        Raises:
            CryptoError: The bytes are not a secret key of these parameters.
        """
        seal = self._seal(bits, capacity)
        parts = _exactly(data, DEGREE * sum(map(_width, seal.primes)), "a secret key")
        words = np.concatenate([parts.words(DEGREE, prime) for prime in seal.primes])
        return BfvSecretKey(seal, capacity, words)

    def _seal(self, bits: int, capacity: Capacity) -> Seal:
        if bits not in self.key_bits:
            raise CryptoError(
                f"{bits}-bit keys are not offered", hint="bfv has 128: its security level"
            )
        parameters = require_fit(capacity)
        return Seal(parameters, parameters.plain_modulus(capacity))
