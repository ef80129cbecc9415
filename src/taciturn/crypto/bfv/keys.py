"""``bfv``: the default scheme. Exact integer products under ring learning with errors.

Bob encrypts with his secret key, so that half of a ciphertext is a seed. Alice multiplies by
plaintext polynomials (no rotations, no relinearisation), adds an encryption of her masks under
Bob's public key and a flood of noise, switches the dropped prime away, and sends the second
polynomial whole, but of the first only the coefficients that hold entries. What Bob does not get he
cannot decrypt: no other coefficient needs a mask.

Between what Bob receives and what he sends he does the same work for all values: messages are put
on their grid by array arithmetic without branches (``modular``), and he adds a uniform number to
each entry before he decrypts it, so that no integer that he reads depends on a label.

On the wire coefficients take 8 bytes modulo a 60-bit prime, 5 modulo the 40-bit one and 3 modulo
the special one. Lengths are checked by us, ranges by SEAL; nothing else
about a ciphertext can fail visibly.
"""

from __future__ import annotations

import hashlib
from collections import deque
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import tenseal.sealapi as sealapi

from taciturn.arrays import ByteArray, FloatArray, IntArray, WordArray
from taciturn.crypto.base import (
    DEFAULT_TABLE_MEMORY,
    Capacity,
    EncryptedAnswer,
    EncryptedVector,
    Mask,
    PreparedMatrix,
    TableMasks,
    TableSize,
    Wrapping,
    check_table,
    check_table_vector,
    wrapping,
)
from taciturn.crypto.bfv.layout import PART_TILES, Layout, Side, Tiling, even_shares
from taciturn.crypto.bfv.modular import Grid, lowered
from taciturn.crypto.bfv.operations import AnswerMask, ClientOps, ServerOps
from taciturn.crypto.bfv.parameters import (
    DEGREE,
    SECURITY_BITS,
    SHARED,
    BfvParameters,
    require_fit,
)
from taciturn.crypto.bfv.seal import ByteReader, Seal, bytes_of, exactly, new_seal, width, widths
from taciturn.crypto.bfv.seeds import KeySeeds, PublicHalf
from taciturn.crypto.bfv.slots import BfvSlots
from taciturn.crypto.bfv.tables import BfvTable, check_tables, ring_facts, shared_masks
from taciturn.crypto.bfv.workers import (
    Engine,
    Frame,
    Job,
    LocalEngine,
    Reply,
    WorkerPool,
    written,
)
from taciturn.errors import CryptoError
from taciturn.rng import Entropy, KeyedEntropy

LOCAL = LocalEngine()
LEAST_SHARED_PIECES = 64
"""Ciphertexts of a vector or an answer; below, starting a worker costs about what it saves."""


