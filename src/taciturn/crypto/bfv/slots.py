"""Slot-wise products: up to N numbers in a ciphertext, one per slot.

Modulo a prime t that is 1 modulo 2n a polynomial is the n numbers that it takes at the roots of
``y^n + 1``, and a product of polynomials is the products of these (SEAL's ``BatchEncoder``). n is
the smallest power of two that holds the numbers, and y is ``x^(N/n)``: a polynomial in y has every
``N/n``-th coefficient alone, and so has its product with another. The first half of a ciphertext
need therefore hold no other coefficient: what is multiplied with a polynomial in y, in these
places, depends on these places alone. The second half is whole, as ever.

The owner encrypts with its secret key, as in ``keys``; the other multiplies by polynomials of its
own numbers, sums the products of several ciphertexts, adds an encryption of its masks and a flood
on *every* coefficient that is sent, and switches the dropped primes away. ``parameters`` has the
bounds on failures and on what an answer tells.

**Narrow slots** are modulo a small prime t, with a modulus q of half the size. Vectors have all N
slots, and travel as values at the roots: with ``w = t e + d``, e a fresh error and d the message's
``-q m mod t`` or that plus t, the first polynomial is ``w / t - a s``, that is ``e`` plus ``q m /
t`` rounded at random; a is what a fresh seed expands to. Masks and flood of the other side are
uniform modulo q together, and nothing is switched away.

**Guarantee.** As in ``keys``: exact but for a probability below 2^-100; of a table no more than
``parameters.slot_leak_bits`` is told. Narrow: nothing is told, whatever key and vector the owner
made, and a training's answers are exact but for ``parameters.narrow_right_bits``.

**Assumes.** As in ``keys``. Both sides do the same work for all numbers: what SEAL encodes, decodes
and compresses are numbers that a uniform one was added to, or t times a fresh error (``w``).

Both parties' operations on an answer: Alice makes it, Bob decrypts it.

An answer is a sum of products plus a *cover*: a fresh encryption of zero under Bob's public key,
the masks on the grid of q/t, and the flood. With u ternary and e, e' centred binomial the
encryption of zero is ``(p_0 u + e, p_1 u + e')``: u goes to the products while they are in NTT
form, so that both leave it together, and e and e' are added to masks and flood. All must be in
before the dropped prime is switched away: added after it, the rounding of the masks to the coarse
grid of q'/t would be added to the noise, and tell Bob a little about each mask. Of an answer's
first polynomial only the coefficients that hold entries are written. Where both sides round
(``parameters.rounds``) the masks are uniform modulo the kept prime, and there is no flood.

Bob does the same work for all entries. He adds a number uniform modulo t to each entry before it is
decrypted (``shifts``; the caller subtracts it), and the coefficients that hold no entry are uniform
too: SEAL decrypts, and compresses on its way out, numbers that are uniform whatever the peer sent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np
import tenseal.sealapi as sealapi

from taciturn.arrays import IntArray, WordArray
from taciturn.crypto.base import MOST_MODULUS_BITS, EncryptedAnswer, EncryptedVector, check_slots
from taciturn.crypto.bfv.modular import Flood, Grid, Multiplier, Multipliers, lowered, reduced
from taciturn.crypto.bfv.parameters import (
    DEGREE,
    NARROW,
    SECURITY_BITS,
    SLOT_MODULUS,
    SLOTS,
    BfvParameters,
    flood_half,
    narrow_modulus,
    slot_leak_bits,
)
from taciturn.crypto.bfv.seal import (
    SEED_BYTES,
    ByteReader,
    Plaintexts,
    Seal,
    bytes_of,
    exactly,
    trimmed,
    width,
    widths,
)
from taciturn.crypto.bfv.seeds import (
    KeySeeds,
    PublicHalf,
    centred_binomial,
    expanded,
    ternary,
)
from taciturn.crypto.bfv.transform import transform_of
from taciturn.errors import CryptoError
from taciturn.rng import KEY_BYTES, Entropy, KeyedEntropy

Places: TypeAlias = slice | IntArray
"""Coefficients, as NumPy takes them."""


@dataclass(frozen=True, slots=True)
class Cover:
    """Encryption of zero, masks and flood that hide one answer; used once.

    ``zero`` is ``(p_0 u, p_1 u)`` in NTT form; ``shift`` has errors, masks and flood as
    coefficients.
    """

    zero: Any = field(repr=False)
    shift: Any = field(repr=False)


class ServerOps:
    """Alice's operations, with Bob's public key.

    ``polynomials`` are both halves of the key at the roots, modulo the primes of a ciphertext;
    factors of ciphertexts are at most 2^factor_bits in size.
    """

    def __init__(
        self, seal: Seal, polynomials: WordArray, factor_bits: int = MOST_MODULUS_BITS
    ) -> None:
        plain_modulus, seal = seal.plain_modulus, seal.for_factors(factor_bits)
        self.seal = seal
        self.use_key(polynomials)
        # For encryptions of zero; like SEAL's own draws they change no result, and two answers
        # never share one, whatever entropy a caller hands in.
        self._entropy = KeyedEntropy.from_system()
        self._primes = seal.primes[:-1]
        self._kept = seal.primes[: len(seal.parameters.kept)]
        self._grid = Grid(self._primes, plain_modulus)
        self._flood: Flood | None = None
        if not seal.parameters.rounds:
            half = flood_half(self._primes, plain_modulus, len(seal.parameters.dropped))
            self._flood = Flood(self._primes, half)

    def use_key(self, polynomials: WordArray) -> None:
        """Encrypt under another key of the same ring from now on."""
        self._key = self.seal.load_cipher(polynomials, self.seal.first_id, ntt=True)

    @property
    def piece_bytes(self) -> int:
        """Bytes of a vector's ciphertext: its first polynomial and the seed of the other."""
        return self.seal.degree * widths(self._primes) + SEED_BYTES

    @property
    def plain_bytes(self) -> int:
        """Bytes of a plaintext in NTT form, in memory."""
        return 8 * self.seal.degree * len(self._primes)

    def pieces(self, parts: ByteReader, count: int) -> Iterator[Any]:
        """Read the ciphertexts of a vector, in NTT form."""
        for _ in range(count):
            first = np.empty((len(self._primes), self.seal.degree), dtype=np.uint64)
            for at, prime in enumerate(self._primes):
                first[at] = parts.words(self.seal.degree, prime)
            piece = self.seal.load_seeded(first, bytes(parts.bytes(SEED_BYTES)))
            self.seal.evaluator.transform_to_ntt_inplace(piece)
            yield piece

    def cover(self, values: IntArray, places: Places, entropy: Entropy) -> Cover:
        """A fresh encryption of one answer's masks, modulo all of q' P, and the flood.

        ``values`` are masks at the coefficients ``places``, modulo t or the kept prime
        (``parameters.rounds``); ``entropy`` serves this answer alone.
        """
        hidden, degree = self._hidden(values, entropy), self.seal.degree
        first, second = (centred_binomial(self._entropy, degree) for _ in range(2))
        shifts = np.zeros((2, len(self._primes), degree), dtype=np.uint64)
        for at, prime in enumerate(self._primes):
            modulus = np.uint64(prime)
            # Of the first polynomial no other coefficient is sent.
            shifts[0, at, places] = lowered(hidden[at] + reduced(first[places], prime), modulus)
            shifts[1, at] = reduced(second, prime)
        return Cover(self._zero(), self.seal.load_cipher(shifts, self.seal.first_id))

    def _hidden(self, masks: IntArray, entropy: Entropy) -> WordArray:
        """What hides the entries of an answer: primes by entries."""
        if self._flood is None:
            # A multiple of P: the switch divides by it, and leaves the mask exactly as it is.
            hidden = np.zeros((len(self._primes), len(masks)), dtype=np.uint64)
            kept, *dropped = self._primes
            hidden[0] = Multiplier(math.prod(dropped) % kept, kept)(masks.view(np.uint64))
            return hidden
        hidden, floods = self._grid(masks), self._flood(len(masks), entropy)
        for at, prime in enumerate(self._primes):
            hidden[at] = lowered(hidden[at] + floods[at], np.uint64(prime))
        return hidden

    def _zero(self) -> Any:  # noqa: ANN401
        secret = ternary(self._entropy, self.seal.degree)
        plain = self.seal.load_plain(reduced(secret, self.seal.plain_modulus))
        self.seal.evaluator.transform_to_ntt_inplace(plain, self.seal.first_id)
        zero = sealapi.Ciphertext()
        self.seal.evaluator.multiply_plain(self._key, plain, zero)
        return zero

    def covered(self, product: Any, cover: Cover) -> Any:  # noqa: ANN401
        """Add the cover to a sum of products in NTT form (None for no product); as coefficients."""
        evaluator, answer = self.seal.evaluator, cover.zero
        if product is not None:
            evaluator.add_inplace(answer, product)
        evaluator.transform_from_ntt_inplace(answer)
        evaluator.add_inplace(answer, cover.shift)
        return answer

    def written(self, answer: Any, places: Places) -> bytes:  # noqa: ANN401
        """Switch an answer to the kept primes and write c1 whole, but of c0 only ``places``."""
        self.seal.evaluator.mod_switch_to_inplace(answer, self.seal.kept_id)
        first, second = self.seal.polynomials(answer, len(self._kept))
        return b"".join(
            trimmed(first[at, places], prime) + trimmed(second[at], prime)
            for at, prime in enumerate(self._kept)
        )

    def saved(self, cipher: Any) -> bytes:  # noqa: ANN401
        """Serialise a ciphertext modulo all of q' P for another process of Alice's."""
        return self.seal.polynomials(cipher, len(self._primes)).tobytes()

    def loaded(self, data: bytes | memoryview, *, ntt: bool) -> Any:  # noqa: ANN401
        """Load a ciphertext that ``saved`` wrote."""
        words = np.frombuffer(data, np.uint64).reshape(2, len(self._primes), -1)
        return self.seal.load_cipher(words, self.seal.first_id, ntt=ntt)


