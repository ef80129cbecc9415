"""The interface to Microsoft SEAL, and coefficients as bytes on the wire.

TenSEAL's binding moves objects in and out through files only. The files here are in memory
(``memfd_create``; elsewhere a temporary one). What comes from a peer never reaches SEAL's parser as
a file: the peer's numbers are checked for their number and put into a header of our own, and SEAL
checks that every coefficient lies below its prime.

On the wire each coefficient takes as many bytes as its prime has, the lowest first. Lengths are
checked before anything is read; ranges by SEAL, when it loads the words.

SEAL's layout, little-endian, of a ciphertext [SEAL, Ciphertext::save_members]::

    header     magic:u16 16:u8 major:u8 minor:u8 compression:u8 0:u16 size:u64
    ciphertext parms_id:32 ntt:u8 polynomials:u64 N:u64 primes:u64 scale:f64 correction:u64 array
    array      header count:u64 u64*
    seed       header type:u8 64 bytes       in place of the second polynomial
    plaintext  parms_id:32 count:u64 scale:f64 array

SEAL draws the randomness of encryptions itself, from the operating system. A seed of a simulation
does not reach it, and does not need to: what is decrypted does not depend on it. Keys are made from
seeds of ours (``seeds``).
"""

from __future__ import annotations

import os
import struct
import sys
import tempfile
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import tenseal.sealapi as sealapi
import zstandard

from taciturn.arrays import ByteArray, WordArray
from taciturn.crypto.bfv.parameters import SECURITY_BITS, BfvParameters
from taciturn.errors import CryptoError

SEED_BYTES = 64
_HEADER = struct.Struct("<HBBBBHQ")
_CIPHER = struct.Struct("<32sBQQQdQ")
_PLAIN = struct.Struct("<32sQd")
_PRNG = struct.Struct("<B64s")
_MAGIC, _BLAKE2XB = 0xA15E, 1
# Members beside coefficients: headers, identities, a seed.
_OTHER_BYTES = 512

T = TypeVar("T")


class _MemoryFile:
    def __init__(self) -> None:
        # In memory where the system has such files: secret keys pass through here.
        if sys.platform == "linux":
            self._file = os.memfd_create("taciturn")
            self._path = f"/proc/self/fd/{self._file}"
        else:
            self._file, self._path = tempfile.mkstemp(prefix="taciturn-")

    def put(self, *parts: bytes | memoryview) -> str:
        # What is left of a longer one is not read: headers say where an object ends.
        os.pwritev(self._file, parts, 0)
        return self._path

    def take(self, save: Callable[[str], None]) -> bytes:
        # SEAL opens a file to write it anew, and so empties it.
        save(self._path)
        return os.pread(self._file, os.fstat(self._file).st_size, 0)

    def __del__(self) -> None:
        os.close(self._file)
        if sys.platform != "linux":
            os.unlink(self._path)


@lru_cache(maxsize=8)
def _context(degree: int, bits: tuple[int, ...], plain_modulus: int) -> tuple[Any, tuple[int, ...]]:
    """SEAL's tables, which take longer to make than a key and are never changed, and the primes."""
    primes = sealapi.CoeffModulus.Create(degree, list(bits))
    context = _checked(degree, primes, plain_modulus, sealapi.SEC_LEVEL_TYPE.TC128)
    return context, tuple(int(prime.value()) for prime in primes)


@lru_cache(maxsize=16)
def _encoding_context(degree: int, plain_modulus: int) -> Any:  # noqa: ANN401 - SEAL has no types
    primes = sealapi.CoeffModulus.Create(degree, [60])
    return _checked(degree, primes, plain_modulus, sealapi.SEC_LEVEL_TYPE.NONE)


def _checked(degree: int, primes: Any, plain_modulus: int, level: Any) -> Any:  # noqa: ANN401
    chosen = sealapi.EncryptionParameters(sealapi.SCHEME_TYPE.BFV)
    chosen.set_poly_modulus_degree(degree)
    chosen.set_coeff_modulus(primes)
    chosen.set_plain_modulus(sealapi.Modulus(plain_modulus))
    context = sealapi.SEALContext(chosen, True, level)
    if not context.parameters_set():
        raise CryptoError(f"SEAL refuses: {context.parameters_error_message()}")
    return context