class BfvPublicKey:
    """BFV public key, with which Alice answers.

    **Guarantee.** The holder of this key alone learns nothing from encrypted vectors (IND-CPA). Bob
    learns from an answer the masked products, and of the matrix no more than
    ``parameters.leak_bits`` states, as a statistical distance.

    **Assumes.** Ring learning with errors at the standard's 128-bit parameters, for both. For the
    second also a key and a vector made as prescribed, within capacity. Of a vector that was not
    masked entries still tell nothing (``parameters.cover_bits``), if the key was, its uniform half
    above all: ``docs/encryption.md``. How long she takes is not hidden.
    """

    def __init__(
        self,
        seal: Seal,
        capacity: Capacity,
        half: PublicHalf,
        engine: Engine = LOCAL,
        part_tiles: int = PART_TILES,
    ) -> None:
        self.capacity = capacity
        self._engine = engine
        self._part_tiles = part_tiles
        self.modulus = seal.plain_modulus
        self._seal = seal
        self._half = half
        self.server_ops = ServerOps(seal, half.polynomials(seal), capacity.matrix_bits)
        self._covers: tuple[Mask, Layout, list[AnswerMask]] | None = None

    def to_bytes(self) -> bytes:
        """One polynomial and the seed of the other."""
        return self._half.to_bytes(self._seal)

    def draw_mask(self, length: int, entropy: Entropy) -> Mask:
        """Masks uniform modulo the plaintext modulus."""
        if length < 1:
            raise CryptoError(f"masks for {length} entries")
        return Mask(tuple(entropy.below(self.modulus) for _ in range(length)))

    def mask_of(self, values: IntArray, entropy: Entropy) -> Mask:
        """The values modulo the plaintext modulus."""
        return Mask(tuple(value % self.modulus for value in values.tolist()))

    def prepare(self, matrix: IntArray | FloatArray) -> PreparedMatrix:
        """Convert the matrix to polynomials in NTT form, by answer and piece.

        Refuses a matrix whose answer would leak more of it than ``LEAST_LEAK_BITS`` allows.
        """
        self.capacity.check_matrix(matrix)
        layout, whole = Layout.for_shape(*matrix.shape), matrix.astype(np.int64, copy=False)
        self._seal.parameters.check_leak(self.capacity, layout.rows, layout.pieces)
        polynomials = [
            [self._polynomial(layout, whole[rows, terms]) for terms in layout.slices()]
            for rows in layout.groups()
        ]
        return PreparedMatrix.from_matrix(matrix, polynomials)

    def _polynomial(self, layout: Layout, block: IntArray) -> _Polynomial:
        coefficients, seal = layout.polynomial(block), self.server_ops.seal
        counts = bool(coefficients.any())
        if not counts:
            # SEAL refuses the product with a zero polynomial; another takes its time.
            coefficients[0] = 1
        reduced = np.where(coefficients < 0, coefficients + seal.plain_modulus, coefficients)
        plain = seal.load_plain(reduced.astype(np.uint64))
        seal.evaluator.transform_to_ntt_inplace(plain, seal.first_id)
        return _Polynomial(plain, counts)

    def stock(self, prepared: PreparedMatrix, mask: Mask, entropy: Entropy) -> None:
        """Make encryptions of the masks for the next answer."""
        self._check_mask(mask, prepared.rows)
        layout = Layout.for_shape(prepared.rows, prepared.length)
        self._covers = mask, layout, self._cover_all(mask, layout, entropy)

    def _taken(self, mask: Mask, layout: Layout) -> list[AnswerMask] | None:
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

    def _cover_all(self, mask: Mask, layout: Layout, entropy: Entropy) -> list[AnswerMask]:
        floods, values = (
            entropy.fork("flood"),
            np.array(mask.values, dtype=np.uint64).view(np.int64),
        )
        return [
            self.server_ops.cover(
                values[rows], layout.places(rows.stop - rows.start), floods.fork(str(rows.start))
            )
            for rows in layout.groups()
        ]

    def masked_product(
        self, prepared: PreparedMatrix, vector: EncryptedVector, mask: Mask, entropy: Entropy
    ) -> EncryptedAnswer:
        """``matrix @ vector + mask``, re-randomised and switched to the kept primes."""
        prepared.check(vector, mask)
        self._check_mask(mask, prepared.rows)
        layout = Layout.for_shape(prepared.rows, prepared.length)
        pieces = self._pieces(vector, layout)
        # Once the vector is read: a refusal does not use up what was made ahead.
        covers = self._taken(mask, layout) or self._cover_all(mask, layout, entropy)
        parts, operations = list[bytes](), self.server_ops
        for polynomials, cover, rows in zip(prepared.content, covers, layout.groups(), strict=True):
            # For rows of zeros the cover alone is the answer.
            answer = operations.covered(self._sum_of_products(polynomials, pieces), cover)
            parts.append(operations.written(answer, layout.places(rows.stop - rows.start)))
        return EncryptedAnswer(b"".join(parts), layout.rows)

    def _pieces(self, vector: EncryptedVector, layout: Layout) -> list[Any]:
        size = layout.pieces * self.server_ops.piece_bytes
        parts = exactly(vector.data, size, "an encrypted vector")
        return list(self.server_ops.pieces(parts, layout.pieces))

    def _sum_of_products(self, polynomials: list[_Polynomial], pieces: list[Any]) -> Any:  # noqa: ANN401 - SEAL has no types
        """Sum of products in NTT form; None if all polynomials are zero, after the same work."""
        evaluator, total = self.server_ops.seal.evaluator, None
        for polynomial, piece in zip(polynomials, pieces, strict=True):
            product = sealapi.Ciphertext()
            try:
                evaluator.multiply_plain(piece, polynomial.plain, product)
            except ValueError as problem:
                raise CryptoError("the matrix was prepared for another key") from problem
            if not polynomial.counts:
                continue
            if total is None:
                total = product
            else:
                evaluator.add_inplace(total, product)
        return total

    def unmask(self, masked: tuple[int, ...], mask: Mask) -> IntArray:
        """The exact signed product."""
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

    def table(self, whole: IntArray, memory: int = DEFAULT_TABLE_MEMORY) -> BfvTable:
        """Convert a whole table to polynomials in NTT form, as many of them as fit ``memory``.

        Refuses a table of which a single pass would leak more than ``LEAST_LEAK_BITS`` allows.
        """
        size, parameters = check_table(self.capacity, whole), self._seal.parameters
        check_tables(parameters, wrapping(self.capacity), size, products=1)
        return BfvTable(
            # A table may change its key, and this one keeps its own.
            copy(self.server_ops),
            wrapping(self.capacity),
            whole,
            memory,
            self.to_bytes(),
            self._engine,
            Tiling.for_size(size, self._seal.degree).row_parts(self._part_tiles),
        )

    def table_masks(self, length: int, entropy: Entropy) -> TableMasks:
        """Masks uniform modulo the kept prime, and what this side rounds them to."""
        if not self._seal.parameters.rounds:
            raise CryptoError("masks of products that are opened are not for a key to draw")
        return shared_masks(length, wrapping(self.capacity), entropy)