class ClientOps:
    """Bob's operations with his secret key; ``entropy`` fills coefficients that hold no entry."""

    def __init__(self, seal: Seal, secret: Any, entropy: KeyedEntropy) -> None:  # noqa: ANN401
        self._seal, self._entropy = seal, entropy
        self._primes = seal.primes[: len(seal.parameters.kept)]
        self._decryptor = sealapi.Decryptor(seal.context, secret)

    def entries(self, parts: ByteReader, places: Places, shifts: WordArray) -> WordArray:
        """Decrypt the entries of the next answer, shifted, modulo t.

        ``places`` are the coefficients of the first polynomial that were sent. ``shifts`` are added
        to them on the grid of q'/t: primes by entries.
        """
        primes, degree = self._primes, self._seal.degree
        polynomials = np.empty((2, len(primes), degree), dtype=np.uint64)
        noise = self._entropy.words(len(primes) * degree).reshape(len(primes), degree)
        for at, prime in enumerate(primes):
            # Below a power of two that is at most twice the prime, as ``lowered`` needs it.
            beyond = noise[at] >> np.uint64(64 - prime.bit_length())
            polynomials[0, at] = lowered(beyond, np.uint64(prime))
            words = parts.words(shifts.shape[1], prime)
            # A peer's number beyond its prime stays beyond it, for SEAL to refuse.
            summed = lowered(words + shifts[at], np.uint64(prime))
            polynomials[0, at, places] = np.where(words < np.uint64(prime), summed, words)
            polynomials[1, at] = parts.words(degree, prime)
        plain = sealapi.Plaintext()
        self._decryptor.decrypt(self._seal.load_cipher(polynomials, self._seal.kept_id), plain)
        return self._seal.coefficients(plain)[places]