class Plaintexts:
    """Plaintext polynomials modulo t of a given degree, in and out of SEAL."""

    def __init__(self, context: Any, degree: int) -> None:  # noqa: ANN401 - SEAL has no types
        self.context = context
        self._degree = degree
        self._file = _MemoryFile()
        self._decompressor = zstandard.ZstdDecompressor()
        # Headers must have the version of the library that reads them.
        self._version = self.save(sealapi.Plaintext("1"))[3:5]

    @classmethod
    def for_encoding(cls, degree: int, modulus: int) -> Plaintexts:
        """Plaintexts of a ring in which nothing is encrypted: it puts numbers into slots."""
        return cls(_encoding_context(degree, modulus), degree)

    def save(self, thing: Any) -> bytes:  # noqa: ANN401
        """SEAL's serialisation of an object: a header, then compressed members."""
        return self._file.take(thing.save)

    def members(self, thing: Any, words: int) -> bytes:  # noqa: ANN401
        """Members of an object of at most this many coefficients, uncompressed."""
        # SEAL's frames do not say how long they are: room for the most that there can be is made
        # each time, and takes longer to make than to fill.
        body: bytes = self._decompressor.decompress(
            memoryview(self.save(thing))[_HEADER.size :], max_output_size=8 * words + _OTHER_BYTES
        )
        return body

    def coefficients(self, plain: Any) -> WordArray:  # noqa: ANN401
        """Coefficients of a plaintext; SEAL leaves out zeros at the top."""
        words = np.zeros(self._degree, dtype=np.uint64)
        body = self.members(plain, self._degree)
        present = np.frombuffer(body, "<u8", offset=_PLAIN.size + _HEADER.size + 8)
        words[: len(present)] = present
        return words

    def load_plain(self, coefficients: WordArray) -> Any:  # noqa: ANN401
        """Plaintext polynomial of coefficients below the plaintext modulus."""
        data = _little(coefficients)
        head = _PLAIN.pack(bytes(32), coefficients.size, 1.0) + self._array(data)
        return self._load(sealapi.Plaintext(), head, data)

    def _array(self, data: memoryview) -> bytes:
        return self._header(8 + data.nbytes) + struct.pack("<Q", data.nbytes // 8)

    def _header(self, size: int) -> bytes:
        return _HEADER.pack(_MAGIC, _HEADER.size, *self._version, 0, 0, _HEADER.size + size)

    def _load(self, thing: T, head: bytes, body: memoryview, tail: bytes = b"") -> T:
        size = len(head) + body.nbytes + len(tail)
        path = self._file.put(self._header(size), head, body, tail)
        try:
            thing.load(self.context, path)  # type: ignore[attr-defined]
        except (RuntimeError, ValueError) as problem:
            # Headers and lengths were written here: only a coefficient can be at fault.
            raise CryptoError("a coefficient lies outside its modulus") from problem
        return thing


class Seal(Plaintexts):
    """A SEAL context for one parameter set and one plaintext modulus.

    **Guarantee.** 128-bit security of the parameters, by SEAL's own check against the standard.
    **Assumes.** The standard's estimates for ternary secrets.
    """

    def __init__(self, parameters: BfvParameters, plain_modulus: int) -> None:
        self.parameters = parameters
        self.plain_modulus = plain_modulus
        self.degree = parameters.degree
        context, self.primes = _context(self.degree, parameters.prime_bits, plain_modulus)
        super().__init__(context, self.degree)
        self.first_id = self.context.first_parms_id()
        self.kept_id = self._level(len(parameters.kept))
        self.evaluator = sealapi.Evaluator(self.context)

    def for_factors(self, bits: int) -> Seal:
        """The same ring for a party that only multiplies, by numbers of at most ``bits`` bits.

        Neither products nor sums nor switches depend on the plaintext modulus, and numbers modulo
        one that is below all primes become polynomials in two thirds of the time.
        """
        small = min(self.parameters.prime_bits[:-1]) - 2
        if bits + 2 > small or self.plain_modulus <= 1 << small:
            return self
        return Seal(self.parameters, 1 << small)

    def _level(self, primes: int) -> Any:  # noqa: ANN401 - SEAL's objects have no types
        # Each level of SEAL's chain has one prime fewer.
        data = self.context.first_context_data()
        while len(data.parms().coeff_modulus()) > primes:
            data = data.next_context_data()
        return data.parms_id()

    def polynomials(self, cipher: Any, primes: int) -> WordArray:  # noqa: ANN401
        """Coefficients of a ciphertext: polynomials by primes by N."""
        body = self.members(cipher, 2 * primes * self.degree)
        start = _CIPHER.size + _HEADER.size + 8
        return np.frombuffer(body, "<u8", offset=start).reshape(-1, primes, self.degree)

    def seeded(self, sealed: Any) -> tuple[WordArray, bytes]:  # noqa: ANN401
        """First polynomial of a seeded ciphertext, and the seed of its second."""
        start = _CIPHER.size + _HEADER.size + 8
        primes = len(self.primes) - 1
        body = self.members(sealed, primes * self.degree)
        first = np.frombuffer(body, "<u8", primes * self.degree, start).reshape(primes, -1)
        return first, body[-SEED_BYTES:]

    def load_seeded(self, first: WordArray, seed: bytes) -> Any:  # noqa: ANN401
        """The ciphertext whose second polynomial a seed expands to."""
        members = _PRNG.pack(_BLAKE2XB, seed)
        tail = self._header(len(members)) + members
        return self.load_cipher(first[np.newaxis], self.first_id, tail=tail)

    def load_cipher(
        self,
        polynomials: WordArray,
        parms_id: Any,  # noqa: ANN401
        *,
        ntt: bool = False,
        tail: bytes = b"",
    ) -> Any:  # noqa: ANN401
        """Load the ciphertext of given coefficients, or of their transforms.

        ``tail`` is what the second polynomial is made from, where only the first is given.
        """
        data, identity = _little(polynomials), struct.pack("<4Q", *parms_id)
        shape = len(polynomials) + bool(tail), self.degree, polynomials.shape[1]
        members = _CIPHER.pack(identity, ntt, *shape, 1.0, 1)
        return self._load(sealapi.Ciphertext(), members + self._array(data), data, tail)

    def root_values(self, plain: Any) -> WordArray:  # noqa: ANN401
        """Numbers of a plaintext in NTT form, one prime's after the other's."""
        body = self.members(plain, len(self.primes) * self.degree)
        return np.frombuffer(body, "<u8", offset=_PLAIN.size + _HEADER.size + 8)

    def load_secret(self, words: WordArray) -> Any:  # noqa: ANN401
        """Load the secret key of given values at the roots: primes by N."""
        data = _little(words)
        identity = struct.pack("<4Q", *self.context.key_parms_id())
        head = _PLAIN.pack(identity, words.size, 1.0) + self._array(data)
        return self._load(sealapi.SecretKey(), head, data)


def _little(values: WordArray) -> memoryview:
    return np.ascontiguousarray(values, dtype="<u8").reshape(-1).view(np.uint8).data


def width(prime: int) -> int:
    """Bytes of a number modulo a prime."""
    return (prime.bit_length() + 7) // 8


def widths(primes: tuple[int, ...]) -> int:
    """Bytes of a number modulo all of some primes."""
    return sum(map(width, primes))


def bytes_of(values: WordArray) -> ByteArray:
    """Words as rows of eight bytes, the lowest first."""
    return np.ascontiguousarray(values, dtype="<u8").view(np.uint8).reshape(-1, 8)


def trimmed(values: WordArray, prime: int) -> bytes:
    """The low bytes of each word: as many as its prime has."""
    return bytes_of(values)[:, : width(prime)].tobytes()


def _widened(data: memoryview, prime: int) -> WordArray:
    size = width(prime)
    if size == 8:
        return np.frombuffer(data, "<u8").astype(np.uint64, copy=False)
    # Eight bytes are read at each place and those of the next number cut off; the last few, after
    # which there are not as many, are copied byte by byte.
    count = len(data) // size
    body = max(0, count - 8)
    words = np.empty(count, dtype="<u8")
    np.bitwise_and(
        np.ndarray((body,), "<u8", data, strides=(size,)),
        np.uint64((1 << 8 * size) - 1),
        out=words[:body],
    )
    rest = np.zeros((count - body, 8), dtype=np.uint8)
    rest[:, :size] = np.frombuffer(data, np.uint8, offset=body * size).reshape(-1, size)
    words[body:] = rest.view("<u8").reshape(-1)
    return words.astype(np.uint64, copy=False)


class ByteReader:
    """Reader of fields from the front of some bytes."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._rest = memoryview(data)

    def words(self, count: int, prime: int) -> WordArray:
        """The next numbers modulo a prime."""
        return _widened(self.bytes(count * width(prime)), prime)

    def bytes(self, size: int) -> memoryview:
        """The next bytes."""
        part, self._rest = self._rest[:size], self._rest[size:]
        return part


def exactly(data: bytes | memoryview, size: int, kind: str) -> ByteReader:
    """Reader of bytes of this size; raises ``CryptoError`` for any other."""
    if len(data) != size:
        raise CryptoError(f"{kind} of {len(data)} bytes where {size} were expected")
    return ByteReader(data)


def new_seal(parameters: BfvParameters, modulus: int, bits: int) -> Seal:
    """SEAL set up for one key; raises ``CryptoError`` where keys have another size."""
    if bits != SECURITY_BITS:
        raise CryptoError(
            f"{bits}-bit keys are not offered", hint="bfv has 128: its security level"
        )
    # One for each key, as it has a file of its own: parties may be threads of one process.
    return Seal(parameters, modulus)