@dataclass(frozen=True, slots=True)
class _Polynomial:
    """A part of a matrix in NTT form; one that does not count stands for zeros."""

    plain: Any = field(repr=False)
    counts: bool


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

    def __init__(
        self,
        seal: Seal,
        capacity: Capacity,
        seeds: KeySeeds,
        engine: Engine = LOCAL,
        part_tiles: int = PART_TILES,
    ) -> None:
        values = seeds.secret_values(seal)
        secret = seal.load_secret(values)
        self._seal = seal
        self._seeds = seeds
        self._encryptor = sealapi.Encryptor(seal.context, secret)
        self._grid = Grid(seal.primes[:-1], seal.plain_modulus)
        self._blinds = Grid(seal.primes[: len(seal.parameters.kept)], seal.plain_modulus)
        self._zeros: deque[_Zero] = deque()
        self._engine = engine
        self._pool: tuple[int, WorkerPool] | None = None
        # For blinds; like SEAL's own draws they change no result.
        self._entropy = KeyedEntropy.from_system()
        self._client_ops = ClientOps(seal, secret, self._entropy)
        self.public = BfvPublicKey(
            seal, capacity, seeds.public_half(seal, values), engine, part_tiles
        )

    def to_bytes(self) -> bytes:
        """The seeds of both halves."""
        return self._seeds.to_bytes()

    def stock(self, rows: int, length: int, entropy: Entropy) -> None:
        """Make encryptions of zero for the next vectors. SEAL draws them itself."""
        while len(self._zeros) < Layout.for_shape(rows, length).pieces:
            self._zeros.append(self._zero())

    def _zero(self) -> _Zero:
        """A fresh encryption of zero, as it goes to the wire but for the message."""
        first, seed = self._seal.seeded(self._encryptor.encrypt_zero_symmetric())
        primes = self._seal.primes[:-1]
        parts = [
            bytes_of(part)[:, : width(prime)].copy()
            for part, prime in zip(first, primes, strict=True)
        ]
        return _Zero(first, parts, seed)

    def encrypt(self, vector: IntArray, rows: int, entropy: Entropy) -> EncryptedVector:
        """Encrypt each piece: a fresh encryption of zero plus the piece on the grid of q/t."""
        self.public.capacity.check_vector(vector)
        layout = Layout.for_shape(rows, len(vector))
        pieces = [self._encrypt(vector[terms]) for terms in layout.slices()]
        return EncryptedVector(b"".join(pieces), len(vector))

    def encrypt_rows(
        self, vector: IntArray, size: TableSize, entropy: Entropy, row_block: slice | None = None
    ) -> EncryptedVector:
        """One ciphertext per row tile."""
        return self._encrypt_side(vector, self._rows_of(size, row_block))

    def encrypt_columns(
        self, vector: IntArray, size: TableSize, entropy: Entropy
    ) -> EncryptedVector:
        """One ciphertext per column tile."""
        return self._encrypt_side(vector, self._tiling(size).columns)

    def _encrypt_side(self, vector: IntArray, side: Side) -> EncryptedVector:
        check_table_vector(self.public.capacity, vector, side.length)
        sides = self._shared(side)
        values = np.split(vector, np.cumsum([part.length for part in sides])[:-1])
        jobs = [
            Job("encrypt", asdict(part), (some.astype("<i8", copy=False).tobytes(),))
            for part, some in zip(sides, values, strict=True)
        ]
        return EncryptedVector(b"".join(self._replies(jobs)), side.length)

    def _replies(self, jobs: list[Job]) -> list[Frame]:
        if len(jobs) == 1:
            return list(written(self.reply(jobs[0])))
        if self._pool is None or self._pool[0] < len(jobs):
            facts, key = ring_facts(wrapping(self.public.capacity)), self.to_bytes()
            facts["rounds"] = int(self._seal.parameters.rounds)
            setups = [partial(Job, "bob", facts, (key,))] * len(jobs)
            self._pool = len(jobs), self._engine.pool(setups)
        replies = self._pool[1].run(jobs, self.reply)
        return [frame for reply in replies for frame in written(reply)]

    def reply(self, job: Job) -> Reply:
        """Run a job on some tiles, as one of this key's workers."""
        side, (data,) = Side(**job.facts), job.frames
        if job.name == "encrypt":
            return (self.encrypt_tiles(np.frombuffer(data, "<i8"), side),)
        return (self.decrypt_tiles(ByteReader(data), side).astype("<i8", copy=False).tobytes(),)

    def encrypt_tiles(self, vector: IntArray, side: Side) -> bytes:
        """The ciphertexts of some tiles."""
        pieces = (vector[tile][::-1] for tile in side.slices())
        return b"".join(self._encrypt(piece, side.sent(len(piece))) for piece in pieces)

    def _shared(self, side: Side) -> list[Side]:
        """The tiles of each worker, which depend on public sizes alone."""
        count = min(self._engine.shares(side.tiles, LEAST_SHARED_PIECES), side.tiles)
        return [side.part(share) for share in even_shares(side.tiles, count)]

    def _encrypt(self, piece: IntArray, places: slice | None = None) -> bytes:
        zero = self._zeros.popleft() if self._zeros else self._zero()
        shifts, places = self._grid(piece), places or slice(len(piece))
        for at, prime in enumerate(self._seal.primes[:-1]):
            # Only the coefficients that carry the message change.
            words = lowered(zero.first[at, places] + shifts[at], np.uint64(prime))
            zero.parts[at][places] = bytes_of(words)[:, : width(prime)]
        return b"".join([*(part.data for part in zero.parts), zero.seed])

    def decrypt(self, answer: EncryptedAnswer, length: int) -> tuple[int, ...]:
        """The masked products modulo the plaintext modulus."""
        layout, parts = self._checked(answer, length)
        entries = self._entries(layout, parts, np.zeros(answer.length, dtype=np.int64))
        return tuple(entries.tolist())

    def decrypt_shares(self, answer: EncryptedAnswer, length: int) -> IntArray:
        """The products modulo ``2^modulus_bits``; the same work for all values.

        A number uniform modulo t is added to each entry before it is decrypted and subtracted
        afterwards (``ClientOps``).
        """
        ring = wrapping(self.public.capacity)
        layout, parts = self._checked(answer, length)
        blinds = ring.draw(answer.length, self._entropy)
        return ring.centred(self._entries(layout, parts, blinds).view(np.int64) - blinds)

    def decrypt_columns(self, answer: EncryptedAnswer, size: TableSize) -> IntArray:
        """The sums over rows modulo ``2^modulus_bits``, blinded as in ``decrypt_shares``."""
        return self._decrypt_side(answer, self._tiling(size).columns)

    def decrypt_rows(
        self, answer: EncryptedAnswer, size: TableSize, row_block: slice | None = None
    ) -> IntArray:
        """The sums over columns modulo ``2^modulus_bits``, blinded as in ``decrypt_shares``."""
        return self._decrypt_side(answer, self._rows_of(size, row_block))

    def _decrypt_side(self, answer: EncryptedAnswer, side: Side) -> IntArray:
        if answer.length != side.length:
            raise CryptoError(
                f"an answer of {answer.length} entries where {side.length} were expected"
            )
        parts = exactly(answer.data, self._answer_bytes(side), "an answer")
        sides = self._shared(side)
        jobs = [
            Job("decrypt", asdict(part), (parts.bytes(self._answer_bytes(part)),)) for part in sides
        ]
        return np.concatenate([np.frombuffer(frame, "<i8") for frame in self._replies(jobs)])

    def _answer_bytes(self, side: Side) -> int:
        return widths(self._blinds.primes) * (side.tiles * self._seal.degree + side.length)

    def decrypt_tiles(self, parts: ByteReader, side: Side) -> IntArray:
        """The entries of some tiles."""
        ring = wrapping(self.public.capacity)
        values = np.empty(side.length, dtype=np.int64)
        for tile in side.slices():
            count = tile.stop - tile.start
            data = parts.bytes(widths(self._blinds.primes) * (self._seal.degree + count))
            blinds = ring.draw(count, self._blinding(data))
            words = self._client_ops.entries(
                ByteReader(data), side.answered(count), self._blinds(blinds)
            )
            values[tile] = ring.centred(words.view(np.int64) - blinds)
        return values

    def _blinding(self, answer: memoryview) -> Entropy:
        """Where the blinds of a tile come from."""
        if not self._seal.parameters.rounds:
            return self._entropy
        # A blind can move a rounded share by a unit: the same answer always has the same one, so
        # that what is decrypted again after a stop is the same share.
        return self._seeds.blinding(hashlib.sha256(answer).hexdigest())

    def _checked(self, answer: EncryptedAnswer, length: int) -> tuple[Layout, ByteReader]:
        if answer.length < 1 or length < 1:
            raise CryptoError(f"an answer of {answer.length} entries to a vector of {length}")
        layout = Layout.for_shape(answer.length, length)
        entry = widths(self._blinds.primes)
        size = entry * (layout.answers * DEGREE + answer.length)
        return layout, exactly(answer.data, size, "an answer")

    def _entries(self, layout: Layout, parts: ByteReader, blinds: IntArray) -> WordArray:
        values = np.empty(len(blinds), dtype=np.uint64)
        for rows in layout.groups():
            places = layout.places(rows.stop - rows.start)
            values[rows] = self._client_ops.entries(parts, places, self._blinds(blinds[rows]))
        return values

    def _tiling(self, size: TableSize) -> Tiling:
        return Tiling.for_size(size, self._seal.degree)

    def _rows_of(self, size: TableSize, row_block: slice | None) -> Side:
        tiling = self._tiling(size)
        return tiling.rows.part(tiling.row_tiles(row_block))

    def __repr__(self) -> str:
        return "BfvSecretKey(<hidden>)"