LEAST_SLOTS = 64
_ALL = slice(None)
# Enough for t times an error, and below all primes.
_WHOLE_BITS = 38
_T = np.uint64(SLOT_MODULUS)


def slots_for(count: int) -> int:
    """Number of slots for ``count`` numbers: a power of two, at least ``LEAST_SLOTS``.

    >>> slots_for(896), slots_for(1025), slots_for(1)
    (1024, 2048, 64)
    """
    return max(LEAST_SLOTS, 1 << (count - 1).bit_length())


class SlotEncoder:
    """Converter of numbers in n slots, a power of two, to polynomials in y; holds no secret."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.places = slice(0, DEGREE, DEGREE // slots)
        self._seal = Plaintexts.for_encoding(slots, SLOT_MODULUS)
        self._encoder = sealapi.BatchEncoder(self._seal.context)

    def plaintext(self, values: WordArray) -> Any:  # noqa: ANN401 - SEAL has no types
        """The polynomial in y of n numbers below t, for SEAL."""
        plain = sealapi.Plaintext()
        self._encoder.encode(values.tolist(), plain)
        return plain

    def polynomial(self, values: WordArray) -> WordArray:
        """Coefficients in y of n numbers below t."""
        return self._seal.coefficients(self.plaintext(values))

    def numbers(self, coefficients: WordArray) -> WordArray:
        """Numbers of coefficients in y."""
        plain = self._seal.load_plain(coefficients)
        return np.array(self._encoder.decode_uint64(plain), dtype=np.uint64)

    def filled(self, values: WordArray) -> WordArray:
        """The numbers, padded with zeros to all slots."""
        whole = np.zeros(self.slots, dtype=np.uint64)
        whole[: len(values)] = values
        return whole

    def uniform(self, entropy: Entropy) -> WordArray:
        """A uniform number for each slot, or for each coefficient."""
        return entropy.integers(SLOT_MODULUS, self.slots)


class SlotEncoders:
    """Encoders of one key: each has its own file, and parties may be threads of one process."""

    def __init__(self) -> None:
        self._made: dict[int, SlotEncoder] = {}

    def for_count(self, count: int) -> SlotEncoder:
        """The encoder for ``count`` numbers."""
        slots = slots_for(count)
        if slots not in self._made:
            self._made[slots] = SlotEncoder(slots)
        return self._made[slots]


class BfvSlotPublicKey:
    """Public key for elementwise products; see the module's guarantee."""

    def __init__(self, seal: Seal, half: PublicHalf) -> None:
        self.modulus = seal.plain_modulus
        self._seal = seal
        self._half = half
        self._server_ops = ServerOps(seal, half.polynomials(seal))
        self._encoders = SlotEncoders()

    def to_bytes(self) -> bytes:
        """One polynomial and the seed of the other."""
        return self._half.to_bytes(self._seal)

    def sum_of(self, length: int) -> BfvSlotSum:
        """An empty sum."""
        if not 1 <= length <= DEGREE:
            raise CryptoError(f"sums of {length} numbers where 1 to {DEGREE} fit")
        return BfvSlotSum(self._seal, self._server_ops, self._encoders.for_count(length), length)


