"""The exact noise of BFV ciphertexts, as Bob can compute it from his key.

The secret polynomial s is read off one decryption: of ``(0, round(q/t))`` SEAL gives the
coefficients of s modulo t. With it ``c0 + c1 s`` modulo q is plain integer arithmetic (convolutions
by floating FFT, in pieces small enough to round exactly), and what is left after the message's
``q m / t`` is the noise. Nothing is estimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import tenseal.sealapi as sealapi
from scipy.fft import irfft, rfft

from taciturn.arrays import FloatArray, IntArray, WordArray
from taciturn.crypto.base import EncryptedAnswer
from taciturn.crypto.bfv.keys import BfvSecretKey
from taciturn.crypto.bfv.layout import Layout
from taciturn.crypto.bfv.parameters import DEGREE
from taciturn.crypto.bfv.seal import SEED_BYTES

_PIECE = 20


def widths(primes: tuple[int, ...]) -> tuple[int, ...]:
    """Bytes of a coefficient."""
    return tuple(-(-prime.bit_length() // 8) for prime in primes)


def kept_primes(key: BfvSecretKey) -> tuple[int, ...]:
    return key._seal.primes[: len(key._seal.parameters.kept)]


def first_primes(key: BfvSecretKey) -> tuple[int, ...]:
    """Those of a fresh ciphertext."""
    return key._seal.primes[:-1]


def vector_bytes(key: BfvSecretKey, pieces: int) -> int:
    """The stated size of an encrypted vector."""
    return pieces * (DEGREE * sum(widths(first_primes(key))) + SEED_BYTES)


def answer_bytes(key: BfvSecretKey, layout: Layout) -> int:
    """The stated size of an answer: second polynomials whole, of the first ones the entries."""
    return sum(widths(kept_primes(key))) * (layout.answers * DEGREE + layout.rows)


def unpacked(key: BfvSecretKey, answer: EncryptedAnswer, length: int) -> list[WordArray]:
    """The ciphertexts of an answer, polynomials by primes by N; zero where nothing was sent."""
    layout, primes, at = Layout.for_shape(answer.length, length), kept_primes(key), 0
    ciphers = []
    for rows in layout.groups():
        places = layout.places(rows.stop - rows.start)
        cipher = np.zeros((2, len(primes), DEGREE), dtype=np.uint64)
        for index, width in enumerate(widths(primes)):
            for part, where in ((0, places), (1, np.arange(DEGREE))):
                chunk = answer.data[at : at + width * len(where)]
                at += len(chunk)
                words = [chunk[k : k + width] for k in range(0, len(chunk), width)]
                cipher[part, index, where] = [int.from_bytes(word, "little") for word in words]
        ciphers.append(cipher)
    assert at == len(answer.data)
    return ciphers


def scaled(values: list[int], q: int, t: int) -> list[int]:
    """Messages on the grid: the nearest whole number to ``q m / t``."""
    return [(2 * q * value + t) // (2 * t) for value in values]


@dataclass(frozen=True)
class Opened:
    """Bob's key with its secret polynomial."""

    key: BfvSecretKey
    secret: IntArray
    spectrum: np.ndarray

    @classmethod
    def of(cls, key: BfvSecretKey) -> Opened:
        seal, primes, t = key._seal, kept_primes(key), key.public.modulus
        degree = seal.degree
        (step,) = scaled([1], prod(primes), t)
        cipher = np.zeros((2, len(primes), degree), dtype=np.uint64)
        cipher[1, :, 0] = [step % prime for prime in primes]
        plain = sealapi.Plaintext()
        key._client_ops._decryptor.decrypt(seal.load_cipher(cipher, seal.kept_id), plain)
        coefficients = seal.coefficients(plain).astype(np.int64)
        assert set(coefficients.tolist()) <= {0, 1, t - 1}
        secret = np.where(coefficients == t - 1, -1, coefficients)
        return cls(key, secret, rfft(secret.astype(np.float64), 2 * degree))

    def times_secret(self, polynomial: WordArray, prime: int) -> IntArray:
        """``c s`` modulo x^N + 1 and a prime, exactly."""
        degree = len(polynomial)
        total = np.zeros(degree, dtype=object)
        for shift in range(0, 60, _PIECE):
            piece = (polynomial >> np.uint64(shift)) & np.uint64((1 << _PIECE) - 1)
            whole = irfft(rfft(piece.astype(np.float64), 2 * degree) * self.spectrum, 2 * degree)
            folded = np.rint(whole[:degree] - whole[degree:]).astype(np.int64)
            total = total + (folded.astype(object) << shift)
        product: IntArray = total % prime
        return product

    def phase(self, cipher: WordArray, primes: tuple[int, ...]) -> np.ndarray:
        """``c0 + c1 s`` modulo the product of the primes, as Python's integers."""
        q = prod(primes)
        total = np.zeros(cipher.shape[2], dtype=object)
        for at, prime in enumerate(primes):
            residue = (
                cipher[0, at].astype(object) + self.times_secret(cipher[1, at], prime)
            ) % prime
            rest = q // prime
            total = total + residue * (rest * pow(rest, -1, prime))
        return total % q

    def noise(
        self, cipher: WordArray, primes: tuple[int, ...], places: IntArray
    ) -> tuple[list[int], FloatArray]:
        """The messages at some places, and the distance of the phase from ``q m / t``."""
        q, t = prod(primes), self.key.public.modulus
        phase = self.phase(cipher, primes)[places]
        messages = (2 * t * phase + q) // (2 * q)
        # The numerator over t is exact; only the last division rounds.
        over = (t * phase - q * messages).astype(np.float64) / t
        return (messages % t).tolist(), over


def answer_noise(opened: Opened, answer: EncryptedAnswer, length: int) -> FloatArray:
    layout, primes = Layout.for_shape(answer.length, length), kept_primes(opened.key)
    noises = []
    for cipher, rows in zip(unpacked(opened.key, answer, length), layout.groups(), strict=True):
        places = layout.places(rows.stop - rows.start)
        noises.append(opened.noise(cipher, primes, places)[1])
    return np.concatenate(noises)