@dataclass(frozen=True, slots=True)
class BfvScheme:
    """BFV with keys of 128-bit security.

    ``engine`` does not change what is computed. ``part_tiles`` is the number of row tiles per
    message; both sides must have the same. ``rounds`` is for tables whose products are never
    opened (``for_shares``).
    """

    engine: Engine = LOCAL
    part_tiles: int = PART_TILES
    rounds: bool = False

    name: ClassVar[str] = "bfv"
    protects: ClassVar[bool] = True
    whole_tables: ClassVar[bool] = True
    number_by_number: ClassVar[BfvSlots] = BfvSlots()
    key_bits: ClassVar[tuple[int, ...]] = (SECURITY_BITS,)

    @property
    def for_shares(self) -> BfvScheme:
        """The scheme whose tables have uniform masks and shares that both sides round."""
        return replace(self, rounds=True)

    def row_parts(self, size: TableSize) -> list[slice]:
        """Parts of at most ``part_tiles`` row tiles each."""
        degree = SHARED.degree if self.rounds else DEGREE
        return Tiling.for_size(size, degree).row_parts(self.part_tiles)

    def check_tables(self, capacity: Wrapping, size: TableSize, products: int) -> float:
        """Check the bounds of ``parameters`` over a whole training, for the tiles in use."""
        return check_tables(self._parameters(capacity), capacity, size, products)

    def generate(
        self, bits: int, capacity: Capacity, entropy: Entropy, seed: bytes | None = None
    ) -> BfvSecretKey:
        """Generate a key pair."""
        seeds = KeySeeds.draw(entropy, seed)
        return BfvSecretKey(
            self._seal(bits, capacity), capacity, seeds, self.engine, self.part_tiles
        )

    def read_public(
        self, data: bytes, bits: int, capacity: Capacity, seed: bytes | None = None
    ) -> BfvPublicKey:
        """Read a public key received from the peer and check it, its uniform half included."""
        seal = self._seal(bits, capacity)
        half = PublicHalf.from_bytes(data, seal, seed)
        return BfvPublicKey(seal, capacity, half, self.engine, self.part_tiles)

    def read_secret(self, data: bytes, bits: int, capacity: Capacity) -> BfvSecretKey:
        """Read the owner's stored secret key."""
        seeds = KeySeeds.from_bytes(data)
        return BfvSecretKey(
            self._seal(bits, capacity), capacity, seeds, self.engine, self.part_tiles
        )

    def _seal(self, bits: int, capacity: Capacity) -> Seal:
        parameters = self._parameters(capacity)
        return new_seal(parameters, parameters.plain_modulus(capacity), bits)

    def _parameters(self, capacity: Capacity) -> BfvParameters:
        return SHARED if self.rounds else require_fit(capacity)