class BfvSlotSum:
    """A running sum of products under one public key: re-randomised, masked and flooded once."""

    def __init__(
        self, seal: Seal, server_ops: ServerOps, encoder: SlotEncoder, length: int
    ) -> None:
        self._seal, self._server_ops = seal, server_ops
        self._encoder, self._length = encoder, length
        self._sum: Any = None

    def add(self, table: IntArray, vector: EncryptedVector) -> None:
        """Add ``table * vector``."""
        check_slots(table, DEGREE, "a table")
        if not self._length == vector.length == len(table):
            raise CryptoError(
                f"a table of {len(table)} times a vector of {vector.length}, in a sum of "
                f"{self._length}"
            )
        piece = self._piece(vector)
        # SEAL refuses a product with nothing but zeros, which adds nothing.
        if not table.any():
            return
        product = self._times(piece, table)
        if self._sum is None:
            self._sum = product
        else:
            self._seal.evaluator.add_inplace(self._sum, product)

    def masked(self, masks: IntArray, entropy: Entropy) -> EncryptedAnswer:
        """The masked sum, switched to the kept primes."""
        if masks.shape != (self._length,):
            raise CryptoError(f"masks of shape {masks.shape} for a sum of {self._length}")
        encoder = self._encoder
        # Slots that are left get a mask as well: what is in them is nobody's business.
        whole = encoder.uniform(entropy.fork("slots"))
        whole[: len(masks)] = masks.astype(np.uint64)
        covered = encoder.polynomial(whole).view(np.int64)
        cover = self._server_ops.cover(covered, encoder.places, entropy.fork("flood"))
        answer = self._server_ops.covered(self._sum, cover)
        return EncryptedAnswer(self._server_ops.written(answer, encoder.places), self._length)

    def _piece(self, vector: EncryptedVector) -> Any:  # noqa: ANN401
        encoder, primes = self._encoder, self._seal.primes[:-1]
        size = encoder.slots * widths(primes) + SEED_BYTES
        parts = exactly(vector.data, size, "an encrypted vector")
        first = np.zeros((len(primes), DEGREE), dtype=np.uint64)
        for at, prime in enumerate(primes):
            first[at, encoder.places] = parts.words(encoder.slots, prime)
        piece = self._seal.load_seeded(first, bytes(parts.bytes(SEED_BYTES)))
        self._seal.evaluator.transform_to_ntt_inplace(piece)
        return piece

    def _times(self, piece: Any, table: IntArray) -> Any:  # noqa: ANN401
        encoder, evaluator = self._encoder, self._seal.evaluator
        numbers = encoder.filled(reduced(table, SLOT_MODULUS))
        if encoder.slots == DEGREE:
            # y is x: the polynomial need not leave SEAL.
            plain = encoder.plaintext(numbers)
        else:
            whole = np.zeros(DEGREE, dtype=np.uint64)
            whole[encoder.places] = encoder.polynomial(numbers)
            plain = self._seal.load_plain(whole)
        evaluator.transform_to_ntt_inplace(plain, self._seal.first_id)
        evaluator.multiply_plain_inplace(piece, plain)
        return piece


class BfvSlotSecretKey:
    """The owner's key. Its ``repr`` shows nothing."""

    def __init__(self, seal: Seal, seeds: KeySeeds) -> None:
        values = seeds.secret_values(seal)
        secret = seal.load_secret(values)
        self._seal, self._seeds = seal, seeds
        self._encryptor = sealapi.Encryptor(seal.context, secret)
        self._grid = Grid(seal.primes[:-1], SLOT_MODULUS)
        self._blinds = Grid(seal.primes[: len(SLOTS.kept)], SLOT_MODULUS)
        # For blinds and roundings; like SEAL's own draws they change no result.
        self._entropy = KeyedEntropy.from_system()
        self._client_ops = ClientOps(seal, secret, self._entropy)
        self._encoders = SlotEncoders()
        self.public = BfvSlotPublicKey(seal, seeds.public_half(seal, values))

    def to_bytes(self) -> bytes:
        """The seeds of both halves."""
        return self._seeds.to_bytes()

    def encrypt(self, values: IntArray, entropy: Entropy) -> EncryptedVector:
        """Encrypt: a fresh encryption of zero plus the numbers' polynomial on the grid of q/t."""
        check_slots(values, DEGREE, "a vector")
        encoder = self._encoders.for_count(len(values))
        polynomial = self._blinded(encoder, encoder.filled(reduced(values, SLOT_MODULUS)))
        points = self._grid.at_random(polynomial, encoder.uniform(self._entropy))
        first, seed = self._seal.seeded(self._encryptor.encrypt_zero_symmetric())
        parts = []
        for at, prime in enumerate(self._seal.primes[:-1]):
            words = lowered(first[at, encoder.places] + points[at], np.uint64(prime))
            parts.append(bytes_of(words)[:, : width(prime)].tobytes())
        return EncryptedVector(b"".join([*parts, seed]), len(values))

    def _blinded(self, encoder: SlotEncoder, values: WordArray) -> WordArray:
        """The polynomial of numbers, of which SEAL sees uniform ones only."""
        blinds = encoder.uniform(self._entropy)
        summed = encoder.polynomial(lowered(values + blinds, _T))
        return lowered(summed + _T - encoder.polynomial(blinds), _T)

    def decrypt(self, answer: EncryptedAnswer) -> WordArray:
        """The masked sums modulo t; the same work for all of them."""
        if not 1 <= answer.length <= DEGREE:
            raise CryptoError(f"an answer of {answer.length} entries where 1 to {DEGREE} fit")
        encoder, primes = self._encoders.for_count(answer.length), self._blinds.primes
        size = (encoder.slots + DEGREE) * widths(primes)
        parts = exactly(answer.data, size, "an answer")
        blinds = encoder.uniform(self._entropy)
        shifts = self._blinds(encoder.polynomial(blinds).view(np.int64))
        words = self._client_ops.entries(parts, encoder.places, shifts)
        return lowered(encoder.numbers(words) + _T - blinds, _T)[: answer.length]

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

    def leak_bits(self, products: int) -> float:
        """The bound of ``parameters``."""
        return slot_leak_bits(products)

    def narrow(self, answers: Sequence[int]) -> NarrowSlots:
        """The largest of the small primes of ``parameters`` that is right."""
        return NarrowSlots(narrow_modulus(answers))

    def generate(self, bits: int, entropy: Entropy, seed: bytes | None = None) -> BfvSlotSecretKey:
        """Generate a key pair."""
        return BfvSlotSecretKey(self._seal(bits), KeySeeds.draw(entropy, seed))

    def read_public(self, data: bytes, bits: int, seed: bytes | None = None) -> BfvSlotPublicKey:
        """Read a public key received from the peer and check it, its uniform half included."""
        seal = self._seal(bits)
        return BfvSlotPublicKey(seal, PublicHalf.from_bytes(data, seal, seed))

    def read_secret(self, data: bytes, bits: int) -> BfvSlotSecretKey:
        """Read the owner's stored secret key."""
        return BfvSlotSecretKey(self._seal(bits), KeySeeds.from_bytes(data))

    def _seal(self, bits: int) -> Seal:
        return _seal(SLOTS, SLOT_MODULUS, bits)


def _seal(parameters: BfvParameters, modulus: int, bits: int) -> Seal:
    if bits != SECURITY_BITS:
        raise CryptoError(
            f"{bits}-bit keys are not offered", hint="bfv has 128: its security level"
        )
    # One for each key, as it has a file of its own: parties may be threads of one process.
    return Seal(parameters, modulus)


def _narrow_bytes(primes: tuple[int, ...]) -> int:
    return DEGREE * widths(primes) + KEY_BYTES


def _check_narrow(values: IntArray, modulus: int, name: str) -> None:
    check_slots(values, DEGREE, name)
    if np.abs(values).max() > modulus // 2:
        raise CryptoError(f"{name} has a number beyond half of {modulus}")


def _filled(values: IntArray) -> IntArray:
    whole = np.zeros(DEGREE, dtype=np.int64)
    whole[: len(values)] = values
    return whole


class NarrowPublicKey:
    """Public key for elementwise products modulo a small prime."""

    def __init__(self, seal: Seal, half: PublicHalf) -> None:
        self.modulus = seal.plain_modulus
        self._seal, self._half = seal, half
        self._server_ops = ServerOps(seal, half.polynomials(seal))

    def to_bytes(self) -> bytes:
        """One polynomial and the seed of the other."""
        return self._half.to_bytes(self._seal)

    def sum_of(self, length: int) -> NarrowSum:
        """An empty sum."""
        if not 1 <= length <= DEGREE:
            raise CryptoError(f"sums of {length} numbers where 1 to {DEGREE} fit")
        return NarrowSum(self._seal, self._server_ops, length)


class NarrowSum:
    """A running sum of products, in NTT form."""

    def __init__(self, seal: Seal, server_ops: ServerOps, length: int) -> None:
        self._seal, self._server_ops, self._length = seal, server_ops, length
        self._transform = transform_of(seal.plain_modulus)
        self._sum: Any = None

    def add(self, table: IntArray, vector: EncryptedVector) -> None:
        """Add ``table * vector``."""
        _check_narrow(table, self._seal.plain_modulus, "a table")
        if not self._length == vector.length == len(table):
            raise CryptoError(
                f"a table of {len(table)} times a vector of {vector.length}, in a sum of "
                f"{self._length}"
            )
        seal, primes = self._seal, self._seal.primes[:-1]
        parts = exactly(vector.data, _narrow_bytes(primes), "an encrypted vector")
        first = [parts.words(DEGREE, prime) for prime in primes]
        both = np.stack([first, expanded(primes, bytes(parts.bytes(KEY_BYTES)))])
        piece = seal.load_cipher(both, seal.first_id, ntt=True)
        # SEAL refuses a product with nothing but zeros, which adds nothing.
        if not table.any():
            return
        plain = seal.load_plain(self._transform.polynomial(_filled(table)))
        seal.evaluator.transform_to_ntt_inplace(plain, seal.first_id)
        seal.evaluator.multiply_plain_inplace(piece, plain)
        if self._sum is None:
            self._sum = piece
        else:
            seal.evaluator.add_inplace(self._sum, piece)

    def masked(self, masks: IntArray, entropy: Entropy) -> EncryptedAnswer:
        """The masked sum."""
        if masks.shape != (self._length,):
            raise CryptoError(f"masks of shape {masks.shape} for a sum of {self._length}")
        # Slots that are left get a mask as well: what is in them is nobody's business.
        whole = entropy.fork("slots").integers(self._seal.plain_modulus, DEGREE).view(np.int64)
        whole[: len(masks)] = masks
        covered = self._transform.polynomial(whole).view(np.int64)
        cover = self._server_ops.cover(covered, _ALL, entropy.fork("flood"))
        answer = self._server_ops.covered(self._sum, cover)
        return EncryptedAnswer(self._server_ops.written(answer, _ALL), self._length)


class NarrowSecretKey:
    """The owner's key. Its ``repr`` shows nothing."""

    def __init__(self, seal: Seal, seeds: KeySeeds) -> None:
        values, modulus, primes = seeds.secret_values(seal), seal.plain_modulus, seal.primes[:-1]
        self._modulus, self._primes, self._seeds = modulus, primes, seeds
        # Errors times t are beyond t: they become polynomials as numbers modulo a power of two.
        self._seal, self._whole = seal, Seal(seal.parameters, 1 << _WHOLE_BITS)
        self._secret = [
            Multipliers(part, prime) for part, prime in zip(values, primes, strict=False)
        ]
        self._scaled = [Multiplier(pow(modulus, -1, prime), prime) for prime in primes]
        self._message = Multiplier(math.prod(primes) % modulus, modulus)
        self._blinds, self._transform = Grid(primes, modulus), transform_of(modulus)
        # For seeds, errors, blinds and roundings: they change no result.
        self._entropy = KeyedEntropy.from_system()
        self._client_ops = ClientOps(seal, seal.load_secret(values), self._entropy)
        self.public = NarrowPublicKey(seal, seeds.public_half(seal, values))

    def to_bytes(self) -> bytes:
        """The seeds of both halves."""
        return self._seeds.to_bytes()

    def encrypt(self, values: IntArray, entropy: Entropy) -> EncryptedVector:
        """Encrypt, as values at the roots."""
        _check_narrow(values, self._modulus, "a vector")
        rounded = self._at_roots(self._transform.polynomial(_filled(values)))
        seed = self._entropy.token(KEY_BYTES)
        uniform, parts = expanded(self._primes, seed), list[bytes]()
        for at, prime in enumerate(self._primes):
            taken = np.uint64(prime) - self._secret[at](uniform[at])
            words = lowered(self._scaled[at](rounded[at]) + taken, np.uint64(prime))
            parts.append(trimmed(words, prime))
        return EncryptedVector(b"".join([*parts, seed]), len(values))

    def _at_roots(self, polynomial: WordArray) -> WordArray:
        """The module's w: primes by N."""
        modulus, seal = np.uint64(self._modulus), self._whole
        offsets = self._entropy.integers(self._modulus, DEGREE)
        rest = lowered(self._message(polynomial) + offsets, modulus)
        errors = centred_binomial(self._entropy) * np.int64(self._modulus)
        whole = errors + offsets.view(np.int64) - rest.view(np.int64)
        plain = seal.load_plain(reduced(whole, seal.plain_modulus))
        seal.evaluator.transform_to_ntt_inplace(plain, seal.first_id)
        return seal.root_values(plain).reshape(len(self._primes), DEGREE)

    def decrypt(self, answer: EncryptedAnswer) -> WordArray:
        """The masked sums modulo t; the same work for all of them."""
        if not 1 <= answer.length <= DEGREE:
            raise CryptoError(f"an answer of {answer.length} entries where 1 to {DEGREE} fit")
        size, modulus = 2 * DEGREE * widths(self._primes), np.uint64(self._modulus)
        parts = exactly(answer.data, size, "an answer")
        blinds = self._entropy.integers(self._modulus, DEGREE)
        words = self._client_ops.entries(parts, _ALL, self._blinds(blinds.view(np.int64)))
        numbers = self._transform.numbers(lowered(words + modulus - blinds, modulus))
        return numbers[: answer.length]

    def __repr__(self) -> str:
        return "NarrowSecretKey(<hidden>)"


@dataclass(frozen=True, slots=True)
class NarrowSlots:
    """Slots modulo a small prime, with keys of 128-bit security.

    >>> NarrowSlots(65_537).leak_bits(42)
    inf
    """

    modulus: int

    slots: ClassVar[int] = DEGREE

    def leak_bits(self, products: int) -> float:
        """Infinite: masks are uniform modulo q."""
        return math.inf

    def narrow(self, answers: Sequence[int]) -> NarrowSlots:
        """Another prime for other answers."""
        return NarrowSlots(narrow_modulus(answers))

    def generate(self, bits: int, entropy: Entropy, seed: bytes | None = None) -> NarrowSecretKey:
        """Generate a key pair."""
        return NarrowSecretKey(self._seal(bits), KeySeeds.draw(entropy, seed))

    def read_public(self, data: bytes, bits: int, seed: bytes | None = None) -> NarrowPublicKey:
        """Read a public key received from the peer and check it, its uniform half included."""
        seal = self._seal(bits)
        return NarrowPublicKey(seal, PublicHalf.from_bytes(data, seal, seed))

    def read_secret(self, data: bytes, bits: int) -> NarrowSecretKey:
        """Read the owner's stored secret key."""
        return NarrowSecretKey(self._seal(bits), KeySeeds.from_bytes(data))

    def _seal(self, bits: int) -> Seal:
        return _seal(NARROW, self.modulus, bits)
